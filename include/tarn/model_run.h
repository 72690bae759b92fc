// model_run.h - runs a described model: its plan, its memory, its steps.
//
//   tarn_model_plan(net, NULL);             // offsets, no memory yet
//   tarn_model_place(net);                  // one block, and the buffers
//   for (int i = 0; i < rounds; i++) {
//     feed(x->data);                        // an access as to any buffer
//     tarn_model_enter(fc, TARN_FORWARD);   // fc's outputs may be written now
//     forward(x->data, w->data, y->data);
//     tarn_model_enter(fc, TARN_BACKWARD);
//     backward(y->diff, x->data, w->diff);
//     tarn_model_leave(net);
//     update(w->data, w->diff);
//   }
//   tarn_model_release(net);                // parameters keep their contents
//
//   described ──tarn_model_plan──► planned ──tarn_model_place──► placed
//       ▲                            │ ▲                           │
//       └────tarn_model_forget───────┘ └─────tarn_model_release────┘
//
// Threads, fork, errors: as in tarn/model.h.
#ifndef TARN_MODEL_RUN_H_
#define TARN_MODEL_RUN_H_

#include "tarn/model.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---------------------------------------------------------------------------
// Plans
// ---------------------------------------------------------------------------

typedef enum tarn_model_mode {
  TARN_TRAIN = 0,  // forward and backward
  TARN_INFER = 1,  // forward only: no diffs, no caches, no states
} tarn_model_mode;

typedef struct tarn_model_plan_options {
  size_t struct_size;
  tarn_model_mode mode;
  tarn_place home;     // the place of all tensors; zero: the host
  tarn_place compute;  // a second place, where steps work; the planned memory
                       // has a block there too; zero (TARN_HOST): none. With
                       // home on a device, the host is cpu:0, by tarn_place_on,
                       // or {device, TARN_PLACE_HOST}; both are host memory
                       // that home's device pins
  size_t capacity;     // largest size of the planned memory, in bytes, at
                       // either place; 0: no limit
  size_t align;        // of each tensor, a power of two; 0: 64
  const tarn_plan_options *solver;  // NULL: 1,000,000 nodes, at most 1 s. Its
                                    // pointers are used by this call only, and
                                    // not by a later tarn_model_set_max_batch
} tarn_model_plan_options;

// Plans the model: computes sizes for the largest batch, finds lifetimes, and
// gives outputs, their diffs and caches their offsets. Fed outputs, parameters,
// their diffs and states get memory of their own when the model is placed. The
// plan itself takes host memory for bookkeeping only. |options| NULL: all of
// them 0.
//
// TARN_E_INVALID  a step reads a part that no earlier step has written: the
//                 text names step and tensor; or a wrong option.
// TARN_E_STATE    the model is planned already.
// TARN_FULL       no plan within the capacity was found: the text says whether
//                 one can exist, and names the step that needs most.
TARN_API TARN_MUST_CHECK tarn_status
tarn_model_plan(tarn_model *model, const tarn_model_plan_options *options);

// Drops the plan, so that tensors and steps can be added. Without a plan
// nothing happens.
//
// TARN_E_STATE  the model is placed.
TARN_API tarn_status tarn_model_forget(tarn_model *model);

// The memory that a model needs. A model without a plan is counted as for
// TARN_TRAIN at the host, and |planned| is 0.
typedef struct tarn_model_needs {
  size_t struct_size;
  tarn_model_mode mode;
  int64_t max_batch;
  size_t kinds[TARN_KIND_ALL];  // bytes of data at the largest batch; inputs
                                // and tied parameters are 0, fed outputs count
                                // as outputs
  size_t diffs[TARN_KIND_ALL];  // bytes of diffs, likewise
  size_t fed;      // the share of kinds[TARN_OUTPUT] that no step writes
  size_t naive;    // sum of outputs, diffs and caches, without fed outputs
  size_t planned;  // the same in one plan; 0: not planned
  size_t bound;    // no plan is lower
  tarn_plan_answer answer;
  size_t in_place;        // parts that took the place of others
  size_t peak_step;       // index of the step that needs most
  tarn_pass peak_pass;    // its pass
  size_t total;           // bytes needed at home: planned, fed, parameters,
                          // diffs, states
  size_t free;            // bytes free on home's device; 0: unknown
  bool fits;              // total <= free, or free is unknown
  uint64_t extra_pushes;  // cache entries beyond the description, so far
  uint64_t extra_bytes;   // their bytes
} tarn_model_needs;

// Fills |*out_report|. Takes host memory for bookkeeping only.
//
// TARN_E_INVALID  without a plan: as tarn_model_plan.
TARN_API TARN_MUST_CHECK tarn_status
tarn_model_report(tarn_model *model, tarn_model_needs *out_report);

// One planned part: when it is needed and where it lies.
typedef struct tarn_model_slot {
  size_t struct_size;
  tarn_tensor *tensor;
  tarn_part part;
  size_t size;     // bytes at the largest batch
  size_t offset;   // in the planned memory
  uint64_t first;  // time of the first step that needs it; forward step i is
  uint64_t last;   // time i, backward step i of n is 2n - 1 - i; inclusive
} tarn_model_slot;

typedef tarn_status tarn_model_slot_visit(void *context,
                                          const tarn_model_slot *slot);

// Calls |visit| for each planned part, in order of first times. Stops at the
// first status other than TARN_OK and returns it.
//
// TARN_E_STATE  the model is not planned.
TARN_API TARN_MUST_CHECK tarn_status tarn_model_each_slot(
    tarn_model *model, tarn_model_slot_visit *visit, void *context);

// Whether |taker| was planned into the place of |giver|; false without a plan.
TARN_API bool tarn_model_is_in_place(tarn_model *model, tarn_tensor *giver,
                                     tarn_part giver_part, tarn_tensor *taker,
                                     tarn_part taker_part);

// ---------------------------------------------------------------------------
// Places
// ---------------------------------------------------------------------------

// Places the model: takes the planned memory, one block of the pool at home and
// one at the compute place, and makes the buffers of all tensors. Planned parts
// lie in those blocks. Fed outputs, parameters, their diffs and states get
// memory from the pool of the place where they are first used; so does a
// planned part at a third place, until the model is released.
//
// TARN_E_STATE        the model is not planned, or is placed already.
// TARN_FULL           no room.
// TARN_E_INVALID, TARN_E_UNSUPPORTED  home or compute is not a place, or the
//                     device has no memory of that kind.
// TARN_E_DEVICE       the driver failed.
// On failure nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status tarn_model_place(tarn_model *model);

// Frees the planned memory and fed outputs. Parameters, diffs and states keep
// their contents and buffers, so that the model can be planned anew, for
// another batch or mode, and placed again. The host waits for streams that use
// the freed memory. Nothing happens if the model is not placed.
//
// TARN_E_STATE   an access to a buffer that would be freed is open: nothing has
//                changed.
// TARN_E_DEVICE  done, but a device could not free some of the memory.
TARN_API tarn_status tarn_model_release(tarn_model *model);

// Sets the present batch: the value of TARN_DIM_BATCH from now on. The plan
// stays. The initial batch is the largest one.
//
// TARN_E_INVALID  |batch| is below 0 or above the largest: call
//                 tarn_model_set_max_batch for a larger one.
TARN_API TARN_MUST_CHECK tarn_status tarn_model_set_batch(tarn_model *model,
                                                          int64_t batch);
TARN_API int64_t tarn_model_batch(const tarn_model *model);

// Makes |batch| the largest and the present one. A planned model is planned
// anew with the same options, and a placed model is moved to new blocks:
// planned parts and fed outputs lose their contents, and the round ends. During
// the call both the old and the new blocks exist.
//
// TARN_E_INVALID  |batch| is below 1, or a tensor becomes too large.
// TARN_E_STATE    an access is open, as for tarn_model_release.
// Other errors are those of tarn_model_plan and tarn_model_place. On failure
// nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status tarn_model_set_max_batch(tarn_model *model,
                                                              int64_t batch);

// ---------------------------------------------------------------------------
// Steps
// ---------------------------------------------------------------------------

// Begins |pass| of |step|. An access to a part outside its lifetime is refused
// with TARN_E_STATE. A part whose lifetime begins has no contents until it is
// written.
//
// Steps are entered in the order of time. Steps may be left out, and entering
// the present one again changes nothing. The first step forward may be entered
// at any time and begins a new round; so does any step after tarn_model_leave.
//
// An access to a part waits for the work still queued on the bytes that it
// shares with earlier parts. The exception is the step in which one part takes
// the place of another: there the program must use both at one place, on one
// stream or on none, and must not use the giver once the taker was written.
//
// Cost:         O(parts that begin or end, times the parts that share their
//               bytes). Takes no memory after a few rounds, in which records
//               of streams grow to their final size.
// TARN_E_STATE  the model is not placed; |step| lies back in time; the plan is
//               for inference and has no backward pass; or an access to a part
//               that would end is open.
// TARN_E_NOMEM  only with work queued on streams.
// On failure the step is not entered and nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status tarn_model_enter(tarn_step *step,
                                                      tarn_pass pass);

// Ends the round: planned parts cannot be used until the next round begins.
// Nothing happens if the model is not placed.
//
// TARN_E_STATE  an access to a planned part is open: nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status tarn_model_leave(tarn_model *model);

// ---------------------------------------------------------------------------
// Caches
// ---------------------------------------------------------------------------
// Each step has a stack of caches from its forward to its backward pass. The
// n-th push of a round is the n-th cache of the step's description. Further
// entries are extra: they have memory of their own, from the pool of the place
// where they are used, and are counted in the report. The memory of an extra
// entry serves an entry of the same size in the next round. An entry may be
// used from its push until the backward pass of its step is over, through the
// model's buffer or a view.
//
// Extra entries are tensors of the model: the first push at a place of the
// stack adds a tensor of kind TARN_CACHE, named "fc1.cache2" for place 2 of
// step fc1, counted from 0 ("fc1.cache2.1" if that name is taken). It shows the
// entry that was pushed there last. Its data is NULL while the model is not
// placed, and after a cache was described for its place. Its name stays taken
// until the model ends. tarn_step_reads, _writes and _replaces refuse it.

// Pushes an entry of |count| elements at the present batch, and returns its
// buffer for writing. A described entry must have the described dtype and
// count.
//
// Threads:  the first push of an extra entry at a place adds a tensor to the
//           model: no other thread may read the model's tensors meanwhile.
// Lifetime: the model owns the buffer, until the next push at its place or
//           until the model is released.
// Cost:     takes no host memory in a steady round.
// TARN_E_INVALID  the dtype or count is not the described one: the text says
//                 both; or |dtype| is no dtype, |bits| is set for a dtype other
//                 than TARN_DTYPE_BOOL, or |count| is too large.
// TARN_E_STATE    |step| was not entered forward, or the plan is for inference.
TARN_API TARN_MUST_CHECK tarn_status tarn_step_push(tarn_step *step,
                                                    tarn_dtype dtype,
                                                    size_t count, bool bits,
                                                    tarn_synced **out_buffer);

// Pops the entry that was pushed last. It may be read until the step's backward
// pass is over.
//
// TARN_E_STATE    the stack is empty, or |step| was not entered backward.
// TARN_E_INVALID  the entry has another dtype or count: it stays on the stack.
TARN_API TARN_MUST_CHECK tarn_status tarn_step_pop(tarn_step *step,
                                                   tarn_dtype dtype,
                                                   size_t count, bool bits,
                                                   tarn_synced **out_buffer);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_MODEL_RUN_H_
