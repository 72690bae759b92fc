"""Buffers that are valid at several places (tarn/synced.h)."""
import ctypes
import types

from ._arrays import Array, Counted
from ._closing import Closing
from ._dtypes import dtype_of
from ._errors import StateError
from ._library import (check, constant, lib, made_by, new, struct,
                       tell, text, values)
from ._places import place as place_of
from ._pool import shape_of, size_of

_ptr = ctypes.byref
_ALL = ctypes.c_size_t(-1).value


class Buffer(Closing):
    """One buffer with a copy at each place that uses it.

        b = libtarn.Buffer((1000, 64), "f32")
        with b.write("host") as a:
            a.numpy()[:] = batch
        with b.read("cuda:0") as a:       # the bytes that are missing there
            kernel(a.__cuda_array_interface__)

    shape: lengths; dtype: of an element; name: for texts.
    """

    def __init__(self, shape, dtype="u8", name=None):
        self._handle = self._counted = None
        self.shape = shape_of(shape)
        self.dtype = dtype_of(dtype, "Buffer")
        self._handle = made_by(
            lib.tarn_synced_create, "Buffer", size_of(self.shape, self.dtype),
            _ptr(new("tarn_synced_options", name=text(name))))
        self._counted = Counted(self._handle,
                                end="tarn_synced_destroy_counted")

    def _get(self, call):
        if self._handle is None:
            raise StateError("the buffer is closed", call=call)
        return self._handle

    def read(self, place="host"):
        """For `with`: an Array at |place|, to be read only."""
        return Access(self, place, "TARN_READ", "Buffer.read")

    def write(self, place="host", keep=False):
        """For `with`: an Array at |place|, all of which is to be written.

        keep: its bytes are copied there first, to be read and changed.
        An exception in the body discards what was written.
        """
        mode = "TARN_READ_WRITE" if keep else "TARN_WRITE_DISCARD"
        return Access(self, place, mode, "Buffer.write")

    def prefetch(self, place):
        """Makes the bytes valid at |place|."""
        check(lib.tarn_synced_prefetch(
            self._get("Buffer.prefetch"), 0, _ALL, place_of(place).struct,
            None, None), "Buffer.prefetch")

    def evict(self, place):
        """Frees its memory at |place|; the only copy goes to the host.

        StateError while arrays of the buffer are in use."""
        self._get("Buffer.evict")
        self._counted.refuse_views("Buffer.evict")
        check(lib.tarn_synced_evict(self._get("Buffer.evict"),
                                    place_of(place).struct), "Buffer.evict")

    def info(self, place="host"):
        """valid, memory, unwritten, ... in bytes (tarn_synced_info)."""
        told = new("tarn_synced_info")
        check(lib.tarn_synced_query(self._get("Buffer.info"), 0, _ALL,
                                    place_of(place).struct, _ptr(told)),
              "Buffer.info")
        return types.SimpleNamespace(**values(told))

    def close(self):
        """Frees all copies. StateError while arrays of it are in use."""
        if self._handle is None:
            return
        error = self._counted.destroy(lib.tarn_synced_destroy, self._handle,
                                      "Buffer.close")
        self._handle = self._counted = None
        tell(error)

    def __del__(self):
        counted, self._counted = getattr(self, "_counted", None), None
        if counted is not None:
            counted.release()


class Access:
    """A use of a buffer, by `with`; see Buffer.read and Buffer.write.

    The Array ends with it. What others have made of it keeps the memory, but
    is not to be used any more: other places have newer bytes then.
    """

    def __init__(self, buffer, place, mode, call):
        self._buffer = buffer
        self._place = place_of(place)
        self._mode = constant(mode)
        self._call = call
        self._access = None

    def __enter__(self):
        if self._access is not None:
            raise StateError("the access is open", call=self._call)
        access = struct("tarn_access")()
        check(lib.tarn_synced_begin(
            self._buffer._get(self._call), 0, _ALL, self._place.struct,
            self._mode, None, _ptr(access)), self._call)
        self._access = access  # stays where it is
        self._array = Array(self._buffer._counted.pointer, access.address,
                            self._buffer.shape, self._buffer.dtype,
                            self._place)
        return self._array

    def __exit__(self, kind, *_):
        access, self._access = self._access, None
        array, self._array = self._array, None
        array._end()
        if kind is None:
            check(lib.tarn_synced_end(_ptr(access)), self._call)
        else:
            check(lib.tarn_synced_cancel(_ptr(access), None), self._call)
