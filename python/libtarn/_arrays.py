"""Arrays of the library's memory, for other libraries to use in place."""
import ctypes
import sys

from ._borrow import capsule_is, strides_of
from ._errors import StateError, Unsupported
from ._library import address_of, check, end, lib, new, struct
from ._dtypes import dtype_of

_VERSIONED = b"dltensor_versioned"
_PLAIN = b"dltensor"
_empty = ctypes.c_double()
_nothing = ctypes.addressof(_empty)  # where arrays without elements are


class Counted:
    """What views keep alive: a tarn_counted, of which this object is a user.

    |end| is a function of C, which ends |handle| with the last user.
    """
    __slots__ = ("pointer", "__weakref__")

    def __init__(self, handle, size=0, end=None):
        pointer = ctypes.c_void_p()
        check(lib.tarn_counted_create(
            handle, size, _function("tarn_counted_end", end),
            ctypes.byref(pointer)), "view")
        self.pointer = pointer.value

    def views(self):
        """How many users there are besides this one."""
        _end_unused_capsules()
        return lib.tarn_counted_users(self.pointer) - 1

    def refuse_views(self, call):
        """StateError while there are views."""
        views = self.views()
        if views:
            raise StateError(f"{views} arrays of its memory are in use",
                             call=call)

    def release(self):
        """Ends this user: the last one, a view perhaps, ends the object."""
        pointer, self.pointer = self.pointer, None
        lib.tarn_counted_release(pointer)

    def close(self, call):
        """For the only user. StateError while there are views."""
        check(lib.tarn_counted_close(self.pointer), call)
        self.pointer = None

    def destroy(self, function, handle, call):
        """Ends |handle| by |function|, and the count with it; returns its
        error, as end() does. StateError while there are views."""
        self.refuse_views(call)
        error = end(function, handle, call)
        self.close(call)
        return error


def _function(kind, name):
    from ._library import callback
    return callback(kind)(address_of(name) if name else 0)


# --- capsules ----------------------------------------------------------------
#
# A capsule without a destructor: one of Python could be called when there is no
# interpreter any more. What nobody has taken is found at the next export.

_exported = []  # (capsule, pointer, its name)


def _references_of_one():
    """What getrefcount says of what a list has had alone."""
    exported = [(object(), 0, b"")]
    capsule, _, _ = exported.pop()
    return sys.getrefcount(capsule)


_ALONE = _references_of_one()


def _end_unused_capsules():
    kept = []
    while _exported:
        capsule, pointer, name = _exported.pop()
        if not capsule_is(capsule, name):
            continue  # taken: its new owner calls the deleter
        if sys.getrefcount(capsule) > _ALONE:
            kept.append((capsule, pointer, name))
        elif name == _VERSIONED:
            lib.tarn_dlpack_release_versioned(pointer)
        else:
            lib.tarn_dlpack_release(pointer)
    _exported.extend(kept)


def _capsule(pointer, name):
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = make(pointer, name, None)
    _exported.append((capsule, pointer, name))
    return capsule


# --- arrays ------------------------------------------------------------------

class Array:
    """Memory of a table, a block or a buffer, as elements of a shape.

    numpy.asarray(a), numpy.from_dlpack(a), torch.from_dlpack(a) and
    memoryview(a.buffer) use it in place. What they return keeps the memory
    alive. shape: lengths; dtype: a DType; place: a Place; address: of the first
    element; nbytes.
    """
    __slots__ = ("address", "shape", "dtype", "place", "_held", "_is_base",
                 "__weakref__")

    def __init__(self, counted, address, shape, dtype, where):
        self._held = None
        self._is_base = False  # of an array that NumPy has made of it
        lib.tarn_counted_hold(counted)
        self._held = counted
        self.address = address
        self.shape = tuple(shape)
        self.dtype = dtype_of(dtype)
        self.place = where

    def __del__(self):
        if self._held is not None:
            lib.tarn_counted_release(self._held)
            self._held = None

    def _end(self):
        """Of no use any more. What others have made of it stays."""
        if not self._is_base:
            self.__del__()

    def _again(self):
        """Another user of the same memory."""
        return Array(self._held, self.address, self.shape, self.dtype,
                     self.place)

    @property
    def size(self):
        """Elements."""
        count = 1
        for length in self.shape:
            count *= length
        return count

    @property
    def nbytes(self):
        """Bytes."""
        return self.size * self.dtype.size

    def __len__(self):
        return self.shape[0] if self.shape else 1

    def __repr__(self):
        return (f"libtarn.Array(shape={self.shape}, dtype={self.dtype.name}, "
                f"place={self.place.name!r})")

    # --- on the host ---

    def _on_host(self, call):
        if not self.place.host:
            raise Unsupported(f"the host cannot touch memory of "
                              f"{self.place.name}", "TARN_E_UNSUPPORTED", call)
        if self._held is None:
            raise StateError("it is closed", call=call)

    @property
    def __array_interface__(self):
        if not self.place.host:
            raise AttributeError("__array_interface__")
        self._on_host("__array_interface__")
        self._is_base = True
        return {"version": 3, "shape": self.shape,
                "typestr": self.dtype.typestr,
                "data": (self.address or _nothing, False),
                "strides": strides_of(self.shape, self.dtype.size)}

    @property
    def buffer(self):
        """A memoryview; of bf16 with elements "H"."""
        self._on_host("Array.buffer")
        if self.nbytes == 0:
            return memoryview(b"")
        held = (ctypes.c_ubyte * self.nbytes).from_address(self.address)
        held._array = self._again()
        letter = self.dtype.format
        letter = "H" if letter in (None, "e") else letter
        return memoryview(held).cast("B").cast(letter, self.shape or (1,))

    def numpy(self):
        """A numpy.ndarray of the same memory."""
        import numpy
        self._on_host("Array.numpy")
        return numpy.asarray(self._again()).view(self.dtype.numpy())

    # --- anywhere ---

    @property
    def __cuda_array_interface__(self):
        if not self.place.name.startswith("cuda:"):
            raise AttributeError("__cuda_array_interface__")
        return {"version": 3, "shape": self.shape,
                "typestr": self.dtype.typestr,
                "data": (self.address or 0, False), "strides": None}

    def torch(self):
        """A torch.Tensor of the same memory."""
        from torch.utils.dlpack import from_dlpack
        return from_dlpack(self)

    def __dlpack_device__(self):
        told = struct("tarn_dlpack_device")()
        check(lib.tarn_dlpack_from_place(self.place.struct,
                                         ctypes.byref(told)),
              "__dlpack_device__")
        return told.type, told.id

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None,
                   copy=None):
        """A capsule of DLPack 1.x where |max_version| asks for it.

        BufferError: a copy, or another device, is asked for.
        """
        device = self.__dlpack_device__()
        if copy or (dl_device is not None and tuple(dl_device) != device):
            raise BufferError("libtarn exports memory where it is")
        if self._held is None:
            raise StateError("it is closed", call="__dlpack__")
        _end_unused_capsules()
        versioned = max_version is not None and max_version[0] >= 1
        return _capsule(self._export(versioned),
                        _VERSIONED if versioned else _PLAIN)

    def _export(self, versioned):
        dims = (ctypes.c_int64 * len(self.shape))(*self.shape)
        shape = struct("tarn_shape")(ctypes.addressof(dims), len(self.shape))
        source = new("tarn_dlpack_source", place=self.place.struct,
                     address=self.address or 0, dtype=self.dtype.code,
                     shape=shape, owner=self._held,
                     release=_function("tarn_dlpack_release_fn",
                                       "tarn_counted_release"))
        export = (lib.tarn_dlpack_export_versioned if versioned
                  else lib.tarn_dlpack_export)
        managed = ctypes.c_void_p()
        lib.tarn_counted_hold(self._held)
        status = export(ctypes.byref(source), ctypes.byref(managed))
        if status:
            lib.tarn_counted_release(self._held)
        check(status, "__dlpack__")
        return managed.value
