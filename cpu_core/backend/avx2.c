#include "avx2.h"

#include "backend.inl"
#define SA_HOT_PATH sa_hot_avx2
#include "hotpath.inl"
#define SA_CONSUMER_OPS sa_consumer_ops_avx2
#include "consumers.inl"
