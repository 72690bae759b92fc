"""Tables that learn (tarn/embedding.h)."""
import ctypes
import types

from ._borrow import is_torch
from ._closing import Dropping
from ._dtypes import BY_CODE
from ._errors import InvalidArgument, StateError
from ._library import (LAYOUT, check, constant, end, lib, new, struct,
                       tell)
from ._rows import SKIP_BAD, Dense, Ids, request
from ._table import use_file

_ptr = ctypes.byref
_OPTIONS = [name for name in LAYOUT["structs"]["tarn_embedding_options"]
            ["fields"] if name not in ("struct_size", "optimizer", "flags")]
_FLAGS = ("decoupled", "row_wise", "stochastic")


class Embedding(Dropping):
    """A table and an optimizer of its rows.

        e = libtarn.Embedding(table, "adam", learning_rate=.01)   # all ranks
        e.apply(ids, gradients)                                   # all ranks

    table:     a Table of f32, f16 or bf16 with a width. It cannot be closed
               before the embedding.
    optimizer: "sgd", "adam", "rmsprop" or "adagrad". The default options are
               PyTorch's; only rows that ids name change.
    options:   learning_rate, weight_decay, epsilon, momentum, beta1, beta2,
               alpha, initial, seed; flags: decoupled=True (AdamW),
               row_wise=True (AdaGrad), stochastic=True (rounding of f16 and
               bf16).

    Making, closing, apply, load and store are collectives. It ends by close(),
    by `with`, or when it is collected, as a Table does.
    """

    def __init__(self, table, optimizer="sgd", **options):
        self._handle = None
        self.table = table
        self.optimizer = optimizer
        told = self._options(optimizer, options)
        handle = ctypes.c_void_p()
        check(lib.tarn_embedding_create(_ptr(table._get("Embedding")),
                                        _ptr(told), _ptr(handle)),
              "Embedding")
        self._handle = handle.value
        self._learning_rate = told.learning_rate

    @staticmethod
    def _options(optimizer, options):
        told = new("tarn_embedding_options")
        try:
            number = constant(f"TARN_OPTIMIZER_{optimizer.upper()}")
        except AttributeError:
            raise InvalidArgument(f"no optimizer {optimizer!r}",
                                  "TARN_E_INVALID", "Embedding") from None
        check(lib.tarn_embedding_defaults(number, _ptr(told)), "Embedding")
        for name, value in options.items():
            if name in _FLAGS:
                told.flags |= value and constant(
                    f"TARN_EMBEDDING_{name.upper()}")
            elif name in _OPTIONS:
                setattr(told, name, value)
            else:
                raise InvalidArgument(f"no option {name!r}", "TARN_E_INVALID",
                                      "Embedding")
        return told

    def _get(self, call):
        if self._handle is None:
            raise StateError("the embedding is closed", call=call)
        return self._handle

    def __getitem__(self, ids):
        return self.table[ids]

    def apply(self, ids, gradients, missing=None):
        """Updates rows |ids| by |gradients|, ids.shape + (width,). Collective.

        Gradients of one row, of all ranks, are summed before.
        missing: "skip": an id without a row, such as -1, is left out.
        """
        call = "Embedding.apply"
        wanted = Ids(ids, self.table.shape[0], call)
        if is_torch(gradients):
            gradients = gradients.detach()
        dense = Dense(gradients, wanted.count, self.table.width, False, call)
        if missing not in (None, "skip"):
            raise InvalidArgument(f"missing is \"skip\" or None, not "
                                  f"{missing!r}", "TARN_E_INVALID", call)
        check(lib.tarn_embedding_apply(
            self._get(call),
            _ptr(request(wanted, dense, SKIP_BAD if missing else 0, call)),
            None), call)

    @property
    def learning_rate(self):
        """Of the next applies; the same at all ranks."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value):
        check(lib.tarn_embedding_set_learning_rate(
            self._get("Embedding.learning_rate"), value),
            "Embedding.learning_rate")
        self._learning_rate = value

    @property
    def states(self):
        """The states of this rank's rows, by the names that PyTorch gives
        them: each has address, stride (bytes), shape, dtype."""
        found = (struct("tarn_whole_named")
                 * constant("TARN_EMBEDDING_TENSORS"))()
        count = ctypes.c_size_t()
        check(lib.tarn_embedding_tensors(self._get("Embedding.states"),
                                         found, _ptr(count)),
              "Embedding.states")
        return {named.name.decode(): self._state(named.tensor)
                for named in found[:count.value] if named.name != b"table"}

    def _state(self, tensor):
        address = ctypes.c_uint64()
        check(lib.tarn_whole_tensor_local(_ptr(tensor), _ptr(address)),
              "Embedding.states")
        dtype = BY_CODE[tensor.dtype]
        rows = self.table.rows_of(self.table.comm.rank)[1]
        return types.SimpleNamespace(
            address=address.value, stride=tensor.stride * dtype.size,
            shape=(rows, tensor.width), dtype=dtype)

    def load(self, path, **options):
        """Reads table and states from a .safetensors file. Collective."""
        return use_file(lib.tarn_embedding_load, (self._get("Embedding.load"),),
                        path, options, "Embedding.load")

    def store(self, path, **options):
        """Writes table and states to a .safetensors file. Collective."""
        return use_file(lib.tarn_embedding_store,
                        (self._get("Embedding.store"),), path, options,
                        "Embedding.store")

    def close(self):
        """Ends the states; the table stays. Collective."""
        if self._handle is not None:
            error = end(lib.tarn_embedding_destroy, self._handle,
                        "Embedding.close")
            self._handle = None
            tell(error)

    def _drop(self):
        """Gives it up to its communicator. Whether it was open."""
        handle, self._handle = getattr(self, "_handle", None), None
        if handle is not None:
            lib.tarn_embedding_give_up(handle)
        return handle is not None

    def __repr__(self):
        return f"<libtarn.Embedding {self.optimizer} of {self.table!r}>"
