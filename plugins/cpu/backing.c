// Memory apart from addresses.
//
// Private memory that was never writable is zeros, whatever was read of it: it
// needs nothing of the kernel, neither before its first mapping nor after its
// last. To map it, the reserved pages themselves become memory, so that
// neighbours stay one mapping of the kernel, which has only 65,530 for a
// process as a rule. Only bytes that must outlive their mapping are moved:
// to a park, and back with the next one. The kernel moves what is in one of
// its mappings, so that is where a piece must stand from the first.
//
//              put               take
//   zeros  ----------> mapped ----------> parked      written, has a handle
//                        ^  `-----------> zeros       not written
//                        `---- put ------ parked
//
// Handles are slots of a table with a number that rises above, so that one
// that was dropped is not taken for a new one:
//
//   handle = use << 32 | slot + 1
#include "backing.h"

#include <errno.h>

#include "base/hostmem.h"
#include "base/status.h"

enum { FIRST_CAPACITY = 16 };

typedef struct slot {
  tarn__cpu_backing *backing;  // NULL: free
  uint32_t use;
  uint32_t next_free;  // slot + 1; 0: none
} slot;

static struct {
  slot *slots;
  size_t count;  // slots that were ever in use; those beyond are new
  size_t capacity;
  size_t live;
  uint32_t first_free;  // slot + 1; 0: none
  uint32_t uses;        // so far
} handles;

// --- handles ---------------------------------------------------------------

static bool make_room(void) {
  if (handles.first_free != 0 || handles.count < handles.capacity) return true;
  size_t wanted = handles.capacity == 0 ? FIRST_CAPACITY : 2 * handles.capacity;
  if (wanted > UINT32_MAX) return false;
  slot *grown =
      tarn__host_resize(handles.slots, handles.capacity, wanted, sizeof *grown);
  if (grown == NULL) return false;
  handles.slots = grown;
  handles.capacity = wanted;
  return true;
}

// There is room.
static uint64_t enter(tarn__cpu_backing *backing) {
  size_t i = handles.first_free != 0 ? handles.first_free - 1 : handles.count;
  slot *s = &handles.slots[i];
  if (i == handles.count) {
    handles.count++;
  } else {
    handles.first_free = s->next_free;
  }
  s->backing = backing;
  s->use = ++handles.uses;
  handles.live++;
  return (uint64_t)s->use << 32 | (i + 1);
}

static slot *slot_of(uint64_t handle) {
  uint64_t i = (handle & UINT32_MAX) - 1;
  if (i >= handles.count) return NULL;
  slot *s = &handles.slots[i];
  return s->backing != NULL && s->use == handle >> 32 ? s : NULL;
}

// The table goes with its last handle, so that nothing is held at rest.
static void free_slots(void) {
  tarn__host_free_array(handles.slots, handles.capacity, sizeof(slot));
  handles.slots = NULL;
  handles.count = handles.capacity = 0;
  handles.first_free = 0;
}

static void leave(uint64_t handle) {
  slot *s = slot_of(handle);
  s->backing = NULL;
  s->next_free = handles.first_free;
  handles.first_free = (uint32_t)handle;
  if (--handles.live == 0) free_slots();
}

tarn__cpu_backing *tarn__cpu_backing_find(uint64_t handle) {
  slot *s = slot_of(handle);
  return s != NULL ? s->backing : NULL;
}

// --- beginning and end -----------------------------------------------------

tarn__cpu_backing *tarn__cpu_backing_make(size_t size, int fd) {
  if (!make_room()) return NULL;
  tarn__cpu_backing *backing = tarn__host_alloc(sizeof *backing);
  if (backing == NULL) {
    if (handles.live == 0) free_slots();
    return NULL;
  }
  *backing = (tarn__cpu_backing){.size = size, .fd = fd};
  backing->handle = enter(backing);
  return backing;
}

static void free_if_unused(tarn__cpu_backing *backing) {
  if (backing->handle != 0 || backing->mappings != 0) return;
  if (backing->fd >= 0) tarn__os_close(backing->fd);
  if (backing->park != NULL) tarn__os_unmap(backing->park, backing->size);
  tarn__host_free(backing, sizeof *backing);
}

void tarn__cpu_backing_drop(tarn__cpu_backing *backing) {
  leave(backing->handle);
  backing->handle = 0;
  free_if_unused(backing);
}

void tarn__cpu_backing_lose(tarn__cpu_backing *backing) {
  backing->mappings--;
  free_if_unused(backing);
}

void tarn__cpu_backing_drop_all(void) {
  for (size_t i = 0; i < handles.count; i++) {
    if (handles.slots[i].backing != NULL) {
      tarn__cpu_backing_drop(handles.slots[i].backing);
    }
  }
}

// --- put and take ----------------------------------------------------------

bool tarn__cpu_backing_put(tarn__cpu_backing *backing, void *at) {
  bool done = false;
  if (backing->fd >= 0) {
    done = tarn__os_map_file(at, backing->size, backing->fd);
  } else if (backing->park != NULL) {
    done = tarn__os_move(backing->park, at, backing->size);
  } else {
    done = tarn__os_vacate(at, backing->size);
  }
  if (!done) return false;
  backing->park = NULL;
  backing->mappings++;
  return true;
}

static void restore(const tarn__cpu_backing *backing, void *at,
                    tarn__os_access access) {
  int reason = errno;
  if (!tarn__os_protect(at, backing->size, access)) {
    tarn__log(TARN_LOG_ERROR, "cpu: access to %zu bytes at %p is lost",
              backing->size, at);
  }
  errno = reason;
}

// Neither the old addresses nor the park can be accessed afterwards.
static bool park(tarn__cpu_backing *backing, void *at, tarn__os_access access) {
  if (!tarn__os_protect(at, backing->size, TARN__OS_NONE)) return false;
  backing->park = tarn__os_move_out(at, backing->size);
  if (backing->park == NULL) {
    restore(backing, at, access);
    return false;
  }
  // So that it is one with its neighbours again. It need not: it is reserved.
  bool joined = tarn__os_vacate(at, backing->size);
  (void)joined;
  return true;
}

bool tarn__cpu_backing_take(tarn__cpu_backing *backing, void *at,
                            tarn__os_access access) {
  bool keep = backing->fd < 0 && backing->handle != 0 && backing->written;
  bool taken =
      keep ? park(backing, at, access) : tarn__os_vacate(at, backing->size);
  if (!taken) return false;
  tarn__cpu_backing_lose(backing);
  return true;
}
