// A program that the tests of the recorder record: it does what its first
// argument names, and says on stdout what a trace of it has to say. Of what is
// at least 64 KiB it has nothing but what it says.
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tarn/device_abi.h"

extern char **environ;

#define LARGE ((size_t)100000)
#define NOINLINE __attribute__((noinline))

// What was had last: blocks that stay are meant to.
static void *volatile had;

static void *use(void *address) {
  if (address == NULL || address == MAP_FAILED) exit(3);
  *(volatile char *)address = 1;
  had = address;
  return address;
}

// ---------------------------------------------------------------------------
// Each function
// ---------------------------------------------------------------------------

// Sizes from LARGE on, each once: LARGE + 9 is the only one that stays.
static int heap(void) {
  volatile size_t most = SIZE_MAX;
  void *p = use(malloc(LARGE));
  p = use(realloc(p, LARGE + 1));
  had = realloc(p, SIZE_MAX / 2);
  if (had != NULL) return 4;
  p = use(reallocarray(p, 1, LARGE + 2));
  p = use(realloc(p, 10));
  p = use(realloc(p, LARGE + 3));
  free(p);
  free(use(calloc(1, LARGE + 4)));
  free(use(memalign(256, LARGE + 5)));
  free(use(aligned_alloc(64, LARGE + 6)));
  if (posix_memalign(&p, 4096, LARGE + 7) != 0) return 4;
  free(use(p));
  free(use(valloc(LARGE + 8)));
  use(pvalloc(LARGE + 9));
  free(use(realloc(NULL, LARGE + 10)));
  had = malloc(SIZE_MAX / 2);
  if (had != NULL || errno != ENOMEM) return 4;
  if (reallocarray(NULL, most, 2) != NULL || errno != ENOMEM) return 4;
  free(use(malloc(1000)));
  free(NULL);
  return 0;
}

// 16 pages: the first goes, the fifth is mapped anew, all move, six are left
// of them; and a file's, and one that cannot be touched, which do not count.
static int maps(void) {
  enum { KEPT = 64 << 10, BYTES = 1 << 20 };
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  char *p = use(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, -1, 0));
  char *q = use(mmap64(NULL, BYTES, PROT_READ | PROT_WRITE, flags, -1, 0));
  void *none = mmap(NULL, BYTES, PROT_NONE, flags, -1, 0);
  if (none == MAP_FAILED) return 4;
  if (munmap(q, 4096) != 0) return 4;
  use(mmap(p + 4096, KEPT, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0));
  if (munmap(p + 4096 + KEPT, BYTES - KEPT - 4096) != 0) return 4;
  q = use(mremap(q + 4096, BYTES - 4096, (size_t)2 * BYTES, MREMAP_MAYMOVE));
  if (munmap(p, 4096) != 0 || munmap(q + BYTES, BYTES) != 0) return 4;
  if (mremap(q, BYTES, SIZE_MAX / 2, 0) != MAP_FAILED) return 4;
  printf("%d\n", KEPT + BYTES);
  return 0;
}

// ---------------------------------------------------------------------------
// Threads
// ---------------------------------------------------------------------------

enum { THREADS = 6, ROUNDS = 20000, PLACES = 64 };

static _Atomic(size_t *) places[PLACES];

// Each block begins with its size; the thread that finds one in its place frees
// it.
static void *exchange(void *context) {
  uint64_t random = (uintptr_t)context * 2654435761U + 1;
  for (int i = 0; i < ROUNDS; i++) {
    random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
    size_t size = LARGE + (random >> 40) % 300000;
    size_t *mine = use(malloc(size));
    *mine = size;
    free(atomic_exchange(&places[(random >> 33) % PLACES], mine));
  }
  return NULL;
}

static int run_threads(void *(*work)(void *), int count) {
  static char numbers[THREADS];
  pthread_t threads[THREADS];
  for (int i = 0; i < count; i++) {
    if (pthread_create(&threads[i], NULL, work, &numbers[i]) != 0) return 4;
  }
  for (int i = 0; i < count; i++)
    pthread_join(threads[i], NULL);
  return 0;
}

static int threads(void) {
  size_t bytes = 0;
  if (run_threads(exchange, THREADS) != 0) return 4;
  for (int i = 0; i < PLACES; i++) {
    size_t *left = atomic_load(&places[i]);
    bytes += left != NULL ? *left : 0;
  }
  printf("%zu %d\n", bytes, THREADS * ROUNDS);
  return 0;
}

static void *one(void *context) {
  free(use(malloc(LARGE)));
  return context;
}

// Many, one after the other.
static int short_threads(void) {
  for (int i = 0; i < 2000; i++) {
    if (run_threads(one, 1) != 0) return 4;
  }
  return 0;
}

// ---------------------------------------------------------------------------
// Processes
// ---------------------------------------------------------------------------

static int wait_for(pid_t pid) {
  int status = -1;
  return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 4;
}

// The child frees what it got, and keeps one of its own.
static int fork_once(void) {
  void *before = use(malloc(LARGE));
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    free(before);
    use(malloc(LARGE + 1));
    exit(0);
  }
  use(malloc(LARGE + 2));
  printf("%d\n", (int)pid);
  return wait_for(pid);
}

// Children while other threads are writing: each has to get through.
static _Atomic bool stop;

static void *churn(void *context) {
  while (!atomic_load(&stop))
    free(use(malloc(LARGE)));
  return context;
}

static int fork_many(void) {
  pthread_t threads_of_it[2];
  int failed = 0;
  for (int i = 0; i < 2; i++)
    failed |= pthread_create(&threads_of_it[i], NULL, churn, NULL);
  for (int i = 0; i < 50 && failed == 0; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      free(use(malloc(LARGE)));
      _exit(0);
    }
    failed = wait_for(pid);
  }
  atomic_store(&stop, true);
  for (int i = 0; i < 2; i++)
    pthread_join(threads_of_it[i], NULL);
  return failed;
}

static int leave_one(void) {
  use(malloc(LARGE + 3));
  return 0;
}

static int exec(char *self) {
  use(malloc(LARGE));
  execl(self, self, "leave_one", (char *)NULL);
  return 4;
}

// By posix_spawn, by vfork, and by a shell.
static int spawn(char *self) {
  char *argv[] = {self, "leave_one", NULL};
  pid_t pid = 0;
  use(malloc(LARGE));
  if (posix_spawn(&pid, self, NULL, NULL, argv, environ) != 0) return 4;
  printf("%d", (int)pid);
  if (wait_for(pid) != 0) return 4;
  pid = vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
  if (pid == 0) {
    execv(self, argv);
    _exit(4);
  }
  printf(" %d\n", (int)pid);
  use(malloc(LARGE + 1));
  return wait_for(pid) != 0 || system("true") != 0 ? 4 : 0;
}

// ---------------------------------------------------------------------------
// What can go wrong
// ---------------------------------------------------------------------------

// Until it is killed: says after each event how many there were.
static int until_killed(void) {
  for (uint64_t events = 0;;) {
    void *p = use(malloc(LARGE + events % 1000));
    events++;
    if (write(STDOUT_FILENO, &events, sizeof events) < 0) return 4;
    free(p);
    events++;
    if (write(STDOUT_FILENO, &events, sizeof events) < 0) return 4;
  }
}

static volatile sig_atomic_t handled;

static void map_once(void) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  void *p = mmap(NULL, 200000, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (p != MAP_FAILED) munmap(p, 200000);
}

// Maps only: what malloc interrupts it may not call.
static void map_in_handler(int signal) {
  (void)signal;
  map_once();
  handled = handled + 1;
}

// The first event takes long, since the file is made: before there are signals.
static int in_handlers(void) {
  enum { WANTED = 600 };
  int rounds = 1;
  struct itimerval timer = {{0, 150}, {0, 150}};
  struct sigaction action = {.sa_handler = map_in_handler};
  map_once();
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &timer, NULL);
  for (; handled < WANTED; rounds++)
    map_once();
  timer = (struct itimerval){0};
  setitimer(ITIMER_REAL, &timer, NULL);
  printf("%d\n", rounds + (int)handled);
  return 0;
}

static int churn_for(int rounds) {
  for (int i = 0; i < rounds; i++)
    free(use(malloc(LARGE + (size_t)i % 5000)));
  return 0;
}

// Files of this process may not be longer than 128 KiB.
static int limited(void) {
  struct rlimit limit = {128 << 10, 128 << 10};
  return setrlimit(RLIMIT_FSIZE, &limit) != 0 ? 4 : churn_for(200000);
}

// Other programs close what they find, and go where they like.
static int no_descriptors(void) {
  churn_for(1);
  for (int fd = 3; fd < 1024; fd++)
    close(fd);
  if (chdir("/") != 0) return 4;
  return churn_for(99999);
}

// ---------------------------------------------------------------------------
// Stacks and look-ups
// ---------------------------------------------------------------------------

static NOINLINE void *here(size_t size) {
  void *p = use(malloc(size));
  __asm__ volatile("");
  return p;
}

// Other code than the above, so that the compiler keeps both.
static NOINLINE void *there(size_t size) {
  char *p = use(malloc(size));
  p[1] = 2;
  __asm__ volatile("");
  return p;
}

static int places_of_calls(void) {
  for (int i = 0; i < 10; i++)
    free(here(LARGE));
  free(there(LARGE + 1));
  return 0;
}

// What is next after this program is the recorder; what is next after that
// does not matter.
static int look_up(void) {
  Dl_info info;
  void *next = dlsym(RTLD_NEXT, "malloc");
  if (next == NULL || dladdr(next, &info) == 0) return 4;
  puts(info.dli_fname);
  bool odd = dlsym(RTLD_DEFAULT, "no such name") != NULL ||
             dlsym(RTLD_DEFAULT, "getpid") == NULL;
  return odd ? 4 : 0;
}

// Becomes the program |words|, which may not call process_vm_readv.
static int without_reads(char **words) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    return 5;
  }
  execv(words[0], words);
  return 4;
}

static C_Status initialize(C_DeviceInterface *table) {
  return table->initialize != NULL ? table->initialize() : C_SUCCESS;
}

// One block of each kind of memory of a plug-in; the device's stays.
static int use_plugin(const char *path) {
  C_DeviceInterface table = {.size = sizeof table};
  CustomRuntimeParams params = {.size = sizeof params, .interface = &table};
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 4;
  void (*init)(CustomRuntimeParams *) =
      __extension__(void (*)(CustomRuntimeParams *))
          dlsym(library, "InitPlugin");
  struct C_Device_st device = {0};
  void *p, *q;
  if (init == NULL) return 4;
  init(&params);
  if (initialize(&table) != C_SUCCESS) return 5;
  if (table.init_device(&device) != C_SUCCESS) return 6;
  if (table.device_memory_allocate(&device, &p, LARGE) != C_SUCCESS ||
      table.device_memory_allocate(&device, &q, LARGE + 1) != C_SUCCESS ||
      table.device_memory_deallocate(&device, q, LARGE + 1) != C_SUCCESS ||
      table.host_memory_allocate(&device, &q, LARGE + 2) != C_SUCCESS ||
      table.host_memory_deallocate(&device, q, LARGE + 2) != C_SUCCESS) {
    return 7;
  }
  return 0;
}

// ---------------------------------------------------------------------------
// Which
// ---------------------------------------------------------------------------

static const struct {
  const char *name;
  int (*run)(void);
} modes[] = {
    {"heap", heap},
    {"maps", maps},
    {"threads", threads},
    {"short_threads", short_threads},
    {"fork", fork_once},
    {"fork_many", fork_many},
    {"leave_one", leave_one},
    {"until_killed", until_killed},
    {"in_handlers", in_handlers},
    {"limited", limited},
    {"no_descriptors", no_descriptors},
    {"places", places_of_calls},
    {"look_up", look_up},
};

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  if (strcmp(argv[1], "exec") == 0) return exec(argv[0]);
  if (strcmp(argv[1], "spawn") == 0) return spawn(argv[0]);
  if (strcmp(argv[1], "churn") == 0) return churn_for(atoi(argv[2]));
  if (strcmp(argv[1], "without_reads") == 0) return without_reads(argv + 2);
  if (strcmp(argv[1], "plugin") == 0) return use_plugin(argv[2]);
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
    if (strcmp(modes[i].name, argv[1]) == 0) return modes[i].run();
  }
  return 2;
}
