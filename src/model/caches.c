// Caches: a stack for each step, from its forward to its backward pass.
//
//   push 0 ─► described cache 0     its planned buffer
//   push 1 ─► described cache 1
//   push 2 ─► extra: a buffer of its own, from the pool
//
// A popped entry keeps its place in |stack|, so that the next round reuses the
// memory of extra entries. As the plan's buffers, theirs are suspended, except
// from the push to the end of the step's backward pass.
//
// Extra entries are also tensors in the lists of their model. The first push at
// a place of the stack adds a tensor, named after the step and the place:
// "fc1.cache2". It lives as long as the model and shows the entry that was
// pushed there last. While the model is not placed, its data is NULL. If a
// cache is described for the place later, the tensor keeps its name and its
// data stays NULL.
#include <assert.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "model/placed.h"

const char tarn__not_its_turn[] =
    "its lifetime in the plan has not begun or is over";
const char tarn__gone[] = "its model has given its memory back";

typedef struct entry {
  tarn__model_tensor *tensor;  // NULL: nothing was pushed here yet
  size_t count;                // of elements
  size_t size;                 // of an extra entry's buffer
  tarn_synced *buffer;         // described: the tensor's; else the entry's own
  bool active;                 // an extra entry that is not suspended
} entry;

static tarn_status check(const tarn_step *step, tarn_pass pass,
                         tarn_synced **out_buffer) {
  if (out_buffer == NULL) return tarn__fail(TARN_E_INVALID, "cache: no output");
  *out_buffer = NULL;
  if (step == NULL) return tarn__fail(TARN_E_INVALID, "cache: no step");
  const tarn_model *model = step->model;
  TARN__TRY(tarn__model_check(model));
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

// Checks that |is|, whose tensor is known, is what the caller says.
static tarn_status check_same(const tarn_step *step, const entry *is,
                              tarn_dtype dtype, size_t count, bool bits) {
  const tarn_tensor *tensor = &is->tensor->shown;
  if (tensor->dtype == dtype && is->count == count && tensor->bits == bits) {
    return TARN_OK;
  }
  return tarn__fail(
      TARN_E_INVALID, "step '%s': a cache of %zu %s%s, where %zu %s%s stand",
      step->name, count, tarn_dtype_name(dtype), bits ? " bits" : "", is->count,
      tarn_dtype_name(tensor->dtype), tensor->bits ? " bits" : "");
}

// --- extra entries ---------------------------------------------------------

// "<step>.cache<place>", if need be with a number behind it.
static char *free_name(const tarn_step *step, size_t place) {
  char *name = tarn__host_format("%s.cache%zu", step->name, place);
  for (size_t attempt = 1;
       name != NULL && tarn__names_find(&step->model->names, name) != NULL;
       attempt++) {
    tarn__host_free_text(name);
    name = tarn__host_format("%s.cache%zu.%zu", step->name, place, attempt);
  }
  return name;
}

static tarn_status make_tensor(tarn_step *step, tarn_dtype dtype, size_t count,
                               bool bits, tarn__model_tensor **out_tensor) {
  if (count > INT64_MAX) {
    return tarn__fail(TARN_E_INVALID, "step '%s': a cache of %zu elements",
                      step->name, count);
  }
  const tarn_shape shape = {&(int64_t){(int64_t)count}, 1};
  tarn_tensor *tensor = NULL;
  char *name = free_name(step, step->depth);
  if (name == NULL) return TARN_E_NOMEM;
  tarn_status status = tarn__tensor_add(step->model, TARN_CACHE, name, dtype,
                                        shape, bits, NULL, &tensor);
  tarn__host_free_text(name);
  if (status != TARN_OK) return status;
  *out_tensor = tarn__tensor_own(tensor);
  (*out_tensor)->beyond = true;
  return TARN_OK;
}

static tarn_status make_extra(tarn_step *step, size_t size,
                              tarn_synced **out_buffer) {
  const tarn_synced_options options =
      tarn__slots_buffer_options(step->model->slots, step->name);
  TARN__TRY(tarn_synced_create(size, &options, out_buffer));
  // A new buffer has no contents, as a reused one, and no zeros.
  tarn_status status = tarn_synced_invalidate(*out_buffer, 0, TARN_ALL);
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
  TARN__TRY(make_extra(step, size, &fresh));
  tarn_status status = tarn_synced_destroy(left->buffer);
  if (status == TARN_E_STATE) {
    tarn_synced_destroy(fresh);
    return status;
  }
  left->buffer = fresh;
  left->size = size;
  return TARN_OK;
}

// --- pushing ---------------------------------------------------------------

static entry *entry_at(const tarn_step *step, size_t index) {
  return (entry *)step->stack.items + index;
}

static tarn_status make_room(tarn_step *step) {
  if (step->stack.item_size == 0) step->stack = TARN__ARRAY_OF(entry);
  if (step->depth < step->stack.count) return TARN_OK;
  void *at = NULL;
  return tarn__array_grow(&step->model->budget, &step->stack, 1, &at);
}

static tarn_status push_extra(tarn_step *step, entry *place, tarn_dtype dtype,
                              size_t count, bool bits) {
  size_t size = 0;
  TARN__TRY(size_of(dtype, count, bits, &size));
  if (place->tensor == NULL) {
    TARN__TRY(make_tensor(step, dtype, count, bits, &place->tensor));
  }
  TARN__TRY(take_extra(step, place, size));
  place->count = count;
  place->active = true;
  tarn__model_tensor *tensor = place->tensor;
  tensor->dims[0] = (int64_t)count;
  tensor->shown.dtype = dtype;
  tensor->shown.bits = bits;
  tensor->shown.max_size = size;
  tensor->shown.data = place->buffer;
  step->model->extra_pushes++;
  step->model->extra_bytes += size;
  return TARN_OK;
}

static tarn_status push_described(const tarn_step *step, entry *place,
                                  tarn_dtype dtype, size_t count, bool bits) {
  tarn__model_tensor *tensor =
      ((tarn__model_tensor **)step->caches.items)[step->depth];
  const entry known = {.tensor = tensor,
                       .count = tarn_tensor_count(&tensor->shown),
                       .buffer = tensor->shown.data};
  TARN__TRY(check_same(step, &known, dtype, count, bits));
  *place = known;
  return TARN_OK;
}

tarn_status tarn_step_push(tarn_step *step, tarn_dtype dtype, size_t count,
                           bool bits, tarn_synced **out_buffer) {
  TARN__TRY(check(step, TARN_FORWARD, out_buffer));
  assert(step != NULL);
  TARN__TRY(make_room(step));
  entry *place = entry_at(step, step->depth);
  TARN__TRY(step->depth < step->caches.count
                ? push_described(step, place, dtype, count, bits)
                : push_extra(step, place, dtype, count, bits));
  step->depth++;
  *out_buffer = place->buffer;
  return TARN_OK;
}

// --- popping ---------------------------------------------------------------

tarn_status tarn_step_pop(tarn_step *step, tarn_dtype dtype, size_t count,
                          bool bits, tarn_synced **out_buffer) {
  TARN__TRY(check(step, TARN_BACKWARD, out_buffer));
  assert(step != NULL);
  if (step->depth == 0) {
    return tarn__fail(TARN_E_STATE, "step '%s': its cache is empty",
                      step->name);
  }
  const entry *top = entry_at(step, step->depth - 1);
  TARN__TRY(check_same(step, top, dtype, count, bits));
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

typedef tarn_status visit_entry(const tarn_step *step, entry *extra);

// Calls |visit| for each active extra entry of the steps that are over.
static tarn_status visit_over(const tarn_model *model, uint64_t time,
                              visit_entry *visit) {
  reach over = find_over(model, time);
  for (size_t i = over.first; i < over.end; i++) {
    const tarn_step *step = tarn__step_at(model, i);
    size_t count = 0;
    entry *extras = extras_of(step, &count);
    for (size_t k = 0; k < count; k++) {
      if (!extras[k].active) continue;
      TARN__TRY(visit(step, &extras[k]));
    }
  }
  return TARN_OK;
}

static tarn_status check_extra(const tarn_step *step, entry *extra) {
  return tarn__model_check_buffer(extra->buffer, step->name, false);
}

tarn_status tarn__caches_check_idle(const tarn_model *model, uint64_t time) {
  return visit_over(model, time, check_extra);
}

static tarn_status suspend_extra(const tarn_step *step, entry *extra) {
  (void)step;
  TARN__TRY(tarn_synced_suspend(extra->buffer, tarn__not_its_turn));
  extra->active = false;
  return TARN_OK;
}

tarn_status tarn__caches_end(tarn_model *model, uint64_t time) {
  return visit_over(model, time, suspend_extra);
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
  for (size_t i = 0; i < count; i++) {
    if (extras[i].tensor != NULL) extras[i].tensor->shown.data = NULL;
    tarn__keep_first(&first, end_extra(extras[i].buffer));
    extras[i] = (entry){.tensor = extras[i].tensor};
  }
  step->depth = 0;
  return first;
}

tarn_status tarn__caches_free(tarn_model *model) {
  tarn_status first = TARN_OK;
  for (size_t i = 0; i < model->steps.count; i++)
    tarn__keep_first(&first, free_extras(tarn__step_at(model, i)));
  return first;
}
