// Lifetimes, by one walk over all passes in order of time: from the first write
// of a part to its last use.
//
// Parts with a slot are the data of outputs that some pass writes and, for
// training, diffs of outputs, and caches. All other parts live as long as the
// model is placed.
#include "base/hostmem.h"
#include "base/status.h"
#include "model/slots.h"

typedef struct walk {
  tarn_model *model;
  tarn_model_mode mode;
  tarn__model_slots *slots;
  const tarn_step *step;
  tarn_pass pass;
  uint64_t time;
} walk;

// In place of a slot's number: some pass will write it.
#define TO_COME (TARN__NO_SLOT - 1)

// --- which parts are planned -----------------------------------------------

static void clear_slots(tarn_model *model) {
  for (tarn__model_tensor *t = NULL; (t = tarn__tensor_next(model, t));)
    t->slots[TARN_DATA] = t->slots[TARN_DIFF] = TARN__NO_SLOT;
}

static bool is_planned(const walk *w, const tarn__model_tensor *tensor,
                       tarn_part part) {
  tarn_tensor_kind kind = tensor->shown.kind;
  if (kind == TARN_OUTPUT) return part == TARN_DATA || w->mode == TARN_TRAIN;
  return kind == TARN_CACHE && w->mode == TARN_TRAIN;
}

// Parts that a plan for inference does not have.
static bool is_foreign(const walk *w, const tarn__model_tensor *tensor,
                       tarn_part part) {
  if (w->mode == TARN_TRAIN) return false;
  return part == TARN_DIFF || tensor->shown.kind == TARN_CACHE;
}

// --- one use ---------------------------------------------------------------

static tarn_status begin_slot(walk *w, tarn__model_tensor *tensor,
                              tarn_part part) {
  tarn__model_slots *slots = w->slots;
  const tarn__model_slot slot = {.tensor = tensor,
                                 .part = part,
                                 .size = tensor->shown.max_size,
                                 .first = w->time,
                                 .last = w->time};
  tensor->slots[part] = slots->slots.count;
  TARN__TRY(tarn__array_append(slots->budget, &slots->slots, &slot, 1));
  if (tarn_size_add(slots->naive, slot.size, &slots->naive)) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "%s: the sum of its tensors' sizes overflows",
                    w->model->name);
}

static tarn_status read_part(walk *w, tarn__model_tensor *tensor,
                             tarn_part part) {
  if (!is_planned(w, tensor, part)) return TARN_OK;
  size_t slot = tensor->slots[part];
  bool is_fed = slot == TARN__NO_SLOT && part == TARN_DATA;
  if (is_fed) return TARN_OK;
  if (slot == TARN__NO_SLOT || slot == TO_COME) {
    return tarn__fail(TARN_E_INVALID,
                      "%s: step '%s' reads the %s of '%s' %s, before any "
                      "step writes it",
                      w->model->name, w->step->name, tarn__part_name(part),
                      tensor->shown.name,
                      w->pass == TARN_FORWARD ? "forward" : "backward");
  }
  tarn__slot_at(w->slots, slot)->last = w->time;
  return TARN_OK;
}

static tarn_status write_part(walk *w, tarn__model_tensor *tensor,
                              tarn_part part) {
  if (!is_planned(w, tensor, part)) return TARN_OK;
  size_t slot = tensor->slots[part];
  if (slot == TO_COME) return begin_slot(w, tensor, part);
  tarn__slot_at(w->slots, slot)->last = w->time;
  return TARN_OK;
}

// --- all of them -----------------------------------------------------------

typedef tarn_status visit_use(walk *w, const tarn__model_step_use *use);

static tarn_status visit_pass(walk *w, visit_use *visit) {
  const tarn__model_step_use *uses = w->step->uses.items;
  for (size_t i = 0; i < w->step->uses.count; i++) {
    const tarn__model_step_use *use = &uses[i];
    if (use->pass != w->pass || is_foreign(w, use->tensor, use->part)) continue;
    TARN__TRY(visit(w, use));
  }
  return TARN_OK;
}

static tarn_status visit_all(walk *w, visit_use *visit) {
  size_t steps = w->model->steps.count;
  uint64_t end = w->mode == TARN_TRAIN ? 2 * (uint64_t)steps : steps;
  for (w->time = 0; w->time < end; w->time++) {
    w->step = tarn__step_of_time(w->model, w->time, &w->pass);
    TARN__TRY(visit_pass(w, visit));
  }
  return TARN_OK;
}

static tarn_status announce(walk *w, const tarn__model_step_use *use) {
  if (use->kind != TARN__READS && is_planned(w, use->tensor, use->part)) {
    use->tensor->slots[use->part] = TO_COME;
  }
  return TARN_OK;
}

static tarn_status live(walk *w, const tarn__model_step_use *use) {
  if (use->kind == TARN__READS) return read_part(w, use->tensor, use->part);
  if (use->kind == TARN__REPLACES) {
    TARN__TRY(read_part(w, use->giver, use->giver_part));
  }
  return write_part(w, use->tensor, use->part);
}

static bool has_slot(const tarn__model_tensor *tensor, tarn_part part) {
  return tensor->slots[part] != TARN__NO_SLOT;
}

// A part can take the place of another only if its first use is the last use of
// the other.
static tarn_status pair(walk *w, const tarn__model_step_use *use) {
  if (use->kind != TARN__REPLACES) return TARN_OK;
  if (!has_slot(use->giver, use->giver_part)) return TARN_OK;
  if (!has_slot(use->tensor, use->part)) return TARN_OK;
  tarn_plan_pair found = {.giver = use->giver->slots[use->giver_part],
                          .taker = use->tensor->slots[use->part]};
  const tarn__model_slot *giver = tarn__slot_at(w->slots, found.giver);
  const tarn__model_slot *taker = tarn__slot_at(w->slots, found.taker);
  bool fits = giver != taker && giver->last == w->time &&
              taker->first == w->time && giver->first < w->time;
  if (!fits) return TARN_OK;
  return tarn__array_append(w->slots->budget, &w->slots->pairs, &found, 1);
}

static tarn_status find(walk *w) {
  TARN__TRY(visit_all(w, announce));
  TARN__TRY(visit_all(w, live));
  return visit_all(w, pair);
}

tarn_status tarn__slots_find(tarn_model *model, tarn_model_mode mode,
                             tarn__model_slots **out_slots) {
  *out_slots = NULL;
  tarn__model_slots *slots = tarn__host_alloc(sizeof *slots);
  if (slots == NULL) return TARN_E_NOMEM;
  slots->budget = &model->budget;
  slots->options.mode = mode;
  slots->slots = TARN__ARRAY_OF(tarn__model_slot);
  slots->pairs = TARN__ARRAY_OF(tarn_plan_pair);
  clear_slots(model);
  walk w = {.model = model, .mode = mode, .slots = slots};
  tarn_status status = find(&w);
  if (status != TARN_OK) {
    clear_slots(model);
    tarn__slots_destroy(slots);
    return status;
  }
  *out_slots = slots;
  return TARN_OK;
}

void tarn__slots_destroy(tarn__model_slots *slots) {
  if (slots == NULL) return;
  tarn__array_free(slots->budget, &slots->slots);
  tarn__array_free(slots->budget, &slots->pairs);
  tarn__host_free(slots, sizeof *slots);
}
