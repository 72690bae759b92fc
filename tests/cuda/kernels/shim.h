// shim.h - what rows.cu needs of CUDA C to be C++ of the host: a thread of the
// host plays all threads of a block, one after the other between two SYNC, and
// one block after the other. What only a device does, such as waiting for
// memory, reordering it, or threads that are really at work at once, does not
// happen here.
#ifndef TARN_TESTS_CUDA_KERNELS_SHIM_H_
#define TARN_TESTS_CUDA_KERNELS_SHIM_H_

#include <stdint.h>
#include <string.h>

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

struct shim_index {
  unsigned x;
};

// Of the kernel that this thread plays.
static thread_local shim_index threadIdx, blockIdx, blockDim, gridDim;

#define KERNEL(threads, blocks) extern "C" void
#define ARGUMENT const
#define DEVICE static inline
#define DEVICE_MEMBER inline
#define SELDOM static
#define SHARED static thread_local
#define EACH_THREAD \
  for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)
#define SYNC() ((void)0)

template <typename T>
static inline T load_once(const T *from) {
  return *from;
}

template <typename T>
static inline void store_once(T *to, T value) {
  *to = value;
}

template <typename T>
static inline void store_kept(T *to, T value) {
  *to = value;
}

// Of shared memory, which is this thread's alone.
static inline void atomicOr(unsigned *to, unsigned bits) {
  *to |= bits;
}

// Of memory that other kernels see.
static inline unsigned long long atomicMax(unsigned long long *to,
                                           unsigned long long value) {
  unsigned long long was = __atomic_load_n(to, __ATOMIC_SEQ_CST);
  while (was < value &&
         !__atomic_compare_exchange_n(to, &was, value, false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST)) {
  }
  return was;
}

static inline void __threadfence_system() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline int __popc(unsigned bits) {
  return __builtin_popcount(bits);
}

static inline int __ffs(int bits) {
  return __builtin_ffs(bits);
}

template <typename TO, typename FROM>
static inline TO shim_bits(FROM value) {
  TO bits;
  static_assert(sizeof bits == sizeof value, "as many");
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

#define __float_as_uint shim_bits<unsigned, float>
#define __uint_as_float shim_bits<float, unsigned>
#define __double_as_longlong shim_bits<long long, double>
#define __longlong_as_double shim_bits<double, long long>

static inline float __fadd_rn(float a, float b) {
  return a + b;
}

static inline double __dadd_rn(double a, double b) {
  return a + b;
}

#endif  // TARN_TESTS_CUDA_KERNELS_SHIM_H_
