// Addresses: ranges that are reserved, and what is mapped in them.
//
//   range    [ granule | granule | granule | granule | ... ]
//   leaves   [ 0 ]---> [ a ][ a ][ b ][ . ] ...        512 granules each
//            [ 1 ]---> NULL                            nothing was mapped there
//
// Each granule of a mapping points to it, so that an address is found at once;
// the tables are made where something is mapped, and stay with the range.
//
// Invariants, whenever the lock is free:
//   * Ranges do not overlap; their begin, size and mappings are multiples of
//     the granularity.
//   * range.mapped is the number of granules that point to something.
//   * Granules that point to nothing are reserved pages that fault.
#include <inttypes.h>

#include "backing.h"
#include "base/hostmem.h"
#include "base/os_pages.h"
#include "common/extents.h"
#include "cpu.h"

enum { LEAF_GRANULES = 512 };

static const size_t GRANULARITY = TARN__CPU_GRANULARITY;

typedef struct mapping {
  uint64_t addr;
  tarn__cpu_backing *backing;  // has its size
  tarn__os_access access;
} mapping;

typedef struct leaf {
  mapping *granules[LEAF_GRANULES];
} leaf;

typedef struct range {
  uint64_t addr;
  size_t size;
  size_t mapped;
  size_t leaf_count;
  leaf *leaves[];
} range;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// |lock| guards them, backings and handles.
static tarn__common_extents ranges;  // |record|: a range

void tarn__cpu_lock_ranges(void) {
  pthread_mutex_lock(&lock);
}

void tarn__cpu_unlock_ranges(void) {
  pthread_mutex_unlock(&lock);
}

// Held across a fork, so that no child finds it taken, or the tables half
// changed.
TARN__WATCH_FORKS_LAST static void watch_forks(void) {
  pthread_atfork(tarn__cpu_lock_ranges, tarn__cpu_unlock_ranges,
                 tarn__cpu_unlock_ranges);
}

static void *at(uint64_t addr) {
  return (void *)(uintptr_t)addr;
}

static size_t size_of(const mapping *m) {
  return m->backing->size;
}

// --- granules --------------------------------------------------------------

// The granule's place in its leaf; NULL if there is no leaf.
static mapping **granule_at(range *r, uint64_t addr) {
  size_t i = (addr - r->addr) / GRANULARITY;
  leaf *l = r->leaves[i / LEAF_GRANULES];
  return l != NULL ? &l->granules[i % LEAF_GRANULES] : NULL;
}

static mapping *mapping_at(range *r, uint64_t addr) {
  mapping **granule = granule_at(r, addr);
  return granule != NULL ? *granule : NULL;
}

static bool make_leaves(range *r, uint64_t addr, size_t size) {
  size_t first = (addr - r->addr) / GRANULARITY / LEAF_GRANULES;
  size_t last = (addr - r->addr + size - 1) / GRANULARITY / LEAF_GRANULES;
  for (size_t i = first; i <= last; i++) {
    if (r->leaves[i] == NULL) r->leaves[i] = tarn__host_alloc(sizeof(leaf));
    if (r->leaves[i] == NULL) return false;
  }
  return true;
}

// Leaves are there. |m| NULL: nothing any more.
static void point(range *r, uint64_t addr, size_t size, mapping *m) {
  for (size_t done = 0; done < size; done += GRANULARITY) {
    *granule_at(r, addr + done) = m;
  }
  size_t count = size / GRANULARITY;
  r->mapped = m != NULL ? r->mapped + count : r->mapped - count;
}

// --- arguments -------------------------------------------------------------

static tarn_status check_multiples(uint64_t addr, size_t size) {
  if (size != 0 && addr % GRANULARITY == 0 && size % GRANULARITY == 0) {
    return TARN_OK;
  }
  return tarn__cpu_fail(TARN_E_INVALID,
                        "%zu bytes at 0x%" PRIx64 ": not multiples of %zu",
                        size, addr, GRANULARITY);
}

// The range that all of the bytes are in; NULL with a text if there is none.
static range *find_range(uint64_t addr, size_t size) {
  if (check_multiples(addr, size) != TARN_OK) return NULL;
  const tarn__common_extent *found = tarn__common_extents_find(&ranges, addr);
  if (found == NULL || size > found->size - (addr - found->node.start)) {
    (void)tarn__cpu_fail(TARN_E_INVALID,
                         "%zu bytes at 0x%" PRIx64 ": not in one range", size,
                         addr);
    return NULL;
  }
  return found->record;
}

// The mapping that begins at |addr| and ends by |end|; NULL with a text.
static mapping *find_whole(range *r, uint64_t addr, uint64_t end) {
  mapping *m = mapping_at(r, addr);
  if (m == NULL) {
    (void)tarn__cpu_fail(TARN_E_INVALID, "nothing is mapped at 0x%" PRIx64,
                         addr);
    return NULL;
  }
  if (m->addr == addr && size_of(m) <= end - addr) return m;
  (void)tarn__cpu_fail(TARN_E_INVALID,
                       "only part of the mapping of %zu bytes at 0x%" PRIx64,
                       size_of(m), m->addr);
  return NULL;
}

// The range of bytes that are whole mappings, one behind the other; NULL with
// a text.
static range *find_mapped(uint64_t addr, size_t size) {
  range *r = find_range(addr, size);
  if (r == NULL) return NULL;
  for (uint64_t next = addr; next < addr + size;) {
    const mapping *m = find_whole(r, next, addr + size);
    if (m == NULL) return NULL;
    next += size_of(m);
  }
  return r;
}

// --- ranges ----------------------------------------------------------------

tarn_status tarn__cpu_range_granularity(int id, size_t *out_size) {
  *out_size = 0;
  tarn_status status = tarn__cpu_check_id(id);
  if (status == TARN_OK) *out_size = GRANULARITY;
  return status;
}

static size_t bytes_of_range(size_t leaf_count) {
  return sizeof(range) + leaf_count * sizeof(leaf *);
}

static range *make_range(size_t size) {
  size_t granules = size / GRANULARITY;
  size_t leaves = (granules + LEAF_GRANULES - 1) / LEAF_GRANULES;
  range *r = tarn__host_alloc(bytes_of_range(leaves));
  if (r == NULL) return NULL;
  r->size = size;
  r->leaf_count = leaves;
  return r;
}

static void free_range(range *r) {
  for (size_t i = 0; i < r->leaf_count; i++) {
    tarn__host_free(r->leaves[i], sizeof(leaf));
  }
  tarn__host_free(r, bytes_of_range(r->leaf_count));
}

static tarn_status enter_range(range *r) {
  tarn__cpu_lock_ranges();
  tarn__common_extent *added = tarn__common_extents_add(
      &ranges, (tarn__common_run){r->addr, r->size}, r->size, 1);
  if (added != NULL) added->record = r;
  tarn__cpu_unlock_ranges();
  if (added != NULL) return TARN_OK;
  return tarn__cpu_fail(TARN_E_NOMEM, "no memory to note a range");
}

static tarn_status reserve(size_t size, size_t align, uint64_t *out_addr) {
  void *addr = tarn__os_reserve_aligned(size, align);
  if (addr == NULL) {
    return tarn__cpu_fail(TARN_FULL, "no %zu bytes of addresses are left",
                          size);
  }
  range *r = make_range(size);
  if (r == NULL) {
    tarn__os_unmap(addr, size);
    return tarn__cpu_fail(TARN_E_NOMEM, "no memory to note a range");
  }
  r->addr = (uint64_t)(uintptr_t)addr;
  uint64_t reserved = r->addr;
  tarn_status status = enter_range(r);
  if (status != TARN_OK) {
    free_range(r);
    tarn__os_unmap(addr, size);
    return status;
  }
  *out_addr = reserved;
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
  tarn_status status = tarn__cpu_check_id(id);
  if (status != TARN_OK) return status;
  status = check_multiples(0, size);
  if (status != TARN_OK) return status;
  if (align != 0 && !tarn_is_power_of_two(align)) {
    return tarn__cpu_fail(TARN_E_INVALID, "an alignment of %zu bytes", align);
  }
  return reserve(size, align_of_range(size, align), out_addr);
}

static tarn_status release(uint64_t addr, size_t size) {
  range *r = find_range(addr, size);
  if (r == NULL) return TARN_E_INVALID;
  if (r->addr != addr || r->size != size) {
    return tarn__cpu_fail(TARN_E_INVALID,
                          "only part of the range of %zu bytes at 0x%" PRIx64,
                          r->size, r->addr);
  }
  if (r->mapped != 0) {
    return tarn__cpu_fail(TARN_E_INVALID,
                          "%zu bytes are mapped in the range at 0x%" PRIx64,
                          r->mapped * GRANULARITY, addr);
  }
  tarn__common_extents_remove(&ranges,
                              tarn__common_extents_find(&ranges, addr));
  tarn__os_unmap(at(addr), size);
  free_range(r);
  return TARN_OK;
}

tarn_status tarn__cpu_range_release(int id, uint64_t addr, size_t size) {
  tarn_status status = tarn__cpu_check_id(id);
  if (status != TARN_OK) return status;
  tarn__cpu_lock_ranges();
  status = release(addr, size);
  tarn__cpu_unlock_ranges();
  return status;
}

// --- mappings --------------------------------------------------------------

static tarn_status find_backing(uint64_t memory, size_t size,
                                tarn__cpu_backing **out) {
  tarn__cpu_backing *backing = tarn__cpu_backing_find(memory);
  *out = backing;
  if (backing == NULL) {
    return tarn__cpu_fail(TARN_E_INVALID, "0x%" PRIx64 " is no memory", memory);
  }
  if (backing->size != size) {
    return tarn__cpu_fail(TARN_E_INVALID, "%zu bytes for memory that has %zu",
                          size, backing->size);
  }
  if (backing->fd < 0 && backing->mappings != 0) {
    return tarn__cpu_fail(TARN_E_INVALID,
                          "memory that is not shareable is mapped already");
  }
  return TARN_OK;
}

// The range of bytes at which nothing is mapped; NULL with a text.
static range *find_gap(uint64_t addr, size_t size) {
  range *r = find_range(addr, size);
  for (size_t done = 0; r != NULL && done < size; done += GRANULARITY) {
    const mapping *m = mapping_at(r, addr + done);
    if (m == NULL) continue;
    (void)tarn__cpu_fail(TARN_E_INVALID,
                         "%zu bytes are mapped at 0x%" PRIx64 " already",
                         size_of(m), m->addr);
    return NULL;
  }
  return r;
}

static tarn_status put(range *r, uint64_t addr, tarn__cpu_backing *backing) {
  mapping *m = tarn__host_alloc(sizeof *m);
  if (m == NULL || !make_leaves(r, addr, backing->size)) {
    tarn__host_free(m, sizeof *m);
    return tarn__cpu_fail(TARN_E_NOMEM, "no memory to note a mapping");
  }
  if (!tarn__cpu_backing_put(backing, at(addr))) {
    tarn__host_free(m, sizeof *m);
    return tarn__cpu_refused("a mapping", backing->size);
  }
  *m = (mapping){addr, backing, TARN__OS_NONE};
  point(r, addr, backing->size, m);
  return TARN_OK;
}

static tarn_status map(uint64_t addr, size_t size, uint64_t memory) {
  tarn__cpu_backing *backing = NULL;
  tarn_status status = find_backing(memory, size, &backing);
  if (status != TARN_OK) return status;
  range *r = find_gap(addr, size);
  return r != NULL ? put(r, addr, backing) : TARN_E_INVALID;
}

tarn_status tarn__cpu_range_map(int id, uint64_t addr, size_t size,
                                uint64_t memory) {
  tarn_status status = tarn__cpu_check_id(id);
  if (status != TARN_OK) return status;
  tarn__cpu_lock_ranges();
  status = map(addr, size, memory);
  tarn__cpu_unlock_ranges();
  return status;
}

static tarn_status take(range *r, mapping *m) {
  size_t size = size_of(m);
  if (!tarn__cpu_backing_take(m->backing, at(m->addr), m->access)) {
    return tarn__cpu_refused("taking out a mapping", size);
  }
  point(r, m->addr, size, NULL);
  tarn__host_free(m, sizeof *m);
  return TARN_OK;
}

// Where the kernel refuses one, those before it are out.
static tarn_status unmap(uint64_t addr, size_t size) {
  range *r = find_mapped(addr, size);
  tarn_status status = r != NULL ? TARN_OK : TARN_E_INVALID;
  for (uint64_t next = addr; status == TARN_OK && next < addr + size;) {
    mapping *m = mapping_at(r, next);
    next += size_of(m);
    status = take(r, m);
  }
  return status;
}

tarn_status tarn__cpu_range_unmap(int id, uint64_t addr, size_t size) {
  tarn_status status = tarn__cpu_check_id(id);
  if (status != TARN_OK) return status;
  tarn__cpu_lock_ranges();
  status = unmap(addr, size);
  tarn__cpu_unlock_ranges();
  return status;
}

// --- access ----------------------------------------------------------------

static void note_access(range *r, uint64_t addr, size_t size,
                        tarn__os_access access) {
  for (uint64_t next = addr; next < addr + size;) {
    mapping *m = mapping_at(r, next);
    m->access = access;
    if (access == TARN__OS_READ_WRITE) m->backing->written = true;
    next += size_of(m);
  }
}

// The kernel may have gone part of the way before it refused.
static void restore_access(range *r, uint64_t addr, size_t size) {
  for (uint64_t next = addr; next < addr + size;) {
    mapping *m = mapping_at(r, next);
    if (!tarn__os_protect(at(next), size_of(m), m->access)) return;
    next += size_of(m);
  }
}

static tarn_status set_access(uint64_t addr, size_t size,
                              tarn__os_access access) {
  range *r = find_mapped(addr, size);
  if (r == NULL) return TARN_E_INVALID;
  if (!tarn__os_protect(at(addr), size, access)) {
    tarn_status status = tarn__cpu_refused("access to a range", size);
    restore_access(r, addr, size);
    return status;
  }
  note_access(r, addr, size, access);
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
  tarn_status status = tarn__cpu_check_id(id);
  if (status == TARN_OK) status = tarn__cpu_check_id(by);
  if (status != TARN_OK) return status;
  if (!read_access(access, &wanted)) {
    return tarn__cpu_fail(TARN_E_INVALID, "%d is no access", (int)access);
  }
  tarn__cpu_lock_ranges();
  status = set_access(addr, size, wanted);
  tarn__cpu_unlock_ranges();
  return status;
}

// --- what is known, and the end --------------------------------------------

bool tarn__cpu_range_query(uint64_t addr, uint64_t *out_base,
                           size_t *out_size) {
  *out_base = 0;
  *out_size = 0;
  tarn__cpu_lock_ranges();
  const tarn__common_extent *found = tarn__common_extents_find(&ranges, addr);
  mapping *m = found != NULL ? mapping_at(found->record, addr) : NULL;
  if (m != NULL) {
    *out_base = m->addr;
    *out_size = size_of(m);
  }
  tarn__cpu_unlock_ranges();
  return found != NULL;
}

static void forget_mappings(range *r) {
  for (size_t done = 0; r->mapped != 0 && done < r->size;) {
    mapping *m = mapping_at(r, r->addr + done);
    done += GRANULARITY;
    if (m == NULL) continue;
    point(r, m->addr, size_of(m), NULL);
    tarn__cpu_backing_lose(m->backing);
    tarn__host_free(m, sizeof *m);
  }
}

void tarn__cpu_range_forget(void) {
  tarn__cpu_lock_ranges();
  tarn__cpu_backing_drop_all();
  tarn__common_extent *any = NULL;
  while ((any = tarn__common_extents_any(&ranges)) != NULL) {
    range *r = any->record;
    tarn__os_unmap(at(r->addr), r->size);
    forget_mappings(r);
    free_range(r);
    tarn__common_extents_remove(&ranges, any);
  }
  tarn__cpu_unlock_ranges();
}
