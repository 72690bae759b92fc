"""Errors of the library, by what a program of Python catches."""

__all__ = ["TarnError", "OutOfMemory", "InvalidArgument", "InvalidIndex",
           "PeerLost", "Timeout", "StateError", "Unsupported", "FileError"]


class TarnError(Exception):
    """A call of the library that did not return TARN_OK.

    status: the name of what it returned, "TARN_E_DEVICE".
    call:   the Python call, "Table.gather".
    """

    def __init__(self, text, status="TARN_E_STATE", call=""):
        super().__init__(f"{call}: {text}" if call else text)
        self.status = status
        self.call = call

    def __reduce__(self):  # errors of ranks travel between processes
        return _again, (type(self), self.args, self.status, self.call)


def _again(kind, args, status, call):
    error = kind("", status, call)
    error.args = args
    return error


class OutOfMemory(TarnError, MemoryError):
    """TARN_FULL and TARN_E_NOMEM: no room; free something, or ask for less."""


class InvalidArgument(TarnError, ValueError):
    """TARN_E_INVALID: an argument is wrong."""


class InvalidIndex(InvalidArgument, IndexError):
    """TARN_E_INVALID: a row that a table does not have."""


class StateError(TarnError, RuntimeError):
    """TARN_E_STATE: not possible now: in use, closed, after a fork."""


class Unsupported(TarnError, NotImplementedError):
    """TARN_E_UNSUPPORTED: this device or this build cannot do it."""


class PeerLost(TarnError, ConnectionError):
    """TARN_E_PEER_LOST: another rank has ended; the text says which."""


class Timeout(TarnError, TimeoutError):
    """TARN_E_TIMEOUT: another rank did not arrive in time."""


class FileError(TarnError, OSError):
    """TARN_E_IO: the system refused a file or a descriptor."""


_KINDS = {
    "TARN_FULL": OutOfMemory,
    "TARN_E_NOMEM": OutOfMemory,
    "TARN_E_INVALID": InvalidArgument,
    "TARN_E_STATE": StateError,
    "TARN_E_UNSUPPORTED": Unsupported,
    "TARN_E_PEER_LOST": PeerLost,
    "TARN_E_TIMEOUT": Timeout,
    "TARN_E_IO": FileError,
}


def error_of(status, text, call):
    """The error for the status of that name."""
    kind = _KINDS.get(status, TarnError)
    if kind is InvalidArgument and "index " in text and " is not in " in text:
        kind = InvalidIndex
    return kind(text, status, call)
