#include "support/ranks.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "comm/comm.h"
#include "comm/local.h"
#include "support/run.h"

enum { MOST = TARN_COMM_MOST_RANKS };

// Of a rank: it ends before its test does, which then tells which it was. Check
// gives tests so many times their time.
static unsigned limit_s(void) {
  const char *times = getenv("CK_TIMEOUT_MULTIPLIER");
  double most = test_seconds / 1.5 * (times != NULL ? atof(times) : 1);
  return most > 200 ? (unsigned)most : 200;
}

void ranks_limit_descriptors(size_t most) {
  struct rlimit now;
  require(getrlimit(RLIMIT_NOFILE, &now) == 0);
  now.rlim_cur = most < now.rlim_max ? most : now.rlim_max;
  require(setrlimit(RLIMIT_NOFILE, &now) == 0);
}

void ranks_leave_descriptors(size_t count) {
  size_t most = 0;
  size_t unused = 0;
  while (unused < count || fcntl((int)most, F_GETFD) >= 0) {
    if (fcntl((int)most, F_GETFD) < 0) unused++;
    most++;
  }
  ranks_limit_descriptors(most);
}

void ranks_lift_limit(void) {
  ranks_limit_descriptors(SIZE_MAX);
}

size_t ranks_descriptors(void) {
  DIR *folder = opendir("/proc/self/fd");
  size_t count = 0;
  if (folder == NULL) abort();  // also where no test runs
  while (readdir(folder) != NULL)
    count++;
  closedir(folder);
  return count - 3;  // ".", "..", and the folder's own
}

void *ranks_shared(size_t size) {
  void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ck_assert_ptr_ne(bytes, MAP_FAILED);
  return bytes;
}

double ranks_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void ranks_set_timeout(tarn_comm *comm, uint64_t ms) {
  tarn__comm_local *local = comm->self;
  ck_assert(comm->ops.check == tarn__local_ops.check);
  comm->timeout_ms = local->timeout_ms = ms;
}

_Noreturn void ranks_die(void) {
  for (;;)
    kill(getpid(), SIGKILL);
}

void ranks_stop(void) {
  kill(getpid(), SIGSTOP);
}

// --- one rank --------------------------------------------------------------

static bool has_bit(uint64_t bits, size_t rank) {
  return rank < 64 && (bits >> rank & 1) != 0;
}

static void play(const ranks_plan *plan, tarn_rendezvous *meeting,
                 size_t rank) {
  const tarn_comm_options options = {
      .struct_size = sizeof options,
      .timeout_ms = plan->timeout_ms != 0 ? plan->timeout_ms : 60000,
  };
  tarn_comm *comm = NULL;
  if (plan->before != NULL) plan->before(rank, plan->context);
  assert_status(tarn_comm_join(meeting, rank, &options, &comm), plan->joins);
  tarn_rendezvous_destroy(meeting);
  if (plan->joins != TARN_OK) {
    ck_assert_ptr_null(comm);
    return;
  }
  ck_assert_uint_eq(tarn_comm_rank(comm), rank);
  ck_assert_uint_eq(tarn_comm_size(comm), plan->size);
  plan->body(comm, plan->context);
  if (!plan->keeps) assert_ok(tarn_comm_destroy(comm));
}

static _Noreturn void be_rank(const ranks_plan *plan, tarn_rendezvous *meeting,
                              size_t rank, size_t held, size_t descriptors) {
  alarm(limit_s());
  play(plan, meeting, rank);
  ranks_lift_limit();  // or there may be too few to count them
  ck_assert_uint_eq(tarn_host_memory(), held);
  ck_assert_uint_eq(ranks_descriptors(), descriptors);
  _exit(0);
}

// --- all of them -----------------------------------------------------------

static void see_end(const ranks_plan *plan, size_t rank, pid_t child) {
  int end = 0;
  ck_assert_int_eq(waitpid(child, &end, 0), child);
  if (has_bit(plan->killed, rank)) {
    ck_assert_msg(WIFSIGNALED(end) && WTERMSIG(end) == SIGKILL,
                  "rank %zu was to be killed: %#x", rank, (unsigned)end);
  } else {
    ck_assert_msg(WIFEXITED(end) && WEXITSTATUS(end) == 0, "rank %zu: %#x",
                  rank, (unsigned)end);
  }
}

void ranks_run(const ranks_plan *plan) {
  pid_t children[MOST] = {0};
  size_t held = tarn_host_memory();
  size_t descriptors = ranks_descriptors();
  tarn_rendezvous *meeting = NULL;
  assert_ok(tarn_rendezvous_create(plan->size, &meeting));
  for (size_t rank = 0; rank < plan->size; rank++) {
    children[rank] = fork();
    ck_assert_int_ge(children[rank], 0);
    if (children[rank] == 0) be_rank(plan, meeting, rank, held, descriptors);
  }
  tarn_rendezvous_destroy(meeting);
  for (size_t rank = 0; rank < plan->size; rank++) {
    if (!has_bit(plan->stopped, rank)) see_end(plan, rank, children[rank]);
  }
  for (size_t rank = 0; rank < plan->size; rank++) {
    if (!has_bit(plan->stopped, rank)) continue;
    kill(children[rank], SIGCONT);
    see_end(plan, rank, children[rank]);
  }
  ck_assert_uint_eq(ranks_descriptors(), descriptors);
  ck_assert_uint_eq(tarn_host_memory(), held);
}
