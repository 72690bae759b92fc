// A hash table of rows with linear probing, at most half full, which numbers
// them as they come; and sums in blocks that do not move.
#include "embedding/tally.h"

#include <string.h>

#include "base/convert.h"
#include "base/hostmem.h"
#include "base/status.h"

enum {
  LEAST_BITS = 10,
  LEAST_ROOM = 512,
  SUMS = 64,    // of the first block
  AHEAD = 128,  // arrivals whose slots are fetched before one is looked at
};

// --- from the first to the last --------------------------------------------

static size_t slots_of(const tarn__embedding_tally *tally) {
  return tally->slots == NULL ? 0 : (size_t)1 << tally->bits;
}

static size_t sums_of(size_t block) {
  return (size_t)SUMS << block;
}

static void drop_slots(tarn__embedding_tally *tally) {
  tarn__host_free_array(tally->slots, slots_of(tally), sizeof *tally->slots);
  tally->slots = NULL;
  tally->bits = 0;
}

static void drop_rows(tarn__embedding_tally *tally) {
  tarn__host_free_array(tally->rows, tally->room, sizeof *tally->rows);
  tarn__host_free_array(tally->order, tally->order_room, sizeof *tally->order);
  tally->rows = NULL;
  tally->order = NULL;
  tally->room = tally->order_room = 0;
}

void tarn__tally_init(tarn__embedding_tally *tally, size_t width) {
  *tally = (tarn__embedding_tally){.width = width, .idle = TARN__NO_SUM};
}

void tarn__tally_deinit(tarn__embedding_tally *tally) {
  drop_slots(tally);
  drop_rows(tally);
  for (size_t i = 0; i < tally->blocks; i++)
    tarn__host_free_array(tally->sums[i], sums_of(i) * tally->width,
                          sizeof(float));
  tarn__tally_init(tally, tally->width);
}

// A table much too large would take long to clear each time.
void tarn__tally_clear(tarn__embedding_tally *tally) {
  if (tally->used * 16 < slots_of(tally)) {
    drop_slots(tally);
    drop_rows(tally);
  }
  if (tally->slots != NULL) {
    memset(tally->slots, 0xff, slots_of(tally) * sizeof *tally->slots);
  }
  tally->used = tally->counted = tally->added = 0;
  tally->made = 0;
  tally->idle = TARN__NO_SUM;
}

// --- counting --------------------------------------------------------------

static size_t home_of(const tarn__embedding_tally *tally, uint32_t row) {
  return (size_t)((row * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - tally->bits));
}

// The slot of |row|, or the unused one where it is to be.
static tarn__embedding_tally_slot *find(const tarn__embedding_tally *tally,
                                        uint32_t row) {
  size_t mask = slots_of(tally) - 1;
  size_t at = home_of(tally, row);
  while (tally->slots[at].row != row && tally->slots[at].row != TARN__NO_ROW)
    at = (at + 1) & mask;
  return &tally->slots[at];
}

static tarn_status grow_slots(tarn__embedding_tally *tally) {
  tarn__embedding_tally grown = *tally;
  grown.bits = tally->slots == NULL ? LEAST_BITS : tally->bits + 1;
  size_t count = (size_t)1 << grown.bits;
  grown.slots = tarn__host_array(count, sizeof *grown.slots);
  if (grown.slots == NULL) return TARN_E_NOMEM;
  memset(grown.slots, 0xff, count * sizeof *grown.slots);
  for (size_t i = 0; i < tally->used; i++) {
    uint32_t row = tally->rows[i].row;
    *find(&grown, row) = (tarn__embedding_tally_slot){row, (uint32_t)i};
  }
  drop_slots(tally);
  tally->slots = grown.slots;
  tally->bits = grown.bits;
  return TARN_OK;
}

// Room for |more| gradients, each of another row.
static tarn_status make_room(tarn__embedding_tally *tally, size_t more) {
  size_t rows = tally->used + more;
  size_t order = tally->counted + more;
  if (rows > tally->room) {
    void *grown = tarn__host_grow(tally->rows, &tally->room, rows, LEAST_ROOM,
                                  sizeof *tally->rows);
    if (grown == NULL) return TARN_E_NOMEM;
    tally->rows = grown;
  }
  if (order > tally->order_room) {
    void *grown = tarn__host_grow(tally->order, &tally->order_room, order,
                                  LEAST_ROOM, sizeof *tally->order);
    if (grown == NULL) return TARN_E_NOMEM;
    tally->order = grown;
  }
  while (2 * rows > slots_of(tally))
    TARN__TRY(grow_slots(tally));
  return TARN_OK;
}

// Always inline: gcc drops calls of what only prefetches.
static inline __attribute__((always_inline)) void fetch(
    const tarn__embedding_tally *tally, const tarn__whole_arrival *arrivals,
    size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint32_t row = (uint32_t)arrivals[i].row;
    __builtin_prefetch(&tally->slots[home_of(tally, row)], 1);
  }
}

static void count_some(tarn__embedding_tally *tally,
                       const tarn__whole_arrival *arrivals, size_t count) {
  fetch(tally, arrivals, count);
  for (size_t i = 0; i < count; i++) {
    uint32_t row = (uint32_t)arrivals[i].row;
    tarn__embedding_tally_slot *slot = find(tally, row);
    if (slot->row == TARN__NO_ROW) {
      *slot = (tarn__embedding_tally_slot){row, (uint32_t)tally->used};
      tally->rows[tally->used++] =
          (tarn__embedding_tally_row){.row = row, .sum = TARN__NO_SUM};
    }
    tally->rows[slot->number].left++;
    tally->order[tally->counted++] = slot->number;
  }
}

tarn_status tarn__tally_count(tarn__embedding_tally *tally,
                              const tarn__whole_arrival *arrivals,
                              size_t count) {
  for (size_t i = 0; i < count; i += AHEAD) {
    size_t some = tarn__lesser(count - i, AHEAD);
    TARN__TRY(make_room(tally, some));
    count_some(tally, arrivals + i, some);
  }
  return TARN_OK;
}

void tarn__tally_again(tarn__embedding_tally *tally) {
  for (size_t i = 0; i < tally->counted; i++)
    tally->rows[tally->order[i]].left++;
  tally->added = 0;
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
                           tarn__embedding_tally_row *entry, tarn_dtype dtype,
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

// The row of the next gradient; NULL: |row| was not to come now.
static tarn__embedding_tally_row *next_of(tarn__embedding_tally *tally,
                                          uint64_t row) {
  if (tally->added == tally->counted) return NULL;
  tarn__embedding_tally_row *next = &tally->rows[tally->order[tally->added++]];
  return next->row == row && next->left > 0 ? next : NULL;
}

tarn_status tarn__tally_add(tarn__embedding_tally *tally,
                            const tarn__whole_arrival *arrivals, size_t count,
                            tarn_dtype dtype, size_t width,
                            tarn__embedding_tally_ready *out,
                            size_t *out_count) {
  *out_count = 0;
  for (size_t i = 0; i < count; i++) {
    tarn__embedding_tally_row *row = next_of(tally, arrivals[i].row);
    if (row == NULL) {
      return tarn__fail(TARN_E_CORRUPT,
                        "embedding: gradient %zu is of row %llu of this rank's "
                        "part, which no rank has announced",
                        tally->added, (unsigned long long)arrivals[i].row);
    }
    const float *sum = NULL;
    TARN__TRY(add_one(tally, row, dtype, arrivals[i].values, width, &sum));
    if (--row->left == 0)
      out[(*out_count)++] = (tarn__embedding_tally_ready){row, sum};
  }
  return TARN_OK;
}

void tarn__tally_done(tarn__embedding_tally *tally,
                      const tarn__embedding_tally_ready *ready, size_t count) {
  for (size_t i = 0; i < count; i++) {
    tarn__embedding_tally_row *entry = ready[i].entry;
    if (entry->sum == TARN__NO_SUM) continue;
    give_sum(tally, entry->sum);
    entry->sum = TARN__NO_SUM;
  }
}
