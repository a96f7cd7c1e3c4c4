/* Who knows of whose memory accesses: vector clocks, kept small by the shape of a grid.
 *
 * Every thread has a clock that only grows. A block's `base` is the clock value before which all of its
 * threads' accesses are ordered by a barrier; a warp's `base` is the same for __syncwarp. What a thread knows
 * of other blocks came to it by release and acquire, and is one immutable, shared Known.
 */
#ifndef SAPHIRA_HOST_CLOCKS_H
#define SAPHIRA_HOST_CLOCKS_H

#include <cstdint>
#include <utility>
#include <vector>

struct Known {
  uint32_t references = 0;
  std::vector<uint32_t> blocks; /* by block: accesses of a clock below this are known */
  /* By warp and by thread, sorted: the same, where that is more than its block's. */
  std::vector<std::pair<uint32_t, uint32_t>> warps, threads;

  bool covers(uint32_t thread, uint32_t clock) const;
};

/* A counted reference to a Known; null knows nothing. */
class KnownRef {
 public:
  KnownRef() = default;
  explicit KnownRef(Known *known) : known_(known) { take(); }
  KnownRef(const KnownRef &other) : known_(other.known_) { take(); }
  KnownRef(KnownRef &&other) noexcept : known_(other.known_) { other.known_ = nullptr; }
  KnownRef &operator=(KnownRef other) noexcept {
    std::swap(known_, other.known_);
    return *this;
  }
  ~KnownRef() {
    if (known_ && --known_->references == 0) delete known_;
  }
  const Known *operator->() const { return known_; }
  const Known &operator*() const { return *known_; }
  explicit operator bool() const { return known_ != nullptr; }
  bool operator==(const KnownRef &other) const { return known_ == other.known_; }

 private:
  void take() {
    if (known_) known_->references++;
  }
  Known *known_ = nullptr;
};

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
