// Blocks of arena_pool that sleep are woken, or end asleep: arena_sleep.c tells
// what they are.
//
//   wake: map what has no memory ─► restore ─► end_wake: keep, or unmap again
//
// Until end_wake all is as if they slept, so that what fails half way, in this
// strategy or another, is undone.
#include "base/status.h"
#include "device/memory.h"
#include "pool/arena.h"
#include "pool/front.h"

// What could not be unmapped then has to be before memory is mapped there. That
// the driver refuses may mean that nothing is.
static void unmap_lost(tarn__pool_arena *self, const tarn__pool_sleeper *s) {
  size_t page = self->regions.page;
  for (uint64_t at = tarn__sleeper_page(self, s);
       at < tarn__sleeper_end(self, s); at += page) {
    if (tarn__regions_has(&self->regions, at)) continue;
    tarn__source_begin_ask(&self->base, 0, 0);
    const tarn__pool_supply *supply = &self->base.pool->supply;
    (void)supply->calls->unmap(supply, at, page);
    tarn__source_end_ask(&self->base, 0);
  }
}

static void unmap_all_lost(tarn__pool_arena *self, tarn_list *head,
                           tarn_tag tag) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, head) {
    tarn__pool_sleeper *s = tarn__sleeper_of(node);
    if (s->lost && tarn__sleeper_moves(s, tag)) unmap_lost(self, s);
  }
}

// Those on their way stay in the list while the lock is released, and so does
// their order.
static tarn_status map_all(tarn__pool_arena *self, tarn_list *head,
                           tarn_tag tag) {
  tarn__pool_request request = {.asked = false};
  tarn__pool_sleep_run r = {.last = NULL};
  for (const tarn_list *at = head; tarn__sleepers_run(self, head, at, tag, &r);
       at = r.last) {
    tarn__pool_sleep_run part;
    for (uint64_t addr = r.from;
         tarn__sleepers_part(self, &r, &addr, false, SIZE_MAX, &part);) {
      bool lost = false;
      tarn_status status = tarn__regions_map(&self->regions, &request, NULL,
                                             part.from, part.to, &lost);
      if (lost) tarn__sleepers_mark_lost(head, tag, &part);
      if (status != TARN_OK) return status;
    }
  }
  return TARN_OK;
}

static tarn_status restore_all(tarn__pool_arena *self, tarn_list *head,
                               tarn_tag tag) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, head) {
    const tarn__pool_sleeper *s = tarn__sleeper_of(node);
    if (s->saved == NULL || !tarn__sleeper_moves(s, tag)) continue;
    tarn__source_begin_ask(&self->base, 0, 0);
    tarn_status status = tarn_copy_h2d(self->base.pool->supply.device, s->from,
                                       s->saved, tarn__sleeper_bytes(s), NULL);
    tarn__source_end_ask(&self->base, 0);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

tarn_status tarn__arena_wake(tarn__pool_strategy *strategy, tarn_tag tag) {
  tarn__pool_arena *self = (tarn__pool_arena *)(void *)strategy;
  tarn_status status = TARN_OK;
  for (int i = 0; i < TARN__ARENA_ZONES && status == TARN_OK; i++) {
    unmap_all_lost(self, &self->sleepers[i], tag);
    status = map_all(self, &self->sleepers[i], tag);
  }
  for (int i = 0; i < TARN__ARENA_ZONES && status == TARN_OK; i++)
    status = restore_all(self, &self->sleepers[i], tag);
  return status;
}

static void awake(tarn__pool_arena *self, tarn__pool_extents *zone,
                  tarn__pool_sleeper *s) {
  tarn__extents_release_aside(zone, TARN__SLEEP_NODES);
  if (s->from != s->to) {
    tarn__extents_rouse(zone, s->piece->home, tarn__sleeper_page(self, s),
                        tarn__sleeper_end(self, s));
  }
  s->piece->sleeper = NULL;
  tarn_list_del(&s->node);
  tarn__sleeper_free(s);
}

// Ends the wake of those in a zone.
static void settle(tarn__pool_arena *self, int zone, tarn_tag tag, bool keep) {
  tarn_list *head = &self->sleepers[zone];
  size_t bytes = tarn__sleepers_size(self, head, tag);
  size_t saved = 0;
  size_t count = 0;
  for (tarn_list *node = head->next, *next = NULL; node != head; node = next) {
    tarn__pool_sleeper *s = tarn__sleeper_of(node);
    next = node->next;
    if (!tarn__sleeper_moves(s, tag)) continue;
    s->piece->resizing = false;
    if (!keep) continue;
    saved += s->saved != NULL ? tarn__sleeper_bytes(s) : 0;
    count++;
    awake(self, &self->zones[zone], s);
  }
  if (keep) {
    tarn__front_count_awake(self->base.pool, tag, count, bytes, saved);
  }
}

tarn_status tarn__arena_end_wake(tarn__pool_strategy *strategy, tarn_tag tag,
                                 bool keep) {
  tarn__pool_arena *self = (tarn__pool_arena *)(void *)strategy;
  tarn_status first = TARN_OK;
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    tarn__keep_first(
        &first,
        keep ? TARN_OK : tarn__sleepers_unmap(self, &self->sleepers[i], tag));
    settle(self, i, tag, keep);
  }
  return first;
}

// --- the end ---------------------------------------------------------------

void tarn__arena_end_sleeper(tarn__pool_arena *self, tarn__pool_extents *zone,
                             tarn__pool_extent *extent,
                             tarn__pool_sleeper *sleeper, uint64_t serial) {
  size_t bytes = 0;
  size_t saved = sleeper->saved != NULL ? tarn__sleeper_bytes(sleeper) : 0;
  tarn__pool_extent_kind kind =
      sleeper->lost ? TARN__EXTENT_LOST : TARN__EXTENT_BARE;
  tarn__extents_release_aside(zone, TARN__SLEEP_NODES);
  tarn__extents_give_asleep(zone, extent, sleeper->from, sleeper->to, serial,
                            kind, &bytes);
  // A piece without a block keeps its tag.
  tarn__front_count_awake(self->base.pool, sleeper->piece->tag, 1, bytes,
                          saved);
  tarn_list_del(&sleeper->node);
  tarn__sleeper_free(sleeper);
}

void tarn__arena_forget_sleepers(tarn__pool_arena *self) {
  for (int i = 0; i < TARN__ARENA_ZONES; i++)
    tarn__sleepers_forget(&self->sleepers[i]);
}

// --- the invariants --------------------------------------------------------

static tarn_status broken(const tarn__pool_sleeper *s, const char *what) {
  return tarn__fail(TARN_E_CORRUPT, "arena_pool: asleep at 0x%llx: %s",
                    (unsigned long long)s->piece->address, what);
}

static tarn_status check_sleeper(const tarn__pool_arena *self,
                                 const tarn__pool_sleeper *s) {
  const tarn__pool_extent *e = s->piece->home;
  size_t page = self->regions.page;
  if (s->piece->sleeper != s || s->piece->owner != &self->base) {
    return broken(s, "the piece knows nothing of it");
  }
  if (s->from < e->offset || s->from > s->to || s->to > tarn__extent_end(e)) {
    return broken(s, "what it lost is not its own");
  }
  if (s->from == s->to) return TARN_OK;
  for (uint64_t at = tarn__sleeper_page(self, s);
       at < tarn__sleeper_end(self, s); at += page) {
    if (tarn__regions_has(&self->regions, at)) {
      return broken(s, "a page has memory");
    }
  }
  return TARN_OK;
}

tarn_status tarn__arena_check_sleepers(const tarn__pool_arena *self) {
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    const tarn_list *head = &self->sleepers[i];
    uint64_t end = 0;
    size_t count = 0;
    for (tarn_list *node = head->next; node != head; node = node->next) {
      const tarn__pool_sleeper *s = tarn__sleeper_of(node);
      tarn_status status = check_sleeper(self, s);
      if (status != TARN_OK) return status;
      if (s->from < end) return broken(s, "it is out of order");
      end = s->to;
      count++;
    }
    size_t nodes =
        count * TARN__SLEEP_NODES + tarn__arena_layout_nodes(self, i);
    if (self->zones[i].set_aside != nodes) {
      return tarn__fail(TARN_E_CORRUPT,
                        "arena_pool: %zu nodes are set aside for %zu sleepers",
                        self->zones[i].set_aside, count);
    }
  }
  return TARN_OK;
}
