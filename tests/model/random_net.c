#include "random_net.h"

#include <stdio.h>
#include <string.h>

#include "support/run.h"

// --- describing ------------------------------------------------------------

static rn_part *add_part(rn_net *net, tarn_tensor *tensor, tarn_part part) {
  sm_require(net->part_count < RN_PARTS);
  rn_part *added = &net->parts[net->part_count++];
  added->tensor = tensor;
  added->part = part;
  added->kept = tensor->kind == TARN_PARAM || tensor->kind == TARN_STATE;
  return added;
}

static tarn_tensor *add_tensor(rn_net *net, tarn_tensor_kind kind,
                               bool batched) {
  char name[24];
  const int64_t dims[] = {
      batched ? TARN_DIM_BATCH : 3,
      (int64_t)sg_below(8) == 0 ? 0 : (int64_t)sg_below(RN_MOST_ROW)};
  tarn_tensor *tensor = NULL;
  snprintf(name, sizeof name, "t%zu",
           tarn_model_count(net->model, TARN_KIND_ALL));
  sm_status(tarn_model_add(net->model, kind, name, TARN_DTYPE_U8,
                           (tarn_shape){dims, 2}, &tensor),
            TARN_OK);
  return tensor;
}

// A parameter with its diff, sometimes a state, sometimes a second name.
static void add_param(rn_net *net) {
  tarn_tensor *tensor = add_tensor(net, TARN_PARAM, false);
  rn_part *data = add_part(net, tensor, TARN_DATA);
  rn_part *diff = add_part(net, tensor, TARN_DIFF);
  tarn_tensor *another = NULL;
  if (sg_below(2) == 0) {
    sm_status(
        tarn_model_add_state(net->model, tensor, "m", TARN_DTYPE_F32, &another),
        TARN_OK);
    // Four times as many bytes as the model of a buffer can hold: left alone.
  }
  if (sg_below(3) != 0) return;
  char name[24];
  snprintf(name, sizeof name, "%s'", tensor->name);
  sm_status(tarn_model_tie(net->model, name, tensor, &another), TARN_OK);
  data->other = diff->other = another;
}

static void add_output(rn_net *net, bool fed) {
  tarn_tensor *tensor = add_tensor(net, TARN_OUTPUT, sg_below(4) != 0);
  rn_part *data = add_part(net, tensor, TARN_DATA);
  rn_part *diff = add_part(net, tensor, TARN_DIFF);
  data->is_written = fed;
  diff->left_out = fed;
  if (sg_below(2) != 0) return;
  char name[24];
  tarn_tensor *input = NULL;
  snprintf(name, sizeof name, "%s>", tensor->name);
  sm_status(tarn_model_add_input(net->model, name, tensor, &input), TARN_OK);
  data->other = input;
  diff->other = input;
}

static bool is_output(const rn_part *part, tarn_part which) {
  return part->tensor->kind == TARN_OUTPUT && part->part == which;
}

// Some part of the outputs that is written, or is not; NULL: tried too often.
static rn_part *find(rn_net *net, bool written, tarn_pass pass) {
  for (int i = 0; i < 40; i++) {
    rn_part *part = &net->parts[sg_below(net->part_count)];
    bool fits = is_output(part, TARN_DATA) ||
                (pass == TARN_BACKWARD && is_output(part, TARN_DIFF));
    if (fits && !part->left_out && part->is_written == written) return part;
  }
  return NULL;
}

static void read_some(rn_net *net, tarn_step *step, tarn_pass pass) {
  for (size_t i = sg_below(3); i > 0; i--) {
    rn_part *part = find(net, true, pass);
    if (part == NULL) continue;
    tarn_tensor *by =
        part->other != NULL && sg_below(2) == 0 ? part->other : part->tensor;
    sm_status(tarn_step_reads(step, pass, by, part->part), TARN_OK);
  }
}

static void write_some(rn_net *net, tarn_step *step, tarn_pass pass) {
  for (size_t i = 1 + sg_below(3); i > 0; i--) {
    rn_part *part = find(net, false, pass);
    if (part == NULL) continue;
    sm_status(tarn_step_writes(step, pass, part->tensor, part->part), TARN_OK);
    part->is_written = true;
  }
}

static void replace_some(rn_net *net, size_t index, tarn_pass pass) {
  rn_part *giver = find(net, true, pass);
  rn_part *taker = find(net, false, pass);
  if (giver == NULL || taker == NULL) return;
  sm_status(tarn_step_replaces(net->step[index], pass, giver->tensor,
                               giver->part, taker->tensor, taker->part),
            TARN_OK);
  taker->is_written = true;
  if (net->pair_count == RN_PAIRS) return;
  uint64_t time = pass == TARN_FORWARD ? index : 2 * net->steps - 1 - index;
  net->pairs[net->pair_count++] = (rn_pair){giver, taker, time};
}

static void cache_some(rn_net *net, size_t index) {
  size_t count = sg_below(3);
  for (size_t i = 0; i < count; i++) {
    char name[48];
    const int64_t dims[] = {TARN_DIM_BATCH, (int64_t)sg_below(200)};
    tarn_tensor *tensor = NULL;
    bool bits = sg_below(2) == 0;
    snprintf(name, sizeof name, "c%zu.%zu", index, i);
    sm_status(tarn_step_caches(net->step[index], name,
                               bits ? TARN_DTYPE_BOOL : TARN_DTYPE_U8,
                               (tarn_shape){dims, 2}, bits, &tensor),
              TARN_OK);
    add_part(net, tensor, TARN_DATA)->is_written = true;
    net->described[index]++;
  }
}

static void describe_pass(rn_net *net, size_t index, tarn_pass pass) {
  read_some(net, net->step[index], pass);
  if (sg_below(2) == 0) replace_some(net, index, pass);
  write_some(net, net->step[index], pass);
}

void rn_make(rn_net *net) {
  *net = (rn_net){.now = UINT64_MAX, .steps = 1 + sg_below(RN_STEPS)};
  tarn_model_options options = {
      .struct_size = sizeof options,
      .max_batch = 1 + (int64_t)sg_below(RN_MOST_BATCH)};
  sm_status(tarn_model_create(&options, &net->model), TARN_OK);
  for (size_t i = sg_below(3); i > 0; i--)
    add_param(net);
  for (size_t i = 1 + sg_below(2); i > 0; i--)
    add_output(net, true);
  for (size_t i = 2 + sg_below(3 * net->steps); i > 0; i--)
    add_output(net, false);
  for (size_t i = 0; i < net->steps; i++) {
    char name[24];
    snprintf(name, sizeof name, "s%zu", i);
    sm_status(tarn_model_step(net->model, name, &net->step[i]), TARN_OK);
  }
  for (size_t i = 0; i < net->steps; i++) {
    describe_pass(net, i, TARN_FORWARD);
    cache_some(net, i);
  }
  for (size_t i = net->steps; i-- > 0;)
    describe_pass(net, i, TARN_BACKWARD);
}

// --- what was planned ------------------------------------------------------

static tarn_status take_slot(void *context, const tarn_model_slot *slot) {
  rn_net *net = context;
  for (size_t i = 0; i < net->part_count; i++) {
    rn_part *part = &net->parts[i];
    if (part->tensor != slot->tensor || part->part != slot->part) continue;
    part->planned = true;
    part->first = slot->first;
    part->last = slot->last;
    part->offset = slot->offset;
    sm_require(slot->size == slot->tensor->max_size);
    return TARN_OK;
  }
  sm_fail("an unknown slot: '%s'", slot->tensor->name);
}

void rn_planned(rn_net *net) {
  for (size_t i = 0; i < net->part_count; i++)
    net->parts[i].planned = false;
  sm_status(tarn_model_each_slot(net->model, take_slot, net), TARN_OK);
}

static void forget_part(rn_part *part) {
  memset(part->known, 0, sizeof part->known);
  part->spoiled = false;
}

static void zero(rn_part *part) {
  memset(part->bytes, 0, sizeof part->bytes);
  memset(part->known, 1, sizeof part->known);
  part->active = true;
  part->spoiled = false;
}

void rn_placed(rn_net *net) {
  for (size_t i = 0; i < net->part_count; i++) {
    rn_part *part = &net->parts[i];
    if (part->planned) {
      forget_part(part);
      part->active = false;
    } else if (!part->kept || !part->active) {
      zero(part);
    }
  }
  rn_entered(net, UINT64_MAX);
}

void rn_gone(rn_net *net) {
  rn_entered(net, UINT64_MAX);
  memset(net->extras, 0, sizeof net->extras);
}

const tarn_tensor *rn_cache(const rn_net *net, size_t step, size_t index) {
  char name[24];
  snprintf(name, sizeof name, "c%zu.%zu", step, index);
  const tarn_tensor *tensor = tarn_model_get(net->model, TARN_CACHE, name);
  sm_require(tensor != NULL);
  return tensor;
}

static void end_extras(rn_net *net, size_t step) {
  for (size_t i = 0; i < RN_EXTRAS; i++) {
    net->extras[step][i].active = false;
    forget_part(&net->extras[step][i]);
  }
}

void rn_entered(rn_net *net, uint64_t time) {
  bool round_ends = time == UINT64_MAX || time == 0;
  for (size_t i = 0; i < net->part_count; i++) {
    rn_part *part = &net->parts[i];
    if (!part->planned) continue;
    bool active =
        time != UINT64_MAX && part->first <= time && time <= part->last;
    if (!active || !part->active || round_ends) forget_part(part);
    part->active = active;
  }
  for (size_t i = 0; i < net->steps; i++) {
    if (round_ends || time > 2 * net->steps - 1 - i) end_extras(net, i);
    if (round_ends) net->pushed[i] = 0;
  }
  net->now = time;
}

// --- one part --------------------------------------------------------------

tarn_synced *rn_buffer(const rn_part *part) {
  if (part->tensor == NULL) return part->extra;
  const tarn_tensor *by =
      part->other != NULL && sg_below(2) == 0 ? part->other : part->tensor;
  return part->part == TARN_DATA ? by->data : by->diff;
}

bool rn_is_there(const rn_part *part) {
  if (part->tensor == NULL) return part->extra != NULL;
  return (part->part == TARN_DATA ? part->tensor->data : part->tensor->diff) !=
         NULL;
}

size_t rn_size(const rn_part *part) {
  return part->tensor == NULL ? part->extra_size
                              : tarn_tensor_size(part->tensor);
}

static bool joins(const rn_net *net, const rn_pair *pair) {
  return pair->time == net->now &&
         tarn_model_is_in_place(net->model, pair->giver->tensor,
                                pair->giver->part, pair->taker->tensor,
                                pair->taker->part);
}

bool rn_is_in_pair(const rn_net *net, const rn_part *part) {
  for (size_t i = 0; i < net->pair_count; i++) {
    const rn_pair *pair = &net->pairs[i];
    if ((pair->giver == part || pair->taker == part) && joins(net, pair)) {
      return true;
    }
  }
  return false;
}

void rn_wrote(rn_net *net, const rn_part *part) {
  for (size_t i = 0; i < net->pair_count; i++) {
    const rn_pair *pair = &net->pairs[i];
    if (pair->taker == part && joins(net, pair)) pair->giver->spoiled = true;
  }
}
