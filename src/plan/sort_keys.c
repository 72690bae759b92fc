// A key for each item, the same on all machines: no more than products,
// quotients and square roots of doubles, as C asks for them.
#include "plan/sort_keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"

// --- pressure ----------------------------------------------------------------

// The largest of |live| in the sections [first, last), in a tree of maxima that
// has section s at |sections| + s.
static uint64_t most_live(const uint64_t *tree, size_t sections, size_t first,
                          size_t last) {
  uint64_t most = 0;
  first += sections;
  last += sections;
  for (; first < last; first /= 2, last /= 2) {
    if (first % 2 == 1 && most < tree[first]) most = tree[first];
    if (last % 2 == 1 && most < tree[last - 1]) most = tree[last - 1];
    first += first % 2;
    last -= last % 2;
  }
  return most;
}

static tarn_status measure_pressure(tarn__plan_sort_keys *keys) {
  const tarn__plan_instance *in = keys->in;
  size_t sections = in->section_count;
  uint64_t *tree = tarn__host_array(2 * sections, sizeof *tree);
  if (tree == NULL) return TARN_E_NOMEM;
  memcpy(tree + sections, in->live, sections * sizeof *tree);
  for (size_t i = sections; i-- > 1;) {
    tree[i] = tree[2 * i] > tree[2 * i + 1] ? tree[2 * i] : tree[2 * i + 1];
  }
  for (size_t i = 0; i < in->item_count; i++) {
    const tarn__plan_item *item = &in->items[i];
    keys->pressure[i] = most_live(tree, sections, item->first, item->last);
  }
  tarn__host_free_array(tree, 2 * sections, sizeof *tree);
  return TARN_OK;
}

tarn_status tarn__plan_sort_keys_make(const tarn__plan_instance *in,
                                      tarn__plan_memory *memory,
                                      tarn__plan_sort_keys *keys) {
  size_t room = in->item_count + 1;
  *keys = (tarn__plan_sort_keys){.in = in};
  keys->order = tarn__plan_array(memory, room, sizeof *keys->order);
  keys->pressure = tarn__plan_array(memory, room, sizeof *keys->pressure);
  return memory->failed ? TARN_E_NOMEM : measure_pressure(keys);
}

// --- keys --------------------------------------------------------------------

static double sections_of(const tarn__plan_item *item) {
  return item->last - item->first;
}

// How often the sections of |item| can be divided by 2^|bits|.
static double class_of(const tarn__plan_item *item, int bits) {
  double times = 0;
  for (uint32_t rest = (item->last - item->first) >> bits; rest != 0;
       rest >>= bits) {
    times++;
  }
  return times;
}

static double key_of(const tarn__plan_sort_keys *keys, uint32_t index,
                     tarn__plan_sort_key by) {
  const tarn__plan_instance *in = keys->in;
  const tarn__plan_item *item = &in->items[index];
  double size = (double)item->size;
  double length = (double)item->length;
  double bound = (double)in->bound;
  // A class is a whole number; an earlier beginning or a later end adds less
  // than 1.
  double early = item->first / ((double)in->section_count + 1);
  double late = item->last / ((double)in->section_count + 1);
  switch (by) {
    case TARN__PLAN_BEGIN_IN_16:
      return class_of(item, 4) - early;
    case TARN__PLAN_END_IN_16:
      return class_of(item, 4) + late;
    case TARN__PLAN_BEGIN_IN_4:
      return class_of(item, 2) - early;
    case TARN__PLAN_END_IN_4:
      return class_of(item, 2) + late;
    case TARN__PLAN_LONGEST:
      return length;
    case TARN__PLAN_LARGEST:
      return size;
    case TARN__PLAN_WIDEST:
      return size * length;
    case TARN__PLAN_SPREAD:
      return sections_of(item) + size / (bound + 1);
    default:
      return (double)keys->pressure[index] / bound * 4294967296.0 +
             sections_of(item) / ((double)in->section_count + 1);
  }
}

// --- orders ------------------------------------------------------------------

static int by_key(const void *x, const void *y) {
  const tarn__plan_ranked *a = x;
  const tarn__plan_ranked *b = y;
  if (a->key != b->key) return a->key > b->key ? -1 : 1;
  if (a->next != b->next) return a->next < b->next ? -1 : 1;
  return (a->item > b->item) - (a->item < b->item);
}

static void set_key(tarn__plan_sort_keys *keys, size_t index, double key) {
  keys->order[index] = (tarn__plan_ranked){.key = key,
                                           .next = keys->in->items[index].first,
                                           .item = (uint32_t)index};
}

void tarn__plan_sort_keys_sort(tarn__plan_sort_keys *keys) {
  qsort(keys->order, keys->in->item_count, sizeof *keys->order, by_key);
}

void tarn__plan_sort_keys_order(tarn__plan_sort_keys *keys,
                                tarn__plan_sort_key by) {
  for (size_t i = 0; i < keys->in->item_count; i++)
    set_key(keys, i, key_of(keys, (uint32_t)i, by));
  tarn__plan_sort_keys_sort(keys);
}

// Square roots and products are the same on all machines; powers are not.
static double quarters(double base, int power) {
  double root = tarn__plan_root(tarn__plan_root(base));
  double product = 1;
  for (int i = 0; i < (power < 0 ? -power : power); i++)
    product *= root;
  return power < 0 ? 1 / product : product;
}

static double squares(double base, int times) {
  for (int i = 0; i < times; i++)
    base *= base;
  return times < 0 ? 1 : base;
}

static double key_by(const tarn__plan_sort_keys *keys, size_t index,
                     const tarn__plan_powers *powers) {
  const tarn__plan_item *item = &keys->in->items[index];
  double pressure = (double)keys->pressure[index] / (double)keys->in->bound;
  return quarters((double)item->size, powers->size) *
         quarters(sections_of(item), powers->length) *
         squares(pressure, powers->pressure);
}

void tarn__plan_sort_keys_mix(tarn__plan_sort_keys *keys,
                              tarn__plan_powers powers) {
  const tarn__plan_instance *in = keys->in;
  double most = powers.disorder * (double)in->section_count;
  for (size_t i = 0; i < in->item_count; i++) {
    uint64_t chance = tarn__plan_mix(powers.seed + tarn__plan_mix(i + 1));
    set_key(keys, i, key_by(keys, i, &powers));
    keys->order[i].next += most * ((double)(chance >> 11) / 9007199254740992.0);
  }
  tarn__plan_sort_keys_sort(keys);
}
