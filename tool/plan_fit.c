// The buffers that must move, and the factor by which sizes must shrink.
//
// The buffers that are not moved need no more than the capacity at any moment,
// but may have no plan: then it is tried again for a little less, and at last
// the buffers that end above the capacity in some plan are moved as well.
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

static void take_pairs(const tarn_plan_problem *problem, plan_part *part) {
  size_t *number = tool_array(problem->count + 1, sizeof *number);
  for (size_t i = 0; i < problem->count; i++)
    number[i] = SIZE_MAX;
  for (size_t i = 0; i < part->problem.count; i++)
    number[part->whose[i]] = i;
  part->pairs = tool_array(problem->pair_count + 1, sizeof *part->pairs);
  part->problem.pairs = part->pairs;
  part->problem.pair_count = 0;
  for (size_t i = 0; i < problem->pair_count; i++) {
    tarn_plan_pair pair = {number[problem->pairs[i].giver],
                           number[problem->pairs[i].taker]};
    if (pair.giver == SIZE_MAX || pair.taker == SIZE_MAX) continue;
    part->pairs[part->problem.pair_count++] = pair;
  }
  free(number);
}

plan_part plan_part_make(const tarn_plan_problem *problem,
                         const bool *left_out) {
  plan_part part = {.problem = *problem};
  part.buffers = tool_array(problem->count + 1, sizeof *part.buffers);
  part.whose = tool_array(problem->count + 1, sizeof *part.whose);
  part.problem.buffers = part.buffers;
  part.problem.count = 0;
  for (size_t i = 0; i < problem->count; i++) {
    if (left_out[i]) continue;
    part.whose[part.problem.count] = i;
    part.buffers[part.problem.count++] = problem->buffers[i];
  }
  take_pairs(problem, &part);
  return part;
}

void plan_part_deinit(plan_part *part) {
  free(part->buffers);
  free(part->pairs);
  free(part->whose);
}

static void ignore_capacities(tarn_plan_problem *problem) {
  problem->arena_count = 0;
  problem->capacities = NULL;
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
  ignore_capacities(&unlimited);
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
  plan_part part = plan_part_make(f->problem, f->moved);
  tarn_plan *plan = solve(&part.problem, f->seconds, out_height);
  bool found = plan != NULL;
  tarn_plan_destroy(plan);
  plan_part_deinit(&part);
  return found;
}

// Takes out what stands out above the capacity in a plan that knows none.
static bool cut_top(fitting *f, uint64_t *out_height) {
  plan_part part = plan_part_make(f->problem, f->moved);
  ignore_capacities(&part.problem);
  tarn_plan *plan = solve(&part.problem, f->seconds, out_height);
  bool found = plan != NULL;
  *out_height = 0;
  for (size_t i = 0; found && i < part.problem.count; i++) {
    uint64_t end = tarn_plan_offsets(plan)[i] + part.buffers[i].size;
    if (end > f->capacity) {
      f->moved[part.whose[i]] = true;
    } else if (end > *out_height) {
      *out_height = end;
    }
  }
  tarn_plan_destroy(plan);
  plan_part_deinit(&part);
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
  if (kept == NULL) return 0;
  bool *left_out = tool_array(problem->count + 1, sizeof *left_out);
  for (size_t i = 0; i < problem->count; i++)
    left_out[i] = !kept[i];
  plan_part part = plan_part_make(problem, left_out);
  ignore_capacities(&part.problem);
  if (tarn_plan_lower_bound(&part.problem, &bound) != TARN_OK) bound = 0;
  plan_part_deinit(&part);
  free(left_out);
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
