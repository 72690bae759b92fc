"""What the tests of the package share."""
import subprocess
import sys
import unittest


class _Result(unittest.TextTestResult):
    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f"SKIPPED: {test.id().split('.', 1)[-1]}: {reason}", flush=True)


def main():
    """Runs the tests of the calling program; 77: all were skipped."""
    program = unittest.main(module="__main__", exit=False,
                            testRunner=unittest.TextTestRunner(
                                resultclass=_Result))
    result = program.result
    if result.testsRun == 0:
        sys.exit("no tests")
    if result.wasSuccessful() and len(result.skipped) == result.testsRun:
        sys.exit(77)
    sys.exit(not result.wasSuccessful())


def module(name):
    """A module that a machine may lack; its tests are skipped then."""
    try:
        return __import__(name)
    except ImportError:
        raise unittest.SkipTest(f"no {name} here") from None


def run(source, *options):
    """A program of Python: (exit status, stdout, stderr)."""
    done = subprocess.run([sys.executable, *options, "-c", source],
                          capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr
