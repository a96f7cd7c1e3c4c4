/* What kernels count and tell each other, one u64 each, all zero before a batch. Python reads the enum here. */
#ifndef SAPHIRA_COUNTERS_H
#define SAPHIRA_COUNTERS_H

enum {
  SA_COUNTER_FIXED,          /* fixed pieces in the list */
  SA_COUNTER_SPECIAL_ROWS,   /* rows that hold the content of an added token */
  SA_COUNTER_SPECIAL_TICKET, /* rows of those handed out */
  SA_COUNTER_SPECIAL_ERROR,  /* special = error: ~(position << 32 | not its row's end << 31 | added token) of the
                                first one in the text; 0: none */
  SA_COUNTER_TILES_AGAIN,    /* stage boundaries: tiles done again in pass 1 */
  SA_COUNTER_TILES_SERIAL,   /* and in pass 2 */
  SA_COUNTER_OPEN,           /* runs that led out of a tile, as often as it was done */
  SA_COUNTER_TICKET_PIECES,  /* tiles of stage pieces handed out */
  SA_COUNTER_PIECES,         /* pieces of the batch */
  SA_COUNTER_MISSES,         /* pieces that the table does not have */
  SA_COUNTER_WORK_SHORT,     /* different ones among them, by length class */
  SA_COUNTER_WORK_MIDDLE,
  SA_COUNTER_WORK_LONG,
  SA_COUNTER_WORK_WHOLE,     /* those of WORK_LONG that no windows did for */
  SA_COUNTER_TICKET_MIDDLE,  /* of those, handed out */
  SA_COUNTER_TICKET_LONG,
  SA_COUNTER_MERGE_STEPS,
  SA_COUNTER_TICKET_EMIT,    /* tiles handed out */
  SA_COUNTER_IDS,            /* ids of the batch */
  SA_COUNTERS
};

/* What a table of pieces counts over the batches, one u64 each. */
enum {
  SA_TABLE_USED,  /* slots */
  SA_TABLE_SPILL, /* ids asked for of the spill list's lasting part */
  SA_TABLE_BYTES, /* bytes asked for of the keys' arena */
  SA_TABLE_LOST,  /* tokens that found no slot when the table was made */
  SA_TABLE_COUNTERS
};

/* Id of a fixed piece that has none. */
#define SA_NO_ID 0xFFFFFFFFu

#endif
