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

#include "base/hostmem.h"
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
  uint32_t *members;  // who is not, by their beginnings
  size_t count;
  uint64_t node_limit;
  bool minimal;
  tarn__plan_memory memory;
} finding;

// --- one, and two ------------------------------------------------------------

static bool find_one(finding *f) {
  uint64_t largest = tarn__plan_largest(f->problem);
  for (uint32_t i = 0; i < f->problem->count; i++) {
    const tarn_plan_buffer *b = &f->problem->buffers[i];
    if (tarn__plan_fits_alone(f->problem, b, largest)) continue;
    f->members[0] = i;
    f->count = 1;
    f->minimal = true;
    return true;
  }
  return false;
}

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
static bool find_buffers(finding *f, const tarn__plan_instance *in,
                         const uint32_t items[2]) {
  for (uint32_t i = 0; i < in->buffer_count; i++) {
    if (in->item_of[i] != items[0]) continue;
    for (uint32_t j = 0; j < in->buffer_count; j++) {
      if (in->item_of[j] != items[1] || !collide(f->problem, i, j)) continue;
      f->members[0] = i;
      f->members[1] = j;
      f->count = 2;
      f->minimal = true;
      return true;
    }
  }
  return false;
}

static tarn_status find_collision(finding *f, const tarn__plan_instance *in) {
  uint32_t items[2];
  uint64_t *offsets = tarn__host_array(in->item_count + 1, sizeof *offsets);
  if (offsets == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < in->item_count; i++)
    offsets[i] = in->items[i].offset * in->unit;
  tarn_status status = tarn__plan_overlap_find(in, offsets, items);
  if (status == TARN_OK && items[0] != TARN__PLAN_NO_ITEM) {
    (void)find_buffers(f, in, items);
  }
  tarn__host_free_array(offsets, in->item_count + 1, sizeof *offsets);
  return status;
}

// Among those that are fixed in |arena|.
static tarn_status find_two(finding *f, size_t arena) {
  size_t fixed = 0;
  for (size_t i = 0; i < f->problem->count; i++) {
    const tarn_plan_buffer *b = &f->problem->buffers[i];
    bool in =
        (b->flags & TARN_PLAN_FIXED) != 0 && tarn__plan_may_lie_in(b, arena);
    f->left_out[i] = !in;
    fixed += in;
  }
  if (fixed < 2) return TARN_OK;
  tarn__plan_instance in;
  tarn_status status = tarn__plan_pairs_instance(f->problem, f->left_out, &in);
  if (status == TARN_OK) status = find_collision(f, &in);
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

typedef enum order {
  BY_BEGIN,
  LARGEST_FIRST,
} order;

static tarn_status sort_members(finding *f, order which) {
  tarn__plan_sorted *keys = tarn__host_array(f->count + 1, sizeof *keys);
  if (keys == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < f->count; i++) {
    const tarn_plan_buffer *b = &f->problem->buffers[f->members[i]];
    uint64_t key = which == BY_BEGIN ? UINT64_MAX - b->first : b->size;
    keys[i] = (tarn__plan_sorted){.major = key, .buffer = f->members[i]};
  }
  tarn__plan_sort(keys, f->count);
  for (size_t i = 0; i < f->count; i++)
    f->members[i] = keys[i].buffer;
  tarn__host_free_array(keys, f->count + 1, sizeof *keys);
  return TARN_OK;
}

static bool is_plain(const tarn_plan_buffer *b) {
  return tarn__plan_alignment(b) == 1 && b->flags == 0;
}

// Keeps the largest that are too much together.
static tarn_status keep_largest(finding *f, uint64_t room) {
  tarn_status status = sort_members(f, LARGEST_FIRST);
  if (status != TARN_OK) return status;
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

static void set_left_out(finding *f, size_t from, size_t to, bool out) {
  for (size_t i = from; i < to; i++)
    f->left_out[f->members[i]] = out;
}

static tarn_status ask(finding *f, tarn_plan_answer *out) {
  tarn__plan_fill fill = {.problem = f->problem,
                          .left_out = f->left_out,
                          .node_limit = f->node_limit};
  tarn_status status = tarn__plan_fill_in(f->call, &fill, f->tried);
  *out = status == TARN_OK ? f->tried->info.answer : TARN_PLAN_OUT_OF_TIME;
  return status;
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
    tarn_plan_answer answer = TARN_PLAN_OUT_OF_TIME;
    if (tarn__plan_call_over(f->call)) {
      f->minimal = false;
      return TARN_OK;
    }
    set_left_out(f, from, to, true);
    tarn_status status = ask(f, &answer);
    if (status != TARN_OK || answer != TARN_PLAN_INFEASIBLE) {
      set_left_out(f, from, to, false);
    }
    if (status != TARN_OK) return status;
    if (answer == TARN_PLAN_INFEASIBLE) {
      drop(f, from, to);
    } else {
      f->minimal &= answer != TARN_PLAN_OUT_OF_TIME;
      from = to;
    }
  }
  return TARN_OK;
}

static tarn_status narrow_down(finding *f) {
  for (size_t i = 0; i < f->problem->count; i++)
    f->left_out[i] = true;
  set_left_out(f, 0, f->count, false);
  tarn_status status = sort_members(f, BY_BEGIN);
  for (size_t size = (f->count + 1) / 2; status == TARN_OK; size /= 2) {
    status = narrow(f, size);
    if (size <= 1 || tarn__plan_call_over(f->call)) {
      f->minimal &= size <= 1;
      break;
    }
  }
  return status;
}

// --- the whole ---------------------------------------------------------------

static tarn_status find(finding *f) {
  tarn_status status = tarn__plan_make(f->problem, &f->tried);
  size_t room = f->problem->count + 1;
  f->left_out = tarn__plan_array(&f->memory, room, sizeof *f->left_out);
  f->members = tarn__plan_array(&f->memory, room, sizeof *f->members);
  if (status != TARN_OK || f->memory.failed) return TARN_E_NOMEM;
  if (find_one(f)) return TARN_OK;
  for (size_t i = 0; i < f->plan->arena_count; i++) {
    status = find_two(f, i);
    if (status != TARN_OK || f->count > 0) return status;
  }
  status = find_step(f);
  return status == TARN_OK && !f->minimal ? narrow_down(f) : status;
}

static void keep(const finding *f) {
  tarn_plan *plan = f->plan;
  for (size_t i = 0; i < f->problem->count; i++)
    f->left_out[i] = true;
  for (size_t i = 0; i < f->count; i++)
    f->left_out[f->members[i]] = false;
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
