// model.h - all memory of a net, by name and planned ahead.
//
// A net has tensors of four kinds: learnable parameters, outputs of layers,
// inputs of layers, caches of layers. Its steps read and write them, forward
// and backward. From a description of both, a model gives each tensor by name,
// as a synced buffer, and places outputs, their diffs and caches in one piece
// of memory, in which tensors that are never needed together share bytes.
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
// in the opposite order. The lifetime of a tensor's data, or of its diff, is
// from the first step that writes it to the last that uses it. Parameters,
// their diffs and states live until the model ends. A fed output, which no step
// writes, lives as long as the model is placed.
//
// Other headers: tarn/model_run.h, plans, places, steps and caches of a running
// model; tarn/model_file.h, files and other frameworks; tarn/compat_awnn.h,
// AWNN's names. docs/model.md describes all of it.
//
// Threads:  a model is described, planned, placed and entered by one thread at
//           a time. Any number of threads may look up tensors while it does not
//           change. The tensors' buffers are used like any others
//           (tarn/synced.h).
// Fork:     as buffers: TARN_E_STATE in a child; destroying frees host memory.
// Errors:   beside those listed: TARN_E_INVALID for NULL or for an object of
//           another model; TARN_E_NOMEM. On failure nothing has changed.
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

// Makes an empty model. |options| NULL: all of them 0.
//
// TARN_E_INVALID  a negative batch.
TARN_API TARN_MUST_CHECK tarn_status
tarn_model_create(const tarn_model_options *options, tarn_model **out_model);

// Ends the model, its tensors and their buffers. NULL is allowed. A view or an
// export of a parameter keeps its bytes; every access through a view of a
// planned part is refused from then on.
//
// TARN_E_STATE   an access to one of its tensors is open (accesses through
//                views of parameters do not count): nothing has changed.
// TARN_E_DEVICE  done, but a device could not free some of its memory.
TARN_API tarn_status tarn_model_destroy(tarn_model *model);

// ---------------------------------------------------------------------------
// Tensors
// ---------------------------------------------------------------------------

typedef enum tarn_tensor_kind {
  TARN_PARAM = 0,   // learnable: data and diff
  TARN_OUTPUT = 1,  // of a layer, or fed to the net: data and diff
  TARN_INPUT = 2,   // of a layer: a view of an output, data and diff
  TARN_CACHE = 3,   // of a layer, between forward and backward: data only
  TARN_STATE = 4,   // of an optimizer, beside a parameter: data only
  // In calls that look up: any kind. Future kinds stay below it, so that arrays
  // by kind keep this length.
  TARN_KIND_ALL = 8,
} tarn_tensor_kind;

// A tensor lives as long as its model. Programs only read the struct.
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
  tarn_list states;      // of a parameter: its states, by |node|; empty for a
                         // tied parameter, whose root has them
  uint64_t reserved[2];  // 0
} tarn_tensor;

// "param", "output", ...; NULL for an unknown kind.
TARN_API const char *tarn_tensor_kind_name(tarn_tensor_kind kind);

// Adds a parameter or an output (other kinds have calls of their own, below).
// |name|, any bytes without NUL, and |shape| are copied. TARN_DIM_BATCH may be
// any dimension of an output's shape, and none of a parameter's.
//
// Lifetime: the model's.
// Cost:     O(1), and the copies.
// TARN_E_INVALID  an empty name, a bad shape or one too large for the largest
//                 batch, no dtype, or another kind.
// TARN_E_STATE    the name is taken: the text says by which kind; or the model
//                 is planned.
TARN_API TARN_MUST_CHECK tarn_status
tarn_model_add(tarn_model *model, tarn_tensor_kind kind, const char *name,
               tarn_dtype dtype, tarn_shape shape, tarn_tensor **out_tensor);

// Adds the input of a layer: another name for |output|, with the same data and
// diff. Both may be used in any order. Errors as above.
TARN_API TARN_MUST_CHECK tarn_status
tarn_model_add_input(tarn_model *model, const char *name, tarn_tensor *output,
                     tarn_tensor **out_tensor);

// Adds another name for a parameter (tied weights). Tied parameters have one
// data and one diff, and count once. Errors as above.
TARN_API TARN_MUST_CHECK tarn_status tarn_model_tie(tarn_model *model,
                                                    const char *name,
                                                    tarn_tensor *param,
                                                    tarn_tensor **out_tensor);

// Adds an optimizer's state of |param|, with its shape, named "<param>.<name>".
// A state of a tied parameter belongs to its root. States begin as zeros.
// Errors as above.
TARN_API TARN_MUST_CHECK tarn_status
tarn_model_add_state(tarn_model *model, tarn_tensor *param, const char *name,
                     tarn_dtype dtype, tarn_tensor **out_tensor);

// The tensor called |name|; NULL with the last error if there is none of
// |kind|. TARN_KIND_ALL: of any kind.
//
// Cost: O(1).
TARN_API tarn_tensor *tarn_model_get(tarn_model *model, tarn_tensor_kind kind,
                                     const char *name);
TARN_API tarn_tensor *tarn_model_param(tarn_model *model, const char *name);

// The list of the tensors of a kind, in order of attaching, for
// tarn_list_for_each with |node|; with TARN_KIND_ALL the list of all kinds,
// with |among|. TARN_STATE has no list of its own: each parameter lists its
// states. NULL with the last error for an unknown kind. Only the model's calls,
// and those of tarn/compat_awnn.h, change the lists.
TARN_API tarn_list *tarn_model_list(tarn_model *model, tarn_tensor_kind kind);

// The number of tensors of a kind, or of all with TARN_KIND_ALL.
TARN_API size_t tarn_model_count(const tarn_model *model,
                                 tarn_tensor_kind kind);

// Calls |visit| for each tensor of |kind| (TARN_KIND_ALL: any) whose name
// begins with |prefix| (NULL: any), in order of attaching. Stops at the first
// status other than TARN_OK and returns it. |visit| must not add tensors.
//
// Cost:           O(tensors of the model).
// TARN_E_INVALID  no function, or no such kind.
typedef tarn_status tarn_tensor_visit(void *context, tarn_tensor *tensor);
TARN_API TARN_MUST_CHECK tarn_status tarn_model_each(tarn_model *model,
                                                     tarn_tensor_kind kind,
                                                     const char *prefix,
                                                     tarn_tensor_visit *visit,
                                                     void *context);

// Bytes of |tensor| at the model's present batch: the size for accesses to its
// buffers. 0 for NULL.
TARN_API size_t tarn_tensor_size(const tarn_tensor *tensor);

// Elements of |tensor| at the present batch; 0 for NULL.
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

// Declares that |step| reads |part| of |tensor| in |pass|. An input stands for
// its output. Uses of parameters, states and fed outputs may be declared; the
// plan does not need them.
//
// TARN_E_INVALID  a diff of a cache or state, no such pass or part, or a tensor
//                 of another model.
// TARN_E_STATE    the model is planned.
TARN_API TARN_MUST_CHECK tarn_status tarn_step_reads(tarn_step *step,
                                                     tarn_pass pass,
                                                     tarn_tensor *tensor,
                                                     tarn_part part);

// Declares that |step| writes |part|. The first step in time that writes a part
// begins its lifetime; a later one overwrites it, or adds to it if it also
// reads it. Errors as above.
TARN_API TARN_MUST_CHECK tarn_status tarn_step_writes(tarn_step *step,
                                                      tarn_pass pass,
                                                      tarn_tensor *tensor,
                                                      tarn_part part);

// Declares that |step| reads |giver| and writes |taker|, and can do so in
// place: if no later step reads |giver|, both may have the same bytes.
// tarn_model_is_in_place tells whether they do. Errors as above.
TARN_API TARN_MUST_CHECK tarn_status tarn_step_replaces(
    tarn_step *step, tarn_pass pass, tarn_tensor *giver, tarn_part giver_part,
    tarn_tensor *taker, tarn_part taker_part);

// Adds a cache, a tensor of kind TARN_CACHE: |step| writes it forward and reads
// it backward. With |bits| an element is a bit, eight to a byte, and |dtype|
// must be TARN_DTYPE_BOOL. The shape may have TARN_DIM_BATCH. Errors as
// tarn_model_add.
TARN_API TARN_MUST_CHECK tarn_status
tarn_step_caches(tarn_step *step, const char *name, tarn_dtype dtype,
                 tarn_shape shape, bool bits, tarn_tensor **out_tensor);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_MODEL_H_
