// A rank that meets others, by a path or by an allgather, is killed at each of
// its system calls, before the kernel makes it and behind. The others are told,
// or find it missing; no rank hangs, nothing is left, and the next run meets
// as if nothing had been.
//
//   test_comm_meet_kill      every so many steps
//   test_comm_meet_kill all  every step
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "meet_kit.h"
#include "support/effort.h"
#include "support/tracer.h"

enum { RANKS = 3, MOST_STEPS = 5000 };

static const uint64_t TIMEOUT_MS = 300;

// No rank waits longer: twice the timeout and what a busy machine takes.
static const double LATEST_S = 10;

static size_t stride;

static void offer(void *unused) {
  (void)unused;
  tracer_offer();
}

static void see_word(size_t rank, size_t step) {
  const group_word *word = &group_words()[rank];
  tarn_status status = word->status;
  ck_assert_msg(status == TARN_OK || status == TARN_E_PEER_LOST ||
                    status == TARN_E_TIMEOUT,
                "step %zu: rank %zu: %s '%s'", step, rank,
                tarn_status_name(status), word->text);
  ck_assert_double_lt(word->answered - word->called, LATEST_S);
}

// Kills |victim| of all at |step|, and awaits the others. False when it had
// done before.
static bool kill_one(const pid_t *children, size_t victim, size_t step,
                     size_t *out_told) {
  tracer trace = tracer_begin(children[victim]);
  bool struck = !trace.ended && tracer_run(&trace, step, NULL, NULL);
  if (struck) tracer_kill(&trace);
  for (size_t rank = 0; rank < RANKS; rank++) {
    if (rank == victim) continue;
    group_await(children[rank]);
    see_word(rank, step);
    *out_told += group_words()[rank].status == TARN_E_PEER_LOST;
  }
  return struck;
}

typedef bool kill_at(size_t victim, size_t step, size_t *out_told);

static void sweep(const char *how, size_t victim, kill_at *run,
                  void (*see_next)(size_t victim)) {
  size_t points = 0;
  size_t told = 0;
  for (size_t step = 1; step < MOST_STEPS; step += stride) {
    if (!run(victim, step, &told)) break;
    points++;
    see_next(victim);
  }
  printf("%s: rank %zu killed: %zu points, %zu told\n", how, victim, points,
         told);
  ck_assert_uint_gt(points, 3);
  ck_assert_uint_gt(told, 0);
  group_see_empty();
}

// --- by a path -------------------------------------------------------------

static void come_then_offer(void *unused) {
  group_await_host(unused);
  tracer_offer();
}

static bool kill_at_path(size_t victim, size_t step, size_t *out_told) {
  pid_t children[RANKS];
  show_path();
  for (size_t rank = 0; rank < RANKS; rank++) {
    group_joiner joiner = joiner_of(rank, RANKS);
    joiner.job = "struck";
    joiner.timeout_ms = TIMEOUT_MS;
    if (victim == 0) joiner.before = rank == 0 ? offer : await_path_shown;
    if (victim != 0 && rank != 0)
      joiner.before = rank == victim ? come_then_offer : group_await_host;
    children[rank] = group_start(&joiner);
  }
  return kill_one(children, victim, step, out_told);
}

static void meet_at_path(size_t victim) {
  (void)victim;
  group_run(&(group_joiner){.path = group_path(), .job = "next"}, 2, TARN_OK);
}

TEST_LOOP(killed_at_each_step, 2) {
  sweep("by a path", (size_t)_i, kill_at_path, meet_at_path);
}

// --- by an allgather -------------------------------------------------------

static void start_members(pid_t *children, size_t victim, uint64_t timeout_ms) {
  meet_clear_board();
  for (size_t rank = 0; rank < RANKS; rank++) {
    children[rank] =
        meet_start((meet_member){.rank = rank,
                                 .size = RANKS,
                                 .timeout_ms = timeout_ms,
                                 .gather = meet_gather,
                                 .before = rank == victim ? offer : NULL});
  }
}

static bool kill_at_gather(size_t victim, size_t step, size_t *out_told) {
  pid_t children[RANKS];
  start_members(children, victim, TIMEOUT_MS);
  return kill_one(children, victim, step, out_told);
}

// Rank 0 takes its folder away itself: where it is killed, the folder stays,
// with nothing in it but what ranks meet at.
static void remove_what_is_left(void) {
  char path[512];
  struct dirent *entry = NULL;
  DIR *all = opendir(group_folder());
  ck_assert_ptr_nonnull(all);
  while ((entry = readdir(all)) != NULL) {
    if (entry->d_name[0] == '.') continue;
    ck_assert_int_eq(strncmp(entry->d_name, "tarn-", 5), 0);
    snprintf(path, sizeof path, "%s/%.200s/ranks", group_folder(),
             entry->d_name);
    (void)unlink(path);
    *strrchr(path, '/') = '\0';
    ck_assert_int_eq(rmdir(path), 0);
  }
  closedir(all);
}

static void meet_by_gather(size_t victim) {
  pid_t children[RANKS];
  if (victim == 0) remove_what_is_left();
  ck_assert_msg(rmdir(group_folder()) == 0, "rank %zu has left something",
                victim);
  ck_assert_int_eq(mkdir(group_folder(), 0700), 0);
  start_members(children, RANKS, 20000);
  for (size_t rank = 0; rank < RANKS; rank++) {
    group_await(children[rank]);
    assert_told(rank, TARN_OK, "");
  }
}

TEST_LOOP(killed_at_each_step_of_a_gather, 2) {
  ck_assert_int_eq(setenv("TMPDIR", group_folder(), 1), 0);
  sweep("by an allgather", (size_t)_i, kill_at_gather, meet_by_gather);
}

int main(int argc, char **argv) {
  if (!tracer_works()) {
    return skip_program("comm_meet_kill", "processes cannot be traced here");
  }
  bool all = argc > 1 && strcmp(argv[1], "all") == 0;
  stride = all ? EFFORT(1, 5) : EFFORT(9, 29);
  return run_tests();
}
