// Tallies against plain arrays: which rows are ready, when, and their sums.
#include "embedding/tally.h"

#include <stdlib.h>
#include <string.h>

#include "support/faults.h"
#include "support/run.h"

enum { ROWS = 5000, WIDTH = 3, ARRIVALS = 20000, SOME = 200, FEW = 2000 };

static float gradients[ARRIVALS][WIDTH];
static uint64_t numbers[ARRIVALS];
static unsigned left[ROWS];
static float sums[ROWS][WIDTH];
static uint32_t state;

static uint32_t draw(void) {
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}

// Few rows come up often, most of them once or never.
static void draw_arrivals(uint32_t seed, size_t count) {
  state = seed;
  memset(left, 0, sizeof left);
  for (size_t i = 0; i < count; i++) {
    numbers[i] = draw() % 4 == 0 ? draw() % 20 : draw() % ROWS;
    left[numbers[i]]++;
    for (size_t k = 0; k < WIDTH; k++)
      gradients[i][k] = (float)(int32_t)(draw() % 2001 - 1000) / 7;
  }
}

static size_t list(size_t first, size_t count, tarn__whole_arrival *out) {
  for (size_t i = 0; i < count; i++)
    out[i] = (tarn__whole_arrival){numbers[first + i], gradients[first + i]};
  return count;
}

static void count_all(tarn__embedding_tally *t, size_t count) {
  tarn__whole_arrival some[SOME];
  for (size_t i = 0; i < count; i += SOME)
    ck_assert_int_eq(tarn__tally_count(t, some, list(i, SOME, some)), TARN_OK);
}

static void add_to_model(size_t at) {
  uint64_t row = numbers[at];
  for (size_t k = 0; k < WIDTH; k++)
    sums[row][k] += gradients[at][k];
  left[row]--;
}

static void add_all(tarn__embedding_tally *t, size_t count) {
  tarn__whole_arrival some[SOME];
  tarn__embedding_tally_ready ready[SOME];
  memset(sums, 0, sizeof sums);
  for (size_t i = 0; i < count; i += SOME) {
    size_t got = 0;
    size_t wanted = 0;
    (void)list(i, SOME, some);
    ck_assert_int_eq(
        tarn__tally_add(t, some, SOME, TARN_DTYPE_F32, WIDTH, ready, &got),
        TARN_OK);
    for (size_t k = i; k < i + SOME; k++) {
      add_to_model(k);
      if (left[numbers[k]] > 0) continue;
      require(wanted < got);
      require(ready[wanted].entry->row == numbers[k]);
      for (size_t w = 0; w < WIDTH; w++)
        require(ready[wanted].gradient[w] == sums[numbers[k]][w]);
      wanted++;
    }
    ck_assert_uint_eq(got, wanted);
    tarn__tally_done(t, ready, got);
  }
}

TEST_LOOP(rows_are_ready_with_their_last, 20) {
  tarn__embedding_tally t;
  tarn__tally_init(&t, WIDTH);
  for (uint32_t round = 0; round < 3; round++) {
    size_t count = round == 1 ? SOME : ARRIVALS;
    draw_arrivals((uint32_t)_i * 3 + round, count);
    tarn__tally_clear(&t);
    count_all(&t, count);
    add_all(&t, count);
  }
  tarn__tally_deinit(&t);
}

// The same gradients, over again.
TEST(the_same_comes_again) {
  tarn__embedding_tally t;
  unsigned counts[ROWS];
  size_t before = tarn_host_memory();
  tarn__tally_init(&t, WIDTH);
  draw_arrivals(1, ARRIVALS);
  memcpy(counts, left, sizeof left);
  count_all(&t, ARRIVALS);
  for (int i = 0; i < 3; i++) {
    memcpy(left, counts, sizeof left);
    if (i > 0) tarn__tally_again(&t);
    add_all(&t, ARRIVALS);
  }
  tarn__tally_deinit(&t);
  ck_assert_uint_eq(tarn_host_memory(), before);
}

// Memory is kept for about as many rows, and sums for no more than are open.
TEST(memory_follows_what_comes) {
  tarn__embedding_tally t;
  tarn__tally_init(&t, WIDTH);
  draw_arrivals(1, ARRIVALS);
  count_all(&t, ARRIVALS);
  unsigned large = t.bits;
  ck_assert_uint_le(((size_t)1 << t.bits) / 4, t.used + SOME);
  ck_assert_uint_ge((size_t)1 << t.bits, 2 * t.used);
  add_all(&t, ARRIVALS);
  ck_assert_uint_lt(t.made, ROWS);
  tarn__tally_clear(&t);
  ck_assert_uint_eq(t.bits, large);
  draw_arrivals(2, SOME);
  count_all(&t, SOME);
  add_all(&t, SOME);
  tarn__tally_clear(&t);
  ck_assert_uint_eq(t.bits, 0);
  tarn__tally_deinit(&t);
}

// What was not announced, or not now, is refused by its row.
TEST(more_than_were_counted) {
  tarn__embedding_tally t;
  tarn__embedding_tally_ready ready[2];
  size_t got = 0;
  const tarn__whole_arrival arrival = {7, gradients[0]};
  const tarn__whole_arrival twice[] = {arrival, arrival};
  tarn__tally_init(&t, WIDTH);
  ck_assert_int_eq(
      tarn__tally_add(&t, &arrival, 1, TARN_DTYPE_F32, WIDTH, ready, &got),
      TARN_E_CORRUPT);
  ck_assert_int_eq(tarn__tally_count(&t, &arrival, 1), TARN_OK);
  ck_assert_int_eq(
      tarn__tally_add(&t, twice, 2, TARN_DTYPE_F32, WIDTH, ready, &got),
      TARN_E_CORRUPT);
  ck_assert_ptr_nonnull(strstr(tarn_last_error(), "gradient 1 is of row 7 "));
  tarn__tally_clear(&t);
  const tarn__whole_arrival other = {8, gradients[1]};
  ck_assert_int_eq(tarn__tally_count(&t, &arrival, 1), TARN_OK);
  ck_assert_int_eq(tarn__tally_count(&t, &other, 1), TARN_OK);
  ck_assert_int_eq(
      tarn__tally_add(&t, &other, 1, TARN_DTYPE_F32, WIDTH, ready, &got),
      TARN_E_CORRUPT);
  tarn__tally_deinit(&t);
}

static void go_through(void *unused) {
  tarn__whole_arrival some[SOME];
  tarn__embedding_tally_ready ready[SOME];
  tarn__embedding_tally t;
  size_t got = 0;
  (void)unused;
  tarn__tally_init(&t, WIDTH);
  draw_arrivals(3, FEW);
  tarn_status status = TARN_OK;
  for (size_t i = 0; i < FEW && status == TARN_OK; i += SOME)
    status = tarn__tally_count(&t, some, list(i, SOME, some));
  for (size_t i = 0; i < FEW && status == TARN_OK; i += SOME) {
    (void)list(i, SOME, some);
    status =
        tarn__tally_add(&t, some, SOME, TARN_DTYPE_F32, WIDTH, ready, &got);
    if (status == TARN_OK) tarn__tally_done(&t, ready, got);
  }
  require(status == TARN_OK || status == TARN_E_NOMEM);
  tarn__tally_deinit(&t);
}

TEST(host_memory_fails) {
  ck_assert_uint_gt(faults_sweep(go_through, NULL), 4);
}

int main(void) {
  faults_install();
  return run_tests();
}

SECONDS(20);
