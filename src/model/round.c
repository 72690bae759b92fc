// A round: the net's steps in the order of time, once.
//
// Slots stand in order of their first time, and |by_last| in order of their
// last, so that each step walks over those that begin or end and no others:
//
//   slots    ├──0──┤  ├───2──┤        next_to_begin ─► the first not begun
//              ├───1────┤  ├──3──┤    next_to_end   ─► the first not ended
//                          ^ now
//
// One that would begin and end between two steps that are entered is passed
// over: it is never resumed.
#include "base/status.h"
#include "model/placed.h"
#include "model/slots.h"

static tarn_status check_step(const tarn_step *step, tarn_pass pass) {
  if (step == NULL) return tarn__fail(TARN_E_INVALID, "enter: no step");
  const tarn_model *model = step->model;
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

// --- ending ----------------------------------------------------------------

static tarn_status check_slot(const tarn__placed *placed, size_t slot) {
  if (!placed->active[slot]) return TARN_OK;
  tarn_synced_info info = {.struct_size = sizeof info};
  tarn_status status = tarn_synced_query(placed->made[slot].buffer, 0, TARN_ALL,
                                         TARN_HOST, &info);
  if (status != TARN_OK) return status;
  if (info.readers == 0 && info.writers == 0) return TARN_OK;
  return tarn__fail(TARN_E_STATE,
                    "'%s': an access is open, and its lifetime is over",
                    placed->made[slot].tensor->shown.name);
}

// How far |by_last| goes of slots that end before |time|. All of them must be
// idle before the first is suspended.
static tarn_status find_ended(const tarn__placed *placed, uint64_t time,
                              size_t *out_end) {
  size_t count = placed->slots->slots.count;
  size_t i = placed->next_to_end;
  for (; i < count; i++) {
    size_t slot = placed->by_last[i];
    if (tarn__slot_at(placed->slots, slot)->last >= time) break;
    tarn_status status = check_slot(placed, slot);
    if (status != TARN_OK) return status;
  }
  *out_end = i;
  return TARN_OK;
}

static tarn_status suspend(tarn__placed *placed, size_t slot) {
  if (!placed->active[slot]) return TARN_OK;
  tarn_status status =
      tarn_synced_suspend(placed->made[slot].buffer, tarn__not_its_turn);
  if (status == TARN_OK) placed->active[slot] = false;
  return status;
}

static tarn_status end_slots(tarn__placed *placed, uint64_t time) {
  size_t end = 0;
  tarn_status status = find_ended(placed, time, &end);
  if (status != TARN_OK) return status;
  for (; placed->next_to_end < end; placed->next_to_end++) {
    status = suspend(placed, placed->by_last[placed->next_to_end]);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

// --- beginning -------------------------------------------------------------

// Whoever had the bytes before may still have work queued on them.
static tarn_status resume(tarn__placed *placed, size_t slot) {
  tarn_synced *buffer = placed->made[slot].buffer;
  for (size_t i = placed->former_starts[slot];
       i < placed->former_starts[slot + 1]; i++) {
    tarn_status status =
        tarn_synced_follow(buffer, placed->made[placed->formers[i]].buffer);
    if (status != TARN_OK) return status;
  }
  tarn_status status = tarn_synced_resume(buffer);
  if (status == TARN_OK) placed->active[slot] = true;
  return status;
}

static tarn_status begin_slots(tarn__placed *placed, uint64_t time) {
  size_t count = placed->slots->slots.count;
  for (; placed->next_to_begin < count; placed->next_to_begin++) {
    const tarn__slot *slot =
        tarn__slot_at(placed->slots, placed->next_to_begin);
    if (slot->first > time) break;
    if (slot->last < time) continue;
    tarn_status status = resume(placed, placed->next_to_begin);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

// --- the calls -------------------------------------------------------------

static tarn_status end_round(tarn_model *model) {
  tarn__placed *placed = model->placed;
  tarn_status status = end_slots(placed, TARN__NO_TIME);
  if (status != TARN_OK) return status;
  tarn__caches_empty(model);
  placed->now = TARN__NO_TIME;
  placed->next_to_begin = placed->next_to_end = 0;
  return TARN_OK;
}

static tarn_status move_to(tarn_model *model, const tarn_step *step,
                           tarn_pass pass) {
  tarn__placed *placed = model->placed;
  uint64_t time = tarn__time_of(model, step->index, pass);
  if (placed->now != TARN__NO_TIME && time < placed->now) {
    return tarn__fail(TARN_E_STATE,
                      "step '%s' %s: a step back in time; a round begins with "
                      "the first step forward",
                      step->name,
                      pass == TARN_FORWARD ? "forward" : "backward");
  }
  tarn_status status = end_slots(placed, time);
  if (status == TARN_OK) status = begin_slots(placed, time);
  if (status == TARN_OK) placed->now = time;
  return status;
}

tarn_status tarn_model_enter(tarn_model *model, tarn_step *step,
                             tarn_pass pass) {
  tarn_status status = tarn__model_check(model);
  if (status != TARN_OK) return status;
  status = check_step(step, pass);
  if (status != TARN_OK) return status;
  if (step->model != model) {
    return tarn__fail(TARN_E_INVALID, "step '%s' is of another model",
                      step->name);
  }
  bool begins = pass == TARN_FORWARD && step->index == 0;
  if (begins) status = end_round(model);
  if (status != TARN_OK) return status;
  return move_to(model, step, pass);
}

tarn_status tarn_model_leave(tarn_model *model) {
  tarn_status status = tarn__model_check(model);
  if (status != TARN_OK || model->placed == NULL) return status;
  return end_round(model);
}
