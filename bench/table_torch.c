// Python as a child of the first rank, with a program of a few lines.
#include "table_torch.h"

#include <stdio.h>

#include "table_bench.h"
#include "talk_python.h"

_Static_assert((int)TALK_TEXT_SIZE == (int)TABLE_TEXT_SIZE, "texts fit");

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

talk *table_torch_start(char *why) {
  const char *const none[] = {NULL};
  return talk_python_start(program, none, why);
}

bool table_torch_step(talk *torch, const table_torch_job *job, double *out_ns,
                      char *why) {
  char line[TALK_LINE_SIZE];
  snprintf(line, sizeof line, "%s %zu %zu %zu\n", job->optimizer, job->rows,
           job->width, job->count);
  return talk_python_ask(torch, line, out_ns, why);
}
