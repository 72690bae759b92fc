// Random requests: sizes from 256 B to 64 MB, evenly by order of magnitude. The
// next block to die is drawn from all that live.
//
// Invariant: at most LIVE_LIMIT bytes live at once.
#include <assert.h>
#include <stdio.h>

#include "base/status.h"
#include "trace/chance.h"
#include "trace/workload.h"

enum {
  ALLOCS = 10000,
  LOWEST_BIT = 8,
  HIGHEST_BIT = 25,  // sizes are below twice this power
  CLASSES = HIGHEST_BIT + 1,
  LIVE_LIMIT = 1 << 30,
};

typedef struct member {
  uint32_t block;
  size_t size;
} member;

typedef struct population {
  tarn__trace_history *history;
  tarn__trace_chance chance;
  uint32_t stacks[CLASSES];  // by the power of two of a size
  tarn__array living;        // member
  size_t bytes;
} population;

static tarn_status name_classes(population *p, const char *workload) {
  tarn__trace_stacks *stacks = &p->history->stacks;
  for (unsigned bit = LOWEST_BIT; bit < CLASSES; bit++) {
    char name[32];
    uint32_t frame = 0;
    snprintf(name, sizeof name, "2^%u bytes or more", bit);
    TARN__TRY(tarn__stacks_frame_of(stacks, workload, name, 0, &frame));
    TARN__TRY(tarn__stacks_stack(stacks, &frame, 1, &p->stacks[bit]));
  }
  return TARN_OK;
}

static tarn_status birth(population *p, size_t size, unsigned bit) {
  void *fresh = NULL;
  TARN__TRY(tarn__array_grow(p->history->budget, &p->living, 1, &fresh));
  member *made = fresh;
  made->size = size;
  p->bytes += size;
  return tarn__history_birth(p->history, size, p->stacks[bit], &made->block);
}

// Frees a living block, each with the same probability.
static tarn_status death(population *p) {
  assert(p->living.count != 0);
  member *living = p->living.items;
  size_t chosen = tarn__chance_below(&p->chance, p->living.count);
  member dead = living[chosen];
  living[chosen] = living[p->living.count - 1];
  tarn__array_drop(&p->living, 1);
  p->bytes -= dead.size;
  return tarn__history_death(p->history, dead.block);
}

// A request. Blocks die for it while there is no room, and at random.
static tarn_status request(population *p) {
  unsigned bit = LOWEST_BIT +
                 (unsigned)tarn__chance_below(&p->chance, CLASSES - LOWEST_BIT);
  size_t size = (size_t)1 << bit;
  size += tarn__chance_below(&p->chance, size);
  bool one_dies = tarn__chance_is(&p->chance, 1, 2) && p->living.count != 0;
  tarn_status status = one_dies ? death(p) : TARN_OK;
  while (status == TARN_OK && p->bytes + size > LIVE_LIMIT)
    status = death(p);
  return status == TARN_OK ? birth(p, size, bit) : status;
}

tarn_status tarn__random_history(tarn__trace_history *history,
                                 const char *workload, uint64_t seed) {
  population p = {
      .history = history, .chance = {seed}, .living = TARN__ARRAY_OF(member)};
  tarn_status status = name_classes(&p, workload);
  for (int i = 0; i < ALLOCS && status == TARN_OK; i++)
    status = request(&p);
  while (status == TARN_OK && p.living.count != 0)
    status = death(&p);
  tarn__array_free(history->budget, &p.living);
  return status;
}
