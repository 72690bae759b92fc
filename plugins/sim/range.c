// Ranges of addresses, and mappings in them.
//
// Invariants:
//   * A mapping lies in one range of its device, and mappings share no byte.
//   * A memory's |mappings| are those that refer to it, on whatever device; it
//     is there as long as one does.
//   * Memory that cannot be shared has one mapping at most.
//
// One lock guards ranges, mappings and memory of all devices: mappings of one
// refer to memory of another.
#include "base/status.h"
#include "extension.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// Not held around a fork: the functions of a child are refused before they come
// here, unless there were no devices at the fork.
void tarn__sim_lock_ranges(void) {
  pthread_mutex_lock(&lock);
}

void tarn__sim_unlock_ranges(void) {
  pthread_mutex_unlock(&lock);
}

// --- words -----------------------------------------------------------------

static tarn_status refuse(tarn__sim_call call, const tarn__sim_device *device,
                          tarn__common_run run, const char *words) {
  return tarn__sim_answer(
      tarn__sim_misuse("sim:%d: %s of %zu bytes at 0x%llx: %s", device->home.id,
                       tarn__sim_call_name(call), run.size,
                       (unsigned long long)run.address, words));
}

// --- finding bytes ---------------------------------------------------------

static uint64_t bit_of(const tarn__sim_device *device) {
  return UINT64_C(1) << device->home.id;
}

static bool is_allowed(const tarn__sim_mapping *mapping,
                       const tarn__sim_device *by, unsigned how) {
  bool writes = (how & TARN__SIM_TO_WRITE) != 0;
  uint64_t mask = writes ? mapping->writers : mapping->readers;
  return (mask & bit_of(by)) != 0;
}

static tarn__sim_piece piece_at(const tarn__common_extent *extent,
                                uint64_t address, size_t most) {
  const tarn__sim_mapping *mapping = extent->record;
  const tarn__sim_physical *memory = mapping->memory;
  size_t before = (size_t)(address - extent->node.start);
  size_t here = extent->size - before;
  return (tarn__sim_piece){
      tarn__sim_mirror(memory->home, memory->address) + before,
      here < most ? here : most};
}

// What |r| may have at |address|, |most| bytes at most.
static tarn__sim_verdict look_at(const tarn__sim_device *owner,
                                 const tarn__sim_device *by,
                                 const tarn__sim_request *r, uint64_t address,
                                 size_t most, tarn__sim_piece *out,
                                 uint64_t *serials) {
  tarn__common_extent *extent =
      tarn__common_extents_find(&owner->mappings, address);
  if (extent == NULL) return TARN__SIM_UNMAPPED;
  if (!is_allowed(extent->record, by, r->how)) return TARN__SIM_FORBIDDEN;
  *out = piece_at(extent, address, most);
  *serials = *serials * 31 + extent->serial;
  return TARN__SIM_FINE;
}

tarn__sim_finding tarn__sim_find_mapped(const tarn__sim_device *owner,
                                        const tarn__sim_device *by,
                                        const tarn__sim_request *r,
                                        uint64_t *serial,
                                        tarn__sim_piece *out) {
  tarn__sim_finding f = {.verdict = TARN__SIM_FINE};
  uint64_t address = (uintptr_t)r->address;
  bool piecewise = (r->how & TARN__SIM_PIECE) != 0;
  uint64_t serials = 0;
  while (f.before < r->size && (f.before == 0 || !piecewise)) {
    tarn__sim_piece piece = {NULL, 0};
    f.verdict = look_at(owner, by, r, address + f.before, r->size - f.before,
                        &piece, &serials);
    if (f.verdict != TARN__SIM_FINE) return f;
    if (f.before == 0) *out = piece;
    f.before += piece.size;
  }
  if (*serial != 0 && *serial != serials) f.verdict = TARN__SIM_CHANGED;
  *serial = serials;
  return f;
}

// --- ranges ----------------------------------------------------------------

tarn_status tarn__sim_range_granularity(int id, size_t *out_size) {
  tarn__sim_device *device = NULL;
  *out_size = 0;
  TARN__TRY(tarn__sim_admit(TARN__SIM_range_granularity, id, &device));
  if (tarn__sim_lacks_ranges()) {
    return tarn__text_fail(TARN_E_UNSUPPORTED,
                           "sim:%d: was asked to have no ranges", id);
  }
  *out_size = TARN__SIM_GRANULE;
  return TARN_OK;
}

static tarn_status check_reserve(const tarn__sim_device *device, size_t size,
                                 size_t align) {
  tarn__common_run run = {0, size};
  if (!tarn__sim_is_granular(size)) {
    return refuse(TARN__SIM_range_reserve, device, run,
                  "not a multiple of 64 KiB");
  }
  if (align == 0 || tarn_is_power_of_two(align)) return TARN_OK;
  return refuse(TARN__SIM_range_reserve, device, run,
                "an alignment that is no power of two");
}

tarn_status tarn__sim_range_reserve(int id, size_t size, size_t align,
                                    uint64_t *out_addr) {
  tarn__sim_device *device = NULL;
  *out_addr = 0;
  TARN__TRY(tarn__sim_admit(TARN__SIM_range_reserve, id, &device));
  TARN__TRY(check_reserve(device, size, align));
  size_t at_least = align > TARN__SIM_GRANULE ? align : TARN__SIM_GRANULE;
  tarn__sim_lock_ranges();
  const tarn__common_extent *taken =
      tarn__common_window_take(&device->ranges, size, at_least, NULL);
  if (taken != NULL) *out_addr = taken->node.start;
  tarn__sim_unlock_ranges();
  if (taken != NULL) return TARN_OK;
  return tarn__sim_full(device, size, "bytes of addresses");
}

tarn__common_extent *tarn__sim_range_around(const tarn__sim_device *device,
                                            tarn__common_run run) {
  size_t before = 0;
  tarn__common_extent *range =
      tarn__common_window_find(&device->ranges, run.address, &before);
  return range != NULL && run.size <= range->size - before ? range : NULL;
}

static const char *release_locked(tarn__sim_device *device,
                                  tarn__common_run run) {
  tarn__common_extent *range = tarn__sim_range_around(device, run);
  if (range == NULL || range->node.start != run.address ||
      range->size != run.size) {
    return "not a whole range of this device";
  }
  if (tarn__common_extents_in(&device->mappings, run) != NULL) {
    return "something is mapped there";
  }
  (void)tarn__common_window_give(&device->ranges, range);
  return NULL;
}

tarn_status tarn__sim_range_release(int id, uint64_t addr, size_t size) {
  tarn__sim_device *device = NULL;
  tarn__common_run run = {addr, size};
  TARN__TRY(tarn__sim_admit(TARN__SIM_range_release, id, &device));
  tarn__sim_lock_ranges();
  const char *words = release_locked(device, run);
  tarn__sim_unlock_ranges();
  if (words == NULL) return TARN_OK;
  return refuse(TARN__SIM_range_release, device, run, words);
}

// --- mapping ---------------------------------------------------------------

// The fault of mapping |memory| there; NULL: none.
static const char *check_map(const tarn__sim_device *device,
                             tarn__common_run run,
                             const tarn__sim_physical *memory) {
  if (memory == NULL) return "no such memory";
  if (memory->size == 0) return "memory that has been taken in parts";
  if (memory->size != run.size) return "not the size of the memory";
  if (!tarn__sim_is_granular(run.address)) return "not at a multiple of 64 KiB";
  if (tarn__sim_range_around(device, run) == NULL)
    return "not in a range of this device";
  if (tarn__common_extents_in(&device->mappings, run) != NULL) {
    return "something is mapped there already";
  }
  if (memory->file < 0 && memory->mappings != 0) {
    return "the memory is mapped elsewhere and not shareable";
  }
  return NULL;
}

static bool map_locked(tarn__sim_device *device, tarn__common_run run,
                       tarn__sim_physical *memory) {
  static uint64_t newest;
  tarn__common_extent *extent =
      tarn__common_extents_add(&device->mappings, run, run.size, newest + 1);
  if (extent == NULL) return false;
  newest++;
  *(tarn__sim_mapping *)extent->record = (tarn__sim_mapping){.memory = memory};
  memory->mappings++;
  return true;
}

tarn_status tarn__sim_range_map(int id, uint64_t addr, size_t size,
                                uint64_t memory) {
  tarn__sim_device *device = NULL;
  tarn__common_run run = {addr, size};
  bool mapped = false;
  TARN__TRY(tarn__sim_admit(TARN__SIM_range_map, id, &device));
  tarn__sim_lock_ranges();
  tarn__sim_physical *found = tarn__sim_physical_find(memory);
  const char *words = check_map(device, run, found);
  if (words == NULL) mapped = map_locked(device, run, found);
  tarn__sim_unlock_ranges();
  if (words != NULL) return refuse(TARN__SIM_range_map, device, run, words);
  tarn__sim_linger_mapping();
  return mapped ? TARN_OK : tarn__sim_no_resources(device, "host memory");
}

// --- parts -----------------------------------------------------------------
//
//   mapping   [ a                 ]
//   cut       [ a     ][ b        ]   two mappings, of memory without a handle
//   mirror    [ a     | b         ]   whose bytes stay where they were

bool tarn__sim_can_be_cut(const tarn__sim_mapping *mapping) {
  const tarn__sim_physical *memory = mapping->memory;
  return !tarn__sim_lacks_moves() && memory->file < 0;
}

const char *tarn__sim_check_mapped(const tarn__sim_device *device,
                                   tarn__common_run run) {
  uint64_t end = run.address + run.size;
  if (!tarn__sim_is_granular(run.size) || !tarn__sim_is_granular(run.address) ||
      tarn__sim_range_around(device, run) == NULL) {
    return "not in a range of this device";
  }
  for (uint64_t at = run.address; at < end;) {
    const tarn__common_extent *extent =
        tarn__common_extents_find(&device->mappings, at);
    if (extent == NULL) return "nothing is mapped in some of it";
    bool whole = extent->node.start >= run.address &&
                 extent->node.start + extent->size <= end;
    if (!whole && !tarn__sim_can_be_cut(extent->record))
      return "not whole mappings";
    at = extent->node.start + extent->size;
  }
  return NULL;
}

// Where a mapping begins or ends already nothing is done.
static bool cut_at(tarn__sim_device *device, uint64_t address) {
  tarn__common_extent *extent =
      tarn__common_extents_find(&device->mappings, address);
  if (extent == NULL || extent->node.start == address) return true;
  size_t size = (size_t)(address - extent->node.start);
  tarn__common_extent *rest =
      tarn__common_extents_cut(&device->mappings, extent, size);
  if (rest == NULL) return false;
  tarn__sim_mapping *first = extent->record;
  tarn__sim_mapping *other = rest->record;
  bool cut = tarn__sim_physical_cut(first->memory, size, &first->memory,
                                    &other->memory);
  if (!cut) tarn__common_extents_rejoin(&device->mappings, extent, rest);
  return cut;
}

bool tarn__sim_cut_out(tarn__sim_device *device, tarn__common_run run) {
  return cut_at(device, run.address) && cut_at(device, run.address + run.size);
}

// --- unmapping -------------------------------------------------------------

static void unmap_extent(tarn__sim_device *device,
                         tarn__common_extent *extent) {
  const tarn__sim_mapping *mapping = extent->record;
  tarn__sim_physical *memory = mapping->memory;
  tarn__common_extents_remove(&device->mappings, extent);
  memory->mappings--;
  tarn__sim_physical_settle(memory);
}

// What there is of |device| in |run|, which is whole mappings.
static void unmap_all(tarn__sim_device *device, tarn__common_run run) {
  tarn__common_extent *extent = NULL;
  while ((extent = tarn__common_extents_in(&device->mappings, run)) != NULL)
    unmap_extent(device, extent);
}

tarn_status tarn__sim_range_unmap(int id, uint64_t addr, size_t size) {
  tarn__sim_device *device = NULL;
  tarn__common_run run = {addr, size};
  TARN__TRY(tarn__sim_admit(TARN__SIM_range_unmap, id, &device));
  bool cut = false;
  tarn__sim_lock_ranges();
  const char *words = tarn__sim_check_mapped(device, run);
  if (words == NULL) cut = tarn__sim_cut_out(device, run);
  if (cut) unmap_all(device, run);
  tarn__sim_unlock_ranges();
  if (words != NULL) return refuse(TARN__SIM_range_unmap, device, run, words);
  tarn__sim_linger_mapping();
  return cut ? TARN_OK : tarn__sim_no_resources(device, "host memory");
}

// --- rights ----------------------------------------------------------------

static void set_right(tarn__sim_mapping *mapping, uint64_t bit,
                      tarn_ext_access access) {
  mapping->readers &= ~bit;
  mapping->writers &= ~bit;
  if (access != TARN_EXT_ACCESS_NONE) mapping->readers |= bit;
  if (access == TARN_EXT_ACCESS_READ_WRITE) mapping->writers |= bit;
}

static void set_rights(tarn__sim_device *device, tarn__common_run run,
                       uint64_t bit, tarn_ext_access access) {
  for (size_t done = 0; done < run.size;) {
    tarn__common_extent *extent =
        tarn__common_extents_find(&device->mappings, run.address + done);
    if (extent == NULL) return;  // never so in whole mappings
    set_right(extent->record, bit, access);
    done += extent->size;
  }
}

static bool is_access(tarn_ext_access access) {
  return access == TARN_EXT_ACCESS_NONE || access == TARN_EXT_ACCESS_READ ||
         access == TARN_EXT_ACCESS_READ_WRITE;
}

tarn_status tarn__sim_range_set_access(int id, uint64_t addr, size_t size,
                                       int by, tarn_ext_access access) {
  tarn__sim_call call = TARN__SIM_range_set_access;
  struct C_Device_st other = {by};
  tarn__sim_device *device = NULL;
  tarn__sim_device *user = NULL;
  tarn__common_run run = {addr, size};
  TARN__TRY(tarn__sim_admit(call, id, &device));
  TARN__TRY(tarn__sim_answer(tarn__sim_look_up(call, &other, &user)));
  if (!is_access(access)) return refuse(call, device, run, "no such right");
  bool cut = false;
  tarn__sim_lock_ranges();
  const char *words = tarn__sim_check_mapped(device, run);
  if (words == NULL) cut = tarn__sim_cut_out(device, run);
  if (cut) set_rights(device, run, bit_of(user), access);
  tarn__sim_unlock_ranges();
  if (words != NULL) return refuse(call, device, run, words);
  tarn__sim_linger_mapping();
  return cut ? TARN_OK : tarn__sim_no_resources(device, "host memory");
}

// --- the end ---------------------------------------------------------------

// Mappings on |device| whose memory is |home|'s; NULL: all.
static void unmap_memory_of(tarn__sim_device *device,
                            const tarn__sim_device *home) {
  uint64_t address = 0;
  tarn__common_extent *extent = NULL;
  while ((extent = tarn__common_extents_from(&device->mappings, address)) !=
         NULL) {
    const tarn__sim_mapping *mapping = extent->record;
    bool goes = home == NULL || mapping->memory->home == home;
    address = extent->node.start + extent->size;
    if (goes) unmap_extent(device, extent);
  }
}

void tarn__sim_ranges_close(tarn__sim_device *device) {
  tarn__sim_device *other = NULL;
  tarn__sim_lock_ranges();
  unmap_memory_of(device, NULL);
  for (size_t i = 0; (other = tarn__sim_nth(i)) != NULL; i++)
    unmap_memory_of(other, device);
  tarn__sim_physical_close(device);
  tarn__sim_unlock_ranges();
}
