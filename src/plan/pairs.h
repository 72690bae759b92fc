// pairs.h - which pairs in place are merged: decisions, undoing them, and the
// most that they can save.
//
// A plan merges a pair if its two buffers have one offset. A problem with pairs
// is solved by the problems in which some of them are merged and the others
// kept apart; what is proved of all of these is proved of the problem. A pair
// is undecided, merged or kept apart. At most one pair of each giver is merged,
// and at most one of each taker. A chain of merged buffers must have one fixed
// offset at most and a common alignment.
//
// Pairs of one step that share buffers form a part. A part saves at most what
// its takers save, each with its best giver, and at most what its givers save,
// each with its best taker.
#ifndef TARN_PLAN_PAIRS_H_
#define TARN_PLAN_PAIRS_H_

#include "plan/instance.h"

typedef enum tarn__plan_fate {
  TARN__PLAN_UNDECIDED = 0,
  TARN__PLAN_MERGED,
  TARN__PLAN_APART,
} tarn__plan_fate;

// The two buffers of a pair.
typedef enum tarn__plan_side {
  TARN__PLAN_GIVER = 0,
  TARN__PLAN_TAKER,
  TARN__PLAN_SIDES,
} tarn__plan_side;

typedef struct tarn__plan_mate {
  uint64_t step;    // in which both are needed
  uint64_t saving;  // bytes: of the smaller
  uint32_t pair;    // of the problem
  uint32_t buffer[TARN__PLAN_SIDES];
  uint32_t next[TARN__PLAN_SIDES];  // mates of one giver, or taker, are rings
  uint32_t part;                    // its number
  tarn__plan_fate fate;
} tarn__plan_mate;

// The conditions on the offset of a chain of merged buffers.
typedef struct tarn__plan_demand {
  uint64_t alignment;
  uint64_t offset;
  bool fixed;
  bool impossible;
  bool too_large;  // the alignment
} tarn__plan_demand;

// Buffers that are merged one after another are a chain, from its head to its
// tail.
typedef struct tarn__plan_chain {
  uint32_t head;              // of a tail
  uint32_t tail;              // of a head
  tarn__plan_demand as_tail;  // of the chain that ends with this buffer
  tarn__plan_demand as_head;  // of the chain that begins with it
} tarn__plan_chain;

// A step in which pairs meet.
typedef struct tarn__plan_meeting {
  uint64_t live;   // bytes, both of each pair counted
  uint32_t first;  // its mates are [first, last)
  uint32_t last;
} tarn__plan_meeting;

// A step in which a buffer begins or ends to be needed.
typedef struct tarn__plan_change {
  uint64_t step;
  uint64_t size;  // or its negative, modulo 2^64
} tarn__plan_change;

typedef struct tarn__plan_pairs {
  const tarn_plan_problem *problem;
  const bool *left_out;    // by buffer; NULL: all are in
  tarn__plan_mate *mates;  // by step, by part, the best saving first
  size_t count;            // of mates: pairs that may merge
  tarn__plan_meeting *meetings;
  size_t meeting_count;
  tarn__plan_change *changes;  // of the buffers that are in, by step
  size_t change_count;
  uint64_t floor;       // bytes: a height that no merging lowers
  uint64_t floor_step;  // where that much is live, if it is no fixed end
  bool *merges[TARN__PLAN_SIDES];  // by buffer: as giver, and as taker
  bool *merged;  // by pair of the problem: as tarn__plan_instance_make has it
  tarn__plan_chain *chains;          // by buffer
  uint64_t *seen[TARN__PLAN_SIDES];  // by buffer, all 0 between calls
  uint32_t *trail;  // mates, in the order in which they were decided
  size_t decided;   // of them
  // A pair could not merge because the common multiple of its alignments is too
  // large: proofs then leave out plans.
  bool inexact;
  tarn__plan_memory memory;
} tarn__plan_pairs;

// Pairs of the buffers that are in. Pairs fixed at one offset are merged; pairs
// that cannot merge are not mates.
//
// Lifetime:     tarn__plan_pairs_free, whatever the status.
// Cost:         O((n + pairs) log(n + pairs)).
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status
tarn__plan_pairs_make(const tarn_plan_problem *problem, const bool *left_out,
                      tarn__plan_pairs *out_pairs);

void tarn__plan_pairs_free(tarn__plan_pairs *pairs);

// Decides an undecided mate. If it is |wanted|, it is merged, and the others of
// its giver and its taker are kept apart; else, or where pairs that are merged
// already forbid it, it is kept apart. True: it was merged now.
bool tarn__plan_pairs_decide(tarn__plan_pairs *pairs, size_t mate, bool wanted);

// Undoes all decisions after the first |decided|.
void tarn__plan_pairs_undo(tarn__plan_pairs *pairs, size_t decided);

// A lower bound, in bytes, of every plan that keeps to the decisions.
//
// Cost: O(mates).
uint64_t tarn__plan_pairs_bound(const tarn__plan_pairs *pairs);

// The end of the part that begins with mate |from|, no more than |end|.
size_t tarn__plan_part_end(const tarn__plan_pairs *pairs, size_t from,
                           size_t end);

// The bytes that such a plan needs in the meeting's step, at least.
uint64_t tarn__plan_meeting_need(const tarn__plan_pairs *pairs,
                                 const tarn__plan_meeting *meeting);

// Merges the mates that save most first, in each meeting until it needs at most
// |enough| bytes, and keeps all others apart.
void tarn__plan_pairs_match(tarn__plan_pairs *pairs, uint64_t enough);

// Fills |left_out|, by buffer, so that those are in that are fixed and may lie
// in |arena|, and makes their instance, in which fixed pairs merge and no
// others.
//
// TARN_E_INVALID  as in tarn__plan_instance_make.
// TARN_E_NOMEM    no host memory.
TARN_MUST_CHECK tarn_status
tarn__plan_fixed_instance(const tarn_plan_problem *problem, size_t arena,
                          bool *left_out, tarn__plan_instance *out_instance);

#endif  // TARN_PLAN_PAIRS_H_
