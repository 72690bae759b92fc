"""Tables in files of the ranks, larger than memory (tarn/disk.h)."""
import ctypes
import types

from ._arrays import Counted
from ._comm import init
from ._dtypes import BY_CODE, dtype_of
from ._embedding import Embedding
from ._errors import InvalidArgument
from ._library import check, constant, end, lib, made_by, new, text, values
from ._places import place as place_of
from ._table import Table

_ptr = ctypes.byref


class DiskTable(Table):
    """A table whose rows are on the disks of the ranks, and in part in memory.

        t = libtarn.DiskTable("/ssd/users", memory=1 << 30,
                              shape=(rows, 64), dtype="f32",
                              optimizer="adam", create=True)    # all ranks
        t.embedding.apply(ids, gradients)
        t.flush()

    path:      what the names of the files begin with.
    memory:    bytes of this rank for all that belongs to the table.
    create:    makes the files, in place of those that there are; else shape,
               dtype and optimizer may be left out, and are compared if given.
    shape:     (rows, width); dtype; partition; name: as of Table.
    optimizer: None: the table does not learn. Its options are those of
               Embedding, as a dict.
    depth:     most blocks under way; cached, threads: see tarn/disk.h.

    As a Table of kind "distributed": reads and writes of rows are collectives,
    and rows have no address. Changes are durable when flush() has returned at
    all ranks. What was not flushed is lost by close(), and by a collection.
    """

    def __init__(self, path, memory, shape=(0, 0), dtype=None, optimizer=None,
                 create=False, partition=None, name=None, *, options=None,
                 depth=0, cached=False, threads=False, comm=None):
        call = "DiskTable"
        self._counted = self._handle = None
        self.comm = comm if comm is not None else init()
        self.place = place_of("host")
        self.kind, self.name = "disk", name
        flags = (constant("TARN_DISK_CREATE") * create
                 | constant("TARN_DISK_CACHED") * cached
                 | constant("TARN_DISK_THREADS") * threads)
        learns = optimizer and Embedding._options(optimizer, options or {})
        counts = self._counts(partition, call)
        told = new("tarn_disk_options", path=text(path), flags=flags,
                   dtype=dtype_of(dtype, call).code if dtype else 0,
                   rows=shape[0], width=shape[1], memory=memory, depth=depth,
                   partition=counts and ctypes.addressof(counts),
                   optimizer=ctypes.addressof(learns) if learns else None,
                   name=text(name))
        self._handle = made_by(lib.tarn_disk_open, call, self.comm._get(call),
                               _ptr(told))
        self._tensor = lib.tarn_disk_table(self._handle)
        self.dtype = BY_CODE[self._tensor.dtype]
        self._adopt()
        self.embedding = self._embedding(learns)

    def _counts(self, partition, call):
        if partition is None:
            return None
        if len(partition) != self.comm.size:
            raise InvalidArgument(f"a partition of {len(partition)}, for "
                                  f"{self.comm.size} ranks", "TARN_E_INVALID",
                                  call)
        return (ctypes.c_size_t * self.comm.size)(*partition)

    def _embedding(self, learns):
        handle = lib.tarn_disk_embedding(self._handle)
        return _Learner(self, handle, learns) if handle else None

    def _count(self):
        return Counted(self._handle, end="tarn_disk_give_up")

    def flush(self):
        """Makes all changes durable at all ranks, as one epoch. Collective.

        FileError: a rank could not write; its changes are still in memory.
        """
        self._get("DiskTable.flush")
        check(lib.tarn_disk_flush(self._handle), "DiskTable.flush")

    @property
    def info(self):
        """epoch, hits, blocks_read, memory, ... (tarn_disk_info)"""
        self._get("DiskTable.info")
        told = new("tarn_disk_info")
        check(lib.tarn_disk_query(self._handle, _ptr(told)), "DiskTable.info")
        return types.SimpleNamespace(**values(told))

    def _destroy(self, call):
        error = end(lib.tarn_disk_close, self._handle, call)
        if self.embedding is not None:
            self.embedding._handle = None
        self._handle = None
        return error


class _Learner(Embedding):
    """The embedding of a table on disks, which ends with it."""

    def __init__(self, table, handle, learns):
        self.table = table
        self._handle = handle
        self.optimizer = "disk"
        self._learning_rate = learns.learning_rate if learns else None

    def close(self):
        """Nothing: it ends with its table."""

    def _drop(self):
        return False  # likewise
