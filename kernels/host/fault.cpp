/* Faults: the first thing that went wrong, with where it did; signals; UBSan's handlers. */
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fiber.h"
#include "signals.h"
#include "state.h"

static uint64_t module_offset(uint64_t pc) {
  Dl_info info, kernel;
  if (!pc || !dladdr(reinterpret_cast<void *>(pc), &info)) return 0;
  if (!dladdr(reinterpret_cast<const void *>(g->kernel), &kernel) || kernel.dli_fbase != info.dli_fbase) return 0;
  return pc - reinterpret_cast<uint64_t>(info.dli_fbase);
}

void note_fault(const char *name, const Thread *thread, const Where &where, uint64_t other_pc, const char *format,
                ...) {
  hx_fault *fault = g->fault;
  if (g->aborted) return;
  g->aborted = true;
  snprintf(fault->name, sizeof fault->name, "%s", name);
  va_list list;
  va_start(list, format);
  vsnprintf(fault->text, sizeof fault->text, format, list);
  va_end(list);
  if (where.file) {
    snprintf(fault->file, sizeof fault->file, "%s", where.file);
    fault->line = where.line;
  }
  fault->pc = module_offset(where.pc);
  fault->other_pc = module_offset(other_pc);
  if (thread && thread->block) {
    hx_xyz b = thread->block->index, t = thread->index;
    hx_u32 at[6] = {b.x, b.y, b.z, t.x, t.y, t.z};
    memcpy(fault->block, at, sizeof fault->block);
    memcpy(fault->thread, at + 3, sizeof fault->thread);
  }
}

void abort_thread() {
  void *nowhere;
  hx_switch(&nowhere, g->scheduler);
  __builtin_unreachable();
}

void hx_trap(const char *what, const char *file, int line) { FAULT("trap", (Where{file, line, 0}), "%s", what); }

/* ---- signals ---- */

static const int kCaught[4] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static int timer_signal() { return SIGRTMAX - 3; }
static sigjmp_buf *jump_to;

/* As if returned to: a place in the source is looked up by the instruction before. */
static uint64_t pc_of(void *context) {
#if defined(__x86_64__)
  return static_cast<uint64_t>(static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP]) + 1;
#elif defined(__aarch64__)
  return static_cast<ucontext_t *>(context)->uc_mcontext.pc + 1;
#else
  (void)context;
  return 0;
#endif
}

static void caught(int number, siginfo_t *info, void *context) {
  Where where{nullptr, 0, pc_of(context)};
  if (number == timer_signal()) {
    g->expired = 1;
    /* Inside the runtime it may hold malloc's lock: the scheduler will see `expired`, or the next tick comes. */
    if (!g->self || !module_offset(where.pc)) return;
    note_fault("time-limit", g->self, where, 0, "the launch took more than %g s of processor time", g->options->seconds);
  } else if (number == SIGFPE) {
    note_fault("divide-by-zero", g->self, where, 0, "integer division by zero");
  } else if (number == SIGILL) {
    note_fault("trap", g->self, where, 0, "reached code that cannot be reached");
  } else {
    note_fault("wild-access", g->self, where, 0, "access to %p, no memory of this process", info->si_addr);
  }
  siglongjmp(*jump_to, 1);
}

Signals::Signals(double seconds) : stack_(new char[65536]) {
  jump_to = &jump;
  stack_t mine{};
  mine.ss_sp = stack_.get();
  mine.ss_size = 65536;
  sigaltstack(&mine, &stack_before_);
  struct sigaction action {};
  action.sa_sigaction = caught;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < 4; i++) sigaction(kCaught[i], &action, &before_[i]);
  action.sa_flags |= SA_RESTART;
  sigaction(timer_signal(), &action, &before_[4]);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = timer_signal();
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  timed_ = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) == 0;
  if (timed_) {
    itimerspec when{};
    when.it_value.tv_sec = static_cast<time_t>(seconds);
    when.it_value.tv_nsec = static_cast<long>((seconds - std::floor(seconds)) * 1e9) + 1;
    when.it_interval.tv_nsec = 5'000'000;
    timer_settime(timer_, 0, &when, nullptr);
  }
}

Signals::~Signals() {
  if (timed_) timer_delete(timer_);
  for (int i = 0; i < 4; i++) sigaction(kCaught[i], &before_[i], nullptr);
  /* A tick may still be on its way; the default action would end the process. */
  if (before_[4].sa_handler == SIG_DFL) before_[4].sa_handler = SIG_IGN;
  sigaction(timer_signal(), &before_[4], nullptr);
  sigaltstack(&stack_before_, nullptr);
}

/* ---- UBSan: what g++ calls when a check fails; each record begins with the place in the source ---- */

struct Place {
  const char *file;
  uint32_t line, column;
};
struct TypeName {
  uint16_t kind, info;
  char name[1];
};
struct Shift {
  Place place;
  const TypeName *left, *right;
};
struct Bounds {
  Place place;
  const TypeName *array, *index;
};
struct Mismatch {
  Place place;
  const TypeName *type;
  unsigned char log_alignment, check;
};

static Where at(const Place &place) { return {place.file, static_cast<int>(place.line), 0}; }

#define HX_VISIBLE extern "C" __attribute__((visibility("default"), noreturn))

HX_VISIBLE void __ubsan_handle_shift_out_of_bounds_abort(Shift *data, uint64_t, uint64_t by) {
  FAULT("shift", at(data->place), "shift of %s by %lld", data->left->name, static_cast<long long>(by));
}
HX_VISIBLE void __ubsan_handle_out_of_bounds_abort(Bounds *data, uint64_t index) {
  FAULT("index", at(data->place), "index %lld is outside %s", static_cast<long long>(index), data->array->name);
}
HX_VISIBLE void __ubsan_handle_divrem_overflow_abort(Shift *data, uint64_t, uint64_t) {
  FAULT("divide-by-zero", at(data->place), "division of %s by zero, or one that overflows", data->left->name);
}
HX_VISIBLE void __ubsan_handle_type_mismatch_v1_abort(Mismatch *data, uint64_t address) {
  FAULT("misaligned", at(data->place), "%s needs an alignment of %u bytes, %s has less", data->type->name,
        1u << data->log_alignment, describe(address).c_str());
}
