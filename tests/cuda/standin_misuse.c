// What the stand-in finds: what is left, and how it is used wrongly.
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "standin_ground.h"

enum { SMALL = 64 };

// --- what is left ----------------------------------------------------------

TEST(what_lives_is_counted) {
  ground on = ground_open();
  void *pinned = NULL;
  CUdeviceptr block = ground_block(SMALL);
  CUevent event = ground_event();
  done(cuMemHostAlloc(&pinned, SMALL, 0));
  ck_assert_uint_eq(tarn_standin_live("device"), 1);
  ck_assert_uint_eq(tarn_standin_live("pinned"), 1);
  ck_assert_uint_eq(tarn_standin_live("event"), 1);
  ck_assert_uint_eq(tarn_standin_live("stream"), 1);
  ck_assert_uint_eq(tarn_standin_live(NULL), 5);
  done(cuMemFree_v2(block));
  done(cuMemFreeHost(pinned));
  done(cuEventDestroy_v2(event));
  ground_close(&on);
}
END_TEST

// Uses the stand-in wrongly, leaves a block, and ends.
static void end_badly(void) {
  (void)ground_open();
  (void)ground_block(SMALL);
  (void)cuStreamQuery((CUstream)(intptr_t)64);
  exit(0);
}

TEST(a_file_tells_what_was_wrong_and_what_is_left) {
  char path[] = "/tmp/tarn_standin_XXXXXX", text[1024] = "";
  int file = mkstemp(path);
  ck_assert_int_ge(file, 0);
  setenv("TARN_STANDIN_REPORT", path, 1);
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) end_badly();
  ck_assert_int_eq(waitpid(child, NULL, 0), child);
  ck_assert_int_gt(read(file, text, sizeof text - 1), 0);
  close(file);
  unlink(path);
  ck_assert_ptr_nonnull(
      strstr(text, "cuStreamQuery: 0x40 was never a stream (400)\n"));
  ck_assert_ptr_nonnull(strstr(text, "at the end: 1 of device left\n"));
  ck_assert_ptr_nonnull(strstr(text, "at the end: 1 of context left\n"));
}
END_TEST

TEST(what_is_left_in_a_context_that_ends_is_told) {
  ground on = ground_open();
  (void)ground_block(SMALL);
  refuses((cuDevicePrimaryCtxRelease_v2(0)), TARN__CU_SUCCESS,
          "2 blocks, streams, events and modules are left");
  ck_assert_uint_eq(tarn_standin_live(NULL), 0);
  ck_assert_ptr_nonnull(on.context);
}
END_TEST

// --- who may call ----------------------------------------------------------

TEST(calls_before_the_driver_is_ready) {
  CUdeviceptr block = 0;
  int count = 0;
  refuses(cuDeviceGetCount(&count), TARN__CU_ERROR_NOT_INITIALIZED,
          "before cuInit");
  done(cuInit(0));
  refuses(cuMemAlloc_v2(&block, SMALL), TARN__CU_ERROR_INVALID_CONTEXT,
          "no current context");
  refuses(cuCtxPopCurrent_v2(NULL), TARN__CU_ERROR_INVALID_CONTEXT,
          "no context to pop");
  refuses(cuCtxPushCurrent_v2((CUcontext)(intptr_t)8),
          TARN__CU_ERROR_INVALID_CONTEXT, "is no context");
}
END_TEST

TEST(a_child_may_not_call) {
  int status = 0;
  done(cuInit(0));
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    int count = 0;
    refuses(cuDeviceGetCount(&count), TARN__CU_ERROR_NOT_INITIALIZED,
            "a child of the process");
    _exit(0);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
}
END_TEST

static void call_from_callback(CUstream stream, tarn__cuda_result status,
                               void *user) {
  ck_assert_uint_eq(status, TARN__CU_SUCCESS);
  *(tarn__cuda_result *)user = cuStreamQuery(stream);
}

TEST(a_callback_may_not_call) {
  ground on = ground_open();
  tarn__cuda_result answer = TARN__CU_SUCCESS;
  done(cuStreamAddCallback(on.stream, call_from_callback, &answer, 0));
  done(cuStreamSynchronize(on.stream));
  gives(answer, TARN__CU_ERROR_NOT_PERMITTED);
  assert_misuses(1);
  ground_close(&on);
}
END_TEST

TEST(contexts_are_kept_apart) {
  ck_assert(tarn_standin_set("DEVICES", "2"));
  ground on = ground_open();
  CUcontext other = NULL;
  CUdeviceptr there = 0, here = ground_block(SMALL);
  CUevent event = NULL;
  done(cuDevicePrimaryCtxRetain(&other, 1));
  done(cuCtxPushCurrent_v2(other));
  done(cuMemAlloc_v2(&there, SMALL));
  done(cuEventCreate(&event, 0));
  refuses(cuMemsetD8Async(there, 0, SMALL, on.stream),
          TARN__CU_ERROR_INVALID_HANDLE, "the stream is of another context");
  refuses(cuEventRecord(event, on.stream), TARN__CU_ERROR_INVALID_HANDLE,
          "of two contexts");
  done(cuCtxPopCurrent_v2(NULL));
  refuses(cuMemcpyDtoDAsync_v2(here, there, SMALL, on.stream),
          TARN__CU_ERROR_INVALID_VALUE, "of another context");
  done(cuStreamWaitEvent(on.stream, event, 0));
  done(cuMemFree_v2(there));
  done(cuMemFree_v2(here));
  done(cuEventDestroy_v2(event));
  done(cuDevicePrimaryCtxRelease_v2(1));
  ground_close(&on);
}
END_TEST

// --- handles and memory ----------------------------------------------------

TEST(handles_that_are_not_good_are_refused) {
  ground on = ground_open();
  CUstream other = ground_stream(0);
  CUevent event = ground_event();
  done(cuStreamDestroy_v2(other));
  refuses(cuStreamSynchronize(other), TARN__CU_ERROR_INVALID_HANDLE,
          "was destroyed");
  refuses(cuStreamDestroy_v2(other), TARN__CU_ERROR_INVALID_HANDLE,
          "was destroyed");
  refuses(cuStreamDestroy_v2(NULL), TARN__CU_ERROR_INVALID_HANDLE,
          "that every context has");
  refuses(cuStreamQuery((CUstream)event), TARN__CU_ERROR_INVALID_HANDLE,
          "is no stream but a event");
  refuses(cuEventQuery(NULL), TARN__CU_ERROR_INVALID_HANDLE, "no event: NULL");
  done(cuEventDestroy_v2(event));
  ground_close(&on);
}
END_TEST

TEST(memory_that_is_not_good_is_refused) {
  ground on = ground_open();
  unsigned char bytes[SMALL] = {0};
  CUdeviceptr block = ground_block(SMALL), plain = (uintptr_t)bytes;
  refuses(cuMemFree_v2(block + 1), TARN__CU_ERROR_INVALID_VALUE,
          "byte 1 of device memory");
  refuses(cuMemFree_v2(plain), TARN__CU_ERROR_INVALID_VALUE, "never given out");
  refuses(cuMemFreeHost((void *)(uintptr_t)block), TARN__CU_ERROR_INVALID_VALUE,
          "no pinned memory");
  refuses(cuMemsetD8Async(plain, 0, SMALL, on.stream),
          TARN__CU_ERROR_INVALID_VALUE, "no memory of a device");
  refuses(cuMemsetD8Async(block + 1, 0, SMALL, on.stream),
          TARN__CU_ERROR_INVALID_VALUE, "64 bytes at byte 1 of device memory");
  refuses(
      cuMemcpyHtoDAsync_v2(block, (void *)(uintptr_t)block, SMALL, on.stream),
      TARN__CU_ERROR_INVALID_VALUE, "the host does not reach");
  refuses(cuMemAlloc_v2(&plain, 0), TARN__CU_ERROR_INVALID_VALUE, "0 bytes");
  done(cuMemFree_v2(block));
  refuses(cuMemFree_v2(block), TARN__CU_ERROR_INVALID_VALUE, "it was freed");
  refuses(cuMemsetD8Async(block, 0, SMALL, on.stream),
          TARN__CU_ERROR_INVALID_VALUE, "that was freed");
  ground_close(&on);
}
END_TEST

static void assert_found(const char *part) {
  char text[4096];
  tarn_standin_report(text, sizeof text);
  ck_assert_msg(strstr(text, part) != NULL, "no '%s' in:\n%s", part, text);
  done(cuDevicePrimaryCtxReset_v2(0));
}

TEST(memory_that_is_freed_too_early_is_found_when_the_command_runs) {
  ground on = ground_open();
  CUdeviceptr block = ground_block(SMALL);
  tarn_standin_hold(true);
  done(cuMemsetD8Async(block, 0, SMALL, on.stream));
  done(cuMemFree_v2(block));
  assert_misuses(0);
  tarn_standin_hold(false);
  gives(cuStreamSynchronize(on.stream), TARN__CU_ERROR_ILLEGAL_ADDRESS);
  assert_found("was freed before the command ran");
}
END_TEST

static void wait_for_gate(void *gate) {
  while (!atomic_load((atomic_bool *)gate)) {
  }
}

TEST(memory_of_a_pool_is_not_there_on_another_stream) {
  ground on = ground_open();
  CUstream other = ground_stream(TARN__CU_STREAM_NON_BLOCKING);
  CUmemoryPool pool = NULL;
  CUdeviceptr block = 0;
  static atomic_bool gate;  // which outlives the test's last line
  done(cuDeviceGetDefaultMemPool(&pool, 0));
  done(cuLaunchHostFunc(on.stream, wait_for_gate, &gate));
  done(cuMemAllocFromPoolAsync(&block, SMALL, pool, on.stream));
  done(cuMemsetD8Async(block, 0, SMALL, other));
  gives(cuStreamSynchronize(other), TARN__CU_ERROR_ILLEGAL_ADDRESS);
  atomic_store(&gate, true);
  assert_misuses(1);
  assert_found("is not there when the command runs");
}
END_TEST

// --- ranges ----------------------------------------------------------------

static const struct CUmemAllocationProp_st properties = {
    .type = TARN__CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {TARN__CU_MEM_LOCATION_TYPE_DEVICE, 0},
};
static const struct CUmemAccessDesc_st rights = {
    .location = {TARN__CU_MEM_LOCATION_TYPE_DEVICE, 0},
    .flags = TARN__CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

TEST(ranges_that_are_not_whole_are_refused) {
  ground on = ground_open();
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle memory = 0;
  int file = -1;
  refuses(cuMemAddressReserve(&range, GRANULE + 1, 0, 0, 0),
          TARN__CU_ERROR_INVALID_VALUE, "not whole granules");
  refuses(cuMemCreate(&memory, SMALL, &properties, 0),
          TARN__CU_ERROR_INVALID_VALUE, "not whole granules");
  done(cuMemAddressReserve(&range, 2 * GRANULE, 0, 0, 0));
  done(cuMemCreate(&memory, GRANULE, &properties, 0));
  gives(cuMemMap(range, 2 * GRANULE, 0, memory, 0),
        TARN__CU_ERROR_INVALID_VALUE);
  refuses(cuMemMap(range + 2 * GRANULE, GRANULE, 0, memory, 0),
          TARN__CU_ERROR_INVALID_VALUE, "are not reserved");
  refuses(cuMemUnmap(range, GRANULE), TARN__CU_ERROR_INVALID_VALUE,
          "no whole mapping");
  done(cuMemMap(range, GRANULE, 0, memory, 0));
  refuses(cuMemMap(range, GRANULE, 0, memory, 0), TARN__CU_ERROR_INVALID_VALUE,
          "already");
  refuses(cuMemSetAccess(range, 2 * GRANULE, &rights, 1),
          TARN__CU_ERROR_INVALID_VALUE, "no whole mapping");
  refuses(cuMemAddressFree(range, 2 * GRANULE), TARN__CU_ERROR_INVALID_VALUE,
          "mapped in the reservation");
  refuses(cuMemAddressFree(range, GRANULE), TARN__CU_ERROR_INVALID_VALUE,
          "no reservation");
  refuses(cuMemExportToShareableHandle(
              &file, memory, TARN__CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          TARN__CU_ERROR_INVALID_VALUE, "was not made for handles");
  gives(cuMemImportFromShareableHandle(
            &memory, NULL, TARN__CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
        TARN__CU_ERROR_INVALID_VALUE);
  done(cuMemUnmap(range, GRANULE));
  done(cuMemRelease(memory));
  refuses(cuMemRelease(memory), TARN__CU_ERROR_INVALID_HANDLE, "was destroyed");
  done(cuMemAddressFree(range, 2 * GRANULE));
  ground_close(&on);
}
END_TEST

static CUdeviceptr map_granule(void) {
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle memory = 0;
  done(cuMemAddressReserve(&range, GRANULE, 0, 0, 0));
  done(cuMemCreate(&memory, GRANULE, &properties, 0));
  done(cuMemMap(range, GRANULE, 0, memory, 0));
  done(cuMemRelease(memory));
  return range;
}

TEST(memory_without_rights_is_not_used) {
  ground on = ground_open();
  CUdeviceptr range = map_granule();
  done(cuMemsetD8Async(range, 0, SMALL, on.stream));
  gives(cuStreamSynchronize(on.stream), TARN__CU_ERROR_ILLEGAL_ADDRESS);
  assert_found("device 0 has no right to write mapped memory");
  ck_assert_uint_eq(tarn_standin_live("mapped"), 1);
}
END_TEST

TEST(memory_is_not_unmapped_while_it_is_used) {
  ground on = ground_open();
  CUdeviceptr range = map_granule();
  done(cuMemSetAccess(range, GRANULE, &rights, 1));
  tarn_standin_hold(true);
  done(cuMemsetD8Async(range, 0, SMALL, on.stream));
  refuses(cuMemUnmap(range, GRANULE), TARN__CU_SUCCESS,
          "unmapped while commands use it");
  tarn_standin_hold(false);
  gives(cuStreamSynchronize(on.stream), TARN__CU_ERROR_ILLEGAL_ADDRESS);
  done(cuMemAddressFree(range, GRANULE));
  assert_found("was freed before the command ran");
}
END_TEST
