// A round: the net's steps in order of time, once.
//
// Slots are in order of their first time, and |by_last| in order of their last,
// so that a step visits only the slots that begin or end:
//
//   slots    ├──0──┤  ├───2──┤        next_to_begin ─► the first not begun
//              ├───1────┤  ├──3──┤    next_to_end   ─► the first not ended
//                          ^ now
//
// A slot that begins and ends between two entered steps is never resumed.
#include <assert.h>

#include "base/status.h"
#include "model/placed.h"
#include "model/slots.h"

static tarn_status check_step(const tarn_step *step, tarn_pass pass) {
  if (step == NULL) return tarn__fail(TARN_E_INVALID, "enter: no step");
  const tarn_model *model = step->model;
  TARN__TRY(tarn__model_check(model));
  if (pass != TARN_FORWARD && pass != TARN_BACKWARD) {
    return tarn__fail(TARN_E_INVALID, "step '%s': no pass %d", step->name,
                      (int)pass);
  }
  if (model->placed == NULL) {
    return tarn__fail(TARN_E_STATE, "%s: it is not placed", model->name);
  }
  if (pass == TARN_BACKWARD && model->slots->options.mode != TARN_TRAIN) {
    return tarn__fail(TARN_E_STATE,
                      "step '%s': the plan is for inference and has no "
                      "backward pass",
                      step->name);
  }
  return TARN_OK;
}

// --- looking ahead ---------------------------------------------------------
// Checks and waits that can fail come before the first change.

// The change of entering a step or leaving the round.
typedef struct change {
  uint64_t time;    // the new time; TARN__NO_TIME: the round ends
  bool ends_all;    // the round ends; another may begin
  size_t end_to;    // slots of |by_last| below this index end
  size_t begin_at;  // the first slot that may begin
} change;

static bool ends(const tarn__model_placed *placed, const change *c,
                 size_t slot) {
  return c->ends_all || tarn__slot_at(placed->slots, slot)->last < c->time;
}

// Checks that all ending slots are idle, before the first is suspended.
static tarn_status find_ended(const tarn__model_placed *placed, change *c) {
  size_t count = placed->slots->slots.count;
  for (c->end_to = placed->next_to_end; c->end_to < count; c->end_to++) {
    size_t slot = placed->by_last[c->end_to].slot;
    if (!ends(placed, c, slot)) break;
    if (!placed->active[slot]) continue;
    const tarn__model_placement *made = &placed->made[slot];
    TARN__TRY(tarn__model_check_buffer(made->buffer, made->tensor->shown.name,
                                       false));
  }
  return TARN_OK;
}

// |slot| waits for the work still queued on |predecessor|'s bytes.
static tarn_status follow(const tarn__model_placed *placed, size_t slot,
                          size_t predecessor) {
  return tarn_synced_follow(placed->made[slot].buffer,
                            placed->made[predecessor].buffer);
}

static tarn_status follow_predecessors(const tarn__model_placed *placed,
                                       size_t slot) {
  const size_t *predecessors = placed->predecessors.items;
  for (size_t i = placed->predecessor_starts[slot];
       i < placed->predecessor_starts[slot + 1]; i++) {
    TARN__TRY(follow(placed, slot, predecessors[i]));
  }
  return TARN_OK;
}

// Lets each beginning slot follow its predecessors. Slots that would already be
// over are skipped.
static tarn_status follow_all(const tarn__model_placed *placed,
                              const change *c) {
  size_t count = placed->slots->slots.count;
  if (c->time == TARN__NO_TIME) return TARN_OK;
  for (size_t i = c->begin_at; i < count; i++) {
    const tarn__model_slot *slot = tarn__slot_at(placed->slots, i);
    if (slot->first > c->time) break;
    if (slot->last < c->time) continue;
    TARN__TRY(follow_predecessors(placed, i));
  }
  return TARN_OK;
}

// A slot that took the place of |slot|, and was used beside it, follows it.
static tarn_status hand_over(const tarn__model_placed *placed, const change *c,
                             size_t slot) {
  const size_t *takers = placed->predecessors.items;
  for (size_t i = placed->predecessor_starts[slot];
       i < placed->predecessor_starts[slot + 1]; i++) {
    size_t taker = takers[i];
    if (!placed->active[taker] || ends(placed, c, taker)) continue;
    TARN__TRY(follow(placed, taker, slot));
  }
  return TARN_OK;
}

static tarn_status hand_all_over(const tarn__model_placed *placed,
                                 const change *c) {
  if (c->ends_all) return TARN_OK;
  for (size_t i = placed->next_to_end; i < c->end_to; i++) {
    size_t slot = placed->by_last[i].slot;
    if (!placed->active[slot]) continue;
    TARN__TRY(hand_over(placed, c, slot));
  }
  return TARN_OK;
}

static tarn_status look_ahead(tarn_model *model, change *c) {
  const tarn__model_placed *placed = model->placed;
  uint64_t time = c->ends_all ? TARN__NO_TIME : c->time;
  c->begin_at = c->ends_all ? 0 : placed->next_to_begin;
  TARN__TRY(find_ended(placed, c));
  TARN__TRY(tarn__caches_check_idle(model, time));
  TARN__TRY(hand_all_over(placed, c));
  return follow_all(placed, c);
}

// --- changing --------------------------------------------------------------
// Fails only if another thread has begun an access meanwhile. The next call
// then continues.

static tarn_status end_slots(tarn__model_placed *placed, const change *c) {
  for (; placed->next_to_end < c->end_to; placed->next_to_end++) {
    size_t slot = placed->by_last[placed->next_to_end].slot;
    if (!placed->active[slot]) continue;
    TARN__TRY(
        tarn_synced_suspend(placed->made[slot].buffer, tarn__not_its_turn));
    placed->active[slot] = false;
  }
  return TARN_OK;
}

static tarn_status begin_slots(tarn__model_placed *placed, uint64_t time) {
  size_t count = placed->slots->slots.count;
  for (; placed->next_to_begin < count; placed->next_to_begin++) {
    size_t i = placed->next_to_begin;
    const tarn__model_slot *slot = tarn__slot_at(placed->slots, i);
    if (slot->first > time) break;
    if (slot->last < time) continue;
    TARN__TRY(tarn_synced_resume(placed->made[i].buffer));
    placed->active[i] = true;
  }
  return TARN_OK;
}

static void end_round(tarn_model *model) {
  tarn__model_placed *placed = model->placed;
  tarn__caches_empty(model);
  placed->now = TARN__NO_TIME;
  placed->next_to_begin = placed->next_to_end = 0;
}

static tarn_status make(tarn_model *model, change c) {
  tarn__model_placed *placed = model->placed;
  TARN__TRY(look_ahead(model, &c));
  TARN__TRY(end_slots(placed, &c));
  TARN__TRY(tarn__caches_end(model, c.ends_all ? TARN__NO_TIME : c.time));
  if (c.ends_all) end_round(model);
  if (c.time == TARN__NO_TIME) return TARN_OK;
  TARN__TRY(begin_slots(placed, c.time));
  placed->now = c.time;
  return TARN_OK;
}

// --- the calls -------------------------------------------------------------

tarn_status tarn_model_enter(tarn_step *step, tarn_pass pass) {
  TARN__TRY(check_step(step, pass));
  assert(step != NULL);
  tarn_model *model = step->model;
  uint64_t now = model->placed->now;
  uint64_t time = tarn__time_of(model, step->index, pass);
  bool begins = time == 0;
  if (!begins && now != TARN__NO_TIME && time < now) {
    return tarn__fail(TARN_E_STATE,
                      "step '%s' %s: a step back in time; a round begins with "
                      "the first step forward",
                      step->name,
                      pass == TARN_FORWARD ? "forward" : "backward");
  }
  return make(model, (change){.time = time, .ends_all = begins});
}

tarn_status tarn_model_leave(tarn_model *model) {
  tarn_status status = tarn__model_check(model);
  if (status != TARN_OK || model->placed == NULL) return status;
  return make(model, (change){.time = TARN__NO_TIME, .ends_all = true});
}
