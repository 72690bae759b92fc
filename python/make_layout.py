"""Writes the layout of a library, as the package carries it.

  make_layout.py LIBRARY FILE

FILE becomes a module with LAYOUT, the document of tarn_layout_json()
(tarn/layout.h) without the names of arguments. A module is loaded from bytecode
in a tenth of the time that JSON takes to parse.
"""
import ctypes
import json
import sys

HEAD = '"""What a library declares; made by python/make_layout.py."""\n'


def layout_of(path):
    library = ctypes.CDLL(path)
    library.tarn_layout_json.restype = ctypes.c_char_p
    layout = json.loads(library.tarn_layout_json())
    for call in layout["functions"].values():
        del call["names"]
    return layout


def main(library, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{HEAD}LAYOUT = {layout_of(library)!r}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
