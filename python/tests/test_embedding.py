"""Tables that learn."""
import gc
import os
import tempfile
import unittest
import warnings

import kit
import libtarn
from libtarn._library import lib


def learn(comm):
    import numpy as np
    with libtarn.Table((10, 2), "f32") as t:
        with libtarn.Embedding(t, "sgd", learning_rate=1) as e:
            e.apply([3, comm.rank], np.ones((2, 2), np.float32))
            comm.barrier()
            return t[[0, 1, 3]][:, 0].tolist()


def drop(comm):
    """What is left of embeddings that each rank drops in its own order."""
    warnings.simplefilter("ignore", ResourceWarning)
    t = libtarn.Table((10, 2), "f32")
    libtarn.Embedding(t, "adam").close()
    before = lib.tarn_host_memory()
    kept = [libtarn.Embedding(t, name) for name in ("sgd", "adam", "rmsprop")]
    for turn in range(3):
        kept[(turn + comm.rank) % 3] = None
        gc.collect()
        comm.collect()
    left = lib.tarn_host_memory() - before
    t.close()
    return left


class Learning(unittest.TestCase):
    def setUp(self):
        self.np = kit.module("numpy")

    def test_sgd(self):
        np = self.np
        with libtarn.Table((10, 2), "f32") as t, \
                libtarn.Embedding(t, learning_rate=.5) as e:
            e.apply([1, 1, 2], np.ones((3, 2), np.float32))
            self.assertEqual(e[[0, 1, 2]][:, 0].tolist(), [0, -1, -.5])
            e.learning_rate = 2
            e.apply([2, -1], np.ones((2, 2), np.float32), missing="skip")
            self.assertEqual(t[2].tolist(), [-2.5, -2.5])
            with self.assertRaises(IndexError):
                e.apply([-1], np.ones((1, 2), np.float32))
            with self.assertRaisesRegex(ValueError, "shape"):
                e.apply([1], np.ones((1, 3), np.float32))

    def test_adam_as_torch_has_it(self):
        torch = kit.module("torch")
        weight = torch.zeros(4, 3, requires_grad=True)
        adam = torch.optim.SparseAdam([weight], lr=.01)
        with libtarn.Table((4, 3), "f32") as t, \
                libtarn.Embedding(t, "adam", learning_rate=.01) as e:
            for turn in range(3):
                ids = torch.tensor([1, 3, 1])
                rows = torch.randn(3, 3)
                weight.grad = torch.sparse_coo_tensor(ids[None], rows, (4, 3))
                adam.step()
                e.apply(ids, rows)
                # The first step of a row is the same in both.
                if turn == 0:
                    got = t[torch.arange(4)]
                    self.assertTrue(torch.allclose(got, weight, atol=1e-6))
            self.assertEqual(sorted(e.states),
                             ["exp_avg", "exp_avg_sq", "step"])

    def test_files(self):
        np = self.np
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "e.safetensors")
            with libtarn.Table((10, 2), "f32") as t, \
                    libtarn.Embedding(t, "adagrad") as e:
                e.apply([1], np.ones((1, 2), np.float32))
                e.store(path)
                kept = t[1]
            with libtarn.Table((10, 2), "f32") as t, \
                    libtarn.Embedding(t, "adagrad") as e:
                e.load(path)
                self.assertEqual(t[1].tolist(), kept.tolist())

    def test_what_is_wrong_is_named(self):
        with libtarn.Table((10, 2), "f32") as t:
            for arguments, text in ((("best",), "optimizer 'best'"),
                                    (("sgd",), "option 'speed'")):
                with self.assertRaisesRegex(ValueError, text):
                    libtarn.Embedding(t, *arguments, speed=1)

    def test_a_table_is_kept_by_its_embedding(self):
        with libtarn.Table((10, 2), "f32") as t:
            e = libtarn.Embedding(t)
            with self.assertRaisesRegex(libtarn.StateError, "embedding"):
                t.close()
            self.assertEqual(t.shape, (10, 2))
            e.close()

    def test_ranks(self):
        self.assertEqual(libtarn.spawn(learn, 2), [[-1, -1, -2]] * 2)

    def test_one_that_is_collected_ends(self):
        comm = libtarn.init()
        comm.collect()
        before = lib.tarn_host_memory()
        for optimizer in ("sgd", "adam"):
            t = libtarn.Table((10, 2), "f32")
            e = libtarn.Embedding(t, optimizer)
            with self.assertWarnsRegex(ResourceWarning,
                                       f"Embedding {optimizer}"):
                del e
                gc.collect()
            t.close()
            self.assertEqual(lib.tarn_host_memory(), before)

    def test_one_that_an_exception_leaves_ends_with_its_table(self):
        comm = libtarn.init()
        comm.collect()
        before = lib.tarn_host_memory()
        with self.assertRaises(KeyError):
            with libtarn.Table((10, 2), "f32") as t:
                with libtarn.Embedding(t, "adam"):
                    raise KeyError
        comm.collect()
        self.assertEqual(lib.tarn_host_memory(), before)

    def test_ranks_drop_embeddings_at_times_of_their_own(self):
        for left in libtarn.spawn(drop, 3):
            self.assertEqual(left, 0)


if __name__ == "__main__":
    kit.main()
