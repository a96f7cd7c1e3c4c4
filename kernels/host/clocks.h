/* Who knows of whose memory accesses: vector clocks, kept small by the shape of a grid.
 *
 * Every thread has a clock that only grows. A block's `base` is the clock value before which all of its
 * threads' accesses are ordered by a barrier; a warp's `base` is the same for __syncwarp. What a thread knows
 * of other blocks came to it by release and acquire, and is one immutable, shared Known. In a chain of releases
 * (look-back) each knows nearly what the one before knew: so a Known is made of chunks of blocks, shared too.
 */
#ifndef SAPHIRA_HOST_CLOCKS_H
#define SAPHIRA_HOST_CLOCKS_H

#include <cstdint>
#include <utility>
#include <vector>

/* A counted reference to an immutable T; null: nothing is known. */
template <class T> class Ref {
 public:
  Ref() = default;
  explicit Ref(T *object) : object_(object) { take(); }
  Ref(const Ref &other) : object_(other.object_) { take(); }
  Ref(Ref &&other) noexcept : object_(other.object_) { other.object_ = nullptr; }
  Ref &operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ && --object_->references == 0) delete object_;
  }
  const T *operator->() const { return object_; }
  const T &operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const Ref &other) const { return object_ == other.object_; }

 private:
  void take() {
    if (object_) object_->references++;
  }
  T *object_ = nullptr;
};

constexpr uint32_t kChunkBits = 5, kChunk = 1 << kChunkBits; /* blocks */

using Entries = std::vector<std::pair<uint32_t, uint32_t>>;

struct Chunk {
  uint32_t references = 0;
  uint32_t blocks[kChunk] = {}; /* accesses of a clock below this are known */
  Entries warps, threads;       /* by warp and by thread, sorted: the same, where that is more */

  uint32_t of_block(uint32_t block) const { return blocks[block % kChunk]; }
  bool covers(uint32_t thread, uint32_t clock) const;
};

struct Known {
  uint32_t references = 0;
  std::vector<Ref<Chunk>> chunks;

  bool covers(uint32_t thread, uint32_t clock) const;
};
using KnownRef = Ref<Known>;

/* What either knows. */
KnownRef join(const KnownRef &a, const KnownRef &b);

/* A thread's own state at one moment, cheap to take: every thread may run a fence, few then publish it. */
struct Moment {
  bool taken = false, partial = false;
  uint32_t thread = 0, clock = 0, block_base = 0, warp_base = 0;
  uint32_t lanes[32]; /* if partial: what is known of the warp's lanes */
  KnownRef known, built;

  const KnownRef &build(); /* all that is known at this moment */
};

/* Thread numbers: block << 10 | index in the block. */
inline uint32_t block_of(uint32_t thread) { return thread >> 10; }
inline uint32_t warp_of(uint32_t thread) { return thread >> 5; }

#endif
