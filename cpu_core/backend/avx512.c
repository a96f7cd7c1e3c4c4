#include "avx512.h"

#include "backend.inl"
