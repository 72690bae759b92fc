// What sleeping blocks and captured graphs take on a device, for
// scripts/gpu-check.
//
//   sleep_capture DEVICE BYTES     writes {"figures": [...]} to stdout; on a
//                                  failure a line to stderr, and ends with 1
//
// Blocks of |BYTES| together sleep and wake, with and without their contents,
// which are looked at afterwards. On a device of type cuda a graph is captured
// by the driver, whose functions are declared here; on others a pool only
// believes that there is a capture.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tarn/tarn.h>
#include <time.h>

enum { BLOCKS = 16, PAIRS = 64, LAUNCHES = 100, PATTERN = 0x5a };

static bool is_first = true;

static _Noreturn void give_up(const char *what, const char *text) {
  fprintf(stderr, "sleep_capture: %s: %s\n", what, text);
  exit(EXIT_FAILURE);
}

static void need(tarn_status status, const char *what) {
  if (status != TARN_OK) give_up(what, tarn_last_error());
}

static double now_ms(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void figure(const char *name, double value, const char *unit) {
  printf("%s\n  {\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"}",
         is_first ? "" : ",", name, value, unit);
  is_first = false;
}

// ---------------------------------------------------------------------------
// Sleep
// ---------------------------------------------------------------------------

typedef struct sleepers {
  tarn_device *device;
  tarn_pool *pool;
  tarn_tag tag;
  size_t size;  // of each
  tarn_block blocks[BLOCKS];
} sleepers;

static size_t held(tarn_pool *pool) {
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  need(tarn_pool_query(pool, &stats), "statistics");
  return stats.reserved_bytes;
}

static void take_blocks(sleepers *s) {
  tarn_alloc_options wanted = {
      .struct_size = sizeof wanted, .size = s->size, .tag = s->tag};
  for (int i = 0; i < BLOCKS; i++) {
    need(tarn_pool_alloc_with(s->pool, &wanted, &s->blocks[i]), "alloc");
    unsigned char byte = (unsigned char)(PATTERN + i);
    need(tarn_device_set(s->device, s->blocks[i].address, byte, s->size, NULL),
         "set");
  }
}

static void look_at(const sleepers *s) {
  for (int i = 0; i < BLOCKS; i++) {
    const size_t places[] = {0, s->size / 2, s->size - 1};
    for (size_t k = 0; k < 3; k++) {
      unsigned char byte = 0;
      need(tarn_copy_d2h(s->device, &byte, s->blocks[i].address + places[k], 1,
                         NULL),
           "copy");
      if (byte != PATTERN + i) give_up("wake", "the contents are not the same");
    }
  }
}

static void sleep_and_wake(const sleepers *s, tarn_sleep_mode mode,
                           const char *name) {
  char text[64];
  double gib = (double)(s->size * BLOCKS) / (1 << 30);
  size_t before = held(s->pool);
  double begin = now_ms();
  need(tarn_pool_sleep(s->pool, s->tag, mode), "sleep");
  double asleep = now_ms();
  size_t left = held(s->pool);
  double woken_from = now_ms();
  need(tarn_pool_wake(s->pool, s->tag), "wake");
  double awake = now_ms();
  snprintf(text, sizeof text, "sleep_%s_ms_per_gib", name);
  figure(text, (asleep - begin) / gib, "ms/GiB");
  snprintf(text, sizeof text, "wake_%s_ms_per_gib", name);
  figure(text, (awake - woken_from) / gib, "ms/GiB");
  snprintf(text, sizeof text, "sleep_%s_given_back", name);
  figure(text, (double)(before - left) / (double)(s->size * BLOCKS),
         "of the blocks");
}

static void measure_sleep(tarn_device *device, size_t bytes) {
  sleepers s = {.device = device, .size = bytes / BLOCKS};
  need(tarn_pool_of(tarn_place_on(device), &s.pool), "pool");
  need(tarn_pool_set_strategy(s.pool, "arena_pool"), "strategy");
  need(tarn_pool_tag("weights", &s.tag), "tag");
  take_blocks(&s);
  sleep_and_wake(&s, TARN_SLEEP_SAVE, "save");
  look_at(&s);
  sleep_and_wake(&s, TARN_SLEEP_DROP, "drop");
  for (int i = 0; i < BLOCKS; i++)
    need(tarn_pool_free(&s.blocks[i], NULL), "free");
}

// ---------------------------------------------------------------------------
// The driver's capture
// ---------------------------------------------------------------------------

static struct {
  int (*device_get)(int *device, int ordinal);
  int (*retain)(void **context, int device);
  int (*set_current)(void *context);
  int (*begin)(void *stream, unsigned mode);
  int (*end)(void *stream, void **graph);
  int (*instantiate)(void **exec, void *graph, unsigned long long flags);
  int (*launch)(void *exec, void *stream);
  int (*destroy_exec)(void *exec);
  int (*destroy)(void *graph);
} driver;

static void look_up(void *library, const char *name, void *into) {
  void *found = dlsym(library, name);
  memcpy(into, &found, sizeof found);
  if (found == NULL) give_up("the driver has no", name);
}

static void did(int error, const char *what) {
  char text[32];
  snprintf(text, sizeof text, "error %d", error);
  if (error != 0) give_up(what, text);
}

// The context is the one that the plug-in has, and stays for as long as the
// process.
static void enter_context(const char *name) {
  int handle = 0;
  void *context = NULL;
  const char *colon = strrchr(name, ':');
  int ordinal = colon != NULL ? (int)strtol(colon + 1, NULL, 10) : 0;
  did(driver.device_get(&handle, ordinal), "cuDeviceGet");
  did(driver.retain(&context, handle), "cuDevicePrimaryCtxRetain");
  did(driver.set_current(context), "cuCtxSetCurrent");
}

static void open_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == NULL) give_up("libcuda.so.1", "the plug-in has not loaded it");
  look_up(library, "cuDeviceGet", &driver.device_get);
  look_up(library, "cuDevicePrimaryCtxRetain", &driver.retain);
  look_up(library, "cuCtxSetCurrent", &driver.set_current);
  look_up(library, "cuStreamBeginCapture_v2", &driver.begin);
  look_up(library, "cuStreamEndCapture", &driver.end);
  look_up(library, "cuGraphInstantiateWithFlags", &driver.instantiate);
  look_up(library, "cuGraphLaunch", &driver.launch);
  look_up(library, "cuGraphExecDestroy", &driver.destroy_exec);
  look_up(library, "cuGraphDestroy", &driver.destroy);
}

// ---------------------------------------------------------------------------
// Capture
// ---------------------------------------------------------------------------

typedef struct scene {
  tarn_device *device;
  tarn_stream *stream;
  tarn_pool *pool;
  tarn_addr source;
  tarn_addr result;
  size_t size;
} scene;

// What a step does: blocks come and go, bytes move from one to the next.
static void run_step(const scene *s) {
  tarn_block kept, next;
  need(tarn_pool_alloc(s->pool, s->size, 0, s->stream, &kept), "alloc");
  need(tarn_copy_d2d(s->device, kept.address, s->source, s->size, s->stream),
       "copy");
  for (int i = 0; i < PAIRS; i++) {
    need(tarn_pool_alloc(s->pool, s->size, 0, s->stream, &next), "alloc");
    need(tarn_copy_d2d(s->device, next.address, kept.address, s->size,
                       s->stream),
         "copy");
    need(tarn_pool_free(&kept, s->stream), "free");
    kept = next;
  }
  need(tarn_copy_d2d(s->device, s->result, kept.address, s->size, s->stream),
       "copy");
  need(tarn_pool_free(&kept, s->stream), "free");
}

static void look_at_result(const scene *s) {
  unsigned char byte = 0;
  need(tarn_stream_synchronize(s->stream), "synchronise");
  need(tarn_copy_d2h(s->device, &byte, s->result + s->size - 1, 1, NULL),
       "copy");
  if (byte != PATTERN) give_up("capture", "the launches wrote something else");
}

static void launch(const scene *s, void *graph) {
  void *exec = NULL;
  void *native = tarn_stream_native(s->stream);
  need(tarn_device_set(s->device, s->result, 0, s->size, NULL), "set");
  did(driver.instantiate(&exec, graph, 0), "cuGraphInstantiateWithFlags");
  double begin = now_ms();
  for (int i = 0; i < LAUNCHES; i++)
    did(driver.launch(exec, native), "cuGraphLaunch");
  need(tarn_stream_synchronize(s->stream), "synchronise");
  figure("capture_launch_us", (now_ms() - begin) * 1e3 / LAUNCHES, "us");
  look_at_result(s);
  did(driver.destroy_exec(exec), "cuGraphExecDestroy");
  did(driver.destroy(graph), "cuGraphDestroy");
}

static void capture(const scene *s, bool really) {
  void *graph = NULL;
  void *native = tarn_stream_native(s->stream);
  need(tarn_pool_begin_capture(s->pool), "begin_capture");
  if (really) did(driver.begin(native, 0), "cuStreamBeginCapture");
  double begin = now_ms();
  run_step(s);
  figure("capture_us_per_pair", (now_ms() - begin) * 1e3 / PAIRS, "us");
  if (really) did(driver.end(native, &graph), "cuStreamEndCapture");
  need(tarn_pool_end_capture(s->pool), "end_capture");
  if (really) launch(s, graph);
  look_at_result(s);
  need(tarn_pool_end_graphs(s->pool), "end_graphs");
}

static void measure_capture(tarn_device *device) {
  tarn_pool_options options = {.struct_size = sizeof options,
                               .flags = TARN_POOL_DEFER};
  tarn_place place = tarn_place_on(device);
  bool really = strcmp(tarn_device_type(device), "cuda") == 0;
  scene s = {.device = device, .size = (size_t)1 << 20};
  if (really) {
    open_driver();
    enter_context(tarn_device_name(device));
  }
  need(tarn_stream_create(device, &s.stream), "stream");
  need(tarn_device_allocate(place, s.size, &s.source), "memory");
  need(tarn_device_allocate(place, s.size, &s.result), "memory");
  need(tarn_device_set(device, s.source, PATTERN, s.size, NULL), "set");
  need(tarn_pool_create(place, &options, &s.pool), "pool");
  run_step(&s);
  need(tarn_stream_synchronize(s.stream), "synchronise");
  capture(&s, really);
  figure("capture_by_driver", really, "yes or no");
  need(tarn_pool_destroy(s.pool), "pool");
  need(tarn_device_deallocate(place, s.result, s.size), "memory");
  need(tarn_device_deallocate(place, s.source, s.size), "memory");
  need(tarn_stream_destroy(s.stream), "stream");
}

int main(int argc, char **argv) {
  tarn_device *device = NULL;
  if (argc != 3) give_up("usage", "sleep_capture DEVICE BYTES");
  need(tarn_device_open(argv[1], &device), argv[1]);
  printf("{\"figures\": [");
  measure_sleep(device, strtoull(argv[2], NULL, 10));
  measure_capture(device);
  printf("\n]}\n");
  return EXIT_SUCCESS;
}
