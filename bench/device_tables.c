// Rows of several widths by the device's own functions, beside what limits
// them: a copy of as many bytes within the device, or, where the table is in
// memory of the host that the device has pinned, a copy from there.
//
// The table repeats one piece, which no row crosses, and whose size is no power
// of two: rows that lie wrong by 4 GiB, or by any other power of two, are wrong
// rows. What a gather has brought is looked at before it is timed.
//
//   table   piece | piece | piece | ... | part of one     device or host
//   dense   as many rows as a batch has                   device
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_figures.h"

enum {
  WORD = sizeof(float),
  ROW_MOST = 1024,
  PIECE = (16 << 20) - ROW_MOST,
  PIECE_WORDS = PIECE / WORD,  // below 2^24, so that a float holds its number
};

static const size_t batch_most = (size_t)256 << 20;
static const size_t host_most = (size_t)2 << 30;

typedef tarn_status rows_fn(tarn_device *device, const tarn_rows *rows,
                            tarn_stream *stream);

typedef struct scene {
  tarn_device *device;
  rows_fn *move;
  tarn_place place;  // of the table
  size_t row;        // bytes
  size_t size;       // of the table, a multiple of |row|
  size_t count;      // rows of a batch
  size_t offsets[2];
  tarn_addr table, dense, indices;
  int64_t *drawn;
  tarn_rows rows;
} scene;

static size_t batch_bytes(const scene *s) {
  return s->count * s->row;
}

static size_t index_bytes(const scene *s) {
  return s->count * sizeof *s->drawn;
}

// ---------------------------------------------------------------------------
// The table
// ---------------------------------------------------------------------------

static float *make_piece(void) {
  float *words = tool_array(PIECE_WORDS, WORD);
  for (size_t i = 0; i < PIECE_WORDS; i++)
    words[i] = (float)i;
  return words;
}

// What is there already is copied behind itself: a table of many GiB comes over
// the link once, by a piece.
static bool fill_on_device(const scene *s, const float *piece) {
  size_t filled = s->size < PIECE ? s->size : PIECE;
  if (tarn_copy_h2d(s->device, s->table, piece, filled, NULL) != TARN_OK)
    return false;
  while (filled < s->size) {
    size_t left = s->size - filled;
    size_t more = left < filled ? left : filled;
    if (tarn_copy_d2d(s->device, s->table + filled, s->table, more, NULL) !=
        TARN_OK) {
      return false;
    }
    filled += more;
  }
  return true;
}

static void fill_on_host(const scene *s, const float *piece) {
  unsigned char *table = (unsigned char *)(uintptr_t)s->table;
  for (size_t at = 0; at < s->size; at += PIECE) {
    size_t left = s->size - at;
    memcpy(table + at, piece, left < PIECE ? left : PIECE);
  }
}

static bool fill(const scene *s) {
  float *piece = make_piece();
  bool filled = true;
  if (s->place.kind == TARN_PLACE_HOST)
    fill_on_host(s, piece);
  else
    filled = fill_on_device(s, piece);
  free(piece);
  return filled;
}

// ---------------------------------------------------------------------------
// The scene
// ---------------------------------------------------------------------------

static void set_sizes(const probe *p, scene *s) {
  bool on_host = s->place.kind == TARN_PLACE_HOST;
  size_t table = on_host && p->table > host_most ? host_most : p->table;
  size_t batch = table < batch_most ? table : batch_most;
  s->size = table / s->row * s->row;
  s->count = batch / s->row;
}

static void draw(scene *s) {
  uint64_t state = 1;
  uint64_t rows = s->size / s->row;
  s->drawn = tool_array(s->count, sizeof *s->drawn);
  for (size_t i = 0; i < s->count; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    s->drawn[i] = (int64_t)((state >> 33) % rows);
  }
}

static void describe(scene *s) {
  s->offsets[1] = s->size;
  s->rows = (tarn_rows){.struct_size = sizeof s->rows,
                        .table = {&s->table, s->offsets, 1},
                        .table_dtype = TARN_DTYPE_F32,
                        .table_count = s->size / s->row,
                        .width = s->row / WORD,
                        .dense = s->dense,
                        .dense_dtype = TARN_DTYPE_F32,
                        .indices = s->indices,
                        .index_dtype = TARN_DTYPE_I64,
                        .index_count = s->count};
}

static bool make_scene(scene *s) {
  tarn_place own = tarn_place_on(s->device);
  draw(s);
  bool made =
      tarn_device_allocate(s->place, s->size, &s->table) == TARN_OK &&
      tarn_device_allocate(own, batch_bytes(s), &s->dense) == TARN_OK &&
      tarn_device_allocate(own, index_bytes(s), &s->indices) == TARN_OK &&
      tarn_device_set(s->device, s->dense, 0, batch_bytes(s), NULL) ==
          TARN_OK &&
      tarn_copy_h2d(s->device, s->indices, s->drawn, index_bytes(s), NULL) ==
          TARN_OK &&
      fill(s);
  describe(s);
  return made;
}

static void give(tarn_place place, tarn_addr address, size_t size) {
  if (address != 0) (void)tarn_device_deallocate(place, address, size);
}

static void end_scene(scene *s) {
  tarn_place own = tarn_place_on(s->device);
  give(own, s->indices, index_bytes(s));
  give(own, s->dense, batch_bytes(s));
  give(s->place, s->table, s->size);
  free(s->drawn);
}

// ---------------------------------------------------------------------------
// Batches
// ---------------------------------------------------------------------------

static bool move_rows(probe *p, size_t count) {
  const scene *s = p->scene;
  for (size_t i = 0; i < count; i++) {
    if (s->move(s->device, &s->rows, p->stream) != TARN_OK) return false;
  }
  return tarn_stream_synchronize(p->stream) == TARN_OK;
}

static tarn_status copy_once(const scene *s, tarn_stream *stream) {
  const void *host = (const void *)(uintptr_t)s->table;
  return s->place.kind == TARN_PLACE_HOST
             ? tarn_copy_h2d(s->device, s->dense, host, batch_bytes(s), stream)
             : tarn_copy_d2d(s->device, s->dense, s->table, batch_bytes(s),
                             stream);
}

static bool copy_as_much(probe *p, size_t count) {
  const scene *s = p->scene;
  for (size_t i = 0; i < count; i++) {
    if (copy_once(s, p->stream) != TARN_OK) return false;
  }
  return tarn_stream_synchronize(p->stream) == TARN_OK;
}

// ---------------------------------------------------------------------------
// Right or not
// ---------------------------------------------------------------------------

static bool are_right(const scene *s, const float *dense) {
  size_t width = s->row / WORD;
  for (size_t i = 0; i < s->count; i++) {
    size_t first = (size_t)s->drawn[i] * width;
    for (size_t k = 0; k < width; k++) {
      if (dense[i * width + k] != (float)((first + k) % PIECE_WORDS))
        return false;
    }
  }
  return true;
}

static bool check_gather(probe *p, const scene *s, char *why) {
  float *dense = tool_array(batch_bytes(s), 1);
  bool good = move_rows(p, 1) && tarn_copy_d2h(s->device, dense, s->dense,
                                               batch_bytes(s), NULL) == TARN_OK;
  if (!good) {
    (void)probe_refused(why);
  } else if (!are_right(s, dense)) {
    good = false;
    snprintf(why, PROBE_TEXT_SIZE, "wrong rows");
  }
  free(dense);
  return good;
}

// ---------------------------------------------------------------------------
// The figures
// ---------------------------------------------------------------------------

static bool time_rows(probe *p, scene *s, probe_times *out, char *why) {
  bool good = make_scene(s) || probe_refused(why);
  p->scene = s;
  if (good && s->move == tarn_rows_gather) good = check_gather(p, s, why);
  good = good && probe_time_beside(p, move_rows, copy_as_much, out, why);
  p->scene = NULL;
  out->bytes = batch_bytes(s);
  end_scene(s);
  return good;
}

static bool measure(probe *p, rows_fn *move, tarn_place_kind kind, size_t row,
                    probe_times *out, char *why) {
  scene s = {.device = p->device,
             .move = move,
             .place = {p->device, kind},
             .row = row};
  set_sizes(p, &s);
  if (s.count > 0) return time_rows(p, &s, out, why);
  snprintf(why, PROBE_TEXT_SIZE, "the table has no row of %zu bytes", row);
  return false;
}

#define FIGURE(name, move, kind, row)                          \
  bool name(probe *p, probe_times *out, char *why) {           \
    return measure(p, move, TARN_PLACE_##kind, row, out, why); \
  }

FIGURE(device_gather_64, tarn_rows_gather, DEVICE, 64)
FIGURE(device_gather_256, tarn_rows_gather, DEVICE, 256)
FIGURE(device_gather_1024, tarn_rows_gather, DEVICE, 1024)
FIGURE(device_add_256, tarn_rows_scatter_add, DEVICE, 256)
FIGURE(device_host_rows_256, tarn_rows_gather, HOST, 256)
FIGURE(device_host_rows_1024, tarn_rows_gather, HOST, 1024)
