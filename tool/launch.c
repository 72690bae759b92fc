// A child with another environment, and the signals that are meant for it.
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Where the library stands, seen from the tool: built, and installed.
static const char *const places[] = {"", "record/", TARN_RECORD_FROM_BIN};
enum { PLACES = sizeof places / sizeof *places };

static const char library_name[] = "libtarn-record.so";
static const char preload[] = "LD_PRELOAD";

// --- the library -----------------------------------------------------------

// "<folder of the tool>/<place><name>", if a file can be read there.
static char *find_at(const char *tool, const char *place) {
  size_t folder = (size_t)(strrchr(tool, '/') - tool) + 1;
  size_t room = folder + strlen(place) + sizeof library_name;
  char *path = tool_array(room, 1);
  snprintf(path, room, "%.*s%s%s", (int)folder, tool, place, library_name);
  char *real = realpath(path, NULL);
  free(path);
  if (real == NULL || access(real, R_OK) == 0) return real;
  free(real);
  return NULL;
}

static char *find_library(const tool_verb *verb) {
  char *tool = realpath("/proc/self/exe", NULL);
  char *found = NULL;
  for (int i = 0; tool != NULL && found == NULL && i < PLACES; i++)
    found = find_at(tool, places[i]);
  if (found == NULL) {
    tool_fail(verb,
              "%s is neither beside %s nor in %s; TARN_RECORD_LIBRARY says "
              "where it is",
              library_name, tool != NULL ? tool : "the tool",
              TARN_RECORD_FROM_BIN);
  }
  free(tool);
  return found;
}

static char *named_library(const tool_verb *verb, const char *path) {
  char *real = realpath(path, NULL);
  if (real != NULL && access(real, R_OK) == 0) return real;
  tool_fail(verb, "TARN_RECORD_LIBRARY: %s: %s", path, strerror(errno));
  free(real);
  return NULL;
}

// The dynamic linker takes both for the end of a path.
static char *check_letters(const tool_verb *verb, char *path) {
  if (path == NULL || strpbrk(path, " :") == NULL) return path;
  tool_fail(verb,
            "%s: what is preloaded cannot stand at a path with a blank or "
            "a colon",
            path);
  free(path);
  return NULL;
}

char *launch_library(const tool_verb *verb) {
  const char *named = getenv("TARN_RECORD_LIBRARY");
  bool is_named = named != NULL && *named != '\0';
  return check_letters(
      verb, is_named ? named_library(verb, named) : find_library(verb));
}

// --- the environment -------------------------------------------------------

// "name=value", or "name=value:more".
static char *setting(const char *name, const char *value, const char *more) {
  bool has_more = more != NULL && *more != '\0';
  size_t room = strlen(name) + strlen(value) + (has_more ? strlen(more) : 0) +
                sizeof "=:";
  char *text = tool_array(room, 1);
  snprintf(text, room, "%s=%s%s%s", name, value, has_more ? ":" : "",
           has_more ? more : "");
  return text;
}

static bool is_name(const char *variable, const char *name) {
  size_t length = strlen(name);
  return strncmp(variable, name, length) == 0 && variable[length] == '=';
}

static bool is_set(const char *variable, const launch_setting *settings) {
  if (is_name(variable, preload)) return true;
  for (; settings->name != NULL; settings++) {
    if (is_name(variable, settings->name)) return true;
  }
  return false;
}

// The tool's own, with the settings in it: for a child that execs at once,
// since what is made for it is never freed.
static char **make_environment(const char *library,
                               const launch_setting *settings) {
  char number[32];
  size_t most = 2;
  for (char **at = environ; *at != NULL; at++)
    most++;
  for (const launch_setting *at = settings; at->name != NULL; at++)
    most++;
  char **all = tool_array(most, sizeof *all);
  size_t count = 0;
  snprintf(number, sizeof number, "%ld", (long)getpid());
  all[count++] = setting(preload, library, getenv(preload));
  for (const launch_setting *at = settings; at->name != NULL; at++)
    all[count++] = setting(at->name, at->value ? at->value : number, NULL);
  for (char **at = environ; *at != NULL; at++) {
    if (!is_set(*at, settings)) all[count++] = *at;
  }
  return all;
}

// --- signals ---------------------------------------------------------------

static const int passed_on[] = {SIGHUP,  SIGINT,  SIGQUIT,
                                SIGTERM, SIGUSR1, SIGUSR2};
enum { PASSED_ON = sizeof passed_on / sizeof *passed_on };

typedef struct signals {
  struct sigaction before[PASSED_ON];
  sigset_t mask;  // that the tool was started with
} signals;

static volatile sig_atomic_t child;  // 0: none that can be sent anything

// What the kernel sends for a terminal's keys, it sends to all in front of it.
static void pass_on(int number, siginfo_t *info, void *context) {
  (void)context;
  int error = errno;
  if (info->si_code <= 0 && child > 0) kill(child, number);
  errno = error;
}

static void block(void) {
  sigset_t all;
  sigemptyset(&all);
  for (int i = 0; i < PASSED_ON; i++)
    sigaddset(&all, passed_on[i]);
  sigprocmask(SIG_BLOCK, &all, NULL);
}

// What is ignored, as nohup does with SIGHUP, stays so in both. They remain
// blocked: a signal waits until there is a child.
static void begin_signals(signals *kept) {
  struct sigaction action = {.sa_sigaction = pass_on,
                             .sa_flags = SA_SIGINFO | SA_RESTART};
  sigemptyset(&action.sa_mask);
  sigprocmask(SIG_BLOCK, NULL, &kept->mask);
  block();
  for (int i = 0; i < PASSED_ON; i++) {
    sigaction(passed_on[i], NULL, &kept->before[i]);
    if (kept->before[i].sa_handler == SIG_IGN) continue;
    sigaction(passed_on[i], &action, NULL);
  }
}

// What still waits was meant for the program, which has ended.
static void end_signals(const signals *kept) {
  for (int i = 0; i < PASSED_ON; i++) {
    signal(passed_on[i], SIG_IGN);
    sigaction(passed_on[i], &kept->before[i], NULL);
  }
  sigprocmask(SIG_SETMASK, &kept->mask, NULL);
}

// --- the program -----------------------------------------------------------

// Says on |out| why it did not become the program.
static _Noreturn void become(char *const *program, const char *library,
                             const launch_setting *settings,
                             const signals *kept, int out) {
  end_signals(kept);
  signal(SIGPIPE, SIG_DFL);
  execvpe(program[0], program, make_environment(library, settings));
  int error = errno;
  (void)!write(out, &error, sizeof error);
  _exit(EXIT_FAILURE);
}

// The pipe closes without a word when the child has become the program.
static int hear_error(const int *pipe_ends) {
  int error = 0;
  ssize_t size;
  close(pipe_ends[1]);
  do {
    size = read(pipe_ends[0], &error, sizeof error);
  } while (size < 0 && errno == EINTR);
  close(pipe_ends[0]);
  return size == (ssize_t)sizeof error ? error : 0;
}

static pid_t start(char *const *program, const char *library,
                   const launch_setting *settings, const signals *kept,
                   int *out_error) {
  int ends[2];
  pid_t pid = -1;
  if (pipe2(ends, O_CLOEXEC) == 0) {
    fflush(NULL);
    pid = fork();
    if (pid == 0) become(program, library, settings, kept, ends[1]);
    *out_error = pid > 0 ? hear_error(ends) : errno;
  } else {
    *out_error = errno;
  }
  return pid;
}

// Its number is another's once it has been waited for: until then it is only
// looked at.
static int wait_for(pid_t pid) {
  siginfo_t info;
  int status = 0;
  while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  block();
  child = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

static launch_end describe(int status) {
  launch_end end = {.status = WEXITSTATUS(status)};
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
    end.status = 128 + end.signal;
  }
  return end;
}

launch_end launch_run(char *const *program, const char *library,
                      const launch_setting *settings) {
  signals kept;
  launch_end end = {0};
  begin_signals(&kept);
  pid_t pid = start(program, library, settings, &kept, &end.error);
  if (pid > 0) {
    int error = end.error;
    child = pid;
    sigprocmask(SIG_SETMASK, &kept.mask, NULL);
    end = describe(wait_for(pid));
    end.error = error;
  }
  end_signals(&kept);
  return end;
}
