// A set of small numbers: words of bits, in levels.
//
// Invariant: bit b of word w of a level is set if and only if word 64 w + b of
// the level below is not zero. The highest level is one word.
#include "plan/live.h"

#include "base/hostmem.h"

static size_t words_for(size_t bits) {
  return bits / 64 + (bits % 64 != 0);
}

tarn_status tarn__plan_live_make(tarn__plan_live *live, size_t count) {
  size_t starts[TARN__PLAN_LIVE_LEVELS];
  size_t levels = 0;
  size_t words = 0;
  size_t bits = count == 0 ? 1 : count;
  *live = (tarn__plan_live){0};
  do {
    starts[levels++] = words;
    bits = words_for(bits);
    words += bits;
  } while (bits > 1);
  live->words = tarn__host_array(words, sizeof *live->words);
  if (live->words == NULL) return TARN_E_NOMEM;
  live->word_count = words;
  live->level_count = levels;
  for (size_t i = 0; i < levels; i++)
    live->levels[i] = live->words + starts[i];
  return TARN_OK;
}

void tarn__plan_live_free(tarn__plan_live *live) {
  tarn__host_free_array(live->words, live->word_count, sizeof *live->words);
  *live = (tarn__plan_live){0};
}

void tarn__plan_live_add(tarn__plan_live *live, uint32_t number) {
  for (size_t i = 0; i < live->level_count; i++) {
    uint64_t *word = &live->levels[i][number / 64];
    bool was_empty = *word == 0;
    *word |= UINT64_C(1) << number % 64;
    if (!was_empty) return;
    number /= 64;
  }
}

void tarn__plan_live_remove(tarn__plan_live *live, uint32_t number) {
  for (size_t i = 0; i < live->level_count; i++) {
    uint64_t *word = &live->levels[i][number / 64];
    *word &= ~(UINT64_C(1) << number % 64);
    if (*word != 0) return;
    number /= 64;
  }
}

// --- neighbours --------------------------------------------------------------

static uint32_t highest(uint64_t word) {
  return 63 - (uint32_t)__builtin_clzll(word);
}

static uint32_t lowest(uint64_t word) {
  return (uint32_t)__builtin_ctzll(word);
}

// Up to the level at which there is a neighbour, and down along its edge.
uint32_t tarn__plan_live_below(const tarn__plan_live *live, uint32_t number) {
  for (size_t i = 0; i < live->level_count; i++, number /= 64) {
    uint64_t before = (UINT64_C(1) << number % 64) - 1;
    uint64_t left = live->levels[i][number / 64] & before;
    if (left == 0) continue;
    number = number / 64 * 64 + highest(left);
    while (i-- > 0)
      number = number * 64 + highest(live->levels[i][number]);
    return number;
  }
  return TARN__PLAN_LIVE_NONE;
}

uint32_t tarn__plan_live_above(const tarn__plan_live *live, uint32_t number) {
  for (size_t i = 0; i < live->level_count; i++, number /= 64) {
    uint64_t after = ~UINT64_C(1) << number % 64;
    uint64_t left = live->levels[i][number / 64] & after;
    if (left == 0) continue;
    number = number / 64 * 64 + lowest(left);
    while (i-- > 0)
      number = number * 64 + lowest(live->levels[i][number]);
    return number;
  }
  return TARN__PLAN_LIVE_NONE;
}
