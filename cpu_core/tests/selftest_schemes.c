/* What each scheme must split like. */
#include "selftest.h"

/* Schemes and their patterns as the references have them. "{1,3}+" is for HF one or more of {1,3}, which
 * is \\p{N}+ here. */
enum { ALONE = 1 };  /* numbers are split off first, each alone */

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
};
const int st_n_schemes = sizeof st_schemes / sizeof *st_schemes;

void st_split(int k, const st_char *chars, int64_t n, uint8_t *starts) {
  static st_regex *read[64];
  int64_t from = 0;
  if (!read[k]) read[k] = st_regex_new(st_schemes[k].pattern);
  for (int64_t i = 0; i < n && st_schemes[k].flags == ALONE; i++) {
    uint32_t tag = chars[i].tag;
    if (tag != 6 && tag != 12 && tag != 19 && tag != 27) continue;
    st_regex_split(read[k], chars + from, i - from, starts);
    starts[chars[i].start] = 1;
    from = i + 1;
  }
  st_regex_split(read[k], chars + from, n - from, starts);
}
