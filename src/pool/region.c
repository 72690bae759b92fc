// Regions: reserved addresses, and pages of memory that move between them.
#include "pool/region.h"

#include <assert.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"

// --- addresses -------------------------------------------------------------

static tarn_status reserve(tarn__regions *regions, size_t size,
                           tarn_addr *out_addr) {
  tarn__source_begin_ask(regions->strategy, 0);
  tarn_status status = tarn__range_reserve(regions->device, size, 0, out_addr);
  tarn__source_end_ask(regions->strategy, 0);
  return status;
}

tarn_status tarn__regions_add(tarn__regions *regions, size_t size, size_t least,
                              tarn__region **out_region) {
  *out_region = NULL;
  tarn__region *region = tarn__host_alloc(sizeof *region);
  if (region == NULL) return TARN_E_NOMEM;
  tarn_status status = reserve(regions, size, &region->base);
  while (status == TARN_FULL && size / 2 >= least) {
    size = size / 2 & ~(regions->page - 1);
    status = reserve(regions, size, &region->base);
  }
  if (status != TARN_OK) {
    tarn__host_free(region, sizeof *region);
    return status;
  }
  region->size = size;
  region->next = regions->first;
  regions->first = region;
  *out_region = region;
  return TARN_OK;
}

static void free_region(tarn__region *region) {
  tarn__host_free_array(region->pages, region->page_room,
                        sizeof *region->pages);
  tarn__host_free(region, sizeof *region);
}

tarn_status tarn__regions_remove(tarn__regions *regions, tarn__region *region) {
  tarn__region **link = &regions->first;
  while (*link != region)
    link = &(*link)->next;
  *link = region->next;
  tarn__source_begin_ask(regions->strategy, 0);
  tarn_status status =
      tarn__range_release(regions->device, region->base, region->size);
  tarn__source_end_ask(regions->strategy, 0);
  free_region(region);
  return status;
}

static tarn__region *region_of(const tarn__regions *regions, uint64_t addr) {
  tarn__region *region = regions->first;
  while (addr - region->base >= region->size)
    region = region->next;
  return region;
}

void tarn__regions_deinit(tarn__regions *regions) {
  while (regions->first != NULL) {
    tarn__region *region = regions->first;
    regions->first = region->next;
    free_region(region);
  }
  tarn__host_free_array(regions->spares, regions->spare_room,
                        sizeof *regions->spares);
  regions->spares = NULL;
  regions->spare_count = regions->spare_room = 0;
}

// --- handles ---------------------------------------------------------------

// Room for handles up to that of the page before |to|.
static bool reserve_pages(tarn__regions *regions, uint64_t to) {
  tarn__region *region = region_of(regions, to - 1);
  size_t need = (size_t)(to - region->base) / regions->page;
  size_t room = region->page_room != 0 ? region->page_room : 64;
  if (need <= region->page_room) return true;
  while (room < need)
    room *= 2;
  tarn_memory *pages =
      tarn__host_resize(region->pages, region->page_room, room, sizeof *pages);
  if (pages == NULL) return false;
  region->pages = pages;
  region->page_room = room;
  return true;
}

// Room for |more| spares beside those that there are.
static bool reserve_spares(tarn__regions *regions, size_t more) {
  size_t need = regions->spare_count + more;
  size_t room = regions->spare_room != 0 ? regions->spare_room : 16;
  if (need <= regions->spare_room) return true;
  while (room < need)
    room *= 2;
  tarn_memory *spares = tarn__host_resize(regions->spares, regions->spare_room,
                                          room, sizeof *spares);
  if (spares == NULL) return false;
  regions->spares = spares;
  regions->spare_room = room;
  return true;
}

static tarn_memory *handle_of(const tarn__regions *regions, uint64_t addr) {
  tarn__region *region = region_of(regions, addr);
  return &region->pages[(addr - region->base) / regions->page];
}

// --- moving memory ---------------------------------------------------------

// Handles on their way, while the lock is let go: nobody else knows of them.
typedef struct transit {
  tarn_memory *handles;
  size_t count;  // that there are
  size_t room;
  size_t created;  // of them, anew
  size_t mapped;   // the first so many are mapped
} transit;

static size_t pages_of(const tarn__regions *regions,
                       const tarn__stripped *stripped) {
  size_t size = 0;
  for (; stripped != NULL; stripped = stripped->next)
    size += stripped->extent->size;
  return size / regions->page;
}

// Room on the host for all that may come of it.
static tarn_status prepare(tarn__regions *regions, transit *t, size_t room) {
  *t = (transit){.room = room};
  if (room == 0) return TARN_OK;
  if (!reserve_spares(regions, room)) return TARN_E_NOMEM;
  t->handles = tarn__host_array(room, sizeof *t->handles);
  return t->handles != NULL ? TARN_OK : TARN_E_NOMEM;
}

static void collect_stripped(tarn__regions *regions,
                             const tarn__stripped *stripped, transit *t) {
  for (; stripped != NULL; stripped = stripped->next) {
    const tarn__extent *e = stripped->extent;
    for (size_t at = 0; at < e->size; at += regions->page) {
      tarn_memory *handle = handle_of(regions, e->offset + at);
      t->handles[t->count++] = *handle;
      *handle = 0;
      regions->mapped--;
    }
  }
}

static void collect_spares(tarn__regions *regions, transit *t, size_t wanted) {
  while (t->count < wanted && regions->spare_count > 0)
    t->handles[t->count++] = regions->spares[--regions->spare_count];
}

// A page that cannot be unmapped stays where it is, and its memory with it:
// both are lost. The first failure is returned.
static tarn_status unmap_all(tarn__regions *regions,
                             const tarn__stripped *stripped) {
  tarn_status first = TARN_OK;
  for (; stripped != NULL; stripped = stripped->next) {
    const tarn__extent *e = stripped->extent;
    tarn_status waited = stripped->serial != 0
                             ? tarn_stream_join(NULL, stripped->serial)
                             : TARN_OK;
    tarn_status status = tarn_range_unmap(regions->device, e->offset, e->size);
    if (first == TARN_OK) first = status != TARN_OK ? status : waited;
  }
  return first;
}

static tarn_status create_missing(tarn__regions *regions, transit *t,
                                  size_t wanted) {
  while (t->count < wanted) {
    tarn_status status = tarn__memory_create(regions->device, regions->page, 0,
                                             &t->handles[t->count]);
    if (status != TARN_OK) return status;
    t->count++;
    t->created++;
  }
  return TARN_OK;
}

static tarn_status map_all(tarn__regions *regions, transit *t, uint64_t from,
                           size_t wanted) {
  size_t page = regions->page;
  for (size_t i = 0; i < wanted; i++) {
    tarn_status status =
        tarn_range_map(regions->device, from + i * page, page, t->handles[i]);
    if (status != TARN_OK) return status;
    t->mapped++;
  }
  return tarn_range_set_access(regions->device, from, wanted * page,
                               regions->device, TARN_ACCESS_READ_WRITE);
}

static tarn_status ask_device(tarn__regions *regions,
                              const tarn__stripped *stripped, transit *t,
                              uint64_t from, size_t wanted) {
  tarn_status status = unmap_all(regions, stripped);
  if (status == TARN_OK) status = create_missing(regions, t, wanted);
  if (status == TARN_OK) status = map_all(regions, t, from, wanted);
  if (status != TARN_OK && t->mapped > 0) {
    (void)tarn_range_unmap(regions->device, from, t->mapped * regions->page);
    t->mapped = 0;
  }
  return status;
}

// What is mapped gets its place, all else is spare.
static void deliver(tarn__regions *regions, transit *t, uint64_t from) {
  size_t i = 0;
  for (; i < t->mapped; i++)
    *handle_of(regions, from + i * regions->page) = t->handles[i];
  regions->mapped += t->mapped;
  for (; i < t->count; i++)
    regions->spares[regions->spare_count++] = t->handles[i];
  regions->strategy->held += t->created * regions->page;
  tarn__source_charge(regions->strategy, t->created * regions->page);
}

// Asks the device, with the lock let go. What was stripped is unmapped whatever
// the limit says.
static tarn_status move_memory(tarn__regions *regions,
                               const tarn__stripped *stripped, transit *t,
                               uint64_t from, size_t wanted) {
  const tarn_pool *pool = regions->strategy->pool;
  size_t more = wanted > t->count ? (wanted - t->count) * regions->page : 0;
  tarn_status allowed =
      more > 0 ? tarn__source_check_limit(pool, more) : TARN_OK;
  if (allowed != TARN_OK) more = wanted = 0;
  tarn__source_begin_ask(regions->strategy, more);
  tarn_status status = ask_device(regions, stripped, t, from, wanted);
  tarn__source_end_ask(regions->strategy, more);
  return allowed != TARN_OK ? allowed : status;
}

tarn_status tarn__regions_map(tarn__regions *regions, tarn__request *request,
                              const tarn__stripped *stripped, uint64_t from,
                              uint64_t to, bool *out_unmapped) {
  size_t wanted = (size_t)(to - from) / regions->page;
  transit t = {.count = 0};
  tarn_status status =
      reserve_pages(regions, to)
          ? prepare(regions, &t, pages_of(regions, stripped) + wanted)
          : TARN_E_NOMEM;
  *out_unmapped = status == TARN_OK;
  if (status != TARN_OK) return status;
  collect_stripped(regions, stripped, &t);
  collect_spares(regions, &t, wanted);
  request->asked = true;
  status = move_memory(regions, stripped, &t, from, wanted);
  deliver(regions, &t, from);
  tarn__host_free_array(t.handles, t.room, sizeof *t.handles);
  return status;
}

// --- giving memory back ----------------------------------------------------

static tarn_status destroy_all(const tarn__regions *regions, const transit *t) {
  tarn_status first = TARN_OK;
  for (size_t i = 0; i < t->count; i++) {
    tarn_status status = tarn__memory_destroy(regions->device, t->handles[i]);
    if (first == TARN_OK) first = status;
  }
  return first;
}

tarn_status tarn__regions_shrink(tarn__regions *regions,
                                 const tarn__stripped *stripped,
                                 bool *out_unmapped) {
  transit t = {.count = 0};
  size_t count = pages_of(regions, stripped) + regions->spare_count;
  tarn_status status = prepare(regions, &t, count);
  *out_unmapped = status == TARN_OK;
  if (count == 0) return TARN_OK;
  if (status != TARN_OK) return status;
  collect_stripped(regions, stripped, &t);
  collect_spares(regions, &t, count);

  size_t size = count * regions->page;
  regions->strategy->held -= size;
  tarn__source_begin_return(regions->strategy, size);
  status = unmap_all(regions, stripped);
  tarn_status destroyed = destroy_all(regions, &t);
  tarn__source_end_return(regions->strategy, size);
  tarn__host_free_array(t.handles, t.room, sizeof *t.handles);
  return status != TARN_OK ? status : destroyed;
}
