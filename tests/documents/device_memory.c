// A program that follows PaddlePaddle's document "Memory APIs", function by
// function, through the public headers alone, on each device of
// support/document.h: one of them has the document's 22 functions and nothing
// else. Above each assertion stand the document's words that it checks. What
// the document says of a function that is not implemented is checked with a
// plug-in that lacks it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/document.h"
#include "support/fake_plugin.h"
#include "support/run.h"
#include "tarn/pool.h"

enum { BYTES = 100000 };
static const size_t MIB = (size_t)1 << 20;

static unsigned char source[BYTES];
static unsigned char target[BYTES];

static void fill_source(void) {
  for (size_t i = 0; i < BYTES; i++)
    source[i] = (unsigned char)(i * 7 + 1);
  memset(target, 0, sizeof target);
}

static void assert_copied(void) {
  ck_assert_mem_eq(source, target, BYTES);
}

static tarn_addr take_memory(tarn_place place, size_t size) {
  tarn_addr address = 0;
  assert_ok(tarn_device_allocate(place, size, &address));
  ck_assert_uint_ne(address, 0);
  return address;
}

static void give_memory(tarn_place place, tarn_addr address, size_t size) {
  assert_ok(tarn_device_deallocate(place, address, size));
}

static size_t available_on(tarn_device *device) {
  size_t total = 0;
  size_t available = 0;
  assert_ok(tarn_device_memory(device, &total, &available));
  return available;
}

static tarn_device_info info_of(tarn_device *device) {
  tarn_device_info info = {.struct_size = sizeof info};
  assert_ok(tarn_device_query(device, &info));
  return info;
}

static bool is_own(const tarn_device_info *info, tarn_device_function bit) {
  return (info->functions & (uint32_t)bit) != 0;
}

// Whether the memory of device |i| is counted for this program alone.
static bool counts_alone(int i) {
  return strcmp(test_devices[i], "cpu:0") != 0;
}

// --- device_memory_allocate, device_memory_deallocate ----------------------

TEST_LOOP(device_memory, DOCUMENT_DEVICES) {
  tarn_device *device = document_open(_i);
  tarn_place place = tarn_place_on(device);
  size_t before = available_on(device);
  // "It allocates the device memory."
  // "size - the size of the device memory needed to be allocated (in byte)"
  tarn_addr address = take_memory(place, 8 * MIB);
  if (counts_alone(_i)) {
    ck_assert_uint_eq(before - available_on(device), 8 * MIB);
  }
  // "ptr - the address of the allocated device memory"
  fill_source();
  assert_ok(
      tarn_copy_h2d(device, address + 8 * MIB - BYTES, source, BYTES, NULL));
  assert_ok(
      tarn_copy_d2h(device, target, address + 8 * MIB - BYTES, BYTES, NULL));
  assert_copied();
  // "It deallocates the device storage."
  give_memory(place, address, 8 * MIB);
  if (counts_alone(_i)) ck_assert_uint_eq(available_on(device), before);
  assert_ok(tarn_device_close(device));
}

// --- host_memory_*, unified_memory_* ---------------------------------------

static void use_from_host(tarn_device *device, tarn_place place) {
  void *pointer = NULL;
  tarn_addr address = take_memory(place, BYTES);
  assert_ok(tarn_device_host_view(place, address, BYTES, &pointer));
  fill_source();
  memcpy(pointer, source, BYTES);
  tarn_addr own = take_memory(tarn_place_on(device), BYTES);
  assert_ok(tarn_copy_h2d(device, own, pointer, BYTES, NULL));
  assert_ok(tarn_copy_d2h(device, target, own, BYTES, NULL));
  assert_copied();
  give_memory(tarn_place_on(device), own, BYTES);
  give_memory(place, address, BYTES);
}

TEST_LOOP(host_memory, DOCUMENT_DEVICES) {
  tarn_device *device = document_open(_i);
  // "It allocates pinned host memory."
  // "It deallocates the pinned host memory."
  use_from_host(device, (tarn_place){device, TARN_PLACE_HOST});
  assert_ok(tarn_device_close(device));
}

TEST_LOOP(unified_memory, DOCUMENT_DEVICES) {
  tarn_device *device = document_open(_i);
  tarn_place place = {device, TARN_PLACE_UNIFIED};
  tarn_device_info info = info_of(device);
  if (is_own(&info, TARN_FN_UNIFIED_MEMORY) &&
      device_has_memory(device, place.kind)) {
    // "It allocates unified memory."
    // "It deallocates unified memory."
    use_from_host(device, place);
  } else {
    // "unified_memory_allocate 【optional】"
    tarn_addr address = 1;
    assert_status(tarn_device_allocate(place, BYTES, &address),
                  TARN_E_UNSUPPORTED);
    ck_assert_uint_eq(address, 0);
  }
  assert_ok(tarn_device_close(device));
}

// --- copies ----------------------------------------------------------------

// Through two buffers of |device| and back, with all but copies between
// devices. |stream| NULL: each is done when the call returns.
static void copy_around(tarn_device *device, tarn_stream *stream) {
  tarn_place place = tarn_place_on(device);
  tarn_addr a = take_memory(place, BYTES);
  tarn_addr b = take_memory(place, BYTES);
  fill_source();
  assert_ok(tarn_copy_h2d(device, a, source, BYTES, stream));
  assert_ok(tarn_copy_d2d(device, b, a, BYTES, stream));
  assert_ok(tarn_copy_d2h(device, target, b, BYTES, stream));
  if (stream != NULL) assert_ok(tarn_stream_synchronize(stream));
  assert_copied();
  give_memory(place, a, BYTES);
  give_memory(place, b, BYTES);
}

static void copy_across(tarn_device *to, tarn_device *from,
                        tarn_stream *stream) {
  tarn_addr a = take_memory(tarn_place_on(from), BYTES);
  tarn_addr b = take_memory(tarn_place_on(to), BYTES);
  fill_source();
  assert_ok(tarn_copy_h2d(from, a, source, BYTES, NULL));
  assert_ok(tarn_copy_p2p(to, b, from, a, BYTES, stream));
  if (stream != NULL) assert_ok(tarn_stream_synchronize(stream));
  assert_ok(tarn_copy_d2h(to, target, b, BYTES, NULL));
  assert_copied();
  give_memory(tarn_place_on(from), a, BYTES);
  give_memory(tarn_place_on(to), b, BYTES);
}

TEST_LOOP(synchronous_copies, DOCUMENT_DEVICES) {
  tarn_device *device = document_open(_i);
  // "It copies synchronous memory from the host to the device."
  // "It copies synchronous memory from the device to the host."
  // "It copies synchronous memory in the device."
  // "size - the size of memory needed to be copied (in byte)"
  copy_around(device, NULL);
  assert_ok(tarn_device_close(device));
}

TEST_LOOP(asynchronous_copies, DOCUMENT_DEVICES) {
  tarn_device *device = document_open(_i);
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  // "It copies asynchronous memory from the host to the device."
  // "It copies asynchronous memory from device to host."
  // "It copies asynchronous memory in the device."
  // "stream - it is executed on that stream."
  copy_around(device, stream);
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_close(device));
}

// A second device of the type, or the next of the list.
static tarn_device *open_other(int i) {
  char second[32];
  tarn_device *device = NULL;
  snprintf(second, sizeof second, "%s", test_devices[i]);
  second[strlen(second) - 1] = '1';
  return tarn_device_open(second, &device) == TARN_OK ? device
                                                      : document_open(i + 1);
}

TEST_LOOP(copies_between_devices, DOCUMENT_DEVICES) {
  tarn_device *device = document_open(_i);
  tarn_device *other = open_other(_i);
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  // "It copies synchronous memory between devices."
  // "dst_device - the destination device", "src_device - the source device"
  copy_across(other, device, NULL);
  copy_across(device, other, NULL);
  // "It copies asynchronous memory between devices."
  copy_across(other, device, stream);
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_close(other));
  assert_ok(tarn_device_close(device));
}

// --- device_memory_set -----------------------------------------------------

static void set_some(tarn_device *device) {
  tarn_place place = tarn_place_on(device);
  tarn_addr address = take_memory(place, BYTES);
  assert_ok(tarn_device_set(device, address, 1, BYTES, NULL));
  assert_ok(tarn_device_set(device, address + 10, 0xab, BYTES - 20, NULL));
  assert_ok(tarn_copy_d2h(device, target, address, BYTES, NULL));
  for (size_t i = 0; i < BYTES; i++) {
    bool inside = i >= 10 && i < BYTES - 10;
    require(target[i] == (inside ? 0xab : 1));
  }
  give_memory(place, address, BYTES);
}

TEST_LOOP(memory_set, DOCUMENT_DEVICES) {
  tarn_device *device = document_open(_i);
  // "It uses the value to pad the memory of a device."
  // "value - padded value", "size - padding size (in byte)"
  set_some(device);
  assert_ok(tarn_device_close(device));
}

// --- what stands in for functions that are not implemented -----------------

static tarn_device *open_fake(uint64_t missing) {
  tarn_device *device = NULL;
  fake.missing = missing;
  fake_add();
  assert_ok(tarn_device_open("fake:0", &device));
  return device;
}

TEST(asynchronous_copies_that_are_missing) {
  tarn_device *device = open_fake(
      FAKE_MISSES(async_memory_copy_h2d) | FAKE_MISSES(async_memory_copy_d2h) |
      FAKE_MISSES(async_memory_copy_d2d) | FAKE_MISSES(async_memory_copy_p2p));
  tarn_device *other = NULL;
  tarn_stream *stream = NULL;
  assert_ok(tarn_device_open("fake:1", &other));
  assert_ok(tarn_stream_create(device, &stream));
  // "If it is not implemented, PaddlePaddle will be replace it with a
  // synchronous API."
  tarn_addr address = take_memory(tarn_place_on(device), BYTES);
  fill_source();
  assert_ok(tarn_copy_h2d(device, address, source, BYTES, stream));
  assert_ok(tarn_copy_d2h(device, target, address, BYTES, stream));
  ck_assert_uint_eq(fake_seen.copies, 2);  // without waiting for the stream
  assert_copied();
  copy_around(device, stream);
  copy_across(other, device, stream);
  give_memory(tarn_place_on(device), address, BYTES);
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_close(other));
  assert_ok(tarn_device_close(device));
}

TEST(memory_set_that_is_missing) {
  tarn_device *device = open_fake(FAKE_MISSES(device_memory_set));
  // "If it is not implemented, PaddlePaddle will take its place with
  // memory_copy_h2d."
  set_some(device);
  ck_assert_uint_ge(fake_seen.copies, 3);  // two of them, and the one back
  assert_ok(tarn_device_close(device));
}

TEST(copies_between_devices_that_are_missing) {
  tarn_device *device = open_fake(FAKE_MISSES(memory_copy_p2p) |
                                  FAKE_MISSES(async_memory_copy_p2p));
  tarn_device *other = NULL;
  assert_ok(tarn_device_open("fake:1", &other));
  // "memory_copy_p2p 【optional】"
  copy_across(other, device, NULL);
  assert_ok(tarn_device_close(other));
  assert_ok(tarn_device_close(device));
}

// --- device_memory_stats ---------------------------------------------------

TEST_LOOP(memory_stats, DOCUMENT_DEVICES) {
  tarn_device *device = document_open(_i);
  size_t total = 0;
  size_t available = 0;
  // "It counts the memory using condition."
  // "total_memory - total memory (in byte)"
  // "free_memory - free memory (in byte)"
  assert_ok(tarn_device_memory(device, &total, &available));
  ck_assert_uint_gt(total, 0);
  ck_assert_uint_le(available, total);
  if (counts_alone(_i)) ck_assert_uint_eq(available, total);
  assert_ok(tarn_device_close(device));
}

// --- sizes -----------------------------------------------------------------

// Each size is the plug-in's own, or what the document puts in its place.
TEST_LOOP(sizes_of_each_device, DOCUMENT_DEVICES) {
  tarn_device *device = document_open(_i);
  tarn_device_info info = info_of(device);
  // "It checks the minimum size of device memory chunks (in byte)."
  ck_assert(tarn_is_power_of_two(info.min_chunk));
  // "If it is not implemented, the memory size will be equal to that of the
  // current available memory."
  if (!is_own(&info, TARN_FN_MAX_ALLOC)) {
    ck_assert_uint_eq(info.max_alloc, available_on(device));
  }
  // "If this API is not implemented, the size of the memory is
  // device_max_alloc_size, the maximum size of allocatable device memory."
  if (!is_own(&info, TARN_FN_MAX_CHUNK)) {
    ck_assert_uint_eq(info.max_chunk, info.max_alloc);
  }
  // "If it is not implemented, the size will be set to 0 by default."
  if (!is_own(&info, TARN_FN_PADDING)) ck_assert_uint_eq(info.padding, 0);
  // "If it is not implemented, the size will be equal to
  // device_max_alloc_size, the maximum size of allocatable device memory."
  if (!is_own(&info, TARN_FN_INIT_SIZE)) {
    ck_assert_uint_eq(info.init_size, info.max_alloc);
  }
  // "If it is not implemented, the memory size will be equal to
  // device_max_alloc_size, the maximum size of allocatable device memory."
  if (!is_own(&info, TARN_FN_REALLOC_SIZE)) {
    ck_assert_uint_eq(info.realloc_size, info.max_alloc);
  }
  assert_ok(tarn_device_close(device));
}

static tarn_device *open_plain(void) {
  tarn_device *device = NULL;
  add_device("plain:0");
  assert_ok(tarn_device_open("plain:0", &device));
  return device;
}

TEST(sizes_that_are_missing_are_those_of_now) {
  tarn_device *device = open_plain();
  tarn_device_info before = info_of(device);
  ck_assert_uint_eq(
      before.functions &
          (uint32_t)(TARN_FN_MAX_ALLOC | TARN_FN_MAX_CHUNK | TARN_FN_PADDING |
                     TARN_FN_INIT_SIZE | TARN_FN_REALLOC_SIZE),
      0);
  tarn_addr address = take_memory(tarn_place_on(device), 100 * MIB);
  // "... that of the current available memory."
  tarn_device_info now = info_of(device);
  ck_assert_uint_eq(now.max_alloc, before.max_alloc - 100 * MIB);
  ck_assert_uint_eq(now.max_chunk, now.max_alloc);
  ck_assert_uint_eq(now.init_size, now.max_alloc);
  ck_assert_uint_eq(now.realloc_size, now.max_alloc);
  give_memory(tarn_place_on(device), address, 100 * MIB);
  assert_ok(tarn_device_close(device));
}

TEST(sizes_that_are_there) {
  setenv("PLAIN_MIN_CHUNK", "4096", 1);
  setenv("PLAIN_PADDING", "100", 1);
  setenv("PLAIN_MAX_ALLOC", "67108864", 1);
  setenv("PLAIN_MAX_CHUNK", "1048576", 1);
  setenv("PLAIN_INIT_SIZE", "6291456", 1);
  setenv("PLAIN_REALLOC_SIZE", "3145728", 1);
  tarn_device *device = open_plain();
  tarn_device_info info = info_of(device);
  // "size - the size of the minimum chunk (in byte)"
  ck_assert_uint_eq(info.min_chunk, 4096);
  // "size - the extra padding size (in byte)"
  ck_assert_uint_eq(info.padding, 100);
  // "size - the maximum size of allocatable memory (in byte)"
  ck_assert_uint_eq(info.max_alloc, 64 * MIB);
  // "size - the size of the maximum chunk (in byte)"
  ck_assert_uint_eq(info.max_chunk, MIB);
  // "size - the size of first allocated memory (in byte)"
  ck_assert_uint_eq(info.init_size, 6 * MIB);
  // "size - the size of reallocated memory (in byte)"
  ck_assert_uint_eq(info.realloc_size, 3 * MIB);
  assert_ok(tarn_device_close(device));
}

// --- what the sizes mean to the memory that is managed ---------------------

typedef struct managed {
  tarn_device *device;
  tarn_pool *pool;
  size_t available;  // before anything was allocated
} managed;

static managed manage_with(const char *strategy) {
  managed m = {.device = open_plain()};
  tarn_pool_options options = {.struct_size = sizeof options,
                               .strategy = strategy};
  m.available = available_on(m.device);
  assert_ok(tarn_pool_create(tarn_place_on(m.device), &options, &m.pool));
  return m;
}

// What the device's functions were asked for and still have out.
static size_t out_of(const managed *m) {
  return m->available - available_on(m->device);
}

static tarn_block allocate(const managed *m, size_t size) {
  tarn_block block;
  assert_ok(tarn_pool_alloc(m->pool, size, 0, NULL, &block));
  return block;
}

static void deallocate(tarn_block block) {
  assert_ok(tarn_pool_free(&block, NULL));
}

static void end(const managed *m) {
  assert_ok(tarn_pool_destroy(m->pool));
  ck_assert_uint_eq(available_on(m->device), m->available);
  assert_ok(tarn_device_close(m->device));
}

// The strategies that manage memory, and those that call the device for each
// block.
static const char *const managing[] = {"arena_pool", "page_unit_pool",
                                       "buddy_pool"};
static const char *const calling[] = {"no_pool", "async_pool"};
enum { MANAGING = 3, CALLING = 2 };

TEST_LOOP(memory_is_allocated_from_the_managed_memory, MANAGING) {
  managed m = manage_with(managing[_i]);
  deallocate(allocate(&m, 1000));
  size_t out = out_of(&m);
  // "In order not to call the device API to frequently apply for/ deallocate
  // memory, PaddlePaddle manages the device memory. When there is an
  // application, memory will be first allocated from the managed memory."
  for (int i = 0; i < 100; i++)
    deallocate(allocate(&m, 1000));
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  assert_ok(tarn_pool_query(m.pool, &stats));
  ck_assert_uint_eq(stats.device_allocs, 1);
  ck_assert_uint_eq(out_of(&m), out);
  end(&m);
}

static void assert_padded(const char *strategy, bool is_alone) {
  setenv("PLAIN_MIN_CHUNK", "65536", 1);
  setenv("PLAIN_PADDING", "100", 1);
  managed m = manage_with(strategy);
  // "When there is an application for memory whose size is "size", the size of
  // the allocated memory is size + extra_padding_size and it will be aligned
  // with min_chunk_size, the minimum size of memory chunks."
  tarn_block block = allocate(&m, 1000);
  ck_assert_uint_eq(block.size, 65536 - 100);
  ck_assert_uint_eq(out_of(&m) % 65536, 0);
  if (is_alone) ck_assert_uint_eq(out_of(&m), 65536);
  tarn_block two = allocate(&m, 65536 - 99);
  ck_assert_uint_eq(two.size, 2 * 65536 - 100);
  ck_assert_uint_eq(out_of(&m) % 65536, 0);
  deallocate(block);
  deallocate(two);
  end(&m);
}

TEST_LOOP(managed_memory_is_padded_and_aligned, MANAGING) {
  bool is_alone = strcmp(managing[_i], "page_unit_pool") == 0;
  assert_padded(managing[_i], is_alone);
}

TEST_LOOP(memory_of_the_device_api_is_padded_and_aligned, CALLING) {
  assert_padded(calling[_i], true);
}

TEST_LOOP(first_and_later_allocations, MANAGING) {
  setenv("PLAIN_INIT_SIZE", "6291456", 1);
  setenv("PLAIN_REALLOC_SIZE", "3145728", 1);
  managed m = manage_with(managing[_i]);
  // "It checks the size of allocated device memory (in byte) after
  // initialization."
  tarn_block small = allocate(&m, 1000);
  ck_assert_uint_eq(out_of(&m), 6 * MIB);
  // "It checks the size of reallocated device memory (in byte)."
  tarn_block first = allocate(&m, 4 * MIB);
  ck_assert_uint_eq(out_of(&m), 6 * MIB);
  tarn_block second = allocate(&m, 2 * MIB);
  ck_assert_uint_eq(out_of(&m), 9 * MIB);
  deallocate(small);
  deallocate(first);
  deallocate(second);
  end(&m);
}

TEST_LOOP(the_largest_chunk, MANAGING) {
  setenv("PLAIN_INIT_SIZE", "6291456", 1);
  setenv("PLAIN_MAX_CHUNK", "1048576", 1);
  managed m = manage_with(managing[_i]);
  tarn_block small = allocate(&m, 1000);
  // "The size of the memory allocated from that managed by PaddlePaddle is no
  // more than the maximum size of device memory chunks (in byte)."
  tarn_block whole = allocate(&m, MIB);
  ck_assert_uint_eq(out_of(&m), 6 * MIB);
  // "Otherwise, the device API will be invoked for allocation."
  tarn_block large = allocate(&m, MIB + 1);
  ck_assert_uint_eq(out_of(&m), 7 * MIB + 512);
  deallocate(large);
  ck_assert_uint_eq(out_of(&m), 6 * MIB);
  deallocate(small);
  deallocate(whole);
  end(&m);
}
