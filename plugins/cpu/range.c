// Addresses: ranges that are reserved, and what is mapped in them.
//
//   ranges     [ reserved                        ]     [ reserved   ]
//   mappings       [ a       ][ b ]      [ c ]            [ d ]
//
// Invariants, whenever the lock is free:
//   * Ranges do not overlap, nor do mappings, each of which lies in one range;
//     where they begin, and their sizes, are multiples of the granularity.
//   * Bytes of a range at which nothing is mapped are reserved pages, which are
//     zero. They fault, but for those of which the kernel refused it, or was
//     not asked, since it would have taken a mapping too many.
#include <inttypes.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/hostmem.h"
#include "base/os_pages.h"
#include "base/status.h"
#include "common/extents.h"
#include "cpu.h"
#include "mappings.h"

static const size_t GRANULARITY = TARN__CPU_GRANULARITY;

typedef tarn__cpu_mapping mapping;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// |lock| guards both, mappings, backings and handles.
static tarn__common_extents ranges;
static size_t most_mappings;  // 0: not known yet

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

// TARN_OK if the bytes from |addr| to |end| are mapped, one mapping behind the
// other, in a range, and whole ones but of private memory.
static tarn_status check_mapped(uint64_t addr, uint64_t end) {
  if (find_range(addr, (size_t)(end - addr)) == NULL) return TARN_E_INVALID;
  const mapping *m = tarn__cpu_mapping_first(addr, end);
  for (uint64_t next = addr; next < end;) {
    if (!tarn__cpu_mapping_holds(m, next)) {
      return tarn__text_fail(TARN_E_INVALID, "nothing is mapped at 0x%" PRIx64,
                             next);
    }
    bool whole = m->node.start >= addr && tarn__cpu_mapping_end(m) <= end;
    if (!whole && !tarn__cpu_mapping_is_private(m)) {
      return tarn__text_fail(
          TARN_E_INVALID, "only part of the mapping of %zu bytes at 0x%" PRIx64,
          m->size, m->node.start);
    }
    next = tarn__cpu_mapping_end(m);
    m = tarn__cpu_mapping_behind(m, end);
  }
  return TARN_OK;
}

// The same; then they are whole mappings, and |*out_first| is the first.
static tarn_status cut_out(uint64_t addr, uint64_t end, mapping **out_first) {
  *out_first = NULL;
  TARN__TRY(check_mapped(addr, end));
  if (!tarn__cpu_mapping_cut(addr) || !tarn__cpu_mapping_cut(end)) {
    tarn__cpu_mapping_join(addr);
    return tarn__text_fail(TARN_E_NOMEM, "no memory to note a mapping");
  }
  *out_first = tarn__cpu_mapping_first(addr, end);
  return TARN_OK;
}

// Joins all that meet from |addr| to |end|.
static void join_all(uint64_t addr, uint64_t end) {
  tarn__cpu_mapping_join(addr);
  mapping *m = tarn__cpu_mapping_at(addr);
  while (m != NULL && tarn__cpu_mapping_end(m) <= end) {
    uint64_t met = tarn__cpu_mapping_end(m);
    tarn__cpu_mapping_join(met);
    bool joined = tarn__cpu_mapping_end(m) != met;
    if (!joined) m = tarn__cpu_mapping_behind(m, end);
  }
}

// How many of the kernel's there may be: a program has others as well.
static size_t read_most_mappings(void) {
  const char *text = secure_getenv("TARN_CPU_MAPPINGS");
  size_t most = 0;
  bool told = text != NULL && tarn__bytes_parse(text, &most) && most != 0;
  return told ? most : tarn__os_most_mappings() / 4;
}

static bool are_many(void) {
  if (most_mappings == 0) most_mappings = read_most_mappings();
  return tarn__cpu_mappings_are_many(most_mappings);
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
  const mapping *m = tarn__cpu_mapping_first(addr, addr + size);
  for (; m != NULL; m = tarn__cpu_mapping_behind(m, addr + size))
    mapped += m->size;
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
  if (backing->spent) {
    return tarn__text_fail(TARN_E_INVALID,
                           "memory that has been taken in parts");
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

static tarn_status check_bare(uint64_t addr, size_t size) {
  const mapping *other = tarn__cpu_mapping_first(addr, addr + size);
  if (other == NULL) return TARN_OK;
  return tarn__text_fail(TARN_E_INVALID,
                         "%zu bytes are mapped at 0x%" PRIx64 " already",
                         other->size, other->node.start);
}

static tarn_status map(uint64_t addr, size_t size, uint64_t memory) {
  tarn__cpu_backing *backing = NULL;
  TARN__TRY(find_backing(memory, size, &backing));
  const tarn__common_extent *range = find_range(addr, size);
  if (range == NULL) return TARN_E_INVALID;
  TARN__TRY(check_bare(addr, size));
  mapping *m = tarn__cpu_mapping_add(range, addr, backing);
  if (m == NULL) {
    return tarn__text_fail(TARN_E_NOMEM, "no memory to note a mapping");
  }
  bool fresh = tarn__cpu_backing_is_zeros(backing);
  if (!tarn__cpu_backing_put(backing, at(addr))) {
    tarn_status status = tarn__cpu_refused("a mapping", size);
    tarn__cpu_mapping_forget(m);
    return status;
  }
  tarn__cpu_tell(addr, size,
                 fresh ? TARN__CPU_PAGES_FRESH : TARN__CPU_PAGES_USED);
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

// Bytes of whole mappings outlive them as long as there is a handle.
static bool is_kept(const mapping *m, uint64_t from, uint64_t end) {
  return m->backing != NULL && m->node.start >= from &&
         tarn__cpu_mapping_end(m) <= end &&
         tarn__cpu_backing_is_kept(m->backing);
}

// The end of what can go by one call from |from| on, which is in |m|.
static uint64_t end_of_run(const mapping *m, uint64_t from, uint64_t end) {
  uint64_t reached = tarn__cpu_mapping_end(m);
  if (is_kept(m, from, end)) return reached;
  while ((m = tarn__cpu_mapping_behind(m, end)) != NULL &&
         !is_kept(m, from, end))
    reached = tarn__cpu_mapping_end(m);
  return reached < end ? reached : end;
}

// A mapping is looked at, with its memory, while it is taken out.
static void end_mapping(mapping *m) {
  tarn__cpu_backing *backing = m->backing;
  tarn__cpu_mapping_forget(m);
  if (backing != NULL) tarn__cpu_backing_lose(backing);
}

// Of the first mapping there may be a part before, of the last one behind.
static void forget_run(mapping *m, uint64_t from, uint64_t end) {
  if (m->node.start < from) {
    mapping *first = m;
    m = tarn__cpu_mapping_behind(m, end);
    tarn__cpu_mapping_forget_back(first, from);
  }
  while (m != NULL) {
    mapping *next = tarn__cpu_mapping_behind(m, end);
    if (tarn__cpu_mapping_end(m) > end) {
      tarn__cpu_mapping_forget_front(m, end);
    } else {
      end_mapping(m);
    }
    m = next;
  }
}

// Whether the bytes are a part of |m|, and to reserve them would make more
// mappings of the kernel's.
static bool splits(const mapping *m, uint64_t from, uint64_t end) {
  if (!tarn__cpu_mapping_is_private(m) || tarn__cpu_mapping_end(m) < end)
    return false;
  bool before = m->node.start < from || tarn__cpu_mapping_is_joint(from);
  return before || tarn__cpu_mapping_end(m) > end ||
         tarn__cpu_mapping_is_joint(end);
}

// Where there are many mappings, a part of one stays as it is, but empty.
static bool drop_run(const mapping *m, uint64_t from, uint64_t end) {
  size_t size = (size_t)(end - from);
  bool emptied =
      are_many() && splits(m, from, end) && tarn__os_empty(at(from), size);
  return emptied || tarn__os_vacate(at(from), size);
}

static tarn_status take_run(mapping *m, uint64_t from, uint64_t end) {
  bool kept = is_kept(m, from, end);
  bool taken = kept
                   ? tarn__cpu_backing_take(m->backing, at(from), m->node.value)
                   : drop_run(m, from, end);
  if (!taken)
    return tarn__cpu_refused("taking out a mapping", (size_t)(end - from));
  tarn__cpu_tell(from, (size_t)(end - from), TARN__CPU_PAGES_GONE);
  if (kept) {
    tarn__cpu_mapping_forget(m);
  } else {
    forget_run(m, from, end);
  }
  return TARN_OK;
}

// Only what is taken out of the middle of a mapping needs memory of the host.
// Where the kernel refuses a part, those before it are out.
static tarn_status unmap(uint64_t addr, size_t size) {
  uint64_t end = addr + size;
  tarn_status status = TARN_OK;
  TARN__TRY(check_mapped(addr, end));
  mapping *m = tarn__cpu_mapping_first(addr, end);
  bool inside = m->node.start < addr && tarn__cpu_mapping_end(m) > end;
  if (inside && !tarn__cpu_mapping_cut(addr)) {
    return tarn__text_fail(TARN_E_NOMEM, "no memory to note a mapping");
  }
  while (addr < end && status == TARN_OK) {
    m = tarn__cpu_mapping_first(addr, end);
    uint64_t reached = end_of_run(m, addr, end);
    status = take_run(m, addr, reached);
    addr = reached;
  }
  if (status != TARN_OK && inside) tarn__cpu_mapping_join(end - size);
  return status;
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
  for (; m != NULL; m = tarn__cpu_mapping_behind(m, end)) {
    if (!tarn__os_protect(at(m->node.start), m->size, m->node.value)) return;
  }
}

static void note_access(mapping *m, uint64_t end, tarn__os_access access) {
  for (; m != NULL; m = tarn__cpu_mapping_behind(m, end)) {
    tarn__cpu_mapping_set_access(m, access);
    bool writes = access == TARN__OS_READ_WRITE;
    if (writes && m->backing != NULL) m->backing->written = true;
  }
}

static tarn_status set_access(uint64_t addr, size_t size,
                              tarn__os_access access) {
  mapping *m = NULL;
  uint64_t end = addr + size;
  tarn_status status = TARN_OK;
  TARN__TRY(cut_out(addr, end, &m));
  if (tarn__os_protect(at(addr), size, access)) {
    note_access(m, end, access);
  } else {
    status = tarn__cpu_refused("access to a range", size);
    restore_access(m, end);
  }
  join_all(addr, end);
  return status;
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

// --- moves -----------------------------------------------------------------

static tarn_status check_move(uint64_t from, uint64_t to, size_t size,
                              const tarn__common_extent **out_range) {
  *out_range = find_range(to, size);
  if (*out_range == NULL) return TARN_E_INVALID;
  TARN__TRY(check_mapped(from, from + size));
  TARN__TRY(check_bare(to, size));
  if (!are_many()) return TARN_OK;
  return tarn__text_fail(TARN_FULL,
                         "to move %zu bytes: the mappings of ranges may be %zu",
                         size, most_mappings);
}

static bool move_one(mapping *m, const tarn__common_extent *range,
                     uint64_t to) {
  if (!tarn__cpu_backing_move(m->backing, at(m->node.start), at(to), m->size,
                              m->node.value)) {
    return false;
  }
  tarn__cpu_mapping_shift(m, range, to);
  return true;
}

// What has been left has no memory, and need not be reserved by itself, but has
// to fault.
static void vacate(uint64_t addr, size_t size) {
  if (size == 0 || tarn__os_vacate(at(addr), size)) return;
  tarn__log(TARN_LOG_WARN, "cpu: %zu bytes at 0x%" PRIx64 " do not fault", size,
            addr);
}

static tarn_status move(uint64_t from, uint64_t to, size_t size,
                        size_t *out_moved) {
  const tarn__common_extent *range = NULL;
  mapping *m = NULL;
  size_t moved = 0;
  tarn_status status = TARN_OK;
  TARN__TRY(check_move(from, to, size, &range));
  TARN__TRY(cut_out(from, from + size, &m));
  while (m != NULL && status == TARN_OK) {
    mapping *next = tarn__cpu_mapping_behind(m, from + size);
    if (move_one(m, range, to + moved)) {
      moved += m->size;
    } else {
      status = tarn__cpu_refused("a move", m->size);
    }
    m = next;
  }
  vacate(from, moved);
  if (moved != 0) {
    tarn__cpu_tell(from, moved, TARN__CPU_PAGES_GONE);
    tarn__cpu_tell(to, moved, TARN__CPU_PAGES_USED);
    join_all(to, to + moved);
  }
  if (moved != size) join_all(from + moved, from + size);
  *out_moved = moved;
  return status;
}

tarn_status tarn__cpu_range_move(int id, uint64_t from, uint64_t to,
                                 size_t size, size_t *out_moved) {
  *out_moved = 0;
  TARN__TRY(tarn__cpu_check_id(id));
  if (!tarn__os_can_relocate()) {
    return tarn__text_fail(TARN_E_UNSUPPORTED, "moving memory needs Linux 5.7");
  }
  if (size == 0) return TARN_OK;
  tarn__cpu_lock_ranges();
  tarn_status status = move(from, to, size, out_moved);
  tarn__cpu_unlock_ranges();
  return status;
}

// --- what is known, and the end --------------------------------------------

bool tarn__cpu_range_query(uint64_t addr, uint64_t *out_base,
                           size_t *out_size) {
  tarn__cpu_lock_ranges();
  bool in_range = tarn__common_extents_find(&ranges, addr) != NULL;
  const mapping *m = tarn__cpu_mapping_at(addr);
  bool mapped = tarn__cpu_mapping_holds(m, addr);
  *out_base = mapped ? m->node.start : 0;
  *out_size = mapped ? m->size : 0;
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
  mapping *m = NULL;
  while ((m = tarn__cpu_mapping_any()) != NULL)
    end_mapping(m);
  most_mappings = 0;
  tarn__cpu_unlock_ranges();
}
