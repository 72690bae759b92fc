// Python as a child of the first rank's process, with a program of a few lines.
#include "whole_take.h"

#include <stdio.h>

#include "talk_python.h"

_Static_assert((int)TALK_TEXT_SIZE == (int)WHOLE_TEXT_SIZE, "texts fit");

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

talk *whole_take_start(char *why) {
  const char *const none[] = {NULL};
  return talk_python_start(program, none, why);
}

bool whole_take_measure(talk *take, const whole_take_job *job, double *out_us,
                        char *why) {
  char line[TALK_LINE_SIZE];
  snprintf(line, sizeof line, "%zu %zu %zu %zu\n", job->row_bytes, job->rows,
           job->count, job->calls);
  return talk_python_ask(take, line, out_us, why);
}
