"""docs/contracts.md says of each public struct how large it is and whether it
may grow, as the library has it.

  structs.py DOCUMENT LIBRARY
"""
import ctypes
import json
import re
import sys

ROW = re.compile(r"\| `(tarn_\w+)` \| (\d+) \| (\w*)", re.M)


def structs_of(path):
    library = ctypes.CDLL(path)
    library.tarn_layout_json.restype = ctypes.c_char_p
    return json.loads(library.tarn_layout_json())["structs"]


def row(name, told):
    """How its row begins."""
    fields = told["fields"]
    kind = "grows" if next(iter(fields)) == "struct_size" else \
        "room" if "reserved" in fields else "frozen"
    return name, str(told["size"]), kind


def main(document, library):
    said = set(ROW.findall(open(document, encoding="utf-8").read()))
    true = {row(name, told) for name, told in structs_of(library).items()}
    for name, size, kind in sorted(true - said):
        print(f"{document} lacks: | `{name}` | {size} | {kind}")
    for name, size, kind in sorted(said - true):
        print(f"{document} is wrong: | `{name}` | {size} | {kind}")
    if said != true:
        sys.exit(1)
    print(f"{len(true)} structs")


main(*sys.argv[1:])
