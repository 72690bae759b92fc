// Rows of wholes and streams: their order where devices are slow, errors that
// come later, and devices without room.
#include "rows_kit.h"
#include "support/strategy.h"

enum { ROWS = 90, WIDTH = 50, TIMES = 3, KINDS = 2 };

static const shape plain = {.text = "streams",
                            .table = TARN_DTYPE_F32,
                            .dense = TARN_DTYPE_F32,
                            .index = TARN_DTYPE_I64,
                            .rows = ROWS,
                            .width = WIDTH,
                            .count = ROWS};

static void have_devices(uint64_t latency_ns, size_t capacity) {
  tarn_sim_options options = {.struct_size = sizeof options,
                              .devices = 2 * my.ranks,
                              .capacity = capacity,
                              .latency_ns = latency_ns};
  MUST_BE(tarn_sim_configure(&options), TARN_OK);
}

// --- order -----------------------------------------------------------------

// Dense rows and indices, and where they are for the device of a stream.
typedef struct freight {
  size_t count;
  float in[ROWS][WIDTH];
  float out[ROWS][WIDTH];
  int64_t indices[ROWS];
  tarn_addr dense_at;
  tarn_addr indices_at;
} freight;

static freight cargo;

static void load_cargo(size_t time) {
  cargo.count = ROWS / my.ranks;
  memset(cargo.out, 0, sizeof cargo.out);
  for (size_t i = 0; i < cargo.count; i++) {
    cargo.indices[i] = (int64_t)(i * my.ranks + my.rank);
    for (size_t k = 0; k < WIDTH; k++)
      cargo.in[i][k] = (float)(time * 1000 + i * 7 + k + my.rank * 3);
  }
}

// There and back, without a wait before the end.
static void send(const scene *c) {
  size_t size = cargo.count * sizeof cargo.in[0];
  tarn_device *device = c->at.device;
  tarn_whole_rows rows = {.struct_size = sizeof rows,
                          .place = c->at,
                          .dense = cargo.dense_at,
                          .indices = cargo.indices_at,
                          .index_dtype = TARN_DTYPE_I64,
                          .index_count = cargo.count};
  MUST_BE(tarn_copy_h2d(device, cargo.indices_at, cargo.indices,
                        cargo.count * sizeof(int64_t), c->stream),
          TARN_OK);
  MUST_BE(tarn_copy_h2d(device, cargo.dense_at, cargo.in, size, c->stream),
          TARN_OK);
  MUST_BE(tarn_whole_scatter(&c->tensor, &rows, c->stream), TARN_OK);
  MUST_BE(tarn_copy_h2d(device, cargo.dense_at, cargo.out, size, c->stream),
          TARN_OK);
  MUST_BE(tarn_whole_gather(&c->tensor, &rows, c->stream), TARN_OK);
  MUST_BE(tarn_copy_d2h(device, cargo.out, cargo.dense_at, size, c->stream),
          TARN_OK);
  MUST_BE(tarn_stream_synchronize(c->stream), TARN_OK);
  MUST(memcmp(cargo.in, cargo.out, size) == 0);
}

static void keep_order(tarn_place place, tarn_place at, tarn_whole_type type) {
  scene c = {.s = &plain, .place = place, .at = at};
  raise_scene(&c, type);
  MUST_BE(tarn_stream_create(at.device, &c.stream), TARN_OK);
  MUST_BE(tarn_device_allocate(at, sizeof cargo.in, &cargo.dense_at), TARN_OK);
  MUST_BE(tarn_device_allocate(at, sizeof cargo.indices, &cargo.indices_at),
          TARN_OK);
  for (size_t time = 0; time < TIMES; time++) {
    load_cargo(time);
    send(&c);
  }
  MUST_BE(tarn_stream_destroy(c.stream), TARN_OK);
  drop(&c, cargo.dense_at, sizeof cargo.in);
  drop(&c, cargo.indices_at, sizeof cargo.indices);
  strike_scene(&c);
}

// Every copy of a simulated device takes a while, so that what is queued
// behind it would come first if it did not wait.
static void keep_order_everywhere(void) {
  static const tarn_place_kind kinds[KINDS] = {TARN_PLACE_DEVICE,
                                               TARN_PLACE_UNIFIED};
  have_devices(200000, 16 * KIT_MIB);
  for (int g = 0; g < GROUNDS; g++) {
    tarn_place place = open_place(ground_at(g)->device, ground_at(g)->kind);
    for (size_t i = 0; i < (size_t)KINDS * TYPES; i++) {
      tarn_place at =
          open_place(is_on_driver() ? "real" : "sim", kinds[i / TYPES]);
      if (has_memory(at)) keep_order(place, at, type_at(i % TYPES));
      close_ground(at);
    }
    close_ground(place);
  }
}

WHOLE_LOOP(streams_keep_their_order, ON_GROUNDS(1), 2, "order",
           keep_order_everywhere)

// --- errors that come later ------------------------------------------------

static tarn_status finish(tarn_status status, tarn_stream *stream) {
  return status == TARN_OK ? tarn_stream_synchronize(stream) : status;
}

// What a device finds later fails the stream, and what comes behind it; the
// whole is as good as before.
static void fail_later(tarn_whole_type type, tarn_place place) {
  int64_t bad = -3;
  tarn_addr address = 0;
  scene c = {.s = &plain, .place = place, .at = place};
  raise_scene(&c, type);
  MUST_BE(tarn_stream_create(place.device, &c.stream), TARN_OK);
  MUST_BE(tarn_device_allocate(place, 4096, &address), TARN_OK);
  tarn_whole_rows rows = {.struct_size = sizeof rows,
                          .place = place,
                          .dense = address,
                          .indices = address + 2048,
                          .index_dtype = TARN_DTYPE_I64,
                          .index_count = 1};
  poke(place, rows.indices, &bad, sizeof bad);
  MUST_BE(finish(tarn_whole_gather(&c.tensor, &rows, c.stream), c.stream),
          TARN_E_DEVICE);
  MUST_SAY("index -3 at position 0 is not in 0..89");
  rows.place = TARN_HOST;
  rows.dense = (tarn_addr)(uintptr_t)cargo.out;
  rows.indices = (tarn_addr)(uintptr_t)cargo.indices;
  MUST_BE(tarn_whole_gather(&c.tensor, &rows, c.stream), TARN_E_DEVICE);
  MUST_SAY("index -3");
  MUST_BE(tarn_stream_destroy(c.stream), TARN_E_DEVICE);
  c.stream = NULL;
  drop(&c, address, 4096);
  play(&c, GATHER);
  strike_scene(&c);
}

static void fail_later_on_both(void) {
  have_devices(1000, 16 * KIT_MIB);
  tarn_place place = open_place("sim", TARN_PLACE_DEVICE);
  fail_later(TARN_WHOLE_CONTINUOUS, place);
  fail_later(TARN_WHOLE_CHUNKED, place);
  close_ground(place);
}

WHOLE_TEST(errors_that_come_later, 2, "later", fail_later_on_both)

// --- no room for a block ---------------------------------------------------

enum { HELD = 24 };

// All that the device has left; sizes are powers of two from 2 MiB down.
static void hold_all(tarn_place place, tarn_addr held[HELD]) {
  memset(held, 0, HELD * sizeof *held);
  for (size_t i = 0; i < HELD; i++) {
    size_t size = 2 * KIT_MIB >> (i / 2);
    if (size < 4096) return;
    (void)!tarn_device_allocate(place, size, &held[i]);
  }
}

static void let_go(tarn_place place, const tarn_addr held[HELD]) {
  for (size_t i = 0; i < HELD; i++) {
    if (held[i] == 0) continue;
    MUST_BE(tarn_device_deallocate(place, held[i], 2 * KIT_MIB >> (i / 2)),
            TARN_OK);
  }
}

// Alone it is this rank's shortage, together that of all.
static void ask_without_room(const scene *c, tarn_whole_type type) {
  tarn_whole_rows rows = {.struct_size = sizeof rows,
                          .place = TARN_HOST,
                          .dense = (tarn_addr)(uintptr_t)cargo.out,
                          .indices = (tarn_addr)(uintptr_t)cargo.indices,
                          .index_dtype = TARN_DTYPE_I64,
                          .index_count = cargo.count};
  for (action a = GATHER; a < ACTIONS; a++) {
    bool alone = type != TARN_WHOLE_DISTRIBUTED && a != SCATTER_ADD;
    MUST_BE(act(a, &c->tensor, &rows, NULL),
            alone && my.rank != 1 ? TARN_OK : TARN_FULL);
    MUST((my.rank != 1 && alone) || strstr(tarn_last_error(), "sim:1") != NULL);
    meet_all();
  }
}

static void have_no_room(void) {
  tarn_addr held[HELD] = {0};
  have_devices(0, 4 * KIT_MIB);
  tarn_place place = open_place("sim", TARN_PLACE_DEVICE);
  MUST_BE(use_strategy(place, "no_pool"), TARN_OK);
  for (size_t t = 0; t < TYPES; t++) {
    scene c = {.s = &plain, .place = place, .at = TARN_HOST};
    raise_scene(&c, type_at(t));
    load_cargo(t);
    if (my.rank == 1) hold_all(place, held);
    ask_without_room(&c, type_at(t));
    if (my.rank == 1) let_go(place, held);
    meet_all();
    // Some were scattered or added before it failed.
    tarn_whole_part part;
    MUST_BE(tarn_whole_local(c.whole, &part), TARN_OK);
    poke(place, part.address, c.model + part.offset, part.size);
    meet_all();
    play(&c, SCATTER_ADD);
    strike_scene(&c);
  }
  close_ground(place);
}

WHOLE_TEST(no_room_for_a_block, 2, "no room", have_no_room)
