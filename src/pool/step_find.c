// What is where on the ground of steps, and whether it may be there.
#include "base/status.h"
#include "pool/state.h"

static bool has(const tarn__pool_steps *steps, tarn_addr address) {
  const tarn__pool_step_ground *ground = &steps->ground;
  return ground->owner != NULL && address - ground->address < ground->size;
}

// The steps on whose ground the address lies; NULL: none.
static const tarn__pool_steps *steps_at(const tarn_pool *pool,
                                        tarn_addr address) {
  for (size_t i = 0; i <= pool->threads.count; i++) {
    const tarn__pool_steps *steps = tarn__steps_number(pool, i);
    if (steps != NULL && has(steps, address)) return steps;
  }
  return NULL;
}

// The latest layout comes first.
tarn__pool_piece *tarn__front_at(const tarn_pool *pool, tarn_addr address) {
  tarn__pool_piece *found = tarn__pieces_find(&pool->pieces, address);
  const tarn__pool_steps *steps =
      found == NULL ? steps_at(pool, address) : NULL;
  if (steps == NULL) return found;
  for (size_t i = 0; i < steps->count; i++) {
    tarn__pool_piece *piece = tarn__step_layout_at(steps->layouts[i], address);
    if (piece != NULL && piece->live) return piece;
    if (found == NULL) found = piece;
  }
  return found;
}

tarn__pool_piece *tarn__steps_around(const tarn_pool *pool, tarn_addr address) {
  const tarn__pool_steps *steps = steps_at(pool, address);
  if (steps == NULL) return NULL;
  for (size_t i = 0; i < steps->count; i++) {
    tarn__pool_piece *piece =
        tarn__step_layout_around(steps->layouts[i], address);
    if (piece != NULL) return piece;
  }
  return NULL;
}

// --- the invariants --------------------------------------------------------

static const char *fault_of(const tarn__pool_steps *steps,
                            const tarn__pool_step_layout *layout, size_t i) {
  const tarn__pool_step_ground *ground = &steps->ground;
  const tarn__pool_step_cursor *cursor = &steps->cursor;
  const tarn__pool_piece *piece = layout->pieces[i];
  const tarn__pool_step_place *place = &layout->places[i];
  if (piece->home != layout || !piece->planned) return "is not planned";
  if (piece->address - ground->address != place->offset ||
      place->offset > ground->size ||
      piece->size + ground->padding > ground->size - place->offset) {
    return "is not at its place";
  }
  if (!piece->live) return piece->stranger ? "is a stranger and idle" : NULL;
  if (piece->stranger) return NULL;
  if (layout != cursor->layout) return "is live in another step";
  if (layout->events[place->request].align == TARN__STEP_BLOCKED) {
    return "lies under a stranger";
  }
  return tarn__step_layout_expects(layout, cursor->at, piece)
             ? NULL
             : "is out where the step does not have it";
}

static tarn_status check_layout(const tarn__pool_steps *steps,
                                const tarn__pool_step_layout *layout,
                                size_t *live) {
  tarn_addr end = 0;
  for (size_t i = 0; layout->pieces != NULL && i < layout->count; i++) {
    const tarn__pool_piece *piece = layout->pieces[i];
    const char *wrong = fault_of(steps, layout, i);
    if (piece->live && piece->address < end) {
      wrong = "overlaps another that is out";
    }
    if (wrong != NULL) {
      return tarn__fail(TARN_E_CORRUPT, "layout: piece %u %s", piece->id,
                        wrong);
    }
    *live += piece->live ? 1 : 0;
    if (piece->live) end = piece->address + piece->size;
  }
  return TARN_OK;
}

static tarn_status check_steps(const tarn__pool_steps *steps, size_t *idle) {
  size_t live = 0;
  for (size_t i = 0; i < steps->count; i++) {
    const tarn__pool_step_layout *layout = steps->layouts[i];
    TARN__TRY(check_layout(steps, layout, &live));
    if (layout->pieces != NULL) *idle += layout->count;
    if (layout != steps->cursor.layout && layout->blocked != 0) {
      return tarn__fail(TARN_E_CORRUPT, "layout: %zu places are blocked",
                        layout->blocked);
    }
  }
  *idle -= live;
  if (live != steps->ground.blocks) {
    return tarn__fail(TARN_E_CORRUPT,
                      "layout: %zu pieces are out, should be %zu", live,
                      steps->ground.blocks);
  }
  return tarn__strangers_check(&steps->ground, steps->cursor.layout);
}

tarn_status tarn__steps_check(const tarn_pool *pool, size_t *idle) {
  for (size_t i = 0; i <= pool->threads.count; i++) {
    const tarn__pool_steps *steps = tarn__steps_number(pool, i);
    if (steps != NULL) TARN__TRY(check_steps(steps, idle));
  }
  return TARN_OK;
}
