"""The tag of the wheel: any Python 3, and the oldest glibc that has the symbols
which the files in it need."""
import os
import platform
import re

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OLDEST = 17  # of manylinux


def files_below(folder):
    for where, _, names in os.walk(folder):
        yield from (os.path.join(where, name) for name in names)


def newest_symbol(folder):
    """The N of the newest GLIBC_2.N that a file names."""
    newest = OLDEST
    for path in files_below(folder):
        with open(path, "rb") as file:
            data = file.read()
        if data.startswith(b"\x7fELF"):
            newest = max([newest, *map(int, re.findall(
                rb"\0GLIBC_2\.(\d+)", data))])
    return newest


class Tag(BuildHookInterface):
    def initialize(self, version, build_data):
        native = os.path.join(self.root, "libtarn", "_native")
        build_data["pure_python"] = False
        build_data["tag"] = (f"py3-none-manylinux_2_{newest_symbol(native)}_"
                             f"{platform.machine()}")
