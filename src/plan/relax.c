// In each part either all givers or all takers of undecided pairs lose the
// step: the side that has fewer bytes, so that as much as can be is left.
//
// A buffer that is merged on its other side keeps the step of that; any other
// that would lose its last one is left out.
#include "plan/relax.h"

#include "base/hostmem.h"

tarn_status tarn__plan_relaxed_make(const tarn_plan_problem *problem,
                                    tarn__plan_relaxed *out_relaxed) {
  size_t room = problem->count + 1;
  *out_relaxed = (tarn__plan_relaxed){.problem = *problem};
  tarn_plan_buffer *buffers = tarn__host_array(room, sizeof *buffers);
  out_relaxed->buffers = buffers;
  out_relaxed->left_out = tarn__host_array(room, sizeof *out_relaxed->left_out);
  out_relaxed->steps = tarn__host_array(room, sizeof *out_relaxed->steps);
  out_relaxed->problem.buffers = buffers;
  bool made = buffers != NULL && out_relaxed->left_out != NULL &&
              out_relaxed->steps != NULL;
  return made ? TARN_OK : TARN_E_NOMEM;
}

void tarn__plan_relaxed_free(tarn__plan_relaxed *relaxed) {
  size_t room = relaxed->problem.count + 1;
  tarn__host_free_array(relaxed->buffers, room, sizeof *relaxed->buffers);
  tarn__host_free_array(relaxed->left_out, room, sizeof *relaxed->left_out);
  tarn__host_free_array(relaxed->steps, room, sizeof *relaxed->steps);
  *relaxed = (tarn__plan_relaxed){0};
}

static uint64_t steps_of(const tarn_plan_buffer *b) {
  uint64_t steps = b->last - b->first;
  for (size_t i = 0; i < b->gap_count; i++) {
    steps -= b->gaps[i].last - b->gaps[i].first;
  }
  return steps;
}

static void copy(const tarn__plan_pairs *pairs, tarn__plan_relaxed *relaxed) {
  const tarn_plan_problem *problem = pairs->problem;
  for (size_t i = 0; i < problem->count; i++) {
    relaxed->buffers[i] = problem->buffers[i];
    relaxed->left_out[i] = pairs->left_out != NULL && pairs->left_out[i];
    relaxed->steps[i] = steps_of(&problem->buffers[i]);
  }
}

// --- one part ----------------------------------------------------------------

typedef enum side {
  GIVERS = 0,
  TAKERS,
} side;

static uint32_t buffer_of(const tarn__plan_mate *mate, side which) {
  return which == GIVERS ? mate->giver : mate->taker;
}

static bool can_lose(const tarn__plan_pairs *pairs,
                     const tarn__plan_relaxed *relaxed, uint32_t buffer,
                     side which) {
  bool merged = which == GIVERS ? pairs->takes[buffer] : pairs->gives[buffer];
  return merged || relaxed->steps[buffer] > 1;
}

// The bytes that the step would lose; UINT64_MAX if someone cannot.
static uint64_t loss_of(const tarn__plan_pairs *pairs,
                        const tarn__plan_relaxed *relaxed, size_t from,
                        size_t to, side which) {
  uint64_t *seen = which == GIVERS ? pairs->as_giver : pairs->as_taker;
  uint64_t loss = 0;
  bool possible = true;
  for (size_t i = from; i < to; i++) {
    uint32_t buffer = buffer_of(&pairs->mates[i], which);
    bool open = pairs->mates[i].fate == TARN__PLAN_UNDECIDED;
    if (!open || seen[buffer] != 0) continue;
    seen[buffer] = 1;
    loss += relaxed->buffers[buffer].size;
    possible &= can_lose(pairs, relaxed, buffer, which);
  }
  for (size_t i = from; i < to; i++)
    seen[buffer_of(&pairs->mates[i], which)] = 0;
  return possible ? loss : UINT64_MAX;
}

static void lose(const tarn__plan_pairs *pairs, tarn__plan_relaxed *relaxed,
                 uint32_t buffer, side which) {
  if (!can_lose(pairs, relaxed, buffer, which)) {
    relaxed->left_out[buffer] = true;
    return;
  }
  tarn_plan_buffer *b = &relaxed->buffers[buffer];
  relaxed->steps[buffer]--;
  if (which == GIVERS) {
    b->last--;
  } else {
    b->first++;
  }
}

static void relax_part(const tarn__plan_pairs *pairs,
                       tarn__plan_relaxed *relaxed, size_t from, size_t to) {
  uint64_t givers = loss_of(pairs, relaxed, from, to, GIVERS);
  uint64_t takers = loss_of(pairs, relaxed, from, to, TAKERS);
  side which = givers <= takers ? GIVERS : TAKERS;
  uint64_t *seen = which == GIVERS ? pairs->as_giver : pairs->as_taker;
  for (size_t i = from; i < to; i++) {
    uint32_t buffer = buffer_of(&pairs->mates[i], which);
    bool open = pairs->mates[i].fate == TARN__PLAN_UNDECIDED;
    if (open && seen[buffer] == 0) lose(pairs, relaxed, buffer, which);
    if (open) seen[buffer] = 1;
  }
  for (size_t i = from; i < to; i++)
    seen[buffer_of(&pairs->mates[i], which)] = 0;
}

void tarn__plan_relax(const tarn__plan_pairs *pairs,
                      tarn__plan_relaxed *relaxed) {
  copy(pairs, relaxed);
  for (size_t from = 0; from < pairs->count;) {
    size_t to = from;
    while (to < pairs->count &&
           pairs->mates[to].part == pairs->mates[from].part) {
      to++;
    }
    relax_part(pairs, relaxed, from, to);
    from = to;
  }
}
