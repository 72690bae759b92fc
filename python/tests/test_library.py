"""The loaded library: what the package carries of it, errors, names."""
import copy
import ctypes
import json
import os
import pickle
import unittest

import kit
import libtarn
from libtarn import _errors, _library
from libtarn._library import LAYOUT, lib


def loaded_layout():
    lib.handle.tarn_layout_json.restype = ctypes.c_char_p
    return json.loads(lib.handle.tarn_layout_json())


class Layout(unittest.TestCase):
    def test_is_the_library_s(self):
        self.assertEqual(list(_library.differences(LAYOUT, loaded_layout())),
                         [])

    def test_structs_are_laid_out_as_the_compiler_has_them(self):
        for name, told in LAYOUT["structs"].items():
            made = _library.struct(name)
            self.assertEqual(ctypes.sizeof(made), told["size"], name)
            for field, at in told["fields"].items():
                have = getattr(made, field)
                self.assertEqual((have.offset, have.size),
                                 (at["offset"], at["size"]), (name, field))

    def test_every_function_can_be_bound(self):
        for name in LAYOUT["functions"]:
            self.assertIsNotNone(getattr(lib, name).argtypes)

    def test_a_difference_is_named(self):
        other = copy.deepcopy(loaded_layout())
        other["structs"]["tarn_block"]["size"] += 8
        other["enums"]["tarn_status"]["values"]["TARN_FULL"] = 7
        del other["functions"]["tarn_pool_alloc"]
        self.assertEqual(
            sorted(_library.differences(LAYOUT, other)),
            ["tarn_block is another", "tarn_pool_alloc is missing",
             "tarn_status is another"])

    def test_a_struct_with_its_size_may_grow(self):
        other = copy.deepcopy(loaded_layout())
        other["structs"]["tarn_whole_options"]["size"] += 8
        self.assertEqual(list(_library.differences(LAYOUT, other)), [])

    def test_another_file_is_refused_by_name(self):
        code = "import libtarn; libtarn.version()"
        for path, text in (("/nowhere/libtarn.so", "cannot load /nowhere"),
                           ("libc.so.6", "is no libtarn")):
            rc, _, said = kit.run(
                f"import os; os.environ['TARN_LIBRARY'] = {path!r}\n{code}")
            self.assertEqual(rc, 1)
            self.assertIn(text, said)

    def test_a_named_library_is_taken(self):
        path = os.path.realpath(os.path.join(_library.NATIVE, "libtarn.so.0"))
        rc, said, _ = kit.run(
            f"import os; os.environ['TARN_LIBRARY'] = {path!r}\n"
            "import libtarn; print(libtarn.version())")
        self.assertEqual((rc, said.strip()), (0, libtarn.version()))


class Errors(unittest.TestCase):
    def test_statuses_are_what_python_calls_them(self):
        kinds = {"TARN_FULL": MemoryError, "TARN_E_NOMEM": MemoryError,
                 "TARN_E_INVALID": ValueError, "TARN_E_STATE": RuntimeError,
                 "TARN_E_PEER_LOST": ConnectionError,
                 "TARN_E_TIMEOUT": TimeoutError, "TARN_E_IO": OSError,
                 "TARN_E_UNSUPPORTED": NotImplementedError,
                 "TARN_E_DEVICE": libtarn.TarnError,
                 "TARN_E_CORRUPT": libtarn.TarnError}
        for status, kind in kinds.items():
            error = _errors.error_of(status, "why", "Call")
            self.assertIsInstance(error, kind)
            self.assertIsInstance(error, libtarn.TarnError)
            self.assertEqual((str(error), error.status),
                             ("Call: why", status))

    def test_they_travel_between_processes(self):
        for status in ("TARN_FULL", "TARN_E_PEER_LOST", "TARN_E_INVALID"):
            error = _errors.error_of(status, "why", "Call")
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(again), str(again), again.status),
                             (type(error), str(error), status))

    def test_text_and_call_are_in_them(self):
        with self.assertRaisesRegex(libtarn.InvalidArgument,
                                    r"device: .*nosuch") as caught:
            libtarn.device("nosuch:0")
        self.assertEqual(caught.exception.status, "TARN_E_INVALID")


class Names(unittest.TestCase):
    def test_all_are_there(self):
        for name in libtarn.__all__:
            self.assertTrue(getattr(libtarn, name).__doc__, name)

    def test_an_import_loads_no_numpy_and_no_torch(self):
        rc, said, _ = kit.run(
            "import sys, libtarn; libtarn.Table; libtarn.version()\n"
            "print({'numpy', 'torch', 'json'} & set(sys.modules))")
        self.assertEqual((rc, said.strip()), (0, "set()"))

    def test_devices(self):
        self.assertEqual(libtarn.devices()[0], "cpu:0")
        sim = libtarn.device("sim:0")
        self.assertIs(libtarn.device("sim:0"), sim)
        total, free = sim.memory
        self.assertGreaterEqual(total, free)
        self.assertEqual(sim.info["name"], "sim:0")
        self.assertFalse(libtarn.place("sim:0").host)
        self.assertTrue(libtarn.place("sim:0/host").host)
        self.assertEqual([libtarn.place(name).name for name in
                          ("sim", "sim/host", "sim:1", "host")],
                         ["sim:0", "sim:0/host", "sim:1", "host"])
        sim.close()
        with self.assertRaisesRegex(ValueError, "no such place: 'host/device'"):
            libtarn.place("host/device")


if __name__ == "__main__":
    kit.main()
