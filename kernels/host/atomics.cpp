/* Atomics, strong loads and stores, the read-only path. One operating-system thread runs all fibers, so plain
 * operations are atomic; what matters is where others get their turn. */
#include <cstring>

#include "state.h"

static uint64_t read_raw(const void *p, int size) {
  uint64_t value = 0;
  memcpy(&value, p, static_cast<size_t>(size));
  return value;
}

static uint64_t applied(int op, uint64_t old, uint64_t value, uint64_t compare, int size) {
  auto s_old = size == 4 ? static_cast<int32_t>(old) : static_cast<int64_t>(old);
  auto s_value = size == 4 ? static_cast<int32_t>(value) : static_cast<int64_t>(value);
  switch (op) {
    case HX_ADD: return old + value;
    case HX_EXCH: return value;
    case HX_CAS: return old == compare ? value : old;
    case HX_MIN: return value < old ? value : old;
    case HX_MAX: return value > old ? value : old;
    case HX_MIN_SIGNED: return s_value < s_old ? value : old;
    case HX_MAX_SIGNED: return s_value > s_old ? value : old;
    case HX_AND: return old & value;
    case HX_OR: return old | value;
    case HX_XOR: return old ^ value;
    case HX_INC: return old >= value ? 0 : old + 1;
    case HX_DEC: return old == 0 || old > value ? value : old - 1;
  }
  float a, b;
  memcpy(&a, &old, 4);
  memcpy(&b, &value, 4);
  a += b;
  uint32_t bits;
  memcpy(&bits, &a, 4);
  return bits;
}

static bool in_shared(const void *p) {
  return reinterpret_cast<uint64_t>(p) - reinterpret_cast<uint64_t>(g->self->block->arena) < kArena;
}

/* Before an operation that a loop may spin on: everybody else first, so that what it waits for can happen. */
static void let_others_go() {
  if (g->options->order == 2 && (random_next() & 3) == 0) return; /* a stale value is as good */
  yield();
}

hx_u64 hx_atomic(int op, void *p, hx_u64 value, hx_u64 compare, int size, const char *file, int line) {
  Thread *me = g->self;
  auto address = reinterpret_cast<uint64_t>(p);
  me->where = {file, line, 0};
  check_access(address, static_cast<uint32_t>(size), kRead | kWrite | kStrong, me->where);
  (in_shared(p) ? g->counters->shared_atomics : g->counters->global_atomics)++;
  uint64_t mask = size == 4 ? 0xFFFFFFFFu : ~uint64_t{0};
  uint64_t old = read_raw(p, size), result = applied(op, old, value & mask, compare & mask, size) & mask;
  memcpy(p, &result, static_cast<size_t>(size));
  bool wrote = op != HX_CAS || old == (compare & mask);
  if (g->check) {
    learn(address, false);
    if (wrote) publish(address, false, true);
  }
  if (result != old) g->events++;
  else yield(); /* a lock that is taken, a value that isn't there yet */
  return old;
}

hx_u64 hx_load(const void *p, int size, int order, const char *file, int line) {
  Thread *me = g->self;
  auto address = reinterpret_cast<uint64_t>(p);
  me->where = {file, line, 0};
  g->counters->strong_loads++;
  let_others_go();
  check_access(address, static_cast<uint32_t>(size), kRead | kStrong, me->where);
  if (g->check) learn(address, order == HX_ACQUIRE);
  return read_raw(p, size);
}

void hx_store(void *p, hx_u64 value, int size, int order, const char *file, int line) {
  auto address = reinterpret_cast<uint64_t>(p);
  g->self->where = {file, line, 0};
  g->counters->strong_stores++;
  check_access(address, static_cast<uint32_t>(size), kWrite | kStrong, g->self->where);
  if (g->check) publish(address, order == HX_RELEASE, false);
  memcpy(p, &value, static_cast<size_t>(size));
  g->events++;
}

void hx_sleep(const char *file, int line) {
  g->self->where = {file, line, 0};
  yield();
}

/* ---- what the instrumentation of the check build calls, -fsanitize=thread without its library ---- */

#define HX_HOOK extern "C" __attribute__((visibility("default"))) void
#define HX_PC reinterpret_cast<uint64_t>(__builtin_return_address(0))

static inline void hook(void *p, uint32_t size, unsigned kind, uint64_t pc) {
  if (g && g->self) check_access(reinterpret_cast<uint64_t>(p), size, kind, Where{nullptr, 0, pc});
}

/* volatile: a strong relaxed access. */
static inline void hook_volatile(void *p, uint32_t size, unsigned kind, uint64_t pc) {
  if (!g || !g->self) return;
  auto address = reinterpret_cast<uint64_t>(p);
  g->self->where = {nullptr, 0, pc};
  if (kind & kRead) let_others_go();
  check_access(address, size, kind | kStrong, g->self->where);
  if (!g->check) return;
  if (kind & kRead) learn(address, false);
  else publish(address, false, false);
}

#define HX_HOOKS(n)                                                                             \
  HX_HOOK __tsan_read##n(void *p) { hook(p, n, kRead, HX_PC); }                                 \
  HX_HOOK __tsan_write##n(void *p) { hook(p, n, kWrite, HX_PC); }                               \
  HX_HOOK __tsan_unaligned_read##n(void *p) { hook(p, n, kRead | kUnaligned, HX_PC); }          \
  HX_HOOK __tsan_unaligned_write##n(void *p) { hook(p, n, kWrite | kUnaligned, HX_PC); }        \
  HX_HOOK __tsan_volatile_read##n(void *p) { hook_volatile(p, n, kRead, HX_PC); }               \
  HX_HOOK __tsan_volatile_write##n(void *p) { hook_volatile(p, n, kWrite, HX_PC); }
HX_HOOKS(1)
HX_HOOKS(2)
HX_HOOKS(4)
HX_HOOKS(8)
HX_HOOKS(16)

HX_HOOK __tsan_read_range(void *p, unsigned long size) {
  hook(p, static_cast<uint32_t>(size), kRead | kUnaligned, HX_PC);
}
HX_HOOK __tsan_write_range(void *p, unsigned long size) {
  hook(p, static_cast<uint32_t>(size), kWrite | kUnaligned, HX_PC);
}
HX_HOOK __tsan_init() {}
HX_HOOK __tsan_func_entry(void *) {}
HX_HOOK __tsan_func_exit() {}
