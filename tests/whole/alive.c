// Signs of life in an exchange: a rank that waits for longer than its deadline,
// while others move rows, waits on; and one that has stopped is found all the
// same, by those that wait for it at first hand.
//
//   rank 0 ──waits for──► rank 1 ◄──rows──► rank 2
//
// Rank 0 asks for nothing, and nobody asks it. On one machine it sees that rank
// 1 goes on, on the board; over messages rank 1 says that it is busy.
#include <signal.h>
#include <time.h>

#include "comm/comm.h"
#include "comm/messages.h"
#include "comm/post_office.h"
#include "kit.h"
#include "support/threads.h"

enum { RANKS = 3, IDLE = 0, SLOW = 2 };
enum { ROWS = 3000, FEW = 1 << 14, MOST = 1 << 21 };

// --- gathers that take long ------------------------------------------------

// Made before there are ranks: one that computes for long is silent.
static int64_t *indices;  // of rows of those two that are not idle
static float *dense;      // MOST of each rank

static void prepare(void) {
  indices = calloc(MOST, sizeof *indices);
  dense = calloc((size_t)MOST * RANKS, sizeof *dense);
  ck_assert(indices != NULL && dense != NULL);
  for (size_t i = 0; i < MOST; i++)
    indices[i] = (int64_t)(ROWS / RANKS + i * 7919 % (ROWS * 2 / RANKS));
}

static void drop(void) {
  free(indices);
  free(dense);
}

typedef struct trade {
  tarn_comm *comm;
  size_t rank;
  tarn_whole_tensor table;
} trade;

// |count| rows, by each of those two.
static tarn_status gather(const trade *t, size_t count) {
  const tarn_whole_rows rows = {
      .struct_size = sizeof rows,
      .place = TARN_HOST,
      .dense = (tarn_addr)(uintptr_t)(dense + t->rank * MOST),
      .indices = (tarn_addr)(uintptr_t)indices,
      .index_dtype = TARN_DTYPE_I64,
      .index_count = t->rank != IDLE ? count : 0};
  return tarn_whole_gather(&t->table, &rows, NULL);
}

// The first gather makes the staging, which may take as long as it likes.
static tarn_status begin(tarn_comm *comm, trade *out) {
  *out = (trade){.comm = comm, .rank = tarn_comm_rank(comm)};
  const tarn_whole_table_options options = {.struct_size = sizeof options,
                                            .type = TARN_WHOLE_DISTRIBUTED,
                                            .place = TARN_HOST,
                                            .dtype = TARN_DTYPE_F32,
                                            .rows = ROWS};
  tarn_status status = tarn_whole_table_create(comm, &options, &out->table);
  return status == TARN_OK ? gather(out, FEW) : status;
}

// Gathers ever more rows, until the idle rank has waited for |ms|, though
// not for much longer: what is looked at before takes a part of that.
static tarn_status gather_for_long(const trade *t, uint64_t ms,
                                   bool *out_is_long) {
  *out_is_long = false;
  for (size_t count = FEW; count <= MOST && !*out_is_long; count += count / 4) {
    double begun = ranks_seconds();
    tarn_status status = gather(t, count);
    *out_is_long = ranks_seconds() - begun > 1e-3 * (double)ms;
    if (status == TARN_OK) {
      status = tarn_comm_broadcast(t->comm, IDLE, out_is_long, sizeof(bool));
    }
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

// --- by messages -----------------------------------------------------------

// An engine that is slow makes a gather long. Notes take as many looks as other
// messages: a question and its answer far less than the 100 ms that a rank has
// for them, also where each look waits for a processor.
enum { MESSAGES_MS = 300, LATE = 4, LOOK_US = 1000 };

static void expect_ok(tarn_status status) {
  if (status != TARN_OK) fprintf(stderr, "%s\n", tarn_last_error());
  expect(status == TARN_OK);
}

// Before a rank is judged it is asked, as is whom it waits for, and once more.
static void trade_by_messages(tarn_comm *comm, void *context) {
  trade t;
  bool is_long = false;
  (void)context;
  expect_ok(begin(comm, &t));
  comm->messages->engine->timeout_ms = MESSAGES_MS;
  expect_ok(gather_for_long(&t, (uint64_t)3 * MESSAGES_MS, &is_long));
  expect(is_long);
  expect_ok(tarn_whole_destroy(t.table.whole));
}

TEST(a_rank_that_moves_rows_is_not_silent) {
  post_run(&(post_job){.ranks = RANKS,
                       .run = trade_by_messages,
                       .late = LATE,
                       .look_us = LOOK_US},
           false);
}

// --- on one machine --------------------------------------------------------

// Where the machine is too busy for a deadline, there is a longer one.
enum { NEAR_MS = 500, MOST_MS = 8000, NAPS = 3, MANY = 1 << 18 };
enum { MOMENT_NS = 100000, NAP_NS = 10000000 };

// What may go by behind the deadline, on a busy machine.
static const double LATEST_S = 5.0;

static const float NOT_COME = 1.25F;

static timer_t timer;
static uint64_t began_ns;  // of the process, when it last began to run

typedef struct shared_words {
  uint64_t deadline_ms;
  double stopped_at;
  bool did[RANKS];  // as it should
} shared_words;

static shared_words *shared;  // of all ranks

// Of the one that stops so many naps after its first row has come.
static volatile sig_atomic_t naps_left;
static volatile float *first_row;

static void set_timer(void) {
  const struct itimerspec soon = {.it_value = {.tv_nsec = MOMENT_NS}};
  (void)timer_settime(timer, 0, &soon, NULL);
}

static uint64_t ran_ns(void) {
  struct timespec ran;
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ran);
  return (uint64_t)ran.tv_sec * 1000000000 + (uint64_t)ran.tv_nsec;
}

static void nap(int signal) {
  (void)signal;
  if (ran_ns() - began_ns >= MOMENT_NS) {
    if (naps_left > 0 && *first_row != NOT_COME && --naps_left == 0) {
      shared->stopped_at = ranks_seconds();
      ranks_stop();
    }
    nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    began_ns = ran_ns();
  }
  set_timer();
}

// From now on this process runs for a moment at a time, so that few rows, which
// are looked at before, take long.
static void slow_down(void) {
  const struct sigaction action = {.sa_handler = nap, .sa_flags = SA_RESTART};
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                           .sigev_signo = SIGUSR1};
  MUST(sigaction(SIGUSR1, &action, NULL) == 0);
  MUST(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  began_ns = ran_ns();
  set_timer();
}

static void begin_near(trade *out) {
  MUST_BE(begin(my.comm, out), TARN_OK);
  ranks_set_timeout(my.comm, shared->deadline_ms);
  if (my.rank == SLOW) slow_down();
}

static bool all_did(void) {
  bool all = true;
  for (size_t r = 0; r < RANKS; r++)
    all = all && shared->did[r];
  return all;
}

// In one of the deadlines all ranks do as they should.
static void run_near(const char *text, void (*function)(void),
                     uint64_t stopped) {
  rank_work work = {.function = function};
  my.text = text;
  shared = ranks_shared(sizeof *shared);
  for (uint64_t ms = NEAR_MS; ms <= MOST_MS && !all_did(); ms *= 2) {
    *shared = (shared_words){.deadline_ms = ms};
    ranks_run(&(ranks_plan){
        .size = RANKS, .body = be_rank, .context = &work, .stopped = stopped});
  }
  ck_assert(all_did());
}

static void trade_near(void) {
  trade t;
  bool is_long = false;
  begin_near(&t);
  uint64_t longer_ms = shared->deadline_ms + shared->deadline_ms / 4;
  tarn_status status = gather_for_long(&t, longer_ms, &is_long);
  shared->did[my.rank] = status == TARN_OK && is_long;
  MUST_BE(tarn_whole_destroy(t.table.whole), status);
}

TEST(a_rank_of_the_machine_that_goes_on_is_waited_for) {
  run_near("one machine", trade_near, 0);
}

// Rank 0 waits for rank 1, which goes on until it finds rank 2.
static void trade_until_one_stops(void) {
  trade t;
  char text[64];
  tarn_status status = TARN_OK;
  begin_near(&t);
  first_row = dense + my.rank * MOST;
  *first_row = NOT_COME;
  if (my.rank == SLOW) naps_left = NAPS;
  while (status == TARN_OK)
    status = gather(&t, MANY);
  snprintf(text, sizeof text, "comm: rank 2 did not arrive within %llu ms",
           (unsigned long long)shared->deadline_ms);
  double waited = ranks_seconds() - shared->stopped_at;
  double most = 1e-3 * (double)shared->deadline_ms + LATEST_S;
  MUST_BE(status, TARN_E_TIMEOUT);
  shared->did[my.rank] = strstr(tarn_last_error(), text) != NULL &&
                         (my.rank == SLOW || waited < most);
  MUST_BE(tarn_whole_destroy(t.table.whole), TARN_E_TIMEOUT);
}

TEST(a_rank_that_has_stopped_is_found) {
  run_near("one that stops", trade_until_one_stops, UINT64_C(1) << SLOW);
}

FIXTURE(prepare, drop);
SECONDS(180);
