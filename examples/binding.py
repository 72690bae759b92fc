"""A binding of Tarn for Python, made of tarn_layout_json().

  binding.py [LIBRARY]         takes a block of host memory and shows the pool
  binding.py LIBRARY --save    prints the layout, for a wheel to carry

Without LIBRARY it is libtarn.so.0, found as the linker finds it.

A wheel carries the layout that it was built with. When it is imported it
compares that with the library that it finds (differences), and makes its
types and functions of its own copy (Tarn): what the library has more is not
its business. docs/bindings.md tells the rest.
"""
import ctypes
import json
import re
import sys

BASIC = {"void": None, "bool": ctypes.c_bool, "char": ctypes.c_char,
         "int": ctypes.c_int, "unsigned int": ctypes.c_uint,
         "unsigned char": ctypes.c_ubyte, "float": ctypes.c_float,
         "double": ctypes.c_double,
         "size_t": ctypes.c_size_t,
         **{f"{sign}int{bits}_t": getattr(ctypes, f"c_{sign}int{bits}")
            for sign in ("", "u") for bits in (8, 16, 32, 64)}}


class TarnError(Exception):
    """A status other than TARN_OK; |status| is its name."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status


class Unfit(Exception):
    """The library is not one that the binding was made for."""


# --- two layouts -------------------------------------------------------------

def ranges(fields, reserved):
    """Bytes of the fields that are reserved, or of those that are not."""
    return {name: range(at["offset"], at["offset"] + at["size"])
            for name, at in fields.items()
            if name.startswith("reserved") == reserved}


def is_new_room(built, at):
    """Whether no program of the layout |built| has a meaning for these bytes.

    Padding at the end is none: nobody sets it."""
    grown = "struct_size" in built["fields"] and at.start >= built["size"]
    return grown or any(at.start in spare and at.stop <= spare.stop
                        for spare in ranges(built["fields"], True).values())


def struct_fits(built, loaded):
    old, new = ranges(built["fields"], False), ranges(loaded["fields"], False)
    grown = "struct_size" in built["fields"]
    return (loaded["align"] == built["align"]
            and (loaded["size"] >= built["size"] if grown
                 else loaded["size"] == built["size"])
            and all(loaded["fields"].get(name) == built["fields"][name]
                    for name in old)
            and all(is_new_room(built, at) for name, at in new.items()
                    if name not in old))


def enum_fits(built, loaded):
    """Numbers stay; those that count the others rise."""
    return built["size"] == loaded["size"] and all(
        name.endswith("_COUNT") or loaded["values"].get(name) == number
        for name, number in built["values"].items())


def call_fits(built, loaded):
    return all(built[key] == loaded[key] for key in ("returns", "arguments"))


FITS = {"enums": enum_fits, "structs": struct_fits, "callbacks": call_fits,
        "functions": call_fits, "constants": int.__eq__, "types": str.__eq__}


def differences(built, loaded):
    """What a binding of the layout |built| misses in a library of |loaded|.

    A wheel that does not use all of it may carry, and compare, a part."""
    for key in ("layout", "byte_order", "pointer_size"):
        if built[key] != loaded[key]:
            yield f"{key} is {loaded[key]}, not {built[key]}"
    for kind, fits in FITS.items():
        for name, told in built[kind].items():
            if name.startswith("TARN_VERSION_"):
                continue
            if name not in loaded[kind]:
                yield f"{name} is missing"
            elif not fits(told, loaded[kind][name]):
                yield f"{name} is another"


# --- types and functions -----------------------------------------------------

def layout_of(library):
    library.tarn_layout_json.restype = ctypes.c_char_p
    return json.loads(library.tarn_layout_json())


class Tarn:
    """Types, constants and functions by their names in C.

    |path| names the library; |built| is the layout that the binding carries,
    None for the library's own. Raises Unfit if the two do not go together.
    """

    def __init__(self, path, built=None):
        self.loaded_object = ctypes.CDLL(path)  # lets go of the GIL in each call
        loaded = layout_of(self.loaded_object)
        self.layout = built or loaded
        wrong = list(differences(self.layout, loaded))
        if wrong:
            raise Unfit("; ".join(wrong))
        self.constants = dict(self.layout["constants"])
        for enum in self.layout["enums"].values():
            self.constants.update(enum["values"])
        self.status_names = {
            number: name for name, number
            in self.layout["enums"]["tarn_status"]["values"].items()}
        self.structs = {name: type(name, (ctypes.Structure,), {})
                        for name in self.layout["structs"]}
        for name in self.layout["structs"]:
            self._lay_out(name)
        for name, call in self.layout["functions"].items():
            function = getattr(self.loaded_object, name)
            function.restype = self.type_of(call["returns"])
            function.argtypes = [self.type_of(a) for a in call["arguments"]]
            if call["returns"] == "tarn_status":
                function.errcheck = self._check
            setattr(self, name, function)

    def new(self, name, **fields):
        """A struct, with struct_size set where it has one."""
        cls = self.structs[name]
        if "struct_size" in self.layout["structs"][name]["fields"]:
            fields["struct_size"] = ctypes.sizeof(cls)
        return cls(**fields)

    def type_of(self, text):
        """The type of ctypes for one of C, as the layout writes it."""
        text = re.sub(r"\bconst\b", "", text).strip()
        array = re.fullmatch(r"(.*)\[(\d+)\]", text)
        if array:
            return self.type_of(array[1]) * int(array[2])
        if text.endswith("*"):
            return self._pointer_to(text[:-1].strip())
        if text in self.layout["types"]:
            return self.type_of(self.layout["types"][text])
        if text in self.layout["enums"]:
            return ctypes.c_int
        return BASIC[text] if text in BASIC else self.structs[text]

    def _pointer_to(self, text):
        if text in self.layout["callbacks"]:
            return self._function(self.layout["callbacks"][text])
        if text == "char":
            return ctypes.c_char_p
        known = text.endswith("*") or text in self.structs or any(
            text in self.layout[kind] for kind in ("types", "enums"))
        if known or BASIC.get(text):
            return ctypes.POINTER(self.type_of(text))
        return ctypes.c_void_p  # void, or what only the library looks into

    def _function(self, call):
        arguments = [self.type_of(a) for a in call["arguments"]]
        return ctypes.CFUNCTYPE(self.type_of(call["returns"]), *arguments)

    def _type_of_field(self, field):
        if "type" not in field:
            return self._function(field)
        return self.type_of(field["type"])

    def _lay_out(self, name):
        """Gives a struct its fields; those that overlap make a union."""
        cls, told = self.structs[name], self.layout["structs"][name]
        groups, end = [], 0
        for field, at in told["fields"].items():
            if at["offset"] >= end:
                groups.append([])
            groups[-1].append((field, self._type_of_field(at)))
            end = max(end, at["offset"] + at["size"])
        fields, unions = [], []
        for number, group in enumerate(groups):
            if len(group) > 1:
                unions.append(f"union{number}")
                union = type(f"{name}_{number}", (ctypes.Union,),
                             {"_fields_": group})
                group = [(unions[-1], union)]
            fields += group
        cls._anonymous_ = unions
        cls._fields_ = fields
        self._verify(name, cls, told)

    @staticmethod
    def _verify(name, cls, told):
        """What ctypes has made of it is what the library's compiler has."""
        wrong = [f for f, at in told["fields"].items()
                 if (getattr(cls, f).offset, getattr(cls, f).size)
                 != (at["offset"], at["size"])]
        if wrong or ctypes.sizeof(cls) != told["size"]:
            raise Unfit(f"{name} is laid out in another way: {wrong}")

    def _check(self, status, function, arguments):
        if status != 0:
            text = self.loaded_object.tarn_last_error().decode(errors="replace")
            raise TarnError(self.status_names.get(status, str(status)), text)
        return status


# --- a program ---------------------------------------------------------------

def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "libtarn.so.0"
    save = sys.argv[2:] == ["--save"]
    if save:
        print(json.dumps(layout_of(ctypes.CDLL(path)), indent=1))
        return
    tarn = Tarn(path)
    host = tarn.new("tarn_place")  # zero: plain host memory
    pool, block = ctypes.c_void_p(), tarn.new("tarn_block")
    stats = tarn.new("tarn_pool_stats")
    tarn.tarn_pool_of(host, pool)
    tarn.tarn_pool_alloc(pool, 1 << 20, 0, None, block)
    ctypes.memset(block.pointer, 7, block.size)
    tarn.tarn_pool_query(pool, stats)
    print(f"{tarn.tarn_version().decode()}: {stats.strategy.decode()} has "
          f"{stats.live_blocks} block of {stats.live_bytes} bytes out")
    tarn.tarn_pool_free(block, None)


if __name__ == "__main__":
    main()
