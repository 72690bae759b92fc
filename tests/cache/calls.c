// Caches of one rank: what is refused, memory, statistics, failures, threads.
#include <string.h>

#include "support/effort.h"
#include "support/faults.h"
#include "support/ranks.h"
#include "support/run.h"
#include "support/threads.h"
#include "tarn/cache.h"
#include "tarn/pool.h"

#define WIDTH ((size_t)4)
#define ROW (WIDTH * sizeof(float))
enum { ROWS = 300 };

static tarn_comm *comm;
static tarn_whole_tensor table;

static void set_up(void) {
  tarn_rendezvous *rendezvous = NULL;
  tarn_whole_table_options options = {.struct_size = sizeof options,
                                      .type = TARN_WHOLE_CHUNKED,
                                      .dtype = TARN_DTYPE_F32,
                                      .rows = ROWS,
                                      .width = WIDTH};
  tarn_addr address = 0;
  faults_install();
  assert_ok(tarn_rendezvous_create(1, &rendezvous));
  assert_ok(tarn_comm_join(rendezvous, 0, NULL, &comm));
  tarn_rendezvous_destroy(rendezvous);
  assert_ok(tarn_whole_table_create(comm, &options, &table));
  assert_ok(tarn_whole_tensor_local(&table, &address));
  for (size_t i = 0; i < (size_t)ROWS * WIDTH; i++)
    ((float *)(uintptr_t)address)[i] = (float)i;
}

static void tear_down(void) {
  assert_ok(tarn_whole_destroy(table.whole));
  assert_ok(tarn_comm_destroy(comm));
}

FIXTURE(set_up, tear_down);

static tarn_cache *make(tarn_cache_mode mode, size_t rows) {
  tarn_cache *cache = NULL;
  tarn_cache_options options = {
      .struct_size = sizeof options, .mode = mode, .rows = rows};
  assert_ok(tarn_cache_create(&table, &options, &cache));
  return cache;
}

static tarn_whole_rows request_of(const int64_t *indices, size_t count,
                                  float *rows) {
  return (tarn_whole_rows){.struct_size = sizeof(tarn_whole_rows),
                           .dense = (tarn_addr)(uintptr_t)rows,
                           .indices = (tarn_addr)(uintptr_t)indices,
                           .index_dtype = TARN_DTYPE_I64,
                           .index_count = count};
}

static tarn_cache_stats stats_of(tarn_cache *cache) {
  tarn_cache_stats stats = {.struct_size = sizeof stats};
  assert_ok(tarn_cache_query(cache, &stats));
  return stats;
}

// --- what is refused -------------------------------------------------------

TEST(wrong_options_are_refused) {
  static const struct {
    tarn_cache_options options;
    tarn_status status;
    const char *says;
  } cases[] = {
      {{.rows = 0}, TARN_E_INVALID, "0 rows and 0 bytes"},
      {{.rows = 1, .bytes = 1}, TARN_E_INVALID, "1 rows and 1 bytes"},
      {{.rows = 1, .mode = (tarn_cache_mode)7}, TARN_E_INVALID, "mode 7"},
      {{.bytes = 100}, TARN_E_INVALID, "into 100 bytes"},
      {{.rows = 1, .shards = 5}, TARN_E_INVALID, "5 shards"},
      {{.rows = 1, .place = {.kind = (tarn_place_kind)9}},
       TARN_E_INVALID,
       "place"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn_cache *cache = (tarn_cache *)&table;
    tarn_cache_options options = cases[i].options;
    options.struct_size = sizeof options;
    assert_fails(tarn_cache_create(&table, &options, &cache), cases[i].status,
                 cases[i].says);
    ck_assert_ptr_null(cache);
  }
  assert_ok(tarn_cache_destroy(NULL));
}

TEST(wrong_rows_are_refused) {
  static const int64_t bad[] = {3, ROWS};
  float rows[2 * WIDTH] = {0};
  tarn_cache *cache = make(TARN_CACHE_READ_ONLY, 32);
  tarn_whole_rows request = request_of(bad, 2, rows);
  assert_fails(tarn_cache_gather(cache, &request, NULL), TARN_E_INVALID,
               "index 300 at position 1");
  assert_fails(tarn_cache_scatter(cache, &request, NULL), TARN_E_STATE,
               "read only");
  assert_fails(tarn_cache_drop(cache, bad, 2), TARN_E_INVALID,
               "row 300 at position 1");
  assert_fails(tarn_cache_warm(cache, NULL), TARN_E_INVALID, "no counts");
  assert_fails(tarn_cache_gather(NULL, &request, NULL), TARN_E_INVALID, "NULL");
  ck_assert_uint_eq(stats_of(cache).used, 0);
  assert_ok(tarn_cache_destroy(cache));
}

// --- memory ----------------------------------------------------------------

static size_t held(void) {
  tarn_pool *pool = NULL;
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  assert_ok(tarn_pool_of(TARN_HOST, &pool));
  assert_ok(tarn_pool_query(pool, &stats));
  return tarn_host_memory() + stats.live_bytes;
}

TEST(a_budget_holds) {
  enum { BUDGET = 4000 };
  tarn_cache *cache = make(TARN_CACHE_READ_ONLY, 16);  // the pool has its books
  tarn_cache_options options = {.struct_size = sizeof options, .bytes = BUDGET};
  assert_ok(tarn_cache_destroy(cache));
  size_t before = held();
  assert_ok(tarn_cache_create(&table, &options, &cache));
  tarn_cache_stats stats = stats_of(cache);
  ck_assert_uint_le(stats.bytes, BUDGET);
  ck_assert_uint_gt(stats.bytes + 16 * (ROW + 10), BUDGET);
  ck_assert_uint_le(held() - before, BUDGET);
  ck_assert_uint_ge(held() - before, stats.rows * ROW);
  assert_ok(tarn_cache_destroy(cache));
  ck_assert_uint_eq(held(), before);
}

// --- statistics ------------------------------------------------------------

TEST(statistics_count_indices) {
  static const int64_t first[] = {1, 2, 3, 3};
  static const int64_t second[] = {3, 4};
  float rows[4 * WIDTH];
  tarn_cache *cache = make(TARN_CACHE_WRITE_BACK, 64);
  tarn_whole_rows request = request_of(first, 4, rows);
  assert_ok(tarn_cache_gather(cache, &request, NULL));
  tarn_cache_stats stats = stats_of(cache);
  ck_assert_uint_eq(stats.hits, 0);
  ck_assert_uint_eq(stats.misses, 3);
  ck_assert_uint_eq(stats.joined, 1);
  request = request_of(second, 2, rows);
  assert_ok(tarn_cache_gather(cache, &request, NULL));
  stats = stats_of(cache);
  ck_assert_uint_eq(stats.hits, 1);
  ck_assert_uint_eq(stats.misses, 4);
  ck_assert_uint_eq(stats.bytes_hit, ROW);
  ck_assert_uint_eq(stats.bytes_missed, 4 * ROW);
  assert_ok(tarn_cache_scatter(cache, &request, NULL));
  ck_assert_uint_eq(stats_of(cache).dirty, 2);
  assert_ok(tarn_cache_drop(cache, &second[0], 1));
  ck_assert_uint_eq(stats_of(cache).dirty, 1);
  assert_ok(tarn_cache_write_back(cache));
  stats = stats_of(cache);
  ck_assert_uint_eq(stats.written, 1);
  ck_assert_uint_eq(stats.dirty, 0);
  ck_assert_uint_eq(stats.used, 3);
  assert_ok(tarn_cache_destroy(cache));
}

TEST(a_read_only_cache_shows_rows_as_they_were) {
  static const int64_t one[] = {7};
  float rows[WIDTH];
  float news[WIDTH] = {-1, -2, -3, -4};
  tarn_cache *cache = make(TARN_CACHE_READ_ONLY, 32);
  tarn_whole_rows request = request_of(one, 1, rows);
  tarn_whole_rows change = request_of(one, 1, news);
  assert_ok(tarn_cache_gather(cache, &request, NULL));
  assert_ok(tarn_whole_scatter(&table, &change, NULL));
  assert_ok(tarn_cache_gather(cache, &request, NULL));
  ck_assert_float_eq(rows[0], 7 * WIDTH);
  assert_ok(tarn_cache_drop(cache, one, 1));
  assert_ok(tarn_cache_gather(cache, &request, NULL));
  ck_assert_float_eq(rows[0], -1);
  assert_ok(tarn_cache_write_back(cache));
  assert_ok(tarn_cache_destroy(cache));
}

// --- failures --------------------------------------------------------------

// Rows that the cache has to make room for, all of them dirty.
static void write_and_read(void *unused) {
  static int64_t indices[ROWS];
  static float rows[ROWS * WIDTH];
  tarn_cache *cache = NULL;
  tarn_cache_options options = {
      .struct_size = sizeof options, .mode = TARN_CACHE_WRITE_BACK, .rows = 64};
  (void)unused;
  for (int64_t i = 0; i < ROWS; i++)
    indices[i] = i;
  if (tarn_cache_create(&table, &options, &cache) != TARN_OK) {
    ck_assert_ptr_null(cache);
    return;
  }
  tarn_whole_rows request = request_of(indices, ROWS, rows);
  tarn_status status = tarn_cache_gather(cache, &request, NULL);
  if (status == TARN_OK)
    for (size_t i = 0; i < (size_t)ROWS * WIDTH; i++)
      require(rows[i] == (float)i);
  for (size_t i = 0; i < (size_t)ROWS * WIDTH; i++)
    rows[i] = (float)i;
  (void)!tarn_cache_scatter(cache, &request, NULL);
  (void)!tarn_cache_gather(cache, &request, NULL);
  (void)!tarn_cache_write_back(cache);
  // Whatever failed, nothing is held that should not be.
  (void)faults_disarm();
  assert_ok(tarn_cache_gather(cache, &request, NULL));
  for (size_t i = 0; i < (size_t)ROWS * WIDTH; i++)
    require(rows[i] == (float)i);
  assert_ok(tarn_cache_write_back(cache));
  ck_assert_uint_eq(stats_of(cache).dirty, 0);
  assert_ok(tarn_cache_destroy(cache));
}

TEST(each_failure_leaves_the_cache_whole) {
  size_t runs = 0;
  write_and_read(NULL);  // pools have their books after that
  for (size_t n = 1; runs < 400; n++, runs++) {
    size_t before = faults_total();
    faults_arm(n, FAULTS_ONCE);
    write_and_read(NULL);
    (void)faults_disarm();
    if (faults_total() == before) break;
  }
  ck_assert_uint_gt(runs, 20);
  ck_assert_uint_lt(runs, 400);
}

// --- threads ---------------------------------------------------------------

static tarn_cache *shared;

// Each thread writes rows of its own, and reads all that nobody writes.
static void *use(void *number) {
  enum { SOME = 40 };
  uint64_t me = (uintptr_t)number;
  uint64_t seed = me;
  int64_t indices[SOME];
  float rows[SOME * WIDTH];
  for (int k = 0; k < EFFORT(4000, 400); k++) {
    bool writes = k % 3 == 0;
    for (size_t i = 0; i < SOME; i++) {
      uint64_t row = next_random(&seed) % (writes ? 25 : 200);
      indices[i] = (int64_t)(writes ? 200 + row * 4 + me - 1 : row);
      for (size_t c = 0; c < WIDTH; c++)
        rows[i * WIDTH + c] = (float)((size_t)indices[i] * WIDTH) + (float)c;
    }
    tarn_whole_rows request = request_of(indices, SOME, rows);
    tarn_status status = writes ? tarn_cache_scatter(shared, &request, NULL)
                                : tarn_cache_gather(shared, &request, NULL);
    expect(status == TARN_OK);
    for (size_t i = 0; i < SOME; i++)
      expect(rows[i * WIDTH] == (float)((size_t)indices[i] * WIDTH));
  }
  return NULL;
}

TEST(threads_share_a_cache) {
  shared = make(TARN_CACHE_WRITE_BACK, 64);
  run_threads(use, 4);
  assert_as_expected();
  ck_assert_uint_gt(stats_of(shared).evictions, 100);
  assert_ok(tarn_cache_write_back(shared));
  assert_ok(tarn_cache_destroy(shared));
}
