"""Devices, and places: kinds of memory of a device, by their names."""
import ctypes
import os

from ._closing import Closing
from ._errors import InvalidArgument
from ._library import (callback, check, constant, lib, made_by, new, struct,
                       values)

_opened = {}  # by name; a device stays open until close()
_places = {}


class Device(Closing):
    """An open device, "cpu:0", "sim:0", "cuda:0"; see device()."""

    def __init__(self, name):
        self.name = name
        self._handle = made_by(lib.tarn_device_open, "device", name.encode())

    def _get(self):
        if self._handle is None:
            raise InvalidArgument(f"{self.name} is closed", "TARN_E_STATE")
        return self._handle

    @property
    def info(self):
        """What the driver says of it, as a dict of tarn_device_info."""
        told = new("tarn_device_info")
        check(lib.tarn_device_query(self._get(), ctypes.byref(told)),
              "Device.info")
        return values(told)

    @property
    def memory(self):
        """(total, free) in bytes, now."""
        total, free = ctypes.c_size_t(), ctypes.c_size_t()
        check(lib.tarn_device_memory(self._get(), ctypes.byref(total),
                                     ctypes.byref(free)), "Device.memory")
        return total.value, free.value

    def synchronize(self):
        """Waits for all work that is queued on its streams."""
        check(lib.tarn_device_synchronize(self._get()), "Device.synchronize")

    def close(self):
        """Closes it. StateError while memory or tables are on it."""
        if self._handle is not None:
            check(lib.tarn_device_close(self._handle), "Device.close")
            self._handle = None
            _opened.pop(self.name, None)

    def __repr__(self):
        return f"libtarn.device({self.name!r})"


def device(name):
    """The device of that name, opened by the first call for it.

    TarnError with TARN_E_INVALID: there is none.
    """
    if name not in _opened:
        _opened[name] = Device(name)
    return _opened[name]


def devices():
    """Names of all devices, "cpu:0" first."""
    names = []

    @callback("tarn_device_visit")
    def visit(_, name, *rest):
        names.append(name.decode())
        return 0
    check(lib.tarn_device_each(visit, None), "devices")
    return names


def _forget():
    """In a child of fork the parent's devices are of no use."""
    _opened.clear()
    _places.clear()


os.register_at_fork(after_in_child=_forget)


class Place:
    """A kind of memory: "host", "cuda:0", "cuda:0/host", "cuda:0/unified";
    "cuda" is "cuda:0"."""
    __slots__ = ("name", "device", "struct", "host", "_as_parameter_")

    def __init__(self, name):
        where, _, kind = name.partition("/")
        kinds = {"": "DEVICE", "host": "HOST", "unified": "UNIFIED"}
        if kind not in kinds or (where == "host" and kind):
            raise InvalidArgument(
                f"no such place: {name!r}; it is \"host\", \"DEVICE:N\", "
                "\"DEVICE:N/host\" or \"DEVICE:N/unified\"", "TARN_E_INVALID")
        if where != "host" and ":" not in where:
            where += ":0"  # "cuda": the first
        self.name = f"{where}/{kind}" if kind else where
        self.device = None if where == "host" else device(where)
        code = 0 if where == "host" else constant(f"TARN_PLACE_{kinds[kind]}")
        self.struct = struct("tarn_place")(
            self.device and self.device._get(), code)
        self.host = (self.device is None or kind != ""
                     or bool(lib.tarn_device_host_accessible(
                         self.device._get())))
        self._as_parameter_ = self.struct

    def __repr__(self):
        return f"libtarn.place({self.name!r})"


def place(name):
    """The Place of that name; a Device is its own memory."""
    if isinstance(name, Place):
        return name
    if isinstance(name, Device):
        name = name.name
    found = _places.get(name)
    if found is None or (found.device and found.device._handle is None):
        found = _places[name] = Place(name)
    return found
