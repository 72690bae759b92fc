// The ground of layouts: asked of the strategy when a step begins, given up for
// memory that others need.
#include <assert.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "pool/statistics.h"
#include "pool/step_parts.h"

enum {
  // Strangers for which there is room, in addition to half of the largest
  // layout.
  STRANGERS = 64,
  // Steps after which ground has been worth it.
  WORTH_ROUNDS = 8,
  // Beginnings that are let pass, and how often that is doubled at most.
  PUT_OFF = 2,
  MOST_DOUBLED = 8,
};

void tarn__steps_free_ground(tarn__pool_step_ground *ground) {
  tarn__host_free_array(ground->strangers, ground->most,
                        sizeof(tarn__pool_piece *));
  *ground = (tarn__pool_step_ground){.owner = NULL};
}

void tarn__steps_give_up(tarn_pool *pool, tarn__pool_steps *steps) {
  tarn__pool_step_ground *ground = &steps->ground;
  steps->changes++;
  if (ground->owner == NULL) return;
  tarn__steps_settle(pool, steps);
  ground->room = ground->most;
  (void)!tarn__strangers_exchange(ground, steps->cursor.layout, NULL);
  ground->owner->type->drop_ground(ground->owner, ground);
  for (size_t i = 0; i < steps->count; i++)
    tarn__step_layout_undress(pool, steps->layouts[i]);
  tarn__steps_free_ground(ground);
  tarn__steps_listen(steps, false);
}

// The next time it takes longer until ground is asked for, unless it was worth
// it.
static void put_off(tarn__pool_steps *steps) {
  if (steps->rounds >= WORTH_ROUNDS) steps->gave_up = 0;
  steps->put_off = (uint32_t)PUT_OFF << steps->gave_up;
  if (steps->gave_up < MOST_DOUBLED) steps->gave_up++;
}

void tarn__steps_park(tarn_pool *pool) {
  for (size_t i = 0; i <= pool->threads.count; i++) {
    tarn__pool_steps *steps = tarn__steps_number(pool, i);
    if (steps == NULL) continue;
    if (steps->ground.owner != NULL) put_off(steps);
    tarn__steps_give_up(pool, steps);
    tarn__recorder_restart(&steps->recorder, 0);
  }
}

// Follows none. Settled.
void tarn__steps_stop(tarn_pool *pool, tarn__pool_steps *steps, bool begins) {
  if (tarn__strangers_exchange(&steps->ground, steps->cursor.layout, NULL)) {
    tarn__steps_listen(steps, begins);
  } else {
    tarn__steps_give_up(pool, steps);
  }
}

// For all layouts, or at least for |layout|.
static size_t most_blocks(const tarn__pool_steps *steps,
                          const tarn__pool_step_layout *layout) {
  size_t most = layout->count;
  for (size_t i = 0; i < steps->count; i++)
    if (steps->layouts[i]->count > most) most = steps->layouts[i]->count;
  return most;
}

static bool make_ground(const tarn_pool *pool, const tarn__pool_steps *steps,
                        const tarn__pool_step_layout *layout,
                        tarn__pool_step_ground *out) {
  size_t most = most_blocks(steps, layout);
  *out = (tarn__pool_step_ground){.owner = pool->current,
                                  .serial = layout->serial,
                                  .padding = pool->padding,
                                  .room = most / 2 + STRANGERS};
  out->most = most + out->room;
  out->strangers = tarn__host_array(out->most, sizeof(tarn__pool_piece *));
  return out->strangers != NULL;
}

// The strategy may release the lock to ask the device: then others may have
// gone on, and no step begins here any more.
static tarn_status find_ground(tarn_pool *pool, tarn__pool_steps *steps,
                               size_t size, size_t align,
                               tarn__pool_step_ground *ground) {
  tarn__pool_strategy *owner = ground->owner;
  uint64_t changes = steps->changes;
  uint64_t events = steps->recorder.count;
  tarn__pool_request request = {
      .size = size, .align = align, .serial = ground->serial};
  ground->size = size;
  assert(owner != NULL);
  owner->inside++;
  tarn_status status = owner->type->raise_ground(owner, &request, ground);
  bool same = owner == pool->current && steps->changes == changes &&
              steps->recorder.count == events;
  if (status == TARN_OK && !same) {
    owner->type->drop_ground(owner, ground);
    status = TARN_E_STATE;
  }
  (void)tarn__front_end_call(pool, owner);
  return same ? status : TARN_E_STATE;
}

// Ground for |layout|, which is no part of |steps| yet or has none, as large as
// all need, or if there is no memory as it needs itself. TARN_E_STATE: others
// have gone on, and |layout| may be gone.
static tarn_status raise_ground(tarn_pool *pool, tarn__pool_steps *steps,
                                const tarn__pool_step_layout *layout,
                                tarn__pool_step_ground *out) {
  size_t align = layout->align;
  size_t all = layout->size;
  size_t own = layout->size;
  for (size_t i = 0; i < steps->count; i++) {
    if (steps->layouts[i]->size > all) all = steps->layouts[i]->size;
    if (steps->layouts[i]->align > align) align = steps->layouts[i]->align;
  }
  if (!make_ground(pool, steps, layout, out)) return TARN_E_NOMEM;
  tarn_status status = find_ground(pool, steps, all, align, out);
  if (status == TARN_FULL && all > own) {
    status = find_ground(pool, steps, own, align, out);
  }
  if (status != TARN_OK) tarn__steps_free_ground(out);
  return status;
}

static bool fits(const tarn_pool *pool, const tarn__pool_steps *steps,
                 const tarn__pool_step_layout *layout) {
  const tarn__pool_step_ground *ground = &steps->ground;
  return ground->owner == pool->current && ground->serial == layout->serial &&
         layout->size <= ground->size &&
         layout->count <= ground->most - ground->room &&
         ground->address % layout->align == 0;
}

// Sees to it that |layout| has ground. TARN_PENDING: not now. TARN_E_STATE: as
// of raise_ground.
tarn_status tarn__steps_stand(tarn_pool *pool, tarn__pool_steps *steps,
                              tarn__pool_step_layout *layout, bool may_ask) {
  if (layout->pieces != NULL) return TARN_OK;
  if (!fits(pool, steps, layout)) {
    tarn__pool_step_ground ground;
    if (!may_ask) return TARN_PENDING;
    if (steps->put_off > 0) {
      steps->put_off--;
      return TARN_PENDING;
    }
    tarn__steps_give_up(pool, steps);
    steps->rounds = 0;
    tarn_status status = raise_ground(pool, steps, layout, &ground);
    if (status != TARN_OK) {
      if (status != TARN_E_STATE) put_off(steps);
      return status;
    }
    steps->ground = ground;
    steps->changes++;
  }
  return tarn__step_layout_dress(pool, layout, &steps->ground) ? TARN_OK
                                                               : TARN_E_NOMEM;
}
