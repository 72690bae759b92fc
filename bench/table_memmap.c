// Python as a child that puts itself into a control group with the limit, of
// version 1 or 2, and removes it at the end.
#include "table_memmap.h"

#include <stdio.h>

#include "table_bench.h"
#include "talk_python.h"

_Static_assert((int)TALK_TEXT_SIZE == (int)TABLE_TEXT_SIZE, "texts fit");

enum { NUMBER_SIZE = 24 };

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

talk *table_memmap_start(const table_memmap_job *job, char *why) {
  char numbers[4][NUMBER_SIZE];
  const size_t values[] = {job->rows, job->row_bytes, job->memory, job->batch};
  for (size_t i = 0; i < 4; i++)
    snprintf(numbers[i], sizeof numbers[i], "%zu", values[i]);
  const char *const arguments[] = {job->path,  numbers[0], numbers[1],
                                   numbers[2], numbers[3], NULL};
  return talk_python_start(program, arguments, why);
}

bool table_memmap_measure(talk *memmap, double seconds, double *out_rows,
                          char *why) {
  char line[TALK_LINE_SIZE];
  snprintf(line, sizeof line, "%.3f\n", seconds);
  return talk_python_ask(memmap, line, out_rows, why);
}
