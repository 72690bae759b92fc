// From the states of one level come those of the next: each is tried with each
// of its choices, the tries are sorted by their guides, and the best of them,
// no two alike, are made once more and kept. So no more than twice the width
// of states is in memory.
#include "plan/beam.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"
#include "plan/beam_spot.h"
#include "plan/ranking.h"

// Choices of a state; the first ones are nearly always the good ones.
enum { CHOICES = 12, TRIES_PER_LOOK = 64 };

typedef struct try {
  uint64_t guide;
  uint32_t parent;
  uint32_t passed;  // choices that it passes over
  tarn__plan_key key;
}
try;

struct tarn__plan_beam {
  const tarn__plan_instance *in;
  tarn__plan_terrain terrain;
  uint32_t width;
  tarn__plan_spot *spots;  // 2 x width, and one to try
  tarn__plan_spot *level;  // of them, what is gone on from
  tarn__plan_spot *next;
  size_t level_count;
  try *tries;
  size_t try_count;
  uint32_t *ranks;
  tarn__plan_rank_key *rank_keys;
  uint64_t *totals;
  uint64_t nodes;
};

// --- memory -----------------------------------------------------------------

static size_t spot_count(const tarn__plan_beam *b) {
  return 2 * (size_t)b->width + 1;
}

static tarn_status make_spot(const tarn__plan_instance *in,
                             tarn__plan_spot *spot) {
  size_t items = in->item_count + 1;
  spot->at = tarn__host_array(items, sizeof *spot->at);
  spot->least = tarn__host_array(items, sizeof *spot->least);
  spot->passed = tarn__host_array(items, sizeof *spot->passed);
  spot->open = tarn__host_array(items, sizeof *spot->open);
  spot->top = tarn__host_array(in->section_count + 1, sizeof *spot->top);
  bool made = spot->at != NULL && spot->least != NULL && spot->passed != NULL &&
              spot->open != NULL && spot->top != NULL;
  return made ? TARN_OK : TARN_E_NOMEM;
}

static void free_spot(const tarn__plan_instance *in, tarn__plan_spot *spot) {
  size_t items = in->item_count + 1;
  tarn__host_free_array(spot->at, items, sizeof *spot->at);
  tarn__host_free_array(spot->least, items, sizeof *spot->least);
  tarn__host_free_array(spot->passed, items, sizeof *spot->passed);
  tarn__host_free_array(spot->open, items, sizeof *spot->open);
  tarn__host_free_array(spot->top, in->section_count + 1, sizeof *spot->top);
}

// How wide it can be within |most| bytes.
static uint32_t width_within(const tarn__plan_instance *in, uint32_t width,
                             size_t most) {
  size_t spot = in->item_count * (2 * sizeof(uint64_t) + 5) +
                in->section_count * sizeof(uint32_t) + 1;
  size_t spots = most / spot;
  size_t fit = spots == 0 ? 0 : (spots - 1) / 2;
  return fit < width ? (uint32_t)fit : width;
}

static tarn_status make_arrays(tarn__plan_beam *b) {
  size_t items = b->in->item_count + 1;
  b->spots = tarn__host_array(spot_count(b), sizeof *b->spots);
  b->tries = tarn__host_array((size_t)b->width * CHOICES, sizeof *b->tries);
  b->ranks = tarn__host_array(items, sizeof *b->ranks);
  b->rank_keys = tarn__host_array(items, sizeof *b->rank_keys);
  b->totals = tarn__host_array(b->in->section_count + 1, sizeof *b->totals);
  bool made = b->spots != NULL && b->tries != NULL && b->ranks != NULL &&
              b->rank_keys != NULL && b->totals != NULL;
  tarn_status status = made ? TARN_OK : TARN_E_NOMEM;
  for (size_t i = 0; status == TARN_OK && i < spot_count(b); i++) {
    status = make_spot(b->in, &b->spots[i]);
  }
  return status;
}

tarn_status tarn__plan_beam_create(const tarn__plan_instance *instance,
                                   uint32_t width, size_t most,
                                   tarn__plan_beam **out_beam) {
  *out_beam = NULL;
  tarn__plan_beam *b = tarn__host_alloc(sizeof *b);
  if (b == NULL) return TARN_E_NOMEM;
  b->in = instance;
  b->width = width_within(instance, width, most);
  tarn_status status = b->width == 0 ? TARN_FULL : TARN_OK;
  if (status == TARN_OK) {
    status = tarn__plan_terrain_make(instance, most, &b->terrain);
  }
  if (status == TARN_OK) status = make_arrays(b);
  if (status == TARN_OK) {
    *out_beam = b;
  } else {
    tarn__plan_beam_destroy(b);
  }
  return status;
}

void tarn__plan_beam_destroy(tarn__plan_beam *b) {
  if (b == NULL) return;
  size_t items = b->in->item_count + 1;
  for (size_t i = 0; b->spots != NULL && i < spot_count(b); i++) {
    free_spot(b->in, &b->spots[i]);
  }
  tarn__host_free_array(b->spots, spot_count(b), sizeof *b->spots);
  tarn__host_free_array(b->tries, (size_t)b->width * CHOICES, sizeof *b->tries);
  tarn__host_free_array(b->ranks, items, sizeof *b->ranks);
  tarn__host_free_array(b->rank_keys, items, sizeof *b->rank_keys);
  tarn__host_free_array(b->totals, b->in->section_count + 1, sizeof *b->totals);
  tarn__plan_terrain_free(&b->terrain);
  tarn__host_free(b, sizeof *b);
}

uint32_t tarn__plan_beam_width(const tarn__plan_beam *b) {
  return b->width;
}

// --- a level ----------------------------------------------------------------

static tarn__plan_spot *trial(tarn__plan_beam *b) {
  return &b->spots[spot_count(b) - 1];
}

static void try_all(tarn__plan_beam *b, uint32_t parent) {
  const tarn__plan_spot *from = &b->level[parent];
  tarn__plan_spot *to = trial(b);
  uint32_t choices[CHOICES];
  size_t count =
      tarn__plan_spot_choices(&b->terrain, from, b->ranks, choices, CHOICES);
  for (uint32_t i = 0; i < count; i++) {
    b->nodes++;
    if (!tarn__plan_spot_step(&b->terrain, from, choices, i, to)) continue;
    b->tries[b->try_count++] = (try){to->guide, parent, i, to->key};
  }
}

static int by_guide(const void *x, const void *y) {
  const try *a = x;
  const try *b = y;
  if (a->guide != b->guide) return a->guide < b->guide ? -1 : 1;
  if (a->parent != b->parent) return a->parent < b->parent ? -1 : 1;
  return (a->passed > b->passed) - (a->passed < b->passed);
}

// Those that are alike have the same guide and stand near each other.
static bool is_alike(const try *tries, size_t at) {
  for (size_t i = at; i-- > 0 && tries[i].guide == tries[at].guide;) {
    if (tries[i].key.low == tries[at].key.low &&
        tries[i].key.high == tries[at].key.high) {
      return true;
    }
  }
  return false;
}

static void keep(tarn__plan_beam *b, const try *t, tarn__plan_spot *to) {
  uint32_t choices[CHOICES];
  const tarn__plan_spot *from = &b->level[t->parent];
  (void)tarn__plan_spot_choices(&b->terrain, from, b->ranks, choices, CHOICES);
  (void)tarn__plan_spot_step(&b->terrain, from, choices, t->passed, to);
}

static void keep_best(tarn__plan_beam *b, uint32_t width) {
  size_t kept = 0;
  qsort(b->tries, b->try_count, sizeof *b->tries, by_guide);
  for (size_t i = 0; i < b->try_count && kept < width; i++) {
    if (is_alike(b->tries, i)) continue;
    keep(b, &b->tries[i], &b->next[kept++]);
  }
  tarn__plan_spot *done = b->level;
  b->level = b->next;
  b->next = done;
  b->level_count = kept;
}

// False: the run is to be stopped.
static bool go_on(tarn__plan_beam *b, const tarn__plan_beam_run *run) {
  b->try_count = 0;
  uint64_t look = b->nodes + TRIES_PER_LOOK;
  for (uint32_t i = 0; i < b->level_count; i++) {
    try_all(b, i);
    if (run->node_limit != 0 && b->nodes >= run->node_limit) return false;
    if (b->nodes < look) continue;
    if (tarn__plan_stop_now(run->stop, b->nodes)) return false;
    look = b->nodes + TRIES_PER_LOOK;
  }
  keep_best(b, run->width);
  return true;
}

// --- the whole --------------------------------------------------------------

static void rank(tarn__plan_beam *b, const tarn__plan_beam_run *run) {
  tarn__plan_run order = {.order = run->order, .seed = run->seed};
  const tarn__plan_spot *first = &b->level[0];
  memcpy(b->totals, b->in->live, b->in->section_count * sizeof *b->totals);
  tarn__plan_rank(b->in, &order, b->totals, first->open, first->open_count,
                  b->rank_keys, b->ranks);
}

static tarn_status begin(tarn__plan_beam *b, const tarn__plan_beam_run *run) {
  bool fits = false;
  b->nodes = 0;
  b->level = b->spots;
  b->next = b->spots + b->width;
  tarn_status status = tarn__plan_terrain_begin(&b->terrain, run->capacity,
                                                run->ease, &b->level[0], &fits);
  b->level_count = fits;
  if (status == TARN_OK && fits) rank(b, run);
  return status;
}

tarn_status tarn__plan_beam_run_once(tarn__plan_beam *beam,
                                     const tarn__plan_beam_run *run,
                                     uint64_t *out_offsets,
                                     tarn__plan_outcome *out,
                                     uint64_t *out_nodes) {
  *out = TARN__PLAN_STOPPED;
  *out_nodes = 0;
  tarn_status status = begin(beam, run);
  if (status != TARN_OK) return status;
  while (beam->level_count > 0 && beam->level[0].open_count > 0) {
    if (!go_on(beam, run)) break;
  }
  *out_nodes = beam->nodes;
  if (beam->level_count == 0 || beam->level[0].open_count > 0) return TARN_OK;
  memcpy(out_offsets, beam->level[0].at,
         beam->in->item_count * sizeof *out_offsets);
  *out = TARN__PLAN_FOUND;
  return TARN_OK;
}
