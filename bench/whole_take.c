// Python as a child of the first rank's process, with a program of a few lines.
#include "whole_take.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "kit/tool.h"
#include "talk.h"

_Static_assert((int)TALK_TEXT_SIZE == (int)WHOLE_TEXT_SIZE, "texts fit");

struct whole_take {
  talk *python;
};

// Time of the thread, as ours is. The same rows for every call, so that all is
// in the caches.
static const char program[] =
    "import sys, time\n"
    "try:\n"
    "    import numpy as np\n"
    "except ImportError:\n"
    "    sys.exit('NumPy is not installed')\n"
    "print('ready', flush=True)\n"
    "for line in sys.stdin:\n"
    "    size, rows, count, calls = map(int, line.split())\n"
    "    table = np.ones((rows, size // 4), np.float32)\n"
    "    at = np.random.default_rng(1).integers(0, rows, count)\n"
    "    out = np.zeros((count, size // 4), np.float32)\n"
    "    for i in range(3):\n"
    "        np.take(table, at, axis=0, out=out, mode='clip')\n"
    "    begin = time.thread_time_ns()\n"
    "    for i in range(calls):\n"
    "        np.take(table, at, axis=0, out=out, mode='clip')\n"
    "    end = time.thread_time_ns()\n"
    "    print('%.3f' % ((end - begin) / calls / 1e3), flush=True)\n";

static talk *run(const char *python, char *why) {
  const char *words[] = {python, "-c", program, NULL};
  const talk_spec spec = {.words = words,
                          .name = "python3",
                          .ready = "ready",
                          .end_signal = SIGKILL};
  return talk_start(&spec, why);
}

// A Python that comes before that of the system may lack NumPy. If both do,
// |why| is about the first.
static talk *run_any(char *why) {
  char second[WHOLE_TEXT_SIZE];
  const char *named = getenv("TARN_BENCH_PYTHON");
  if (named != NULL && *named != '\0') return run(named, why);
  talk *python = run("python3", why);
  return python != NULL ? python : run("/usr/bin/python3", second);
}

whole_take *whole_take_start(char *why) {
  talk *python = run_any(why);
  if (python == NULL) return NULL;
  why[0] = '\0';
  whole_take *take = tool_array(1, sizeof *take);
  take->python = python;
  return take;
}

bool whole_take_measure(whole_take *take, const whole_take_job *job,
                        double *out_us, char *why) {
  char line[TALK_LINE_SIZE];
  char *end = NULL;
  snprintf(line, sizeof line, "%zu %zu %zu %zu\n", job->row_bytes, job->rows,
           job->count, job->calls);
  if (!talk_ask(take->python, line, line, why)) return false;
  *out_us = strtod(line, &end);
  if (end != line && *end == '\0' && isfinite(*out_us) && *out_us > 0)
    return true;
  snprintf(why, WHOLE_TEXT_SIZE, "python3 says %.100s", line);
  return false;
}

void whole_take_stop(whole_take *take) {
  if (take == NULL) return;
  talk_stop(take->python, true);
  free(take);
}
