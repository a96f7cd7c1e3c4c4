#include "avx2.h"

#include "backend.inl"
#define SA_HOT_PATH sa_hot_avx2
#include "hotpath.inl"
