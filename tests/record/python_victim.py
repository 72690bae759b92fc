"""A program in Python that the tests of the recorder record: it does what its
first argument names, and prints for each of its allocations

    SIZE|FILE:LINE FUNCTION|FILE:LINE FUNCTION ...

what Python itself says of the stack then, innermost first. Each has a size of
its own, and the recorded one is at most 99 bytes larger.
"""
import ctypes
import os
import sys
import threading

LARGE = 3000000  # more than Python itself has in one piece
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
sizes = threading.Lock()
last = LARGE


def next_size():
    global last
    with sizes:
        last += 100
        return last


def tell(size, frame):
    places = []
    while frame is not None:
        code = frame.f_code
        places.append("%s:%d %s" % (code.co_filename, frame.f_lineno,
                                    code.co_name))
        frame = frame.f_back
    line = "|".join([str(size)] + places) + "\n"
    os.write(1, line.encode("utf-8"))


# Two allocations on one line, since a frame's line is that of its call.
# By ctypes Python's lock is given up meanwhile.
def allocate(locked=False):
    size = next_size()
    if locked:
        bytearray(size); tell(size, sys._getframe())
    else:
        libc.malloc(size); tell(size, sys._getframe())


# --- what there is in one thread ---------------------------------------------

def recurse(depth, locked=False):
    if depth > 0:
        return recurse(depth - 1, locked)
    allocate(locked)


class Model:
    def __init__(self):
        allocate()

    def __enter__(self):
        recurse(1)
        return self

    def __exit__(self, *what):
        allocate()

    @property
    def size(self):
        allocate(True)
        return 1

    def __del__(self):
        allocate()


def generate(depth):
    allocate()
    if depth > 0:
        yield from generate(depth - 1)
    yield depth
    allocate()


def with_arguments(*values, **named):
    allocate()


def plain():
    allocate()
    allocate(True)
    recurse(5)
    with Model() as model:
        model.size
    del model
    list(generate(3))
    sorted([3, 1, 2], key=lambda value: allocate() or value)
    [recurse(1) for _ in range(2)]
    with_arguments(
        1,
        *[recurse(2)],
        two=allocate(),
    )
    try:
        raise ValueError
    except ValueError:
        allocate()
    finally:
        allocate()


def deep():
    recurse(300)
    recurse(300, True)


# Code that comes and goes: what is next has its memory.
def reuse():
    for i in range(400):
        text = "\n" * (i % 3) + "def made_%d():\n  allocate(%s)\nmade_%d()\n" % (
            i % 7, i % 2 == 0, i % 7)
        exec(compile(text, "<made %d>" % (i % 11), "exec"),
             {"allocate": allocate})
    names = {}
    text = "def größe_и_形():\n  allocate()\ngröße_и_形()\n"
    exec(compile(text, "dir/名前.py", "exec"), {"allocate": allocate}, names)
    exec(compile(text, "dir/ä.py", "exec"), {"allocate": allocate}, names)


# --- threads -----------------------------------------------------------------

def churn(stop):
    while not stop.is_set():
        sum(range(100))


def threads():
    stop = threading.Event()
    others = [threading.Thread(target=churn, args=(stop,)) for _ in range(2)]
    workers = [threading.Thread(target=lambda n: [recurse(n, i % 2 == 0)
                                                  for i in range(50)],
                                args=(n,)) for n in range(4)]
    for thread in others + workers:
        thread.start()
    for thread in workers:
        thread.join()
    stop.set()


# Threads that run on while Python ends, and never ask for its lock again: up to
# 3.10 Python itself does not survive that.
def daemons():
    churn_for_ever = ctypes.CDLL(sys.argv[2]).record_churn
    for _ in range(4):
        threading.Thread(target=churn_for_ever, daemon=True).start()
    recurse(2)


def coroutines():
    import asyncio

    async def inner(depth):
        await asyncio.sleep(0)
        if depth > 0:
            await inner(depth - 1)
        allocate()

    async def outer():
        await asyncio.gather(*[inner(n) for n in range(4)])
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, recurse, 2)

    asyncio.run(outer())


# --- interpreters and processes ----------------------------------------------

# What runs in another interpreter names its own frame; the tests know what of
# it each version shows.
def interpreters():
    try:
        import _interpreters as inner
    except ImportError:
        import _xxsubinterpreters as inner
    allocate()
    # At once, so that memory of the loop alone is asked for.
    text = "def other():\n  return bytearray(5000000)\nother()\n"
    for _ in range(3):
        interpreter = inner.create()
        inner.run_string(interpreter, text)
        recurse(1)
        recurse(1, True)
        inner.destroy(interpreter)
    worker = threading.Thread(target=recurse, args=(2,))
    worker.start()
    worker.join()
    allocate(True)


def fork():
    allocate()
    child = os.fork()
    if child == 0:
        allocate()
        worker = threading.Thread(target=recurse, args=(2,))
        worker.start()
        worker.join()
        os._exit(0)
    os.waitpid(child, 0)
    os.write(1, b"child|%d\n" % child)


# With other threads about, of which the child has none.
def fork_many():
    stop = threading.Event()
    others = [threading.Thread(target=churn, args=(stop,)) for _ in range(2)]
    for thread in others:
        thread.start()
    for _ in range(10):
        child = os.fork()
        if child == 0:
            bytearray(LARGE)
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            os._exit(4)
    stop.set()


def at_exit():
    import atexit
    atexit.register(recurse, 1)
    recurse(2)


def exit_at_once():
    recurse(2)
    os._exit(0)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
