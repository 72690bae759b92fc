"""Tarn, the memory layer of a deep-learning runtime, for Python.

    import libtarn
    t = libtarn.Table((1_000_000, 64), "f32", name="users")   # all ranks
    batch = t[ids]

Tables that ranks share: init, spawn, Table, DiskTable, Cache, Embedding. Memory of devices:
device, devices, Pool, Block, Buffer, Model, init_pool, remove_pool. The tool: why,
view, replay, plan. With PyTorch: libtarn.torch. docs/python.md is the guide.

Names are loaded when they are first used.
"""
import importlib

from ._errors import (FileError, InvalidArgument, InvalidIndex, OutOfMemory,
                      PeerLost, StateError, TarnError, Timeout, Unsupported)

_HOME = {
    "Array": "_arrays", "Communicator": "_comm", "RankError": "_comm",
    "init": "_comm", "spawn": "_comm",
    "Access": "_buffer", "Buffer": "_buffer",
    "Block": "_pool", "Pool": "_pool", "init_pool": "_pool", "pool": "_pool",
    "remove_pool": "_pool",
    "Device": "_places", "Place": "_places", "device": "_places",
    "devices": "_places", "place": "_places",
    "DType": "_dtypes", "dtype": "_dtypes",
    "Embedding": "_embedding",
    "Model": "_model", "Part": "_model", "Step": "_model", "Tensor": "_model",
    "Plan": "_tool", "Replay": "_tool", "View": "_tool", "Why": "_tool",
    "plan": "_tool", "replay": "_tool", "view": "_tool", "why": "_tool",
    "Cache": "_cache", "DiskTable": "_disk",
    "PreparedGather": "_gather", "Table": "_table",
    "load": "_table", "store": "_table",
}
__all__ = ["FileError", "InvalidArgument", "InvalidIndex", "OutOfMemory",
           "PeerLost", "StateError", "TarnError", "Timeout", "Unsupported",
           "version", *sorted(_HOME)]


def __getattr__(name):
    home = _HOME.get(name)
    if home is None:
        if name in ("torch",):
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found


def __dir__():
    return sorted(set(globals()) | set(_HOME))


def version():
    """The version of the loaded library, "0.1.0"."""
    from ._library import lib
    return lib.tarn_version().decode()
