// Caches of tables of all types, with 1 to 3 ranks, held against arrays: rows
// that are gathered and scattered through the cache, with tables, caches and
// dense rows at each place.
#include "base/convert.h"
#include "support/threads.h"
#include "tarn/cache.h"
#include "whole/rows_kit.h"

enum { ROWS = 210, WIDTH = 5, MOST = 90, GAP = 2 };

// --- values ----------------------------------------------------------------

// Each row of the table is of the rank that is its number modulo all ranks: it
// alone writes it. The version says how often.
static uint64_t versions[ROWS];
static uint64_t seed;

static double value_of(size_t row, uint64_t version, size_t column) {
  return (double)(row * 8 + column) + (double)(version % 64) * 2048;
}

// --- a ground --------------------------------------------------------------

typedef struct site {
  tarn_whole_tensor table;
  tarn_place place;  // of the table
  tarn_place near;   // of the cache
  tarn_place dense;
  tarn_stream *stream;
  tarn_cache *cache;
  tarn_cache_mode mode;
} site;

typedef struct batch {
  size_t count;
  int32_t indices[MOST];
  double rows[MOST][WIDTH + GAP];
  tarn_addr indices_at;
  tarn_addr rows_at;
} batch;

static tarn_addr put_at(tarn_place place, const void *bytes, size_t size) {
  tarn_addr at = 0;
  if (place.device == NULL) return (tarn_addr)(uintptr_t)bytes;
  MUST_BE(tarn_device_allocate(place, size, &at), TARN_OK);
  poke(place, at, bytes, size);
  return at;
}

static void take_from(tarn_place place, tarn_addr at, void *bytes,
                      size_t size) {
  if (place.device == NULL) return;
  peek(place, at, bytes, size);
  MUST_BE(tarn_device_deallocate(place, at, size), TARN_OK);
}

static tarn_whole_rows begin(const site *s, batch *b) {
  b->indices_at = put_at(s->dense, b->indices, sizeof b->indices);
  b->rows_at = put_at(s->dense, b->rows, sizeof b->rows);
  return (tarn_whole_rows){.struct_size = sizeof(tarn_whole_rows),
                           .place = s->dense,
                           .dense = b->rows_at,
                           .dense_dtype = TARN_DTYPE_F64,
                           .dense_stride = sizeof b->rows[0],
                           .indices = b->indices_at,
                           .index_dtype = TARN_DTYPE_I32,
                           .index_count = b->count,
                           .flags = TARN_ROWS_SKIP_BAD};
}

static void end(const site *s, batch *b) {
  take_from(s->dense, b->indices_at, b->indices, sizeof b->indices);
  take_from(s->dense, b->rows_at, b->rows, sizeof b->rows);
}

// A few rows, or many; some often, some that are none.
static void draw(batch *b, bool own) {
  size_t most = next_random(&seed) % 2 == 0 ? 8 : MOST;
  b->count = next_random(&seed) % (most + 1);
  for (size_t i = 0; i < b->count; i++) {
    uint64_t row = next_random(&seed) % (1 + next_random(&seed) % ROWS);
    if (own) row = row / my.ranks * my.ranks + my.rank;
    bool bad = row >= ROWS || next_random(&seed) % 16 == 0;
    b->indices[i] = bad ? -1 : (int32_t)row;
    for (size_t k = 0; k < WIDTH + GAP; k++)
      b->rows[i][k] = -7;
  }
}

// --- steps -----------------------------------------------------------------

// Whether row |i| of the batch is that of |version|.
static bool is_of(const batch *b, size_t i, uint64_t version) {
  bool bad = b->indices[i] < 0;
  for (size_t k = 0; k < WIDTH; k++) {
    double wanted = bad ? 0 : value_of((size_t)b->indices[i], version, k);
    if (b->rows[i][k] != wanted) return false;
  }
  return b->rows[i][WIDTH] == -7;
}

static void gather(const site *s, batch *b) {
  tarn_whole_rows request = begin(s, b);
  MUST_BE(tarn_cache_gather(s->cache, &request, s->stream), TARN_OK);
  end(s, b);
}

static void read_own(const site *s) {
  batch b;
  draw(&b, s->mode == TARN_CACHE_WRITE_BACK);
  gather(s, &b);
  for (size_t i = 0; i < b.count; i++)
    MUST(is_of(&b, i, b.indices[i] < 0 ? 0 : versions[b.indices[i]]));
}

static void write_own(const site *s) {
  batch b;
  draw(&b, true);
  for (size_t i = 0; i < b.count; i++)
    if (b.indices[i] >= 0) versions[b.indices[i]]++;
  for (size_t i = 0; i < b.count; i++)
    for (size_t k = 0; k < WIDTH && b.indices[i] >= 0; k++)
      b.rows[i][k] = value_of((size_t)b.indices[i], versions[b.indices[i]], k);
  tarn_whole_rows request = begin(s, &b);
  MUST_BE(tarn_cache_scatter(s->cache, &request, s->stream), TARN_OK);
  end(s, &b);
}

// All rows, out of the table itself.
static void compare_table(const site *s) {
  batch b;
  uint64_t all[MOST_RANKS][ROWS];
  MUST_BE(tarn_comm_allgather(my.comm, versions, sizeof versions, all),
          TARN_OK);
  for (size_t first = 0; first < ROWS; first += MOST) {
    b.count = ROWS - first < MOST ? ROWS - first : MOST;
    for (size_t i = 0; i < b.count; i++) {
      b.indices[i] = (int32_t)(first + i);
      for (size_t k = 0; k < WIDTH + GAP; k++)
        b.rows[i][k] = -7;
    }
    tarn_whole_rows request = begin(s, &b);
    MUST_BE(tarn_whole_gather(&s->table, &request, NULL), TARN_OK);
    end(s, &b);
    for (size_t i = 0; i < b.count; i++)
      MUST(is_of(&b, i, all[(first + i) % my.ranks][first + i]));
  }
}

// --- a life ----------------------------------------------------------------

static void fill_table(const site *s) {
  batch b;
  for (size_t row = my.rank; row < ROWS; row += my.ranks * (size_t)MOST) {
    b.count = 0;
    for (size_t at = row; at < ROWS && b.count < MOST; at += my.ranks) {
      b.indices[b.count] = (int32_t)at;
      for (size_t k = 0; k < WIDTH; k++)
        b.rows[b.count][k] = value_of(at, versions[at], k);
      b.count++;
    }
    tarn_whole_rows request = begin(s, &b);
    MUST_BE(tarn_whole_scatter(&s->table, &request, NULL), TARN_OK);
    end(s, &b);
  }
  meet_all();
}

static void create(site *s, size_t rows) {
  tarn_cache_options options = {.struct_size = sizeof options,
                                .mode = s->mode,
                                .place = s->near,
                                .rows = rows};
  MUST_BE(tarn_cache_create(&s->table, &options, &s->cache), TARN_OK);
}

static void use_read_only(site *s, size_t rows) {
  s->mode = TARN_CACHE_READ_ONLY;
  create(s, rows);
  for (int i = 0; i < 12; i++)
    read_own(s);
  tarn_cache_stats stats = {.struct_size = sizeof stats};
  MUST_BE(tarn_cache_query(s->cache, &stats), TARN_OK);
  MUST(stats.used > 0 && stats.used <= stats.rows && stats.dirty == 0);
  // A new version, which the cache sees when it has dropped the rows.
  for (size_t i = 0; i < ROWS; i++)
    versions[i]++;
  meet_all();
  fill_table(s);
  MUST_BE(tarn_cache_drop(s->cache, NULL, 0), TARN_OK);
  for (int i = 0; i < 4; i++)
    read_own(s);
  meet_all();
  MUST_BE(tarn_cache_destroy(s->cache), TARN_OK);
}

static void use_write_back(site *s, size_t rows) {
  s->mode = TARN_CACHE_WRITE_BACK;
  create(s, rows);
  for (int i = 0; i < 24; i++) {
    if (i % 2 == 0) write_own(s);
    read_own(s);
    if (i % 7 != 0) continue;
    MUST_BE(tarn_cache_write_back(s->cache), TARN_OK);
    meet_all();
    compare_table(s);
    meet_all();
  }
  MUST_BE(tarn_cache_write_back(s->cache), TARN_OK);
  MUST_BE(tarn_cache_destroy(s->cache), TARN_OK);
  meet_all();
  compare_table(s);
  meet_all();
}

static void raise(site *s, tarn_whole_type type) {
  tarn_whole_table_options options = {.struct_size = sizeof options,
                                      .type = type,
                                      .place = s->place,
                                      .dtype = TARN_DTYPE_F32,
                                      .rows = ROWS,
                                      .width = WIDTH};
  if (type == TARN_WHOLE_HIERARCHICAL) options.spread = TARN_WHOLE_COPIES;
  MUST_BE(tarn_whole_table_create(my.comm, &options, &s->table), TARN_OK);
  memset(versions, 0, sizeof versions);
  fill_table(s);
}

// Caches of few rows, and of more than there are.
static void use_types(site *s) {
  for (size_t t = 0; t < TYPES; t++) {
    raise(s, type_at(t));
    use_read_only(s, 40);
    use_write_back(s, 40);
    use_write_back(s, (size_t)2 * ROWS);
    MUST_BE(tarn_whole_destroy(s->table.whole), TARN_OK);
  }
}

static const ground nears[] = {{NULL, TARN_PLACE_HOST, "host"},
                               {"sim", TARN_PLACE_DEVICE, "sim"},
                               {"cpu", TARN_PLACE_DEVICE, "cpu"},
                               {"real", TARN_PLACE_DEVICE, "a real device"}};

static void be_on_ground(void) {
  size_t last = is_on_driver() ? 4 : 3;
  configure_sim();
  seed = 12345 + my.rank;
  for (int g = 0; g < GROUNDS; g++) {
    for (size_t n = 0; n < last; n++) {
      if (is_on_driver() && n != 0 && n != 3) continue;
      site s = {.place = open_place(ground_at(g)->device, ground_at(g)->kind),
                .near = open_place(nears[n].device, nears[n].kind)};
      s.dense = n % 2 == 0 ? TARN_HOST : s.near;
      use_types(&s);
      close_ground(s.near);
      close_ground(s.place);
    }
  }
}

TEST_LOOP(caches_show_what_was_written, ON_GROUNDS(3)) {
  note_mapped("caches show what was written");
  run_ranks((size_t)_i + 1, "caches", be_on_ground);
}

static void be_in_copies(void) {
  site s = {.place = TARN_HOST};
  seed = 99 + my.rank;
  raise(&s, TARN_WHOLE_HIERARCHICAL);
  use_read_only(&s, 40);
  use_write_back(&s, 40);
  MUST_BE(tarn_whole_destroy(s.table.whole), TARN_OK);
}

WHOLE_TEST(caches_of_copies, 2, "copies", be_in_copies)

static void be_on_stream(void) {
  site s = {.place = TARN_HOST, .near = open_place("cpu", TARN_PLACE_DEVICE)};
  seed = 17 + my.rank;
  s.dense = s.near;
  MUST_BE(tarn_stream_create(s.near.device, &s.stream), TARN_OK);
  raise(&s, TARN_WHOLE_CHUNKED);
  use_write_back(&s, 40);
  MUST_BE(tarn_whole_destroy(s.table.whole), TARN_OK);
  MUST_BE(tarn_stream_destroy(s.stream), TARN_OK);
  close_ground(s.near);
}

WHOLE_TEST(caches_on_streams, 2, "streams", be_on_stream)

// --- rows that are used most -----------------------------------------------

static void be_warmed(void) {
  uint64_t counts[ROWS];
  site s = {.place = TARN_HOST};
  tarn_cache_stats stats = {.struct_size = sizeof stats};
  seed = 5;
  raise(&s, TARN_WHOLE_DISTRIBUTED);
  for (size_t i = 0; i < ROWS; i++)
    counts[i] = i >= 100 && i < 120 ? 1000 + i : my.rank == 0 ? i % 2 : 0;
  create(&s, 64);
  MUST_BE(tarn_cache_warm(s.cache, counts), TARN_OK);
  batch b = {.count = 20};
  for (size_t i = 0; i < b.count; i++) {
    b.indices[i] = (int32_t)(100 + i);
    b.rows[i][WIDTH] = -7;
  }
  MUST_BE(tarn_cache_query(s.cache, &stats), TARN_OK);
  MUST(stats.hits == 0 && stats.used >= 20);
  gather(&s, &b);
  for (size_t i = 0; i < b.count; i++)
    MUST(is_of(&b, i, 0));
  MUST_BE(tarn_cache_query(s.cache, &stats), TARN_OK);
  MUST(stats.hits == 20);
  meet_all();
  MUST_BE(tarn_cache_destroy(s.cache), TARN_OK);
  MUST_BE(tarn_whole_destroy(s.table.whole), TARN_OK);
}

WHOLE_TEST(the_rows_used_most_are_read_before, 2, "warm", be_warmed)
