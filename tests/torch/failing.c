// Host memory that runs out at every call in turn: a request is NULL, a hook
// does nothing, and at the end all has been given back.
#include "kit.h"
#include "support/faults.h"

enum { SIZE = 300000, ID = 7 };

int main(void) {
  faults_install();
  return run_tests();
}

typedef struct scene {
  void *own;
  void *other;
} scene;

static void allocate_and_free(void *context) {
  const scene *s = context;
  bool is_tagged = tarn_torch_tag_push("weights") == TARN_OK;
  void *block = tarn_torch_alloc_or_null(SIZE, 0, s->own);
  if (is_tagged) ck_assert_int_eq(tarn_torch_tag_pop(), TARN_OK);
  tarn_torch_record_stream(block, s->other);
  tarn_torch_free(block, 0, 0, s->own);
  tarn_torch_reset();
}

static void capture(void *context) {
  const scene *s = context;
  char text[CAUGHT_TEXT];
  begin_caught(0, ID, s->own, text);
  void *block = tarn_torch_alloc_or_null(SIZE, 0, s->own);
  end_graph(0, ID);
  tarn_torch_free(block, 0, 0, s->own);
  release_graph(0, ID);
  tarn_torch_reset();
}

// First without a fault: what is kept for ever is there then, of the device's
// pool too, which serves what a capture that did not begin asks for.
static void sweep(tarn_device *device, void (*scenario)(void *context)) {
  tarn_stream *own = stream_on(device);
  tarn_stream *other = stream_on(device);
  scene s = {native(own), native(other)};
  allocate_and_free(&s);
  scenario(&s);
  ck_assert_uint_gt(faults_sweep(scenario, &s), 0);
  ck_assert_uint_eq(stats_of_torch().blocks, 0);
}

TEST_LOOP_ON_LIBRARY(a_request_without_host_memory, 1, TEST_NEEDS_STREAMS,
                     serve_on) {
  sweep(device, allocate_and_free);
}

TEST_LOOP_ON_LIBRARY(a_capture_without_host_memory, 1, TEST_NEEDS_STREAMS,
                     serve_on) {
  sweep(device, capture);
}

// The device opens at the first request.
TEST(a_first_request_without_host_memory) {
  ck_assert_int_eq(setenv("TARN_TORCH_DEVICE", "sim", 1), 0);
  for (size_t n = 1;; n++) {
    char text[CAUGHT_TEXT];
    faults_arm(n, FAULTS_ONCE);
    void *block = alloc_caught(SIZE, 0, NULL, text);
    bool has_struck = faults_disarm();
    ck_assert((block == NULL) == (text[0] != '\0'));
    tarn_torch_free(block, 0, 0, NULL);
    assert_ok(tarn_torch_close());
    if (!has_struck) break;
  }
}
