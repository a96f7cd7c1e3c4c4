/* The state of one launch. One operating-system thread runs it all; Python holds a lock around it. */
#ifndef SAPHIRA_HOST_STATE_H
#define SAPHIRA_HOST_STATE_H

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "abi.h"
#include "clocks.h"

struct Where {
  const char *file; /* null: known by pc alone */
  int line;
  uint64_t pc; /* address, not yet an offset */
};

enum class Wait : uint8_t { none, warp, active, block, done };

/* Race state of one element. A thread is its number plus one, the top bit says that the access was atomic;
 * 0: nobody. Two readers are kept: enough to find one that a writer doesn't know of (see note_read). */
struct Cell {
  uint32_t writer, writer_clock, writer_pc;
  uint32_t reader[2], reader_clock[2];
  uint32_t reader_pc;
};
constexpr uint32_t kAtomicBit = 0x80000000u;

/* What was last published at an address by a release: to everyone, and to one block alone. */
struct Published {
  KnownRef everyone, block_only;
  uint32_t block = 0;
};
using Publications = std::unordered_map<uint64_t, Published>;

/* A block that spins as a whole has a few barriers in the loop; one with more since its last poll is at work. */
constexpr uint32_t kSpinBarriers = 16;

struct Block;
struct Warp;

struct Thread {
  void *sp;
  uint8_t *stack, *stack_top;
  Block *block;
  Warp *warp;
  uint32_t lane, number; /* number: block << 10 | index */
  hx_xyz index;
  /* the collective it waits at */
  Wait wait;
  uint8_t op;
  uint32_t mask;
  int arg, width;
  uint64_t value, result;
  Where where;
  bool polling; /* its last access was one that a loop may spin on */
  /* check build */
  uint32_t clock;
  KnownRef known, pending; /* pending: read by relaxed loads, known after the next fence */
  Moment fence, fence_block;
};

struct Warp {
  Block *block;
  Thread *lanes;
  uint32_t all;                     /* lanes there are */
  uint32_t live, ready, yielded;    /* ready: can run; yielded: can run in the next round */
  uint32_t arrived, active;         /* at a collective; at __activemask */
  bool mixed;                       /* those that arrived don't all wait at the same one */
  uint32_t base;
  bool partial;                     /* seen is in use */
  uint32_t seen[32][32];            /* [i][k]: accesses of lane k below this clock are known to lane i */
};

struct Variable { /* in shared memory */
  int id; /* -1: the dynamic part */
  const char *name;
  uint32_t offset, size, granule;
};

struct Block {
  uint32_t number;
  hx_xyz index;
  bool running;
  Thread *threads;
  std::vector<Warp> warps;
  uint32_t live, arrived;
  uint32_t unpolled; /* barriers since some thread read what a loop may spin on */
  int barrier_op, predicate_count;
  Where barrier_where;
  uint32_t base;
  uint8_t *arena, *init;
  Cell *cells;
  uint32_t used, static_bytes;
  std::vector<Variable> variables;
  Publications published;
};

struct Region {
  hx_region &is;
  uint32_t granule;
  Cell *cells;
  std::vector<bool> met; /* its sectors of 32 bytes, where they are counted */
};

/* Shared memory of a block: the 227 KB that a thread block can have, and red zones. */
constexpr uint32_t kSharedLimit = 227 * 1024, kStaticLimit = 48 * 1024, kRedZone = 64;
constexpr uint32_t kArena = 512 * 1024;

struct Launch {
  const hx_kernel *kernel;
  const hx_options *options;
  void *const *args;
  hx_counters *counters;
  hx_fault *fault;
  Thread *self; /* running; null: the scheduler */
  void *scheduler;
  bool aborted, check, count;
  volatile int expired; /* the time limit has passed */
  uint32_t n_threads, n_blocks;
  std::vector<Block> blocks;     /* resident */
  std::vector<Thread> threads;
  std::vector<Region> regions;
  Region *last;
  Publications published;
  uint64_t events; /* grows whenever something happens that a spinning thread may wait for */
  uint32_t countdown;
  uint64_t random;
};

extern Launch *g;

inline int lowest(uint32_t x) { return __builtin_ctz(x); }

/* schedule.cpp */
uint64_t random_next();
void leave();   /* the running thread can't go on: on to another */
void yield();   /* it could, but lets all others go first */
void preempt(); /* the same, and its whole warp waits */
void make_ready(Warp *warp, uint32_t lanes);

/* collectives.cpp */
void thread_exits(Thread *thread);
void resolve_active(Warp *warp);
void report_deadlock();

/* memory.cpp */
bool memory_begin(hx_region *regions, int n);
void memory_end();
void shared_begin(Block *block);
std::string describe(uint64_t address); /* for messages */
/* An access by the running thread: is it in bounds, aligned, initialised, and in no race? */
enum : unsigned { kRead = 1, kWrite = 2, kStrong = 4, kUnaligned = 8 };
void check_access(uint64_t address, uint32_t size, unsigned kind, const Where &where);

/* order.cpp: what orders accesses (check build) */
bool known_to(const Thread *me, uint32_t number, uint32_t clock);
void ordered_by_barrier(Block *block);
void ordered_by_warp(Warp *warp, uint32_t lanes);
void learn(uint64_t address, bool acquire);
void publish(uint64_t address, bool release, bool modify);

/* count.cpp */
void count_access(Region *region, uint64_t address, uint32_t size, bool write, uint64_t pc);
void count_flush(Warp *warp);
void count_clear();

/* fault.cpp: both end the launch; fault() from a thread never returns, note_fault() only records. */
void note_fault(const char *name, const Thread *thread, const Where &where, uint64_t other_pc, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
[[noreturn]] void abort_thread();
#define FAULT(name, where, ...) (note_fault(name, g->self, where, 0, __VA_ARGS__), abort_thread())

void *map_pages(uint64_t bytes); /* zeroed, without a claim on memory until touched */
void unmap_pages(void *p, uint64_t bytes);

#endif
