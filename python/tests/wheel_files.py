"""A wheel holds what it should, and its tag is what its symbols need.

  wheel_files.py WHEEL
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

MOST = 5 << 20  # bytes
NEEDED = ("tarn", "libtarn.so.0", "libtarn-record.so", "libtarn-malloc.so",
          "plugins/tarn_cuda.so", "LICENSE")
wheel = None


def readelf(option, path):
    return subprocess.run(["readelf", "--wide", option, path], check=True,
                          capture_output=True, text=True).stdout


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="libtarn-")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(cls.folder.name)
            cls.names = archive.namelist()
        cls.native = os.path.join(cls.folder.name, "libtarn", "_native")
        cls.objects = [os.path.join(cls.folder.name, name)
                       for name in cls.names if name.split("/")[-1] == "tarn"
                       or ".so" in name.split("/")[-1]]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_tag_is_that_of_the_newest_symbol(self):
        newest = 17
        for path in self.objects:
            newest = max([newest, *map(int, re.findall(
                r"Name: GLIBC_2\.(\d+)", readelf("-V", path)))])
        self.assertRegex(os.path.basename(wheel),
                         rf"^libtarn-[0-9.]+-py3-none-manylinux_2_{newest}_")

    def test_it_holds_what_it_should(self):
        for name in NEEDED:
            self.assertTrue(os.path.exists(os.path.join(self.native, name)),
                            name)
        self.assertEqual([n for n in self.names if "mpi" in n], [])
        self.assertLess(os.path.getsize(wheel), MOST)

    def test_what_was_grafted_has_its_licence(self):
        libs = os.path.join(self.native, "libs")
        grafted = [n for n in os.listdir(libs) if ".so" in n]
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", "".join(
            readelf("-d", path) for path in self.objects))
        system = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
        self.assertEqual(set(needed) - system, set(grafted))
        licences = os.listdir(os.path.join(libs, "licences"))
        self.assertEqual(len(licences), len(grafted))

    def test_no_path_of_the_machine_is_in_it(self):
        for path in self.objects:
            found = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]",
                               readelf("-d", path))
            self.assertIn(found, ([], ["$ORIGIN/libs"]), path)

    def test_symbols_for_debuggers_are_left_out(self):
        for path in self.objects:
            self.assertNotIn(".debug_info", readelf("-S", path), path)


if __name__ == "__main__":
    wheel = sys.argv.pop(1)
    unittest.main()
