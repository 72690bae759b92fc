"""The command `tarn` of the package: it becomes the tool."""
import os
import sys

NATIVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_native")


def path_of_tool():
    """The package's own `tarn`; else that of PATH."""
    own = os.path.join(NATIVE, "tarn")
    return own if os.path.exists(own) else "tarn"


def main():
    """Runs the tool in place of this process."""
    tool = path_of_tool()
    try:
        os.execvp(tool, ["tarn", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"tarn: {tool}: {error.strerror}")
