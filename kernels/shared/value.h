/* The value of a piece: its ids in a word, or where they are.
 *
 *   bits 0..59   three ids of 20 bits             count 1..3
 *   bits 60..61  count
 *   or, count 0: bits 0..31 where the ids are in the spill list, bits 32..59 how many
 *   bit 62       of a piece that has no ids, SA_NOTHING: a value is never 0
 */
#ifndef SAPHIRA_SHARED_VALUE_H
#define SAPHIRA_SHARED_VALUE_H

#include "types.h"

#define SA_NOTHING ((u64)1 << 62)
#define SA_VALUE_IDS 3 /* more ids than these are spilled */

SA_HD u64 sa_value_of(u32 first, u32 second, u32 third, u64 n) { /* 1 <= n <= 3; ids that are not there: 0 */
  return first | (u64)second << 20 | (u64)third << 40 | n << 60;
}

SA_HD u64 sa_value_spilled(u64 at, u64 n) { return n << 32 | at; }

/* 1..3; 0: spilled, or no ids. */
SA_HD u32 sa_value_count(u64 value) { return (u32)(value >> 60) & 3; }

/* How many ids the value stands for. */
SA_HD u64 sa_value_ids(u64 value) {
  u64 few = value >> 60 & 3;
  return few ? few : value >> 32 & 0xFFFFFFF;
}

/* Id i < sa_value_count(value). */
SA_HD u32 sa_value_id(u64 value, u32 i) { return (u32)(value >> (20 * i)) & 0xFFFFF; }

#endif
