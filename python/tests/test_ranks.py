"""Ranks: spawn, launchers, tables that they share, and those that they drop."""
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import warnings

import kit
import libtarn
from libtarn._library import NATIVE, lib

KINDS = ("continuous", "chunked", "distributed")


# --- what ranks do; functions of the module, as spawn needs them -------------

def own_number(comm, offset):
    comm.barrier()
    return comm.rank + offset, comm.size, libtarn.init() is comm


def exchange(comm):
    told = comm.allgather(b"x" * comm.rank)
    return told, comm.broadcast(b"hello" if comm.rank == 1 else None, root=1)


def share(comm, kind):
    import numpy as np
    with libtarn.Table((100, 4), "f32", kind, name="shared") as t:
        first, count = t.rows_of(comm.rank)
        local = t.local.numpy()
        local[:] = np.arange(first, first + count)[:, None]
        del local
        comm.barrier()
        got = t[[0, 50, 99]][:, 0].tolist()
        t.add_at([7, 7], np.ones((2, 4), np.float32))
        comm.barrier()
        t[[comm.rank]] = 100
        comm.barrier()
        return got, t[[7, 0, comm.size - 1]][:, 0].tolist(), count


def share_bytes(comm):
    with libtarn.Table((10, 4), "u8") as t:
        if comm.rank == 0:
            memoryview(t.all.buffer)[9, 3] = 7
        comm.barrier()
        return memoryview(t.all.buffer)[9, 3]


def drop(comm, kind):
    """Each rank drops at a time of its own, and in an order of its own."""
    warnings.simplefilter("ignore", ResourceWarning)
    libtarn.Table((100, 4), "f32", kind).close()
    comm.collect()
    before = lib.tarn_host_memory()
    kept = [libtarn.Table((100, 4), "f32", kind) for _ in range(4)]
    view = kept[2].local
    for turn in range(4):
        kept[(turn + comm.rank) % 4] = None
        gc.collect()
        comm.collect()
    held = lib.tarn_host_memory() > before
    del view
    libtarn.Table((100, 4), "f32", kind).close()
    return held, lib.tarn_host_memory() - before


def refuse_to_close(comm):
    t = libtarn.Table((100, 4), "f32")
    view = t.local if comm.rank == 1 else None
    try:
        t.close()
    except libtarn.StateError as error:
        said = str(error)
    del view
    t.close()
    return said


def fail_at(comm, rank):
    if comm.rank == rank:
        raise KeyError("mine")
    comm.barrier()


def vanish(comm):
    if comm.rank == 1:
        os._exit(5)
    try:
        comm.barrier()
    except ConnectionError as error:
        return error.status, str(error)


def lose_a_rank(comm):
    """Rank 0 closes what it has, though rank 1 is gone."""
    t, dropped = (libtarn.Table((100, 4), "f32") for _ in range(2))
    e = libtarn.Embedding(libtarn.Table((10, 2), "f32"), "adam")
    if comm.rank == 1:
        comm.barrier()
        os._exit(0)
    comm.barrier()
    warnings.simplefilter("ignore", ResourceWarning)
    del dropped
    said = []
    for close in (e.close, e.table.close, t.close):
        try:
            close()
        except ConnectionError as error:
            said.append(str(error))
        close()  # once more: nothing to do
    comm.close()
    return said


def tell_of(function, rank, queue):
    queue.put(function(libtarn.init(rank, 2)))


def be_late(comm):
    if comm.rank == 1:
        time.sleep(1.5)
        return None
    try:
        comm.barrier()
    except TimeoutError as error:
        return error.status, str(error)


def wait_beside_others(comm):
    """The GIL is free while a rank waits."""
    import threading
    if comm.rank == 1:
        time.sleep(.5)
        comm.barrier()
        return 0
    counted = [0]

    def count():
        while not done:
            counted[0] += 1
            time.sleep(.01)
    done = []
    thread = threading.Thread(target=count)
    thread.start()
    comm.barrier()
    done.append(True)
    thread.join()
    return counted[0]


def unpicklable(comm):
    return lambda: None


class Spawn(unittest.TestCase):
    def test_results_are_by_rank(self):
        self.assertEqual(libtarn.spawn(own_number, 3, (10,)),
                         [(10, 3, True), (11, 3, True), (12, 3, True)])

    def test_bytes_of_ranks(self):
        for told, root in libtarn.spawn(exchange, 3):
            self.assertEqual(told, [b"", b"x", b"xx"])
            self.assertEqual(root, b"hello")

    def test_the_failed_rank_is_named(self):
        with self.assertRaisesRegex(libtarn.RankError,
                                    "(?s)rank 1: .*KeyError: 'mine'") as caught:
            libtarn.spawn(fail_at, 2, (1,))
        self.assertEqual(caught.exception.rank, 1)
        self.assertIsInstance(caught.exception.__cause__, KeyError)

    def test_a_result_that_cannot_be_sent(self):
        with self.assertRaisesRegex(libtarn.RankError, "local object"):
            libtarn.spawn(unpicklable, 1)

    def test_a_rank_that_ends(self):
        with self.assertRaisesRegex(libtarn.RankError,
                                    "rank 1: ended with 5") as caught:
            libtarn.spawn(vanish, 2)
        self.assertEqual(caught.exception.rank, 1)

    def test_what_is_left_can_be_closed(self):
        with self.assertRaisesRegex(libtarn.RankError, "rank 1: ended with 0"):
            libtarn.spawn(lose_a_rank, 2)
        self.assertEqual(self.said_by_rank_0(lose_a_rank), 3)

    def said_by_rank_0(self, function):
        """How many calls of rank 0 have named rank 1."""
        import multiprocessing
        context = multiprocessing.get_context("spawn")
        queue = context.Queue()
        ranks = [context.Process(target=tell_of, args=(function, r, queue))
                 for r in range(2)]
        for rank in ranks:
            rank.start()
        said = queue.get(timeout=60)
        for rank in ranks:
            rank.join()
        return sum("rank 1" in text for text in said)

    def test_a_rank_that_is_late(self):
        status, text = libtarn.spawn(be_late, 2, timeout=.5)[0]
        self.assertEqual(status, "TARN_E_TIMEOUT")
        self.assertIn("Communicator.barrier: ", text)
        self.assertIn("rank 1", text)

    def test_a_wait_lets_others_run(self):
        self.assertGreater(libtarn.spawn(wait_beside_others, 2)[0], 5)


class Tables(unittest.TestCase):
    def test_rows_of_all_ranks(self):
        kit.module("numpy")
        for kind in KINDS:
            for got, written, count in libtarn.spawn(share, 2, (kind,)):
                self.assertEqual(got, [0, 50, 99])
                self.assertEqual(written, [11, 100, 100])
                self.assertEqual(count, 50)

    def test_bytes_of_all_ranks(self):
        self.assertEqual(libtarn.spawn(share_bytes, 2), [7, 7])

    def test_what_is_dropped_ends_when_all_have_dropped_it(self):
        for kind in KINDS:
            for held, left in libtarn.spawn(drop, 3, (kind,)):
                self.assertEqual((held, left), (True, 0), kind)

    def test_a_view_of_one_rank_keeps_all_from_closing(self):
        for said in libtarn.spawn(refuse_to_close, 2):
            self.assertRegex(said, "Table.close: rank 1: .*1 arrays .*in use")


# --- launchers ---------------------------------------------------------------

TOLD = ("import os, libtarn; c = libtarn.init(); c.barrier(); "
        "os.write(1, b'%d %d\\n' % (c.rank, c.size))")


LEARN = """
import os
import libtarn
import numpy as np
c = libtarn.init()
with libtarn.Table((100, 4), "f32") as t:
    with libtarn.Embedding(t, "sgd", learning_rate=1) as e:
        e.apply([3, 3], np.ones((2, 4), np.float32))
        c.barrier()
        os.write(1, f"{c.rank} {c.size} {t[[3]][0, 0]}\\n".encode())
"""


def launched(source=TOLD, **variables):
    environment = {**os.environ, **variables}
    return subprocess.Popen([sys.executable, "-c", source],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env=environment)


def ended(process):
    out, err = process.communicate(timeout=60)
    return process.returncode, out.strip(), err.strip()[-2000:]


def pool_worker(numbers):
    try:
        return str(libtarn.init(*numbers))
    except libtarn.StateError as error:
        return str(error)


def meet_others(rank, size, queue):
    comm = libtarn.init(rank, size)
    comm.barrier()
    queue.put((comm.rank, comm.size))


class Launchers(unittest.TestCase):
    def test_none(self):
        self.assertEqual(ended(launched()), (0, "0 1", ""))

    def test_tarn_run(self):
        done = subprocess.run([os.path.join(NATIVE, "tarn"), "run", "-n", "3", "--", sys.executable,
                               "-c", TOLD], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.split("\n")),
                         ["", "0 3", "1 3", "2 3"])

    def learn_by(self, *command, **variables):
        """|command| starts two ranks, which learn together."""
        kit.module("numpy")
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write(LEARN)
            program.flush()
            done = subprocess.run([*command, program.name],
                                  capture_output=True, text=True, timeout=120,
                                  env={**os.environ, **variables})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.split("\n")),
                         ["", "0 2 -4.0", "1 2 -4.0"])

    def mpirun(self, name, *options, **variables):
        program = shutil.which(f"mpirun.{name}")
        folder = os.path.dirname(os.path.realpath(
            os.path.join(NATIVE, "libtarn.so.0")))
        library = os.path.join(folder, f"libtarn_mpi_{name}.so")
        for needed in (program, library):
            if not os.path.exists(needed or ""):
                self.skipTest(f"no mpirun.{name}, or no library for it, here")
        self.learn_by(program, *options, "-n", "2", sys.executable,
                      TARN_PLUGIN_DIR=folder, **variables)

    def test_mpirun_of_open_mpi(self):
        self.mpirun("openmpi", "--oversubscribe", OMPI_ALLOW_RUN_AS_ROOT="1",
                    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

    def test_mpirun_of_mpich(self):
        self.mpirun("mpich")

    def test_torchrun(self):
        kit.module("torch")
        with tempfile.TemporaryDirectory() as logs:
            # PyTorch 1.13 on Python 3.11 fails where nothing is redirected.
            self.learn_by(sys.executable, "-m", "torch.distributed.run",
                          "--standalone", "--nproc_per_node", "2",
                          "--redirects", "2", "--tee", "2", "--log_dir", logs)

    def torchrun(self, **more):
        variables = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
                     "TORCHELASTIC_RUN_ID": f"t{os.getpid()}",
                     "TORCHELASTIC_RESTART_COUNT": "0",
                     "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
        variables.update(more)
        ranks = [launched(RANK=str(r), LOCAL_RANK=str(r), **variables)
                 for r in range(2)]
        return [ended(rank) for rank in ranks]

    def test_variables_of_torchrun(self):
        self.assertEqual(self.torchrun(), [(0, "0 2", ""), (0, "1 2", "")])

    def test_torchrun_over_machines_is_refused(self):
        for rc, _, said in self.torchrun(LOCAL_WORLD_SIZE="1"):
            self.assertEqual(rc, 1)
            self.assertIn("start them by mpirun", said)

    def test_world_size_alone_is_never_one_rank(self):
        rc, _, said = ended(launched(WORLD_SIZE="2"))
        self.assertEqual(rc, 1)
        self.assertIn("WORLD_SIZE", said)

    def test_mpirun_without_its_library_says_what_to_install(self):
        with tempfile.TemporaryDirectory() as folder:  # as in a wheel
            alone = shutil.copy(os.path.join(NATIVE, "libtarn.so.0"), folder)
            rc, _, said = ended(launched(OMPI_COMM_WORLD_SIZE="2",
                                         TARN_LIBRARY=alone))
        self.assertEqual(rc, 1)
        self.assertRegex(said, "(?s)libtarn_mpi_openmpi.so.*`tarn run -n N")

    def test_multiprocessing_is_asked_for_numbers(self):
        import multiprocessing
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            self.assertIn("init(rank=..., size=...)",
                          pool.apply(pool_worker, ((),)))

    def test_multiprocessing_with_numbers(self):
        import multiprocessing
        for method in ("spawn", "forkserver", "fork"):
            context = multiprocessing.get_context(method)
            queue = context.Queue()
            ranks = [context.Process(target=meet_others, args=(r, 2, queue))
                     for r in range(2)]
            for rank in ranks:
                rank.start()
            got = sorted(queue.get(timeout=60) for _ in ranks)
            for rank in ranks:
                rank.join()
            self.assertEqual(got, [(0, 2), (1, 2)], method)

    def test_a_child_of_fork_does_not_have_its_parent_s_place(self):
        code = ("import os, libtarn; a = libtarn.init(); p = os.fork()\n"
                "if p: os._exit(os.waitpid(p, 0)[1] >> 8)\n"
                "libtarn.init(alone=True).barrier()\n"
                "try: libtarn.init()\n"
                "except libtarn.StateError as e: os.write(1, str(e).encode())\n"
                "os._exit(0)")
        rc, said, err = ended(launched(code))
        self.assertEqual((rc, err), (0, ""))
        self.assertIn("forked from", said)

    def test_numbers_that_do_not_fit(self):
        for arguments, text in (((0, None), "go together"),
                                ((0, 2), "path is needed")):
            with self.assertRaisesRegex(ValueError, text):
                import libtarn._comm as comm
                comm._join(*arguments, None, None, None, False)

    def test_alone(self):
        code = ("import libtarn; a = libtarn.init(alone=True); "
                "b = libtarn.init(alone=True); print(a.size, a is b)")
        self.assertEqual(ended(launched(code, WORLD_SIZE="4")),
                         (0, "1 False", ""))


if __name__ == "__main__":
    kit.main()
