// Placing: blocks for the plan, and a buffer for each part of each tensor.
//
// Everything is made aside first, and given to the model when nothing can fail
// any more. Buffers of parameters and states stay when a model is released; all
// others are made anew each time.
//
// The order in which slots end, and which slots have bytes in common, are found
// once, when a model is placed, so that entering a step only looks up.
#include <stdlib.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "model/placed.h"

// --- what has to be made ---------------------------------------------------

static bool stays(const tarn__model_tensor *tensor) {
  return tensor->shown.kind == TARN_PARAM || tensor->shown.kind == TARN_STATE;
}

// Whether a part without a slot lacks a buffer.
static bool is_missing(const tarn__model_slots *slots,
                       const tarn__model_tensor *tensor, tarn_part part) {
  bool trains = slots->options.mode == TARN_TRAIN;
  bool is_data = part == TARN_DATA;
  switch (tensor->shown.kind) {
    case TARN_OUTPUT:
      return is_data && tensor->slots[TARN_DATA] == TARN__NO_SLOT;
    case TARN_INPUT:
      return is_data ||
             tarn__tensor_own(tensor->shown.of)->slots[part] != TARN__NO_SLOT;
    case TARN_PARAM:
      return (is_data || trains) &&
             tarn__tensor_buffer(&tensor->shown, part) == NULL;
    case TARN_STATE:
      return is_data && trains && tensor->shown.data == NULL;
    default:
      return false;
  }
}

static void note(tarn__model_placed *placed, tarn__model_tensor *tensor,
                 tarn_part part) {
  tensor->made[part] = placed->made_count;
  placed->made[placed->made_count++] =
      (tarn__model_placement){.tensor = tensor, .part = part};
}

static void note_missing(const tarn_model *model, tarn__model_placed *placed,
                         bool of_staying) {
  for (tarn__model_tensor *t = NULL; (t = tarn__tensor_next(model, t));) {
    for (tarn_part part = TARN_DATA; part <= TARN_DIFF; part++) {
      if (stays(t) == of_staying && is_missing(placed->slots, t, part)) {
        note(placed, t, part);
      }
    }
  }
}

// Slots come first, so that a slot's number is that of its buffer, and what
// stays comes last. Parameters and outputs come before their other names, since
// they were added before. |*out_temporary| is the number of those that do not
// stay.
static tarn_status note_parts(const tarn_model *model,
                              tarn__model_placed *placed,
                              size_t *out_temporary) {
  size_t slots = placed->slots->slots.count;
  placed->made_room = slots + 2 * model->names.count;
  placed->made = tarn__host_array(placed->made_room, sizeof *placed->made);
  if (placed->made == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < slots; i++) {
    const tarn__model_slot *slot = tarn__slot_at(placed->slots, i);
    note(placed, slot->tensor, slot->part);
  }
  note_missing(model, placed, false);
  *out_temporary = placed->made_count;
  note_missing(model, placed, true);
  return TARN_OK;
}

// --- making it -------------------------------------------------------------

// The buffer of a root: new, or kept from an earlier place.
static tarn_synced *root_buffer(const tarn__model_placed *placed,
                                const tarn__model_tensor *root,
                                tarn_part part) {
  tarn_synced *kept =
      stays(root) ? tarn__tensor_buffer(&root->shown, part) : NULL;
  return kept != NULL ? kept : placed->made[root->made[part]].buffer;
}

static tarn_status make_buffer(const tarn__model_placed *placed,
                               tarn__model_placement *made) {
  tarn_tensor *tensor = &made->tensor->shown;
  tarn__model_tensor *root = tarn__tensor_root(tensor);
  if (root != made->tensor) {
    return tarn_synced_view(root_buffer(placed, root, made->part), 0, TARN_ALL,
                            &made->buffer);
  }
  const tarn_synced_options options =
      tarn__slots_buffer_options(placed->slots, tensor->name);
  return tarn_synced_create(tensor->max_size, &options, &made->buffer);
}

static tarn_status make_buffers(tarn__model_placed *placed) {
  for (size_t i = 0; i < placed->made_count; i++) {
    TARN__TRY(make_buffer(placed, &placed->made[i]));
  }
  return TARN_OK;
}

// --- slots that share bytes ------------------------------------------------

static int compare_endings(const void *a, const void *b) {
  const tarn__model_ending *x = a;
  const tarn__model_ending *y = b;
  if (x->last != y->last) return x->last < y->last ? -1 : 1;
  return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static bool meet(const tarn__model_slot *a, const tarn__model_slot *b) {
  return a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

// Compares all slots with each other: a net has a few hundred, and this happens
// once.
static tarn_status find_predecessors(tarn__model_placed *placed) {
  const tarn__model_slots *slots = placed->slots;
  size_t count = slots->slots.count;
  for (size_t i = 0; i < count; i++) {
    for (size_t j = 0; j < count; j++) {
      if (j == i || !meet(tarn__slot_at(slots, i), tarn__slot_at(slots, j))) {
        continue;
      }
      TARN__TRY(
          tarn__array_append(slots->budget, &placed->predecessors, &j, 1));
    }
    placed->predecessor_starts[i + 1] = placed->predecessors.count;
  }
  return TARN_OK;
}

static tarn_status find_order(tarn__model_placed *placed) {
  size_t count = placed->slots->slots.count;
  placed->by_last = tarn__host_array(count, sizeof *placed->by_last);
  placed->active = tarn__host_array(count, sizeof *placed->active);
  placed->predecessor_starts = tarn__host_array(count + 1, sizeof(size_t));
  if (placed->by_last == NULL || placed->active == NULL ||
      placed->predecessor_starts == NULL) {
    return TARN_E_NOMEM;
  }
  for (size_t i = 0; i < count; i++) {
    placed->by_last[i] =
        (tarn__model_ending){tarn__slot_at(placed->slots, i)->last, i};
  }
  qsort(placed->by_last, count, sizeof *placed->by_last, compare_endings);
  return find_predecessors(placed);
}

// --- blocks ----------------------------------------------------------------

static tarn_status take_block(const tarn__model_slots *slots, tarn_place place,
                              tarn_block *out_block) {
  tarn_pool *pool = NULL;
  TARN__TRY(tarn_pool_of(place, &pool));
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
  TARN__TRY(take_block(slots, slots->options.home, &placed->blocks[0]));
  if (!has_compute(slots)) return TARN_OK;
  return take_block(slots, slots->options.compute, &placed->blocks[1]);
}

static tarn_status wrap_slot(const tarn__model_placed *placed, size_t index) {
  const tarn__model_slot *slot = tarn__slot_at(placed->slots, index);
  if (slot->size == 0) return TARN_OK;
  const tarn_wrap_options options = {.struct_size = sizeof options,
                                     .flags = TARN_WRAP_EMPTY | TARN_WRAP_FILL};
  for (size_t i = 0; i < 2; i++) {
    const tarn_block *block = &placed->blocks[i];
    if (block->pool == NULL) continue;
    TARN__TRY(tarn_synced_wrap(placed->made[index].buffer,
                               tarn_pool_place(block->pool),
                               block->address + slot->offset, &options));
  }
  return TARN_OK;
}

static tarn_status wrap_slots(tarn__model_placed *placed) {
  for (size_t i = 0; i < placed->slots->slots.count; i++) {
    TARN__TRY(wrap_slot(placed, i));
    TARN__TRY(tarn_synced_suspend(placed->made[i].buffer, tarn__not_its_turn));
  }
  return TARN_OK;
}

// --- together --------------------------------------------------------------

// Frees views first, which were made last, and buffers before their blocks.
static tarn_status free_placed(tarn__model_placed *placed) {
  size_t slots = placed->slots->slots.count;
  tarn_status first = TARN_OK;
  for (size_t i = placed->made_count; i-- > 0;)
    tarn__keep_first(&first, tarn_synced_destroy(placed->made[i].buffer));
  for (size_t i = 0; i < 2; i++) {
    if (placed->blocks[i].pool == NULL) continue;
    tarn__keep_first(&first, tarn_pool_free(&placed->blocks[i], NULL));
  }
  tarn__host_free_array(placed->made, placed->made_room, sizeof *placed->made);
  tarn__array_free(placed->slots->budget, &placed->predecessors);
  tarn__host_free_array(placed->predecessor_starts, slots + 1, sizeof(size_t));
  tarn__host_free_array(placed->active, slots, sizeof *placed->active);
  tarn__host_free_array(placed->by_last, slots, sizeof *placed->by_last);
  tarn__host_free(placed, sizeof *placed);
  return first;
}

static tarn_status make(const tarn_model *model, tarn__model_placed *placed,
                        size_t *out_temporary) {
  TARN__TRY(note_parts(model, placed, out_temporary));
  TARN__TRY(find_order(placed));
  TARN__TRY(take_blocks(placed));
  TARN__TRY(make_buffers(placed));
  return wrap_slots(placed);
}

// Gives the model's tensors their buffers; with |show| false NULL.
static void publish(const tarn__model_placed *placed, bool show) {
  for (size_t i = 0; i < placed->made_count; i++) {
    const tarn__model_placement *made = &placed->made[i];
    tarn_tensor *tensor = &made->tensor->shown;
    *(made->part == TARN_DATA ? &tensor->data : &tensor->diff) =
        show ? made->buffer : NULL;
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
  size_t temporary = 0;
  tarn__model_placed *placed = tarn__host_alloc(sizeof *placed);
  if (placed == NULL) return TARN_E_NOMEM;
  placed->slots = slots;
  placed->now = TARN__NO_TIME;
  placed->predecessors = TARN__ARRAY_OF(size_t);
  tarn_status status = make(model, placed, &temporary);
  if (status != TARN_OK) {
    free_placed(placed);
    return status;
  }
  give_former_place_back(model);
  publish(placed, true);
  placed->made_count = temporary;
  model->placed = placed;
  return TARN_OK;
}

// --- ending ----------------------------------------------------------------

// A view that outlives the model must not access freed memory. The buffer is
// suspended first, so that nothing is copied out of it.
static tarn_status let_go_of(const tarn__model_placed *placed, size_t slot) {
  tarn_synced *buffer = placed->made[slot].buffer;
  tarn_status first = tarn_synced_suspend(buffer, tarn__gone);
  for (size_t k = 0; k < 2; k++) {
    tarn_pool *pool = placed->blocks[k].pool;
    if (pool == NULL) continue;
    tarn__keep_first(&first, tarn_synced_evict(buffer, tarn_pool_place(pool)));
  }
  return first;
}

// Waits for all streams, for a buffer that could not wait for its own.
static tarn_status wait_for_devices(const tarn__model_placed *placed) {
  const tarn_model_plan_options *options = &placed->slots->options;
  tarn_device *const devices[] = {options->home.device,
                                  options->compute.device};
  tarn_status first = TARN_OK;
  for (size_t i = 0; i < 2; i++) {
    if (devices[i] == NULL) continue;
    tarn__keep_first(&first, tarn_device_synchronize(devices[i]));
  }
  return first;
}

static tarn_status let_go(const tarn__model_placed *placed) {
  tarn_status first = TARN_OK;
  for (size_t i = 0; i < placed->slots->slots.count; i++)
    tarn__keep_first(&first, let_go_of(placed, i));
  return first == TARN_OK ? TARN_OK : wait_for_devices(placed);
}

tarn_status tarn__placed_release(tarn_model *model) {
  tarn__model_placed *placed = model->placed;
  if (placed == NULL) return TARN_OK;
  tarn_status first = tarn__caches_free(model);
  publish(placed, false);
  model->placed = NULL;
  if (model->generation == tarn__os_generation()) {
    tarn__keep_first(&first, let_go(placed));
  } else {  // blocks and streams are the parent's
    placed->blocks[0] = placed->blocks[1] = (tarn_block){0};
  }
  tarn__keep_first(&first, free_placed(placed));
  return first;
}

// Bytes that end with the place must not be in use. A parameter's bytes live as
// long as a view.
tarn_status tarn__placed_check_idle(tarn_model *model, bool all) {
  for (tarn__model_tensor *t = NULL; (t = tarn__tensor_next(model, t));) {
    if (stays(t) && !all) continue;
    TARN__TRY(tarn__tensor_check_idle(&t->shown, stays(t)));
  }
  if (model->placed == NULL) return TARN_OK;
  return tarn__caches_check_idle(model, TARN__NO_TIME);
}

tarn_status tarn__placed_end(tarn_model *model) {
  tarn_status first = tarn__placed_release(model);
  for (tarn__model_tensor *t = NULL; (t = tarn__tensor_next(model, t));)
    tarn__keep_first(&first, tarn__tensor_end_buffers(&t->shown));
  return first;
}

tarn_status tarn_model_place(tarn_model *model) {
  TARN__TRY(tarn__model_check(model));
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
  TARN__TRY(tarn__placed_check_idle(model, false));
  return tarn__placed_release(model);
}
