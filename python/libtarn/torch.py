"""Tarn with PyTorch: libtarn.torch, loaded when it is first used."""
import os
import pickle
import sys

import torch

from ._embedding import Embedding as _Learner
from ._table import Table


class _Gather(torch.autograd.Function):
    """Rows of a table, whose gradients the module keeps."""

    @staticmethod
    def forward(ctx, anchor, module, ids):
        ctx.module, ctx.ids = module, ids
        return module.table.gather(ids)

    @staticmethod
    def backward(ctx, gradients):
        ctx.module._keep(ctx.ids, gradients)
        return None, None, None


class Embedding(torch.nn.Module):
    """An embedding in a table that ranks share, with sparse gradients.

        users = libtarn.torch.Embedding(rows, 64, "adam", learning_rate=.01)
        loss = model(users(ids)); loss.backward()
        users.step()                                  # all ranks

    forward(ids): ids.shape + (width,). backward keeps the gradients of the rows
    that were used; step() updates these rows by Tarn's optimizer, summed over
    all ranks. Making it, step() and close() are collectives.

    rows, width: of the table; dtype: of its elements; optimizer, options: of
    libtarn.Embedding; kind, place, partition, comm: of libtarn.Table.
    std: rows begin with a normal distribution of it; 0: with zeros.
    """

    def __init__(self, rows, width, optimizer="sgd", dtype=torch.float32, *,
                 kind="continuous", place="host", partition=None, name=None,
                 comm=None, std=1.0, **options):
        super().__init__()
        self.table = Table((rows, width), dtype, kind, place, partition, name,
                           comm=comm)
        self.learner = _Learner(self.table, optimizer, **options)
        self._anchor = torch.zeros((), requires_grad=True)
        self._kept = []
        if std:
            self._fill(std)

    def _fill(self, std):
        """Each rank its own rows, a part at a time."""
        first, count = self.table.rows_of(self.table.comm.rank)
        width = self.table.width
        step = max(1, (1 << 20) // width)
        for begin in range(first, first + count, step):
            ids = torch.arange(begin, min(begin + step, first + count))
            if self.table.kind != "distributed":
                self.table[ids] = torch.randn(len(ids), width) * std
            else:  # writes of others are collectives
                local = self.table.local.torch()
                local[ids - first] = (torch.randn(len(ids), width) * std).to(
                    local.dtype)
        self.table.comm.barrier()

    def forward(self, ids):
        """Rows |ids|, for autograd."""
        return _Gather.apply(self._anchor, self, ids)

    def _keep(self, ids, gradients):
        self._kept.append((ids.reshape(-1), gradients.detach().reshape(
            -1, self.table.width)))

    def sparse_grad(self):
        """The gradients since the last step: a sparse tensor (rows, width),
        not coalesced."""
        ids, gradients = self._gradients()
        return torch.sparse_coo_tensor(ids[None], gradients,
                                       self.table.shape)

    def _gradients(self):
        if not self._kept:
            return (torch.zeros(0, dtype=torch.int64),
                    torch.zeros(0, self.table.width))
        ids, gradients = zip(*self._kept)
        return torch.cat(ids), torch.cat(gradients)

    def zero_grad(self, set_to_none=True):
        """Forgets the gradients since the last step."""
        super().zero_grad(set_to_none)
        self._kept.clear()

    def step(self):
        """Updates the rows that were used since the last step. Collective."""
        self.learner.apply(*self._gradients())
        self._kept.clear()

    def close(self):
        """Ends optimizer and table. Collective."""
        self.learner.close()
        self.table.close()

    def extra_repr(self):
        return f"{self.table.shape[0]}, {self.table.width}, " \
               f"{self.learner.optimizer}"


# --- out of memory -----------------------------------------------------------

def snapshot_on_oom(path="oom-{pid}.pickle", report=True, entries=100_000):
    """Writes a snapshot when torch.cuda runs out of memory, and who held it.

    path:    of the snapshot, with {pid} and {device} in it; `tarn why` and
             `tarn view` read it.
    report:  `tarn why` of it goes to stderr.
    entries: of allocations that PyTorch remembers before.

    Records the history of allocations from now on, as
    torch.cuda.memory._record_memory_history does, and attaches an observer to
    PyTorch's allocator. Returns the function that detaches what can be: PyTorch
    keeps observers, so it turns this one off.
    """
    memory = torch.cuda.memory
    memory._record_memory_history(max_entries=entries)
    state = {"on": True}

    def observe(device, size, device_total, device_free):
        if not state["on"]:
            return
        name = path.format(pid=os.getpid(), device=device)
        try:
            with open(name, "wb") as file:
                pickle.dump(memory._snapshot(), file)
            _tell(name, device, size, device_free, report)
        except Exception as error:  # the program's own error comes next
            print(f"libtarn: no snapshot {name}: {error}", file=sys.stderr)

    torch._C._cuda_attach_out_of_memory_observer(observe)

    def detach():
        state["on"] = False
        memory._record_memory_history(enabled=None)
    return detach


def _tell(name, device, size, free, report):
    print(f"libtarn: cuda:{device} has no {size} bytes ({free} free); {name} "
          "has what was held", file=sys.stderr)
    if report:
        from ._tool import why
        print(why(name), file=sys.stderr)
