// The line of progress, and the signal that ends a search.
#include "plan_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "kit/format.h"

enum { LINE_SIZE = 4 * FORMAT_SIZE + 64 };

static const double on_terminal_seconds = 0.1;
static const double in_file_seconds = 5;

// Set by the handler, read by the search's calls.
static volatile sig_atomic_t interrupted;

static void on_interrupt(int number) {
  (void)number;
  interrupted = 1;
}

// A tool that was started with SIGINT ignored, as a background job is, stays
// so.
void plan_progress_begin(plan_progress *progress) {
  struct sigaction once = {.sa_handler = on_interrupt,
                           .sa_flags = (int)SA_RESETHAND | SA_RESTART};
  interrupted = 0;
  progress->is_terminal = isatty(STDERR_FILENO) == 1;
  progress->is_shown = false;
  progress->next = progress->is_terminal ? 0 : in_file_seconds;
  sigemptyset(&once.sa_mask);
  (void)sigaction(SIGINT, NULL, &progress->then);
  if (progress->then.sa_handler != SIG_IGN) {
    (void)sigaction(SIGINT, &once, NULL);
  }
}

void plan_progress_end(plan_progress *progress) {
  (void)sigaction(SIGINT, &progress->then, NULL);
  if (progress->is_shown) fputs("\r\033[K", stderr);
  progress->is_shown = false;
}

// "best 1.02 MiB, bound 1.00 MiB (+2.0%), 12,345 nodes, 3 s"
static void describe(const tarn_plan_progress *state, char *out) {
  char best[FORMAT_SIZE] = "none yet", bound[FORMAT_SIZE], nodes[FORMAT_SIZE];
  char over[FORMAT_SIZE] = "";
  if (state->height > 0) format_bytes(best, state->height);
  if (state->height > 0 && state->lower_bound > 0) {
    double ratio = (double)state->height / (double)state->lower_bound;
    snprintf(over, sizeof over, " (+%.2f%%)", 100 * (ratio - 1));
  }
  snprintf(out, LINE_SIZE, "best %s, bound %s%s, %s nodes, %" PRIu64 " s", best,
           format_bytes(bound, state->lower_bound), over,
           format_count(nodes, state->nodes), (uint64_t)state->seconds);
}

bool plan_progress_tell(const tarn_plan_progress *state, void *user) {
  plan_progress *progress = user;
  char line[LINE_SIZE];
  if (interrupted) return false;
  if (state->seconds < progress->next) return true;
  describe(state, line);
  if (progress->is_terminal) {
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
    progress->is_shown = true;
    progress->next = state->seconds + on_terminal_seconds;
  } else {
    tool_say(progress->verb, "%s", line);
    progress->next = state->seconds + in_file_seconds;
  }
  return true;
}
