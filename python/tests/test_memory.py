"""Pools, blocks and buffers."""
import gc
import unittest

import kit
import libtarn


class Pools(unittest.TestCase):
    def test_the_document_s_names(self):
        pool = libtarn.pool("cpu:0")
        usual = pool.stats.strategy
        libtarn.init_pool("cpu:0", "no_pool")
        self.assertEqual(pool.stats.strategy, "no_pool")
        libtarn.init_pool("cpu:0", "page_unit_pool")
        self.assertEqual(pool.stats.strategy, "page_unit_pool")
        libtarn.remove_pool("cpu")
        self.assertEqual(pool.stats.strategy, usual)
        with self.assertRaisesRegex(ValueError, "no_such"):
            libtarn.init_pool("cpu:0", "no_such")

    def test_blocks(self):
        with libtarn.Pool("host", "arena_pool", limit=1 << 20) as pool:
            with pool.alloc(1000, 256) as block:
                self.assertEqual(block.address % 256, 0)
                memoryview(block.buffer)[:3] = b"abc"
                self.assertEqual(bytes(memoryview(block.buffer)[:3]), b"abc")
                self.assertEqual(pool.stats.live_blocks, 1)
                with self.assertRaises(libtarn.StateError):
                    pool.close()
            self.assertEqual(pool.stats.live_blocks, 0)
            with self.assertRaises(MemoryError) as caught:
                pool.alloc(1 << 21)
            self.assertEqual(caught.exception.status, "TARN_FULL")
            with self.assertRaisesRegex(ValueError, "Pool.alloc"):
                pool.alloc(0)
            with self.assertRaisesRegex(libtarn.StateError, "closed"):
                block.array()
            pool.trim()

    def test_an_array_keeps_its_block(self):
        np = kit.module("numpy")
        with libtarn.Pool("host") as pool:
            block = pool.alloc(4096)
            view = np.asarray(block.array((4, 8), "f32"))
            tensor = np.from_dlpack(block.array((32,), "f32"))
            view[:] = 3
            block.close()
            del block
            gc.collect()
            self.assertEqual((pool.stats.live_blocks, tensor.sum()), (1, 96))
            del view
            self.assertEqual(pool.stats.live_blocks, 1)
            del tensor
            self.assertEqual(pool.stats.live_blocks, 0)

    def test_arrays_of_blocks_of_their_own(self):
        with libtarn.Pool("host") as pool:
            array = pool.array((4, 8), "i32")
            self.assertEqual((array.shape, array.nbytes), ((4, 8), 128))
            self.assertEqual(pool.stats.live_blocks, 1)
            del array
            self.assertEqual(pool.stats.live_blocks, 0)
            with pool.alloc(100) as block:
                with self.assertRaisesRegex(ValueError, "bytes"):
                    block.array((1000,), "f64")

    def test_a_block_that_is_collected_goes_back(self):
        with libtarn.Pool("host") as pool:
            block = pool.alloc(100)
            del block
            gc.collect()
            self.assertEqual(pool.stats.live_blocks, 0)

    def test_dry_runs(self):
        with libtarn.Pool("host", limit=1 << 40, dry=True) as pool:
            with pool.alloc(1 << 39):
                self.assertGreaterEqual(pool.stats.live_bytes, 1 << 39)


class Buffers(unittest.TestCase):
    def test_bytes_go_where_they_are_read(self):
        np = kit.module("numpy")
        with libtarn.Buffer((4, 8), "f32", name="batch") as b:
            with b.write("host") as a:
                a.numpy()[:] = 3
            self.assertEqual(b.info("sim:0").valid, 0)
            with b.read("sim:0") as a:
                self.assertFalse(a.place.host)
            self.assertEqual(b.info("sim:0").valid, 128)
            with b.write("sim:0", keep=True):
                pass
            self.assertEqual(b.info("host").valid, 0)
            with b.read() as a:
                self.assertEqual(np.asarray(a).sum(), 96)
                del a
            b.prefetch("sim:0")
            b.evict("sim:0")
            self.assertEqual(b.info("sim:0").memory, 0)

    def test_a_conflict_names_both_places(self):
        with libtarn.Buffer(16, name="batch") as b, b.write("host"):
            with self.assertRaisesRegex(libtarn.StateError, "Buffer.read"):
                b.read("sim:0").__enter__()

    def test_an_exception_discards_the_write(self):
        with libtarn.Buffer(4) as b:
            with b.write() as a:
                memoryview(a.buffer)[:] = b"good"
            with self.assertRaises(KeyError):
                with b.write("sim:0"):
                    raise KeyError
            with b.read() as a:
                self.assertEqual(bytes(a.buffer), b"good")

    def test_views_keep_it(self):
        np = kit.module("numpy")
        for make in (lambda a: a.numpy(), np.asarray, np.from_dlpack,
                     lambda a: memoryview(a.buffer)):
            b = libtarn.Buffer(64)
            with b.write() as a:
                view = make(a)
            del a
            with self.assertRaisesRegex(libtarn.StateError, "1 arrays"):
                b.close()
            with self.assertRaisesRegex(libtarn.StateError, "1 arrays"):
                b.evict("host")
            self.assertEqual(len(view), 64)
            del view
            b.close()

    def test_the_array_ends_with_the_access(self):
        with libtarn.Buffer(64) as b:
            with b.write() as a:
                pass
            with self.assertRaisesRegex(libtarn.StateError, "closed"):
                a.buffer

    def test_a_view_outlives_a_buffer_that_is_collected(self):
        np = kit.module("numpy")
        b = libtarn.Buffer(64)
        with b.write() as a:
            view = np.from_dlpack(a)
        live = libtarn.pool("host").stats.live_bytes
        del a, b
        gc.collect()
        self.assertEqual(libtarn.pool("host").stats.live_bytes, live)
        del view
        self.assertLess(libtarn.pool("host").stats.live_bytes, live)


if __name__ == "__main__":
    kit.main()
