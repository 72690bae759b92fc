// The stage is set the same for every scene: two devices, two streams, two
// events, four blocks, each of which may be missing, since making it may have
// failed. Steps do nothing where what they need is missing.
#include "device_scenes.h"

#include <string.h>
#include <unistd.h>

#include "support/fake_extension.h"
#include "support/fake_plugin.h"
#include "support/mix.h"
#include "support/run.h"
#include "tarn/device.h"
#include "tarn/range.h"
#include "tarn/rows.h"

size_t device_calls[DEVICE_FUNCTION_COUNT];
void (*scene_watch)(tarn_status status, const char *text);

const char *device_function_name(size_t number) {
#define FUNCTION_NAME(function) #function,
  static const char *const names[] = {DEVICE_FUNCTIONS(FUNCTION_NAME)};
  return names[number];
}

// |function|, and it has been called.
#define CALL(function) (device_calls[DEVICE_CALLS_##function]++, function)

enum { SIZE = 512, STREAMS = 2, EVENTS = 2, BLOCKS = 4 };

typedef struct stage {
  const scene_place *place;
  tarn_device *device;
  tarn_device *other;
  tarn_device_info info;
  tarn_stream *streams[STREAMS];
  tarn_event *events[EVENTS];
  tarn_addr blocks[BLOCKS];  // the last is of |other|; [2] is for rows alone:
                             // what else is written at once must not meet
                             // indices that are queued
  size_t queued;             // callbacks
  size_t called;
  char bytes[SIZE];
} stage;

// What may come back where something was made to fail, and |other|.
static bool expect_or(tarn_status status, tarn_status other) {
  bool planned = status == TARN_OK || status == TARN_FULL ||
                 status == TARN_PENDING || status == TARN_E_DEVICE ||
                 status == TARN_E_NOMEM || status == other;
  if (!planned || (status < TARN_OK && *tarn_last_error() == '\0')) {
    ck_abort_msg("%s: %s", tarn_status_name(status), tarn_last_error());
  }
  bool is_told = status != TARN_OK && status != TARN_PENDING && status != other;
  if (is_told && scene_watch != NULL) scene_watch(status, tarn_last_error());
  return status == TARN_OK;
}

static bool expect(tarn_status status) {
  return expect_or(status, TARN_OK);
}

// --- memory ----------------------------------------------------------------

static tarn_place place_of(const stage *s, size_t block) {
  return tarn_place_on(block == BLOCKS - 1 ? s->other : s->device);
}

static void take_block(stage *s, size_t i) {
  if (s->blocks[i] != 0) return;
  bool taken =
      expect(CALL(tarn_device_allocate)(place_of(s, i), SIZE, &s->blocks[i]));
  require(taken == (s->blocks[i] != 0));
}

static void give_block(stage *s, size_t i) {
  if (s->blocks[i] == 0) return;
  expect(CALL(tarn_device_deallocate)(place_of(s, i), s->blocks[i], SIZE));
  s->blocks[i] = 0;
}

static void use_kinds(stage *s) {
  for (int kind = TARN_PLACE_HOST; kind <= TARN_PLACE_UNIFIED; kind++) {
    tarn_place place = {s->device, (tarn_place_kind)kind};
    tarn_addr addr = 0;
    bool taken = expect_or(CALL(tarn_device_allocate)(place, SIZE, &addr),
                           TARN_E_UNSUPPORTED);
    require(taken == (addr != 0));
    if (!taken) continue;
    void *view = NULL;
    bool seen = expect_or(CALL(tarn_device_host_view)(place, addr, SIZE, &view),
                          TARN_E_UNSUPPORTED);
    require(seen == (view != NULL));
    expect(CALL(tarn_device_deallocate)(place, addr, SIZE));
  }
}

static void use_aligned(stage *s) {
  static const size_t aligns[] = {1, 512, 65536};
  for (size_t i = 0; i < sizeof aligns / sizeof aligns[0]; i++) {
    tarn_place place = {s->device, (tarn_place_kind)(i % 2)};
    tarn_addr addr = 0;
    bool taken = expect(
        CALL(tarn_device_allocate_aligned)(place, SIZE, aligns[i], &addr));
    require(taken == (addr != 0) && addr % aligns[i] == 0);
    if (taken) expect(CALL(tarn_device_deallocate)(place, addr, SIZE));
  }
}

static void use_order(stage *s, bool aligned) {
  tarn_stream *stream = s->streams[0];
  tarn_addr addr = 0;
  if (stream == NULL) return;
  bool taken = expect(
      aligned ? tarn_device_allocate_aligned(place_of(s, 0), SIZE, 65536, &addr)
              : CALL(tarn_device_allocate_on)(stream, SIZE, &addr));
  require(taken == (addr != 0));
  if (!taken) return;
  tarn_status status = CALL(tarn_device_deallocate_on)(stream, addr, SIZE);
  expect(status);
  if (status != TARN_E_NOMEM) return;
  expect(CALL(tarn_device_deallocate)(place_of(s, 0), addr, SIZE));
}

static void use_order_as_it_comes(stage *s) {
  use_order(s, false);
}

static void use_order_aligned(stage *s) {
  use_order(s, true);
}

enum { SHARED = 64 << 10 };

// A device need not open in this process what it has exported here.
static void use_handle(stage *s, tarn_addr addr) {
  tarn_device *device = s->device;
  tarn_device_handle handle;
  tarn_addr again = 0;
  bool can = (s->info.extensions & TARN_EXTENSION_HANDLES) != 0;
  bool exported =
      expect_or(CALL(tarn_device_export)(device, addr, SHARED, &handle),
                TARN_E_UNSUPPORTED);
  if (can && !exported) return;
  bool imported =
      expect_or(CALL(tarn_device_import)(device, &handle, SHARED, &again),
                TARN_E_UNSUPPORTED);
  require(imported == (again != 0));
  if (can && !imported) return;
  expect_or(CALL(tarn_device_import_close)(device, again, SHARED),
            TARN_E_UNSUPPORTED);
}

static void use_handles(stage *s) {
  tarn_place place = tarn_place_on(s->device);
  tarn_addr addr = 0;
  if (!expect(CALL(tarn_device_allocate)(place, SHARED, &addr))) return;
  use_handle(s, addr);
  expect(CALL(tarn_device_deallocate)(place, addr, SHARED));
}

static void use_registration(stage *s) {
  tarn_device *device = s->device;
  if (expect_or(CALL(tarn_device_host_register)(device, s->bytes, SIZE),
                TARN_E_UNSUPPORTED)) {
    expect(CALL(tarn_device_host_unregister)(device, s->bytes));
  } else {
    (void)CALL(tarn_device_host_unregister)(device, NULL);
  }
}

static void use_pointer(stage *s) {
  tarn_pointer_info info;
  tarn_status status = CALL(tarn_device_pointer_query)(
      s->device, s->blocks[0] != 0 ? s->blocks[0] : 4096, &info);
  require(status == TARN_OK || info.base == 0);
  if (status != TARN_E_INVALID) expect_or(status, TARN_E_UNSUPPORTED);
}

// --- copies ----------------------------------------------------------------

static tarn_stream *stream_of(const stage *s, bool queued) {
  return queued ? s->streams[0] : NULL;
}

static bool has_blocks(stage *s) {
  take_block(s, 0);
  take_block(s, 1);
  take_block(s, BLOCKS - 1);
  return s->blocks[0] != 0 && s->blocks[1] != 0 && s->blocks[BLOCKS - 1] != 0;
}

static void copy(stage *s, bool queued) {
  static char in[SIZE];
  tarn_stream *stream = stream_of(s, queued);
  tarn_device *device = s->device;
  if (!has_blocks(s)) return;
  expect(CALL(tarn_copy_h2d)(device, s->blocks[0], in, SIZE, stream));
  expect(CALL(tarn_copy_d2d)(device, s->blocks[1], s->blocks[0], SIZE, stream));
  expect(CALL(tarn_copy_d2h)(device, s->bytes, s->blocks[1], SIZE, stream));
}

static void copy_now(stage *s) {
  copy(s, false);
}

static void copy_queued(stage *s) {
  copy(s, true);
}

static void copy_between(stage *s) {
  if (!has_blocks(s)) return;
  for (int queued = 0; queued < 2; queued++) {
    expect(CALL(tarn_copy_p2p)(s->other, s->blocks[BLOCKS - 1], s->device,
                               s->blocks[0], SIZE, stream_of(s, queued != 0)));
  }
}

static void set(stage *s) {
  take_block(s, 0);
  if (s->blocks[0] == 0) return;
  for (int queued = 0; queued < 2; queued++) {
    expect(CALL(tarn_device_set)(s->device, s->blocks[0], 1, SIZE,
                                 stream_of(s, queued != 0)));
  }
}

// --- streams and events ----------------------------------------------------

static void on_done(void *context, tarn_status status) {
  stage *s = context;
  s->called++;
  require(status == TARN_OK || status < TARN_OK);
}

static void make_stream(stage *s, size_t i) {
  if (s->streams[i] != NULL) return;
  bool made = expect(CALL(tarn_stream_create)(s->device, &s->streams[i]));
  require(made == (s->streams[i] != NULL));
}

static void make_event(stage *s, size_t i) {
  if (s->events[i] != NULL) return;
  bool made = expect(CALL(tarn_event_create)(s->device, &s->events[i]));
  require(made == (s->events[i] != NULL));
}

static void remake_stream(stage *s) {
  expect(CALL(tarn_stream_destroy)(s->streams[1]));
  s->streams[1] = NULL;
  make_stream(s, 1);
}

// The default stream, and an event that Tarn has made.
static void adopt(stage *s) {
  tarn_stream *stream = NULL;
  tarn_event *event = s->events[0];
  if (expect_or(CALL(tarn_stream_adopt)(s->device, NULL, &stream),
                TARN_E_UNSUPPORTED)) {
    expect(CALL(tarn_stream_query)(stream));
    expect(CALL(tarn_stream_destroy)(stream));
  }
  if (event == NULL) return;
  require(CALL(tarn_event_device)(event) == s->device);
  void *native = CALL(tarn_event_native)(event);
  if (expect_or(CALL(tarn_event_adopt)(s->device, native, &event),
                TARN_E_INVALID)) {
    require(event == s->events[0]);
    expect(CALL(tarn_event_destroy)(event));
  }
}

static void remake_event(stage *s) {
  expect(CALL(tarn_event_destroy)(s->events[1]));
  s->events[1] = NULL;
  make_event(s, 1);
}

static void add_callback(stage *s) {
  if (s->streams[0] == NULL) return;
  if (expect(CALL(tarn_stream_add_callback)(s->streams[0], on_done, s))) {
    s->queued++;
  }
}

static void record(stage *s) {
  for (size_t i = 0; i < EVENTS; i++) {
    if (s->events[i] == NULL || s->streams[i] == NULL) continue;
    expect(CALL(tarn_event_record)(s->events[i], s->streams[i]));
  }
}

static void wait_in_streams(stage *s) {
  if (s->events[0] == NULL || s->streams[1] == NULL) return;
  expect(CALL(tarn_stream_wait_event)(s->streams[1], s->events[0]));
}

static void join(stage *s) {
  if (s->streams[0] == NULL || s->streams[1] == NULL) return;
  uint64_t serial = CALL(tarn_stream_serial)(s->streams[0]);
  expect(CALL(tarn_stream_join)(s->streams[1], serial));
  expect(CALL(tarn_stream_join)(NULL, serial));
}

static void query(stage *s) {
  for (size_t i = 0; i < EVENTS; i++) {
    if (s->events[i] != NULL) expect(CALL(tarn_event_query)(s->events[i]));
  }
  for (size_t i = 0; i < STREAMS; i++) {
    if (s->streams[i] == NULL) continue;
    expect(CALL(tarn_stream_query)(s->streams[i]));
    (void)CALL(tarn_stream_native)(s->streams[i]);
    require(CALL(tarn_stream_device)(s->streams[i]) == s->device);
  }
}

static void wait(stage *s) {
  for (size_t i = 0; i < EVENTS; i++) {
    if (s->events[i] == NULL) continue;
    expect(CALL(tarn_event_synchronize)(s->events[i]));
  }
  for (size_t i = 0; i < STREAMS; i++) {
    if (s->streams[i] == NULL) continue;
    expect(CALL(tarn_stream_synchronize)(s->streams[i]));
  }
}

static void wait_for_device(stage *s) {
  expect(CALL(tarn_device_synchronize)(s->device));
}

// --- devices ---------------------------------------------------------------

static tarn_status ignore_name(void *context, const char *name) {
  (void)context;
  (void)name;
  return TARN_OK;
}

static tarn_status check_plugin(void *context, const tarn_plugin_info *info) {
  (void)context;
  require((info->status == TARN_OK) == (*info->reason == '\0'));
  require(info->status == TARN_OK || info->device_count == 0);
  return TARN_OK;
}

static void list(stage *s) {
  (void)s;
  expect(CALL(tarn_device_each)(ignore_name, NULL));
  expect(CALL(tarn_plugin_each)(check_plugin, NULL));
}

// It is registered already where scenes are played on it.
static void register_fake(stage *s) {
  (void)s;
  expect_or(CALL(tarn_plugin_register)(fake_init, fake_extension, "a scene"),
            TARN_E_STATE);
}

static void load(stage *s) {
  if (s->place->plugin == NULL) return;
  expect_or(CALL(tarn_plugin_load)(s->place->plugin), TARN_E_STATE);
}

static void open_again(stage *s) {
  tarn_device *again = NULL;
  bool opened =
      expect(CALL(tarn_device_open)(CALL(tarn_device_name)(s->device), &again));
  require(opened == (again == s->device));
  if (opened) expect(CALL(tarn_device_close)(again));
}

static void ask(stage *s) {
  char text[64];
  size_t total = 0;
  size_t available = 0;
  tarn_place place = tarn_place_on(s->device);
  expect(CALL(tarn_device_memory)(s->device, &total, &available));
  require(available <= total);
  s->info.struct_size = sizeof s->info;
  expect(CALL(tarn_device_query)(s->device, &s->info));
  require(CALL(tarn_place_equal)(place, place));
  require(*CALL(tarn_place_text)(place, text, sizeof text) != '\0');
  require(CALL(tarn_device_function_name)(TARN_FN_STREAMS) != NULL);
  require(CALL(tarn_device_type)(s->device) == s->info.type);
  require(CALL(tarn_device_functions)(s->device) == s->info.functions);
  require(CALL(tarn_device_extensions)(s->device) == s->info.extensions);
  require(CALL(tarn_device_host_accessible)(s->device) ==
          s->info.host_accessible);
  require(CALL(tarn_device_extension_name)(TARN_EXTENSION_RANGES) != NULL);
}

static tarn_status on_close(tarn_device *device, void *pointer, bool commit) {
  (void)device;
  (void)pointer;
  (void)commit;
  return TARN_OK;
}

static void attach(stage *s) {
  static char thing;
  expect_or(
      CALL(tarn_device_attach)(s->device, TARN_SLOT_USER, &thing, on_close),
      TARN_E_STATE);
  require(CALL(tarn_device_attached)(s->device, TARN_SLOT_USER) == &thing);
}

// --- ranges ----------------------------------------------------------------

static void map(stage *s, tarn_addr range, size_t size, tarn_memory memory) {
  tarn_device *device = s->device;
  if (!expect(CALL(tarn_range_map)(device, range, size, memory))) return;
  expect(CALL(tarn_range_set_access)(device, range, size, device,
                                     TARN_RIGHTS_READ_WRITE));
  size_t moved = 1;
  bool moves = expect_or(
      CALL(tarn_range_move)(device, range, range + size, size, &moved),
      TARN_E_UNSUPPORTED);
  require(moved == (moves ? size : 0));
  expect(CALL(tarn_range_unmap)(device, range + moved, size));
}

static void share(stage *s, size_t size, tarn_memory memory) {
  int fd = -1;
  tarn_memory again = 0;
  if (!expect(CALL(tarn_memory_export)(s->device, memory, &fd))) return;
  bool imported = expect(CALL(tarn_memory_import)(s->device, fd, size, &again));
  require(imported == (again != 0));
  require(close(fd) == 0);
  if (imported) expect(CALL(tarn_memory_destroy)(s->device, again));
}

// A device may find out when it is opened that its memory cannot be shared.
static bool create(stage *s, size_t size, bool *inout_shares,
                   tarn_memory *out) {
  bool created = false;
  if (*inout_shares) {
    created = expect_or(
        CALL(tarn_memory_create)(s->device, size, TARN_MEMORY_SHAREABLE, out),
        TARN_E_UNSUPPORTED);
    require(created == (*out != 0));
  }
  *inout_shares = created;
  return created || expect(CALL(tarn_memory_create)(s->device, size, 0, out));
}

static void use_ranges(stage *s) {
  tarn_device *device = s->device;
  size_t size = 0;
  tarn_addr range = 0;
  tarn_memory memory = 0;
  if (!expect_or(CALL(tarn_range_granularity)(device, &size),
                 TARN_E_UNSUPPORTED)) {
    return;
  }
  bool shares = (s->info.extensions & TARN_EXTENSION_SHARING) != 0;
  bool reserved = expect(CALL(tarn_range_reserve)(device, 2 * size, 0, &range));
  require(reserved == (range != 0));
  bool created = create(s, size, &shares, &memory);
  require(created == (memory != 0));
  if (reserved && created) map(s, range, size, memory);
  if (created && shares) share(s, size, memory);
  if (created) expect(CALL(tarn_memory_destroy)(device, memory));
  if (reserved) expect(CALL(tarn_range_release)(device, range, 2 * size));
}

// --- rows ------------------------------------------------------------------

// In a block: four rows of a table, then two of its indices, then two
// dense rows.
static void use_rows(stage *s, bool queued) {
  static const int32_t indices[2] = {3, 1};
  size_t offsets[2] = {0, 64};
  tarn_stream *stream = stream_of(s, queued);
  take_block(s, 2);
  tarn_addr base = s->blocks[2];
  if (base == 0) return;
  tarn_rows rows = {
      .struct_size = sizeof rows,
      .table = {&base, offsets, 1},
      .table_dtype = TARN_DTYPE_F32,
      .table_count = 4,
      .width = 4,
      .dense = base + 128,
      .dense_dtype = TARN_DTYPE_F32,
      .indices = base + 64,
      .index_dtype = TARN_DTYPE_I32,
      .index_count = 2,
  };
  if (!expect(CALL(tarn_copy_h2d)(s->device, rows.indices, indices,
                                  sizeof indices, stream))) {
    return;
  }
  expect(CALL(tarn_rows_gather)(s->device, &rows, stream));
  expect(CALL(tarn_rows_scatter)(s->device, &rows, stream));
  expect(CALL(tarn_rows_scatter_add)(s->device, &rows, stream));
  rows.dense_dtype = TARN_DTYPE_F16;  // through the host
  expect(CALL(tarn_rows_gather)(s->device, &rows, stream));
}

static void rows_now(stage *s) {
  use_rows(s, false);
}

static void rows_queued(stage *s) {
  use_rows(s, true);
}

// --- the stage -------------------------------------------------------------

static bool set_up(stage *s, const scene_place *place) {
  memset(s, 0, sizeof *s);
  s->place = place;
  bool opened = expect(CALL(tarn_device_open)(place->device, &s->device));
  require(opened == (s->device != NULL));
  opened = expect(CALL(tarn_device_open)(place->other, &s->other));
  require(opened == (s->other != NULL));
  if (s->device == NULL || s->other == NULL) return false;
  s->info.struct_size = sizeof s->info;
  require(tarn_device_query(s->device, &s->info) == TARN_OK);
  return true;
}

// Streams first: what is queued uses all else.
static void clear_stage(stage *s) {
  for (size_t i = 0; i < STREAMS; i++)
    expect(CALL(tarn_stream_destroy)(s->streams[i]));
  for (size_t i = 0; i < EVENTS; i++)
    expect(CALL(tarn_event_destroy)(s->events[i]));
  require(s->called == s->queued);
  for (size_t i = 0; i < BLOCKS; i++)
    give_block(s, i);
  expect(CALL(tarn_device_close)(s->other));
  expect(CALL(tarn_device_close)(s->device));
}

typedef void step(stage *s);

enum { STEPS_MAX = 8 };

static const struct {
  const char *name;
  bool queues;  // it needs streams and events
  step *steps[STEPS_MAX];
} scenes[] = {
    {"load and list", false, {load, register_fake, list}},
    {"open and ask", false, {open_again, ask, attach}},
    {"memory", false, {use_kinds, use_aligned}},
    {"what is known", false, {use_registration, use_pointer, use_handles}},
    {"copies", false, {copy_now, set}},
    {"copies between devices", false, {copy_between}},
    {"rows", false, {rows_now}},
    {"ranges", false, {use_ranges}},
    {"queued copies", true, {copy_queued, query, wait}},
    {"queued memory",
     true,
     {use_order_as_it_comes, use_order_aligned, set, copy_between}},
    {"queued rows", true, {copy_queued, rows_queued, wait}},
    {"callbacks", true, {add_callback, copy_queued, add_callback, wait}},
    {"events", true, {copy_queued, record, query, wait_in_streams, wait}},
    {"joins", true, {copy_queued, join, wait_for_device}},
    {"streams come and go", true, {record, remake_stream, remake_event, wait}},
    {"streams of others", true, {adopt, record, adopt, wait_for_device}},
};

size_t scene_count(void) {
  return sizeof scenes / sizeof scenes[0];
}

const char *scene_name(size_t scene) {
  return scenes[scene].name;
}

static void make_queues(stage *s) {
  for (size_t i = 0; i < STREAMS; i++)
    make_stream(s, i);
  for (size_t i = 0; i < EVENTS; i++)
    make_event(s, i);
}

void scene_play(size_t scene, const scene_place *place) {
  stage s;
  bool is_set = set_up(&s, place);
  if (is_set && scenes[scene].queues) make_queues(&s);
  for (size_t i = 0; is_set && i < STEPS_MAX; i++) {
    if (scenes[scene].steps[i] != NULL) scenes[scene].steps[i](&s);
  }
  clear_stage(&s);
}

// --- by chance -------------------------------------------------------------

static uint64_t draw(uint64_t *state) {
  *state = mix(*state, 1);
  return *state;
}

// A step of any scene but the first.
static step *draw_step(uint64_t *state) {
  step *drawn = NULL;
  while (drawn == NULL) {
    size_t scene = 1 + draw(state) % (scene_count() - 1);
    drawn = scenes[scene].steps[draw(state) % STEPS_MAX];
  }
  return drawn;
}

void scene_play_random(uint64_t seed, size_t steps, const scene_place *place) {
  stage s;
  bool is_set = set_up(&s, place);
  if (is_set && draw(&seed) % 4 != 0) make_queues(&s);
  for (size_t i = 0; is_set && i < steps; i++) {
    step *drawn = draw_step(&seed);
    drawn(&s);
  }
  clear_stage(&s);
}
