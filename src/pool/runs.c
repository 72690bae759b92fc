// Memory of regions that moves by runs, on devices that move what is mapped.
//
//   stripped   [ A ]  .....  [ B     ]  ......        in holes
//   target               [ A | B     | new memory ]   in the order of the list
//
// New memory comes first, since it is what can be refused: until it is there
// nothing has changed. Then the stripped runs move, each by one call. What the
// device will not move, because that would take too much of the system's
// resources, is given back, and new memory takes its place: so the pool grows
// no more than by what was agreed.
//
// No page has a handle, and there are no spares.
#include <assert.h>

#include "base/status.h"
#include "pool/front.h"
#include "pool/region.h"

// What happens while the lock is released.
typedef struct job {
  const tarn__pool_supply *supply;
  uint64_t from;
  uint64_t tail;  // new memory begins here
  uint64_t to;
  uint64_t done;   // from |from| up to here there is memory
  size_t created;  // bytes of new memory
  size_t gone;     // bytes that were given back, or lost
  bool lost;       // addresses of the target
} job;

static size_t size_of(const tarn__pool_stripped *stripped) {
  size_t size = 0;
  for (; stripped != NULL; stripped = stripped->next)
    size += stripped->extent->size;
  return size;
}

// --- without the lock ------------------------------------------------------

static tarn_status fill(job *j, uint64_t at, size_t size) {
  bool lost = false;
  if (size == 0) return TARN_OK;
  tarn_status status = tarn__supply_fill(j->supply, at, size, &lost);
  j->lost = j->lost || lost;
  if (status == TARN_OK) j->created += size;
  return status;
}

// The target's bytes become bare again.
static void clear(job *j, uint64_t at, size_t size) {
  if (size == 0) return;
  if (tarn__supply_clear(j->supply, at, size) != TARN_OK) j->lost = true;
  j->gone += size;
}

// Gives what has not been moved of |stripped| back, and gets as much new
// memory.
static tarn_status replace(job *j, tarn__pool_stripped *stripped,
                           size_t moved) {
  const tarn__pool_extent *e = stripped->extent;
  size_t rest = e->size - moved;
  tarn_status status = tarn__supply_clear(j->supply, e->offset + moved, rest);
  if (status == TARN_E_NOMEM && moved == 0) return status;
  stripped->end = status == TARN_OK ? TARN__STRIP_UNMAPPED : TARN__STRIP_LOST;
  j->gone += rest;
  if (status == TARN_OK) status = fill(j, j->done, rest);
  if (status == TARN_OK) j->done += rest;
  return status;
}

static tarn_status move(job *j, tarn__pool_stripped *stripped) {
  const tarn__pool_extent *e = stripped->extent;
  size_t moved = 0;
  TARN__TRY(tarn__waits_wait(&stripped->waits, j->supply->place));
  tarn_status status =
      tarn__supply_move(j->supply, e->offset, j->done, e->size, &moved);
  j->done += moved;
  if (status != TARN_OK) return replace(j, stripped, moved);
  stripped->end = TARN__STRIP_UNMAPPED;
  return TARN_OK;
}

static tarn_status ask_device(job *j, tarn__pool_stripped *stripped) {
  size_t more = (size_t)(j->to - j->tail);
  tarn_status status = fill(j, j->tail, more);
  if (status != TARN_OK) return status;
  for (; stripped != NULL && status == TARN_OK; stripped = stripped->next)
    status = move(j, stripped);
  if (status == TARN_OK) return TARN_OK;
  clear(j, j->from, (size_t)(j->done - j->from));
  clear(j, j->tail, more);
  return status;
}

// --- with it ---------------------------------------------------------------

static void note(const tarn__pool_regions *regions, tarn_pool_event_kind kind,
                 uint64_t at, size_t size) {
  tarn__front_note_memory(regions->strategy->pool, kind, at, size, 0);
}

// Those that have not been tried keep their memory.
static void forget_stripped(tarn__pool_regions *regions,
                            const tarn__pool_stripped *stripped) {
  for (; stripped != NULL; stripped = stripped->next) {
    const tarn__pool_extent *e = stripped->extent;
    uint64_t first = e->offset / regions->page;
    size_t count = e->size / regions->page;
    if (stripped->end == TARN__STRIP_KEPT) continue;
    note(regions, TARN_POOL_EVENT_UNMAP, e->offset, e->size);
    tarn__pages_clear(&regions->pages, first, first + count);
    regions->mapped -= count;
  }
}

static void deliver(tarn__pool_regions *regions, const job *j) {
  uint64_t first = j->from / regions->page;
  uint64_t end = j->to / regions->page;
  note(regions, TARN_POOL_EVENT_MAP, j->from, (size_t)(j->to - j->from));
  tarn__pages_mark(&regions->pages, first, end);
  regions->mapped += (size_t)(end - first);
}

// Memory that was replaced raises no peak. |more| bytes have been counted.
static void settle(const tarn__pool_regions *regions, const job *j,
                   size_t more) {
  tarn_pool_stats *stats = &regions->strategy->pool->stats;
  stats->device_frees += j->gone / regions->page;
  if (j->created > more) {
    stats->device_allocs += (j->created - more) / regions->page;
  }
  if (j->created > j->gone) {
    tarn__source_charge(regions->strategy, j->created - j->gone);
  } else {
    tarn__source_write_off(regions->strategy, j->gone - j->created);
  }
}

tarn_status tarn__regions_map_runs(tarn__pool_regions *regions,
                                   tarn__pool_request *request,
                                   tarn__pool_stripped *stripped, uint64_t from,
                                   uint64_t to, bool *out_lost) {
  size_t there = size_of(stripped);
  assert(there <= to - from);
  size_t more = (size_t)(to - from) - there;
  uint64_t first = from / regions->page;
  uint64_t end = to / regions->page;
  job j = {regions->supply, from, to - more, to, from, 0, 0, false};
  *out_lost = false;
  if (more > 0) {
    TARN__TRY(request->no_grow
                  ? tarn__source_refuse_growth(request)
                  : tarn__source_check_limit(regions->strategy->pool, more));
  }
  if (!tarn__pages_prepare(&regions->pages, first, end)) return TARN_E_NOMEM;
  request->asked = true;
  tarn__source_begin_ask(regions->strategy, more, more / regions->page);
  tarn_status status = ask_device(&j, stripped);
  tarn__source_end_ask(regions->strategy, more);
  *out_lost = j.lost;
  forget_stripped(regions, stripped);
  if (status == TARN_OK) deliver(regions, &j);
  settle(regions, &j, more);
  tarn__pages_end(&regions->pages, first, end);
  return status;
}

// --- giving memory back ----------------------------------------------------

// The first failure is returned. |*out_kept|: bytes that have not been given.
static tarn_status clear_all(const tarn__pool_supply *supply,
                             tarn__pool_stripped *stripped, size_t *out_kept) {
  tarn_status first = TARN_OK;
  *out_kept = 0;
  for (; stripped != NULL; stripped = stripped->next) {
    const tarn__pool_extent *e = stripped->extent;
    tarn_status waited = tarn__waits_wait(&stripped->waits, supply->place);
    tarn_status status = tarn__supply_clear(supply, e->offset, e->size);
    bool kept = status == TARN_E_NOMEM && !stripped->must_go;
    if (kept) *out_kept += e->size;
    stripped->end = status == TARN_OK ? TARN__STRIP_UNMAPPED
                    : kept            ? TARN__STRIP_KEPT
                                      : TARN__STRIP_LOST;
    tarn__keep_first(&first, status);
    tarn__keep_first(&first, waited);
  }
  return first;
}

tarn_status tarn__regions_shrink_runs(tarn__pool_regions *regions,
                                      tarn__pool_stripped *stripped) {
  size_t size = size_of(stripped);
  size_t kept = 0;
  if (size == 0) return TARN_OK;
  tarn__source_begin_return(regions->strategy, size, size / regions->page);
  tarn_status status = clear_all(regions->supply, stripped, &kept);
  tarn__source_end_return(regions->strategy, size);
  forget_stripped(regions, stripped);
  if (kept > 0) tarn__source_charge(regions->strategy, kept);
  return status;
}
