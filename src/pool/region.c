// Regions: reserved addresses, and pages of memory that move between them.
#include "pool/region.h"

#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "pool/front.h"

// --- addresses -------------------------------------------------------------

// The page may be more than the device's own steps.
static tarn_status reserve(tarn__pool_regions *regions,
                           tarn__pool_region *region, size_t size,
                           size_t align) {
  if (align < regions->page) align = regions->page;
  region->size = size;
  tarn__source_begin_ask(regions->strategy, 0, 0);
  tarn_status status =
      tarn__supply_reserve(regions->supply, size, align, &region->base);
  tarn__source_end_ask(regions->strategy, 0);
  return status;
}

static tarn_status release(tarn__pool_regions *regions,
                           const tarn__pool_region *region) {
  tarn__source_begin_ask(regions->strategy, 0, 0);
  tarn_status status =
      tarn__supply_release(regions->supply, region->base, region->size);
  tarn__source_end_ask(regions->strategy, 0);
  return status;
}

// Drivers have more than one word for a size that they do not reserve.
static bool is_too_much(tarn_status status) {
  return status == TARN_FULL || status == TARN_E_INVALID;
}

static tarn_status reserve_what_can_be(tarn__pool_regions *regions,
                                       tarn__pool_region *region, size_t size,
                                       size_t least, size_t align) {
  tarn_status status = reserve(regions, region, size, align);
  while (is_too_much(status) && size > least) {
    size = size / 2 & ~(regions->page - 1);
    if (size < least) size = least;
    status = reserve(regions, region, size, align);
  }
  if (status != TARN_OK || tarn__extents_reach(region->base, size)) {
    return status;
  }
  (void)release(regions, region);
  return tarn__fail(TARN_E_DEVICE, "arena_pool: addresses from 0x%llx on",
                    (unsigned long long)region->base);
}

enum { PARTS_OF_LIMIT = 32 };

// A limit of the process counts reserved addresses, too, and the program needs
// some for itself.
static size_t first_step(void) {
  return tarn__lesser(TARN__FIRST_STEP,
                      tarn__os_most_addresses() / PARTS_OF_LIMIT);
}

static size_t next_step(const tarn__pool_regions *regions, size_t most,
                        size_t least) {
  size_t first = first_step();
  size_t step = 0;
  for (const tarn__pool_region *r = regions->first; r != NULL; r = r->next)
    step += r->size;
  if (step < first) step = first;
  step = tarn__lesser(step, most) & ~(regions->page - 1);
  return step > least ? step : least;
}

tarn_status tarn__regions_add(tarn__pool_regions *regions, size_t most,
                              size_t least, size_t align,
                              tarn__pool_region **out_region) {
  *out_region = NULL;
  size_t size = next_step(regions, most, least);
  tarn__pool_region *region = tarn__host_alloc(sizeof *region);
  if (region == NULL) return TARN_E_NOMEM;
  tarn_status status = reserve_what_can_be(regions, region, size, least, align);
  if (status != TARN_OK) {
    tarn__host_free(region, sizeof *region);
    return status;
  }
  region->next = regions->first;
  regions->first = region;
  *out_region = region;
  return TARN_OK;
}

bool tarn__regions_retry(const tarn__pool_regions *regions, uint64_t addr) {
  tarn__source_begin_ask(regions->strategy, 0, 0);
  tarn_status status = tarn__supply_unmap(regions->supply, addr, regions->page);
  tarn__source_end_ask(regions->strategy, 0);
  return status == TARN_OK;
}

// One by one: some of them may not be mapped.
static void unmap_lost(const tarn__pool_regions *regions,
                       tarn__pool_lost lost) {
  for (uint64_t at = lost.from; at < lost.to; at += regions->page)
    (void)tarn__regions_retry(regions, at);
}

tarn_status tarn__regions_remove(tarn__pool_regions *regions,
                                 tarn__pool_region *region,
                                 tarn__pool_lost lost) {
  tarn__pool_region **link = &regions->first;
  while (*link != region)
    link = &(*link)->next;
  *link = region->next;
  unmap_lost(regions, lost);
  tarn_status status = release(regions, region);
  tarn__host_free(region, sizeof *region);
  return status;
}

void tarn__regions_deinit(tarn__pool_regions *regions) {
  while (regions->first != NULL) {
    tarn__pool_region *region = regions->first;
    regions->first = region->next;
    tarn__host_free(region, sizeof *region);
  }
  tarn__pages_deinit(&regions->pages);
  tarn__host_free_array(regions->spares, regions->spare_room,
                        sizeof *regions->spares);
  *regions = (tarn__pool_regions){.first = NULL};
}

// --- handles ---------------------------------------------------------------

// Makes room for |more| spares, besides the present ones and those that other
// calls may add.
static bool reserve_spares(tarn__pool_regions *regions, size_t more) {
  size_t need = regions->spare_count + regions->promised + more;
  if (need <= regions->spare_room) return true;
  tarn_memory *spares = tarn__host_grow(regions->spares, &regions->spare_room,
                                        need, 16, sizeof *spares);
  if (spares == NULL) return false;
  regions->spares = spares;
  return true;
}

bool tarn__regions_has(const tarn__pool_regions *regions, uint64_t addr) {
  return tarn__pages_get(&regions->pages, addr / regions->page) != 0;
}

// --- moving memory ---------------------------------------------------------

// Handles in transit, while the lock is released. Those that still have to be
// unmapped stand behind the usable ones, and move up to them.
typedef struct transit {
  tarn_memory *handles;
  size_t room;
  size_t count;    // that can be used
  size_t spares;   // of them, that were spare before
  size_t created;  // and anew
  size_t mapped;   // the first so many are mapped
  size_t gone;     // pages whose addresses are lost
  bool lost;       // so are the handles that were to be mapped
} transit;

static size_t pages_in(const tarn__pool_regions *regions,
                       const tarn__pool_stripped *stripped) {
  return stripped->extent->size / regions->page;
}

static size_t pages_of(const tarn__pool_regions *regions,
                       const tarn__pool_stripped *stripped) {
  size_t count = 0;
  for (; stripped != NULL; stripped = stripped->next)
    count += pages_in(regions, stripped);
  return count;
}

// Makes room on the host for every outcome.
static tarn_status prepare(tarn__pool_regions *regions, transit *t,
                           size_t room) {
  *t = (transit){.room = room};
  if (!reserve_spares(regions, room)) return TARN_E_NOMEM;
  t->handles = tarn__host_array(room, sizeof *t->handles);
  if (t->handles == NULL) return TARN_E_NOMEM;
  regions->promised += room;
  return TARN_OK;
}

static void collect(tarn__pool_regions *regions,
                    const tarn__pool_stripped *stripped, transit *t,
                    size_t spares) {
  while (t->count < spares && regions->spare_count > 0)
    t->handles[t->count++] = regions->spares[--regions->spare_count];
  t->spares = t->count;
  size_t at = t->count;
  for (; stripped != NULL; stripped = stripped->next) {
    const tarn__pool_extent *e = stripped->extent;
    for (size_t offset = 0; offset < e->size; offset += regions->page)
      t->handles[at++] = tarn__pages_get(&regions->pages,
                                         (e->offset + offset) / regions->page);
  }
}

// The first failure is returned.
static tarn_status destroy(const tarn__pool_regions *regions,
                           const tarn_memory *handles, size_t count) {
  tarn_status first = TARN_OK;
  for (size_t i = 0; i < count; i++) {
    tarn__keep_first(&first, tarn__supply_destroy(regions->supply, handles[i]));
  }
  return first;
}

// The handles at |at| join the usable ones, or are dropped.
static tarn_status unmap(const tarn__pool_regions *regions,
                         tarn__pool_stripped *stripped, transit *t, size_t at) {
  const tarn__pool_extent *e = stripped->extent;
  size_t count = pages_in(regions, stripped);
  tarn_status status = tarn__supply_unmap(regions->supply, e->offset, e->size);
  if (status == TARN_OK) {
    stripped->end = TARN__STRIP_UNMAPPED;
    memmove(&t->handles[t->count], &t->handles[at], count * sizeof *t->handles);
    t->count += count;
  } else {
    stripped->end = TARN__STRIP_LOST;
    (void)destroy(regions, &t->handles[at], count);
    t->gone += count;
  }
  return status;
}

static tarn_status unmap_all(const tarn__pool_regions *regions,
                             tarn__pool_stripped *stripped, transit *t) {
  tarn_status first = TARN_OK;
  size_t at = t->count;
  for (; stripped != NULL; stripped = stripped->next) {
    tarn_status waited =
        tarn__waits_wait(&stripped->waits, regions->supply->place);
    tarn_status status = unmap(regions, stripped, t, at);
    if (first == TARN_OK) first = status != TARN_OK ? status : waited;
    at += pages_in(regions, stripped);
  }
  return first;
}

static void note_pages(const tarn__pool_regions *regions,
                       tarn_pool_event_kind kind, uint64_t at, size_t count) {
  tarn__front_note_memory(regions->strategy->pool, kind, at,
                          count * regions->page, 0);
}

// The rest becomes spare, in place of the former spares.
static void note_mapped(const tarn__pool_regions *regions, const transit *t,
                        uint64_t from) {
  size_t rest = t->count - t->mapped;
  note_pages(regions, TARN_POOL_EVENT_MAP, from, t->mapped);
  if (rest > t->spares) {
    note_pages(regions, TARN_POOL_EVENT_MAP, 0, rest - t->spares);
  } else {
    note_pages(regions, TARN_POOL_EVENT_UNMAP, 0, t->spares - rest);
  }
}

// Removes the handles of the pages, and writes their events.
static void forget_stripped(tarn__pool_regions *regions,
                            const tarn__pool_stripped *stripped) {
  for (; stripped != NULL; stripped = stripped->next) {
    uint64_t first = stripped->extent->offset / regions->page;
    size_t count = pages_in(regions, stripped);
    note_pages(regions, TARN_POOL_EVENT_UNMAP, stripped->extent->offset, count);
    tarn__pages_clear(&regions->pages, first, first + count);
    regions->mapped -= count;
  }
}

static tarn_status create_missing(const tarn__pool_regions *regions, transit *t,
                                  size_t wanted) {
  while (t->count < wanted) {
    TARN__TRY(tarn__supply_create(regions->supply, regions->page,
                                  &t->handles[t->count]));
    t->count++;
    t->created++;
  }
  return TARN_OK;
}

static tarn_status map_all(const tarn__pool_regions *regions, transit *t,
                           uint64_t from, size_t wanted) {
  size_t page = regions->page;
  for (size_t i = 0; i < wanted; i++) {
    TARN__TRY(tarn__supply_map(regions->supply, from + i * page, page,
                               t->handles[i]));
    t->mapped++;
  }
  return tarn__supply_set_access(regions->supply, from, wanted * page);
}

// Unmaps the pages that were mapped before the failure.
static void undo_map(const tarn__pool_regions *regions, transit *t,
                     uint64_t from) {
  size_t mapped = t->mapped;
  t->mapped = 0;
  if (mapped == 0) return;
  tarn_status status =
      tarn__supply_unmap(regions->supply, from, mapped * regions->page);
  if (status == TARN_OK) return;
  (void)destroy(regions, t->handles, mapped);
  memmove(t->handles, &t->handles[mapped],
          (t->count - mapped) * sizeof *t->handles);
  t->count -= mapped;
  t->gone += mapped;
  t->lost = true;
}

static tarn_status ask_device(const tarn__pool_regions *regions,
                              tarn__pool_stripped *stripped, transit *t,
                              uint64_t from, size_t wanted) {
  tarn_status status = unmap_all(regions, stripped, t);
  if (status == TARN_OK) status = create_missing(regions, t, wanted);
  if (status == TARN_OK) status = map_all(regions, t, from, wanted);
  if (status != TARN_OK) undo_map(regions, t, from);
  return status;
}

// Mapped handles get their places; the others become spare.
static void deliver(tarn__pool_regions *regions, transit *t, uint64_t from) {
  uint64_t first = from / regions->page;
  size_t i = 0;
  note_mapped(regions, t, from);
  for (; i < t->mapped; i++)
    tarn__pages_set(&regions->pages, first + i, t->handles[i]);
  regions->mapped += t->mapped;
  for (; i < t->count; i++)
    regions->spares[regions->spare_count++] = t->handles[i];
  regions->promised -= t->room;
  tarn__source_charge(regions->strategy, t->created * regions->page);
  tarn__source_write_off(regions->strategy, t->gone * regions->page);
  tarn__host_free_array(t->handles, t->room, sizeof *t->handles);
}

tarn_status tarn__regions_map(tarn__pool_regions *regions,
                              tarn__pool_request *request,
                              tarn__pool_stripped *stripped, uint64_t from,
                              uint64_t to, bool *out_lost) {
  if (tarn__supply_moves(regions->supply)) {
    return tarn__regions_map_runs(regions, request, stripped, from, to,
                                  out_lost);
  }
  size_t wanted = (size_t)(to - from) / regions->page;
  size_t stripped_count = pages_of(regions, stripped);
  size_t there = stripped_count + regions->spare_count;
  size_t more = wanted > there ? (wanted - there) * regions->page : 0;
  transit t = {.count = 0};
  *out_lost = false;
  if (more > 0) {
    TARN__TRY(request->no_grow
                  ? tarn__source_refuse_growth(request)
                  : tarn__source_check_limit(regions->strategy->pool, more));
  }
  uint64_t first = from / regions->page;
  if (!tarn__pages_prepare(&regions->pages, first, first + wanted)) {
    return TARN_E_NOMEM;
  }
  tarn_status status = prepare(regions, &t, stripped_count + wanted);
  if (status != TARN_OK) {
    tarn__pages_end(&regions->pages, first, first + wanted);
    return status;
  }
  collect(regions, stripped, &t, wanted);
  request->asked = true;
  tarn__source_begin_ask(regions->strategy, more, more / regions->page);
  status = ask_device(regions, stripped, &t, from, wanted);
  tarn__source_end_ask(regions->strategy, more);
  *out_lost = t.lost;
  forget_stripped(regions, stripped);
  deliver(regions, &t, from);
  tarn__pages_end(&regions->pages, first, first + wanted);
  return status;
}

// --- giving memory back ----------------------------------------------------

// Gives back the handles at |handles| before their mappings are removed: memory
// that is not kept need not be mapped elsewhere in between, for which there may
// be no addresses.
static tarn_status end_stripped(const tarn__pool_regions *regions,
                                tarn__pool_stripped *stripped,
                                const tarn_memory *handles) {
  const tarn__pool_extent *e = stripped->extent;
  const tarn__pool_supply *supply = regions->supply;
  tarn_status waited = tarn__waits_wait(&stripped->waits, supply->place);
  tarn_status destroyed =
      destroy(regions, handles, pages_in(regions, stripped));
  tarn_status status = tarn__supply_unmap(supply, e->offset, e->size);
  stripped->end = status == TARN_OK ? TARN__STRIP_UNMAPPED : TARN__STRIP_LOST;
  if (status == TARN_OK) status = destroyed;
  return status != TARN_OK ? status : waited;
}

// The first failure is returned.
static tarn_status end_all(const tarn__pool_regions *regions,
                           tarn__pool_stripped *stripped, const transit *t) {
  tarn_status first = destroy(regions, t->handles, t->count);
  size_t at = t->count;
  for (; stripped != NULL; stripped = stripped->next) {
    tarn__keep_first(&first, end_stripped(regions, stripped, &t->handles[at]));
    at += pages_in(regions, stripped);
  }
  return first;
}

size_t tarn__regions_batch(const tarn__pool_regions *regions) {
  return tarn__supply_moves(regions->supply) ? SIZE_MAX : TARN__REGION_BATCH;
}

tarn_status tarn__regions_shrink(tarn__pool_regions *regions,
                                 tarn__pool_stripped *stripped, size_t spares) {
  if (tarn__supply_moves(regions->supply)) {
    return tarn__regions_shrink_runs(regions, stripped);
  }
  tarn_memory handles[TARN__REGION_BATCH] = {0};
  transit t = {.handles = handles, .room = TARN__REGION_BATCH};
  size_t stripped_count = pages_of(regions, stripped);
  collect(regions, stripped, &t, spares);
  size_t size = (t.count + stripped_count) * regions->page;
  if (size == 0) return TARN_OK;
  forget_stripped(regions, stripped);
  note_pages(regions, TARN_POOL_EVENT_UNMAP, 0, t.count);
  tarn__source_begin_return(regions->strategy, size, size / regions->page);
  tarn_status status = end_all(regions, stripped, &t);
  tarn__source_end_return(regions->strategy, size);
  return status;
}

// --- what there is ---------------------------------------------------------

static void visit_region(const tarn__pool_regions *regions,
                         const tarn__pool_region *r,
                         tarn__pool_memory_fn *visit, void *context) {
  size_t page = regions->page;
  uint64_t from = r->base / page;
  uint64_t end = from + r->size / page;
  uint64_t to = 0;
  while ((to = tarn__pages_run(&regions->pages, &from, end)) != 0) {
    visit(context, from * page, (size_t)(to - from) * page);
    from = to;
  }
}

void tarn__regions_visit(const tarn__pool_regions *regions,
                         tarn__pool_memory_fn *visit, void *context) {
  for (const tarn__pool_region *r = regions->first; r != NULL; r = r->next)
    visit_region(regions, r, visit, context);
  if (regions->spare_count == 0) return;
  visit(context, 0, regions->spare_count * regions->page);
}

// --- the invariants --------------------------------------------------------

tarn_status tarn__regions_check(const tarn__pool_regions *regions) {
  size_t mapped = tarn__pages_check(&regions->pages);
  if (mapped == regions->mapped && regions->promised == 0) return TARN_OK;
  return tarn__fail(TARN_E_CORRUPT,
                    "arena_pool: %zu pages are mapped and %zu promised, says "
                    "%zu",
                    mapped, regions->promised, regions->mapped);
}
