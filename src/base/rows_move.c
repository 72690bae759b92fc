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
  PART_SIZE = 32,         // bytes that are copied at once
  PARTS_MOST = 32,        // of a row that is not long
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

// No address is wrong here.
FETCHER fetch(const tarn__rows_plan *plan, const tarn__rows_pair *pair) {
  if (plan->fetch_table) fetch_bytes(pair->table, plan->table_bytes);
  if (plan->fetch_dense) fetch_bytes(pair->dense, plan->dense_bytes);
}

// A mover that does |move| with each pair |p| of |plan|: of a copy, which no
// row that is written could have changed.
#define MOVER(name, attributes, move)                                       \
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

// For a short row, a call of memcpy takes longer than the copy, and delays the
// prefetches after it. The last part may overlap the one before.
static inline void copy_row(unsigned char *restrict to,
                            const unsigned char *restrict from, size_t size) {
  if (size < PART_SIZE || size > (size_t)PARTS_MOST * PART_SIZE) {
    memcpy(to, from, size);
    return;
  }
  size_t last = size - PART_SIZE;
  for (size_t at = 0; at < last; at += PART_SIZE) {
    memcpy(to + at, from + at, PART_SIZE);
  }
  memcpy(to + last, from + last, PART_SIZE);
}

MOVER(gather, , copy_row(p.dense, p.table, plan->dense_bytes))
MOVER(scatter, , copy_row(p.table, p.dense, plan->table_bytes))

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))

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
MOVER(gather_sse2, , stream_sse2(p.dense, p.table, plan->dense_bytes))
MOVER(scatter_sse2, , stream_sse2(p.table, p.dense, plan->table_bytes))

STREAM(stream_avx2, AVX2, __m256i, _mm256_loadu_si256, _mm256_stream_si256)
MOVER(gather_avx2, AVX2, stream_avx2(p.dense, p.table, plan->dense_bytes))
MOVER(scatter_avx2, AVX2, stream_avx2(p.table, p.dense, plan->table_bytes))

// NULL: this machine has no writes past the caches.
static tarn__rows_mover *streamer_of(tarn__rows_action action) {
  bool wide = __builtin_cpu_supports("avx2");
  if (action == TARN__ROWS_GATHER) return wide ? gather_avx2 : gather_sse2;
  return wide ? scatter_avx2 : scatter_sse2;
}

void tarn__rows_settle(void) {
  _mm_sfence();
}

#else

static tarn__rows_mover *streamer_of(tarn__rows_action action) {
  (void)action;
  return NULL;
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

static void choose_copy(tarn__rows_plan *plan) {
  bool gathers = plan->action == TARN__ROWS_GATHER;
  plan->move = is_streamed(plan) ? streamer_of(plan->action) : NULL;
  plan->streams = plan->move != NULL;
  if (plan->streams) {
    plan->fetch_table = gathers;
  } else {
    plan->move = gathers ? gather : scatter;
  }
}

// --- converted -------------------------------------------------------------

MOVER(gather_other, ,
      tarn__convert(plan->rows->dense_dtype, p.dense, plan->rows->table_dtype,
                    p.table, plan->rows->width))
MOVER(scatter_other, ,
      tarn__convert(plan->rows->table_dtype, p.table, plan->rows->dense_dtype,
                    p.dense, plan->rows->width))
MOVER(add_other, ,
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
  MOVER(name, , name##_row(p.table, p.dense, plan->rows->width))

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
                          .dense_bytes = tarn__rows_dense_bytes(rows),
                          .fetch_table = true,
                          .fetch_dense = action != TARN__ROWS_GATHER};
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
