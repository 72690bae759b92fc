// The use of a hostile plug-in: everything that a device can be asked for, each
// step tried whatever became of those before it, as far as that is possible.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/hostile_use.h"
#include "tarn/pool.h"

enum { SIZE = 1000 };

const char *hostile_stage_name(stage where) {
  static const char *const names[] = {
      [SURVIVES] = "survives", [LOAD] = "load",       [LIST] = "list",
      [OPEN] = "open",         [QUERY] = "query",     [MEMORY] = "memory",
      [ALLOCATE] = "allocate", [COPY] = "copy",       [SET] = "set",
      [P2P] = "p2p",           [STREAM] = "stream",   [QUEUED] = "queued copy",
      [CALLBACK] = "callback", [EVENT] = "event",     [WAIT] = "wait",
      [POOL] = "pool",         [DESTROY] = "destroy", [FREE] = "free",
      [CLOSE] = "close",       [LEAK] = "leak",
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
  (void)step(o, POOL, tarn_pool_trim(pool));
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

static void use_streams(outcome *o, tarn_device *const *devices) {
  tarn_stream *stream = NULL;
  tarn_stream *second = NULL;
  (void)step(o, STREAM, tarn_stream_create(devices[0], &stream));
  (void)step(o, STREAM, tarn_stream_create(devices[0], &second));
  if (stream != NULL && second != NULL) use_both(o, devices, stream, second);
  (void)step(o, DESTROY, tarn_stream_destroy(second));
  (void)step(o, DESTROY, tarn_stream_destroy(stream));
}

// --- all of it -------------------------------------------------------------

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
  void *symbol = dlsym(plugin, "hostile_live");
  memcpy(&count, &symbol, sizeof count);
  return count != NULL ? count() : -1;
}

// What is kept once and for all is there before |held| is looked at.
static void load(outcome *o) {
  tarn_device *cpu = NULL;
  (void)step(o, LOAD, tarn_device_open("cpu:0", &cpu));
  (void)step(o, LOAD, tarn_device_close(cpu));
  size_t held = tarn_host_memory();
  bool loaded = step(o, LOAD, tarn_plugin_load(HOSTILE_PLUGIN));
  if (!loaded && tarn_host_memory() != held) o->stage = LEAK;
}

void hostile_use(const char *recipe, outcome *out) {
  memset(out, 0, sizeof *out);
  out->bytes_came = true;
  tarn_log_set(keep_log, out, TARN_LOG_WARN);
  if (setenv("TARN_HOSTILE", recipe, 1) != 0) abort();
  load(out);
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
