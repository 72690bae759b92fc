// Arenas are filled one after another, each from those whom the earlier ones
// had no room for: so each buffer comes to the earliest that has room for it.
#include "plan/sharing.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"

// --- who chooses first -------------------------------------------------------

typedef struct claim {
  uint64_t priority;
  double worth;  // bytes times steps
  uint32_t buffer;
} claim;

static int by_claim(const void *x, const void *y) {
  const claim *a = x;
  const claim *b = y;
  if (a->priority != b->priority) return a->priority > b->priority ? -1 : 1;
  if (a->worth > b->worth) return -1;
  if (a->worth < b->worth) return 1;
  return (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

static tarn_status rank(tarn__plan_sharing *s) {
  size_t count = s->problem->count;
  claim *claims = tarn__host_array(count + 1, sizeof *claims);
  if (claims == NULL) return TARN_E_NOMEM;
  for (uint32_t i = 0; i < count; i++) {
    const tarn_plan_buffer *b = &s->problem->buffers[i];
    double worth = (double)b->size * (double)(b->last - b->first);
    claims[i] = (claim){b->priority, worth, i};
  }
  qsort(claims, count, sizeof *claims, by_claim);
  for (uint32_t i = 0; i < count; i++) {
    s->order[i] = claims[i].buffer;
    s->rank[claims[i].buffer] = i;
  }
  tarn__host_free_array(claims, count + 1, sizeof *claims);
  return TARN_OK;
}

// --- coming and going --------------------------------------------------------

static bool make_arrays(tarn__plan_sharing *s) {
  size_t room = s->problem->count + 1;
  s->order = tarn__host_array(room, sizeof *s->order);
  s->rank = tarn__host_array(room, sizeof *s->rank);
  s->giver_mate = tarn__host_array(room, sizeof *s->giver_mate);
  s->taker_mate = tarn__host_array(room, sizeof *s->taker_mate);
  s->gives = tarn__host_array(room, sizeof *s->gives);
  s->takes = tarn__host_array(room, sizeof *s->takes);
  return s->order != NULL && s->rank != NULL && s->giver_mate != NULL &&
         s->taker_mate != NULL && s->gives != NULL && s->takes != NULL;
}

tarn_status tarn__plan_sharing_make(const tarn_plan_problem *problem,
                                    const bool *left_out, uint32_t *arenas,
                                    tarn__plan_sharing *out_sharing) {
  tarn__plan_sharing *s = out_sharing;
  *s = (tarn__plan_sharing){
      .problem = problem, .left_out = left_out, .arenas = arenas};
  if (!make_arrays(s)) return TARN_E_NOMEM;
  tarn_status status = rank(s);
  if (status == TARN_OK) status = tarn__plan_sums_make(problem, &s->sums);
  if (status == TARN_OK) {
    status = tarn__plan_pairs_make(problem, left_out, &s->pairs);
  }
  if (status != TARN_OK) return status;
  for (uint32_t i = 0; i < s->pairs.count; i++) {
    s->giver_mate[s->pairs.mates[i].giver] = i + 1;
    s->taker_mate[s->pairs.mates[i].taker] = i + 1;
  }
  for (size_t i = 0; i < problem->count; i++)
    arenas[i] = TARN__PLAN_NOWHERE;
  return TARN_OK;
}

void tarn__plan_sharing_free(tarn__plan_sharing *s) {
  size_t room = s->problem->count + 1;
  tarn__host_free_array(s->order, room, sizeof *s->order);
  tarn__host_free_array(s->rank, room, sizeof *s->rank);
  tarn__host_free_array(s->giver_mate, room, sizeof *s->giver_mate);
  tarn__host_free_array(s->taker_mate, room, sizeof *s->taker_mate);
  tarn__host_free_array(s->gives, room, sizeof *s->gives);
  tarn__host_free_array(s->takes, room, sizeof *s->takes);
  tarn__plan_sums_free(&s->sums);
  tarn__plan_pairs_free(&s->pairs);
}

// --- what is live ------------------------------------------------------------

// The mate that saves most of those that take from |buffer|, or that it can
// take from, in the same arena and not merged otherwise; NULL: none.
static const tarn__plan_mate *best_mate(const tarn__plan_sharing *s,
                                        uint32_t buffer, bool as_giver,
                                        size_t arena) {
  uint32_t first = as_giver ? s->giver_mate[buffer] : s->taker_mate[buffer];
  const tarn__plan_mate *best = NULL;
  if (first == 0) return NULL;
  uint32_t at = first - 1;
  do {
    const tarn__plan_mate *mate = &s->pairs.mates[at];
    uint32_t other = as_giver ? mate->taker : mate->giver;
    bool free = as_giver ? !s->takes[other] : !s->gives[other];
    if (free && s->arenas[other] == arena &&
        (best == NULL || mate->saving > best->saving)) {
      best = mate;
    }
    at = as_giver ? mate->next_of_giver : mate->next_of_taker;
  } while (at != first - 1);
  return best;
}

// A run of steps in which a buffer needs |size|.
typedef struct need {
  uint64_t first;
  uint64_t last;
  uint64_t size;
} need;

// Whether |n| leaves no more than |capacity| live; with |put| it is added.
static bool meets(tarn__plan_sharing *s, need n, uint64_t capacity, bool put) {
  if (n.first >= n.last) return true;
  if (put) tarn__plan_sums_add(&s->sums, n.first, n.last, n.size);
  uint64_t live = put ? 0 : tarn__plan_sums_most(&s->sums, n.first, n.last);
  return put || (n.size <= capacity && live <= capacity - n.size);
}

// All runs of a buffer, with what its mates save in its first and last step.
static bool all_meet(tarn__plan_sharing *s, uint32_t buffer,
                     const tarn__plan_mate *before,
                     const tarn__plan_mate *after, uint64_t capacity,
                     bool put) {
  const tarn_plan_buffer *b = &s->problem->buffers[buffer];
  uint64_t from = b->first + (before != NULL);
  uint64_t to = b->last - (after != NULL);
  bool good = true;
  for (size_t i = 0; i < b->gap_count; i++) {
    good &= meets(s, (need){from, b->gaps[i].first, b->size}, capacity, put);
    from = b->gaps[i].last;
  }
  good &= meets(s, (need){from, to, b->size}, capacity, put);
  if (before != NULL) {
    need n = {b->first, b->first + 1, b->size - before->saving};
    good &= meets(s, n, capacity, put);
  }
  if (after != NULL) {
    need n = {b->last - 1, b->last, b->size - after->saving};
    good &= meets(s, n, capacity, put);
  }
  return good;
}

static bool put(tarn__plan_sharing *s, uint32_t buffer, size_t arena,
                uint64_t capacity, bool must) {
  const tarn__plan_mate *before = best_mate(s, buffer, false, arena);
  const tarn__plan_mate *after = best_mate(s, buffer, true, arena);
  if (!must && !all_meet(s, buffer, before, after, capacity, false)) {
    return false;
  }
  (void)all_meet(s, buffer, before, after, capacity, true);
  s->arenas[buffer] = (uint32_t)arena;
  if (before != NULL) s->gives[before->giver] = s->takes[buffer] = true;
  if (after != NULL) s->gives[buffer] = s->takes[after->taker] = true;
  return true;
}

void tarn__plan_sharing_choose(tarn__plan_sharing *s, size_t arena) {
  uint64_t capacity = tarn__plan_capacity(s->problem, arena);
  if (capacity == 0) capacity = UINT64_MAX;
  tarn__plan_sums_clear(&s->sums);
  memset(s->gives, 0, s->problem->count * sizeof *s->gives);
  memset(s->takes, 0, s->problem->count * sizeof *s->takes);
  for (int must = 1; must >= 0; must--) {
    for (size_t i = 0; i < s->problem->count; i++) {
      uint32_t buffer = s->order[i];
      uint32_t flags = s->problem->buffers[buffer].flags;
      bool bound = (flags & TARN_PLAN_IN_ARENA) != 0;
      if (bound != (must != 0) || !tarn__plan_sharing_has(s, buffer) ||
          s->arenas[buffer] != TARN__PLAN_NOWHERE ||
          !tarn__plan_may_lie_in(&s->problem->buffers[buffer], arena)) {
        continue;
      }
      put(s, buffer, arena, capacity, bound);
    }
  }
}
