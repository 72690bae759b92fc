// Blocks of arena_pool that sleep: their memory goes back to the device, their
// addresses stay theirs.
//
//   pages    |    1    |    2    |    3    |    4    |
//   blocks   | S1 | hole |    S2      |     A        |     A stays awake
//                 from 1 to 2 without memory; 3 stays, since A is in it
//
// A sleeper is kept for each of them, by zone and by rising address. It has one
// run of bytes without memory, from the first page that it could lose to the
// last. A page that it shares with what is awake, or with what slept before,
// stays; one without memory is of one tag only. The holes in these pages are
// asleep (extents_sleep.c).
//
// Whoever puts blocks to sleep or wakes them releases the lock: the pieces
// are marked as |resizing|, so that they stay as they are, and the pages are
// nobody's. Nothing is lost on the way: contents are saved before the first
// page goes, and what was saved stays until all are awake.
#include "base/hostmem.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/arena.h"
#include "pool/front.h"

typedef struct nap {
  tarn__pool_arena *self;
  tarn_tag tag;
  tarn_list lists[TARN__ARENA_ZONES];  // of the new sleepers
  tarn__pool_waits waits;
} nap;

// The piece of the block |e| if it is to sleep; else NULL.
static tarn__pool_piece *drowsy(const nap *n, const tarn__pool_extent *e) {
  const tarn__pool_pieces *pieces = &n->self->base.pool->pieces;
  if (e->kind != TARN__EXTENT_TAKEN) return NULL;
  tarn__pool_piece *piece = tarn__pieces_find(pieces, e->offset);
  if (piece == NULL || piece->home != e || !piece->live) return NULL;
  bool asked = piece->tag == n->tag && piece->sleeper == NULL;
  return asked && piece->owner == &n->self->base ? piece : NULL;
}

static bool may_lose(const nap *n, const tarn__pool_extent *e) {
  return e->kind == TARN__EXTENT_OPEN || drowsy(n, e) != NULL;
}

// |low| to |high| are the pages that can go around it.
static bool add_sleeper(const nap *n, tarn_list *list, tarn__pool_piece *piece,
                        uint64_t low, uint64_t high) {
  const tarn__pool_extent *e = piece->home;
  size_t page = n->self->regions.page;
  tarn__pool_sleeper *s = tarn__host_alloc(sizeof *s);
  if (s == NULL) return false;
  uint64_t from = tarn__align_down(e->offset, page);
  uint64_t to = tarn__align_up(tarn__extent_end(e), page);
  if (from < low) from = low;
  if (to > high) to = high;
  s->piece = piece;
  s->from = s->to = e->offset;
  if (from < to) {
    if (from > e->offset) s->from = from;
    s->to = to < tarn__extent_end(e) ? to : tarn__extent_end(e);
  }
  tarn_list_add_tail(list, &s->node);
  return true;
}

// What stands from |e| on and may lose its memory; |*out_next| is behind it.
static bool gather_run(const nap *n, tarn_list *list,
                       const tarn__pool_extent *e,
                       const tarn__pool_extent **out_next) {
  size_t page = n->self->regions.page;
  const tarn__pool_extent *last = e;
  while (last->after != NULL && may_lose(n, last->after))
    last = last->after;
  uint64_t low = tarn__align_up(e->offset, page);
  uint64_t high = tarn__align_down(tarn__extent_end(last), page);
  *out_next = last->after;
  for (; e != *out_next; e = e->after) {
    tarn__pool_piece *piece = drowsy(n, e);
    if (piece != NULL && !add_sleeper(n, list, piece, low, high)) return false;
  }
  return true;
}

// All blocks that are to sleep, and what each of them can lose. This is where
// the row of blocks is read: it must be one extent for each.
static bool gather(nap *n) {
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    const tarn__pool_extent *e = n->self->zones[i].first;
    while (e != NULL) {
      if (!may_lose(n, e)) {
        e = e->after;
      } else if (!gather_run(n, &n->lists[i], e, &e)) {
        return false;
      }
    }
  }
  return true;
}

static size_t count_of(const tarn_list *head) {
  size_t count = 0;
  const tarn_list *node = NULL;
  for (node = head->next; node != head; node = node->next)
    count++;
  return count;
}

// Nodes for the beginning and the end of all of it; for all or for none.
static bool set_aside(nap *n) {
  enum { EACH = TARN__SLEEP_NODES + TARN__LULL_NODES };
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    if (tarn__extents_set_aside(&n->self->zones[i],
                                count_of(&n->lists[i]) * EACH)) {
      continue;
    }
    while (i-- > 0) {
      tarn__extents_release_aside(&n->self->zones[i],
                                  count_of(&n->lists[i]) * EACH);
    }
    return false;
  }
  return true;
}

static void forget(nap *n) {
  for (int i = 0; i < TARN__ARENA_ZONES; i++)
    tarn__sleepers_forget(&n->lists[i]);
}

// From here on nobody else comes near what is to lose its memory.
static void begin(nap *n) {
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    tarn__pool_extents *zone = &n->self->zones[i];
    tarn_list *node = NULL;
    tarn_list_for_each (node, &n->lists[i]) {
      const tarn__pool_sleeper *s = tarn__sleeper_of(node);
      tarn__waits_add(&n->waits, s->piece->waits_on);
      s->piece->resizing = true;
      tarn__extents_release_aside(zone, TARN__LULL_NODES);
      if (s->from == s->to) continue;
      tarn__extents_lull(zone, s->piece->home, tarn__sleeper_page(n->self, s),
                         tarn__sleeper_end(n->self, s), &n->waits);
    }
  }
}

// All is as it was, but that holes that streams were at work in are nobody's:
// they were waited for.
static void undo(nap *n) {
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    tarn__pool_extents *zone = &n->self->zones[i];
    tarn_list *node = NULL;
    tarn_list_for_each (node, &n->lists[i]) {
      const tarn__pool_sleeper *s = tarn__sleeper_of(node);
      s->piece->resizing = false;
      tarn__extents_release_aside(zone, TARN__SLEEP_NODES);
      if (s->from == s->to) continue;
      tarn__extents_rouse(zone, s->piece->home, tarn__sleeper_page(n->self, s),
                          tarn__sleeper_end(n->self, s));
    }
  }
  forget(n);
}

static tarn_status save_one(const nap *n, tarn__pool_sleeper *s) {
  if (s->from == s->to) return TARN_OK;
  s->saved = tarn__host_alloc(tarn__sleeper_bytes(s));
  if (s->saved == NULL) return TARN_E_NOMEM;
  return tarn_copy_d2h(n->self->base.pool->supply.device, s->saved, s->from,
                       tarn__sleeper_bytes(s), NULL);
}

// The lists are this call's own, so the lock is not needed.
static tarn_status wait_and_save(nap *n, bool saves) {
  tarn_status status =
      tarn__waits_wait(&n->waits, n->self->base.pool->supply.place);
  for (int i = 0; saves && i < TARN__ARENA_ZONES; i++) {
    tarn_list *node = NULL;
    tarn_list_for_each (node, &n->lists[i]) {
      if (status == TARN_OK) status = save_one(n, tarn__sleeper_of(node));
    }
  }
  return status;
}

// Puts the new sleepers among the others of their zone.
static void enlist(tarn_list *head, tarn_list *list) {
  tarn_list *at = head->next;
  while (!tarn_list_empty(list)) {
    tarn__pool_sleeper *s = tarn__sleeper_of(list->next);
    tarn_list_del(&s->node);
    while (at != head && tarn__sleeper_of(at)->from < s->from)
      at = at->next;
    tarn_list_add_tail(at, &s->node);  // before it
  }
}

static void commit(nap *n) {
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    size_t saved = 0;
    size_t bytes = tarn__sleepers_size(n->self, &n->lists[i], n->tag);
    tarn_list *node = NULL;
    tarn_list_for_each (node, &n->lists[i]) {
      tarn__pool_sleeper *s = tarn__sleeper_of(node);
      saved += s->saved != NULL ? tarn__sleeper_bytes(s) : 0;
      s->piece->sleeper = s;
      s->piece->waits_on = 0;
      s->piece->resizing = false;
    }
    tarn__front_count_asleep(n->self->base.pool, n->tag, count_of(&n->lists[i]),
                             bytes, saved);
    enlist(&n->self->sleepers[i], &n->lists[i]);
  }
}

tarn_status tarn__arena_sleep(tarn__pool_strategy *strategy, tarn_tag tag,
                              bool saves, bool *out_asleep) {
  tarn__pool_arena *self = (tarn__pool_arena *)(void *)strategy;
  nap n = {.self = self, .tag = tag};
  *out_asleep = false;
  if (self->range_size == 0) {
    return tarn__fail(
        TARN_E_UNSUPPORTED,
        "arena_pool: sleep needs a device with address ranges: %s has none",
        tarn_device_name(self->base.pool->supply.device));
  }
  if (self->layout != NULL) tarn__step_layout_drop(self->base.pool);
  for (int i = 0; i < TARN__ARENA_ZONES; i++)
    tarn_list_init(&n.lists[i]);
  if (!gather(&n) || !set_aside(&n)) {
    forget(&n);
    return TARN_E_NOMEM;
  }
  begin(&n);
  tarn__source_begin_ask(strategy, 0, 0);
  tarn_status status = wait_and_save(&n, saves);
  tarn__source_end_ask(strategy, 0);
  if (status != TARN_OK) {
    undo(&n);
    return status;
  }
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    tarn_status unmapped = tarn__sleepers_unmap(self, &n.lists[i], tag);
    if (status == TARN_OK) status = unmapped;
  }
  commit(&n);
  *out_asleep = true;
  return status;
}
