// The victim: forks, other programs, and ends.
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

extern char **environ;

static void await(pid_t pid) {
  int status = -1;
  must(waitpid(pid, &status, 0) == pid);
  must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// --- one thread ------------------------------------------------------------

enum { BLOCKS = 24 };

static size_t size_of(int i) {
  return 65536 + (size_t)i * 30000;
}

static void take_all(void **blocks, uint64_t seed) {
  for (int i = 0; i < BLOCKS; i++) {
    blocks[i] = opaque(malloc(size_of(i)));
    must(blocks[i] != NULL);
    paint(blocks[i], size_of(i), seed + (uint64_t)i);
  }
}

static void check_all(void *const *blocks, uint64_t seed) {
  for (int i = 0; i < BLOCKS; i++)
    must(is_painted(blocks[i], size_of(i), seed + (uint64_t)i));
}

static void free_all(void **blocks) {
  for (int i = 0; i < BLOCKS; i++)
    free(blocks[i]);
}

// Uses all that its parent had, frees it, has some of its own, and forks too.
static void live_on(void **blocks, uint64_t seed, int depth) {
  void *more[BLOCKS];
  check_all(blocks, seed);
  for (int i = 0; i < BLOCKS; i++)
    paint(blocks[i], size_of(i), seed + 1000 + (uint64_t)i);
  take_all(more, seed + 5);
  check_all(blocks, seed + 1000);
  free_all(blocks);
  take_all(blocks, seed + 9);
  if (depth > 0) {
    pid_t pid = fork();
    must(pid >= 0);
    if (pid == 0) {
      live_on(blocks, seed + 9, depth - 1);
      _exit(0);
    }
    await(pid);
  }
  check_all(more, seed + 5);
  check_all(blocks, seed + 9);
  free_all(more);
  free_all(blocks);
}

// What a child does changes nothing in its parent, and the other way round.
void mode_fork(void) {
  void *blocks[BLOCKS];
  for (int round = 0; round < 4; round++) {
    take_all(blocks, (uint64_t)round);
    pid_t pid = fork();
    must(pid >= 0);
    if (pid == 0) {
      live_on(blocks, (uint64_t)round, 2);
      _exit(0);
    }
    check_all(blocks, (uint64_t)round);
    await(pid);
    check_all(blocks, (uint64_t)round);
    free_all(blocks);
  }
  must(early_forks >= 4 * 2);
}

// --- several ---------------------------------------------------------------

static atomic_bool over;

static void *keep_busy(void *argument) {
  uint64_t random = (uintptr_t)argument;
  void *blocks[8] = {NULL};
  while (!atomic_load(&over)) {
    uint64_t n = victim_random(&random);
    free(blocks[n % 8]);
    blocks[n % 8] = opaque(malloc(65536 + n % (2 * MIB)));
    must(blocks[n % 8] != NULL);
    *(volatile char *)blocks[n % 8] = 1;
  }
  for (int i = 0; i < 8; i++)
    free(blocks[i]);
  return NULL;
}

// A child of a process whose threads are anywhere in the pool has a whole one.
void mode_fork_busy(void) {
  enum { THREADS = 4, FORKS = 15 };
  pthread_t threads[THREADS];
  void *blocks[BLOCKS];
  alarm(120);
  take_all(blocks, 3);
  for (int i = 0; i < THREADS; i++)
    must(pthread_create(&threads[i], NULL, keep_busy,
                        (void *)(uintptr_t)(i + 1)) == 0);
  for (int i = 0; i < FORKS; i++) {
    pid_t pid = fork();
    must(pid >= 0);
    if (pid == 0) {
      alarm(60);
      live_on(blocks, 3, i % 2);
      _exit(0);
    }
    await(pid);
  }
  atomic_store(&over, true);
  for (int i = 0; i < THREADS; i++)
    must(pthread_join(threads[i], NULL) == 0);
  check_all(blocks, 3);
  free_all(blocks);
}

// --- other programs --------------------------------------------------------

void mode_spawn(void) {
  char self[4096];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  must(length > 0);
  self[length] = '\0';
  void *block = opaque(malloc(LARGE));
  char *argv[] = {self, "exec_end", NULL};
  pid_t pid;
  must(posix_spawn(&pid, self, NULL, NULL, argv, environ) == 0);
  await(pid);
  must(system("exit 0") == 0);
  free(block);
}

// The new program starts with nothing of the old one.
void mode_exec(void) {
  void *blocks[BLOCKS];
  take_all(blocks, 1);
  execl("/proc/self/exe", "victim", "exec_end", (char *)NULL);
  must(false);
}

void mode_exec_end(void) {
  void *blocks[BLOCKS];
  take_all(blocks, 2);
  check_all(blocks, 2);
  free_all(blocks);
  must(puts("here") >= 0);
}

void mode_kill(void) {
  void *blocks[BLOCKS];
  take_all(blocks, 2);
  kill(getpid(), SIGKILL);
}
