"""Files that the package safetensors writes, and reads, and that Tarn does."""
import os
import tempfile

import numpy as np
import safetensors
from safetensors.numpy import load_file, save_file

import libtarn

DTYPES = ("float64", "float32", "float16", "int64", "int32", "int16", "int8",
          "uint64", "uint32", "uint16", "uint8")


def main():
    comm = libtarn.init()
    rng = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as folder:
        for dtype in DTYPES:
            rows = (rng.random((101, 7)) * 100).astype(dtype)
            theirs, ours = (os.path.join(folder, f"{who}-{dtype}.safetensors")
                            for who in ("theirs", "ours"))
            with libtarn.Table(rows.shape, dtype, name="rows") as t:
                save_file({"other": np.zeros(3), "rows": rows}, theirs)
                libtarn.load(theirs, {"rows": t})
                assert np.array_equal(t[:], rows), dtype
                libtarn.store(ours, {"rows": t})
            found = load_file(ours)["rows"]
            assert found.dtype == rows.dtype and np.array_equal(found, rows)
    comm.close()
    print(f"safetensors {safetensors.__version__}: {len(DTYPES)} dtypes, both "
          "ways")


main()
