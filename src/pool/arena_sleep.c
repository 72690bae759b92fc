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
// Whoever puts blocks to sleep or wakes them lets go of the lock: the pieces
// are marked as |resizing|, so that they stay as they are, and the pages are
// nobody's. Nothing is lost on the way: contents are saved before the first
// page goes, and what was saved stays until all are awake.
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/arena.h"
#include "pool/extents_row.h"
#include "pool/front.h"

// --- sleepers, and runs of their pages -------------------------------------

static tarn__sleeper *sleeper_of(tarn_list *node) {
  return tarn_list_entry(node, tarn__sleeper, node);
}

static size_t bytes_of(const tarn__sleeper *s) {
  return (size_t)(s->to - s->from);
}

// The first page that it lacks, and what is behind the last.
static uint64_t first_page(const tarn__arena *self, const tarn__sleeper *s) {
  return tarn__align_down(s->from, self->regions.page);
}

static uint64_t end_page(const tarn__arena *self, const tarn__sleeper *s) {
  return tarn__align_up(s->to, self->regions.page);
}

static void free_sleeper(tarn__sleeper *s) {
  if (s->saved != NULL) tarn__host_free(s->saved, bytes_of(s));
  tarn__host_free(s, sizeof *s);
}

// Whether the present call is at it: the marks are its own.
static bool is_on_its_way(const tarn__sleeper *s, tarn_tag tag) {
  return s->piece->resizing && s->piece->tag == tag;
}

// Pages of sleepers of one tag, without a gap.
typedef struct run {
  uint64_t from;
  uint64_t to;
  tarn_list *last;  // of the sleepers in it
} run;

// The first run of those on their way behind |node|, which may be the head.
static bool next_run(const tarn__arena *self, const tarn_list *head,
                     const tarn_list *node, tarn_tag tag, run *out) {
  *out = (run){0};
  for (tarn_list *at = node->next; at != head; at = at->next) {
    const tarn__sleeper *s = sleeper_of(at);
    if (s->from == s->to || !is_on_its_way(s, tag)) continue;
    if (out->last == NULL) out->from = out->to = first_page(self, s);
    if (first_page(self, s) > out->to) break;
    if (end_page(self, s) > out->to) out->to = end_page(self, s);
    out->last = at;
  }
  return out->last != NULL;
}

// The first pages of |r| from |*at| on that have memory, or have none; no more
// than |most|.
static bool next_part(const tarn__arena *self, const run *r, uint64_t *at,
                      bool has, size_t most, run *out) {
  const tarn__regions *regions = &self->regions;
  uint64_t from = *at;
  while (from < r->to && tarn__regions_has(regions, from) != has)
    from += regions->page;
  uint64_t to = from;
  while (to < r->to && (to - from) / regions->page < most &&
         tarn__regions_has(regions, to) == has) {
    to += regions->page;
  }
  *at = to;
  *out = (run){.from = from, .to = to};
  return from < to;
}

static size_t size_of_runs(const tarn__arena *self, const tarn_list *head,
                           tarn_tag tag) {
  size_t size = 0;
  run r = {.last = NULL};
  for (const tarn_list *at = head; next_run(self, head, at, tag, &r);
       at = r.last) {
    size += (size_t)(r.to - r.from);
  }
  return size;
}

// The driver may have unmapped these pages or not.
static void mark_lost(tarn_list *head, tarn_tag tag, const run *part) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, head) {
    tarn__sleeper *s = sleeper_of(node);
    bool touches = s->from < part->to && s->to > part->from;
    if (touches && is_on_its_way(s, tag)) s->lost = true;
  }
}

// Gives the memory of all pages of those on their way in the list at |head|
// back. The first failure is returned.
static tarn_status unmap_all(tarn__arena *self, tarn_list *head, tarn_tag tag) {
  tarn_status first = TARN_OK;
  run r = {.last = NULL};
  for (const tarn_list *at = head; next_run(self, head, at, tag, &r);
       at = r.last) {
    run part;
    for (uint64_t addr = r.from;
         next_part(self, &r, &addr, true, TARN__REGION_BATCH, &part);) {
      tarn__extent pages = {.offset = part.from,
                            .size = (size_t)(part.to - part.from)};
      tarn__stripped stripped = {.extent = &pages};
      tarn_status status = tarn__regions_shrink(&self->regions, &stripped, 0);
      if (stripped.end == TARN__STRIP_LOST) mark_lost(head, tag, &part);
      if (first == TARN_OK) first = status;
    }
  }
  return first;
}

// --- falling asleep --------------------------------------------------------

typedef struct nap {
  tarn__arena *self;
  tarn_tag tag;
  tarn_list lists[TARN__ARENA_ZONES];  // of the new sleepers
  tarn__waits waits;
} nap;

// The piece of the block |e| if it is to sleep; else NULL.
static tarn__piece *drowsy(const nap *n, const tarn__extent *e) {
  const tarn__pieces *pieces = &n->self->base.pool->pieces;
  if (e->kind != TARN__EXTENT_TAKEN) return NULL;
  tarn__piece *piece = tarn__pieces_find(pieces, e->offset);
  if (piece == NULL || piece->home != e || !piece->live) return NULL;
  bool asked = piece->tag == n->tag && piece->sleeper == NULL;
  return asked && piece->owner == &n->self->base ? piece : NULL;
}

static bool may_lose(const nap *n, const tarn__extent *e) {
  return e->kind == TARN__EXTENT_OPEN || drowsy(n, e) != NULL;
}

// |low| to |high| are the pages that can go around it.
static bool add_sleeper(const nap *n, tarn_list *list, tarn__piece *piece,
                        uint64_t low, uint64_t high) {
  const tarn__extent *e = piece->home;
  size_t page = n->self->regions.page;
  tarn__sleeper *s = tarn__host_alloc(sizeof *s);
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
static bool gather_run(const nap *n, tarn_list *list, const tarn__extent *e,
                       const tarn__extent **out_next) {
  size_t page = n->self->regions.page;
  const tarn__extent *last = e;
  while (last->after != NULL && may_lose(n, last->after))
    last = last->after;
  uint64_t low = tarn__align_up(e->offset, page);
  uint64_t high = tarn__align_down(tarn__extent_end(last), page);
  *out_next = last->after;
  for (; e != *out_next; e = e->after) {
    tarn__piece *piece = drowsy(n, e);
    if (piece != NULL && !add_sleeper(n, list, piece, low, high)) return false;
  }
  return true;
}

// All blocks that are to sleep, and what each of them can lose. This is where
// the row of blocks is read: it must be one extent for each.
static bool gather(nap *n) {
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    const tarn__extent *e = n->self->zones[i].first;
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

static void forget_list(tarn_list *head) {
  while (!tarn_list_empty(head)) {
    tarn__sleeper *s = sleeper_of(head->next);
    tarn_list_del(&s->node);
    free_sleeper(s);
  }
}

static void forget(nap *n) {
  for (int i = 0; i < TARN__ARENA_ZONES; i++)
    forget_list(&n->lists[i]);
}

// From here on nobody else comes near what is to lose its memory.
static void begin(nap *n) {
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    tarn__extents *zone = &n->self->zones[i];
    tarn_list *node = NULL;
    tarn_list_for_each (node, &n->lists[i]) {
      const tarn__sleeper *s = sleeper_of(node);
      tarn__waits_add(&n->waits, s->piece->waits_on);
      s->piece->resizing = true;
      tarn__extents_release_aside(zone, TARN__LULL_NODES);
      if (s->from == s->to) continue;
      tarn__extents_lull(zone, s->piece->home, first_page(n->self, s),
                         end_page(n->self, s), &n->waits);
    }
  }
}

// All is as it was, but that holes that streams were at work in are nobody's:
// they were waited for.
static void undo(nap *n) {
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    tarn__extents *zone = &n->self->zones[i];
    tarn_list *node = NULL;
    tarn_list_for_each (node, &n->lists[i]) {
      const tarn__sleeper *s = sleeper_of(node);
      s->piece->resizing = false;
      tarn__extents_release_aside(zone, TARN__SLEEP_NODES);
      if (s->from == s->to) continue;
      tarn__extents_rouse(zone, s->piece->home, first_page(n->self, s),
                          end_page(n->self, s));
    }
  }
  forget(n);
}

static tarn_status save_one(const nap *n, tarn__sleeper *s) {
  if (s->from == s->to) return TARN_OK;
  s->saved = tarn__host_alloc(bytes_of(s));
  if (s->saved == NULL) return TARN_E_NOMEM;
  return tarn_copy_d2h(n->self->regions.device, s->saved, s->from, bytes_of(s),
                       NULL);
}

// The lists are this call's own, so the lock is not needed.
static tarn_status wait_and_save(nap *n, bool saves) {
  tarn_status status = tarn__waits_wait(&n->waits, n->self->regions.device);
  for (int i = 0; saves && i < TARN__ARENA_ZONES; i++) {
    tarn_list *node = NULL;
    tarn_list_for_each (node, &n->lists[i]) {
      if (status == TARN_OK) status = save_one(n, sleeper_of(node));
    }
  }
  return status;
}

// Puts the new sleepers among the others of their zone.
static void enlist(tarn_list *head, tarn_list *list) {
  tarn_list *at = head->next;
  while (!tarn_list_empty(list)) {
    tarn__sleeper *s = sleeper_of(list->next);
    tarn_list_del(&s->node);
    while (at != head && sleeper_of(at)->from < s->from)
      at = at->next;
    tarn_list_add_tail(at, &s->node);  // before it
  }
}

static void commit(nap *n) {
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    size_t saved = 0;
    size_t bytes = size_of_runs(n->self, &n->lists[i], n->tag);
    tarn_list *node = NULL;
    tarn_list_for_each (node, &n->lists[i]) {
      tarn__sleeper *s = sleeper_of(node);
      saved += s->saved != NULL ? bytes_of(s) : 0;
      s->piece->sleeper = s;
      s->piece->waits_on = 0;
      s->piece->resizing = false;
    }
    tarn__front_count_asleep(n->self->base.pool, n->tag, count_of(&n->lists[i]),
                             bytes, saved);
    enlist(&n->self->sleepers[i], &n->lists[i]);
  }
}

tarn_status tarn__arena_sleep(tarn__strategy *strategy, tarn_tag tag,
                              bool saves, bool *out_asleep) {
  tarn__arena *self = (tarn__arena *)(void *)strategy;
  nap n = {.self = self, .tag = tag};
  *out_asleep = false;
  if (self->range_size == 0) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "arena_pool: blocks sleep only where the device has "
                      "address ranges: %s has none",
                      tarn_device_name(self->segments.device));
  }
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
    tarn_status unmapped = unmap_all(self, &n.lists[i], tag);
    if (status == TARN_OK) status = unmapped;
  }
  commit(&n);
  *out_asleep = true;
  return status;
}

// --- waking ----------------------------------------------------------------

// What could not be unmapped then has to be before memory is mapped there. That
// the driver refuses may mean that nothing is.
static void unmap_lost(tarn__arena *self, const tarn__sleeper *s) {
  size_t page = self->regions.page;
  for (uint64_t at = first_page(self, s); at < end_page(self, s); at += page) {
    if (tarn__regions_has(&self->regions, at)) continue;
    tarn__source_begin_ask(&self->base, 0, 0);
    (void)tarn_range_unmap(self->regions.device, at, page);
    tarn__source_end_ask(&self->base, 0);
  }
}

static void unmap_all_lost(tarn__arena *self, tarn_list *head, tarn_tag tag) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, head) {
    tarn__sleeper *s = sleeper_of(node);
    if (s->lost && is_on_its_way(s, tag)) unmap_lost(self, s);
  }
}

// Those on their way stay in the list while the lock is let go, and so does
// their order.
static tarn_status map_all(tarn__arena *self, tarn_list *head, tarn_tag tag) {
  tarn__request request = {.asked = false};
  run r = {.last = NULL};
  for (const tarn_list *at = head; next_run(self, head, at, tag, &r);
       at = r.last) {
    run part;
    for (uint64_t addr = r.from;
         next_part(self, &r, &addr, false, SIZE_MAX, &part);) {
      bool lost = false;
      tarn_status status = tarn__regions_map(&self->regions, &request, NULL,
                                             part.from, part.to, &lost);
      if (lost) mark_lost(head, tag, &part);
      if (status != TARN_OK) return status;
    }
  }
  return TARN_OK;
}

static tarn_status restore_all(tarn__arena *self, tarn_list *head,
                               tarn_tag tag) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, head) {
    const tarn__sleeper *s = sleeper_of(node);
    if (s->saved == NULL || !is_on_its_way(s, tag)) continue;
    tarn__source_begin_ask(&self->base, 0, 0);
    tarn_status status = tarn_copy_h2d(self->regions.device, s->from, s->saved,
                                       bytes_of(s), NULL);
    tarn__source_end_ask(&self->base, 0);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

tarn_status tarn__arena_wake(tarn__strategy *strategy, tarn_tag tag) {
  tarn__arena *self = (tarn__arena *)(void *)strategy;
  tarn_status status = TARN_OK;
  for (int i = 0; i < TARN__ARENA_ZONES && status == TARN_OK; i++) {
    unmap_all_lost(self, &self->sleepers[i], tag);
    status = map_all(self, &self->sleepers[i], tag);
  }
  for (int i = 0; i < TARN__ARENA_ZONES && status == TARN_OK; i++)
    status = restore_all(self, &self->sleepers[i], tag);
  return status;
}

static void awake(tarn__arena *self, tarn__extents *zone, tarn__sleeper *s) {
  tarn__extents_release_aside(zone, TARN__SLEEP_NODES);
  if (s->from != s->to) {
    tarn__extents_rouse(zone, s->piece->home, first_page(self, s),
                        end_page(self, s));
  }
  s->piece->sleeper = NULL;
  tarn_list_del(&s->node);
  free_sleeper(s);
}

// Ends the wake of those in a zone.
static void settle(tarn__arena *self, int zone, tarn_tag tag, bool keep) {
  tarn_list *head = &self->sleepers[zone];
  size_t bytes = size_of_runs(self, head, tag);
  size_t saved = 0;
  size_t count = 0;
  for (tarn_list *node = head->next, *next = NULL; node != head; node = next) {
    tarn__sleeper *s = sleeper_of(node);
    next = node->next;
    if (!is_on_its_way(s, tag)) continue;
    s->piece->resizing = false;
    if (!keep) continue;
    saved += s->saved != NULL ? bytes_of(s) : 0;
    count++;
    awake(self, &self->zones[zone], s);
  }
  if (keep) {
    tarn__front_count_awake(self->base.pool, tag, count, bytes, saved);
  }
}

tarn_status tarn__arena_end_wake(tarn__strategy *strategy, tarn_tag tag,
                                 bool keep) {
  tarn__arena *self = (tarn__arena *)(void *)strategy;
  tarn_status first = TARN_OK;
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    tarn_status status =
        keep ? TARN_OK : unmap_all(self, &self->sleepers[i], tag);
    if (first == TARN_OK) first = status;
    settle(self, i, tag, keep);
  }
  return first;
}

// --- the end ---------------------------------------------------------------

void tarn__arena_end_sleeper(tarn__arena *self, tarn__extents *zone,
                             tarn__extent *extent, tarn__sleeper *sleeper,
                             uint64_t serial) {
  size_t bytes = 0;
  size_t saved = sleeper->saved != NULL ? bytes_of(sleeper) : 0;
  tarn__extent_kind kind =
      sleeper->lost ? TARN__EXTENT_LOST : TARN__EXTENT_BARE;
  tarn__extents_release_aside(zone, TARN__SLEEP_NODES);
  tarn__extents_give_asleep(zone, extent, sleeper->from, sleeper->to, serial,
                            kind, &bytes);
  // A piece without a block keeps its tag.
  tarn__front_count_awake(self->base.pool, sleeper->piece->tag, 1, bytes,
                          saved);
  tarn_list_del(&sleeper->node);
  free_sleeper(sleeper);
}

void tarn__arena_forget_sleepers(tarn__arena *self) {
  for (int i = 0; i < TARN__ARENA_ZONES; i++)
    forget_list(&self->sleepers[i]);
}

// --- the invariants --------------------------------------------------------

static tarn_status broken(const tarn__sleeper *s, const char *what) {
  return tarn__fail(TARN_E_CORRUPT, "arena_pool: asleep at 0x%llx: %s",
                    (unsigned long long)s->piece->address, what);
}

static tarn_status check_sleeper(const tarn__arena *self,
                                 const tarn__sleeper *s) {
  const tarn__extent *e = s->piece->home;
  size_t page = self->regions.page;
  if (s->piece->sleeper != s || s->piece->owner != &self->base) {
    return broken(s, "the piece knows nothing of it");
  }
  if (s->from < e->offset || s->from > s->to || s->to > tarn__extent_end(e)) {
    return broken(s, "what it lost is not its own");
  }
  if (s->from == s->to) return TARN_OK;
  for (uint64_t at = first_page(self, s); at < end_page(self, s); at += page) {
    if (tarn__regions_has(&self->regions, at)) {
      return broken(s, "a page has memory");
    }
  }
  return TARN_OK;
}

tarn_status tarn__arena_check_sleepers(const tarn__arena *self) {
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    const tarn_list *head = &self->sleepers[i];
    uint64_t end = 0;
    size_t count = 0;
    for (tarn_list *node = head->next; node != head; node = node->next) {
      const tarn__sleeper *s = sleeper_of(node);
      tarn_status status = check_sleeper(self, s);
      if (status != TARN_OK) return status;
      if (s->from < end) return broken(s, "it is out of order");
      end = s->to;
      count++;
    }
    if (self->zones[i].set_aside != count * TARN__SLEEP_NODES) {
      return tarn__fail(TARN_E_CORRUPT,
                        "arena_pool: %zu nodes are set aside for %zu sleepers",
                        self->zones[i].set_aside, count);
    }
  }
  return TARN_OK;
}
