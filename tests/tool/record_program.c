// A program to be recorded: does what its words say, one after the other.
//
//   keep        allocates 1 MiB, in the line that `line` tells
//   line        prints that line
//   small       allocates and frees 10000 bytes
//   inlined     allocates 2 MiB in a function that is inlined
//   hostile     allocates 3 MiB in a function with a hostile name
//   child       the same program with "keep", as a child, and waits for it
//   orphan      a child that allocates 1 MiB and lives on until it has no
//               standard input any more
//   wait        prints "ready" and waits until it is ended
//   kill        ends itself with SIGKILL
//   exit7       ends with 7
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

// What compilers must not see through.
static void *volatile kept;

enum { KEEP_LINE = __LINE__ + 2 };
__attribute__((noinline)) static void keep_one(void) {
  kept = malloc(MIB);
  if (kept == NULL) abort();
}

static inline __attribute__((always_inline)) void take_two(void) {
  kept = malloc(2 * MIB);
  if (kept == NULL) abort();
}

__attribute__((noinline)) static void calls_inlined(void) {
  take_two();
  memset(kept, 1, 1);
}

// The order of the letters behind U+202E turns around on a terminal.
__attribute__((noinline)) static void evil_\u202eeman(void) {
  kept = malloc(3 * MIB);
  if (kept == NULL) abort();
}

static void run_small(void) {
  void *volatile block = malloc(10000);
  free(block);
}

static void run_child(const char *self) {
  pid_t pid = fork();
  if (pid == 0) {
    execl(self, self, "keep", (char *)NULL);
    _exit(127);
  }
  if (pid < 0 || waitpid(pid, NULL, 0) != pid) abort();
}

static void run_orphan(void) {
  char byte;
  int ends[2];
  if (pipe(ends) != 0) abort();
  if (fork() == 0) {
    keep_one();
    close(ends[0]);
    close(ends[1]);
    (void)!read(STDIN_FILENO, &byte, 1);
    _exit(0);
  }
  close(ends[1]);
  (void)!read(ends[0], &byte, 1);  // until the child has allocated
}

static void run_wait(void) {
  puts("ready");
  fflush(stdout);
  for (;;)
    pause();
}

static void run(const char *self, const char *word) {
  if (strcmp(word, "keep") == 0) keep_one();
  if (strcmp(word, "line") == 0) printf("%d\n", KEEP_LINE);
  if (strcmp(word, "small") == 0) run_small();
  if (strcmp(word, "inlined") == 0) calls_inlined();
  if (strcmp(word, "hostile") == 0) evil_\u202eeman();
  if (strcmp(word, "child") == 0) run_child(self);
  if (strcmp(word, "orphan") == 0) run_orphan();
  if (strcmp(word, "wait") == 0) run_wait();
  if (strcmp(word, "kill") == 0) raise(SIGKILL);
  if (strcmp(word, "exit7") == 0) exit(7);
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    run(argv[0], argv[i]);
  return 0;
}
