// A rank that meets others by a path is killed at each of its system calls,
// before the kernel makes it and behind. The others are told, or find it
// missing; nobody hangs, and the next run meets at the same path as if nothing
// had been.
//
//   test_comm_meet_kill      every so many steps
//   test_comm_meet_kill all  every step
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/effort.h"
#include "support/party.h"
#include "support/ranks.h"
#include "support/run.h"
#include "support/tracer.h"

enum { RANKS = 3, MOST_STEPS = 5000 };

static const uint64_t TIMEOUT_MS = 300;

// Nobody waits longer: twice the timeout and what a busy machine takes.
static const double LATEST_S = 10;

static size_t stride;

static void offer(void *unused) {
  (void)unused;
  tracer_offer();
}

static void come_then_offer(void *unused) {
  party_await_host(unused);
  tracer_offer();
}

// A host that dies before it listens leaves nothing to wait for.
static void come_soon(void *unused) {
  (void)unused;
  for (int i = 0; i < 30 && access(party_words()[PARTY_MOST - 1].text, F_OK);
       i++)
    usleep(1000);
}

static party_guest rank_of(size_t rank) {
  return (party_guest){.path = party_path(),
                       .rank = rank,
                       .size = RANKS,
                       .job = "struck",
                       .timeout_ms = TIMEOUT_MS,
                       .word = &party_words()[rank]};
}

static void see_word(size_t rank, size_t step) {
  const party_word *word = &party_words()[rank];
  tarn_status status = word->status;
  ck_assert_msg(status == TARN_OK || status == TARN_E_PEER_LOST ||
                    status == TARN_E_TIMEOUT,
                "step %zu: rank %zu: %s '%s'", step, rank,
                tarn_status_name(status), word->text);
  ck_assert_double_lt(word->answered - word->called, LATEST_S);
}

// False when it had done before.
static bool kill_at(size_t victim, size_t step, size_t *out_told) {
  pid_t children[RANKS];
  snprintf(party_words()[PARTY_MOST - 1].text, 128, "%s", party_path());
  for (size_t rank = 0; rank < RANKS; rank++) {
    party_guest guest = rank_of(rank);
    if (victim == 0) guest.before = rank == 0 ? offer : come_soon;
    if (victim != 0 && rank != 0)
      guest.before = rank == victim ? come_then_offer : party_await_host;
    children[rank] = party_start(&guest);
  }
  tracer trace = tracer_begin(children[victim]);
  bool struck = !trace.ended && tracer_run(&trace, step, NULL, NULL);
  if (struck) tracer_kill(&trace);
  for (size_t rank = 0; rank < RANKS; rank++) {
    if (rank == victim) continue;
    party_await(children[rank]);
    see_word(rank, step);
    *out_told += party_words()[rank].status == TARN_E_PEER_LOST;
  }
  return struck;
}

START_TEST(killed_at_each_step) {
  size_t points = 0;
  size_t told = 0;
  size_t victim = (size_t)_i;
  for (size_t step = 1; step < MOST_STEPS; step += stride) {
    if (!kill_at(victim, step, &told)) break;
    points++;
    party_run(&(party_guest){.path = party_path(), .job = "next"}, 2, TARN_OK);
  }
  printf("rank %zu killed: %zu points, %zu told\n", victim, points, told);
  ck_assert_uint_gt(points, 3);
  ck_assert_uint_gt(told, 0);
  party_see_empty();
}
END_TEST

int main(int argc, char **argv) {
  if (!tracer_works()) {
    return skip_program("comm_meet_kill", "processes cannot be traced here");
  }
  bool all = argc > 1 && strcmp(argv[1], "all") == 0;
  stride = all ? EFFORT(1, 5) : EFFORT(9, 29);
  Suite *suite = suite_create("comm_meet_kill");
  TCase *tests = tcase_create("each step");
  tcase_set_timeout(tests, 600);
  tcase_add_loop_test(tests, killed_at_each_step, 0, 2);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
