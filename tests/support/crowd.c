// Four threads on one device at the same time.
#include "support/crowd.h"

#include <stdatomic.h>
#include <stdio.h>

#include "support/effort.h"
#include "support/run.h"
#include "support/threads.h"
#include "tarn/rows.h"

enum {
  THREADS = 4,
  ROUNDS = EFFORT(60, 12),
  ROWS = 16,
  WIDTH = 8,               // elements of a row
  TABLE = ROWS * WIDTH,    // elements
  INDICES_AT = TABLE * 4,  // bytes, in a block
  DENSE_AT = INDICES_AT + ROWS * 4,
  SIZE = DENSE_AT + TABLE * 4,
};

static void fine(tarn_status status) {
  if (status != TARN_OK) fprintf(stderr, "%s\n", tarn_last_error());
  expect(status == TARN_OK);
}

typedef struct player {
  tarn_device *device;
  tarn_stream *streams[2];
  tarn_event *event;
  tarn_addr block;
  atomic_size_t called;
  float table[TABLE];
  float dense[TABLE];
  int32_t indices[ROWS];
} player;

static void on_done(void *context, tarn_status status) {
  player *p = context;
  expect(status == TARN_OK);
  atomic_fetch_add(&p->called, 1);
}

static void fill(player *p, size_t number) {
  for (size_t i = 0; i < TABLE; i++)
    p->table[i] = (float)(number * TABLE + i);
  for (size_t i = 0; i < ROWS; i++)
    p->indices[i] = (int32_t)((i * 7 + number) % ROWS);
}

static void gather(const player *p, tarn_stream *stream) {
  size_t offsets[2] = {0, TABLE * sizeof(float)};
  tarn_addr table = p->block;
  const tarn_rows rows = {
      .struct_size = sizeof rows,
      .table = {&table, offsets, 1},
      .table_dtype = TARN_DTYPE_F32,
      .table_count = ROWS,
      .width = WIDTH,
      .dense = p->block + DENSE_AT,
      .dense_dtype = TARN_DTYPE_F32,
      .indices = p->block + INDICES_AT,
      .index_dtype = TARN_DTYPE_I32,
      .index_count = ROWS,
  };
  fine(tarn_rows_gather(p->device, &rows, stream));
}

static void check(const player *p) {
  for (size_t i = 0; i < TABLE; i++) {
    size_t row = (size_t)p->indices[i / WIDTH];
    expect(p->dense[i] == p->table[row * WIDTH + i % WIDTH]);
  }
}

// Rows go to the device on one stream, and are gathered and come back on the
// other.
static void use_queues(player *p, size_t number) {
  tarn_stream *first = p->streams[number % 2];
  tarn_stream *second = p->streams[1 - number % 2];
  fine(tarn_copy_h2d(p->device, p->block, p->table, sizeof p->table, first));
  fine(tarn_copy_h2d(p->device, p->block + INDICES_AT, p->indices,
                     sizeof p->indices, first));
  fine(tarn_event_record(p->event, first));
  fine(tarn_stream_wait_event(second, p->event));
  gather(p, second);
  fine(tarn_copy_d2h(p->device, p->dense, p->block + DENSE_AT, sizeof p->dense,
                     second));
  fine(tarn_stream_add_callback(second, on_done, p));
  tarn_status status = tarn_event_query(p->event);
  expect(status == TARN_OK || status == TARN_PENDING);
  status = tarn_stream_query(second);
  expect(status == TARN_OK || status == TARN_PENDING);
  fine(tarn_stream_synchronize(second));
  expect(atomic_exchange(&p->called, 0) == 1);
  check(p);
}

static void use_at_once(player *p) {
  fine(tarn_copy_h2d(p->device, p->block, p->table, sizeof p->table, NULL));
  fine(tarn_copy_h2d(p->device, p->block + INDICES_AT, p->indices,
                     sizeof p->indices, NULL));
  gather(p, NULL);
  fine(tarn_copy_d2h(p->device, p->dense, p->block + DENSE_AT, sizeof p->dense,
                     NULL));
  check(p);
}

static void play_round(player *p, size_t number) {
  tarn_place place = {p->device,
                      number % 3 == 0 ? TARN_PLACE_HOST : TARN_PLACE_DEVICE};
  tarn_addr other = 0;
  fill(p, number);
  fine(tarn_device_allocate(tarn_place_on(p->device), SIZE, &p->block));
  fine(tarn_device_allocate(place, SIZE, &other));
  for (size_t i = 0; i < 2; i++)
    fine(tarn_stream_create(p->device, &p->streams[i]));
  fine(tarn_event_create(p->device, &p->event));
  use_queues(p, number);
  use_at_once(p);
  if (number % 8 == 0) fine(tarn_device_synchronize(p->device));
  fine(tarn_event_destroy(p->event));
  for (size_t i = 0; i < 2; i++)
    fine(tarn_stream_destroy(p->streams[i]));
  fine(tarn_device_deallocate(place, other, SIZE));
  fine(tarn_device_deallocate(tarn_place_on(p->device), p->block, SIZE));
}

static const char *name;  // of the device

static void *play(void *number) {
  player p = {.device = NULL};
  fine(tarn_device_open(name, &p.device));
  for (size_t round = 0; round < ROUNDS; round++)
    play_round(&p, (uintptr_t)number + round);
  fine(tarn_device_close(p.device));
  return NULL;
}

void crowd_use(const char *device) {
  name = device;
  run_threads(play, THREADS);
  assert_as_expected();
}
