"""The programs in docs/python.md run."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import kit

PAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))), "docs", "python.md")


class Docs(unittest.TestCase):
    def test_programs(self):
        kit.module("numpy")
        with open(PAGE, encoding="utf-8") as file:
            programs = re.findall(r"^```python\n(.*?)^```$", file.read(),
                                  re.M | re.S)
        self.assertGreaterEqual(len(programs), 4)
        with tempfile.TemporaryDirectory() as folder:
            for number, program in enumerate(programs):
                path = os.path.join(folder, f"program{number}.py")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(program)
                done = subprocess.run(
                    [sys.executable, "-W", "error", path], timeout=120,
                    capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""),
                                 program)
                for line in re.findall(r"print\(.*\) +# (\[\[.*)", program):
                    self.assertIn(line, done.stdout)


if __name__ == "__main__":
    kit.main()
