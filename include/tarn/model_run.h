// model_run.h - a described net at work: its plan, its memory, its steps.
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
  tarn_place home;     // where everything is; zero: the host
  tarn_place compute;  // where steps work on it, if that is another place: then
                       // it is planned there too; zero (TARN_HOST): at home.
                       // The host beside a home on a device: cpu:0, by
                       // tarn_place_on, or {device, TARN_PLACE_HOST}; both
                       // are host memory that home's device pins
  size_t capacity;     // bytes that the planned memory may have at each of the
                       // two; 0: no limit
  size_t align;        // of each tensor, a power of two; 0: 64
  const tarn_plan_options *solver;  // NULL: 1,000,000 nodes, at most 1 s. What
                                    // it points to is for this call only, and
                                    // not for plans that are made anew
} tarn_model_plan_options;

// Sizes everything for the largest batch, finds lifetimes, and gives outputs,
// their diffs and the caches their offsets. Takes no memory but the books. What
// is fed, and parameters with their diffs and states, have memory of their own.
// |options| NULL: all of them 0.
//
// TARN_E_INVALID  a part is read that no step has written by then: the text
//                 names step and tensor; or a wrong option.
// TARN_E_STATE    it is planned already.
// TARN_FULL       no plan within the capacity was found: the text says whether
//                 there is none, and names the step that needs most.
TARN_API TARN_MUST_CHECK tarn_status
tarn_model_plan(tarn_model *model, const tarn_model_plan_options *options);

// Drops the plan, so that tensors and steps can be added. There is none:
// nothing happens.
//
// TARN_E_STATE  it is placed.
TARN_API tarn_status tarn_model_forget(tarn_model *model);

// What a model needs. Of a model that is not planned: as for TARN_TRAIN at the
// host, and |planned| is 0.
typedef struct tarn_model_needs {
  size_t struct_size;
  tarn_model_mode mode;
  int64_t max_batch;
  size_t kinds[TARN_KIND_ALL];  // bytes of data at the largest batch; inputs
                                // and tied parameters are 0, fed outputs
                                // count as outputs
  size_t diffs[TARN_KIND_ALL];  // and of diffs
  size_t fed;                   // of kinds[TARN_OUTPUT], what no step writes
  size_t naive;    // outputs, diffs and caches, each with memory of its own,
                   // without what is fed
  size_t planned;  // the same in one plan; 0: not planned
  size_t bound;    // no plan is lower
  tarn_plan_answer answer;
  size_t in_place;        // parts that took the place of others
  size_t peak_step;       // index of the step that needs most
  tarn_pass peak_pass;    // and its pass
  size_t total;           // all that is to be taken at home: planned, fed,
                          // parameters, diffs, states
  size_t free;            // bytes that home's device has free; 0: unknown
  bool fits;              // total is not above it, or it is unknown
  uint64_t extra_pushes;  // entries beyond the description, so far
  uint64_t extra_bytes;   // and theirs
} tarn_model_needs;

// Counts it all, and takes no memory but for the books.
//
// TARN_E_INVALID  of a model that is not planned: as of tarn_model_plan.
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

// Calls |visit| for each planned part, for pictures and checks, in order of
// their first times, until a status is not TARN_OK, which is returned then.
//
// TARN_E_STATE  it is not planned.
TARN_API TARN_MUST_CHECK tarn_status tarn_model_each_slot(
    tarn_model *model, tarn_model_slot_visit *visit, void *context);

// Whether |taker| was planned into the place of |giver|; false also if the
// model is not planned.
TARN_API bool tarn_model_is_in_place(tarn_model *model, tarn_tensor *giver,
                                     tarn_part giver_part, tarn_tensor *taker,
                                     tarn_part taker_part);

// ---------------------------------------------------------------------------
// Places
// ---------------------------------------------------------------------------

// Takes the planned memory, one block of the pool at home and one at the
// compute place, and makes the buffers of all tensors: planned ones lie in
// those blocks; what is fed, parameters, their diffs and states get memory from
// the pool of the place where they are first used. So does a planned part at a
// third place, until the model is released.
//
// TARN_E_STATE        it is not planned, or placed already.
// TARN_FULL           no room.
// TARN_E_INVALID, TARN_E_UNSUPPORTED  home or compute is no place, or the
//                     device has no memory of that kind.
// TARN_E_DEVICE       the driver failed.
// In each case nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status tarn_model_place(tarn_model *model);

// Gives planned memory and what is fed back; parameters, diffs and states keep
// their contents and their buffers, so that a model can be planned anew, for
// another batch or mode, and placed again. The host waits for streams that are
// at work there. Not placed: nothing happens.
//
// TARN_E_STATE   an access to what would go is open: nothing has changed.
// TARN_E_DEVICE  done, but a device refused some of the memory.
TARN_API tarn_status tarn_model_release(tarn_model *model);

// How many samples there are in what TARN_DIM_BATCH stands for, from now on;
// the plan stays. At first it is the largest batch.
//
// TARN_E_INVALID  below 0 or above the largest: plan anew for it, or call
//                 tarn_model_set_max_batch.
TARN_API TARN_MUST_CHECK tarn_status tarn_model_set_batch(tarn_model *model,
                                                          int64_t batch);
TARN_API int64_t tarn_model_batch(const tarn_model *model);

// Makes |batch| the largest and the present one. A model that is planned is
// planned anew with the same options, and one that is placed gets a new place:
// what is planned or fed loses its contents, and the round is over. While it
// works there is memory for both.
//
// TARN_E_INVALID  below 1, or a tensor is too large then.
// TARN_E_STATE    an access is open, as of tarn_model_release.
// and as of tarn_model_plan and tarn_model_place: then nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status tarn_model_set_max_batch(tarn_model *model,
                                                              int64_t batch);

// ---------------------------------------------------------------------------
// Steps
// ---------------------------------------------------------------------------

// Says that |pass| of |step| begins. Parts whose lifetime is over, or has not
// begun, must not be used: an access is TARN_E_STATE and says so; parts whose
// lifetime begins hold nothing until they are written.
//
// Steps are entered in the order of time; some may be left out, and to enter
// the present one again changes nothing. The first step forward may be entered
// at any time, and begins a new round; so does any step after tarn_model_leave.
//
// Whoever uses a part waits for what is queued on the bytes that were others'
// before. Only in the step in which one part takes the place of another nobody
// but the program keeps the two apart: there they are used at one place, on one
// stream or on none, and the giver no more once the taker was written.
//
// Cost:         O(parts that begin or end, each times those that have bytes of
//               it); no memory is taken, but for the books of streams, which
//               do not grow any more after a few rounds.
// TARN_E_STATE  not placed, a step back in time, a backward pass of a plan for
//               inference, or an access to a part that would end is open.
// TARN_E_NOMEM  only where streams are at work. As with all errors the step
//               has not been entered and nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status tarn_model_enter(tarn_step *step,
                                                      tarn_pass pass);

// Ends the round: no planned part may be used until the next begins. Not
// placed: nothing happens.
//
// TARN_E_STATE  an access to a planned part is open: nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status tarn_model_leave(tarn_model *model);

// ---------------------------------------------------------------------------
// Caches
// ---------------------------------------------------------------------------
// What a step keeps from forward to backward, pushed and popped like a stack.
// The n-th push of a round is the n-th cache of the step's description; beyond
// that, entries have memory of their own, from the pool of the place where they
// are used, and are counted. It is used again in the next round by an entry of
// the same size. An entry may be used from its push until the backward pass of
// its step is over, through the model's buffer or a view.
//
// Entries beyond the description are listed as well: the first push at a place
// of the stack adds a tensor of kind TARN_CACHE to the model, "fc1.cache2" for
// place 2, counted from 0, of step fc1 ("fc1.cache2.1" where that name is
// taken). It shows what was pushed there last; its data is NULL when the model
// is not placed, and where a cache was described for its place since. Its name
// stays taken as long as the model. tarn_step_reads and its kin refuse it.

// Pushes an entry of |count| elements at the present batch, and gives its
// buffer, which is to be written. A described one must be of that dtype and
// have that many elements.
//
// Threads:  the first push at a place beyond the description adds to the model,
//           in the middle of a round: meanwhile no other thread may read its
//           tensors.
// Lifetime: the buffer is the model's, until the next push in its place or the
//           end of the place.
// Cost:     no host memory is taken in a steady round.
// TARN_E_INVALID  another dtype or count than described: the text says both; or
//                 no dtype, bits that are not TARN_DTYPE_BOOL, too many.
// TARN_E_STATE    |step| was not entered forward, or not to train.
TARN_API TARN_MUST_CHECK tarn_status tarn_step_push(tarn_step *step,
                                                    tarn_dtype dtype,
                                                    size_t count, bool bits,
                                                    tarn_synced **out_buffer);

// Gives the entry that was pushed last and takes it off the stack: it may be
// read until the step's backward pass is over.
//
// TARN_E_STATE    nothing is there, or |step| was not entered backward.
// TARN_E_INVALID  it is of another dtype or count: it stays where it is.
TARN_API TARN_MUST_CHECK tarn_status tarn_step_pop(tarn_step *step,
                                                   tarn_dtype dtype,
                                                   size_t count, bool bits,
                                                   tarn_synced **out_buffer);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_MODEL_RUN_H_
