// examples/meet.py as a user runs it: started by multiprocessing, and with the
// environment that torchrun gives its processes. torchrun need not be here: the
// test stands in for torchrun.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/run.h"

enum { RANKS = 3 };

static const char *const told[RANKS] = {
    "rank 0 of 3: the squares add up to 328350\n",
    "rank 1 of 3: the squares add up to 328350\n",
    "rank 2 of 3: the squares add up to 328350\n"};

static char folder[64];

static void make_folder(void) {
  snprintf(folder, sizeof folder, "/tmp/tarn-example-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  ck_assert_int_eq(setenv("TMPDIR", folder, 1), 0);
  ck_assert_int_eq(setenv("TARN_LIBRARY", TARN_LIBRARY, 1), 0);
}

// What the command has printed; it must end with 0.
static void run(const char *command, char *out, size_t size) {
  FILE *pipe = popen(command, "r");
  ck_assert_ptr_nonnull(pipe);
  size_t got = fread(out, 1, size - 1, pipe);
  out[got] = '\0';
  ck_assert_msg(pclose(pipe) == 0, "'%s'", out);
}

static void assert_all_told(const char *out) {
  size_t length = 0;
  for (size_t rank = 0; rank < RANKS; rank++) {
    ck_assert_msg(strstr(out, told[rank]) != NULL, "'%s'", out);
    length += strlen(told[rank]);
  }
  ck_assert_uint_eq(strlen(out), length);
}

TEST(multiprocessing_starts_ranks) {
  char out[1024];
  make_folder();
  ck_assert_int_eq(unsetenv("TORCHELASTIC_RUN_ID"), 0);
  run("python3 " TARN_EXAMPLE " 2>&1", out, sizeof out);
  assert_all_told(out);
  ck_assert_int_eq(rmdir(folder), 0);
}

// As `torchrun --standalone --nproc-per-node 3` of PyTorch 2 starts its
// processes.
static void set_for(size_t rank, const char *restarts) {
  static const char *const same[][2] = {
      {"GROUP_RANK", "0"},
      {"ROLE_NAME", "default"},
      {"WORLD_SIZE", "3"},
      {"LOCAL_WORLD_SIZE", "3"},
      {"GROUP_WORLD_SIZE", "1"},
      {"ROLE_WORLD_SIZE", "3"},
      {"MASTER_ADDR", "localhost"},
      {"MASTER_PORT", "29500"},
      {"TORCHELASTIC_MAX_RESTARTS", "3"},
      {"TORCHELASTIC_RUN_ID", "0c4d9f3e-3d5c-4a51-8b0f-2f9d5c7a6e11"}};
  char number[8];
  for (size_t i = 0; i < sizeof same / sizeof *same; i++)
    ck_assert_int_eq(setenv(same[i][0], same[i][1], 1), 0);
  snprintf(number, sizeof number, "%zu", rank);
  ck_assert_int_eq(setenv("RANK", number, 1), 0);
  ck_assert_int_eq(setenv("LOCAL_RANK", number, 1), 0);
  ck_assert_int_eq(setenv("ROLE_RANK", number, 1), 0);
  ck_assert_int_eq(setenv("TORCHELASTIC_RESTART_COUNT", restarts, 1), 0);
}

static FILE *start_rank(size_t rank, const char *restarts) {
  set_for(rank, restarts);
  FILE *pipe = popen("exec python3 " TARN_EXAMPLE " 2>&1", "r");
  ck_assert_ptr_nonnull(pipe);
  return pipe;
}

static void stand_in_for_torchrun(const char *restarts) {
  FILE *pipes[RANKS];
  char out[1024];
  for (size_t rank = 0; rank < RANKS; rank++)
    pipes[rank] = start_rank(rank, restarts);
  for (size_t rank = 0; rank < RANKS; rank++) {
    size_t got = fread(out, 1, sizeof out - 1, pipes[rank]);
    out[got] = '\0';
    ck_assert_msg(pclose(pipes[rank]) == 0, "'%s'", out);
    ck_assert_str_eq(out, told[rank]);
  }
}

TEST(as_torchrun_starts_ranks) {
  char path[128];
  make_folder();
  stand_in_for_torchrun("0");
  stand_in_for_torchrun("1");
  snprintf(path, sizeof path, "%s/tarn-%u", folder, (unsigned)getuid());
  ck_assert_int_eq(rmdir(path), 0);  // nobody has left a socket there
  ck_assert_int_eq(rmdir(folder), 0);
}

int main(void) {
  if (system("python3 -c 'import ctypes, multiprocessing' 2>/dev/null") != 0) {
    return skip_program("example_meet", "no python3");
  }
  return run_tests();
}
