"""The tool's answers as objects: why, view, replay, plan."""
import os
import pickle
import tempfile
import unittest

import kit
import libtarn
from libtarn import _tool

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
DATA = os.environ.get("TARN_TEST_DATA",
                      os.path.join(ROOT, "..", "shared", "data"))
TRAINING = os.path.join(DATA, "traces", "torch-gpt-medium-128-training.pickle")


def snapshot():
    """What torch.cuda.memory._snapshot() gives, of two tensors."""
    frames = [{"name": "forward", "filename": "model.py", "line": 7}]

    def event(action, address, size, time):
        return {"action": action, "addr": address, "size": size, "stream": 0,
                "time_us": time, "frames": frames}
    return {"segments": [{
        "address": 1 << 32, "total_size": 1 << 21, "stream": 0, "device": 0,
        "segment_type": "large", "allocated_size": 0, "active_size": 0,
        "blocks": [{"address": 1 << 32, "size": 1 << 21, "requested_size": 0,
                    "state": "inactive", "frames": []}]}],
        "device_traces": [[
            event("alloc", 1 << 32, 4096, 1),
            event("alloc", (1 << 32) + 4096, 1 << 20, 2),
            event("free_completed", 1 << 32, 4096, 3)]]}


class Why(unittest.TestCase):
    def test_a_snapshot_of_torch_goes_through_memory(self):
        got = libtarn.why(snapshot())
        self.assertEqual(got.peak_bytes, 4096 + (1 << 20))
        self.assertIn("model.py:7", got.holders[0].frame)
        self.assertEqual(got.holders[0].bytes, got.peak_bytes)
        self.assertEqual(got.raw["peak_bytes"], got.peak_bytes)
        self.assertIn("model.py:7", str(got))
        self.assertIn("<table>", got._repr_html_())

    def test_a_path(self):
        with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
            pickle.dump(snapshot(), file)
            file.flush()
            self.assertEqual(libtarn.why(file.name, top=1).peak_bytes,
                             libtarn.why(snapshot()).peak_bytes)

    def test_roles_are_attributes_where_there_are_any(self):
        told = {"peak_bytes": 10, "peak_event": 1, "holders": []}
        self.assertEqual(_tool.Why(told).roles, [])
        got = _tool.Why({**told, "roles": [{"role": "gradient", "bytes": 10}]})
        self.assertEqual((got.roles[0].role, got.roles[0].bytes),
                         ("gradient", 10))
        self.assertIn("gradient", got._repr_html_())
        self.assertIn("100.0%  gradient", str(got))

    def test_what_is_no_trace_is_an_error(self):
        for trace in ("/nowhere.pickle", __file__, {"no": "snapshot"}):
            with self.assertRaises(libtarn.TarnError) as caught:
                libtarn.why(trace)
            self.assertRegex(str(caught.exception), "^why: tarn")
        with self.assertRaisesRegex(ValueError, "no-such"):
            libtarn.why(snapshot(), no_such=True)

    def test_the_training_snapshot(self):
        if not os.path.exists(TRAINING):
            self.skipTest("no snapshot of a training here")
        got = libtarn.why(TRAINING, top=3)
        self.assertEqual(got.peak_bytes, 7_013_335_044)
        self.assertIn("3.22 GiB", got._repr_html_())
        self.assertEqual(sum(held.bytes for held in got.holders),
                         got.peak_bytes)
        if got.roles:
            self.assertEqual(sum(held.bytes for held in got.roles),
                             got.peak_bytes)


class Pages(unittest.TestCase):
    def test_view(self):
        got = libtarn.view(snapshot(), title="two <tensors>")
        self.assertTrue(got.html.startswith("<!"))
        self.assertIn("<iframe srcdoc=\"&lt;!", got._repr_html_())
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.html")
            got.save(path)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), got.html)

    def test_replay(self):
        got = libtarn.replay("@bert-layer", iterations=3, dry=True,
                             pool=["arena_pool", "no_pool"])
        self.assertEqual([r.pool for r in got.results],
                         ["arena_pool", "no_pool"])
        self.assertEqual(len(got.results[0].iterations), 3)
        self.assertGreaterEqual(got.results[0].reserved_peak_bytes,
                                got.live_peak_bytes)
        self.assertIn("arena_pool", got._repr_html_())


BUFFERS = [(0, 2, 100), (1, 3, 50), (2, 4, 100)]


class Plan(unittest.TestCase):
    def test_offsets(self):
        got = libtarn.plan(BUFFERS)
        self.assertEqual((got.status, got.height), ("optimal", 150))
        self.assertEqual(list(got.offsets)[0], list(got.offsets)[2])
        self.assertIn("<svg", got._repr_html_())

    def test_offsets_are_of_numpy(self):
        np = kit.module("numpy")
        got = libtarn.plan(np.array([(0, 2, 100, 64), (0, 2, 30, 64)]))
        self.assertEqual(got.offsets.dtype, np.int64)
        self.assertEqual((got.offsets % 64).tolist(), [0, 0])

    def test_no_plan(self):
        got = libtarn.plan(BUFFERS, capacity=120)
        self.assertEqual((got.status, got.offsets), ("infeasible", None))

    def test_what_is_wrong_is_named(self):
        with self.assertRaisesRegex(ValueError, "plan: tarn plan"):
            libtarn.plan([(2, 1, 100)])


class Command(unittest.TestCase):
    def test_the_program_of_the_package(self):
        rc, said, _ = kit.run(
            "import sys; from libtarn._command import main\n"
            "sys.argv = ['tarn', '--version']; main()")
        self.assertEqual(rc, 0)
        self.assertIn(libtarn.version(), said)


if __name__ == "__main__":
    kit.main()
