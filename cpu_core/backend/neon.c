#include "neon.h"

#include "backend.inl"
#define SA_HOT_PATH sa_hot_neon
#include "hotpath.inl"
#define SA_CONSUMER_OPS sa_consumer_ops_neon
#include "consumers.inl"
