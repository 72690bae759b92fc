// Collectives out of messages, over an engine that is a double: what they do,
// how many messages that takes, and who is told what when one does not come.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "post_office.h"
#include "support/effort.h"
#include "support/run.h"
#include "support/threads.h"

static unsigned char byte_of(size_t from, size_t to, size_t i) {
  return (unsigned char)(from * 31 + to * 7 + i * 3 + i / 251);
}

// Bytes as |from| would send them to |to|, or have them.
static unsigned char *bytes_of(size_t from, size_t to, size_t size) {
  unsigned char *bytes = malloc(size + 1);
  expect(bytes != NULL);
  for (size_t i = 0; i < size; i++)
    bytes[i] = byte_of(from, to, i);
  return bytes;
}

static void expect_bytes(const unsigned char *bytes, size_t from, size_t to,
                         size_t size) {
  unsigned char *wanted = bytes_of(from, to, size);
  expect(memcmp(bytes, wanted, size) == 0);
  free(wanted);
}

// --- each collective -------------------------------------------------------

static void try_broadcast(tarn_comm *comm, size_t root, size_t size) {
  bool is_root = tarn_comm_rank(comm) == root;
  unsigned char *bytes = bytes_of(is_root ? root : SIZE_MAX, 0, size);
  expect(tarn_comm_broadcast(comm, root, bytes, size) == TARN_OK);
  expect_bytes(bytes, root, 0, size);
  free(bytes);
}

static void try_allgather(tarn_comm *comm, size_t size) {
  size_t ranks = tarn_comm_size(comm);
  unsigned char *own = bytes_of(tarn_comm_rank(comm), 1, size);
  unsigned char *all = bytes_of(77, 77, ranks * size);
  expect(tarn_comm_allgather(comm, own, size, all) == TARN_OK);
  for (size_t r = 0; r < ranks; r++)
    expect_bytes(all + r * size, r, 1, size);
  free(own);
  free(all);
}

// Some sizes are 0.
static size_t size_between(size_t from, size_t to, size_t unit) {
  return (from + to) % 3 == 0 ? 0 : from * unit + to;
}

static void try_alltoallv(tarn_comm *comm, size_t unit) {
  size_t ranks = tarn_comm_size(comm);
  size_t rank = tarn_comm_rank(comm);
  size_t sizes[2][POST_RANKS];
  size_t at[2][POST_RANKS];
  size_t ends[2] = {0, 0};
  for (size_t r = 0; r < ranks; r++) {
    sizes[0][r] = size_between(rank, r, unit);
    sizes[1][r] = size_between(r, rank, unit);
    for (int way = 0; way < 2; way++) {
      at[way][r] = ends[way];
      ends[way] += sizes[way][r];
    }
  }
  unsigned char *out = bytes_of(0, 0, ends[0]);
  unsigned char *in = bytes_of(77, 77, ends[1]);
  for (size_t r = 0; r < ranks; r++)
    for (size_t i = 0; i < sizes[0][r]; i++)
      out[at[0][r] + i] = byte_of(rank, r, i);
  expect(tarn_comm_alltoallv(comm, out, sizes[0], at[0], in, sizes[1], at[1]) ==
         TARN_OK);
  for (size_t r = 0; r < ranks; r++)
    expect_bytes(in + at[1][r], r, rank, sizes[1][r]);
  free(out);
  free(in);
}

static void try_all(tarn_comm *comm, void *unused) {
  static const size_t sizes[] = {0, 1, 296, 297, 5000, (2 << 20) + 5};
  (void)unused;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes - EFFORT(0, 1); i++) {
    for (size_t root = 0; root < tarn_comm_size(comm); root++)
      try_broadcast(comm, root, sizes[i]);
    try_allgather(comm, sizes[i] / 8);
    try_alltoallv(comm, sizes[i] / 8);
  }
  expect(tarn_comm_barrier(comm) == TARN_OK);
  expect(tarn_comm_check(comm) == TARN_OK);
  expect(strcmp(tarn_comm_kind(comm), "post") == 0);
}

TEST_RANGE(any_number_of_ranks, 1, POST_RANKS + 1) {
  post_run(&(post_job){.ranks = (size_t)_i, .run = try_all}, false);
}

// More than a message holds, and where blocks go around the end.
static void try_large(tarn_comm *comm, void *unused) {
  (void)unused;
  try_allgather(comm, ((size_t)16 << 20) + 5);
  try_alltoallv(comm, ((size_t)16 << 20) + 5);
}

TEST(large_data_goes_by_several_messages) {
  post_run(&(post_job){.ranks = 3, .run = try_large}, false);
  size_t few = 3 * 2 * 8;
  ck_assert_uint_gt(post_count(), few);
}

// Odd ranks and even ones, in turned order; parts of parts; one in none.
static void try_parts(tarn_comm *comm, void *unused) {
  int64_t rank = (int64_t)tarn_comm_rank(comm);
  tarn_comm *half = NULL;
  tarn_comm *quarter = NULL;
  tarn_comm *rest = NULL;
  expect(tarn_comm_split(comm, rank % 2, -rank, &half) == TARN_OK);
  try_all(half, unused);
  expect(tarn_comm_split(half, rank % 4, 0, &quarter) == TARN_OK);
  int64_t color = rank == 0 ? TARN_COMM_NONE : 5;
  expect(tarn_comm_split(comm, color, 0, &rest) == TARN_OK);
  expect((rest == NULL) == (rank == 0));
  try_all(quarter, unused);
  if (rest != NULL) try_all(rest, unused);
  try_all(comm, unused);
  try_all(half, unused);
  expect(tarn_comm_barrier(comm) == TARN_OK);
  expect(tarn_comm_destroy(half) == TARN_OK);
  if (rest != NULL) try_allgather(rest, 100);
  try_allgather(quarter, 100);
  expect(tarn_comm_destroy(quarter) == TARN_OK);
  expect(tarn_comm_destroy(rest) == TARN_OK);
}

TEST_RANGE(parts_share_the_engine, 4, 8) {
  post_run(&(post_job){.ranks = (size_t)_i, .run = try_parts}, false);
}

static void split_often(tarn_comm *comm, void *unused) {
  enum { CONTEXTS = TARN_COMM_TAGS / 8 };
  (void)unused;
  for (size_t i = 1; i <= CONTEXTS; i++) {
    tarn_comm *part = NULL;
    tarn_status status = tarn_comm_split(comm, 0, 0, &part);
    expect(status == (i < CONTEXTS ? TARN_OK : TARN_FULL));
    expect(tarn_comm_destroy(part) == TARN_OK);
  }
  expect(strstr(tarn_last_error(), "4095 were split off before") != NULL);
}

TEST(no_more_parts_than_there_are_tags) {
  post_run(&(post_job){.ranks = 2, .run = split_often}, false);
}

typedef struct line {
  tarn_comm *comm;
  size_t number;
} line;

static void *work_beside(void *context) {
  const line *own = context;
  for (size_t i = 0; i < EFFORT(30, 8); i++) {
    tarn_comm *part = NULL;
    try_broadcast(own->comm, i % tarn_comm_size(own->comm), 5000 + own->number);
    try_alltoallv(own->comm, 100 * own->number);
    expect(tarn_comm_split(own->comm, 0, 0, &part) == TARN_OK);
    try_allgather(part, 40 + own->number);
    expect(tarn_comm_barrier(part) == TARN_OK);
    expect(tarn_comm_destroy(part) == TARN_OK);
  }
  return NULL;
}

// Communicators with a thread each, which split at the same time.
static void work_in_threads(tarn_comm *comm, void *unused) {
  enum { LINES = 3 };
  line lines[LINES];
  pthread_t threads[LINES];
  (void)unused;
  for (size_t i = 0; i < LINES; i++) {
    lines[i].number = i;
    expect(tarn_comm_split(comm, 0, 0, &lines[i].comm) == TARN_OK);
  }
  for (size_t i = 0; i < LINES; i++)
    threads[i] = start_thread(work_beside, &lines[i]);
  for (size_t i = 0; i < LINES; i++)
    expect(pthread_join(threads[i], NULL) == 0);
  expect(tarn_comm_barrier(comm) == TARN_OK);
  for (size_t i = 0; i < LINES; i++)
    expect(tarn_comm_destroy(lines[i].comm) == TARN_OK);
}

TEST_RANGE(communicators_have_a_thread_each, 2, 5) {
  post_run(&(post_job){.ranks = (size_t)_i, .run = work_in_threads}, false);
}

// --- what it takes ---------------------------------------------------------

static void pass_barriers(tarn_comm *comm, void *context) {
  for (size_t i = 0; i < *(const size_t *)context; i++)
    expect(tarn_comm_barrier(comm) == TARN_OK);
}

static size_t posts_of(size_t ranks, size_t barriers) {
  post_run(
      &(post_job){.ranks = ranks, .run = pass_barriers, .context = &barriers},
      false);
  return post_count();
}

// Each rank sends and receives log2 of the ranks times, a block or two.
TEST(a_barrier_takes_few_messages) {
  for (size_t ranks = 2; ranks <= POST_RANKS; ranks++) {
    size_t steps = 0;
    while ((size_t)1 << steps < ranks)
      steps++;
    size_t posts = posts_of(ranks, 11) - posts_of(ranks, 1);
    ck_assert_uint_ge(posts, 10 * ranks * steps * 2);
    ck_assert_uint_le(posts, 10 * ranks * steps * 4);
    ck_assert_uint_le(post_most_open(), 5);  // with that for notes
  }
}

// --- what does not come ----------------------------------------------------

typedef struct loss {
  size_t silent;  // the rank that stays away; SIZE_MAX: none
  tarn_status expected;
  const char *says;
  atomic_size_t told;
} loss;

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool says(const loss *l) {
  return strstr(tarn_last_error(), l->says) != NULL;
}

static void lose_one(tarn_comm *comm, void *context) {
  loss *l = context;
  tarn_status status = TARN_OK;
  bool stays_away = tarn_comm_rank(comm) == l->silent;
  expect(tarn_comm_barrier(comm) == TARN_OK);
  while (stays_away && atomic_load(&l->told) < tarn_comm_size(comm) - 1)
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  for (size_t i = 0; status == TARN_OK && i < 10; i++)
    status = tarn_comm_barrier(comm);
  expect(status == l->expected);
  expect(says(l));
  expect(tarn_comm_barrier(comm) == status);
  expect(tarn_comm_check(comm) == status);
  atomic_fetch_add(&l->told, 1);
}

// All are told which one, in a tenth more than the timeout, and what a busy
// machine takes. Who comes late is told as well.
TEST_RANGE(a_silent_rank_is_named, 2, 7) {
  size_t ranks = (size_t)_i;
  for (size_t silent = 0; silent < ranks; silent++) {
    char text[80];
    loss l = {.silent = silent, .expected = TARN_E_TIMEOUT, .says = text};
    snprintf(text, sizeof text, "rank %zu did not arrive within 150 ms",
             silent);
    double begin = now_s();
    post_run(
        &(post_job){
            .ranks = ranks, .timeout_ms = 150, .run = lose_one, .context = &l},
        true);
    ck_assert_double_ge(now_s() - begin, 0.15);
    ck_assert_double_lt(now_s() - begin, 5.0);
  }
}

// Nobody knows whose it was: the ranks wait for each other. Of 2 or 4 ranks the
// next message of the same rank would take its place.
TEST_LOOP(a_lost_message_is_told_from_a_silent_rank, 2) {
  for (size_t number = 1; number < 4; number++) {
    loss l = {.silent = SIZE_MAX,
              .expected = TARN_E_TIMEOUT,
              .says =
                  "has waited 150 ms for ranks that wait for each other: a "
                  "message was lost"};
    post_fault fault = {.from = 1, .to = 0, .number = number, .once = true};
    post_run(&(post_job){.ranks = _i == 0 ? 3 : 5,
                         .timeout_ms = 150,
                         .run = lose_one,
                         .context = &l,
                         .fault = &fault},
             true);
  }
}

// The others are told that this rank does not come: it says no more.
static void meet_damage(tarn_comm *comm, void *context) {
  loss *l = context;
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < 10; i++)
    status = tarn_comm_barrier(comm);
  expect(status == TARN_E_TIMEOUT || status == l->expected);
  if (status != l->expected) return;
  expect(says(l));
  expect(tarn_comm_barrier(comm) == status);
  expect(says(l));
  atomic_fetch_add(&l->told, 1);
}

static void check_damage(post_fault fault, tarn_status expected,
                         const char *says) {
  loss l = {.expected = expected, .says = says};
  fault.from = 1;
  fault.number = 3;
  post_run(&(post_job){.ranks = 2,
                       .timeout_ms = 150,
                       .run = meet_damage,
                       .context = &l,
                       .fault = &fault},
           true);
  ck_assert_uint_eq(l.told, 1);
}

TEST(a_damaged_message_is_named) {
  check_damage((post_fault){.cuts = true}, TARN_E_CORRUPT,
               "the engine 'post' cannot pass messages on");
}

TEST(a_message_that_is_not_taken_is_named) {
  static const tarn_status why[] = {TARN_E_PEER_LOST, TARN_E_NOMEM, TARN_E_IO};
  for (size_t i = 0; i < sizeof why / sizeof *why; i++) {
    check_damage((post_fault){.refuses = why[i]}, why[i],
                 "the engine 'post' cannot post a message");
  }
}
