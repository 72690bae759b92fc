// The use of a hostile plug-in: everything that a device can be asked for, each
// step tried whatever became of those before it, as far as that is possible.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hostile_use.h"
#include "tarn/pool.h"
#include "tarn/range.h"
#include "tarn/rows.h"

enum { SIZE = 1000 };

const char *hostile_stage_name(stage where) {
  static const char *const names[] = {
      [SURVIVES] = "survives", [LOAD] = "load",       [LIST] = "list",
      [OPEN] = "open",         [QUERY] = "query",     [MEMORY] = "memory",
      [ALLOCATE] = "allocate", [COPY] = "copy",       [SET] = "set",
      [P2P] = "p2p",           [STREAM] = "stream",   [QUEUED] = "queued copy",
      [CALLBACK] = "callback", [EVENT] = "event",     [WAIT] = "wait",
      [ALIGNED] = "aligned",   [ORDERED] = "ordered", [KNOWN] = "known",
      [RANGE] = "range",       [ROWS] = "rows",       [POOL] = "pool",
      [DESTROY] = "destroy",   [FREE] = "free",       [CLOSE] = "close",
      [LEAK] = "leak",
  };
  return names[where];
}

// Notes |status| if it is the first that is neither done nor pending.
static bool step(outcome *o, stage where, tarn_status status) {
  if (status == TARN_PENDING) o->pending++;
  if (status == TARN_OK || status == TARN_PENDING) return true;
  if (o->stage != SURVIVES) return false;
  o->stage = where;
  o->status = status;
  snprintf(o->text, sizeof o->text, "%s", tarn_last_error());
  return false;
}

static void keep_log(void *context, tarn_log_level level, const char *message) {
  outcome *o = context;
  size_t used = strlen(o->log);
  (void)level;
  snprintf(o->log + used, sizeof o->log - used, "%s\n", message);
}

static tarn_status ignore_name(void *context, const char *name) {
  (void)context;
  (void)name;
  return TARN_OK;
}

static void on_done(void *context, tarn_status status) {
  outcome *o = context;
  o->callbacks++;
  if (status != TARN_OK) (void)step(o, CALLBACK, status);
}

// --- memory and copies -----------------------------------------------------

typedef struct block {
  tarn_place place;
  tarn_addr address;
} block;

static block take(outcome *o, tarn_device *device, tarn_place_kind kind) {
  block b = {{device, kind}, 0};
  tarn_status status = tarn_device_allocate(b.place, SIZE, &b.address);
  (void)step(o, ALLOCATE, status);
  if ((status == TARN_OK) != (b.address != 0)) {
    (void)step(o, LEAK, TARN_E_INVALID);  // an output that belies the status
  }
  return b;
}

static void give(outcome *o, block b) {
  if (b.address == 0) return;
  (void)step(o, FREE, tarn_device_deallocate(b.place, b.address, SIZE));
}

// |in| to |a|, to |b|, out again, on |stream| or none.
static void copy_around(outcome *o, tarn_device *device, block a, block b,
                        tarn_stream *stream) {
  stage where = stream == NULL ? COPY : QUEUED;
  char in[SIZE];
  char out[SIZE] = {0};
  bool done = true;
  memset(in, 7, sizeof in);
  done &= step(o, where, tarn_copy_h2d(device, a.address, in, SIZE, stream));
  done &=
      step(o, where, tarn_copy_d2d(device, b.address, a.address, SIZE, stream));
  done &= step(o, where, tarn_copy_d2h(device, out, b.address, SIZE, stream));
  if (stream != NULL) done &= step(o, WAIT, tarn_stream_synchronize(stream));
  if (done && memcmp(in, out, SIZE) != 0) o->bytes_came = false;
}

static void set_bytes(outcome *o, tarn_device *device, block b,
                      tarn_stream *stream) {
  char out[SIZE] = {0};
  bool done =
      step(o, SET, tarn_device_set(device, b.address, 9, SIZE, stream)) &&
      step(o, COPY, tarn_copy_d2h(device, out, b.address, SIZE, NULL));
  if (done && (out[0] != 9 || out[SIZE - 1] != 9)) o->bytes_came = false;
}

static void use_pool(outcome *o, tarn_device *device) {
  tarn_pool *pool = NULL;
  tarn_block blocks[4] = {{0}};
  if (!step(o, POOL, tarn_pool_of(tarn_place_on(device), &pool))) return;
  for (int i = 0; i < 4; i++)
    (void)step(o, POOL, tarn_pool_alloc(pool, 3 << 20, 0, NULL, &blocks[i]));
  for (int i = 0; i < 4; i++) {
    if (blocks[i].pool == NULL) continue;
    (void)step(o, POOL, tarn_pool_free(&blocks[i], NULL));
  }
  (void)step(o, POOL, tarn_pool_trim(pool, 0));
}

static void use_memory(outcome *o, tarn_device *const *devices) {
  block a = take(o, devices[0], TARN_PLACE_DEVICE);
  block b = take(o, devices[0], TARN_PLACE_DEVICE);
  block c = take(o, devices[1], TARN_PLACE_DEVICE);
  block host = take(o, devices[0], TARN_PLACE_HOST);
  block unified = take(o, devices[0], TARN_PLACE_UNIFIED);
  if (o->address == 0) o->address = a.address;
  if (a.address != 0 && b.address != 0) {
    copy_around(o, devices[0], a, b, NULL);
    set_bytes(o, devices[0], b, NULL);
  }
  if (a.address != 0 && c.address != 0) {
    (void)step(o, P2P,
               tarn_copy_p2p(devices[1], c.address, devices[0], a.address, SIZE,
                             NULL));
  }
  give(o, unified);
  give(o, host);
  give(o, c);
  give(o, b);
  give(o, a);
}

// --- streams and events ----------------------------------------------------

static void use_event(outcome *o, tarn_device *device, tarn_stream *stream,
                      tarn_stream *second) {
  tarn_event *event = NULL;
  if (!step(o, EVENT, tarn_event_create(device, &event))) return;
  (void)step(o, EVENT, tarn_event_record(event, stream));
  (void)step(o, EVENT, tarn_event_query(event));
  (void)step(o, WAIT, tarn_stream_wait_event(second, event));
  (void)step(o, WAIT, tarn_event_synchronize(event));
  (void)step(o, DESTROY, tarn_event_destroy(event));
}

static void use_both(outcome *o, tarn_device *const *devices,
                     tarn_stream *stream, tarn_stream *second) {
  block a = take(o, devices[0], TARN_PLACE_DEVICE);
  block b = take(o, devices[0], TARN_PLACE_DEVICE);
  block c = take(o, devices[1], TARN_PLACE_DEVICE);
  if (a.address != 0 && b.address != 0 && c.address != 0) {
    copy_around(o, devices[0], a, b, stream);
    set_bytes(o, devices[0], b, stream);
    (void)step(o, P2P,
               tarn_copy_p2p(devices[1], c.address, devices[0], a.address, SIZE,
                             stream));
  }
  (void)step(o, CALLBACK, tarn_stream_add_callback(stream, on_done, o));
  use_event(o, devices[0], stream, second);
  (void)step(o, WAIT, tarn_stream_query(stream));
  (void)step(o, WAIT, tarn_stream_join(second, tarn_stream_serial(stream)));
  (void)step(o, WAIT, tarn_stream_synchronize(stream));
  (void)step(o, WAIT, tarn_device_synchronize(devices[0]));
  give(o, c);
  give(o, b);
  give(o, a);
}

// --- what goes beyond the ABI ----------------------------------------------

static bool has(const outcome *o, tarn_device_extension bit) {
  return (o->info[0].extensions & (uint32_t)bit) != 0;
}

static void use_aligned(outcome *o, tarn_device *device) {
  for (int kind = TARN_PLACE_HOST; kind <= TARN_PLACE_UNIFIED; kind++) {
    block b = {{device, (tarn_place_kind)kind}, 0};
    (void)step(o, ALIGNED,
               tarn_device_allocate_aligned(b.place, SIZE, 4096, &b.address));
    if (b.address % 4096 != 0) (void)step(o, LEAK, TARN_E_INVALID);
    give(o, b);
  }
}

static void use_ordered(outcome *o, tarn_stream *stream) {
  tarn_addr address = 0;
  (void)step(o, ORDERED, tarn_device_allocate_on(stream, SIZE, &address));
  if (address == 0) return;
  (void)step(o, ORDERED, tarn_device_deallocate_on(stream, address, SIZE));
}

static void use_known(outcome *o, tarn_device *device) {
  static char own[SIZE];
  if (has(o, TARN_EXTENSION_REGISTER) &&
      step(o, KNOWN, tarn_device_host_register(device, own, SIZE))) {
    (void)step(o, KNOWN, tarn_device_host_unregister(device, own));
  }
  if (has(o, TARN_EXTENSION_POINTERS)) {
    tarn_pointer_info *found = &o->found;
    (void)step(o, KNOWN, tarn_device_pointer_query(device, 4096, found));
  }
}

static void use_default_stream(outcome *o, tarn_device *device) {
  tarn_stream *stream = NULL;
  if (!has(o, TARN_EXTENSION_DEFAULT_STREAM)) return;
  if (!step(o, STREAM, tarn_stream_adopt(device, NULL, &stream))) return;
  (void)step(o, DESTROY, tarn_stream_destroy(stream));
}

static void use_handle(outcome *o, tarn_device *device) {
  tarn_device_handle handle;
  tarn_addr again = 0;
  if (!has(o, TARN_EXTENSION_HANDLES)) return;
  if (!step(o, RANGE, tarn_device_export(device, 4096, SIZE, &handle))) return;
  if (!step(o, RANGE, tarn_device_import(device, &handle, SIZE, &again)))
    return;
  (void)step(o, RANGE, tarn_device_import_close(device, again, SIZE));
}

static void use_mapping(outcome *o, tarn_device *device, tarn_addr range,
                        size_t size, tarn_memory memory) {
  if (step(o, RANGE, tarn_range_map(device, range, size, memory))) {
    (void)step(o, RANGE,
               tarn_range_set_access(device, range, size, device,
                                     TARN_RIGHTS_READ_WRITE));
    size_t moved = 0;
    if (has(o, TARN_EXTENSION_MOVES)) {
      (void)step(o, RANGE,
                 tarn_range_move(device, range, range + size, size, &moved));
    }
    (void)step(o, RANGE, tarn_range_unmap(device, range + moved, size));
  }
}

static void use_sharing(outcome *o, tarn_device *device, size_t size,
                        tarn_memory memory) {
  int fd = -1;
  tarn_memory again = 0;
  if (!step(o, RANGE, tarn_memory_export(device, memory, &fd))) return;
  (void)step(o, RANGE, tarn_memory_import(device, fd, size, &again));
  if (again != 0) (void)step(o, RANGE, tarn_memory_destroy(device, again));
  (void)close(fd);
}

static void use_ranges(outcome *o, tarn_device *device) {
  size_t size = 0;
  tarn_addr range = 0;
  tarn_memory memory = 0;
  if (!has(o, TARN_EXTENSION_RANGES)) return;
  if (!step(o, RANGE, tarn_range_granularity(device, &size))) return;
  unsigned flags = has(o, TARN_EXTENSION_SHARING) ? TARN_MEMORY_SHAREABLE : 0;
  (void)step(o, RANGE, tarn_range_reserve(device, 2 * size, 0, &range));
  (void)step(o, RANGE, tarn_memory_create(device, size, flags, &memory));
  if (range != 0 && memory != 0) use_mapping(o, device, range, size, memory);
  if (flags != 0 && memory != 0) use_sharing(o, device, size, memory);
  if (memory != 0) (void)step(o, RANGE, tarn_memory_destroy(device, memory));
  if (range != 0)
    (void)step(o, RANGE, tarn_range_release(device, range, 2 * size));
}

// One block: the table at its front, the indices, then the dense rows.
enum { WIDTH = 4, ROWS_COUNT = 3, INDICES_AT = 256, DENSE_AT = 512 };

static void use_verbs(outcome *o, tarn_device *device, block b,
                      tarn_stream *stream) {
  static const float table[ROWS_COUNT][WIDTH] = {{0}, {1, 2, 3, 4}, {5}};
  static const int64_t indices[2] = {1, 1};
  float out[2][WIDTH] = {{0}};
  size_t offsets[2] = {0, INDICES_AT};
  tarn_rows rows = {
      .struct_size = sizeof rows,
      .table = {&b.address, offsets, 1},
      .table_dtype = TARN_DTYPE_F32,
      .table_count = ROWS_COUNT,
      .width = WIDTH,
      .dense = b.address + DENSE_AT,
      .dense_dtype = TARN_DTYPE_F32,
      .indices = b.address + INDICES_AT,
      .index_dtype = TARN_DTYPE_I64,
      .index_count = 2,
  };
  bool done =
      step(o, COPY,
           tarn_copy_h2d(device, b.address, table, sizeof table, NULL)) &&
      step(o, COPY,
           tarn_copy_h2d(device, rows.indices, indices, sizeof indices, NULL));
  if (!done) return;  // the indices would be anything
  done &= step(o, ROWS, tarn_rows_gather(device, &rows, stream));
  done &= step(o, ROWS, tarn_rows_scatter(device, &rows, stream));
  done &= step(o, ROWS, tarn_rows_scatter_add(device, &rows, stream));
  done &= step(o, ROWS, tarn_rows_scatter_add(device, &rows, stream));
  if (stream != NULL) done &= step(o, WAIT, tarn_stream_synchronize(stream));
  done &=
      step(o, COPY, tarn_copy_d2h(device, out, b.address, sizeof out, NULL));
  // Row 1, added twice to itself, twice over.
  if (done && out[1][3] != 20) o->bytes_came = false;
}

static void use_rows(outcome *o, tarn_device *device, tarn_stream *stream) {
  block b = take(o, device, TARN_PLACE_DEVICE);
  if (b.address != 0) use_verbs(o, device, b, stream);
  give(o, b);
}

// --- all of it -------------------------------------------------------------

static void use_streams(outcome *o, tarn_device *const *devices) {
  tarn_stream *stream = NULL;
  tarn_stream *second = NULL;
  (void)step(o, STREAM, tarn_stream_create(devices[0], &stream));
  (void)step(o, STREAM, tarn_stream_create(devices[0], &second));
  if (stream != NULL && second != NULL) {
    use_both(o, devices, stream, second);
    use_ordered(o, stream);
    use_rows(o, devices[0], stream);
  }
  (void)step(o, DESTROY, tarn_stream_destroy(second));
  (void)step(o, DESTROY, tarn_stream_destroy(stream));
}

static void ask(outcome *o, tarn_device *device, int index) {
  o->info[index].struct_size = sizeof o->info[index];
  (void)step(o, QUERY, tarn_device_query(device, &o->info[index]));
  (void)step(
      o, MEMORY,
      tarn_device_memory(device, &o->total[index], &o->available[index]));
}

static void use_devices(outcome *o) {
  tarn_device *devices[2] = {NULL, NULL};
  (void)step(o, LIST, tarn_device_each(ignore_name, NULL));
  (void)step(o, OPEN, tarn_device_open("hostile:0", &devices[0]));
  (void)step(o, OPEN, tarn_device_open("hostile:1", &devices[1]));
  if (devices[0] != NULL && devices[1] != NULL) {
    ask(o, devices[0], 0);
    ask(o, devices[1], 1);
    use_memory(o, devices);
    use_streams(o, devices);
    use_aligned(o, devices[0]);
    use_known(o, devices[0]);
    use_ranges(o, devices[0]);
    use_default_stream(o, devices[0]);
    use_handle(o, devices[0]);
    use_rows(o, devices[0], NULL);
    use_pool(o, devices[0]);
    o->rounds++;
  }
  // A device that fails to end is closed all the same.
  (void)step(o, CLOSE, tarn_device_close(devices[1]));
  (void)step(o, CLOSE, tarn_device_close(devices[0]));
}

static long live_in_plugin(void) {
  long (*count)(void) = NULL;
  void *plugin = dlopen(HOSTILE_PLUGIN, RTLD_NOW | RTLD_NOLOAD);
  if (plugin == NULL) return 0;
  void *symbol = dlsym(plugin, "hostile_count");
  memcpy(&count, &symbol, sizeof count);
  return count != NULL ? count() : -1;
}

static tarn_status register_it(void) {
  tarn_plugin_init *init = NULL;
  tarn_device_ext_function *ext = NULL;
  void *plugin = dlopen(HOSTILE_PLUGIN, RTLD_NOW);
  if (plugin == NULL) abort();
  void *symbol = dlsym(plugin, "InitPlugin");
  memcpy(&init, &symbol, sizeof init);
  symbol = dlsym(plugin, "TarnDeviceExt");
  memcpy(&ext, &symbol, sizeof ext);
  return tarn_plugin_register(init, ext, "part of the program");
}

// What is kept once and for all is there before |held| is looked at.
static void take_in(outcome *o, entrance by) {
  tarn_device *cpu = NULL;
  (void)step(o, LOAD, tarn_device_open("cpu:0", &cpu));
  (void)step(o, LOAD, tarn_device_close(cpu));
  size_t held = tarn_host_memory();
  bool loaded = step(
      o, LOAD, by == LOADED ? tarn_plugin_load(HOSTILE_PLUGIN) : register_it());
  if (!loaded && tarn_host_memory() != held) o->stage = LEAK;
}

void hostile_use(const char *recipe, entrance by, outcome *out) {
  memset(out, 0, sizeof *out);
  out->bytes_came = true;
  tarn_log_set(keep_log, out, TARN_LOG_WARN);
  if (setenv("TARN_HOSTILE", recipe, 1) != 0) abort();
  take_in(out, by);
  if (out->stage == SURVIVES) {
    use_devices(out);
    size_t held = tarn_host_memory();
    use_devices(out);
    if (tarn_host_memory() != held) {
      out->stage = LEAK;
      snprintf(out->text, sizeof out->text, "%zu bytes, then %zu", held,
               tarn_host_memory());
    }
  }
  out->live = live_in_plugin();
  tarn_log_set(NULL, NULL, TARN_LOG_ERROR);
}
