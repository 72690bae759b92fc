// The stand-in as a program without mistakes sees it: devices, memory, copies,
// ranges, other processes.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "standin_ground.h"

enum { SIZE = 100000, SMALL = 64 };

// --- devices ---------------------------------------------------------------

static int attribute(unsigned name) {
  int value = -1;
  done(cuDeviceGetAttribute(&value, name, 0));
  return value;
}

TEST(a_device_says_that_it_is_a_stand_in) {
  char name[64];
  size_t total = 0;
  int count = 0;
  done(cuInit(0));
  done(cuDeviceGetCount(&count));
  ck_assert_int_eq(count, 1);
  done(cuDeviceGetName(name, sizeof name, 0));
  ck_assert_str_eq(name, "Stand-in GPU");
  done(cuDeviceTotalMem_v2(&total, 0));
  ck_assert_uint_eq(total, 1 << 30);
  ck_assert_int_eq(attribute(TARN__CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED),
                   1);
  ck_assert(tarn_standin_set("WITHOUT", "pools"));
  ck_assert_int_eq(attribute(TARN__CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED),
                   0);
  ck_assert_ptr_nonnull(strstr(tarn_standin_name(), "no driver"));
}
END_TEST

TEST(there_may_be_no_device) {
  ck_assert(tarn_standin_set("DEVICES", "0"));
  gives(cuInit(0), TARN__CU_ERROR_NO_DEVICE);
  const char *name = NULL;
  done(cuGetErrorName(TARN__CU_ERROR_NO_DEVICE, &name));
  ck_assert_str_eq(name, "CUDA_ERROR_NO_DEVICE");
  gives(cuGetErrorName(12345, &name), TARN__CU_ERROR_INVALID_VALUE);
  ck_assert_ptr_null(name);
}
END_TEST

// --- memory and copies -----------------------------------------------------

TEST(memory_is_counted_and_closed_to_the_host) {
  ground on = ground_open();
  size_t before = 0, after = 0, total = 0;
  done(cuMemGetInfo_v2(&before, &total));
  CUdeviceptr block = ground_block(513);
  done(cuMemGetInfo_v2(&after, &total));
  ck_assert_uint_eq(before - after, 1024);
  ck_assert_uint_eq(block % 256, 0);
  ck_assert(!host_reaches(block));
  gives(cuMemAlloc_v2(&block, total), TARN__CU_ERROR_OUT_OF_MEMORY);
  done(cuMemFree_v2(block));
  ck_assert(!host_reaches(block));
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

TEST(bytes_go_to_the_device_and_come_back) {
  ground on = ground_open();
  unsigned char *in = malloc(SIZE), *out = NULL;
  ck_assert_ptr_nonnull(in);
  CUdeviceptr first = ground_block(SIZE), second = ground_block(SIZE);
  done(cuMemHostAlloc((void **)&out, SIZE, TARN__CU_MEMHOSTALLOC_PORTABLE));
  fill_in(in, SIZE);
  done(cuMemcpyHtoDAsync_v2(first, in, SIZE, on.stream));
  done(cuMemcpyDtoDAsync_v2(second, first, SIZE, on.stream));
  done(cuMemsetD8Async(first, 9, SIZE, on.stream));
  done(cuMemcpyDtoHAsync_v2(out, second, SIZE, on.stream));
  done(cuStreamSynchronize(on.stream));
  assert_filled(out, SIZE);
  done(cuMemcpyDtoHAsync_v2(out, first, SIZE, on.stream));
  done(cuStreamSynchronize(on.stream));
  assert_all(out, SIZE, 9);
  free(in);
  done(cuMemFreeHost(out));
  done(cuMemFree_v2(first));
  done(cuMemFree_v2(second));
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

// A source that is not pinned may be used again at once if it is small.
TEST(small_sources_are_staged) {
  ground on = ground_open();
  unsigned char bytes[SMALL], out[SMALL] = {0};
  CUdeviceptr block = ground_block(SMALL);
  fill_in(bytes, SMALL);
  tarn_standin_hold(true);
  done(cuMemcpyHtoDAsync_v2(block, bytes, SMALL, on.stream));
  memset(bytes, 0, SMALL);
  tarn_standin_hold(false);
  done(cuMemcpyDtoHAsync_v2(out, block, SMALL, on.stream));
  done(cuStreamSynchronize(on.stream));
  assert_filled(out, SMALL);
  ck_assert(tarn_standin_set("PAGEABLE", "late"));
  tarn_standin_hold(true);
  done(cuMemcpyHtoDAsync_v2(block, bytes, SMALL, on.stream));
  memset(bytes, 3, SMALL);
  tarn_standin_hold(false);
  done(cuMemcpyDtoHAsync_v2(out, block, SMALL, on.stream));
  done(cuStreamSynchronize(on.stream));
  assert_all(out, SMALL, 3);
  done(cuMemFree_v2(block));
  ground_close(&on);
}
END_TEST

TEST(memory_of_the_program_and_managed_memory) {
  ground on = ground_open();
  static unsigned char mine[SMALL];
  unsigned type = 0, managed = 0;
  CUdeviceptr address = 0, mine_at = (uintptr_t)mine;
  done(cuMemHostRegister_v2(mine, SMALL, TARN__CU_MEMHOSTREGISTER_PORTABLE));
  gives(cuMemHostRegister_v2(mine + 1, 1, 0),
        TARN__CU_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  done(cuPointerGetAttribute(&type, TARN__CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                             mine_at));
  ck_assert_uint_eq(type, TARN__CU_MEMORYTYPE_HOST);
  done(cuMemsetD8Async(mine_at, 5, SMALL, on.stream));
  done(cuStreamSynchronize(on.stream));
  assert_all(mine, SMALL, 5);
  done(cuMemHostUnregister(mine));
  gives(cuMemHostUnregister(mine), TARN__CU_ERROR_HOST_MEMORY_NOT_REGISTERED);
  done(cuMemAllocManaged(&address, SMALL, TARN__CU_MEM_ATTACH_GLOBAL));
  done(cuPointerGetAttribute(&managed, TARN__CU_POINTER_ATTRIBUTE_IS_MANAGED,
                             address));
  ck_assert_uint_eq(managed, 1);
  ck_assert(host_reaches(address));
  done(cuMemFree_v2(address));
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

TEST(an_address_tells_its_block) {
  ground on = ground_open();
  CUdeviceptr block = ground_block(SIZE), base = 0, start = 0;
  size_t size = 0, range = 0;
  int device = -1;
  done(cuMemGetAddressRange_v2(&base, &size, block + 7));
  ck_assert_uint_eq(base, block);
  ck_assert_uint_eq(size, SIZE);
  done(cuPointerGetAttribute(
      &start, TARN__CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, block + 9));
  done(cuPointerGetAttribute(&range, TARN__CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                             block));
  done(cuPointerGetAttribute(&device, TARN__CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                             block));
  ck_assert_uint_eq(start, block);
  ck_assert_uint_eq(range, SIZE);
  ck_assert_int_eq(device, 0);
  gives(cuPointerGetAttribute(&device,
                              TARN__CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 4096),
        TARN__CU_ERROR_INVALID_VALUE);
  done(cuMemFree_v2(block));
  ground_close(&on);
}
END_TEST

TEST(bytes_go_from_device_to_device) {
  CUcontext other = NULL, popped = NULL;
  CUdeviceptr there = 0;
  unsigned char in[SMALL], out[SMALL] = {0};
  ck_assert(tarn_standin_set("DEVICES", "2"));
  ground on = ground_open();
  CUdeviceptr here = ground_block(SMALL);
  done(cuDevicePrimaryCtxRetain(&other, 1));
  done(cuCtxPushCurrent_v2(other));
  done(cuMemAlloc_v2(&there, SMALL));
  done(cuCtxPopCurrent_v2(&popped));
  ck_assert_ptr_eq(popped, other);
  fill_in(in, SMALL);
  done(cuMemcpyHtoDAsync_v2(here, in, SMALL, on.stream));
  done(cuMemcpyPeerAsync(there, other, here, on.context, SMALL, on.stream));
  done(cuMemsetD8Async(here, 0, SMALL, on.stream));
  done(cuMemcpyPeerAsync(here, on.context, there, other, SMALL, on.stream));
  done(cuMemcpyDtoHAsync_v2(out, here, SMALL, on.stream));
  done(cuStreamSynchronize(on.stream));
  assert_filled(out, SMALL);
  done(cuMemFree_v2(here));
  done(cuMemFree_v2(there));
  done(cuDevicePrimaryCtxRelease_v2(1));
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

// --- ranges ----------------------------------------------------------------

static const struct CUmemAllocationProp_st properties = {
    .type = TARN__CU_MEM_ALLOCATION_TYPE_PINNED,
    .requestedHandleTypes = TARN__CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    .location = {TARN__CU_MEM_LOCATION_TYPE_DEVICE, 0},
};
static const struct CUmemAccessDesc_st rights = {
    .location = {TARN__CU_MEM_LOCATION_TYPE_DEVICE, 0},
    .flags = TARN__CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

static CUmemGenericAllocationHandle granule(void) {
  CUmemGenericAllocationHandle memory = 0;
  done(cuMemCreate(&memory, GRANULE, &properties, 0));
  return memory;
}

TEST(a_copy_goes_over_several_mappings) {
  ground on = ground_open();
  CUdeviceptr range = 0;
  size_t least = 0;
  unsigned char *in = malloc(SIZE), *out = malloc(SIZE);
  ck_assert(in != NULL && out != NULL);
  done(cuMemGetAllocationGranularity(&least, &properties,
                                     TARN__CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  ck_assert_uint_eq(least, GRANULE);
  done(cuMemAddressReserve(&range, 4 * GRANULE, 0, 0, 0));
  ck_assert_uint_eq(range % GRANULE, 0);
  CUmemGenericAllocationHandle a = granule(), b = granule();
  done(cuMemMap(range, GRANULE, 0, a, 0));
  done(cuMemMap(range + GRANULE, GRANULE, 0, b, 0));
  done(cuMemRelease(a));
  done(cuMemRelease(b));
  done(cuMemSetAccess(range, 2 * GRANULE, &rights, 1));
  ck_assert(!host_reaches(range));
  fill_in(in, SIZE);
  CUdeviceptr at = range + GRANULE - SIZE / 2;
  done(cuMemcpyHtoDAsync_v2(at, in, SIZE, on.stream));
  done(cuMemcpyDtoHAsync_v2(out, at, SIZE, on.stream));
  done(cuStreamSynchronize(on.stream));
  assert_filled(out, SIZE);
  ck_assert_uint_eq(tarn_standin_bytes(), 2 * GRANULE);
  done(cuMemUnmap(range, 2 * GRANULE));
  ck_assert_uint_eq(tarn_standin_bytes(), 0);
  done(cuMemAddressFree(range, 4 * GRANULE));
  free(in);
  free(out);
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

TEST(addresses_may_be_few) {
  ground on = ground_open();
  CUdeviceptr first = 0, second = 0;
  ck_assert(tarn_standin_set("RESERVE_MAX", "4194304"));
  ck_assert(tarn_standin_set("ADDRESSES", "6291456"));
  gives(cuMemAddressReserve(&first, 3 * GRANULE, 0, 0, 0),
        TARN__CU_ERROR_OUT_OF_MEMORY);
  done(cuMemAddressReserve(&first, 2 * GRANULE, 0, 0, 0));
  gives(cuMemAddressReserve(&second, 2 * GRANULE, 0, 0, 0),
        TARN__CU_ERROR_OUT_OF_MEMORY);
  done(cuMemAddressReserve(&second, GRANULE, 0, 0, 0));
  done(cuMemAddressFree(first, 2 * GRANULE));
  done(cuMemAddressFree(second, GRANULE));
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

// The same bytes, mapped here or in another process.
static void look_through(const ground *on, int file, int value) {
  CUmemGenericAllocationHandle memory = 0;
  CUdeviceptr range = 0;
  unsigned char out[SMALL] = {0};
  done(cuMemImportFromShareableHandle(
      &memory, (void *)(intptr_t)file,
      TARN__CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  done(cuMemAddressReserve(&range, GRANULE, 0, 0, 0));
  done(cuMemMap(range, GRANULE, 0, memory, 0));
  done(cuMemSetAccess(range, GRANULE, &rights, 1));
  done(cuMemcpyDtoHAsync_v2(out, range, SMALL, on->stream));
  done(cuMemsetD8Async(range, (unsigned char)(value + 1), SMALL, on->stream));
  done(cuStreamSynchronize(on->stream));
  assert_all(out, SMALL, value);
  done(cuMemUnmap(range, GRANULE));
  done(cuMemRelease(memory));
  done(cuMemAddressFree(range, GRANULE));
}

static int export_granule(int value, const ground *on) {
  int file = -1;
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle memory = granule();
  done(cuMemAddressReserve(&range, GRANULE, 0, 0, 0));
  done(cuMemMap(range, GRANULE, 0, memory, 0));
  done(cuMemSetAccess(range, GRANULE, &rights, 1));
  done(cuMemsetD8Async(range, (unsigned char)value, SMALL, on->stream));
  done(cuStreamSynchronize(on->stream));
  done(cuMemExportToShareableHandle(
      &file, memory, TARN__CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  done(cuMemUnmap(range, GRANULE));
  done(cuMemRelease(memory));
  done(cuMemAddressFree(range, GRANULE));
  return file;
}

enum { DESCRIPTOR = 100 };

static void await_sign(int end) {
  char sign = 0;
  ck_assert_int_eq(read(end, &sign, 1), 1);
}

static void give_sign(int end) {
  ck_assert_int_eq(write(end, "x", 1), 1);
}

_Noreturn static void own_memory(int ready, int used) {
  ground on = ground_open();
  int file = export_granule(3, &on);
  ck_assert_int_eq(dup2(file, DESCRIPTOR), DESCRIPTOR);
  give_sign(ready);
  await_sign(used);
  look_through(&on, file, 4);
  ground_close(&on);
  assert_misuses(0);
  exit(0);
}

TEST(another_process_has_the_same_memory) {
  char path[64];
  int ready[2], used[2], status = -1;
  ck_assert(pipe(ready) == 0 && pipe(used) == 0);
  pid_t owner = fork();
  ck_assert_int_ge(owner, 0);
  if (owner == 0) own_memory(ready[1], used[0]);
  await_sign(ready[0]);
  snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)owner, DESCRIPTOR);
  int file = open(path, O_RDWR | O_CLOEXEC);
  ck_assert_int_ge(file, 0);
  ground on = ground_open();
  look_through(&on, file, 3);
  close(file);
  give_sign(used[1]);
  ck_assert_int_eq(waitpid(owner, &status, 0), owner);
  ck_assert_int_eq(status, 0);
  assert_misuses(0);
  ground_close(&on);
}
END_TEST
