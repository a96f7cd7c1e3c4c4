#include "scalar.h"

#include "backend.inl"
