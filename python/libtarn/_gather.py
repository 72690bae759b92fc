"""Rows by index: what tables and caches of them have in common."""
import ctypes

from ._borrow import is_numpy, is_torch, numpy_of
from ._dtypes import dtype_of
from ._errors import InvalidArgument
from ._library import check, constant, fail, new
from ._rows import Dense, Ids, SKIP_BAD, request

_ptr = ctypes.byref


def flags_of(missing, call):
    if missing is None:
        return 0
    if missing == "zero":
        return SKIP_BAD
    raise InvalidArgument(f'missing is "zero" or None, not {missing!r}',
                          "TARN_E_INVALID", call)


class Rows:
    """Reads and writes rows. A class of it has shape, width, dtype; _row, the
    shape of a row; _counted, None when it is closed; and _by(writes, call): the
    function and its first argument."""

    _quick = None  # a gather of the usual arrays of NumPy, once there were any

    def gather(self, ids, out=None, dtype=None, missing=None):
        """Rows |ids|: ids.shape + (width,).

        out:     an array of that many rows, at any place, of any dtype that
                 converts; it is returned. None: a new array, of PyTorch if ids
                 are a tensor of it, else of NumPy.
        dtype:   of the new array; None: the table's.
        missing: "zero": an id without a row, also a negative one, gives zeros.
                 None: it is an InvalidIndex.
        """
        call = f"{type(self).__name__}.gather"
        quick = self._quick
        if quick is not None and missing is None:
            room = out
            if out is None and dtype is None and is_numpy(ids):
                room = quick.empty(ids.shape + self._row, quick.dtype)
            status = quick(ids, room)
            if status == 0:
                return room
            if status is not None:
                fail(status, call)
        function, first = self._by(False, call)
        wanted = Ids(ids, self.shape[0], call)
        if out is None:
            out = self._room(ids, wanted, dtype or self.dtype, call)
        dense = Dense(out, wanted.count, self.width, True, call)
        rows = request(wanted, dense, flags_of(missing, call), call)
        check(function(first, _ptr(rows), None), call)
        if self._quick is None and is_numpy(ids) and is_numpy(out):
            self._quick = _quick_gather(self)
        return out

    def _room(self, ids, wanted, dtype, call):
        shape = wanted.shape + self._row
        dtype = dtype_of(dtype, call)
        if is_torch(ids):
            import torch
            return torch.empty(shape, dtype=dtype.torch(), device=ids.device)
        return numpy_of(call).empty(shape, dtype.numpy())

    def prepare(self, ids, out, missing=None):
        """A gather to be repeated: g = t.prepare(ids, out); g().

        Each g() gathers anew, by the ids that are then in |ids|, into |out|,
        and returns |out|. Neither array may be moved or resized.
        """
        call = f"{type(self).__name__}.prepare"
        wanted = Ids(ids, self.shape[0], call)
        dense = Dense(out, wanted.count, self.width, True, call)
        return PreparedGather(self, request(wanted, dense,
                                            flags_of(missing, call), call),
                              (wanted, dense), out)

    def __getitem__(self, ids):
        return self.gather(ids)

    def __setitem__(self, ids, rows):
        call = f"{type(self).__name__}[...] ="
        function, first = self._by(True, call)
        wanted = Ids(ids, self.shape[0], call)
        dense = self._given(rows, wanted, call)
        check(function(first, _ptr(request(wanted, dense, 0, call)), None),
              call)

    def _given(self, rows, wanted, call):
        """Rows of an array; of a number, or of fewer dimensions, by NumPy."""
        shape = wanted.shape + self._row
        if not hasattr(rows, "shape") or tuple(rows.shape) != shape:
            rows = self._broadcast(rows, shape, call)
        dense = Dense(rows, wanted.count, self.width, False, call)
        if dense.dtype.is_float == self.dtype.is_float:
            return dense
        return Dense(self._cast(rows, call), wanted.count, self.width, False,
                     call)

    def _cast(self, rows, call):
        """Between integers and floats, which the library does not convert."""
        if is_torch(rows):
            return rows.detach().to(self.dtype.torch())
        return numpy_of(call).asarray(rows).astype(self.dtype.numpy())

    def _broadcast(self, rows, shape, call):
        if is_torch(rows):
            return rows.detach().expand(shape).contiguous()
        numpy = numpy_of(call)
        if not hasattr(rows, "dtype"):
            rows = numpy.asarray(rows, self.dtype.numpy())
        try:
            return numpy.ascontiguousarray(numpy.broadcast_to(rows, shape))
        except ValueError as error:
            raise InvalidArgument(str(error), "TARN_E_INVALID", call) from None


def _quick_gather(table):
    """A gather by the usual arrays of NumPy: ids of i64, rows of the table's
    dtype, both compact and writable. Returns the status; None: other arrays
    than these. Looking at arrays by protocols takes longer than such a gather;
    this takes a microsecond.

    Requests are kept: a list gives each to one thread at a time.
    """
    import numpy
    array, index = numpy.ndarray, numpy.dtype(numpy.int64)
    dtype, row = table.dtype.numpy(), table._row  # a dtype is one object
    (gather, first), requests = table._by(False, "gather"), []
    into, address = ctypes.c_char.from_buffer, ctypes.addressof

    def make():
        rows = new("tarn_whole_rows", index_dtype=constant("TARN_DTYPE_I64"))
        return rows, _ptr(rows)

    def quick(ids, out):
        if (type(ids) is not array or type(out) is not array
                or ids.dtype is not index or out.dtype is not dtype
                or ids.shape + row != out.shape):
            return None
        try:  # refuses what is not compact, or not writable
            indices, dense = address(into(ids)), address(into(out))
        except (TypeError, ValueError, BufferError):
            return None
        try:
            kept = requests.pop()
        except IndexError:
            kept = make()
        rows, given = kept
        rows.indices = indices
        rows.dense = dense
        rows.index_count = ids.size
        status = gather(first, given, None)
        requests.append(kept)
        return status
    quick.empty, quick.dtype = numpy.empty, dtype
    return quick


class PreparedGather:
    """A gather of Table.prepare(): call it."""
    __slots__ = ("_table", "_gather", "_arguments", "_kept", "out")

    def __init__(self, table, rows, kept, out):
        self._table = table
        self._gather, first = table._by(False, "prepare")
        self._arguments = (first, _ptr(rows), None)
        self._kept = (rows, kept)
        self.out = out

    def __call__(self):
        if self._table._counted is None:
            self._table._by(False, "PreparedGather")
        status = self._gather(*self._arguments)
        if status:
            fail(status, "PreparedGather")
        return self.out
