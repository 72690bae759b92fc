// How often the sieve misses, beside LRU and the best that never changes, on
// rows drawn by Zipf's law with exponent 1.05.
#include <math.h>
#include <stdio.h>

#include "cache/sieve.h"
#include "support/effort.h"
#include "support/run.h"
#include "support/threads.h"

enum {
  ROWS = EFFORT(1000000, 100000),
  BATCH = 500,
  DRAWS = 6 * ROWS,
};

static double sums[ROWS];
static uint32_t draws[DRAWS];

static uint32_t draw(uint64_t *seed) {
  double wanted = (double)next_random(seed) * 0x1p-31 * sums[ROWS - 1];
  size_t low = 0;
  for (size_t left = ROWS; left > 1;) {
    size_t half = left / 2;
    low += half & -(size_t)(sums[low + half - 1] <= wanted);
    left -= half;
  }
  return (uint32_t)low;
}

// Row k, from 0 on, is the one that is drawn k-th most often.
static void draw_all(void) {
  uint64_t seed = 88172645463325252u;
  double sum = 0;
  for (size_t i = 0; i < ROWS; i++)
    sums[i] = sum += pow((double)i + 1, -1.05);
  for (size_t i = 0; i < DRAWS; i++)
    draws[i] = draw(&seed);
}

// The lines that have to be filled.
static size_t find_some(tarn__cache_sieve *sieve, const uint32_t *rows) {
  static tarn__cache_sieve_batch batch;
  batch.count = BATCH;
  for (size_t i = 0; i < BATCH; i++)
    batch.keys[i] = rows[i];
  tarn__sieve_find(sieve, &batch, TARN__SIEVE_MAKE_ROOM);
  require(batch.tally[TARN__SIEVE_ABSENT] == 0);
  for (size_t i = 0; i < BATCH; i++)
    if (batch.found[i] == TARN__SIEVE_TO_FILL)
      tarn__sieve_filled(sieve, &batch.lines[i], 1, true);
  tarn__sieve_leave(sieve, &batch, false);
  return batch.tally[TARN__SIEVE_TO_FILL];
}

// All count from the middle of the draws on.
static double misses_of_sieve(size_t lines) {
  tarn__cache_sieve *sieve = NULL;
  size_t misses = 0;
  tarn__cache_sieve_options options = {.keys = ROWS, .lines = lines / 16 * 16};
  assert_ok(tarn__sieve_create(&options, &sieve));
  for (size_t i = 0; i < DRAWS; i += BATCH) {
    size_t filled = find_some(sieve, &draws[i]);
    if (i >= DRAWS / 2) misses += filled;
  }
  tarn__sieve_destroy(sieve);
  return (double)misses;
}

// A ring of all rows that are in the cache, with its end at ROWS.
static uint32_t before[ROWS + 1];
static uint32_t behind[ROWS + 1];
static bool is_in[ROWS];

static void take_out(uint32_t row) {
  behind[before[row]] = behind[row];
  before[behind[row]] = before[row];
}

static void put_first(uint32_t row) {
  before[row] = ROWS;
  behind[row] = behind[ROWS];
  before[behind[ROWS]] = row;
  behind[ROWS] = row;
}

static double misses_of_lru(size_t lines) {
  size_t used = 0;
  size_t misses = 0;
  before[ROWS] = behind[ROWS] = ROWS;
  for (size_t i = 0; i < ROWS; i++)
    is_in[i] = false;
  for (size_t i = 0; i < DRAWS; i++) {
    uint32_t row = draws[i];
    if (is_in[row]) {
      take_out(row);
    } else {
      if (i >= DRAWS / 2) misses++;
      is_in[row] = true;
      if (used == lines) {
        uint32_t last = before[ROWS];
        is_in[last] = false;
        take_out(last);
      } else {
        used++;
      }
    }
    put_first(row);
  }
  return (double)misses;
}

// The rows that are drawn most often.
static double misses_of_static(size_t lines) {
  size_t misses = 0;
  for (size_t i = DRAWS / 2; i < DRAWS; i++)
    misses += draws[i] >= lines;
  return (double)misses;
}

TEST(it_misses_less_often_than_lru) {
  static const struct {
    size_t part;
    double most;
  } cases[] = {{40, EFFORT(0.84, 0.87)}, {4, EFFORT(0.95, 0.97)}};
  draw_all();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    size_t lines = ROWS / cases[i].part;
    double sieve = misses_of_sieve(lines);
    double lru = misses_of_lru(lines);
    printf("1/%zu of the rows: sieve %.3f, static %.3f of the misses of LRU\n",
           cases[i].part, sieve / lru, misses_of_static(lines) / lru);
    ck_assert_double_le(sieve / lru, cases[i].most);
    ck_assert_double_gt(sieve, misses_of_static(lines));
  }
}
