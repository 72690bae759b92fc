// Layout: the spans of the step as buffers of the planner. A span across the
// end of the step is needed from the beginning of the step and up to its end,
// with a gap between.
#include "pool/step_layout.h"

#include "base/hostmem.h"
#include "base/status.h"
#include "plan/quick.h"

typedef struct layout {
  tarn__pool_lifetime *spans;
  size_t count;
  uint64_t end;  // of the step: behind all events that spans name
  tarn_plan_buffer *buffers;
  tarn_plan_gap *gaps;
  tarn__plan_instance in;
  uint64_t *offsets;
} layout;

static bool prepare(layout *l) {
  l->buffers = tarn__host_array(l->count, sizeof *l->buffers);
  l->gaps = tarn__host_array(l->count, sizeof *l->gaps);
  l->offsets = tarn__host_array(l->count, sizeof *l->offsets);
  for (size_t i = 0; i < l->count; i++) {
    const tarn__pool_lifetime *span = &l->spans[i];
    uint64_t last = span->from > span->to ? span->from : span->to;
    if (l->end <= last) l->end = last + 1;
  }
  return l->buffers != NULL && l->gaps != NULL && l->offsets != NULL;
}

static void discard(layout *l) {
  tarn__host_free_array(l->buffers, l->count, sizeof *l->buffers);
  tarn__host_free_array(l->gaps, l->count, sizeof *l->gaps);
  tarn__host_free_array(l->offsets, l->count, sizeof *l->offsets);
  tarn__plan_instance_free(&l->in);
}

static void make_buffer(layout *l, size_t i) {
  const tarn__pool_lifetime *span = &l->spans[i];
  tarn_plan_buffer *b = &l->buffers[i];
  *b = (tarn_plan_buffer){.first = span->from,
                          .last = span->to,
                          .size = span->size,
                          .alignment = span->align};
  if (span->from < span->to) return;
  b->last = l->end;
  if (span->to == 0) return;
  b->first = 0;
  l->gaps[i] = (tarn_plan_gap){span->to, span->from};
  b->gaps = &l->gaps[i];
  b->gap_count = 1;
}

static tarn_status plan(layout *l, size_t *out_size) {
  tarn_plan_problem problem = {
      .struct_size = sizeof problem, .buffers = l->buffers, .count = l->count};
  uint64_t height = 0;
  for (size_t i = 0; i < l->count; i++)
    make_buffer(l, i);
  if (tarn__plan_problem_check(&problem) != TARN_OK) {
    return tarn__fail(TARN_FULL, "layout: %zu spans cannot be addressed",
                      l->count);
  }
  TARN__TRY(tarn__plan_instance_make(&problem, NULL, NULL, &l->in));
  TARN__TRY(tarn__plan_quick(&l->in, l->offsets, &height));
  for (size_t i = 0; i < l->count; i++) {
    l->spans[i].offset = (size_t)(l->offsets[l->in.item_of[i]] * l->in.unit);
  }
  *out_size = (size_t)(height * l->in.unit);
  return TARN_OK;
}

tarn_status tarn__step_offsets(tarn__pool_lifetime *spans, size_t count,
                               size_t *out_size) {
  layout l = {.spans = spans, .count = count};
  *out_size = 0;
  if (count == 0) return TARN_OK;
  tarn_status status = prepare(&l) ? plan(&l, out_size) : TARN_E_NOMEM;
  discard(&l);
  return status;
}
