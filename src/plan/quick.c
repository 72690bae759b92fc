// A few ways, each in a row or in a tree, whichever is likely to be quicker.
//
// The orders by size, by area and by length do well where a step of a program
// is small; classes of lengths do where it is large.
#include "plan/quick.h"

#include <string.h>

#include "base/hostmem.h"
#include "plan/placed.h"
#include "plan/row.h"
#include "plan/sort_keys.h"

// To go past one that lies in a row costs so much less than to look at one that
// is live in a tree, as measured.
enum { ROW_AGAINST_TREE = 10 };

typedef struct quick {
  const tarn__plan_instance *in;
  tarn__plan_sort_keys keys;
  tarn__plan_row row;
  tarn__plan_placed placed;
  bool in_row;
  uint64_t *trial;  // offsets by item
  uint64_t *best;   // the caller's
  uint64_t height;
} quick;

// --- in a row, or in a tree? -------------------------------------------------

// The sum, over all items, of how many others are there when one begins; 0 if
// there is no memory to find out.
static uint64_t count_meetings(const tarn__plan_instance *in) {
  size_t room = in->section_count + 1;
  uint64_t meetings = 0;
  uint32_t *live = tarn__host_array(room, sizeof *live);
  if (live == NULL) return 0;
  for (size_t i = 0; i < in->item_count; i++) {
    live[in->items[i].first]++;
    live[in->items[i].last]--;
  }
  for (size_t i = 1; i < room; i++)
    live[i] += live[i - 1];
  for (size_t i = 0; i < in->item_count; i++)
    meetings += live[in->items[i].first];
  tarn__host_free_array(live, room, sizeof *live);
  return meetings;
}

static bool suits_row(const tarn__plan_instance *in) {
  uint64_t count = in->item_count;
  return count * count <= ROW_AGAINST_TREE * count_meetings(in);
}

// --- one way -----------------------------------------------------------------

static tarn_status put(quick *q, uint32_t index) {
  const tarn__plan_item *item = &q->in->items[index];
  if (q->in_row) {
    q->trial[index] = tarn__plan_row_put(&q->row, index);
    return TARN_OK;
  }
  q->trial[index] = tarn__plan_placed_lowest(&q->placed, item, 0);
  return tarn__plan_placed_add(&q->placed, item, q->trial[index]);
}

static tarn_status put_fixed(quick *q) {
  tarn_status status = TARN_OK;
  q->row.count = 0;
  if (!q->in_row) tarn__plan_placed_clear(&q->placed);
  for (uint32_t i = 0; i < q->in->item_count && status == TARN_OK; i++) {
    const tarn__plan_item *item = &q->in->items[i];
    if (!item->fixed) continue;
    q->trial[i] = item->offset;
    if (q->in_row) {
      tarn__plan_row_put_at(&q->row, i, item->offset);
    } else {
      status = tarn__plan_placed_add(&q->placed, item, item->offset);
    }
  }
  return status;
}

static tarn_status try_key(quick *q, tarn__plan_sort_key by) {
  tarn__plan_sort_keys_order(&q->keys, by);
  tarn_status status = put_fixed(q);
  for (size_t i = 0; i < q->in->item_count && status == TARN_OK; i++) {
    uint32_t index = q->keys.order[i].item;
    if (q->in->items[index].fixed) continue;
    status = put(q, index);
    if (q->trial[index] + q->in->items[index].size >= q->height) return status;
  }
  if (status != TARN_OK) return status;
  uint64_t height = tarn__plan_instance_height(q->in, q->trial);
  if (height >= q->height) return TARN_OK;
  memcpy(q->best, q->trial, q->in->item_count * sizeof *q->best);
  q->height = height;
  return TARN_OK;
}

// --- the whole ---------------------------------------------------------------

static tarn_status prepare(quick *q) {
  q->in_row = suits_row(q->in);
  q->trial = tarn__host_array(q->in->item_count, sizeof *q->trial);
  if (q->trial == NULL) return TARN_E_NOMEM;
  tarn_status status = tarn__plan_sort_keys_make(q->in, &q->keys);
  if (status != TARN_OK) return status;
  return q->in_row ? tarn__plan_row_make(q->in, &q->row)
                   : tarn__plan_placed_make(q->in, &q->placed);
}

static void discard(quick *q) {
  tarn__plan_row_free(&q->row);
  tarn__plan_placed_free(&q->placed);
  tarn__plan_sort_keys_free(&q->keys);
  tarn__host_free_array(q->trial, q->in->item_count, sizeof *q->trial);
}

tarn_status tarn__plan_quick(const tarn__plan_instance *in,
                             uint64_t *out_offsets, uint64_t *out_height) {
  static const tarn__plan_sort_key ways[] = {
      TARN__PLAN_LARGEST, TARN__PLAN_BEGIN_IN_16, TARN__PLAN_WIDEST,
      TARN__PLAN_LONGEST};
  quick q = {.in = in, .best = out_offsets, .height = UINT64_MAX};
  *out_height = 0;
  if (in->item_count == 0) return TARN_OK;
  tarn_status status = prepare(&q);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    if (status != TARN_OK || q.height <= in->bound) break;
    status = try_key(&q, ways[i]);
  }
  discard(&q);
  if (status == TARN_OK) *out_height = q.height;
  return status;
}
