"""A binding in another language works with the library as it is, as it was
when the binding was made, and as it may become; and says when it does not.

  binding.py EXAMPLES LIBRARY
"""
import copy
import ctypes
import json
import subprocess
import sys
import unittest

sys.path.insert(0, sys.argv[1])
import binding  # noqa: E402

PATH = sys.argv[2]
LAYOUT = binding.layout_of(ctypes.CDLL(PATH))


def changed():
    return copy.deepcopy(LAYOUT)


def first_version(layout, struct, last):
    """Cuts a struct that has grown behind the field |last|."""
    told = layout["structs"][struct]
    end = told["fields"][last]["offset"] + told["fields"][last]["size"]
    told["fields"] = {name: at for name, at in told["fields"].items()
                      if at["offset"] < end}
    told["size"] = -(-end // told["align"]) * told["align"]


class Document(unittest.TestCase):
    def test_is_of_this_library(self):
        tarn = binding.Tarn(PATH)
        self.assertEqual(LAYOUT["version"], tarn.tarn_version().decode())
        self.assertEqual(LAYOUT["byte_order"], sys.byteorder)
        self.assertEqual(LAYOUT["pointer_size"], ctypes.sizeof(ctypes.c_void_p))

    def test_constants(self):
        tarn = binding.Tarn(PATH)
        for name, number in [("TARN_OK", 0), ("TARN_E_IO", -9),
                             ("TARN_DTYPE_BOOL", 13), ("TARN_POOL_DRY", 2),
                             ("TARN_ALL", 2**64 - 1), ("TARN_DIM_BATCH", -1),
                             ("TARN_COMM_NONE", -2**63)]:
            self.assertEqual(tarn.constants[name], number)

    def test_enumerators_are_told_apart_by_name(self):
        names = list(LAYOUT["constants"])
        for enum in LAYOUT["enums"].values():
            names += enum["values"]
            self.assertEqual(enum["size"], ctypes.sizeof(ctypes.c_int))
        self.assertEqual(len(names), len(set(names)))


class Program(unittest.TestCase):
    """The example itself."""

    def run_it(self, *arguments):
        return subprocess.run([sys.executable, binding.__file__, PATH,
                               *arguments], check=True, capture_output=True,
                              text=True).stdout

    def test_shows_a_pool(self):
        self.assertEqual(self.run_it(),
                         f"{LAYOUT['version']}: arena_pool has 1 block of "
                         "1048576 bytes out\n")

    def test_saves_what_a_wheel_carries(self):
        self.assertEqual(json.loads(self.run_it("--save")), LAYOUT)


class Use(unittest.TestCase):
    """With the library's own layout."""

    def setUp(self):
        self.tarn = binding.Tarn(PATH)
        self.pool = ctypes.c_void_p()
        self.host = self.tarn.new("tarn_place")
        self.tarn.tarn_pool_of(self.host, self.pool)

    def stats(self, **fields):
        stats = self.tarn.new("tarn_pool_stats")
        for name, value in fields.items():
            setattr(stats, name, value)
        self.tarn.tarn_pool_query(self.pool, stats)
        return stats

    def test_a_block_of_the_host(self):
        block = self.tarn.new("tarn_block")
        before = self.stats().live_blocks
        self.tarn.tarn_pool_alloc(self.pool, 1000, 64, None, block)
        self.assertEqual(block.pointer, block.address)
        self.assertEqual(block.address % 64, 0)
        self.assertEqual(block.pool, self.pool.value)
        ctypes.memset(block.pointer, 0xAB, block.size)
        self.assertEqual(self.stats().live_blocks, before + 1)
        self.assertEqual(self.stats().strategy, b"arena_pool")
        self.tarn.tarn_pool_free(block, None)
        with self.assertRaises(binding.TarnError) as caught:
            self.tarn.tarn_pool_free(block, None)
        self.assertEqual(caught.exception.status, "TARN_E_INVALID")
        self.assertIn("freed", str(caught.exception))

    def test_structs_by_value(self):
        place = self.tarn.tarn_pool_place(self.pool)
        self.assertTrue(self.tarn.tarn_place_equal(place, self.host))
        dims = (ctypes.c_int64 * 2)(3, self.tarn.constants["TARN_DIM_BATCH"])
        shape = self.tarn.new("tarn_shape", dims=dims, rank=2)
        count = ctypes.c_size_t()
        self.tarn.tarn_shape_count(shape, 5, count)
        self.assertEqual(count.value, 15)

    def test_options_and_a_pool_of_ones_own(self):
        pool, block = ctypes.c_void_p(), self.tarn.new("tarn_block")
        options = self.tarn.new("tarn_pool_options", strategy=b"buddy_pool",
                                flags=self.tarn.constants["TARN_POOL_DRY"])
        self.tarn.tarn_pool_create(self.host, options, pool)
        self.tarn.tarn_pool_alloc(pool, 1 << 30, 0, None, block)
        self.tarn.tarn_pool_free(block, None)
        self.tarn.tarn_pool_destroy(pool)

    def test_a_callback(self):
        seen = []
        visit = self.tarn.type_of("tarn_device_visit *")(
            lambda context, name: seen.append(name) or 0)
        self.tarn.tarn_device_each(visit, None)
        self.assertIn(b"cpu:0", seen)

    def test_a_struct_of_callbacks(self):
        fields = LAYOUT["structs"]["tarn_host_allocator"]["fields"]
        self.assertEqual(fields["allocate"]["returns"], "void *")
        cls = self.tarn.structs["tarn_host_allocator"]
        taken = dict(cls._fields_)["allocate"](lambda context, size, align: 4096)
        self.assertEqual(taken(None, 1, 1), 4096)

    def test_versions_of_a_struct_by_its_size(self):
        at = LAYOUT["structs"]["tarn_pool_stats"]["fields"]["asleep_bytes"]
        cls = self.tarn.structs["tarn_pool_stats"]
        untouched = b"\xaa" * (ctypes.sizeof(cls) - at["offset"])
        for size in (0, at["offset"]):
            stats = cls()
            ctypes.memset(ctypes.byref(stats), 0xAA, ctypes.sizeof(cls))
            stats.struct_size = size
            self.tarn.tarn_pool_query(self.pool, stats)
            self.assertEqual(stats.struct_size, at["offset"])
            self.assertEqual(stats.strategy, b"arena_pool")
            self.assertEqual(bytes(stats)[at["offset"]:], untouched)
        newer = self.stats(struct_size=1 << 20)
        self.assertEqual(newer.struct_size, ctypes.sizeof(cls))
        with self.assertRaises(binding.TarnError):
            self.stats(struct_size=at["offset"] - 1)


class Older(unittest.TestCase):
    """A wheel of a layout that had less."""

    def test_works_with_this_library(self):
        built = changed()
        first_version(built, "tarn_pool_stats", "reserved")
        first_version(built, "tarn_device_info", "realloc_size")
        first_version(built, "tarn_pool_tag_stats", "live_blocks")
        built["enums"]["tarn_device_slot"]["values"]["TARN_SLOT_COUNT"] = 4
        del built["enums"]["tarn_status"]["values"]["TARN_E_IO"]
        del built["functions"]["tarn_layout_json"]
        del built["constants"]["TARN_POOL_DRY"]
        built["constants"]["TARN_VERSION_MINOR"] -= 1
        built["functions"]["tarn_free"]["names"] = ["at", "address", "on"]
        self.assertEqual(list(binding.differences(built, LAYOUT)), [])
        tarn = binding.Tarn(PATH, built)
        pool, device = ctypes.c_void_p(), ctypes.c_void_p()
        tarn.tarn_pool_of(tarn.new("tarn_place"), pool)
        for name, call, of in [
                ("tarn_pool_stats", tarn.tarn_pool_query, [pool]),
                ("tarn_pool_tag_stats", tarn.tarn_pool_query_tag, [pool, 0])]:
            told = tarn.new(name)
            self.assertLess(told.struct_size, LAYOUT["structs"][name]["size"])
            call(*of, told)
        tarn.tarn_device_open(b"cpu:0", device)
        info = tarn.new("tarn_device_info")
        tarn.tarn_device_query(device, info)
        self.assertEqual(info.name, b"cpu:0")
        tarn.tarn_device_close(device)

    def test_room_that_came_into_use(self):
        loaded = changed()
        fields = loaded["structs"]["tarn_pointer_info"]["fields"]
        at = fields.pop("reserved")["offset"]
        fields["flags"] = {"offset": at, "size": 8, "type": "uint64_t"}
        fields["reserved"] = {"offset": at + 8, "size": 8, "type": "uint64_t"}
        self.assertEqual(list(binding.differences(LAYOUT, loaded)), [])

    def test_a_part_of_the_layout(self):
        part = {kind: told if kind in ("layout", "byte_order", "pointer_size")
                else {} for kind, told in LAYOUT.items()}
        for kind, name in [("enums", "tarn_status"), ("enums", "tarn_dtype"),
                           ("functions", "tarn_dtype_size")]:
            part[kind][name] = LAYOUT[kind][name]
        tarn = binding.Tarn(PATH, part)
        self.assertEqual(tarn.tarn_dtype_size(tarn.constants["TARN_DTYPE_F64"]),
                         8)


class Unfit(unittest.TestCase):
    """A library that is not what the wheel was made for."""

    def unfit(self, loaded, name, built=LAYOUT):
        told = list(binding.differences(built, loaded))
        self.assertEqual(len(told), 1, told)
        self.assertTrue(told[0].startswith(name), told)

    def test_numbers(self):
        loaded = changed()
        loaded["enums"]["tarn_status"]["values"]["TARN_E_STATE"] = -99
        self.unfit(loaded, "tarn_status")
        loaded = changed()
        loaded["constants"]["TARN_POOL_DRY"] = 4
        self.unfit(loaded, "TARN_POOL_DRY")

    def test_what_is_gone(self):
        for kind, name in [("functions", "tarn_free"),
                           ("structs", "tarn_block"), ("enums", "tarn_dtype"),
                           ("constants", "TARN_ALL"), ("types", "tarn_addr"),
                           ("callbacks", "tarn_log_fn")]:
            loaded = changed()
            del loaded[kind][name]
            self.unfit(loaded, f"{name} is missing")

    def test_functions_of_other_arguments(self):
        loaded = changed()
        loaded["functions"]["tarn_free"]["arguments"][1] = "size_t"
        self.unfit(loaded, "tarn_free")
        loaded = changed()
        loaded["callbacks"]["tarn_log_fn"]["returns"] = "int"
        self.unfit(loaded, "tarn_log_fn")

    def test_structs(self):
        def grow(told):
            told["size"] += 8

        def move(told):
            name = list(told["fields"])[-1]
            told["fields"][name]["offset"] += 4

        def drop(told):
            told["fields"].popitem()

        def shrink(told):
            told["size"] -= 8

        def fill_padding(told):
            told["fields"]["more"] = {"offset": told["size"] - 4, "size": 4,
                                      "type": "int"}

        for struct, break_it in [
                ("tarn_block", grow), ("tarn_block", move),
                ("tarn_pool_stats", move), ("tarn_pool_stats", drop),
                ("tarn_pool_stats", shrink), ("tarn_place", drop),
                ("tarn_place", fill_padding),
                ("tarn_pool_options", fill_padding)]:
            loaded = changed()
            break_it(loaded["structs"][struct])
            self.unfit(loaded, struct)

    def test_machines(self):
        loaded = changed()
        loaded["byte_order"] = "big"
        self.unfit(loaded, "byte_order")

    def test_is_not_used(self):
        built = changed()
        built["functions"]["tarn_gone"] = built["functions"]["tarn_free"]
        with self.assertRaises(binding.Unfit) as caught:
            binding.Tarn(PATH, built)
        self.assertIn("tarn_gone is missing", str(caught.exception))

    def test_a_field_elsewhere_than_c_would_have_it(self):
        tarn = binding.Tarn(PATH)
        told = copy.deepcopy(LAYOUT["structs"]["tarn_place"])
        told["fields"]["kind"]["offset"] = 12
        with self.assertRaises(binding.Unfit):
            tarn._verify("tarn_place", tarn.structs["tarn_place"], told)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
