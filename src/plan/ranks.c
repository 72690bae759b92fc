// Items that are long, large, or under pressure go first: later ones find room
// more easily. The pressure of an item is the most that is live in any of its
// sections, of the items that are ranked.
//
// Keys are floating-point numbers, as areas exceed 64 bits. Products of two
// numbers are rounded the same way on all machines.
#include "plan/search.h"

#include <stdlib.h>

enum { LENGTH = 0, AREA, PRESSURE, KEYS };

static const int order_keys[TARN__PLAN_ORDERS][KEYS] = {
    [TARN__PLAN_BY_LENGTH] = {LENGTH, AREA, PRESSURE},
    [TARN__PLAN_BY_PRESSURE_AREA] = {PRESSURE, AREA, LENGTH},
    [TARN__PLAN_BY_PRESSURE] = {PRESSURE, LENGTH, AREA},
    [TARN__PLAN_BY_AREA] = {AREA, PRESSURE, LENGTH},
};

// At 0 an order is as it is; else each key is up to a tenth larger or smaller.
static double disturb(uint64_t seed, uint32_t item, double key) {
  if (seed == 0) return key;
  uint64_t chance = tarn__plan_mix(seed + tarn__plan_mix(item + 1));
  return key * (0.9 + 0.2 * ((double)(chance >> 11) / 9007199254740992.0));
}

static double pressure_of(const tarn__plan_instance *in, uint32_t item,
                          const uint64_t *totals) {
  uint64_t most = 0;
  TARN__PLAN_EACH_SECTION (in, item, piece, t) {
    if (most < totals[t]) most = totals[t];
  }
  return (double)most;
}

static int by_key(const void *x, const void *y) {
  const tarn__plan_rank_key *a = x;
  const tarn__plan_rank_key *b = y;
  for (int i = 0; i < KEYS; i++) {
    if (a->by[i] > b->by[i]) return -1;
    if (a->by[i] < b->by[i]) return 1;
  }
  return (a->item > b->item) - (a->item < b->item);
}

void tarn__plan_rank(const tarn__plan_instance *instance,
                     const tarn__plan_run *run, const uint64_t *totals,
                     const uint32_t *items, size_t count,
                     tarn__plan_rank_key *keys, uint32_t *ranks) {
  const int *use = order_keys[run->order];
  for (size_t i = 0; i < count; i++) {
    const tarn__plan_item *item = &instance->items[items[i]];
    double of[KEYS];
    of[LENGTH] = (double)item->length;
    of[AREA] = (double)item->length * (double)item->size;
    of[PRESSURE] = pressure_of(instance, items[i], totals);
    keys[i].item = items[i];
    for (int k = 0; k < KEYS; k++) {
      keys[i].by[k] = disturb(run->seed, items[i], of[use[k]]);
    }
  }
  qsort(keys, count, sizeof *keys, by_key);
  for (size_t i = 0; i < count; i++)
    ranks[keys[i].item] = (uint32_t)i;
}
