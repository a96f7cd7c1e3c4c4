#include "avx512.h"

#include "backend.inl"
#define SA_HOT_PATH sa_hot_avx512
#include "hotpath.inl"
#define SA_CONSUMER_OPS sa_consumer_ops_avx512
#include "consumers.inl"
