"""Communicators: processes that work on one job together, its ranks."""
import ctypes
import hashlib
import os
import sys
import tempfile

from ._closing import Closing
from ._errors import InvalidArgument, PeerLost, StateError, Timeout
from ._library import check, lib, new, text


class Communicator(Closing):
    """The ranks of a job; see init(). rank: of this process; size: of all.

    Its calls are collectives: all ranks make them, in the same order. Used by
    one thread at a time. PeerLost and Timeout say which rank is missing; then
    it can only be closed.
    """

    def __init__(self, handle):
        self._handle = handle
        self.rank = lib.tarn_comm_rank(handle)
        self.size = lib.tarn_comm_size(handle)

    def _get(self, call):
        if self._handle is None:
            raise StateError("the communicator is closed", call=call)
        return self._handle

    @property
    def timeout(self):
        """Seconds that a collective waits for a rank at most."""
        return lib.tarn_comm_timeout_ms(self._get("timeout")) / 1000

    @property
    def machines(self):
        """On how many machines its ranks are."""
        return lib.tarn_comm_machines(self._get("machines"))

    def barrier(self):
        """Returns when all ranks have called it."""
        check(lib.tarn_comm_barrier(self._get("barrier")),
              "Communicator.barrier")

    def broadcast(self, data=None, root=0):
        """The bytes |data| of rank |root|, at all ranks."""
        comm = self._get("broadcast")
        size = ctypes.c_uint64(len(data) if self.rank == root else 0)
        check(lib.tarn_comm_broadcast(comm, root, ctypes.byref(size), 8),
              "Communicator.broadcast")
        sent = data if self.rank == root else b"\0" * size.value
        room = ctypes.create_string_buffer(bytes(sent), max(size.value, 1))
        if size.value:
            check(lib.tarn_comm_broadcast(comm, root, room, size.value),
                  "Communicator.broadcast")
        return room.raw[:size.value]

    def allgather(self, data):
        """The bytes |data| of each rank, which may differ in length: a list."""
        sizes = [int.from_bytes(size, sys.byteorder) for size in
                 self._allgather(len(data).to_bytes(8, sys.byteorder), 8)]
        most = max(sizes)
        if most == 0:
            return [b""] * self.size
        filled = bytes(data) + b"\0" * (most - len(data))
        return [got[:size] for got, size in
                zip(self._allgather(filled, most), sizes)]

    def _allgather(self, data, size):
        room = ctypes.create_string_buffer(size * self.size)
        check(lib.tarn_comm_allgather(self._get("allgather"), data, size,
                                      room), "Communicator.allgather")
        return [room.raw[r * size:(r + 1) * size] for r in range(self.size)]

    def agree(self, status, call):
        """Raises at all ranks what one of them has, a status of the library."""
        check(lib.tarn_comm_agree(self._get(call), status), call)

    def collect(self):
        """Ends the tables that all ranks have dropped without closing them."""
        check(lib.tarn_whole_collect(self._get("collect")),
              "Communicator.collect")

    def close(self):
        """Leaves it. Ends what all ranks have dropped; to be called by all.

        StateError: tables of it are left.
        """
        global _world
        if self._handle is None:
            return
        try:
            self.collect()
        except (PeerLost, Timeout):
            pass  # what was dropped is freed; the others are gone
        check(lib.tarn_comm_destroy(self._handle), "Communicator.close")
        self._handle = None
        if _world is self:
            _world = None

    def __del__(self):
        if getattr(self, "_handle", None) is not None:
            lib.tarn_comm_destroy(self._handle)  # stays while tables are left

    def __repr__(self):
        return f"<libtarn.Communicator: rank {self.rank} of {self.size}>"


# --- which rank this is ------------------------------------------------------

_world = None  # of init()
_given = None  # (path, rank, size, job) of a process that spawn() has started


def _forget():
    """In a child of fork, which is another process."""
    global _world, _given
    _world = _given = None


os.register_at_fork(after_in_child=_forget)


def _options(timeout, job=None, alone=False):
    return new("tarn_comm_options", timeout_ms=int((timeout or 0) * 1000),
               flags=1 if alone else 0, job=text(job))


def _folder():
    """One that only this user can enter, known to all ranks of the machine."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = os.path.join(base, f"libtarn-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return folder


def _meeting(job):
    name = hashlib.sha256(job.encode()).hexdigest()[:24]
    return os.path.join(_folder(), name)


def _meet(path, rank, size, job, timeout):
    handle = ctypes.c_void_p()
    check(lib.tarn_comm_meet(text(path), rank, size,
                             ctypes.byref(_options(timeout, job)),
                             ctypes.byref(handle)), "init")
    return Communicator(handle.value)


def _number(name):
    value = os.environ.get(name, "")
    if not value.isdigit():
        raise InvalidArgument(f"{name} is {value!r}, not a number",
                              "TARN_E_INVALID", "init")
    return int(value)


def _by_torchrun(timeout):
    """torchrun: ranks of one machine meet at a path made of the run's names."""
    size = _number("WORLD_SIZE")
    if size > 1 and _number("LOCAL_WORLD_SIZE") != size:
        raise StateError(
            f"torchrun has started {size} ranks, "
            f"{_number('LOCAL_WORLD_SIZE')} of them on this machine: ranks of "
            "several machines need an MPI, so start them by mpirun", call="init")
    job = "/".join(os.environ.get(name, "") for name in (
        "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR",
        "MASTER_PORT"))
    return _meet(_meeting(f"torchrun {job}"), _number("RANK"), size, job[:255],
                 timeout)


def _parent():
    """The process that has started this one by multiprocessing; None."""
    processes = sys.modules.get("multiprocessing.process")
    return processes and processes.parent_process()


def _by_numbers(rank, size, path, job, timeout):
    if rank is None or size is None:
        raise InvalidArgument("rank and size go together", "TARN_E_INVALID",
                              "init")
    parent = _parent()
    if path is None and parent is None and size > 1:
        raise InvalidArgument(
            "path is needed where ranks are not children of one process of "
            "multiprocessing", "TARN_E_INVALID", "init")
    if job is None:
        job = f"process {parent.pid if parent else os.getpid()}"
    return _meet(path or _meeting(job), rank, size, job, timeout)


_MPI = """
The wheel of libtarn holds no library of an MPI, since it must be built with the
MPI that starts the ranks: build Tarn where that MPI is installed, and name the
folder of libtarn_mpi_openmpi.so or libtarn_mpi_mpich.so in TARN_PLUGIN_DIR. On
one machine `tarn run -n N -- python PROGRAM` starts ranks without an MPI."""


def _by_environment(timeout, alone):
    handle = ctypes.c_void_p()
    status = lib.tarn_comm_from_environment(
        ctypes.byref(_options(timeout, alone=alone)), ctypes.byref(handle))
    try:
        check(status, "init")
    except StateError as error:
        if "libtarn_mpi" in str(error):
            raise StateError(str(error) + _MPI) from None
        raise
    return Communicator(handle.value)


def _is_of_torchrun():
    return ("WORLD_SIZE" in os.environ and "LOCAL_WORLD_SIZE" in os.environ
            and "TARN_COMM" not in os.environ)


def _refuse_to_guess():
    if _parent() is not None and "TARN_COMM" not in os.environ:
        raise StateError(
            "multiprocessing has started this process, and says to no process "
            "which of how many it is: call init(rank=..., size=...), or "
            "init(alone=True) in one that works alone; libtarn.spawn() gives "
            "its processes their numbers", call="init")


def _join(rank, size, path, job, timeout, alone):
    if alone:
        return _by_environment(timeout, True)
    if rank is not None or size is not None:
        return _by_numbers(rank, size, path, job, timeout)
    if _given is not None:
        return _meet(*_given, timeout)
    if _is_of_torchrun():
        return _by_torchrun(timeout)
    _refuse_to_guess()
    return _by_environment(timeout, False)


def init(rank=None, size=None, path=None, *, job=None, timeout=None,
         alone=False):
    """The communicator of this process's job, the same at each call.

    Which rank this is, is told by libtarn.spawn(), `tarn run`, torchrun, and
    mpirun or srun (whose MPI needs Tarn's library for it); a process without
    any of them is rank 0 of 1. Under multiprocessing give |rank| and |size|:
    children of one process then meet by themselves; others need a |path| in a
    folder that only this user can enter. A process that was started as one of
    many and cannot tell which is never alone silently.

    timeout: seconds that a collective waits for a rank at most, else
             TARN_COMM_TIMEOUT_MS of the environment, or 30 seconds.
    job:     a name that separates this run from others at the same path.
    alone:   rank 0 of 1, whatever has started the process.

    StateError: it cannot be told which rank this is. Timeout: a rank did not
    come. PeerLost: a rank has ended. InvalidArgument: numbers that do not fit.
    """
    global _world
    if _world is None or alone:
        made = _join(rank, size, path, job, timeout, alone)
        if alone:
            return made
        _world = made
    return _world


# --- spawn -------------------------------------------------------------------

def _run_rank(function, arguments, given, timeout, sender):
    """The body of a process of spawn()."""
    global _given
    import traceback
    _given = given
    try:
        result = (True, function(init(timeout=timeout), *arguments))
    except BaseException as error:  # the parent raises it
        result = (False, (error, traceback.format_exc()))
    try:
        sender.send(result)
    except Exception as error:  # what cannot be pickled
        sender.send((False, (TypeError(f"{error}"), traceback.format_exc())))
    if not result[0]:
        sys.exit(1)


class RankError(RuntimeError):
    """A rank of spawn() has failed. rank: which; its error is the cause."""

    def __init__(self, rank, what):
        super().__init__(f"rank {rank}: {what}")
        self.rank = rank


def _start(context, function, arguments, given, timeout):
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run_rank,
                              args=(function, arguments, given, timeout,
                                    sender))
    process.start()
    sender.close()
    return process, receiver


def _result_of(process, receiver):
    try:
        result = receiver.recv()
    except EOFError:
        process.join()
        text = f"ended with {process.exitcode}, without a result"
        result = (False, (None, text))
    process.join()
    return result


def _is_echo(failure):
    """Whether a rank has failed because another one has."""
    return isinstance(failure[0], (PeerLost, Timeout))


def spawn(function, size, arguments=(), *, timeout=None):
    """Runs function(communicator, *arguments) in |size| new processes.

    Returns their results, by rank. |function| is one that a module has, as
    multiprocessing's method "spawn" needs it; results are pickled.

    RankError: a rank has failed, the one whose failure is not that of another;
    its error is the __cause__. The others end by themselves, since their
    collectives fail.
    """
    import multiprocessing
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="libtarn-") as folder:
        path = os.path.join(folder, "ranks")
        ranks = [_start(context, function, arguments, (path, rank, size, ""),
                        timeout) for rank in range(size)]
        results = [_result_of(*started) for started in ranks]
    failed = [(_is_echo(value), rank, value)
              for rank, (good, value) in enumerate(results) if not good]
    if failed:
        _, rank, (error, told) = min(failed, key=lambda f: f[:2])
        raise RankError(rank, told.strip()) from error
    return [value for _, value in results]
