#include "avx512.h"

#include "backend.inl"
#define SA_HOT_PATH sa_hot_avx512
#include "hotpath.inl"
