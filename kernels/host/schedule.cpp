/* The order in which blocks, warps and lanes run.
 *
 * A round visits every warp of the resident blocks once, and runs its ready lanes until none is left. A lane
 * that waits for others (a spinning load, __nanosleep, a failed compare-and-swap) yields until the next round,
 * so whatever it waits for gets its turn: the forward progress that a GPU promises to resident blocks, and no
 * more. Blocks that aren't resident start only as others finish.
 */
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <memory>

#include <sys/mman.h>

#include "fiber.h"
#include "signals.h"
#include "state.h"

Launch *g;

namespace {

/* Stacks outlive a launch: their pages cost more than everything else about a fiber. */
struct Stacks {
  uint8_t *memory = nullptr;
  uint64_t bytes = 0;
} stacks;

/* Tops of stacks that are a power of two apart would share a few cache sets. */
constexpr uint32_t kStagger = 832;
constexpr uint64_t kCanary = 0x5AFE57AC5AFE57ACull;

std::vector<uint8_t *> arenas; /* arena, then its init bytes, per resident block; kept like the stacks */
std::vector<Cell *> arena_cells;
std::vector<uint32_t> arena_used; /* the most that a block has used of it */

int highest(uint32_t x) { return 31 - __builtin_clz(x); }

int pick(uint32_t ready) {
  switch (g->options->order) {
    case 0: return lowest(ready);
    case 1: return highest(ready);
  }
  for (uint32_t skip = random_next() % static_cast<uint32_t>(__builtin_popcount(ready)); skip; skip--)
    ready &= ready - 1;
  return lowest(ready);
}

void thread_main() {
  g->kernel->call(g->args);
  Thread *me = g->self;
  me->wait = Wait::done;
  thread_exits(me);
  leave();
  __builtin_unreachable();
}

void begin_thread(Block *block, uint32_t i) {
  const hx_u32 *size = g->options->block;
  Thread &t = block->threads[i];
  t.sp = fiber_make(t.stack, t.stack_top, thread_main);
  t.block = block;
  t.warp = &block->warps[i / 32];
  t.lane = i % 32;
  t.number = block->number << 10 | i;
  t.index = {i % size[0], i / size[0] % size[1], i / (size[0] * size[1])};
  t.wait = Wait::none;
  t.where = {nullptr, 0, 0};
  t.polling = false;
  if (g->check) {
    t.clock = 1;
    t.known = t.pending = KnownRef();
    t.fence.taken = t.fence_block.taken = false;
  }
  memcpy(t.stack, &kCanary, sizeof kCanary);
}

void begin_block(Block *block, uint32_t number) {
  const hx_u32 *grid = g->options->grid;
  block->number = number;
  block->index = {number % grid[0], number / grid[0] % grid[1], number / (grid[0] * grid[1])};
  block->running = true;
  block->live = g->n_threads;
  block->arrived = 0;
  block->predicate_count = 0;
  block->unpolled = kSpinBarriers;
  block->base = 1;
  for (uint32_t w = 0; w < block->warps.size(); w++) {
    Warp &warp = block->warps[w];
    uint32_t n = std::min(32u, g->n_threads - 32 * w);
    warp.block = block;
    warp.lanes = block->threads + 32 * w;
    warp.all = warp.live = warp.ready = n == 32 ? ~0u : (1u << n) - 1;
    warp.yielded = warp.arrived = warp.active = 0;
    warp.base = 1;
    warp.partial = false;
  }
  for (uint32_t i = 0; i < g->n_threads; i++) begin_thread(block, i);
  shared_begin(block);
  g->events++;
}

/* Checks what running code can't: that no stack ran into the one below it. */
bool block_intact(Block *block) {
  for (uint32_t i = 0; i < g->n_threads; i++)
    if (memcmp(block->threads[i].stack, &kCanary, sizeof kCanary) != 0) {
      note_fault("stack-overflow", &block->threads[i], block->threads[i].where, 0,
                 "the thread needs more than %u bytes of stack", g->options->stack_bytes);
      return false;
    }
  return true;
}

void run_warp(Warp *warp) {
  int lane = pick(warp->ready);
  warp->ready &= ~(1u << lane);
  g->self = &warp->lanes[lane];
  g->counters->switches++;
  hx_switch(&g->scheduler, g->self->sp);
  g->self = nullptr;
}

template <class T> void shuffle(std::vector<T> &order) {
  for (size_t i = order.size(); i > 1; i--) std::swap(order[i - 1], order[random_next() % i]);
}

void report_hang(const std::vector<Warp *> &warps) {
  const Thread *found = nullptr; /* one that spins, rather than one that was only preempted */
  for (Warp *warp : warps)
    for (uint32_t rest = warp->yielded; rest; rest &= rest - 1) {
      const Thread *t = &warp->lanes[lowest(rest)];
      if (!found || (t->polling && !found->polling)) found = t;
    }
  note_fault("hang", found, found->where, 0, "spins on a value that nobody writes any more (%u rounds; %u blocks resident)",
             g->options->stall_cycles, g->options->resident);
}

/* All blocks to their end, or to the first fault. */
void run() {
  bool random = g->options->order == 2, reverse = g->options->order == 1;
  std::vector<uint32_t> starts(g->n_blocks);
  for (uint32_t i = 0; i < g->n_blocks; i++) starts[i] = reverse ? g->n_blocks - 1 - i : i;
  if (random) shuffle(starts);
  uint32_t started = 0, stalled = 0;
  std::vector<Block *> resident;
  std::vector<Warp *> order;
  bool changed = true;
  for (;;) {
    for (Block &block : g->blocks)
      if (!block.running && started < g->n_blocks) {
        begin_block(&block, starts[started++]);
        changed = true;
      }
    if (changed) {
      resident.clear();
      for (Block &block : g->blocks)
        if (block.running) resident.push_back(&block);
      if (resident.empty()) return;
      std::sort(resident.begin(), resident.end(), [reverse](const Block *a, const Block *b) {
        return reverse ? a->number > b->number : a->number < b->number;
      });
      order.clear();
      for (Block *block : resident) {
        for (Warp &warp : block->warps) order.push_back(&warp);
        if (reverse) std::reverse(order.end() - static_cast<long>(block->warps.size()), order.end());
      }
      changed = false;
    }
    if (random) shuffle(order);
    uint64_t events = g->events;
    bool ran = false, polled = false;
    for (Warp *warp : order) {
      if (warp->active && !warp->ready) resolve_active(warp);
      if (!warp->ready) continue;
      ran = true;
      run_warp(warp);
      if (g->aborted) return;
      if (warp->block->live == 0 && warp->block->running) {
        warp->block->running = false;
        changed = true;
        if (!block_intact(warp->block)) return;
      }
    }
    for (const Warp *warp : order) {
      polled |= warp->yielded != 0;
      ran |= warp->active != 0;
    }
    if (g->events != events) stalled = 0;
    else if (polled && stalled++ >= g->options->stall_cycles) return report_hang(order);
    for (Warp *warp : order) {
      warp->ready |= warp->yielded;
      warp->yielded = 0;
    }
    if (!ran && !changed) return report_deadlock();
    if (g->expired) {
      const Thread *t = &g->threads[0];
      for (const Warp *warp : order)
        for (uint32_t rest = warp->live; rest; rest &= rest - 1) {
          const Thread *other = &warp->lanes[lowest(rest)];
          if (!t->where.line || (warp->ready && other->where.line)) t = other;
        }
      note_fault("time-limit", t, t->where, 0, "the launch took more than %g s of processor time", g->options->seconds);
      return;
    }
  }
}

bool reserve(uint32_t resident) {
  const hx_options *o = g->options;
  uint64_t stride = o->stack_bytes + kStagger, need = stride * resident * g->n_threads;
  if (stacks.bytes < need) {
    if (stacks.memory) unmap_pages(stacks.memory, stacks.bytes);
    stacks.memory = static_cast<uint8_t *>(map_pages(need));
    stacks.bytes = stacks.memory ? need : 0;
    if (!stacks.memory) return false;
  }
  while (arenas.size() < resident) {
    auto *arena = static_cast<uint8_t *>(map_pages(2 * uint64_t{kArena}));
    auto *cells = static_cast<Cell *>(map_pages(uint64_t{kArena} * sizeof(Cell)));
    if (!arena || !cells) return false;
    arenas.push_back(arena);
    arena_cells.push_back(cells);
    arena_used.push_back(0);
  }
  g->blocks.resize(resident);
  g->threads.resize(uint64_t{resident} * g->n_threads);
  for (uint32_t i = 0; i < g->threads.size(); i++) {
    g->threads[i].stack = stacks.memory + stride * i;
    g->threads[i].stack_top = g->threads[i].stack + stride;
  }
  for (uint32_t i = 0; i < resident; i++) {
    Block &block = g->blocks[i];
    block.running = false;
    block.threads = &g->threads[uint64_t{i} * g->n_threads];
    block.warps.resize((g->n_threads + 31) / 32);
    block.arena = arenas[i];
    block.init = arenas[i] + kArena;
    block.cells = arena_cells[i];
    block.used = arena_used[i]; /* what an earlier launch left there */
  }
  return true;
}

}  // namespace

void *map_pages(uint64_t bytes) {
  void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

void unmap_pages(void *p, uint64_t bytes) { munmap(p, bytes); }

uint64_t random_next() { /* splitmix64 */
  uint64_t x = g->random += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

void make_ready(Warp *warp, uint32_t lanes) {
  warp->ready |= lanes;
  for (uint32_t rest = lanes; rest; rest &= rest - 1) warp->lanes[lowest(rest)].wait = Wait::none;
}

void leave() {
  Thread *me = g->self;
  Warp *warp = me->warp;
  if (!warp->ready) return hx_switch(&me->sp, g->scheduler);
  int lane = pick(warp->ready);
  warp->ready &= ~(1u << lane);
  Thread *next = &warp->lanes[lane];
  if (next == me) return;
  g->self = next;
  g->counters->switches++;
  hx_switch(&me->sp, next->sp);
}

void yield() {
  g->self->block->unpolled = 0;
  g->self->warp->yielded |= 1u << g->self->lane;
  leave();
}

void preempt() {
  Thread *me = g->self;
  me->warp->yielded |= 1u << me->lane;
  if (!me->polling && me->block->unpolled >= kSpinBarriers) g->events++; /* it is at work, not waiting */
  hx_switch(&me->sp, g->scheduler);
}

hx_xyz hx_thread_index() { return g->self->index; }
hx_xyz hx_block_index() { return g->self->block->index; }
hx_xyz hx_block_size() { return {g->options->block[0], g->options->block[1], g->options->block[2]}; }
hx_xyz hx_grid_size() { return {g->options->grid[0], g->options->grid[1], g->options->grid[2]}; }

const int hx_struct_sizes[6] = {sizeof(hx_param),   sizeof(hx_kernel),   sizeof(hx_region),
                                sizeof(hx_options), sizeof(hx_counters), sizeof(hx_fault)};

int hx_launch(const hx_kernel *kernel, const hx_options *options, void *const *args, hx_region *regions,
              int n_regions, hx_counters *counters, hx_fault *fault) {
  auto launch = std::make_unique<Launch>();
  g = launch.get();
  g->kernel = kernel;
  g->options = options;
  g->args = args;
  g->counters = counters;
  g->fault = fault;
  g->check = options->check;
  g->count = options->count;
  g->random = options->seed;
  g->countdown = options->preempt;
  g->n_threads = options->block[0] * options->block[1] * options->block[2];
  g->n_blocks = options->grid[0] * options->grid[1] * options->grid[2];
  uint32_t resident = std::min(options->resident, g->n_blocks);
  if (!reserve(resident) || !memory_begin(regions, n_regions)) {
    note_fault("out-of-memory", nullptr, {nullptr, 0, 0}, 0, "no room for %u resident blocks of %u threads", resident,
               g->n_threads);
  } else {
    Signals signals(options->seconds);
    if (sigsetjmp(signals.jump, 1) == 0) run();
  }
  for (size_t i = 0; i < g->blocks.size(); i++) arena_used[i] = std::max(arena_used[i], g->blocks[i].used);
  memory_end();
  g = nullptr;
  return fault->name[0] ? 1 : 0;
}
