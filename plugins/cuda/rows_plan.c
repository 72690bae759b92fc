// Which kernels a call of rows needs. Rows whose elements stay as they are move
// by units, as wide as all addresses, strides and the row allow.
//
// A table that lies in one chunk, as far as rows are in it, needs one launch.
// Of one in several, each launch has as many as its arguments have room for,
// and passes over rows of the others: nothing outlives the call that way, and a
// captured graph has all that it needs. It costs a read of the indices for each
// launch.
//
//   chunks     | 0 | 1 | 2 | ... | 239 |   | 240 | ...
//   launches   '------- first ---------'   '-- second
#include "rows_plan.h"

#include <math.h>

#include "base/convert.h"
#include "base/status.h"

enum {
  WIDEST = 16,              // bytes that a thread moves at a time
  GATHER_BLOCKS = 32,       // of a unit: some run, the others even the load out
  SCATTER_LEAST = 8 << 10,  // bytes that are worth a block, which reads all
                            // indices
  STREAM_FROM = 16 << 20,  // bytes of all rows that a cache had better not keep
};

typedef struct plan {
  const tarn_rows *rows;
  tarn__rows_action action;
  size_t units;     // multiprocessors
  size_t begin;     // of the rows in the table; |end| is the same: there are
  size_t end;       // none with bytes
  unsigned kernel;  // its number
  tarn__cuda_rows args;
} plan;

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

static size_t ceil_div(size_t a, size_t b) {
  return a / b + (a % b != 0);
}

// --- chunks ----------------------------------------------------------------

// Whether rows may be in chunk |i|.
static bool is_used(const plan *p, size_t i) {
  const size_t *offsets = p->rows->table.offsets;
  return offsets[i] < offsets[i + 1] && offsets[i + 1] > p->begin &&
         offsets[i] < p->end;
}

static size_t count_used(const plan *p, size_t *out_last) {
  size_t count = 0;
  for (size_t i = 0; i < p->rows->table.count; i++) {
    if (!is_used(p, i)) continue;
    *out_last = i;
    count++;
  }
  return count;
}

static void find_extent(plan *p) {
  const tarn_rows *rows = p->rows;
  p->begin = p->end = rows->table_offset;
  if (rows->table_count == 0 || rows->width == 0) return;
  p->end += (rows->table_count - 1) * rows->table_stride +
            tarn__rows_table_bytes(rows);
}

// --- the kind of rows ------------------------------------------------------

static bool is_float(tarn_dtype dtype) {
  return dtype <= TARN_DTYPE_BF16;
}

// Whether elements of the two are the same bytes.
static bool is_same(tarn_dtype a, tarn_dtype b) {
  bool integers = !is_float(a) && !is_float(b);
  return a == b || (integers && tarn_dtype_size(a) == tarn_dtype_size(b));
}

// A number that has the powers of two of all addresses of rows.
static uint64_t table_bits(const plan *p) {
  const tarn_rows *rows = p->rows;
  uint64_t bits = rows->table_offset | rows->table_stride;
  for (size_t i = 0; i < rows->table.count; i++)
    if (is_used(p, i)) bits |= rows->table.chunks[i] - rows->table.offsets[i];
  return bits;
}

static uint64_t dense_bits(const plan *p) {
  return p->rows->dense | p->rows->dense_stride;
}

static uint32_t access_of(tarn_dtype dtype, uint64_t bits) {
  uint32_t size = (uint32_t)tarn_dtype_size(dtype);
  return bits % size == 0 ? size : size | TARN__CUDA_ROWS_BYTES;
}

static size_t unit_of(const plan *p) {
  uint64_t bits =
      table_bits(p) | dense_bits(p) | tarn__rows_table_bytes(p->rows);
  size_t widest = WIDEST;
  while (widest > 1 && bits % widest != 0)
    widest /= 2;
  return widest;
}

static unsigned log_of(size_t power) {
  unsigned log = 0;
  while (power >> log > 1)
    log++;
  return log;
}

static unsigned first_kernel(const plan *p) {
  switch (p->action) {
    case TARN__ROWS_SCATTER:
      return TARN__CUDA_KERNEL_scatter_elements;
    case TARN__ROWS_SCATTER_ADD:
      return TARN__CUDA_KERNEL_add_elements;
    default:
      return TARN__CUDA_KERNEL_gather_elements;
  }
}

// Of rows without bytes the indices are checked, which each of the kernels
// does.
static void describe_rows(plan *p) {
  const tarn_rows *rows = p->rows;
  tarn__cuda_rows *a = &p->args;
  p->kernel = first_kernel(p);
  if (rows->width == 0) {
    p->kernel = TARN__CUDA_KERNEL_gather_1;
    return;
  }
  bool same = is_same(rows->table_dtype, rows->dense_dtype);
  a->units = rows->width;
  a->table_dtype = rows->table_dtype;
  a->dense_dtype = same ? rows->table_dtype : rows->dense_dtype;
  a->table_access = access_of(rows->table_dtype, table_bits(p));
  a->dense_access = access_of(rows->dense_dtype, dense_bits(p));
  if (!same || p->action == TARN__ROWS_SCATTER_ADD) return;
  size_t unit = unit_of(p);
  a->units = tarn__rows_table_bytes(rows) / unit;
  p->kernel += 1 + log_of(unit);
}

// A row has as many threads as it has units, up to a warp.
static void describe_lanes(tarn__cuda_rows *a) {
  while (a->lanes < TARN__CUDA_LANES_LOG && a->units > (uint64_t)1 << a->lanes)
    a->lanes++;
  while (a->spread < TARN__CUDA_SLOTS_LOG &&
         a->units > (uint64_t)1 << (a->lanes + a->spread))
    a->spread++;
}

// The NaN of this processor, with which devices are to agree.
static bool makes_negative_nan(void) {
  volatile double infinite = INFINITY;
  return signbit(infinite - infinite) != 0;
}

static bool is_streamed(const tarn_rows *rows) {
  size_t bytes = tarn__rows_table_bytes(rows);
  return (rows->flags & TARN_ROWS_PAST_CACHES) != 0 ||
         (bytes != 0 && rows->index_count > STREAM_FROM / bytes);
}

static uint32_t flags_of(const plan *p) {
  uint32_t flags = 0;
  bool gathers = p->action == TARN__ROWS_GATHER;
  if ((p->rows->flags & TARN_ROWS_SKIP_BAD) != 0) flags |= TARN__CUDA_ROWS_SKIP;
  if (gathers) flags |= TARN__CUDA_ROWS_CLEAR;
  if (is_streamed(p->rows)) flags |= TARN__CUDA_ROWS_STREAM;
  if (makes_negative_nan()) flags |= TARN__CUDA_ROWS_NEGATIVE;
  return flags;
}

static void describe(plan *p) {
  const tarn_rows *rows = p->rows;
  tarn__cuda_rows *a = &p->args;
  a->table_stride = rows->table_stride;
  a->table_count = rows->table_count;
  a->dense = rows->dense;
  a->dense_stride = rows->dense_stride;
  a->indices = rows->indices;
  a->count = rows->index_count;
  a->index_access = access_of(rows->index_dtype, rows->indices);
  a->flags = flags_of(p);
  describe_rows(p);
  describe_lanes(a);
}

// --- blocks ----------------------------------------------------------------

static bool is_gather(const plan *p) {
  return p->kernel <= TARN__CUDA_KERNEL_gather_16;
}

// Of a gather each has a part of the positions; of a scatter, of the rows.
static size_t blocks_of(const plan *p) {
  size_t count = p->rows->index_count;
  if (is_gather(p)) {
    size_t rows = ((size_t)TARN__CUDA_GATHER_THREADS >> p->args.lanes)
                  << (TARN__CUDA_SLOTS_LOG - p->args.spread);
    return least(ceil_div(count, rows), p->units * GATHER_BLOCKS);
  }
  size_t each = ceil_div(SCATTER_LEAST, tarn__rows_table_bytes(p->rows));
  return least(ceil_div(count, each), p->units);
}

static tarn__cuda_launch launch_of(const plan *p, bool many, void *arguments) {
  return (tarn__cuda_launch){
      .kernel = p->kernel,
      .many = many,
      .blocks = (unsigned)blocks_of(p),
      .threads =
          is_gather(p) ? TARN__CUDA_GATHER_THREADS : TARN__CUDA_SCATTER_THREADS,
      .arguments = arguments,
  };
}

// --- launches --------------------------------------------------------------

// Of a table in one chunk, the last that is used; or in none.
static unsigned launch_one(plan *p, size_t used, size_t last,
                           tarn__cuda_launcher *launch, void *context) {
  const tarn_reference *table = &p->rows->table;
  if (used != 0) {
    p->args.table =
        table->chunks[last] + (p->rows->table_offset - table->offsets[last]);
  }
  tarn__cuda_launch one = launch_of(p, false, &p->args);
  return launch(context, &one);
}

// Puts chunks from |i| on into |many|. Returns the first that has no room.
static size_t fill(const plan *p, size_t i, tarn__cuda_rows_many *many) {
  const tarn_reference *table = &p->rows->table;
  many->chunks = 0;
  for (; i < table->count && many->chunks < TARN__CUDA_CHUNKS_MOST; i++) {
    if (!is_used(p, i)) continue;
    many->addresses[many->chunks] = table->chunks[i];
    many->offsets[many->chunks] = table->offsets[i];
    many->offsets[++many->chunks] = table->offsets[i + 1];
  }
  return i;
}

// Only the first clears rows of bad indices: each finds all of them.
static unsigned launch_many(const plan *p, size_t used,
                            tarn__cuda_launcher *launch, void *context) {
  tarn__cuda_rows_many many = {.rows = p->args,
                               .table_offset = p->rows->table_offset,
                               .row_bytes = tarn__rows_table_bytes(p->rows)};
  unsigned error = 0;
  size_t i = 0;
  for (size_t done = 0; done < used && error == 0; done += many.chunks) {
    i = fill(p, i, &many);
    tarn__cuda_launch one = launch_of(p, true, &many);
    error = launch(context, &one);
    many.rows.flags &= ~TARN__CUDA_ROWS_CLEAR;
  }
  return error;
}

unsigned tarn__cuda_rows_plan(tarn__rows_action action, const tarn_rows *rows,
                              size_t units, uint64_t fault, uint64_t serial,
                              tarn__cuda_launcher *launch, void *context) {
  plan p = {.rows = rows,
            .action = action,
            .units = units != 0 ? units : 1,
            .args = {.fault = fault, .serial = serial}};
  size_t last = 0;
  if (rows->index_count == 0) return 0;
  find_extent(&p);
  describe(&p);
  size_t used = count_used(&p, &last);
  return used > 1 ? launch_many(&p, used, launch, context)
                  : launch_one(&p, used, last, launch, context);
}
