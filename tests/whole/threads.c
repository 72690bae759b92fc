// Wholes that threads of a rank work with at the same time: each thread with a
// communicator and a whole of its own, on the same device; and all of them with
// one that is mapped, in calls that are no collectives.
#include <pthread.h>

#include "rows_kit.h"

enum {
  WIDTH = 9,
  THREADS = 3,
  ROUNDS = EFFORT(40, 6),
  GATHERS = EFFORT(8, 2),
  COUNT = 16000  // rows, which are worth two threads
};

static const shape plain = {.text = "threads",
                            .table = TARN_DTYPE_F32,
                            .dense = TARN_DTYPE_F16,
                            .index = TARN_DTYPE_I32,
                            .rows = 120,
                            .width = WIDTH,
                            .count = 100};

static const ground *where;  // set before ranks are forked

typedef struct hand {
  tarn_comm *comm;
  size_t rank;
  size_t ranks;
  size_t number;
  tarn_place place;
  const scene *common;
} hand;

static void start_all(hand *hands, void *(*work)(void *)) {
  pthread_t threads[THREADS];
  for (size_t i = 0; i < THREADS; i++)
    MUST(pthread_create(&threads[i], NULL, work, &hands[i]) == 0);
  for (size_t i = 0; i < THREADS; i++)
    MUST(pthread_join(threads[i], NULL) == 0);
}

static const hand *begin_thread(const void *context) {
  const hand *h = context;
  my.comm = h->comm;
  my.rank = h->rank;
  my.ranks = h->ranks;
  my.text = plain.text;
  return h;
}

// --- a whole of its own ----------------------------------------------------

static void *play_alone(void *context) {
  const hand *h = begin_thread(context);
  for (size_t i = 0; i < ROUNDS; i++) {
    tarn_place at = i % 2 == 0 ? TARN_HOST : h->place;
    scene c = {.s = &plain, .place = h->place, .at = at};
    raise_scene(&c, type_at((i + h->number) % TYPES));
    for (action a = GATHER; a < ACTIONS; a++)
      play(&c, a);
    strike_scene(&c);
  }
  return NULL;
}

static void work_side_by_side(void) {
  hand hands[THREADS];
  configure_sim();
  tarn_place place = open_place(where->device, where->kind);
  for (size_t i = 0; i < THREADS; i++) {
    hands[i] =
        (hand){.rank = my.rank, .ranks = my.ranks, .number = i, .place = place};
    MUST_BE(tarn_comm_split(my.comm, 0, 0, &hands[i].comm), TARN_OK);
  }
  start_all(hands, play_alone);
  for (size_t i = 0; i < THREADS; i++)
    MUST_BE(tarn_comm_destroy(hands[i].comm), TARN_OK);
  close_ground(place);
}

GROUND_TEST(wholes_of_threads, 2, work_side_by_side)

// --- one for all of them ---------------------------------------------------

// What a thread wants, and what it gets.
typedef struct wish {
  int64_t indices[COUNT];
  float rows[COUNT][WIDTH];
} wish;

static void expect_rows(const scene *c, const wish *w) {
  size_t row = sizeof w->rows[0];
  for (size_t k = 0; k < COUNT; k++)
    must_be_equal((const unsigned char *)w->rows[k],
                  c->model + (size_t)w->indices[k] * row, row);
}

static void gather_once(const scene *c, wish *w, uint64_t seed) {
  tarn_whole_rows request = {.struct_size = sizeof request,
                             .dense = (tarn_addr)(uintptr_t)w->rows,
                             .dense_dtype = TARN_DTYPE_F32,
                             .indices = (tarn_addr)(uintptr_t)w->indices,
                             .index_dtype = TARN_DTYPE_I64,
                             .index_count = COUNT,
                             .threads = 2};
  for (size_t k = 0; k < COUNT; k++)
    w->indices[k] = (int64_t)(mix(seed, k) % c->tensor.rows);
  MUST_BE(tarn_whole_gather(&c->tensor, &request, NULL), TARN_OK);
  expect_rows(c, w);
}

static void *gather_together(void *context) {
  const hand *h = begin_thread(context);
  wish *w = malloc(sizeof *w);
  MUST(w != NULL);
  for (size_t i = 0; i < GATHERS; i++)
    gather_once(h->common, w, h->number * 100 + i);
  free(w);
  return NULL;
}

static void work_on_one(void) {
  hand hands[THREADS];
  configure_sim();
  tarn_place place = open_place(where->device, where->kind);
  scene c = {.s = &plain, .place = place, .at = TARN_HOST};
  raise_scene(&c, TARN_WHOLE_CHUNKED);
  for (size_t i = 0; i < THREADS; i++)
    hands[i] =
        (hand){.rank = my.rank, .ranks = my.ranks, .number = i, .common = &c};
  start_all(hands, gather_together);
  strike_scene(&c);
  close_ground(place);
}

MAPPED_TEST(threads_of_one_whole, 2, work_on_one)
