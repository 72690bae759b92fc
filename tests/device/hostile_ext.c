// Hostile extension tables, as test_device_hostile.c has hostile tables.
#include "hostile_variant.h"
#include "support/run.h"

static bool nothing_is_promised(const outcome *o) {
  return bytes_came(o) && o->info[0].alignment == 1;
}

static bool has_no_extension(const outcome *o) {
  return nothing_is_promised(o) && o->info[0].extensions == 0;
}

static bool has_all(const outcome *o) {
  return bytes_came(o) && o->info[0].alignment == 256 &&
         o->info[0].extensions ==
             2 * TARN_EXTENSION_MOVES - 1 - TARN_EXTENSION_RETAINS;
}

static bool unknown_flags_are_left(const outcome *o) {
  return bytes_came(o) && o->info[0].extensions == 2 * TARN_EXTENSION_MOVES - 1;
}

static bool has_no_ranges(const outcome *o) {
  uint32_t bits = TARN_EXTENSION_RANGES | TARN_EXTENSION_SHARING;
  return bytes_came(o) && (o->info[0].extensions & bits) == 0;
}

static bool has_no_moves(const outcome *o) {
  return bytes_came(o) && (o->info[0].extensions & TARN_EXTENSION_MOVES) == 0;
}

static bool found_no_device(const outcome *o) {
  return bytes_came(o) && o->found.place.device == NULL &&
         o->found.base == 4096;
}

#define EXT_HALF(slot)                                                    \
  {                                                                       \
    "extension: all of a set but " #slot, "ext,ext.without." #slot, LOAD, \
        TARN_E_UNSUPPORTED, "not " #slot, not_taken_in                    \
  }

static const variant variants[] = {
    LIVES("extension: none after all", "ext.null", NULL, has_no_extension),
    LIVES("extension: of version 2", "ext,ext.version=2", "of version 2",
          has_no_extension),
    NOT_LOADED("extension: of 0 bytes", "ext,ext.size=0", "0 bytes"),
    NOT_LOADED("extension: of SIZE_MAX bytes", "ext,ext.size=-1",
               "18446744073709551615 bytes"),
    LIVES("extension: its head only", "ext,ext.size=16", NULL,
          has_no_extension),
    LIVES("extension: larger than is known", "ext,ext.size=4096", NULL,
          bytes_came),
    LIVES("extension: behaves", "ext", NULL, has_all),
    LIVES("extension: flags that are not known", "ext,ext.flags=0xffffffff",
          NULL, unknown_flags_are_left),
    EXT_HALF(range_granularity),
    EXT_HALF(range_map),
    EXT_HALF(range_set_access),
    EXT_HALF(memory_export),
    EXT_HALF(memory_import),
    EXT_HALF(allocate_async),
    EXT_HALF(deallocate_async),
    EXT_HALF(host_register),
    EXT_HALF(host_unregister),
    EXT_HALF(allocation_export),
    EXT_HALF(allocation_import),
    EXT_HALF(allocation_close),
    NOT_LOADED("extension: sharing without ranges", "ext,ext.without.ranges",
               "range_map"),

    LIVES("extension: alignment 0", "ext,gives.alignment=0",
          "alignment answered TARN_OK, 0", nothing_is_promised),
    LIVES("extension: alignment 3", "ext,gives.alignment=3",
          "alignment answered TARN_OK, 3", nothing_is_promised),
    LIVES("extension: alignment fails", "ext,answer.alignment=-4",
          "alignment answered TARN_E_DEVICE", nothing_is_promised),
    LIVES("extension: alignment answers 99", "ext,answer.alignment=99",
          "alignment answered TARN_?", nothing_is_promised),
    REFUSED("extension: an address that breaks the promise", "ext,misalign=1",
            ALLOCATE, TARN_E_DEVICE, "no multiple of 256", two_of_everything),
    REFUSED("extension: an aligned address that is none",
            "ext,ext.without.alignment,misalign=1,ext.misaligns,"
            "ext.without.gather,ext.without.scatter,ext.without.scatter_add",
            ALIGNED, TARN_E_DEVICE, "no multiple of 4096", bytes_came),
    REFUSED("extension: an aligned address 0", "ext,gives.allocate_aligned=0",
            ALIGNED, TARN_FULL, "out of memory", bytes_came),
    REFUSED("extension: aligned allocation answers 99",
            "ext,answer.allocate_aligned=99", ALIGNED, TARN_E_DEVICE,
            "no answer of a slot", bytes_came),
    LIVES("extension: aligned allocation is not for this device",
          "ext,answer.allocate_aligned=-3", NULL, bytes_came),
    REFUSED("extension: stream order gives address 0",
            "ext,gives.allocate_async=0", ORDERED, TARN_FULL, "out of memory",
            bytes_came),
    REFUSED("extension: stream order answers TARN_PENDING",
            "ext,answer.allocate_async=2", ORDERED, TARN_E_DEVICE,
            "no answer of a slot", two_of_everything),
    REFUSED("extension: memory does not go back in order",
            "ext,answer.deallocate_async=-4", ORDERED, TARN_E_DEVICE,
            "deallocate_async of 1000 bytes", plugin_keeps),
    LIVES("extension: stream order is not for this device",
          "ext,answer.allocate_async=-3,answer.deallocate_async=-3", NULL,
          bytes_came),
    REFUSED("extension: registering fails", "ext,answer.host_register=-4",
            KNOWN, TARN_E_DEVICE, "host_register of 1000 bytes", bytes_came),
    REFUSED("extension: unregistering fails", "ext,answer.host_unregister=-4",
            KNOWN, TARN_E_DEVICE, "host_unregister", plugin_keeps),
    LIVES("extension: granularity 0", "ext,gives.range_granularity=0",
          "taken to have no ranges", has_no_ranges),
    LIVES("extension: granularity 3", "ext,gives.range_granularity=3",
          "taken to have no ranges", has_no_ranges),
    LIVES("extension: granularity fails", "ext,answer.range_granularity=-4",
          "taken to have no ranges", has_no_ranges),
    LIVES("extension: ranges are not for this device",
          "ext,answer.range_granularity=-3", NULL, has_no_ranges),
    REFUSED("extension: a range at 0", "ext,gives.range_reserve=0", RANGE,
            TARN_FULL, "addresses are left", bytes_came),
    REFUSED("extension: a range at 4097", "ext,gives.range_reserve=4097", RANGE,
            TARN_E_DEVICE, "no multiple of 65536", bytes_came),
    REFUSED("extension: a range beyond the last address",
            "ext,gives.range_reserve=-65536", RANGE, TARN_E_DEVICE,
            "range_reserve of 131072 bytes gave address", bytes_came),
    REFUSED("extension: memory 0", "ext,gives.memory_create=0", RANGE,
            TARN_FULL, "out of memory", bytes_came),
    REFUSED("extension: mapping answers 99", "ext,answer.range_map=99", RANGE,
            TARN_E_DEVICE, "no answer of a slot", bytes_came),
    LIVES("extension: moves are not for this device",
          "ext,answer.range_move=-3", NULL, has_no_moves),
    LIVES("extension: a move of nothing fails", "ext,answer.range_move=-4",
          "taken to have none", has_no_moves),
    REFUSED("extension: moves more than it was asked to",
            "ext,gives.range_move=131072", RANGE, TARN_E_DEVICE,
            "says that it moved 131072 of 65536 bytes", bytes_came),
    REFUSED("extension: moves nothing and is content", "ext,gives.range_move=0",
            RANGE, TARN_E_DEVICE, "says that it moved 0 of 65536 bytes",
            bytes_came),
    REFUSED("extension: unmapping fails", "ext,answer.range_unmap=-4", RANGE,
            TARN_E_DEVICE, "range_unmap", bytes_came),
    REFUSED("extension: a range does not go back",
            "ext,answer.range_release=-4", RANGE, TARN_E_DEVICE,
            "range_release", plugin_keeps),
    REFUSED("extension: memory does not go back",
            "ext,answer.memory_destroy=-4", RANGE, TARN_E_DEVICE,
            "memory_destroy", plugin_keeps),
    REFUSED("extension: exports no file descriptor",
            "ext,gives.memory_export=-1", RANGE, TARN_E_DEVICE,
            "file descriptor -1", bytes_came),
    REFUSED("extension: imports memory 0", "ext,gives.memory_import=0", RANGE,
            TARN_E_DEVICE, "memory 0", bytes_came),
    REFUSED("extension: imports an allocation at 0",
            "ext,gives.allocation_import=0", RANGE, TARN_E_DEVICE, "address 0",
            bytes_came),
    REFUSED("extension: exporting answers 99",
            "ext,answer.allocation_export=99", RANGE, TARN_E_DEVICE,
            "no answer of a slot", bytes_came),
    REFUSED("extension: an import does not go back",
            "ext,answer.allocation_close=-4", RANGE, TARN_E_DEVICE,
            "allocation_close", bytes_came),
    REFUSED("extension: no default stream", "ext,gives.default_stream=0",
            STREAM, TARN_E_DEVICE, "default_stream gave no stream", bytes_came),
    REFUSED("extension: asking for the default stream answers 99",
            "ext,answer.default_stream=99", STREAM, TARN_E_DEVICE,
            "no answer of a slot", bytes_came),
    REFUSED("extension: a pointer of no kind", "ext,pointer.kind=9", KNOWN,
            TARN_E_DEVICE, "answered kind 9", bytes_came),
    REFUSED("extension: a pointer that is not in what it belongs to",
            "ext,pointer.base=8192", KNOWN, TARN_E_DEVICE, "pointer_query",
            bytes_came),
    LIVES("extension: a pointer of no device", "ext,pointer.id=77", NULL,
          found_no_device),
    REFUSED("extension: error text is never written",
            "ext,text.nothing,answer.memory_copy_h2d=4", COPY, TARN_E_DEVICE,
            "C_INTERNAL_ERROR", two_of_everything),
    REFUSED("extension: error text without an end",
            "ext,text.endless,answer.memory_copy_h2d=4", COPY, TARN_E_DEVICE,
            "xxxx", two_of_everything),
    REFUSED("extension: error text with control characters",
            "ext,text.controls,answer.memory_copy_h2d=4", COPY, TARN_E_DEVICE,
            "a?[31m?b", two_of_everything),
    REFUSED("extension: gather answers 99", "ext,answer.gather=99", ROWS,
            TARN_E_DEVICE, "gather answered 99 (no answer of a slot)",
            two_of_everything),
    REFUSED("extension: gather answers TARN_PENDING", "ext,answer.gather=2",
            ROWS, TARN_E_DEVICE, "no answer of a slot", two_of_everything),
    REFUSED("extension: scatter finds a bad index", "ext,answer.scatter=-1",
            ROWS, TARN_E_INVALID, "in the driver's words", two_of_everything),
    LIVES("extension: rows are not for this device",
          "ext,answer.gather=-3,answer.scatter=-3,answer.scatter_add=-3", NULL,
          bytes_came),
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

TEST_LOOP(a_hostile_extension_is_refused_or_survived, VARIANTS) {
  hostile_meet(&variants[_i]);
}
