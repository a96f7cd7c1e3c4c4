#include "avx2.h"

#include "backend.inl"
