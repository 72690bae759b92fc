// model.h - what the room of models keeps of a net.
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

// A part that is not planned, or not in this mode.
#define TARN__NO_SLOT SIZE_MAX

typedef struct tarn__model_tensor {
  tarn_tensor shown;   // first: what programs see
  size_t name_length;  // for prefixes
  size_t slots[2];     // of data and diff; TARN__NO_SLOT: none
  bool beyond;         // a cache that no step describes: see listed.c
  size_t made[2];      // while a place is made: where it stands in place.c's
                       // lists
  int64_t dims[];      // what the shape points to
} tarn__model_tensor;

typedef enum tarn__model_use_kind {
  TARN__READS,
  TARN__WRITES,
  TARN__REPLACES,  // reads |giver|, writes |tensor|
} tarn__model_use_kind;

// What a step does with one part.
typedef struct tarn__model_step_use {
  tarn__model_use_kind kind;
  tarn_pass pass;
  tarn__model_tensor
      *tensor;  // never an input or a tied parameter, but its root
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
  tarn__array stack;   // of what was pushed: see caches.c
  size_t depth;        // of them, not popped
  tarn__array
      listed;  // tarn__model_tensor *, by place in |stack|: see listed.c
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
  tarn__budget budget;         // without a limit: what arrays ask
  tarn__model_slots *slots;    // NULL: it is not planned
  tarn__model_placed *placed;  // NULL: it is not placed
  uint64_t extra_pushes;
  uint64_t extra_bytes;
};

// TARN_E_INVALID for NULL, TARN_E_STATE for a parent's.
TARN_MUST_CHECK tarn_status tarn__model_check(const tarn_model *model);

// And TARN_E_STATE where it is planned already.
TARN_MUST_CHECK tarn_status tarn__model_check_open(const tarn_model *model);

// Enters |model| into the list of all models, and takes it out.
void tarn__model_enlist(tarn_model *model);
void tarn__model_delist(tarn_model *model);

// Adds a parameter to the list of them.
void tarn__model_enlist_param(tarn_model *model, tarn_tensor *param);

// The model that |list| is a list of, and of which kind; NULL: of none.
//
// Cost: O(models), and O(parameters of all models) for an empty list of none.
tarn_model *tarn__model_of_list(const tarn_list *list,
                                tarn_tensor_kind *out_kind);

// The tensor whose bytes they are: an input's output, a tied parameter's other.
static inline tarn__model_tensor *tarn__tensor_root(tarn_tensor *tensor) {
  bool named_twice = tensor->of != NULL && tensor->kind != TARN_STATE;
  return (tarn__model_tensor *)(void *)(named_twice ? tensor->of : tensor);
}

// Whether |tensor| has a diff at all.
static inline bool tarn__tensor_has_diff(const tarn_tensor *tensor) {
  return tensor->kind != TARN_CACHE && tensor->kind != TARN_STATE;
}

// Bytes and elements at |batch|.
//
// TARN_E_INVALID  more than fit; the shape was checked when it was added, so
//                 only for a larger batch.
TARN_MUST_CHECK tarn_status tarn__tensor_bytes(const tarn_tensor *tensor,
                                               int64_t batch, size_t *out_size);

// Adds a tensor of any kind; errors as of tarn_model_add.
TARN_MUST_CHECK tarn_status tarn__tensor_add(tarn_model *model,
                                             tarn_tensor_kind kind,
                                             const char *name, tarn_dtype dtype,
                                             tarn_shape shape, bool bits,
                                             tarn_tensor *of,
                                             tarn_tensor **out_tensor);
void tarn__tensor_free(tarn__model_tensor *tensor);

void tarn__step_free(tarn_step *step);

static inline tarn_step *tarn__step_at(const tarn_model *model, size_t index) {
  return ((tarn_step **)model->steps.items)[index];
}

// NULL: it has none, or not now.
static inline tarn_synced *tarn__tensor_buffer(const tarn_tensor *tensor,
                                               tarn_part part) {
  return part == TARN_DATA ? tensor->data : tensor->diff;
}

static inline const char *tarn__part_name(tarn_part part) {
  return part == TARN_DATA ? "data" : "diff";
}

#endif  // TARN_MODEL_MODEL_H_
