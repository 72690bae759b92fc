// The N-th call of the driver fails, or the N-th command that is queued, or the
// N-th host allocation, for every N, while scenes use all that the plug-in has:
// each failure has a status and the driver's word for it, nothing hangs, and
// nothing is left in the driver.
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stdio.h>

#include "device/device_scenes.h"
#include "over.h"
#include "support/faults.h"

int main(void) {
  faults_install();
  return run_tests();
}

static const scene_place place = {"opencl:0", "opencl:1", NULL};

// What every text of a failure must have in it. clSVMAlloc tells no reason.
static const char *word;

static void watch(tarn_status status, const char *text) {
  bool tells = strstr(text, word) != NULL || strstr(text, "clSVMAlloc") != NULL;
  if (!tells) {
    ck_abort_msg("%s: '%s' does not say '%s'", tarn_status_name(status), text,
                 word);
  }
}

// --- a queue of the program's own ------------------------------------------

static bool fine(tarn_status status) {
  if (status != TARN_OK && status != TARN_PENDING)
    watch(status, tarn_last_error());
  return status == TARN_OK;
}

// One beside the queue of |made|; NULL: the driver does not even tell the
// program.
static cl_command_queue queue_beside(tarn_stream *made) {
  cl_command_queue native = tarn_stream_native(made);
  cl_context context = NULL;
  cl_device_id device = NULL;
  if (clGetCommandQueueInfo(native, CL_QUEUE_CONTEXT, sizeof(cl_context),
                            &context, NULL) != CL_SUCCESS ||
      clGetCommandQueueInfo(native, CL_QUEUE_DEVICE, sizeof(cl_device_id),
                            &device, NULL) != CL_SUCCESS) {
    return NULL;
  }
  return clCreateCommandQueue(context, device, 0, NULL);
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

static void adopt(tarn_device *device, tarn_stream *made) {
  tarn_stream *stream = NULL;
  cl_command_queue queue = queue_beside(made);
  if (queue == NULL) return;
  if (fine(tarn_stream_adopt(device, queue, &stream)))
    use_adopted(device, stream);
  (void)fine(tarn_stream_destroy(stream));
  require(clReleaseCommandQueue(queue) == CL_SUCCESS);
}

static void play_adopted(void) {
  tarn_device *device = NULL;
  tarn_stream *made = NULL;
  if (!fine(tarn_device_open(place.device, &device))) return;
  if (fine(tarn_stream_create(device, &made))) adopt(device, made);
  (void)fine(tarn_stream_destroy(made));
  (void)fine(tarn_device_synchronize(device));  // what has departed
  (void)fine(tarn_device_close(device));
}

// --- sweeps ----------------------------------------------------------------

// The scenes of the device room, and one more.
static size_t count_scenes(void) {
  return scene_count() + 1;
}

static const char *name_of(size_t scene) {
  return scene < scene_count() ? scene_name(scene) : "an adopted queue";
}

static void play(size_t scene) {
  if (scene < scene_count()) {
    scene_play(scene, &place);
  } else {
    play_adopted();
  }
}

// What is made once and for all, such as binaries, is made here.
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
  printf("opencl over the stand-in: %5zu runs, each with a %s that fails: %s\n",
         runs, what, over_kinds[kind].name);
}

static void fail_call(size_t n) {
  bool odd = n % 2 != 0;
  word = odd ? "CL_OUT_OF_RESOURCES (-5)" : "CL_OUT_OF_HOST_MEMORY (-6)";
  tarn_standin_fail_call(
      NULL, n, odd ? CL_OUT_OF_RESOURCES : CL_OUT_OF_HOST_MEMORY, false);
}

TEST_LOOP(a_call_fails, OVER_KINDS) {
  sweep_all(_i, "call", fail_call);
}

// What is behind it fails with the same status.
static void fail_command(size_t n) {
  word = "CL_OUT_OF_RESOURCES (-5)";
  ck_assert(tarn_standin_set("FOLLOW_STATUS", "-5"));
  tarn_standin_fail_command(n, CL_OUT_OF_RESOURCES);
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
  printf("opencl over the stand-in: %5zu runs, each without host memory: %s\n",
         faults_runs() - before, over_kinds[_i].name);
}

// More is queued than there is memory to keep: a call waits for nothing, since
// nothing that was queued need end before it returns.
TEST(no_memory_for_what_is_queued) {
  enum { SIZE = 64, COPIES = 100 };
  over_begin(0);
  tarn_device *device = open_device(place.device);
  tarn_place memory = tarn_place_on(device);
  tarn_stream *stream = NULL;
  tarn_addr blocks[2] = {0, 0};
  tarn_status status = TARN_OK;
  assert_ok(tarn_stream_create(device, &stream));
  for (size_t i = 0; i < 2; i++)
    assert_ok(tarn_device_allocate(memory, SIZE, &blocks[i]));
  tarn_standin_hold(true);
  faults_arm(1, FAULTS_FROM_NOW);
  for (int i = 0; i < COPIES && status == TARN_OK; i++)
    status =
        tarn_copy_d2d(device, blocks[i % 2], blocks[1 - i % 2], SIZE, stream);
  ck_assert(faults_disarm());
  tarn_standin_hold(false);
  assert_fails(status, TARN_E_NOMEM, "memory_copy_d2d of 64 bytes");
  assert_ok(tarn_stream_synchronize(stream));
  for (size_t i = 0; i < 2; i++)
    assert_ok(tarn_device_deallocate(memory, blocks[i], SIZE));
  assert_ok(tarn_stream_destroy(stream));
  close_device(device);
  over_assert_clean("a full stream", 0);
}

// --- functions that the driver does not do any more ------------------------

// Not those that wait, and tell whether something is over: where a driver does
// not even do that, nobody can tell what its commands still read and write. Nor
// those that end what a program holds.
static const char *const functions[] = {
    "clCreateContext",
    "clCreateCommandQueue",
    "clCreateBuffer",
    "clCreateBufferWithProperties",
    "clGetMemObjectInfo",
    "clSVMAlloc",
    "clDeviceMemAllocINTEL",
    "clHostMemAllocINTEL",
    "clSharedMemAllocINTEL",
    "clEnqueueReadBuffer",
    "clEnqueueWriteBuffer",
    "clEnqueueCopyBuffer",
    "clEnqueueFillBuffer",
    "clEnqueueMapBuffer",
    "clEnqueueSVMMemcpy",
    "clEnqueueSVMMemFill",
    "clEnqueueSVMMap",
    "clEnqueueMemcpyINTEL",
    "clEnqueueMemFillINTEL",
    "clEnqueueMarkerWithWaitList",
    "clEnqueueBarrierWithWaitList",
    "clEnqueueNDRangeKernel",
    "clCreateUserEvent",
    "clSetEventCallback",
    "clRetainEvent",
    "clRetainCommandQueue",
    "clFlush",
    "clGetDeviceInfo",
    "clCreateProgramWithSource",
    "clCreateProgramWithBinary",
    "clBuildProgram",
    "clCreateKernel",
    "clSetKernelArg",
    "clSetKernelArgSVMPointer",
    "clSetKernelArgMemPointerINTEL",
    "clSetKernelArgDevicePointerEXT",
    "clSetKernelExecInfo",
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static const char *function;

static void fail_function(size_t n) {
  word = "CL_OUT_OF_RESOURCES (-5)";
  tarn_standin_fail_call(function, n, CL_OUT_OF_RESOURCES, true);
}

TEST_LOOP(a_function_fails_from_some_call_on, OVER_KINDS) {
  size_t runs = 0;
  begin(_i);
  for (size_t i = 0; i < FUNCTIONS; i++) {
    function = functions[i];
    runs += sweep_scenes(_i, fail_function);
  }
  printf("opencl over the stand-in: %5zu runs, each without a function: %s\n",
         runs, over_kinds[_i].name);
}
