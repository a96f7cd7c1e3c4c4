/* The generated tables: published by name, and laid out for the classify lanes. */
#include "backend.h"

#include "bytemap.h"
#include "ids.h"
#include "schemes.h"
#include "scripts.h"
#include "superatoms.h"

#define FOUR_BYTE_LEAVES (5 * 4096)  /* leads F0..F4, second and third byte */
#define OVERLONG_LEAVES 2            /* for overlong forms of 00..3F and 40..7F */
#define OTHER_LEAF 2                 /* for values past U+10FFFF */
#define EXTRA_LEAVES 3               /* the generated leaves lie behind these */

typedef struct storage {
  uint16_t four[FOUR_BYTE_LEAVES];
  uint8_t leaves[(EXTRA_LEAVES + SA_SUPERATOM_LEAVES) * 64];
} storage;

static storage stores[2];
static sa_alphabet alphabets[2];
static sa_scheme schemes[SA_SCHEME_COUNT];

/* The alphabets' and schemes' parts again, as arrays that sa_table publishes. */
static const uint8_t failed_tags[2] = {SA_TAG_OTHER, 0};
static uint8_t scheme_bits[SA_SCHEME_COUNT][32];
static uint8_t scheme_ascii_bits[SA_SCHEME_COUNT][128];

_Static_assert(SA_SCRIPT_LEAVES <= SA_SUPERATOM_LEAVES, "storage is sized for the superatoms");
_Static_assert(EXTRA_LEAVES + SA_SUPERATOM_BMP_LEAVES <= 256 && EXTRA_LEAVES + SA_SCRIPT_BMP_LEAVES <= 256,
               "leaves of the 16-bit plane are numbered in a byte");

/* Overlong forms have the class of their value, but they are not the bytes that rules compare. */
static uint8_t overlong(int alphabet, uint8_t tag) {
  if (alphabet != SA_ALPHABET_SUPERATOMS) return tag;
  switch (tag) {
    case SA_TAG_SPACE: case SA_TAG_NEWLINE: return SA_TAG_WS_OTHER;
    case SA_TAG_APOSTROPHE: case SA_TAG_SLASH: return SA_TAG_PUNCT;
    default: return tag;
  }
}

static void build_alphabet(int alphabet, const uint16_t *index, const uint8_t *leaf, int n_leaves,
                           const uint8_t *ascii, const uint8_t *byte, uint8_t other) {
  sa_alphabet *a = &alphabets[alphabet];
  storage *s = &stores[alphabet];
  for (int i = 0; i < 128; i++) s->leaves[i] = overlong(alphabet, ascii[i]);
  memset(s->leaves + OTHER_LEAF * 64, other, 64);
  memcpy(s->leaves + EXTRA_LEAVES * 64, leaf, (size_t)n_leaves * 64);
  memcpy(a->ascii, ascii, 128);
  memcpy(a->alone, byte + 128, 128);
  a->failed = other;
  a->leaves = s->leaves;
  a->four = s->four;
  for (int i = 0; i < FOUR_BYTE_LEAVES; i++)
    s->four[i] = (uint16_t)(i < OVERLONG_LEAVES ? i
                            : i < 0x110000 / 64 ? EXTRA_LEAVES + index[i]
                                                : OTHER_LEAF);
  /* Leaves are numbered by first use, so those of the 16-bit plane fit a byte. */
  for (int i = 0; i < 32; i++) a->two[i] = (uint8_t)s->four[i];
  for (int i = 0; i < 16; i++) {
    a->uniform[i] = s->leaves[s->four[64 * i] * 64];
    for (int j = 0; j < 64; j++) {
      uint16_t number = s->four[64 * i + j];
      a->three[i][j] = (uint8_t)number;
      for (int k = 0; k < 64; k++)
        if (s->leaves[number * 64 + k] != a->uniform[i]) a->uniform[i] = 0xFF;
    }
  }
}

/* The class bits of all families. DeepSeek's rules know marks as letters only. */
static uint8_t class_bits(int rules, uint8_t class_id) {
  switch (class_id) {
    case SA_CLASS_L: return SA_BIT_LETTER;
    case SA_CLASS_N: return SA_BIT_NUMBER;
    case SA_CLASS_U: return SA_BIT_UPPER;
    case SA_CLASS_D: return SA_BIT_LOWER;
    case SA_CLASS_X: return SA_BIT_CASELESS;
    case SA_CLASS_M: return rules == SA_RULES_DEEPSEEK ? SA_BIT_LETTER : SA_BIT_MARK;
    case SA_CLASS_P: return SA_BIT_PUNCT;
    case SA_CLASS_H: case SA_CLASS_CJK: return SA_BIT_APART;
    case SA_CLASS_NL: case SA_CLASS_SP: case SA_CLASS_WS: return SA_BIT_WHITE;
    default: return 0;
  }
}

static void build_scheme(int i) {
  sa_scheme *s = &schemes[i];
  const uint8_t *row = sa_remap_row[sa_scheme_remap[i]];
  const uint8_t *apart = sa_scheme_apart[i] < SA_REMAP_COUNT ? sa_remap_row[sa_scheme_apart[i]] : NULL;
  s->rules = sa_scheme_rules[i];
  if (s->rules == SA_RULES_GPT2) {
    s->options.gpt2.alone = sa_scheme_numbers[i];
    s->options.gpt2.literals = sa_scheme_literals[i];
  } else if (s->rules == SA_RULES_CL100K) {
    s->options.cl100k.numbers = sa_scheme_numbers[i];
    s->options.cl100k.whole_end = sa_scheme_whole_end[i];
  } else if (s->rules == SA_RULES_O200K) {
    s->options.o200k.numbers = sa_scheme_numbers[i];
    s->options.o200k.suffixes = sa_scheme_suffixes[i];
    s->options.o200k.han = apart != NULL;
  }
  for (int tag = 0; tag < 32; tag++) {
    s->bits[tag] = class_bits(s->rules, row[tag]);
    if (apart) s->bits[tag] |= class_bits(s->rules, apart[tag]) & SA_BIT_APART;
  }
  for (int byte = 0; byte < 128; byte++) s->ascii_bits[byte] = s->bits[sa_superatom_ascii[byte]];
  memcpy(scheme_bits[i], s->bits, sizeof s->bits);
  memcpy(scheme_ascii_bits[i], s->ascii_bits, sizeof s->ascii_bits);
}

/* At load, before any thread can look. */
__attribute__((constructor)) static void build(void) {
  build_alphabet(SA_ALPHABET_SUPERATOMS, sa_superatom_index, sa_superatom_leaf, SA_SUPERATOM_LEAVES,
                 sa_superatom_ascii, sa_superatom_byte, failed_tags[0]);
  build_alphabet(SA_ALPHABET_SCRIPTS, sa_script_index, sa_script_leaf, SA_SCRIPT_LEAVES,
                 sa_script_ascii, sa_script_byte, failed_tags[1]);
  for (int i = 0; i < SA_SCHEME_COUNT; i++) build_scheme(i);
}

const sa_alphabet *sa_alphabet_of(int32_t alphabet) {
  return alphabet < 0 || alphabet > 1 ? NULL : &alphabets[alphabet];
}

const sa_scheme *sa_scheme_of(int32_t scheme) {
  return scheme < 0 || scheme >= SA_SCHEME_COUNT ? NULL : &schemes[scheme];
}

int32_t sa_scheme_count(void) { return SA_SCHEME_COUNT; }

const char *sa_scheme_name(int32_t scheme) {
  return scheme < 0 || scheme >= SA_SCHEME_COUNT ? NULL : sa_scheme_names[scheme];
}

#define TABLE(x) {#x, x, sizeof x}

static const struct table {
  const char *name;
  const void *data;
  size_t bytes;
} tables[] = {
    TABLE(sa_superatom_index), TABLE(sa_superatom_leaf), TABLE(sa_superatom_ascii),
    TABLE(sa_superatom_byte), TABLE(sa_superatom_first), TABLE(sa_superatom_tag),
    TABLE(sa_superatom_atom), TABLE(sa_script_index), TABLE(sa_script_leaf),
    TABLE(sa_script_ascii), TABLE(sa_script_byte), TABLE(sa_script_first),
    TABLE(sa_script_tag), TABLE(sa_bytemap_symbol), TABLE(sa_bytemap_byte),
    TABLE(sa_remap_row), TABLE(sa_scheme_remap), TABLE(sa_scheme_rules),
    TABLE(sa_scheme_numbers), TABLE(sa_scheme_whole_end), TABLE(sa_scheme_suffixes),
    TABLE(sa_scheme_literals), TABLE(sa_scheme_apart),
    /* As laid out by this unit, see saphira.h. */
    {"sa_superatom_four", stores[0].four, sizeof stores[0].four},
    {"sa_superatom_leaves", stores[0].leaves, sizeof stores[0].leaves},
    {"sa_script_four", stores[1].four, sizeof stores[1].four},
    {"sa_script_leaves", stores[1].leaves, sizeof stores[1].leaves},
    {"sa_failed_tags", failed_tags, sizeof failed_tags},
    {"sa_scheme_bits", scheme_bits, sizeof scheme_bits},
    {"sa_scheme_ascii_bits", scheme_ascii_bits, sizeof scheme_ascii_bits},
};

const void *sa_table(const char *name, int64_t *bytes) {
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    if (strcmp(name, tables[i].name) == 0) {
      if (bytes) *bytes = (int64_t)tables[i].bytes;
      return tables[i].data;
    }
  }
  return NULL;
}
