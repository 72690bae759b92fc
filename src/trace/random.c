// Random requests: sizes from 256 B to 64 MB, as many small as large ones by
// order of magnitude; whoever dies next is drawn from all that live.
//
// Invariant: at most LIVE_LIMIT bytes live at once.
#include <assert.h>
#include <stdio.h>

#include "trace/workload.h"

enum {
  SEED = 1,
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

typedef struct crowd {
  tarn__trace_history *history;
  uint64_t state;            // of the generator
  uint32_t stacks[CLASSES];  // by the power of two of a size
  tarn__array living;        // member
  size_t bytes;
} crowd;

// splitmix64, by Sebastiano Vigna, in the public domain.
static uint64_t draw(crowd *c) {
  uint64_t z = (c->state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static tarn_status name_classes(crowd *c, const char *workload) {
  tarn_status status = TARN_OK;
  for (unsigned bit = LOWEST_BIT; bit < CLASSES && status == TARN_OK; bit++) {
    char name[32];
    snprintf(name, sizeof name, "2^%u bytes or more", bit);
    status = tarn__stacks_named(&c->history->stacks, workload, name,
                                &c->stacks[bit]);
  }
  return status;
}

static tarn_status birth(crowd *c, size_t size, unsigned bit) {
  void *fresh = NULL;
  tarn_status status =
      tarn__array_grow(c->history->budget, &c->living, 1, &fresh);
  if (status != TARN_OK) return status;
  member *made = fresh;
  made->size = size;
  c->bytes += size;
  return tarn__history_birth(c->history, size, c->stacks[bit], &made->block);
}

// One of the living dies, each with the same chance.
static tarn_status death(crowd *c) {
  assert(c->living.count != 0);
  member *living = c->living.items;
  size_t chosen = (size_t)(draw(c) % c->living.count);
  member dead = living[chosen];
  living[chosen] = living[c->living.count - 1];
  tarn__array_drop(&c->living, 1);
  c->bytes -= dead.size;
  return tarn__history_death(c->history, dead.block);
}

// A request, for which others die while there is no room or by chance.
static tarn_status request(crowd *c) {
  unsigned bit = LOWEST_BIT + (unsigned)(draw(c) % (CLASSES - LOWEST_BIT));
  size_t size = ((size_t)1 << bit) + (size_t)(draw(c) % (1u << bit));
  bool one_dies = draw(c) % 2 == 0 && c->living.count != 0;
  tarn_status status = one_dies ? death(c) : TARN_OK;
  while (status == TARN_OK && c->bytes + size > LIVE_LIMIT)
    status = death(c);
  return status == TARN_OK ? birth(c, size, bit) : status;
}

tarn_status tarn__random_history(tarn__trace_history *history,
                                 const char *workload) {
  crowd c = {
      .history = history, .state = SEED, .living = TARN__ARRAY_OF(member)};
  tarn_status status = name_classes(&c, workload);
  for (int i = 0; i < ALLOCS && status == TARN_OK; i++)
    status = request(&c);
  while (status == TARN_OK && c.living.count != 0)
    status = death(&c);
  tarn__array_free(history->budget, &c.living);
  return status;
}
