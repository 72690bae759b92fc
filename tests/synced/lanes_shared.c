// Lanes among several: marks that two buffers share, threads at one lane, and a
// child of fork.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lanes_kit.h"
#include "support/effort.h"

// --- work of another buffer ------------------------------------------------

START_TEST(another_buffer_waits_for_the_same_event) {
  set_up(names[_i]);
  tarn__synced_timelines others;
  tarn__synced_timeline *adopted = NULL;
  tarn__lanes_init(&others);
  tarn__synced_timeline *lane = lane_of(stream);
  hold_up();
  uint64_t number = mark(lane, stream);
  tarn__synced_event *flag = tarn__lane_share(lane, number);
  ck_assert_ptr_nonnull(flag);
  tarn__lane_release(lane);
  ck_assert_ptr_null(lanes.first);

  assert_ok(tarn__lane_adopt(&others, flag, &adopted));
  ck_assert_uint_eq(adopted->serial, tarn_stream_serial(stream));
  // Its own marks of that stream are in a lane of their own.
  tarn__synced_timeline *own = NULL;
  assert_ok(tarn__lane_of(&others, stream, &own));
  ck_assert_ptr_ne(own, adopted);
  tarn__lane_release(own);

  tarn__synced_point *wanted = tarn__lane_hold_mark(adopted, 1);
  assert_status(tarn__mark_query(wanted), TARN_PENDING);
  tarn__lane_release_mark(adopted, wanted, TARN_PENDING);
  go_on();
  assert_ok(wait_for(adopted, 1));
  ck_assert_ptr_null(tarn__lane_share(adopted, 1));
  tarn__lane_release(adopted);
  ck_assert_ptr_null(others.first);
  tarn__lanes_deinit(&others);  // spare ones
  tear_down();
}
END_TEST

static void adopt_without_memory(void *context) {
  tarn__synced_timeline *adopted = NULL;
  tarn__synced_event *flag = context;
  atomic_fetch_add(&flag->count, 1);
  if (tarn__lane_adopt(&lanes, flag, &adopted) == TARN_OK) {
    tarn__lane_release(adopted);
  } else {
    require(adopted == NULL);
    tarn__flag_release(flag);
  }
  tarn__lanes_deinit(&lanes);  // spare ones
}

START_TEST(without_memory_a_flag_stays_the_callers) {
  set_up("sim:0");
  tarn__synced_timeline *lane = lane_of(stream);
  tarn__synced_event *flag = tarn__lane_share(lane, mark(lane, stream));
  tarn__lane_release(lane);
  tarn__lanes_deinit(&lanes);
  ck_assert_uint_gt(faults_sweep(adopt_without_memory, flag), 3);
  ck_assert_uint_eq(atomic_load(&flag->count), 1);
  tarn__flag_release(flag);
  tarn__flag_release(NULL);
  tear_down();
}
END_TEST

// --- forks -----------------------------------------------------------------

START_TEST(in_a_child_it_only_frees) {
  set_up(names[_i]);
  tarn__synced_timeline *lane = lane_of(stream);
  ck_assert_uint_ne(mark(lane, stream), 0);
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    size_t before = tarn_host_memory();
    tarn__lanes_deinit(&lanes);
    _exit(tarn_host_memory() < before && lanes.first == NULL ? 0 : 1);
  }
  int ended = 0;
  ck_assert_int_eq(waitpid(child, &ended, 0), child);
  ck_assert_int_eq(ended, 0);
  assert_ok(wait_for(lane, 1));
  tarn__lane_release(lane);
  tear_down();
}
END_TEST

// --- threads ---------------------------------------------------------------

enum { THREADS = 4, STEPS = EFFORT(2000, 300) };

static struct {
  pthread_mutex_t lock;    // the gate
  pthread_cond_t changed;  // with it
  tarn_stream *streams[2];
  size_t waits;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER,
            .changed = PTHREAD_COND_INITIALIZER};

static uint64_t mark_among_others(tarn__synced_timeline *lane,
                                  tarn_stream *of) {
  tarn__synced_point *made = NULL;
  while (lane->busy)
    pthread_cond_wait(&shared.changed, &shared.lock);
  require(tarn__lane_begin_mark(lane, &made) == TARN_OK);
  pthread_mutex_unlock(&shared.lock);
  require(tarn__mark_record(made, of) == TARN_OK);
  pthread_mutex_lock(&shared.lock);
  uint64_t number = tarn__lane_end_mark(lane, made);
  pthread_cond_broadcast(&shared.changed);
  require(number > 0 && number <= lane->issued);
  return number;
}

static void wait_among_others(tarn__synced_timeline *lane, uint64_t number,
                              bool query) {
  tarn__synced_point *wanted = tarn__lane_hold_mark(lane, number);
  if (wanted == NULL) return;
  shared.waits++;
  pthread_mutex_unlock(&shared.lock);
  tarn_status status =
      query ? tarn__mark_query(wanted) : tarn__mark_wait(wanted);
  require(status == TARN_OK || (query && status == TARN_PENDING));
  pthread_mutex_lock(&shared.lock);
  tarn__lane_release_mark(lane, wanted, status);
  require(status == TARN_PENDING || tarn__lane_is_over(lane, number));
}

static void *mark_and_wait(void *context) {
  size_t self = *(const size_t *)context;
  tarn_stream *of = shared.streams[self % 2];
  for (size_t i = 0; i < STEPS; i++) {
    tarn__synced_timeline *lane = NULL;
    pthread_mutex_lock(&shared.lock);
    require(tarn__lane_of(&lanes, of, &lane) == TARN_OK);
    uint64_t number = mark_among_others(lane, of);
    if (i % 3 != 0) wait_among_others(lane, number, i % 3 == 1);
    tarn__lane_release(lane);
    pthread_mutex_unlock(&shared.lock);
  }
  return NULL;
}

START_TEST(threads_mark_and_wait) {
  pthread_t threads[THREADS];
  size_t numbers[THREADS];
  set_up(names[_i]);
  shared.streams[0] = stream;
  shared.streams[1] = other;
  for (size_t i = 0; i < THREADS; i++) {
    numbers[i] = i;
    ck_assert_int_eq(
        pthread_create(&threads[i], NULL, mark_and_wait, &numbers[i]), 0);
  }
  for (size_t i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
  ck_assert_uint_gt(shared.waits, 0);
  tear_down();
}
END_TEST

int main(void) {
  faults_install();
  Suite *suite = suite_create("synced_lanes_shared");
  ADD_ON_EACH(suite, "buffers", another_buffer_waits_for_the_same_event);
  ADD_CASE(suite, "memory", without_memory_a_flag_stays_the_callers);
  ADD_ON_EACH(suite, "forks", in_a_child_it_only_frees);
  ADD_ON_EACH(suite, "threads", threads_mark_and_wait);
  return run_suite(suite);
}
