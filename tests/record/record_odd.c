// A program that the tests of the recorder record, as record_victim.c is: of
// what few programs do, and what must go as it does without the recorder.
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record_late.h"

enum { LARGE = 100000, FAILED = 4 };

static void *volatile had;

static void *use(void *address) {
  if (address == NULL) exit(FAILED);
  *(volatile char *)address = 1;
  had = address;
  return address;
}

static int churn(int rounds) {
  for (int i = 0; i < rounds; i++)
    free(use(malloc(LARGE)));
  return 0;
}

static int wait_for(pid_t pid) {
  int status = -1;
  return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : FAILED;
}

// Less than a file may have bytes; and it wants most of them.
static int few_addresses(void) {
  struct rlimit limit = {512 << 20, 512 << 20};
  churn(1);
  if (setrlimit(RLIMIT_AS, &limit) != 0) return FAILED;
  free(use(malloc(400 << 20)));
  return churn(100000);
}

// No handler of fork's runs.
static int raw_fork(void) {
  churn(1);
  long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
  if (pid == 0) {
    use(malloc(LARGE + 1));
    churn(1000);
    _exit(0);
  }
  use(malloc(LARGE + 2));
  churn(1000);
  printf("%ld\n", pid);
  return wait_for((pid_t)pid);
}

static _Atomic int begun;

static int see(struct dl_phdr_info *info, size_t size, void *context) {
  (void)info;
  (void)size;
  (void)context;
  atomic_store(&begun, 1);
  while (pause() != 0) {
  }
  return 0;
}

static void *hold_the_loaders_lock(void *context) {
  dl_iterate_phdr(see, NULL);
  return context;
}

// No thread will ever release the lock in the child.
static int fork_in_a_lock(void) {
  pthread_t thread;
  churn(1);
  if (pthread_create(&thread, NULL, hold_the_loaders_lock, NULL) != 0)
    return FAILED;
  while (atomic_load(&begun) == 0)
    usleep(1000);
  pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    use(malloc(LARGE + 1));
    _exit(0);
  }
  printf("%d\n", (int)pid);
  fflush(stdout);
  _exit(wait_for(pid));
}

// Uses some of the stack itself.
static void *churn_once(void *context) {
  volatile char room[2048];
  room[0] = 1;
  churn(3 * room[0]);
  return context;
}

static void *churn_many(void *context) {
  churn(4000);
  return context;
}

// While the one makes the file, the others would write to it.
static int begin_at_once(void) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  record_slow(50000);
  for (int i = 0; i < THREADS; i++) {
    if (pthread_create(&threads[i], NULL, churn_many, NULL) != 0) return FAILED;
  }
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  return 0;
}

static int small_stack(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 16384);
  if (pthread_create(&thread, &attributes, churn_once, NULL) != 0)
    return FAILED;
  pthread_attr_destroy(&attributes);
  return pthread_join(thread, NULL);
}

static int late(void) {
  record_late(5000);
  return churn(1);
}

static const struct {
  const char *name;
  int (*run)(void);
} modes[] = {
    {"few_addresses", few_addresses},
    {"raw_fork", raw_fork},
    {"fork_in_a_lock", fork_in_a_lock},
    {"small_stack", small_stack},
    {"late", late},
    {"begin_at_once", begin_at_once},
};

int main(int argc, char **argv) {
  for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; i++) {
    if (strcmp(modes[i].name, argv[1]) == 0) return modes[i].run();
  }
  return 2;
}
