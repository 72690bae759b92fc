// Decisions are kept on a trail, so that a search over them goes back by
// undoing the last ones.
//
// Invariant: a mate is on the trail if and only if it is decided; |chains| and
// |merged| agree with the decisions. The last decision is undone first, so a
// chain is cut where it was joined last.
//
// The bound: in a part each taker merges with one giver at most and each giver
// with one taker. So a part saves no more than the sum over its takers of the
// best that each can save, nor than that over its givers.
#include "plan/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

// --- whether two can merge ---------------------------------------------------

static tarn__plan_demand demand_of(const tarn_plan_buffer *b) {
  return (tarn__plan_demand){.alignment = tarn__plan_alignment(b),
                             .fixed = (b->flags & TARN_PLAN_FIXED) != 0,
                             .offset = b->offset};
}

// What both ask for.
static tarn__plan_demand meet(tarn__plan_demand a, tarn__plan_demand b) {
  a.alignment = tarn__plan_both_aligned(a.alignment, b.alignment);
  if (a.alignment == 0) {
    return (tarn__plan_demand){.alignment = 1, .too_large = true};
  }
  a.impossible = a.fixed && b.fixed && a.offset != b.offset;
  if (b.fixed) a.offset = b.offset;
  a.fixed |= b.fixed;
  a.impossible |= a.fixed && a.offset % a.alignment != 0;
  return a;
}

static bool is_in(const tarn__plan_pairs *pairs, size_t buffer) {
  return tarn__plan_is_in(pairs->left_out, buffer);
}

static bool are_apart(const tarn__plan_pairs *pairs,
                      const tarn_plan_pair *pair) {
  const tarn_plan_buffer *a = &pairs->problem->buffers[pair->giver];
  const tarn_plan_buffer *b = &pairs->problem->buffers[pair->taker];
  bool bound = (a->flags & b->flags & TARN_PLAN_IN_ARENA) != 0;
  return !is_in(pairs, pair->giver) || !is_in(pairs, pair->taker) ||
         (bound && a->arena != b->arena) ||
         meet(demand_of(a), demand_of(b)).impossible;
}

// --- mates and parts ---------------------------------------------------------

static void collect(tarn__plan_pairs *pairs) {
  const tarn_plan_problem *problem = pairs->problem;
  for (size_t i = 0; i < problem->pair_count; i++) {
    const tarn_plan_pair *pair = &problem->pairs[i];
    if (are_apart(pairs, pair)) continue;
    const tarn_plan_buffer *giver = &problem->buffers[pair->giver];
    const tarn_plan_buffer *taker = &problem->buffers[pair->taker];
    pairs->mates[pairs->count++] = (tarn__plan_mate){
        .step = taker->first,
        .saving = giver->size < taker->size ? giver->size : taker->size,
        .pair = (uint32_t)i,
        .buffer = {(uint32_t)pair->giver, (uint32_t)pair->taker}};
  }
}

static void clear_seen(const tarn__plan_pairs *pairs, size_t from, size_t to) {
  for (size_t i = from; i < to; i++) {
    for (int side = 0; side < TARN__PLAN_SIDES; side++)
      pairs->seen[side][pairs->mates[i].buffer[side]] = 0;
  }
}

// The first mate of the part, while parts are found; paths are halved.
static uint32_t part_of(tarn__plan_mate *mates, uint32_t mate) {
  while (mates[mate].part != mate) {
    mates[mate].part = mates[mates[mate].part].part;
    mate = mates[mate].part;
  }
  return mate;
}

static void join(tarn__plan_mate *mates, uint32_t mate, uint64_t *first) {
  if (*first == 0) *first = (uint64_t)mate + 1;
  uint32_t a = part_of(mates, (uint32_t)(*first - 1));
  uint32_t b = part_of(mates, mate);
  mates[a > b ? a : b].part = a > b ? b : a;
}

static void find_parts(tarn__plan_pairs *pairs) {
  tarn__plan_mate *mates = pairs->mates;
  for (size_t i = 0; i < pairs->count; i++)
    mates[i].part = (uint32_t)i;
  for (size_t i = 0; i < pairs->count; i++) {
    for (int side = 0; side < TARN__PLAN_SIDES; side++)
      join(mates, (uint32_t)i, &pairs->seen[side][mates[i].buffer[side]]);
  }
  for (size_t i = 0; i < pairs->count; i++)
    mates[i].part = part_of(mates, (uint32_t)i);
  clear_seen(pairs, 0, pairs->count);
}

static int by_place(const void *x, const void *y) {
  const tarn__plan_mate *a = x;
  const tarn__plan_mate *b = y;
  if (a->step != b->step) return a->step < b->step ? -1 : 1;
  if (a->part != b->part) return a->part < b->part ? -1 : 1;
  if (a->saving != b->saving) return a->saving > b->saving ? -1 : 1;
  return (a->pair > b->pair) - (a->pair < b->pair);
}

// Links a mate behind the last one seen of its giver, and of its taker.
static void link_in(tarn__plan_pairs *pairs, uint32_t mate) {
  tarn__plan_mate *mates = pairs->mates;
  for (int side = 0; side < TARN__PLAN_SIDES; side++) {
    uint64_t *last = &pairs->seen[side][mates[mate].buffer[side]];
    mates[mate].next[side] = mate;
    if (*last != 0) {
      tarn__plan_mate *before = &mates[*last - 1];
      mates[mate].next[side] = before->next[side];
      before->next[side] = mate;
    }
    *last = (uint64_t)mate + 1;
  }
}

static void link_rings(tarn__plan_pairs *pairs) {
  for (uint32_t i = 0; i < pairs->count; i++)
    link_in(pairs, i);
  clear_seen(pairs, 0, pairs->count);
}

static void find_meetings(tarn__plan_pairs *pairs) {
  for (uint32_t i = 0; i < pairs->count; i++) {
    if (i == 0 || pairs->mates[i].step != pairs->mates[i - 1].step) {
      pairs->meetings[pairs->meeting_count++].first = i;
    }
    pairs->meetings[pairs->meeting_count - 1].last = i + 1;
  }
}

// --- what is live ------------------------------------------------------------

static int by_step(const void *x, const void *y) {
  const tarn__plan_change *a = x;
  const tarn__plan_change *b = y;
  return (a->step > b->step) - (a->step < b->step);
}

static size_t count_changes(const tarn__plan_pairs *pairs) {
  size_t count = 0;
  for (size_t i = 0; i < pairs->problem->count; i++) {
    if (is_in(pairs, i)) count += 2 + 2 * pairs->problem->buffers[i].gap_count;
  }
  return count;
}

static void list_changes(tarn__plan_pairs *pairs) {
  tarn__plan_change *changes = pairs->changes;
  size_t count = 0;
  for (size_t i = 0; i < pairs->problem->count; i++) {
    const tarn_plan_buffer *b = &pairs->problem->buffers[i];
    if (!is_in(pairs, i)) continue;
    for (size_t g = 0; g <= b->gap_count; g++) {
      tarn_plan_gap run = tarn__plan_run_of(b, g);
      changes[count++] = (tarn__plan_change){run.first, b->size};
      changes[count++] = (tarn__plan_change){run.last, 0 - b->size};
    }
  }
  qsort(changes, count, sizeof *changes, by_step);
  pairs->change_count = count;
}

// A meeting is one step: its givers end after it.
static void sum_changes(tarn__plan_pairs *pairs) {
  const tarn__plan_change *changes = pairs->changes;
  size_t count = pairs->change_count;
  uint64_t live = 0;
  size_t meeting = 0;
  for (size_t i = 0; i < count; i++) {
    live += changes[i].size;
    if (i + 1 < count && changes[i + 1].step == changes[i].step) continue;
    tarn__plan_meeting *next = &pairs->meetings[meeting];
    if (meeting < pairs->meeting_count &&
        pairs->mates[next->first].step == changes[i].step) {
      next->live = live;
      meeting++;
    } else if (pairs->floor < live) {
      pairs->floor = live;
      pairs->floor_step = changes[i].step;
    }
  }
}

static void sum_live(tarn__plan_pairs *pairs) {
  const tarn_plan_problem *problem = pairs->problem;
  list_changes(pairs);
  sum_changes(pairs);
  for (size_t i = 0; i < problem->count; i++) {
    const tarn_plan_buffer *b = &problem->buffers[i];
    if ((b->flags & TARN_PLAN_FIXED) == 0 || !is_in(pairs, i)) continue;
    uint64_t end = b->offset + b->size;
    if (pairs->floor < end) pairs->floor = end;
  }
}

// --- the whole ---------------------------------------------------------------

static tarn_status make_arrays(tarn__plan_pairs *pairs) {
  tarn__plan_memory *memory = &pairs->memory;
  size_t buffers = pairs->problem->count + 1;
  size_t mates = pairs->problem->pair_count + 1;
  pairs->mates = tarn__plan_array(memory, mates, sizeof *pairs->mates);
  pairs->meetings = tarn__plan_array(memory, mates, sizeof *pairs->meetings);
  pairs->merged = tarn__plan_array(memory, mates, sizeof *pairs->merged);
  pairs->trail = tarn__plan_array(memory, mates, sizeof *pairs->trail);
  pairs->chains = tarn__plan_array(memory, buffers, sizeof *pairs->chains);
  for (int i = 0; i < TARN__PLAN_SIDES; i++) {
    pairs->merges[i] = tarn__plan_array(memory, buffers, sizeof(bool));
    pairs->seen[i] = tarn__plan_array(memory, buffers, sizeof(uint64_t));
  }
  pairs->changes = tarn__plan_array(memory, count_changes(pairs) + 1,
                                    sizeof *pairs->changes);
  return tarn__plan_memory_status(memory);
}

// Each buffer is a chain.
static void begin_chains(tarn__plan_pairs *pairs) {
  for (size_t i = 0; i < pairs->problem->count; i++) {
    tarn__plan_demand own = demand_of(&pairs->problem->buffers[i]);
    pairs->chains[i] = (tarn__plan_chain){(uint32_t)i, (uint32_t)i, own, own};
  }
}

static void merge_fixed(tarn__plan_pairs *pairs) {
  const tarn_plan_buffer *buffers = pairs->problem->buffers;
  for (size_t i = 0; i < pairs->count; i++) {
    const tarn__plan_mate *mate = &pairs->mates[i];
    uint32_t flags = buffers[mate->buffer[TARN__PLAN_GIVER]].flags &
                     buffers[mate->buffer[TARN__PLAN_TAKER]].flags;
    bool both = (flags & TARN_PLAN_FIXED) != 0;
    if (both) (void)tarn__plan_pairs_decide(pairs, i, true);
  }
}

tarn_status tarn__plan_pairs_make(const tarn_plan_problem *problem,
                                  const bool *left_out,
                                  tarn__plan_pairs *out_pairs) {
  *out_pairs = (tarn__plan_pairs){.problem = problem, .left_out = left_out};
  if (make_arrays(out_pairs) != TARN_OK) return TARN_E_NOMEM;
  collect(out_pairs);
  find_parts(out_pairs);
  qsort(out_pairs->mates, out_pairs->count, sizeof *out_pairs->mates, by_place);
  link_rings(out_pairs);
  find_meetings(out_pairs);
  begin_chains(out_pairs);
  sum_live(out_pairs);
  merge_fixed(out_pairs);
  return TARN_OK;
}

void tarn__plan_pairs_free(tarn__plan_pairs *pairs) {
  tarn__plan_memory_free(&pairs->memory);
  *pairs = (tarn__plan_pairs){0};
}

// --- decisions ---------------------------------------------------------------

static void decide(tarn__plan_pairs *pairs, size_t mate, tarn__plan_fate fate) {
  pairs->mates[mate].fate = fate;
  pairs->trail[pairs->decided++] = (uint32_t)mate;
}

// Keeps the undecided mates apart in the rings of |mate|.
static void part_rivals(tarn__plan_pairs *pairs, size_t mate) {
  const tarn__plan_mate *mates = pairs->mates;
  for (int side = 0; side < TARN__PLAN_SIDES; side++) {
    for (size_t i = mates[mate].next[side]; i != mate; i = mates[i].next[side])
      (void)tarn__plan_pairs_decide(pairs, i, false);
  }
}

static void set_merged(tarn__plan_pairs *pairs, const tarn__plan_mate *mate,
                       bool merged) {
  pairs->merged[mate->pair] = merged;
  for (int side = 0; side < TARN__PLAN_SIDES; side++)
    pairs->merges[side][mate->buffer[side]] = merged;
}

// The inner ends keep their values for cut_chain.
static void join_chains(tarn__plan_pairs *pairs, const tarn__plan_mate *mate,
                        tarn__plan_demand demand) {
  tarn__plan_chain *chains = pairs->chains;
  uint32_t head = chains[mate->buffer[TARN__PLAN_GIVER]].head;
  uint32_t tail = chains[mate->buffer[TARN__PLAN_TAKER]].tail;
  set_merged(pairs, mate, true);
  chains[head].tail = tail;
  chains[tail].head = head;
  chains[head].as_head = chains[tail].as_tail = demand;
}

static void cut_chain(tarn__plan_pairs *pairs, const tarn__plan_mate *mate) {
  tarn__plan_chain *chains = pairs->chains;
  uint32_t giver = mate->buffer[TARN__PLAN_GIVER];
  uint32_t taker = mate->buffer[TARN__PLAN_TAKER];
  uint32_t head = chains[giver].head;
  uint32_t tail = chains[taker].tail;
  set_merged(pairs, mate, false);
  chains[head].tail = giver;
  chains[tail].head = taker;
  chains[head].as_head = chains[giver].as_tail;
  chains[tail].as_tail = chains[taker].as_head;
}

// False: pairs that are merged already forbid it; nothing has changed.
static bool merge(tarn__plan_pairs *pairs, size_t mate) {
  const tarn__plan_mate *m = &pairs->mates[mate];
  tarn__plan_demand demand =
      meet(pairs->chains[m->buffer[TARN__PLAN_GIVER]].as_tail,
           pairs->chains[m->buffer[TARN__PLAN_TAKER]].as_head);
  if (demand.too_large) pairs->inexact = true;
  if (demand.impossible || demand.too_large) return false;
  decide(pairs, mate, TARN__PLAN_MERGED);
  join_chains(pairs, m, demand);
  part_rivals(pairs, mate);
  return true;
}

bool tarn__plan_pairs_decide(tarn__plan_pairs *pairs, size_t mate,
                             bool wanted) {
  if (pairs->mates[mate].fate != TARN__PLAN_UNDECIDED) return false;
  if (wanted && merge(pairs, mate)) return true;
  decide(pairs, mate, TARN__PLAN_APART);
  return false;
}

void tarn__plan_pairs_undo(tarn__plan_pairs *pairs, size_t decided) {
  while (pairs->decided > decided) {
    tarn__plan_mate *mate = &pairs->mates[pairs->trail[--pairs->decided]];
    if (mate->fate == TARN__PLAN_MERGED) cut_chain(pairs, mate);
    mate->fate = TARN__PLAN_UNDECIDED;
  }
}

// --- what merging saves ------------------------------------------------------

size_t tarn__plan_part_end(const tarn__plan_pairs *pairs, size_t from,
                           size_t end) {
  size_t to = from;
  while (to < end && pairs->mates[to].part == pairs->mates[from].part)
    to++;
  return to;
}

// Raises |*best| to |saving|, and |*sum| by as much.
static void improve(uint64_t *best, uint64_t saving, uint64_t *sum) {
  if (saving <= *best) return;
  *sum += saving - *best;
  *best = saving;
}

static uint64_t most_saved(const tarn__plan_pairs *pairs, size_t from,
                           size_t to) {
  uint64_t saved[TARN__PLAN_SIDES] = {0};
  for (size_t i = from; i < to; i++) {
    const tarn__plan_mate *mate = &pairs->mates[i];
    if (mate->fate == TARN__PLAN_APART) continue;
    for (int side = 0; side < TARN__PLAN_SIDES; side++)
      improve(&pairs->seen[side][mate->buffer[side]], mate->saving,
              &saved[side]);
  }
  clear_seen(pairs, from, to);
  return tarn__lesser(saved[TARN__PLAN_GIVER], saved[TARN__PLAN_TAKER]);
}

uint64_t tarn__plan_meeting_need(const tarn__plan_pairs *pairs,
                                 const tarn__plan_meeting *meeting) {
  uint64_t need = meeting->live;
  for (size_t from = meeting->first; from < meeting->last;) {
    size_t to = tarn__plan_part_end(pairs, from, meeting->last);
    need -= most_saved(pairs, from, to);
    from = to;
  }
  return need;
}

uint64_t tarn__plan_pairs_bound(const tarn__plan_pairs *pairs) {
  uint64_t bound = pairs->floor;
  for (size_t i = 0; i < pairs->meeting_count; i++) {
    uint64_t need = tarn__plan_meeting_need(pairs, &pairs->meetings[i]);
    if (bound < need) bound = need;
  }
  return bound;
}

// The bytes that the meeting needs if no more of its pairs are merged.
static uint64_t needs_now(const tarn__plan_pairs *pairs,
                          const tarn__plan_meeting *meeting) {
  uint64_t need = meeting->live;
  for (size_t i = meeting->first; i < meeting->last; i++) {
    const tarn__plan_mate *mate = &pairs->mates[i];
    if (mate->fate == TARN__PLAN_MERGED) need -= mate->saving;
  }
  return need;
}

// Parts do not touch each other, and in a part the best come first.
static void match_meeting(tarn__plan_pairs *pairs,
                          const tarn__plan_meeting *meeting, uint64_t enough) {
  uint64_t need = needs_now(pairs, meeting);
  for (size_t i = meeting->first; i < meeting->last; i++) {
    if (tarn__plan_pairs_decide(pairs, i, need > enough)) {
      need -= pairs->mates[i].saving;
    }
  }
}

void tarn__plan_pairs_match(tarn__plan_pairs *pairs, uint64_t enough) {
  for (size_t i = 0; i < pairs->meeting_count; i++) {
    match_meeting(pairs, &pairs->meetings[i], enough);
  }
}

tarn_status tarn__plan_fixed_instance(const tarn_plan_problem *problem,
                                      size_t arena, bool *left_out,
                                      tarn__plan_instance *out_instance) {
  tarn__plan_pairs pairs;
  *out_instance = (tarn__plan_instance){0};
  for (size_t i = 0; i < problem->count; i++) {
    const tarn_plan_buffer *b = &problem->buffers[i];
    left_out[i] =
        (b->flags & TARN_PLAN_FIXED) == 0 || !tarn__plan_may_lie_in(b, arena);
  }
  tarn_status status = tarn__plan_pairs_make(problem, left_out, &pairs);
  if (status == TARN_OK) {
    status =
        tarn__plan_instance_make(problem, left_out, pairs.merged, out_instance);
  }
  tarn__plan_pairs_free(&pairs);
  return status;
}

tarn_status tarn_plan_lower_bound(const tarn_plan_problem *problem,
                                  uint64_t *out_bound) {
  if (out_bound == NULL) return tarn__fail(TARN_E_INVALID, "plan: NULL");
  *out_bound = 0;
  TARN__TRY(tarn__plan_problem_check(problem));
  tarn__plan_pairs pairs;
  tarn_status status = tarn__plan_pairs_make(problem, NULL, &pairs);
  if (status == TARN_OK) *out_bound = tarn__plan_pairs_bound(&pairs);
  tarn__plan_pairs_free(&pairs);
  return status;
}
