"""libtarn_torch.so from Python: what a program writes itself, in a few lines
(docs/torch.md), for the tests that are written in Python."""
import ctypes


class Stats(ctypes.Structure):
    """tarn_torch_stats of tarn_torch.h."""
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "struct_size", "reserved", "reserved_peak", "live", "live_peak", "asleep", "blocks",
        "allocs", "frees", "failures", "device_allocs")]


class Library:
    HOOKS = {
        "set_record_stream_fn": "tarn_torch_record_stream",
        "set_reset_fn": "tarn_torch_reset",
        "set_base_alloc_fn": "tarn_torch_base_alloc",
        "set_memory_fraction_fn": "tarn_torch_memory_fraction",
        "set_begin_allocate_to_pool": "tarn_torch_begin_pool",
        "set_end_allocate_to_pool_fn": "tarn_torch_end_pool",
        "set_release_pool": "tarn_torch_release_pool",
    }

    def __init__(self, path):
        self.path = path
        self.c = ctypes.CDLL(path)
        self.c.tarn_torch_last_error.restype = ctypes.c_char_p
        self.c.tarn_torch_alloc_or_null.restype = ctypes.c_void_p
        self.c.tarn_torch_alloc_or_null.argtypes = [
            ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
        self.c.tarn_torch_free.argtypes = [
            ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]

    def allocator(self, torch, alloc="tarn_torch_alloc"):
        """A CUDAPluggableAllocator with every hook set."""
        made = torch.cuda.memory.CUDAPluggableAllocator(
            self.path, alloc, "tarn_torch_free")
        for setter, name in self.HOOKS.items():
            address = ctypes.cast(getattr(self.c, name), ctypes.c_void_p).value
            getattr(made.allocator(), setter)(address)
        return made

    def call(self, name, *arguments):
        """Calls a function that returns a status; raises its text."""
        if getattr(self.c, name)(*arguments) != 0:
            raise RuntimeError(f"{name}: {self.c.tarn_torch_last_error().decode()}")

    def stats(self, device=0):
        stats = Stats()
        self.call("tarn_torch_query", device, ctypes.byref(stats))
        return stats

    def push(self, tag):
        self.call("tarn_torch_tag_push", tag.encode())

    def pop(self):
        self.call("tarn_torch_tag_pop")

    def sleep(self, tag, device=0):
        self.call("tarn_torch_sleep", device, tag.encode(), 1)

    def wake(self, tag, device=0):
        self.call("tarn_torch_wake", device, tag.encode())

    def snapshot(self, path, device=0):
        self.call("tarn_torch_snapshot", device, str(path).encode())
