// Planning: turns slots into a problem of tarn/plan.h, and its answer into
// offsets.
//
// A slot of 0 bytes is planned as one of 1, since each buffer needs an offset.
#include <assert.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "model/slots.h"

enum {
  DEFAULT_ALIGN = 64,
  DEFAULT_NODES = 1000000,
};

// --- the problem -----------------------------------------------------------

static tarn_plan_buffer buffer_of(const tarn__model_slots *slots,
                                  size_t index) {
  const tarn__model_slot *slot = tarn__slot_at(slots, index);
  return (tarn_plan_buffer){.first = slot->first,
                            .last = slot->last + 1,
                            .size = slot->size == 0 ? 1 : slot->size,
                            .alignment = slots->options.align};
}

typedef tarn_status use_problem(tarn_model *model, tarn__model_slots *slots,
                                tarn_plan_problem *problem);

// Calls |use| with the problem, unless there are no slots.
static tarn_status with_problem(tarn_model *model, tarn__model_slots *slots,
                                use_problem *use) {
  size_t count = slots->slots.count;
  if (count == 0) return TARN_OK;
  tarn_plan_buffer *buffers = tarn__host_array(count, sizeof *buffers);
  if (buffers == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < count; i++)
    buffers[i] = buffer_of(slots, i);
  tarn_plan_problem problem = {.struct_size = sizeof problem,
                               .buffers = buffers,
                               .count = count,
                               .pairs = slots->pairs.items,
                               .pair_count = slots->pairs.count};
  tarn_status status = use(model, slots, &problem);
  tarn__host_free_array(buffers, count, sizeof *buffers);
  return status;
}

// --- what is needed when ---------------------------------------------------

// The bytes needed at a time, with both slots of each pair counted, and the
// bytes that pairs can save there, by their takers and by their givers.
typedef struct demand {
  size_t change;  // of the needed bytes
  size_t by_takers;
  size_t by_givers;
} demand;

// The most that a slot can save as taker and as giver of a pair.
typedef struct saving {
  size_t as_taker;
  size_t as_giver;
} saving;

static void raise_to(size_t *most, size_t size) {
  if (size > *most) *most = size;
}

static void add_pairs(const tarn__model_slots *slots, saving *savings) {
  const tarn_plan_pair *pairs = slots->pairs.items;
  for (size_t i = 0; i < slots->pairs.count; i++) {
    size_t size = tarn__lesser(tarn__slot_at(slots, pairs[i].giver)->size,
                               tarn__slot_at(slots, pairs[i].taker)->size);
    raise_to(&savings[pairs[i].taker].as_taker, size);
    raise_to(&savings[pairs[i].giver].as_giver, size);
  }
}

static void add_slots(const tarn__model_slots *slots, const saving *savings,
                      demand *times) {
  for (size_t i = 0; i < slots->slots.count; i++) {
    const tarn__model_slot *slot = tarn__slot_at(slots, i);
    times[slot->first].change += slot->size;
    times[slot->last + 1].change -= slot->size;  // modulo: sums stay above 0
    times[slot->first].by_takers += savings[i].as_taker;
    times[slot->last].by_givers += savings[i].as_giver;
  }
}

// The time at which most bytes are needed, with pairs sharing.
static uint64_t find_peak(const demand *times, size_t count) {
  size_t live = 0;
  size_t most = 0;
  uint64_t peak = 0;
  for (size_t t = 0; t < count; t++) {
    live += times[t].change;
    size_t needed = live - tarn__lesser(times[t].by_takers, times[t].by_givers);
    if (needed > most) {
      most = needed;
      peak = t;
    }
  }
  return peak;
}

static tarn_status set_peak(const tarn_model *model, tarn__model_slots *slots) {
  size_t count = 2 * model->steps.count + 1;
  demand *times = tarn__host_array(count, sizeof *times);
  saving *savings = tarn__host_array(slots->slots.count, sizeof *savings);
  bool has_both = times != NULL && savings != NULL;
  if (has_both) {
    add_pairs(slots, savings);
    add_slots(slots, savings, times);
    slots->peak = find_peak(times, count);
  }
  tarn__host_free_array(savings, slots->slots.count, sizeof *savings);
  tarn__host_free_array(times, count, sizeof *times);
  return has_both ? TARN_OK : TARN_E_NOMEM;
}

static tarn_status set_bound(tarn_model *model, tarn__model_slots *slots,
                             tarn_plan_problem *problem) {
  (void)model;
  uint64_t bound = 0;
  tarn_status status = tarn_plan_lower_bound(problem, &bound);
  slots->bound = (size_t)bound;
  return status;
}

tarn_status tarn__slots_estimate(tarn_model *model, tarn_model_mode mode,
                                 tarn__model_slots **out_slots) {
  TARN__TRY(tarn__slots_find(model, mode, out_slots));
  tarn_status status = set_peak(model, *out_slots);
  if (status == TARN_OK) status = with_problem(model, *out_slots, set_bound);
  if (status == TARN_OK) return TARN_OK;
  tarn__slots_destroy(*out_slots);
  *out_slots = NULL;
  return status;
}

// --- the plan --------------------------------------------------------------

static void take_offsets(tarn__model_slots *slots, const uint64_t *offsets) {
  for (size_t i = 0; i < slots->slots.count; i++)
    tarn__slot_at(slots, i)->offset = (size_t)offsets[i];
  const tarn_plan_pair *pairs = slots->pairs.items;
  for (size_t i = 0; i < slots->pairs.count; i++) {
    slots->in_place += offsets[pairs[i].giver] == offsets[pairs[i].taker];
  }
}

static tarn_status refuse(const tarn_model *model,
                          const tarn__model_slots *slots,
                          tarn_plan_answer answer) {
  tarn_pass pass = TARN_FORWARD;
  const tarn_step *step = tarn__step_of_time(model, slots->peak, &pass);
  return tarn__fail(
      TARN_FULL,
      "%s: %s plan for batch %lld within %zu bytes: at least %zu are needed, "
      "most of all by step '%s' %s",
      model->name,
      answer == TARN_PLAN_INFEASIBLE ? "there is no" : "no time to find a",
      (long long)model->max_batch, slots->options.capacity, slots->bound,
      step->name, pass == TARN_FORWARD ? "forward" : "backward");
}

// The solver's offsets are checked by independent code before use.
static tarn_status take_plan(tarn_model *model, tarn__model_slots *slots,
                             const tarn_plan_problem *problem,
                             const tarn_plan *plan) {
  tarn_plan_info info = {.struct_size = sizeof info};
  TARN__TRY(tarn_plan_query(plan, &info));
  const uint64_t *offsets = tarn_plan_offsets(plan);
  if (offsets == NULL) return refuse(model, slots, info.answer);
  uint64_t height = 0;
  TARN__TRY(tarn_plan_verify(problem, offsets, NULL, &height));
  slots->planned = (size_t)height;
  slots->answer = info.answer;
  if (info.lower_bound > slots->bound) slots->bound = (size_t)info.lower_bound;
  take_offsets(slots, offsets);
  return TARN_OK;
}

static tarn_status solve(tarn_model *model, tarn__model_slots *slots,
                         tarn_plan_problem *problem) {
  uint64_t capacity = slots->options.capacity;
  if (capacity != 0) {
    problem->capacities = &capacity;
    problem->arena_count = 1;
  }
  tarn_plan *plan = NULL;
  TARN__TRY(tarn_plan_solve(problem, &slots->solver, &plan));
  assert(plan != NULL);
  tarn_status status = take_plan(model, slots, problem, plan);
  tarn_plan_destroy(plan);
  return status;
}

static void take_options(tarn__model_slots *slots,
                         const tarn_model_plan_options *options) {
  slots->options = *options;
  slots->solver =
      options->solver != NULL
          ? *options->solver
          : (tarn_plan_options){.struct_size = sizeof(tarn_plan_options),
                                .node_limit = DEFAULT_NODES,
                                .minimise = true};
  slots->options.solver = &slots->solver;
}

// The caller's pointers are not valid after the call.
static void drop_pointers(tarn_plan_options *solver) {
  solver->previous = NULL;
  solver->previous_arenas = NULL;
  solver->progress = NULL;
  solver->user = NULL;
}

tarn_status tarn__slots_plan(tarn_model *model,
                             const tarn_model_plan_options *options,
                             tarn__model_slots **out_slots) {
  TARN__TRY(tarn__slots_estimate(model, options->mode, out_slots));
  tarn__model_slots *slots = *out_slots;
  take_options(slots, options);
  tarn_status status = with_problem(model, slots, solve);
  drop_pointers(&slots->solver);
  if (status == TARN_OK) return TARN_OK;
  tarn__slots_destroy(slots);
  *out_slots = NULL;
  return status;
}

// --- the calls -------------------------------------------------------------

// cpu:0 as the compute place of a home on a device is the host, in memory that
// the device pins.
static tarn_place compute_of(const tarn_model_plan_options *given) {
  bool names_cpu = given->compute.device != NULL &&
                   tarn_place_equal(given->compute, TARN_HOST);
  if (!names_cpu || tarn__is_host(given->home)) return given->compute;
  return (tarn_place){given->home.device, TARN_PLACE_HOST};
}

static tarn_status read_options(const tarn_model *model,
                                const tarn_model_plan_options *given,
                                tarn_model_plan_options *out) {
  *out = (tarn_model_plan_options){.align = DEFAULT_ALIGN};
  if (given == NULL) return TARN_OK;
  size_t known = 0;
  if (!tarn__struct_size(given->struct_size,
                         TARN__SIZE_UP_TO(tarn_model_plan_options, solver),
                         sizeof *given, &known)) {
    return tarn__fail(TARN_E_INVALID, "plan options: a struct_size of %zu",
                      given->struct_size);
  }
  *out = *given;
  out->compute = compute_of(given);
  if (out->align == 0) out->align = DEFAULT_ALIGN;
  if (given->mode != TARN_TRAIN && given->mode != TARN_INFER) {
    return tarn__fail(TARN_E_INVALID, "%s: no mode %d", model->name,
                      (int)given->mode);
  }
  if (tarn_is_power_of_two(out->align)) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "%s: an alignment of %zu is not a power of "
                    "two",
                    model->name, given->align);
}

tarn_status tarn_model_plan(tarn_model *model,
                            const tarn_model_plan_options *options) {
  TARN__TRY(tarn__model_check_open(model));
  tarn_model_plan_options wanted;
  TARN__TRY(read_options(model, options, &wanted));
  tarn__model_slots *slots = NULL;
  TARN__TRY(tarn__slots_plan(model, &wanted, &slots));
  model->slots = slots;
  return TARN_OK;
}

tarn_status tarn_model_forget(tarn_model *model) {
  tarn_status status = tarn__model_check(model);
  if (status != TARN_OK || model->slots == NULL) return status;
  if (model->placed != NULL) {
    return tarn__fail(TARN_E_STATE, "%s: it is placed; release it first",
                      model->name);
  }
  tarn__slots_destroy(model->slots);
  model->slots = NULL;
  return TARN_OK;
}

static size_t slot_of(const tarn_model *model, tarn_tensor *tensor,
                      tarn_part part) {
  if (tensor == NULL || tensor->model != model) return TARN__NO_SLOT;
  if (part != TARN_DATA && part != TARN_DIFF) return TARN__NO_SLOT;
  return tarn__tensor_root(tensor)->slots[part];
}

bool tarn_model_is_in_place(tarn_model *model, tarn_tensor *giver,
                            tarn_part giver_part, tarn_tensor *taker,
                            tarn_part taker_part) {
  if (tarn__model_check(model) != TARN_OK || model->slots == NULL) return false;
  const tarn__model_slots *slots = model->slots;
  size_t from = slot_of(model, giver, giver_part);
  size_t to = slot_of(model, taker, taker_part);
  const tarn_plan_pair *pairs = slots->pairs.items;
  for (size_t i = 0; i < slots->pairs.count; i++) {
    if (pairs[i].giver != from || pairs[i].taker != to) continue;
    return tarn__slot_at(slots, from)->offset ==
           tarn__slot_at(slots, to)->offset;
  }
  return false;
}

tarn_status tarn_model_each_slot(tarn_model *model,
                                 tarn_model_slot_visit *visit, void *context) {
  TARN__TRY(tarn__model_check(model));
  if (visit == NULL) return tarn__fail(TARN_E_INVALID, "slots: no function");
  if (model->slots == NULL) {
    return tarn__fail(TARN_E_STATE, "%s: it is not planned", model->name);
  }
  for (size_t i = 0; i < model->slots->slots.count; i++) {
    const tarn__model_slot *slot = tarn__slot_at(model->slots, i);
    tarn_model_slot shown = {.struct_size = sizeof shown,
                             .tensor = &slot->tensor->shown,
                             .part = slot->part,
                             .size = slot->size,
                             .offset = slot->offset,
                             .first = slot->first,
                             .last = slot->last};
    TARN__TRY(visit(context, &shown));
  }
  return TARN_OK;
}
