// Memory: each block that the program was given, and where its bytes are.
//
// A block with an address is found by it, a freed one too, for a while: its
// address stays taken, and what uses it is told so.
//
// The address of device memory, and of coarse memory that is not mapped, is
// closed to the host. It is opened for kernels while they run, since their code
// holds addresses of its own.
#include "regions.h"

#include <stdlib.h>

#include "report.h"
#include "settings.h"
#include "table.h"

enum { GRAVES = 1024 };

static const char *const NAMES[STANDIN_SORTS] = {
    [STANDIN_PLAIN] = "buffer",
    [STANDIN_ADDRESS] = "buffer with an address",
    [STANDIN_COARSE] = "coarse memory",
    [STANDIN_FINE] = "fine memory",
    [STANDIN_USM_DEVICE] = "device memory",
    [STANDIN_USM_HOST] = "host memory",
    [STANDIN_USM_SHARED] = "shared memory",
};

// Guarded by the lock of objects. By address, the freed ones too.
static standin_table all;
static standin_region *graves[GRAVES];
static size_t next_grave;
static size_t counts[STANDIN_SORTS];
static uint64_t total;

const char *standin_sort_name(standin_sort sort) {
  return NAMES[sort];
}

// --- beginning and end -----------------------------------------------------

static bool is_closed(standin_sort sort) {
  if (sort == STANDIN_COARSE) return standin_number(STANDIN_GUARD) != 0;
  return sort == STANDIN_ADDRESS || sort == STANDIN_USM_DEVICE;
}

static bool is_full(const struct _cl_context *context, size_t size) {
  return standin_number(STANDIN_COUNTS_MEMORY) != 0 &&
         context->bytes + size > (uint64_t)standin_number(STANDIN_GLOBAL_SIZE);
}

static void count(standin_region *region) {
  counts[region->sort]++;
  total += region->size;
  region->context->bytes += region->size;
  standin_use(region->context);
}

static bool enter(standin_region *region) {
  if (region->sort == STANDIN_PLAIN) return true;
  region->address = (uint64_t)(uintptr_t)region->pages.shown;
  return standin_table_add(&all, region->address, region);
}

// Blocks are aligned to what a setting says, and to nothing more.
static size_t skew(void) {
  return (size_t)standin_number(STANDIN_MAX_ALIGN) % STANDIN_PAGE;
}

cl_int standin_region_take(cl_context context, standin_sort sort, size_t size,
                           standin_region **out) {
  if (is_full(context, size)) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  standin_region *made = calloc(1, sizeof *made);
  if (made == NULL) return CL_OUT_OF_HOST_MEMORY;
  made->sort = sort;
  made->context = context;
  made->size = size;
  if (!standin_pages_take(size, skew(), is_closed(sort), &made->pages)) {
    free(made);
    return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  }
  made->bytes = made->pages.mirror;
  if (!enter(made)) {
    standin_pages_drop(&made->pages);
    standin_pages_forget(&made->pages);
    free(made);
    return CL_OUT_OF_HOST_MEMORY;
  }
  count(made);
  *out = made;
  return CL_SUCCESS;
}

cl_int standin_region_over(cl_context context, void *bytes, size_t size,
                           standin_region **out) {
  standin_bytes lent = {0};
  cl_int error = standin_region_bytes(
      context, bytes, size, STANDIN_ANY_SVM | STANDIN_ANY_USM, true, &lent);
  if (error != CL_SUCCESS) return error;
  standin_region *made = calloc(1, sizeof *made);
  if (made == NULL) return CL_OUT_OF_HOST_MEMORY;
  made->sort = STANDIN_PLAIN;
  made->context = context;
  made->size = size;
  made->bytes = lent.at;
  made->lent = lent.region;
  if (lent.region != NULL) standin_region_use(lent.region);
  count(made);
  *out = made;
  return CL_SUCCESS;
}

static void end_maps(standin_region *region) {
  while (region->maps != NULL) {
    standin_map *map = region->maps;
    region->maps = map->next;
    if (map->is_copy) free(map->host);
    free(map);
  }
}

// The address stays taken until as many others have been freed since.
static void bury(standin_region *region) {
  standin_region *oldest = graves[next_grave];
  if (oldest != NULL) {
    standin_table_remove(&all, oldest->address);
    standin_pages_forget(&oldest->pages);
    free(oldest);
  }
  graves[next_grave] = region;
  next_grave = (next_grave + 1) % GRAVES;
}

static void end_region(standin_region *region) {
  end_maps(region);
  region->context->bytes -= region->size;
  standin_unuse(region->context);
  if (region->pages.shown != NULL) standin_pages_drop(&region->pages);
  region->bytes = NULL;
  if (region->lent != NULL) standin_region_unuse(region->lent);
  if (region->address != 0) {
    bury(region);
    return;
  }
  if (region->pages.shown != NULL) standin_pages_forget(&region->pages);
  free(region);
}

static void end_if_unused(standin_region *region) {
  if (region->freed && region->uses == 0) end_region(region);
}

void standin_region_free(standin_region *region) {
  region->freed = true;
  counts[region->sort]--;
  total -= region->size;
  end_if_unused(region);
}

void standin_region_use(standin_region *region) {
  region->uses++;
}

void standin_region_unuse(standin_region *region) {
  region->uses--;
  end_if_unused(region);
}

size_t standin_region_count(int sorts) {
  size_t result = 0;
  for (int s = 0; s < STANDIN_SORTS; s++) {
    if ((sorts & 1 << s) != 0) result += counts[s];
  }
  return result;
}

uint64_t standin_region_total(void) {
  return total;
}

// --- by address ------------------------------------------------------------

standin_region *standin_region_at(uint64_t address) {
  standin_region *region = standin_table_below(&all, address);
  if (region == NULL) return NULL;
  return address - region->address < region->pages.size ? region : NULL;
}

void standin_region_each(cl_context context, int sorts,
                         void (*visit)(standin_region *region, void *visitor),
                         void *visitor) {
  for (size_t i = 0; i < all.count; i++) {
    standin_region *region = all.entries[i].value;
    if (region->freed || region->context != context) continue;
    if ((sorts & 1 << region->sort) != 0) visit(region, visitor);
  }
}

static cl_int check_region(const standin_region *region, cl_context context,
                           const void *address, size_t size) {
  if (region->freed) {
    return standin_wrong(CL_INVALID_VALUE, "%p is in %s that was freed",
                         address, NAMES[region->sort]);
  }
  if (region->context != context) {
    return standin_wrong(CL_INVALID_CONTEXT, "%p is in %s of another context",
                         address, NAMES[region->sort]);
  }
  uint64_t offset = (uint64_t)(uintptr_t)address - region->address;
  if (offset <= region->size && size <= region->size - offset) {
    return CL_SUCCESS;
  }
  return standin_wrong(
      CL_INVALID_VALUE, "%zu bytes at %p: byte %llu of %s of %zu bytes", size,
      address, (unsigned long long)offset, NAMES[region->sort], region->size);
}

static cl_int plain_bytes(const void *address, size_t size,
                          standin_bytes *out) {
  if (address == NULL) {
    return standin_wrong(CL_INVALID_VALUE, "%zu bytes at NULL", size);
  }
  *out =
      (standin_bytes){.at = (unsigned char *)(uintptr_t)address, .size = size};
  return CL_SUCCESS;
}

static void region_bytes(standin_region *region, const void *address,
                         size_t size, standin_bytes *out) {
  size_t offset = (size_t)((uint64_t)(uintptr_t)address - region->address);
  *out = (standin_bytes){region, region->bytes + offset, offset, size};
}

cl_int standin_region_bytes(cl_context context, const void *address,
                            size_t size, int sorts, bool plain_too,
                            standin_bytes *out) {
  standin_region *region = standin_region_at((uint64_t)(uintptr_t)address);
  if (region == NULL && plain_too) return plain_bytes(address, size, out);
  if (region == NULL) {
    return standin_wrong(CL_INVALID_VALUE, "%p is no memory of the driver",
                         address);
  }
  cl_int error = check_region(region, context, address, size);
  if (error != CL_SUCCESS) return error;
  if ((sorts & 1 << region->sort) == 0) {
    return standin_wrong(CL_INVALID_VALUE, "%p is in %s", address,
                         NAMES[region->sort]);
  }
  region_bytes(region, address, size, out);
  return CL_SUCCESS;
}

static bool is_mapped(const standin_region *region, size_t offset,
                      size_t size) {
  for (const standin_map *map = region->maps; map != NULL; map = map->next) {
    if (offset >= map->offset && offset + size <= map->offset + map->size) {
      return true;
    }
  }
  return false;
}

cl_int standin_region_host(cl_context context, const void *address, size_t size,
                           standin_bytes *out) {
  int sorts = STANDIN_ANY_SVM | 1 << STANDIN_USM_HOST | 1 << STANDIN_USM_SHARED;
  cl_int error = standin_region_bytes(context, address, size, sorts, true, out);
  if (error != CL_SUCCESS || out->region == NULL) return error;
  if (out->region->sort != STANDIN_COARSE ||
      is_mapped(out->region, out->offset, size)) {
    return CL_SUCCESS;
  }
  return standin_wrong(CL_INVALID_VALUE,
                       "%p is in coarse memory that is not mapped", address);
}

// --- what the host reaches -------------------------------------------------

static bool has_two_addresses(const standin_region *region) {
  return region->pages.mirror != region->pages.shown;
}

void standin_region_open(standin_region *region) {
  if (region->opens++ > 0 || !has_two_addresses(region)) return;
  standin_pages_open(&region->pages, 0, region->pages.size);
}

// |page| is counted from the beginning of the pages, in bytes.
static bool page_is_mapped(const standin_region *region, size_t page) {
  for (const standin_map *map = region->maps; map != NULL; map = map->next) {
    size_t first = map->offset + region->pages.skew;
    if (map->is_active && first < page + STANDIN_PAGE &&
        first + map->size > page) {
      return true;
    }
  }
  return false;
}

// Closes the pages with these bytes that no mapping needs.
static void close_pages(const standin_region *region, size_t offset,
                        size_t size) {
  size_t end = region->pages.skew + offset + size;
  size_t page = (region->pages.skew + offset) & ~(size_t)(STANDIN_PAGE - 1);
  for (; page < end; page += STANDIN_PAGE) {
    size_t run = page;
    while (run < end && !page_is_mapped(region, run))
      run += STANDIN_PAGE;
    if (run > page) standin_pages_close(&region->pages, page, run - page);
    page = run;
  }
}

void standin_region_close(standin_region *region) {
  if (--region->opens > 0 || !has_two_addresses(region)) return;
  close_pages(region, 0, region->pages.size);
}

void standin_region_map(standin_region *region, standin_map *map) {
  map->is_active = true;
  if (!has_two_addresses(region) || map->is_copy) return;
  standin_pages_open(&region->pages, map->offset, map->size);
}

void standin_region_unmap(standin_region *region, standin_map *map) {
  map->is_active = false;
  if (!has_two_addresses(region) || map->is_copy || region->opens > 0) return;
  close_pages(region, map->offset, map->size);
}
