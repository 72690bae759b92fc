// Memory of the plug-in over the stand-in: blocks and who frees them, the pool,
// ranges, memory of file descriptors, and what is told of an address. Nothing
// here says anything of a driver.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cuda/gpu.h"
#include "cuda/standin/api.h"
#include "over.h"

static const size_t GRANULE = (size_t)2 << 20;

static struct C_Device_st zero = {0};
static struct C_Device_st one = {1};

static void open_devices(void) {
  over_begin(0);
  ck_assert_int_eq(tarn__cuda_init_device(&zero), C_SUCCESS);
  ck_assert_int_eq(tarn__cuda_init_device(&one), C_SUCCESS);
}

static void close_devices(void) {
  ck_assert_int_eq(tarn__cuda_deinit_device(&zero), C_SUCCESS);
  ck_assert_int_eq(tarn__cuda_deinit_device(&one), C_SUCCESS);
  over_assert_clean("memory", 0);
}

FIXTURE(open_devices, close_devices);

// --- answers ---------------------------------------------------------------

static void fine(C_Status status) {
  ck_assert_msg(status == C_SUCCESS, "%d: %s", (int)status, tarn__text_line());
}

static void good(tarn_status status) {
  ck_assert_msg(status == TARN_OK, "%d: %s", (int)status, tarn__text_line());
}

static void ok(tarn__cuda_result error) {
  ck_assert_uint_eq(error, TARN__CU_SUCCESS);
}

static void says(const char *part) {
  ck_assert_msg(strstr(tarn__text_line(), part) != NULL, "'%s' is not in '%s'",
                part, tarn__text_line());
}

static void refuses(tarn_status status, const char *part) {
  ck_assert_int_eq(status, TARN_E_INVALID);
  says(part);
}

// The driver was asked for what it takes for a wrong use, on purpose.
static void forgive(uint64_t misuses) {
  ck_assert_uint_eq(tarn_standin_misuses(), misuses);
  over_set("");
}

static void *pointer(uint64_t address) {
  return (void *)(uintptr_t)address;
}

static uint64_t block_of(size_t size) {
  void *block = NULL;
  fine(tarn__cuda_device_memory_allocate(&zero, &block, size));
  return (uintptr_t)block;
}

static void give(uint64_t block) {
  fine(tarn__cuda_device_memory_deallocate(&zero, pointer(block), 0));
}

static C_Stream stream_of(void) {
  C_Stream stream = NULL;
  fine(tarn__cuda_create_stream(&zero, &stream));
  return stream;
}

static void end_stream(C_Stream stream) {
  fine(tarn__cuda_synchronize_stream(&zero, stream));
  fine(tarn__cuda_destroy_stream(&zero, stream));
}

// --- blocks ----------------------------------------------------------------

static void assert_not_freed(uint64_t address) {
  ck_assert_int_eq(
      tarn__cuda_device_memory_deallocate(&zero, pointer(address), 0), C_ERROR);
  says("cuMemFree of 0x");
  says(": CUDA_ERROR_INVALID_VALUE (1): ");
}

TEST(what_begins_no_block_is_not_freed) {
  char own[64];
  uint64_t block = block_of(4096);
  assert_not_freed(block + 256);
  assert_not_freed((uintptr_t)own);
  forgive(2);
  ck_assert_int_eq(tarn__cuda_device_memory_deallocate(&zero, NULL, 0),
                   C_ERROR);
  says("no block is at address 0");
  ck_assert_uint_eq(tarn_standin_live("device"), 1);
  give(block);
}

TEST(pinned_memory_is_freed_as_such) {
  void *block = NULL;
  fine(tarn__cuda_host_memory_allocate(&zero, &block, 4096));
  ck_assert_int_eq(
      tarn__cuda_host_memory_deallocate(&zero, (char *)block + 64, 4096),
      C_ERROR);
  says("cuMemFreeHost of 0x");
  forgive(1);
  fine(tarn__cuda_host_memory_deallocate(&zero, block, 4096));
}

TEST(a_block_without_bytes) {
  void *block = &zero;
  uint64_t address = 1;
  ck_assert_int_eq(tarn__cuda_device_memory_allocate(&zero, &block, 0),
                   C_ERROR);
  ck_assert_ptr_null(block);
  says("a block without bytes");
  refuses(tarn__cuda_allocate_async(0, NULL, 0, &address),
          "a block without bytes");
  ck_assert_uint_eq(address, 0);
}

static const size_t aligns[] = {1, 256, 512, 4096, 1 << 20, 16 << 20};
enum { ALIGNS = sizeof aligns / sizeof *aligns, SIZE = 5000 };

static uint64_t aligned_of(size_t align) {
  uint64_t address = 0;
  tarn_ext_pointer found;
  good(tarn__cuda_allocate_aligned(0, SIZE, align, &address));
  ck_assert_uint_eq(address % align, 0);
  good(tarn__cuda_pointer_query(0, address + SIZE - 1, &found));
  ck_assert_int_eq(found.kind, TARN_EXT_KIND_DEVICE);
  ck_assert_uint_eq(found.base, address);
  return address;
}

TEST_LOOP(aligned_blocks, ALIGNS) {
  give(aligned_of(aligns[_i]));
  C_Stream stream = stream_of();
  good(tarn__cuda_deallocate_async(0, stream, aligned_of(aligns[_i]), SIZE));
  good(tarn__cuda_deallocate_async(0, NULL, aligned_of(aligns[_i]), SIZE));
  end_stream(stream);
}

TEST(an_alignment_must_be_one) {
  uint64_t address = 1;
  refuses(tarn__cuda_allocate_aligned(0, 64, 48, &address),
          "cuda:0: no alignment: 48");
  ck_assert_uint_eq(address, 0);
  ck_assert_int_eq(
      tarn__cuda_allocate_aligned(0, SIZE_MAX - 64, 4096, &address), TARN_FULL);
  says("too many");
}

// One that the program leaves to the close of the device.
TEST(aligned_blocks_that_are_left) {
  (void)aligned_of(4096);
  (void)aligned_of(1 << 20);
}

// --- the pool --------------------------------------------------------------

// More than half of the capacity.
static const size_t HALF = (size_t)48 << 20;

static uint64_t pooled_of(C_Stream stream, size_t size) {
  uint64_t address = 0;
  good(tarn__cuda_allocate_async(0, stream, size, &address));
  ck_assert_uint_ne(address, 0);
  return address;
}

// The pool has HALF bytes of 64 MiB, none of them used.
static void fill_pool(void) {
  over_set("CAPACITY=67108864");
  C_Stream stream = stream_of();
  uint64_t address = pooled_of(stream, HALF);
  good(tarn__cuda_deallocate_async(0, stream, address, HALF));
  end_stream(stream);
  ck_assert_uint_ge(tarn_standin_bytes(), HALF);
}

TEST(what_the_pool_keeps_is_given_back_for_a_block) {
  fill_pool();
  give(block_of(HALF));
}

TEST(what_the_pool_keeps_is_given_back_for_memory) {
  uint64_t memory = 0;
  fill_pool();
  good(tarn__cuda_memory_create(0, HALF, 0, &memory));
  good(tarn__cuda_memory_destroy(0, memory));
}

TEST(more_than_there_is) {
  uint64_t out = 1;
  C_Stream stream = stream_of();
  void *block = &zero;
  over_set("CAPACITY=67108864");
  ck_assert_int_eq(tarn__cuda_device_memory_allocate(&zero, &block, 2 * HALF),
                   C_FAILED);
  ck_assert_ptr_null(block);
  says("cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
  ck_assert_int_eq(tarn__cuda_allocate_async(0, stream, 2 * HALF, &out),
                   TARN_FULL);
  says("cuMemAllocFromPoolAsync: CUDA_ERROR_OUT_OF_MEMORY (2)");
  ck_assert_int_eq(tarn__cuda_memory_create(0, 2 * HALF, 0, &out), TARN_FULL);
  says("cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY (2)");
  ck_assert_uint_eq(out, 0);
  end_stream(stream);
}

TEST(blocks_of_any_kind_are_freed_in_any_way) {
  C_Stream stream = stream_of();
  give(pooled_of(stream, 4096));
  give(pooled_of(NULL, 4096));
  good(tarn__cuda_deallocate_async(0, stream, block_of(4096), 4096));
  good(tarn__cuda_deallocate_async(0, stream, pooled_of(NULL, 64), 64));
  good(tarn__cuda_deallocate_async(0, NULL, pooled_of(stream, 64), 64));
  end_stream(stream);
}

// --- ranges ----------------------------------------------------------------

static uint64_t range_of(size_t granules) {
  uint64_t address = 0;
  good(tarn__cuda_range_reserve(0, granules * GRANULE, 0, &address));
  return address;
}

static uint64_t memory_of(size_t granules, uint32_t flags) {
  uint64_t memory = 0;
  good(tarn__cuda_memory_create(0, granules * GRANULE, flags, &memory));
  return memory;
}

static void end_range(uint64_t address, size_t granules) {
  good(tarn__cuda_range_release(0, address, granules * GRANULE));
}

static tarn_status map(uint64_t address, size_t granules, uint64_t memory) {
  return tarn__cuda_range_map(0, address, granules * GRANULE, memory);
}

static tarn_status unmap(uint64_t address, size_t granules) {
  return tarn__cuda_range_unmap(0, address, granules * GRANULE);
}

TEST(a_range_is_released_as_a_whole) {
  uint64_t range = range_of(4);
  uint64_t memory = memory_of(1, 0);
  char part[64];
  snprintf(part, sizeof part,
           "cuda:0: range_release of %zu bytes at 0x%llx: ", 2 * GRANULE,
           (unsigned long long)range);
  refuses(tarn__cuda_range_release(0, range, 2 * GRANULE), part);
  refuses(tarn__cuda_range_release(0, range + GRANULE, 3 * GRANULE),
          "not a whole range");
  good(map(range + 2 * GRANULE, 1, memory));
  refuses(tarn__cuda_range_release(0, range, 4 * GRANULE),
          "something is mapped there");
  good(unmap(range + 2 * GRANULE, 1));
  good(tarn__cuda_memory_destroy(0, memory));
  end_range(range, 4);
  refuses(tarn__cuda_range_release(0, range, 4 * GRANULE), "not a whole range");
}

TEST(mappings_are_of_whole_memory_in_a_range) {
  uint64_t range = range_of(4);
  uint64_t memory = memory_of(2, 0);
  uint64_t block = block_of(GRANULE);
  refuses(map(range, 1, memory), "not the size of the memory");
  refuses(map(range + 4096, 2, memory), "not at a multiple");
  refuses(map(range + 3 * GRANULE, 2, memory), "not in a range");
  refuses(map(block & ~(uint64_t)(GRANULE - 1), 2, memory), "not in a range");
  refuses(map(range, 2, memory + 4711), "no such memory");
  good(map(range, 2, memory));
  refuses(map(range + 2 * GRANULE, 2, memory), "mapped elsewhere");
  good(tarn__cuda_memory_destroy(0, memory));
  refuses(tarn__cuda_memory_destroy(0, memory), "no such memory");
  memory = memory_of(2, TARN_EXT_MEMORY_SHAREABLE);
  refuses(map(range + GRANULE, 2, memory), "mapped there already");
  good(map(range + 2 * GRANULE, 2, memory));
  refuses(unmap(range, 1), "not whole mappings");
  refuses(unmap(range + GRANULE, 2), "not whole mappings");
  good(unmap(range, 4));
  refuses(unmap(range, 2), "nothing is mapped");
  good(tarn__cuda_memory_destroy(0, memory));
  end_range(range, 4);
  give(block);
}

TEST(rights_are_of_whole_mappings) {
  uint64_t range = range_of(2);
  uint64_t memory = memory_of(1, 0);
  good(map(range, 1, memory));
  refuses(tarn__cuda_range_set_access(0, range, 2 * GRANULE, 0,
                                      TARN_EXT_ACCESS_READ_WRITE),
          "nothing is mapped in some of it");
  refuses(tarn__cuda_range_set_access(0, range, GRANULE, 0, (tarn_ext_access)2),
          "no such right");
  refuses(tarn__cuda_range_set_access(0, range, GRANULE, 7,
                                      TARN_EXT_ACCESS_READ_WRITE),
          "there is no device 7");
  for (int by = 0; by < 2; by++)
    good(tarn__cuda_range_set_access(0, range, GRANULE, by,
                                     TARN_EXT_ACCESS_READ_WRITE));
  good(tarn__cuda_range_set_access(0, range, GRANULE, 1, TARN_EXT_ACCESS_NONE));
  good(unmap(range, 1));
  good(tarn__cuda_memory_destroy(0, memory));
  end_range(range, 2);
}

TEST(sizes_of_ranges_are_granular) {
  uint64_t out = 1;
  refuses(tarn__cuda_range_reserve(0, GRANULE + 1, 0, &out), "not a multiple");
  refuses(tarn__cuda_range_reserve(0, 0, 0, &out), "not a multiple");
  refuses(tarn__cuda_range_reserve(0, GRANULE, 3, &out), "no power of two");
  refuses(tarn__cuda_memory_create(0, GRANULE / 2, 0, &out), "not a multiple");
  refuses(tarn__cuda_memory_create(0, GRANULE, 2, &out), "flags");
  ck_assert_uint_eq(out, 0);
}

TEST(a_range_at_a_large_multiple) {
  uint64_t address = 0;
  good(tarn__cuda_range_reserve(0, GRANULE, 64 * GRANULE, &address));
  ck_assert_uint_eq(address % (64 * GRANULE), 0);
  end_range(address, 1);
}

// The close of a device ends it.
TEST(ranges_and_memory_that_are_left) {
  uint64_t range = range_of(2);
  good(map(range, 1, memory_of(1, 0)));
  (void)memory_of(1, TARN_EXT_MEMORY_SHAREABLE);
}

// --- file descriptors ------------------------------------------------------

static int export_of(uint64_t memory) {
  int fd = -1;
  good(tarn__cuda_memory_export(0, memory, &fd));
  ck_assert_int_gt(fd, 2);
  ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  return fd;
}

static void drop(uint64_t memory) {
  good(tarn__cuda_memory_destroy(0, memory));
}

TEST(an_import_has_the_size_of_the_memory) {
  uint64_t memory = memory_of(2, TARN_EXT_MEMORY_SHAREABLE);
  uint64_t imported = 1;
  int fd = export_of(memory);
  for (size_t granules = 1; granules < 5; granules += granules == 1 ? 2 : 1)
    refuses(tarn__cuda_memory_import(0, fd, granules * GRANULE, &imported),
            "has another size");
  ck_assert_uint_eq(imported, 0);
  good(tarn__cuda_memory_import(1, fd, 2 * GRANULE, &imported));
  uint64_t range = range_of(2);
  good(map(range, 2, imported));
  good(unmap(range, 2));
  end_range(range, 2);
  drop(imported);
  drop(memory);
  close(fd);
}

TEST(not_every_descriptor_is_of_memory) {
  uint64_t imported = 1;
  int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  refuses(tarn__cuda_memory_import(0, fd, GRANULE, &imported),
          "cuMemImportFromShareableHandle of file descriptor ");
  ck_assert_uint_eq(imported, 0);
  close(fd);
  forgive(tarn_standin_misuses());
}

TEST(not_all_memory_is_exported) {
  int fd = -1;
  uint64_t memory = memory_of(1, 0);
  refuses(tarn__cuda_memory_export(0, memory, &fd), "not shareable");
  refuses(tarn__cuda_memory_export(0, memory + 4711, &fd), "no such memory");
  drop(memory);
}

// --- addresses -------------------------------------------------------------

static void is_at(uint64_t address, tarn_ext_kind kind, int id, uint64_t base,
                  size_t size) {
  tarn_ext_pointer found;
  good(tarn__cuda_pointer_query(0, address, &found));
  ck_assert_int_eq(found.kind, kind);
  ck_assert_int_eq(found.id, id);
  ck_assert_uint_eq(found.base, base);
  ck_assert_uint_eq(found.size, size);
}

TEST(blocks_are_told) {
  uint64_t block = block_of(4096);
  void *other = NULL;
  void *managed = NULL;
  fine(tarn__cuda_device_memory_allocate(&one, &other, 4096));
  fine(tarn__cuda_unified_memory_allocate(&zero, &managed, 4096));
  is_at(block + 100, TARN_EXT_KIND_DEVICE, 0, block, 4096);
  is_at((uintptr_t)other, TARN_EXT_KIND_DEVICE, 1, (uintptr_t)other, 4096);
  is_at((uintptr_t)managed, TARN_EXT_KIND_UNIFIED, 0, (uintptr_t)managed, 4096);
  give(block);
  fine(tarn__cuda_device_memory_deallocate(&one, other, 4096));
  fine(tarn__cuda_unified_memory_deallocate(&zero, managed, 4096));
}

TEST(host_memory_is_told) {
  static char own[8192];
  void *pinned = NULL;
  tarn_ext_pointer found;
  uint64_t at = (uintptr_t)own;
  fine(tarn__cuda_host_memory_allocate(&zero, &pinned, 4096));
  good(tarn__cuda_host_register(0, own, sizeof own));
  is_at((uintptr_t)pinned, TARN_EXT_KIND_HOST, 0, (uintptr_t)pinned, 4096);
  is_at(at + 8000, TARN_EXT_KIND_HOST, 0, at, sizeof own);
  good(tarn__cuda_host_unregister(0, own));
  refuses(tarn__cuda_pointer_query(0, at, &found),
          "cuda:0: nothing is known of address 0x");
  fine(tarn__cuda_host_memory_deallocate(&zero, pinned, 4096));
}

TEST(mappings_are_told) {
  uint64_t range = range_of(3);
  uint64_t memory = memory_of(2, 0);
  tarn_ext_pointer found;
  good(map(range + GRANULE, 2, memory));
  is_at(range + 3 * GRANULE - 1, TARN_EXT_KIND_DEVICE, 0, range + GRANULE,
        2 * GRANULE);
  refuses(tarn__cuda_pointer_query(0, range, &found), "nothing is known");
  good(unmap(range + GRANULE, 2));
  drop(memory);
  end_range(range, 3);
}

TEST(registrations_do_not_overlap) {
  static char own[16384];
  good(tarn__cuda_host_register(0, own, sizeof own));
  refuses(tarn__cuda_host_register(0, own + 4096, 4096),
          "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED (712)");
  refuses(tarn__cuda_host_unregister(0, own + 4096),
          "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED (713)");
  refuses(tarn__cuda_host_register(0, NULL, 4096), "host_register of 4096");
  good(tarn__cuda_host_unregister(0, own));
  forgive(tarn_standin_misuses());
}

// --- contexts --------------------------------------------------------------

static void use_memory(void) {
  uint64_t block = block_of(4096);
  tarn_ext_pointer found;
  good(tarn__cuda_pointer_query(0, block, &found));
  give(block);
}

TEST(a_thread_keeps_its_context) {
  CUcontext other = NULL;
  CUcontext current = NULL;
  use_memory();
  ok(cuCtxGetCurrent(&current));
  ck_assert_ptr_null(current);
  ok(cuDevicePrimaryCtxRetain(&other, 1));
  ok(cuCtxPushCurrent_v2(other));
  use_memory();
  ok(cuCtxGetCurrent(&current));
  ck_assert_ptr_eq(current, other);
  ok(cuCtxPopCurrent_v2(&current));
  ok(cuDevicePrimaryCtxRelease_v2(1));
}
