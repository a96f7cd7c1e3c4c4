#include "clocks.h"

#include <algorithm>

static uint32_t find_entry(const Entries &entries, uint32_t key) {
  auto at = std::lower_bound(entries.begin(), entries.end(), std::make_pair(key, 0u));
  return at != entries.end() && at->first == key ? at->second : 0;
}

static void raise_entry(Entries &entries, uint32_t key, uint32_t clock) {
  auto at = std::lower_bound(entries.begin(), entries.end(), std::make_pair(key, 0u));
  if (at != entries.end() && at->first == key) at->second = std::max(at->second, clock);
  else entries.insert(at, {key, clock});
}

bool Chunk::covers(uint32_t thread, uint32_t clock) const {
  return clock < of_block(block_of(thread)) || clock < find_entry(warps, warp_of(thread)) ||
         clock < find_entry(threads, thread);
}

bool Known::covers(uint32_t thread, uint32_t clock) const {
  uint32_t i = block_of(thread) >> kChunkBits;
  return i < chunks.size() && chunks[i] && chunks[i]->covers(thread, clock);
}

/* Is all of b in a? */
static bool contains(const Chunk &a, const Chunk &b) {
  for (uint32_t i = 0; i < kChunk; i++)
    if (b.blocks[i] > a.blocks[i]) return false;
  for (const auto &[warp, clock] : b.warps)
    if (clock > a.of_block(warp >> 5) && clock > find_entry(a.warps, warp)) return false;
  for (const auto &[thread, clock] : b.threads)
    if (!a.covers(thread, clock - 1)) return false;
  return true;
}

/* Merges sorted entries, leaving out those that the blocks' clocks cover. */
static Entries merge_entries(const Entries &a, const Entries &b, const Chunk &into, int shift) {
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
    if (next.second > into.of_block(next.first >> shift)) result.push_back(next);
  }
  return result;
}

/* Hands back one of the two wherever it can: equal chunks then are the same chunk, and quick to compare. */
static Ref<Chunk> join_chunks(const Ref<Chunk> &a, const Ref<Chunk> &b) {
  if (!b || a == b) return a;
  if (!a) return b;
  if (contains(*a, *b)) return a;
  if (contains(*b, *a)) return b;
  auto *result = new Chunk;
  for (uint32_t i = 0; i < kChunk; i++) result->blocks[i] = std::max(a->blocks[i], b->blocks[i]);
  result->warps = merge_entries(a->warps, b->warps, *result, 5);
  result->threads = merge_entries(a->threads, b->threads, *result, 10);
  return Ref<Chunk>(result);
}

KnownRef join(const KnownRef &a, const KnownRef &b) {
  if (!b || a == b) return a;
  if (!a) return b;
  static const Ref<Chunk> nothing;
  Known *result = nullptr;
  bool is_b = true;
  size_t n = std::max(a->chunks.size(), b->chunks.size());
  for (size_t i = 0; i < n; i++) {
    const Ref<Chunk> &of_a = i < a->chunks.size() ? a->chunks[i] : nothing;
    const Ref<Chunk> &of_b = i < b->chunks.size() ? b->chunks[i] : nothing;
    if (of_a == of_b) continue;
    Ref<Chunk> both = join_chunks(of_a, of_b);
    is_b = is_b && both == of_b;
    if (both == of_a) continue;
    if (!result) result = new Known(*a);
    result->references = 0;
    if (result->chunks.size() <= i) result->chunks.resize(n);
    result->chunks[i] = both;
  }
  if (!result) return a;
  KnownRef joined(result);
  return is_b ? b : joined;
}

const KnownRef &Moment::build() {
  if (built) return built;
  auto *result = known ? new Known(*known) : new Known;
  result->references = 0;
  uint32_t block = block_of(thread), i = block >> kChunkBits;
  if (result->chunks.size() <= i) result->chunks.resize(i + 1);
  auto *own = result->chunks[i] ? new Chunk(*result->chunks[i]) : new Chunk;
  own->references = 0;
  own->blocks[block % kChunk] = std::max(own->blocks[block % kChunk], block_base);
  if (warp_base > block_base) raise_entry(own->warps, warp_of(thread), warp_base);
  raise_entry(own->threads, thread, clock + 1);
  if (partial)
    for (uint32_t k = 0; k < 32; k++)
      if (lanes[k] > block_base) raise_entry(own->threads, (thread & ~31u) | k, lanes[k]);
  result->chunks[i] = Ref<Chunk>(own);
  built = KnownRef(result);
  return built;
}
