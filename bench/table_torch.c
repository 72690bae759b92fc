// Python as a child of the first rank, with a program of a few lines.
#include "table_torch.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "kit/tool.h"
#include "table_bench.h"
#include "talk.h"

_Static_assert((int)TALK_TEXT_SIZE == (int)TABLE_TEXT_SIZE, "texts fit");

struct table_torch {
  talk *python;
};

// SGD takes gradients as they are: they are coalesced first, as the others do.
static const char program[] =
    "import sys, time\n"
    "try:\n"
    "    import torch\n"
    "    torch.set_num_threads(1)\n"
    "except (ImportError, AttributeError):\n"
    "    sys.exit('PyTorch is not installed')\n"
    "makers = {'sgd': torch.optim.SGD, 'adagrad': torch.optim.Adagrad,\n"
    "          'adam': torch.optim.SparseAdam}\n"
    "print('ready', flush=True)\n"
    "last = None\n"
    "for line in sys.stdin:\n"
    "    name, rows, width, count = line.split()\n"
    "    rows, width, count = int(rows), int(width), int(count)\n"
    "    def step():\n"
    "        at = torch.randint(rows, (1, count))\n"
    "        p.grad = torch.sparse_coo_tensor(at, g, (rows, width))\n"
    "        begin = time.perf_counter_ns()\n"
    "        if name == 'sgd':\n"
    "            p.grad = p.grad.coalesce()\n"
    "        o.step()\n"
    "        return time.perf_counter_ns() - begin\n"
    "    if line != last:\n"
    "        last = p = g = o = None\n"
    "        p = torch.nn.Parameter(torch.ones(rows, width))\n"
    "        g = torch.ones(count, width)\n"
    "        o = makers[name]([p], lr=.01)\n"
    "        step()\n"
    "        last = line\n"
    "    print(step(), flush=True)\n";

static talk *run(const char *python, char *why) {
  const char *words[] = {python, "-c", program, NULL};
  const talk_spec spec = {.words = words,
                          .name = "python3",
                          .ready = "ready",
                          .end_signal = SIGKILL};
  return talk_start(&spec, why);
}

// A Python that comes before that of the system may lack PyTorch.
static talk *run_any(char *why) {
  char second[TABLE_TEXT_SIZE];
  const char *named = getenv("TARN_BENCH_PYTHON");
  if (named != NULL && *named != '\0') return run(named, why);
  talk *python = run("python3", why);
  return python != NULL ? python : run("/usr/bin/python3", second);
}

table_torch *table_torch_start(char *why) {
  talk *python = run_any(why);
  if (python == NULL) return NULL;
  table_torch *t = tool_array(1, sizeof *t);
  t->python = python;
  return t;
}

bool table_torch_step(table_torch *t, const table_torch_job *job,
                      double *out_ns, char *why) {
  char line[TALK_LINE_SIZE];
  char *end = NULL;
  snprintf(line, sizeof line, "%s %zu %zu %zu\n", job->optimizer, job->rows,
           job->width, job->count);
  if (!talk_ask(t->python, line, line, why)) return false;
  *out_ns = strtod(line, &end);
  if (end != line && *end == '\0' && isfinite(*out_ns) && *out_ns > 0)
    return true;
  snprintf(why, TABLE_TEXT_SIZE, "python3 says %.100s", line);
  return false;
}

void table_torch_stop(table_torch *t) {
  if (t == NULL) return;
  talk_stop(t->python, true);
  free(t);
}
