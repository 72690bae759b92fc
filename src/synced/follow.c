// A buffer that reuses the bytes of another one takes over its uses.
//
//   former   uses ──► timelines ──► points ──┐
//                                            ├──► events, shared
//   buffer   uses ──► timelines ──► points ──┘
//
// The locks of both are never held together: uses are listed with one lock and
// entered with the other. The buffers may overlap in any way, so each byte of
// the buffer waits for all uses.
#include <string.h>

#include "base/hostmem.h"
#include "synced/sides.h"
#include "synced/work.h"

// Work of a stream at a place.
typedef struct item {
  tarn_place place;
  tarn__synced_timeline
      *timeline;  // of the former, and then of the buffer, where it is held
  uint64_t number;
  tarn__synced_event *event;  // NULL: it is the timeline's
  uint32_t side;              // of the buffer
  bool writes;
} item;

enum { ROOM_HERE = 16 };

typedef struct items {
  item *first;  // |here|, or memory where that is not enough
  size_t count;
  size_t room;
  item here[ROOM_HERE];
} items;

static void items_init(items *all) {
  all->first = all->here;
  all->count = 0;
  all->room = ROOM_HERE;
}

static void items_deinit(items *all) {
  for (size_t i = 0; i < all->count; i++)
    tarn__event_release(all->first[i].event);
  if (all->first == all->here) return;
  tarn__host_free_array(all->first, all->room, sizeof *all->first);
}

// --- with the former's lock ------------------------------------------------

static bool leave_here(items *all) {
  item *moved = tarn__host_array(2 * all->room, sizeof *moved);
  if (moved == NULL) return false;
  memcpy(moved, all->here, sizeof all->here);
  all->first = moved;
  all->room *= 2;
  return true;
}

static bool make_room(items *all) {
  if (all->count < all->room) return true;
  if (all->first == all->here) return leave_here(all);
  size_t room = 2 * all->room;
  item *grown = tarn__host_resize(all->first, all->room, room, sizeof *grown);
  if (grown == NULL) return false;
  all->first = grown;
  all->room = room;
  return true;
}

static item *find(const items *all, const item *wanted) {
  for (size_t i = 0; i < all->count; i++) {
    item *known = &all->first[i];
    if (known->timeline == wanted->timeline &&
        known->writes == wanted->writes &&
        tarn_place_equal(known->place, wanted->place))
      return known;
  }
  return NULL;
}

// The last point of a timeline counts.
static bool add_use(items *all, const tarn__synced_core *former,
                    const tarn__synced_use *use) {
  if (tarn__timeline_is_over(use->timeline, use->number)) return true;
  item added = {.place = former->sides[use->side].end.place,
                .timeline = use->timeline,
                .number = use->number,
                .writes = use->writes};
  item *known = find(all, &added);
  if (known != NULL) {
    if (known->number < added.number) known->number = added.number;
    return true;
  }
  if (!make_room(all)) return false;
  all->first[all->count++] = added;
  return true;
}

static bool add_uses(items *all, const tarn__synced_core *former) {
  for (const tarn__synced_span *s = former->spans.first; s != NULL;
       s = s->next) {
    for (const tarn__synced_use *use = s->uses; use != NULL; use = use->next) {
      if (use->timeline != NULL && !add_use(all, former, use)) return false;
    }
  }
  return true;
}

// A copy by a thread of the library has no point yet.
static tarn_status list(tarn__synced_core *former, items *out) {
  tarn__core_enter(former);
  tarn__core_settle(former);
  while (former->size > 0 && tarn__core_is_copying(former, 0, former->size))
    tarn__core_sleep(former);
  bool listed = add_uses(out, former);
  if (!listed) out->count = 0;
  for (size_t i = 0; i < out->count; i++) {
    item *at = &out->first[i];
    at->event = tarn__timeline_share(at->timeline, at->number);
    at->timeline = NULL;
  }
  tarn__core_leave(former);
  return listed ? TARN_OK : TARN_E_NOMEM;
}

// --- with the buffer's -----------------------------------------------------

// A closed device has no place and no work.
static tarn_status find_sides(tarn__synced_core *core, items *all) {
  tarn_status status = TARN_OK;
  for (size_t i = 0; i < all->count && status == TARN_OK; i++)
    status = tarn__side_of(core, all->first[i].place, &all->first[i].side);
  return status;
}

// One timeline for all items with the same event.
static tarn_status adopt(tarn__synced_core *core, items *all, item *wanted) {
  for (item *known = all->first; known < wanted; known++) {
    if (known->timeline->points->event != wanted->event) continue;
    wanted->timeline = known->timeline;
    tarn__timeline_hold(known->timeline);
    return TARN_OK;
  }
  tarn_status status =
      tarn__timeline_adopt(&core->timelines, wanted->event, &wanted->timeline);
  if (status == TARN_OK) wanted->event = NULL;
  return status;
}

static tarn_status adopt_all(tarn__synced_core *core, items *all) {
  tarn_status status = TARN_OK;
  for (size_t i = 0; i < all->count && status == TARN_OK; i++)
    status = adopt(core, all, &all->first[i]);
  return status;
}

static void enter_uses(tarn__synced_core *core, const items *all) {
  for (tarn__synced_span *span = core->spans.first; span != NULL;
       span = span->next) {
    for (size_t i = 0; i < all->count; i++) {
      const item *at = &all->first[i];
      tarn__span_use(&core->spans, span,
                     (tarn__synced_use){.timeline = at->timeline,
                                        .number = 1,
                                        .side = at->side,
                                        .writes = at->writes});
    }
  }
}

static void release_timelines(const items *all) {
  for (size_t i = 0; i < all->count; i++) {
    if (all->first[i].timeline != NULL)
      tarn__timeline_release(all->first[i].timeline);
  }
}

static tarn_status take_over(tarn__synced_core *core, items *all) {
  tarn__core_enter(core);
  tarn_status status = find_sides(core, all);
  if (status == TARN_OK) {
    status = tarn__spans_reserve(&core->spans, 0, core->size, all->count);
  }
  if (status == TARN_OK) status = adopt_all(core, all);
  if (status == TARN_OK) enter_uses(core, all);
  release_timelines(all);
  tarn__core_leave(core);
  return status;
}

tarn_status tarn_synced_follow(tarn_synced *buffer, tarn_synced *former) {
  items all;
  tarn_status status = tarn__synced_check(buffer);
  if (status == TARN_OK) status = tarn__synced_check(former);
  if (status != TARN_OK || buffer->core == former->core) return status;
  items_init(&all);
  status = list(former->core, &all);
  if (status == TARN_OK && all.count > 0 && buffer->core->size > 0) {
    status = take_over(buffer->core, &all);
  }
  items_deinit(&all);
  return status;
}
