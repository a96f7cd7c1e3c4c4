/* Which hot path is in use. */
#include "hotpath.h"

#include "saphira.h"

extern const struct sa_hot_path sa_hot_scalar;
#if defined(__x86_64__) || defined(_M_X64)
extern const struct sa_hot_path sa_hot_avx2, sa_hot_avx512;
#elif defined(__aarch64__)
extern const struct sa_hot_path sa_hot_neon;
#endif

const struct sa_hot_path *sa_hot(void) {
  switch (sa_isa_active()) {
#if defined(__x86_64__) || defined(_M_X64)
    case SA_ISA_AVX2: return &sa_hot_avx2;
    case SA_ISA_AVX512: return &sa_hot_avx512;
#elif defined(__aarch64__)
    case SA_ISA_NEON: return &sa_hot_neon;
#endif
    default: return &sa_hot_scalar;
  }
}
