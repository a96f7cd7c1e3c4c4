/* What orders the memory accesses of different threads, for the race check: barriers, __syncwarp, and release
 * followed by acquire. Votes and shuffles order nothing. See clocks.h. */
#include <algorithm>
#include <cstring>

#include "state.h"

bool known_to(const Thread *me, uint32_t number, uint32_t clock) {
  if (block_of(number) == block_of(me->number)) {
    if (clock < me->block->base) return true;
    if (warp_of(number) == warp_of(me->number)) {
      const Warp *warp = me->warp;
      if (clock < warp->base || (warp->partial && clock < warp->seen[me->lane][number & 31])) return true;
    }
  }
  return me->known && me->known->covers(number, clock);
}

void ordered_by_barrier(Block *block) {
  uint32_t top = 0;
  KnownRef all;
  const KnownRef *last = nullptr; /* most threads know the same: what the last barrier gave them */
  for (uint32_t i = 0; i < g->n_threads; i++) {
    const KnownRef &known = block->threads[i].known;
    top = std::max(top, block->threads[i].clock);
    if (!last || !(known == *last)) all = join(all, known);
    last = &known;
  }
  block->base = top + 1;
  for (uint32_t i = 0; i < g->n_threads; i++) {
    block->threads[i].clock = block->base;
    block->threads[i].known = all;
  }
  for (Warp &warp : block->warps) {
    warp.base = block->base;
    warp.partial = false;
  }
}

void ordered_by_warp(Warp *warp, uint32_t lanes) {
  uint32_t top = 0;
  KnownRef all;
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    const Thread &t = warp->lanes[lowest(rest)];
    top = std::max(top, t.clock);
    all = join(all, t.known);
  }
  if (lanes == warp->all) {
    warp->base = top + 1;
    warp->partial = false;
  } else {
    if (!warp->partial) memset(warp->seen, 0, sizeof warp->seen);
    warp->partial = true;
    uint32_t seen[32];
    for (int k = 0; k < 32; k++) {
      seen[k] = lanes >> k & 1 ? top + 1 : 0;
      for (uint32_t rest = lanes; rest; rest &= rest - 1) seen[k] = std::max(seen[k], warp->seen[lowest(rest)][k]);
    }
    for (uint32_t rest = lanes; rest; rest &= rest - 1) memcpy(warp->seen[lowest(rest)], seen, sizeof seen);
  }
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    warp->lanes[lowest(rest)].clock = top + 1;
    warp->lanes[lowest(rest)].known = all;
  }
}

/* ---- release and acquire ---- */

static Moment now(Thread *me) {
  Moment m;
  m.taken = true;
  m.partial = me->warp->partial;
  m.thread = me->number;
  m.clock = me->clock++; /* what comes later is not part of it */
  m.block_base = me->block->base;
  m.warp_base = me->warp->base;
  if (m.partial) memcpy(m.lanes, me->warp->seen[me->lane], sizeof m.lanes);
  m.known = me->known;
  return m;
}

static Publications &publications(const Thread *me, uint64_t address) {
  return address - reinterpret_cast<uint64_t>(me->block->arena) < kArena ? me->block->published : g->published;
}

void hx_fence(int block_only) {
  Thread *me = g->self;
  g->counters->fences++;
  if (!g->check) return;
  me->known = join(me->known, me->pending);
  me->pending = KnownRef();
  (block_only ? me->fence_block : me->fence) = now(me);
}

/* After a strong read of `address`: acquire learns at once, a relaxed one at the next fence. */
void learn(uint64_t address, bool acquire) {
  Thread *me = g->self;
  Publications &all = publications(me, address);
  if (all.empty()) return;
  auto at = all.find(address);
  if (at == all.end()) return;
  KnownRef news = at->second.everyone;
  if (at->second.block_only && at->second.block == me->block->number) news = join(news, at->second.block_only);
  KnownRef &into = acquire ? me->known : me->pending;
  into = join(into, news);
}

/* With a strong write to `address`: a release tells all that is known now, a relaxed write what was known at the
 * last fence. A read-modify-write adds to what is published there, a plain one replaces it. */
void publish(uint64_t address, bool release, bool modify) {
  Thread *me = g->self;
  Publications &all = publications(me, address);
  if (!release && !me->fence.taken && !me->fence_block.taken && all.empty()) return;
  Published &at = all[address];
  KnownRef everyone, block_only;
  if (release) everyone = now(me).build();
  else if (me->fence.taken) everyone = me->fence.build();
  if (me->fence_block.taken) block_only = me->fence_block.build();
  if (modify) {
    everyone = join(everyone, at.everyone);
    if (at.block == me->block->number) block_only = join(block_only, at.block_only);
  }
  at.everyone = everyone;
  at.block_only = block_only;
  at.block = me->block->number;
}
