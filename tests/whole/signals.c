// Signals that come all the time, and ranks that are stopped and go on in time:
// nothing that ranks do together fails by it, or takes for ever.
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/effort.h"
#include "support/ranks.h"
#include "support/run.h"
#include "whole_scenes.h"

enum {
  PERIOD_NS = EFFORT(100000, 1000000),  // of signals
  STOPS = 20,
  STOPPED_US = 5000,
  RANKS = 3
};

// --- signals ---------------------------------------------------------------

static void ignore(int number) {
  (void)number;
}

// Calls that a signal ends are not begun again by the kernel.
static timer_t begin_storm(void) {
  struct sigaction action = {.sa_handler = ignore};
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                           .sigev_signo = SIGUSR1};
  const struct itimerspec often = {{0, PERIOD_NS}, {0, PERIOD_NS}};
  timer_t timer;
  require(sigaction(SIGUSR1, &action, NULL) == 0);
  require(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  require(timer_settime(timer, 0, &often, NULL) == 0);
  return timer;
}

// The memory of 256 ranks takes longer than it is to the next signal.
TEST(a_meeting_is_made_in_a_storm) {
  tarn_rendezvous *meeting = NULL;
  timer_t timer = begin_storm();
  assert_ok(tarn_rendezvous_create(TARN_COMM_MOST_RANKS, &meeting));
  tarn_rendezvous_destroy(meeting);
  timer_delete(timer);
}

static void join_in_a_storm(size_t rank, void *context) {
  (void)rank;
  (void)context;
  (void)begin_storm();
}

// --- stops -----------------------------------------------------------------

// A child that stops rank 1 and lets it go on, over and over.
static void be_stopped_often(size_t rank, void *context) {
  pid_t own = getpid();
  (void)context;
  if (rank != 1 || fork() != 0) return;
  alarm(60);
  for (int i = 0; i < STOPS; i++) {
    kill(own, SIGSTOP);
    usleep(STOPPED_US);
    kill(own, SIGCONT);
    usleep(STOPPED_US);
  }
  _exit(0);
}

// --- a job that is stopped -------------------------------------------------

enum { JOB_TIMEOUT_MS = 2000, JOB_STOPPED_US = 2500000, MEETINGS = 30 };

typedef struct job {
  atomic_int pids[RANKS];
} job;

static void send_all(const job *all, int number) {
  for (int rank = 0; rank < RANKS; rank++) {
    kill(atomic_load(&all->pids[rank]), number);
    if (number == SIGCONT) usleep(50000);
  }
}

// Who goes on last is the one that the others wait for.
static void stop_all(const job *all) {
  alarm(60);
  usleep(100000);
  send_all(all, SIGSTOP);
  usleep(JOB_STOPPED_US);
  send_all(all, SIGCONT);
  _exit(0);
}

static void meet_often(tarn_comm *comm, void *context) {
  job *all = context;
  size_t rank = tarn_comm_rank(comm);
  atomic_store(&all->pids[rank], getpid());
  assert_ok(tarn_comm_barrier(comm));
  ranks_set_timeout(comm, JOB_TIMEOUT_MS);
  if (rank == 0 && fork() == 0) stop_all(all);
  for (int i = 0; i < MEETINGS; i++) {
    if (rank == RANKS - 1) usleep(10000);
    assert_ok(tarn_comm_barrier(comm));
  }
  if (rank == 0) ck_assert_int_gt(wait(NULL), 0);
}

RANKS_TEST(a_job_may_be_stopped_for_long, .size = RANKS, .body = meet_often,
           .context = ranks_shared(sizeof(job)))

// --- both ------------------------------------------------------------------

static void wait_for_children(void) {
  int end = 0;
  while (waitpid(-1, &end, 0) > 0 || errno == EINTR)
    require(end == 0);
}

static void play(tarn_comm *comm, void *context) {
  const scene *it = context;
  scene_word word = {.status = TARN_OK};
  scene_part part = {.comm = comm, .word = &word};
  part.place = scene_open(it, tarn_comm_rank(comm));
  it->play(it, &part);
  if (word.status != TARN_OK) {
    fprintf(stderr, "%s, rank %zu: %s\n", it->name, tarn_comm_rank(comm),
            word.text);
  }
  require(word.status == TARN_OK);
  require(tarn_comm_destroy(comm) == TARN_OK);
  scene_close(part.place);
  wait_for_children();
  _exit(0);  // what pools keep warm is no leak
}

RANKS_LOOP(a_scene_in_a_storm, (int)scene_count, .size = RANKS, .body = play,
           .before = join_in_a_storm, .context = (void *)(uintptr_t)&scenes[_i])

RANKS_LOOP(a_scene_with_stops, (int)scene_count, .size = RANKS, .body = play,
           .before = be_stopped_often,
           .context = (void *)(uintptr_t)&scenes[_i])
