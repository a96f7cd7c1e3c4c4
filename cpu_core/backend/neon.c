#include "neon.h"

#include "backend.inl"
#define SA_HOT_PATH sa_hot_neon
#include "hotpath.inl"
