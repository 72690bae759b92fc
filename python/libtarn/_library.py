"""The loaded library: its functions, structs and constants by their C names.

Which file it is, in this order: the one that TARN_LIBRARY names; the package's
own, in _native/; the system's libtarn.so.0. One that is not the package's own
must have what the package was built with.

Everything is made when it is first used, so that an import costs little.
"""
import ctypes
import os

from ._command import NATIVE
from ._errors import error_of
from ._layout import LAYOUT

_BASIC = {"void": None, "bool": ctypes.c_bool, "char": ctypes.c_char,
          "int": ctypes.c_int, "unsigned int": ctypes.c_uint,
          "unsigned char": ctypes.c_ubyte, "float": ctypes.c_float,
          "double": ctypes.c_double, "size_t": ctypes.c_size_t,
          "int8_t": ctypes.c_int8, "uint8_t": ctypes.c_uint8,
          "int16_t": ctypes.c_int16, "uint16_t": ctypes.c_uint16,
          "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32,
          "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64}


# --- two layouts -------------------------------------------------------------

def _struct_fits(built, loaded):
    """Known fields are where they were; a struct with struct_size may grow."""
    if "struct_size" in built["fields"]:
        same_size = loaded["size"] >= built["size"]
    else:
        same_size = loaded["size"] == built["size"]
    return same_size and loaded["align"] == built["align"] and all(
        loaded["fields"].get(name) == told
        for name, told in built["fields"].items()
        if not name.startswith("reserved"))


def _enum_fits(built, loaded):
    return built["size"] == loaded["size"] and all(
        name.endswith("_COUNT") or loaded["values"].get(name) == number
        for name, number in built["values"].items())


def _call_fits(built, loaded):
    return all(built[key] == loaded[key] for key in ("returns", "arguments"))


_FITS = {"enums": _enum_fits, "structs": _struct_fits,
         "callbacks": _call_fits, "functions": _call_fits,
         "constants": int.__eq__, "types": str.__eq__}


def differences(built, loaded):
    """What the package misses in a library of the layout |loaded|, as texts."""
    for key in ("layout", "byte_order", "pointer_size"):
        if built[key] != loaded[key]:
            yield f"{key} is {loaded[key]}, not {built[key]}"
    for kind, fits in _FITS.items():
        for name, told in built[kind].items():
            if name.startswith("TARN_VERSION_"):
                continue
            if name not in loaded[kind]:
                yield f"{name} is missing"
            elif not fits(told, loaded[kind][name]):
                yield f"{name} is another"


# --- loading -----------------------------------------------------------------

def _path():
    named = os.environ.get("TARN_LIBRARY")
    own = os.path.join(NATIVE, "libtarn.so.0")
    if named:
        return named, False
    return (own, True) if os.path.exists(own) else ("libtarn.so.0", False)


def _load():
    path, is_own = _path()
    try:
        loaded = ctypes.CDLL(path)  # lets go of the GIL in each call
    except OSError as error:
        raise ImportError(
            f"libtarn: cannot load {path}: {error}. TARN_LIBRARY names "
            "another file.") from None
    if not is_own:
        _compare(path, loaded)
    return loaded


def _compare(path, loaded):
    import json
    try:
        document = loaded.tarn_layout_json
    except AttributeError:
        raise ImportError(f"libtarn: {path} is no libtarn") from None
    document.restype = ctypes.c_char_p
    wrong = list(differences(LAYOUT, json.loads(document())))
    if wrong:
        raise ImportError(f"libtarn: {path} is another version: "
                          + "; ".join(wrong[:8]))


# --- types -------------------------------------------------------------------

def type_of(text):
    """The type of ctypes for one of C, as the layout writes it."""
    text = text.replace("*const", "*").replace("const ", "").strip()
    if text.endswith("]"):
        element, count = text[:-1].rsplit("[", 1)
        return type_of(element) * int(count)
    if text.endswith("*"):
        return _pointer_to(text[:-1].strip())
    if text in LAYOUT["types"]:
        return type_of(LAYOUT["types"][text])
    if text in LAYOUT["enums"]:
        return ctypes.c_int
    return _BASIC[text] if text in _BASIC else struct(text)


def _pointer_to(text):
    """Pointers to structs and numbers may be given as addresses or byref()."""
    if text in LAYOUT["callbacks"]:
        return callback(text)
    return ctypes.c_char_p if text == "char" else ctypes.c_void_p


def _prototype(call):
    return ctypes.CFUNCTYPE(type_of(call["returns"]),
                            *map(type_of, call["arguments"]))


_made = {}


def callback(name):
    """The type of a callback of C."""
    if name not in _made:
        _made[name] = _prototype(LAYOUT["callbacks"][name])
    return _made[name]


def struct(name):
    """The ctypes.Structure of that name."""
    if name not in _made:
        _made[name] = _lay_out(name, LAYOUT["structs"][name]["fields"])
    return _made[name]


def _field_type(told):
    return type_of(told["type"]) if "type" in told else _prototype(told)


def _lay_out(name, fields):
    """Fields that overlap become an unnamed union."""
    groups, end = [], 0
    for field, told in fields.items():
        if told["offset"] >= end:
            groups.append([])
        groups[-1].append((field, _field_type(told)))
        end = max(end, told["offset"] + told["size"])
    unions, listed = [], []
    for group in groups:
        if len(group) > 1:
            union = type("union", (ctypes.Union,), {"_fields_": group})
            group = [(f"_union{len(unions)}", union)]
            unions.append(group[0][0])
        listed += group
    return type(name, (ctypes.Structure,),
                {"_anonymous_": unions, "_fields_": listed})


def new(name, /, **fields):
    """A struct, with struct_size set where it has one."""
    made = struct(name)
    if "struct_size" in LAYOUT["structs"][name]["fields"]:
        fields["struct_size"] = ctypes.sizeof(made)
    return made(**fields)


def values(made):
    """The fields of a struct as a dict, texts decoded; none of structs."""
    found = {}
    for field, _ in made._fields_:
        value = getattr(made, field)
        if isinstance(value, bytes):
            value = value.decode(errors="replace")
        if (field not in ("struct_size", "reserved")
                and not isinstance(value, ctypes.Structure)):
            found[field] = value
    return found


def constant(name):
    """The number of an enumerator or a constant."""
    if name in LAYOUT["constants"]:
        return LAYOUT["constants"][name]
    for enum in LAYOUT["enums"].values():
        if name in enum["values"]:
            return enum["values"][name]
    raise AttributeError(name)


# --- calls -------------------------------------------------------------------

class _Library:
    """Functions of the library as attributes."""

    def __getattr__(self, name):
        if name == "handle":
            self.handle = _load()
            return self.handle
        call = LAYOUT["functions"].get(name)
        if call is None:
            raise AttributeError(name)
        function = self.handle[name]  # an object of its own
        function.restype = type_of(call["returns"])
        function.argtypes = [type_of(a) for a in call["arguments"]]
        setattr(self, name, function)
        return function


lib = _Library()


def address_of(name):
    """The address of a function, to be handed to the library."""
    return ctypes.cast(getattr(lib, name), ctypes.c_void_p).value


def _error(status, call):
    text = lib.tarn_last_error().decode(errors="replace")
    return error_of(lib.tarn_status_name(status).decode(), text, call)


def fail(status, call):
    """Raises the error of |status|, which a call has just returned."""
    raise _error(status, call)


def end(function, handle, call):
    """Ends an object. Raises if it is still there. Returns the error, or None,
    of one that is gone: a driver has failed, or other ranks are lost."""
    status = function(handle)
    error = _error(status, call) if status else None
    if error is not None and error.status in (
            "TARN_E_INVALID", "TARN_E_STATE", "TARN_E_NOMEM"):
        raise error
    return error


def tell(error):
    """Raises what end() has returned, when all is in order."""
    if error is not None:
        raise error


def check(status, call):
    """|call| is the Python call, for the error's text."""
    if status:
        fail(status, call)


def made_by(function, call, *arguments):
    """What a function writes to its last argument, a pointer."""
    made = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(made)), call)
    return made.value


def text(value):
    """For an argument: bytes of a str or of a path."""
    return None if value is None else os.fsencode(value)
