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
  bool keep = backing->fd < 0 && backing->node.start != 0 && backing->written;
  bool taken =
      keep ? park(backing, at, access) : tarn__os_vacate(at, backing->size);
  if (!taken) return false;
  tarn__cpu_backing_lose(backing);
  return true;
}
