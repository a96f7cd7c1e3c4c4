/* One back end: the algorithms over the lanes of the simd/<isa>.h included before. */
#include "pretok.h"

#include "classify.inl"
#include "planes.inl"
#include "extract.inl"

const struct sa_backend SA_BACKEND = {
    .name = SA_ISA_NAME,
    .classify = sa_classify_stream,
    .remap = sa_remap_bytes,
    .pieces = sa_pieces,
    .extract = sa_extract,
    .utf8_errors = sa_utf8_errors_next,
};
