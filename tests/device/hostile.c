// Hostile plug-ins: each variant by name, with what Tarn answers to it.
//
// Each runs in a process of its own, which loads support/hostile_plugin.c with
// the variant's recipe and uses it for everything (support/hostile_use.c).
// Whatever the plug-in does, that process must not die, hang, or be left with
// memory of the library's. TARN_HOSTILE_LIST in the environment prints all.
//
// What cannot be survived is not here, and docs/devices.md says so: a function
// that crashes, waits for ever or leaves by exit or an exception; an invalid
// pointer where text or a function is expected; memory that overlaps other
// memory; a callback called twice.
#include "hostile_variant.h"
#include "support/run.h"

// --- what must hold of one that is survived --------------------------------

static bool devices_differ(const outcome *o) {
  return bytes_came(o) && o->total[0] == (size_t)64 << 20 &&
         o->total[1] == (size_t)128 << 20;
}

static bool id_is_replaced(const outcome *o) {
  return bytes_came(o) && o->info[0].id == 7 && o->info[1].id == 7;
}

static bool ids_are_its_own(const outcome *o) {
  return bytes_came(o) && o->info[0].id == 41 && o->info[1].id == 3;
}

static bool free_is_cut(const outcome *o) {
  return bytes_came(o) && o->total[0] == 4096 && o->available[0] == 4096;
}

static bool min_chunk_is_1(const outcome *o) {
  return bytes_came(o) && o->info[0].min_chunk == 1;
}

static bool min_chunk_is_4(const outcome *o) {
  return bytes_came(o) && o->info[0].min_chunk == 4;
}

static bool max_chunk_is_0(const outcome *o) {
  return bytes_came(o) && o->info[0].max_chunk == 0;
}

static bool max_alloc_is_free(const outcome *o) {
  return bytes_came(o) && o->info[0].max_alloc == (size_t)32 << 20;
}

static bool odd_address(const outcome *o) {
  return bytes_came(o) && o->address % 2 == 1;
}

static bool called_once(const outcome *o) {
  return two_of_everything(o) && o->callbacks == 2;
}

static bool is_pending(const outcome *o) {
  return bytes_came(o) && o->pending >= 2;
}

// --- the variants ----------------------------------------------------------

#define NEEDED(function)                                                  \
  {                                                                       \
    "without " #function, "without." #function, LOAD, TARN_E_UNSUPPORTED, \
        "required function " #function, not_taken_in                      \
  }
#define HALF(function)                                            \
  {                                                               \
    "half a set: without " #function, "without." #function, LOAD, \
        TARN_E_UNSUPPORTED, "not " #function, not_taken_in        \
  }
static const variant variants[] = {
    LIVES("behaves", "", NULL, devices_differ),

    // --- the table
    LIVES("clears 8 bytes too many", "clears=1048", NULL, bytes_came),
    LIVES("clears 128 bytes too many", "clears=1168", NULL, bytes_came),
    LIVES("clears 4096 bytes", "clears=4096", NULL, bytes_came),
    LIVES("clears nothing", "clears_nothing", NULL, bytes_came),
    LIVES("clears nothing and leaves functions out",
          "clears_nothing,without.memory_copy_p2p,without.query_event,"
          "without.device_memory_set",
          NULL, bytes_came),
    LIVES("sets the table's size to 0", "size=0", NULL, bytes_came),
    LIVES("sets the table's size to SIZE_MAX", "size=-1", NULL, bytes_came),
    LIVES("garbage pointers from byte 472 on", "garbage_beyond", NULL,
          bytes_came),
    LIVES("accepts parameters of 88 bytes only", "accepts.params=88", NULL,
          bytes_came),
    LIVES("accepts 96 and 1032 bytes only",
          "accepts.params=96,accepts.table=1032", NULL, bytes_came),
    LIVES("accepts 96 and 1040 bytes only",
          "accepts.params=96,accepts.table=1040", NULL, bytes_came),
    LIVES("accepts 96 and 1128 bytes only",
          "accepts.params=96,accepts.table=1128", NULL, bytes_came),
    LIVES("accepts 88 and 912 bytes only",
          "accepts.params=88,accepts.table=912", NULL, bytes_came),
    NOT_LOADED("accepts no size", "accepts.table=77", "whatever size"),
    NOT_LOADED("replaces the table by its own", "own_table",
               "replaced the table"),
    LIVES("writes 256 bytes behind the parameters", "params_beyond", NULL,
          bytes_came),
    LIVES("sets the parameters' size to SIZE_MAX", "params_size=-1", NULL,
          bytes_came),
    LIVES("version 9.9.9", "version=9", NULL, bytes_came),
    LIVES("sub type that is no pointer", "sub_garbage", NULL, bytes_came),

    // --- the type
    NOT_LOADED("no device type", "type.null", "names no device type"),
    NOT_LOADED("empty device type", "type=", "device type is no name"),
    NOT_LOADED("device type with a slash", "type=a/b", "device type"),
    NOT_LOADED("device type with a colon", "type=a:0", "device type"),
    NOT_LOADED("device type with control characters", "type=a\x1b[31m",
               "device type"),
    NOT_LOADED("device type of 64 letters",
               "type=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
               "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
               "device type"),
    NOT_LOADED("device type that ends nowhere near", "type.endless",
               "device type"),
    REFUSED("device type cpu, which is taken", "type=cpu", LOAD, TARN_E_STATE,
            "'cpu' is there already", not_taken_in),

    // --- functions that are missing
    NEEDED(device_memory_allocate),
    NEEDED(device_memory_deallocate),
    NEEDED(memory_copy_h2d),
    NEEDED(memory_copy_d2h),
    NEEDED(memory_copy_d2d),
    NEEDED(device_memory_stats),
    NEEDED(device_min_chunk_size),
    NEEDED(get_device_count),
    HALF(host_memory_allocate),
    HALF(host_memory_deallocate),
    HALF(unified_memory_allocate),
    HALF(unified_memory_deallocate),
    HALF(create_stream),
    HALF(destroy_stream),
    HALF(synchronize_stream),
    HALF(create_event),
    HALF(record_event),
    HALF(destroy_event),
    HALF(synchronize_event),
    LIVES("none of the other functions",
          "without.initialize,without.finalize,without.init_device,"
          "without.set_device,without.get_device,without.deinit_device,"
          "without.query_stream,without.stream_add_callback,"
          "without.query_event,without.synchronize_device,"
          "without.stream_wait_event,without.device_memory_set,"
          "without.memory_copy_p2p,without.async_memory_copy_h2d,"
          "without.async_memory_copy_d2h,without.async_memory_copy_d2d,"
          "without.async_memory_copy_p2p,without.get_device_list,"
          "without.device_max_chunk_size,without.device_max_alloc_size,"
          "without.device_extra_padding_size,without.device_init_alloc_size,"
          "without.device_realloc_size",
          NULL, bytes_came),

    // --- what it does to the process
    LIVES("forks in InitPlugin", "forks", NULL, bytes_came),
    LIVES("changes the locale", "locale", NULL, bytes_came),
    LIVES("blocks all signals", "signals", NULL, bytes_came),
    LIVES("changes errno", "errno=9999", NULL, bytes_came),
    LIVES("looks at its current device only", "ignores_device", NULL,
          devices_differ),

    // --- its devices
    REFUSED("initialize fails", "answer.initialize=4", LIST, TARN_E_DEVICE,
            "initialize answered 4", no_round),
    REFUSED("cannot count its devices", "answer.get_device_count=3", LIST,
            TARN_E_DEVICE, "get_device_count", no_round),
    REFUSED("no devices", "count=0", OPEN, TARN_E_INVALID, "hostile has 0",
            no_round),
    REFUSED("a thousand million devices", "count=1000000000", LIST,
            TARN_E_DEVICE, "1000000000 devices", no_round),
    REFUSED("cannot list its devices", "answer.get_device_list=4", LIST,
            TARN_E_DEVICE, "get_device_list", no_round),
    LIVES("lists more devices than it counts", "lists=64", NULL, bytes_came),
    LIVES("ids of its own choice", "first_id=41,second_id=3", NULL,
          ids_are_its_own),
    REFUSED("the same id twice", "first_id=1", LIST, TARN_E_DEVICE,
            "names device 1 twice", no_round),
    REFUSED("a negative id", "first_id=-1", LIST, TARN_E_DEVICE,
            "is no number of a device", no_round),
    REFUSED("an id above INT_MAX", "second_id=4294967296", LIST, TARN_E_DEVICE,
            "4294967296 is no number of a device", no_round),
    REFUSED("init_device fails", "answer.init_device=4", OPEN, TARN_E_DEVICE,
            "init_device", no_round),
    LIVES("init_device makes the ids one", "new_id=7", NULL, id_is_replaced),
    REFUSED("set_device fails", "answer.set_device=3", OPEN, TARN_E_DEVICE,
            "set_device", no_round),
    REFUSED("deinit_device fails", "answer.deinit_device=4", CLOSE,
            TARN_E_DEVICE, "deinit_device", bytes_came),

    // --- its sizes
    LIVES("minimum chunk 0", "device_min_chunk_size=0", "min_chunk 0",
          min_chunk_is_1),
    LIVES("minimum chunk 3", "device_min_chunk_size=3", "min_chunk 3",
          min_chunk_is_4),
    LIVES("minimum chunk SIZE_MAX", "device_min_chunk_size=-1",
          "min_chunk 18446744073709551615", min_chunk_is_1),
    LIVES("minimum chunk fails", "answer.device_min_chunk_size=3",
          "device_min_chunk_size answered 3", min_chunk_is_1),
    LIVES("maximum chunk 0", "device_max_chunk_size=0", NULL, max_chunk_is_0),
    LIVES("maximum chunk fails", "answer.device_max_chunk_size=3",
          "device_max_chunk_size answered 3", max_chunk_is_0),
    LIVES("largest allocation 0", "device_max_alloc_size=0", "max_alloc_size",
          max_alloc_is_free),
    LIVES("largest allocation fails", "answer.device_max_alloc_size=4",
          "device_max_alloc_size answered 4", max_alloc_is_free),
    REFUSED("padding SIZE_MAX", "device_extra_padding_size=-1", POOL, TARN_FULL,
            "", two_of_everything),
    LIVES("padding fails", "answer.device_extra_padding_size=2",
          "device_extra_padding_size answered 2", bytes_came),
    LIVES("first and later allocations of SIZE_MAX",
          "device_init_alloc_size=-1,device_realloc_size=-1", NULL, bytes_came),
    LIVES("more free than there is", "total=4096,free=8192", NULL, free_is_cut),
    LIVES("neither total nor free", "total=0,free=0", NULL, bytes_came),
    REFUSED("statistics fail", "answer.device_memory_stats=4", OPEN,
            TARN_E_DEVICE, "device_memory_stats", no_round),

    // --- memory
    REFUSED("no memory, as C_SUCCESS with NULL", "null_with=0", ALLOCATE,
            TARN_FULL, "out of memory", two_of_everything),
    REFUSED("no memory, as C_WARNING with NULL", "null_with=1", ALLOCATE,
            TARN_FULL, "out of memory", two_of_everything),
    REFUSED("no memory, as C_FAILED", "null_with=2", ALLOCATE, TARN_FULL,
            "out of memory", two_of_everything),
    REFUSED("C_FAILED, and a pointer", "done.device_memory_allocate=2",
            ALLOCATE, TARN_FULL, "out of memory", plugin_keeps),
    LIVES("C_WARNING, and a pointer", "done.device_memory_allocate=1",
          "device_memory_allocate answered C_WARNING", bytes_came),
    REFUSED("allocating is C_ERROR", "answer.device_memory_allocate=3",
            ALLOCATE, TARN_E_DEVICE, "of 1000 bytes answered 3",
            two_of_everything),
    REFUSED("no pinned memory", "answer.host_memory_allocate=2", ALLOCATE,
            TARN_FULL, "/host: out of memory", bytes_came),
    REFUSED("no unified memory", "answer.unified_memory_allocate=3", ALLOCATE,
            TARN_E_UNSUPPORTED, "unified_memory_allocate of", bytes_came),
    REFUSED("no pinned memory to copy through",
            "answer.host_memory_allocate=2,without.memory_copy_p2p,"
            "without.unified_memory_allocate,without.unified_memory_deallocate",
            ALLOCATE, TARN_FULL, "/host: out of memory", bytes_came),
    LIVES("odd addresses", "misalign=1", NULL, odd_address),
    REFUSED("the same address again and again", "same_address", POOL,
            TARN_E_DEVICE, "part of which it had given before",
            two_of_everything),
    REFUSED("giving back fails", "answer.device_memory_deallocate=4", FREE,
            TARN_E_DEVICE, "device_memory_deallocate", plugin_keeps),

    // --- copies
    LIVES("copies answer C_WARNING",
          "done.memory_copy_h2d=1,done.memory_copy_d2h=1,"
          "done.memory_copy_d2d=1,done.memory_copy_p2p=1,"
          "done.async_memory_copy_h2d=1,done.device_memory_set=1",
          "memory_copy_h2d answered C_WARNING", bytes_came),
    REFUSED("copies answer C_FAILED", "answer.memory_copy_h2d=2", COPY,
            TARN_E_NOMEM, "memory_copy_h2d of 1000 bytes", two_of_everything),
    REFUSED("copies answer C_ERROR", "answer.memory_copy_d2h=3", COPY,
            TARN_E_DEVICE, "memory_copy_d2h of 1000 bytes answered 3",
            two_of_everything),
    REFUSED("copies answer 1234", "answer.memory_copy_d2d=1234", COPY,
            TARN_E_DEVICE, "answered 1234 (no status of the ABI)",
            two_of_everything),
    REFUSED("copies answer 64", "answer.memory_copy_d2d=64", COPY,
            TARN_E_DEVICE, "answered 64 (no status of the ABI)",
            two_of_everything),
    REFUSED("copies answer -1", "answer.memory_copy_d2d=-1", COPY,
            TARN_E_DEVICE, "answered -1 (no status of the ABI)",
            two_of_everything),
    REFUSED("always fails between devices", "answer.memory_copy_p2p=4", P2P,
            TARN_E_DEVICE, "memory_copy_p2p of 1000 bytes", bytes_came),
    REFUSED("setting fails", "answer.device_memory_set=4", SET, TARN_E_DEVICE,
            "device_memory_set of 1000 bytes", two_of_everything),

    // --- streams and events
    LIVES("streams without a handle", "answer.create_stream=0", NULL,
          bytes_came),
    LIVES("events without a handle", "answer.create_event=0", NULL, bytes_came),
    LIVES("neither has a handle",
          "answer.create_stream=0,answer.create_event=0", NULL, bytes_came),
    REFUSED("no stream can be made", "answer.create_stream=2", STREAM,
            TARN_E_NOMEM, "create_stream", two_of_everything),
    REFUSED("no event can be made", "answer.create_event=4", EVENT,
            TARN_E_DEVICE, "create_event", bytes_came),
    REFUSED("queued copies answer C_FAILED", "answer.async_memory_copy_h2d=2",
            QUEUED, TARN_E_NOMEM, "memory_copy_h2d", two_of_everything),
    REFUSED("queued copies answer C_INTERNAL_ERROR",
            "answer.async_memory_copy_d2d=4", QUEUED, TARN_E_DEVICE,
            "memory_copy_d2d", two_of_everything),
    REFUSED("waiting for a stream fails", "answer.synchronize_stream=4", WAIT,
            TARN_E_DEVICE, "synchronize_stream answered 4", two_of_everything),
    LIVES("a stream is never done", "answer.query_stream=1", NULL, is_pending),
    LIVES("a stream answers 77 and is waited for", "answer.query_stream=77",
          NULL, bytes_came),
    LIVES("an event says C_FAILED for 'not yet'", "answer.query_event=2", NULL,
          is_pending),
    LIVES("an event is never done", "answer.query_event=1", NULL, is_pending),
    REFUSED("an event says C_FAILED for a failure",
            "answer.query_event=2,answer.synchronize_event=4", WAIT,
            TARN_E_DEVICE, "synchronize_event", bytes_came),
    REFUSED("recording fails", "answer.record_event=4", EVENT, TARN_E_DEVICE,
            "record_event", two_of_everything),
    REFUSED("no resources to record", "answer.record_event=2", EVENT,
            TARN_E_NOMEM, "record_event", bytes_came),
    REFUSED("waiting in a stream fails", "answer.stream_wait_event=3", WAIT,
            TARN_E_DEVICE, "stream_wait_event", two_of_everything),
    REFUSED("waiting for a device fails", "answer.synchronize_device=4", WAIT,
            TARN_E_DEVICE, "synchronize_device", bytes_came),
    REFUSED("destroying a stream fails", "answer.destroy_stream=4", DESTROY,
            TARN_E_DEVICE, "destroy_stream", plugin_keeps),
    REFUSED("destroying an event fails", "answer.destroy_event=4", DESTROY,
            TARN_E_DEVICE, "destroy_event", plugin_keeps),
    REFUSED("callbacks are refused", "answer.stream_add_callback=4", CALLBACK,
            TARN_E_DEVICE, "stream_add_callback", two_of_everything),
    REFUSED("callbacks never come", "answer.stream_add_callback=0", CALLBACK,
            TARN_E_DEVICE, "never called", bytes_came),
    REFUSED("callbacks come and are then refused", "done.stream_add_callback=4",
            EVENT, TARN_E_DEVICE, "stream_add_callback answered 4",
            called_once),
    LIVES("callbacks come with a NULL status", "callback.null_status", NULL,
          bytes_came),
    REFUSED("callbacks come with a failure", "callback.status=4", CALLBACK,
            TARN_E_DEVICE, "the work before it answered 4", two_of_everything),

};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

TEST_LOOP(a_hostile_plugin_is_refused_or_survived, VARIANTS) {
  hostile_meet(&variants[_i]);
}
