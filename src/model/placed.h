// placed.h - a planned net in memory: blocks, buffers, and the present time.
//
//   block at home     ├── slot 3 ──┤├─ slot 0 ─┤
//                          ├─ slot 5 ─┤                 (later, same bytes)
//   block at compute  the same offsets again
//
// A slot's buffer wraps its bytes in both blocks. It is resumed at the begin of
// its lifetime and suspended at the end, so that accesses at other times are
// refused.
#ifndef TARN_MODEL_PLACED_H_
#define TARN_MODEL_PLACED_H_

#include "model/slots.h"

// The buffer made for a part of a tensor.
typedef struct tarn__model_placement {
  tarn__model_tensor *tensor;
  tarn_part part;
  tarn_synced *buffer;
} tarn__model_placement;

// Before the first round, and between rounds.
#define TARN__NO_TIME UINT64_MAX

// A slot, to be sorted by its last time.
typedef struct tarn__model_ending {
  uint64_t last;
  size_t slot;
} tarn__model_ending;

struct tarn__model_placed {
  const tarn__model_slots *slots;
  tarn_block blocks[2];         // at home and at compute; pool NULL: none
  tarn__model_placement *made;  // |made_count| of |made_room|: slots by number,
                                // fed outputs, inputs
  size_t made_count;
  size_t made_room;
  uint64_t now;
  bool *active;                 // by slot: resumed
  tarn__model_ending *by_last;  // slots, in order of their last time
  size_t next_to_begin;         // the first slot that begins after |now|
  size_t next_to_end;           // in |by_last|
  // Slot i shares bytes with predecessors[predecessor_starts[i] ..
  // predecessor_starts[i + 1]), in no order.
  size_t *predecessor_starts;
  tarn__array predecessors;  // size_t
};

// The reasons of suspended buffers: outside the lifetime, and after the model
// has released the buffer.
extern const char tarn__not_its_turn[];
extern const char tarn__gone[];

// Takes blocks and makes buffers. They replace those of |model|, which are
// destroyed.
//
// TARN_FULL, TARN_E_DEVICE  as tarn_model_place: nothing has changed.
TARN_MUST_CHECK tarn_status tarn__placed_begin(tarn_model *model,
                                               const tarn__model_slots *slots);

// TARN_E_STATE if an access is open to a buffer that tarn__placed_release ends
// or, with |all|, to any buffer of the model.
TARN_MUST_CHECK tarn_status tarn__placed_check_idle(tarn_model *model,
                                                    bool all);

// Frees blocks, planned buffers and fed outputs, which are not in use; in a
// child of fork only their memory of the host.
//
// TARN_E_DEVICE  done, but a device could not free some memory.
tarn_status tarn__placed_release(tarn_model *model);

// As tarn__placed_release; frees parameters, diffs and states too.
//
// TARN_E_DEVICE  done, but a device could not free some memory.
tarn_status tarn__placed_end(tarn_model *model);

// Extra caches, which the description and the plan do not have: checks that
// those whose step's backward pass is over at |time| are idle, or with
// TARN__NO_TIME all of them ...
//
// TARN_E_STATE  an access is open.
TARN_MUST_CHECK tarn_status tarn__caches_check_idle(const tarn_model *model,
                                                    uint64_t time);

// ... and suspends them.
TARN_MUST_CHECK tarn_status tarn__caches_end(tarn_model *model, uint64_t time);

// Empties the stacks of caches; extra buffers stay for the next round.
void tarn__caches_empty(tarn_model *model);

// Frees the stacks and extra buffers.
tarn_status tarn__caches_free(tarn_model *model);

#endif  // TARN_MODEL_PLACED_H_
