#include "support/child.h"

#include <check.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/os.h"

// What the kernel says of a thread, 'S' where it sleeps; it stands behind a
// name in brackets, which may have brackets of its own.
static char state_of(const char *thread) {
  char path[320];
  char line[512] = "";
  snprintf(path, sizeof path, "/proc/self/task/%s/stat", thread);
  FILE *file = fopen(path, "re");
  if (file == NULL) return 'S';  // it has ended
  size_t size = fread(line, 1, sizeof line - 1, file);
  fclose(file);
  line[size] = '\0';
  const char *end = strrchr(line, ')');
  ck_assert_ptr_nonnull(end);
  return end[2];
}

static bool others_sleep(void) {
  bool all = true;
  const struct dirent *thread = NULL;
  DIR *threads = opendir("/proc/self/task");
  ck_assert_ptr_nonnull(threads);
  while ((thread = readdir(threads)) != NULL) {
    if (thread->d_name[0] == '.' || atoi(thread->d_name) == getpid()) continue;
    if (state_of(thread->d_name) != 'S') all = false;
  }
  closedir(threads);
  return all;
}

void await_sleeping_threads(void) {
  while (!others_sleep())
    tarn__os_yield();
}

void child_begin(unsigned seconds) {
  signal(SIGALRM, SIG_DFL);  // Check's would end the test
  alarm(seconds);
}

void assert_child_ended_well(pid_t child) {
  int status = 0;
  ck_assert_int_gt(child, 0);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_msg(WIFEXITED(status), "the child died of signal %d",
                WTERMSIG(status));
  ck_assert_int_eq(WEXITSTATUS(status), 0);
}

void fork_and_run(void (*in_child)(void)) {
  pid_t child = fork();
  if (child == 0) {
    child_begin(30);
    in_child();
    _exit(0);
  }
  assert_child_ended_well(child);
}
