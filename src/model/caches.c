// Caches: a stack for each step, from its forward to its backward pass.
//
//   push 0 ─► described cache 0     its planned buffer
//   push 1 ─► described cache 1
//   push 2 ─► extra: a buffer of its own, from the pool
//
// A popped entry keeps its place in |stack|, so that the next round reuses the
// memory of extra entries. Extra entries are tensors too: see listed.c. As the
// plan's buffers, theirs are suspended, except from the push to the end of the
// step's backward pass.
#include <assert.h>

#include "base/status.h"
#include "model/placed.h"
#include "model/slots.h"

const char tarn__not_its_turn[] =
    "its lifetime in the plan has not begun or is over";
const char tarn__gone[] = "its model has given its memory back";

typedef struct entry {
  tarn_dtype dtype;
  size_t count;
  bool bits;
  size_t size;          // of an extra entry's buffer
  tarn_synced *buffer;  // described: the tensor's; else the entry's own
  bool active;          // an extra entry that is not suspended
} entry;

static tarn_status check(const tarn_step *step, tarn_pass pass,
                         tarn_synced **out_buffer) {
  if (out_buffer == NULL) return tarn__fail(TARN_E_INVALID, "cache: no output");
  *out_buffer = NULL;
  if (step == NULL) return tarn__fail(TARN_E_INVALID, "cache: no step");
  const tarn_model *model = step->model;
  tarn_status status = tarn__model_check(model);
  if (status != TARN_OK) return status;
  bool now = model->placed != NULL &&
             model->slots->options.mode == TARN_TRAIN &&
             model->placed->now == tarn__time_of(model, step->index, pass);
  if (now) return TARN_OK;
  return tarn__fail(TARN_E_STATE,
                    "step '%s': a cache, but it was not entered %s to train",
                    step->name, pass == TARN_FORWARD ? "forward" : "backward");
}

static tarn_status size_of(tarn_dtype dtype, size_t count, bool bits,
                           size_t *out_size) {
  size_t size = tarn_dtype_size(dtype);
  *out_size = 0;
  if (bits && dtype == TARN_DTYPE_BOOL) {
    *out_size = count / 8 + (count % 8 != 0);
    return TARN_OK;
  }
  bool good = !bits && size != 0 && tarn_size_mul(count, size, out_size);
  if (good) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "cache: %zu elements of type %s%s", count,
                    tarn_dtype_name(dtype), bits ? ", as bits" : "");
}

static tarn_status check_same(const tarn_step *step, const entry *is,
                              tarn_dtype dtype, size_t count, bool bits) {
  if (is->dtype == dtype && is->count == count && is->bits == bits) {
    return TARN_OK;
  }
  return tarn__fail(
      TARN_E_INVALID, "step '%s': a cache of %zu %s%s, where %zu %s%s stand",
      step->name, count, tarn_dtype_name(dtype), bits ? " bits" : "", is->count,
      tarn_dtype_name(is->dtype), is->bits ? " bits" : "");
}

// --- pushing ---------------------------------------------------------------

static entry described(const tarn__model_tensor *tensor) {
  return (entry){.dtype = tensor->shown.dtype,
                 .count = tarn_tensor_count(&tensor->shown),
                 .bits = tensor->shown.bits,
                 .buffer = tensor->shown.data};
}

static tarn_status make_extra(tarn_step *step, size_t size,
                              tarn_synced **out_buffer) {
  const tarn_synced_options options =
      tarn__slots_buffer_options(step->model->slots, step->name);
  tarn_status status = tarn_synced_create(size, &options, out_buffer);
  if (status != TARN_OK) return status;
  // A new buffer has no contents, as a reused one, and no zeros.
  status = tarn_synced_invalidate(*out_buffer, 0, TARN_ALL);
  if (status == TARN_OK) return TARN_OK;
  tarn_synced_destroy(*out_buffer);
  return status;
}

// Reuses the suspended buffer of an earlier round if it has the same size.
static tarn_status take_extra(tarn_step *step, entry *left, size_t size) {
  if (left->buffer != NULL && left->size == size) {
    return tarn_synced_resume(left->buffer);
  }
  tarn_synced *fresh = NULL;
  tarn_status status = make_extra(step, size, &fresh);
  if (status != TARN_OK) return status;
  status = tarn_synced_destroy(left->buffer);
  if (status == TARN_E_STATE) {
    tarn_synced_destroy(fresh);
    return status;
  }
  left->buffer = fresh;
  left->size = size;
  return TARN_OK;
}

static entry *entry_at(const tarn_step *step, size_t index) {
  return (entry *)step->stack.items + index;
}

static tarn_status make_room(tarn_step *step) {
  if (step->stack.item_size == 0) step->stack = TARN__ARRAY_OF(entry);
  if (step->depth < step->stack.count) return TARN_OK;
  void *at = NULL;
  return tarn__array_grow(&step->model->budget, &step->stack, 1, &at);
}

static void count_extra(tarn_model *model, size_t size) {
  model->extra_pushes++;
  model->extra_bytes += size;
}

static tarn_status push_extra(tarn_step *step, entry *place, entry wanted) {
  size_t size = 0;
  tarn_status status = size_of(wanted.dtype, wanted.count, wanted.bits, &size);
  if (status == TARN_OK) {
    status = tarn__listed_make(step, step->depth, wanted.dtype, wanted.count,
                               wanted.bits);
  }
  if (status == TARN_OK) status = take_extra(step, place, size);
  if (status != TARN_OK) return status;
  tarn__listed_show(step, step->depth, wanted.dtype, wanted.count, wanted.bits,
                    place->buffer);
  wanted.buffer = place->buffer;
  wanted.size = size;
  wanted.active = true;
  *place = wanted;
  count_extra(step->model, size);
  return TARN_OK;
}

tarn_status tarn_step_push(tarn_step *step, tarn_dtype dtype, size_t count,
                           bool bits, tarn_synced **out_buffer) {
  tarn_status status = check(step, TARN_FORWARD, out_buffer);
  if (status != TARN_OK) return status;
  assert(step != NULL);
  status = make_room(step);
  if (status != TARN_OK) return status;
  entry *place = entry_at(step, step->depth);
  if (step->depth < step->caches.count) {
    tarn__model_tensor **caches = step->caches.items;
    entry known = described(caches[step->depth]);
    status = check_same(step, &known, dtype, count, bits);
    if (status == TARN_OK) *place = known;
  } else {
    entry wanted = {.dtype = dtype, .count = count, .bits = bits};
    status = push_extra(step, place, wanted);
  }
  if (status != TARN_OK) return status;
  step->depth++;
  *out_buffer = place->buffer;
  return TARN_OK;
}

// --- popping ---------------------------------------------------------------

tarn_status tarn_step_pop(tarn_step *step, tarn_dtype dtype, size_t count,
                          bool bits, tarn_synced **out_buffer) {
  tarn_status status = check(step, TARN_BACKWARD, out_buffer);
  if (status != TARN_OK) return status;
  assert(step != NULL);
  if (step->depth == 0) {
    return tarn__fail(TARN_E_STATE, "step '%s': its cache is empty",
                      step->name);
  }
  const entry *top = entry_at(step, step->depth - 1);
  status = check_same(step, top, dtype, count, bits);
  if (status != TARN_OK) return status;
  step->depth--;
  *out_buffer = top->buffer;
  return TARN_OK;
}

// --- the end of a pass -----------------------------------------------------

// Steps from |first| to below |end|.
typedef struct reach {
  size_t first;
  size_t end;
} reach;

// The steps whose backward pass ends when time advances to |time|. Backward,
// step i of n is at 2n - 1 - i.
static reach find_over(const tarn_model *model, uint64_t time) {
  size_t n = model->steps.count;
  uint64_t from = model->placed->now;
  if (time == TARN__NO_TIME) return (reach){0, n};
  if (from < n) from = n;
  if (from >= time) return (reach){0, 0};
  return (reach){(size_t)(2 * n - time), (size_t)(2 * n - from)};
}

// The |*out_count| extra entries of a step.
static entry *extras_of(const tarn_step *step, size_t *out_count) {
  size_t described = step->caches.count;
  *out_count = 0;
  if (step->stack.count <= described) return NULL;
  *out_count = step->stack.count - described;
  return entry_at(step, described);
}

static tarn_status check_step_idle(const tarn_step *step) {
  size_t count = 0;
  const entry *extras = extras_of(step, &count);
  for (size_t i = 0; i < count; i++) {
    tarn_status status = tarn__model_check_buffer(
        extras[i].active ? extras[i].buffer : NULL, step->name, false);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

tarn_status tarn__caches_check_idle(const tarn_model *model, uint64_t time) {
  reach over = find_over(model, time);
  for (size_t i = over.first; i < over.end; i++) {
    tarn_status status = check_step_idle(tarn__step_at(model, i));
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

static tarn_status suspend_extras(const tarn_step *step, const char *why) {
  size_t count = 0;
  entry *extras = extras_of(step, &count);
  for (size_t i = 0; i < count; i++) {
    if (!extras[i].active) continue;
    tarn_status status = tarn_synced_suspend(extras[i].buffer, why);
    if (status != TARN_OK) return status;
    extras[i].active = false;
  }
  return TARN_OK;
}

tarn_status tarn__caches_end(tarn_model *model, uint64_t time) {
  reach over = find_over(model, time);
  for (size_t i = over.first; i < over.end; i++) {
    tarn_status status =
        suspend_extras(tarn__step_at(model, i), tarn__not_its_turn);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

// --- the end of a round, and of the place ----------------------------------

void tarn__caches_empty(tarn_model *model) {
  for (size_t i = 0; i < model->steps.count; i++)
    tarn__step_at(model, i)->depth = 0;
}

// Suspends the buffer, since a view may outlive it. In a child of fork that
// fails, and is not needed.
static tarn_status end_extra(tarn_synced *buffer) {
  if (buffer == NULL) return TARN_OK;
  tarn_status status = tarn_synced_suspend(buffer, tarn__gone);
  (void)status;
  return tarn_synced_destroy(buffer);
}

static tarn_status free_extras(tarn_step *step) {
  tarn_status first = TARN_OK;
  size_t count = 0;
  entry *extras = extras_of(step, &count);
  tarn__listed_hide(step);
  for (size_t i = 0; i < count; i++) {
    tarn_status status = end_extra(extras[i].buffer);
    if (first == TARN_OK) first = status;
  }
  step->depth = 0;
  tarn__array_free(&step->model->budget, &step->stack);
  return first;
}

tarn_status tarn__caches_free(tarn_model *model) {
  tarn_status first = TARN_OK;
  for (size_t i = 0; i < model->steps.count; i++) {
    tarn_status status = free_extras(tarn__step_at(model, i));
    if (first == TARN_OK) first = status;
  }
  return first;
}
