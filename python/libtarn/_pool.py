"""Pools of a place's memory, and blocks of them."""
import ctypes
import types

from ._arrays import Array, Counted
from ._closing import Closing
from ._dtypes import dtype_of
from ._errors import InvalidArgument, StateError
from ._library import (check, end, lib, made_by, new, struct, tell, text,
                       values)
from ._places import place as place_of

_ptr = ctypes.byref


def shape_of(shape):
    """A tuple, of a number too."""
    return (shape,) if isinstance(shape, int) else tuple(shape)


def size_of(shape, dtype):
    """Bytes of a compact array."""
    size = dtype.size
    for length in shape:
        if length < 0:
            raise InvalidArgument(f"shape {shape}", "TARN_E_INVALID", "shape")
        size *= length
    return size


class Pool(Closing):
    """A pool: pool(place) is the place's own, Pool(...) one of the program's.

    place:    "host", "cuda:0", ...
    strategy: "arena_pool", "page_unit_pool", ... with options (tarn/pool.h);
              None: the default.
    limit:    bytes that it may hold; 0: no limit.
    dry:      a dry run: blocks have addresses and no memory.
    """

    def __init__(self, place="host", strategy=None, limit=0, dry=False):
        self.place = place_of(place)
        self._is_own = True
        options = new("tarn_pool_options", strategy=text(strategy),
                      limit=limit, flags=2 if dry else 0)
        self._handle = made_by(lib.tarn_pool_create, "Pool",
                               self.place.struct, _ptr(options))

    @classmethod
    def _shared(cls, place):
        made = cls.__new__(cls)
        made.place = place_of(place)
        made._is_own = False
        made._handle = made_by(lib.tarn_pool_of, "pool", made.place.struct)
        return made

    def _get(self, call):
        if self._handle is None:
            raise StateError("the pool is closed", call=call)
        return self._handle

    def alloc(self, size, align=0):
        """A Block of |size| bytes at least, at a multiple of |align|.

        OutOfMemory: there is no room; the text says what holds most.
        """
        return Block(self, size, align)

    def array(self, shape, dtype):
        """An Array of a block of its own, which ends with it."""
        shape, dtype = shape_of(shape), dtype_of(dtype, "Pool.array")
        with self.alloc(max(size_of(shape, dtype), 1)) as block:
            return block.array(shape, dtype)

    @property
    def stats(self):
        """live_bytes, live_peak_bytes, reserved_bytes, ... (tarn_pool_stats)"""
        told = new("tarn_pool_stats")
        check(lib.tarn_pool_query(self._get("Pool.stats"), _ptr(told)),
              "Pool.stats")
        return types.SimpleNamespace(**values(told))

    def set_strategy(self, name):
        """A fresh strategy, "name" or "name:key=value,..."; None: the default.
        Blocks that are out stay."""
        check(lib.tarn_pool_set_strategy(self._get("Pool.set_strategy"),
                                         text(name)), "Pool.set_strategy")

    def trim(self):
        """Gives idle memory back to the device."""
        check(lib.tarn_pool_trim(self._get("Pool.trim"), 0), "Pool.trim")

    def close(self):
        """Ends a pool of Pool(...). StateError while blocks are out."""
        if self._handle is not None and self._is_own:
            error = end(lib.tarn_pool_destroy, self._handle, "Pool.close")
            self._handle = None
            tell(error)

    def __del__(self):
        if getattr(self, "_handle", None) is not None and self._is_own:
            lib.tarn_pool_destroy(self._handle)  # stays if blocks are out


class Block(Closing):
    """A block of a pool, see Pool.alloc: address, size in bytes.

    It ends by `with`, close(), or when it is collected. Its memory goes back
    with the last of its arrays.
    """

    def __init__(self, pool, size, align=0):
        self._counted = None
        block = struct("tarn_block")()
        check(lib.tarn_pool_alloc(pool._get("Pool.alloc"), size, align, None,
                                  _ptr(block)), "Pool.alloc")
        self.pool = pool
        self.address = block.address
        self.size = block.size
        self._counted = Counted(_ptr(block), ctypes.sizeof(block),
                                "tarn_pool_free_counted")

    def array(self, shape=None, dtype="u8"):
        """The block as an Array; shape None: all of its elements."""
        dtype = dtype_of(dtype, "Block.array")
        if self._counted is None:
            raise StateError("the block is closed", call="Block.array")
        if shape is None:
            shape = self.size // dtype.size
        shape = shape_of(shape)
        if size_of(shape, dtype) > self.size:
            raise InvalidArgument(f"{shape} of {dtype.name} in {self.size} "
                                  "bytes", "TARN_E_INVALID", "Block.array")
        return Array(self._counted.pointer, self.address, shape, dtype,
                     self.pool.place)

    @property
    def buffer(self):
        """memoryview(block.buffer): its bytes."""
        return self.array().buffer

    def close(self):
        """Frees the block, when the last of its arrays is gone."""
        if self._counted is not None:
            counted, self._counted = self._counted, None
            counted.release()

    def __del__(self):
        self.close()


def pool(place="host"):
    """The pool of |place|, which all of the process share."""
    return Pool._shared(place)


def init_pool(place, name):
    """Gives the pool of |place| the strategy |name|: RAF's InitPool."""
    pool(place).set_strategy(name)


def remove_pool(place):
    """Gives the pool of |place| the default strategy: RAF's RemovePool."""
    pool(place).set_strategy(None)
