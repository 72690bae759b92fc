// What OpenCL C has built in, as far as kernels here use it, under the names
// that clang gives the calls: those of C++, since the functions are overloaded.
// A kernel that needs another does not link, and the linker says which. Wide
// vectors are in builtins.cl.
//
// Atomics are those of the compiler: two queues of the stand-in run two kernels
// at the same time.
#include <stdint.h>
#include <string.h>

#include "opencl/kernels/items.h"

static _Thread_local struct {
  const tarn_standin_launch *launch;
  size_t item;  // number of the current one, from 1
} at;

// --- the work items --------------------------------------------------------

void items_begin(const tarn_standin_launch *launch) {
  at.launch = launch;
  at.item = 0;
}

bool items_next(void) {
  const size_t *global = at.launch->global;
  return ++at.item <= global[0] * global[1] * global[2];
}

// Without sizes from the program each group has one item.
static size_t local_of(uint32_t dimension) {
  size_t size = at.launch->local[dimension];
  return size != 0 ? size : 1;
}

static size_t index_of(uint32_t dimension) {
  const size_t *global = at.launch->global;
  size_t number = at.item - 1;
  for (uint32_t i = 0; i < dimension; i++)
    number /= global[i];
  return number % global[dimension];
}

#define BUILTIN(result, name, parameters, mangled) \
  result name parameters __asm__(mangled);         \
  result name parameters

BUILTIN(size_t, get_global_id, (uint32_t i), "_Z13get_global_idj") {
  return i < 3 ? index_of(i) + at.launch->offset[i] : 0;
}

BUILTIN(size_t, get_global_size, (uint32_t i), "_Z15get_global_sizej") {
  return i < 3 ? at.launch->global[i] : 1;
}

BUILTIN(size_t, get_global_offset, (uint32_t i), "_Z17get_global_offsetj") {
  return i < 3 ? at.launch->offset[i] : 0;
}

BUILTIN(size_t, get_local_id, (uint32_t i), "_Z12get_local_idj") {
  return i < 3 ? index_of(i) % local_of(i) : 0;
}

BUILTIN(size_t, get_local_size, (uint32_t i), "_Z14get_local_sizej") {
  return i < 3 ? local_of(i) : 1;
}

BUILTIN(size_t, get_group_id, (uint32_t i), "_Z12get_group_idj") {
  return i < 3 ? index_of(i) / local_of(i) : 0;
}

BUILTIN(size_t, get_num_groups, (uint32_t i), "_Z14get_num_groupsj") {
  return i < 3 ? at.launch->global[i] / local_of(i) : 1;
}

BUILTIN(uint32_t, get_work_dim, (void), "_Z12get_work_dimv") {
  return (uint32_t)at.launch->dimensions;
}

// --- atomics ---------------------------------------------------------------

#define EXCHANGE(type, name, mangled)                                        \
  BUILTIN(type, name, (volatile __typeof__(type) *p, type old, type wanted), \
          mangled) {                                                         \
    __atomic_compare_exchange_n(p, &old, wanted, false, __ATOMIC_SEQ_CST,    \
                                __ATOMIC_SEQ_CST);                           \
    return old;                                                              \
  }
#define ADD(type, name, mangled)                                            \
  BUILTIN(type, name, (volatile __typeof__(type) *p, type more), mangled) { \
    return __atomic_fetch_add(p, more, __ATOMIC_SEQ_CST);                   \
  }

EXCHANGE(int32_t, exchange_int, "_Z14atomic_cmpxchgPU8CLglobalViii")
EXCHANGE(uint32_t, exchange_uint, "_Z14atomic_cmpxchgPU8CLglobalVjjj")
EXCHANGE(int64_t, exchange_long, "_Z12atom_cmpxchgPU8CLglobalVlll")
EXCHANGE(uint64_t, exchange_ulong, "_Z12atom_cmpxchgPU8CLglobalVmmm")
ADD(int32_t, add_int, "_Z10atomic_addPU8CLglobalVii")
ADD(uint32_t, add_uint, "_Z10atomic_addPU8CLglobalVjj")
ADD(int64_t, add_long, "_Z8atom_addPU8CLglobalVll")
ADD(uint64_t, add_ulong, "_Z8atom_addPU8CLglobalVmm")

BUILTIN(uint32_t, increase_uint, (volatile uint32_t * p),
        "_Z10atomic_incPU8CLglobalVj") {
  return __atomic_fetch_add(p, 1, __ATOMIC_SEQ_CST);
}

BUILTIN(uint32_t, swap_uint, (volatile uint32_t * p, uint32_t wanted),
        "_Z11atomic_xchgPU8CLglobalVjj") {
  return __atomic_exchange_n(p, wanted, __ATOMIC_SEQ_CST);
}

BUILTIN(uint32_t, lower_uint, (volatile uint32_t * p, uint32_t wanted),
        "_Z10atomic_minPU8CLglobalVjj") {
  uint32_t old = __atomic_load_n(p, __ATOMIC_SEQ_CST);
  while (old > wanted &&
         !__atomic_compare_exchange_n(p, &old, wanted, false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST)) {
  }
  return old;
}

// --- memory ----------------------------------------------------------------

// By a word that all fences write: the thread sanitizer knows no others.
BUILTIN(void, mem_fence, (uint32_t flags), "_Z9mem_fencej") {
  static uint32_t word;
  (void)flags;
  __atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
}

BUILTIN(void, prefetch, (const void *p, size_t count),
        "_Z8prefetchPU8CLglobalKhm") {
  (void)p;
  (void)count;
}

// --- halves ----------------------------------------------------------------

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// A small one is its fraction times 2^-24.
static float from_half(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16;
  uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
  if (exponent == 0) {
    float value = (float)fraction * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  if (exponent == 31) return float_of(sign | 0x7f800000 | fraction << 13);
  return float_of(sign | (exponent + 112) << 23 | fraction << 13);
}

// To the nearest, of two the even one. What is cut off is |rest| of |one|.
static uint16_t rounded(uint32_t value, uint32_t rest, uint32_t one) {
  bool up = rest * 2 > one || (rest * 2 == one && (value & 1) != 0);
  return (uint16_t)(value + (up ? 1 : 0));
}

static uint16_t to_half(float value) {
  uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000;
  uint32_t exponent = bits >> 23 & 255, fraction = bits & 0x7fffff;
  if (exponent == 255) {
    return (uint16_t)(sign | 0x7c00 |
                      (fraction != 0 ? 0x200 | fraction >> 13 : 0));
  }
  if (exponent > 142) return (uint16_t)(sign | 0x7c00);
  if (exponent > 112) {
    uint32_t half = sign | (exponent - 112) << 10 | fraction >> 13;
    return rounded(half, fraction & 0x1fff, 0x2000);
  }
  if (exponent < 102) return (uint16_t)sign;
  uint32_t shift = 126 - exponent, all = fraction | 0x800000;
  uint32_t one = (uint32_t)1 << shift;
  return rounded(sign | all >> shift, all & (one - 1), one);
}

BUILTIN(float, vload_half, (size_t i, const uint16_t *p),
        "_Z10vload_halfmPU8CLglobalKDh") {
  return from_half(p[i]);
}

BUILTIN(void, vstore_half, (float value, size_t i, uint16_t *p),
        "_Z11vstore_halffmPU8CLglobalDh") {
  p[i] = to_half(value);
}

BUILTIN(void, vstore_half_rte, (float value, size_t i, uint16_t *p),
        "_Z15vstore_half_rtefmPU8CLglobalDh") {
  p[i] = to_half(value);
}
