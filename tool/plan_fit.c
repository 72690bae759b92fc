// What must move, and what must shrink.
//
// What is left without what is moved needs no more than the capacity at any
// moment, but may have no plan: then it is tried again for a little less, and
// at last what stands out above the capacity in some plan is moved as well.
#include "plan_fit.h"

#include <stdlib.h>
#include <string.h>

#include "kit/tool.h"
#include "overfull.h"

enum {
  ROUNDS = 3,
  LESS_PERCENT = 2,  // of the capacity, each round
  FACTORS = 5,
};

typedef struct fitting {
  const tarn_plan_problem *problem;
  uint64_t capacity;
  bool *moved;     // by buffer
  double seconds;  // for each plan
} fitting;

typedef struct moving {
  uint64_t size;
  size_t buffer;
} moving;

uint64_t plan_fit_capacity(const tarn_plan_problem *problem) {
  uint64_t sum = 0;
  for (size_t i = 0; i < problem->arena_count; i++) {
    uint64_t capacity = problem->capacities[i];
    if (capacity == 0 || capacity > UINT64_MAX - sum) return 0;
    sum += capacity;
  }
  return sum;
}

// ---------------------------------------------------------------------------
// Plans of what is left
// ---------------------------------------------------------------------------

// What is left of a problem, and whose buffers its are.
typedef struct rest {
  tarn_plan_problem problem;
  tarn_plan_buffer *buffers;
  tarn_plan_pair *pairs;
  size_t *whose;
} rest;

// Buffers have new numbers. A buffer that was taken out neither gives nor takes
// a place.
static void take_pairs(const fitting *f, rest *r) {
  size_t *number = tool_array(f->problem->count + 1, sizeof *number);
  for (size_t i = 0; i < r->problem.count; i++)
    number[r->whose[i]] = i;
  r->pairs = tool_array(f->problem->pair_count + 1, sizeof *r->pairs);
  r->problem.pairs = r->pairs;
  r->problem.pair_count = 0;
  for (size_t i = 0; i < f->problem->pair_count; i++) {
    tarn_plan_pair pair = f->problem->pairs[i];
    if (f->moved[pair.giver] || f->moved[pair.taker]) continue;
    r->pairs[r->problem.pair_count++] =
        (tarn_plan_pair){number[pair.giver], number[pair.taker]};
  }
  free(number);
}

static rest make_rest(const fitting *f, bool limited) {
  rest r = {.problem = *f->problem};
  r.buffers = tool_array(f->problem->count + 1, sizeof *r.buffers);
  r.whose = tool_array(f->problem->count + 1, sizeof *r.whose);
  r.problem.buffers = r.buffers;
  r.problem.count = 0;
  if (!limited) {
    r.problem.arena_count = 0;
    r.problem.capacities = NULL;
  }
  for (size_t i = 0; i < f->problem->count; i++) {
    if (f->moved[i]) continue;
    r.whose[r.problem.count] = i;
    r.buffers[r.problem.count++] = f->problem->buffers[i];
  }
  take_pairs(f, &r);
  return r;
}

static void free_rest(const rest *r) {
  free(r->buffers);
  free(r->pairs);
  free(r->whose);
}

// A plan that was checked, and its height; NULL: no plan.
static tarn_plan *solve(const tarn_plan_problem *problem, double seconds,
                        uint64_t *out_height) {
  tarn_plan_options options = {.struct_size = sizeof options,
                               .time_limit_s = seconds};
  tarn_plan *plan = NULL;
  if (tarn_plan_solve(problem, &options, &plan) != TARN_OK) return NULL;
  const uint64_t *offsets = tarn_plan_offsets(plan);
  if (offsets != NULL &&
      tarn_plan_verify(problem, offsets, tarn_plan_arenas(plan), out_height) ==
          TARN_OK) {
    return plan;
  }
  tarn_plan_destroy(plan);
  return NULL;
}

// In one piece of memory, which all arenas become.
uint64_t *plan_fit_unlimited(const tarn_plan_problem *problem, double seconds,
                             uint64_t *out_height) {
  size_t count = problem->count;
  tarn_plan_problem unlimited = *problem;
  tarn_plan_buffer *buffers = tool_array(count + 1, sizeof *buffers);
  uint64_t *offsets = NULL;
  for (size_t i = 0; i < count; i++) {
    buffers[i] = problem->buffers[i];
    buffers[i].flags &= ~(uint32_t)TARN_PLAN_IN_ARENA;
  }
  unlimited.buffers = buffers;
  unlimited.arena_count = 0;
  unlimited.capacities = NULL;
  *out_height = 0;
  tarn_plan *plan = solve(&unlimited, seconds, out_height);
  if (plan != NULL) {
    offsets = tool_array(count + 1, sizeof *offsets);
    memcpy(offsets, tarn_plan_offsets(plan), count * sizeof *offsets);
  }
  tarn_plan_destroy(plan);
  free(buffers);
  return offsets;
}

static bool has_plan(const fitting *f, uint64_t *out_height) {
  rest r = make_rest(f, true);
  tarn_plan *plan = solve(&r.problem, f->seconds, out_height);
  bool found = plan != NULL;
  tarn_plan_destroy(plan);
  free_rest(&r);
  return found;
}

// Takes out what stands out above the capacity in a plan that knows none.
static bool cut_top(fitting *f, uint64_t *out_height) {
  rest r = make_rest(f, false);
  tarn_plan *plan = solve(&r.problem, f->seconds, out_height);
  bool found = plan != NULL;
  *out_height = 0;
  for (size_t i = 0; found && i < r.problem.count; i++) {
    uint64_t end = tarn_plan_offsets(plan)[i] + r.buffers[i].size;
    if (end > f->capacity) {
      f->moved[r.whose[i]] = true;
    } else if (end > *out_height) {
      *out_height = end;
    }
  }
  tarn_plan_destroy(plan);
  free_rest(&r);
  return found;
}

static bool fit(fitting *f, uint64_t *out_height) {
  for (uint64_t round = 0; round < ROUNDS; round++) {
    uint64_t less = f->capacity / 100 * LESS_PERCENT * round;
    overfull_choose(f->problem, f->capacity - less, f->moved);
    if (has_plan(f, out_height)) return true;
  }
  // Several arenas have no one top.
  return f->problem->arena_count == 1 && cut_top(f, out_height);
}

// ---------------------------------------------------------------------------
// The answers
// ---------------------------------------------------------------------------

// The largest first.
static int by_size(const void *x, const void *y) {
  const moving *a = x, *b = y;
  if (a->size != b->size) return a->size < b->size ? 1 : -1;
  return (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

static void list_moves(const fitting *f, plan_moves *out) {
  moving *list = tool_array(f->problem->count + 1, sizeof *list);
  for (size_t i = 0; i < f->problem->count; i++) {
    if (!f->moved[i]) continue;
    list[out->count++] = (moving){f->problem->buffers[i].size, i};
    out->bytes += f->problem->buffers[i].size;
  }
  qsort(list, out->count, sizeof *list, by_size);
  out->items = tool_array(out->count + 1, sizeof *out->items);
  for (size_t i = 0; i < out->count; i++)
    out->items[i] = list[i].buffer;
  free(list);
}

plan_moves plan_fit_moves(const tarn_plan_problem *problem, double seconds) {
  plan_moves moves = {0};
  fitting f = {.problem = problem,
               .capacity = plan_fit_capacity(problem),
               .seconds = seconds / (ROUNDS + 1)};
  if (f.capacity == 0) return moves;
  f.moved = tool_array(problem->count + 1, sizeof *f.moved);
  moves.known = fit(&f, &moves.height);
  if (moves.known) list_moves(&f, &moves);
  free(f.moved);
  return moves;
}

void plan_moves_deinit(plan_moves *moves) {
  free(moves->items);
  *moves = (plan_moves){0};
}

// ---------------------------------------------------------------------------
// Shrinking
// ---------------------------------------------------------------------------

// A buffer that shrinks keeps to whole units of its alignment, and one of them.
static uint64_t shrink(const tarn_plan_buffer *buffer, double factor) {
  uint64_t unit = buffer->alignment > 0 ? buffer->alignment : 1;
  double wanted = (double)buffer->size * factor;
  if (wanted >= (double)buffer->size) return buffer->size;
  // A whole number above the quotient, or the quotient itself.
  uint64_t units = (uint64_t)(wanted / (double)unit);
  if ((double)units * (double)unit < wanted || units == 0) units++;
  uint64_t size = units * unit;
  return size < buffer->size ? size : buffer->size;
}

static bool fits_at(const tarn_plan_problem *problem, const bool *kept,
                    double factor, double seconds) {
  uint64_t height = 0;
  tarn_plan_problem smaller = *problem;
  tarn_plan_buffer *buffers = tool_array(problem->count + 1, sizeof *buffers);
  smaller.buffers = buffers;
  for (size_t i = 0; i < problem->count; i++) {
    buffers[i] = problem->buffers[i];
    if (kept != NULL && kept[i]) continue;
    buffers[i].size = shrink(&buffers[i], factor);
  }
  tarn_plan *plan = solve(&smaller, seconds, &height);
  bool fits = plan != NULL;
  tarn_plan_destroy(plan);
  free(buffers);
  return fits;
}

// The most that is kept at once.
static uint64_t kept_at_once(const tarn_plan_problem *problem,
                             const bool *kept) {
  uint64_t bound = 0;
  rest r;
  fitting f = {.problem = problem};
  if (kept == NULL) return 0;
  f.moved = tool_array(problem->count + 1, sizeof *f.moved);
  for (size_t i = 0; i < problem->count; i++)
    f.moved[i] = !kept[i];
  r = make_rest(&f, false);
  if (tarn_plan_lower_bound(&r.problem, &bound) != TARN_OK) bound = 0;
  free_rest(&r);
  free(f.moved);
  return bound;
}

double plan_fit_factor(const tarn_plan_problem *problem, const bool *kept,
                       uint64_t height, double seconds) {
  static const double tries[FACTORS] = {1, 0.998, 0.99, 0.96, 0.9};
  uint64_t capacity = plan_fit_capacity(problem);
  uint64_t stays = kept_at_once(problem, kept);
  if (capacity <= stays || height <= stays) return 0;
  double first = (double)(capacity - stays) / (double)(height - stays);
  if (first > 1) first = 1;
  for (int i = 0; i < FACTORS; i++) {
    double factor = (double)(uint64_t)(first * tries[i] * 1e4) / 1e4;
    if (factor <= 0) return 0;
    if (fits_at(problem, kept, factor, seconds / FACTORS)) return factor;
  }
  return 0;
}
