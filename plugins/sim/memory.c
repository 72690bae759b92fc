// Blocks of a device.
//
//   window   [ ........ | block 7 | .... | block 9 | ......... ]
//            the addresses that are handed out
//   mirror   [          | bytes   |      | bytes   |           ]
//            the memory, at the same offsets
//
// Accesses of the host to a device's address always fault: copies use the
// mirror, and no protection is ever changed. Only pages of the mirror that
// belong to a live block and were written are resident. A page returns to the
// system when its last block is freed.
//
// The window is several times as large as the capacity, so that a freed address
// stays unused for long, and a window without room is rare. A second one is for
// ranges: it has no mirror.
//
// Pinned host memory and unified memory are plain host memory, recorded to
// check that they are freed correctly.
#include "base/os.h"
#include "extension.h"

enum {
  BLOCK_ALIGN = 256,  // what device_min_chunk_size promises
  BLOCKS_FACTOR = 4,
  RANGES_FACTOR = 16,
};

// Addresses for ranges beyond the capacity: so many devices of so much memory
// leave room for each other in the 128 TiB that a process has.
static const size_t RANGES_MOST = (size_t)512 << 30;

// --- beginning and end -----------------------------------------------------

static size_t size_ranges(size_t whole) {
  size_t size = 0;
  bool many = !tarn_size_mul(whole, RANGES_FACTOR, &size) || size > RANGES_MOST;
  if (!many) return size;
  return whole > RANGES_MOST ? whole : RANGES_MOST;
}

static bool open_blocks(tarn__sim_device *device, size_t whole) {
  size_t span = 0;
  if (!tarn_size_mul(whole, BLOCKS_FACTOR, &span)) return false;
  if (!tarn__common_window_open(&device->blocks, span, span,
                                TARN__SIM_GRANULE)) {
    return false;
  }
  device->mirror = tarn__os_map_sparse(span);
  return device->mirror != NULL;
}

// If the system has too few addresses, it is ranges that go without.
static bool open_windows(tarn__sim_device *device, size_t capacity) {
  size_t whole = 0;
  return tarn_size_align_up(capacity, TARN__SIM_GRANULE, &whole) &&
         open_blocks(device, whole) &&
         tarn__common_window_open(&device->ranges, size_ranges(whole), 0,
                                  TARN__SIM_GRANULE);
}

bool tarn__sim_memory_open(tarn__sim_device *device, size_t capacity) {
  device->capacity = capacity;
  device->mappings.record_size = sizeof(tarn__sim_mapping);
  device->shared.record_size = sizeof(tarn__sim_shared);
  device->used = 0;
  device->serial = 0;
  device->freed_count = 0;
  if (open_windows(device, capacity)) return true;
  tarn__sim_memory_close(device);
  return false;
}

static size_t whole_pages(size_t size) {
  size_t whole = 0;
  return tarn_size_align_up(size, tarn__os_page(), &whole) ? whole : 0;
}

static void unmap_blocks(tarn__common_extents *blocks) {
  tarn__common_extent *extent = NULL;
  while ((extent = tarn__common_extents_any(blocks)) != NULL) {
    tarn__os_unmap((void *)(uintptr_t)extent->node.start, extent->size);
    tarn__common_extents_remove(blocks, extent);
  }
}

void tarn__sim_memory_close(tarn__sim_device *device) {
  unmap_blocks(&device->mapped[TARN__SIM_HOST]);
  unmap_blocks(&device->mapped[TARN__SIM_UNIFIED]);
  tarn__sim_shared_close(device);
  tarn__common_extents_clear(&device->registered);
  if (device->mirror != NULL) {
    tarn__os_unmap(device->mirror, device->blocks.size);
  }
  device->mirror = NULL;
  tarn__common_window_close(&device->blocks);
  tarn__common_window_close(&device->ranges);
  device->used = 0;
}

// --- taking ----------------------------------------------------------------

static C_Status begin_take(tarn__sim_call call, const C_Device device,
                           void **ptr, size_t size, tarn__sim_device **out) {
  if (ptr != NULL) *ptr = NULL;
  C_Status status = tarn__sim_enter(call, device, out);
  if (status != C_SUCCESS) return status;
  if (ptr != NULL && size != 0) return C_SUCCESS;
  return tarn__sim_misuse("sim:%d: %s of %zu bytes: %s", device->id,
                          tarn__sim_call_name(call), size,
                          ptr == NULL ? "nowhere to put it" : "no bytes");
}

// The bytes for which a block of |size| counts; 0 if that overflows.
static size_t counted(size_t size) {
  size_t whole = 0;
  return tarn_size_align_up(size, BLOCK_ALIGN, &whole) ? whole : 0;
}

// Large blocks have their pages for themselves, so that they can be shared.
static const tarn__common_extent *take_extent(tarn__sim_device *device,
                                              size_t size, size_t align) {
  size_t page = tarn__os_page();
  bool owns_pages = size >= TARN__SIM_OWNS_PAGES;
  size_t whole = owns_pages ? whole_pages(size) : counted(size);
  if (whole == 0) return NULL;
  if (owns_pages && align < page) align = page;
  const tarn__common_extent *taken = tarn__common_extents_take(
      &device->blocks.extents, whole, align, size, device->serial + 1);
  if (taken != NULL) device->serial++;
  return taken;
}

static uint64_t take_block_locked(tarn__sim_device *device, size_t size,
                                  size_t align) {
  size_t count = counted(size);
  if (count == 0 || count > device->capacity - device->used) return 0;
  const tarn__common_extent *taken = take_extent(device, size, align);
  if (taken == NULL) return 0;
  device->used += count;
  return taken->node.start;
}

uint64_t tarn__sim_take_import(tarn__sim_device *device, size_t size) {
  const tarn__common_extent *taken = take_extent(device, size, BLOCK_ALIGN);
  return taken != NULL ? taken->node.start : 0;
}

uint64_t tarn__sim_take_block(tarn__sim_device *device, size_t size,
                              size_t align) {
  pthread_mutex_lock(&device->lock);
  uint64_t address = take_block_locked(
      device, size, align > BLOCK_ALIGN ? align : (size_t)BLOCK_ALIGN);
  pthread_mutex_unlock(&device->lock);
  return address;
}

C_Status tarn__sim_device_memory_allocate(const C_Device device, void **ptr,
                                          size_t size) {
  tarn__sim_device *sim = NULL;
  C_Status status =
      begin_take(TARN__SIM_device_memory_allocate, device, ptr, size, &sim);
  if (status != C_SUCCESS) return status;
  uint64_t address = tarn__sim_take_block(sim, size, BLOCK_ALIGN);
  *ptr = (void *)(uintptr_t)address;
  if (address != 0) return C_SUCCESS;
  (void)tarn__sim_full(sim, size, "bytes of memory");
  return C_FAILED;
}

static uint64_t take_bytes_locked(tarn__sim_device *device, size_t size,
                                  bool counted) {
  if (counted && size > device->capacity - device->used) return 0;
  const tarn__common_extent *taken = tarn__common_extents_take(
      &device->blocks.extents, size, TARN__SIM_GRANULE, 0, device->serial + 1);
  if (taken == NULL) return 0;
  device->serial++;
  if (counted) device->used += size;
  return taken->node.start;
}

uint64_t tarn__sim_take_bytes(tarn__sim_device *device, size_t size,
                              bool counted) {
  pthread_mutex_lock(&device->lock);
  uint64_t address = take_bytes_locked(device, size, counted);
  pthread_mutex_unlock(&device->lock);
  return address;
}

static bool note_mapped(tarn__sim_device *device, tarn__sim_kind kind,
                        tarn__common_run run, size_t asked) {
  pthread_mutex_lock(&device->lock);
  bool noted = tarn__common_extents_add(&device->mapped[kind], run, asked,
                                        device->serial + 1) != NULL;
  if (noted) device->serial++;
  pthread_mutex_unlock(&device->lock);
  return noted;
}

static C_Status take_mapped(tarn__sim_call call, tarn__sim_kind kind,
                            const C_Device device, void **ptr, size_t size) {
  tarn__sim_device *sim = NULL;
  C_Status status = begin_take(call, device, ptr, size, &sim);
  if (status != C_SUCCESS) return status;
  size_t whole = whole_pages(size);
  void *mapped = whole != 0 ? tarn__os_map(whole) : NULL;
  if (mapped == NULL) return tarn__wordless(C_FAILED);
  tarn__common_run run = {(uintptr_t)mapped, whole};
  if (!note_mapped(sim, kind, run, size)) {
    tarn__os_unmap(mapped, whole);
    return tarn__wordless(C_FAILED);
  }
  *ptr = mapped;
  return C_SUCCESS;
}

C_Status tarn__sim_host_memory_allocate(const C_Device device, void **ptr,
                                        size_t size) {
  return take_mapped(TARN__SIM_host_memory_allocate, TARN__SIM_HOST, device,
                     ptr, size);
}

C_Status tarn__sim_unified_memory_allocate(const C_Device device, void **ptr,
                                           size_t size) {
  return take_mapped(TARN__SIM_unified_memory_allocate, TARN__SIM_UNIFIED,
                     device, ptr, size);
}

// --- giving back -----------------------------------------------------------

static void remember(tarn__sim_device *device,
                     const tarn__common_extent *block) {
  uint64_t at = device->freed_count++ % TARN__SIM_FREED_KEPT;
  device->freed[at] =
      (tarn__sim_freed){{block->node.start, block->asked}, block->serial};
}

// Gives back the pages that |block| was the last one on: those that it touches
// and that |room|, the free extent it has become a part of, has whole.
static void discard_pages(const tarn__sim_device *device,
                          tarn__common_run block, tarn__common_run room) {
  uint64_t page = tarn__os_page();
  uint64_t first = block.address & ~(page - 1);
  uint64_t end = (block.address + block.size + page - 1) & ~(page - 1);
  if (first < room.address) first += page;
  if (end > room.address + room.size) end -= page;
  if (first >= end) return;
  tarn__os_discard(tarn__sim_mirror(device, first), (size_t)(end - first));
}

static void give_run_locked(tarn__sim_device *device,
                            tarn__common_extent *extent) {
  tarn__common_run run = {extent->node.start, extent->size};
  tarn__common_run room = tarn__common_window_give(&device->blocks, extent);
  discard_pages(device, run, room);
}

// Where the kernel does not take a file back, the bytes stay taken until the
// device is closed: private memory must not be shared with another process.
static void give_unshared_locked(tarn__sim_device *device,
                                 tarn__common_extent *extent) {
  remember(device, extent);
  if (tarn__sim_unshare(device, extent)) {
    give_run_locked(device, extent);
  } else {
    extent->asked = 0;
  }
}

static void give_locked(tarn__sim_device *device, tarn__common_extent *extent) {
  device->used -= counted(extent->asked);
  give_unshared_locked(device, extent);
}

void tarn__sim_give_import(tarn__sim_device *device, uint64_t address) {
  tarn__common_extent *extent =
      tarn__common_extents_find(&device->blocks.extents, address);
  if (extent != NULL) give_unshared_locked(device, extent);
}

void tarn__sim_give_block(tarn__sim_device *device, uint64_t address,
                          uint64_t serial) {
  pthread_mutex_lock(&device->lock);
  tarn__common_extent *extent =
      tarn__common_extents_find(&device->blocks.extents, address);
  if (extent != NULL && extent->serial == serial) give_locked(device, extent);
  pthread_mutex_unlock(&device->lock);
}

void tarn__sim_give_bytes(tarn__sim_device *device, uint64_t address,
                          bool counted) {
  pthread_mutex_lock(&device->lock);
  tarn__common_extent *extent =
      tarn__common_extents_find(&device->blocks.extents, address);
  if (extent != NULL) {
    if (counted) device->used -= extent->size;
    give_run_locked(device, extent);
  }
  pthread_mutex_unlock(&device->lock);
}

bool tarn__sim_cut_bytes(tarn__sim_device *device, uint64_t address,
                         size_t size) {
  pthread_mutex_lock(&device->lock);
  tarn__common_extent *extent =
      tarn__common_extents_find(&device->blocks.extents, address);
  bool cut = extent != NULL &&
             tarn__common_extents_cut(&device->blocks.extents, extent, size);
  pthread_mutex_unlock(&device->lock);
  return cut;
}

static void drop_locked(tarn__sim_device *device, tarn__sim_kind kind,
                        tarn__common_extent *extent) {
  remember(device, extent);
  tarn__os_unmap((void *)(uintptr_t)extent->node.start, extent->size);
  tarn__common_extents_remove(&device->mapped[kind], extent);
}

static C_Status give_back(tarn__sim_call call, tarn__sim_kind kind,
                          const C_Device device, void *ptr, size_t size) {
  tarn__sim_device *sim = NULL;
  C_Status status = tarn__sim_enter(call, device, &sim);
  if (status != C_SUCCESS) return status;
  tarn__sim_request request = {sim, call, ptr, size, 0};
  pthread_mutex_lock(&sim->lock);
  tarn__sim_finding found =
      tarn__sim_find_block(sim, kind, (uintptr_t)ptr, size);
  bool fine = found.verdict == TARN__SIM_FINE;
  if (fine && kind == TARN__SIM_DEVICE) give_locked(sim, found.extent);
  if (fine && kind != TARN__SIM_DEVICE) drop_locked(sim, kind, found.extent);
  pthread_mutex_unlock(&sim->lock);
  return fine ? C_SUCCESS : tarn__sim_refuse_free(&request, &found);
}

C_Status tarn__sim_device_memory_deallocate(const C_Device device, void *ptr,
                                            size_t size) {
  return give_back(TARN__SIM_device_memory_deallocate, TARN__SIM_DEVICE, device,
                   ptr, size);
}

C_Status tarn__sim_host_memory_deallocate(const C_Device device, void *ptr,
                                          size_t size) {
  return give_back(TARN__SIM_host_memory_deallocate, TARN__SIM_HOST, device,
                   ptr, size);
}

C_Status tarn__sim_unified_memory_deallocate(const C_Device device, void *ptr,
                                             size_t size) {
  return give_back(TARN__SIM_unified_memory_deallocate, TARN__SIM_UNIFIED,
                   device, ptr, size);
}

// --- how much there is -----------------------------------------------------

C_Status tarn__sim_device_memory_stats(const C_Device device, size_t *total,
                                       size_t *available) {
  tarn__sim_device *sim = NULL;
  if (total == NULL || available == NULL) return tarn__wordless(C_ERROR);
  *total = *available = 0;
  C_Status status =
      tarn__sim_enter(TARN__SIM_device_memory_stats, device, &sim);
  if (status != C_SUCCESS) return status;
  pthread_mutex_lock(&sim->lock);
  *total = sim->capacity;
  *available = sim->capacity - sim->used;
  pthread_mutex_unlock(&sim->lock);
  return C_SUCCESS;
}
