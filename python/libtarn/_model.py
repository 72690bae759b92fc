"""A net's memory, planned ahead (tarn/model.h, docs/model.md)."""
import ctypes
import types
import warnings

from ._arrays import Counted
from ._buffer import Access
from ._closing import Closing
from ._dtypes import dtype_of
from ._errors import InvalidArgument, StateError
from ._library import (check, constant, lib, made_by, new, struct,
                       tell, text, values)
from ._places import place as place_of
from ._pool import shape_of

_ptr = ctypes.byref


_PARTS, _PASSES = ("data", "diff"), ("forward", "backward")
_KINDS, _MODES = ("param", "output"), ("train", "infer")


def _number(name, names, call):
    if name not in names:
        raise InvalidArgument(f"{name!r} is none of {', '.join(names)}",
                              "TARN_E_INVALID", call)
    return constant(f"TARN_{name.upper()}")


class Part:
    """The data of a tensor, or its diff (gradient).

    By `with`: part.read(place) and part.write(place, keep=), as of a Buffer.
    StateError: the model is not placed, or no step that it has entered needs
    the part now; the text names the tensor.
    """

    def __init__(self, tensor, name):
        self._tensor = tensor
        self._name = name
        self.dtype = tensor.dtype

    @property
    def shape(self):
        """Lengths at the present batch."""
        return self._tensor.shape

    @property
    def _counted(self):
        return self._tensor.model._counted

    def _get(self, call):
        self._tensor.model._get(call)
        told = struct("tarn_tensor").from_address(self._tensor._handle)
        found = getattr(told, self._name)
        if not found:
            raise StateError(f"{self._tensor.name}: no {self._name}: the model "
                             "is not placed, or has none of it", call=call)
        return found

    def read(self, place="host"):
        """For `with`: an Array at |place|, to be read only."""
        return Access(self, place, "TARN_READ", "Part.read")

    def write(self, place="host", keep=False):
        """For `with`: an Array at |place|; see Buffer.write."""
        return Access(self, place, "TARN_READ_WRITE" if keep
                      else "TARN_WRITE_DISCARD", "Part.write")


class Tensor:
    """A tensor of a Model: name, kind, dtype, shape, data, diff."""

    def __init__(self, model, handle, name, kind, dtype, shape):
        self.model = model
        self._handle = handle
        self.name = name
        self.kind = kind
        self.dtype = dtype
        self._shape = shape
        self.data = Part(self, "data")
        self.diff = Part(self, "diff")

    @property
    def shape(self):
        """Lengths, with the present batch for -1."""
        return tuple(self.model.batch if length < 0 else length
                     for length in self._shape)

    def __repr__(self):
        return (f"<libtarn.Tensor {self.kind} {self.name} {self.shape} "
                f"{self.dtype.name}>")


class Step:
    """A step of a Model, forward and backward; see Model.step.

    part is "data" or "diff", passing is "forward" or "backward".
    """

    def __init__(self, model, handle, name):
        self._model = model
        self._handle = handle
        self.name = name

    def _declare(self, function, call, passing, *uses):
        numbers = []
        for tensor, part in uses:
            numbers += [tensor._handle, _number(part, _PARTS, call)]
        self._model._get(call)
        check(function(self._handle, _number(passing, _PASSES, call), *numbers),
              call)

    def reads(self, tensor, part="data", passing="forward"):
        """The step reads it."""
        self._declare(lib.tarn_step_reads, "Step.reads", passing,
                      (tensor, part))

    def writes(self, tensor, part="data", passing="forward"):
        """The step writes it."""
        self._declare(lib.tarn_step_writes, "Step.writes", passing,
                      (tensor, part))

    def replaces(self, giver, taker, passing="forward", giver_part="data",
                 taker_part="data"):
        """The step reads |giver| and writes |taker|, in place if it can be."""
        self._declare(lib.tarn_step_replaces, "Step.replaces", passing,
                      (giver, giver_part), (taker, taker_part))

    def enter(self, passing="forward"):
        """Begins the step: what it declares may be used from now on."""
        self._model._get("Step.enter")
        check(lib.tarn_model_enter(self._handle,
                                   _number(passing, _PASSES, "Step.enter")),
              "Step.enter")


class Model(Closing):
    """A net's tensors and steps, whose memory is planned and placed at once.

        m = libtarn.Model("net", max_batch=32)
        x = m.add("output", "x", "f32", (-1, 64))      # -1: the batch
        h = m.add("output", "h", "f32", (-1, 128))
        s = m.step("fc"); s.reads(x); s.writes(h)
        m.plan("infer"); m.place()
        s.enter()
        with h.data.write() as a: ...

    name: for texts; max_batch: what -1 stands for at most.
    """

    def __init__(self, name="model", max_batch=1):
        self._handle = self._counted = None
        self.name = name
        self._handle = made_by(
            lib.tarn_model_create, "Model",
            _ptr(new("tarn_model_options", name=text(name),
                     max_batch=max_batch)))
        self._counted = Counted(self._handle)

    def _get(self, call):
        if self._handle is None:
            raise StateError("the model is closed", call=call)
        return self._handle

    def add(self, kind, name, dtype, shape):
        """A Tensor: kind "param", or "output" of a layer or fed to the net."""
        dtype, shape = dtype_of(dtype, "Model.add"), shape_of(shape)
        dims = (ctypes.c_int64 * len(shape))(*shape)
        told = struct("tarn_shape")(ctypes.addressof(dims), len(shape))
        handle = made_by(lib.tarn_model_add, "Model.add",
                         self._get("Model.add"),
                         _number(kind, _KINDS, "Model.add"), text(name),
                         dtype.code, told)
        return Tensor(self, handle, name, kind, dtype, shape)

    def step(self, name):
        """A Step behind the others."""
        handle = made_by(lib.tarn_model_step, "Model.step",
                         self._get("Model.step"), text(name))
        return Step(self, handle, name)

    def plan(self, mode="train", home="host", capacity=0):
        """Finds offsets; mode "train" or "infer". OutOfMemory: no plan within
        |capacity| bytes (0: no limit) was found."""
        options = new("tarn_model_plan_options",
                      mode=_number(mode, _MODES, "Model.plan"),
                      home=place_of(home).struct, capacity=capacity)
        check(lib.tarn_model_plan(self._get("Model.plan"), _ptr(options)),
              "Model.plan")

    def place(self):
        """Takes the memory: one block for all planned parts."""
        check(lib.tarn_model_place(self._get("Model.place")), "Model.place")

    def release(self):
        """Frees the planned memory; parameters stay."""
        self._get("Model.release")
        self._counted.refuse_views("Model.release")
        check(lib.tarn_model_release(self._handle), "Model.release")

    @property
    def needs(self):
        """naive, planned, bound, total, ... in bytes (tarn_model_needs)."""
        told = new("tarn_model_needs")
        check(lib.tarn_model_report(self._get("Model.needs"), _ptr(told)),
              "Model.needs")
        return types.SimpleNamespace(**values(told))

    @property
    def batch(self):
        """The present batch; assign another one, up to max_batch."""
        return lib.tarn_model_batch(self._get("Model.batch"))

    @batch.setter
    def batch(self, value):
        check(lib.tarn_model_set_batch(self._get("Model.batch"), value),
              "Model.batch")

    def save(self, path):
        """Writes the parameters to a safetensors file."""
        check(lib.tarn_model_save(self._get("Model.save"), text(path), 0),
              "Model.save")

    def load(self, path):
        """Reads the parameters; returns what was done, tarn_model_loaded."""
        told = new("tarn_model_loaded")
        check(lib.tarn_model_load(self._get("Model.load"), text(path), 0,
                                  _ptr(told)), "Model.load")
        return types.SimpleNamespace(**values(told))

    def close(self):
        """Ends it. StateError while arrays of its memory are in use."""
        if self._handle is None:
            return
        error = self._counted.destroy(lib.tarn_model_destroy, self._handle,
                                      "Model.close")
        self._handle = self._counted = None
        tell(error)

    def __del__(self):
        if getattr(self, "_counted", None) is None:
            return
        if self._counted.views():
            warnings.warn(f"model {self.name}: it stays, since arrays of its "
                          "memory are in use", ResourceWarning, source=self)
        else:
            self.close()
