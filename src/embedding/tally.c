// A hash table of rows with linear probing, at most half full, and sums in
// blocks that do not move.
#include "embedding/tally.h"

#include <string.h>

#include "base/convert.h"
#include "base/hostmem.h"
#include "base/status.h"

enum {
  LEAST_BITS = 10,
  SUMS = 64,    // of the first block
  AHEAD = 256,  // arrivals whose entries are fetched before one is looked at
};

// --- from the first to the last --------------------------------------------

static size_t room_of(const tarn__embedding_tally *tally) {
  return tally->entries == NULL ? 0 : (size_t)1 << tally->bits;
}

static size_t sums_of(size_t block) {
  return (size_t)SUMS << block;
}

static void drop_counts(tarn__embedding_tally *tally) {
  tarn__host_free_array(tally->counts, room_of(tally), sizeof *tally->counts);
  tally->counts = NULL;
}

static void drop_entries(tarn__embedding_tally *tally) {
  tarn__host_free_array(tally->entries, room_of(tally), sizeof *tally->entries);
  tally->entries = NULL;
  tally->bits = 0;
}

void tarn__tally_init(tarn__embedding_tally *tally, size_t width) {
  *tally = (tarn__embedding_tally){.width = width, .idle = TARN__NO_SUM};
}

void tarn__tally_deinit(tarn__embedding_tally *tally) {
  drop_counts(tally);
  drop_entries(tally);
  for (size_t i = 0; i < tally->blocks; i++)
    tarn__host_free_array(tally->sums[i], sums_of(i) * tally->width,
                          sizeof(float));
  tarn__tally_init(tally, tally->width);
}

// A table much too large would take long to clear each time.
void tarn__tally_clear(tarn__embedding_tally *tally) {
  drop_counts(tally);
  if (tally->used * 16 < room_of(tally)) drop_entries(tally);
  if (tally->entries != NULL) {
    memset(tally->entries, 0xff, room_of(tally) * sizeof *tally->entries);
  }
  tally->used = 0;
  tally->made = 0;
  tally->idle = TARN__NO_SUM;
}

// --- entries ---------------------------------------------------------------

static size_t home_of(const tarn__embedding_tally *tally, uint32_t row) {
  return (size_t)((row * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - tally->bits));
}

// The entry of |row|, or the unused one where it is to be.
static tarn__embedding_tally_entry *find(const tarn__embedding_tally *tally,
                                         uint32_t row) {
  size_t mask = room_of(tally) - 1;
  size_t at = home_of(tally, row);
  while (tally->entries[at].row != row &&
         tally->entries[at].row != TARN__NO_ROW)
    at = (at + 1) & mask;
  return &tally->entries[at];
}

static tarn_status grow(tarn__embedding_tally *tally) {
  tarn__embedding_tally grown = *tally;
  size_t room = room_of(tally);
  grown.bits = room == 0 ? LEAST_BITS : tally->bits + 1;
  size_t more = (size_t)1 << grown.bits;
  grown.entries = tarn__host_array(more, sizeof *grown.entries);
  if (grown.entries == NULL) return TARN_E_NOMEM;
  memset(grown.entries, 0xff, more * sizeof *grown.entries);
  for (size_t i = 0; i < room; i++) {
    const tarn__embedding_tally_entry *entry = &tally->entries[i];
    if (entry->row != TARN__NO_ROW) *find(&grown, entry->row) = *entry;
  }
  drop_entries(tally);
  tally->entries = grown.entries;
  tally->bits = grown.bits;
  return TARN_OK;
}

// Always inline: gcc drops calls of what only prefetches.
static inline __attribute__((always_inline)) void fetch(
    const tarn__embedding_tally *tally, const tarn__whole_arrival *arrivals,
    size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint32_t row = (uint32_t)arrivals[i].row;
    __builtin_prefetch(&tally->entries[home_of(tally, row)], 1);
  }
}

static void count_some(tarn__embedding_tally *tally,
                       const tarn__whole_arrival *arrivals, size_t count) {
  fetch(tally, arrivals, count);
  for (size_t i = 0; i < count; i++) {
    uint32_t row = (uint32_t)arrivals[i].row;
    tarn__embedding_tally_entry *entry = find(tally, row);
    if (entry->row == TARN__NO_ROW) {
      *entry = (tarn__embedding_tally_entry){.row = row, .sum = TARN__NO_SUM};
      tally->used++;
    }
    entry->left++;
  }
}

tarn_status tarn__tally_count(tarn__embedding_tally *tally,
                              const tarn__whole_arrival *arrivals,
                              size_t count) {
  for (size_t i = 0; i < count; i += AHEAD) {
    size_t some = tarn__lesser(count - i, AHEAD);
    while (2 * (tally->used + some) > room_of(tally))
      TARN__TRY(grow(tally));
    count_some(tally, arrivals + i, some);
  }
  return TARN_OK;
}

// --- once more -------------------------------------------------------------

tarn_status tarn__tally_keep(tarn__embedding_tally *tally) {
  size_t room = room_of(tally);
  if (room == 0) return TARN_OK;
  tally->counts = tarn__host_array(room, sizeof *tally->counts);
  if (tally->counts == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < room; i++)
    tally->counts[i] = tally->entries[i].left;
  return TARN_OK;
}

void tarn__tally_again(tarn__embedding_tally *tally) {
  for (size_t i = 0; i < room_of(tally); i++)
    tally->entries[i].left = tally->counts[i];
}

// --- sums ------------------------------------------------------------------

static float *sum_at(const tarn__embedding_tally *tally, uint32_t sum) {
  uint32_t first = sum / SUMS + 1;  // of all blocks before: 0, 1, 3, 7, ...
  unsigned block = 31 - (unsigned)__builtin_clz(first);
  size_t at = sum - (sums_of(block) - SUMS);
  return tally->sums[block] + at * tally->width;
}

static tarn_status make_block(tarn__embedding_tally *tally) {
  size_t count = sums_of(tally->blocks) * tally->width;
  float *block = tarn__host_array(count, sizeof *block);
  if (block == NULL) return TARN_E_NOMEM;
  tally->sums[tally->blocks++] = block;
  return TARN_OK;
}

static tarn_status take_sum(tarn__embedding_tally *tally, uint32_t *out_sum) {
  if (tally->idle != TARN__NO_SUM) {
    *out_sum = tally->idle;
    memcpy(&tally->idle, sum_at(tally, *out_sum), sizeof tally->idle);
    return TARN_OK;
  }
  if (tally->made == sums_of(tally->blocks) - SUMS) {
    TARN__TRY(make_block(tally));
  }
  *out_sum = tally->made++;
  return TARN_OK;
}

static void give_sum(tarn__embedding_tally *tally, uint32_t sum) {
  memcpy(sum_at(tally, sum), &tally->idle, sizeof tally->idle);
  tally->idle = sum;
}

// --- gradients -------------------------------------------------------------

static bool is_usable(tarn_dtype dtype, const void *values) {
  return dtype == TARN_DTYPE_F32 && (uintptr_t)values % _Alignof(float) == 0;
}

static tarn_status add_one(tarn__embedding_tally *tally,
                           tarn__embedding_tally_entry *entry, tarn_dtype dtype,
                           const void *values, size_t width,
                           const float **out_sum) {
  bool first = entry->sum == TARN__NO_SUM;
  *out_sum = values;
  if (first && entry->left == 1 && is_usable(dtype, values)) return TARN_OK;
  if (first) TARN__TRY(take_sum(tally, &entry->sum));
  float *sum = sum_at(tally, entry->sum);
  *out_sum = sum;
  if (first) {
    tarn__convert(TARN_DTYPE_F32, sum, dtype, values, width);
  } else {
    tarn__convert_add(TARN_DTYPE_F32, sum, dtype, values, width);
  }
  return TARN_OK;
}

tarn_status tarn__tally_add(tarn__embedding_tally *tally,
                            const tarn__whole_arrival *arrivals, size_t count,
                            tarn_dtype dtype, size_t width,
                            tarn__embedding_tally_ready *out,
                            size_t *out_count) {
  *out_count = 0;
  if (room_of(tally) > 0) fetch(tally, arrivals, count);
  for (size_t i = 0; i < count; i++) {
    uint32_t row = (uint32_t)arrivals[i].row;
    tarn__embedding_tally_entry *entry =
        room_of(tally) > 0 ? find(tally, row) : NULL;
    if (entry == NULL || entry->row == TARN__NO_ROW || entry->left == 0) {
      return tarn__fail(TARN_E_CORRUPT,
                        "embedding: a gradient came for row %u of this rank's "
                        "part that no rank has announced",
                        (unsigned)row);
    }
    const float *sum = NULL;
    TARN__TRY(add_one(tally, entry, dtype, arrivals[i].values, width, &sum));
    if (--entry->left == 0)
      out[(*out_count)++] = (tarn__embedding_tally_ready){entry, sum};
  }
  return TARN_OK;
}

void tarn__tally_done(tarn__embedding_tally *tally,
                      const tarn__embedding_tally_ready *ready, size_t count) {
  for (size_t i = 0; i < count; i++) {
    tarn__embedding_tally_entry *entry = ready[i].entry;
    if (entry->sum == TARN__NO_SUM) continue;
    give_sum(tally, entry->sum);
    entry->sum = TARN__NO_SUM;
  }
}
