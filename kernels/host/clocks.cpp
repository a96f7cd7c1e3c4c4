#include "clocks.h"

#include <algorithm>

using Entries = std::vector<std::pair<uint32_t, uint32_t>>;

static uint32_t find(const Entries &entries, uint32_t key) {
  auto at = std::lower_bound(entries.begin(), entries.end(), std::make_pair(key, 0u));
  return at != entries.end() && at->first == key ? at->second : 0;
}

static void raise(Entries &entries, uint32_t key, uint32_t clock) {
  auto at = std::lower_bound(entries.begin(), entries.end(), std::make_pair(key, 0u));
  if (at != entries.end() && at->first == key) at->second = std::max(at->second, clock);
  else entries.insert(at, {key, clock});
}

static uint32_t of_block(const Known &known, uint32_t block) {
  return block < known.blocks.size() ? known.blocks[block] : 0;
}

bool Known::covers(uint32_t thread, uint32_t clock) const {
  return clock < of_block(*this, block_of(thread)) || clock < find(warps, warp_of(thread)) ||
         clock < find(threads, thread);
}

/* Is all of b in a? */
static bool contains(const Known &a, const Known &b) {
  for (uint32_t i = 0; i < b.blocks.size(); i++)
    if (b.blocks[i] > of_block(a, i)) return false;
  for (const auto &[warp, clock] : b.warps)
    if (clock > of_block(a, warp >> 5) && clock > find(a.warps, warp)) return false;
  for (const auto &[thread, clock] : b.threads)
    if (!a.covers(thread, clock - 1)) return false;
  return true;
}

/* Merges sorted entries, leaving out those that the blocks' clocks cover. */
static Entries merge(const Entries &a, const Entries &b, const Known &into, int shift) {
  Entries result;
  result.reserve(a.size() + b.size());
  for (size_t i = 0, k = 0; i < a.size() || k < b.size();) {
    std::pair<uint32_t, uint32_t> next;
    if (k == b.size() || (i < a.size() && a[i].first < b[k].first)) next = a[i++];
    else if (i == a.size() || b[k].first < a[i].first) next = b[k++];
    else {
      next = {a[i].first, std::max(a[i].second, b[k].second)};
      i++, k++;
    }
    if (next.second > of_block(into, next.first >> shift)) result.push_back(next);
  }
  return result;
}

KnownRef join(const KnownRef &a, const KnownRef &b) {
  if (!b || a == b) return a;
  if (!a) return b;
  if (contains(*a, *b)) return a;
  if (contains(*b, *a)) return b;
  auto *result = new Known;
  result->blocks.resize(std::max(a->blocks.size(), b->blocks.size()));
  for (uint32_t i = 0; i < result->blocks.size(); i++)
    result->blocks[i] = std::max(of_block(*a, i), of_block(*b, i));
  result->warps = merge(a->warps, b->warps, *result, 5);
  result->threads = merge(a->threads, b->threads, *result, 10);
  return KnownRef(result);
}

const KnownRef &Moment::build() {
  if (built) return built;
  auto *result = known ? new Known(*known) : new Known;
  result->references = 0;
  uint32_t block = block_of(thread);
  if (result->blocks.size() <= block) result->blocks.resize(block + 1);
  result->blocks[block] = std::max(result->blocks[block], block_base);
  if (warp_base > block_base) raise(result->warps, warp_of(thread), warp_base);
  raise(result->threads, thread, clock + 1);
  if (partial)
    for (uint32_t i = 0; i < 32; i++)
      if (lanes[i] > block_base) raise(result->threads, (thread & ~31u) | i, lanes[i]);
  built = KnownRef(result);
  return built;
}
