// A buffer that reuses the bytes of another one takes over its uses.
//
//   former   uses ──► timelines ──► points ──┐
//                                            ├──► events, shared
//   buffer   uses ──► timelines ──► points ──┘
//
// The locks of both are never held together: uses are listed with one lock and
// entered with the other. The buffers may overlap in any way, so each byte of
// the buffer waits for all uses.
#include "base/budget.h"
#include "base/status.h"
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

typedef struct list {
  tarn__budget budget;
  tarn__array items;
} list;

// The items, to walk; |*out_end| is behind the last.
static item *items_of(const list *all, item **out_end) {
  item *first = all->items.items;
  *out_end = first != NULL ? first + all->items.count : NULL;
  return first;
}

// --- with the former's lock ------------------------------------------------

// The last point of a timeline counts.
static tarn_status add_use(list *all, const tarn__synced_core *former,
                           const tarn__synced_use *use) {
  item *end = NULL;
  void *added = NULL;
  tarn_place place = former->sides[use->side].end.place;
  for (item *known = items_of(all, &end); known < end; known++) {
    if (known->timeline != use->timeline || known->writes != use->writes ||
        !tarn_place_equal(known->place, place))
      continue;
    if (known->number < use->number) known->number = use->number;
    return TARN_OK;
  }
  TARN__TRY(tarn__array_grow(&all->budget, &all->items, 1, &added));
  *(item *)added = (item){.place = place,
                          .timeline = use->timeline,
                          .number = use->number,
                          .writes = use->writes};
  return TARN_OK;
}

static tarn_status add_uses(list *all, const tarn__synced_core *former) {
  tarn__spans_each (span, &former->spans, 0, former->size) {
    for (const tarn__synced_use *use = span->uses; use != NULL;
         use = use->next) {
      bool over = use->timeline == NULL ||
                  tarn__timeline_is_over(use->timeline, use->number);
      if (!over) TARN__TRY(add_use(all, former, use));
    }
  }
  return TARN_OK;
}

// A copy by a thread of the library has no point yet.
static tarn_status list_uses(tarn__synced_core *former, list *out) {
  item *end = NULL;
  tarn__core_enter(former);
  tarn__core_settle(former);
  while (tarn__core_is_copying(former, 0, former->size))
    tarn__core_sleep(former);
  tarn_status status = add_uses(out, former);
  for (item *at = items_of(out, &end); at < end; at++) {
    at->event = tarn__timeline_share(at->timeline, at->number);
    at->timeline = NULL;
  }
  tarn__core_leave(former);
  return status;
}

// --- with the buffer's -----------------------------------------------------

// One timeline for all items with the same event.
static tarn_status adopt(tarn__synced_core *core, item *first, item *wanted) {
  for (item *known = first; known < wanted; known++) {
    if (known->timeline->points->event != wanted->event) continue;
    wanted->timeline = known->timeline;
    tarn__timeline_hold(known->timeline);
    return TARN_OK;
  }
  TARN__TRY(
      tarn__timeline_adopt(&core->timelines, wanted->event, &wanted->timeline));
  wanted->event = NULL;
  return TARN_OK;
}

// A closed device has no place and no work. With the lock.
static tarn_status take_over(tarn__synced_core *core, list *all) {
  item *end = NULL;
  item *first = items_of(all, &end);
  for (item *at = first; at < end; at++)
    TARN__TRY(tarn__side_of(core, at->place, &at->side));
  TARN__TRY(tarn__spans_reserve(&core->spans, 0, core->size, all->items.count));
  for (item *at = first; at < end; at++)
    TARN__TRY(adopt(core, first, at));
  tarn__spans_each (span, &core->spans, 0, core->size) {
    for (const item *at = first; at < end; at++)
      tarn__span_use(&core->spans, span,
                     (tarn__synced_use){.timeline = at->timeline,
                                        .number = 1,
                                        .side = at->side,
                                        .writes = at->writes});
  }
  return TARN_OK;
}

static void list_deinit(tarn__synced_core *core, list *all) {
  item *end = NULL;
  tarn__core_enter(core);
  for (const item *at = items_of(all, &end); at < end; at++) {
    if (at->timeline != NULL) tarn__timeline_release(at->timeline);
    tarn__copy_streams_give_event(at->event);
  }
  tarn__core_leave(core);
  tarn__array_free(&all->budget, &all->items);
}

tarn_status tarn_synced_follow(tarn_synced *buffer, tarn_synced *former) {
  list all = {tarn__budget_unlimited("synced"), TARN__ARRAY_OF(item)};
  TARN__TRY(tarn__synced_check(buffer));
  TARN__TRY(tarn__synced_check(former));
  if (buffer->core == former->core) return TARN_OK;
  tarn_status status = list_uses(former->core, &all);
  if (status == TARN_OK && all.items.count > 0 && buffer->core->size > 0) {
    tarn__core_enter(buffer->core);
    status = take_over(buffer->core, &all);
    tarn__core_leave(buffer->core);
  }
  list_deinit(buffer->core, &all);
  return status;
}
