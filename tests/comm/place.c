// Places: which process takes one, how a program is told, what the environment
// may say, and what a child of fork may do with what its parent had.
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/ranks.h"
#include "support/run.h"

// Outside of a test, where nothing can be asserted. 98: it did not exit.
static int status_of(pid_t child) {
  int end = 0;
  if (waitpid(child, &end, 0) != child || !WIFEXITED(end)) return 98;
  return WEXITSTATUS(end);
}

// A program that a rank starts has the rank's environment. |as| is its mode.
static int run_child(const char *as) {
  pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "test_comm_place", as, (char *)NULL);
    _exit(99);
  }
  return status_of(child);
}

// TARN_COMM_ALONE ignores what the environment says, the second time too.
static int be_alone(void) {
  const tarn_comm_options options = {.struct_size = sizeof options,
                                     .flags = TARN_COMM_ALONE};
  for (int i = 0; i < 2; i++) {
    tarn_comm *comm = NULL;
    if (tarn_comm_from_environment(&options, &comm) != TARN_OK) return 20;
    if (tarn_comm_rank(comm) != 0 || tarn_comm_size(comm) != 1) return 21;
    if (tarn_comm_destroy(comm) != TARN_OK) return 22;
  }
  return 0;
}

// A rank whose children are none.
static int be_parent(void) {
  tarn_comm *comm = NULL;
  if (tarn_comm_from_environment(NULL, &comm) != TARN_OK) return 10;
  if (getenv("TARN_COMM") == NULL) return 11;
  if (run_child("--child") != 0) return 12;
  if (run_child("--alone") != 0) return 13;
  pid_t child = fork();
  if (child == 0) _exit(be_alone());
  if (status_of(child) != 0) return 14;
  if (tarn_comm_barrier(comm) != TARN_OK) return 15;
  return tarn_comm_destroy(comm) == TARN_OK ? 0 : 16;
}

static int be_child(void) {
  tarn_comm *comm = NULL;
  if (tarn_comm_from_environment(NULL, &comm) != TARN_E_STATE) return 30;
  if (strstr(tarn_last_error(), "the place is its parent's") == NULL) return 31;
  if (strstr(tarn_last_error(), "TARN_COMM_ALONE") == NULL) return 32;
  return comm == NULL && tarn_host_memory() == 0 ? 0 : 33;
}

// This program, started as a rank by the tests below: how it ends tells.
static int be_program(void) {
  tarn_comm *comm = NULL;
  tarn_comm *again = NULL;
  size_t ranks[8];
  alarm(60);
  tarn_status status = tarn_comm_from_environment(NULL, &comm);
  if (status != TARN_OK) {
    fprintf(stderr, "%s\n", tarn_last_error());
    return 100 - (int)status;
  }
  size_t rank = tarn_comm_rank(comm);
  size_t size = tarn_comm_size(comm);
  if (tarn_comm_allgather(comm, &rank, sizeof rank, ranks) != TARN_OK) return 2;
  for (size_t i = 0; i < size; i++) {
    if (ranks[i] != i) return 3;
  }
  if (tarn_comm_from_environment(NULL, &again) != TARN_E_STATE) return 4;
  // The standard ones, a mailbox, the ways into all, the others' processes.
  if (ranks_descriptors() != 3 + 1 + size + (size - 1)) return 5;
  if (tarn_comm_destroy(comm) != TARN_OK) return 6;
  if (ranks_descriptors() != 3) return 7;
  return tarn_host_memory() == 0 ? 0 : 8;
}

// What the tests themselves have open is none of a program's business.
static void keep_nothing(void) {
  ck_assert_int_eq(close_range(3, ~0u, CLOSE_RANGE_CLOEXEC), 0);
}

static const char *mode = "--rank";

static _Noreturn void become(char *variable) {
  static char name[] = "test_comm_place";
  char option[16];
  char *const arguments[] = {name, option, NULL};
  snprintf(option, sizeof option, "%s", mode);
  char *const environment[] = {variable, NULL};
  execve("/proc/self/exe", arguments, environment);
  _exit(99);
}

static pid_t start(tarn_rendezvous *meeting, size_t rank) {
  char variable[TARN_RENDEZVOUS_VARIABLE];
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child != 0) return child;
  keep_nothing();
  if (tarn_rendezvous_hand_over(meeting, rank, variable, sizeof variable) !=
      TARN_OK) {
    _exit(98);
  }
  become(variable);
}

static int end_of(pid_t child) {
  int end = 0;
  ck_assert_int_eq(waitpid(child, &end, 0), child);
  ck_assert_msg(WIFEXITED(end), "%#x", (unsigned)end);
  return WEXITSTATUS(end);
}

// --- programs --------------------------------------------------------------

TEST_RANGE(programs_get_their_places, 1, 5) {
  tarn_rendezvous *meeting = NULL;
  pid_t children[5];
  size_t size = (size_t)_i;
  assert_ok(tarn_rendezvous_create(size, &meeting));
  for (size_t rank = 0; rank < size; rank++)
    children[rank] = start(meeting, rank);
  tarn_rendezvous_destroy(meeting);
  for (size_t rank = 0; rank < size; rank++)
    ck_assert_int_eq(end_of(children[rank]), 0);
}

// Two programs with the same place: the second gets none, the first goes on.
TEST(a_place_is_taken_once) {
  tarn_rendezvous *meeting = NULL;
  assert_ok(tarn_rendezvous_create(1, &meeting));
  ck_assert_int_eq(end_of(start(meeting, 0)), 0);
  ck_assert_int_eq(end_of(start(meeting, 0)), 100 - TARN_E_STATE);
  tarn_rendezvous_destroy(meeting);
}

static int end_with(const char *text) {
  pid_t child = fork();
  if (child == 0) {
    keep_nothing();
    become((char *)(uintptr_t)text);
  }
  return end_of(child);
}

TEST(without_a_launcher_there_is_one) {
  ck_assert_int_eq(end_with("NOTHING=1"), 0);
}

TEST(a_wrong_variable_is_refused) {
  static const char *const wrong[] = {
      "TARN_COMM=",
      "TARN_COMM=0",
      "TARN_COMM=0:1:2",
      "TARN_COMM=0:1:0:",
      "TARN_COMM=0:1:0:00112233445566778899aabbccddeef",
      "TARN_COMM=0:1:0:00112233445566778899aabbccddeeffa",
      "TARN_COMM=0:1:0:00112233445566778899aabbccddeefg",
      "TARN_COMM=0:1:0:00112233445566778899AABBCCDDEEFF",
      "TARN_COMM=1:1:0:00112233445566778899aabbccddeeff",
      "TARN_COMM=0:0:0:00112233445566778899aabbccddeeff",
      "TARN_COMM=0:257:0:00112233445566778899aabbccddeeff",
      "TARN_COMM=-1:1:0:00112233445566778899aabbccddeeff",
      "TARN_COMM=0:1:9999999999:00112233445566778899aabbccddeeff",
      "TARN_COMM_TIMEOUT_MS=soon",
      "TARN_COMM_TIMEOUT_MS=0",
      "TARN_COMM_TIMEOUT_MS=-1",
      "TARN_COMM_TIMEOUT_MS=1234567890123456",
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    ck_assert_msg(end_with(wrong[i]) == 100 - TARN_E_INVALID, "%s", wrong[i]);
}

// No memory of ranks is behind the descriptor, or nothing at all.
TEST(a_place_that_was_not_inherited_is_the_parents) {
  static const char *const wrong[] = {
      "TARN_COMM=0:1:0:00112233445566778899aabbccddeeff",
      "TARN_COMM=0:1:999:00112233445566778899aabbccddeeff",
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    ck_assert_msg(end_with(wrong[i]) == 100 - TARN_E_STATE, "%s", wrong[i]);
}

TEST(children_of_ranks_are_no_ranks) {
  tarn_rendezvous *meeting = NULL;
  pid_t children[3];
  mode = "--parent";
  assert_ok(tarn_rendezvous_create(3, &meeting));
  for (size_t rank = 0; rank < 3; rank++)
    children[rank] = start(meeting, rank);
  tarn_rendezvous_destroy(meeting);
  for (size_t rank = 0; rank < 3; rank++)
    ck_assert_int_eq(end_of(children[rank]), 0);
}

// --- other launchers -------------------------------------------------------

static const char *const launchers[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE",
                                        "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };

static int end_under(const char *launcher, const char *size) {
  char variable[128];
  snprintf(variable, sizeof variable, "%s=%s", launcher, size);
  return end_with(variable);
}

TEST_LOOP(nobody_is_alone_among_ranks_of_another_launcher, LAUNCHERS) {
  static const char *const alone[] = {"1", "0", "", "01", "000"};
  static const char *const several[] = {
      "2",    "4",  "10", "011", "99999999999999999999999999",
      "four", "-1", " 1", "1 ",  "1e3"};
  for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
    ck_assert_int_eq(end_under(launchers[_i], alone[i]), 0);
  for (size_t i = 0; i < sizeof several / sizeof *several; i++)
    ck_assert_int_eq(end_under(launchers[_i], several[i]), 100 - TARN_E_STATE);
  mode = "--alone";
  ck_assert_int_eq(end_under(launchers[_i], "4"), 0);
}

TEST(the_text_says_what_to_do) {
  tarn_comm *comm = NULL;
  setenv("WORLD_SIZE", "4", 1);
  assert_status(tarn_comm_from_environment(NULL, &comm), TARN_E_STATE);
  assert_error_says("WORLD_SIZE is '4'");
  assert_error_says("tarn run -n N");
  assert_error_says("TARN_COMM_ALONE");
  // Nothing was taken.
  unsetenv("WORLD_SIZE");
  assert_ok(tarn_comm_from_environment(NULL, &comm));
  assert_ok(tarn_comm_destroy(comm));
}

// The memory is inherited, and not what it takes besides.
static pid_t start_spoilt(tarn_rendezvous *meeting, int spoil) {
  char variable[TARN_RENDEZVOUS_VARIABLE];
  pid_t child = fork();
  if (child != 0) return child;
  keep_nothing();
  if (tarn_rendezvous_hand_over(meeting, 0, variable, sizeof variable) != 0) {
    _exit(98);
  }
  if (spoil == 0) {  // another token
    char *last = variable + strlen(variable) - 1;
    *last = *last == '0' ? '1' : '0';
  } else if (spoil == 1) {  // no socket
    for (int fd = 3; fd < 64; fd++) {
      if (fcntl(fd, F_GET_SEALS) < 0) (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
  } else {  // more ranks than there are
    *strchr(variable, '1') = '2';
  }
  become(variable);
}

TEST(what_is_not_all_there_is_refused) {
  tarn_rendezvous *meeting = NULL;
  assert_ok(tarn_rendezvous_create(1, &meeting));
  for (int spoil = 0; spoil < 3; spoil++) {
    ck_assert_int_eq(end_of(start_spoilt(meeting, spoil)),
                     100 - (spoil == 1 ? TARN_E_INVALID : TARN_E_STATE));
  }
  // It has done no harm: the place is still to be had.
  ck_assert_int_eq(end_of(start(meeting, 0)), 0);
  tarn_rendezvous_destroy(meeting);
}

TEST(a_place_needs_room_for_its_name) {
  tarn_rendezvous *meeting = NULL;
  char variable[TARN_RENDEZVOUS_VARIABLE];
  assert_ok(tarn_rendezvous_create(2, &meeting));
  assert_status(
      tarn_rendezvous_hand_over(meeting, 2, variable, sizeof variable),
      TARN_E_INVALID);
  assert_error_says("rank 2 of 2");
  assert_status(
      tarn_rendezvous_hand_over(meeting, 1, variable, sizeof variable - 1),
      TARN_E_INVALID);
  assert_error_says("out_size is 127, less than 128");
  tarn_rendezvous_destroy(meeting);
}

// --- in one process --------------------------------------------------------

TEST(a_process_takes_one_place) {
  tarn_rendezvous *meeting = NULL;
  tarn_comm *comm = NULL;
  tarn_comm *other = NULL;
  assert_ok(tarn_rendezvous_create(1, &meeting));
  assert_status(tarn_comm_join(meeting, 1, NULL, &comm), TARN_E_INVALID);
  assert_error_says("rank 1 of 1");
  assert_ok(tarn_comm_join(meeting, 0, NULL, &comm));
  assert_status(tarn_comm_join(meeting, 0, NULL, &other), TARN_E_STATE);
  ck_assert_ptr_null(other);
  tarn_rendezvous_destroy(meeting);
  assert_ok(tarn_comm_barrier(comm));
  assert_ok(tarn_comm_destroy(comm));
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

TEST(another_process_may_have_taken_it) {
  tarn_rendezvous *meeting = NULL;
  tarn_comm *comm = NULL;
  assert_ok(tarn_rendezvous_create(2, &meeting));
  size_t held = tarn_host_memory();
  pid_t child = fork();
  if (child == 0) {
    const tarn_comm_options options = {.struct_size = sizeof options,
                                       .timeout_ms = 1};
    _exit(tarn_comm_join(meeting, 0, &options, &comm) == TARN_E_TIMEOUT ? 0
                                                                        : 1);
  }
  ck_assert_int_eq(end_of(child), 0);
  assert_status(tarn_comm_join(meeting, 0, NULL, &comm), TARN_E_STATE);
  assert_error_says("the place of rank 0 is taken");
  ck_assert_ptr_null(comm);
  ck_assert_uint_eq(tarn_host_memory(), held);
  // It is still a rendezvous, though the others know by now.
  assert_status(tarn_comm_join(meeting, 1, NULL, &comm), TARN_E_TIMEOUT);
  assert_error_says("rank 1 did not arrive within 1 ms");
  tarn_rendezvous_destroy(meeting);
}

TEST(the_environment_says_how_long) {
  tarn_rendezvous *meeting = NULL;
  tarn_comm *comm = NULL;
  tarn_comm_options options = {.struct_size = sizeof options};
  for (int given = 0; given < 3; given++) {
    static const uint64_t expected[] = {30000, 1234, 777};
    if (given == 1) setenv("TARN_COMM_TIMEOUT_MS", "1234", 1);
    if (given == 2) options.timeout_ms = 777;
    assert_ok(tarn_rendezvous_create(1, &meeting));
    assert_ok(tarn_comm_join(meeting, 0, &options, &comm));
    ck_assert_uint_eq(tarn_comm_timeout_ms(comm), expected[given]);
    assert_ok(tarn_comm_destroy(comm));
    tarn_rendezvous_destroy(meeting);
  }
}

TEST(options_of_no_size_are_refused) {
  tarn_comm *comm = NULL;
  tarn_comm_options options = {.struct_size = 4};
  assert_status(tarn_comm_from_environment(&options, &comm), TARN_E_INVALID);
  assert_error_says("struct_size is 4");
  options = (tarn_comm_options){.struct_size = sizeof options, .flags = 2};
  assert_status(tarn_comm_from_environment(&options, &comm), TARN_E_INVALID);
  assert_error_says("flags 0x2");
}

// --- forks -----------------------------------------------------------------

static void fork_and_look(tarn_comm *comm, void *context) {
  int64_t value = 0;
  int fds[8];
  tarn_comm *group = NULL;
  (void)context;
  pid_t child = fork();
  if (child == 0) {
    assert_status(tarn_comm_barrier(comm), TARN_E_STATE);
    assert_status(tarn_comm_broadcast(comm, 0, &value, 8), TARN_E_STATE);
    assert_status(tarn_comm_share(comm, -1, fds), TARN_E_STATE);
    assert_status(tarn_comm_split(comm, 0, 0, &group), TARN_E_STATE);
    assert_status(tarn_comm_check(comm), TARN_E_STATE);
    assert_ok(tarn_comm_destroy(comm));
    _exit(tarn_host_memory() == 0 ? 0 : 1);
  }
  ck_assert_int_eq(end_of(child), 0);
  // The parent, and the others, have noticed nothing.
  for (int i = 0; i < 3; i++)
    assert_ok(tarn_comm_barrier(comm));
  assert_ok(tarn_comm_share(comm, 0, fds));
  for (size_t r = 0; r < tarn_comm_size(comm); r++) {
    if (fds[r] >= 0) close(fds[r]);
  }
}

RANKS_TEST(a_child_of_fork_has_no_part, .size = 3, .body = fork_and_look)

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--rank") == 0) return be_program();
  if (argc == 2 && strcmp(argv[1], "--parent") == 0) return be_parent();
  if (argc == 2 && strcmp(argv[1], "--child") == 0) return be_child();
  if (argc == 2 && strcmp(argv[1], "--alone") == 0) return be_alone();
  return run_tests();
}
