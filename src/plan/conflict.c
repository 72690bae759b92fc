// The cheapest reason is looked for first:
//
//   one buffer     is larger, or lies higher, than any arena that it may lie in
//   two buffers    are fixed where they collide
//   a time step    needs more than the capacity
//   a search       has proved it, so that only its proof can be narrowed down
//
// In a time step without alignments, fixed offsets and pairs the largest
// buffers that exceed the capacity together are a minimal set: without any one
// of them the others can be stacked. Else parts of the set are left out, in
// halves, quarters and so on: if the rest is still proved to have no plan, the
// part is not needed. At the end each buffer has been left out alone; if all
// these sets were proved to have a plan, so have their subsets, and the set is
// minimal.
//
// Invariant: the buffers that are not left out are proved to have no plan.
#include "plan/call.h"

#include "base/status.h"
#include "plan/overlap.h"
#include "plan/pairs.h"

// How many nodes more than the first proof a proof without a part may take.
enum { MORE_NODES = 10000 };

typedef struct finding {
  tarn__plan_call *call;
  const tarn_plan_problem *problem;
  tarn_plan *plan;
  tarn_plan *tried;
  bool *left_out;     // by buffer
  uint32_t *members;  // the others, by their beginnings
  size_t count;
  uint64_t node_limit;
  bool minimal;
  tarn__plan_memory memory;
} finding;

// --- one, and two ------------------------------------------------------------

static bool is_live(const tarn_plan_buffer *b, uint64_t step) {
  for (size_t i = 0; i <= b->gap_count; i++) {
    tarn_plan_gap run = tarn__plan_run_of(b, i);
    if (run.first <= step && step < run.last) return true;
  }
  return false;
}

// Of two sets of steps that meet one has a run that begins in the other.
static bool begins_in(const tarn_plan_buffer *a, const tarn_plan_buffer *b) {
  for (size_t i = 0; i <= a->gap_count; i++) {
    if (is_live(b, tarn__plan_run_of(a, i).first)) return true;
  }
  return false;
}

static bool are_pair(const tarn_plan_problem *problem, size_t a, size_t b) {
  for (size_t i = 0; i < problem->pair_count; i++) {
    const tarn_plan_pair *pair = &problem->pairs[i];
    if ((pair->giver == a && pair->taker == b) ||
        (pair->giver == b && pair->taker == a)) {
      return true;
    }
  }
  return false;
}

static bool collide(const tarn_plan_problem *problem, size_t x, size_t y) {
  const tarn_plan_buffer *a = &problem->buffers[x];
  const tarn_plan_buffer *b = &problem->buffers[y];
  bool apart =
      a->offset >= b->offset + b->size || b->offset >= a->offset + a->size;
  if (apart || !(begins_in(a, b) || begins_in(b, a))) return false;
  return a->offset != b->offset || !are_pair(problem, x, y);
}

// The two buffers of two items, in which pairs may be merged, that collide.
static void find_buffers(finding *f, const tarn__plan_instance *in,
                         const uint32_t items[2]) {
  for (uint32_t i = 0; i < in->buffer_count; i++) {
    if (in->item_of[i] != items[0]) continue;
    for (uint32_t j = 0; j < in->buffer_count; j++) {
      if (in->item_of[j] != items[1] || !collide(f->problem, i, j)) continue;
      f->members[0] = i;
      f->members[1] = j;
      f->count = 2;
      f->minimal = true;
      return;
    }
  }
}

// Among those that are fixed in |arena|.
static tarn_status find_two(finding *f, size_t arena) {
  uint32_t items[2];
  tarn__plan_instance in;
  tarn_status status =
      tarn__plan_fixed_instance(f->problem, arena, f->left_out, &in);
  if (status == TARN_OK) status = tarn__plan_fixed_overlap(&in, items);
  if (status == TARN_OK && items[0] != TARN__PLAN_NO_ITEM) {
    find_buffers(f, &in, items);
  }
  tarn__plan_instance_free(&in);
  return status;
}

// --- a step ------------------------------------------------------------------

static bool worst_step(const tarn__plan_pairs *pairs, uint64_t room,
                       uint64_t *step) {
  uint64_t most = pairs->floor;
  *step = pairs->floor_step;
  for (size_t i = 0; i < pairs->meeting_count; i++) {
    uint64_t need = tarn__plan_meeting_need(pairs, &pairs->meetings[i]);
    if (need <= most) continue;
    most = need;
    *step = pairs->mates[pairs->meetings[i].first].step;
  }
  return most > room;
}

static bool is_plain(const tarn_plan_buffer *b) {
  return tarn__plan_alignment(b) == 1 && b->flags == 0;
}

// Keeps the largest that are too much together.
static tarn_status keep_largest(finding *f, uint64_t room) {
  TARN__TRY(
      tarn__plan_sort(f->problem, TARN__PLAN_BY_SIZE, f->members, f->count));
  bool plain = tarn__plan_arena_count(f->problem) == 1;
  uint64_t sum = 0;
  size_t kept = 0;
  while (kept < f->count && sum <= room) {
    const tarn_plan_buffer *b = &f->problem->buffers[f->members[kept++]];
    sum += b->size;
    plain &= is_plain(b);
  }
  f->count = kept;
  f->minimal = plain;
  return TARN_OK;
}

// All that is live in the worst step, if that is too much; else all there is.
static tarn_status find_step(finding *f) {
  uint64_t room = tarn__plan_room(f->problem);
  uint64_t step = 0;
  tarn__plan_pairs pairs;
  tarn_status status = tarn__plan_pairs_make(f->problem, NULL, &pairs);
  bool found = status == TARN_OK && worst_step(&pairs, room, &step);
  f->count = 0;
  for (uint32_t i = 0; i < f->problem->count; i++) {
    bool in = !found || is_live(&f->problem->buffers[i], step);
    if (in) f->members[f->count++] = i;
  }
  if (found && pairs.count == 0) status = keep_largest(f, room);
  tarn__plan_pairs_free(&pairs);
  return status;
}

// --- a search ----------------------------------------------------------------

static void set_left_out(const finding *f, size_t from, size_t to, bool out) {
  for (size_t i = from; i < to; i++)
    f->left_out[f->members[i]] = out;
}

// All but the members.
static void leave_others_out(const finding *f) {
  for (size_t i = 0; i < f->problem->count; i++)
    f->left_out[i] = true;
  set_left_out(f, 0, f->count, false);
}

static void drop(finding *f, size_t from, size_t to) {
  for (size_t i = to; i < f->count; i++)
    f->members[from + i - to] = f->members[i];
  f->count -= to - from;
}

// Leaves out every part of |size| members that the proof does not need.
static tarn_status narrow(finding *f, size_t size) {
  f->minimal = true;
  for (size_t from = 0; from < f->count;) {
    size_t to = from + size < f->count ? from + size : f->count;
    tarn__plan_fill fill = {.problem = f->problem,
                            .left_out = f->left_out,
                            .node_limit = f->node_limit};
    if (tarn__plan_call_over(f->call)) {
      f->minimal = false;
      return TARN_OK;
    }
    set_left_out(f, from, to, true);
    TARN__TRY(tarn__plan_fill_in(f->call, &fill, f->tried));
    if (f->tried->info.answer == TARN_PLAN_INFEASIBLE) {
      drop(f, from, to);
    } else {
      set_left_out(f, from, to, false);
      f->minimal &= f->tried->info.answer != TARN_PLAN_OUT_OF_TIME;
      from = to;
    }
  }
  return TARN_OK;
}

static tarn_status narrow_down(finding *f) {
  leave_others_out(f);
  TARN__TRY(
      tarn__plan_sort(f->problem, TARN__PLAN_BY_BEGIN, f->members, f->count));
  size_t size = (f->count + 1) / 2;
  TARN__TRY(narrow(f, size));
  for (; size > 1 && !tarn__plan_call_over(f->call); size /= 2)
    TARN__TRY(narrow(f, size / 2));
  f->minimal &= size <= 1;
  return TARN_OK;
}

// --- the whole ---------------------------------------------------------------

static tarn_status find(finding *f) {
  TARN__TRY(tarn__plan_make(f->problem, &f->tried));
  size_t room = f->problem->count + 1;
  f->left_out = tarn__plan_array(&f->memory, room, sizeof *f->left_out);
  f->members = tarn__plan_array(&f->memory, room, sizeof *f->members);
  if (f->memory.failed) return TARN_E_NOMEM;
  size_t misfit = tarn__plan_misfit(f->problem, NULL);
  if (misfit != f->problem->count) {
    f->members[0] = (uint32_t)misfit;
    f->count = 1;
    f->minimal = true;
    return TARN_OK;
  }
  for (size_t i = 0; i < f->plan->arena_count; i++) {
    TARN__TRY(find_two(f, i));
    if (f->count > 0) return TARN_OK;
  }
  TARN__TRY(find_step(f));
  return f->minimal ? TARN_OK : narrow_down(f);
}

static void keep(const finding *f) {
  tarn_plan *plan = f->plan;
  leave_others_out(f);
  for (size_t i = 0; i < f->problem->count; i++) {
    if (!f->left_out[i]) plan->conflict[plan->info.conflict_count++] = i;
  }
  plan->info.conflict_minimal = f->minimal;
}

tarn_status tarn__plan_find_conflict(tarn__plan_call *call,
                                     const tarn_plan_problem *problem,
                                     tarn_plan *plan) {
  finding f = {.call = call,
               .problem = problem,
               .plan = plan,
               .node_limit = 2 * call->nodes + MORE_NODES};
  tarn_status status = find(&f);
  if (status == TARN_OK) keep(&f);
  tarn_plan_destroy(f.tried);
  tarn__plan_memory_free(&f.memory);
  return status;
}
