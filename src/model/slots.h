// slots.h - the planned parts of a net: lifetimes and offsets.
//
// Time counts passes: forward step i of n is at time i, its backward pass at 2n
// - 1 - i. A slot lives from the first pass that writes it to the last that
// uses it, inclusive.
#ifndef TARN_MODEL_SLOTS_H_
#define TARN_MODEL_SLOTS_H_

#include "model/model.h"

typedef struct tarn__model_slot {
  tarn__model_tensor *tensor;  // a root
  tarn_part part;
  size_t size;  // at the largest batch; may be 0
  uint64_t first;
  uint64_t last;
  size_t offset;
} tarn__model_slot;

struct tarn__model_slots {
  tarn_model_plan_options options;  // with defaults filled in
  tarn_plan_options solver;         // |options.solver|
  tarn__budget *budget;             // the model's
  tarn__array slots;  // tarn__model_slot, in order of their first time
  tarn__array pairs;  // tarn_plan_pair of slots: candidates for in place
  size_t naive;
  size_t planned;
  size_t bound;
  tarn_plan_answer answer;
  size_t in_place;
  uint64_t peak;  // the time that needs most
};

static inline tarn__model_slot *tarn__slot_at(const tarn__model_slots *slots,
                                              size_t index) {
  return (tarn__model_slot *)slots->slots.items + index;
}

static inline uint64_t tarn__time_of(const tarn_model *model, size_t step,
                                     tarn_pass pass) {
  return pass == TARN_FORWARD ? step : 2 * model->steps.count - 1 - step;
}

// The step and pass at |time|.
static inline tarn_step *tarn__step_of_time(const tarn_model *model,
                                            uint64_t time,
                                            tarn_pass *out_pass) {
  size_t n = model->steps.count;
  *out_pass = time < n ? TARN_FORWARD : TARN_BACKWARD;
  return tarn__step_at(model, (size_t)(time < n ? time : 2 * n - 1 - time));
}

// Whether buffers treat |place| as the host: plain or pinned host memory.
static inline bool tarn__is_host(tarn_place place) {
  return place.kind == TARN_PLACE_HOST || tarn_place_equal(place, TARN_HOST);
}

// The options of a tensor's buffer. The compute device pins the host's memory,
// or home's device if there is none.
static inline tarn_synced_options tarn__slots_buffer_options(
    const tarn__model_slots *slots, const char *name) {
  tarn_device *device = slots->options.compute.device;
  if (device == NULL) device = slots->options.home.device;
  return (tarn_synced_options){.struct_size = sizeof(tarn_synced_options),
                               .name = name,
                               .device = device,
                               .align = slots->options.align};
}

// Finds all slots and pairs of |model| for |mode|, without offsets, and
// |naive|. Writes slot numbers into the tensors.
//
// TARN_E_INVALID  a step reads a part that no earlier step has written.
TARN_MUST_CHECK tarn_status tarn__slots_find(tarn_model *model,
                                             tarn_model_mode mode,
                                             tarn__model_slots **out_slots);

// As tarn__slots_find; finds |bound| and |peak| too.
//
// TARN_E_INVALID  as tarn__slots_find.
TARN_MUST_CHECK tarn_status tarn__slots_estimate(tarn_model *model,
                                                 tarn_model_mode mode,
                                                 tarn__model_slots **out_slots);

// As tarn__slots_estimate; finds offsets by |options| too. Keeps no pointer of
// |options| but its places.
//
// TARN_E_INVALID, TARN_FULL  as tarn_model_plan.
TARN_MUST_CHECK tarn_status
tarn__slots_plan(tarn_model *model, const tarn_model_plan_options *options,
                 tarn__model_slots **out_slots);

// NULL is allowed.
void tarn__slots_destroy(tarn__model_slots *slots);

#endif  // TARN_MODEL_SLOTS_H_
