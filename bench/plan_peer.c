// A program that is started, timed from outside, and whose answer is read.
#include "plan_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tarn/plan_csv.h"

enum { WORD_SIZE = 4200 };

typedef struct course {
  const plan_peer *peer;
  plan_peer_result *out;
} course;

static bool fail(const course *c, const char *what, const char *why) {
  snprintf(c->out->failed, sizeof c->out->failed, "%.60s: %.180s", what, why);
  return false;
}

// ---------------------------------------------------------------------------
// Its process
// ---------------------------------------------------------------------------

// What it prints is nobody's business here.
static _Noreturn void become(const plan_peer *peer) {
  char input[WORD_SIZE];
  char output[WORD_SIZE];
  char capacity[64];
  char timeout[64];
  snprintf(input, sizeof input, "--input=%s", peer->input);
  snprintf(output, sizeof output, "--output=%s", peer->output);
  snprintf(capacity, sizeof capacity, "--capacity=%llu",
           (unsigned long long)peer->capacity);
  snprintf(timeout, sizeof timeout, "--timeout=%gs", peer->seconds);
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0 ||
      dup2(nowhere, STDERR_FILENO) < 0) {
    _exit(127);
  }
  execl(peer->program, peer->program, input, capacity, timeout, output,
        (char *)NULL);
  _exit(127);
}

static double clock_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double seconds_of(struct timeval time) {
  return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

// Its exit status; one that goes on long after its time is ended.
static int wait_for(pid_t pid, const plan_peer *peer, struct rusage *out_used) {
  static const struct timespec pause = {.tv_nsec = 2000000};
  int status = -1;
  double last = clock_seconds() + peer->seconds * 2 + 10;
  for (;;) {
    pid_t ended = wait4(pid, &status, WNOHANG, out_used);
    if (ended == pid) return status;
    if (ended < 0 && errno != EINTR) return -1;
    if (clock_seconds() > last) (void)kill(pid, SIGKILL);
    (void)nanosleep(&pause, NULL);
  }
}

static bool explain(const course *c, int status) {
  char text[64];
  if (status == -1 || WIFSIGNALED(status)) {
    return fail(c, "it did not end", "it was killed");
  }
  if (WEXITSTATUS(status) == 127) {
    return fail(c, c->peer->program, "it cannot be started");
  }
  snprintf(text, sizeof text, "it ended with status %d", WEXITSTATUS(status));
  return fail(c, "no plan", text);
}

static bool start(const course *c) {
  struct rusage used = {0};
  (void)unlink(c->peer->output);
  pid_t pid = fork();
  if (pid == 0) become(c->peer);
  if (pid < 0) return fail(c, c->peer->program, strerror(errno));
  int status = wait_for(pid, c->peer, &used);
  c->out->seconds = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
  c->out->peak = (double)used.ru_maxrss * 1024;
  if (status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    return true;
  }
  return explain(c, status);
}

// ---------------------------------------------------------------------------
// Its answer
// ---------------------------------------------------------------------------

static bool is_same(const tarn_plan_problem *a, const tarn_plan_problem *b) {
  if (a->count != b->count) return false;
  for (size_t i = 0; i < a->count; i++) {
    const tarn_plan_buffer *x = &a->buffers[i];
    const tarn_plan_buffer *y = &b->buffers[i];
    if (x->first != y->first || x->last != y->last || x->size != y->size) {
      return false;
    }
  }
  return true;
}

static bool compare(const course *c, const tarn_plan_table *asked,
                    const tarn_plan_table *answer) {
  tarn_plan_problem problem = *tarn_plan_table_problem(asked);
  const uint64_t *offsets = tarn_plan_table_offsets(answer);
  problem.capacities = &c->peer->capacity;
  problem.arena_count = 1;
  if (offsets == NULL || !is_same(&problem, tarn_plan_table_problem(answer))) {
    return fail(c, "a wrong plan", "its buffers are others");
  }
  if (tarn_plan_verify(&problem, offsets, NULL, &c->out->height) == TARN_OK) {
    return true;
  }
  return fail(c, "a wrong plan", tarn_last_error());
}

static bool check(const course *c) {
  tarn_plan_csv_options as_answer = {.struct_size = sizeof as_answer,
                                     .offsets_are_answers = true};
  tarn_plan_table *asked = NULL;
  tarn_plan_table *answer = NULL;
  bool right;
  if (tarn_plan_table_read(c->peer->input, NULL, &asked) != TARN_OK ||
      tarn_plan_table_read(c->peer->output, &as_answer, &answer) != TARN_OK) {
    right = fail(c, "its plan", tarn_last_error());
  } else {
    right = compare(c, asked, answer);
  }
  tarn_plan_table_destroy(asked);
  tarn_plan_table_destroy(answer);
  return right;
}

plan_peer_result plan_peer_run(const plan_peer *peer) {
  plan_peer_result result = {.seconds = NAN, .peak = NAN};
  course c = {.peer = peer, .out = &result};
  if (start(&c)) (void)check(&c);
  return result;
}
