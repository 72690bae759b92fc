// rows.cl - gather, scatter and scatter_add, in OpenCL C 1.2. The build puts
// rows_args.h before this text. One kernel, of which a program is made by
//
//   ACTION   TARN__OPENCL_GATHER and its kin
//   UNIT     1, 2, 4, 8, 16: rows move as they are, by units of so many bytes;
//            0: their elements are converted or added
//   SOLO     a work item is a worker of its own: for processors
//   F64      there are doubles
//   DENORM   there are subnormal floats
//   NEGATIVE_NAN  the sign of a NaN that the host makes of two infinities
//
// Gathers are shared by position, since each dense row is written once. The
// others are shared by row: a worker walks all indices, in order, and moves the
// rows of its part. So equal indices keep their order, and nothing is added by
// atomic operations, whose order is nobody's. That an index is read by each
// worker costs little beside the row that it names: workers are as many as the
// device computes at once, and no more.
//
//   indices     7  3  9  7  1  3        worker 0 has rows 7 and 1,
//   worker 0    *        *  *           worker 1 has rows 3 and 9
//   worker 1       *  *        *
//
// On a processor a work item moves whole rows. Elsewhere work items side by
// side share a row, so that what they read and write is side by side too.

typedef tarn__opencl_rows_args rows_args;
typedef tarn__opencl_fault rows_fault;

typedef __global uchar *bytes_out;
typedef const __global uchar *bytes_in;

// What one driver's compiler has beyond the language, whose prefetch() does
// nothing there: fetching, and writing past the caches.
#if defined(SOLO) && defined(POCL_DEVICE_ADDRESS_BITS)
#define HINTS
#endif

#define LINE 64  // bytes

// Whether rows are written past the caches.
#if defined(HINTS) && UNIT == 8
#define STREAMS(args) (((args)->flags & TARN__OPENCL_ROWS_STREAM) != 0)
#else
#define STREAMS(args) 0
#endif

// Work items of a worker.
#ifdef SOLO
#define LANES(args) 1ul
#else
#define LANES(args) (args)->lanes
#endif

// --- rows as they are ------------------------------------------------------

#if UNIT == 1
typedef uchar unit;
#elif UNIT == 2
typedef ushort unit;
#elif UNIT == 4
typedef uint unit;
#elif UNIT == 8
typedef ulong unit;
#elif UNIT == 16
typedef uint4 unit;
#endif

#if UNIT != 0

#ifdef SOLO
#define AT_ONCE 16

#if defined(HINTS) && UNIT == 8
static void stream_row(__global unit *restrict to,
                       const __global unit *restrict from, const rows_args *a) {
  for (ulong i = 0; i < a->units; i += LINE / UNIT)
    __builtin_nontemporal_store(vload8(0, from + i),
                                (__global ulong8 *)(to + i));
}
#endif

static void move_row(__global unit *restrict to,
                     const __global unit *restrict from, const rows_args *a,
                     ulong lane) {
  ulong i = 0;
#if defined(HINTS) && UNIT == 8
  if (STREAMS(a)) {
    stream_row(to, from, a);
    return;
  }
#endif
  for (; i + AT_ONCE <= a->units; i += AT_ONCE)
    vstore16(vload16(0, from + i), 0, to + i);
  for (; i < a->units; i++)
    to[i] = from[i];
}
#else
static void move_row(__global unit *restrict to,
                     const __global unit *restrict from, const rows_args *a,
                     ulong lane) {
  for (ulong i = lane; i < a->units; i += LANES(a))
    to[i] = from[i];
}
#endif

static void move(const rows_args *a, bytes_out table, bytes_out dense,
                 ulong lane) {
#if ACTION == TARN__OPENCL_GATHER
  move_row((__global unit *)dense, (const __global unit *)table, a, lane);
#else
  move_row((__global unit *)table, (const __global unit *)dense, a, lane);
#endif
}

#endif  // UNIT != 0

// --- elements --------------------------------------------------------------

#if UNIT == 0

#define F64_DTYPE 1
#define F32_DTYPE 2
#define F16_DTYPE 3
#define BF16_DTYPE 4
#define I32_DTYPE 6
#define I16_DTYPE 7
#define I8_DTYPE 8

// So many at a time, through one wide type for each family: the bits of a
// double hold every floating point number of ours, and 64 bits every integer.
// A choice by dtype is made for each block, and not for each element.
#ifdef SOLO
#define BLOCK 32
#else
#define BLOCK 1
#endif

#define SIGN 0x8000000000000000ul
#define INFINITE 0x7ff0000000000000ul

static ulong bytes_at(bytes_in from, uint size) {
  ulong bits = 0;
  for (uint i = 0; i < size; i++)
    bits |= (ulong)from[i] << (8 * i);
  return bits;
}

static void put_bytes(bytes_out to, uint size, ulong bits) {
  for (uint i = 0; i < size; i++)
    to[i] = (uchar)(bits >> (8 * i));
}

// The bits of |count| elements, extended by zeros.
static void load(ulong *block, bytes_in from, uint access, uint count) {
  if (access == 8) {
    for (uint k = 0; k < count; k++)
      block[k] = ((const __global ulong *)from)[k];
  } else if (access == 4) {
    for (uint k = 0; k < count; k++)
      block[k] = ((const __global uint *)from)[k];
  } else if (access == 2) {
    for (uint k = 0; k < count; k++)
      block[k] = ((const __global ushort *)from)[k];
  } else if (access == 1) {
    for (uint k = 0; k < count; k++)
      block[k] = from[k];
  } else {
    uint size = access - TARN__OPENCL_ROWS_BYTES;
    for (uint k = 0; k < count; k++)
      block[k] = bytes_at(from + k * size, size);
  }
}

static void store(bytes_out to, const ulong *block, uint access, uint count) {
  if (access == 8) {
    for (uint k = 0; k < count; k++)
      ((__global ulong *)to)[k] = block[k];
  } else if (access == 4) {
    for (uint k = 0; k < count; k++)
      ((__global uint *)to)[k] = (uint)block[k];
  } else if (access == 2) {
    for (uint k = 0; k < count; k++)
      ((__global ushort *)to)[k] = (ushort)block[k];
  } else if (access == 1) {
    for (uint k = 0; k < count; k++)
      to[k] = (uchar)block[k];
  } else {
    uint size = access - TARN__OPENCL_ROWS_BYTES;
    for (uint k = 0; k < count; k++)
      put_bytes(to + k * size, size, block[k]);
  }
}

// --- floating point, by its bits ---------------------------------------------
// A type has |mantissa| bits, |bias|, and infinity in its bits without the
// sign. Nothing here depends on how a device rounds, or treats subnormals.

// The double of |bits|. Subnormals are small integers of their last bit's
// size, which a float holds. |quiet| is set in a NaN.
static ulong widen(ulong bits, uint width, uint mantissa, uint bias,
                   ulong quiet) {
  ulong sign = bits >> (width - 1) << 63;
  ulong rest = bits & ((1ul << (width - 1)) - 1);
  ulong infinity = ((1ul << (width - 1)) - 1) >> mantissa << mantissa;
  ulong wide = (rest << (52 - mantissa)) + ((ulong)(1023 - bias) << 52);
  ulong small = ((ulong)as_uint((float)(uint)rest) << 29) +
                ((ulong)(1023 - 127 - (bias - 1 + mantissa)) << 52);
  ulong above =
      INFINITE | (rest << (52 - mantissa) & (INFINITE - 1) & ((1ul << 52) - 1));
  wide = rest < (1ul << mantissa) ? small : wide;
  wide = rest == 0 ? 0 : wide;
  wide = rest >= infinity ? above : wide;
  wide = rest > infinity ? wide | quiet : wide;
  return sign | wide;
}

// The nearest to the double |bits|, ties to even. A carry out of the mantissa
// is right in the exponent. A NaN stays a NaN by its highest bit.
static ulong narrow(ulong bits, uint width, uint mantissa, uint bias) {
  ulong sign = bits >> 63 << (width - 1);
  ulong rest = bits & ~SIGN;
  ulong infinity = ((1ul << (width - 1)) - 1) >> mantissa << mantissa;
  uint shift = 52 - mantissa;
  uint exponent = (uint)(rest >> 52);
  uint least = 1024 - bias;  // of a number that is not subnormal
  ulong below = (1ul << (shift - 1)) - 1;
  ulong normal =
      (rest - ((ulong)(1023 - bias) << 52) + below + ((rest >> shift) & 1)) >>
      shift;
  // Subnormals lose more bits; all of them at a shift of 54.
  uint more = shift + (exponent < least ? least - exponent : 0);
  more = more < 54 ? more : 54;
  ulong digits = (rest & ((1ul << 52) - 1)) | (1ul << 52);
  ulong small =
      (digits + (1ul << (more - 1)) - 1 + ((digits >> more) & 1)) >> more;
  ulong number = exponent < least ? small : normal;
  number = number < infinity ? number : infinity;
  ulong payload = (rest >> shift) & ((1ul << mantissa) - 1);
  ulong nan = infinity | (1ul << (mantissa - 1)) | payload;
  return sign | (rest > INFINITE ? nan : number);
}

#define QUIET (1ul << 51)

// In place, like all below. Integers get their signs.
static void widen_block(ulong *block, uint dtype, uint count) {
  if (dtype == F32_DTYPE) {
    for (uint k = 0; k < count; k++)
      block[k] = widen(block[k], 32, 23, 127, QUIET);
  } else if (dtype == F16_DTYPE) {
    for (uint k = 0; k < count; k++)
      block[k] = widen(block[k], 16, 10, 15, 0);
  } else if (dtype == BF16_DTYPE) {
    for (uint k = 0; k < count; k++)
      block[k] = widen(block[k], 16, 7, 127, QUIET);
  } else if (dtype == I32_DTYPE) {
    for (uint k = 0; k < count; k++)
      block[k] = (ulong)(long)(int)block[k];
  } else if (dtype == I16_DTYPE) {
    for (uint k = 0; k < count; k++)
      block[k] = (ulong)(long)(short)block[k];
  } else if (dtype == I8_DTYPE) {
    for (uint k = 0; k < count; k++)
      block[k] = (ulong)(long)(char)block[k];
  }
}

// Integers lose their upper bits when they are stored.
static void narrow_block(ulong *block, uint dtype, uint count) {
  if (dtype == F32_DTYPE) {
    for (uint k = 0; k < count; k++)
      block[k] = narrow(block[k], 32, 23, 127);
  } else if (dtype == F16_DTYPE) {
    for (uint k = 0; k < count; k++)
      block[k] = narrow(block[k], 16, 10, 15);
  } else if (dtype == BF16_DTYPE) {
    for (uint k = 0; k < count; k++)
      block[k] = narrow(block[k], 16, 7, 127);
  }
}

static void convert_block(ulong *block, uint to, uint from, uint count) {
  if (to == from) return;
  widen_block(block, from, count);
  narrow_block(block, to, count);
}

// --- sums ------------------------------------------------------------------
// Devices differ in the NaN that they make, so it is made here: of two the
// first stays.

#ifdef NEGATIVE_NAN
#define NAN_SIGN 1
#else
#define NAN_SIGN 0
#endif

#ifdef DENORM
static uint add_f32(uint sum, uint more) {
  uint result = as_uint(as_float(sum) + as_float(more));
  uint nan = 0x7fc00000u | (uint)NAN_SIGN << 31;
  nan = (more & 0x7fffffffu) > 0x7f800000u ? more | 0x400000u : nan;
  nan = (sum & 0x7fffffffu) > 0x7f800000u ? sum | 0x400000u : nan;
  return (result & 0x7fffffffu) > 0x7f800000u ? nan : result;
}
#endif

// The sum of two doubles, or of what doubles hold that are floats.
static ulong add_f64(ulong sum, ulong more) {
#ifdef F64
  ulong result = as_ulong(as_double(sum) + as_double(more));
#else
  float both = as_float((uint)narrow(sum, 32, 23, 127)) +
               as_float((uint)narrow(more, 32, 23, 127));
  ulong result = widen(as_uint(both), 32, 23, 127, QUIET);
#endif
  ulong nan = INFINITE | QUIET | (ulong)NAN_SIGN << 63;
  nan = (more & ~SIGN) > INFINITE ? more | QUIET : nan;
  nan = (sum & ~SIGN) > INFINITE ? sum | QUIET : nan;
  return (result & ~SIGN) > INFINITE ? nan : result;
}

// Both are of |dtype|. A sum of two numbers of a type that is rounded to the
// wider one, and then to the type, is as if it were rounded once.
static void add_block(ulong *sum, ulong *more, uint dtype, uint count) {
  if (dtype > BF16_DTYPE) {
    for (uint k = 0; k < count; k++)
      sum[k] += more[k];
    return;
  }
#ifdef DENORM
  if (dtype == F32_DTYPE) {
    for (uint k = 0; k < count; k++)
      sum[k] = add_f32((uint)sum[k], (uint)more[k]);
    return;
  }
#endif
  widen_block(sum, dtype, count);
  widen_block(more, dtype, count);
  for (uint k = 0; k < count; k++)
    sum[k] = add_f64(sum[k], more[k]);
  narrow_block(sum, dtype, count);
}

// --- rows, by their elements -----------------------------------------------

static void move_block(const rows_args *a, bytes_out table, bytes_out dense,
                       uint count) {
  uint table_dtype = (uint)a->table_dtype;
  uint dense_dtype = (uint)a->dense_dtype;
  ulong block[BLOCK];
#if ACTION == TARN__OPENCL_GATHER
  load(block, table, (uint)a->table_access, count);
  convert_block(block, dense_dtype, table_dtype, count);
  store(dense, block, (uint)a->dense_access, count);
#elif ACTION == TARN__OPENCL_SCATTER
  load(block, dense, (uint)a->dense_access, count);
  convert_block(block, table_dtype, dense_dtype, count);
  store(table, block, (uint)a->table_access, count);
#else
  ulong sum[BLOCK];
  load(block, dense, (uint)a->dense_access, count);
  convert_block(block, table_dtype, dense_dtype, count);
  load(sum, table, (uint)a->table_access, count);
  add_block(sum, block, table_dtype, count);
  store(table, sum, (uint)a->table_access, count);
#endif
}

#if ACTION == TARN__OPENCL_SCATTER_ADD

// Sums of one type, where it stands as devices have it, take no detour.
#define ADDER(name, type, add)                                             \
  static void name(__global type *restrict to,                             \
                   const __global type *restrict from, const rows_args *a, \
                   ulong lane) {                                           \
    for (ulong k = lane; k < a->units; k += LANES(a))                      \
      to[k] = add(to[k], from[k]);                                         \
  }

#define PLUS(sum, more) ((sum) + (more))

ADDER(add_row_f64, ulong, add_f64)
ADDER(add_row_64, ulong, PLUS)
ADDER(add_row_32, uint, PLUS)
#ifdef DENORM
ADDER(add_row_f32, uint, add_f32)
#endif

static bool add_row(const rows_args *a, bytes_out to, bytes_in from,
                    ulong lane) {
  ulong dtype = a->table_dtype;
  ulong access = a->table_access;
  if (a->dense_dtype != dtype || a->dense_access != access) return false;
  if (dtype == F64_DTYPE && access == 8) {
    add_row_f64((__global ulong *)to, (const __global ulong *)from, a, lane);
    return true;
  }
#ifdef DENORM
  if (dtype == F32_DTYPE && access == 4) {
    add_row_f32((__global uint *)to, (const __global uint *)from, a, lane);
    return true;
  }
#endif
  if (dtype > BF16_DTYPE && access == 8) {
    add_row_64((__global ulong *)to, (const __global ulong *)from, a, lane);
    return true;
  }
  if (dtype > BF16_DTYPE && access == 4) {
    add_row_32((__global uint *)to, (const __global uint *)from, a, lane);
    return true;
  }
  return false;
}

#endif

static void move(const rows_args *a, bytes_out table, bytes_out dense,
                 ulong lane) {
#if ACTION == TARN__OPENCL_SCATTER_ADD
  if (add_row(a, table, dense, lane)) return;
#endif
  uint table_size = (uint)a->table_access & (TARN__OPENCL_ROWS_BYTES - 1);
  uint dense_size = (uint)a->dense_access & (TARN__OPENCL_ROWS_BYTES - 1);
  for (ulong at = lane * BLOCK; at < a->units; at += LANES(a) * BLOCK) {
    ulong left = a->units - at;
    uint count = left < BLOCK ? (uint)left : BLOCK;
    move_block(a, table + at * table_size, dense + at * dense_size, count);
  }
}

#endif  // UNIT == 0

// --- rows and indices ------------------------------------------------------

typedef struct rows_walk {
  const rows_args *args;
  bytes_out table;
  bytes_out dense;
  bytes_in indices;
  const __global ulong *chunks;
  volatile __global rows_fault *fault;
  ulong worker;
  ulong lane;
} rows_walk;

static long index_at(const rows_walk *w, ulong position) {
  uint access = (uint)w->args->index_access;
  if (access == 8) return ((const __global long *)w->indices)[position];
  if (access == 4) return ((const __global int *)w->indices)[position];
  long index = 0;
  uint size = access - TARN__OPENCL_ROWS_BYTES;
  bytes_in from = w->indices + position * size;
  for (uint i = 0; i < size; i++)
    index |= (long)from[i] << (8 * i);
  return size == 8 ? index : (long)(int)index;
}

// Notes a fault at |position|, of the launch.
static void note(const rows_walk *w, ulong position) {
  atomic_min(&w->fault->position, (uint)position);
}

#define PLACED 0
#define ELSEWHERE 1  // in a chunk that another launch has
#define SPANS 2      // two chunks

// Where the row at |offset| of the table is, if it is PLACED.
static int place_in_chunk(const rows_walk *w, ulong offset, bytes_out *out) {
  const rows_args *a = w->args;
  if (offset < a->begin || offset >= a->end) return ELSEWHERE;
  if (a->table_bytes > a->end - offset) return SPANS;
  *out = w->table + (offset - a->begin);
  return PLACED;
}

// The last chunk that begins at or before |offset|.
static int place_by_search(const rows_walk *w, ulong offset, bytes_out *out) {
  const rows_args *a = w->args;
  const __global ulong *offsets = w->chunks + a->chunks;
  ulong low = 0;
  for (ulong left = a->chunks; left > 1;) {
    ulong step = left / 2;
    if (offsets[low + step] <= offset) low += step;
    left -= step;
  }
  if (offset + a->table_bytes > offsets[low + 1]) return SPANS;
  *out = (bytes_out)(uintptr_t)(w->chunks[low] + (offset - offsets[low]));
  return PLACED;
}

static int place(const rows_walk *w, ulong index, bytes_out *out) {
  const rows_args *a = w->args;
  ulong offset = a->table_offset + index * a->table_stride;
  if ((a->flags & TARN__OPENCL_ROWS_SEARCH) != 0)
    return place_by_search(w, offset, out);
  return place_in_chunk(w, offset, out);
}

// Those below 0 are large.
static bool has(const rows_args *a, ulong index) {
  return index < a->table_count;
}

static bytes_out dense_row(const rows_walk *w, ulong position) {
  return w->dense + position * w->args->dense_stride;
}

// A bad index comes seldom, so that bytes do.
static void clear_row(const rows_walk *w, ulong position) {
  const rows_args *a = w->args;
#if UNIT != 0
  ulong size = a->units * UNIT;
#else
  ulong size = a->units * (a->dense_access & (TARN__OPENCL_ROWS_BYTES - 1));
#endif
  bytes_out dense = dense_row(w, position);
  for (ulong i = w->lane; i < size; i += LANES(a))
    dense[i] = 0;
}

// What is to be done with an index that does not exist. False: a fault.
static bool pass_over(const rows_walk *w, ulong position) {
  if ((w->args->flags & TARN__OPENCL_ROWS_SKIP) == 0) return false;
  if ((w->args->flags & TARN__OPENCL_ROWS_CLEAR) != 0) clear_row(w, position);
  return true;
}

// --- rows that are held ----------------------------------------------------
// A row comes from far away, and nobody knows yet which: a processor fetches
// its lines when it is found, and moves it when some more have been found.

#ifdef SOLO

#define HELD 16    // rows
#define FETCH 256  // bytes of one; the rest comes by itself

typedef struct rows_held {
  bytes_out tables[HELD];
  ulong positions[HELD];
  ulong count;  // of all so far
} rows_held;

static void fetch_row(bytes_in row, ulong size) {
  for (ulong at = 0; at < size && at < FETCH; at += LINE) {
#ifdef HINTS
    __builtin_prefetch(row + at);
#else
    prefetch(row + at, 1);
#endif
  }
}

// Dense rows of a gather are written one behind the other.
static void fetch(const rows_args *a, bytes_in table, bytes_in dense) {
#if ACTION == TARN__OPENCL_GATHER
  fetch_row(table, a->table_bytes);
#else
  if (!STREAMS(a)) fetch_row(table, a->table_bytes);
  fetch_row(dense, a->table_bytes);
#endif
}

static void move_held(const rows_walk *w, const rows_held *held, ulong which) {
  uint slot = (uint)(which % HELD);
  move(w->args, held->tables[slot], dense_row(w, held->positions[slot]), 0);
}

static void take(const rows_walk *w, rows_held *held, bytes_out table,
                 ulong position) {
  uint slot = (uint)(held->count % HELD);
  if (held->count >= HELD) move_held(w, held, held->count - HELD);
  fetch(w->args, table, dense_row(w, position));
  held->tables[slot] = table;
  held->positions[slot] = position;
  held->count++;
}

static void take_last(const rows_walk *w, const rows_held *held) {
  ulong which = held->count > HELD ? held->count - HELD : 0;
  for (; which < held->count; which++)
    move_held(w, held, which);
}

#else

typedef struct rows_held {
  ulong count;
} rows_held;

static void take(const rows_walk *w, rows_held *held, bytes_out table,
                 ulong position) {
  move(w->args, table, dense_row(w, position), w->lane);
  held->count++;
}

static void take_last(const rows_walk *w, const rows_held *held) {}

#endif

// --- all of a worker's rows ------------------------------------------------

// Does what |index|, at |position|, wants. False: a fault.
static bool visit(const rows_walk *w, rows_held *held, ulong position,
                  ulong index) {
  bytes_out table = 0;
  if (!has(w->args, index)) return pass_over(w, position);
  if (w->args->table_bytes == 0) return true;
  int where = place(w, index, &table);
  if (where == PLACED) take(w, held, table, position);
  return where != SPANS;
}

// These end at the first fault: rows are undefined then.

#if ACTION == TARN__OPENCL_GATHER

static void walk(const rows_walk *w, rows_held *held) {
  const rows_args *a = w->args;
  ulong position = w->worker * a->run;
  if (position >= a->count) return;
  ulong end = a->span < a->count - position ? position + a->span : a->count;
  for (; position < end; position += a->step) {
    if (!visit(w, held, position, (ulong)index_at(w, position))) {
      note(w, position);
      return;
    }
  }
}

#else

// Neighbours may all be in demand, so that they are of different parts. All
// workers look at an index that is of no row.
static bool is_of(const rows_walk *w, ulong index) {
  ulong mixed = (index * 0x9e3779b97f4a7c15ul) >> 32;
  return (mixed * w->args->workers) >> 32 == w->worker || !has(w->args, index);
}

static void walk(const rows_walk *w, rows_held *held) {
  const rows_args *a = w->args;
  for (ulong position = 0; position < a->count; position++) {
    ulong index = (ulong)index_at(w, position);
    if (is_of(w, index) && !visit(w, held, position, index)) {
      note(w, position);
      return;
    }
  }
}

#endif

static void walk_all(const rows_walk *w) {
  rows_held held;
  held.count = 0;
  walk(w, &held);
  take_last(w, &held);
}

// --- the end of a launch ---------------------------------------------------

// By the last work group. Faults of other calls, which came before, stay.
static void settle(const rows_walk *w) {
  const rows_args *a = w->args;
  volatile __global rows_fault *fault = w->fault;
  uint position = atomic_xchg(&fault->position, 0xffffffffu);
  atomic_xchg(&fault->groups, 0u);
  if (position == 0xffffffffu) return;
  ulong at = a->first + position;
  if (fault->serial != 0 && (fault->serial != a->serial || fault->at <= at))
    return;
  fault->serial = a->serial;
  fault->at = at;
  fault->index = index_at(w, position);
  fault->count = a->table_count;
}

#ifdef SOLO
__attribute__((reqd_work_group_size(1, 1, 1)))
#endif
__kernel void
tarn_rows(__global uchar *restrict table, __global uchar *restrict dense,
          const __global uchar *restrict indices,
          const __global ulong *restrict chunks,
          volatile __global rows_fault *restrict fault, const rows_args args) {
  ulong item = get_global_id(0);
  rows_walk w;
  w.args = &args;
  w.table = table + args.table_at;
  w.dense = dense + args.dense_at;
  w.indices = indices + args.indices_at;
  w.chunks = chunks;
  w.fault = fault;
  w.worker = item / args.lanes;
  w.lane = item % args.lanes;
  if (w.worker < args.workers) walk_all(&w);
#ifndef SOLO
  barrier(CLK_GLOBAL_MEM_FENCE);
  if (get_local_id(0) != 0) return;
#endif
  mem_fence(CLK_GLOBAL_MEM_FENCE);
  if (atomic_inc(&fault->groups) + 1 == get_num_groups(0)) settle(&w);
}
