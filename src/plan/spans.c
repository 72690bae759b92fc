// The stride is such that the lists of all marks together are no longer than a
// few times the number of items, however long the items live.
#include "plan/spans.h"

#include "base/hostmem.h"

enum { LISTED_PER_ITEM = 4 };

typedef tarn__plan_spans spans;

// --- by begin ----------------------------------------------------------------

static void list_items(spans *s) {
  const tarn__plan_instance *in = s->in;
  for (size_t i = 0; i < in->item_count; i++)
    s->begin[in->items[i].first]++;
  uint32_t sum = 0;
  for (size_t t = 0; t < in->section_count + 1; t++)
    s->begin[t] = sum += s->begin[t];
  for (size_t i = in->item_count; i-- > 0;)
    s->items[--s->begin[in->items[i].first]] = (uint32_t)i;
}

// --- marks -------------------------------------------------------------------

static void choose_stride(spans *s) {
  const tarn__plan_instance *in = s->in;
  uint64_t sections = 0;
  for (size_t i = 0; i < in->item_count; i++)
    sections += in->items[i].last - in->items[i].first;
  s->stride = (uint32_t)(sections / (LISTED_PER_ITEM * in->item_count + 1)) + 1;
  s->marks = (uint32_t)(in->section_count / s->stride) + 1;
}

// The marks that |item| crosses are [first, last).
static void marks_of(const spans *s, const tarn__plan_item *item,
                     uint32_t *first, uint32_t *last) {
  *first = item->first / s->stride + 1;
  *last = (item->last - 1) / s->stride + 1;
}

static void count_crossings(spans *s) {
  uint32_t sum = 0;
  for (size_t i = 0; i < s->in->item_count; i++) {
    uint32_t first, last;
    marks_of(s, &s->in->items[i], &first, &last);
    for (uint32_t m = first; m < last; m++)
      s->mark[m]++;
  }
  for (uint32_t m = 0; m <= s->marks; m++)
    s->mark[m] = sum += s->mark[m];
}

static void list_crossings(spans *s) {
  for (size_t i = s->in->item_count; i-- > 0;) {
    uint32_t first, last;
    marks_of(s, &s->in->items[i], &first, &last);
    for (uint32_t m = first; m < last; m++)
      s->across[--s->mark[m]] = (uint32_t)i;
  }
}

// --- the whole ---------------------------------------------------------------

tarn_status tarn__plan_spans_make(const tarn__plan_instance *in,
                                  tarn__plan_spans *out_spans) {
  spans *s = out_spans;
  *s = (spans){.in = in};
  choose_stride(s);
  s->begin = tarn__host_array(in->section_count + 1, sizeof *s->begin);
  s->items = tarn__host_array(in->item_count + 1, sizeof *s->items);
  s->mark = tarn__host_array((size_t)s->marks + 1, sizeof *s->mark);
  if (s->begin == NULL || s->items == NULL || s->mark == NULL) {
    return TARN_E_NOMEM;
  }
  list_items(s);
  count_crossings(s);
  s->across =
      tarn__host_array((size_t)s->mark[s->marks] + 1, sizeof *s->across);
  if (s->across == NULL) return TARN_E_NOMEM;
  list_crossings(s);
  return TARN_OK;
}

void tarn__plan_spans_free(tarn__plan_spans *s) {
  if (s->in == NULL) return;
  if (s->across != NULL) {
    tarn__host_free_array(s->across, (size_t)s->mark[s->marks] + 1,
                          sizeof *s->across);
  }
  tarn__host_free_array(s->begin, s->in->section_count + 1, sizeof *s->begin);
  tarn__host_free_array(s->items, s->in->item_count + 1, sizeof *s->items);
  tarn__host_free_array(s->mark, (size_t)s->marks + 1, sizeof *s->mark);
  *s = (spans){0};
}

size_t tarn__plan_spans_meet(const tarn__plan_spans *s, uint32_t first,
                             uint32_t last, uint32_t *out) {
  const tarn__plan_item *items = s->in->items;
  uint32_t mark = first / s->stride;
  size_t count = 0;
  for (uint32_t i = s->mark[mark]; i < s->mark[mark + 1]; i++) {
    if (items[s->across[i]].last > first) out[count++] = s->across[i];
  }
  for (uint32_t i = s->begin[(size_t)mark * s->stride]; i < s->begin[last];
       i++) {
    if (items[s->items[i]].last > first) out[count++] = s->items[i];
  }
  return count;
}

uint32_t tarn__plan_spans_count(const tarn__plan_spans *s,
                                const tarn__plan_item *item) {
  uint32_t mark = item->first / s->stride;
  return s->mark[mark + 1] - s->mark[mark] + s->begin[item->last] -
         s->begin[item->first];
}
