/* What each scheme must split like. */
#include "selftest.h"

/* Schemes and their patterns as the references have them. "{1,3}+" is for HF one or more of {1,3}, which
 * is \\p{N}+ here. */
enum { ALONE = 1, DEEPSEEK = 2 };  /* numbers are split off first, each alone; two patterns come before */

const st_scheme st_schemes[] = {
#define GPT2 "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
    {"gpt2", GPT2, 0},
    {"starcoder", GPT2, ALONE},
#define CL100K(numbers)                                                                   \
  "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|" numbers                        \
  "| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s"
    {"cl100k", CL100K("\\p{N}{1,3}+"), 0},
    {"cl100k_hf", CL100K("\\p{N}+"), 0},
#define LLAMA(letter, numbers)                                                                  \
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?" letter "+|" numbers "| ?[^\\s" letter     \
  "\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
    {"llama3", LLAMA("\\p{L}", "\\p{N}{1,3}"), 0},
    {"qwen2", LLAMA("\\p{L}", "\\p{N}"), 0},
    {"qwen35", LLAMA("[\\p{L}\\p{M}]", "\\p{N}"), 0},
    {"ling",
     "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|"
     "\\s*[\\r\\n]|\\s+(?!\\S)|\\s+", 0},
    {"o200k",
     "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t"
     "|'re|'ve|'m|'ll|'d)?"
     "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s"
     "|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)"
     "|\\s+", 0},
    {"tekken",
     "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
     "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|\\p{N}"
     "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", 0},
    {"kimi",
     "[\\p{Han}]+"
     "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
     "&&[^\\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
     "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
     "&&[^\\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
     "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", 0},
    {"deepseek",
     "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
     "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+", DEEPSEEK},
    {"clip",
     "<\\|startoftext\\|>|<\\|endoftext\\|>|'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+", 0},
};
const int st_n_schemes = sizeof st_schemes / sizeof *st_schemes;

/* Whether a character is one of 4E00..9FA5, 3040..30FF. */
static int is_apart(const st_char *c) { return c->tag >= 20 && c->tag <= 25; }

/* Whether the second pattern cuts before character i, behind a cut or not. */
static int is_edge(const st_char *chars, int64_t i) { return is_apart(chars + i) != is_apart(chars + i - 1); }

static void split_deepseek(const st_regex *third, const st_char *chars, int64_t n, uint8_t *starts) {
  static st_regex *first;
  int64_t from = 0;
  if (!first) first = st_regex_new("\\p{N}{1,3}");
  st_regex_split(first, chars, n, starts);
  for (int64_t i = 1; i <= n; i++)
    if (i == n || starts[chars[i].start] || is_edge(chars, i)) {
      st_regex_split(third, chars + from, i - from, starts);
      from = i;
    }
}

void st_split(int k, const st_char *chars, int64_t n, uint8_t *starts) {
  static st_regex *read[64];
  int64_t from = 0;
  if (!read[k]) read[k] = st_regex_new(st_schemes[k].pattern);
  if (st_schemes[k].flags == DEEPSEEK) {
    split_deepseek(read[k], chars, n, starts);
    return;
  }
  for (int64_t i = 0; i < n && st_schemes[k].flags == ALONE; i++) {
    uint32_t tag = chars[i].tag;
    if (tag != 6 && tag != 12 && tag != 19 && tag != 27) continue;
    st_regex_split(read[k], chars + from, i - from, starts);
    starts[chars[i].start] = 1;
    from = i + 1;
  }
  st_regex_split(read[k], chars + from, n - from, starts);
}
