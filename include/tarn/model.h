// model.h - a net's whole memory: by name, and planned ahead.
//
// A net has tensors of four kinds: learnable parameters, outputs of layers,
// inputs of layers, caches of layers. It works in steps, which read and write
// them, forward and backward. Who describes both beforehand gets each tensor by
// name, as a synced buffer, and all outputs, their diffs and the caches in one
// piece of memory, in which those that are never needed together share bytes.
//
//   tarn_model *net;
//   tarn_model_create(&(tarn_model_options){.max_batch = 256}, &net);
//   tarn_tensor *x, *w, *y;
//   const int64_t in[] = {TARN_DIM_BATCH, 784}, weight[] = {784, 10},
//                 out[] = {TARN_DIM_BATCH, 10};
//   tarn_model_add(net, TARN_OUTPUT, "x", TARN_DTYPE_F32,
//                  (tarn_shape){in, 2}, &x);      // fed: no step writes it
//   tarn_model_add(net, TARN_PARAM, "fc.weight", TARN_DTYPE_F32,
//                  (tarn_shape){weight, 2}, &w);
//   tarn_model_add(net, TARN_OUTPUT, "fc.out", TARN_DTYPE_F32,
//                  (tarn_shape){out, 2}, &y);
//   tarn_step *fc;
//   tarn_model_step(net, "fc", &fc);
//   tarn_step_reads(fc, TARN_FORWARD, x, TARN_DATA);
//   tarn_step_reads(fc, TARN_FORWARD, w, TARN_DATA);
//   tarn_step_writes(fc, TARN_FORWARD, y, TARN_DATA);
//   tarn_model_plan(net, NULL);                     // no memory yet
//   tarn_model_place(net);                          // one block
//   tarn_model_enter(fc, TARN_FORWARD);
//   tarn_access a;
//   tarn_synced_begin(y->data, 0, tarn_tensor_size(y), TARN_HOST,
//                     TARN_WRITE_DISCARD, NULL, &a);
//
// Time. Steps run forward in the order in which they were added, and backward
// in the opposite order. A tensor's data, or its diff, is needed from the first
// step that writes it until the last that uses it: its lifetime. Parameters,
// their diffs and states live until the model ends, and what is fed as long as
// the model is placed.
//
// Beside this header: tarn/model_run.h, plans, places, steps and caches while
// the net runs; tarn/model_file.h, parameters to and from files and other
// frameworks; tarn/compat_awnn.h, the document's own names. docs/model.md tells
// all of it at length.
//
// Threads:  a model is described, planned, placed and entered by one thread at
//           a time, and looked up by any number while nobody changes it; its
//           tensors' buffers are used like any others (tarn/synced.h).
// Fork:     as buffers: TARN_E_STATE in a child; destroying frees host memory.
// Errors:   besides what each function lists: TARN_E_INVALID for NULL where an
//           object is wanted, or one of another model; TARN_E_NOMEM. Then
//           nothing has changed.
#ifndef TARN_MODEL_H_
#define TARN_MODEL_H_

#include "tarn/base.h"
#include "tarn/device.h"
#include "tarn/plan.h"
#include "tarn/pool.h"
#include "tarn/synced.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_model tarn_model;
typedef struct tarn_step tarn_step;

// ---------------------------------------------------------------------------
// Models
// ---------------------------------------------------------------------------

typedef struct tarn_model_options {
  size_t struct_size;
  const char *name;   // for texts, copied; NULL: "model"
  int64_t max_batch;  // what TARN_DIM_BATCH stands for at most; 0: 1
} tarn_model_options;

// An empty model. |options| NULL: all of them 0.
//
// TARN_E_INVALID  a negative batch.
TARN_API TARN_MUST_CHECK tarn_status
tarn_model_create(const tarn_model_options *options, tarn_model **out_model);

// Ends it, with its tensors and their buffers; NULL is allowed. A view of a
// parameter, or one that was exported, keeps its bytes; views of planned parts
// are refused whatever they want from then on.
//
// TARN_E_STATE   an access to one of its tensors is open, but for those to
//                parameters through views: nothing has changed.
// TARN_E_DEVICE  it has ended, but a device refused some of its memory.
TARN_API tarn_status tarn_model_destroy(tarn_model *model);

// ---------------------------------------------------------------------------
// Tensors
// ---------------------------------------------------------------------------

typedef enum tarn_tensor_kind {
  TARN_PARAM = 0,   // learnable: data and diff
  TARN_OUTPUT = 1,  // of a layer, or what is fed to the net: data and diff
  TARN_INPUT = 2,   // of a layer: a view of an output, data and diff
  TARN_CACHE = 3,   // of a layer, between forward and backward: data only
  TARN_STATE = 4,   // of an optimiser, beside a parameter: data only
  // Where a call takes a kind for looking: all of them. Kinds to come stay
  // below it, so that arrays by kind have this length for good.
  TARN_KIND_ALL = 8,
} tarn_tensor_kind;

// To be read only. Lives as long as its model.
typedef struct tarn_tensor {
  tarn_list node;   // in the list of its kind, in order of attaching; of a
                    // state: in |states| of its parameter
  tarn_list among;  // in the list of all kinds
  tarn_model *model;
  tarn_tensor_kind kind;
  tarn_dtype dtype;
  const char *name;
  tarn_shape shape;        // may have TARN_DIM_BATCH
  size_t max_size;         // bytes of data, and of diff, at the largest batch
  bool bits;               // a mask: an element takes a bit
  struct tarn_tensor *of;  // an input: the output; a state: its parameter; a
                           // tied parameter: the other; else NULL
  tarn_synced *data;       // NULL until the model is placed; also of caches and
                           // states that a plan for inference does not have
  tarn_synced *diff;     // likewise; NULL also of caches and states, and of an
                         // output whose diff no step writes
  tarn_list states;      // of a parameter: its states, by |node|; empty of a
                         // tied one, whose other has them
  uint64_t reserved[2];  // 0
} tarn_tensor;

// "param", "output", ...; NULL for what is none.
TARN_API const char *tarn_tensor_kind_name(tarn_tensor_kind kind);

// Adds a parameter or an output (other kinds have calls of their own, below).
// |name|, any bytes but NUL, and |shape| are copied. Of a shape with
// TARN_DIM_BATCH, which parameters must not have, the batch may stand anywhere.
//
// Lifetime: the model's.
// Cost:     O(1), and the copies.
// TARN_E_INVALID  an empty name, a shape that is none or too large for the
//                 largest batch, no dtype, or another kind.
// TARN_E_STATE    the name is taken: the text says by which kind; or the model
//                 is planned.
TARN_API TARN_MUST_CHECK tarn_status
tarn_model_add(tarn_model *model, tarn_tensor_kind kind, const char *name,
               tarn_dtype dtype, tarn_shape shape, tarn_tensor **out_tensor);

// Adds the input of a layer: another name for |output|, with the same data and
// diff. Both may be used in any order and are freed once. Errors as above.
TARN_API TARN_MUST_CHECK tarn_status
tarn_model_add_input(tarn_model *model, const char *name, tarn_tensor *output,
                     tarn_tensor **out_tensor);

// Adds another name for a parameter: tied weights. They have one data and one
// diff, and count once. Errors as above.
TARN_API TARN_MUST_CHECK tarn_status tarn_model_tie(tarn_model *model,
                                                    const char *name,
                                                    tarn_tensor *param,
                                                    tarn_tensor **out_tensor);

// Adds a state of |param| for an optimiser, of its shape, named
// "<param>.<name>"; of a tied one it is the other's. It begins as zeros. Errors
// as above.
TARN_API TARN_MUST_CHECK tarn_status
tarn_model_add_state(tarn_model *model, tarn_tensor *param, const char *name,
                     tarn_dtype dtype, tarn_tensor **out_tensor);

// The tensor of that name; NULL with the last error if there is none, or it is
// of another kind than |kind|. TARN_KIND_ALL: whatever it is of.
//
// Cost: O(1).
TARN_API tarn_tensor *tarn_model_get(tarn_model *model, tarn_tensor_kind kind,
                                     const char *name);
TARN_API tarn_tensor *tarn_model_param(tarn_model *model, const char *name);

// The list of a kind, to be walked by tarn_list_for_each with |node|, in order
// of attaching: not TARN_STATE, whose lists are the parameters'. With
// TARN_KIND_ALL: of all kinds, by |among|. NULL with the last error for what
// is no kind. The lists are the model's: only its own calls, and those of
// tarn/compat_awnn.h, add or take out.
TARN_API tarn_list *tarn_model_list(tarn_model *model, tarn_tensor_kind kind);

// How many there are of a kind; of all with TARN_KIND_ALL.
TARN_API size_t tarn_model_count(const tarn_model *model,
                                 tarn_tensor_kind kind);

// Calls |visit| for each tensor, in order of attaching, of |kind|
// (TARN_KIND_ALL: of any) whose name begins with |prefix| (NULL: any name),
// until a status is not TARN_OK, which is returned then. |visit| must not add.
//
// Cost:           O(tensors of the model).
// TARN_E_INVALID  no function, or no such kind.
typedef tarn_status tarn_tensor_visit(void *context, tarn_tensor *tensor);
TARN_API TARN_MUST_CHECK tarn_status tarn_model_each(tarn_model *model,
                                                     tarn_tensor_kind kind,
                                                     const char *prefix,
                                                     tarn_tensor_visit *visit,
                                                     void *context);

// Bytes of |tensor| at the model's present batch: the range to ask its buffers
// for. 0 for NULL.
TARN_API size_t tarn_tensor_size(const tarn_tensor *tensor);

// Elements of it at the present batch; 0 for NULL.
TARN_API size_t tarn_tensor_count(const tarn_tensor *tensor);

// ---------------------------------------------------------------------------
// Steps
// ---------------------------------------------------------------------------

typedef enum tarn_pass {
  TARN_FORWARD = 0,
  TARN_BACKWARD = 1,
} tarn_pass;

typedef enum tarn_part {
  TARN_DATA = 0,
  TARN_DIFF = 1,
} tarn_part;

// Adds a step behind the others. |name| is copied.
//
// Lifetime: the model's.
// TARN_E_INVALID  an empty name.
// TARN_E_STATE    the name is taken by a step, or the model is planned.
TARN_API TARN_MUST_CHECK tarn_status tarn_model_step(tarn_model *model,
                                                     const char *name,
                                                     tarn_step **out_step);

// The step of that name; NULL with the last error if there is none. O(1).
TARN_API tarn_step *tarn_model_find_step(tarn_model *model, const char *name);

TARN_API size_t tarn_model_step_count(const tarn_model *model);

// The step at |index|, in order; NULL beyond the last.
TARN_API tarn_step *tarn_model_step_at(const tarn_model *model, size_t index);

TARN_API const char *tarn_step_name(const tarn_step *step);
TARN_API size_t tarn_step_index(const tarn_step *step);
TARN_API tarn_model *tarn_step_model(const tarn_step *step);

// In |pass| the step needs the bytes of |part| of |tensor|, as they are. An
// input stands for its output. Uses of parameters, states and what is fed may
// be told; the plan does not need them.
//
// TARN_E_INVALID  a diff of a cache or state, no such pass or part, or a tensor
//                 of another model.
// TARN_E_STATE    the model is planned.
TARN_API TARN_MUST_CHECK tarn_status tarn_step_reads(tarn_step *step,
                                                     tarn_pass pass,
                                                     tarn_tensor *tensor,
                                                     tarn_part part);

// It writes them. The first step that writes a part, in time, is where it comes
// from; a later one overwrites it, or adds to it, if it reads it too. Errors as
// above.
TARN_API TARN_MUST_CHECK tarn_status tarn_step_writes(tarn_step *step,
                                                      tarn_pass pass,
                                                      tarn_tensor *tensor,
                                                      tarn_part part);

// It reads |giver| and writes |taker|, and can do so in one place: where nobody
// needs |giver| later, both may have the same bytes. Whether they have is asked
// by tarn_model_is_in_place. Errors as above.
TARN_API TARN_MUST_CHECK tarn_status tarn_step_replaces(
    tarn_step *step, tarn_pass pass, tarn_tensor *giver, tarn_part giver_part,
    tarn_tensor *taker, tarn_part taker_part);

// Adds a cache, a tensor of kind TARN_CACHE named |name|: written by the step
// forward, read by it backward. With |bits| an element is a bit, eight to a
// byte, and |dtype| must be TARN_DTYPE_BOOL. The shape may have TARN_DIM_BATCH.
// Errors as of tarn_model_add.
TARN_API TARN_MUST_CHECK tarn_status
tarn_step_caches(tarn_step *step, const char *name, tarn_dtype dtype,
                 tarn_shape shape, bool bits, tarn_tensor **out_tensor);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_MODEL_H_
