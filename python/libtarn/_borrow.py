"""Arrays of other libraries, in place: their address, shape and type.

An object is read by the first of these that it has: __array_interface__ (NumPy),
__cuda_array_interface__ (CuPy, Numba), __dlpack__ (PyTorch, JAX), the buffer
protocol (bytes, array.array, memoryview). Nothing is copied.
"""
import ctypes
import sys

from ._dtypes import BY_CODE, dtype_of
from ._errors import InvalidArgument, Unsupported
from ._library import check, lib, struct
from ._places import place


class Borrowed:
    """Memory of |owner|: valid as long as this object."""
    __slots__ = ("address", "dtype", "shape", "strides", "writable", "place",
                 "owner")

    def __init__(self, address, dtype, shape, strides, writable, where, owner):
        self.address = address
        self.dtype = dtype
        self.shape = shape
        self.strides = strides  # bytes; None: compact
        self.writable = writable
        self.place = where
        self.owner = owner


def strides_of(shape, size):
    """Bytes between elements of each dimension of a compact array."""
    strides, step = [], size
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def is_compact(shape, strides, size):
    """Whether the elements follow one another in C order."""
    if strides is None:
        return True
    return all(length <= 1 or have == want for length, have, want
               in zip(shape, strides, strides_of(shape, size)))


# --- by protocol -------------------------------------------------------------

def _typed(typestr, array, call):
    if typestr in ("<V2", "|V2") and "bfloat16" in str(
            getattr(array, "dtype", "bfloat16")):
        return dtype_of("bf16")
    if typestr[0] == ">":
        raise InvalidArgument(f"elements {typestr} are big-endian",
                              "TARN_E_INVALID", call)
    return dtype_of(typestr, call)


def _of_interface(array, told, where, call):
    address, readonly = told["data"]
    return Borrowed(address, _typed(told["typestr"], array, call),
                    told["shape"], told.get("strides"), not readonly, where,
                    (array, told))


def _device_of(address, array):
    """A pointer of CUDA does not say its device: the array may."""
    number = getattr(getattr(array, "device", None), "id", 0)
    return place(f"cuda:{number}")


class _PyBuffer(ctypes.Structure):
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object),
                ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
                ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p),
                ("internal", ctypes.c_void_p)]


_LETTERS = {"l": "i64", "L": "u64", "c": "u8", "n": "i64", "N": "u64"}


def _of_memory(array, call):
    view = memoryview(array)
    buffer = _PyBuffer()
    ctypes.pythonapi.PyObject_GetBuffer(
        ctypes.py_object(view), ctypes.byref(buffer), 0)  # PyBUF_SIMPLE fails
    address = buffer.buf                                  # unless compact
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))
    letter = view.format.lstrip("@=<")
    for told in map(dtype_of, ("f64", "f32", "f16", "i64", "i32", "i16", "i8",
                               "u64", "u32", "u16", "u8", "bool")):
        if told.format == letter or _LETTERS.get(letter) == told.name:
            return Borrowed(address, told, view.shape, None, not view.readonly,
                            place("host"), view)
    raise InvalidArgument(f"elements of format {view.format!r}",
                          "TARN_E_INVALID", call)


# --- DLPack ------------------------------------------------------------------

_api = ctypes.pythonapi


def _capsule_pointer(capsule, name):
    get = _api.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object,
                                                  ctypes.c_char_p]
    return get(capsule, name)


def capsule_is(capsule, name):
    """Whether the capsule has that name."""
    is_valid = _api.PyCapsule_IsValid
    is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return bool(is_valid(capsule, name))


def _capsule_of(array):
    try:
        return array.__dlpack__(max_version=(1, 1))
    except TypeError:
        return array.__dlpack__()


def _of_dlpack(array, call):
    capsule = _capsule_of(array)
    view = struct("tarn_dlpack_view")()
    versioned = capsule_is(capsule, b"dltensor_versioned")
    if versioned:
        pointer = _capsule_pointer(capsule, b"dltensor_versioned")
        check(lib.tarn_dlpack_check_versioned(pointer, ctypes.byref(view)),
              call)
    else:
        pointer = _capsule_pointer(capsule, b"dltensor")
        check(lib.tarn_dlpack_check(pointer, ctypes.byref(view)), call)
    return _of_view(view, capsule, array)


def _of_view(view, capsule, array):
    """The capsule keeps its name: its own destructor ends the tensor."""
    name = ctypes.create_string_buffer(32)
    kind = ctypes.c_int()
    check(lib.tarn_dlpack_to_place(view.device, name, ctypes.byref(kind)),
          "from_dlpack")
    kinds = {0: "/host", 1: "", 2: "/unified"}
    where = name.value.decode() + kinds[kind.value]
    where = "host" if where.startswith("cpu:") else where
    dims = (ctypes.c_int64 * view.shape.rank).from_address(
        view.shape.dims or ctypes.addressof(ctypes.c_int64()))
    return Borrowed(view.address, BY_CODE[view.dtype], tuple(dims), None,
                    not view.flags & 1, place(where), (array, capsule))


# --- any ---------------------------------------------------------------------

def borrow(array, call):
    """The memory of |array|, which is an array of some library."""
    told = getattr(array, "__array_interface__", None)
    if told is not None:
        return _of_interface(array, told, place("host"), call)
    told = getattr(array, "__cuda_array_interface__", None)
    if told is not None:
        return _of_interface(array, told, _device_of(told["data"][0], array),
                             call)
    if hasattr(array, "__dlpack__"):
        if getattr(array, "requires_grad", False):
            array = array.detach()
        return _of_dlpack(array, call)
    try:
        return _of_memory(array, call)
    except (TypeError, BufferError):
        raise InvalidArgument(
            f"{type(array).__name__} is no array: it has none of "
            "__array_interface__, __cuda_array_interface__, __dlpack__ and "
            "the buffer protocol", "TARN_E_INVALID", call) from None


def numpy_of(call):
    """NumPy, for what cannot be done without it."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        try:
            import numpy
        except ImportError:
            raise Unsupported("this needs NumPy, which is not installed",
                              "TARN_E_UNSUPPORTED", call) from None
    return numpy


def is_numpy(array):
    """Whether |array| is one of NumPy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(array) is numpy.ndarray


def is_torch(array):
    """Whether |array| is a tensor of PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)
