// Moves rows, by a loop for each kind of row. Each loop prefetches rows some
// iterations ahead, so that several cache misses overlap: a row of a large
// table is in no cache.
//
//   pairs   [ 0 ][ 1 ][ 2 ] . . . [ 24 ][ 25 ]
//             moved                 fetched
//
// Large outputs are written past the caches, a full line at a time: such a line
// is not read first, and evicts nothing.
#include <string.h>

#include "base/convert.h"
#include "base/rows_move.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
  LINE_SIZE = 64,         // bytes that come at once
  FETCH_SIZE = 256,       // bytes of a row to fetch; the rest comes by itself
  SHORT_TO = 64,          // a row of fewer bytes is copied in two parts
  LONG_FROM = 1024,       // a row of more bytes is copied by memcpy
  STREAM_FROM = 4 << 20,  // bytes of all rows that a cache had better not keep
};

// Always inline: gcc considers a function that only prefetches to be without
// effect, and drops the calls.
#define FETCHER static inline __attribute__((always_inline)) void

// Fetches each of the row's lines once. |bytes| may be NULL, for a row that no
// rank has, so the lines are counted as numbers: NULL has no offsets.
FETCHER fetch_bytes(const unsigned char *bytes, size_t size) {
  const uintptr_t begin = (uintptr_t)bytes;
  const uintptr_t end = begin + (size < FETCH_SIZE ? size : FETCH_SIZE);
  for (uintptr_t line = begin - begin % LINE_SIZE; line < end;
       line += LINE_SIZE)
    __builtin_prefetch((const void *)line);
}

// What is fetched of a row that comes later. No address is wrong here.
FETCHER fetch_table(const tarn__rows_plan *plan, const tarn__rows_pair *pair) {
  fetch_bytes(pair->table, plan->table_bytes);
}

FETCHER fetch_dense(const tarn__rows_plan *plan, const tarn__rows_pair *pair) {
  fetch_bytes(pair->dense, plan->dense_bytes);
}

FETCHER fetch_both(const tarn__rows_plan *plan, const tarn__rows_pair *pair) {
  fetch_table(plan, pair);
  fetch_dense(plan, pair);
}

// A mover that does |move| with each pair |p| of |plan|: of a copy, which no
// row that is written could have changed.
#define MOVER(name, attributes, fetch, move)                                \
  attributes static void name(const tarn__rows_plan *given,                 \
                              const tarn__rows_pair *pairs, size_t count) { \
    const tarn__rows_plan copy = *given;                                    \
    const tarn__rows_plan *plan = &copy;                                    \
    for (size_t k = 0; k < count; k++) {                                    \
      tarn__rows_pair p = pairs[k];                                         \
      fetch(plan, &pairs[k + plan->ahead]);                                 \
      if (p.table != NULL) {                                                \
        move;                                                               \
      } else {                                                              \
        memset(p.dense, 0, plan->dense_bytes);                              \
      }                                                                     \
    }                                                                       \
  }

// Rows without bytes.
static void move_nothing(const tarn__rows_plan *plan,
                         const tarn__rows_pair *pairs, size_t count) {
  (void)plan;
  (void)pairs;
  (void)count;
}

// --- as they are -----------------------------------------------------------

// A call of memcpy takes longer than the copy of a row that is not long, and
// delays the prefetches after it. Such a row is copied in parts, the last of
// which may overlap the one before.

// |size| is that of one part to two of them.
static inline void copy_twice(unsigned char *restrict to,
                              const unsigned char *restrict from, size_t size,
                              size_t part) {
  memcpy(to, from, part);
  memcpy(to + size - part, from + size - part, part);
}

// |size| is 1 to SHORT_TO.
static inline void copy_short(unsigned char *restrict to,
                              const unsigned char *restrict from, size_t size) {
  if (size >= 32) {
    copy_twice(to, from, size, 32);
  } else if (size >= 16) {
    copy_twice(to, from, size, 16);
  } else if (size >= 8) {
    copy_twice(to, from, size, 8);
  } else if (size >= 4) {
    copy_twice(to, from, size, 4);
  } else if (size >= 2) {
    copy_twice(to, from, size, 2);
  } else {
    *to = *from;
  }
}

// |size| is at least that of a part, |part| bytes.
#define IN_PARTS(copy_part, part)                \
  do {                                           \
    size_t last = size - (part);                 \
    for (size_t at = 0; at < last; at += (part)) \
      copy_part(to + at, from + at);             \
    copy_part(to + last, from + last);           \
  } while (0)

static inline void copy_32(unsigned char *restrict to,
                           const unsigned char *restrict from) {
  memcpy(to, from, 32);
}

static inline void copy_parts(unsigned char *restrict to,
                              const unsigned char *restrict from, size_t size) {
  IN_PARTS(copy_32, 32);
}

#define GATHER(copy) copy(p.dense, p.table, plan->dense_bytes)
#define SCATTER(copy) copy(p.table, p.dense, plan->table_bytes)

MOVER(gather_short, , fetch_table, GATHER(copy_short))
MOVER(scatter_short, , fetch_both, SCATTER(copy_short))
MOVER(gather_parts, , fetch_table, GATHER(copy_parts))
MOVER(scatter_parts, , fetch_both, SCATTER(copy_parts))
MOVER(gather_long, , fetch_table, GATHER(memcpy))
MOVER(scatter_long, , fetch_both, SCATTER(memcpy))

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))

AVX2 static inline void copy_64_avx2(unsigned char *restrict to,
                                     const unsigned char *restrict from) {
  const __m256i *vectors = (const __m256i *)(const void *)from;
  __m256i *out = (__m256i *)(void *)to;
  __m256i first = _mm256_loadu_si256(vectors);
  __m256i second = _mm256_loadu_si256(vectors + 1);
  _mm256_storeu_si256(out, first);
  _mm256_storeu_si256(out + 1, second);
}

AVX2 static inline void copy_parts_avx2(unsigned char *restrict to,
                                        const unsigned char *restrict from,
                                        size_t size) {
  IN_PARTS(copy_64_avx2, 64);
}

MOVER(gather_parts_avx2, AVX2, fetch_table, GATHER(copy_parts_avx2))
MOVER(scatter_parts_avx2, AVX2, fetch_both, SCATTER(copy_parts_avx2))

// Copies |size| bytes, a multiple of a line. Rows that do not begin at a line
// would be written in parts, which is slower than a plain copy.
#define STREAM(name, attributes, vector, load, store)                          \
  attributes static inline void name(unsigned char *to,                        \
                                     const unsigned char *from, size_t size) { \
    if ((uintptr_t)to % LINE_SIZE != 0) {                                      \
      memcpy(to, from, size);                                                  \
      return;                                                                  \
    }                                                                          \
    enum { VECTORS = LINE_SIZE / sizeof(vector) };                             \
    for (size_t at = 0; at < size; at += LINE_SIZE) {                          \
      vector line[VECTORS];                                                    \
      for (size_t i = 0; i < VECTORS; i++)                                     \
        line[i] = load((const vector *)(const void *)(from + at) + i);         \
      for (size_t i = 0; i < VECTORS; i++)                                     \
        store((vector *)(void *)(to + at) + i, line[i]);                       \
    }                                                                          \
  }

STREAM(stream_sse2, , __m128i, _mm_loadu_si128, _mm_stream_si128)
MOVER(gather_sse2, , fetch_table, GATHER(stream_sse2))
MOVER(scatter_sse2, , fetch_dense, SCATTER(stream_sse2))

STREAM(stream_avx2, AVX2, __m256i, _mm256_loadu_si256, _mm256_stream_si256)
MOVER(gather_avx2, AVX2, fetch_table, GATHER(stream_avx2))
MOVER(scatter_avx2, AVX2, fetch_dense, SCATTER(stream_avx2))

static bool is_wide(void) {
  return __builtin_cpu_supports("avx2") != 0;
}

// NULL: this machine has no writes past the caches.
static tarn__rows_mover *streamer_of(tarn__rows_action action) {
  if (action == TARN__ROWS_GATHER) return is_wide() ? gather_avx2 : gather_sse2;
  return is_wide() ? scatter_avx2 : scatter_sse2;
}

static tarn__rows_mover *by_parts(tarn__rows_action action) {
  if (action == TARN__ROWS_GATHER)
    return is_wide() ? gather_parts_avx2 : gather_parts;
  return is_wide() ? scatter_parts_avx2 : scatter_parts;
}

void tarn__rows_settle(void) {
  _mm_sfence();
}

#else

static tarn__rows_mover *streamer_of(tarn__rows_action action) {
  (void)action;
  return NULL;
}

static tarn__rows_mover *by_parts(tarn__rows_action action) {
  return action == TARN__ROWS_GATHER ? gather_parts : scatter_parts;
}

void tarn__rows_settle(void) {}

#endif

// Whether rows of |bytes| that stand |stride| apart from |address| on begin
// with a line and are lines.
static bool are_lines(tarn_addr address, size_t stride, size_t bytes) {
  return address % LINE_SIZE == 0 && stride % LINE_SIZE == 0 &&
         bytes % LINE_SIZE == 0;
}

static bool is_much(const tarn__rows_plan *plan) {
  if ((plan->rows->flags & TARN_ROWS_PAST_CACHES) != 0) return true;
  return plan->rows->index_count > STREAM_FROM / plan->table_bytes;
}

// Of chunks of the table, each is looked at row by row.
static bool is_streamed(const tarn__rows_plan *plan) {
  const tarn_rows *rows = plan->rows;
  if (!is_much(plan)) return false;
  if (plan->action == TARN__ROWS_GATHER) {
    return are_lines(rows->dense, rows->dense_stride, plan->dense_bytes);
  }
  return are_lines(rows->table_offset, rows->table_stride, plan->table_bytes);
}

static tarn__rows_mover *copier_of(const tarn__rows_plan *plan) {
  bool gathers = plan->action == TARN__ROWS_GATHER;
  if (plan->table_bytes < SHORT_TO)
    return gathers ? gather_short : scatter_short;
  if (plan->table_bytes > LONG_FROM)
    return gathers ? gather_long : scatter_long;
  return by_parts(plan->action);
}

static void choose_copy(tarn__rows_plan *plan) {
  plan->move = is_streamed(plan) ? streamer_of(plan->action) : NULL;
  plan->streams = plan->move != NULL;
  if (!plan->streams) plan->move = copier_of(plan);
}

// --- converted -------------------------------------------------------------

MOVER(gather_other, , fetch_table,
      tarn__convert(plan->rows->dense_dtype, p.dense, plan->rows->table_dtype,
                    p.table, plan->rows->width))
MOVER(scatter_other, , fetch_both,
      tarn__convert(plan->rows->table_dtype, p.table, plan->rows->dense_dtype,
                    p.dense, plan->rows->width))
MOVER(add_other, , fetch_both,
      tarn__convert_add(plan->rows->table_dtype, p.table,
                        plan->rows->dense_dtype, p.dense, plan->rows->width))

// --- added -----------------------------------------------------------------

// Integers add as unsigned ones do. By memcpy, because addresses have any
// alignment.
#define ADDER(name, type)                                                     \
  static inline void name##_row(unsigned char *to, const unsigned char *from, \
                                size_t count) {                               \
    for (size_t k = 0; k < count; k++) {                                      \
      type sum;                                                               \
      type more;                                                              \
      memcpy(&sum, to + k * sizeof sum, sizeof sum);                          \
      memcpy(&more, from + k * sizeof more, sizeof more);                     \
      sum = (type)(sum + more);                                               \
      memcpy(to + k * sizeof sum, &sum, sizeof sum);                          \
    }                                                                         \
  }                                                                           \
  MOVER(name, , fetch_both, name##_row(p.table, p.dense, plan->rows->width))

ADDER(add_f64, double)
ADDER(add_f32, float)
ADDER(add_64, uint64_t)
ADDER(add_32, uint32_t)
ADDER(add_16, uint16_t)
ADDER(add_8, uint8_t)

static tarn__rows_mover *adder_of(tarn_dtype dtype) {
  static tarn__rows_mover *const adders[] = {
      [TARN_DTYPE_F64] = add_f64,   [TARN_DTYPE_F32] = add_f32,
      [TARN_DTYPE_F16] = add_other, [TARN_DTYPE_BF16] = add_other,
      [TARN_DTYPE_I64] = add_64,    [TARN_DTYPE_I32] = add_32,
      [TARN_DTYPE_I16] = add_16,    [TARN_DTYPE_I8] = add_8,
      [TARN_DTYPE_U64] = add_64,    [TARN_DTYPE_U32] = add_32,
      [TARN_DTYPE_U16] = add_16,    [TARN_DTYPE_U8] = add_8,
  };
  return adders[dtype];
}

static tarn__rows_mover *converter_of(tarn__rows_action action) {
  static tarn__rows_mover *const converters[] = {
      [TARN__ROWS_GATHER] = gather_other,
      [TARN__ROWS_SCATTER] = scatter_other,
      [TARN__ROWS_SCATTER_ADD] = add_other,
  };
  return converters[action];
}

// Measured. Writes past the caches share a queue with the prefetches.
static size_t ahead_of(const tarn__rows_plan *plan) {
  enum { FEW = 16, SHORT = 512 };
  bool gathers = plan->action == TARN__ROWS_GATHER;
  return gathers && plan->table_bytes <= SHORT ? TARN__ROWS_AHEAD : FEW;
}

tarn__rows_plan tarn__rows_choose(tarn__rows_action action,
                                  const tarn_rows *rows) {
  tarn__rows_plan plan = {.action = action,
                          .rows = rows,
                          .table_bytes = tarn__rows_table_bytes(rows),
                          .dense_bytes = tarn__rows_dense_bytes(rows)};
  plan.ahead = ahead_of(&plan);
  if (plan.table_bytes == 0) {
    plan.move = move_nothing;
  } else if (rows->table_dtype != rows->dense_dtype) {
    plan.move = converter_of(action);
  } else if (action == TARN__ROWS_SCATTER_ADD) {
    plan.move = adder_of(rows->table_dtype);
  } else {
    choose_copy(&plan);
  }
  return plan;
}
