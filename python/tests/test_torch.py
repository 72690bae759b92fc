"""With PyTorch: a module, and snapshots when memory runs out."""
import contextlib
import io
import os
import pickle
import tempfile
import unittest
from unittest import mock

import kit
import libtarn


def train(comm):
    import torch
    torch.manual_seed(1)
    users = libtarn.torch.Embedding(8, 4, "sgd", learning_rate=.5, std=0,
                                    kind="distributed")
    users(torch.tensor([comm.rank, 5])).sum().backward()
    users.step()
    comm.barrier()
    got = users.table.gather(torch.tensor([0, 1, 5, 6]))[:, 0].tolist()
    users.close()
    return got


class Module(unittest.TestCase):
    def setUp(self):
        self.torch = kit.module("torch")

    def test_gradients_are_sparse(self):
        torch = self.torch
        users = libtarn.torch.Embedding(100, 4, "sgd", learning_rate=1)
        self.addCleanup(users.close)
        before = users(torch.tensor([3, 7])).detach().clone()
        self.assertGreater(before.std(), .1)
        loss = (users(torch.tensor([[3], [7]])) * 2).sum()
        loss = loss + users(torch.tensor([3])).sum()
        loss.backward()
        grad = users.sparse_grad()
        self.assertTrue(grad.is_sparse)
        self.assertEqual(grad.shape, (100, 4))
        dense = grad.coalesce().to_dense()
        self.assertEqual(dense[:, 0].nonzero().flatten().tolist(), [3, 7])
        self.assertEqual(dense[[3, 7], 0].tolist(), [3, 2])
        users.step()
        after = users(torch.tensor([3, 7]))
        self.assertTrue(torch.allclose(before - after.detach(),
                                       torch.tensor([[3.], [2.]])))
        self.assertEqual(users.sparse_grad()._nnz(), 0)

    def test_it_is_as_torch_s_own(self):
        torch = self.torch
        ours = libtarn.torch.Embedding(20, 4, "sgd", learning_rate=.1)
        self.addCleanup(ours.close)
        own = torch.nn.Embedding(20, 4, sparse=True)
        with torch.no_grad():
            own.weight.copy_(ours(torch.arange(20)))
        sgd = torch.optim.SGD(own.parameters(), lr=.1)
        head = torch.nn.Linear(4, 1)
        for _ in range(5):
            ids = torch.randint(20, (6,))
            for module, step in ((ours, ours.step), (own, sgd.step)):
                module.zero_grad()
                head(module(ids)).pow(2).sum().backward()
                step()
        self.assertTrue(torch.allclose(ours(torch.arange(20)), own.weight,
                                       atol=1e-6))

    def test_a_step_of_ranks(self):
        for got in libtarn.spawn(train, 2):
            self.assertEqual(got, [-.5, -.5, -1, 0])


class StubObserver:
    """In place of torch.cuda's allocator, which is not here: keeps what is
    attached, and calls it as the allocator does when memory has run out."""

    def __init__(self, snapshot):
        self.snapshot = snapshot
        self.recording = None
        self.attached = []

    def record(self, enabled="all", **_):
        self.recording = enabled

    def attach(self, observer):
        self.attached.append(observer)

    def run_out(self, size):
        for observer in self.attached:
            observer(0, size, 1 << 34, 1 << 20)

    def stand_in(self, torch):
        stack = contextlib.ExitStack()
        for name, value in (("_snapshot", lambda: self.snapshot),
                            ("_record_memory_history", self.record)):
            stack.enter_context(mock.patch.object(torch.cuda.memory, name,
                                                  value, create=True))
        stack.enter_context(mock.patch.object(
            torch._C, "_cuda_attach_out_of_memory_observer", self.attach,
            create=True))
        return stack


class OutOfMemory(unittest.TestCase):
    def setUp(self):
        self.torch = kit.module("torch")
        from test_tool import snapshot
        self.stub = StubObserver(snapshot())

    def test_a_snapshot_is_written_and_told(self):
        with tempfile.TemporaryDirectory() as folder, \
                self.stub.stand_in(self.torch):
            path = os.path.join(folder, "oom-{pid}-{device}.pickle")
            detach = libtarn.torch.snapshot_on_oom(path)
            self.assertEqual(self.stub.recording, "all")
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                self.stub.run_out(123456)
            name = path.format(pid=os.getpid(), device=0)
            with open(name, "rb") as file:
                self.assertEqual(pickle.load(file), self.stub.snapshot)
            self.assertIn("has no 123456 bytes", said.getvalue())
            self.assertIn("model.py:7", said.getvalue())
            detach()
            self.assertIsNone(self.stub.recording)
            os.remove(name)
            self.stub.run_out(1)
            self.assertEqual(os.listdir(folder), [])

    def test_a_snapshot_that_cannot_be_written_is_told(self):
        with self.stub.stand_in(self.torch):
            libtarn.torch.snapshot_on_oom("/nowhere/oom.pickle")
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                self.stub.run_out(1)
        self.assertIn("no snapshot /nowhere/oom.pickle", said.getvalue())


if __name__ == "__main__":
    kit.main()
