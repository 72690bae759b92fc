// random_net.h - nets by chance, and what must be true of their bytes.
//
// A part is the data or the diff of a tensor that has bytes of its own, or an
// entry that was pushed beyond the description. Of each byte the net knows
// whether it has a value, and which. Other names of a part, inputs and tied
// parameters, are kept beside it.
#ifndef TARN_TESTS_MODEL_RANDOM_NET_H_
#define TARN_TESTS_MODEL_RANDOM_NET_H_

#include "support/synced_ground.h"
#include "tarn/model_run.h"

enum {
  RN_STEPS = 8,
  RN_TENSORS = 80,
  RN_PARTS = 160,
  RN_PAIRS = 128,
  RN_EXTRAS = 3,
  RN_MOST_BATCH = 4,
  RN_MOST_ROW = 300,
};

typedef struct rn_part {
  tarn_tensor *tensor;  // NULL: an entry beyond the description
  tarn_part part;
  tarn_tensor *other;  // another name; NULL: none
  tarn_synced *extra;
  size_t extra_size;
  bool kept;        // a parameter's, its diff's, a state's
  bool planned;     // it has a lifetime
  bool is_written;  // in time so far, while the net is described
  bool left_out;    // no step uses it
  uint64_t first;
  uint64_t last;
  size_t offset;
  bool active;
  bool spoiled;  // another took its place
  unsigned char bytes[SM_SIZE];
  bool known[SM_SIZE];
} rn_part;

// |taker| may take the place of |giver| at |time|.
typedef struct rn_pair {
  rn_part *giver;
  rn_part *taker;
  uint64_t time;
} rn_pair;

typedef struct rn_net {
  tarn_model *model;
  size_t steps;
  tarn_step *step[RN_STEPS];
  bool trains;
  rn_part parts[RN_PARTS];
  size_t part_count;
  rn_pair pairs[RN_PAIRS];
  size_t pair_count;
  rn_part extras[RN_STEPS][RN_EXTRAS];
  size_t pushed[RN_STEPS];  // of all entries
  size_t described[RN_STEPS];
  size_t counts[RN_STEPS][RN_EXTRAS + 8];  // elements of what was pushed
  size_t most_batch;
  bool planned_at[2];  // the host, the device
  uint64_t now;        // UINT64_MAX: no round
} rn_net;

// Describes a net by sg_random.
void rn_make(rn_net *net);

// Takes over what was planned, after tarn_model_plan or another largest batch.
void rn_planned(rn_net *net);

// All that does not stay holds nothing from now on, what is fed zeros.
void rn_placed(rn_net *net);

// The place is gone, and with it the entries beyond the description.
void rn_gone(rn_net *net);

// The step's described cache of that index.
const tarn_tensor *rn_cache(const rn_net *net, size_t step, size_t index);

// It is |time| now; UINT64_MAX: the round is over.
void rn_entered(rn_net *net, uint64_t time);

tarn_synced *rn_buffer(const rn_part *part);  // by one name or the other
size_t rn_size(const rn_part *part);          // at the present batch
bool rn_is_there(const rn_part *part);        // it has a buffer

// The part takes a place, or gives one, in the present step.
bool rn_is_in_pair(const rn_net *net, const rn_part *part);

// After bytes of |part| were written: whose place it took is spoiled.
void rn_wrote(rn_net *net, const rn_part *part);

#endif  // TARN_TESTS_MODEL_RANDOM_NET_H_
