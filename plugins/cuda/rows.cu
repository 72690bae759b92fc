// rows.cu - gather, scatter and scatter_add. nvcc compiles it for the plug-in,
// and a C++ compiler for tests, with tests/cuda/kernels/shim.h in place of what
// follows here. Kernels take one struct each.
//
// A gather is shared by position: a dense row is written once. Threads side by
// side have units side by side, of one row or of several short ones. A thread
// loads all of its slots before it stores any, and the next indices before it
// waits for rows: a row of a large table is in no cache, and what counts is how
// many of them are on their way.
//
//   slot      0            1            2            3
//   lanes     [row 0][row 1]..          [row 2g][..]          units <= lanes
//   lanes     [row 0     ][  of row 0  ][row g      ][..]     twice as many
//
// A scatter is shared by row: a block has the rows that a hash deals to it, so
// that equal indices meet in one block, which keeps their order. Every block
// reads all indices, a round of them at a time, and moves its own:
//
//   round     7 3 9 7 1 3 ...     bits of those that are this block's
//   list      0 3 4               their positions, in order, in windows
//   window    7 7 1               of equal ones a scatter moves the last; an
//                                 add has the first one's threads add all
//
// That costs a read of the indices for each block, from a cache mostly, and
// needs no memory beside the caller's. Nothing is added by atomic operations,
// whose order is nobody's.
//
// A block's code is written once for the device and for a host, on which one
// thread plays all of a block: EACH_THREAD precedes what every thread does, up
// to the next SYNC, and no local variable carries from one to the next but
// those that all threads of a block agree on.
#include "rows_args.h"

#ifdef __CUDACC__

#define KERNEL(threads, blocks) \
  extern "C" __global__ void __launch_bounds__(threads, blocks)
#define ARGUMENT const __grid_constant__
#define DEVICE static __device__ __forceinline__
#define DEVICE_MEMBER __device__ __forceinline__
#define SELDOM static __device__ __noinline__
#define SHARED __shared__
#define EACH_THREAD
#define SYNC() __syncthreads()

// Past the first cache, in which indices are better off.
DEVICE uint4 load_once(const uint4 *from) {
  uint4 value;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
      : "l"(from));
  return value;
}

template <typename T>
DEVICE T load_once(const T *from) {
  return __ldg(from);
}

template <typename T>
DEVICE void store_once(T *to, T value) {
  __stcs(to, value);
}

template <typename T>
DEVICE void store_kept(T *to, T value) {
  __stwb(to, value);
}

#endif  // __CUDACC__

typedef tarn__cuda_rows rows_args;
typedef tarn__cuda_rows_many rows_many;
typedef unsigned char byte;
typedef unsigned long long word64;

enum {
  SLOTS = 1 << TARN__CUDA_SLOTS_LOG,
  THREADS = TARN__CUDA_SCATTER_THREADS,
  LOOKS = 8,                    // indices of a thread at a time
  ROUND = 2 * LOOKS * THREADS,  // positions in one have 16 bits
  WORD = 32,                    // bits
  WORDS = ROUND / WORD,
  WINDOW = 512,
  MOVES = 4,    // units of a thread in a scatter, at a time
  SUMS = 2,     // in an add
  ADDENDS = 2,  // of each sum
};

static_assert(sizeof(rows_many) <= 4096, "what every driver takes");

#include "elements.cuh"

// --- faults ----------------------------------------------------------------

// The index whose bits are |raw|, with zeros above those of 32 bits. Nothing is
// done with the bits of a load before they are needed.
DEVICE uint64_t index_of(const rows_args &a, uint64_t raw) {
  bool is_wide = (a.index_access & 8) != 0;
  return is_wide ? raw : (uint64_t)(int64_t)(int32_t)raw;
}

// Loads |COUNT| indices, those at the positions |first| + at(i). Of positions
// behind the last, nothing.
template <uint32_t COUNT, typename AT>
DEVICE void load_indices(const rows_args &a, uint64_t first, const AT &at,
                         uint64_t *raw) {
  const byte *indices = (const byte *)a.indices;
  if (a.index_access == 8) {
#pragma unroll
    for (uint32_t i = 0; i < COUNT; i++)
      if (first + at(i) < a.count)
        raw[i] = ((const uint64_t *)indices)[first + at(i)];
  } else if (a.index_access == 4) {
#pragma unroll
    for (uint32_t i = 0; i < COUNT; i++)
      if (first + at(i) < a.count)
        raw[i] = ((const uint32_t *)indices)[first + at(i)];
  } else {
    uint32_t size = a.index_access - TARN__CUDA_ROWS_BYTES;
#pragma unroll
    for (uint32_t i = 0; i < COUNT; i++)
      if (first + at(i) < a.count)
        raw[i] = bytes_at(indices + (first + at(i)) * size, size);
  }
}

struct at_first {
  DEVICE_MEMBER uint32_t operator()(uint32_t) const {
    return 0;
  }
};

DEVICE uint64_t index_at(const rows_args &a, uint64_t position) {
  uint64_t raw = 0;
  load_indices<1>(a, position, at_first(), &raw);
  return index_of(a, raw);
}

// Notes a fault at |position|, unless there is one of an earlier call, or one
// before it. The claims settle which position is the lowest. Whoever makes one
// writes for the lowest that there is, and again if that was overtaken: so the
// last to write has written for the lowest.
SELDOM void note(const rows_args &a, uint64_t position) {
  volatile tarn__cuda_fault *fault = (volatile tarn__cuda_fault *)a.fault;
  word64 *claim = (word64 *)&((tarn__cuda_fault *)a.fault)->claim;
  uint64_t lowest = ~position;
  uint64_t serial = fault->serial;
  if (serial != 0 && serial != a.serial) return;
  if (fault->claim >= lowest) return;
  if (atomicMax(claim, (word64)lowest) >= lowest) return;
  do {
    lowest = atomicMax(claim, (word64)0);  // as it is
    __threadfence_system();
    fault->position = ~lowest;
    fault->index = (int64_t)index_at(a, ~lowest);
    fault->count = a.table_count;
    __threadfence_system();
    fault->serial = a.serial;
    __threadfence_system();
  } while (atomicMax(claim, (word64)0) != lowest);
}

// --- rows of the table -----------------------------------------------------

// Where the row of an index is.
typedef enum rows_found {
  FOUND,
  ELSEWHERE,  // in a chunk of another launch
  MISSING,    // there is no such row
  SPANS,      // two chunks
} rows_found;

DEVICE const rows_args &rows_of(const rows_args &a) {
  return a;
}

DEVICE const rows_args &rows_of(const rows_many &a) {
  return a.rows;
}

DEVICE rows_found find_row(const rows_args &a, uint64_t index, byte **out) {
  *out = (byte *)(a.table + index * a.table_stride);
  return index < a.table_count ? FOUND : MISSING;  // those below 0 are large
}

DEVICE rows_found find_row(const rows_many &a, uint64_t index, byte **out) {
  uint64_t offset = a.table_offset + index * a.rows.table_stride;
  *out = 0;
  if (index >= a.rows.table_count) return MISSING;
  if (offset < a.offsets[0] || offset >= a.offsets[a.chunks]) return ELSEWHERE;
  uint32_t low = 0;
  for (uint32_t left = (uint32_t)a.chunks; left > 1;) {
    uint32_t half = left / 2;
    if (a.offsets[low + half] <= offset) low += half;
    left -= half;
  }
  if (a.row_bytes > a.offsets[low + 1] - offset) return SPANS;
  *out = (byte *)(a.addresses[low] + (offset - a.offsets[low]));
  return FOUND;
}

DEVICE bool is_fault(const rows_args &a, rows_found found) {
  return found == SPANS ||
         (found == MISSING && (a.flags & TARN__CUDA_ROWS_SKIP) == 0);
}

DEVICE byte *dense_row(const rows_args &a, uint64_t position) {
  return (byte *)(a.dense + position * a.dense_stride);
}

// --- what moves at a time --------------------------------------------------
// get: of |from|, which no thread writes. put: into |to|. A |value| in between
// is as it will be written.

// Units as they are.
template <typename T>
struct units {
  typedef T value;

  DEVICE T none() {
    return T();
  }

  DEVICE T get_table(const rows_args &, const byte *row, uint64_t k) {
    return load_once((const T *)row + k);
  }

  DEVICE T get_dense(const rows_args &, const byte *row, uint64_t k) {
    return load_once((const T *)row + k);
  }

  DEVICE void put_table(const rows_args &a, byte *row, uint64_t k, T value) {
    put_dense(a, row, k, value);
  }

  DEVICE void put_dense(const rows_args &a, byte *row, uint64_t k, T value) {
    if ((a.flags & TARN__CUDA_ROWS_STREAM) != 0) {
      store_once((T *)row + k, value);
    } else {
      store_kept((T *)row + k, value);
    }
  }
};

// Elements, of which one dtype becomes the other.
struct elements {
  typedef uint64_t value;

  DEVICE uint64_t none() {
    return 0;
  }

  DEVICE uint64_t get_table(const rows_args &a, const byte *row, uint64_t k) {
    return convert(load_element(row, k, a.table_access), a.dense_dtype,
                   a.table_dtype);
  }

  DEVICE uint64_t get_dense(const rows_args &a, const byte *row, uint64_t k) {
    return convert(load_element(row, k, a.dense_access), a.table_dtype,
                   a.dense_dtype);
  }

  DEVICE void put_dense(const rows_args &a, byte *row, uint64_t k,
                        uint64_t bits) {
    store_element(row, k, a.dense_access, bits);
  }

  DEVICE void put_table(const rows_args &a, byte *row, uint64_t k,
                        uint64_t bits) {
    store_element(row, k, a.table_access, bits);
  }
};

// --- gather ----------------------------------------------------------------

// What a thread does at each of its slots, in every step.
struct gather_slots {
  uint32_t row[SLOTS];   // added to the thread's first position
  uint32_t unit[SLOTS];  // of a row

  DEVICE_MEMBER uint32_t operator()(uint32_t i) const {
    return row[i];
  }
};

DEVICE gather_slots slots_of(const rows_args &a, uint32_t lane,
                             uint32_t groups) {
  gather_slots s;
#pragma unroll
  for (uint32_t i = 0; i < SLOTS; i++) {
    s.row[i] = (i >> a.spread) * groups;
    s.unit[i] = lane + ((i & ((1u << a.spread) - 1)) << a.lanes);
  }
  return s;
}

template <typename MOVE>
DEVICE void gather_units(const rows_args &a, const gather_slots &s,
                         byte *const *from, byte *const *to) {
  uint64_t span = (uint64_t)1 << (a.lanes + a.spread);
  for (uint64_t base = 0; base < a.units; base += span) {
    typename MOVE::value value[SLOTS];
#pragma unroll
    for (uint32_t i = 0; i < SLOTS; i++) {
      uint64_t unit = base + s.unit[i];
      value[i] = MOVE::none();
      if (from[i] != 0 && unit < a.units)
        value[i] = MOVE::get_table(a, from[i], unit);
    }
#pragma unroll
    for (uint32_t i = 0; i < SLOTS; i++) {
      uint64_t unit = base + s.unit[i];
      if (to[i] != 0 && unit < a.units)
        MOVE::put_dense(a, to[i], unit, value[i]);
    }
  }
}

// Ends at a fault: rows are undefined then, and later ones of this thread are
// behind it.
template <typename MOVE, typename TABLE>
DEVICE void gather(const TABLE &table) {
  const rows_args &a = rows_of(table);
  uint32_t lane = threadIdx.x & ((1u << a.lanes) - 1);
  uint32_t group = threadIdx.x >> a.lanes;
  uint32_t groups = TARN__CUDA_GATHER_THREADS >> a.lanes;
  uint64_t tile = (uint64_t)groups << (TARN__CUDA_SLOTS_LOG - a.spread);
  uint64_t first = blockIdx.x * tile + group;
  gather_slots s = slots_of(a, lane, groups);
  uint64_t raw[SLOTS];
  load_indices<SLOTS>(a, first, s, raw);
  while (first < a.count) {
    byte *from[SLOTS];
    byte *to[SLOTS];
    uint64_t next = first + gridDim.x * tile;
#pragma unroll
    for (uint32_t i = 0; i < SLOTS; i++) {
      uint64_t position = first + s.row[i];
      from[i] = to[i] = 0;
      if (position >= a.count) continue;
      rows_found found = find_row(table, index_of(a, raw[i]), &from[i]);
      if (found != FOUND) from[i] = 0;
      if (is_fault(a, found)) {
        if (s.unit[i] == 0) note(a, position);
        return;
      }
      if (found == FOUND ||
          (found == MISSING && (a.flags & TARN__CUDA_ROWS_CLEAR) != 0)) {
        to[i] = dense_row(a, position);
      }
    }
    load_indices<SLOTS>(a, next, s, raw);
    gather_units<MOVE>(a, s, from, to);
    first = next;
  }
}

// --- scatter: a round ------------------------------------------------------

// What the threads of a block share.
struct scatter_board {
  uint32_t bits[WORDS];        // a bit for each position of a round
  uint32_t ends[2][WORDS];     // the bits of this word and all before it
  unsigned short list[ROUND];  // the positions of the bits
  uint64_t window[WINDOW];     // the indices of a part of the list
};

// Whether this block has the row. Neighbours may all be in demand, so that they
// are of different blocks.
DEVICE bool is_mine(uint64_t index) {
  uint64_t mixed = (index * 0x9e3779b97f4a7c15ull) >> 32;
  return (mixed * gridDim.x) >> 32 == blockIdx.x;
}

DEVICE uint64_t lesser(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

// Of a thread, in a round.
struct look_positions {
  uint32_t first;

  DEVICE_MEMBER uint32_t operator()(uint32_t i) const {
    return first + i * THREADS;
  }
};

// Sets the bits of the rows that this thread finds to be this block's, from
// |begin| of a round on. The first block tells of bad indices.
template <typename TABLE>
DEVICE void look(const TABLE &table, scatter_board &board, uint64_t first,
                 uint32_t begin) {
  const rows_args &a = rows_of(table);
  look_positions positions = {begin + threadIdx.x};
  uint64_t raw[LOOKS];
  load_indices<LOOKS>(a, first, positions, raw);
#pragma unroll
  for (uint32_t i = 0; i < LOOKS; i++) {
    uint32_t at = positions(i);
    byte *row;
    if (first + at >= a.count) continue;
    uint64_t index = index_of(a, raw[i]);
    bool exists = index < a.table_count;
    if (exists ? !is_mine(index) : blockIdx.x != 0) continue;
    rows_found found = find_row(table, index, &row);
    if (is_fault(a, found)) note(a, first + at);
    if (found == FOUND) atomicOr(&board.bits[at / WORD], 1u << (at % WORD));
  }
}

// The ends of all words, in ends[0]: each step adds what stands a power of two
// before.
DEVICE void count_bits(scatter_board &board) {
  EACH_THREAD {
    if (threadIdx.x < WORDS)
      board.ends[1][threadIdx.x] = (uint32_t)__popc(board.bits[threadIdx.x]);
  }
  SYNC();
  uint32_t from = 1;
  for (uint32_t step = 1; step < WORDS; step *= 2) {
    EACH_THREAD {
      uint32_t i = threadIdx.x;
      if (i < WORDS)
        board.ends[1 - from][i] =
            board.ends[from][i] + (i >= step ? board.ends[from][i - step] : 0);
    }
    SYNC();
    from = 1 - from;
  }
}

// ends[] is of an odd number of steps, so that the last are in ends[0].
static_assert(WORDS == 1 << 9, "steps of count_bits");
static_assert(ROUND <= 1 << 16, "list");

DEVICE void make_list(scatter_board &board) {
  EACH_THREAD {
    uint32_t i = threadIdx.x;
    uint32_t bits = i < WORDS ? board.bits[i] : 0;
    uint32_t at = bits != 0 ? board.ends[0][i] - (uint32_t)__popc(bits) : 0;
    for (; bits != 0; bits &= bits - 1)
      board.list[at++] =
          (unsigned short)(i * WORD + (uint32_t)__ffs((int)bits) - 1);
  }
  SYNC();
}

// --- scatter: rows ---------------------------------------------------------

// Moves a dense row to |row|: a lane's units.
template <typename MOVE>
DEVICE void scatter_row(const rows_args &a, byte *row, const byte *dense,
                        uint32_t lane) {
  uint64_t step = (uint64_t)1 << a.lanes;
  for (uint64_t base = lane; base < a.units; base += step * MOVES) {
    typename MOVE::value value[MOVES];
#pragma unroll
    for (uint32_t i = 0; i < MOVES; i++)
      if (base + i * step < a.units)
        value[i] = MOVE::get_dense(a, dense, base + i * step);
#pragma unroll
    for (uint32_t i = 0; i < MOVES; i++)
      if (base + i * step < a.units)
        MOVE::put_table(a, row, base + i * step, value[i]);
  }
}

// Adds the dense rows, those that are not 0, in their order: a lane's elements.
// All loads come before the first sum.
DEVICE void add_rows(const rows_args &a, byte *row, const byte *const *dense,
                     uint32_t lane) {
  uint64_t step = (uint64_t)1 << a.lanes;
  for (uint64_t base = lane; base < a.units; base += step * SUMS) {
    uint64_t sum[SUMS];
    uint64_t more[SUMS][ADDENDS];
#pragma unroll
    for (uint32_t i = 0; i < SUMS; i++) {
      uint64_t unit = base + i * step;
      if (unit >= a.units) continue;
      sum[i] = load_element(row, unit, a.table_access);
#pragma unroll
      for (uint32_t k = 0; k < ADDENDS; k++)
        if (dense[k] != 0)
          more[i][k] = load_element(dense[k], unit, a.dense_access);
    }
#pragma unroll
    for (uint32_t i = 0; i < SUMS; i++) {
      uint64_t unit = base + i * step;
      if (unit >= a.units) continue;
#pragma unroll
      for (uint32_t k = 0; k < ADDENDS; k++)
        if (dense[k] != 0)
          sum[i] =
              add(a, sum[i], convert(more[i][k], a.table_dtype, a.dense_dtype));
      store_element(row, unit, a.table_access, sum[i]);
    }
  }
}

// Some entries of the list: a window of |count| from list[at] on.
struct scatter_part {
  uint64_t first;  // the position of the round
  uint32_t at;
  uint32_t count;
};

DEVICE const byte *dense_of(const rows_args &a, const scatter_board &board,
                            const scatter_part &part, uint32_t e) {
  return dense_row(a, part.first + board.list[part.at + e]);
}

// Whether |index| is also at one of the places |begin| to |end|.
DEVICE bool is_among(const scatter_board &board, uint64_t index, uint32_t begin,
                     uint32_t end) {
  for (uint32_t i = begin; i < end; i++)
    if (board.window[i] == index) return true;
  return false;
}

// Scatters entry |e|, unless a later one is of the same row.
template <typename MOVE, typename TABLE>
DEVICE void scatter_entry(const TABLE &table, const scatter_board &board,
                          const scatter_part &part, uint32_t e, uint32_t lane) {
  const rows_args &a = rows_of(table);
  uint64_t index = board.window[e];
  byte *row;
  if (is_among(board, index, e + 1, part.count)) return;
  find_row(table, index, &row);
  scatter_row<MOVE>(a, row, dense_of(a, board, part, e), lane);
}

// Adds entry |e| and all later ones of the same row, unless it is such a later
// one itself.
template <typename TABLE>
DEVICE void add_entry(const TABLE &table, const scatter_board &board,
                      const scatter_part &part, uint32_t e, uint32_t lane) {
  const rows_args &a = rows_of(table);
  uint64_t index = board.window[e];
  byte *row;
  if (is_among(board, index, 0, e)) return;
  find_row(table, index, &row);
  for (uint32_t i = e; i < part.count;) {
    const byte *dense[ADDENDS];
#pragma unroll
    for (uint32_t k = 0; k < ADDENDS; k++) {
      while (i < part.count && board.window[i] != index)
        i++;
      dense[k] = i < part.count ? dense_of(a, board, part, i) : 0;
      i++;
    }
    if (dense[0] != 0) add_rows(a, row, dense, lane);
  }
}

template <typename MOVE, bool ADDS, typename TABLE>
DEVICE void scatter_window(const TABLE &table, scatter_board &board,
                           const scatter_part &part) {
  const rows_args &a = rows_of(table);
  EACH_THREAD {
    uint32_t i = threadIdx.x;
    if (i < part.count)
      board.window[i] = index_at(a, part.first + board.list[part.at + i]);
  }
  SYNC();
  EACH_THREAD {
    uint32_t lane = threadIdx.x & ((1u << a.lanes) - 1);
    uint32_t groups = THREADS >> a.lanes;
    for (uint32_t e = threadIdx.x >> a.lanes; e < part.count; e += groups) {
      if (ADDS) {
        add_entry(table, board, part, e, lane);
      } else {
        scatter_entry<MOVE>(table, board, part, e, lane);
      }
    }
  }
  SYNC();
}

static_assert(WINDOW <= THREADS && WORDS <= THREADS, "a thread for each");

template <typename MOVE, bool ADDS, typename TABLE>
DEVICE void scatter(const TABLE &table, scatter_board &board) {
  const rows_args &a = rows_of(table);
  for (uint64_t first = 0; first < a.count; first += ROUND) {
    EACH_THREAD {
      if (threadIdx.x < WORDS) board.bits[threadIdx.x] = 0;
    }
    SYNC();
    EACH_THREAD {
#pragma unroll 1
      for (uint32_t begin = 0; begin < ROUND; begin += LOOKS * THREADS)
        look(table, board, first, begin);
    }
    SYNC();
    if (a.units == 0) continue;
    count_bits(board);
    make_list(board);
    uint32_t all = board.ends[0][WORDS - 1];
    for (uint32_t at = 0; at < all; at += WINDOW) {
      uint32_t count = (uint32_t)lesser(all - at, WINDOW);
      scatter_part part = {first, at, count};
      scatter_window<MOVE, ADDS>(table, board, part);
    }
  }
}

// --- kernels ---------------------------------------------------------------

#define GATHER_OF(name, type, move)                               \
  KERNEL(TARN__CUDA_GATHER_THREADS, 4) name(ARGUMENT type args) { \
    EACH_THREAD {                                                 \
      gather<move>(args);                                         \
    }                                                             \
  }

#define SCATTER_OF(name, type, move, adds)                         \
  KERNEL(TARN__CUDA_SCATTER_THREADS, 1) name(ARGUMENT type args) { \
    SHARED scatter_board board;                                    \
    scatter<move, adds>(args, board);                              \
  }

#define GATHER(name, move)                \
  GATHER_OF(tarn_##name, rows_args, move) \
  GATHER_OF(tarn_##name##_many, rows_many, move)

#define SCATTER(name, move, adds)                \
  SCATTER_OF(tarn_##name, rows_args, move, adds) \
  SCATTER_OF(tarn_##name##_many, rows_many, move, adds)

GATHER(gather_elements, elements)
GATHER(gather_1, units<byte>)
GATHER(gather_2, units<unsigned short>)
GATHER(gather_4, units<unsigned>)
GATHER(gather_8, units<word64>)
GATHER(gather_16, units<uint4>)
SCATTER(scatter_elements, elements, false)
SCATTER(scatter_1, units<byte>, false)
SCATTER(scatter_2, units<unsigned short>, false)
SCATTER(scatter_4, units<unsigned>, false)
SCATTER(scatter_8, units<word64>, false)
SCATTER(scatter_16, units<uint4>, false)
SCATTER(add_elements, elements, true)
