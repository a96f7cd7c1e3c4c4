/* Which instruction sets this build has and this CPU runs, and the choice among them. */
#include <stdlib.h>

#include "backend.h"

#if defined(__x86_64__) || defined(_M_X64)
#define SA_X86 1
#include <cpuid.h>
#endif

static const char *const names[SA_ISA_COUNT] = {"scalar", "avx2", "avx512", "neon"};

static _Atomic(int32_t) active = SA_ISA_SCALAR;
static char refused[32];  /* a name from the environment that could not be honoured */

#ifdef SA_X86
/* The register states that the operating system saves (XCR0). */
static uint32_t saved_states(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

static int has(uint32_t word, int bit) { return (int)(word >> bit & 1); }

static int32_t x86_runs(int32_t isa) {
  uint32_t a, b, c, d, b7, c7, c81;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, 27) || !has(c, 28) || !has(c, 23)) return 0;
  if ((saved_states() & 0x6) != 0x6) return 0;
  if (!__get_cpuid_count(7, 0, &a, &b7, &c7, &d)) return 0;
  if (!__get_cpuid(0x80000001, &a, &b, &c81, &d)) return 0;
  /* AVX2, BMI1, BMI2, LZCNT */
  if (!has(b7, 5) || !has(b7, 3) || !has(b7, 8) || !has(c81, 5)) return 0;
  if (isa == SA_ISA_AVX2) return 1;
  if ((saved_states() & 0xE6) != 0xE6) return 0;
  /* F, DQ, CD, BW, VL; VBMI, VBMI2, BITALG, VPOPCNTDQ: Ice Lake, Zen 4 and later. Older AVX-512 has no
   * byte permute across the register, and takes the AVX2 unit. */
  return has(b7, 16) && has(b7, 17) && has(b7, 28) && has(b7, 30) && has(b7, 31) && has(c7, 1) &&
         has(c7, 6) && has(c7, 12) && has(c7, 14);
}
#endif

const struct sa_backend *sa_backend_of(int32_t isa) {
  if (!sa_isa_available(isa)) return NULL;
  switch (isa) {
#ifdef SA_X86
    case SA_ISA_AVX2: return &sa_backend_avx2;
    case SA_ISA_AVX512: return &sa_backend_avx512;
#elif defined(__aarch64__)
    case SA_ISA_NEON: return &sa_backend_neon;
#endif
    default: return &sa_backend_scalar;
  }
}

const struct sa_backend *sa_backend_active(void) { return sa_backend_of(active); }

const char *sa_isa_name(int32_t isa) {
  return isa < 0 || isa >= SA_ISA_COUNT ? NULL : names[isa];
}

int32_t sa_isa_available(int32_t isa) {
  static _Atomic(int8_t) known[SA_ISA_COUNT];  /* 0: not asked yet, 1: no, 2: yes */
  if (isa < 0 || isa >= SA_ISA_COUNT) return 0;
  if (known[isa] == 0) {
    int32_t runs = isa == SA_ISA_SCALAR;
#ifdef SA_X86
    if (isa == SA_ISA_AVX2 || isa == SA_ISA_AVX512) runs = x86_runs(isa);
#elif defined(__aarch64__)
    if (isa == SA_ISA_NEON) runs = 1;  /* part of the base architecture */
#endif
    known[isa] = (int8_t)(1 + runs);
  }
  return known[isa] == 2;
}

int32_t sa_isa_active(void) { return active; }

int32_t sa_isa_select(int32_t isa) {
  if (!sa_isa_available(isa)) return SA_ERR_ARGUMENT;
  active = isa;
  return SA_OK;
}

const char *sa_isa_refused(void) { return refused[0] ? refused : NULL; }

/* At load: SAPHIRA_ISA if it names an instruction set that is available, else the best one. */
__attribute__((constructor)) static void choose(void) {
  const char *wanted = getenv("SAPHIRA_ISA");
  int32_t best = SA_ISA_SCALAR;
  for (int32_t isa = 0; isa < SA_ISA_COUNT; isa++)
    if (sa_isa_available(isa)) best = isa;
  if (wanted && *wanted) {
    int32_t isa = 0;
    while (isa < SA_ISA_COUNT && strcmp(wanted, names[isa]) != 0) isa++;
    if (sa_isa_available(isa)) {
      best = isa;
    } else {
      strncpy(refused, wanted, sizeof refused - 1);
    }
  }
  active = best;
}
