// Caches where something fails at one rank: host memory, the driver, or the
// rank itself. Where ranks call together all get the same answer; what was
// scattered and is not in the table yet stays in the cache, and another try
// works.
#include <signal.h>
#include <sys/time.h>

#include "support/faults.h"
#include "tarn/cache.h"
#include "whole/rows_kit.h"

// A cache has a part of the rows that a rank writes.
enum { ROWS = 240, WIDTH = 4, LINES = 48, MOST_FAULTS = 400 };

static tarn_whole_type type;  // set before ranks are forked
static bool in_driver;        // what fails; else the host's memory
static size_t victim;

// --- rows ------------------------------------------------------------------

typedef struct site {
  tarn_whole_tensor table;
  tarn_cache *cache;
  size_t count;  // of the rows that are this rank's to write
  int64_t rows[ROWS];
  float values[ROWS][WIDTH];
  float version;
} site;

static float value_of(int64_t row, float version) {
  return (float)row + version * 1024;
}

static tarn_whole_rows request_of_all(site *s) {
  return (tarn_whole_rows){.struct_size = sizeof(tarn_whole_rows),
                           .dense = (tarn_addr)(uintptr_t)s->values,
                           .indices = (tarn_addr)(uintptr_t)s->rows,
                           .index_dtype = TARN_DTYPE_I64,
                           .index_count = s->count};
}

static void set_values(site *s, float version) {
  for (size_t i = 0; i < s->count; i++)
    for (size_t k = 0; k < WIDTH; k++)
      s->values[i][k] = value_of(s->rows[i], version);
}

static void see_values(const site *s) {
  for (size_t i = 0; i < s->count; i++)
    for (size_t k = 0; k < WIDTH; k++)
      MUST(s->values[i][k] == value_of(s->rows[i], s->version));
}

static tarn_cache_stats stats_of(const site *s) {
  tarn_cache_stats stats = {.struct_size = sizeof stats};
  MUST_BE(tarn_cache_query(s->cache, &stats), TARN_OK);
  return stats;
}

// --- a table and its cache -------------------------------------------------

static void raise_site(site *s, tarn_place place, tarn_place near) {
  tarn_whole_table_options table = {.struct_size = sizeof table,
                                    .type = type,
                                    .place = place,
                                    .dtype = TARN_DTYPE_F32,
                                    .rows = ROWS,
                                    .width = WIDTH};
  const tarn_cache_options options = {.struct_size = sizeof options,
                                      .mode = TARN_CACHE_WRITE_BACK,
                                      .place = near,
                                      .rows = LINES};
  if (type == TARN_WHOLE_HIERARCHICAL) table.spread = TARN_WHOLE_COPIES;
  *s = (site){.count = 0};
  for (size_t row = my.rank; row < ROWS; row += my.ranks)
    s->rows[s->count++] = (int64_t)row;
  MUST_BE(tarn_whole_table_create(my.comm, &table, &s->table), TARN_OK);
  MUST_BE(tarn_cache_create(&s->table, &options, &s->cache), TARN_OK);
}

static void end_site(site *s) {
  MUST_BE(tarn_cache_destroy(s->cache), TARN_OK);
  meet_all();
  MUST_BE(tarn_whole_destroy(s->table.whole), TARN_OK);
}

// --- calls -----------------------------------------------------------------

typedef tarn_status call(site *s);

static tarn_status scatter(site *s) {
  tarn_whole_rows request = request_of_all(s);
  set_values(s, s->version);
  return tarn_cache_scatter(s->cache, &request, NULL);
}

static tarn_status gather(site *s) {
  tarn_whole_rows request = request_of_all(s);
  set_values(s, -1);
  return tarn_cache_gather(s->cache, &request, NULL);
}

static tarn_status write_back(site *s) {
  return tarn_cache_write_back(s->cache);
}

static tarn_status warm(site *s) {
  uint64_t counts[ROWS] = {0};
  for (size_t i = 0; i < s->count; i++)
    counts[s->rows[i]] = i + 1;
  return tarn_cache_warm(s->cache, counts);
}

static call *const calls[] = {scatter, gather, write_back, warm};
enum { CALLS = sizeof calls / sizeof calls[0] };

// --- one fault -------------------------------------------------------------

static void arm(size_t n) {
  char plan[32];
  if (my.rank != victim) return;
  if (!in_driver) {
    faults_arm(n, FAULTS_ONCE);
  } else {
    snprintf(plan, sizeof plan, "*@%zu", n);
    MUST_BE(tarn_sim_faults(plan), TARN_OK);
  }
}

static void disarm(void) {
  (void)faults_disarm();
  if (in_driver) MUST_BE(tarn_sim_faults(NULL), TARN_OK);
}

static void must_be_shortage(tarn_status status) {
  MUST(status == TARN_E_NOMEM || status == TARN_FULL ||
       (in_driver && status == TARN_E_DEVICE));
  if (my.ranks == 1) return;
  char wanted[32];
  snprintf(wanted, sizeof wanted, "rank %zu: ", victim);
  MUST_SAY(wanted);
}

// All rows are as they were scattered, in the cache, and in the table when they
// were written back.
static void see_all(site *s) {
  tarn_whole_rows request = request_of_all(s);
  MUST_BE(gather(s), TARN_OK);
  see_values(s);
  MUST_BE(tarn_cache_write_back(s->cache), TARN_OK);
  MUST(stats_of(s).dirty == 0);
  set_values(s, -1);
  MUST_BE(tarn_whole_gather(&s->table, &request, NULL), TARN_OK);
  see_values(s);
}

// The |n|-th call for memory, or of the driver, fails while |what| runs. False:
// there are fewer.
static bool fail_once(site *s, call *what, size_t n) {
  s->version++;
  MUST_BE(scatter(s), TARN_OK);
  if (what == warm) MUST_BE(tarn_cache_write_back(s->cache), TARN_OK);
  if (what == warm) MUST_BE(tarn_cache_drop(s->cache, NULL, 0), TARN_OK);
  if (what == scatter) s->version++;
  tarn_cache_stats before = stats_of(s);
  arm(n);
  tarn_status status = what(s);
  disarm();
  must_be_the_same_everywhere(status);
  tarn_cache_stats after = stats_of(s);
  // What has gone from the dirty rows was written.
  if (what != scatter)
    MUST(before.dirty == after.dirty + (after.written - before.written));
  if (status != TARN_OK) {
    must_be_shortage(status);
    MUST_BE(what(s), TARN_OK);
  }
  if (what == gather) see_values(s);
  see_all(s);
  return status != TARN_OK;
}

static void sweep(site *s) {
  for (size_t k = 0; k < CALLS; k++) {
    size_t n = 1;
    MUST(!fail_once(s, calls[k], 1000000));
    while (n < MOST_FAULTS && fail_once(s, calls[k], n))
      n++;
    MUST(n > 1 && n < MOST_FAULTS);
  }
}

static void fail_often(void) {
  static site s;
  configure_sim();
  tarn_place near = open_place("sim", TARN_PLACE_DEVICE);
  tarn_place place = in_driver ? near : TARN_HOST;
  raise_site(&s, place, near);
  sweep(&s);
  end_site(&s);
  close_ground(near);
}

// Of copies a gather is each rank's own, but a cache that writes back calls
// together all the same.
TEST_LOOP(calls_together_fail_at_all_ranks, 8) {
  type = _i / 4 == 0 ? TARN_WHOLE_DISTRIBUTED : TARN_WHOLE_HIERARCHICAL;
  in_driver = _i % 2 == 1;
  victim = (size_t)_i / 2 % 2;
  run_ranks(2, in_driver ? "a failing driver" : "host memory", fail_often);
}

TEST_LOOP(calls_alone_fail_and_lose_nothing, 2) {
  type = TARN_WHOLE_CHUNKED;
  in_driver = _i == 1;
  victim = 0;
  run_ranks(1, in_driver ? "a failing driver" : "host memory", fail_often);
}

// --- a rank that ends ------------------------------------------------------

static unsigned after_us;

static void die(int signal) {
  (void)signal;
  kill(getpid(), SIGKILL);
}

static void must_be_lost(tarn_status status) {
  MUST_BE(status, TARN_E_PEER_LOST);
  MUST_SAY("rank 1");
}

// The cache, which is this rank's own, ends as ever.
static void call_until_lost(tarn_comm *comm, void *unused) {
  static site s;
  const struct itimerval when = {.it_value.tv_usec = (suseconds_t)after_us};
  (void)unused;
  my.comm = comm;
  my.rank = tarn_comm_rank(comm);
  my.ranks = tarn_comm_size(comm);
  my.text = "a rank ends";
  raise_site(&s, TARN_HOST, TARN_HOST);
  if (my.rank == 1) {
    MUST(signal(SIGALRM, die) != SIG_ERR);
    MUST(setitimer(ITIMER_REAL, &when, NULL) == 0);
  }
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK; i++) {
    s.version++;
    status = calls[i % CALLS](&s);
  }
  must_be_lost(status);
  for (size_t k = 0; k < CALLS; k++)
    must_be_lost(calls[k](&s));
  MUST_BE(tarn_cache_destroy(s.cache), TARN_OK);
  must_be_lost(tarn_whole_destroy(s.table.whole));
  MUST_BE(tarn_comm_destroy(comm), TARN_OK);
  _exit(0);  // pools of the host keep what they have
}

TEST(a_rank_that_ends_is_told_to_the_others) {
  type = TARN_WHOLE_DISTRIBUTED;
  for (after_us = 50; after_us < 20000; after_us = after_us * 3 + 17)
    ranks_run(
        &(ranks_plan){.size = 3, .body = call_until_lost, .killed = 1 << 1});
}

int main(void) {
  faults_install();
  return run_tests();
}
