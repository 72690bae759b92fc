// Which thread this is, among those whose steps a pool follows.
#include "pool/state.h"

// The address of a variable that each thread has. That of a thread which has
// ended may be another's; then that one goes on in its place.
const void *tarn__step_thread_self(void) {
  static _Thread_local char here __attribute__((tls_model("initial-exec")));
  return &here;
}

size_t tarn__step_thread_number(const tarn__pool_step_threads *threads) {
  const void *self = tarn__step_thread_self();
  for (size_t i = 0; i < threads->count; i++)
    if (threads->of[i].self == self) return i + 1;
  return 0;
}

tarn__pool_steps *tarn__steps_of_number(const tarn_pool *pool, size_t number) {
  return number != 0 ? pool->threads.of[number - 1].steps : NULL;
}

tarn__pool_steps *tarn__steps_of_thread(tarn_pool *pool) {
  size_t number = tarn__step_thread_number(&pool->threads);
  tarn__pool_steps *own = tarn__steps_of_number(pool, number);
  return own != NULL ? own : &pool->steps;
}

bool tarn__steps_may_part(const tarn_pool *pool) {
  size_t number = tarn__step_thread_number(&pool->threads);
  const tarn__pool_steps *own = tarn__steps_of_number(pool, number);
  return own != NULL && tarn__recorder_is_due(&own->recorder);
}
