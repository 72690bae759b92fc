// Rows between ranks that share no memory: by messages, of which the engine is
// a double with threads as ranks (comm/post_office.h), or by collectives alone.
// Messages that get lost or damaged are found out in an exchange as elsewhere.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/messages.h"
#include "comm/post_office.h"
#include "kit.h"
#include "support/effort.h"
#include "support/row_trial.h"
#include "support/threads.h"
#include "whole/exchange.h"
#include "wrapped_comm.h"

// --- rows are right --------------------------------------------------------

typedef struct trial {
  const row_kind *kind;
  size_t shapes;
} trial;

static void exchange(tarn_comm *comm, void *context) {
  const trial *t = context;
  try_rows(comm, t->kind, t->shapes);
}

// Each rank is a machine of its own, and a thread: one alone is of no interest
// where threads are watched. Under a sanitizer two ranks try the large shapes.
TEST_RANGE(rows_go_by_messages, THREADS_ARE_WATCHED ? 2 : 1, 7) {
  for (int i = 0; i < ROW_KINDS; i++) {
    trial t = {&row_kinds[i], _i < EFFORT(4, 3) ? ROW_SHAPES - 1 : 3};
    post_run(&(post_job){.ranks = (size_t)_i, .run = exchange, .context = &t},
             false);
  }
}

// Under a sanitizer one rank and two try the large shapes.
static size_t shapes_of(size_t ranks) {
  return ranks < EFFORT(6, 3) ? ROW_SHAPES : 3;
}

static void share_memory(void) {
  for (int i = 0; i < ROW_KINDS; i++)
    try_rows(my.comm, &row_kinds[i], shapes_of(my.ranks));
}

// By processes, into which the thread sanitizer does not look.
TEST_RANGE(rows_go_through_memory, 1, THREADS_ARE_WATCHED ? 1 : 5) {
  run_ranks((size_t)_i, "one machine", share_memory);
}

// Groups of one rank.
static tarn_status split_off(void *self, const size_t *ranks, size_t size,
                             const tarn_comm_ops **out_ops, void **out_self) {
  static const tarn_comm_options alone = {.struct_size = sizeof alone,
                                          .flags = TARN_COMM_ALONE};
  tarn_comm *comm = NULL;
  (void)self, (void)ranks;
  MUST(size == 1);
  MUST_BE(tarn_comm_from_environment(&alone, &comm), TARN_OK);
  *out_ops = &wrapped_comm_ops;
  *out_self = comm;
  return TARN_OK;
}

static void go_by_collectives(void) {
  tarn_comm *poor = NULL;
  tarn_comm_ops ops = wrapped_comm_ops;
  ops.split = split_off;
  MUST_BE(tarn_comm_create(&ops, my.comm, my.rank, my.ranks, 60000, &poor),
          TARN_OK);
  for (int i = 0; i < ROW_KINDS; i++)
    try_rows(poor, &row_kinds[i], shapes_of(my.ranks));
  MUST_BE(tarn_comm_destroy(poor), TARN_OK);
}

TEST_LOOP(rows_go_by_collectives, THREADS_ARE_WATCHED ? 0 : 1) {
  run_ranks(1, "one rank", go_by_collectives);
  run_ranks(2, "two ranks", go_by_collectives);
  run_ranks(5, "five ranks", go_by_collectives);
}

// --- what a rank has open --------------------------------------------------

// What one rank may have under way: of each of its slots; of what it serves; an
// opening and a farewell to each other rank; and the notes that it sends, and
// the one that it listens for. Collectives have less, at other times.
static size_t most_under_way(size_t ranks) {
  return (size_t)TARN__MOST_SLOTS * TARN__MESSAGES_OF_SLOT + TARN__SERVINGS +
         2 * (ranks - 1) + TARN__NOTES + 1;
}

TEST_LOOP(messages_under_way_are_few, THREADS_ARE_WATCHED ? 0 : 1) {
  trial t = {&row_kinds[ROW_DISTRIBUTED], 3};
  for (size_t ranks = 2; ranks <= POST_RANKS; ranks += 5) {
    post_run(&(post_job){.ranks = ranks, .run = exchange, .context = &t},
             false);
    ck_assert_uint_le(post_most_open(), most_under_way(ranks));
  }
}

// --- mistakes --------------------------------------------------------------

// A gather of few rows asks for them before ranks have agreed. Where one of
// them is wrong, what was asked for is left, whatever the ranks do next.

enum { SMALL = 120, LARGE = 3000 };

typedef struct scene {
  tarn_comm *comm;
  size_t rank;
  size_t width;
  tarn_whole_tensor table;
  int64_t ids[LARGE];
  float *dense;
  tarn_whole_rows rows;
} scene;

static float element(const scene *s, size_t row, size_t k) {
  return (float)(row * s->width + k) / 4;
}

static tarn_status fill(scene *s, size_t rows) {
  size_t first = 0;
  size_t count = 0;
  tarn_addr local = 0;
  const tarn_whole_table_options o = {.struct_size = sizeof o,
                                      .type = TARN_WHOLE_DISTRIBUTED,
                                      .place = TARN_HOST,
                                      .dtype = TARN_DTYPE_F32,
                                      .rows = rows,
                                      .width = s->width};
  tarn_status status = tarn_whole_table_create(s->comm, &o, &s->table);
  if (status != TARN_OK) return status;
  expect(tarn_whole_tensor_rows(&s->table, s->rank, &first, &count) == TARN_OK);
  expect(tarn_whole_tensor_local(&s->table, &local) == TARN_OK);
  float *own = (float *)(uintptr_t)local;
  for (size_t i = 0; i < count * s->width; i++)
    own[i] = element(s, first + i / s->width, i % s->width);
  return tarn_comm_barrier(s->comm);
}

static scene *scene_of(tarn_comm *comm, size_t width) {
  scene *s = calloc(1, sizeof *s);
  if (s == NULL) abort();
  *s = (scene){.comm = comm, .rank = tarn_comm_rank(comm), .width = width};
  s->dense = malloc(LARGE * width * sizeof *s->dense);
  if (s->dense == NULL) abort();
  return s;
}

static scene *raise(tarn_comm *comm, size_t rows, size_t width) {
  scene *s = scene_of(comm, width);
  expect(fill(s, rows) == TARN_OK);
  return s;
}

static void strike(scene *s) {
  expect(tarn_whole_destroy(s->table.whole) == TARN_OK);
  free(s->dense);
  free(s);
}

// Rows that |count| and |seed| say, of all ranks.
static const tarn_whole_rows *want(scene *s, size_t count, size_t seed) {
  for (size_t i = 0; i < count; i++)
    s->ids[i] = (int64_t)((i * 7919 + seed * 31 + s->rank) % s->table.rows);
  for (size_t i = 0; i < count * s->width; i++)
    s->dense[i] = -1;
  s->rows = (tarn_whole_rows){.struct_size = sizeof s->rows,
                              .place = TARN_HOST,
                              .dense = (tarn_addr)(uintptr_t)s->dense,
                              .indices = (tarn_addr)(uintptr_t)s->ids,
                              .index_dtype = TARN_DTYPE_I64,
                              .index_count = count};
  return &s->rows;
}

static void expect_rows(const scene *s) {
  for (size_t i = 0; i < s->rows.index_count * s->width; i++)
    expect(s->dense[i] ==
           element(s, (size_t)s->ids[i / s->width], i % s->width));
}

static void expect_untouched(const scene *s) {
  for (size_t i = 0; i < s->rows.index_count * s->width; i++)
    expect(s->dense[i] == -1);
}

static void gather(scene *s, size_t count, size_t seed) {
  const tarn_whole_rows *rows = want(s, count, seed);
  expect(tarn_whole_gather(&s->table, rows, NULL) == TARN_OK);
  expect_rows(s);
}

static void expect_refusal(tarn_status status, const char *says) {
  expect(status == TARN_E_INVALID);
  expect(strstr(tarn_last_error(), says) != NULL);
}

// One rank has an index that the table has not.
static void gather_badly(scene *s, size_t victim, size_t count) {
  char who[32];
  snprintf(who, sizeof who, "rank %zu: ", victim);
  const tarn_whole_rows *rows = want(s, count, 1);
  if (s->rank == victim) s->ids[count / 2] = -3;
  expect_refusal(tarn_whole_gather(&s->table, rows, NULL), who);
  expect(strstr(tarn_last_error(), "index -3 at position") != NULL);
  expect_untouched(s);
}

// One rank does something else meanwhile.
static void call_another(scene *s, scene *other, size_t victim) {
  bool odd = s->rank == victim;
  const tarn_whole_rows *rows = want(s, SMALL, 2);
  expect_refusal(odd ? tarn_comm_barrier(s->comm)
                     : tarn_whole_gather(&s->table, rows, NULL),
                 "tarn_comm_barrier");
  expect_untouched(s);
  rows = want(s, SMALL, 3);
  const tarn_whole_rows *others = want(other, SMALL, 4);
  expect_refusal(tarn_whole_gather(odd ? &other->table : &s->table,
                                   odd ? others : rows, NULL),
                 "tarn_whole_gather of whole ");
  rows = want(s, SMALL, 5);
  expect_refusal(odd ? tarn_whole_scatter(&s->table, rows, NULL)
                     : tarn_whole_gather(&s->table, rows, NULL),
                 "tarn_whole_scatter of whole ");
  expect_untouched(s);
}

static void put_back(scene *s) {
  want(s, SMALL, 6);
  for (size_t i = 0; i < SMALL * s->width; i++)
    s->dense[i] = element(s, (size_t)s->ids[i / s->width], i % s->width);
  expect(tarn_whole_scatter(&s->table, &s->rows, NULL) == TARN_OK);
  expect(tarn_comm_barrier(s->comm) == TARN_OK);
}

// As |gather_badly|, and well, beside other gathers of the same table.
static void fetch(scene *s, scene *other, size_t victim) {
  tarn_whole_fetch *under_way = NULL;
  const tarn_whole_rows *rows = want(s, SMALL, 7);
  if (s->rank == victim) s->rows.index_dtype = TARN_DTYPE_U8;
  expect_refusal(tarn_whole_gather_begin(&s->table, rows, &under_way),
                 "indices are i32 or i64");
  expect(under_way == NULL);
  expect_untouched(s);
  gather(other, SMALL, 8);
  rows = want(s, SMALL, 9);
  expect(tarn_whole_gather_begin(&s->table, rows, &under_way) == TARN_OK);
  gather_badly(other, victim, SMALL);
  gather(other, SMALL, 10);
  expect(tarn_whole_gather_end(under_way) == TARN_OK);
  expect_rows(s);
}

static void make_mistakes(tarn_comm *comm, void *unused) {
  (void)unused;
  scene *s = raise(comm, 1000, 5);
  scene *other = raise(comm, 77, 900);
  gather(s, SMALL, 0);
  gather(other, SMALL, 0);
  size_t ranks = tarn_comm_size(comm);
  for (size_t turn = 0; turn < 3 && turn < ranks; turn++) {
    size_t victim = turn * (ranks - 1) / 2;
    for (size_t again = 0; again < 3; again++)
      gather_badly(s, victim, again * 100 + 10);
    gather_badly(other, victim, SMALL);
    if (turn % 2 == 0) put_back(s);
    gather(s, turn == 0 ? LARGE : SMALL, victim);
    call_another(s, other, victim);
    gather(other, s->rank == victim ? 0 : SMALL, victim);
    fetch(s, other, victim);
    gather_badly(s, victim, LARGE);
  }
  // The last words of a table are heard by the next one.
  gather_badly(s, 0, SMALL);
  strike(s);
  s = raise(comm, 1000, 3);
  gather(s, SMALL, 1);
  gather(s, SMALL, 2);
  strike(other);
  gather_badly(s, 0, SMALL);
  strike(s);
}

static void mistake(size_t ranks, unsigned late, uint32_t flags) {
  post_run(
      &(post_job){
          .ranks = ranks, .run = make_mistakes, .late = late, .flags = flags},
      false);
}

TEST_RANGE(mistakes_leave_nothing, 2, EFFORT(5, 4)) {
  mistake((size_t)_i, 0, 0);
  mistake((size_t)_i, 20, TARN_COMM_ANY_THREAD);
  mistake((size_t)_i, 60, 0);
}

TEST(mistakes_of_many_leave_nothing) {
  mistake(9, 0, TARN_COMM_ANY_THREAD);
}

// --- what does not come ----------------------------------------------------

static atomic_size_t failed;

static void begin(void) {}

static void exchange_until(tarn_comm *comm, void *kind) {
  tarn_status status = gather_until(comm, kind, begin, NULL);
  expect(status == TARN_E_TIMEOUT || status == TARN_E_PEER_LOST ||
         status == TARN_E_CORRUPT);
  atomic_fetch_add(&failed, 1);
}

static void lose(int of, post_fault fault, size_t ranks) {
  row_kind kind = row_kinds[of];
  atomic_store(&failed, 0);
  post_run(&(post_job){.ranks = ranks,
                       .timeout_ms = 300,
                       .run = exchange_until,
                       .context = &kind,
                       .fault = &fault},
           true);
  ck_assert_uint_eq(atomic_load(&failed), ranks);
}

// The first messages create the table; every one after that may be the one.
enum { CREATED = 25, POINTS = EFFORT(50, 10) };

TEST_LOOP(a_lost_message_ends_an_exchange, POINTS) {
  size_t number = CREATED + (size_t)_i * (50 / POINTS);
  lose(ROW_DISTRIBUTED,
       (post_fault){.from = 1, .to = 0, .number = number, .once = true}, 2);
}

TEST_LOOP(a_damaged_message_ends_an_exchange, POINTS) {
  size_t number = CREATED + (size_t)_i * (50 / POINTS);
  lose(ROW_DISTRIBUTED,
       (post_fault){.from = 1, .to = 0, .number = number, .cuts = true}, 3);
}

// All ranks wait for the deadline.
enum { CUTS = EFFORT(25, 5) };

TEST_LOOP(a_link_that_is_cut_ends_an_exchange, CUTS) {
  size_t number = CREATED + (size_t)_i * (50 / CUTS);
  lose(ROW_DISTRIBUTED,
       (post_fault){.from = 1, .to = SIZE_MAX, .number = number}, 3);
}

// A few rows, which are asked for before ranks agree.
static void gather_few_until(tarn_comm *comm, void *unused) {
  scene *s = scene_of(comm, 5);
  tarn_status status = fill(s, 1000);
  (void)unused;
  for (size_t seed = 0; status == TARN_OK; seed++) {
    size_t count = (seed + s->rank) % 3 == 0 ? 0 : SMALL;
    status = tarn_whole_gather(&s->table, want(s, count, seed), NULL);
    if (status == TARN_OK) expect_rows(s);
  }
  expect(status == TARN_E_TIMEOUT || status == TARN_E_PEER_LOST ||
         status == TARN_E_CORRUPT);
  (void)tarn_whole_destroy(s->table.whole);
  free(s->dense);
  free(s);
  atomic_fetch_add(&failed, 1);
}

static void lose_of_few(post_fault fault, size_t ranks) {
  atomic_store(&failed, 0);
  post_run(&(post_job){.ranks = ranks,
                       .timeout_ms = 300,
                       .run = gather_few_until,
                       .fault = &fault},
           true);
  ck_assert_uint_eq(atomic_load(&failed), ranks);
}

enum { FEW_POINTS = EFFORT(12, 4) };

TEST_LOOP(a_lost_message_ends_a_gather_of_few, FEW_POINTS) {
  size_t number = CREATED + (size_t)_i * (24 / FEW_POINTS);
  lose_of_few((post_fault){.from = 1, .to = 0, .number = number, .once = true},
              2);
}

TEST_LOOP(a_damaged_message_ends_a_gather_of_few, FEW_POINTS) {
  size_t number = CREATED + (size_t)_i * (24 / FEW_POINTS);
  lose_of_few((post_fault){.from = 1, .to = 0, .number = number, .cuts = true},
              3);
}

TEST_LOOP(an_engine_that_refuses_ends_a_gather_of_few, FEW_POINTS) {
  size_t number = CREATED + (size_t)_i * (24 / FEW_POINTS);
  lose_of_few(
      (post_fault){
          .from = 1, .to = 0, .number = number, .refuses = TARN_E_PEER_LOST},
      3);
}

// Rows that are bought for a machine.
TEST_LOOP(a_lost_message_ends_a_purchase, POINTS) {
  size_t number = (size_t)2 * CREATED + (size_t)_i * (50 / POINTS);
  lose(ROW_PARTS,
       (post_fault){.from = 1, .to = 0, .number = number, .once = true}, 2);
}

SECONDS(300);
