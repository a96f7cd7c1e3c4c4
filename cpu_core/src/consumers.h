/* Consumers: pretokenizer programs. A piece set is two bitmaps over the text, so a stage is a pass of mask
 * algebra over words of 64 bytes, and only the last step makes positions.
 */
#ifndef SAPHIRA_CONSUMERS_H
#define SAPHIRA_CONSUMERS_H

#include "backend.h"

#define SA_CLASS_PLANES 4

/* What exists once per instruction set; see generic/consumers.inl. */
struct sa_consumer_ops {
  void (*classes)(const sa_alphabet *a, const sa_scheme *classes, uint32_t wanted, sa_stream *s,
                  uint64_t *starts, uint64_t *const *planes);
  void (*scripts)(const sa_alphabet *a, sa_stream *s, uint64_t *cuts, uint64_t *none);
  void (*bytes)(const sa_stream *s, uint8_t byte, uint64_t *plane);
};

/* A stage as given, with what is worked out once. */
typedef struct sa_step {
  sa_stage stage;           /* bytes are the program's own */
  sa_scheme classes;        /* CLASSES: planes by tag */
  uint32_t wanted;          /* CLASSES: planes that some tag has */
  int overlaps;             /* LITERAL: a match can start inside another */
} sa_step;

struct sa_program {
  int64_t n_steps;
  int rewrites;             /* some stage makes new text */
  sa_step *steps;
};

/* What memory is for. Of the new text and its sources there are two: one is read, one is written. */
enum {
  SA_ROOM_CUTS, SA_ROOM_DROP, SA_ROOM_STARTS, SA_ROOM_PLANES,
  SA_ROOM_GIVEN = SA_ROOM_PLANES + SA_CLASS_PLANES,
  SA_ROOM_ROWS, SA_ROOM_PIECES, SA_ROOM_POSITIONS, SA_ROOM_TEXT,
  SA_ROOM_FROM = SA_ROOM_TEXT + 2,
  SA_ROOM_TO = SA_ROOM_FROM + 2,
  SA_ROOMS = SA_ROOM_TO + 2
};

/* Memory of one kind, grown as needed. */
typedef struct sa_memory {
  void *at;
  size_t size;
} sa_memory;

/* Piece starts and ends of chunk after chunk: 1 and two bitmaps of n / 64 + 1 words; or 0 and the positions,
 * where pieces of new text come from the same place. */
struct sa_marks {
  uint64_t *words;
  int64_t n, capacity;
};

/* Rows under way, and what the stages so far made of them.
 *
 *   cuts     a piece or a stretch between pieces starts here; bit n is set
 *   drop     in no piece; bit n and those behind it are set
 *   from, to the bytes of the given text that the character at this byte comes from, counted from the first
 *            row's start; NULL while the text is the given one
 */
typedef struct sa_draft {
  const uint8_t *text;
  int64_t n, n_words;       /* bytes; n / 64 + 1 */
  int64_t n_rows;
  int64_t *given;           /* n_rows + 1: where rows start in the given text, from 0 */
  int64_t *rows;            /* n_rows + 1: where they start in `text` */
  uint64_t *cuts, *drop;
  uint64_t *starts, *planes[SA_CLASS_PLANES];  /* for the stages' use */
  uint32_t *from, *to;
  int which;                /* of the two new texts, the one to write next */
  int mapped;               /* the text is of byte-alphabet symbols */
  sa_memory memory[SA_ROOMS];
} sa_draft;

const struct sa_consumer_ops *sa_consumer_ops_active(void);

/* n bytes of memory number i (SA_ROOM_*); NULL when out of memory. What was there is lost if it grows. */
void *sa_draft_room(sa_draft *w, int i, int64_t n);

/* The end of the rows that make a chunk together, about as much text as stays in the near caches; at least one
 * row. Runs a program over rows [row, row_end). sa_draft_unmap undoes the byte alphabet (bytemap.c), after which
 * `from` and `to` are not good any more. Statuses. */
int64_t sa_draft_rows(const sa_rows *rows, int64_t row);
int32_t sa_draft_run(sa_draft *w, const sa_program *program, const sa_rows *rows, int64_t row, int64_t row_end);
int32_t sa_draft_unmap(sa_draft *w);
void sa_draft_release(sa_draft *w);

/* Sizes the bitmaps for w->n bytes; a status. */
int32_t sa_draft_words(sa_draft *w);

/* One stage that cuts, and one that makes new text; a status. */
int32_t sa_step_cut(sa_draft *w, const sa_step *step);
int32_t sa_step_rewrite(sa_draft *w, const sa_step *step);

/* Bits of word k where pieces start, and where they end. */
static inline u64 sa_piece_starts(const sa_draft *w, int64_t k) { return w->cuts[k] & ~w->drop[k]; }
static inline u64 sa_piece_ends(const sa_draft *w, int64_t k) {
  u64 dropped = (w->drop[k] << 1) | (k ? w->drop[k - 1] >> 63 : 1);
  return w->cuts[k] & ~dropped;
}

#endif
