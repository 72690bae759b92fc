// Steps that repeat, as those of a training do, are learned through PyTorch's
// interface too: forward on one thread under tags, backward on another.
#include "kit.h"
#include "pool/front.h"
#include "support/threads.h"

enum { BLOCKS = 40, MOST_STEPS = 40 };

static void *outputs[BLOCKS];
static void *stream;

static size_t size_of(size_t i) {
  return 70000 + (i * 7919 % 31) * 10000;
}

static void forward(void) {
  assert_ok(tarn_torch_tag_push("activations"));
  for (size_t i = 0; i < BLOCKS; i++)
    outputs[i] = take(size_of(i), stream);
  assert_ok(tarn_torch_tag_pop());
}

static void *backward(void *context) {
  for (size_t i = BLOCKS; i-- > 0;) {
    void *gradient = tarn_torch_alloc_or_null(size_of(i), 0, stream);
    expect(gradient != NULL);
    give(outputs[i], stream);
    give(gradient, stream);
  }
  return context;
}

static void play_step(void) {
  forward();
  pthread_t thread = start_thread(backward, NULL);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  assert_as_expected();
}

TEST_SET_ON(a_training_step_is_learned, 0, serve_on) {
  stream = native(stream_on(device));
  tarn_pool *pool = pool_of_torch();
  for (int i = 0; i < MOST_STEPS && pool->steps.cursor.layout == NULL; i++)
    play_step();
  ck_assert_ptr_nonnull(pool->steps.cursor.layout);
  tarn_torch_stats before = stats_of_torch();
  play_step();
  play_step();
  tarn_torch_stats after = stats_of_torch();
  ck_assert_ptr_nonnull(pool->steps.cursor.layout);
  ck_assert_uint_eq(after.allocs - before.allocs, 4 * BLOCKS);
  ck_assert_uint_eq(after.device_allocs, before.device_allocs);
  ck_assert_uint_eq(after.reserved, before.reserved);
}
