// Collectives out of messages, over an engine that is a double: what they do,
// how many messages that takes, and who is told what when one does not come.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/comm.h"
#include "comm/messages.h"
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
  if (bytes == NULL) abort();
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

TEST_RANGE(any_number_of_ranks, 1, EFFORT(POST_RANKS + 1, 8)) {
  post_run(&(post_job){.ranks = (size_t)_i, .run = try_all}, false);
}

// More than a message holds, and where blocks go around the end.
static void try_large(tarn_comm *comm, void *unused) {
  (void)unused;
  try_allgather(comm, ((size_t)16 << 20) + 5);
  try_alltoallv(comm, ((size_t)16 << 20) + 5);
}

// Where threads are watched and the machine is busy, a rank takes long to look
// at each byte, while the others wait for it.
TEST(large_data_goes_by_several_messages) {
  post_run(&(post_job){.ranks = 3, .timeout_ms = 100000, .run = try_large},
           false);
  size_t few = (size_t)3 * 2 * 8;
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
  size_t splits;
} line;

static void *work_beside(void *context) {
  const line *own = context;
  for (size_t i = 0; i < own->splits; i++) {
    tarn_comm *part = NULL;
    try_broadcast(own->comm, i % tarn_comm_size(own->comm), 5000 + own->number);
    try_alltoallv(own->comm, 100 * own->number);
    tarn_status status = tarn_comm_split(own->comm, 0, 0, &part);
    expect(status == TARN_OK);
    if (status != TARN_OK) break;
    try_allgather(part, 40 + own->number);
    expect(tarn_comm_barrier(part) == TARN_OK);
    expect(tarn_comm_destroy(part) == TARN_OK);
  }
  return NULL;
}

static void *split_beside(void *context) {
  const line *own = context;
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < own->splits; i++) {
    tarn_comm *part = NULL;
    status = tarn_comm_split(own->comm, 0, 0, &part);
    expect(status == TARN_OK);
    expect(tarn_comm_destroy(part) == TARN_OK);
  }
  return NULL;
}

enum { LINES = 3 };

typedef struct plan {
  void *(*work)(void *context);
  size_t splits;  // of each communicator
  unsigned late;  // as in post_job
  bool turns;     // rank 0 has one thread for all, which takes the newest first
} plan;

static void work_on_threads(const plan *p, line *lines) {
  pthread_t threads[LINES];
  for (size_t i = 0; i < LINES; i++)
    threads[i] = start_thread(p->work, &lines[i]);
  for (size_t i = 0; i < LINES; i++)
    expect(pthread_join(threads[i], NULL) == 0);
}

// Several communicators with a thread each, which split at the same time.
static void work_on_lines(tarn_comm *comm, void *context) {
  const plan *p = context;
  line lines[LINES];
  for (size_t i = 0; i < LINES; i++) {
    lines[i] = (line){.number = i, .splits = p->splits};
    expect(tarn_comm_split(comm, 0, 0, &lines[i].comm) == TARN_OK);
  }
  if (p->turns && tarn_comm_rank(comm) == 0) {
    for (size_t i = LINES; i > 0; i--)
      p->work(&lines[i - 1]);
  } else {
    work_on_threads(p, lines);
  }
  expect(tarn_comm_barrier(comm) == TARN_OK);
  // Splits that met have cost no tags.
  expect(comm->messages->engine->contexts == LINES * (1 + p->splits));
  for (size_t i = 0; i < LINES; i++)
    expect(tarn_comm_destroy(lines[i].comm) == TARN_OK);
}

static void run_plan(size_t ranks, plan p) {
  post_run(
      &(post_job){
          .ranks = ranks, .run = work_on_lines, .context = &p, .late = p.late},
      false);
}

TEST_RANGE(communicators_have_a_thread_each, 2, 5) {
  run_plan((size_t)_i, (plan){work_beside, EFFORT(30, 8), 0, false});
}

TEST_RANGE(splits_at_the_same_time_go_one_after_the_other, 2, 4) {
  run_plan((size_t)_i, (plan){split_beside, EFFORT(100, 30), 20, false});
}

TEST_RANGE(one_thread_may_split_what_others_have_threads_for, 2, 4) {
  run_plan((size_t)_i, (plan){split_beside, 5, 20, true});
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

// Each rank sends and receives up to three times for each factor of 4 of the
// ranks, a block or two.
TEST(a_barrier_takes_few_messages) {
  for (size_t ranks = 2; ranks <= POST_RANKS; ranks++) {
    size_t steps = 0;
    while ((size_t)1 << 2 * steps < ranks)
      steps++;
    size_t posts = posts_of(ranks, 11) - posts_of(ranks, 1);
    ck_assert_uint_ge(posts, 10 * ranks * steps * 2);
    ck_assert_uint_le(posts, 10 * ranks * steps * 3 * 4);
    ck_assert_uint_le(post_most_open(), 3 * 4 + 1);  // with that for notes
  }
}

// --- what does not come ----------------------------------------------------

// A rank of a busy machine runs several times meanwhile.
enum { TIMEOUT_MS = 600 };

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
TEST_RANGE(a_silent_rank_is_named, 2, EFFORT(7, 5)) {
  size_t ranks = (size_t)_i;
  for (size_t silent = 0; silent < ranks; silent++) {
    char text[112];
    loss l = {.silent = silent, .expected = TARN_E_TIMEOUT, .says = text};
    snprintf(text, sizeof text,
             "comm: rank %zu did not arrive within %d ms in tarn_comm_barrier, "
             "over the post",
             silent, TIMEOUT_MS);
    double begin = now_s();
    post_run(&(post_job){.ranks = ranks,
                         .timeout_ms = TIMEOUT_MS,
                         .run = lose_one,
                         .context = &l},
             true);
    ck_assert_double_ge(now_s() - begin, TIMEOUT_MS * 1e-3);
    ck_assert_double_lt(now_s() - begin, 10.0);
  }
}

static void sleep_ms(long ms) {
  nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

// Until rank 2 does not come.
static tarn_status await_both(tarn_comm *comm) {
  unsigned char bytes[3] = "";
  void *messages[3] = {NULL};
  tarn__comm_progress progress;
  tarn_status status = tarn__comm_progress_begin(comm, &progress);
  for (size_t r = 1; r < 3 && status == TARN_OK; r++) {
    status = tarn__comm_post(comm, TARN_COMM_RECEIVE, r, TARN__TOPIC_DATA,
                             &bytes[r], 1, &messages[r]);
  }
  for (size_t r = 1; r < 3 && status == TARN_OK;) {
    status = tarn__comm_test(comm, messages, 3);
    if (status != TARN_OK) break;
    if (messages[r] == NULL) {
      r++;
    } else {
      status = tarn__comm_progress_idle(&progress, r);
    }
  }
  expect(messages[1] == NULL);
  status = tarn__comm_give_up(comm, status);
  for (size_t r = 1; r < 3; r++)
    expect(tarn__comm_drop(comm, true, &messages[r]));
  return status;
}

static tarn_status come_late(tarn_comm *comm) {
  unsigned char byte = 1;
  void *message = NULL;
  sleep_ms((long)tarn_comm_timeout_ms(comm) * 9 / 10);
  tarn_status status = tarn__comm_post(comm, TARN_COMM_SEND, 0,
                                       TARN__TOPIC_DATA, &byte, 1, &message);
  if (status == TARN_OK) status = tarn__comm_test(comm, &message, 1);
  while (status == TARN_OK) {
    sleep_ms(1);
    status = tarn_comm_check(comm);
  }
  return status;
}

static void await_two(tarn_comm *comm, void *context) {
  loss *l = context;
  size_t rank = tarn_comm_rank(comm);
  expect(tarn_comm_barrier(comm) == TARN_OK);
  if (rank < 2) {
    expect((rank == 0 ? await_both : come_late)(comm) == l->expected);
    expect(says(l));
    atomic_fetch_add(&l->told, 1);
  }
  while (atomic_load(&l->told) < 2)
    sleep_ms(1);
}

// It was asked, for want of its message, and had no time to answer.
TEST(who_comes_at_the_last_moment_is_not_the_silent_one) {
  loss l = {.expected = TARN_E_TIMEOUT,
            .says = "comm: rank 2 did not arrive within 4000 ms"};
  post_run(
      &(post_job){
          .ranks = 3, .timeout_ms = 4000, .run = await_two, .context = &l},
      true);
}

// Nobody knows whose it was: the ranks wait for each other. Of most numbers of
// ranks the next message of the same rank would take its place. A rank that
// gets no processor for the patience with which it is asked, a tenth of the
// timeout, would be taken for a silent one.
TEST_LOOP(a_lost_message_is_told_from_a_silent_rank, 2) {
  for (size_t number = 1; number < 3; number++) {
    loss l = {.silent = SIZE_MAX,
              .expected = TARN_E_TIMEOUT,
              .says =
                  "has waited 2500 ms for ranks that wait for each other: a "
                  "message was lost in tarn_comm_barrier, over the post"};
    post_fault fault = {.from = 1, .to = 0, .number = number, .once = true};
    post_run(&(post_job){.ranks = _i == 0 ? 5 : 9,
                         .timeout_ms = 2500,
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
                       .timeout_ms = TIMEOUT_MS,
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
  static const tarn_status why[] = {TARN_E_NOMEM, TARN_E_IO};
  for (size_t i = 0; i < sizeof why / sizeof *why; i++) {
    check_damage((post_fault){.refuses = why[i]}, why[i],
                 "the engine 'post' cannot post a message");
  }
}

static void meet_lost(tarn_comm *comm, void *context) {
  loss *l = context;
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < 10; i++)
    status = tarn_comm_barrier(comm);
  expect(status == l->expected);
  expect(says(l));
  atomic_fetch_add(&l->told, 1);
}

// All are told, also by a rank that needs nothing of the one that is lost.
TEST(a_rank_that_the_engine_has_lost_is_named) {
  post_fault fault = {
      .from = 1, .to = 0, .number = 3, .refuses = TARN_E_PEER_LOST};
  loss l = {.expected = TARN_E_PEER_LOST,
            .says =
                "comm: rank 0 is lost: the engine 'post' cannot send to "
                "it, missed in tarn_comm_barrier"};
  post_run(&(post_job){.ranks = 3,
                       .timeout_ms = 4000,
                       .run = meet_lost,
                       .context = &l,
                       .fault = &fault},
           true);
  ck_assert_uint_eq(l.told, 3);
}

// --- checksums -------------------------------------------------------------

static void try_all_checked(tarn_comm *comm, void *unused) {
  tarn__messages_use_checksums(comm->messages);
  try_all(comm, unused);
}

static void try_parts_checked(tarn_comm *comm, void *unused) {
  tarn__messages_use_checksums(comm->messages);
  try_parts(comm, unused);
}

TEST_RANGE(messages_have_checksums, 1, 6) {
  post_run(&(post_job){.ranks = (size_t)_i, .run = try_all_checked}, false);
  if (_i < 4) return;
  post_run(&(post_job){.ranks = (size_t)_i, .run = try_parts_checked}, false);
}

static void meet_flip(tarn_comm *comm, void *context) {
  tarn__messages_use_checksums(comm->messages);
  meet_lost(comm, context);
}

// It is told at all ranks, of which two have not seen it.
TEST(a_message_that_is_damaged_is_named) {
  for (size_t number = 0; number < 5; number++) {
    post_fault fault = {.from = 1, .to = 0, .number = number, .flips = true};
    loss l = {.expected = TARN_E_CORRUPT,
              .says = "comm: a message of rank 1 to rank 0 is damaged"};
    post_run(&(post_job){.ranks = 4,
                         .timeout_ms = 4000,
                         .run = meet_flip,
                         .context = &l,
                         .fault = &fault},
             true);
    ck_assert_uint_eq(l.told, 4);
  }
}
