"""Requests of rows: indices and dense rows, as the library takes them."""
from array import array

from ._borrow import borrow, is_compact, is_torch
from ._dtypes import I32, I64
from ._errors import InvalidArgument, InvalidIndex
from ._library import new

SKIP_BAD = 1  # TARN_ROWS_SKIP_BAD


def _invalid(text, call, kind=InvalidArgument):
    return kind(text, "TARN_E_INVALID", call)


# --- indices -----------------------------------------------------------------

def _from_numbers(ids, call):
    try:
        return array("q", [ids] if isinstance(ids, int) else ids)
    except (TypeError, OverflowError):
        raise _invalid("ids are integers, in an array, a list, a slice or "
                       "alone", call) from None


def _from_slice(ids, rows, call):
    for end in (ids.start, ids.stop, ids.step):
        if end is not None and end < 0:
            raise _invalid(f"slice with {end}: negative rows are none", call,
                           InvalidIndex)
    stop = rows if ids.stop is None else ids.stop
    if stop > rows:
        raise _invalid(f"slice up to row {stop} of {rows}", call, InvalidIndex)
    return array("q", range(ids.start or 0, stop, ids.step or 1))


def _widened(ids, found, call):
    """Other integers than the library takes, as i64."""
    kinds = {"u32": "u32", "i16": "", "i8": "", "u16": "", "u8": "", "u64": ""}
    if found.dtype.name not in kinds:
        raise _invalid(f"ids are integers, not {found.dtype.name}", call)
    if is_torch(ids):
        return ids.long()
    import numpy
    wide = numpy.asarray(ids)
    most = int(wide.max()) if wide.size else 0
    if most >= 1 << 63:
        raise _invalid(f"index {most} is beyond all rows", call, InvalidIndex)
    return wide.astype(numpy.int64)


def _compacted(array_):
    if is_torch(array_):
        return array_.contiguous()
    import numpy
    return numpy.ascontiguousarray(array_)


class Ids:
    """Row numbers in memory. shape: of the array that has them, () for one."""
    __slots__ = ("address", "dtype", "count", "shape", "place", "owner")

    def __init__(self, ids, rows, call):
        single = isinstance(ids, int) and not isinstance(ids, bool)
        if isinstance(ids, slice):
            ids = _from_slice(ids, rows, call)
        elif single or isinstance(ids, (list, tuple, range)):
            ids = _from_numbers(ids, call)
        found = borrow(ids, call)
        if found.dtype is not I64 and found.dtype is not I32:
            found = borrow(_widened(ids, found, call), call)
        if not is_compact(found.shape, found.strides, found.dtype.size):
            found = borrow(_compacted(ids), call)
        count = 1
        for length in found.shape:
            count *= length
        self.address = found.address
        self.dtype = found.dtype
        self.count = count
        self.shape = () if single else tuple(found.shape)
        self.place = found.place
        self.owner = found


# --- dense rows --------------------------------------------------------------

class Dense:
    """Rows of |width| elements, |count| of them, in memory."""
    __slots__ = ("address", "dtype", "stride", "place", "owner")

    def __init__(self, rows, count, width, writable, call):
        found = borrow(rows, call)
        self.stride = self._stride(found, count, width, call)
        if writable and not found.writable:
            raise _invalid("out is read-only", call)
        self.address = found.address
        self.dtype = found.dtype
        self.place = found.place
        self.owner = found

    @staticmethod
    def _stride(found, count, width, call):
        """Bytes from one row to the next; 0: no gap. Rows may have gaps
        between them, where the array has two dimensions."""
        shape, strides, size = found.shape, found.strides, found.dtype.size
        total = 1
        for length in shape:
            total *= length
        if total != count * width or (width != 1 and shape[-1:] != (width,)):
            raise _invalid(f"rows are of shape {tuple(shape)}, for {count} of "
                           f"{width} elements", call)
        if is_compact(shape, strides, size):
            return 0
        if (len(shape) == 2 and strides[1] == size
                and strides[0] >= width * size):
            return strides[0]
        raise _invalid("rows that are not in C order", call)


def request(ids, dense, flags, call):
    """The tarn_whole_rows of both, which must stay."""
    if ids.count and ids.place.name != dense.place.name:
        raise _invalid(f"ids are at {ids.place.name}, rows at "
                       f"{dense.place.name}", call)
    return new("tarn_whole_rows", place=dense.place.struct,
               dense=dense.address or 0, dense_dtype=dense.dtype.code,
               dense_stride=dense.stride, indices=ids.address or 0,
               index_dtype=ids.dtype.code, index_count=ids.count, flags=flags)
