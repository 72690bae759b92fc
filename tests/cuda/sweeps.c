// The N-th call of the driver fails, or the N-th command that is queued, or the
// N-th host allocation, for every N, while scenes use all that the plug-in has:
// each failure has a status and the driver's word for it, nothing hangs, and
// nothing is left in the driver.
#include <stdio.h>

#include "cuda/standin/api.h"
#include "device/device_scenes.h"
#include "over.h"
#include "support/effort.h"
#include "support/faults.h"

int main(void) {
  faults_install();
  return run_tests();
}

static const scene_place place = {"cuda:0", "cuda:1", NULL};

// What every text of a failure must have in it. What the driver could not tell
// when a device was opened, that has not.
static const char *word;

static void watch(tarn_status status, const char *text) {
  if (strstr(text, word) != NULL || status == TARN_E_UNSUPPORTED) return;
  ck_abort_msg("%s: '%s' does not say '%s'", tarn_status_name(status), text,
               word);
}

// --- a stream of the program's own -----------------------------------------

static bool fine(tarn_status status) {
  if (status != TARN_OK && status != TARN_PENDING)
    watch(status, tarn_last_error());
  return status == TARN_OK;
}

typedef struct owner {
  CUcontext context;
  CUstream stream;
} owner;

// False: the driver does not even give the program one.
static bool make_native(owner *o) {
  if (cuDevicePrimaryCtxRetain(&o->context, 0) != TARN__CU_SUCCESS)
    return false;
  require(cuCtxPushCurrent_v2(o->context) == TARN__CU_SUCCESS);
  bool is_made =
      cuStreamCreate(&o->stream, TARN__CU_STREAM_DEFAULT) == TARN__CU_SUCCESS;
  require(cuCtxPopCurrent_v2(&o->context) == TARN__CU_SUCCESS);
  if (!is_made) (void)cuDevicePrimaryCtxRelease_v2(0);
  return is_made;
}

static void end_native(owner *o) {
  require(cuCtxPushCurrent_v2(o->context) == TARN__CU_SUCCESS);
  (void)cuStreamDestroy_v2(o->stream);
  require(cuCtxPopCurrent_v2(&o->context) == TARN__CU_SUCCESS);
  (void)cuDevicePrimaryCtxRelease_v2(0);
}

static void on_done(void *context, tarn_status status) {
  size_t *called = context;
  require(status <= TARN_OK);
  ++*called;
}

static void use_adopted(tarn_device *device, tarn_stream *stream) {
  char bytes[64] = {0};
  size_t called = 0;
  size_t queued = 0;
  tarn_addr block = 0;
  tarn_place memory = tarn_place_on(device);
  if (!fine(tarn_device_allocate(memory, sizeof bytes, &block))) return;
  (void)fine(tarn_copy_h2d(device, block, bytes, sizeof bytes, stream));
  queued += fine(tarn_stream_add_callback(stream, on_done, &called));
  (void)fine(tarn_copy_d2h(device, bytes, block, sizeof bytes, stream));
  (void)fine(tarn_stream_query(stream));
  (void)fine(tarn_stream_synchronize(stream));
  require(called == queued);
  (void)fine(tarn_device_deallocate(memory, block, sizeof bytes));
}

static void adopt(tarn_device *device) {
  owner o = {NULL, NULL};
  tarn_stream *stream = NULL;
  if (!make_native(&o)) return;
  if (fine(tarn_stream_adopt(device, o.stream, &stream)))
    use_adopted(device, stream);
  (void)fine(tarn_stream_destroy(stream));
  (void)fine(tarn_device_synchronize(device));  // what has departed
  end_native(&o);
}

static void play_adopted(void) {
  tarn_device *device = NULL;
  if (!fine(tarn_device_open(place.device, &device))) return;
  adopt(device);
  (void)fine(tarn_device_close(device));
}

// --- sweeps ----------------------------------------------------------------

// The scenes of the device room, and one more.
static size_t count_scenes(void) {
  return scene_count() + 1;
}

static const char *name_of(size_t scene) {
  return scene < scene_count() ? scene_name(scene) : "an adopted stream";
}

static void play(size_t scene) {
  if (scene < scene_count()) {
    scene_play(scene, &place);
  } else {
    play_adopted();
  }
}

// What is made once and for all is made here.
static void begin(int kind) {
  word = "";
  over_begin(kind);
  for (size_t scene = 0; scene < count_scenes(); scene++)
    play(scene);
  over_assert_clean(over_kinds[kind].name, 0);
  scene_watch = watch;
}

typedef void arm_function(size_t n);

// Plays |scene| with the fault that |arm| sets at each point until none
// strikes.
static size_t sweep(int kind, size_t scene, arm_function *arm) {
  char what[128];
  size_t held = tarn_host_memory();
  snprintf(what, sizeof what, "%s: %s", over_kinds[kind].name, name_of(scene));
  for (size_t n = 1;; n++) {
    uint64_t before = tarn_standin_faults();
    arm(n);
    play(scene);
    bool struck = tarn_standin_faults() != before;
    tarn_standin_fail_call(NULL, 0, 0, false);
    tarn_standin_fail_command(0, 0);
    over_assert_clean(what, n);
    if (tarn_host_memory() != held) {
      ck_abort_msg("%s, %zu: %zu bytes leaked", what, n,
                   tarn_host_memory() - held);
    }
    if (!struck) return n - 1;
  }
}

static size_t sweep_scenes(int kind, arm_function *arm) {
  size_t runs = 0;
  for (size_t scene = 0; scene < count_scenes(); scene++)
    runs += sweep(kind, scene, arm);
  return runs;
}

static void sweep_all(int kind, const char *what, arm_function *arm) {
  begin(kind);
  size_t runs = sweep_scenes(kind, arm);
  printf("cuda over the stand-in: %5zu runs, each with a %s that fails: %s\n",
         runs, what, over_kinds[kind].name);
}

static void fail_call(size_t n) {
  bool odd = n % 2 != 0;
  word = odd ? "CUDA_ERROR_OUT_OF_MEMORY (2)" : "CUDA_ERROR_UNKNOWN (999)";
  tarn_standin_fail_call(
      NULL, n, odd ? TARN__CU_ERROR_OUT_OF_MEMORY : TARN__CU_ERROR_UNKNOWN,
      false);
}

TEST_LOOP(a_call_fails, OVER_KINDS) {
  sweep_all(_i, "call", fail_call);
}

// Whatever comes behind it in the context fails with the same error.
static void fail_command(size_t n) {
  word = "CUDA_ERROR_ILLEGAL_ADDRESS (700)";
  tarn_standin_fail_command(n, TARN__CU_ERROR_ILLEGAL_ADDRESS);
}

TEST_LOOP(a_command_fails, OVER_KINDS) {
  sweep_all(_i, "command", fail_command);
}

// --- host memory -----------------------------------------------------------

typedef struct scenario {
  int kind;
  size_t scene;
} scenario;

static void play_scenario(void *context) {
  const scenario *s = context;
  play(s->scene);
  over_assert_clean(name_of(s->scene), 0);
}

TEST_LOOP(host_memory_fails, OVER_KINDS) {
  size_t before = faults_runs();
  scenario s = {.kind = _i};
  begin(_i);
  for (s.scene = 0; s.scene < count_scenes(); s.scene++)
    (void)faults_sweep(play_scenario, &s);
  printf("cuda over the stand-in: %5zu runs, each without host memory: %s\n",
         faults_runs() - before, over_kinds[_i].name);
}

// --- a device that falls off -----------------------------------------------

// Then nothing is given back: each time in a process of its own.
enum { LOSSES = EFFORT(100, 20), CALLS_BETWEEN = 7 };

TEST_LOOP(the_device_falls_off, LOSSES) {
  begin(0);
  size_t held = tarn_host_memory();
  word = "CUDA_ERROR_DEVICE_UNAVAILABLE (46)";
  tarn_standin_lose((uint64_t)_i * CALLS_BETWEEN + 1,
                    TARN__CU_ERROR_DEVICE_UNAVAILABLE);
  for (size_t scene = 0; scene < count_scenes(); scene++)
    play(scene);
  ck_assert_uint_gt(tarn_standin_faults(), 0);
  ck_assert_uint_eq(tarn_host_memory(), held);
}

// --- functions that the driver does not do any more ------------------------

// Not those that wait, and tell whether something is over: where a driver does
// not even do that, nobody can tell what its commands still read and write. Nor
// those that end what a program holds.
static const char *const functions[] = {
    "cuDevicePrimaryCtxRetain",
    "cuStreamCreate",
    "cuStreamWaitEvent",
    "cuStreamAddCallback",
    "cuEventCreate",
    "cuEventRecord",
    "cuMemGetInfo_v2",
    "cuMemAlloc_v2",
    "cuMemHostAlloc",
    "cuMemAllocManaged",
    "cuMemHostRegister_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyPeerAsync",
    "cuMemsetD8Async",
    "cuPointerGetAttribute",
    "cuMemGetAddressRange_v2",
    "cuThreadExchangeStreamCaptureMode",
    "cuMemAddressReserve",
    "cuMemCreate",
    "cuMemMap",
    "cuMemSetAccess",
    "cuMemExportToShareableHandle",
    "cuMemImportFromShareableHandle",
    "cuMemPoolCreate",
    "cuMemAllocFromPoolAsync",
    "cuModuleLoadData",
    "cuModuleGetFunction",
    "cuLaunchKernel",
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static const char *function;

static void fail_function(size_t n) {
  word = "CUDA_ERROR_OUT_OF_MEMORY (2)";
  tarn_standin_fail_call(function, n, TARN__CU_ERROR_OUT_OF_MEMORY, true);
}

TEST_LOOP(a_function_fails_from_some_call_on, EFFORT(OVER_KINDS, 1)) {
  size_t runs = 0;
  begin(_i);
  for (size_t i = 0; i < FUNCTIONS; i++) {
    function = functions[i];
    runs += sweep_scenes(_i, fail_function);
  }
  printf("cuda over the stand-in: %5zu runs, each without a function: %s\n",
         runs, over_kinds[_i].name);
}
