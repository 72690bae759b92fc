// Ranks that die, stop, or leave: the others are told, which one, in time, and
// all the same.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "comm/comm.h"
#include "support/effort.h"
#include "support/ranks.h"
#include "support/run.h"

// What ranks tell each other beside the communicator.
typedef struct board {
  volatile double when;       // the rank died, or began to wait
  volatile double found[64];  // when each rank was told
  char texts[64][256];        // and what
  volatile tarn_status status[64];
} board;

enum { VICTIM = 1 };

static bool is_victim(const tarn_comm *comm) {
  return tarn_comm_rank(comm) == VICTIM;
}

static void note(tarn_comm *comm, board *told, tarn_status status) {
  size_t rank = tarn_comm_rank(comm);
  told->found[rank] = ranks_seconds();
  told->status[rank] = status;
  snprintf(told->texts[rank], sizeof told->texts[rank], "%s",
           tarn_last_error());
}

static void see_all_told(const board *told, size_t size, tarn_status expected,
                         const char *text) {
  for (size_t rank = 0; rank < size; rank++) {
    if (rank == VICTIM) continue;
    ck_assert_int_eq(told->status[rank], expected);
    ck_assert_str_eq(told->texts[rank], text);
  }
}

// What the others of |size| ranks are told when the victim is killed.
static void see_death(size_t size, ranks_body *body, uint64_t timeout_ms,
                      double when) {
  board *told = ranks_shared(sizeof *told);
  told->when = when;
  ranks_run(&(ranks_plan){.size = size,
                          .body = body,
                          .context = told,
                          .timeout_ms = timeout_ms,
                          .killed = 1 << VICTIM});
  see_all_told(told, size, TARN_E_PEER_LOST, "comm: rank 1 has ended");
}

// --- death -----------------------------------------------------------------

static void die_in_barrier(tarn_comm *comm, void *context) {
  board *told = context;
  assert_ok(tarn_comm_barrier(comm));
  if (is_victim(comm)) {
    usleep(20000);
    told->when = ranks_seconds();
    ranks_die();
  }
  note(comm, told, tarn_comm_barrier(comm));
  // It stays so, in whatever is called.
  int fds[64];
  int64_t value = 0;
  assert_status(tarn_comm_allgather(comm, &value, 0, NULL), TARN_E_PEER_LOST);
  assert_status(tarn_comm_share(comm, -1, fds), TARN_E_PEER_LOST);
  assert_status(tarn_comm_check(comm), TARN_E_PEER_LOST);
  ck_assert_str_eq(tarn_last_error(), told->texts[tarn_comm_rank(comm)]);
}

static const size_t SIZES[] = {2, 3, 4, 7, 16};
enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES };

TEST_LOOP(a_death_is_told_to_all, SIZE_COUNT) {
  see_death(SIZES[_i], die_in_barrier, 0, 0);
}

static void die_while_others_work(tarn_comm *comm, void *context) {
  board *told = context;
  if (is_victim(comm)) ranks_die();
  while (tarn_comm_check(comm) == TARN_OK)
    usleep(1000);
  note(comm, told, tarn_comm_check(comm));
}

TEST(a_check_finds_a_death) {
  see_death(3, die_while_others_work, 0, 0);
}

// A child of the victim holds its descriptors on: only its process tells.
static void die_with_a_child(tarn_comm *comm, void *context) {
  board *told = context;
  if (is_victim(comm)) {
    if (fork() == 0) {
      alarm(60);
      while (told->found[0] == 0)
        usleep(1000);
      _exit(0);
    }
    ranks_die();
  }
  note(comm, told, tarn_comm_barrier(comm));
}

TEST(a_death_shows_though_a_child_lives) {
  see_death(2, die_with_a_child, 0, 0);
}

// Its mailbox is closed long before it has ended, as where a driver has to
// clear a card. Whoever is told that it has ended may rely on that.
static void close_all_and_die(tarn_comm *comm, void *context) {
  board *told = context;
  assert_ok(tarn_comm_barrier(comm));
  if (is_victim(comm)) {
    ck_assert_int_eq(close_range(STDERR_FILENO + 1, ~0U, 0), 0);
    usleep(200000);
    told->when = ranks_seconds();
    ranks_die();
  }
  note(comm, told, tarn_comm_barrier(comm));
  ck_assert_double_gt(told->when, 0);
}

TEST(a_death_is_told_when_the_process_has_ended) {
  see_death(3, close_all_and_die, 0, 0);
}

// It becomes another program, which knows of nothing, and lives on.
static void become_another(tarn_comm *comm, void *context) {
  board *told = context;
  size_t rank = tarn_comm_rank(comm);
  pid_t own = getpid();
  pid_t pids[3];
  assert_ok(tarn_comm_allgather(comm, &own, sizeof own, pids));
  if (is_victim(comm)) execl("/bin/sleep", "sleep", "100", (char *)NULL);
  note(comm, told, tarn_comm_barrier(comm));
  if (rank == 0) ck_assert_int_eq(kill(pids[VICTIM], SIGKILL), 0);
}

TEST(a_rank_that_becomes_another_program_is_lost) {
  see_death(3, become_another, 20000, 0);
}

// --- before it has come ----------------------------------------------------

static void die_if_victim(size_t rank, void *context) {
  (void)context;
  if (rank == VICTIM) ranks_die();
}

RANKS_TEST(a_rank_that_never_comes_is_told, .size = 3, .before = die_if_victim,
           .joins = TARN_E_PEER_LOST, .killed = 1 << VICTIM)

static void stop_if_victim(size_t rank, void *context) {
  (void)context;
  if (rank == VICTIM) ranks_stop();
}

RANKS_TEST(a_rank_that_comes_late_is_told, .size = 3, .before = stop_if_victim,
           .timeout_ms = 200, .joins = TARN_E_TIMEOUT, .stopped = 1 << VICTIM)

// --- deadlines -------------------------------------------------------------

static void stop_in_barrier(tarn_comm *comm, void *context) {
  board *told = context;
  assert_ok(tarn_comm_barrier(comm));
  ranks_set_timeout(comm, 1000);
  if (is_victim(comm)) ranks_stop();
  note(comm, told, tarn_comm_barrier(comm));
}

TEST(a_stopped_rank_is_late) {
  board *told = ranks_shared(sizeof *told);
  ranks_run(&(ranks_plan){.size = 4,
                          .body = stop_in_barrier,
                          .context = told,
                          .stopped = 1 << VICTIM});
  see_all_told(told, 4, TARN_E_TIMEOUT,
               "comm: rank 1 did not arrive within 1000 ms");
  ck_assert_int_eq(told->status[VICTIM], TARN_E_TIMEOUT);
  ck_assert_str_eq(told->texts[VICTIM], told->texts[0]);
}

// Rank 0 waits for the victim as an exchange does, and longer than rank 2,
// which waits for both of them.
static void wait_for_victim(tarn_comm *comm, board *told) {
  tarn__comm_progress progress;
  tarn_status status = tarn__comm_progress_begin(comm, &progress);
  while (status == TARN_OK) {
    tarn__comm_progress_extend(&progress);
    status = tarn__comm_progress_idle(&progress, VICTIM);
  }
  tarn__comm_progress_end(&progress);
  note(comm, told, status);
}

static void stop_in_exchange(tarn_comm *comm, void *context) {
  board *told = context;
  assert_ok(tarn_comm_barrier(comm));
  ranks_set_timeout(comm, 1000);
  if (is_victim(comm)) ranks_stop();
  if (tarn_comm_rank(comm) == 0) {
    wait_for_victim(comm, told);
  } else {
    note(comm, told, tarn_comm_barrier(comm));
  }
}

TEST(a_rank_that_waits_for_a_late_one_is_not_late) {
  board *told = ranks_shared(sizeof *told);
  ranks_run(&(ranks_plan){.size = 3,
                          .body = stop_in_exchange,
                          .context = told,
                          .stopped = 1 << VICTIM});
  see_all_told(told, 3, TARN_E_TIMEOUT,
               "comm: rank 1 did not arrive within 1000 ms");
}

TEST(no_deadline_is_too_long) {
  see_death(3, die_in_barrier, UINT64_MAX, 0);
}

// --- leaving ---------------------------------------------------------------

static void leave_early(tarn_comm *comm, void *context) {
  board *told = context;
  assert_ok(tarn_comm_barrier(comm));
  if (is_victim(comm)) {
    assert_ok(tarn_comm_destroy(comm));
    return;
  }
  note(comm, told, tarn_comm_barrier(comm));
  assert_ok(tarn_comm_destroy(comm));
}

TEST(who_has_left_is_lost) {
  board *told = ranks_shared(sizeof *told);
  ranks_run(&(ranks_plan){
      .size = 4, .body = leave_early, .context = told, .keeps = true});
  see_all_told(told, 4, TARN_E_PEER_LOST,
               "comm: rank 1 has left the communicator");
}

// What all have come to is over for all, though some end at once.
static void end_behind_barrier(tarn_comm *comm, void *context) {
  size_t rank = tarn_comm_rank(comm);
  int64_t all[16];
  int64_t own = (int64_t)rank;
  (void)context;
  for (int i = 0; i < 20; i++)
    assert_ok(tarn_comm_allgather(comm, &own, sizeof own, all));
  if (rank % 2 == 1) ranks_die();
  for (size_t r = 0; r < tarn_comm_size(comm); r++)
    ck_assert_int_eq(all[r], (int64_t)r);
}

TEST(what_is_over_is_over) {
  for (int run = 0; run < 20; run++) {
    ranks_run(
        &(ranks_plan){.size = 4, .body = end_behind_barrier, .killed = 0xa});
  }
}

// --- anywhere --------------------------------------------------------------

static tarn_status call_all(tarn_comm *comm) {
  static unsigned char bytes[4 * 70000];
  const size_t sizes[4] = {900, 900, 900, 900};
  const size_t at[4] = {0, 900, 1800, 2700};
  int fds[4];
  tarn_comm *group = NULL;
  TARN__TRY(tarn_comm_barrier(comm));
  TARN__TRY(tarn_comm_broadcast(comm, 0, bytes, 70000));
  TARN__TRY(tarn_comm_allgather(comm, bytes, 70000, bytes));
  TARN__TRY(
      tarn_comm_alltoallv(comm, bytes, sizes, at, bytes + 70000, sizes, at));
  TARN__TRY(tarn_comm_share(comm, 0, fds));
  for (size_t r = 0; r < tarn_comm_size(comm); r++) {
    if (fds[r] >= 0) close(fds[r]);
  }
  TARN__TRY(tarn_comm_split(comm, 0, 0, &group));
  assert_ok(tarn_comm_destroy(group));
  return TARN_OK;
}

// All collectives, over and over, until one fails.
static tarn_status go_around(tarn_comm *comm) {
  for (;;)
    TARN__TRY(call_all(comm));
}

static void be_killed_anywhere(tarn_comm *comm, void *context) {
  board *told = context;
  if (is_victim(comm) && fork() == 0) {
    usleep((useconds_t)told->when);
    kill(getppid(), SIGKILL);
    _exit(0);
  }
  note(comm, told, go_around(comm));
}

TEST(a_death_anywhere_is_told) {
  for (int run = 0; run < EFFORT(60, 10); run++)
    see_death(4, be_killed_anywhere, 0, 1000 + 397 * run % 4000);
}

// --- all the same ----------------------------------------------------------

// A rank that comes about when the others' time is over: whatever the outcome,
// it is one for all.
static void come_about_then(tarn_comm *comm, void *context) {
  board *told = context;
  assert_ok(tarn_comm_barrier(comm));
  ranks_set_timeout(comm, 40);
  if (is_victim(comm)) usleep(40000);
  note(comm, told, tarn_comm_barrier(comm));
}

TEST(all_get_the_same) {
  for (int run = 0; run < 30; run++) {
    board *told = ranks_shared(sizeof *told);
    ranks_run(
        &(ranks_plan){.size = 3, .body = come_about_then, .context = told});
    for (size_t rank = 1; rank < 3; rank++)
      ck_assert_int_eq(told->status[rank], told->status[0]);
  }
}
