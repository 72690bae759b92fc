// Memory without an address: bytes of a device's mirror at which no block will
// ever stand while it lives.
//
//   mirror   [ block | private bytes | block | file | ... ]
//                                              |
//                  another process's mirror  [ file ]
//
// Shareable memory is a file in memory, mapped over the bytes of the mirror; an
// import maps the same file over bytes of the importer's. The file never
// shrinks, and when the memory ends the bytes are made private before they are
// used again: a copy that comes too late finds other bytes, never none.
//
// A handle holds the number of the memory and that of its device, and is a key
// like an address is.
#include "base/hostmem.h"
#include "base/status.h"
#include "extension.h"

// Distinguishes our files from others' in memory.
static const char FILE_NAME[] = "tarn-sim-memory";

// Guarded by the lock of ranges.
static struct {
  tarn__common_extents
      all;  // by handle, those that are held; |record|: the memory
  uint64_t newest;
} memories;

static unsigned char *bytes_of(const tarn__sim_physical *memory) {
  return tarn__sim_mirror(memory->home, memory->address);
}

// --- beginning and end -----------------------------------------------------

// Where the kernel does not take the file back, the bytes stay taken until the
// device is closed: private memory must not be shared with another process.
static void give_bytes(const tarn__sim_physical *memory) {
  if (memory->file >= 0 &&
      !tarn__os_put_sparse(bytes_of(memory), memory->size)) {
    tarn__log(TARN_LOG_WARN, "sim:%d: %zu bytes of shared memory are left",
              memory->home->home.id, memory->size);
    return;
  }
  tarn__sim_give_bytes(memory->home, memory->address, memory->counted);
}

static void end_physical(tarn__sim_physical *memory) {
  if (memory->address != 0) give_bytes(memory);
  if (memory->file >= 0) tarn__os_close(memory->file);
  tarn__host_free(memory, sizeof *memory);
}

// --- handles ---------------------------------------------------------------

enum { DEVICE_SHIFT = 48 };

static uint64_t hold_locked(tarn__sim_physical *memory) {
  uint64_t device = (uint64_t)memory->home->home.id + 1;
  uint64_t handle = device << DEVICE_SHIFT | (memories.newest + 1);
  tarn__common_run key = {handle, 1};
  tarn__common_extent *entry =
      tarn__common_extents_add(&memories.all, key, 1, memories.newest + 1);
  if (entry == NULL) return 0;
  memories.newest++;
  entry->record = memory;
  memory->held = true;
  return handle;
}

static tarn_status hold(tarn__sim_physical *memory, uint64_t *out_memory) {
  const tarn__sim_device *device = memory->home;
  tarn__sim_lock_ranges();
  *out_memory = hold_locked(memory);
  tarn__sim_unlock_ranges();
  if (*out_memory != 0) return TARN_OK;
  end_physical(memory);
  return tarn__sim_no_resources(device, "host memory");
}

// |file| is the memory's from now on, even if this fails.
static tarn_status make_physical(tarn__sim_device *device, size_t size,
                                 int file, bool counted, uint64_t *out_memory) {
  tarn__sim_physical *made = tarn__host_alloc(sizeof *made);
  if (made == NULL) {
    if (file >= 0) tarn__os_close(file);
    return tarn__sim_no_resources(device, "host memory");
  }
  *made = (tarn__sim_physical){
      .home = device, .size = size, .file = file, .counted = counted};
  made->address = tarn__sim_take_bytes(device, size, counted);
  if (made->address == 0) {
    end_physical(made);
    return tarn__sim_full(device, size, "bytes of memory");
  }
  if (file >= 0 && !tarn__os_put_file(bytes_of(made), size, file)) {
    end_physical(made);
    return tarn__sim_no_resources(device, "mapping of a file");
  }
  return hold(made, out_memory);
}

tarn__sim_physical *tarn__sim_physical_find(uint64_t memory) {
  tarn__common_extent *entry = tarn__common_extents_find(&memories.all, memory);
  return entry != NULL ? entry->record : NULL;
}

void tarn__sim_physical_settle(tarn__sim_physical *memory) {
  if (!memory->held && memory->mappings == 0) end_physical(memory);
}

// One of the two is |memory| itself, unless its handle still has it.
bool tarn__sim_physical_cut(tarn__sim_physical *memory, size_t size,
                            tarn__sim_physical **out_first,
                            tarn__sim_physical **out_rest) {
  tarn__sim_physical *first =
      memory->held ? tarn__host_alloc(sizeof *first) : memory;
  tarn__sim_physical *rest = tarn__host_alloc(sizeof *rest);
  if (first == NULL || rest == NULL ||
      !tarn__sim_cut_bytes(memory->home, memory->address, size)) {
    if (first != NULL && first != memory) tarn__host_free(first, sizeof *first);
    if (rest != NULL) tarn__host_free(rest, sizeof *rest);
    return false;
  }
  *first = *rest = *memory;
  first->held = rest->held = false;
  first->size = size;
  rest->address += size;
  rest->size -= size;
  if (first != memory) {
    memory->address = memory->mappings = memory->size = 0;
  }
  *out_first = first;
  *out_rest = rest;
  return true;
}

static void drop_locked(tarn__common_extent *entry) {
  tarn__sim_physical *memory = entry->record;
  tarn__common_extents_remove(&memories.all, entry);
  memory->held = false;
  tarn__sim_physical_settle(memory);
}

void tarn__sim_physical_close(const tarn__sim_device *device) {
  uint64_t handle = 0;
  tarn__common_extent *entry = NULL;
  while ((entry = tarn__common_extents_from(&memories.all, handle)) != NULL) {
    const tarn__sim_physical *memory = entry->record;
    handle = entry->node.start + 1;
    if (memory->home == device) drop_locked(entry);
  }
}

// --- the extension ---------------------------------------------------------

static tarn_status refuse_size(tarn__sim_call call,
                               const tarn__sim_device *device, size_t size) {
  return tarn__sim_answer(
      tarn__sim_misuse("sim:%d: %s of %zu bytes: not a multiple of 64 KiB",
                       device->home.id, tarn__sim_call_name(call), size));
}

static tarn_status refuse_handle(tarn__sim_call call, int id, uint64_t memory,
                                 const char *words) {
  return tarn__sim_answer(tarn__sim_misuse("sim:%d: %s of 0x%llx: %s", id,
                                           tarn__sim_call_name(call),
                                           (unsigned long long)memory, words));
}

static tarn_status check_create(const tarn__sim_device *device, size_t size,
                                uint32_t flags) {
  tarn__sim_call call = TARN__SIM_memory_create;
  if (!tarn__sim_is_granular(size)) return refuse_size(call, device, size);
  if ((flags & ~TARN_EXT_MEMORY_SHAREABLE) == 0) return TARN_OK;
  return tarn__sim_answer(tarn__sim_misuse("sim:%d: memory_create: flags 0x%x",
                                           device->home.id, (unsigned)flags));
}

// The capacity is looked at first: a file of a size that no device has would
// be refused by the system in other words.
static tarn_status make_file(const tarn__sim_device *device, size_t size,
                             int *out_file) {
  if (size > device->capacity)
    return tarn__sim_full(device, size, "bytes of memory");
  *out_file = tarn__os_memory_file(FILE_NAME, size);
  return *out_file >= 0 ? TARN_OK
                        : tarn__sim_no_resources(device, "file in memory");
}

tarn_status tarn__sim_memory_create(int id, size_t size, uint32_t flags,
                                    uint64_t *out_memory) {
  tarn__sim_device *device = NULL;
  int file = -1;
  *out_memory = 0;
  TARN__TRY(tarn__sim_admit(TARN__SIM_memory_create, id, &device));
  TARN__TRY(check_create(device, size, flags));
  if (flags != 0) TARN__TRY(make_file(device, size, &file));
  return make_physical(device, size, file, true, out_memory);
}

tarn_status tarn__sim_memory_destroy(int id, uint64_t memory) {
  tarn__sim_device *device = NULL;
  TARN__TRY(tarn__sim_admit(TARN__SIM_memory_destroy, id, &device));
  tarn__sim_lock_ranges();
  tarn__common_extent *entry = tarn__common_extents_find(&memories.all, memory);
  if (entry != NULL) drop_locked(entry);
  tarn__sim_unlock_ranges();
  if (entry != NULL) return TARN_OK;
  return refuse_handle(TARN__SIM_memory_destroy, id, memory, "no such memory");
}

// --- other processes -------------------------------------------------------

tarn_status tarn__sim_memory_export(int id, uint64_t memory, int *out_fd) {
  tarn__sim_call call = TARN__SIM_memory_export;
  tarn__sim_device *device = NULL;
  *out_fd = 0;
  TARN__TRY(tarn__sim_admit(call, id, &device));
  tarn__sim_lock_ranges();
  const tarn__sim_physical *found = tarn__sim_physical_find(memory);
  bool shareable = found != NULL && found->file >= 0;
  int fd = shareable ? tarn__os_duplicate(found->file) : -1;
  tarn__sim_unlock_ranges();
  if (found == NULL) return refuse_handle(call, id, memory, "no such memory");
  if (!shareable) return refuse_handle(call, id, memory, "not shareable");
  if (fd < 0) return tarn__sim_no_resources(device, "file descriptor");
  *out_fd = fd;
  return TARN_OK;
}

static tarn_status check_import(const tarn__sim_device *device, int fd,
                                size_t size) {
  tarn__sim_call call = TARN__SIM_memory_import;
  if (!tarn__sim_is_granular(size)) return refuse_size(call, device, size);
  size_t there = tarn__os_memory_file_size(fd, FILE_NAME);
  if (there == size) return TARN_OK;
  if (there == 0) {
    return tarn__sim_answer(tarn__sim_misuse(
        "sim:%d: memory_import of %zu bytes: file descriptor %d is not memory "
        "of a simulated device",
        device->home.id, size, fd));
  }
  return tarn__sim_answer(tarn__sim_misuse(
      "sim:%d: memory_import of %zu bytes: file descriptor %d is memory of %zu "
      "bytes",
      device->home.id, size, fd, there));
}

// It counts towards the capacity of the device that made it.
tarn_status tarn__sim_memory_import(int id, int fd, size_t size,
                                    uint64_t *out_memory) {
  tarn__sim_device *device = NULL;
  *out_memory = 0;
  TARN__TRY(tarn__sim_admit(TARN__SIM_memory_import, id, &device));
  TARN__TRY(check_import(device, fd, size));
  int file = tarn__os_duplicate(fd);
  if (file < 0) return tarn__sim_no_resources(device, "file descriptor");
  return make_physical(device, size, file, false, out_memory);
}
