/* Class planes of a block, and the rules run over them block after block. */

/* Text is fetched so far ahead of where it is read. */
#define SA_TEXT_AHEAD 4096

/* Class bits of the block at `at`, 0 on owned bytes. */
static inline lanes sa_class_bits(const sa_alphabet *a, const sa_scheme *scheme, const u8 *p, lanes v,
                                  u64 segments, u64 segments_next, u64 *carry, u64 *owned) {
  *owned = 0;
  __builtin_prefetch(p + SA_TEXT_AHEAD);
  if (!sa_high(v)) return sa_lookup128(scheme->ascii_bits, v);
  lanes tags = sa_tags_wide(a, p, v, segments, segments_next, carry, owned);
  return sa_blend(sa_eq_mask(tags, 0xFF), sa_splat(0), sa_lookup32(scheme->bits, sa_and(tags, 31)));
}

/* Planes of the stream's next block. */
static inline sa_gpt2_planes sa_gpt2_block(const sa_alphabet *a, const sa_scheme *scheme, sa_stream *s,
                                           const sa_gpt2_planes *before) {
  const u8 *p = sa_stream_block(s, s->at);
  lanes v = sa_load(p);
  sa_gpt2_planes b;
  u64 owned, segments_next;
  b.segments = s->segments;
  segments_next = sa_segments_word(&s->walker, s->at + 64);
  lanes bits = sa_class_bits(a, scheme, p, v, b.segments, segments_next, &s->carry, &owned);
  b.letter = sa_test(bits, SA_BIT_LETTER);
  b.number = sa_test(bits, SA_BIT_NUMBER);
  b.white = sa_test(bits, SA_BIT_WHITE);
  b.space = sa_eq(v, 0x20);
  b.apostrophe = sa_eq(v, 0x27);
  b.starts = ~owned;
  if (owned) {
    b.letter = sa_spread(b.letter, owned, before->letter);
    b.number = sa_spread(b.number, owned, before->number);
    b.white = sa_spread(b.white, owned, before->white);
  }
  /* No rule looks across what lies apart. */
  if (scheme->options.gpt2.alone) b.segments |= b.starts & (b.number | sa_prev(b.number, before->number >> 63));
  if (scheme->options.gpt2.literals) {
    b.apostrophe |= sa_eq(v, '<');
    b.segments |= b.white ^ sa_prev(b.white, before->white >> 63);
  }
  s->segments = segments_next;
  s->at += 64;
  return b;
}

/* Where all characters of a block and the next have one byte, as in most of most text, the compiler is told so and
 * leaves out what deals with others: 4% of the pass for gpt2, 11% for cl100k, 13% for o200k. */
#define SA_ALL_STARTS (~(u64)0)
static inline int sa_one_byte_each(u64 starts, u64 starts_next) {
  return __builtin_expect((starts & starts_next) == SA_ALL_STARTS, 1);
}

static int64_t sa_pieces_gpt2(sa_pretok_cursor *c, uint64_t *starts, int64_t count) {
  sa_gpt2_planes b = c->rules.gpt2.planes;
  sa_gpt2_carry carry = c->rules.gpt2.carry;
  sa_stream *s = &c->stream;
  if (s->at == 0) b = sa_gpt2_block(c->alphabet, c->scheme, s, &b);
  for (int64_t k = 0; k < count; k++) {
    const u8 *p = sa_stream_block(s, s->at - 64);
    sa_gpt2_planes next = sa_gpt2_block(c->alphabet, c->scheme, s, &b);
    if (sa_one_byte_each(b.starts, next.starts)) {
      sa_gpt2_planes here = b, behind = next;
      here.starts = behind.starts = SA_ALL_STARTS;
      starts[k] = sa_gpt2_starts(&here, &behind, p, &carry);
    } else {
      starts[k] = sa_gpt2_starts(&b, &next, p, &carry);
    }
    b = next;
  }
  c->rules.gpt2.planes = b;
  c->rules.gpt2.carry = carry;
  return count;
}

/* ---- the cl100k family ---- */

static inline sa_cl100k_planes sa_cl100k_block(const sa_alphabet *a, const sa_scheme *scheme, sa_stream *s,
                                               const sa_cl100k_planes *before) {
  const u8 *p = sa_stream_block(s, s->at);
  lanes v = sa_load(p);
  sa_cl100k_planes b;
  u64 owned, segments_next;
  b.segments = s->segments;
  segments_next = sa_segments_word(&s->walker, s->at + 64);
  lanes bits = sa_class_bits(a, scheme, p, v, b.segments, segments_next, &s->carry, &owned);
  b.letter = sa_test(bits, SA_BIT_LETTER);
  b.number = sa_test(bits, SA_BIT_NUMBER);
  b.white = sa_test(bits, SA_BIT_WHITE);
  b.newline = sa_eq(v, 0x0A) | sa_eq(v, 0x0D);
  b.space = sa_eq(v, 0x20);
  b.apostrophe = sa_eq(v, 0x27);
  b.starts = ~owned;
  if (owned) {
    b.letter = sa_spread(b.letter, owned, before->letter);
    b.number = sa_spread(b.number, owned, before->number);
    b.white = sa_spread(b.white, owned, before->white);
  }
  s->segments = segments_next;
  s->at += 64;
  return b;
}

/* Whether a run that fills the block just read, `last`, ends well beyond it, by FAMILY's STOPS. What is found
 * is kept in slot KIND with the place where it was found, so that a long run is looked through once. */
#define SA_BEYOND(name, family, kind, stops)                                                        \
  static __attribute__((noinline)) int name(sa_pretok_cursor *c, const sa_##family##_planes *last) { \
    if (c->stop_at[kind] < c->stream.at) {                                                          \
      sa_stream ahead = c->stream;                                                                  \
      sa_##family##_planes b = *last;                                                               \
      u64 stop = 0, good = 0;                                                                       \
      while (!stop && ahead.at <= ahead.n) {                                                        \
        c->stop_at[kind] = ahead.at;                                                                \
        b = sa_##family##_block(c->alphabet, c->scheme, &ahead, &b);                                \
        stops;                                                                                      \
      }                                                                                             \
      c->stop_good[kind] = (good & stop & (0 - stop)) != 0;                                         \
    }                                                                                               \
    return c->stop_good[kind];                                                                      \
  }

SA_BEYOND(sa_cl100k_beyond, cl100k, 0, sa_cl100k_stops(&b, &c->scheme->options.cl100k, &stop, &good))

static int64_t sa_pieces_cl100k(sa_pretok_cursor *c, uint64_t *starts, int64_t count) {
  sa_cl100k_planes b = c->rules.cl100k.planes;
  sa_cl100k_carry carry = c->rules.cl100k.carry;
  sa_cl100k_options options = c->scheme->options.cl100k;
  sa_stream *s = &c->stream;
  if (s->at == 0) b = sa_cl100k_block(c->alphabet, c->scheme, s, &b);
  for (int64_t k = 0; k < count; k++) {
    const u8 *p = sa_stream_block(s, s->at - 64);
    sa_cl100k_planes next = sa_cl100k_block(c->alphabet, c->scheme, s, &b);
    u64 open, word;
    if (sa_one_byte_each(b.starts, next.starts)) {
      sa_cl100k_planes here = b, behind = next;
      here.starts = behind.starts = SA_ALL_STARTS;
      word = sa_cl100k_starts(&here, &behind, &options, p, &carry, &open);
    } else {
      word = sa_cl100k_starts(&b, &next, &options, p, &carry, &open);
    }
    if (open && sa_cl100k_beyond(c, &next)) word |= open;
    starts[k] = word;
    b = next;
  }
  c->rules.cl100k.planes = b;
  c->rules.cl100k.carry = carry;
  return count;
}

/* ---- the o200k family ---- */

/* han: as in the scheme's options; a constant where speed matters. */
static inline __attribute__((always_inline)) sa_o200k_planes sa_o200k_block_of(
    const sa_alphabet *a, const sa_scheme *scheme, sa_stream *s, const sa_o200k_planes *before, int han) {
  const u8 *p = sa_stream_block(s, s->at);
  lanes v = sa_load(p);
  sa_o200k_planes b;
  u64 owned, segments_next;
  b.segments = s->segments;
  segments_next = sa_segments_word(&s->walker, s->at + 64);
  lanes bits = sa_class_bits(a, scheme, p, v, b.segments, segments_next, &s->carry, &owned);
  b.upper = sa_test(bits, SA_BIT_UPPER);
  b.lower = sa_test(bits, SA_BIT_LOWER);
  b.number = sa_test(bits, SA_BIT_NUMBER);
  b.white = sa_test(bits, SA_BIT_WHITE);
  b.caseless = b.mark = 0;
  b.newline = sa_eq(v, 0x0A) | sa_eq(v, 0x0D);
  b.space = sa_eq(v, 0x20);
  b.apostrophe = sa_eq(v, 0x27);
  b.slash = han ? 0 : sa_eq(v, 0x2F);
  b.han = b.han_other = 0;
  b.starts = ~owned;
  if (sa_high(v)) {  /* no ASCII character is caseless or a mark */
    b.caseless = sa_spread(sa_test(bits, SA_BIT_CASELESS), owned, before->caseless);
    b.mark = sa_spread(sa_test(bits, SA_BIT_MARK), owned, before->mark);
    b.upper = sa_spread(b.upper, owned, before->upper);
    b.lower = sa_spread(b.lower, owned, before->lower);
    b.number = sa_spread(b.number, owned, before->number);
    b.white = sa_spread(b.white, owned, before->white);
    if (han) {
      b.han = sa_spread(sa_test(bits, SA_BIT_APART), owned, before->han);
      b.caseless = sa_spread(sa_test(bits, SA_BIT_CASELESS) & ~b.han, owned, before->caseless);
      b.mark &= ~b.han;
      b.han_other = sa_spread(b.han & b.starts & ~b.number & ~sa_test(bits, SA_BIT_CASELESS), owned, before->han_other);
    }
  }
  s->segments = segments_next;
  s->at += 64;
  return b;
}

static inline sa_o200k_planes sa_o200k_block(const sa_alphabet *a, const sa_scheme *scheme, sa_stream *s,
                                             const sa_o200k_planes *before) {
  return sa_o200k_block_of(a, scheme, s, before, scheme->options.o200k.han);
}

SA_BEYOND(sa_o200k_white_beyond, o200k, 0, sa_o200k_white_stops(&b, &stop, &good))
SA_BEYOND(sa_o200k_upper_beyond, o200k, 1, sa_o200k_upper_stops(&b, &stop, &good))

/* Compiled for each value of han: what only Kimi needs costs the others nothing. */
static inline __attribute__((always_inline)) int64_t sa_pieces_o200k(sa_pretok_cursor *c, uint64_t *starts,
                                                                     int64_t count, int han) {
  sa_o200k_planes b = c->rules.o200k.planes;
  sa_o200k_carry carry = c->rules.o200k.carry;
  sa_o200k_options options = c->scheme->options.o200k;
  sa_stream *s = &c->stream;
  options.han = han;
  if (s->at == 0) b = sa_o200k_block_of(c->alphabet, c->scheme, s, &b, han);
  for (int64_t k = 0; k < count; k++) {
    const u8 *p = sa_stream_block(s, s->at - 64);
    sa_o200k_planes next = sa_o200k_block_of(c->alphabet, c->scheme, s, &b, han);
    u64 white, upper, word;
    if (sa_one_byte_each(b.starts, next.starts) && !(b.caseless | b.mark)) {
      sa_o200k_planes here = b, behind = next;
      here.starts = behind.starts = SA_ALL_STARTS;
      here.caseless = here.mark = here.han = here.han_other = 0;
      word = sa_o200k_starts(&here, &behind, &options, p, &carry, &white, &upper);
    } else {
      word = sa_o200k_starts(&b, &next, &options, p, &carry, &white, &upper);
    }
    if (white && sa_o200k_white_beyond(c, &next)) word |= white;
    if (upper && sa_o200k_upper_beyond(c, &next)) word |= upper;
    starts[k] = word;
    b = next;
  }
  c->rules.o200k.planes = b;
  c->rules.o200k.carry = carry;
  return count;
}

/* ---- DeepSeek's ---- */

static inline sa_deepseek_planes sa_deepseek_block(const sa_alphabet *a, const sa_scheme *scheme, sa_stream *s,
                                                   const sa_deepseek_planes *before) {
  const u8 *p = sa_stream_block(s, s->at);
  lanes v = sa_load(p);
  sa_deepseek_planes b;
  u64 owned, segments_next;
  b.segments = s->segments;
  segments_next = sa_segments_word(&s->walker, s->at + 64);
  lanes bits = sa_class_bits(a, scheme, p, v, b.segments, segments_next, &s->carry, &owned);
  b.word = sa_test(bits, SA_BIT_LETTER);
  b.punct = sa_test(bits, SA_BIT_PUNCT);
  b.number = sa_test(bits, SA_BIT_NUMBER);
  b.white = sa_test(bits, SA_BIT_WHITE);
  b.apart = 0;
  b.newline = sa_eq(v, 0x0A) | sa_eq(v, 0x0D);
  b.space = sa_eq(v, 0x20);
  b.ascii = ~sa_high(v);
  b.starts = ~owned;
  if (~b.ascii) {  /* no ASCII character is apart */
    b.apart = sa_spread(sa_test(bits, SA_BIT_APART), owned, before->apart);
    b.word = sa_spread(b.word, owned, before->word);
    b.punct = sa_spread(b.punct, owned, before->punct);
    b.number = sa_spread(b.number, owned, before->number);
    b.white = sa_spread(b.white, owned, before->white);
  }
  /* The first two patterns cut segments for the third. */
  b.segments |= b.number ^ sa_prev(b.number, before->number >> 63);
  b.segments |= b.apart ^ sa_prev(b.apart, before->apart >> 63);
  s->segments = segments_next;
  s->at += 64;
  return b;
}

SA_BEYOND(sa_deepseek_beyond, deepseek, 0, sa_deepseek_stops(&b, &stop, &good))

static int64_t sa_pieces_deepseek(sa_pretok_cursor *c, uint64_t *starts, int64_t count) {
  sa_deepseek_planes b = c->rules.deepseek.planes;
  sa_deepseek_carry carry = c->rules.deepseek.carry;
  sa_stream *s = &c->stream;
  if (s->at == 0) b = sa_deepseek_block(c->alphabet, c->scheme, s, &b);
  for (int64_t k = 0; k < count; k++) {
    sa_deepseek_planes next = sa_deepseek_block(c->alphabet, c->scheme, s, &b);
    u64 open, word = sa_deepseek_starts(&b, &next, &carry, &open);
    if (open && sa_deepseek_beyond(c, &next)) word |= open;
    starts[k] = word;
    b = next;
  }
  c->rules.deepseek.planes = b;
  c->rules.deepseek.carry = carry;
  return count;
}

static int64_t sa_pieces(sa_pretok_cursor *c, uint64_t *starts, int64_t max_blocks) {
  int64_t left = c->stream.blocks - c->given, count = max_blocks < left ? max_blocks : left;
  if (count <= 0) return 0;
  switch (c->scheme->rules) {
    case SA_RULES_GPT2: sa_pieces_gpt2(c, starts, count); break;
    case SA_RULES_CL100K: sa_pieces_cl100k(c, starts, count); break;
    case SA_RULES_O200K:
      if (c->scheme->options.o200k.han) sa_pieces_o200k(c, starts, count, 1);
      else sa_pieces_o200k(c, starts, count, 0);
      break;
    default: sa_pieces_deepseek(c, starts, count); break;
  }
  c->given += count;
  if (c->given == c->stream.blocks && c->stream.n % 64)
    starts[count - 1] &= ~(u64)0 >> (64 - c->stream.n % 64);
  return count;
}
