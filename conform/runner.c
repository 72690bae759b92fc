// Runs the checks in child processes; each runs checks until one fails.
//
//   parent                     child
//     fork ------------------->  load the plug-in
//     set outcome  <-----------  message: the outcome of check 1
//     set outcome  <-----------  message: the outcome of check 2
//                                crash in check 3
//     check 3 failed: "crashed: SIGSEGV"
//     fork ------------------->  load the plug-in
//     set outcome  <-----------  message: the outcome of check 4 ...
//
// A message is a struct without pointers that travels through a pipe as it is.
// The time since the last one is the time that the running check has taken.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "worker.h"

// ---------------------------------------------------------------------------
// The side that keeps the findings
// ---------------------------------------------------------------------------

static void announce(const session *s) {
  if (s->request->progress == NULL) return;
  const char *what =
      s->next < s->count ? conform_name(s->order[s->next]) : "measuring";
  s->request->progress(s->request->context, what);
}

static void settle(session *s, const conform_outcome *outcome) {
  if (s->next < s->count) {
    conform_outcome *kept = &s->found->outcomes[s->order[s->next]];
    *kept = *outcome;
    if (s->request->strict && kept->level == CONFORM_QUIRK) {
      kept->result = CONFORM_FAIL;
    }
    s->found->ran[s->order[s->next]] = true;
  } else if (outcome->result == CONFORM_FAIL) {
    memcpy(s->found->unmeasured, outcome->detail, sizeof outcome->detail);
  }
  s->next++;
  announce(s);
}

static void refuse(session *s, conform_verdict verdict, const message *m) {
  s->verdict = verdict;
  memcpy(s->found->why, m->outcome.detail, sizeof s->found->why);
}

static void take_message(session *s, const message *m) {
  conform_findings *found = s->found;
  if (m->leaves) s->left = true;
  switch (m->kind) {
    case MESSAGE_FOUND:
      memcpy(found->origin, m->origin, sizeof found->origin);
      return;
    case MESSAGE_NO_PLUGIN:
      refuse(s, CONFORM_NO_PLUGIN, m);
      return;
    case MESSAGE_LOADED:
      memcpy(found->type, m->type, sizeof found->type);
      return;
    case MESSAGE_NO_DEVICE:
      refuse(s, CONFORM_NO_DEVICE, m);
      return;
    case MESSAGE_OUTCOME:
    case MESSAGE_MEASURED:
      found->devices = m->devices;
      settle(s, &m->outcome);
      return;
    case MESSAGE_COPY:
      found->copies[found->copy_count++] = m->copy;
      return;
    case MESSAGE_ALLOCATION:
      found->allocations[found->allocation_count++] = m->allocation;
      return;
  }
}

// Skips what makes no sense after a check that failed.
static void skip_hopeless(session *s) {
  const char *why = NULL;
  while (s->next < s->count &&
         (why = worker_find_hopeless(s, s->order[s->next])) != NULL) {
    size_t index = s->order[s->next++];
    s->found->ran[index] = true;
    snprintf(s->found->outcomes[index].detail, CONFORM_DETAIL_SIZE, "%s", why);
  }
}

static bool is_over(const session *s) {
  if (s->verdict != CONFORM_DONE) return true;
  if (s->next < s->count) return false;
  bool hopeless =
      s->found->outcomes[conform_accepted()].result == CONFORM_FAIL ||
      s->found->outcomes[conform_initialized()].result == CONFORM_FAIL;
  return s->next > s->count || hopeless || !s->request->measures;
}

// ---------------------------------------------------------------------------
// In this process
// ---------------------------------------------------------------------------

static void hand_over(void *context, const message *m) {
  take_message(context, m);
}

static void run_here(session *s) {
  worker_run(s, (sender){hand_over, s}, true);
}

// ---------------------------------------------------------------------------
// In a child
// ---------------------------------------------------------------------------

static void write_message(void *context, const message *m) {
  const char *bytes = (const char *)m;
  size_t left = sizeof *m;
  while (left > 0) {
    ssize_t written = write(*(int *)context, bytes, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(EXIT_FAILURE);  // the parent has gone
    bytes += written;
    left -= (size_t)written;
  }
}

// What crashes is to die of it: neither a handler of a sanitizer nor a core
// file is wanted.
static void become_child(void) {
  static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++)
    signal(deadly[i], SIG_DFL);
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  struct rlimit none = {0, 0};
  (void)setrlimit(RLIMIT_CORE, &none);
}

static _Noreturn void run_child(const session *s, int fd) {
  become_child();
  worker_run(s, (sender){write_message, &fd}, false);
  fflush(stdout);  // the plug-in's output
  _exit(EXIT_SUCCESS);
}

// ---------------------------------------------------------------------------
// Watching a child
// ---------------------------------------------------------------------------

// True: a whole message. False: the child has gone, or its time is up.
static bool read_message(int fd, uint64_t deadline_ns, message *out) {
  char *bytes = (char *)out;
  size_t used = 0;
  while (used < sizeof *out) {
    uint64_t now = tarn__os_now_ns();
    if (now >= deadline_ns) return false;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    int ready = poll(&wait, 1, (int)((deadline_ns - now) / 1000000 + 1));
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    ssize_t got = read(fd, bytes + used, sizeof *out - used);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    used += (size_t)got;
  }
  return true;
}

static int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return status;
}

static const char *signal_name(int number) {
  static const struct {
    int number;
    const char *name;
  } names[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
               {SIGILL, "SIGILL"},   {SIGABRT, "SIGABRT"}, {SIGTRAP, "SIGTRAP"},
               {SIGSYS, "SIGSYS"},   {SIGTERM, "SIGTERM"}, {SIGKILL, "SIGKILL"},
               {SIGPIPE, "SIGPIPE"}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (names[i].number == number) return names[i].name;
  }
  return "a signal";
}

static uint64_t timeout_ns(const session *s) {
  unsigned seconds = s->request->timeout_s;
  return (uint64_t)(seconds != 0 ? seconds : CONFORM_TIMEOUT_S) * 1000000000u;
}

// How a child that did not say that it leaves came to its end.
static conform_outcome explain(const session *s, int status, bool late) {
  conform_outcome outcome = {.result = CONFORM_FAIL, .level = CONFORM_FAULT};
  char *out = outcome.detail;
  if (late && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
    snprintf(out, CONFORM_DETAIL_SIZE, "did not return within %u s",
             (unsigned)(timeout_ns(s) / 1000000000u));
  } else if (WIFSIGNALED(status)) {
    snprintf(out, CONFORM_DETAIL_SIZE, "crashed: %s",
             signal_name(WTERMSIG(status)));
  } else {
    snprintf(out, CONFORM_DETAIL_SIZE, "ended the process with status %d",
             WEXITSTATUS(status));
  }
  return outcome;
}

// Listens to a child until it has gone.
static void watch(session *s, pid_t pid, int fd) {
  message m;
  uint64_t deadline = tarn__os_now_ns() + timeout_ns(s);
  while (read_message(fd, deadline, &m)) {
    take_message(s, &m);
    deadline = tarn__os_now_ns() + timeout_ns(s);
  }
  bool late = tarn__os_now_ns() >= deadline;
  bool over = s->left || is_over(s);
  if (late || over) kill(pid, SIGKILL);
  int status = wait_for(pid);
  if (over) return;
  conform_outcome outcome = explain(s, status, late);
  settle(s, &outcome);
}

static bool run_one_child(session *s) {
  int ends[2];
  s->left = false;
  if (pipe(ends) != 0) return false;
  pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    run_child(s, ends[1]);
  }
  close(ends[1]);
  if (pid > 0) watch(s, pid, ends[0]);
  close(ends[0]);
  return pid > 0;
}

// ---------------------------------------------------------------------------
// A whole run
// ---------------------------------------------------------------------------

conform_findings *conform_findings_create(void) {
  conform_findings *found = calloc(1, sizeof *found);
  if (found == NULL) return NULL;
  found->outcomes = calloc(conform_count(), sizeof *found->outcomes);
  found->ran = calloc(conform_count(), sizeof *found->ran);
  if (found->outcomes != NULL && found->ran != NULL) return found;
  conform_findings_destroy(found);
  return NULL;
}

void conform_findings_destroy(conform_findings *findings) {
  if (findings == NULL) return;
  free(findings->outcomes);
  free(findings->ran);
  free(findings);
}

size_t conform_tally(const conform_findings *findings, conform_result result) {
  size_t count = 0;
  for (size_t i = 0; i < conform_count(); i++)
    count += findings->ran[i] && findings->outcomes[i].result == result;
  return count;
}

size_t conform_tally_level(const conform_findings *findings,
                           conform_level level) {
  size_t count = 0;
  for (size_t i = 0; i < conform_count(); i++)
    count += findings->ran[i] && findings->outcomes[i].level == level;
  return count;
}

static bool is_wanted(const conform_request *request, size_t index) {
  return request->wanted == NULL || request->wanted[index];
}

// Without the two that all others rest on, none can be understood.
static size_t make_order(const conform_request *request, size_t *out) {
  size_t count = 0;
  for (size_t i = 0; i < conform_count(); i++) {
    if (is_wanted(request, i) || i == conform_accepted() ||
        i == conform_initialized()) {
      out[count++] = i;
    }
  }
  return count;
}

// They are reported only if they failed, or were named.
static void forget_unwanted(const conform_request *request,
                            conform_findings *found) {
  for (size_t i = 0; i < conform_count(); i++) {
    if (is_wanted(request, i)) continue;
    found->ran[i] = found->outcomes[i].result == CONFORM_FAIL;
  }
}

static bool run_session(session *s) {
  announce(s);
  while (!is_over(s)) {
    size_t before = s->next;
    if (s->request->in_process) {
      run_here(s);
      s->next = s->next == before ? s->count + 1 : s->next;
    } else if (!run_one_child(s)) {
      return false;
    }
    skip_hopeless(s);
  }
  return true;
}

conform_verdict conform_run(const conform_request *request,
                            conform_findings *found) {
  size_t *order = calloc(conform_count(), sizeof *order);
  if (order == NULL) return CONFORM_NO_PLUGIN;
  session s = {.request = request, .found = found, .order = order};
  s.count = make_order(request, order);
  if (!run_session(&s)) {
    s.verdict = CONFORM_NO_PLUGIN;
    snprintf(found->why, sizeof found->why, "no process to run checks in: %s",
             strerror(errno));
  }
  forget_unwanted(request, found);
  free(order);
  return s.verdict;
}

bool conform_type_of(const char *path, unsigned timeout_s, char *out,
                     char *why) {
  conform_request request = {.path = path, .timeout_s = timeout_s};
  conform_findings *found = conform_findings_create();
  size_t order[] = {conform_accepted()};
  session s = {.request = &request, .found = found, .order = order, .count = 1};
  *out = '\0';
  if (found == NULL || !run_session(&s)) {
    snprintf(why, CONFORM_DETAIL_SIZE, "no process to look at it in");
  } else {
    snprintf(out, CONFORM_TYPE_SIZE, "%s", found->type);
    bool refused = s.verdict == CONFORM_DONE;
    snprintf(why, CONFORM_DETAIL_SIZE, "%s",
             refused ? found->outcomes[order[0]].detail : found->why);
  }
  conform_findings_destroy(found);
  return *out != '\0';
}
