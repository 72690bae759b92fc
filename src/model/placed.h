// placed.h - a planned net in memory: blocks, buffers, and the present time.
//
//   block at home     ├── slot 3 ──┤├─ slot 0 ─┤
//                          ├─ slot 5 ─┤                 (later, same bytes)
//   block at compute  the same offsets again
//
// A slot's buffer is wrapped around its bytes in both blocks. It is resumed
// when its lifetime begins and suspended when it is over, so that an access at
// any other time is refused.
#ifndef TARN_MODEL_PLACED_H_
#define TARN_MODEL_PLACED_H_

#include "model/slots.h"

// A buffer that was made for a part of a tensor.
typedef struct tarn__model_placement {
  tarn__model_tensor *tensor;
  tarn_part part;
  tarn_synced *buffer;
} tarn__model_placement;

// Before the first round, and between rounds.
#define TARN__NO_TIME UINT64_MAX

struct tarn__model_placed {
  const tarn__model_slots *slots;
  tarn_block blocks[2];         // at home and at compute; pool NULL: none
  tarn__model_placement *made;  // |made_count|: one for each slot, by its
                                // number, then what is fed, then inputs
  size_t made_count;
  uint64_t now;
  bool *active;          // by slot: resumed
  size_t *by_last;       // slots, in order of their last time
  size_t next_to_begin;  // the first slot that begins after |now|
  size_t next_to_end;    // in |by_last|
  // Slot i shares bytes with predecessors[predecessor_starts[i] ..
  // predecessor_starts[i + 1]), in no order.
  size_t *predecessor_starts;
  size_t *predecessors;
};

// What a suspended buffer says: between its lifetimes, and when its model has
// let go of it.
extern const char tarn__not_its_turn[];
extern const char tarn__gone[];

// Takes blocks, makes buffers, and gives both to |model| in place of what it
// has, whose buffers end.
//
// TARN_FULL, TARN_E_DEVICE  as tarn_model_place: nothing has changed.
TARN_MUST_CHECK tarn_status tarn__placed_begin(tarn_model *model,
                                               const tarn__model_slots *slots);

// TARN_E_STATE if an access to |buffer|, whoever's, is open; NULL is allowed.
TARN_MUST_CHECK tarn_status tarn__placed_check_buffer(tarn_synced *buffer,
                                                      const char *name);

// TARN_E_STATE if an access to a buffer of the model is open: only to those
// that tarn__placed_release ends, or to any of them.
TARN_MUST_CHECK tarn_status tarn__placed_check_idle(tarn_model *model,
                                                    bool all);

// Gives back blocks, planned buffers, and what is fed; nobody uses them.
//
// TARN_E_DEVICE  done, but a device refused some memory.
tarn_status tarn__placed_release(tarn_model *model);

// Whether a model may end: as tarn__placed_check_idle; in a child of fork
// whatever is open.
TARN_MUST_CHECK tarn_status tarn__placed_check_end(tarn_model *model);

// Ends parameters, diffs and states too; in a child of fork only what the host
// has of them.
//
// TARN_E_DEVICE  done, but a device refused some memory.
tarn_status tarn__placed_end(tarn_model *model);

// Of caches beyond the description, which a plan knows nothing of: whether
// those are idle whose step's backward pass is over at |time|, or all with
// TARN__NO_TIME ...
//
// TARN_E_STATE  an access is open.
TARN_MUST_CHECK tarn_status tarn__caches_check_idle(const tarn_model *model,
                                                    uint64_t time);

// ... and suspends them.
TARN_MUST_CHECK tarn_status tarn__caches_end(tarn_model *model, uint64_t time);

// Empties the stacks of caches; buffers beyond the description stay for the
// next round.
void tarn__caches_empty(tarn_model *model);

// Frees the stacks with those buffers.
tarn_status tarn__caches_free(tarn_model *model);

// --- listed.c: caches beyond the description, as tensors -------------------

// Sees to it that |place| of the stack of |step|, which no cache describes, has
// a tensor.
//
// TARN_E_INVALID  more elements than a shape can have.
TARN_MUST_CHECK tarn_status tarn__listed_make(tarn_step *step, size_t place,
                                              tarn_dtype dtype, size_t count,
                                              bool bits);

// Makes that tensor show what was pushed, and, before the buffers end, all of
// them nothing.
void tarn__listed_show(const tarn_step *step, size_t place, tarn_dtype dtype,
                       size_t count, bool bits, tarn_synced *buffer);
void tarn__listed_hide(const tarn_step *step);

// --- predecessors.c: which slots have bytes of each other ---

// Fills |by_last|, |predecessor_starts| and |predecessors|.
TARN_MUST_CHECK tarn_status tarn__placed_order(tarn__model_placed *placed);
void tarn__placed_free_order(tarn__model_placed *placed);

#endif  // TARN_MODEL_PLACED_H_
