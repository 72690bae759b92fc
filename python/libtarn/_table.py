"""Tables of rows that ranks share, and rows of them by index."""
import ctypes
import types

from ._arrays import Array, Counted
from ._closing import Dropping
from ._comm import init
from ._dtypes import dtype_of
from ._errors import InvalidArgument, PeerLost, StateError, Timeout
from ._gather import Rows, flags_of
from ._library import (check, constant, end, lib, new, struct, tell, text,
                       values)
from ._places import place as place_of
from ._rows import Ids, SKIP_BAD, request

_ptr = ctypes.byref
_KINDS = ("continuous", "chunked", "distributed", "hierarchical")


class Table(Dropping, Rows):
    """A table that the ranks of a communicator share.

        t = libtarn.Table((rows, 64), "f32", name="users")   # all ranks
        batch = t[ids]                      # ids.shape + (64,)
        t[ids] = batch
        t.add_at(ids, gradients)            # all ranks
        t.close()                           # all ranks

    shape:     (rows, width), or (rows,): a vector.
    dtype:     "f32", numpy.float16, torch.bfloat16, ...
    kind:      "continuous", "chunked", "distributed" or "hierarchical"
               (docs/whole.md).
    place:     where its rows are: "host", "cuda:0", ...
    partition: rows of each rank, which add up to all; None: equal parts.
    name:      for texts and accounts.
    spread:    of "hierarchical": "parts", or "copies" on each machine.
    comm:      a Communicator; None: that of init().

    Making, closing, add_at, load and store are collectives: all ranks call
    them, in the same order. So are reads and writes of rows of a "distributed"
    table. Ids are integers of 32 or 64 bits, in an array of any shape, a list,
    a slice, or alone. An id that the table has no row for is an InvalidIndex,
    which is an IndexError and a ValueError; a negative one is no exception to
    that. Reads and writes of other kinds do not synchronise ranks: call
    comm.barrier() between a write and another rank's read.

    It ends by close(), by `with`, or when it is collected: then with a
    ResourceWarning, and its memory stays until all ranks have dropped it and
    make or close another one. A `with` that an exception leaves drops it as
    well, since the other ranks may not come to its end. Arrays of its memory
    keep it alive.

    OutOfMemory: a rank has no room. InvalidArgument: an argument is wrong, or
    ranks differ. PeerLost, Timeout: a rank is missing.
    """

    def __init__(self, shape, dtype, kind="continuous", place="host",
                 partition=None, name=None, *, spread="parts", comm=None):
        call = "Table"
        self._counted = None
        self.comm = comm if comm is not None else init()
        self.place = place_of(place)
        self.dtype = dtype_of(dtype, call)
        self.kind = kind
        self.name = name
        self._tensor = struct("tarn_whole_tensor")()
        self._create(tuple(shape), partition, spread, call)
        self._adopt()

    def _create(self, shape, partition, spread, call):
        if self.kind not in _KINDS or spread not in ("parts", "copies"):
            raise InvalidArgument(f"no kind {self.kind!r} with spread "
                                  f"{spread!r}", "TARN_E_INVALID", call)
        if len(shape) not in (1, 2) or min(shape) < 0:
            raise InvalidArgument(f"shape {shape} is not (rows, width) or "
                                  "(rows,)", "TARN_E_INVALID", call)
        counts = (ctypes.c_size_t * self.comm.size)()
        if partition is not None:
            if len(partition) != self.comm.size:
                raise InvalidArgument(f"a partition of {len(partition)}, for "
                                      f"{self.comm.size} ranks",
                                      "TARN_E_INVALID", call)
            counts[:] = list(partition)
        options = new("tarn_whole_table_options",
                      type=_KINDS.index(self.kind) + 1,
                      place=self.place.struct, dtype=self.dtype.code,
                      rows=shape[0], width=shape[1] if len(shape) == 2 else 0,
                      partition=ctypes.addressof(counts)
                      if partition is not None else None,
                      name=text(self.name),
                      spread=constant(f"TARN_WHOLE_{spread.upper()}"))
        check(lib.tarn_whole_table_create(
            self.comm._get(call), _ptr(options), _ptr(self._tensor)), call)

    def _adopt(self):
        """Sets what follows from the tensor."""
        tensor = self._tensor
        self.width = tensor.width
        self.shape = ((tensor.rows,) if tensor.dims == 1
                      else (tensor.rows, tensor.width))
        self._row = () if tensor.dims == 1 else (tensor.width,)
        self._counted = self._count()

    def _count(self):
        return Counted(self._tensor.whole, end="tarn_whole_give_up")

    # --- lifetime ---

    def _get(self, call):
        if self._counted is None:
            raise StateError(f"table {self.name or ''} is closed", call=call)
        return self._tensor

    def close(self):
        """Ends the table. Collective.

        StateError, at all ranks: a rank has arrays of its memory in use.
        PeerLost, Timeout: the table is closed all the same.
        """
        if self._counted is None:
            return
        call = "Table.close"
        views = self._counted.views()
        status = 0
        if views:
            status = lib.tarn_fail(
                constant("TARN_E_STATE"),
                text(f"table {self.name or ''}: {views} arrays or caches of "
                     "it are in use"))
        try:
            self.comm.agree(status, call)
        except (PeerLost, Timeout):
            if views:
                raise
        error = self._destroy(call)
        counted, self._counted, self._quick = self._counted, None, None
        counted.close(call)
        tell(error)

    def _destroy(self, call):
        return end(lib.tarn_whole_destroy, self._tensor.whole, call)

    def _drop(self):
        """Gives it up to its communicator. Whether it was open."""
        counted, self._counted = getattr(self, "_counted", None), None
        self._quick = None
        if counted is not None:
            counted.release()
        return counted is not None

    def __repr__(self):
        return (f"<libtarn.Table {self.name or ''} {self.shape} "
                f"{self.dtype.name} {self.kind} at {self.place.name}>")

    def __len__(self):
        return self.shape[0]

    # --- its memory ---

    @property
    def local(self):
        """The rows that this rank owns, as an Array of the table's memory."""
        tensor = self._get("Table.local")
        _, count = self.rows_of(self.comm.rank)
        address = ctypes.c_uint64()
        check(lib.tarn_whole_tensor_local(_ptr(tensor), _ptr(address)),
              "Table.local")
        return self._array(address.value, count)

    @property
    def all(self):
        """All rows, as an Array: of "continuous" tables, and of others on the
        host that are mapped. Unsupported: this kind has no such address."""
        self._get("Table.all")
        address = ctypes.c_uint64()
        check(lib.tarn_whole_global(self._tensor.whole, _ptr(address)),
              "Table.all")
        return self._array(address.value, self.shape[0])

    @property
    def buffer(self):
        """memoryview(t.buffer): the rows that this rank owns."""
        return self.local.buffer

    def _array(self, address, rows):
        return Array(self._counted.pointer, address, (rows, *self._row),
                     self.dtype, self.place)

    def rows_of(self, rank):
        """(first, count) of the rows that |rank| owns."""
        first, count = ctypes.c_size_t(), ctypes.c_size_t()
        check(lib.tarn_whole_tensor_rows(_ptr(self._get("Table.rows_of")),
                                         rank, _ptr(first), _ptr(count)),
              "Table.rows_of")
        return first.value, count.value

    @property
    def info(self):
        """What was obtained, in bytes: size, page_size, huge_bytes, charged
        to the pool of the place, ... (tarn_whole_info)."""
        self._get("Table.info")
        told = new("tarn_whole_info")
        check(lib.tarn_whole_query(self._tensor.whole, _ptr(told)),
              "Table.info")
        found = values(told)
        found.update(kind=self.kind, place=self.place.name)
        return types.SimpleNamespace(**found)

    # --- rows: see Rows ---

    def _by(self, writes, call):
        tensor = self._get(call)
        return (lib.tarn_whole_scatter if writes else lib.tarn_whole_gather,
                _ptr(tensor))

    def add_at(self, ids, rows, missing=None):
        """table[ids] += rows, also where ids repeat. Collective.

        missing: "skip": an id without a row is left out.
        """
        call = "Table.add_at"
        tensor = self._get(call)
        wanted = Ids(ids, self.shape[0], call)
        dense = self._given(rows, wanted, call)
        flags = SKIP_BAD if missing == "skip" else flags_of(missing, call)
        check(lib.tarn_whole_scatter_add(
            _ptr(tensor), _ptr(request(wanted, dense, flags, call)), None),
            call)

    def cache(self, rows=0, **options):
        """A Cache of this table near its user; see Cache."""
        from ._cache import Cache
        return Cache(self, rows, **options)

    # --- files ---

    def load(self, path, **options):
        """Reads all rows from a .npy or .safetensors file. Collective.

        Options as of tarn_file_options: dtype, first_row, buffer, ...; flags
        as a number. Returns what this rank did, tarn_file_report.
        FileError, TarnError with TARN_E_CORRUPT: the text names the byte.
        """
        return self._file(lib.tarn_whole_load, path, options, "Table.load")

    def store(self, path, **options):
        """Writes all rows to a .npy or .safetensors file. Collective."""
        return self._file(lib.tarn_whole_store, path, options, "Table.store")

    def _file(self, function, path, options, call):
        return use_file(function, (_ptr(self._get(call)),), path, options,
                        call)


def store(path, tables, **options):
    """Writes tables to one file of safetensors: {"name": Table, ...}.
    Collective."""
    return _named(lib.tarn_whole_store_named, path, tables, options, "store")


def load(path, tables, **options):
    """Reads tables from a file of safetensors: {"name": Table, ...}, of which
    the file may have more. Collective."""
    return _named(lib.tarn_whole_load_named, path, tables, options, "load")


def _named(function, path, tables, options, call):
    named = (struct("tarn_whole_named") * len(tables))(*(
        (text(name), table._get(call)) for name, table in tables.items()))
    return use_file(function, (named, len(tables)), path, options, call)


def use_file(function, tables, path, options, call):
    """A load or store of what the arguments |tables| are; returns its report."""
    if "dtype" in options:
        options = {**options, "dtype": dtype_of(options["dtype"], call).code}
    told = new("tarn_file_report")
    check(function(*tables, text(path),
                   _ptr(new("tarn_file_options", **options)), _ptr(told)), call)
    return types.SimpleNamespace(**values(told))
