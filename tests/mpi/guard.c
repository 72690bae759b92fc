// What ends a process in which a call of MPI does not return. It needs no MPI.
#include "guard.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/run.h"

static char said[512];

static void nap_ms(long ms) {
  nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

// Runs |body| in a process, whose status it returns; |said| has its stderr.
static int see(void (*body)(void)) {
  int ends[2];
  int status = 0;
  size_t size = 0;
  ck_assert_int_eq(pipe(ends), 0);
  pid_t pid = fork();
  ck_assert_int_ge(pid, 0);
  if (pid == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    body();
    _exit(7);
  }
  close(ends[1]);
  for (ssize_t got = 1; got > 0; size += (size_t)got)
    got = read(ends[0], said + size, sizeof said - 1 - size);
  close(ends[0]);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static void hang(void) {
  tarn__guard *guard = tarn__guard_create(10, 3);
  tarn__guard_enter(guard, "MPI_Isend");
  tarn__guard_leave(guard);
  tarn__guard_enter(guard, "MPI_Testsome");
  for (;;)
    pause();
}

TEST(a_call_that_does_not_return_is_named) {
  time_t begin = time(NULL);
  ck_assert_int_eq(see(hang), 1);
  ck_assert_str_eq(said,
                   "tarn: rank 3: MPI_Testsome has not returned within 1000 "
                   "ms: this process ends\n");
  ck_assert_int_ge(time(NULL) - begin, 2);
}

// One that ends at once is not waited for, even if it is the same each time.
static void go_on(void) {
  tarn__guard *guard = tarn__guard_create(10, 0);
  for (int i = 0; i < 300; i++) {
    tarn__guard_enter(guard, "MPI_Testsome");
    nap_ms(i % 2);
    tarn__guard_leave(guard);
    nap_ms(10);
  }
  tarn__guard_destroy(guard);
}

TEST(calls_that_return_are_let_be) {
  ck_assert_int_eq(see(go_on), 7);
  ck_assert_str_eq(said, "");
}

static void stop_myself(void) {
  tarn__guard *guard = tarn__guard_create(10, 0);
  pid_t self = getpid();
  tarn__guard_enter(guard, "MPI_Testsome");
  if (fork() == 0) {
    nap_ms(2500);
    kill(self, SIGCONT);
    _exit(0);
  }
  raise(SIGSTOP);
  nap_ms(200);
  tarn__guard_leave(guard);
  tarn__guard_destroy(guard);
}

TEST(a_process_that_was_stopped_is_let_be) {
  ck_assert_int_eq(see(stop_myself), 7);
  ck_assert_str_eq(said, "");
}

static void destroy_in_child(void) {
  int status = 0;
  tarn__guard *guard = tarn__guard_create(10, 0);
  pid_t pid = fork();
  if (pid == 0) {
    tarn__guard_destroy(guard);
    _exit(7);
  }
  if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 7) _exit(1);
  tarn__guard_destroy(guard);
}

TEST(a_child_of_fork_has_no_guard) {
  ck_assert_int_eq(see(destroy_in_child), 7);
  ck_assert_str_eq(said, "");
}

static void end_late(void) {
  tarn__guard_end_within(1, 5);
  for (;;)
    pause();
}

TEST(a_process_that_is_held_up_ends) {
  ck_assert_int_eq(see(end_late), 5);
}
