// Placing: blocks for the plan, and a buffer for each part of each tensor.
//
// Everything is made aside first, and given to the model when nothing can fail
// any more. Buffers of parameters and states stay when a model is released; all
// others are made anew each time.

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "model/placed.h"
#include "model/slots.h"

// --- what has to be made ---------------------------------------------------

typedef struct plan_of_parts {
  tarn_model *model;
  const tarn__model_slots *slots;
  tarn__model_placement *made;  // NULL: count only
  size_t count;                 // of |made|, which end with the place
  tarn__model_placement *kept;  // which stay
  size_t kept_count;
} plan_of_parts;

static tarn__model_tensor *own(tarn_tensor *tensor) {
  return (tarn__model_tensor *)(void *)tensor;
}

static void note(plan_of_parts *p, bool stays, tarn__model_tensor *tensor,
                 tarn_part part) {
  tarn__model_placement made = {.tensor = tensor, .part = part};
  size_t *count = stays ? &p->kept_count : &p->count;
  tarn__model_placement *list = stays ? p->kept : p->made;
  if (list != NULL) list[*count] = made;
  tensor->made[part] = *count;
  ++*count;
}

static bool trains(const plan_of_parts *p) {
  return p->slots->options.mode == TARN_TRAIN;
}

static void note_output(plan_of_parts *p, tarn__model_tensor *tensor) {
  bool is_fed = tensor->slots[TARN_DATA] == TARN__NO_SLOT;
  if (is_fed) note(p, false, tensor, TARN_DATA);
}

static void note_input(plan_of_parts *p, tarn__model_tensor *tensor) {
  note(p, false, tensor, TARN_DATA);
  bool has_diff = own(tensor->shown.of)->slots[TARN_DIFF] != TARN__NO_SLOT;
  if (has_diff) note(p, false, tensor, TARN_DIFF);
}

static void note_kept(plan_of_parts *p, tarn__model_tensor *tensor) {
  bool is_state = tensor->shown.kind == TARN_STATE;
  bool wants_data = !is_state || trains(p);
  if (wants_data && tensor->shown.data == NULL) {
    note(p, true, tensor, TARN_DATA);
  }
  if (!is_state && trains(p) && tensor->shown.diff == NULL) {
    note(p, true, tensor, TARN_DIFF);
  }
}

// Slots come first, so that a slot's number is that of its buffer. Parameters
// and outputs come before their other names, since they were added before.
static void note_parts(plan_of_parts *p) {
  p->count = p->kept_count = 0;
  for (size_t i = 0; i < p->slots->slots.count; i++) {
    const tarn__model_slot *slot = tarn__slot_at(p->slots, i);
    note(p, false, slot->tensor, slot->part);
  }
  tarn_list *node = NULL;
  tarn_list_for_each (node, &p->model->among) {
    tarn_tensor *tensor = tarn_list_entry(node, tarn_tensor, among);
    if (tensor->kind == TARN_OUTPUT) note_output(p, own(tensor));
    if (tensor->kind == TARN_INPUT) note_input(p, own(tensor));
    if (tensor->kind == TARN_PARAM || tensor->kind == TARN_STATE) {
      note_kept(p, own(tensor));
    }
  }
}

// --- making it -------------------------------------------------------------

// The buffer of a root: new, or kept from an earlier place.
static tarn_synced *root_buffer(const plan_of_parts *p,
                                const tarn__model_tensor *root,
                                tarn_part part) {
  size_t at = root->made[part];
  if (root->shown.kind == TARN_OUTPUT) return p->made[at].buffer;
  tarn_synced *there = tarn__tensor_buffer(&root->shown, part);
  return there != NULL ? there : p->kept[at].buffer;
}

static tarn_status make_buffer(const plan_of_parts *p,
                               tarn__model_placement *made) {
  tarn_tensor *tensor = &made->tensor->shown;
  tarn__model_tensor *root = tarn__tensor_root(tensor);
  if (root != made->tensor) {
    return tarn_synced_view(root_buffer(p, root, made->part), 0, TARN_ALL,
                            &made->buffer);
  }
  const tarn_synced_options options =
      tarn__slots_buffer_options(p->slots, tensor->name);
  return tarn_synced_create(tensor->max_size, &options, &made->buffer);
}

static tarn_status make_buffers(const plan_of_parts *p,
                                tarn__model_placement *list, size_t count) {
  for (size_t i = 0; i < count; i++) {
    tarn_status status = make_buffer(p, &list[i]);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

// Frees views first, which were made last.
static tarn_status destroy_buffers(tarn__model_placement *list, size_t count) {
  tarn_status first = TARN_OK;
  for (size_t i = count; i-- > 0;) {
    tarn_status status = tarn_synced_destroy(list[i].buffer);
    if (first == TARN_OK) first = status;
    list[i].buffer = NULL;
  }
  return first;
}

// --- blocks ----------------------------------------------------------------

static tarn_status take_block(const tarn__model_slots *slots, tarn_place place,
                              tarn_block *out_block) {
  tarn_pool *pool = NULL;
  tarn_status status = tarn_pool_of(place, &pool);
  if (status != TARN_OK) return status;
  return tarn_pool_alloc(pool, slots->planned, slots->options.align, NULL,
                         out_block);
}

// The host is one place of a buffer, pinned or not.
static bool has_compute(const tarn__model_slots *slots) {
  tarn_place home = slots->options.home;
  tarn_place compute = slots->options.compute;
  return compute.device != NULL && !tarn_place_equal(compute, home) &&
         !(tarn__is_host(compute) && tarn__is_host(home));
}

static tarn_status take_blocks(tarn__model_placed *placed) {
  const tarn__model_slots *slots = placed->slots;
  if (slots->planned == 0) return TARN_OK;
  tarn_status status =
      take_block(slots, slots->options.home, &placed->blocks[0]);
  if (status != TARN_OK || !has_compute(slots)) return status;
  return take_block(slots, slots->options.compute, &placed->blocks[1]);
}

static tarn_status give_blocks(tarn__model_placed *placed) {
  tarn_status first = TARN_OK;
  for (size_t i = 0; i < 2; i++) {
    if (placed->blocks[i].pool == NULL) continue;
    tarn_status status = tarn_pool_free(&placed->blocks[i], NULL);
    if (first == TARN_OK) first = status;
    placed->blocks[i] = (tarn_block){0};
  }
  return first;
}

static tarn_status wrap_slot(const tarn__model_placed *placed, size_t index) {
  const tarn__model_slot *slot = tarn__slot_at(placed->slots, index);
  if (slot->size == 0) return TARN_OK;
  const tarn_wrap_options options = {.struct_size = sizeof options,
                                     .flags = TARN_WRAP_EMPTY | TARN_WRAP_FILL};
  for (size_t i = 0; i < 2; i++) {
    const tarn_block *block = &placed->blocks[i];
    if (block->pool == NULL) continue;
    tarn_status status = tarn_synced_wrap(
        placed->made[index].buffer, tarn_pool_place(block->pool),
        block->address + slot->offset, &options);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

static tarn_status wrap_slots(tarn__model_placed *placed) {
  for (size_t i = 0; i < placed->slots->slots.count; i++) {
    tarn_status status = wrap_slot(placed, i);
    if (status != TARN_OK) return status;
    status = tarn_synced_suspend(placed->made[i].buffer, tarn__not_its_turn);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

// --- together --------------------------------------------------------------

// A view that outlives the model must not access freed memory. The buffer is
// suspended first, so that nothing is copied out of it.
static tarn_status let_go_of(const tarn__model_placed *placed, size_t slot) {
  tarn_synced *buffer = placed->made[slot].buffer;
  tarn_status first = tarn_synced_suspend(buffer, tarn__gone);
  for (size_t k = 0; k < 2; k++) {
    if (placed->blocks[k].pool == NULL) continue;
    tarn_status status =
        tarn_synced_evict(buffer, tarn_pool_place(placed->blocks[k].pool));
    if (first == TARN_OK) first = status;
  }
  return first;
}

// Waits for all streams, for a buffer that could not wait for its own.
static tarn_status wait_for_devices(const tarn__model_placed *placed) {
  const tarn_place places[] = {placed->slots->options.home,
                               placed->slots->options.compute};
  tarn_status first = TARN_OK;
  for (size_t i = 0; i < 2; i++) {
    if (places[i].device == NULL) continue;
    tarn_status status = tarn_device_synchronize(places[i].device);
    if (first == TARN_OK) first = status;
  }
  return first;
}

static tarn_status let_go(const tarn__model_placed *placed) {
  tarn_status first = TARN_OK;
  for (size_t i = 0; i < placed->slots->slots.count; i++) {
    tarn_status status = let_go_of(placed, i);
    if (first == TARN_OK) first = status;
  }
  return first == TARN_OK ? TARN_OK : wait_for_devices(placed);
}

// Frees the host's arrays only.
static void free_arrays(tarn__model_placed *placed) {
  tarn__host_free_array(placed->made, placed->made_count, sizeof *placed->made);
  tarn__placed_free_order(placed);
  tarn__host_free(placed, sizeof *placed);
}

// Frees buffers before their blocks.
static tarn_status free_placed(tarn__model_placed *placed, bool whole) {
  tarn_status first = whole ? let_go(placed) : TARN_OK;
  if (placed->made != NULL) {
    tarn_status status = destroy_buffers(placed->made, placed->made_count);
    if (first == TARN_OK) first = status;
  }
  tarn_status status = give_blocks(placed);
  if (first == TARN_OK) first = status;
  free_arrays(placed);
  return first;
}

static tarn_status make_lists(plan_of_parts *p, tarn__model_placed *placed) {
  note_parts(p);
  placed->made_count = p->count;
  placed->made = tarn__host_array(p->count, sizeof *p->made);
  if (placed->made == NULL) return TARN_E_NOMEM;
  p->kept = tarn__host_array(p->kept_count, sizeof *p->kept);
  if (p->kept == NULL) return TARN_E_NOMEM;
  p->made = placed->made;
  note_parts(p);
  return TARN_OK;
}

static tarn_status make(plan_of_parts *p, tarn__model_placed *placed) {
  tarn_status status = make_lists(p, placed);
  if (status == TARN_OK) status = tarn__placed_order(placed);
  if (status == TARN_OK) status = take_blocks(placed);
  if (status == TARN_OK) status = make_buffers(p, p->kept, p->kept_count);
  if (status == TARN_OK) status = make_buffers(p, p->made, p->count);
  if (status == TARN_OK) status = wrap_slots(placed);
  return status;
}

static void publish(const tarn__model_placement *list, size_t count) {
  for (size_t i = 0; i < count; i++) {
    tarn_tensor *tensor = &list[i].tensor->shown;
    if (list[i].part == TARN_DATA) tensor->data = list[i].buffer;
    if (list[i].part == TARN_DIFF) tensor->diff = list[i].buffer;
  }
}

// Frees the old place after the new one was made; failures are only logged.
static void give_former_place_back(tarn_model *model) {
  if (tarn__placed_release(model) == TARN_OK) return;
  tarn__log(TARN_LOG_WARN, "%s: a place that was given back: %s", model->name,
            tarn_last_error());
}

tarn_status tarn__placed_begin(tarn_model *model,
                               const tarn__model_slots *slots) {
  tarn__model_placed *placed = tarn__host_alloc(sizeof *placed);
  if (placed == NULL) return TARN_E_NOMEM;
  placed->slots = slots;
  placed->now = TARN__NO_TIME;
  plan_of_parts p = {.model = model, .slots = slots};
  tarn_status status = make(&p, placed);
  if (status != TARN_OK) {
    if (p.kept != NULL) destroy_buffers(p.kept, p.kept_count);
    free_placed(placed, false);
  } else {
    give_former_place_back(model);
    publish(p.kept, p.kept_count);
    publish(placed->made, placed->made_count);
    model->placed = placed;
  }
  tarn__host_free_array(p.kept, p.kept_count, sizeof *p.kept);
  return status;
}

static void hide(const tarn__model_placed *placed) {
  for (size_t i = 0; i < placed->made_count; i++) {
    tarn_tensor *tensor = &placed->made[i].tensor->shown;
    if (placed->made[i].part == TARN_DATA) tensor->data = NULL;
    if (placed->made[i].part == TARN_DIFF) tensor->diff = NULL;
  }
}

tarn_status tarn__placed_release(tarn_model *model) {
  tarn__model_placed *placed = model->placed;
  if (placed == NULL) return TARN_OK;
  tarn_status first = tarn__caches_free(model);
  hide(placed);
  model->placed = NULL;
  tarn_status status = free_placed(placed, true);
  return first != TARN_OK ? first : status;
}

// --- ending ----------------------------------------------------------------

// Bytes that end with the place must not be in use. A parameter's bytes live as
// long as a view.
tarn_status tarn__placed_check_idle(tarn_model *model, bool all) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, &model->among) {
    const tarn_tensor *tensor = tarn_list_entry(node, tarn_tensor, among);
    bool stays = tensor->kind == TARN_PARAM || tensor->kind == TARN_STATE;
    if (stays && !all) continue;
    tarn_status status =
        tarn__model_check_buffer(tensor->data, tensor->name, stays);
    if (status == TARN_OK) {
      status = tarn__model_check_buffer(tensor->diff, tensor->name, stays);
    }
    if (status != TARN_OK) return status;
  }
  if (model->placed == NULL) return TARN_OK;
  return tarn__caches_check_idle(model, TARN__NO_TIME);
}

static tarn_status end_kept(tarn_model *model) {
  tarn_status first = TARN_OK;
  tarn_list *node = NULL;
  tarn_list_for_each (node, &model->among) {
    tarn_tensor *tensor = tarn_list_entry(node, tarn_tensor, among);
    tarn_status status = tarn_synced_destroy(tensor->data);
    if (first == TARN_OK) first = status;
    status = tarn_synced_destroy(tensor->diff);
    if (first == TARN_OK) first = status;
    tensor->data = tensor->diff = NULL;
  }
  return first;
}

// In a child of fork: blocks and streams are the parent's.
static tarn_status forget_all(tarn_model *model) {
  tarn__model_placed *placed = model->placed;
  tarn_status first = tarn__caches_free(model);
  if (placed != NULL) {
    hide(placed);
    model->placed = NULL;
    tarn_status status = destroy_buffers(placed->made, placed->made_count);
    if (first == TARN_OK) first = status;
    free_arrays(placed);
  }
  tarn_status status = end_kept(model);
  return first != TARN_OK ? first : status;
}

tarn_status tarn__placed_check_end(tarn_model *model) {
  if (model->generation != tarn__os_generation()) return TARN_OK;
  return tarn__placed_check_idle(model, true);
}

tarn_status tarn__placed_end(tarn_model *model) {
  if (model->generation != tarn__os_generation()) return forget_all(model);
  tarn_status first = tarn__placed_release(model);
  tarn_status status = end_kept(model);
  return first != TARN_OK ? first : status;
}

tarn_status tarn_model_place(tarn_model *model) {
  tarn_status status = tarn__model_check(model);
  if (status != TARN_OK) return status;
  if (model->slots == NULL || model->placed != NULL) {
    return tarn__fail(
        TARN_E_STATE, "%s: %s", model->name,
        model->placed != NULL ? "it is placed already" : "it is not planned");
  }
  return tarn__placed_begin(model, model->slots);
}

tarn_status tarn_model_release(tarn_model *model) {
  tarn_status status = tarn__model_check(model);
  if (status != TARN_OK || model->placed == NULL) return status;
  status = tarn__placed_check_idle(model, false);
  return status == TARN_OK ? tarn__placed_release(model) : status;
}
