"""A net's memory by its tensors and steps."""
import gc
import os
import tempfile
import unittest

import kit
import libtarn


def chain(model, length=4):
    """fed -> t0 -> t1 -> ...: two of them are needed at a time."""
    before = fed = model.add("output", "fed", "f32", (-1, 64))
    steps, tensors = [], []
    for number in range(length):
        after = model.add("output", f"t{number}", "f32", (-1, 64))
        step = model.step(f"s{number}")
        step.reads(before)
        step.writes(after)
        steps.append(step)
        tensors.append(after)
        before = after
    return fed, steps, tensors


class Models(unittest.TestCase):
    def test_tensors_share_memory_and_steps_say_when(self):
        np = kit.module("numpy")
        with libtarn.Model("net", max_batch=8) as m:
            fed, steps, tensors = chain(m)
            m.plan("infer")
            needs = m.needs
            self.assertEqual(needs.naive, 4 * 8 * 64 * 4)
            self.assertEqual(needs.planned, 2 * 8 * 64 * 4)
            m.place()
            with fed.data.write() as a:
                a.numpy()[:] = 1
            source = fed
            for step, tensor in zip(steps, tensors):
                step.enter()
                with source.data.read() as a, tensor.data.write() as b:
                    b.numpy()[:] = a.numpy() * 2
                source = tensor
            with source.data.read() as a:
                self.assertEqual(a.numpy().shape, (8, 64))
                self.assertTrue((np.asarray(a) == 16).all())
                del a
            with self.assertRaisesRegex(libtarn.StateError, "t0"):
                tensors[0].data.read().__enter__()
            m.batch = 3
            self.assertEqual(fed.shape, (3, 64))

    def test_parameters_in_files(self):
        kit.module("numpy")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.safetensors")
            for number in range(2):
                with libtarn.Model("net") as m:
                    w = m.add("param", "fc.weight", "f32", (4, 8))
                    m.step("fc").reads(w)
                    m.plan("infer")
                    m.place()
                    if number == 0:
                        with w.data.write() as a:
                            a.numpy()[:] = 5
                        m.save(path)
                    else:
                        m.load(path)
                        with w.data.read() as a:
                            self.assertEqual(a.numpy().sum(), 160)

    def test_what_is_wrong_is_named(self):
        with libtarn.Model("net") as m:
            x = m.add("output", "x", "f32", (2, 2))
            y = m.add("output", "y", "f32", (2, 2))
            step = m.step("fc")
            step.reads(y)
            with self.assertRaisesRegex(libtarn.StateError, "not placed"):
                x.data.read().__enter__()
            for call, text in (
                    (lambda: m.add("thing", "z", "f32", (1,)), "thing"),
                    (lambda: step.reads(x, "weight"), "weight"),
                    (lambda: m.plan("sideways"), "sideways")):
                with self.assertRaisesRegex(ValueError, text):
                    call()

    def test_arrays_keep_it(self):
        np = kit.module("numpy")
        m = libtarn.Model("net")
        w = m.add("param", "w", "f32", (4,))
        m.step("fc").reads(w)
        m.plan("infer")
        m.place()
        with w.data.write() as a:
            view = np.from_dlpack(a)
        with self.assertRaisesRegex(libtarn.StateError, "1 arrays"):
            m.close()
        with self.assertWarnsRegex(ResourceWarning, "model net: it stays"):
            del m, w, a
            gc.collect()
        self.assertEqual(view.sum(), view.sum())


if __name__ == "__main__":
    kit.main()
