"""Element types: the names that NumPy, PyTorch and Tarn give them."""
import sys

from ._errors import InvalidArgument


class DType:
    """An element type of Tarn: "f32" of 4 bytes, "<f4" to NumPy.

    code: the number of tarn_dtype; size: bytes; typestr: as in
    __array_interface__, "<V2" for bf16, which NumPy lacks; format: as of
    module struct, None for bf16.
    """
    __slots__ = ("name", "code", "size", "typestr", "format")

    def __init__(self, name, code, size, typestr, letter):
        self.name = name
        self.code = code
        self.size = size
        self.typestr = typestr
        self.format = letter

    @property
    def is_float(self):
        """Whether it is one of f64, f32, f16, bf16."""
        return self.code <= 4

    def __repr__(self):
        return f"libtarn.dtype({self.name!r})"

    def numpy(self):
        """The dtype of NumPy; of bf16 that of ml_dtypes, else "<V2"."""
        import numpy
        if self.name == "bf16":
            try:
                import ml_dtypes
                return numpy.dtype(ml_dtypes.bfloat16)
            except ImportError:
                pass
        return numpy.dtype(self.typestr)

    def torch(self):
        """The dtype of PyTorch."""
        import torch
        return getattr(torch, _LONG[self.name])


_ALL = [DType(*told) for told in (
    ("f64", 1, 8, "<f8", "d"), ("f32", 2, 4, "<f4", "f"),
    ("f16", 3, 2, "<f2", "e"), ("bf16", 4, 2, "<V2", None),
    ("i64", 5, 8, "<i8", "q"), ("i32", 6, 4, "<i4", "i"),
    ("i16", 7, 2, "<i2", "h"), ("i8", 8, 1, "|i1", "b"),
    ("u64", 9, 8, "<u8", "Q"), ("u32", 10, 4, "<u4", "I"),
    ("u16", 11, 2, "<u2", "H"), ("u8", 12, 1, "|u1", "B"),
    ("bool", 13, 1, "|b1", "?"))]
_LONG = {"f64": "float64", "f32": "float32", "f16": "float16",
         "bf16": "bfloat16", "i64": "int64", "i32": "int32", "i16": "int16",
         "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16",
         "u8": "uint8", "bool": "bool"}
BY_CODE = {told.code: told for told in _ALL}
_BY_NAME = {told.name: told for told in _ALL}
_BY_NAME.update((_LONG[told.name], told) for told in _ALL)
_BY_NAME.update((told.typestr, told) for told in _ALL if told.name != "bf16")
I32, I64 = _BY_NAME["i32"], _BY_NAME["i64"]
_known = {}  # dtypes of other libraries


def dtype(given, call=""):
    """The DType for "f32", "float32", numpy.float32, torch.float32, ..."""
    if isinstance(given, DType):
        return given
    try:
        return _known[given]
    except (KeyError, TypeError):
        pass
    found = _BY_NAME.get(_name_of(given))
    if found is None:
        raise InvalidArgument(f"{given!r} is no element type of Tarn",
                              "TARN_E_INVALID", call)
    _known[given] = found
    return found


def _name_of(given):
    if isinstance(given, str):
        return given
    text = str(given)
    if text.startswith("torch."):
        return text[len("torch."):]
    numpy = sys.modules.get("numpy")
    if numpy is None and not isinstance(given, type):
        return text
    import numpy
    try:
        return numpy.dtype(given).newbyteorder("=").name
    except TypeError:
        return text


dtype_of = dtype
