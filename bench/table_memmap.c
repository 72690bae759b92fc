// Python as a child that puts itself into a control group with the limit, of
// version 1 or 2, and removes it at the end.
#include "table_memmap.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "kit/tool.h"
#include "table_bench.h"
#include "talk.h"

_Static_assert((int)TALK_TEXT_SIZE == (int)TABLE_TEXT_SIZE, "texts fit");

enum { NUMBER_SIZE = 24 };

struct table_memmap {
  talk *python;
};

// The name after the end of a process may be one that is in use: it has the
// process's number.
static const char program[] =
    "import mmap, os, sys, time\n"
    "try:\n"
    "    import numpy as np\n"
    "except ImportError:\n"
    "    sys.exit('NumPy is not installed')\n"
    "path = sys.argv[1]\n"
    "rows, size, memory, batch = map(int, sys.argv[2:6])\n"
    "def say(folder, name, value):\n"
    "    with open(os.path.join(folder, name), 'w') as file:\n"
    "        file.write(str(value))\n"
    "def resident():\n"
    "    with open('/proc/self/statm') as file:\n"
    "        return int(file.read().split()[1]) * mmap.PAGESIZE\n"
    "def make_group():\n"
    "    for root, limit in (('/sys/fs/cgroup/memory',\n"
    "                         'memory.limit_in_bytes'),\n"
    "                        ('/sys/fs/cgroup', 'memory.max')):\n"
    "        group = os.path.join(root, 'tarn-bench-%d' % os.getpid())\n"
    "        try:\n"
    "            os.mkdir(group)\n"
    "        except OSError:\n"
    "            continue\n"
    "        if os.path.exists(os.path.join(group, limit)):\n"
    "            return root, group, limit\n"
    "        os.rmdir(group)\n"
    "    sys.exit('no control group for memory can be made')\n"
    "root, group, limit = make_group()\n"
    "try:\n"
    "    draw = np.random.default_rng(1)\n"
    "    out = np.ones((batch, size), np.uint8)\n"
    "    table = np.memmap(path, np.uint8, 'r', shape=(rows, size))\n"
    "    table._mmap.madvise(mmap.MADV_RANDOM)\n"
    "    say(group, limit, memory + resident())\n"
    "    say(group, 'cgroup.procs', os.getpid())\n"
    "    print('ready', flush=True)\n"
    "    for line in sys.stdin:\n"
    "        seconds = float(line)\n"
    "        count = 0\n"
    "        begin = now = time.monotonic()\n"
    "        while now < begin + seconds:\n"
    "            at = draw.integers(0, rows, batch)\n"
    "            np.take(table, at, axis=0, out=out, mode='clip')\n"
    "            count += batch\n"
    "            now = time.monotonic()\n"
    "        print('%.3f' % (count / (now - begin)), flush=True)\n"
    "finally:\n"
    "    say(root, 'cgroup.procs', os.getpid())\n"
    "    os.rmdir(group)\n";

static talk *run(const char *python, const table_memmap_job *job, char *why) {
  char numbers[4][NUMBER_SIZE];
  const size_t values[] = {job->rows, job->row_bytes, job->memory, job->batch};
  for (size_t i = 0; i < 4; i++)
    snprintf(numbers[i], sizeof numbers[i], "%zu", values[i]);
  const char *words[] = {python,     "-c",       program,
                         job->path,  numbers[0], numbers[1],
                         numbers[2], numbers[3], NULL};
  const talk_spec spec = {.words = words,
                          .name = "python3",
                          .ready = "ready",
                          .end_signal = SIGKILL};
  return talk_start(&spec, why);
}

// A Python that comes before that of the system may lack NumPy. If both do,
// |why| is about the first.
static talk *run_any(const table_memmap_job *job, char *why) {
  char second[TABLE_TEXT_SIZE];
  const char *named = getenv("TARN_BENCH_PYTHON");
  if (named != NULL && *named != '\0') return run(named, job, why);
  talk *python = run("python3", job, why);
  return python != NULL ? python : run("/usr/bin/python3", job, second);
}

table_memmap *table_memmap_start(const table_memmap_job *job, char *why) {
  talk *python = run_any(job, why);
  if (python == NULL) return NULL;
  table_memmap *memmap = tool_array(1, sizeof *memmap);
  memmap->python = python;
  return memmap;
}

bool table_memmap_measure(table_memmap *memmap, double seconds,
                          double *out_rows, char *why) {
  char line[TALK_LINE_SIZE];
  char *end = NULL;
  snprintf(line, sizeof line, "%.3f\n", seconds);
  if (!talk_ask(memmap->python, line, line, why)) return false;
  *out_rows = strtod(line, &end);
  if (end != line && *end == '\0' && isfinite(*out_rows) && *out_rows > 0)
    return true;
  snprintf(why, TABLE_TEXT_SIZE, "python3 says %.100s", line);
  return false;
}

void table_memmap_stop(table_memmap *memmap) {
  if (memmap == NULL) return;
  talk_stop(memmap->python, false);
  free(memmap);
}
