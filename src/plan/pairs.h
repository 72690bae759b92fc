// pairs.h - which pairs in place are merged: decisions, their undoing, and what
// they can save at most.
//
// Every plan has a set of pairs of which both lie at one offset. So a problem
// with pairs is as many problems without as there are such sets, and what is
// proved of all of them is proved of it. A pair is undecided, merged or kept
// apart; of the pairs of one giver, and of those of one taker, at most one is
// merged, and what is merged one after another fixes no two offsets and agrees
// on an alignment.
//
// Pairs of one step that share buffers hang together, as a part; the saving of
// a part is at most that of its takers, each with its best giver, and at most
// that of its givers, each with its best taker.
#ifndef TARN_PLAN_PAIRS_H_
#define TARN_PLAN_PAIRS_H_

#include "plan/instance.h"

typedef enum tarn__plan_fate {
  TARN__PLAN_UNDECIDED = 0,
  TARN__PLAN_MERGED,
  TARN__PLAN_APART,
} tarn__plan_fate;

typedef struct tarn__plan_mate {
  uint64_t step;    // in which both are needed
  uint64_t saving;  // bytes: of the smaller
  uint32_t pair;    // of the problem
  uint32_t giver;
  uint32_t taker;
  uint32_t part;           // equal for those that hang together
  uint32_t next_of_giver;  // mates of one giver, and of one taker, are rings
  uint32_t next_of_taker;
  tarn__plan_fate fate;
} tarn__plan_mate;

// What the offset of a chain of merged buffers must be.
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

typedef struct tarn__plan_pairs {
  const tarn_plan_problem *problem;
  const bool *left_out;    // by buffer; NULL: all are in
  tarn__plan_mate *mates;  // by step, by part, the best saving first
  size_t count;            // of mates: pairs that may merge
  tarn__plan_meeting *meetings;
  size_t meeting_count;
  uint64_t floor;       // bytes: what no merging lowers
  uint64_t floor_step;  // where that much is live, if it is no fixed end
  bool *gives;          // by buffer: it is merged with a taker
  bool *takes;          // by buffer: with a giver
  bool *merged;         // by pair of the problem: as tarn__plan_choice has it
  tarn__plan_chain *chains;  // by buffer
  uint64_t *as_giver;        // by buffer, all 0 between calls
  uint64_t *as_taker;
  uint32_t *trail;  // mates, in the order in which they were decided
  size_t decided;   // of them
  // Alignments kept a pair from merging which have a common multiple, but one
  // that is too large: what was proved then leaves plans out.
  bool inexact;
  tarn__plan_memory memory;
} tarn__plan_pairs;

// Pairs of the buffers that are in. Those that are fixed at one offset are
// merged, those that cannot be are no mates.
//
// Lifetime:     tarn__plan_pairs_free, whatever the status.
// Cost:         O((n + pairs) log(n + pairs)).
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status
tarn__plan_pairs_make(const tarn_plan_problem *problem, const bool *left_out,
                      tarn__plan_pairs *out_pairs);

void tarn__plan_pairs_free(tarn__plan_pairs *pairs);

// Merges an undecided mate, which keeps others of its two apart. False: it
// cannot be, because of what is merged already; nothing has changed.
bool tarn__plan_pairs_merge(tarn__plan_pairs *pairs, size_t mate);

// Keeps an undecided mate apart.
void tarn__plan_pairs_part(tarn__plan_pairs *pairs, size_t mate);

// Makes all undecided again that were decided after |decided| of them.
void tarn__plan_pairs_undo(tarn__plan_pairs *pairs, size_t decided);

// The most that is needed in any step, whatever is decided further: bytes.
//
// Cost: O(mates).
uint64_t tarn__plan_pairs_bound(const tarn__plan_pairs *pairs);

// What the meeting needs at least, likewise.
uint64_t tarn__plan_meeting_need(const tarn__plan_pairs *pairs,
                                 const tarn__plan_meeting *meeting);

// Merges those that save most first, in each meeting until what it needs is
// at most |enough| bytes, and keeps all others apart.
void tarn__plan_pairs_match(tarn__plan_pairs *pairs, uint64_t enough);

// The instance of the buffers that are in, in which fixed pairs merge and no
// others.
//
// TARN_E_INVALID  as in tarn__plan_instance_make.
// TARN_E_NOMEM    no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_pairs_instance(
    const tarn_plan_problem *problem, const bool *left_out,
    tarn__plan_instance *out_instance);

#endif  // TARN_PLAN_PAIRS_H_
