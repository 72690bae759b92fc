// Layouts: no two spans that are there at once share a byte.
#include "pool/step_layout.h"

#include <stdlib.h>
#include <string.h>

#include "support/run.h"
#include "support/threads.h"

enum { MOST = 300 };

static uint64_t state = 1;

static size_t random_below(size_t limit) {
  return next_random(&state) % limit;
}

static bool is_there(const tarn__pool_lifetime *span, uint32_t event) {
  if (span->from < span->to) return event >= span->from && event < span->to;
  return event >= span->from || event < span->to;
}

// The most that is there at once.
static size_t peak_of(const tarn__pool_lifetime *spans, size_t count,
                      uint32_t events) {
  size_t peak = 0;
  for (uint32_t event = 0; event < events; event++) {
    size_t sum = 0;
    for (size_t i = 0; i < count; i++)
      sum += is_there(&spans[i], event) ? spans[i].size : 0;
    if (sum > peak) peak = sum;
  }
  return peak;
}

static void require_apart(const tarn__pool_lifetime *a,
                          const tarn__pool_lifetime *b, uint32_t events) {
  bool apart =
      a->offset + a->size <= b->offset || b->offset + b->size <= a->offset;
  for (uint32_t event = 0; event < events && !apart; event++)
    require(!is_there(a, event) || !is_there(b, event));
}

// Of spans that do not lie across the end.
static void require_apart_in_time(const tarn__pool_lifetime *a,
                                  const tarn__pool_lifetime *b) {
  require(a->offset + a->size <= b->offset ||
          b->offset + b->size <= a->offset || a->to <= b->from ||
          b->to <= a->from);
}

static void require_sound(const tarn__pool_lifetime *spans, size_t count,
                          size_t size, uint32_t events) {
  for (size_t i = 0; i < count; i++) {
    require(spans[i].offset % spans[i].align == 0);
    require(spans[i].offset + spans[i].size <= size);
    for (size_t j = 0; j < i; j++)
      require_apart(&spans[i], &spans[j], events);
  }
  require(size >= peak_of(spans, count, events));
}

static size_t make_spans(tarn__pool_lifetime *spans, uint32_t *events) {
  size_t count = random_below(MOST) + 1;
  *events = (uint32_t)(count * 2);
  uint32_t free_events[MOST * 2];
  for (uint32_t i = 0; i < *events; i++)
    free_events[i] = i;
  for (uint32_t i = *events; i > 1; i--) {
    uint32_t j = (uint32_t)random_below(i);
    uint32_t other = free_events[j];
    free_events[j] = free_events[i - 1];
    free_events[i - 1] = other;
  }
  for (size_t i = 0; i < count; i++) {
    size_t align = (size_t)512 << random_below(4);
    spans[i] = (tarn__pool_lifetime){.size = (random_below(64) + 1) * 512,
                                     .align = align,
                                     .from = free_events[2 * i],
                                     .to = free_events[2 * i + 1]};
  }
  return count;
}

TEST(no_two_share_a_byte) {
  tarn__pool_lifetime spans[MOST];
  for (size_t round = 0; round < 200; round++) {
    uint32_t events = 0;
    size_t size = 0;
    size_t count = make_spans(spans, &events);
    require(tarn__step_offsets(spans, count, &size) == TARN_OK);
    require_sound(spans, count, size, events);
  }
}

TEST(what_is_never_there_at_once_shares) {
  tarn__pool_lifetime spans[] = {
      {.size = 1000, .align = 8, .from = 0, .to = 1},
      {.size = 3000, .align = 8, .from = 2, .to = 3},
      {.size = 2000, .align = 8, .from = 4, .to = 5},
  };
  size_t size = 0;
  assert_ok(tarn__step_offsets(spans, 3, &size));
  ck_assert_uint_eq(size, 3000);
}

// From the last event of a step to the second of the next.
TEST(a_span_may_lie_across_the_end) {
  tarn__pool_lifetime spans[] = {
      {.size = 1000, .align = 8, .from = 5, .to = 1},
      {.size = 1000, .align = 8, .from = 0, .to = 2},
      {.size = 1000, .align = 8, .from = 3, .to = 4},
  };
  size_t size = 0;
  assert_ok(tarn__step_offsets(spans, 3, &size));
  ck_assert_uint_eq(size, 2000);
  ck_assert_uint_ne(spans[0].offset, spans[1].offset);
}

TEST(none_need_nothing) {
  size_t size = 1;
  assert_ok(tarn__step_offsets(NULL, 0, &size));
  ck_assert_uint_eq(size, 0);
}

// As the blocks of layers: forward ones live until their backward ones do.
TEST(a_large_step_is_packed_closely) {
  enum { LAYERS = 200 };
  static tarn__pool_lifetime spans[2 * LAYERS];
  const uint32_t events = 4 * LAYERS;
  size_t size = 0;
  for (uint32_t i = 0; i < LAYERS; i++) {
    spans[2 * i] = (tarn__pool_lifetime){
        .size = 4096, .align = 512, .from = i, .to = events - 1 - i};
    spans[2 * i + 1] = (tarn__pool_lifetime){.size = 8192,
                                             .align = 512,
                                             .from = LAYERS + 2 * i,
                                             .to = LAYERS + 2 * i + 2};
  }
  assert_ok(tarn__step_offsets(spans, 2 * LAYERS, &size));
  require_sound(spans, 2 * LAYERS, size, events);
  ck_assert_uint_eq(size, LAYERS * 4096 + 8192);
}

// Without a clock, so that what is tried for so many is bounded by counting.
TEST(as_many_as_a_step_may_have_are_packed) {
  enum { COUNT = 65536, LIVE = 40 };
  tarn__pool_lifetime *spans = calloc(COUNT, sizeof *spans);
  ck_assert_ptr_nonnull(spans);
  size_t live = 0;
  size_t peak = 0;
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t length = 2 * (uint32_t)(random_below(LIVE) + 1);
    spans[i] = (tarn__pool_lifetime){.size = (random_below(64) + 1) * 512,
                                     .align = 512,
                                     .from = 2 * i,
                                     .to = 2 * i + length + 1};
  }
  for (uint32_t event = 0; event < 2 * COUNT; event += 2) {
    live = 0;
    for (uint32_t i = event / 2; i + LIVE + 2 > event / 2; i--) {
      live += spans[i].to > event ? spans[i].size : 0;
      if (i == 0) break;
    }
    if (live > peak) peak = live;
  }
  size_t size = 0;
  assert_ok(tarn__step_offsets(spans, COUNT, &size));
  ck_assert_uint_ge(size, peak);
  ck_assert_uint_le(size, peak + peak / 4);
  for (uint32_t i = 0; i < COUNT; i++) {
    for (uint32_t j = i + 1; j < COUNT && j <= i + LIVE + 1; j++)
      require_apart_in_time(&spans[i], &spans[j]);
  }
  free(spans);
}

TEST(more_than_can_be_addressed_is_refused) {
  tarn__pool_lifetime spans[] = {
      {.size = SIZE_MAX - 4095, .align = 4096, .from = 0, .to = 2},
      {.size = 8192, .align = 4096, .from = 1, .to = 3},
  };
  size_t size = 1;
  assert_status(tarn__step_offsets(spans, 2, &size), TARN_FULL);
  ck_assert_ptr_nonnull(strstr(tarn_last_error(), "2 spans"));
  ck_assert_uint_eq(size, 0);
}
