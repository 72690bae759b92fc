"""Caches of tables, and tables on disks."""
import gc
import os
import tempfile
import unittest

import kit
import libtarn


def on_disks(comm, folder):
    import numpy as np
    path = os.path.join(folder, "t")
    with libtarn.DiskTable(path, 1 << 22, (200, 8), "f32", "sgd", True,
                           options={"learning_rate": 1.0}) as t:
        t[[comm.rank]] = np.full((1, 8), 3, np.float32)
        t.embedding.apply([5, 5], np.ones((2, 8), np.float32))
        t.flush()
        t[[comm.rank]] = np.zeros((1, 8), np.float32)  # not flushed
    with libtarn.DiskTable(path, 1 << 22) as t:
        return (t.shape, t.dtype.name, t.info.epoch,
                t[[0, 1, 5]][:, 0].tolist(), t.embedding is not None)


class Caches(unittest.TestCase):
    def setUp(self):
        self.np = kit.module("numpy")

    def test_rows_that_are_read_again_are_there(self):
        np = self.np
        with libtarn.Table((1000, 4), "f32") as t:
            t[:] = np.arange(4000).reshape(1000, 4)
            with t.cache(rows=64) as cache:
                ids = np.array([3, 999, 3])
                for _ in range(3):
                    self.assertEqual(cache[ids][:, 0].tolist(),
                                     [12, 3996, 12])
                self.assertGreaterEqual(cache.stats.hits, 4)
                out = np.empty((3, 4), np.float32)
                self.assertIs(cache.prepare(ids, out)(), out)
                self.assertIs(cache.gather(ids, out=out), out)
                with self.assertRaises(IndexError):
                    cache[[-1]]
                with self.assertRaises(libtarn.StateError):
                    cache[[1]] = 0
                cache.drop([3])
                cache.drop()
                self.assertEqual(cache.stats.used, 0)
                cache.warm([1] * 10 + [0] * 990)
                self.assertEqual(cache.stats.used, 10)

    def test_what_is_written_comes_back(self):
        with libtarn.Table((1000, 4), "f32") as t:
            with t.cache(rows=64, write_back=True) as cache:
                cache[[3]] = 7
                self.assertEqual((t[3][0], cache[3][0]), (0, 7))
                cache.write_back()
                self.assertEqual(t[3][0], 7)

    def test_a_cache_keeps_its_table(self):
        t = libtarn.Table((1000, 4), "f32")
        cache = t.cache(bytes=1 << 16)
        with self.assertRaisesRegex(libtarn.StateError, "caches"):
            t.close()
        cache.close()
        t.close()
        with self.assertRaisesRegex(libtarn.StateError, "closed"):
            cache[[1]]

    def test_one_that_is_collected_ends(self):
        with libtarn.Table((1000, 4), "f32") as t:
            cache = t.cache(rows=64)
            cache.itself = cache
            del cache
            gc.collect()

    def test_what_is_wrong_is_named(self):
        with libtarn.Table((1000, 4), "f32") as t:
            with self.assertRaisesRegex(ValueError, "Cache: "):
                t.cache()


class Disks(unittest.TestCase):
    def test_what_was_flushed_is_there(self):
        kit.module("numpy")
        with tempfile.TemporaryDirectory() as folder:
            for got in libtarn.spawn(on_disks, 2, (folder,)):
                self.assertEqual(got, ((200, 8), "f32", 2, [3, 3, -4], True))

    def test_one_that_is_collected_is_closed_by_the_next(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t")
            t = libtarn.DiskTable(path, 1 << 22, (100, 8), "f32",
                                  optimizer="adam", create=True)
            t.flush()
            with self.assertWarnsRegex(ResourceWarning, "was not closed"):
                del t
                gc.collect()
            with libtarn.DiskTable(path, 1 << 22) as t:
                self.assertEqual(t.info.epoch, 2)

    def test_rows_have_no_address(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t")
            with libtarn.DiskTable(path, 1 << 22, (100, 8), "f32",
                                   create=True) as t:
                self.assertIsNone(t.embedding)
                with self.assertRaises(libtarn.Unsupported):
                    t.local
            with self.assertRaisesRegex(ValueError, "100"):
                libtarn.DiskTable(path, 1 << 22, (101, 8), "f32")
            with self.assertRaises(OSError):
                libtarn.DiskTable(path + "x", 1 << 22)


if __name__ == "__main__":
    kit.main()
