// Blocks that processes share by handles, on a device without ranges.
//
//   exporter   mirror [ block | file | block ]    handle: process, descriptor,
//                                 |                        inode of the file
//   importer   mirror [ block | block | file ]
//
// A block's bytes move into a file in memory when it is exported; it must have
// its pages for itself. The handle names the exporter's descriptor of that
// file. An importer opens the same file through /proc, which the kernel allows
// to the same user only, and checks that it is the right one. A handle is a
// name and keeps nothing: the file goes with its last descriptor and mapping,
// however processes end.
#include <errno.h>
#include <string.h>

#include "base/os_pages.h"
#include "base/os_peer.h"
#include "base/status.h"
#include "extension.h"

// Distinguishes our files from others' in memory.
static const char FILE_NAME[] = "tarn-sim-block";

typedef struct handle {
  char magic[16];
  uint64_t size;  // of the block
  tarn__os_file_name file;
} handle;

static const char MAGIC[16] = "tarn-sim handle";

_Static_assert(sizeof(handle) <= TARN_EXT_HANDLE_SIZE, "it fits");

// --- words -----------------------------------------------------------------

static tarn_status refuse(tarn__sim_call call, int id, uint64_t addr,
                          size_t size, const char *words) {
  return tarn__sim_answer(tarn__sim_misuse(
      "sim:%d: %s of %zu bytes at 0x%llx: %s", id, tarn__sim_call_name(call),
      size, (unsigned long long)addr, words));
}

// --- the book --------------------------------------------------------------

static tarn__sim_shared *find_shared(const tarn__sim_device *device,
                                     uint64_t address) {
  tarn__common_extent *entry =
      tarn__common_extents_find(&device->shared, address);
  return entry != NULL ? entry->record : NULL;
}

bool tarn__sim_is_import(const tarn__sim_device *device, uint64_t address) {
  const tarn__sim_shared *shared = find_shared(device, address);
  return shared != NULL && shared->imported;
}

// |device->shared| owns |file| from now on, unless this fails.
static bool note(tarn__sim_device *device, tarn__common_run run,
                 tarn__sim_shared shared) {
  tarn__common_extent *entry =
      tarn__common_extents_add(&device->shared, run, run.size, 1);
  if (entry != NULL) *(tarn__sim_shared *)entry->record = shared;
  return entry != NULL;
}

static void drop_shared(tarn__sim_device *device, tarn__common_extent *entry) {
  const tarn__sim_shared *shared = entry->record;
  tarn__os_close(shared->file);
  tarn__common_extents_remove(&device->shared, entry);
}

bool tarn__sim_unshare(tarn__sim_device *device,
                       const tarn__common_extent *block) {
  tarn__common_extent *entry =
      tarn__common_extents_find(&device->shared, block->node.start);
  if (entry == NULL) return true;
  drop_shared(device, entry);
  if (tarn__os_put_sparse(tarn__sim_mirror(device, block->node.start),
                          block->size)) {
    return true;
  }
  tarn__log(TARN_LOG_WARN, "sim:%d: %zu bytes of shared memory are left",
            device->home.id, block->size);
  return false;
}

void tarn__sim_shared_close(tarn__sim_device *device) {
  tarn__common_extent *entry = NULL;
  while ((entry = tarn__common_extents_any(&device->shared)) != NULL)
    drop_shared(device, entry);
}

// --- export ----------------------------------------------------------------

// A file with the bytes of |block|; -1 if the system refuses.
static int copy_to_file(const tarn__sim_device *device,
                        const tarn__common_extent *block) {
  int file = tarn__os_shared_file(FILE_NAME, block->size);
  if (file < 0) return -1;
  void *bytes = tarn__os_map_shared(file, block->size);
  if (bytes != NULL) {
    memcpy(bytes, tarn__sim_mirror(device, block->node.start), block->size);
    tarn__os_unmap(bytes, block->size);
    return file;
  }
  tarn__os_close(file);
  return -1;
}

static bool share_locked(tarn__sim_device *device,
                         const tarn__common_extent *block) {
  tarn__common_run run = {block->node.start, block->size};
  if (find_shared(device, block->node.start) != NULL) return true;
  int file = copy_to_file(device, block);
  if (file < 0) return false;
  if (!note(device, run, (tarn__sim_shared){.file = file})) {
    tarn__os_close(file);
    return false;
  }
  if (tarn__os_put_file(tarn__sim_mirror(device, block->node.start),
                        block->size, file)) {
    return true;
  }
  drop_shared(device,
              tarn__common_extents_find(&device->shared, block->node.start));
  return false;
}

static bool fill_handle(const tarn__sim_device *device, uint64_t addr,
                        size_t size, void *out_handle) {
  handle made = {.size = size};
  const tarn__sim_shared *shared = find_shared(device, addr);
  if (shared == NULL || !tarn__os_name_file(shared->file, &made.file)) {
    return false;
  }
  memcpy(made.magic, MAGIC, sizeof made.magic);
  memcpy(out_handle, &made, sizeof made);
  return true;
}

static tarn_status export_locked(tarn__sim_device *device, uint64_t addr,
                                 size_t size, void *out_handle) {
  tarn__sim_finding found =
      tarn__sim_find_block(device, TARN__SIM_DEVICE, addr, size);
  if (found.verdict != TARN__SIM_FINE) return TARN_E_INVALID;
  if (size < TARN__SIM_OWNS_PAGES) return TARN_E_UNSUPPORTED;
  bool shared = share_locked(device, found.extent) &&
                fill_handle(device, addr, size, out_handle);
  return shared ? TARN_OK : TARN_E_NOMEM;
}

tarn_status tarn__sim_allocation_export(int id, uint64_t addr, size_t size,
                                        void *out_handle) {
  tarn__sim_call call = TARN__SIM_allocation_export;
  tarn__sim_device *device = NULL;
  memset(out_handle, 0, TARN_EXT_HANDLE_SIZE);
  TARN__TRY(tarn__sim_admit(call, id, &device));
  pthread_mutex_lock(&device->lock);
  tarn_status status = export_locked(device, addr, size, out_handle);
  pthread_mutex_unlock(&device->lock);
  if (status == TARN_E_INVALID) {
    return refuse(call, id, addr, size, "no block of that size begins there");
  }
  if (status == TARN_E_UNSUPPORTED) {
    return tarn__text_fail(status,
                           "sim:%d: a block of %zu bytes shares its pages: "
                           "from 64 KiB on they do not",
                           id, size);
  }
  if (status == TARN_OK) return TARN_OK;
  return tarn__sim_no_resources(device, "file in memory");
}

// --- import ----------------------------------------------------------------

// Opens the block that |given| names. TARN_E_INVALID: it is not a handle, or
// names no block.
static tarn_status open_handle(const tarn__sim_device *device,
                               const void *given, size_t size, int *out_file) {
  handle h;
  size_t whole = 0;
  memcpy(&h, given, sizeof h);
  if (memcmp(h.magic, MAGIC, sizeof h.magic) != 0 || h.size != size ||
      size < TARN__SIM_OWNS_PAGES ||
      !tarn_size_align_up(size, tarn__os_page(), &whole)) {
    return TARN_E_INVALID;
  }
  *out_file = tarn__os_open_named(&h.file);
  if (*out_file < 0 && (errno == EMFILE || errno == ENFILE)) {
    return tarn__sim_no_resources(device, "file descriptor");
  }
  if (*out_file < 0) return TARN_E_INVALID;
  if (tarn__os_is_memory_file(*out_file, FILE_NAME, whole)) return TARN_OK;
  tarn__os_close(*out_file);
  return TARN_E_INVALID;
}

// Takes |file| over, or closes it if this fails.
static tarn_status put_locked(tarn__sim_device *device, size_t size, int file,
                              uint64_t *out_addr) {
  uint64_t address = tarn__sim_take_import(device, size);
  if (address == 0) {
    tarn__os_close(file);
    return TARN_FULL;
  }
  const tarn__common_extent *block =
      tarn__common_extents_find(&device->blocks.extents, address);
  tarn__common_run run = {address, block->size};
  tarn__sim_shared shared = {.file = file, .imported = true};
  bool noted = note(device, run, shared);
  if (noted &&
      tarn__os_put_file(tarn__sim_mirror(device, address), run.size, file)) {
    *out_addr = address;
    return TARN_OK;
  }
  tarn__sim_give_import(device, address);
  if (!noted) tarn__os_close(file);
  return TARN_E_NOMEM;
}

// It counts towards the capacity of the device that made it.
tarn_status tarn__sim_allocation_import(int id, const void *given, size_t size,
                                        uint64_t *out_addr) {
  tarn__sim_call call = TARN__SIM_allocation_import;
  tarn__sim_device *device = NULL;
  int file = -1;
  *out_addr = 0;
  TARN__TRY(tarn__sim_admit(call, id, &device));
  tarn_status status = open_handle(device, given, size, &file);
  if (status == TARN_E_INVALID) {
    return refuse(call, id, 0, size,
                  "the handle is none, or names no block of that size that is "
                  "there");
  }
  if (status != TARN_OK) return status;
  pthread_mutex_lock(&device->lock);
  status = put_locked(device, size, file, out_addr);
  pthread_mutex_unlock(&device->lock);
  if (status == TARN_OK) return TARN_OK;
  if (status == TARN_FULL) {
    return tarn__sim_full(device, size, "bytes of addresses");
  }
  return tarn__sim_no_resources(device, "mapping of a file");
}

tarn_status tarn__sim_allocation_close(int id, uint64_t addr, size_t size) {
  tarn__sim_call call = TARN__SIM_allocation_close;
  tarn__sim_device *device = NULL;
  TARN__TRY(tarn__sim_admit(call, id, &device));
  pthread_mutex_lock(&device->lock);
  const tarn__common_extent *block =
      tarn__common_extents_find(&device->blocks.extents, addr);
  bool fits = block != NULL && block->node.start == addr &&
              block->asked == size && tarn__sim_is_import(device, addr);
  if (fits) tarn__sim_give_import(device, addr);
  pthread_mutex_unlock(&device->lock);
  if (fits) return TARN_OK;
  return refuse(call, id, addr, size,
                "nothing of that size was imported there");
}
