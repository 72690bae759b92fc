// Memory apart from addresses.
//
// Private memory that was never writable is zeros, whatever was read of it: it
// needs nothing of the kernel, neither before its first mapping nor after its
// last. Reserved pages are such memory already, but for their access: so it is
// mapped without a call, and neighbours stay one mapping of the kernel, which
// has only 65,530 for a process as a rule. Only bytes that must outlive their
// mapping are moved: to a park, and back with the next one.
//
//              put               take
//   zeros  ----------> mapped ----------> parked      written, has a handle
//                        ^  `-----------> zeros       not written
//                        `---- put ------ parked
//
// Private memory without a handle is its mapping's (mappings.h).
//
// Handles are numbers that rise, so that one that was dropped is not taken for
// a new one.
#include "backing.h"

#include <errno.h>

#include "base/hostmem.h"
#include "base/status.h"

static tarn__range_map handles;
static uint64_t newest;
static tarn__cpu_backing *found;  // the last one, unless it was dropped

// --- beginning and end -----------------------------------------------------

// Pieces of memory are mapped in the order in which they were made, as a rule.
tarn__cpu_backing *tarn__cpu_backing_find(uint64_t handle) {
  tarn__range_map_node *node =
      found != NULL ? tarn__range_map_next(&found->node) : NULL;
  if (node == NULL || node->start != handle) {
    node = tarn__range_map_at(&handles, handle);
  }
  if (node == NULL || node->start != handle) return NULL;
  found = (tarn__cpu_backing *)node;
  return found;
}

tarn__cpu_backing *tarn__cpu_backing_make(size_t size, int fd) {
  tarn__cpu_backing *backing = tarn__host_alloc(sizeof *backing);
  if (backing == NULL) return NULL;
  *backing =
      (tarn__cpu_backing){.node = {.start = ++newest}, .size = size, .fd = fd};
  tarn__range_map_insert(&handles, &backing->node);
  return backing;
}

static void free_if_unused(tarn__cpu_backing *backing) {
  if (backing->node.start != 0 || backing->mappings != 0) return;
  if (backing->fd >= 0) tarn__os_close(backing->fd);
  if (backing->park != NULL) tarn__os_unmap(backing->park, backing->size);
  tarn__host_free(backing, sizeof *backing);
}

void tarn__cpu_backing_drop(tarn__cpu_backing *backing) {
  tarn__range_map_remove(&handles, &backing->node);
  if (found == backing) found = NULL;
  backing->node.start = 0;
  free_if_unused(backing);
}

void tarn__cpu_backing_lose(tarn__cpu_backing *backing) {
  backing->mappings--;
  free_if_unused(backing);
}

void tarn__cpu_backing_drop_all(void) {
  while (handles.root != NULL)
    tarn__cpu_backing_drop((tarn__cpu_backing *)handles.root);
}

// --- put and take ----------------------------------------------------------

bool tarn__cpu_backing_is_zeros(const tarn__cpu_backing *backing) {
  return backing->fd < 0 && backing->park == NULL;
}

static bool unpark(tarn__cpu_backing *backing, void *at) {
  if (!tarn__os_relocate(backing->park, at, backing->size)) return false;
  tarn__os_unmap(backing->park, backing->size);
  backing->park = NULL;
  return true;
}

bool tarn__cpu_backing_put(tarn__cpu_backing *backing, void *at) {
  bool done = true;
  if (backing->fd >= 0) {
    done = tarn__os_map_file(at, backing->size, backing->fd);
  } else if (backing->park != NULL) {
    done = unpark(backing, at);
  }
  if (done) backing->mappings++;
  return done;
}

static void restore(void *park, void *at, size_t size, tarn__os_access access) {
  int reason = errno;
  if (!tarn__os_protect(park, size, access) ||
      !tarn__os_relocate(park, at, size)) {
    tarn__log(TARN_LOG_ERROR, "cpu: %zu bytes at %p are lost", size, at);
  }
  errno = reason;
}

// Neither the old addresses nor the park can be accessed afterwards.
static bool park(tarn__cpu_backing *backing, void *at, tarn__os_access access) {
  size_t size = backing->size;
  void *to = tarn__os_reserve(size);
  if (to == NULL) return false;
  if (tarn__os_relocate(at, to, size)) {
    backing->park = to;
    if (tarn__os_protect(to, size, TARN__OS_NONE) && tarn__os_vacate(at, size))
      return true;
    restore(to, at, size, access);
    backing->park = NULL;
  }
  tarn__os_unmap(to, size);
  return false;
}

bool tarn__cpu_backing_is_kept(const tarn__cpu_backing *backing) {
  return backing->fd < 0 && backing->node.start != 0 && backing->written;
}

bool tarn__cpu_backing_take(tarn__cpu_backing *backing, void *at,
                            tarn__os_access access) {
  bool keep = tarn__cpu_backing_is_kept(backing);
  bool taken =
      keep ? park(backing, at, access) : tarn__os_vacate(at, backing->size);
  if (!taken) return false;
  tarn__cpu_backing_lose(backing);
  return true;
}

// --- moving ----------------------------------------------------------------

static bool move_file(const tarn__cpu_backing *backing, void *from, void *to,
                      tarn__os_access access) {
  size_t size = backing->size;
  if (!tarn__os_map_file(to, size, backing->fd)) return false;
  if (tarn__os_protect(to, size, access) && tarn__os_vacate(from, size)) {
    return true;
  }
  int reason = errno;
  bool undone = tarn__os_vacate(to, size);
  if (!undone) {
    tarn__log(TARN_LOG_ERROR, "cpu: %zu bytes at %p stay mapped", size, to);
  }
  errno = reason;
  return false;
}

bool tarn__cpu_backing_move(const tarn__cpu_backing *backing, void *from,
                            void *to, size_t size, tarn__os_access access) {
  return backing != NULL && backing->fd >= 0
             ? move_file(backing, from, to, access)
             : tarn__os_relocate(from, to, size);
}
