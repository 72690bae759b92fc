// The faulty plug-in's ranges, which it has where the fault is one of theirs:
// memory is a file, and each granule is mapped by itself, so that parts go
// where they like.
#include "faulty_ranges.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GRANULE = 64 << 10, MOST = 32 };

typedef struct memory {
  size_t size;  // 0: there is none
  int file;
} memory;

typedef struct granule {
  uint64_t addr;  // 0: this entry is free
  size_t memory;  // the index of its memory
  size_t offset;  // in it
} granule;

static memory memories[MOST];
static granule granules[MOST];

// Whether the plug-in has this fault.
static bool has(const char *fault) {
  const char *chosen = getenv("TARN_FAULT");
  return chosen != NULL && strcmp(chosen, fault) == 0;
}

static void *at(uint64_t addr) {
  return (void *)(uintptr_t)addr;
}

// The granule at |addr|; 0: a free entry.
static granule *find(uint64_t addr) {
  for (size_t i = 0; i < MOST; i++)
    if (granules[i].addr == addr) return &granules[i];
  return NULL;
}

static bool any_in(uint64_t addr, size_t size) {
  for (size_t done = 0; done < size; done += GRANULE)
    if (find(addr + done) != NULL) return true;
  return false;
}

static void put(const granule *g, int rights) {
  (void)mmap(at(g->addr), GRANULE, rights, MAP_SHARED | MAP_FIXED,
             memories[g->memory].file, (off_t)g->offset);
}

static void reserve_at(uint64_t addr, size_t size) {
  (void)mmap(at(addr), size, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static tarn_status range_granularity(int id, size_t *out_size) {
  (void)id;
  *out_size = GRANULE;
  return TARN_OK;
}

static tarn_status range_reserve(int id, size_t size, size_t align,
                                 uint64_t *out_addr) {
  size_t most = align > GRANULE ? align : GRANULE;
  (void)id;
  *out_addr = 0;
  if (size == 0 || size % GRANULE != 0) return TARN_E_INVALID;
  void *addr = mmap(NULL, size + most, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (addr == MAP_FAILED) return TARN_FULL;
  *out_addr = ((uintptr_t)addr + most - 1) & ~(uint64_t)(most - 1);
  return TARN_OK;
}

static tarn_status range_release(int id, uint64_t addr, size_t size) {
  (void)id;
  if (any_in(addr, size)) return TARN_E_INVALID;
  return munmap(at(addr), size) == 0 ? TARN_OK : TARN_E_INVALID;
}

static tarn_status memory_create(int id, size_t size, uint32_t flags,
                                 uint64_t *out_memory) {
  (void)id;
  (void)flags;
  *out_memory = 0;
  for (size_t i = 0; i < MOST; i++) {
    if (memories[i].size != 0) continue;
    int file = memfd_create("faulty", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)size) != 0) return TARN_FULL;
    memories[i] = (memory){size, file};
    *out_memory = i + 1;
    return TARN_OK;
  }
  return TARN_FULL;
}

// The file stays for its mappings: there are few.
static tarn_status memory_destroy(int id, uint64_t handle) {
  (void)id;
  return handle - 1 < MOST && memories[handle - 1].size != 0 ? TARN_OK
                                                             : TARN_E_INVALID;
}

static tarn_status range_map(int id, uint64_t addr, size_t size,
                             uint64_t handle) {
  (void)id;
  if (memory_destroy(id, handle) != TARN_OK || any_in(addr, size) ||
      memories[handle - 1].size != size) {
    return TARN_E_INVALID;
  }
  for (size_t i = 0; i < MOST; i++) {
    if (granules[i].addr != 0 && granules[i].memory == handle - 1)
      return TARN_E_INVALID;
  }
  for (size_t offset = 0; offset < size; offset += GRANULE) {
    granule *g = find(0);
    if (g == NULL) return TARN_FULL;
    *g = (granule){addr + offset, handle - 1, offset};
    put(g, PROT_NONE);
  }
  return TARN_OK;
}

static tarn_status range_unmap(int id, uint64_t addr, size_t size) {
  (void)id;
  for (size_t done = 0; done < size; done += GRANULE) {
    granule *g = find(addr + done);
    if (g == NULL) return TARN_E_INVALID;
    reserve_at(g->addr, GRANULE);
    g->addr = 0;
  }
  return TARN_OK;
}

static tarn_status range_set_access(int id, uint64_t addr, size_t size, int by,
                                    tarn_ext_access access) {
  static const int rights[] = {PROT_NONE, PROT_READ, 0, PROT_READ | PROT_WRITE};
  (void)id;
  (void)by;
  return mprotect(at(addr), size, rights[access & 3]) == 0 ? TARN_OK
                                                           : TARN_E_INVALID;
}

static bool is_whole(uint64_t addr, size_t size) {
  const granule *g = find(addr);
  return g != NULL && g->offset == 0 && memories[g->memory].size == size;
}

static bool may_move(uint64_t from, uint64_t to, size_t size) {
  for (size_t done = 0; done < size; done += GRANULE)
    if (find(from + done) == NULL) return has("move_of_nothing");
  if (has("move_whole_only") && !is_whole(from, size)) return false;
  return !any_in(to, size) || has("move_over_others");
}

static tarn_status range_move(int id, uint64_t from, uint64_t to, size_t size,
                              size_t *out_moved) {
  (void)id;
  *out_moved = 0;
  if (!may_move(from, to, size)) {
    if (has("move_keeps_count")) *out_moved = size;
    return TARN_E_INVALID;
  }
  for (size_t done = 0; done < size; done += GRANULE) {
    granule *g = find(from + done);
    if (g == NULL) continue;
    g->addr = to + done;
    if (has("move_loses_bytes")) {
      (void)ftruncate(memories[g->memory].file, 0);
      (void)ftruncate(memories[g->memory].file,
                      (off_t)memories[g->memory].size);
    }
    put(g, PROT_READ | PROT_WRITE);
    reserve_at(from + done, GRANULE);
  }
  if (!has("move_says_nothing")) *out_moved = size;
  return TARN_OK;
}

void faulty_add_ranges(tarn_device_ext *ext) {
  const char *fault = getenv("TARN_FAULT");
  if (fault == NULL || strncmp(fault, "move_", 5) != 0) return;
  ext->range_granularity = range_granularity;
  ext->range_reserve = range_reserve;
  ext->range_release = range_release;
  ext->memory_create = memory_create;
  ext->memory_destroy = memory_destroy;
  ext->range_map = range_map;
  ext->range_unmap = range_unmap;
  ext->range_set_access = range_set_access;
  ext->range_move = range_move;
}
