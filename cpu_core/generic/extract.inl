/* Positions of the set bits of a bitmap. */

/* out has room for 16 more than there are bits. */
static int64_t sa_extract(const uint64_t *bits, size_t n_words, uint32_t base, uint32_t *out) {
  uint32_t *first = out;
  for (size_t k = 0; k < n_words; k++) out += sa_positions(bits[k], base + (uint32_t)(64 * k), out);
  return out - first;
}
