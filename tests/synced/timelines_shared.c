// Timelines among several: points that two buffers share, threads at one
// timeline, and a child of fork.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/effort.h"
#include "timelines_kit.h"

// --- work of another buffer ------------------------------------------------

TEST_TIMELINES(another_buffer_waits_for_the_same_event) {
  tarn__synced_timelines others;
  tarn__synced_timeline *adopted = NULL;
  others = (tarn__synced_timelines){.first = NULL};
  tarn__synced_timeline *timeline = timeline_of(stream);
  hold_up();
  uint64_t number = point(timeline, stream);
  tarn__synced_event *event = tarn__timeline_share(timeline, number);
  ck_assert_ptr_nonnull(event);
  tarn__timeline_release(timeline);
  ck_assert_ptr_null(timelines.first);

  assert_ok(tarn__timeline_adopt(&others, event, &adopted));
  ck_assert_uint_eq(adopted->serial, tarn_stream_serial(stream));
  // Its own points of that stream are in a timeline of their own.
  tarn__synced_timeline *own = NULL;
  assert_ok(tarn__timeline_of(&others, stream, &own));
  ck_assert_ptr_ne(own, adopted);
  tarn__timeline_release(own);

  tarn__synced_point *wanted = tarn__timeline_hold_point(adopted, 1);
  assert_status(tarn__point_query(wanted), TARN_PENDING);
  tarn__timeline_release_point(adopted, wanted, TARN_PENDING);
  go_on();
  assert_ok(wait_for(adopted, 1));
  ck_assert_ptr_null(tarn__timeline_share(adopted, 1));
  tarn__timeline_release(adopted);
  ck_assert_ptr_null(others.first);
  tarn__timelines_deinit(&others);  // spare ones
}

static void adopt_without_memory(void *context) {
  tarn__synced_timeline *adopted = NULL;
  tarn__synced_event *event = context;
  atomic_fetch_add(&event->count, 1);
  if (tarn__timeline_adopt(&timelines, event, &adopted) == TARN_OK) {
    tarn__timeline_release(adopted);
  } else {
    require(adopted == NULL);
    tarn__copy_streams_give_event(event);
  }
  tarn__timelines_deinit(&timelines);  // spare ones
}

TEST_TIMELINES(without_memory_a_event_stays_the_callers) {
  tarn__synced_timeline *timeline = timeline_of(stream);
  tarn__synced_event *event =
      tarn__timeline_share(timeline, point(timeline, stream));
  tarn__timeline_release(timeline);
  tarn__timelines_deinit(&timelines);
  ck_assert_uint_gt(faults_sweep(adopt_without_memory, event), 3);
  ck_assert_uint_eq(atomic_load(&event->count), 1);
  tarn__copy_streams_give_event(event);
  tarn__copy_streams_give_event(NULL);
}

// --- forks -----------------------------------------------------------------

TEST_TIMELINES(in_a_child_it_only_frees) {
  tarn__synced_timeline *timeline = timeline_of(stream);
  ck_assert_uint_ne(point(timeline, stream), 0);
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    size_t before = tarn_host_memory();
    tarn__timelines_deinit(&timelines);
    _exit(tarn_host_memory() < before && timelines.first == NULL ? 0 : 1);
  }
  int ended = 0;
  ck_assert_int_eq(waitpid(child, &ended, 0), child);
  ck_assert_int_eq(ended, 0);
  assert_ok(wait_for(timeline, 1));
  tarn__timeline_release(timeline);
}

// --- threads ---------------------------------------------------------------

enum { THREADS = 4, STEPS = EFFORT(2000, 300) };

static struct {
  pthread_mutex_t lock;    // the lock
  pthread_cond_t changed;  // with it
  tarn_stream *streams[2];
  size_t waits;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER,
            .changed = PTHREAD_COND_INITIALIZER};

static uint64_t point_among_others(tarn__synced_timeline *timeline,
                                   tarn_stream *of) {
  tarn__synced_point *made = NULL;
  while (timeline->busy)
    pthread_cond_wait(&shared.changed, &shared.lock);
  require(tarn__timeline_begin_point(timeline, &made) == TARN_OK);
  pthread_mutex_unlock(&shared.lock);
  require(tarn__point_record(made, of) == TARN_OK);
  pthread_mutex_lock(&shared.lock);
  uint64_t number = tarn__timeline_end_point(timeline, made);
  pthread_cond_broadcast(&shared.changed);
  require(number > 0 && number <= timeline->issued);
  return number;
}

static void wait_among_others(tarn__synced_timeline *timeline, uint64_t number,
                              bool query) {
  tarn__synced_point *wanted = tarn__timeline_hold_point(timeline, number);
  if (wanted == NULL) return;
  shared.waits++;
  pthread_mutex_unlock(&shared.lock);
  tarn_status status =
      query ? tarn__point_query(wanted) : tarn__point_wait(wanted);
  require(status == TARN_OK || (query && status == TARN_PENDING));
  pthread_mutex_lock(&shared.lock);
  tarn__timeline_release_point(timeline, wanted, status);
  require(status == TARN_PENDING || tarn__timeline_is_over(timeline, number));
}

static void *point_and_wait(void *context) {
  size_t self = *(const size_t *)context;
  tarn_stream *of = shared.streams[self % 2];
  for (size_t i = 0; i < STEPS; i++) {
    tarn__synced_timeline *timeline = NULL;
    pthread_mutex_lock(&shared.lock);
    require(tarn__timeline_of(&timelines, of, &timeline) == TARN_OK);
    uint64_t number = point_among_others(timeline, of);
    if (i % 3 != 0) wait_among_others(timeline, number, i % 3 == 1);
    tarn__timeline_release(timeline);
    pthread_mutex_unlock(&shared.lock);
  }
  return NULL;
}

TEST_TIMELINES(threads_point_and_wait) {
  pthread_t threads[THREADS];
  size_t numbers[THREADS];
  shared.streams[0] = stream;
  shared.streams[1] = other;
  for (size_t i = 0; i < THREADS; i++) {
    numbers[i] = i;
    ck_assert_int_eq(
        pthread_create(&threads[i], NULL, point_and_wait, &numbers[i]), 0);
  }
  for (size_t i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
  ck_assert_uint_gt(shared.waits, 0);
}

int main(void) {
  faults_install();
  return run_tests();
}
