// A program that is started, timed from outside, and whose answer is read.
#include "plan_peer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit/process.h"
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

// Its exit status. It is ended if it goes on long after its time.
static int run(const plan_peer *peer, process_use *out_use) {
  char input[WORD_SIZE];
  char output[WORD_SIZE];
  char capacity[64];
  char timeout[64];
  const char *words[] = {peer->program, input, capacity, timeout, output, NULL};
  process_spec spec = {
      .words = words, .out = PROCESS_NOWHERE, .err = PROCESS_NOWHERE};
  snprintf(input, sizeof input, "--input=%s", peer->input);
  snprintf(output, sizeof output, "--output=%s", peer->output);
  snprintf(capacity, sizeof capacity, "--capacity=%llu",
           (unsigned long long)peer->capacity);
  snprintf(timeout, sizeof timeout, "--timeout=%gs", peer->seconds);
  pid_t pid = process_start(&spec);
  return pid < 0 ? -1 : process_wait(pid, peer->seconds * 2 + 10, out_use);
}

static bool explain(const course *c, int status) {
  char end[PROCESS_TEXT_SIZE];
  char text[PROCESS_TEXT_SIZE + 8];
  if (status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 127) {
    return fail(c, c->peer->program, "it cannot be started");
  }
  snprintf(text, sizeof text, "it %s", process_explain(status, end));
  return fail(c, "no plan", text);
}

static bool start(const course *c) {
  process_use use = {0};
  (void)unlink(c->peer->output);
  int status = run(c->peer, &use);
  c->out->seconds = use.cpu;
  c->out->peak = use.peak;
  return process_did_well(status) || explain(c, status);
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
