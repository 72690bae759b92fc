// Variables of the environment count in usual programs, and in none that runs
// with rights beyond its user's. A copy of this program that belongs to another
// user and is setuid is such a program.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/run.h"
#include "synced/protect.h"
#include "tarn/comm.h"
#include "tarn/device.h"
#include "tarn/pool.h"

enum { NOBODY = 65534 };

// --- whether a variable counts ---------------------------------------------

// Each is run in a process of its own, with the one variable set.
static bool no_pool_is_made(void) {
  tarn_pool *pool = NULL;
  return tarn_pool_of(TARN_HOST, &pool) != TARN_OK;
}

#ifdef NDEBUG
#define OTHER_PROTECT "1"
static bool protects_otherwise(void) {
  return tarn__protect_default(0);
}
#else
#define OTHER_PROTECT "0"
static bool protects_otherwise(void) {
  return !tarn__protect_default(0);
}
#endif

static bool sim_is_refused(void) {
  tarn_device *device = NULL;
  return tarn_device_open("sim:0", &device) != TARN_OK;
}

static bool plugins_have_a_folder(void) {
  return tarn_plugin_load("nobody.so") == TARN_E_IO;
}

static bool ranks_are_refused(void) {
  tarn_comm *comm = NULL;
  return tarn_comm_from_environment(NULL, &comm) != TARN_OK;
}

static const struct {
  const char *setting;
  bool (*counts)(void);
} trials[] = {
    {"TARN_POOL=nobody_pool", no_pool_is_made},
    {"TARN_POOL_DEBUG=nonsense", no_pool_is_made},
    {"TARN_SNAPSHOT_ON_FULL=%q", no_pool_is_made},
    {"TARN_SYNCED_PROTECT=" OTHER_PROTECT, protects_otherwise},
    {"TARN_SIM_CAPACITY=nonsense", sim_is_refused},
    {"TARN_SIM_FAULTS=nonsense", sim_is_refused},
    {"TARN_PLUGIN_DIR=/nonexistent", plugins_have_a_folder},
    {"TARN_COMM=nonsense", ranks_are_refused},
    {"TARN_COMM_TIMEOUT_MS=soon", ranks_are_refused},
};
enum { TRIALS = sizeof trials / sizeof *trials };

// --- both kinds of programs ------------------------------------------------

enum { COUNTS, COUNTS_NOT, COUNTS_SECURE = 4 };  // exit statuses: a sum

// The leak check of a sanitizer cannot look into such a process.
static _Noreturn void try_one(const char *number) {
  int status = trials[atoi(number)].counts() ? COUNTS : COUNTS_NOT;
  if (getauxval(AT_SECURE) != 0) status += COUNTS_SECURE;
  _exit(status);
}

static int run(const char *program, int number) {
  char text[16];
  int status = 0;
  snprintf(text, sizeof text, "%d", number);
  char setting[128];
  snprintf(setting, sizeof setting, "%s", trials[number].setting);
  char *const argv[] = {"try", text, NULL};
  char *const environment[] = {setting, NULL};
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    execve(program, argv, environment);
    _exit(127);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST(they_count_in_usual_programs) {
  for (int i = 0; i < TRIALS; i++)
    ck_assert_msg(run("/proc/self/exe", i) == COUNTS, "%s", trials[i].setting);
}

// False where there is no other user, as in a namespace of this one alone.
static bool copy_program(const char *to) {
  char command[256];
  snprintf(command, sizeof command, "cp /proc/%d/exe '%s'", (int)getpid(), to);
  ck_assert_int_eq(system(command), 0);
  if (chown(to, NOBODY, NOBODY) != 0) return false;
  ck_assert_int_eq(chmod(to, 04755), 0);
  return true;
}

TEST(they_do_not_count_in_programs_with_rights) {
  char folder[] = "/tmp/tarn-test-XXXXXX";
  char copy[64];
  if (geteuid() != 0) {
    note_skipped("setuid programs", "only root can give one to another user");
    return;
  }
  ck_assert_ptr_nonnull(mkdtemp(folder));
  ck_assert_int_eq(chmod(folder, 0755), 0);
  snprintf(copy, sizeof copy, "%s/copy", folder);
  int statuses[TRIALS] = {0};
  bool copied = copy_program(copy);
  for (int i = 0; copied && i < TRIALS; i++)
    statuses[i] = run(copy, i);
  ck_assert_int_eq(remove(copy), 0);
  ck_assert_int_eq(rmdir(folder), 0);
  if (statuses[0] < COUNTS_SECURE) {
    note_skipped("setuid programs", copied ? "/tmp is mounted without them"
                                           : "there is no other user here");
    return;
  }
  for (int i = 0; i < TRIALS; i++) {
    ck_assert_msg(statuses[i] == COUNTS_SECURE + COUNTS_NOT, "%s: %d",
                  trials[i].setting, statuses[i]);
  }
}

int main(int argc, char **argv) {
  if (argc == 2) try_one(argv[1]);
  return run_tests();
}
