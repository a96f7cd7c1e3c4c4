#include "neon.h"

#include "backend.inl"
