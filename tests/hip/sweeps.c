// The N-th call of the driver fails, or the N-th command that is queued, or the
// N-th host allocation, for every N, while scenes use all that the plug-in has:
// each failure has a status and the driver's word for it, nothing hangs, and
// nothing is left in the driver.
#include <stdio.h>

#include "cuda/more.h"
#include "device/device_scenes.h"
#include "over.h"
#include "support/faults.h"

int main(void) {
  faults_install();
  return run_tests();
}

static const scene_place place = {"hip:0", "hip:1", NULL};

// What every text of a failure must have in it.
static const char *word;

// The fault stays behind the scene: HIP's devices have no end in which it ends.
static bool is_lasting;

static void watch(tarn_status status, const char *text) {
  if (strstr(text, word) != NULL) return;
  ck_abort_msg("%s: '%s' does not say '%s'", tarn_status_name(status), text,
               word);
}

// What a first use makes is made here.
static void begin(int kind) {
  word = "";
  over_begin(kind);
  for (size_t scene = 0; scene < scene_count(); scene++)
    scene_play(scene, &place);
  over_assert_clean(over_kinds[kind].name, 0);
  scene_watch = watch;
}

static void recover(const char *what, size_t n) {
  tarn_standin_fail_call(NULL, 0, 0, false);
  tarn_standin_fail_command(0, 0);
  if (is_lasting) over_end_all();
  over_assert_clean(what, n);
}

typedef void arm_function(size_t n);

// Plays |scene| with the fault that |arm| sets at each point until none
// strikes.
static size_t sweep(int kind, size_t scene, arm_function *arm) {
  char what[128];
  size_t held = tarn_host_memory();
  snprintf(what, sizeof what, "%s: %s", over_kinds[kind].name,
           scene_name(scene));
  for (size_t n = 1;; n++) {
    uint64_t before = tarn_standin_faults();
    arm(n);
    scene_play(scene, &place);
    bool struck = tarn_standin_faults() != before;
    recover(what, n);
    if (tarn_host_memory() != held) {
      ck_abort_msg("%s, %zu: %zu bytes leaked", what, n,
                   tarn_host_memory() - held);
    }
    if (!struck) return n - 1;
  }
}

static void sweep_all(int kind, const char *what, arm_function *arm) {
  size_t runs = 0;
  begin(kind);
  for (size_t scene = 0; scene < scene_count(); scene++)
    runs += sweep(kind, scene, arm);
  printf("hip over the stand-in: %5zu runs, each with a %s that fails: %s\n",
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

static void fail_command(size_t n) {
  word = "CUDA_ERROR_ILLEGAL_ADDRESS (700)";
  tarn_standin_fail_command(n, TARN__CU_ERROR_ILLEGAL_ADDRESS);
}

TEST_LOOP(a_command_fails, OVER_KINDS) {
  is_lasting = true;
  sweep_all(_i, "command", fail_command);
}

static void play_scene(void *context) {
  const size_t *scene = context;
  scene_play(*scene, &place);
  over_assert_clean(scene_name(*scene), 0);
}

TEST_LOOP(host_memory_fails, OVER_KINDS) {
  size_t before = faults_runs();
  begin(_i);
  scene_watch = NULL;
  for (size_t scene = 0; scene < scene_count(); scene++)
    (void)faults_sweep(play_scene, &scene);
  printf("hip over the stand-in: %5zu runs, each without host memory: %s\n",
         faults_runs() - before, over_kinds[_i].name);
}
