// Sleepers: the blocks of an arena_pool that sleep, and the pages they lack.
#include "pool/arena.h"

#include "base/hostmem.h"

void tarn__sleeper_free(tarn__pool_sleeper *s) {
  if (s->saved != NULL) tarn__host_free(s->saved, tarn__sleeper_bytes(s));
  tarn__host_free(s, sizeof *s);
}

void tarn__sleepers_forget(tarn_list *head) {
  while (!tarn_list_empty(head)) {
    tarn__pool_sleeper *s = tarn__sleeper_of(head->next);
    tarn_list_del(&s->node);
    tarn__sleeper_free(s);
  }
}

bool tarn__sleepers_run(const tarn__pool_arena *self, const tarn_list *head,
                        const tarn_list *node, tarn_tag tag,
                        tarn__pool_sleep_run *out) {
  *out = (tarn__pool_sleep_run){0};
  for (tarn_list *at = node->next; at != head; at = at->next) {
    const tarn__pool_sleeper *s = tarn__sleeper_of(at);
    if (s->from == s->to || !tarn__sleeper_moves(s, tag)) continue;
    if (out->last == NULL) out->from = out->to = tarn__sleeper_page(self, s);
    if (tarn__sleeper_page(self, s) > out->to) break;
    if (tarn__sleeper_end(self, s) > out->to)
      out->to = tarn__sleeper_end(self, s);
    out->last = at;
  }
  return out->last != NULL;
}

bool tarn__sleepers_part(const tarn__pool_arena *self,
                         const tarn__pool_sleep_run *r, uint64_t *at, bool has,
                         size_t most, tarn__pool_sleep_run *out) {
  const tarn__pool_regions *regions = &self->regions;
  uint64_t from = *at;
  while (from < r->to && tarn__regions_has(regions, from) != has)
    from += regions->page;
  uint64_t to = from;
  while (to < r->to && (to - from) / regions->page < most &&
         tarn__regions_has(regions, to) == has) {
    to += regions->page;
  }
  *at = to;
  *out = (tarn__pool_sleep_run){.from = from, .to = to};
  return from < to;
}

size_t tarn__sleepers_size(const tarn__pool_arena *self, const tarn_list *head,
                           tarn_tag tag) {
  size_t size = 0;
  tarn__pool_sleep_run r = {.last = NULL};
  for (const tarn_list *at = head; tarn__sleepers_run(self, head, at, tag, &r);
       at = r.last) {
    size += (size_t)(r.to - r.from);
  }
  return size;
}

void tarn__sleepers_mark_lost(tarn_list *head, tarn_tag tag,
                              const tarn__pool_sleep_run *part) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, head) {
    tarn__pool_sleeper *s = tarn__sleeper_of(node);
    bool touches = s->from < part->to && s->to > part->from;
    if (touches && tarn__sleeper_moves(s, tag)) s->lost = true;
  }
}

tarn_status tarn__sleepers_unmap(tarn__pool_arena *self, tarn_list *head,
                                 tarn_tag tag) {
  tarn_status first = TARN_OK;
  tarn__pool_sleep_run r = {.last = NULL};
  for (const tarn_list *at = head; tarn__sleepers_run(self, head, at, tag, &r);
       at = r.last) {
    tarn__pool_sleep_run part;
    for (uint64_t addr = r.from; tarn__sleepers_part(
             self, &r, &addr, true, TARN__REGION_BATCH, &part);) {
      tarn__pool_extent pages = {.offset = part.from,
                                 .size = (size_t)(part.to - part.from)};
      tarn__pool_stripped stripped = {.extent = &pages};
      tarn_status status = tarn__regions_shrink(&self->regions, &stripped, 0);
      if (stripped.end == TARN__STRIP_LOST)
        tarn__sleepers_mark_lost(head, tag, &part);
      if (first == TARN_OK) first = status;
    }
  }
  return first;
}
