// model.h - a net: tensors, steps, and where they lie.
//
//   tarn_model ─┬─ tensors, in lists and by name      tarn__model_tensor
//               ├─ steps, in order and by name        tarn_step ─ uses
//               ├─ slots: planned parts               slots.h
//               └─ blocks: where the slots lie        placed.h
#ifndef TARN_MODEL_MODEL_H_
#define TARN_MODEL_MODEL_H_

#include "base/budget.h"
#include "base/names.h"
#include "tarn/model_run.h"

// A part that is not planned, at all or in this mode.
#define TARN__NO_SLOT SIZE_MAX

typedef struct tarn__model_tensor {
  tarn_tensor shown;  // first: what programs see
  size_t slots[2];    // of data and diff; TARN__NO_SLOT: none
  bool beyond;        // a cache that no step describes: see caches.c
  size_t made[2];     // while a place is made: the index in its |made|
  int64_t dims[];     // of |shown.shape|
} tarn__model_tensor;

typedef enum tarn__model_use_kind {
  TARN__READS,
  TARN__WRITES,
  TARN__REPLACES,  // reads |giver|, writes |tensor|
} tarn__model_use_kind;

// One use of a part by a step.
typedef struct tarn__model_step_use {
  tarn__model_use_kind kind;
  tarn_pass pass;
  tarn__model_tensor *tensor;  // a root: no input, no tied parameter
  tarn_part part;
  tarn__model_tensor *giver;
  tarn_part giver_part;
} tarn__model_step_use;

struct tarn_step {
  tarn_model *model;
  const char *name;  // the key in |step_names|
  size_t index;
  tarn__array uses;    // tarn__model_step_use
  tarn__array caches;  // tarn__model_tensor *, in order
  tarn__array stack;   // of pushed entries: see caches.c
  size_t depth;        // entries not popped
};

typedef struct tarn__model_slots tarn__model_slots;
typedef struct tarn__model_placed tarn__model_placed;

struct tarn_model {
  tarn_list all;  // in the list of all models, which its lock guards
  uint32_t generation;
  char *name;
  int64_t max_batch;
  int64_t batch;
  tarn_list kinds[TARN_CACHE + 1];
  tarn_list among;
  size_t counts[TARN_KIND_ALL];
  tarn__names names;           // to tarn__model_tensor
  tarn__names step_names;      // to tarn_step
  tarn__array steps;           // tarn_step *
  tarn__budget budget;         // of arrays, without a limit
  tarn__model_slots *slots;    // NULL: not planned
  tarn__model_placed *placed;  // NULL: not placed
  uint64_t extra_pushes;
  uint64_t extra_bytes;
};

// TARN_E_INVALID for NULL, TARN_E_STATE for a parent process's.
TARN_MUST_CHECK tarn_status tarn__model_check(const tarn_model *model);

// Likewise, and TARN_E_STATE if |model| is planned.
TARN_MUST_CHECK tarn_status tarn__model_check_open(const tarn_model *model);

// TARN_E_STATE if an access to |buffer| is open; with |own_only| accesses
// through views do not count. NULL is allowed.
TARN_MUST_CHECK tarn_status tarn__model_check_buffer(tarn_synced *buffer,
                                                     const char *name,
                                                     bool own_only);

// The same of both parts of |tensor|.
TARN_MUST_CHECK tarn_status tarn__tensor_check_idle(const tarn_tensor *tensor,
                                                    bool own_only);

// TARN_E_STATE  |tensor| has no buffer for its data.
TARN_MUST_CHECK tarn_status
tarn__tensor_check_placed(const tarn_tensor *tensor);

// Checks what tarn_model_save and tarn_model_load are called with; |what| is
// the call's name in texts.
//
// TARN_E_INVALID  no path, or flags that are not |known|.
// TARN_E_STATE    as tarn__model_check.
TARN_MUST_CHECK tarn_status tarn__model_check_file(const tarn_model *model,
                                                   const char *what,
                                                   const char *path,
                                                   uint32_t flags,
                                                   uint32_t known);

// Adds |node| to a list that the lock of the list of all models guards: to
// |list|, a model's parameters, or with NULL to the list of all models itself.
void tarn__model_enlist(tarn_list *list, tarn_list *node);

// Removes |model| from the list of all models.
void tarn__model_delist(tarn_model *model);

// The model that has |list|, and the list's kind; NULL if no model has it.
//
// Cost: O(models); for an empty list O(parameters of all models).
tarn_model *tarn__model_of_list(const tarn_list *list,
                                tarn_tensor_kind *out_kind);

// The tensor that has the bytes: the output of an input, the first of tied
// parameters, else |tensor| itself.
static inline tarn__model_tensor *tarn__tensor_root(tarn_tensor *tensor) {
  bool named_twice = tensor->of != NULL && tensor->kind != TARN_STATE;
  return (tarn__model_tensor *)(void *)(named_twice ? tensor->of : tensor);
}

static inline tarn__model_tensor *tarn__tensor_own(const tarn_tensor *tensor) {
  return (tarn__model_tensor *)(uintptr_t)tensor;
}

// The tensor of |model| behind |tensor|, or with NULL the first; NULL: none.
static inline tarn__model_tensor *tarn__tensor_next(
    const tarn_model *model, const tarn__model_tensor *tensor) {
  const tarn_list *at = tensor == NULL ? &model->among : &tensor->shown.among;
  if (at->next == &model->among) return NULL;
  return tarn__tensor_own(tarn_list_entry(at->next, tarn_tensor, among));
}

// Whether tensors of this kind have a diff.
static inline bool tarn__tensor_has_diff(const tarn_tensor *tensor) {
  return tensor->kind != TARN_CACHE && tensor->kind != TARN_STATE;
}

// Whether files keep it: parameters, tied ones once, and with |states| also
// states.
static inline bool tarn__tensor_is_stored(const tarn_tensor *tensor,
                                          bool states) {
  if (tensor->kind == TARN_STATE) return states;
  return tensor->kind == TARN_PARAM && tensor->of == NULL;
}

// Bytes at |batch|.
//
// TARN_E_INVALID  overflow, by a larger batch than when the tensor was added.
TARN_MUST_CHECK tarn_status tarn__tensor_bytes(const tarn_tensor *tensor,
                                               int64_t batch, size_t *out_size);

// Adds a tensor of any kind. Errors as tarn_model_add.
TARN_MUST_CHECK tarn_status tarn__tensor_add(tarn_model *model,
                                             tarn_tensor_kind kind,
                                             const char *name, tarn_dtype dtype,
                                             tarn_shape shape, bool bits,
                                             tarn_tensor *of,
                                             tarn_tensor **out_tensor);

// A tensor without name, kind and buffers, with room for |rank| dimensions,
// which have been read somewhere, so that their size cannot overflow. Freed by
// tarn__tensor_free. NULL if out of memory.
tarn__model_tensor *tarn__tensor_make(size_t rank);

// Frees both buffers of |tensor|.
tarn_status tarn__tensor_end_buffers(tarn_tensor *tensor);
void tarn__tensor_free(tarn__model_tensor *tensor);

void tarn__step_free(tarn_step *step);

static inline tarn_step *tarn__step_at(const tarn_model *model, size_t index) {
  return ((tarn_step **)model->steps.items)[index];
}

// NULL: no buffer, or not placed.
static inline tarn_synced *tarn__tensor_buffer(const tarn_tensor *tensor,
                                               tarn_part part) {
  return part == TARN_DATA ? tensor->data : tensor->diff;
}

static inline const char *tarn__part_name(tarn_part part) {
  return part == TARN_DATA ? "data" : "diff";
}

#endif  // TARN_MODEL_MODEL_H_
