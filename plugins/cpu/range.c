// Addresses: ranges that are reserved, and what is mapped in them.
//
//   ranges     [ reserved                        ]     [ reserved   ]
//   mappings       [ a       ][ b ]      [ c ]            [ d ]
//
// Invariants, whenever the lock is free:
//   * Ranges do not overlap, nor do mappings, each of which lies in one range;
//     where they begin, and their sizes, are multiples of the granularity.
//   * Bytes of a range at which nothing is mapped are reserved pages that
//     fault.
#include <inttypes.h>

#include "backing.h"
#include "base/hostmem.h"
#include "base/os_pages.h"
#include "base/status.h"
#include "common/extents.h"
#include "cpu.h"

static const size_t GRANULARITY = TARN__CPU_GRANULARITY;

typedef struct mapping {
  tarn__range_map_node node;   // |start|: the address; |value|: the access
  tarn__cpu_backing *backing;  // has its size
} mapping;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// |lock| guards both, backings and handles.
static tarn__common_extents ranges;
static tarn__range_map mappings;
static mapping *newest;  // unless it was taken out: most pages are mapped one
                         // behind the other

TARN__LOCK_AROUND_FORKS(LAST, ranges, &lock, unlock_ranges)

void tarn__cpu_lock_ranges(void) {
  lock_ranges();
}

void tarn__cpu_unlock_ranges(void) {
  unlock_ranges();
}

static void *at(uint64_t addr) {
  return (void *)(uintptr_t)addr;
}

// --- arguments -------------------------------------------------------------

static tarn_status check_multiples(uint64_t addr, size_t size) {
  if (size != 0 && addr % GRANULARITY == 0 && size % GRANULARITY == 0) {
    return TARN_OK;
  }
  return tarn__text_fail(TARN_E_INVALID,
                         "%zu bytes at 0x%" PRIx64 ": not multiples of %zu",
                         size, addr, GRANULARITY);
}

// The range that all of the bytes are in; NULL with a text if there is none.
static tarn__common_extent *find_range(uint64_t addr, size_t size) {
  if (check_multiples(addr, size) != TARN_OK) return NULL;
  tarn__common_extent *found = tarn__common_extents_find(&ranges, addr);
  if (found == NULL || size > found->size - (addr - found->node.start)) {
    (void)tarn__text_fail(TARN_E_INVALID,
                          "%zu bytes at 0x%" PRIx64 ": not in one range", size,
                          addr);
    return NULL;
  }
  return found;
}

static size_t size_of(const mapping *m) {
  return m->backing->size;
}

static uint64_t end_of(const mapping *m) {
  return m->node.start + size_of(m);
}

static bool holds(const mapping *m, uint64_t addr) {
  return m != NULL && addr - m->node.start < size_of(m);
}

// The last mapping that starts at |addr| or before; NULL: none.
static mapping *mapping_at(uint64_t addr) {
  return (mapping *)tarn__range_map_at(&mappings, addr);
}

// The mapping behind |m|, or the first if that is NULL, if it starts before
// |end|; else NULL.
static mapping *mapping_behind(const mapping *m, uint64_t end) {
  if (m != NULL && end_of(m) >= end) return NULL;
  tarn__range_map_node *next =
      tarn__range_map_behind(&mappings, m != NULL ? &m->node : NULL);
  return next != NULL && next->start < end ? (mapping *)next : NULL;
}

// The first mapping of the bytes from |addr| to |end|; NULL: none.
static mapping *first_mapping(uint64_t addr, uint64_t end) {
  mapping *m = mapping_at(addr);
  return holds(m, addr) ? m : mapping_behind(m, end);
}

// TARN_OK if the bytes are whole mappings, one behind the other, in a range;
// |*out_first| is the first of them.
static tarn_status check_mapped(uint64_t addr, size_t size,
                                mapping **out_first) {
  if (find_range(addr, size) == NULL) return TARN_E_INVALID;
  mapping *m = first_mapping(addr, addr + size);
  *out_first = m;
  for (uint64_t next = addr; next < addr + size;) {
    if (!holds(m, next)) {
      return tarn__text_fail(TARN_E_INVALID, "nothing is mapped at 0x%" PRIx64,
                             next);
    }
    if (m->node.start != next || size_of(m) > addr + size - next) {
      return tarn__text_fail(
          TARN_E_INVALID, "only part of the mapping of %zu bytes at 0x%" PRIx64,
          size_of(m), m->node.start);
    }
    next += size_of(m);
    m = mapping_behind(m, addr + size);
  }
  return TARN_OK;
}

// --- ranges ----------------------------------------------------------------

tarn_status tarn__cpu_range_granularity(int id, size_t *out_size) {
  *out_size = 0;
  TARN__TRY(tarn__cpu_check_id(id));
  *out_size = GRANULARITY;
  return TARN_OK;
}

static tarn_status reserve(size_t size, size_t align, uint64_t *out_addr) {
  void *addr = tarn__os_reserve_aligned(size, align);
  if (addr == NULL) {
    return tarn__text_fail(TARN_FULL, "no %zu bytes of addresses are left",
                           size);
  }
  tarn__common_run run = {(uintptr_t)addr, size};
  tarn__cpu_lock_ranges();
  bool noted = tarn__common_extents_add(&ranges, run, size, 1) != NULL;
  tarn__cpu_unlock_ranges();
  if (!noted) {
    tarn__os_unmap(addr, size);
    return tarn__text_fail(TARN_E_NOMEM, "no memory to note a range");
  }
  *out_addr = run.address;
  return TARN_OK;
}

// Large ranges so that memory mapped at multiples of a huge page in them can be
// on such.
static size_t align_of_range(size_t size, size_t asked) {
  size_t least = size >= TARN__OS_HUGE ? TARN__OS_HUGE : GRANULARITY;
  return asked < least ? least : asked;
}

tarn_status tarn__cpu_range_reserve(int id, size_t size, size_t align,
                                    uint64_t *out_addr) {
  *out_addr = 0;
  TARN__TRY(tarn__cpu_check_id(id));
  TARN__TRY(check_multiples(0, size));
  if (align != 0 && !tarn_is_power_of_two(align)) {
    return tarn__text_fail(TARN_E_INVALID, "an alignment of %zu bytes", align);
  }
  return reserve(size, align_of_range(size, align), out_addr);
}

static tarn_status release(uint64_t addr, size_t size) {
  tarn__common_extent *range = find_range(addr, size);
  if (range == NULL) return TARN_E_INVALID;
  if (range->node.start != addr || range->size != size) {
    return tarn__text_fail(TARN_E_INVALID,
                           "only part of the range of %zu bytes at 0x%" PRIx64,
                           range->size, range->node.start);
  }
  size_t mapped = 0;
  const mapping *m = first_mapping(addr, addr + size);
  for (; m != NULL; m = mapping_behind(m, addr + size))
    mapped += size_of(m);
  if (mapped != 0) {
    return tarn__text_fail(TARN_E_INVALID,
                           "%zu bytes are mapped in the range at 0x%" PRIx64,
                           mapped, addr);
  }
  tarn__common_extents_remove(&ranges, range);
  tarn__os_unmap(at(addr), size);
  return TARN_OK;
}

tarn_status tarn__cpu_range_release(int id, uint64_t addr, size_t size) {
  TARN__TRY(tarn__cpu_check_id(id));
  tarn__cpu_lock_ranges();
  tarn_status status = release(addr, size);
  tarn__cpu_unlock_ranges();
  return status;
}

// --- mappings --------------------------------------------------------------

static tarn_status find_backing(uint64_t memory, size_t size,
                                tarn__cpu_backing **out) {
  tarn__cpu_backing *backing = tarn__cpu_backing_find(memory);
  *out = backing;
  if (backing == NULL) {
    return tarn__text_fail(TARN_E_INVALID, "0x%" PRIx64 " is no memory",
                           memory);
  }
  if (backing->size != size) {
    return tarn__text_fail(TARN_E_INVALID, "%zu bytes for memory that has %zu",
                           size, backing->size);
  }
  if (backing->fd < 0 && backing->mappings != 0) {
    return tarn__text_fail(TARN_E_INVALID,
                           "memory that is not shareable is mapped already");
  }
  return TARN_OK;
}

static tarn_status map(uint64_t addr, size_t size, uint64_t memory) {
  tarn__cpu_backing *backing = NULL;
  TARN__TRY(find_backing(memory, size, &backing));
  if (find_range(addr, size) == NULL) return TARN_E_INVALID;
  bool is_next = newest != NULL && end_of(newest) == addr;
  mapping *before = is_next ? newest : mapping_at(addr);
  mapping *behind = mapping_behind(before, UINT64_MAX);
  const mapping *other = holds(before, addr) ? before : behind;
  if (other != NULL && other->node.start < addr + size) {
    return tarn__text_fail(TARN_E_INVALID,
                           "%zu bytes are mapped at 0x%" PRIx64 " already",
                           size_of(other), other->node.start);
  }
  mapping *m = tarn__host_alloc(sizeof *m);
  if (m == NULL) {
    return tarn__text_fail(TARN_E_NOMEM, "no memory to note a mapping");
  }
  if (!tarn__cpu_backing_put(backing, at(addr))) {
    tarn__host_free(m, sizeof *m);
    return tarn__cpu_refused("a mapping", size);
  }
  *m = (mapping){
      .node = {.start = addr, .value = TARN__OS_NONE},
      .backing = backing,
  };
  tarn__range_map_insert_between(
      &mappings, before != NULL ? &before->node : NULL,
      behind != NULL ? &behind->node : NULL, &m->node);
  newest = m;
  return TARN_OK;
}

tarn_status tarn__cpu_range_map(int id, uint64_t addr, size_t size,
                                uint64_t memory) {
  TARN__TRY(tarn__cpu_check_id(id));
  tarn__cpu_lock_ranges();
  tarn_status status = map(addr, size, memory);
  tarn__cpu_unlock_ranges();
  return status;
}

static void forget(mapping *m) {
  if (newest == m) newest = NULL;
  tarn__range_map_remove(&mappings, &m->node);
  tarn__host_free(m, sizeof *m);
}

// Where the kernel refuses one, those before it are out.
static tarn_status unmap(uint64_t addr, size_t size) {
  mapping *m = NULL;
  TARN__TRY(check_mapped(addr, size, &m));
  while (m != NULL) {
    mapping *next = mapping_behind(m, addr + size);
    if (!tarn__cpu_backing_take(m->backing, at(m->node.start), m->node.value)) {
      return tarn__cpu_refused("taking out a mapping", size_of(m));
    }
    forget(m);
    m = next;
  }
  return TARN_OK;
}

tarn_status tarn__cpu_range_unmap(int id, uint64_t addr, size_t size) {
  TARN__TRY(tarn__cpu_check_id(id));
  tarn__cpu_lock_ranges();
  tarn_status status = unmap(addr, size);
  tarn__cpu_unlock_ranges();
  return status;
}

// --- access ----------------------------------------------------------------

// The kernel may have gone part of the way before it refused.
static void restore_access(const mapping *m, uint64_t end) {
  for (; m != NULL; m = mapping_behind(m, end)) {
    if (!tarn__os_protect(at(m->node.start), size_of(m), m->node.value)) return;
  }
}

static tarn_status set_access(uint64_t addr, size_t size,
                              tarn__os_access access) {
  mapping *m = NULL;
  TARN__TRY(check_mapped(addr, size, &m));
  if (!tarn__os_protect(at(addr), size, access)) {
    tarn_status status = tarn__cpu_refused("access to a range", size);
    restore_access(m, addr + size);
    return status;
  }
  for (; m != NULL; m = mapping_behind(m, addr + size)) {
    m->node.value = access;
    if (access == TARN__OS_READ_WRITE) m->backing->written = true;
  }
  return TARN_OK;
}

static bool read_access(tarn_ext_access access, tarn__os_access *out) {
  switch (access) {
    case TARN_EXT_ACCESS_NONE:
      *out = TARN__OS_NONE;
      return true;
    case TARN_EXT_ACCESS_READ:
      *out = TARN__OS_READ;
      return true;
    case TARN_EXT_ACCESS_READ_WRITE:
      *out = TARN__OS_READ_WRITE;
      return true;
  }
  return false;
}

tarn_status tarn__cpu_range_set_access(int id, uint64_t addr, size_t size,
                                       int by, tarn_ext_access access) {
  tarn__os_access wanted = TARN__OS_NONE;
  TARN__TRY(tarn__cpu_check_id(id));
  TARN__TRY(tarn__cpu_check_id(by));
  if (!read_access(access, &wanted)) {
    return tarn__text_fail(TARN_E_INVALID, "%d is no access", (int)access);
  }
  tarn__cpu_lock_ranges();
  tarn_status status = set_access(addr, size, wanted);
  tarn__cpu_unlock_ranges();
  return status;
}

// --- what is known, and the end --------------------------------------------

bool tarn__cpu_range_query(uint64_t addr, uint64_t *out_base,
                           size_t *out_size) {
  tarn__cpu_lock_ranges();
  bool in_range = tarn__common_extents_find(&ranges, addr) != NULL;
  const mapping *m = mapping_at(addr);
  *out_base = holds(m, addr) ? m->node.start : 0;
  *out_size = holds(m, addr) ? size_of(m) : 0;
  tarn__cpu_unlock_ranges();
  return in_range;
}

void tarn__cpu_range_forget(void) {
  tarn__cpu_lock_ranges();
  tarn__cpu_backing_drop_all();
  tarn__common_extent *any = NULL;
  while ((any = tarn__common_extents_any(&ranges)) != NULL) {
    tarn__os_unmap(at(any->node.start), any->size);
    tarn__common_extents_remove(&ranges, any);
  }
  while (mappings.root != NULL) {
    mapping *m = (mapping *)mappings.root;
    tarn__cpu_backing_lose(m->backing);
    forget(m);
  }
  tarn__cpu_unlock_ranges();
}
