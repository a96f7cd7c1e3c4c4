/* Warp collectives and block barriers.
 *
 * A warp collective completes when every live lane of its mask has arrived; the last one computes everybody's
 * result. A barrier completes when all live threads of the block have arrived. What can't complete any more is
 * a fault: at once where lanes contradict each other, else when nothing is left to run.
 */
#include <algorithm>
#include <cstring>

#include "state.h"

static const char *const kNames[] = {
    "__syncwarp",        "__shfl_sync",       "__shfl_up_sync",    "__shfl_down_sync",  "__shfl_xor_sync",
    "__ballot_sync",     "__any_sync",        "__all_sync",        "__match_any_sync",  "__match_all_sync",
    "__reduce_add_sync", "__reduce_min_sync", "__reduce_max_sync", "__reduce_min_sync", "__reduce_max_sync",
    "__reduce_and_sync", "__reduce_or_sync",  "__reduce_xor_sync"};

/* ---- results ---- */

/* The lane that `t` reads from, or its own where that would leave its segment. */
static int source_lane(const Thread *t) {
  int lane = static_cast<int>(t->lane), segment = lane & ~(t->width - 1), last = segment + t->width - 1;
  int source = lane;
  switch (t->op) {
    case HX_SHFL: return segment + (t->arg & (t->width - 1));
    case HX_SHFL_UP: source = lane - t->arg; return source < segment ? lane : source;
    case HX_SHFL_DOWN: source = lane + t->arg; return source > last ? lane : source;
    default: source = lane ^ t->arg; return source > last ? lane : source;
  }
}

static uint64_t shuffled(const Warp *warp, uint32_t lanes, Thread *t) {
  if (t->width < 1 || t->width > 32 || (t->width & (t->width - 1))) {
    note_fault("shuffle", t, t->where, 0, "%s with a width of %d, no power of two up to 32", kNames[t->op], t->width);
    abort_thread();
  }
  int source = source_lane(t);
  if (source < 0 || source > 31 || !(lanes >> source & 1)) {
    bool dead = source >= 0 && source < 32 && (t->mask >> source & 1);
    note_fault(dead ? "dead-lane" : "outside-mask", t, t->where, 0, "%s reads from lane %d, which %s", kNames[t->op],
               source, dead ? "has ended" : "is not in the mask");
    abort_thread();
  }
  return warp->lanes[source].value;
}

static uint64_t reduced(const Warp *warp, uint32_t lanes, int op) {
  auto x = static_cast<uint32_t>(warp->lanes[lowest(lanes)].value);
  for (lanes &= lanes - 1; lanes; lanes &= lanes - 1) {
    auto y = static_cast<uint32_t>(warp->lanes[lowest(lanes)].value);
    auto sx = static_cast<int32_t>(x), sy = static_cast<int32_t>(y);
    switch (op) {
      case HX_REDUCE_ADD: x += y; break;
      case HX_REDUCE_MIN: x = std::min(x, y); break;
      case HX_REDUCE_MAX: x = std::max(x, y); break;
      case HX_REDUCE_MIN_SIGNED: x = static_cast<uint32_t>(std::min(sx, sy)); break;
      case HX_REDUCE_MAX_SIGNED: x = static_cast<uint32_t>(std::max(sx, sy)); break;
      case HX_REDUCE_AND: x &= y; break;
      case HX_REDUCE_OR: x |= y; break;
      case HX_REDUCE_XOR: x ^= y; break;
    }
  }
  return x;
}

/* Lanes whose value equals that of lane i. */
static uint32_t same_value(const Warp *warp, uint32_t lanes, int i) {
  uint32_t result = 0;
  for (uint32_t rest = lanes; rest; rest &= rest - 1)
    if (warp->lanes[lowest(rest)].value == warp->lanes[i].value) result |= rest & (0 - rest);
  return result;
}

static void complete(Warp *warp, uint32_t lanes) {
  Thread *all = warp->lanes;
  int op = all[lowest(lanes)].op;
  uint32_t votes = 0;
  if (op == HX_BALLOT || op == HX_ANY || op == HX_ALL)
    for (uint32_t rest = lanes; rest; rest &= rest - 1) votes |= all[lowest(rest)].value ? rest & (0 - rest) : 0;
  uint64_t common = op == HX_BALLOT   ? votes
                    : op == HX_ANY    ? votes != 0
                    : op == HX_ALL    ? votes == lanes
                    : op == HX_MATCH_ALL ? (same_value(warp, lanes, lowest(lanes)) == lanes ? lanes : 0)
                    : op >= HX_REDUCE_ADD ? reduced(warp, lanes, op)
                                          : 0;
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    Thread *t = &all[lowest(rest)];
    if (op >= HX_SHFL && op <= HX_SHFL_XOR) t->result = shuffled(warp, lanes, t);
    else if (op == HX_MATCH_ANY) t->result = same_value(warp, lanes, lowest(rest));
    else t->result = common;
  }
  g->counters->collectives++;
  if (g->check && op == HX_SYNCWARP) ordered_by_warp(warp, lanes);
  if (g->count) count_flush(warp);
  warp->arrived &= ~lanes;
  if (!warp->arrived) warp->mixed = false;
  make_ready(warp, lanes);
}

/* ---- arrivals ---- */

/* Completes the collective that lane i waits at, if everybody is there. */
static void try_complete(Warp *warp, int i) {
  uint32_t mask = warp->lanes[i].mask, need = mask & warp->live;
  if (need & ~warp->arrived) return;
  if (warp->mixed)
    for (uint32_t rest = need; rest; rest &= rest - 1)
      if (warp->lanes[lowest(rest)].mask != mask) return;
  complete(warp, need);
}

/* Two lanes that wait for each other at different collectives never get on. Votes and shuffles are told apart
 * by their line too: lanes that meet from different places would mix up values. */
static void contradicts(const Thread *me, const Thread *other) {
  bool lines = me->op != HX_SYNCWARP && (me->where.line != other->where.line ||
                                        strcmp(me->where.file, other->where.file) != 0);
  if (me->mask != other->mask)
    FAULT("mask-mismatch", me->where, "%s with mask %08x, but lane %u is at %s (line %d) with mask %08x", kNames[me->op],
          me->mask, other->lane, kNames[other->op], other->where.line, other->mask);
  if (me->op != other->op || lines)
    FAULT("divergent-collective", me->where, "%s, but lane %u is at %s (line %d)", kNames[me->op], other->lane,
          kNames[other->op], other->where.line);
}

static void compare_with_waiting(const Thread *me) {
  Warp *warp = me->warp;
  bool differs = false;
  for (uint32_t rest = warp->arrived; rest; rest &= rest - 1) {
    const Thread *other = &warp->lanes[lowest(rest)];
    if (other->mask == me->mask && other->op == me->op && other->where.line == me->where.line) continue;
    if ((me->mask >> other->lane & 1) && (other->mask >> me->lane & 1)) contradicts(me, other);
    differs = true;
  }
  warp->mixed |= differs;
}

hx_u64 hx_warp(int op, hx_u32 mask, hx_u64 value, int arg, int width, const char *file, int line) {
  Thread *me = g->self;
  Warp *warp = me->warp;
  me->where = {file, line, 0};
  if (!(mask >> me->lane & 1))
    FAULT("mask-without-caller", me->where, "lane %u calls %s with mask %08x", me->lane, kNames[op], mask);
  me->op = static_cast<uint8_t>(op);
  me->mask = mask;
  me->value = value;
  me->arg = arg;
  me->width = width;
  me->wait = Wait::warp;
  if (warp->arrived) {
    const Thread *first = &warp->lanes[lowest(warp->arrived)];
    if (warp->mixed || first->mask != mask || first->op != op || first->where.line != line) compare_with_waiting(me);
  }
  warp->arrived |= 1u << me->lane;
  try_complete(warp, static_cast<int>(me->lane));
  leave();
  return me->result;
}

hx_u32 hx_active(const char *file, int line) {
  Thread *me = g->self;
  me->where = {file, line, 0};
  me->wait = Wait::active;
  me->warp->active |= 1u << me->lane;
  leave();
  return static_cast<hx_u32>(me->result);
}

/* Lanes that came to the same __activemask by the time nothing else in their warp could run are together, as
 * after convergence; CUDA promises less, so the random order splits them at will. */
void resolve_active(Warp *warp) {
  uint32_t lanes = warp->active;
  warp->active = 0;
  make_ready(warp, lanes);
  auto split = g->options->order == 2 ? static_cast<uint32_t>(random_next() | random_next()) : ~0u;
  while (lanes) {
    const Thread *first = &warp->lanes[lowest(lanes)];
    uint32_t group = 0;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
      const Thread *t = &warp->lanes[lowest(rest)];
      if (t->where.line == first->where.line && (split >> t->lane & 1) == (split >> first->lane & 1))
        group |= rest & (0 - rest);
    }
    for (uint32_t rest = group; rest; rest &= rest - 1) warp->lanes[lowest(rest)].result = group;
    lanes &= ~group;
  }
}

static void complete_barrier(Block *block) {
  int count = block->predicate_count, arrived = static_cast<int>(block->arrived);
  int result = block->barrier_op == HX_BARRIER_AND ? count == arrived
               : block->barrier_op == HX_BARRIER_OR ? count > 0
                                                    : count;
  block->arrived = 0;
  block->predicate_count = 0;
  if (block->unpolled++ >= kSpinBarriers) g->events++; /* else the whole block may be spinning together */
  g->counters->barriers++;
  if (g->check) ordered_by_barrier(block);
  for (Warp &warp : block->warps) {
    for (uint32_t rest = warp.live; rest; rest &= rest - 1)
      warp.lanes[lowest(rest)].result = static_cast<uint64_t>(result);
    if (g->count) count_flush(&warp);
    make_ready(&warp, warp.live);
  }
}

int hx_barrier(int op, int predicate, const char *file, int line) {
  Thread *me = g->self;
  Block *block = me->block;
  me->where = {file, line, 0};
  if (block->arrived == 0) {
    block->barrier_op = op;
    block->barrier_where = me->where;
  } else if (block->barrier_op != op || block->barrier_where.line != line ||
             strcmp(block->barrier_where.file, file) != 0) {
    FAULT("divergent-barrier", me->where, "other threads of the block wait at the barrier in line %d",
          block->barrier_where.line);
  }
  me->wait = Wait::block;
  block->arrived++;
  block->predicate_count += predicate != 0;
  if (block->arrived == block->live) complete_barrier(block);
  leave();
  return static_cast<int>(me->result);
}

void thread_exits(Thread *thread) {
  Warp *warp = thread->warp;
  Block *block = warp->block;
  warp->live &= ~(1u << thread->lane);
  block->live--;
  g->events++;
  for (uint32_t rest = warp->arrived; rest; rest &= rest - 1) {
    int i = lowest(rest);
    if ((warp->arrived >> i & 1) && (warp->lanes[i].mask >> thread->lane & 1)) try_complete(warp, i);
  }
  if (block->arrived && block->arrived == block->live) complete_barrier(block);
  if (g->count && !warp->live) count_flush(warp);
}

/* ---- nothing can run ---- */

static const Thread *waiting(const Block *block, Wait wait, bool is) {
  for (uint32_t i = 0; i < g->n_threads; i++) {
    const Thread *t = &block->threads[i];
    if (t->wait != Wait::done && (t->wait == wait) == is) return t;
  }
  return nullptr;
}

void report_deadlock() {
  const Block *block = nullptr;
  for (const Block &b : g->blocks)
    if (b.running && (!block || b.number < block->number)) block = &b;
  if (!block) return;
  const Thread *at_barrier = waiting(block, Wait::block, true), *at_warp = waiting(block, Wait::warp, true);
  if (at_barrier && at_warp) {
    note_fault("divergent-barrier", at_barrier, at_barrier->where, 0,
               "%u of %u live threads wait at the barrier; lane %u of warp %u waits at %s (line %d, mask %08x)",
               block->arrived, block->live, at_warp->lane, (at_warp->number & 1023) / 32, kNames[at_warp->op],
               at_warp->where.line, at_warp->mask);
  } else if (at_warp) {
    const Warp *warp = at_warp->warp;
    note_fault("divergent-collective", at_warp, at_warp->where, 0,
               "%s with mask %08x waits for lanes %08x, which never come; live lanes are %08x", kNames[at_warp->op],
               at_warp->mask, at_warp->mask & warp->live & ~warp->arrived, warp->live);
  } else {
    note_fault("hang", at_barrier, at_barrier ? at_barrier->where : Where{nullptr, 0, 0}, 0, "nothing can run");
  }
}
