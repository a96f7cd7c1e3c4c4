#include "scalar.h"

#include "backend.inl"
#define SA_HOT_PATH sa_hot_scalar
#include "hotpath.inl"
#define SA_CONSUMER_OPS sa_consumer_ops_scalar
#include "consumers.inl"
