#include "scalar.h"

#include "backend.inl"
#define SA_HOT_PATH sa_hot_scalar
#include "hotpath.inl"
