"""Objects end in any order: by `with`, at collection, at exit, after fork."""
import gc
import os
import unittest
import warnings

import kit
import libtarn
from libtarn._library import lib


class Views(unittest.TestCase):
    def close_is_refused(self, make, drop=lambda view: None):
        t = libtarn.Table((100, 4), "f32", name="seen")
        view = make(t)
        with self.assertRaisesRegex(libtarn.StateError, "1 arrays .*in use"):
            t.close()
        self.assertEqual(t.shape, (100, 4))
        drop(view)
        del view
        gc.collect()
        t.close()
        with self.assertRaisesRegex(libtarn.StateError, "closed"):
            t.local

    def test_an_array(self):
        self.close_is_refused(lambda t: t.local)

    def test_a_memoryview(self):
        self.close_is_refused(lambda t: memoryview(t.buffer),
                              lambda view: view.release())

    def test_numpy(self):
        np = kit.module("numpy")
        self.close_is_refused(lambda t: np.asarray(t.local)[3:5])

    def test_numpy_by_dlpack(self):
        np = kit.module("numpy")
        self.close_is_refused(lambda t: np.from_dlpack(t.local))

    def test_torch(self):
        torch = kit.module("torch")
        self.close_is_refused(lambda t: torch.from_dlpack(t.local)[2])

    def test_a_capsule_that_nobody_takes(self):
        for version in (None, (1, 0)):
            t = libtarn.Table((100, 4), "f32")
            capsule = t.local.__dlpack__(max_version=version)
            with self.assertRaises(libtarn.StateError):
                t.close()
            del capsule
            t.local.__dlpack__(max_version=version)
            t.close()


class Collection(unittest.TestCase):
    def setUp(self):
        for name in (None, "lost"):  # names are kept
            libtarn.Table((100, 4), "f32", name=name).close()
        gc.collect()

    def memory(self):
        return lib.tarn_host_memory()

    def test_a_table_goes_to_its_communicator_with_a_warning(self):
        comm = libtarn.init()
        comm.collect()
        before = self.memory()
        t = libtarn.Table((100, 4), "f32", name="lost")
        with self.assertWarnsRegex(ResourceWarning, "Table lost"):
            del t
            gc.collect()
        self.assertGreater(self.memory(), before)
        comm.collect()
        self.assertEqual(self.memory(), before)

    def test_the_next_table_ends_it(self):
        comm = libtarn.init()
        comm.collect()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            t = libtarn.Table((100, 4), "f32")
            one = self.memory()
            for _ in range(20):
                t = libtarn.Table((100, 4), "f32")
            # The old one is dropped only when the new one is there.
            self.assertLessEqual(self.memory(), one + 4096)
        t.close()

    def test_a_view_outlives_its_table(self):
        np = kit.module("numpy")
        comm = libtarn.init()
        comm.collect()
        before = self.memory()
        t = libtarn.Table((100, 4), "f32")
        view = np.asarray(t.local)
        other = np.from_dlpack(t.local)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            del t
            gc.collect()
        comm.collect()
        view[:] = 3
        self.assertEqual(other.sum(), 1200)
        del view
        comm.collect()
        self.assertEqual(other.sum(), 1200)
        del other
        comm.collect()
        self.assertEqual(self.memory(), before)

    def test_a_cycle_is_collected(self):
        comm = libtarn.init()
        comm.collect()
        before = self.memory()
        t = libtarn.Table((100, 4), "f32")
        t.itself, t.view = t, t.local
        with self.assertWarns(ResourceWarning):
            del t
            gc.collect()
        comm.collect()
        self.assertEqual(self.memory(), before)

    def test_threads_drop_while_others_make(self):
        import threading
        kept = [libtarn.Table((10, 2), "f32") for _ in range(50)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            thread = threading.Thread(target=kept.clear)
            thread.start()
            for _ in range(50):
                libtarn.Table((10, 2), "f32").close()
            thread.join()
        libtarn.init().collect()


EXIT = """
import gc, os, sys, libtarn
t = libtarn.Table((100, 4), "f32")
array, view = t.local, memoryview(t.buffer)
try:
    import numpy
    array2, array3 = numpy.asarray(t.local), numpy.from_dlpack(t.local)
except ImportError:
    pass
capsule = t.local.__dlpack__()
"""


class Exit(unittest.TestCase):
    def ends_well(self, more, status=0):
        rc, _, said = kit.run(EXIT + more, "-W", "ignore")
        self.assertEqual((rc, said), (status, ""), more)

    def test_in_any_order(self):
        for more in ("", "del t", "del t; gc.collect()",
                     "sys.t = t; sys.a = array; del t, array",
                     "os._exit(3)"):
            self.ends_well(more, 3 if "_exit" in more else 0)

    def test_with_torch(self):
        kit.module("torch")
        self.ends_well("import torch; x = torch.from_dlpack(t.local)")

    def test_with_an_error(self):
        rc, _, said = kit.run(EXIT + "raise SystemExit(4)", "-W", "ignore")
        self.assertEqual((rc, said), (4, ""))

    def test_a_warning_at_exit(self):
        _, _, said = kit.run("import libtarn\n"
                             "t = libtarn.Table((100, 4), 'f32', name='left')",
                             "-W", "always")
        self.assertIn("ResourceWarning: <libtarn.Table left", said)

    def test_threads_of_the_interpreter(self):
        self.ends_well("""
import threading, time
threading.Thread(target=lambda: time.sleep(.2) or t.local).start()
threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
""")


@unittest.skipUnless(hasattr(os, "fork"), "no fork")
class Fork(unittest.TestCase):
    def in_child(self, body):
        child = os.fork()
        if child == 0:
            try:
                body()
                os._exit(0)
            except BaseException:
                import traceback
                traceback.print_exc()
                os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_the_parent_s_table_is_an_error_there(self):
        with libtarn.Table((100, 4), "f32") as t:
            view = memoryview(t.buffer)

            def body():
                with self.assertRaisesRegex(libtarn.StateError, "fork"):
                    t.info
                with self.assertRaisesRegex(libtarn.StateError, "fork"):
                    libtarn.init().barrier()
            self.in_child(body)
            view[1, 1] = 7
            self.assertEqual(memoryview(t.local.buffer)[1, 1], 7)
            view.release()

    def test_objects_are_collected_there(self):
        t = libtarn.Table((100, 4), "f32")
        kept = [t, t.local, memoryview(t.buffer)]

        def body():
            nonlocal t
            warnings.simplefilter("ignore")
            t = None
            kept.clear()
            gc.collect()
        self.in_child(body)
        self.assertEqual(kept[1].shape, (100, 4))
        kept.clear()
        t.close()


if __name__ == "__main__":
    kit.main()
