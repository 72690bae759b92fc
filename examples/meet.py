"""A table that processes have together which Python has started.

  python3 examples/meet.py                       multiprocessing starts three
  torchrun --nproc-per-node 3 examples/meet.py   torchrun does

The library is found as the linker finds it; TARN_LIBRARY names another. Nothing
but Python's standard library is needed.
"""
import ctypes
import multiprocessing
import os
import sys
import tempfile
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p

tarn = ctypes.CDLL(os.environ.get("TARN_LIBRARY", "libtarn.so.0"))
tarn.tarn_last_error.restype = c_char_p

ROWS, RANKS, CONTINUOUS = 100, 3, 1


class CommOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("timeout_ms", c_uint64),
                ("flags", c_uint32), ("job", c_char_p)]


class Place(ctypes.Structure):  # all zero: the host
    _fields_ = [("device", c_void_p), ("kind", c_int)]


class WholeOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("type", c_int), ("place", Place),
                ("size", c_size_t), ("granularity", c_size_t),
                ("partition", c_void_p), ("name", c_char_p)]


def check(status):
    if status != 0:
        raise RuntimeError(tarn.tarn_last_error().decode())


def meet(path, job, rank, size):
    comm = c_void_p()
    options = CommOptions(ctypes.sizeof(CommOptions), job=job.encode())
    check(tarn.tarn_comm_meet(path.encode(), c_size_t(rank), c_size_t(size),
                              byref(options), byref(comm)))
    return comm


def share(comm, count):
    """Zeros, |count| of them: what one rank writes, all read."""
    whole, address = c_void_p(), c_uint64()
    options = WholeOptions(ctypes.sizeof(WholeOptions), CONTINUOUS, Place(),
                           8 * count, 8)
    check(tarn.tarn_whole_create(comm, byref(options), byref(whole)))
    check(tarn.tarn_whole_global(whole, byref(address)))
    return whole, (c_uint64 * count).from_address(address.value)


def work(path, job, rank, size):
    comm = meet(path, job, rank, size)
    whole, table = share(comm, ROWS)
    for row in range(rank, ROWS, size):
        table[row] = row * row
    check(tarn.tarn_comm_barrier(comm))  # until all have written theirs
    # In one write: others print at the same time.
    print(f"rank {rank} of {size}: the squares add up to {sum(table)}\n",
          end="", flush=True)
    check(tarn.tarn_whole_destroy(whole))
    check(tarn.tarn_comm_destroy(comm))


def start_ranks():
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:  # the user's alone
        ranks = [spawn.Process(target=work,
                               args=(folder + "/ranks", "", rank, RANKS))
                 for rank in range(RANKS)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
    return max(abs(rank.exitcode) for rank in ranks)


def be_rank_of_torchrun(said):
    folder = f"{tempfile.gettempdir()}/tarn-{os.getuid()}"
    os.makedirs(folder, 0o700, exist_ok=True)
    job = said["TORCHELASTIC_RUN_ID"] + "." + said["TORCHELASTIC_RESTART_COUNT"]
    work(f"{folder}/{said['MASTER_PORT']}", job, int(said["LOCAL_RANK"]),
         int(said["LOCAL_WORLD_SIZE"]))


if __name__ == "__main__":
    if "TORCHELASTIC_RUN_ID" in os.environ:
        be_rank_of_torchrun(os.environ)
    else:
        sys.exit(start_ranks())
