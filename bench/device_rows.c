// Rows of a large table that a device gathers by kernels or the like, over the
// host's own gather: the same rows by the same indices out of a table of the
// same bytes on cpu:0, with two threads.
//
// Every row tells which it is, and what either gather has brought is looked at
// once: wrong rows have no figure.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_figures.h"

enum {
  ROW = 256,  // bytes
  WORDS = ROW / 8,
  BATCH_ROWS = 1 << 18,  // that a call gathers, of a large table
  PIECE = 4 << 20,       // bytes that are written at a time
  THREADS = 2,           // of cpu:0
};

// One of the two devices, with its own memory.
typedef struct side {
  tarn_device *device;
  tarn_addr table, dense, indices;
  size_t offsets[2];  // of the table, as tarn_reference has them
  tarn_rows rows;
} side;

typedef struct scene {
  tarn_device *cpu;
  side own;
  side host;
  size_t table_size;
  size_t table_rows;
  size_t count;      // rows of a call
  int64_t *indices;  // of a call
} scene;

static bool refuse(char *why, const char *text) {
  snprintf(why, PROBE_TEXT_SIZE, "%s", text);
  return false;
}

// ---------------------------------------------------------------------------
// Memory
// ---------------------------------------------------------------------------

static bool take(const side *s, size_t size, tarn_addr *out) {
  return tarn_device_allocate(tarn_place_on(s->device), size, out) == TARN_OK;
}

static void give(const side *s, size_t size, tarn_addr address) {
  if (address == 0) return;
  (void)tarn_device_deallocate(tarn_place_on(s->device), address, size);
}

static bool put(const side *s, tarn_addr to, const void *from, size_t size) {
  return tarn_copy_h2d(s->device, to, from, size, NULL) == TARN_OK;
}

// What stands at word |k| of row |row|.
static uint64_t word_of(uint64_t row, uint64_t k) {
  return row * 0x9e3779b97f4a7c15u + k;
}

static void write_rows(uint64_t *words, uint64_t first, size_t count) {
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < WORDS; k++)
      words[i * WORDS + k] = word_of(first + i, k);
}

static bool fill_table(const scene *s, const side *one) {
  uint64_t *piece = tool_array(PIECE, 1);
  bool filled = true;
  for (size_t at = 0; at < s->table_size && filled; at += PIECE) {
    size_t left = s->table_size - at;
    size_t size = left < PIECE ? left : PIECE;
    write_rows(piece, at / ROW, size / ROW);
    filled = put(one, one->table + at, piece, size);
  }
  free(piece);
  return filled;
}

static void describe_rows(const scene *s, side *one) {
  one->offsets[1] = s->table_size;
  one->rows = (tarn_rows){.struct_size = sizeof one->rows,
                          .table = {&one->table, one->offsets, 1},
                          .table_dtype = TARN_DTYPE_F32,
                          .table_count = s->table_rows,
                          .width = ROW / 4,
                          .dense = one->dense,
                          .dense_dtype = TARN_DTYPE_F32,
                          .indices = one->indices,
                          .index_dtype = TARN_DTYPE_I64,
                          .index_count = s->count,
                          .threads = THREADS};
}

static bool make_side(const scene *s, tarn_device *device, side *one) {
  size_t indices = s->count * sizeof *s->indices;
  one->device = device;
  bool made = take(one, s->table_size, &one->table) &&
              take(one, s->count * ROW, &one->dense) &&
              take(one, indices, &one->indices) && fill_table(s, one) &&
              put(one, one->indices, s->indices, indices);
  describe_rows(s, one);
  return made;
}

static void end_side(const scene *s, side *one) {
  if (one->device == NULL) return;
  give(one, s->count * sizeof *s->indices, one->indices);
  give(one, s->count * ROW, one->dense);
  give(one, s->table_size, one->table);
}

static void end_scene(scene *s) {
  end_side(s, &s->host);
  end_side(s, &s->own);
  if (s->cpu != NULL) (void)tarn_device_close(s->cpu);
  free(s->indices);
}

static void draw_indices(scene *s) {
  uint64_t state = 1;
  s->indices = tool_array(s->count, sizeof *s->indices);
  for (size_t i = 0; i < s->count; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    s->indices[i] = (int64_t)((state >> 33) % s->table_rows);
  }
}

static bool make_scene(const probe *p, scene *s, char *why) {
  s->table_rows = p->table / ROW;
  s->table_size = s->table_rows * ROW;
  s->count = s->table_rows < BATCH_ROWS ? s->table_rows : BATCH_ROWS;
  if (s->count == 0) return refuse(why, "the table has no row");
  draw_indices(s);
  return (tarn_device_open("cpu:0", &s->cpu) == TARN_OK &&
          make_side(s, p->device, &s->own) && make_side(s, s->cpu, &s->host)) ||
         probe_refused(why);
}

// ---------------------------------------------------------------------------
// Gathering
// ---------------------------------------------------------------------------

static bool gather(const side *one, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (tarn_rows_gather(one->device, &one->rows, NULL) != TARN_OK)
      return false;
  }
  return true;
}

static bool gather_own(probe *p, size_t count) {
  return gather(&((scene *)p->scene)->own, count);
}

static bool gather_host(probe *p, size_t count) {
  return gather(&((scene *)p->scene)->host, count);
}

static bool are_right(const scene *s, const uint64_t *words) {
  for (size_t i = 0; i < s->count; i++) {
    for (size_t k = 0; k < WORDS; k++) {
      if (words[i * WORDS + k] != word_of((uint64_t)s->indices[i], k))
        return false;
    }
  }
  return true;
}

static bool check(const scene *s, const side *one, char *why) {
  uint64_t *words = tool_array(s->count, ROW);
  bool good = (gather(one, 1) && tarn_copy_d2h(one->device, words, one->dense,
                                               s->count * ROW, NULL) == TARN_OK)
                  ? true
                  : probe_refused(why);
  if (good && !are_right(s, words)) good = refuse(why, "wrong rows");
  free(words);
  return good;
}

bool device_gather(probe *p, probe_times *out, char *why) {
  scene s = {.cpu = NULL};
  bool good = make_scene(p, &s, why) && check(&s, &s.own, why) &&
              check(&s, &s.host, why);
  p->scene = &s;
  good = good && probe_time_beside(p, gather_own, gather_host, out, why);
  p->scene = NULL;
  out->bytes = s.count * ROW;
  end_scene(&s);
  return good;
}
