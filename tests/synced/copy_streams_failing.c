// Copies on copy streams while each call of the device fails in turn: no byte
// is lost, nothing leaks, and the next access finds the bytes.
#include <stdio.h>

#include "sim/kit.h"
#include "support/faults.h"
#include "synced/core.h"
#include "tarn/synced.h"

enum { SIZE = 3000, DEVICES = 3, MOST_CALLS = 400 };

static tarn_device *devices[DEVICES];
static tarn_device *cpu;
static unsigned char old_bytes[SIZE];
static unsigned char new_bytes[SIZE];

static void open_devices(void) {
  tarn_sim_options three = {.struct_size = sizeof three, .devices = DEVICES};
  assert_ok(tarn_sim_configure(&three));
  cpu = sim_open("cpu:0");
  sim_fill(old_bytes, SIZE, 1);
  sim_fill(new_bytes, SIZE, 2);
}

static tarn_place at(size_t device) {
  return tarn_place_on(devices[device]);
}

// A stream of one of the three, or of the host.
static tarn_stream *stream_of(size_t which) {
  tarn_stream *stream = NULL;
  assert_ok(
      tarn_stream_create(which < DEVICES ? devices[which] : cpu, &stream));
  return stream;
}

// --- what must hold --------------------------------------------------------

static void assert_nothing_is_left(const tarn_synced *buffer) {
  const tarn__synced_core *core = buffer->core;
  const char *wrong = tarn__core_verify(core);
  if (wrong != NULL) ck_abort_msg("%s", wrong);
  require(tarn_list_empty(&core->accesses));
  for (uint32_t i = 0; i < core->side_count; i++) {
    require(core->sides[i].transfers == 0);
    require(!core->sides[i].busy);
  }
  for (const tarn__synced_span *span = core->spans.first; span != NULL;
       span = span->next) {
    require(span->readers == 0 && span->writer == NULL);
    for (const tarn__synced_use *use = span->uses; use != NULL; use = use->next)
      require(use->timeline != NULL);
  }
}

static void assert_bytes(tarn_synced *buffer, const unsigned char *bytes) {
  tarn_access access;
  assert_ok(tarn_synced_begin(buffer, 0, TARN_ALL, TARN_HOST, TARN_READ, NULL,
                              &access));
  require(memcmp(access.pointer, bytes, SIZE) == 0);
  assert_ok(tarn_synced_end(&access));
}

// --- one scene -------------------------------------------------------------

typedef struct scene {
  tarn_synced *buffer;
  tarn_stream *stream;
  bool written;  // the new bytes are the buffer's
  size_t failures;
} scene;

// The newest bytes are in part at the host, in part at the first device.
static void set_up(scene *s, size_t whose_stream) {
  tarn_access access;
  for (size_t i = 0; i < DEVICES; i++) {
    char name[16];
    snprintf(name, sizeof name, "sim:%zu", i);
    devices[i] = sim_open(name);
  }
  *s = (scene){.stream = stream_of(whose_stream)};
  assert_ok(tarn_synced_create(SIZE, NULL, &s->buffer));
  assert_ok(tarn_synced_begin(s->buffer, 0, TARN_ALL, TARN_HOST,
                              TARN_WRITE_DISCARD, NULL, &access));
  memcpy(access.pointer, old_bytes, SIZE);
  assert_ok(tarn_synced_end(&access));
  assert_ok(tarn_synced_begin(s->buffer, 500, 1000, at(0), TARN_READ_WRITE,
                              NULL, &access));
  assert_ok(tarn_synced_end(&access));
}

static void tear_down(scene *s) {
  assert_nothing_is_left(s->buffer);
  tarn_status status = tarn_stream_synchronize(s->stream);
  require(status == TARN_OK || s->failures > 0);
  assert_bytes(s->buffer, s->written ? new_bytes : old_bytes);
  assert_ok(tarn_synced_destroy(s->buffer));
  (void)tarn_stream_destroy(s->stream);
  for (size_t i = 0; i < DEVICES; i++)
    assert_ok(tarn_device_close(devices[i]));
}

static bool went(scene *s, tarn_status status) {
  if (status == TARN_OK) return true;
  s->failures++;
  require(status == TARN_E_DEVICE || status == TARN_E_NOMEM ||
          status == TARN_FULL);
  return false;
}

static void read_somewhere(scene *s, size_t device) {
  tarn_access access;
  memset(&access, 0xff, sizeof access);
  tarn_status status = tarn_synced_begin(s->buffer, 0, TARN_ALL, at(device),
                                         TARN_READ, s->stream, &access);
  if (went(s, status)) {
    require(access.size == SIZE);
    (void)went(s, tarn_synced_end(&access));
  }
  require(access.buffer == NULL);
}

static void write_somewhere(scene *s, size_t device) {
  tarn_access access;
  tarn_status status = tarn_synced_begin(s->buffer, 0, TARN_ALL, at(device),
                                         TARN_READ_WRITE, NULL, &access);
  if (!went(s, status)) return;
  status =
      tarn_copy_h2d(devices[device], access.address, new_bytes, SIZE, NULL);
  if (went(s, status)) {
    s->written = went(s, tarn_synced_end(&access));
  } else {
    size_t lost = 1;
    (void)went(s, tarn_synced_cancel(&access, &lost));
    require(lost == 0);
  }
}

static void act(scene *s) {
  read_somewhere(s, 1);
  if (went(s,
           tarn_synced_prefetch(s->buffer, 700, 900, at(2), s->stream, NULL))) {
    read_somewhere(s, 2);
  }
  write_somewhere(s, 1);
  read_somewhere(s, 2);
  read_somewhere(s, 0);
}

// --- sweeps ----------------------------------------------------------------

// Every call of a device fails once, and every call from some point on.
TEST_LOOP(calls_of_devices_that_fail, 2) {
  size_t failures = 0;
  open_devices();
  for (size_t whose = 0; whose <= DEVICES; whose++) {
    size_t quiet = 0;
    for (size_t n = 1; n < MOST_CALLS && quiet < 20; n++) {
      scene s;
      char plan[32];
      set_up(&s, whose);
      snprintf(plan, sizeof plan, "*@%zu%s", n, _i == 0 ? "" : "+");
      assert_ok(tarn_sim_faults(plan));
      act(&s);
      assert_ok(tarn_sim_faults(NULL));
      failures += s.failures;
      quiet = s.failures == 0 ? quiet + 1 : 0;
      tear_down(&s);
    }
  }
  ck_assert_uint_gt(failures, 100);
  ck_assert_uint_eq(sim_misuses(), 0);
}

// The same for the host's memory.
TEST_LOOP(host_memory_that_runs_out, 2) {
  size_t failures = 0;
  faults_install();
  open_devices();
  for (size_t whose = 0; whose <= DEVICES; whose++) {
    bool struck = true;
    for (size_t n = 1; struck; n++) {
      scene s;
      set_up(&s, whose);
      faults_arm(n, _i == 0 ? FAULTS_ONCE : FAULTS_FROM_NOW);
      act(&s);
      struck = faults_disarm();
      failures += s.failures;
      tear_down(&s);
    }
  }
  ck_assert_uint_gt(failures, 100);
  ck_assert_uint_eq(sim_misuses(), 0);
}
