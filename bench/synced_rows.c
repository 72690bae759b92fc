// Rows of a table, written one by one at one place and read together at the
// other, as those of an embedding are.
//
//   host    |  |##|##|  |  |##|  |        copies: two rows, one row
//   device  |  |##|##|  |  |##|  |
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/stopwatch.h"
#include "kit/tool.h"
#include "probe.h"
#include "synced_figures.h"

enum {
  ROW = 512,   // bytes: 128 floats
  SPREAD = 4,  // the table has so many times the rows that are written
  PASSES = 201,
  PASSES_MOST = 1001,
  WARMING = 3
};

typedef struct rows {
  const synced_scene *scene;
  tarn_synced *buffer;
  size_t written;         // rows
  size_t size;            // of the table, in bytes
  size_t *order;          // of rows, as they are written
  unsigned char *wanted;  // the table's bytes, as they should be
  uint64_t random;
} rows;

// ---------------------------------------------------------------------------
// Making
// ---------------------------------------------------------------------------

static uint64_t draw(rows *r, uint64_t below) {
  r->random = r->random * 6364136223846793005u + 1442695040888963407u;
  return (r->random >> 33) % below;
}

static void shuffle(rows *r, size_t *items, size_t count) {
  for (size_t left = count; left > 1; left--) {
    size_t other = draw(r, left);
    size_t item = items[left - 1];
    items[left - 1] = items[other];
    items[other] = item;
  }
}

static bool make(rows *r, const synced_scene *s, size_t spread, char *why) {
  tarn_synced_options options = {
      .struct_size = sizeof options, .name = "table", .device = s->device};
  size_t count = s->bench->rows * spread;
  *r = (rows){.scene = s, .written = s->bench->rows, .size = count * ROW};
  r->order = tool_array(count, sizeof *r->order);
  r->wanted = tool_array(r->size, 1);
  for (size_t i = 0; i < count; i++)
    r->order[i] = i;
  return tarn_synced_create(r->size, &options, &r->buffer) == TARN_OK ||
         synced_refused(why);
}

static void unmake(rows *r) {
  (void)tarn_synced_destroy(r->buffer);
  free(r->order);
  free(r->wanted);
}

// ---------------------------------------------------------------------------
// Writing and reading
// ---------------------------------------------------------------------------

// Bytes of the host into an access, wherever that is.
static bool put(const rows *r, const tarn_access *access, const void *bytes) {
  if (access->pointer != NULL) {
    memcpy(access->pointer, bytes, access->size);
    return true;
  }
  return tarn_copy_h2d(r->scene->device, access->address, bytes, access->size,
                       NULL) == TARN_OK;
}

static bool get(const rows *r, const tarn_access *access, void *bytes) {
  if (access->pointer != NULL) {
    memcpy(bytes, access->pointer, access->size);
    return true;
  }
  return tarn_copy_d2h(r->scene->device, bytes, access->address, access->size,
                       NULL) == TARN_OK;
}

// The |row|-th gets new bytes, also in |wanted|.
static bool write_row(rows *r, tarn_place place, size_t row) {
  tarn_access access;
  unsigned char *bytes = r->wanted + row * ROW;
  memset(bytes, (int)draw(r, 256), ROW);
  if (tarn_synced_begin(r->buffer, row * ROW, ROW, place, TARN_WRITE_DISCARD,
                        NULL, &access) != TARN_OK) {
    return false;
  }
  bool written = put(r, &access, bytes);
  return tarn_synced_end(&access) == TARN_OK && written;
}

static bool write_rows(rows *r, tarn_place place) {
  for (size_t i = 0; i < r->written; i++) {
    if (!write_row(r, place, r->order[i])) return false;
  }
  return true;
}

static bool read_all(rows *r, tarn_place place, unsigned char *out) {
  tarn_access access;
  if (tarn_synced_begin(r->buffer, 0, TARN_ALL, place, TARN_READ, NULL,
                        &access) != TARN_OK) {
    return false;
  }
  bool read = get(r, &access, out);
  return tarn_synced_end(&access) == TARN_OK && read;
}

// ---------------------------------------------------------------------------
// Bytes
// ---------------------------------------------------------------------------

static int compare_rows(const void *a, const void *b) {
  size_t x = *(const size_t *)a;
  size_t y = *(const size_t *)b;
  return (x > y) - (x < y);
}

// How many runs of adjacent rows are written.
static uint64_t count_runs(const rows *r) {
  size_t *sorted = tool_array(r->written, sizeof *sorted);
  memcpy(sorted, r->order, r->written * sizeof *sorted);
  qsort(sorted, r->written, sizeof *sorted, compare_rows);
  uint64_t runs = 1;
  for (size_t i = 1; i < r->written; i++)
    runs += sorted[i] != sorted[i - 1] + 1;
  free(sorted);
  return runs;
}

static bool check(const rows *r, const synced_moved *moved,
                  const unsigned char *read, char *why) {
  uint64_t runs = count_runs(r);
  uint64_t copies = moved->copies_in + moved->copies_out;
  if (memcmp(read, r->wanted, r->size) != 0) {
    snprintf(why, BENCH_TEXT_SIZE, "what was read is not what was written");
    return false;
  }
  if (copies == runs) return true;
  snprintf(why, BENCH_TEXT_SIZE, "%llu copies for %llu runs of rows",
           (unsigned long long)copies, (unsigned long long)runs);
  return false;
}

// From one place to the other, where all was valid before; adds to |*extra|.
static bool cross(rows *r, tarn_place from, tarn_place to, double *extra,
                  char *why) {
  synced_moved moved;
  unsigned char *read = tool_array(r->size, 1);
  shuffle(r, r->order, r->size / ROW);
  bool done = tarn_synced_traffic_reset(r->buffer) == TARN_OK &&
              write_rows(r, from) && read_all(r, to, read) &&
              synced_read_moved(r->buffer, &moved);
  if (!done) {
    (void)synced_refused(why);
  } else {
    *extra +=
        (double)(moved.bytes_in + moved.bytes_out) - (double)(r->written * ROW);
    done = check(r, &moved, read, why);
  }
  free(read);
  return done;
}

// Zeros, written at the host and read at the device: valid at both.
static bool fill(rows *r) {
  tarn_access access;
  return tarn_synced_begin(r->buffer, 0, TARN_ALL, TARN_HOST, TARN_READ_WRITE,
                           NULL, &access) == TARN_OK &&
         tarn_synced_end(&access) == TARN_OK &&
         read_all(r, r->scene->place, r->wanted);
}

bool synced_rows_bytes(const synced_scene *s, double *out, char *why) {
  rows r;
  bool done = make(&r, s, SPREAD, why);
  *out = 0;
  if (done && !fill(&r)) done = synced_refused(why);
  done = done && cross(&r, TARN_HOST, s->place, out, why) &&
         cross(&r, s->place, TARN_HOST, out, why);
  unmake(&r);
  return done;
}

// ---------------------------------------------------------------------------
// Time
// ---------------------------------------------------------------------------

// Each row by itself, as there is one between any two.
static bool copy_by_hand(const rows *r, const synced_pair *p) {
  const char *source = (const char *)(uintptr_t)p->here.address;
  for (size_t i = 0; i < r->written; i++) {
    size_t offset = 2 * i * ROW;
    if (tarn_copy_h2d(r->scene->device, p->there.address + offset,
                      source + offset, ROW, NULL) != TARN_OK) {
      return false;
    }
  }
  return true;
}

static bool touch_row(const rows *r, size_t row) {
  tarn_access access;
  return tarn_synced_begin(r->buffer, row * ROW, ROW, TARN_HOST,
                           TARN_WRITE_DISCARD, NULL, &access) == TARN_OK &&
         tarn_synced_end(&access) == TARN_OK;
}

static bool copy_by_buffer(const rows *r) {
  tarn_access access;
  for (size_t i = 0; i < r->written; i++) {
    if (!touch_row(r, r->order[i])) return false;
  }
  return tarn_synced_begin(r->buffer, 0, TARN_ALL, r->scene->place, TARN_READ,
                           NULL, &access) == TARN_OK &&
         tarn_synced_end(&access) == TARN_OK;
}

static bool time_pass(const rows *r, const synced_pair *p, double *out_us) {
  double begin = stopwatch_cpu_ns();
  bool copied = copy_by_hand(r, p);
  double middle = stopwatch_cpu_ns();
  copied = copied && copy_by_buffer(r);
  double end = stopwatch_cpu_ns();
  *out_us = ((end - middle) - (middle - begin)) / 1e3 / (double)r->written;
  return copied;
}

static bool time_passes(const rows *r, const synced_pair *p, double *out) {
  double costs[PASSES_MOST];
  size_t passes = synced_passes(r->scene, PASSES, PASSES_MOST);
  for (size_t i = 0; i < WARMING; i++) {
    if (!time_pass(r, p, &costs[0])) return false;
  }
  for (size_t i = 0; i < passes; i++) {
    if (!time_pass(r, p, &costs[i])) return false;
  }
  *out = probe_median(costs, passes);
  return true;
}

// Every other row, in no order.
static void choose_rows(rows *r) {
  for (size_t i = 0; i < r->written; i++)
    r->order[i] = 2 * i;
  shuffle(r, r->order, r->written);
}

bool synced_rows_time(const synced_scene *s, double *out, char *why) {
  rows r;
  synced_pair p = {{0}, {0}};
  bool done = make(&r, s, 2, why);
  choose_rows(&r);
  if (done && (!fill(&r) || !synced_pair_take(s, r.size, &p) ||
               !time_passes(&r, &p, out)))
    done = synced_refused(why);
  synced_pair_give(&p);
  unmake(&r);
  return done;
}
