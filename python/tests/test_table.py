"""Tables of one rank: rows by index, files."""
import os
import tempfile
import unittest
from array import array

import kit
import libtarn


def filled(numpy, rows=100, width=8, dtype="f32", **options):
    t = libtarn.Table((rows, width), dtype, **options)
    t.local.numpy()[:] = numpy.arange(rows * width).reshape(rows, width)
    return t


class WithoutNumPy(unittest.TestCase):
    def test_rows_by_arrays_of_the_standard_library(self):
        with libtarn.Table((10, 2), "i32") as t:
            t[array("q", [3, 4])] = _Rows("i", [1, 2, 3, 4], (2, 2))
            out = _Rows("i", [0] * 4, (2, 2))
            self.assertIs(t.gather([4, 3], out=out), out)
            self.assertEqual(out.numbers.tolist(), [3, 4, 1, 2])

    def test_what_needs_numpy_says_so(self):
        rc, said, _ = kit.run(
            "import sys; sys.modules['numpy'] = None\n"
            "import libtarn\n"
            "t = libtarn.Table((4, 2), 'f32')\n"
            "try: t[[1]]\n"
            "except libtarn.Unsupported as error: print(error)\n"
            "print(t.local.shape, memoryview(t.buffer).nbytes)\n"
            "t.close()")
        self.assertEqual(rc, 0)
        self.assertEqual(said, "Table.gather: this needs NumPy, which is not "
                               "installed\n(4, 2) 32\n")


class _Rows:
    """An array of another library: it has __array_interface__, and no more."""

    def __init__(self, letter, numbers, shape):
        self.numbers = array(letter, numbers)
        self.shape = shape

    @property
    def __array_interface__(self):
        address, _ = self.numbers.buffer_info()
        return {"version": 3, "shape": self.shape, "typestr": "<i4",
                "data": (address, False)}


class Rows(unittest.TestCase):
    def setUp(self):
        self.np = kit.module("numpy")

    def test_gathers_as_numpy_takes(self):
        np = self.np
        for place in ("host", "cpu:0"):
            with filled(np, place=place) as t:
                have = t.local.numpy().copy()
                for ids in ([1, 99, 1], np.array([[0, 5], [7, 7]]), 3,
                            np.int32([4, 5]), np.uint8([200 % 100]),
                            np.array([9, 8, 7, 6])[::2], slice(2, 6), [],
                            range(3)):
                    where = np.r_[ids] if isinstance(ids, slice) else \
                        np.asarray(ids, np.int64)
                    got = t[ids]
                    self.assertEqual(got.shape, have[where].shape)
                    self.assertTrue((got == have[where]).all())

    def test_ids_that_are_no_rows(self):
        with filled(self.np) as t:
            for ids in ([-1], [3, 100], -1, 100, slice(-3, None),
                        slice(0, 101), self.np.array([-100]),
                        self.np.array([2**63], self.np.uint64)):
                for act in (lambda: t[ids],
                            lambda: t.__setitem__(ids, 0),
                            lambda: t.add_at(ids, self.np.float32(1))):
                    with self.assertRaises(IndexError) as caught:
                        act()
                    self.assertIsInstance(caught.exception, ValueError)
            self.assertEqual(t.local.numpy().sum(), 799 * 400)
            for ids in ([1.5], "no", [None], self.np.array([1.0]),
                        self.np.array([True])):
                with self.assertRaisesRegex(ValueError, "ids|None|no array"):
                    t[ids]

    def test_missing_rows_are_zeros_where_asked_for(self):
        with filled(self.np) as t:
            got = t.gather([-1, 100, 2], missing="zero")
            self.assertEqual(got.sum(axis=1).tolist(), [0, 0, 156])
            with self.assertRaisesRegex(ValueError, "missing"):
                t.gather([1], missing="drop")

    def test_out_dtype_and_strides(self):
        np = self.np
        with filled(np) as t:
            self.assertEqual(t.gather([1], dtype="f16").dtype, np.float16)
            wide = np.zeros((2, 16), np.float64)
            got = t.gather([1, 2], out=wide[:, :8])
            self.assertTrue((wide[:, :8] == t[[1, 2]]).all())
            self.assertEqual(wide[:, 8:].sum(), 0)
            self.assertIs(got.base, wide)
            for out, text in ((np.zeros((2, 9), np.float32), r"shape \(2, 9\)"),
                              (np.zeros((8, 2), np.float32).T, "C order"),
                              (np.zeros((2, 8), np.int32), "conversion")):
                with self.assertRaisesRegex(ValueError, text):
                    t.gather([1, 2], out=out)
            fixed = np.zeros((1, 8), np.float32)
            fixed.flags.writeable = False
            with self.assertRaisesRegex(ValueError, "read-only"):
                t.gather([1], out=fixed)

    def test_writes_and_sums(self):
        np = self.np
        with filled(np) as t:
            t[[1, 2]] = 7
            t[3] = np.arange(8)
            t[np.array([[4], [5]])] = np.ones((2, 1, 8))
            t.add_at([1, 1, 6], np.ones((3, 8), np.float32))
            t.add_at([2, -1], np.ones((2, 8), np.float32), missing="skip")
            have = t.local.numpy()
            self.assertEqual(have[1:6, 0].tolist(), [9, 8, 0, 1, 1])
            self.assertEqual(have[6, 0], 49)
            del have
            with self.assertRaisesRegex(ValueError, "shape|broadcast"):
                t[[1, 2]] = np.ones((3, 8))

    def test_a_prepared_gather(self):
        np = self.np
        with filled(np) as t:
            ids, out = np.array([1, 2]), np.empty((2, 8), np.float32)
            gather = t.prepare(ids, out)
            self.assertIs(gather(), out)
            self.assertEqual(out[:, 0].tolist(), [8, 16])
            ids[:] = [3, 4]
            t[3] = 0
            self.assertEqual(gather()[:, 0].tolist(), [0, 32])
            ids[0] = -1
            with self.assertRaises(IndexError):
                gather()
        with self.assertRaisesRegex(libtarn.StateError, "closed"):
            gather()

    def test_vectors_and_dtypes(self):
        np = self.np
        for name in ("f64", "f32", "f16", "i64", "i32", "i16", "i8", "u64",
                     "u32", "u16", "u8", "bool"):
            with libtarn.Table((5,), name) as t:
                self.assertEqual(t.shape, (5,))
                t[[1, 3]] = np.ones(2, t.dtype.numpy())
                self.assertEqual(t[[0, 1, 2, 3]].tolist(), [0, 1, 0, 1])
                self.assertEqual(t[1].shape, ())
        for given in ("float32", np.float32, np.dtype("f4"), "<f4"):
            self.assertEqual(libtarn.dtype(given).name, "f32")
        with self.assertRaisesRegex(ValueError, "complex64"):
            libtarn.Table((5,), np.complex64)

    def test_bf16(self):
        with libtarn.Table((4, 2), "bf16") as t:
            t[[1]] = self.np.float32([[1.5, -2]])
            got = t.gather([1], dtype="f32")
            self.assertEqual(got.tolist(), [[1.5, -2]])
            self.assertEqual(t.local.numpy().itemsize, 2)

    def test_bf16_of_ml_dtypes(self):
        ml_dtypes = kit.module("ml_dtypes")
        with libtarn.Table((4, 2), ml_dtypes.bfloat16) as t:
            t[[1]] = self.np.array([[1.5, -2]], ml_dtypes.bfloat16)
            self.assertEqual(t[[1]].dtype, ml_dtypes.bfloat16)
            self.assertEqual(t[[1]].astype("f4").tolist(), [[1.5, -2]])

    def test_options(self):
        with libtarn.Table((10, 2), "f32", "chunked", partition=[10],
                           name="users") as t:
            self.assertEqual(t.info.size, 80)
            self.assertEqual(t.info.kind, "chunked")
            self.assertEqual(t.rows_of(0), (0, 10))
            self.assertIn("users", repr(t))
        for wrong, text in ((dict(shape=(1, 2, 3)), "shape"),
                            (dict(kind="flat"), "kind 'flat'"),
                            (dict(partition=[3]), "partition"),
                            (dict(partition=[3, 4]), "1 ranks"),
                            (dict(place="nosuch:0"), "nosuch")):
            with self.assertRaisesRegex(ValueError, text):
                libtarn.Table(**{"shape": (10, 2), "dtype": "f32", **wrong})

    def test_no_room_is_a_memory_error(self):
        with self.assertRaises(MemoryError) as caught:
            libtarn.Table((1 << 50, 64), "f32")
        self.assertEqual(caught.exception.status, "TARN_FULL")

    def test_rows_of_a_simulated_device(self):
        with libtarn.Table((10, 2), "f32", place="sim:0") as t:
            t[[1]] = self.np.ones((1, 2), self.np.float32)
            self.assertEqual(t[[0, 1]].tolist(), [[0, 0], [1, 1]])
            self.assertFalse(hasattr(t.local, "__array_interface__"))
            with self.assertRaisesRegex(libtarn.Unsupported, "sim:0"):
                t.local.buffer

    def test_files(self):
        np = self.np
        with tempfile.TemporaryDirectory() as folder, filled(np) as t:
            path = os.path.join(folder, "t.npy")
            done = t.store(path)
            self.assertEqual(done.rows, 100)
            self.assertTrue((np.load(path) == t.local.numpy()).all())
            with libtarn.Table((100, 8), "f16") as other:
                other.load(path)
                self.assertEqual(other[[1]].tolist(), [list(range(8, 16))])
            with libtarn.Table((101, 8), "f32") as wrong:
                with self.assertRaisesRegex(ValueError, "100"):
                    wrong.load(path)
                with self.assertRaises(OSError) as caught:
                    wrong.load(path + ".npy")
                self.assertIn("t.npy.npy", str(caught.exception))


    def test_named_tables_in_a_file(self):
        np = self.np
        with tempfile.TemporaryDirectory() as folder, filled(np) as t:
            path = os.path.join(folder, "t.safetensors")
            with libtarn.Table((5,), "i64") as counts:
                counts[:] = np.arange(5)
                libtarn.store(path, {"rows": t, "counts": counts})
                counts[:] = 0
                libtarn.load(path, {"counts": counts})
                self.assertEqual(counts[:].tolist(), list(range(5)))
                with self.assertRaisesRegex(libtarn.TarnError, "missing"):
                    libtarn.load(path, {"missing": counts})


class Tensors(unittest.TestCase):
    def setUp(self):
        self.torch = kit.module("torch")

    def test_ids_and_rows_of_torch(self):
        torch = self.torch
        with libtarn.Table((10, 4), torch.float32) as t:
            t[torch.tensor([1, 2])] = torch.ones(2, 4)
            t.add_at(torch.tensor([1], dtype=torch.int32),
                     torch.ones(1, 4, requires_grad=True))
            got = t[torch.tensor([[1], [2]])]
            self.assertEqual(got.shape, (2, 1, 4))
            self.assertEqual(got[:, 0, 0].tolist(), [2, 1])
            out = torch.empty(2, 4, dtype=torch.bfloat16)
            self.assertIs(t.gather(torch.tensor([1, 2]), out=out), out)
            self.assertEqual(out[:, 0].tolist(), [2, 1])
            t[3] = torch.tensor(5.0)
            self.assertEqual(t.gather(torch.tensor([3]))[0, 0], 5)


if __name__ == "__main__":
    kit.main()
