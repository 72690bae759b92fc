// Strangers: what is live on the ground besides the blocks of the present
// layout.
//
// They are few, and sorted by address; no two of them overlap. A place is
// blocked if and only if one of them lies over a byte of it.
#include "base/status.h"
#include "pool/step_layout.h"

// --- places and what lies over them ------------------------------------------

// The first place that may reach beyond |offset|.
static size_t first_beyond(const tarn__pool_step_layout *layout,
                           size_t offset) {
  size_t low = 0;
  size_t high = layout->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (layout->places[middle].reach <= offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static tarn_addr end_of(const tarn__pool_step_ground *ground,
                        const tarn__pool_piece *piece) {
  return piece->address + piece->size + ground->padding;
}

// The first stranger that ends above |address|.
static size_t first_above(const tarn__pool_step_ground *ground,
                          tarn_addr address) {
  size_t low = 0;
  size_t high = ground->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const tarn__pool_piece *piece = ground->strangers[middle];
    if (end_of(ground, piece) <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static bool is_taken(const tarn__pool_step_ground *ground,
                     const tarn__pool_step_place *place) {
  tarn_addr from = ground->address + place->offset;
  size_t at = first_above(ground, from);
  return at < ground->count &&
         ground->strangers[at]->address < from + place->size;
}

static bool is_blocked(const tarn__pool_step_layout *layout,
                       const tarn__pool_step_place *place) {
  return layout->events[place->request].align == TARN__STEP_BLOCKED;
}

static void set_blocked(tarn__pool_step_layout *layout,
                        const tarn__pool_step_place *place, bool blocked) {
  if (is_blocked(layout, place) == blocked) return;
  tarn__pool_step_event *request = &layout->events[place->request];
  tarn__pool_step_event *release = &layout->events[place->release];
  request->align = blocked ? TARN__STEP_BLOCKED : place->align;
  request->is_plain = !blocked && tarn__step_place_is_plain(layout, place);
  release->serial |= TARN__STEP_BARRED;
  if (!blocked) release->serial &= ~TARN__STEP_BARRED;
  layout->blocked += blocked ? 1 : 0;
  layout->blocked -= blocked ? 0 : 1;
}

// Blocks and frees the places over which |piece| lies, as strangers want it.
static void update_under(const tarn__pool_step_ground *ground,
                         tarn__pool_step_layout *layout,
                         const tarn__pool_piece *piece) {
  if (layout == NULL) return;
  size_t from = (size_t)(piece->address - ground->address);
  size_t end = (size_t)(end_of(ground, piece) - ground->address);
  for (size_t i = first_beyond(layout, from);
       i < layout->count && layout->places[i].offset < end; i++) {
    const tarn__pool_step_place *place = &layout->places[i];
    if (place->offset + place->size <= from) continue;
    set_blocked(layout, place, is_taken(ground, place));
  }
}

static void update_all(const tarn__pool_step_ground *ground,
                       tarn__pool_step_layout *layout) {
  if (layout == NULL || (ground->count == 0 && layout->blocked == 0)) return;
  for (size_t i = 0; i < layout->count; i++) {
    const tarn__pool_step_place *place = &layout->places[i];
    set_blocked(layout, place, is_taken(ground, place));
  }
}

static void unblock_all(tarn__pool_step_layout *layout) {
  for (size_t i = 0; layout != NULL && layout->blocked > 0; i++)
    set_blocked(layout, &layout->places[i], false);
}

// --- coming and going --------------------------------------------------------

void tarn__strangers_add(tarn__pool_step_ground *ground,
                         tarn__pool_step_layout *layout,
                         tarn__pool_piece *piece) {
  size_t at = first_above(ground, piece->address);
  for (size_t i = ground->count++; i > at; i--)
    ground->strangers[i] = ground->strangers[i - 1];
  ground->strangers[at] = piece;
  piece->stranger = true;
  update_under(ground, layout, piece);
}

void tarn__strangers_remove(tarn__pool_step_ground *ground,
                            tarn__pool_step_layout *layout,
                            tarn__pool_piece *piece) {
  size_t at = first_above(ground, piece->address);
  ground->count--;
  for (size_t i = at; i < ground->count; i++)
    ground->strangers[i] = ground->strangers[i + 1];
  piece->stranger = false;
  update_under(ground, layout, piece);
}

// Merges what is live of |layout| from above, where both are sorted.
static void take_in(tarn__pool_step_ground *ground,
                    const tarn__pool_step_layout *layout, size_t more) {
  size_t left = ground->count;
  size_t to = ground->count + more;
  ground->count = to;
  for (size_t i = layout->count; i > 0 && more > 0;) {
    tarn__pool_piece *piece = layout->pieces[i - 1];
    if (!piece->live || piece->stranger) {
      i--;
    } else if (left > 0 &&
               ground->strangers[left - 1]->address > piece->address) {
      ground->strangers[--to] = ground->strangers[--left];
    } else {
      ground->strangers[--to] = piece;
      piece->stranger = true;
      more--;
      i--;
    }
  }
}

bool tarn__strangers_exchange(tarn__pool_step_ground *ground,
                              tarn__pool_step_layout *from,
                              tarn__pool_step_layout *to) {
  size_t more = from != NULL ? ground->blocks - ground->count : 0;
  if (!tarn__strangers_fit(ground, more)) return false;
  unblock_all(from);
  if (more > 0) take_in(ground, from, more);
  update_all(ground, to);
  return true;
}

// --- the invariants ----------------------------------------------------------

tarn_status tarn__strangers_check(const tarn__pool_step_ground *ground,
                                  const tarn__pool_step_layout *layout) {
  tarn_addr end = ground->address;
  for (size_t i = 0; i < ground->count; i++) {
    const tarn__pool_piece *piece = ground->strangers[i];
    if (!piece->live || !piece->stranger || piece->address < end) {
      return tarn__fail(TARN_E_CORRUPT,
                        "layout: piece %u is no stranger, or out of order",
                        piece->id);
    }
    end = end_of(ground, piece);
  }
  for (size_t i = 0; layout != NULL && i < layout->count; i++) {
    const tarn__pool_step_place *place = &layout->places[i];
    if (is_blocked(layout, place) != is_taken(ground, place)) {
      return tarn__fail(TARN_E_CORRUPT, "layout: place %zu is %s", i,
                        is_blocked(layout, place) ? "blocked by no block"
                                                  : "taken and not blocked");
    }
  }
  return TARN_OK;
}
