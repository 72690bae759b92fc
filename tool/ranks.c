// Ranks: children with a place each at one rendezvous.
//
//   all run ─► one has failed ─► grace is over ─► 2 s later ─► all have ended
//              (the others find   SIGTERM          SIGKILL
//               out by themselves)
//
// Everything that the tool holds closes on exec; a rank gets its own place by
// tarn_rendezvous_hand_over, and dies with the tool by its parent's death
// signal.
#include "ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "children.h"
#include "labels.h"

enum { TERM_MS = 2000, NAMED_MOST = 8 };

typedef enum ranks_stage {
  STAGE_RUNNING,  // none has failed
  STAGE_GRACE,    // one has
  STAGE_TERMINATED,
  STAGE_KILLED,
} ranks_stage;

typedef struct ranks {
  const ranks_plan *plan;
  tarn_rendezvous *rendezvous;
  child_set children;
  labels *labels;  // of none, unless the plan is labelled
  struct pollfd *polls;
  struct rlimit files;  // that the tool was started with
  pid_t launcher;
  ranks_stage stage;
  uint64_t deadline_ms;  // of the stage, unless it is RANKS_FOR_EVER
  tool_exit status;
} ranks;

typedef struct place {
  ranks *ranks;
  size_t rank;
} place;

static uint64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

// --- in a child ------------------------------------------------------------

// The signal comes if the tool dies from here on; it may have died before.
static void die_with(pid_t launcher) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(EXIT_FAILURE);
}

static bool take_place(const place *p) {
  static char variable[TARN_RENDEZVOUS_VARIABLE];
  if (tarn_rendezvous_hand_over(p->ranks->rendezvous, p->rank, variable,
                                sizeof variable) == TARN_OK) {
    return putenv(variable) == 0;
  }
  tool_say(p->ranks->plan->verb, "rank %zu: %s", p->rank, tarn_last_error());
  return false;
}

static void set_number(const char *name, uint64_t value) {
  char text[32];
  snprintf(text, sizeof text, "%llu", (unsigned long long)value);
  children_set(name, text);
}

static void set_environment(const place *p) {
  const ranks_plan *plan = p->ranks->plan;
  set_number("TARN_RANK", p->rank);
  set_number("TARN_SIZE", plan->count);
  if (plan->timeout_ms > 0)
    set_number("TARN_COMM_TIMEOUT_MS", plan->timeout_ms);
}

// One reader alone: with two, each would take a part of the input.
static bool take_stdin(const place *p) {
  if (p->rank == 0) return true;
  int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0) return true;
  tool_say(p->ranks->plan->verb, "/dev/null: %s", strerror(errno));
  return false;
}

static bool prepare(void *context) {
  const place *p = context;
  ranks *r = p->ranks;
  die_with(r->launcher);
  if (!take_place(p) || !take_stdin(p)) return false;
  set_environment(p);
  if (r->plan->labelled && !labels_redirect(r->labels, p->rank)) return false;
  setrlimit(RLIMIT_NOFILE, &r->files);
  return true;
}

// --- starting them ---------------------------------------------------------

// A rank takes two for its place, two for its pipes and one to hear of its end.
// Where more cannot be had, making them says so.
static void raise_files(ranks *r) {
  rlim_t needed = (rlim_t)r->plan->count * 5 + 64;
  getrlimit(RLIMIT_NOFILE, &r->files);
  struct rlimit more = r->files;
  if (more.rlim_cur >= needed) return;
  more.rlim_cur = needed < more.rlim_max ? needed : more.rlim_max;
  setrlimit(RLIMIT_NOFILE, &more);
}

// The exit status to give up with, after a message; 0: it runs.
static tool_exit start_rank(ranks *r, size_t rank) {
  const ranks_plan *plan = r->plan;
  place p = {r, rank};
  int error = plan->labelled ? labels_open(r->labels, rank) : 0;
  if (error != 0) {
    return tool_fail(plan->verb, "pipes of rank %zu: %s", rank,
                     strerror(error));
  }
  error = children_start(&r->children, plan->program, prepare, &p);
  if (plan->labelled) labels_let_go(r->labels, rank);
  return error != 0 ? children_say_not_run(plan->verb, plan->program[0], error)
                    : TOOL_DONE;
}

// If one rank cannot be started, the others have nothing to do.
static void give_up(ranks *r) {
  children_send(&r->children, SIGKILL);
  r->stage = STAGE_KILLED;
}

// When all have their places, the tool's own copy would only hide from them
// that one has left.
static void start_all(ranks *r) {
  for (size_t i = 0; r->status == TOOL_DONE && i < r->plan->count; i++)
    r->status = start_rank(r, i);
  tarn_rendezvous_destroy(r->rendezvous);
  r->rendezvous = NULL;
  if (r->status != TOOL_DONE) give_up(r);
}

// --- while they run --------------------------------------------------------

static void enter(ranks *r, ranks_stage stage, uint64_t wait_ms) {
  r->stage = stage;
  r->deadline_ms =
      wait_ms == RANKS_FOR_EVER ? RANKS_FOR_EVER : now_ms() + wait_ms;
}

static const child *first_failed(const ranks *r) {
  const child *first = NULL;
  for (size_t i = 0; i < r->children.count; i++) {
    const child *c = &r->children.all[i];
    if (c->pid != 0 || c->status == 0) continue;
    if (first == NULL || c->end < first->end) first = c;
  }
  return first;
}

static void say_failed(const ranks *r, const child *failed) {
  size_t rank = (size_t)(failed - r->children.all);
  if (r->plan->labelled) labels_drain(r->labels, rank);
  if (failed->signal != 0) {
    labels_say(r->labels, r->plan->verb, "rank %zu was ended by signal %d (%s)",
               rank, failed->signal, strsignal(failed->signal));
  } else {
    labels_say(r->labels, r->plan->verb, "rank %zu ended with exit status %d",
               rank, failed->status);
  }
}

static void judge(ranks *r) {
  const child *failed = first_failed(r);
  if (failed == NULL || r->stage != STAGE_RUNNING) return;
  uint64_t grace_s = r->plan->grace_s;
  r->status = (tool_exit)failed->status;
  say_failed(r, failed);
  enter(r, STAGE_GRACE,
        grace_s == RANKS_FOR_EVER ? RANKS_FOR_EVER : grace_s * 1000);
}

// "0, 2, 5 and 7 more".
static void name_left(const ranks *r, char *out, size_t size) {
  char number[32];
  size_t named = 0;
  out[0] = '\0';
  for (size_t i = 0; i < r->children.count && named < NAMED_MOST; i++) {
    if (r->children.all[i].pid == 0) continue;
    snprintf(number, sizeof number, "%zu", i);
    tool_append(out, size, named++ > 0 ? ", " : "", number);
  }
  if (r->children.left == named) return;
  snprintf(number, sizeof number, "%zu more", r->children.left - named);
  tool_append(out, size, " and ", number);
}

static void end_left(ranks *r, int signal) {
  char left[256];
  name_left(r, left, sizeof left);
  labels_say(r->labels, r->plan->verb, "rank%s %s still run%s: SIG%s",
             r->children.left > 1 ? "s" : "", left,
             r->children.left > 1 ? "" : "s", sigabbrev_np(signal));
  children_send(&r->children, signal);
}

static void advance(ranks *r) {
  if (r->stage == STAGE_RUNNING || now_ms() < r->deadline_ms) return;
  if (r->children.left == 0) return;
  if (r->stage == STAGE_GRACE) {
    end_left(r, SIGTERM);
    enter(r, STAGE_TERMINATED, TERM_MS);
  } else if (r->stage == STAGE_TERMINATED) {
    end_left(r, SIGKILL);
    enter(r, STAGE_KILLED, RANKS_FOR_EVER);
  }
}

static int poll_ms(const ranks *r) {
  if (r->stage == STAGE_RUNNING || r->deadline_ms == RANKS_FOR_EVER) return -1;
  uint64_t now = now_ms();
  uint64_t left = r->deadline_ms > now ? r->deadline_ms - now : 0;
  return left < 60000 ? (int)left : 60000;
}

// Waits until there is something to do.
static void await(ranks *r) {
  r->polls[0] = (struct pollfd){.fd = r->children.events, .events = POLLIN};
  size_t count = 1 + labels_watch(r->labels, r->polls + 1);
  if (poll(r->polls, count, poll_ms(r)) >= 0) return;
  nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);  // no memory
}

static void watch(ranks *r) {
  while (r->children.left > 0) {
    await(r);
    labels_attend(r->labels);
    if (children_attend(&r->children) > 0) judge(r);
    advance(r);
  }
}

// --- the whole -------------------------------------------------------------

static void run_all(ranks *r) {
  r->labels = labels_create(r->plan->labelled ? r->plan->count : 0);
  r->polls = tool_array(1 + labels_watched(r->labels), sizeof *r->polls);
  start_all(r);
  watch(r);
  children_end(&r->children);
  bool written = labels_finish(r->labels, r->plan->verb);
  if (!written && r->status == TOOL_DONE) r->status = TOOL_NO;
  labels_destroy(r->labels);
  free(r->polls);
}

tool_exit ranks_run(const ranks_plan *plan) {
  ranks r = {.plan = plan,
             .launcher = getpid(),
             .status = TOOL_DONE,
             .deadline_ms = RANKS_FOR_EVER};
  raise_files(&r);
  if (tarn_rendezvous_create(plan->count, &r.rendezvous) != TARN_OK)
    return tool_fail(plan->verb, "%s", tarn_last_error());
  int error = children_begin(&r.children, plan->count);
  if (error == 0) {
    run_all(&r);
  } else {
    r.status = tool_fail(plan->verb, "signals: %s", strerror(error));
    tarn_rendezvous_destroy(r.rendezvous);
  }
  return r.status;
}
