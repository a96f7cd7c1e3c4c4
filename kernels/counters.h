/* What kernels count and tell each other, one u64 each, all zero before a batch. Python reads the enum here. */
#ifndef SAPHIRA_COUNTERS_H
#define SAPHIRA_COUNTERS_H

enum {
  SA_COUNTER_FIXED,          /* fixed pieces in the list */
  SA_COUNTER_SPECIAL_ROWS,   /* rows that hold the content of an added token */
  SA_COUNTER_SPECIAL_TICKET, /* rows of those handed out */
  SA_COUNTER_SPECIAL_ERROR,  /* special = error: ~(position << 32 | not its row's end << 31 | added token) of the
                                first one in the text; 0: none */
  SA_COUNTERS
};

/* Id of a fixed piece that has none. */
#define SA_NO_ID 0xFFFFFFFFu

#endif
