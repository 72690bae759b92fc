"""Arrays out of the library's memory, and other libraries' arrays in."""
import array
import ctypes
import unittest

import kit
import libtarn
from libtarn._borrow import borrow, capsule_is


class Out(unittest.TestCase):
    def setUp(self):
        self.table = libtarn.Table((6, 3), "f32")
        self.addCleanup(self.table.close)

    def test_memoryview(self):
        view = memoryview(self.table.buffer)
        self.assertEqual((view.shape, view.nbytes, view.readonly),
                         ((6, 3), 72, False))
        view[2, 1] = 5.0
        self.assertEqual(memoryview(self.table.local.buffer)[2, 1], 5.0)
        view.release()

    def test_numpy_in_place(self):
        np = kit.module("numpy")
        a = np.asarray(self.table.local)
        a[1] = 3
        self.assertEqual((a.shape, a.dtype), ((6, 3), np.float32))
        self.assertEqual(self.table[1].tolist(), [3, 3, 3])
        self.assertTrue(a.flags.writeable)

    def test_numpy_by_dlpack(self):
        np = kit.module("numpy")
        self.table[1] = 4
        got = np.from_dlpack(self.table.local)
        self.assertEqual(got[1].tolist(), [4, 4, 4])
        self.assertEqual(got.ctypes.data, self.table.local.address)

    def test_torch_in_place(self):
        torch = kit.module("torch")
        got = torch.from_dlpack(self.table.local)
        got[1] = 3
        self.assertEqual(self.table.local.torch()[1].tolist(), [3, 3, 3])

    def test_capsules_are_versioned_where_asked_for(self):
        local = self.table.local
        for asked, name in ((None, b"dltensor"), ((0, 8), b"dltensor"),
                            ((1, 0), b"dltensor_versioned"),
                            ((2, 0), b"dltensor_versioned")):
            capsule = local.__dlpack__(max_version=asked)
            self.assertTrue(capsule_is(capsule, name), asked)
        del capsule
        self.assertEqual(local.__dlpack_device__(), (1, 0))

    def test_what_dlpack_cannot_say_is_refused(self):
        local = self.table.local
        with self.assertRaises(BufferError):
            local.__dlpack__(copy=True)
        with self.assertRaises(BufferError):
            local.__dlpack__(dl_device=(2, 0))
        with libtarn.Table((2, 2), "f32", place="sim:0") as t:
            with self.assertRaisesRegex(libtarn.Unsupported, "sim"):
                t.local.__dlpack__()

    def test_every_dtype(self):
        np = kit.module("numpy")
        for name in ("f64", "f32", "f16", "i64", "i32", "i16", "i8", "u64",
                     "u32", "u16", "u8", "bool"):
            with libtarn.Table((2, 2), name) as t:
                kind = t.dtype.numpy()
                self.assertEqual(np.asarray(t.local).dtype, kind)
                if name != "bool":  # NumPy 1.24 cannot
                    self.assertEqual(np.from_dlpack(t.local).dtype, kind)
                self.assertEqual(memoryview(t.buffer).itemsize,
                                 kind.itemsize)

    def test_bf16_with_torch(self):
        torch = kit.module("torch")
        with libtarn.Table((2, 2), torch.bfloat16) as t:
            t[1] = torch.tensor([1.5, 2], dtype=torch.bfloat16)
            self.assertEqual(t.local.torch()[1].tolist(), [1.5, 2])

    def test_no_rows(self):
        np = kit.module("numpy")
        with libtarn.Table((0, 3), "f32") as t:
            self.assertEqual(np.asarray(t.local).shape, (0, 3))
            self.assertEqual(memoryview(t.buffer).nbytes, 0)
            self.assertEqual(t[[]].shape, (0, 3))


class _Cuda:
    """An array of a GPU's library: it has __cuda_array_interface__ only."""

    def __init__(self, pointer):
        self.__cuda_array_interface__ = {
            "version": 3, "shape": (2, 2), "typestr": "<f4",
            "data": (pointer, False)}


class In(unittest.TestCase):
    def test_the_buffer_protocol(self):
        for given, name, shape in (
                (array.array("d", [1, 2]), "f64", (2,)),
                (array.array("l", [1, 2]), "i64", (2,)),
                (bytearray(3), "u8", (3,)), (b"abc", "u8", (3,)),
                ((ctypes.c_float * 3 * 2)(), "f32", (2, 3)),
                (memoryview(b"abcd").cast("B", (2, 2)), "u8", (2, 2))):
            got = borrow(given, "")
            self.assertEqual((got.dtype.name, got.shape), (name, shape))
            self.assertEqual(got.writable, not isinstance(
                given, (bytes, memoryview)))
        numbers = array.array("i", [5, 6])
        self.assertEqual(borrow(numbers, "").address,
                         numbers.buffer_info()[0])

    def test_numpy(self):
        np = kit.module("numpy")
        a = np.zeros((3, 4), np.int16)
        got = borrow(a[:, ::2], "")
        self.assertEqual((got.address, got.shape, got.strides),
                         (a.ctypes.data, (3, 2), (8, 4)))
        with self.assertRaisesRegex(ValueError, "big-endian"):
            borrow(a.astype(">i2"), "")
        a.flags.writeable = False
        self.assertFalse(borrow(a, "").writable)

    def test_torch(self):
        torch = kit.module("torch")
        for dtype in (torch.float32, torch.bfloat16, torch.int64):
            t = torch.zeros(2, 3, dtype=dtype)
            got = borrow(t, "")
            self.assertEqual((got.address, got.shape, got.dtype),
                             (t.data_ptr(), (2, 3), libtarn.dtype(dtype)))
        grad = torch.zeros(2, requires_grad=True)
        self.assertEqual(borrow(grad, "").address, grad.data_ptr())

    def test_cuda_arrays_name_their_device(self):
        try:
            libtarn.device("cuda:0")
        except libtarn.TarnError as error:
            with self.assertRaises(type(error)):
                borrow(_Cuda(4096), "")
            self.skipTest(f"no GPU: {error}")
        got = borrow(_Cuda(4096), "")
        self.assertEqual((got.place.name, got.address), ("cuda:0", 4096))

    def test_what_is_no_array_is_named(self):
        for given in (3.5, None, "text", object()):
            with self.assertRaisesRegex(ValueError, "is no array"):
                borrow(given, "")


if __name__ == "__main__":
    kit.main()
