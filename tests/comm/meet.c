// Ranks that meet by a path: all come, some do not, some die, and what runs
// before them have left.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "meet_kit.h"
#include "support/effort.h"

static bool is_there(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0;
}

// --- all come --------------------------------------------------------------

static const size_t SIZES[] = {1, 2, 3, 7, 16, 32};
enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES };

TEST_LOOP(all_meet, SIZE_COUNT) {
  group_run(&(group_joiner){.path = group_path()}, SIZES[_i], TARN_OK);
  group_see_empty();
}

TEST(one_path_does_for_many_meetings) {
  for (int run = 0; run < EFFORT(60, 10); run++) {
    group_run(&(group_joiner){.path = group_path(), .job = "same"}, 4, TARN_OK);
    ck_assert(!is_there(group_path()));
  }
  group_see_empty();
}

// From the call of the last to the answer of the last.
TEST(sixteen_meet_at_once) {
  enum { RANKS = 16, RUNS = 5 };
  double best = 1e9;
  for (int run = 0; run < RUNS; run++) {
    double called = 0;
    double answered = 0;
    group_run(&(group_joiner){.path = group_path()}, RANKS, TARN_OK);
    for (size_t rank = 0; rank < RANKS; rank++) {
      const group_word *word = &group_words()[rank];
      if (word->called > called) called = word->called;
      if (word->answered > answered) answered = word->answered;
    }
    if (answered - called < best) best = answered - called;
  }
  printf("%d ranks, all there: %.1f ms\n", RANKS, best * 1e3);
  ck_assert_double_lt(best, EFFORT(0.5, 5.0));
  group_see_empty();
}

TEST(a_relative_path_is_of_the_current_folder) {
  char folder[64];
  snprintf(folder, sizeof folder, "%s", group_folder());
  ck_assert_int_eq(chdir(folder), 0);
  group_run(&(group_joiner){.path = "ranks"}, 3, TARN_OK);
  group_run(&(group_joiner){.path = "./ranks"}, 3, TARN_OK);
  ck_assert_int_eq(chdir("/"), 0);
  group_see_empty();
}

TEST(the_longest_path_will_do) {
  char path[128];
  size_t size = (size_t)snprintf(path, sizeof path, "%s/", group_folder());
  memset(path + size, 'x', 107 - size);
  path[107] = '\0';
  group_run(&(group_joiner){.path = path}, 2, TARN_OK);
  group_see_empty();
}

// No user but root has more descriptors under way than a process may have.
// Ranks that joined while others still wait for theirs would use them all up.
enum { MANY = 32, FEW_UNDER_WAY = 120 };

static void have_few_under_way(void *unused) {
  (void)unused;
  if (getuid() == 0) {
    require(become_nobody());
    require(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
  }
  ranks_limit_descriptors(FEW_UNDER_WAY);
}

TEST(few_descriptors_may_be_under_way) {
  if (getuid() == 0) {
    ck_assert_int_eq(chown(group_folder(), MEET_NOBODY, (gid_t)-1), 0);
  }
  group_run(&(group_joiner){.path = group_path(), .before = have_few_under_way},
            MANY, TARN_OK);
  group_see_empty();
}

// --- what was left ---------------------------------------------------------

TEST(a_dead_socket_is_replaced) {
  for (int listens = 0; listens < 2; listens++) {
    int fd = bind_there(SOCK_SEQPACKET);
    if (listens != 0) ck_assert_int_eq(listen(fd, 1), 0);
    close(fd);
    ck_assert(is_there(group_path()));
    group_run(&(group_joiner){.path = group_path()}, 4, TARN_OK);
    ck_assert(!is_there(group_path()));
  }
  group_see_empty();
}

static void kill_all(const pid_t *children, size_t count) {
  for (size_t i = 0; i < count; i++)
    ck_assert_int_eq(kill(children[i], SIGKILL), 0);
  for (size_t i = 0; i < count; i++)
    ck_assert_int_eq(waitpid(children[i], NULL, 0), children[i]);
}

TEST(a_job_that_was_killed_is_in_nobodys_way) {
  for (int run = 0; run < 5; run++) {
    pid_t children[3];
    for (size_t rank = 0; rank < 3; rank++) {
      group_joiner joiner = joiner_of(rank, 4);
      joiner.job = "killed";
      children[rank] = group_start(&joiner);
    }
    group_await_host(NULL);
    usleep((useconds_t)(run * 5000));
    kill_all(children, 3);
    group_run(&(group_joiner){.path = group_path(), .job = "next"}, 4, TARN_OK);
  }
  group_see_empty();
}

// --- some do not come ------------------------------------------------------

static void run_some(const size_t *ranks, size_t count, size_t size,
                     uint64_t timeout_ms) {
  pid_t children[GROUP_MOST];
  for (size_t i = 0; i < count; i++) {
    group_joiner joiner = joiner_of(ranks[i], size);
    joiner.timeout_ms = timeout_ms;
    children[i] = group_start(&joiner);
  }
  for (size_t i = 0; i < count; i++)
    group_await(children[i]);
}

TEST(who_is_missing_is_named) {
  const size_t two[] = {0, 2};
  run_some(two, 2, 4, 300);
  for (size_t i = 0; i < 2; i++)
    assert_told(two[i], TARN_E_TIMEOUT, "ranks 1, 3 of 4 have not come");
  run_some(two, 1, 2, 300);
  assert_told(0, TARN_E_TIMEOUT, "rank 1 of 2 has not come");
  run_some(two + 1, 1, 32, 300);
  assert_told(2, TARN_E_TIMEOUT, "ranks 0, 1, 3, 4, 5, 6, 7, 8, ... of 32");
  group_see_empty();
}

TEST(the_first_deadline_ends_it_for_all) {
  group_joiner first = joiner_of(0, 3);
  group_joiner second = joiner_of(1, 3);
  second.timeout_ms = 300;
  second.before = group_await_host;
  pid_t one = group_start(&first);
  pid_t other = group_start(&second);
  group_await(one);
  group_await(other);
  for (size_t rank = 0; rank < 2; rank++)
    assert_told(rank, TARN_E_TIMEOUT, "rank 2 of 3 has not come");
  ck_assert_double_lt(group_words()[0].answered - group_words()[0].called, 10);
  group_see_empty();
}

// --- some die --------------------------------------------------------------

static pid_t start_host(size_t size) {
  group_joiner joiner = joiner_of(0, size);
  pid_t host = group_start(&joiner);
  group_await_host(NULL);
  return host;
}

static pid_t start_joiner(size_t rank, size_t size, uint64_t timeout_ms) {
  group_joiner joiner = joiner_of(rank, size);
  joiner.timeout_ms = timeout_ms;
  return group_start(&joiner);
}

TEST(a_dead_host_is_told) {
  pid_t host = start_host(3);
  pid_t joiner = start_joiner(1, 3, 0);
  usleep(200000);
  kill_all(&host, 1);
  group_await(joiner);
  assert_told(1, TARN_E_PEER_LOST, "rank 0, the host");
  // Nor is its socket left.
  group_see_empty();
}

// A process that is killed may keep its listener a little longer than its
// connections; here a child of its has it.
static void *fork_when_listening(void *unused) {
  group_await_host(unused);
  pid_t parent = getpid();
  if (fork() == 0) {
    while (getppid() == parent)
      usleep(1000);
    usleep(200000);
    _exit(0);
  }
  return NULL;
}

static void share_listener(void *unused) {
  pthread_t thread;
  (void)unused;
  if (pthread_create(&thread, NULL, fork_when_listening, NULL) != 0) abort();
}

TEST(a_socket_that_closes_late_is_not_left) {
  group_joiner joiner = joiner_of(0, 3);
  joiner.before = share_listener;
  pid_t host = group_start(&joiner);
  group_await_host(NULL);
  usleep(100000);
  pid_t other = start_joiner(1, 3, 0);
  usleep(200000);
  kill_all(&host, 1);
  group_await(other);
  assert_told(1, TARN_E_PEER_LOST, "rank 0, the host");
  group_see_empty();
}

TEST(a_dead_joiner_is_told) {
  pid_t host = start_host(4);
  pid_t dead = start_joiner(1, 4, 0);
  pid_t joiner = start_joiner(2, 4, 0);
  usleep(200000);
  kill_all(&dead, 1);
  group_await(joiner);
  group_await(host);
  assert_told(0, TARN_E_PEER_LOST, "rank 1 ended or gave up");
  assert_told(2, TARN_E_PEER_LOST, "rank 1 ended or gave up");
  group_see_empty();
}

TEST(a_stopped_host_is_late) {
  pid_t host = start_host(3);
  pid_t joiner = start_joiner(1, 3, 500);
  usleep(200000);
  ck_assert_int_eq(kill(host, SIGSTOP), 0);
  group_await(joiner);
  assert_told(1, TARN_E_TIMEOUT, "rank 0, the host, did not answer within 500");
  ck_assert_int_eq(kill(host, SIGCONT), 0);
  group_await(host);
  assert_told(0, TARN_E_PEER_LOST, "rank 1 ended or gave up");
  group_see_empty();
}

// No rank has seen the host, so it is as if it had not come.
TEST(a_host_that_nobody_saw_is_replaced) {
  pid_t host = start_host(2);
  ck_assert_int_eq(kill(host, SIGSTOP), 0);
  pid_t joiner = start_joiner(1, 2, 0);
  usleep(100000);
  kill_all(&host, 1);
  pid_t again = start_joiner(0, 2, 0);
  group_await(joiner);
  group_await(again);
  assert_told(0, TARN_OK, "");
  assert_told(1, TARN_OK, "");
  group_see_empty();
}
