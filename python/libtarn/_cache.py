"""Caches of a table's rows, near their user (tarn/cache.h)."""
import ctypes
import types

from ._errors import StateError
from ._gather import Rows
from ._library import check, lib, made_by, new, text, values
from ._places import place as place_of

_ptr = ctypes.byref


class Cache(Rows):
    """Rows of a table that are used often, kept near: table.cache(rows=1000).

    cache[ids], cache.gather and cache.prepare are as of the table. Reads of a
    "distributed" table stay collectives.

    rows, bytes: how much it keeps: at least so many rows, or at most so many
                 bytes; one of them.
    write_back:  cache[ids] = x goes to the cache, and to the table when a row
                 has to go, or by write_back(). False: the cache is read only.
    place:       where the rows are kept.
    shards:      parts with locks of their own, for threads; 0: 16.
    tag:         under which its pool accounts for the rows.

    Which writes of others are seen, and when: docs/whole.md. The table cannot
    be closed before the cache.
    """

    def __init__(self, table, rows=0, *, bytes=0, write_back=False,
                 place="host", shards=0, tag=None):
        self._handle = self._counted = None
        self.table = table
        self.shape, self.width = table.shape, table.width
        self.dtype, self._row = table.dtype, table._row
        self.place = place_of(place)
        tensor = table._get("Cache")
        self._handle = made_by(
            lib.tarn_cache_create, "Cache", _ptr(tensor),
            _ptr(new("tarn_cache_options", mode=int(write_back),
                     place=self.place.struct, rows=rows, bytes=bytes,
                     shards=shards, tag=text(tag))))
        self._counted = table._counted.pointer
        lib.tarn_counted_hold(self._counted)

    def _get(self, call):
        if self._handle is None:
            raise StateError("the cache is closed", call=call)
        return self._handle

    def _by(self, writes, call):
        handle = self._get(call)
        return (lib.tarn_cache_scatter if writes else lib.tarn_cache_gather,
                handle)

    def write_back(self):
        """Writes to the table what is not there yet."""
        check(lib.tarn_cache_write_back(self._get("Cache.write_back")),
              "Cache.write_back")

    def drop(self, rows=None):
        """Drops rows, numbers of them; None: all. What was not written back of
        them is lost."""
        handle = self._get("Cache.drop")
        count = 0 if rows is None else len(rows)
        numbers = (ctypes.c_int64 * count)(*(rows if count else ()))
        check(lib.tarn_cache_drop(handle, None if rows is None else numbers,
                                  count), "Cache.drop")

    def warm(self, counts):
        """Fills free room with the rows that are used most: |counts| has how
        often, a number for each row of the table."""
        numbers = (ctypes.c_uint64 * self.shape[0])(*map(int, counts))
        check(lib.tarn_cache_warm(self._get("Cache.warm"), numbers),
              "Cache.warm")

    @property
    def stats(self):
        """rows, used, hits, misses, evictions, ... (tarn_cache_stats)"""
        told = new("tarn_cache_stats")
        check(lib.tarn_cache_query(self._get("Cache.stats"), _ptr(told)),
              "Cache.stats")
        return types.SimpleNamespace(**values(told))

    def close(self):
        """Ends it. What was not written back is lost."""
        handle, self._handle = getattr(self, "_handle", None), None
        if handle is None:
            return
        status = lib.tarn_cache_destroy(handle)
        counted, self._counted, self._quick = self._counted, None, None
        lib.tarn_counted_release(counted)
        check(status, "Cache.close")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.close()

    def __del__(self):
        self.close()
