// Rows of a table kept near their user.
//
//   misses  rows drawn by Zipf's law, in batches, out of a cache of 1/40 and of
//           1/4 of them, over LRU and over the best rows that never change, on
//           the same draws; by the first rank
//   hits    rows that are in a cache of 1/4, by turns with a gather of the same
//           rows out of the table: drawn by Zipf's law, or all equally often
//
// That rows are right, and that nothing was missed where hits are timed, is
// checked.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kit/tool.h"
#include "table_parts.h"
#include "table_scene.h"
#include "tarn/cache.h"
#include "whole_indices.h"

enum {
  BATCH = 500,        // rows of a gather that may miss, at most
  HITS = 65536,       // rows of one that does not
  DRAWS_PER_ROW = 6,  // the first half fills the cache
  LEAST_ROWS = 4000,
};

static const double exponent = 1.05;
static const size_t usual_size = (size_t)256 << 20;

// --- figures -----------------------------------------------------------------

enum {
  OVER_LRU_40TH,
  OVER_LRU_QUARTER,
  STATIC_40TH,
  STATIC_QUARTER,
  MISS_RATE_40TH,
  MISS_RATE_QUARTER,
  HIT_OVER_GATHER,
  EVEN_HIT_OVER_GATHER,
  HIT_ROWS,
  GATHER_ROWS,
  FIGURES
};

static const bench_figure figures[FIGURES] = {
    [OVER_LRU_40TH] = {"sieve_over_lru_misses", "ratio",
                       "a cache of 1/40 of the rows", .84, SHEET_AT_MOST},
    [OVER_LRU_QUARTER] = {"sieve_over_lru_misses_quarter", "ratio",
                          "a cache of 1/4 of them", .95, SHEET_AT_MOST},
    [STATIC_40TH] = {"static_over_lru_misses", "ratio",
                     "1/40, the rows drawn most often", NAN, SHEET_AT_MOST},
    [STATIC_QUARTER] = {"static_over_lru_misses_quarter", "ratio",
                        "1/4, the same", NAN, SHEET_AT_MOST},
    [MISS_RATE_40TH] = {"sieve_misses", "ratio", "of all draws, 1/40", NAN,
                        SHEET_AT_MOST},
    [MISS_RATE_QUARTER] = {"sieve_misses_quarter", "ratio", "1/4", NAN,
                           SHEET_AT_MOST},
    [HIT_OVER_GATHER] = {"hit_over_gather", "ratio",
                         "time over a gather of the same rows, by Zipf's law",
                         1.3, SHEET_AT_MOST},
    [EVEN_HIT_OVER_GATHER] = {"even_hit_over_gather", "ratio",
                              "the same, all rows equally often", NAN,
                              SHEET_AT_MOST},
    [HIT_ROWS] = {"hit", "M/s", "rows of all ranks, by Zipf's law", NAN,
                  SHEET_AT_LEAST},
    [GATHER_ROWS] = {"gather", "M/s", "the same out of the table", NAN,
                     SHEET_AT_LEAST},
};

// --- a table and its cache ---------------------------------------------------

typedef struct near {
  size_t rows;
  size_t width;
  tarn_whole_tensor table;
  tarn_cache *cache;
  float *dense;
  int64_t *indices;
  size_t count;  // of them
} near;

static bool make_table(table_scene *s, near *n, size_t count) {
  const tarn_whole_table_options make = {.struct_size = sizeof make,
                                         .type = TARN_WHOLE_CONTINUOUS,
                                         .place = TARN_HOST,
                                         .dtype = TARN_DTYPE_F32,
                                         .rows = n->rows,
                                         .width = n->width};
  size_t first = 0;
  size_t own = 0;
  tarn_addr rows = 0;
  n->count = count;
  n->dense = tool_array(count * n->width, sizeof *n->dense);
  n->indices = tool_array(count, sizeof *n->indices);
  bool did =
      table_did(s, tarn_whole_table_create(s->comm, &make, &n->table)) &&
      table_did(s, tarn_whole_tensor_rows(&n->table, s->rank, &first, &own)) &&
      table_did(s, tarn_whole_tensor_local(&n->table, &rows));
  if (did)
    whole_fill((float *)(uintptr_t)rows, own * n->width, first * n->width);
  return table_agree(s, did);
}

static bool end_table(table_scene *s, near *n) {
  free(n->dense);
  free(n->indices);
  return table_did(s, tarn_whole_destroy(n->table.whole));
}

static bool make_cache(table_scene *s, near *n, size_t rows) {
  const tarn_cache_options options = {.struct_size = sizeof options,
                                      .rows = rows};
  return table_did(s, tarn_cache_create(&n->table, &options, &n->cache));
}

static tarn_whole_rows request_of(const near *n, const int64_t *indices,
                                  size_t count) {
  return (tarn_whole_rows){.struct_size = sizeof(tarn_whole_rows),
                           .dense = (tarn_addr)(uintptr_t)n->dense,
                           .indices = (tarn_addr)(uintptr_t)indices,
                           .index_dtype = TARN_DTYPE_I64,
                           .index_count = count};
}

static bool out_of_cache(table_scene *s, near *n, const int64_t *indices,
                         size_t count) {
  const tarn_whole_rows request = request_of(n, indices, count);
  return table_did(s, tarn_cache_gather(n->cache, &request, NULL));
}

static bool misses_of(table_scene *s, near *n, uint64_t *out) {
  tarn_cache_stats stats = {.struct_size = sizeof stats};
  if (!table_did(s, tarn_cache_query(n->cache, &stats))) return false;
  *out = stats.misses;
  return true;
}

static bool is_right(table_scene *s, const near *n, const int64_t *indices,
                     size_t count) {
  return whole_rows_right(n->dense, indices, count, n->width, 0) ||
         table_refuse(s, "a row out of the cache is wrong");
}

// --- misses ------------------------------------------------------------------

// Row k is the one that is drawn k-th most often, from 0 on.
static void draw_all(int64_t *out, size_t count, size_t rows) {
  double *sums = tool_array(rows, sizeof *sums);
  double sum = 0;
  uint64_t state = 1;
  for (size_t i = 0; i < rows; i++)
    sums[i] = sum += pow((double)i + 1, -exponent);
  for (size_t i = 0; i < count; i++) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    double wanted = (double)(state >> 11) * 0x1p-53 * sum;
    size_t low = 0;
    for (size_t left = rows; left > 1; left -= left / 2)
      if (sums[low + left / 2 - 1] <= wanted) low += left / 2;
    out[i] = (int64_t)low;
  }
  free(sums);
}

// LRU: a ring of the rows that it has, from the one used last on; its end is
// |rows|.
typedef struct lru {
  uint32_t *before;
  uint32_t *behind;
  bool *has;
  uint32_t rows;
} lru;

static void take_out(const lru *l, uint32_t row) {
  l->behind[l->before[row]] = l->behind[row];
  l->before[l->behind[row]] = l->before[row];
  l->has[row] = false;
}

static void put_first(const lru *l, uint32_t row) {
  l->before[row] = l->rows;
  l->behind[row] = l->behind[l->rows];
  l->before[l->behind[l->rows]] = row;
  l->behind[l->rows] = row;
  l->has[row] = true;
}

static double lru_misses(const int64_t *draws, size_t count, size_t rows,
                         size_t most) {
  lru l = {.before = tool_array(rows + 1, sizeof *l.before),
           .behind = tool_array(rows + 1, sizeof *l.behind),
           .has = tool_array(rows, sizeof *l.has),
           .rows = (uint32_t)rows};
  size_t used = 0;
  size_t misses = 0;
  l.before[rows] = l.behind[rows] = l.rows;
  for (size_t i = 0; i < count; i++) {
    uint32_t row = (uint32_t)draws[i];
    bool has = l.has[row];
    misses += !has && i >= count / 2;
    if (!has && used == most) take_out(&l, l.before[rows]);
    used += !has && used < most;
    if (has) take_out(&l, row);
    put_first(&l, row);
  }
  free(l.before);
  free(l.behind);
  free(l.has);
  return (double)misses;
}

static double static_misses(const int64_t *draws, size_t count, size_t most) {
  size_t misses = 0;
  for (size_t i = count / 2; i < count; i++)
    misses += (size_t)draws[i] >= most;
  return (double)misses;
}

// A part of the cache at a time, since a batch that fills it has no room left.
static bool gather_all(table_scene *s, near *n, const int64_t *draws,
                       size_t count, size_t most) {
  size_t batch = most / 8 < BATCH ? most / 8 : BATCH;
  for (size_t i = 0; i < count; i += batch) {
    size_t some = count - i < batch ? count - i : batch;
    if (!out_of_cache(s, n, draws + i, some)) return false;
    if (!is_right(s, n, draws + i, some)) return false;
  }
  return true;
}

// Those of the second half.
static bool sieve_misses(table_scene *s, near *n, const int64_t *draws,
                         size_t count, size_t most, double *out) {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool did = gather_all(s, n, draws, count / 2, most) &&
             misses_of(s, n, &begin) &&
             gather_all(s, n, draws + count / 2, count - count / 2, most) &&
             misses_of(s, n, &end);
  *out = (double)(end - begin);
  return did;
}

static bool compare_misses(table_scene *s, near *n, const int64_t *draws,
                           size_t count, bool quarter, table_result *out) {
  const size_t step = OVER_LRU_QUARTER - OVER_LRU_40TH;
  const size_t at = quarter ? step : 0;
  const size_t most = n->rows / (quarter ? 4 : 40) / 16 * 16;
  const size_t half = count - count / 2;
  double sieve = 0;
  if (!make_cache(s, n, most)) return false;
  bool did = sieve_misses(s, n, draws, count, most, &sieve);
  if (!table_did(s, tarn_cache_destroy(n->cache)) || !did) return false;
  double of_lru = lru_misses(draws, count, n->rows, most);
  const double values[] = {sieve / of_lru,
                           static_misses(draws, count, most) / of_lru,
                           sieve / (double)half};
  table_note(out, OVER_LRU_40TH + at, &values[0], 1);
  table_note(out, STATIC_40TH + at, &values[1], 1);
  table_note(out, MISS_RATE_40TH + at, &values[2], 1);
  return true;
}

// By the first rank: the table is mapped, and asks nobody.
static bool measure_misses(table_scene *s, size_t rows, table_result *out) {
  near n = {.rows = rows, .width = 1};
  size_t count = rows * DRAWS_PER_ROW;
  if (!make_table(s, &n, BATCH)) return false;
  bool did = true;
  if (s->rank == 0) {
    int64_t *draws = tool_array(count, sizeof *draws);
    draw_all(draws, count, rows);
    did = compare_misses(s, &n, draws, count, false, out) &&
          compare_misses(s, &n, draws, count, true, out);
    free(draws);
  }
  return table_agree(s, did) && end_table(s, &n);
}

// --- hits --------------------------------------------------------------------

typedef struct hits {
  near near;
  int64_t *kept;  // rows that are in the cache
  size_t kept_count;
  table_samples hit, gather, even_hit, even_gather;
} hits;

static bool do_hit(table_scene *s, void *context) {
  hits *h = context;
  return out_of_cache(s, &h->near, h->near.indices, h->near.count);
}

static bool do_gather(table_scene *s, void *context) {
  const hits *h = context;
  const tarn_whole_rows request =
      request_of(&h->near, h->near.indices, h->near.count);
  return table_did(s, tarn_whole_gather(&h->near.table, &request, NULL));
}

// One by one, until none is missed: what is in a set of lines that is too small
// for its rows is left out.
static bool keep_hits(table_scene *s, hits *h) {
  uint64_t before = 0;
  uint64_t after = 0;
  size_t count = 0;
  do {
    count = h->kept_count;
    h->kept_count = 0;
    for (size_t i = 0; i < count; i++) {
      int64_t row = h->kept[i];
      if (!misses_of(s, &h->near, &before) ||
          !out_of_cache(s, &h->near, &row, 1) ||
          !misses_of(s, &h->near, &after))
        return false;
      if (after == before) h->kept[h->kept_count++] = row;
    }
  } while (h->kept_count < count);
  return count > 0 || table_refuse(s, "no row stays in the cache");
}

// Rows that lie anywhere in the table, half as many as the cache can have.
static bool fill_cache(table_scene *s, hits *h) {
  h->kept_count = h->near.rows / 8;
  h->kept = tool_array(h->kept_count, sizeof *h->kept);
  whole_draw_different(h->kept, h->kept_count, h->near.rows, 1 + s->rank);
  if (!make_cache(s, &h->near, h->near.rows / 4)) return false;
  for (size_t i = 0; i < h->kept_count; i++)
    if (!out_of_cache(s, &h->near, &h->kept[i], 1)) return false;
  return keep_hits(s, h);
}

static void draw_hits(const table_scene *s, hits *h, bool even, size_t pass) {
  int64_t *indices = h->near.indices;
  uint64_t seed = pass * TABLE_RANKS_MOST + s->rank + 1;
  if (even) {
    whole_draw_uniform(indices, h->near.count, h->kept_count, seed);
  } else {
    whole_draw_power(indices, h->near.count, h->kept_count, exponent, seed);
  }
  for (size_t i = 0; i < h->near.count; i++)
    indices[i] = h->kept[indices[i]];
}

static bool time_hits(table_scene *s, hits *h, bool even, size_t pass) {
  table_samples *hit = even ? &h->even_hit : &h->hit;
  table_samples *gather = even ? &h->even_gather : &h->gather;
  uint64_t before = 0;
  uint64_t after = 0;
  bool turned = pass % 2 != 0;
  draw_hits(s, h, even, pass);
  bool did = misses_of(s, &h->near, &before) &&
             (!turned || table_time(s, do_gather, h, gather)) &&
             table_time(s, do_hit, h, hit) &&
             is_right(s, &h->near, h->near.indices, h->near.count) &&
             (turned || table_time(s, do_gather, h, gather)) &&
             misses_of(s, &h->near, &after);
  if (did && before != after) did = table_refuse(s, "a hit was missed");
  return table_agree(s, did);
}

static bool time_all(table_scene *s, hits *h) {
  for (size_t i = 0; i <= s->bench->passes; i++) {
    if (!time_hits(s, h, false, i) || !time_hits(s, h, true, i)) return false;
    if (i == 0)
      h->hit.count = h->gather.count = h->even_hit.count =
          h->even_gather.count = 0;
  }
  return true;
}

static void note_hits(const table_scene *s, const hits *h, table_result *out) {
  double rows = (double)(h->near.count * s->bench->ranks) * 1e-6;
  table_note_speedup(out, HIT_OVER_GATHER, &h->gather, &h->hit);
  table_note_speedup(out, EVEN_HIT_OVER_GATHER, &h->even_gather, &h->even_hit);
  table_note_rate(out, HIT_ROWS, &h->hit, rows * 1e9);
  table_note_rate(out, GATHER_ROWS, &h->gather, rows * 1e9);
}

static bool measure_hits(table_scene *s, size_t rows, table_result *out) {
  hits h = {
      .near = {.rows = rows, .width = s->bench->row_bytes / sizeof(float)}};
  if (!make_table(s, &h.near, HITS)) return false;
  bool did = table_agree(s, fill_cache(s, &h)) && time_all(s, &h);
  note_hits(s, &h, out);
  free(h.kept);
  did = table_did(s, tarn_cache_destroy(h.near.cache)) && did;
  return did && end_table(s, &h.near);
}

// --- all ---------------------------------------------------------------------

static bool measure(table_scene *s, table_result *out) {
  const table_bench *b = s->bench;
  size_t rows = (b->size != 0 ? b->size : usual_size) / b->row_bytes;
  if (rows < LEAST_ROWS) rows = LEAST_ROWS;
  return measure_misses(s, rows, out) && measure_hits(s, rows, out);
}

const table_part table_cache_part = {
    .name = "cache", .figures = figures, .count = FIGURES, .measure = measure};
