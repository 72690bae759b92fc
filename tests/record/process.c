// The recorder where processes begin, end and fail: what was written is whole.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record_run.h"
#include "support/run.h"

enum { LARGE = 100000 };  // as record_victim.c has it

// The trace with |suffix| has one block of LARGE + |index| that stays.
static void assert_keeps(const char *suffix, uint64_t index) {
  recorded(suffix);
  ck_assert_uint_eq(record_count(LARGE + index, false), 1);
  ck_assert_uint_eq(trace->lost_count, 0);
}

static off_t size_of(const char *path) {
  struct stat file;
  ck_assert_int_eq(stat(path, &file), 0);
  return file.st_size;
}

// --- several processes -----------------------------------------------------

TEST(a_child_has_a_file_of_its_own) {
  record("", "fork", NULL);
  assert_keeps("", 0);
  assert_keeps("", 2);
  assert_keeps(record_of(ran.out), 1);
  recorded(record_of(ran.out));
  ck_assert_uint_eq(trace->block_count, 1);
  ck_assert_uint_eq(trace->unknown_count, 1);  // freed: the parent's
  ck_assert_uint_ne(trace->blocks[0].stack, TARN_TRACE_NO_STACK);
}

TEST(children_of_many_threads) {
  record("", "fork_many", NULL);
  recorded("");
  ck_assert_uint_eq(record_live_bytes(), 0);
  ck_assert_uint_eq(trace->lost_count, 0);
}

// The process is the same, so its number is in the second name; which it is
// that program's to say: the first that has something to write has the first.
TEST(a_program_that_becomes_another) {
  record("", "exec", NULL);
  assert_keeps("", 0);
  char command[560];
  snprintf(command, sizeof command, "cd '%s' && mv trace.* trace.second",
           tool_file("."));
  ck_assert_int_eq(system(command), 0);
  recorded(".second");
  ck_assert_uint_eq(record_count(LARGE + 3, false), 1);
}

TEST(programs_that_are_started) {
  record("", "spawn", NULL);
  const char *second = strchr(ran.out, ' ');
  ck_assert_ptr_nonnull(second);
  assert_keeps("", 0);
  assert_keeps("", 1);
  assert_keeps(record_of(ran.out), 3);
  assert_keeps(record_of(second), 3);
}

// Of another process than TARN_RECORD_PID, the first file is not.
TEST(whose_the_first_file_is) {
  record("TARN_RECORD_PID=1", "leave_one", NULL);
  ck_assert_int_ne(access(record_path(""), F_OK), 0);
}

// A file that is there already stays as it is.
TEST(nobody_elses_file) {
  FILE *file = fopen(record_path(""), "w");
  ck_assert(file != NULL && fputs("mine", file) >= 0 && fclose(file) == 0);
  record("", "leave_one", NULL);
  ck_assert_int_eq(size_of(record_path("")), 4);
}

// --- being killed ----------------------------------------------------------

// What it said last, after it was killed when it had said |wanted|.
static uint64_t kill_after(uint64_t wanted) {
  int ends[2];
  uint64_t said = 0, next;
  ck_assert_int_eq(pipe(ends), 0);
  pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    record_become("until_killed");
  }
  close(ends[1]);
  while (read(ends[0], &next, sizeof next) == (ssize_t)sizeof next) {
    said = next;
    if (said == wanted) ck_assert_int_eq(kill(pid, SIGKILL), 0);
  }
  close(ends[0]);
  ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
  return said;
}

// Nothing that it said is missing; at most what it did since is there.
TEST(killed_at_any_time) {
  for (uint64_t wanted = 1; wanted < 20000; wanted = wanted * 3 + 1) {
    uint64_t said = kill_after(wanted);
    ck_assert_uint_ge(said, wanted);
    recorded("");
    ck_assert_uint_ge(trace->request_count, said);
    ck_assert_uint_le(trace->request_count, said + 1);
    ck_assert_uint_eq(trace->lost_count, 0);
    ck_assert_int_eq(unlink(record_path("")), 0);
  }
}

// --- no room ---------------------------------------------------------------

// It goes on to its end, and the trace says how much it has not.
static void assert_lost(size_t requests) {
  recorded("");
  ck_assert_uint_gt(trace->lost_count, 0);
  ck_assert_uint_eq(trace->request_count + trace->lost_count, requests);
}

TEST(files_may_not_grow) {
  record("", "limited", NULL);
  ck_assert_int_le(size_of(record_path("")), 128 << 10);
  assert_lost(400000);
}

TEST(a_full_disk) {
  char folder[512], out[560];
  snprintf(folder, sizeof folder, "%s", tool_file("full"));
  ck_assert_int_eq(mkdir(folder, 0700), 0);
  if (mount("none", folder, "tmpfs", 0, "size=300k") != 0) {
    note_skipped("a full disk", "no tmpfs may be mounted here");
    return;
  }
  snprintf(out, sizeof out, "TARN_RECORD_OUT=%s/trace", folder);
  record(out, "churn", "200000");
  snprintf(out, sizeof out, "cp '%s/trace' '%s'", folder, record_path(""));
  int copied = system(out);
  ck_assert_int_eq(umount(folder), 0);
  ck_assert_int_eq(copied, 0);
  assert_lost(400000);
}

TEST(a_folder_that_is_not_there) {
  record("TARN_RECORD_OUT=/no/such/folder", "churn", "10");
}

// --- what programs do ------------------------------------------------------

TEST(all_descriptors_are_closed) {
  record("", "no_descriptors", NULL);
  recorded("");
  ck_assert_uint_eq(trace->request_count, 200000);
  ck_assert_uint_eq(trace->lost_count, 0);
  ck_assert_int_gt(size_of(record_path("")), 256 << 10);  // it has grown
}

FIXTURE(tool_files_begin, record_end);

int main(void) {
  return record_cannot() ? record_skip() : run_tests();
}
