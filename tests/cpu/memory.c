// The cpu plug-in's memory and copies, all 22 functions' worth of arguments.
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "host.h"

typedef C_Status allocate_fn(const C_Device, void **, size_t);
typedef C_Status deallocate_fn(const C_Device, void *, size_t);
typedef C_Status copy_fn(const C_Device, void *, const void *, size_t);
typedef C_Status async_fn(const C_Device, C_Stream, void *, const void *,
                          size_t);

enum { KINDS = 3, ALIGN = 256 };
static C_DeviceInterface cpu;
static allocate_fn *allocate[KINDS];
static deallocate_fn *deallocate[KINDS];
static copy_fn *copies[3];
static async_fn *asyncs[3];

static void setup(void) {
  cpu = cpu_table();
  allocate[0] = cpu.device_memory_allocate;
  allocate[1] = cpu.host_memory_allocate;
  allocate[2] = cpu.unified_memory_allocate;
  deallocate[0] = cpu.device_memory_deallocate;
  deallocate[1] = cpu.host_memory_deallocate;
  deallocate[2] = cpu.unified_memory_deallocate;
  copies[0] = cpu.memory_copy_h2d;
  copies[1] = cpu.memory_copy_d2h;
  copies[2] = cpu.memory_copy_d2d;
  asyncs[0] = cpu.async_memory_copy_h2d;
  asyncs[1] = cpu.async_memory_copy_d2h;
  asyncs[2] = cpu.async_memory_copy_d2d;
}

static void check_block(int kind, size_t size) {
  void *ptr = NULL;
  assert_done(allocate[kind](CPU, &ptr, size));
  ck_assert_ptr_nonnull(ptr);
  ck_assert_msg((uintptr_t)ptr % ALIGN == 0, "%zu bytes at %p", size, ptr);
  memset(ptr, 0xa5, size);
  assert_done(deallocate[kind](CPU, ptr, size));
}

TEST(test_blocks_are_aligned_and_whole) {
  static const size_t sizes[] = {4095,   4096,   4097,    131071,  131072,
                                 131073, 135168, 1 << 20, 5000001, 32 << 20};
  for (int kind = 0; kind < KINDS; kind++) {
    for (size_t size = 1; size < 1100; size++)
      check_block(kind, size);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
      check_block(kind, sizes[i]);
    }
  }
}

TEST(test_blocks_do_not_overlap) {
  enum { COUNT = 64 };
  unsigned char *blocks[COUNT];
  for (int i = 0; i < COUNT; i++) {
    void *ptr = NULL;
    assert_done(cpu.device_memory_allocate(CPU, &ptr, (size_t)i * 4096 + 1));
    memset(ptr, i, (size_t)i * 4096 + 1);
    blocks[i] = ptr;
  }
  for (int i = 0; i < COUNT; i++) {
    ck_assert_int_eq(blocks[i][0], i);
    ck_assert_int_eq(blocks[i][(size_t)i * 4096], i);
    assert_done(
        cpu.device_memory_deallocate(CPU, blocks[i], (size_t)i * 4096 + 1));
  }
}

TEST(test_large_blocks_go_back_to_the_system) {
  unsigned char resident = 0;
  void *ptr = NULL;
  assert_done(cpu.device_memory_allocate(CPU, &ptr, 128 << 10));
  ck_assert_int_eq(mincore(ptr, 128 << 10, (unsigned char[64]){0}), 0);
  assert_done(cpu.device_memory_deallocate(CPU, ptr, 128 << 10));
  ck_assert_int_eq(mincore(ptr, 4096, &resident), -1);
  ck_assert_int_eq(errno, ENOMEM);
}

TEST(test_too_much_is_a_failure) {
  static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX / 2,
                                 (size_t)1 << 62};
  for (int kind = 0; kind < KINDS; kind++) {
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
      void *ptr = &cpu;
      assert_c(allocate[kind](CPU, &ptr, sizes[i]), C_FAILED);
      ck_assert_ptr_null(ptr);
    }
  }
}

TEST(test_allocation_refuses_bad_arguments) {
  for (int kind = 0; kind < KINDS; kind++) {
    void *ptr = &cpu;
    assert_c(allocate[kind](CPU, NULL, 64), C_ERROR);
    assert_c(allocate[kind](CPU, &ptr, 0), C_ERROR);
    ck_assert_ptr_null(ptr);
    assert_c(allocate[kind](NULL, &ptr, 64), C_ERROR);
    assert_c(allocate[kind](NOT_CPU, &ptr, 64), C_ERROR);
    assert_c(deallocate[kind](CPU, NULL, 64), C_ERROR);
    assert_done(allocate[kind](CPU, &ptr, 64));
    assert_c(deallocate[kind](NULL, ptr, 64), C_ERROR);
    assert_c(deallocate[kind](NOT_CPU, ptr, 64), C_ERROR);
    assert_c(deallocate[kind](CPU, ptr, 0), C_ERROR);
    assert_done(deallocate[kind](CPU, ptr, 64));
  }
}

TEST(test_set) {
  unsigned char bytes[100] = {0};
  assert_done(cpu.device_memory_set(CPU, bytes + 1, 0xee, 98));
  ck_assert_int_eq(bytes[0], 0);
  ck_assert_int_eq(bytes[1], 0xee);
  ck_assert_int_eq(bytes[98], 0xee);
  ck_assert_int_eq(bytes[99], 0);
  assert_c(cpu.device_memory_set(CPU, NULL, 0, 1), C_ERROR);
  assert_c(cpu.device_memory_set(CPU, bytes, 0, 0), C_ERROR);
  assert_c(cpu.device_memory_set(NULL, bytes, 0, 1), C_ERROR);
  assert_c(cpu.device_memory_set(NOT_CPU, bytes, 0, 1), C_ERROR);
}

static void fill(unsigned char *bytes, size_t size, unsigned seed) {
  for (size_t i = 0; i < size; i++) {
    bytes[i] = (unsigned char)(seed + i * 31 + (i >> 8));
  }
}

static unsigned char src[300 << 10];
static unsigned char dst[300 << 10];

TEST(test_copies_in_every_direction) {
  static const size_t sizes[] = {1, 7, 4096, 65536, 65537, sizeof src - 1};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    for (int way = 0; way < 4; way++) {
      size_t size = sizes[i];
      fill(src, sizeof src, (unsigned)way + 1);
      memset(dst, 0, sizeof dst);
      assert_done(way == 3 ? cpu.memory_copy_p2p(CPU, CPU, dst, src, size)
                           : copies[way](CPU, dst, src, size));
      ck_assert_mem_eq(dst, src, size);
      ck_assert_int_eq(dst[size], 0);
    }
  }
}

TEST(test_queued_copies_in_every_direction) {
  static const size_t sizes[] = {1, 7, 4096, 65536, 65537, sizeof src - 1};
  C_Stream s = new_stream(&cpu);
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    for (int way = 0; way < 4; way++) {
      size_t size = sizes[i];
      fill(src, sizeof src, (unsigned)way + 1);
      memset(dst, 0, sizeof dst);
      assert_done(way == 3
                      ? cpu.async_memory_copy_p2p(CPU, CPU, s, dst, src, size)
                      : asyncs[way](CPU, s, dst, src, size));
      assert_done(cpu.synchronize_stream(CPU, s));
      ck_assert_mem_eq(dst, src, size);
      ck_assert_int_eq(dst[size], 0);
    }
  }
  assert_done(cpu.destroy_stream(CPU, s));
}

TEST(test_copies_refuse_bad_arguments) {
  for (int way = 0; way < 3; way++) {
    assert_c(copies[way](CPU, NULL, src, 8), C_ERROR);
    assert_c(copies[way](CPU, dst, NULL, 8), C_ERROR);
    assert_c(copies[way](CPU, dst, src, 0), C_ERROR);
    assert_c(copies[way](NULL, dst, src, 8), C_ERROR);
    assert_c(copies[way](NOT_CPU, dst, src, 8), C_ERROR);
  }
  assert_c(cpu.memory_copy_p2p(CPU, CPU, dst, NULL, 8), C_ERROR);
  assert_c(cpu.memory_copy_p2p(NULL, CPU, dst, src, 8), C_ERROR);
  assert_c(cpu.memory_copy_p2p(CPU, NULL, dst, src, 8), C_ERROR);
  assert_c(cpu.memory_copy_p2p(CPU, NOT_CPU, dst, src, 8), C_ERROR);
}

TEST(test_queued_copies_refuse_bad_arguments) {
  C_Stream s = new_stream(&cpu);
  for (int way = 0; way < 3; way++) {
    assert_c(asyncs[way](CPU, s, NULL, src, 8), C_ERROR);
    assert_c(asyncs[way](CPU, s, dst, NULL, 8), C_ERROR);
    assert_c(asyncs[way](CPU, s, dst, src, 0), C_ERROR);
    assert_c(asyncs[way](CPU, NULL, dst, src, 8), C_ERROR);
    assert_c(asyncs[way](NULL, s, dst, src, 8), C_ERROR);
    assert_c(asyncs[way](NOT_CPU, s, dst, src, 8), C_ERROR);
  }
  assert_c(cpu.async_memory_copy_p2p(CPU, CPU, NULL, dst, src, 8), C_ERROR);
  assert_c(cpu.async_memory_copy_p2p(CPU, NULL, s, dst, src, 8), C_ERROR);
  assert_c(cpu.async_memory_copy_p2p(NULL, CPU, s, dst, src, 8), C_ERROR);
  assert_done(cpu.destroy_stream(CPU, s));
}

TEST(test_overlapping_ranges_are_refused) {
  C_Stream s = new_stream(&cpu);
  assert_c(cpu.memory_copy_d2d(CPU, src, src, 8), C_ERROR);
  assert_c(cpu.memory_copy_d2d(CPU, src + 7, src, 8), C_ERROR);
  assert_c(cpu.memory_copy_d2d(CPU, src, src + 7, 8), C_ERROR);
  assert_c(cpu.async_memory_copy_d2d(CPU, s, src, src + 7, 8), C_ERROR);
  assert_done(cpu.memory_copy_d2d(CPU, src, src + 8, 8));
  assert_done(cpu.memory_copy_d2d(CPU, src + 8, src, 8));
  assert_done(cpu.destroy_stream(CPU, s));
}

int main(void) {
  setup();
  return run_tests();
}
