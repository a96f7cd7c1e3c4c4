/* The C interface of the core: the only declarations, read by C, by cffi and by the tests.
 *
 * Plain arrays, lengths and handles. Buffers are the caller's and bounded in advance: piece starts
 * and ids never outnumber bytes of text. Nothing is read outside text[offsets[0], offsets[n_rows]).
 * Functions are thread-safe unless they say otherwise; the one piece of global state is the ISA.
 */
#ifndef SAPHIRA_H
#define SAPHIRA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Status of every function that returns int32_t: 0 or one of these. */
#define SA_OK 0
#define SA_ERR_NOMEM 1
#define SA_ERR_ARGUMENT 2
#define SA_ERR_SPECIAL 3
#define SA_ERR_PLAN 4
#define SA_ERR_CAPACITY 5

/* Instruction sets. Each gives the same tags, boundaries and ids. */
#define SA_ISA_SCALAR 0
#define SA_ISA_AVX2 1
#define SA_ISA_AVX512 2
#define SA_ISA_NEON 3
#define SA_ISA_COUNT 4

/* What an added token in the text becomes (the option `special` of the Python API). */
#define SA_SPECIAL_PLAIN 0
#define SA_SPECIAL_PARSE 1
#define SA_SPECIAL_HF_PLAIN 2
#define SA_SPECIAL_ERROR 3

/* Flags of an added token. */
#define SA_ADDED_SPECIAL 1
#define SA_ADDED_NORMALIZED 2
#define SA_ADDED_LSTRIP 4
#define SA_ADDED_RSTRIP 8
#define SA_ADDED_SINGLE_WORD 16

/* Tag alphabets of sa_classify. */
#define SA_ALPHABET_SUPERATOMS 0
#define SA_ALPHABET_SCRIPTS 1

/* ---- instruction set ---- */

const char *sa_isa_name(int32_t isa);      /* "scalar", "avx2", "avx512", "neon"; NULL if out of range */
int32_t sa_isa_available(int32_t isa);     /* 1: built in and this CPU runs it */
int32_t sa_isa_active(void);
const char *sa_isa_refused(void);          /* value of SAPHIRA_ISA that is unknown or not available, or NULL */
int32_t sa_isa_select(int32_t isa);        /* SA_ERR_ARGUMENT where it is not available */

/* ---- rows ---- */

/* Rows of text in Arrow's layout: row i is text[offsets[i], offsets[i+1]). */
typedef struct sa_rows {
  const uint8_t *text;
  const void *offsets;       /* n_rows + 1 of int32_t or int64_t, ascending */
  int32_t offset_bits;       /* 32 or 64 */
  int64_t n_rows;
  const uint8_t *validity;   /* Arrow validity bitmap, or NULL: all valid */
  int64_t validity_offset;   /* bit of row 0 in it */
} sa_rows;

/* Marks rows that are not UTF-8: invalid[i] = 1 (n_rows bytes). Returns how many there are; null rows
 * count as valid. */
int64_t sa_utf8_invalid(const sa_rows *rows, uint8_t *invalid);

/* ---- stage pretok: classify, remap, boundaries ---- */

/* One tag per byte (0xFF on continuation bytes of a character) and a bitmap of character starts.
 * tags: one byte per byte of text; starts: ceil(bytes / 64) words, bit i = byte i of text[offsets[0]..).
 * Invalid bytes follow the byte contract; every row is a segment. */
int32_t sa_classify(int32_t alphabet, const sa_rows *rows, uint8_t *tags, uint64_t *starts);

/* classes[i] = table[tags[i]] for tags 0..31; 0xFF stays 0xFF. */
int32_t sa_remap(const uint8_t *table, const uint8_t *tags, int64_t n, uint8_t *classes);

/* Number of compiled schemes, and the name of one (NULL if out of range). */
int32_t sa_scheme_count(void);
const char *sa_scheme_name(int32_t scheme);

/* Bitmap of piece starts, laid out like `starts` of sa_classify; each row is a segment of its own. */
int32_t sa_boundaries(int32_t scheme, const sa_rows *rows, uint64_t *starts);

/* ---- stage pretok: consumers, programs of small stages over rows ---- */

/* Stages. Each works on the pieces that the ones before it left, every piece a text of its own. */
#define SA_STAGE_CLASSES 0    /* cuts by the class of characters: bytes = 32 sets of SA_CUT_*, by superatom */
#define SA_STAGE_LITERAL 1    /* cuts by occurrences of bytes, leftmost first, none inside another */
#define SA_STAGE_DIGITS3 2    /* the same for [0-9][0-9][0-9] */
#define SA_STAGE_MATCH 3      /* the same for whatever `match` finds */
#define SA_STAGE_SCHEME 4     /* pieces of compiled scheme `number` */
#define SA_STAGE_SCRIPTS 5    /* where the script changes; drops what comes before the first script */
#define SA_STAGE_LENGTH 6     /* pieces of `number` characters */
#define SA_STAGE_PREFIX 7     /* new text: bytes in front of every piece that does not start with them */
#define SA_STAGE_REPLACE 8    /* new text: bytes for every U+0020; then, where `number` says so, as PREFIX */
#define SA_STAGE_BYTEMAP 9    /* new text: the byte-alphabet symbol of every byte */

/* REPLACE: which pieces get a prefix: every one, one at its row's start, none. */
#define SA_PREFIX_ALWAYS 0
#define SA_PREFIX_FIRST 1
#define SA_PREFIX_NEVER 2

/* What a character of some class, or a match, does. */
#define SA_CUT_DROP 1         /* it is in no piece */
#define SA_CUT_RUN 2          /* it and its like side by side are one piece */
#define SA_CUT_BEFORE 4       /* a piece starts at it */
#define SA_CUT_AFTER 8        /* a piece starts behind it */
#define SA_CUT_DROP_REST 16   /* of a match: what lies between matches is in no piece */

/* Finds matches in text[0, n): sets the bits of their first bytes in starts, and of all their bytes in
 * matched. pieces: bitmap of segment starts, the bit of byte n set; no match crosses one. dropped: bytes to
 * leave alone. Returns a status. */
typedef int32_t (*sa_match)(void *context, const uint8_t *text, int64_t n, const uint64_t *pieces,
                            const uint64_t *dropped, uint64_t *starts, uint64_t *matched);

typedef struct sa_stage {
  int32_t kind;           /* SA_STAGE_* */
  int32_t cuts;           /* LITERAL, DIGITS3, MATCH: SA_CUT_* */
  int64_t number;
  const uint8_t *bytes;
  int64_t n_bytes;
  sa_match match;
  void *context;
} sa_stage;

typedef struct sa_program sa_program;

/* Copies the stages. NULL: out of memory, or a stage that makes no sense. */
sa_program *sa_program_new(const sa_stage *stages, int64_t n_stages);
void sa_program_free(sa_program *program);

/* Bytes that n bytes of text become at most, INT64_MAX if that is out of range; a row's pieces never
 * outnumber them. */
int64_t sa_program_bound(const sa_program *program, int64_t n);

/* What a first pass over rows found; memory of its own. */
typedef struct sa_marks sa_marks;

/* First pass: counts[i] = pieces of row i; a null row has none. counts and *marks go to sa_pretokenize with
 * the same rows, *marks then to sa_marks_free. SA_ERR_ARGUMENT: offsets descend, or a row could grow past
 * 4 GiB in a stage that makes new text. The status of `match` where it is not 0. */
int32_t sa_pretokenize_count(const sa_program *program, const sa_rows *rows, int64_t *counts, sa_marks **marks);
void sa_marks_free(sa_marks *marks);

/* Second pass: pieces of all rows in order, as bytes of their row: the bytes that a piece of new text comes
 * from. starts, ends: as many as the counts add up to. */
int32_t sa_pretokenize(const sa_rows *rows, const int64_t *counts, const sa_marks *marks, int64_t *starts,
                       int64_t *ends);

/* One text. sizes: bytes of the text that the stages made of it, and pieces. made: that text. spans: of each
 * piece its start and end in it, then in the text given. made = NULL: only sizes. */
int32_t sa_pretokenize_text(const sa_program *program, const uint8_t *text, int64_t n, int64_t *sizes,
                            uint8_t *made, int64_t *spans);

/* ---- stage normalize ---- */

/* What a step of a normalizer does. Unicode 9.0 for the forms, 17.0 for lower case. */
#define SA_NORMALIZE_NFC 0
#define SA_NORMALIZE_NFD 1
#define SA_NORMALIZE_NFKC 2
#define SA_NORMALIZE_NFKD 3
#define SA_NORMALIZE_LOWERCASE 4       /* each code point alone, no context */
#define SA_NORMALIZE_REPLACE 5         /* each `pattern`, leftmost first, by `content` */
#define SA_NORMALIZE_REPLACE_SPACES 6  /* each run of white space by `content`: the regex \s+ */
#define SA_NORMALIZE_STRIP_LEFT 7      /* white space at the start of the segment */
#define SA_NORMALIZE_STRIP_RIGHT 8
#define SA_NORMALIZE_PREPEND 9         /* `content` before a segment that is not empty */
#define SA_NORMALIZE_COUNT 10

typedef struct sa_normalizer_plan {
  int64_t n_steps;
  const uint8_t *kinds;        /* SA_NORMALIZE_*, in the order they run */
  const int64_t *offsets;      /* 2 * n_steps + 1 into bytes: pattern and content of each step, UTF-8, */
  const uint8_t *bytes;        /*     empty where the kind has none */
} sa_normalizer_plan;

typedef struct sa_normalizer sa_normalizer;

/* Growable memory of the caller's: zero it before first use, release it after the last. */
typedef struct sa_buffer {
  uint8_t *data;
  int64_t n, capacity;
} sa_buffer;

/* Of each byte of a normalized text, the [start, end) in the source of the character it comes from:
 * spans[2 * i] and spans[2 * i + 1]. n and capacity count bytes of the text. */
typedef struct sa_alignment {
  int64_t *spans;
  int64_t n, capacity;
} sa_alignment;

void sa_buffer_release(sa_buffer *buffer);
void sa_alignment_release(sa_alignment *alignment);

/* Copies the plan. NULL on failure, with the reason in error (capacity bytes, NUL-terminated). */
sa_normalizer *sa_normalizer_new(const sa_normalizer_plan *plan, char *error, int64_t capacity);
void sa_normalizer_free(sa_normalizer *normalizer);

/* 1: normalizing this segment gives the same bytes. 0: it may not. Allocates nothing. */
int32_t sa_normalizer_quick(const sa_normalizer *normalizer, const uint8_t *text, int64_t n);

/* Normalizes one segment; out and alignment (may be NULL) are overwritten, and text lies in neither. Forms
 * and lower case act on each maximal run of valid UTF-8; invalid bytes pass through. SA_OK or SA_ERR_NOMEM. */
int32_t sa_normalizer_run(const sa_normalizer *normalizer, const uint8_t *text, int64_t n, sa_buffer *out,
                          sa_alignment *alignment);

/* ---- model ---- */

typedef struct sa_plan {
  int32_t scheme;                /* a compiled scheme; -1: the program of stages splits text */
  int32_t whole_piece_first;     /* a piece that is a token is that token, reachable by merges or not */
  int32_t add_prefix_space;      /* text between added tokens that does not start with a space gets one */
  int64_t n_stages;
  const sa_stage *stages;
  const sa_normalizer_plan *normalizer;  /* NULL: none */
  int64_t n_ids;                 /* ids are 0 .. n_ids - 1 */
  const int64_t *token_offsets;  /* n_ids + 1 into token_bytes; an empty token is a hole */
  const uint8_t *token_bytes;    /* the raw bytes of every token, without the end-of-word suffix */
  const uint8_t *token_ends;     /* n_ids: 1 = it carries the suffix; NULL: no token does */
  const uint32_t *byte_ids;      /* 256: the id of each single byte. With merges, no suffix and not */
                                 /*     whole_piece_first: UINT32_MAX, the byte is left out of its piece */
  const uint32_t *byte_ids_end;  /* 256: the same with the suffix, for a piece's last byte; NULL: no suffix */
  int64_t n_merges;              /* -1: a rank file, where a pair merges if the joined bytes are a token, */
  const uint32_t *merges;        /*     rank = id; else (left, right, result) by ascending rank */
  int64_t n_ranks;               /* rank files: tokens 0 .. n_ranks - 1 take part in merging */
  int64_t n_added;
  const int64_t *added_offsets;  /* n_added + 1 into added_bytes */
  const uint8_t *added_bytes;
  const uint32_t *added_ids;
  const uint8_t *added_flags;    /* SA_ADDED_* */
} sa_plan;

typedef struct sa_model sa_model;

/* Builds the immutable tables of a tokenizer; copies what it keeps of the plan.
 * NULL on failure, with the reason in error (capacity bytes, NUL-terminated). */
sa_model *sa_model_new(const sa_plan *plan, char *error, int64_t capacity);
void sa_model_free(sa_model *model);

/* 1: a normalizer, a prefix or a stage of the program may make text longer than it was. */
int32_t sa_model_rewrites(const sa_model *model);

/* What is to be known of a model beside its tables, all int64_t. */
typedef struct sa_model_facts {
  int64_t pair_shift;          /* 64 - log2 of the slots of `pairs` */
  int64_t displace_shift;      /* 64 - log2 of the entries of `displace` */
  int64_t n_ranks, n_ids;
  int64_t monotone;            /* no merge makes a pair of lower rank: all of a rank can merge at once */
  int64_t longest;             /* bytes of the longest token */
  int64_t has_ends;            /* the last byte of a piece has a symbol of its own */
  int64_t leaves_out;          /* some bytes have no symbol */
  int64_t whole_piece_first;   /* a piece that is a token is that token, reachable by merges or not */
} sa_model_facts;

/* A table of a model by name (NULL if there is none), where it lies in memory, for upload to a device.
 *   added_offsets int64, added_bytes, added_ids uint32, added_flags, added_blank    as in the plan, normalized; blank:
 *                                                                                  1 = white space alone
 *   added_raw, added_normalized, added_all                                         uint32: those of a SA_PASS_*, in
 *                                                                                  the order of their contents
 *   added_sets                                                                     uint64: superatoms of \s and \w
 *   token_offsets int64, token_bytes, token_ends                                   of every id
 *   whole                                                                          of every id: 1 = a piece with
 *                                                                                  these bytes is this token
 *   byte_ids, byte_ids_end uint32, left_out                                        256 each: the symbol of a byte,
 *                                                                                  of a piece's last one; 1 = none
 *   byte_pair_rank uint32                                                          65,536: at first << 8 | second
 *   pairs uint64, displace uint16                                                  as in kernels/shared/pairs.h;
 *                                                                                  displace: may not be there
 *   result uint32                                                                  rank -> id
 *   length uint16                                                                  of every id, in bytes
 *   facts                                                                          sa_model_facts */
const void *sa_model_table(const sa_model *model, const char *name, int64_t *bytes);

/* Which added tokens are searched for: those matched in the text as it is, those matched in normalized text, or,
 * where these are the same text, the ones first and then the others in what lies between. */
#define SA_PASS_RAW 1
#define SA_PASS_NORMALIZED 2
#define SA_PASS_BOTH 3

/* Added tokens in one text, leftmost-longest, by the rules of `special`. spans: (start, end, index of the
 * added token) triples, capacity in triples. Returns the number found, which may exceed capacity. */
int64_t sa_special_find(const sa_model *model, int32_t pass, int32_t special, const uint8_t *text, int64_t n,
                        int64_t *spans, int64_t capacity);

/* Exact BPE of one piece, no cache. ids: n of them at most. steps (may be NULL): merge steps done.
 * Returns the number of ids, or -1 when out of memory. */
int64_t sa_bpe(const sa_model *model, const uint8_t *piece, int64_t n, uint32_t *ids, int64_t *steps);

/* ---- encoder ---- */

typedef struct sa_encoder sa_encoder;

/* Caches and scratch memory on top of a model, which must outlive it. cache_bytes bounds the pretoken
 * cache of each thread; 0 = none. */
sa_encoder *sa_encoder_new(const sa_model *model, int64_t cache_bytes);
void sa_encoder_free(sa_encoder *encoder);

typedef struct sa_options {
  int32_t special;     /* SA_SPECIAL_* */
  int32_t threads;     /* at least 1 */
  int64_t capacity;    /* ids that fit */
} sa_options;

typedef struct sa_report {
  int64_t rows;        /* null rows included */
  int64_t bytes;
  int64_t tokens;
  int64_t pieces;
  int64_t merge_steps;
  int64_t cache_misses;
  int64_t error_row;   /* SA_ERR_SPECIAL: where, and which added token */
  int64_t error_byte;
  int64_t error_added;
} sa_report;

/* Ids of every row. ids: options->capacity of them, NULL to count only; id_offsets: n_rows + 1,
 * id_offsets[0] = 0. Ids never outnumber the bytes of text, unless the model makes new text (sa_model_rewrites):
 * then SA_ERR_CAPACITY may say that there are report->tokens ids, all of which found no room. hits: n_added counters, incremented for every hit of an added token, matched or
 * (special = plain) passed over as text; NULL: not wanted. The result does not depend on threads, ISA
 * or the cache. */
int32_t sa_encode(sa_encoder *encoder, const sa_rows *rows, const sa_options *options, uint32_t *ids,
                  int64_t *id_offsets, int64_t *hits, sa_report *report);

/* Ids of one text, as sa_encode gives them for one row on one thread. ids: capacity of them, NULL to count only.
 * Returns the number of ids, or minus a status. */
int64_t sa_encode_text(sa_encoder *encoder, const uint8_t *text, int64_t n, int32_t special, uint32_t *ids,
                       int64_t capacity);

/* ---- text that is ready for pretok ---- */

/* New text of rows, for an engine that goes on from there. Zero it or let sa_prepare fill it. */
typedef struct sa_prepared {
  uint8_t *text;         /* n bytes, and 64 zero bytes behind them */
  int64_t n;
  int64_t *row_offsets;  /* n_rows + 1, from 0; null rows have no bytes */
  int64_t n_fixed;       /* added tokens, in order. Each stands as one byte in the text, a segment of its own, */
  int64_t *fixed_at;     /*     here; what lies between is ordinary text */
  uint32_t *fixed_ids;
} sa_prepared;

/* What sa_encode makes of rows before it splits them, for a model with a normalizer or a prefix (sa_model_rewrites):
 * added tokens found, text between them normalized and prefixed. options->special and ->threads count. hits and the
 * error in the report as in sa_encode; report->bytes: of the new text. Release *out unless a status says no. */
int32_t sa_prepare(const sa_model *model, const sa_rows *rows, const sa_options *options, sa_prepared *out,
                   int64_t *hits, sa_report *report);
void sa_prepared_release(sa_prepared *out);

/* ---- stage decode ---- */

/* What an id is. */
#define SA_TOKEN_NONE 0
#define SA_TOKEN_TEXT 1
#define SA_TOKEN_SPECIAL 2

/* The bytes of every id. */
typedef struct sa_tokens {
  int64_t n;
  const int64_t *offsets;  /* n + 1 into bytes */
  const uint8_t *bytes;
  const uint8_t *kinds;    /* SA_TOKEN_* */
} sa_tokens;

/* byte_offsets[i + 1] = bytes of rows 0 .. i of ids, row i being ids[id_offsets[i], id_offsets[i+1]);
 * skip_special leaves out tokens of that kind. Returns -1, or where the first number is that is no id. */
int64_t sa_decode_lengths(const sa_tokens *tokens, const uint32_t *ids, const int64_t *id_offsets, int64_t n_rows,
                          int32_t skip_special, int64_t *byte_offsets);

/* Writes the bytes of n ids, all of them known; they must add up to capacity. */
void sa_decode(const sa_tokens *tokens, const uint32_t *ids, int64_t n, int32_t skip_special, uint8_t *out,
               int64_t capacity);

/* ---- tables ---- */

/* A table by name (NULL if there is none), for upload to a device: the generated arrays of tables/generated, and
 *   sa_superatom_four, sa_script_four        uint16_t[5 * 4096]: the leaf of code point >> 6, up to 13FFFF. The code
 *                                            point is what the bytes say: overlong forms are there too
 *   sa_superatom_leaves, sa_script_leaves    uint8_t[][64]: the tags of 64 code points
 *   sa_failed_tags                           uint8_t[2]: the tag of a failed lead, by SA_ALPHABET_*
 *   sa_scheme_bits                           uint8_t[schemes][32]: the class bits of a superatom (class_bits.h)
 *   sa_scheme_ascii_bits                     uint8_t[schemes][128]: the same of an ASCII byte
 * A byte below 80 has its tag in sa_*_ascii, another one outside characters in sa_*_byte. */
const void *sa_table(const char *name, int64_t *bytes);

#ifdef __cplusplus
}
#endif
#endif
