// The functions of hip.c in the table, over the stand-in as each major version
// of HIP. Nothing here says anything of a driver.
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/driver.h"
#include "cuda/hip.h"
#include "cuda/standin.h"
#include "support/run.h"

typedef struct hip_version {
  const char *library;
  int driver;  // in the form of CUDA's
  bool has_ranges;
} hip_version;

static const hip_version versions[] = {
    {TARN_STANDIN_HIP_5, 5020, false},
    {TARN_STANDIN_HIP_6, 6020, true},
    {TARN_STANDIN_HIP_7, 7010, true},
};
enum { VERSIONS = sizeof versions / sizeof *versions };

static const tarn__cuda_driver *hip;
static tarn__cuda_result (*set_device)(int device);
static tarn__cuda_result (*get_device)(int *out);

#define assert_done(call) ck_assert_uint_eq((call), TARN__CU_SUCCESS)

// A program that has loaded HIP, of which the plug-in then finds this one.
static const hip_version *begin(int i) {
  void *library = dlopen(versions[i].library, RTLD_NOW | RTLD_LOCAL);
  ck_assert_msg(library != NULL, "%s", dlerror());
  void *set = dlsym(library, "hipSetDevice");
  void *get = dlsym(library, "hipGetDevice");
  memcpy(&set_device, &set, sizeof set);
  memcpy(&get_device, &get, sizeof get);
  tarn_standin_reset();
  ck_assert(tarn_standin_set("DEVICES", "2"));
  hip = tarn__cuda_load();
  ck_assert_msg(hip != NULL, "%s", tarn__text_line());
  assert_done(hip->Init(0));
  return &versions[i];
}

static int current_device(void) {
  int device = -1;
  assert_done(get_device(&device));
  return device;
}

static CUcontext context_of(CUdevice device) {
  CUcontext context = NULL;
  assert_done(hip->DevicePrimaryCtxRetain(&context, device));
  ck_assert_ptr_nonnull(context);
  return context;
}

// --- devices ---------------------------------------------------------------

TEST_LOOP(the_version_has_cudas_form, VERSIONS) {
  const hip_version *v = begin(_i);
  int version = 0;
  assert_done(hip->DriverGetVersion(&version));
  ck_assert_int_eq(version, v->driver);
}

static int attribute_of(unsigned attribute) {
  int value = -1;
  assert_done(hip->DeviceGetAttribute(&value, attribute, 0));
  return value;
}

TEST_LOOP(attributes_are_asked_for_by_hips_numbers, VERSIONS) {
  const hip_version *v = begin(_i);
  int value = 0;
  ck_assert_int_eq(
      attribute_of(TARN__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 9);
  ck_assert_int_eq(attribute_of(TARN__CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY), 1);
  ck_assert_uint_eq(
      hip->DeviceGetAttribute(
          &value, TARN__CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
          0),
      v->has_ranges ? TARN__CU_SUCCESS : TARN__CU_ERROR_INVALID_VALUE);
  ck_assert_uint_eq(hip->DeviceGetAttribute(&value, 12345, 0),
                    TARN__CU_ERROR_INVALID_VALUE);
}

TEST_LOOP(errors_have_names_and_words, VERSIONS) {
  (void)begin(_i);
  const char *name = NULL;
  const char *words = NULL;
  assert_done(hip->GetErrorName(TARN__CU_ERROR_OUT_OF_MEMORY, &name));
  assert_done(hip->GetErrorString(TARN__CU_ERROR_OUT_OF_MEMORY, &words));
  ck_assert_ptr_nonnull(name);
  ck_assert_ptr_nonnull(words);
  ck_assert_int_eq(tarn__cuda_say(TARN__CU_ERROR_OUT_OF_MEMORY, "cuMemAlloc"),
                   C_FAILED);
  ck_assert_ptr_nonnull(strstr(tarn__text_line(), "hipMalloc: "));
}

// --- contexts --------------------------------------------------------------

TEST_LOOP(a_pop_sets_the_device_before_the_push, VERSIONS) {
  (void)begin(_i);
  CUcontext popped = NULL;
  assert_done(set_device(1));
  assert_done(hip->CtxPushCurrent(context_of(0)));
  ck_assert_int_eq(current_device(), 0);
  assert_done(hip->CtxPushCurrent(context_of(1)));
  assert_done(hip->CtxPushCurrent(context_of(0)));
  assert_done(hip->CtxPopCurrent(&popped));
  ck_assert_ptr_eq(popped, context_of(0));
  ck_assert_int_eq(current_device(), 1);
  assert_done(hip->CtxPopCurrent(&popped));
  ck_assert_int_eq(current_device(), 0);
  assert_done(hip->CtxPopCurrent(&popped));
  ck_assert_int_eq(current_device(), 1);
  ck_assert_uint_eq(hip->CtxPopCurrent(&popped),
                    TARN__CU_ERROR_INVALID_CONTEXT);
  ck_assert_int_eq(current_device(), 1);
}

TEST(a_push_without_room_is_refused) {
  enum { ROOM = 8 };
  (void)begin(0);
  CUcontext popped = NULL;
  assert_done(set_device(1));
  for (int i = 0; i < ROOM; i++)
    assert_done(hip->CtxPushCurrent(context_of(i % 2)));
  ck_assert_uint_eq(hip->CtxPushCurrent(context_of(0)),
                    TARN__CU_ERROR_INVALID_CONTEXT);
  for (int i = ROOM; i-- > 0;) {
    ck_assert_int_eq(current_device(), i % 2);
    assert_done(hip->CtxPopCurrent(&popped));
  }
  ck_assert_int_eq(current_device(), 1);
}

TEST(a_push_that_fails_changes_nothing) {
  (void)begin(0);
  CUcontext popped = NULL;
  assert_done(set_device(1));
  ck_assert_uint_ne(hip->CtxPushCurrent(context_of(40)), TARN__CU_SUCCESS);
  ck_assert_int_eq(current_device(), 1);
  ck_assert_uint_eq(hip->CtxPopCurrent(&popped),
                    TARN__CU_ERROR_INVALID_CONTEXT);
}

TEST(a_pop_is_made_though_the_driver_does_not_tell_the_device) {
  (void)begin(1);
  CUcontext popped = context_of(0);
  assert_done(set_device(1));
  assert_done(hip->CtxPushCurrent(context_of(0)));
  tarn_standin_fail_call("cuCtxGetCurrent", 1, TARN__CU_ERROR_OUT_OF_MEMORY,
                         false);
  assert_done(hip->CtxPopCurrent(&popped));
  ck_assert_ptr_null(popped);
  ck_assert_int_eq(current_device(), 1);
  ck_assert_uint_eq(hip->CtxPopCurrent(&popped),
                    TARN__CU_ERROR_INVALID_CONTEXT);
}

static void *push_elsewhere(void *unused) {
  (void)unused;
  assert_done(hip->CtxPushCurrent(context_of(1)));
  ck_assert_int_eq(current_device(), 1);
  return NULL;
}

TEST(pushes_are_the_threads_own) {
  (void)begin(1);
  pthread_t thread;
  CUcontext popped = NULL;
  assert_done(set_device(0));
  ck_assert_int_eq(pthread_create(&thread, NULL, push_elsewhere, NULL), 0);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  ck_assert_int_eq(current_device(), 0);
  ck_assert_uint_eq(hip->CtxPopCurrent(&popped),
                    TARN__CU_ERROR_INVALID_CONTEXT);
}

// --- streams ---------------------------------------------------------------

// The library refuses the handle 1.
TEST_LOOP(the_handle_of_the_stream_without_one_is_null, VERSIONS) {
  (void)begin(_i);
  CUdeviceptr block = 0;
  CUevent event = NULL;
  char host[64] = "what is copied";
  char back[64] = "";
  unsigned capturing = 7;
  const CUstream legacy = TARN__CU_STREAM_LEGACY;
  assert_done(set_device(0));
  assert_done(hip->MemAlloc(&block, sizeof host));
  assert_done(hip->MemcpyHtoDAsync(block, host, sizeof host, legacy));
  assert_done(hip->MemcpyDtoHAsync(back, block, sizeof back, legacy));
  assert_done(hip->EventCreate(&event, TARN__CU_EVENT_DISABLE_TIMING));
  assert_done(hip->EventRecord(event, legacy));
  assert_done(hip->StreamWaitEvent(legacy, event, 0));
  assert_done(hip->StreamIsCapturing(legacy, &capturing));
  ck_assert_uint_eq(capturing, TARN__CU_STREAM_CAPTURE_STATUS_NONE);
  assert_done(hip->StreamSynchronize(legacy));
  assert_done(hip->StreamQuery(legacy));
  ck_assert_str_eq(back, host);
  assert_done(hip->EventDestroy(event));
  assert_done(hip->MemFree(block));
}

// --- memory ----------------------------------------------------------------

static void assert_type(CUdeviceptr address, unsigned expected) {
  unsigned type = 0;
  assert_done(hip->PointerGetAttribute(
      &type, TARN__CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
  ck_assert_uint_eq(type, expected);
}

TEST_LOOP(addresses_are_told_as_by_cuda, VERSIONS) {
  (void)begin(_i);
  CUdeviceptr block = 0;
  CUdeviceptr managed = 0;
  CUdeviceptr start = 0;
  size_t size = 0;
  void *host = NULL;
  unsigned is_managed = 7;
  int device = -1;
  assert_done(set_device(1));
  assert_done(hip->MemAlloc(&block, 4096));
  assert_done(hip->MemHostAlloc(&host, 4096, TARN__CU_MEMHOSTALLOC_PORTABLE));
  assert_done(hip->MemAllocManaged(&managed, 4096, TARN__CU_MEM_ATTACH_GLOBAL));
  assert_type(block + 100, TARN__CU_MEMORYTYPE_DEVICE);
  assert_type((uintptr_t)host + 100, TARN__CU_MEMORYTYPE_HOST);
  assert_type(managed + 100, TARN__CU_MEMORYTYPE_DEVICE);
  assert_done(hip->PointerGetAttribute(
      &is_managed, TARN__CU_POINTER_ATTRIBUTE_IS_MANAGED, block));
  ck_assert_uint_eq(is_managed, 0);
  assert_done(hip->PointerGetAttribute(
      &is_managed, TARN__CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
  ck_assert_uint_eq(is_managed, 1);
  assert_done(hip->PointerGetAttribute(
      &device, TARN__CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, block));
  ck_assert_int_eq(device, 1);
  assert_done(hip->PointerGetAttribute(
      &start, TARN__CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, block + 100));
  ck_assert_uint_eq(start, block);
  assert_done(hip->PointerGetAttribute(
      &size, TARN__CU_POINTER_ATTRIBUTE_RANGE_SIZE, block + 100));
  ck_assert_uint_eq(size, 4096);
  assert_done(hip->MemFree(block));
  assert_done(hip->MemFree(managed));
  assert_done(hip->MemFreeHost(host));
}

// HIP tells no address of it.
TEST_LOOP(the_range_of_host_memory_is_not_told, VERSIONS) {
  (void)begin(_i);
  void *host = NULL;
  CUdeviceptr start = 0;
  assert_done(set_device(0));
  assert_done(hip->MemHostAlloc(&host, 4096, TARN__CU_MEMHOSTALLOC_PORTABLE));
  ck_assert_uint_eq(hip->PointerGetAttribute(
                        &start, TARN__CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                        (uintptr_t)host + 100),
                    TARN__CU_ERROR_INVALID_VALUE);
  assert_done(hip->MemFreeHost(host));
}

TEST_LOOP(an_address_that_is_not_known_is_an_invalid_value, VERSIONS) {
  (void)begin(_i);
  static char nobodys[64];
  unsigned type = 0;
  assert_done(set_device(0));
  ck_assert_uint_eq(
      hip->PointerGetAttribute(&type, TARN__CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                               (uintptr_t)nobodys),
      TARN__CU_ERROR_INVALID_VALUE);
}

TEST_LOOP(devices_copy_to_each_other_by_number, VERSIONS) {
  (void)begin(_i);
  CUdeviceptr blocks[2] = {0};
  char host[64] = "from one to the other";
  char back[64] = "";
  for (int d = 0; d < 2; d++) {
    assert_done(set_device(d));
    assert_done(hip->MemAlloc(&blocks[d], sizeof host));
  }
  assert_done(set_device(0));
  assert_done(hip->MemcpyHtoDAsync(blocks[0], host, sizeof host, NULL));
  assert_done(hip->MemcpyPeerAsync(blocks[1], context_of(1), blocks[0],
                                   context_of(0), sizeof host,
                                   TARN__CU_STREAM_LEGACY));
  assert_done(hip->StreamSynchronize(NULL));
  assert_done(set_device(1));
  assert_done(hip->MemcpyDtoHAsync(back, blocks[1], sizeof back, NULL));
  assert_done(hip->StreamSynchronize(NULL));
  ck_assert_str_eq(back, host);
  for (int d = 0; d < 2; d++)
    assert_done(hip->MemFree(blocks[d]));
}

static const struct CUmemAllocationProp_st shareable = {
    .type = TARN__CU_MEM_ALLOCATION_TYPE_PINNED,
    .requestedHandleTypes = TARN__CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    .location = {TARN__CU_MEM_LOCATION_TYPE_DEVICE, 0}};

// By its value, whatever the version takes.
TEST_LOOP(a_descriptor_is_imported, VERSIONS) {
  const hip_version *v = begin(_i);
  CUmemGenericAllocationHandle memory = 0;
  CUmemGenericAllocationHandle imported = 0;
  size_t granule = 0;
  int fd = -1;
  if (!v->has_ranges) return;
  assert_done(set_device(0));
  assert_done(hip->MemGetAllocationGranularity(
      &granule, &shareable, TARN__CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  assert_done(hip->MemCreate(&memory, granule, &shareable, 0));
  assert_done(hip->MemExportToShareableHandle(
      &fd, memory, TARN__CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  assert_done(hip->MemImportFromShareableHandle(
      &imported, (void *)(intptr_t)fd,
      TARN__CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  ck_assert_int_eq(close(fd), 0);
  assert_done(hip->MemRelease(imported));
  assert_done(hip->MemRelease(memory));
}
