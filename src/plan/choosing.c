// What there is, what is welcome, and what is known of all choices.
#include "plan/choosing.h"

#include <string.h>

// --- how far it is -----------------------------------------------------------

bool tarn__plan_wants_lowest(const tarn__plan_choosing *s) {
  return s->set->minimise || s->set->capacity == 0;
}

// The most that a plan may be high to be welcome.
uint64_t tarn__plan_welcome(const tarn__plan_choosing *s) {
  uint64_t capacity = s->set->capacity == 0 ? UINT64_MAX : s->set->capacity;
  return s->height - 1 < capacity ? s->height - 1 : capacity;
}

bool tarn__plan_is_done(const tarn__plan_choosing *s) {
  uint64_t capacity = s->set->capacity == 0 ? UINT64_MAX : s->set->capacity;
  uint64_t goal = tarn__plan_wants_lowest(s) ? s->bound : capacity;
  return s->height <= goal || s->bound > capacity;
}

bool tarn__plan_is_over(const tarn__plan_choosing *s) {
  return s->call->nodes >= s->node_end || tarn__plan_call_over(s->call);
}

void tarn__plan_raise_bound(tarn__plan_choosing *s, uint64_t bound) {
  if (s->bound < bound) s->bound = bound;
  if (s->set->is_whole && s->call->bound < s->bound) {
    s->call->bound = s->bound;
  }
}

// |s->tried| is a plan of |in|, whose pairs are merged as they are now.
void tarn__plan_take(tarn__plan_choosing *s, const tarn__plan_instance *in,
                     uint64_t height) {
  if (height >= s->height) return;
  s->height = height;
  if (s->set->is_whole && height < s->call->height) s->call->height = height;
  for (size_t i = 0; i < in->buffer_count; i++) {
    uint32_t item = in->item_of[i];
    if (item != TARN__PLAN_NO_ITEM) {
      s->offsets[i] = s->tried[item] * in->unit;
    }
  }
  memcpy(s->merged, s->pairs.merged, s->set->problem->pair_count);
}

// --- decisions as they are ---------------------------------------------------

tarn_status tarn__plan_make_decided(const tarn__plan_choosing *s,
                                    tarn__plan_instance *out) {
  tarn__plan_choice choice = {.left_out = s->set->left_out,
                              .merged = s->pairs.merged};
  return tarn__plan_instance_make(s->set->problem, &choice, out);
}

// All of the share, or no more than |limit| (0: all) for one instance.
uint64_t tarn__plan_nodes_for(const tarn__plan_choosing *s, uint64_t limit) {
  if (s->node_end == UINT64_MAX) return limit;
  uint64_t left =
      s->call->nodes < s->node_end ? s->node_end - s->call->nodes : 1;
  return limit == 0 || left < limit ? left : limit;
}

tarn_status tarn__plan_solve_decided(tarn__plan_choosing *s,
                                     const tarn__plan_instance *in,
                                     uint64_t limit) {
  tarn__plan_try share = {.capacity = tarn__plan_welcome(s) / in->unit,
                          .minimise = tarn__plan_wants_lowest(s),
                          .node_limit = tarn__plan_nodes_for(s, limit),
                          .is_plan = s->set->is_whole};
  tarn__plan_found found = {.height = UINT64_MAX};
  tarn_status status =
      tarn__plan_call_solve(s->call, in, &share, s->tried, &found);
  if (status == TARN_OK && found.height != UINT64_MAX) {
    tarn__plan_take(s, in, found.height * in->unit);
  }
  return status;
}

tarn_status tarn__plan_try_decided(tarn__plan_choosing *s, uint64_t limit) {
  tarn__plan_instance in;
  tarn_status status = tarn__plan_make_decided(s, &in);
  if (status != TARN_OK) return status;
  status = tarn__plan_solve_decided(s, &in, limit);
  tarn__plan_instance_free(&in);
  return status;
}
