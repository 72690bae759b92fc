// Blocks of arena_pool that sleep: their memory goes back to the device, and
// they keep their addresses.
//
//   pages    |    1    |    2    |    3    |    4    |
//   blocks   | S1 | hole |    S2      |     A        |     A stays awake
//                 from 1 to 2 without memory; 3 stays, since A is in it
//
// Each sleeping block has a sleeper, by zone and by rising address. It has one
// run of bytes without memory, from the first page that it could lose to the
// last. A page that it shares with a block that is awake, or that slept before,
// keeps its memory; a page without memory has blocks of one tag only. The holes
// in these pages are asleep (extents_memory.c).
//
// Calls that put blocks to sleep or wake them release the lock. The pieces are
// marked as |resizing|, so that they stay, and the pages belong to the call.
// Contents are saved before the first page is unmapped, and kept until all
// blocks are awake.
//
//   wake: map what has no memory ─► restore ─► end_wake: keep, or unmap again
//
// Until end_wake the blocks count as sleeping, so that a failure in this
// strategy or another can be undone.
#include "base/hostmem.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/arena.h"
#include "pool/front.h"

typedef struct tarn__pool_sleeper {
  tarn_list node;  // by zone and by rising address
  tarn__pool_piece *piece;
  uint64_t from;  // the bytes of its extent that have no memory
  uint64_t to;
  void *saved;         // what stood there; NULL: that was dropped
  uint64_t lost_from;  // pages that could not be unmapped, and may still be
  uint64_t lost_to;    // mapped; empty: none
} sleeper;

static sleeper *sleeper_of(const tarn_list *node) {
  return tarn_list_entry((tarn_list *)(uintptr_t)node, sleeper, node);
}

static tarn__pool_extents *zone_of(tarn__pool_arena *self, const sleeper *s) {
  return &self->zones[s->piece->zone];
}

static size_t bytes_of(const sleeper *s) {
  return (size_t)(s->to - s->from);
}

static size_t saved_of(const sleeper *s) {
  return s->saved != NULL ? bytes_of(s) : 0;
}

// The first missing page, and the end of the last one.
static uint64_t page_of(const tarn__pool_arena *self, const sleeper *s) {
  return tarn__align_down(s->from, self->regions.page);
}

static uint64_t end_of(const tarn__pool_arena *self, const sleeper *s) {
  return tarn__align_up(s->to, self->regions.page);
}

// Whether it is in transit: a call for |tag| puts it to sleep or wakes it.
static bool moves(const sleeper *s, tarn_tag tag) {
  return s->piece->resizing && s->piece->tag == tag;
}

// Takes it out of its list, and frees what it has on the host.
static void end_sleeper(sleeper *s) {
  tarn_list_del(&s->node);
  if (s->saved != NULL) tarn__host_free(s->saved, bytes_of(s));
  tarn__host_free(s, sizeof *s);
}

static void forget_all(tarn_list *head) {
  while (!tarn_list_empty(head))
    end_sleeper(sleeper_of(head->next));
}

static void rouse(tarn__pool_arena *self, const sleeper *s) {
  tarn__extents_release_aside(zone_of(self, s), TARN__SLEEP_NODES);
  if (s->from == s->to) return;
  tarn__extents_rouse(zone_of(self, s), s->piece->home, page_of(self, s),
                      end_of(self, s));
}

// --- their pages -----------------------------------------------------------

// A walk over the pages that sleepers in transit lack, in runs without a gap.
typedef struct pages {
  const tarn__pool_arena *self;
  const tarn_list *head;
  tarn_tag tag;
  const tarn_list *last;  // of the run; |head|: before the first
  uint64_t from;          // what is left of the run
  uint64_t to;
} pages;

static pages pages_of(const tarn__pool_arena *self, const tarn_list *head,
                      tarn_tag tag) {
  return (pages){.self = self, .head = head, .tag = tag, .last = head};
}

static bool next_run(pages *p) {
  bool found = false;
  for (const tarn_list *at = p->last->next; at != p->head; at = at->next) {
    const sleeper *s = sleeper_of(at);
    if (s->from == s->to || !moves(s, p->tag)) continue;
    if (!found) p->from = p->to = page_of(p->self, s);
    if (found && (page_of(p->self, s) > p->to ||
                  s->piece->zone != sleeper_of(p->last)->piece->zone)) {
      break;
    }
    if (end_of(p->self, s) > p->to) p->to = end_of(p->self, s);
    p->last = at;
    found = true;
  }
  return found;
}

// The next pages of the runs that have memory, or have none; no more than
// |most|.
static bool next_part(pages *p, bool has, size_t most, uint64_t *out_from,
                      uint64_t *out_to) {
  const tarn__pool_regions *regions = &p->self->regions;
  while (p->from >= p->to || tarn__regions_has(regions, p->from) != has) {
    if (p->from < p->to) {
      p->from += regions->page;
    } else if (!next_run(p)) {
      return false;
    }
  }
  *out_from = p->from;
  for (; p->from < p->to && most > 0; most--) {
    if (tarn__regions_has(regions, p->from) != has) break;
    p->from += regions->page;
  }
  *out_to = p->from;
  return true;
}

// The bytes of all runs.
static size_t size_of(const tarn__pool_arena *self, const tarn_list *head,
                      tarn_tag tag) {
  size_t size = 0;
  for (pages p = pages_of(self, head, tag); next_run(&p);)
    size += (size_t)(p.to - p.from);
  return size;
}

static bool has_lost(const sleeper *s) {
  return s->lost_from < s->lost_to;
}

// The driver may have unmapped these pages or not.
static void mark_lost(const tarn__pool_arena *self, const tarn_list *head,
                      tarn_tag tag, uint64_t from, uint64_t to) {
  const tarn_list *node = NULL;
  tarn_list_for_each (node, head) {
    sleeper *s = sleeper_of(node);
    if (s->from >= to || s->to <= from || !moves(s, tag)) continue;
    uint64_t begin = from > page_of(self, s) ? from : page_of(self, s);
    uint64_t end = tarn__lesser(to, end_of(self, s));
    bool first = !has_lost(s);
    if (first || begin < s->lost_from) s->lost_from = begin;
    if (first || end > s->lost_to) s->lost_to = end;
  }
}

// Gives the memory of all pages of the runs in transit back. Releases the lock.
// Returns the first failure.
static tarn_status unmap_all(tarn__pool_arena *self, const tarn_list *head,
                             tarn_tag tag) {
  tarn_status first = TARN_OK;
  uint64_t from = 0;
  uint64_t to = 0;
  for (pages p = pages_of(self, head, tag);
       next_part(&p, true, TARN__REGION_BATCH, &from, &to);) {
    tarn__pool_extent part = {.offset = from, .size = (size_t)(to - from)};
    tarn__pool_stripped stripped = {.extent = &part, .must_go = true};
    tarn__keep_first(&first,
                     tarn__regions_shrink(&self->regions, &stripped, 0));
    if (stripped.end == TARN__STRIP_LOST) mark_lost(self, head, tag, from, to);
  }
  return first;
}

// --- going to sleep --------------------------------------------------------

typedef struct nap {
  tarn__pool_arena *self;
  tarn_tag tag;
  tarn_list list;  // of the new sleepers
  size_t count;    // of them
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
static bool add_sleeper(nap *n, tarn__pool_piece *piece, uint64_t low,
                        uint64_t high) {
  const tarn__pool_extent *e = piece->home;
  size_t page = n->self->regions.page;
  sleeper *s = tarn__host_alloc(sizeof *s);
  if (s == NULL) return false;
  uint64_t from = tarn__align_down(e->offset, page);
  uint64_t to = tarn__align_up(tarn__extent_end(e), page);
  if (from < low) from = low;
  if (to > high) to = high;
  s->piece = piece;
  s->from = s->to = e->offset;
  if (from < to) {
    if (from > e->offset) s->from = from;
    s->to = tarn__lesser(to, tarn__extent_end(e));
  }
  tarn_list_add_tail(&n->list, &s->node);
  n->count++;
  return true;
}

// What stands from |e| to |last| may lose its memory.
static bool add_run(nap *n, const tarn__pool_extent *e,
                    const tarn__pool_extent *last) {
  size_t page = n->self->regions.page;
  uint64_t low = tarn__align_up(e->offset, page);
  uint64_t high = tarn__align_down(tarn__extent_end(last), page);
  for (; e != last->after; e = e->after) {
    tarn__pool_piece *piece = drowsy(n, e);
    if (piece != NULL && !add_sleeper(n, piece, low, high)) return false;
  }
  return true;
}

// Lists all blocks that have to sleep, and the pages that each can lose. This
// reads the row of blocks: each must be one extent.
static bool gather(nap *n) {
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    const tarn__pool_extent *e = n->self->zones[i].first;
    for (; e != NULL; e = e->after) {
      if (!may_lose(n, e)) continue;
      const tarn__pool_extent *first = e;
      while (e->after != NULL && may_lose(n, e->after))
        e = e->after;
      if (!add_run(n, first, e)) return false;
    }
  }
  return true;
}

// Allocates nodes for both ends of every run; for all runs or for none.
static bool set_aside(nap *n) {
  enum { EACH = TARN__SLEEP_NODES + TARN__LULL_NODES };
  tarn_list *node = NULL;
  tarn_list_for_each (node, &n->list) {
    if (tarn__extents_set_aside(zone_of(n->self, sleeper_of(node)), EACH)) {
      continue;
    }
    while ((node = node->prev) != &n->list)
      tarn__extents_release_aside(zone_of(n->self, sleeper_of(node)), EACH);
    return false;
  }
  return true;
}

// From here on no other thread uses the memory that goes back.
static void begin(nap *n) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, &n->list) {
    const sleeper *s = sleeper_of(node);
    tarn__pool_extents *zone = zone_of(n->self, s);
    tarn__waits_add(&n->waits, s->piece->waits_on);
    s->piece->resizing = true;
    (void)tarn__piece_leave_home(s->piece);  // it is there: lanes are closed
    tarn__extents_release_aside(zone, TARN__LULL_NODES);
    if (s->from == s->to) continue;
    tarn__extents_lull(zone, s->piece->home, page_of(n->self, s),
                       end_of(n->self, s), &n->waits);
  }
}

// Restores the state before the call. Holes that streams were using are unused
// now, because the call waited for the streams.
static void undo(nap *n) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, &n->list) {
    sleeper_of(node)->piece->resizing = false;
    rouse(n->self, sleeper_of(node));
  }
  forget_all(&n->list);
}

static tarn_status save(const nap *n, sleeper *s) {
  if (s->from == s->to) return TARN_OK;
  s->saved = tarn__host_alloc(bytes_of(s));
  if (s->saved == NULL) return TARN_E_NOMEM;
  return tarn_copy_d2h(n->self->base.pool->supply.device, s->saved, s->from,
                       bytes_of(s), NULL);
}

// The list is this call's own, so the lock is not needed.
static tarn_status wait_and_save(const nap *n, bool saves) {
  tarn_list *node = NULL;
  TARN__TRY(tarn__waits_wait(&n->waits, n->self->base.pool->supply.place));
  if (!saves) return TARN_OK;
  tarn_list_for_each (node, &n->list)
    TARN__TRY(save(n, sleeper_of(node)));
  return TARN_OK;
}

static bool stands_before(const sleeper *a, const sleeper *b) {
  return a->piece->zone != b->piece->zone ? a->piece->zone < b->piece->zone
                                          : a->from < b->from;
}

// Puts the new sleepers among the others.
static void enlist(tarn_list *head, tarn_list *list) {
  tarn_list *at = head->next;
  while (!tarn_list_empty(list)) {
    sleeper *s = sleeper_of(list->next);
    tarn_list_del(&s->node);
    while (at != head && stands_before(sleeper_of(at), s))
      at = at->next;
    tarn_list_add_tail(at, &s->node);  // before it
  }
}

static void commit(nap *n) {
  size_t saved = 0;
  size_t bytes = size_of(n->self, &n->list, n->tag);
  tarn_list *node = NULL;
  tarn_list_for_each (node, &n->list) {
    sleeper *s = sleeper_of(node);
    saved += saved_of(s);
    s->piece->sleeper = s;
    s->piece->waits_on = 0;
    s->piece->resizing = false;
  }
  tarn__front_count_asleep(n->self->base.pool, n->tag, n->count, bytes, saved);
  enlist(&n->self->sleepers, &n->list);
}

tarn_status tarn__arena_sleep(tarn__pool_strategy *strategy, tarn_tag tag,
                              bool saves, bool *out_asleep) {
  tarn__pool_arena *self = tarn__arena_of(strategy);
  nap n = {.self = self, .tag = tag};
  *out_asleep = false;
  if (self->range_size == 0) {
    return tarn__fail(
        TARN_E_UNSUPPORTED,
        "arena_pool: sleep needs a device with address ranges: %s has none",
        tarn_device_name(self->base.pool->supply.device));
  }
  if (self->grounds != 0) tarn__steps_park(self->base.pool);
  tarn_list_init(&n.list);
  if (!gather(&n) || !set_aside(&n)) {
    forget_all(&n.list);
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
  status = unmap_all(self, &n.list, tag);
  commit(&n);
  *out_asleep = true;
  return status;
}

// --- waking up -------------------------------------------------------------

// Whether the page at |at| may still be mapped.
static bool is_lost(const tarn__pool_arena *self, tarn_tag tag, uint64_t at) {
  const tarn_list *node = NULL;
  tarn_list_for_each (node, &self->sleepers) {
    const sleeper *s = sleeper_of(node);
    if (s->lost_from <= at && s->lost_to > at && moves(s, tag)) return true;
  }
  return false;
}

// The page at |at| is unmapped by now. Pages are tried by rising address.
static void note_unmapped(const tarn__pool_arena *self, tarn_tag tag,
                          uint64_t at) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, &self->sleepers) {
    sleeper *s = sleeper_of(node);
    bool next = has_lost(s) && s->lost_from == at && moves(s, tag);
    if (next) s->lost_from += self->regions.page;
  }
}

// Pages that could not be unmapped before must be unmapped now. A refusal by
// the driver may mean that nothing is mapped.
static void unmap_lost(tarn__pool_arena *self, tarn_tag tag) {
  size_t page = self->regions.page;
  uint64_t from = 0;
  uint64_t to = 0;
  for (pages p = pages_of(self, &self->sleepers, tag);
       next_part(&p, false, SIZE_MAX, &from, &to);) {
    for (uint64_t at = from; at < to; at += page) {
      if (is_lost(self, tag, at) && tarn__regions_retry(&self->regions, at))
        note_unmapped(self, tag, at);
    }
  }
}

// Sleepers in transit stay in the list, in order, while the lock is released.
static tarn_status map_all(tarn__pool_arena *self, tarn_tag tag) {
  tarn__pool_request request = {.asked = false};
  uint64_t from = 0;
  uint64_t to = 0;
  for (pages p = pages_of(self, &self->sleepers, tag);
       next_part(&p, false, SIZE_MAX, &from, &to);) {
    bool lost = false;
    tarn_status status =
        tarn__regions_map(&self->regions, &request, NULL, from, to, &lost);
    if (lost) mark_lost(self, &self->sleepers, tag, from, to);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

static tarn_status restore(tarn__pool_arena *self, const sleeper *s) {
  tarn__source_begin_ask(&self->base, 0, 0);
  tarn_status status = tarn_copy_h2d(self->base.pool->supply.device, s->from,
                                     s->saved, bytes_of(s), NULL);
  tarn__source_end_ask(&self->base, 0);
  return status;
}

tarn_status tarn__arena_wake(tarn__pool_strategy *strategy, tarn_tag tag) {
  tarn__pool_arena *self = tarn__arena_of(strategy);
  tarn_list *node = NULL;
  unmap_lost(self, tag);
  TARN__TRY(map_all(self, tag));
  tarn_list_for_each (node, &self->sleepers) {
    const sleeper *s = sleeper_of(node);
    if (s->saved != NULL && moves(s, tag)) TARN__TRY(restore(self, s));
  }
  return TARN_OK;
}

static void awake(tarn__pool_arena *self, tarn_tag tag) {
  size_t bytes = size_of(self, &self->sleepers, tag);
  size_t saved = 0;
  size_t count = 0;
  tarn_list *node = self->sleepers.next;
  while (node != &self->sleepers) {
    sleeper *s = sleeper_of(node);
    node = node->next;
    if (!moves(s, tag)) continue;
    saved += saved_of(s);
    count++;
    rouse(self, s);
    s->piece->resizing = false;
    s->piece->sleeper = NULL;
    end_sleeper(s);
  }
  tarn__front_count_awake(self->base.pool, tag, count, bytes, saved);
}

tarn_status tarn__arena_end_wake(tarn__pool_strategy *strategy, tarn_tag tag,
                                 bool keep) {
  tarn__pool_arena *self = tarn__arena_of(strategy);
  tarn_status status = TARN_OK;
  tarn_list *node = NULL;
  if (keep) {
    awake(self, tag);
    return TARN_OK;
  }
  status = unmap_all(self, &self->sleepers, tag);
  tarn_list_for_each (node, &self->sleepers) {
    if (moves(sleeper_of(node), tag)) sleeper_of(node)->piece->resizing = false;
  }
  return status;
}

// --- the end ---------------------------------------------------------------

void tarn__arena_end_sleeper(tarn__pool_arena *self, tarn__pool_extents *zone,
                             tarn__pool_extent *extent, sleeper *s,
                             uint64_t serial) {
  tarn__extents_release_aside(zone, TARN__SLEEP_NODES);
  size_t bytes = tarn__extents_give_asleep(
      zone, extent, s->from, s->to, serial,
      has_lost(s) ? TARN__EXTENT_LOST : TARN__EXTENT_BARE);
  // A piece without a block keeps its tag.
  tarn__front_count_awake(self->base.pool, s->piece->tag, 1, bytes,
                          saved_of(s));
  end_sleeper(s);
}

void tarn__arena_forget_sleepers(tarn__pool_arena *self) {
  forget_all(&self->sleepers);
}

// --- the invariants --------------------------------------------------------

static tarn_status broken(const sleeper *s, const char *what) {
  return tarn__fail(TARN_E_CORRUPT, "arena_pool: asleep at 0x%llx: %s",
                    (unsigned long long)s->piece->address, what);
}

static tarn_status check_sleeper(const tarn__pool_arena *self,
                                 const sleeper *s) {
  const tarn__pool_extent *e = s->piece->home;
  size_t page = self->regions.page;
  if (s->piece->sleeper != s || s->piece->owner != &self->base) {
    return broken(s, "the piece knows nothing of it");
  }
  if (s->from < e->offset || s->from > s->to || s->to > tarn__extent_end(e)) {
    return broken(s, "what it lost is not its own");
  }
  if (s->from == s->to) return TARN_OK;
  for (uint64_t at = page_of(self, s); at < end_of(self, s); at += page) {
    if (tarn__regions_has(&self->regions, at)) {
      return broken(s, "a page has memory");
    }
  }
  return TARN_OK;
}

tarn_status tarn__arena_check_sleepers(const tarn__pool_arena *self,
                                       size_t *counts) {
  const sleeper *before = NULL;
  const tarn_list *node = NULL;
  tarn_list_for_each (node, &self->sleepers) {
    const sleeper *s = sleeper_of(node);
    TARN__TRY(check_sleeper(self, s));
    bool apart = before == NULL || before->piece->zone != s->piece->zone ||
                 before->to <= s->from;
    if (!apart || (before != NULL && stands_before(s, before))) {
      return broken(s, "it is out of order");
    }
    before = s;
    counts[s->piece->zone]++;
  }
  return TARN_OK;
}
