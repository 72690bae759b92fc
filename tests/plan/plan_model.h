// plan_model.h - small random problems, and what is known of them by trying
// everything: for tests of the planner, none of which is used here.
#ifndef TARN_TESTS_PLAN_PLAN_MODEL_H_
#define TARN_TESTS_PLAN_PLAN_MODEL_H_

#include "tarn/plan.h"

enum { MODEL_MOST = 8, MODEL_GAPS = 2, MODEL_PAIRS = 4, MODEL_ARENAS = 3 };

// What may occur in a random problem.
enum {
  MODEL_ALIGNED = 1,
  MODEL_GAPPED = 2,
  MODEL_FIXED = 4,
  MODEL_PAIRED = 8,
  MODEL_KINDS = 16,
};

// A problem with its parts, which point at each other: it is not to be copied.
typedef struct model_scene {
  tarn_plan_problem problem;
  tarn_plan_buffer buffers[MODEL_MOST];
  tarn_plan_gap gaps[MODEL_MOST][MODEL_GAPS];
  tarn_plan_pair pairs[MODEL_PAIRS];
  uint64_t capacities[MODEL_ARENAS];
} model_scene;

// Numbers that look random: the same for the same |*state|.
uint64_t model_random(uint64_t *state, uint64_t limit);

// Up to |most| buffers, small in size and time, with features of |kinds| only.
// No arenas.
void model_make(model_scene *scene, uint64_t seed, size_t most, unsigned kinds);

// The steps in which part |part| of a buffer is needed, from gap to gap.
static inline uint64_t model_part_first(const tarn_plan_buffer *b,
                                        size_t part) {
  return part == 0 ? b->first : b->gaps[part - 1].last;
}

static inline uint64_t model_part_last(const tarn_plan_buffer *b, size_t part) {
  return part == b->gap_count ? b->last : b->gaps[part].first;
}

// Whether there is a step in which both are needed.
static inline bool model_meet(const tarn_plan_buffer *a,
                              const tarn_plan_buffer *b) {
  for (size_t i = 0; i <= a->gap_count; i++) {
    for (size_t j = 0; j <= b->gap_count; j++) {
      if (model_part_first(a, i) < model_part_last(b, j) &&
          model_part_first(b, j) < model_part_last(a, i)) {
        return true;
      }
    }
  }
  return false;
}

// The part of |whole| whose buffers are in |mask|, in their order.
void model_part(const model_scene *whole, uint32_t mask, model_scene *out);

// A C program's words for it, on the standard error: what a failed test shows.
void model_show(const model_scene *scene);

// The least height of those in |mask|, all in one arena of no limit;
// UINT64_MAX: there is no plan at all. By all orders of all choices of what
// shares in place, each put as low as it goes.
uint64_t model_least(const model_scene *scene, uint32_t mask);

// The same of all, where all pairs share in place.
uint64_t model_least_merged(const model_scene *scene);

// The same by all offsets below |limit|, for very small problems; UINT64_MAX:
// none is below.
uint64_t model_least_of_all(const model_scene *scene, uint64_t limit);

// Whether those in |mask| fit into |capacities|, each in one of |arenas| of
// them, or in the one that it must lie in.
bool model_fits(const model_scene *scene, uint32_t mask,
                const uint64_t *capacities, size_t arenas);

// Whether a plan is one, by comparing each buffer with each other.
bool model_is_plan(const tarn_plan_problem *problem, const uint64_t *offsets,
                   const uint32_t *arenas, uint64_t *out_height);

#endif  // TARN_TESTS_PLAN_PLAN_MODEL_H_
