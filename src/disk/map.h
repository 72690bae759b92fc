// map.h - where the blocks of a file are, in memory.
//
//   root        level 2   [ entries ]            as many as fit into a root
//                            │
//   pages       level 1   [ page | page | ... ]  each found by an entry above
//                            │
//   pages       level 0   [ page | page | ... ]
//                            │
//   blocks                 □ □ □ □ □
//
// Only level 0 is used between flushes. Those above say where the pages of the
// one below were written; a page that has changed is written anew by a flush.
#ifndef TARN_DISK_MAP_H_
#define TARN_DISK_MAP_H_

#include "disk/root.h"

typedef struct tarn__disk_map {
  tarn__disk_shape shape;
  tarn__disk_entry *levels[TARN__ROOT_LEVELS];  // whole pages each
  unsigned char *changed[TARN__ROOT_LEVELS];    // of each page
  size_t pages[TARN__ROOT_LEVELS];
} tarn__disk_map;

// All blocks are nowhere. Ended by tarn__map_deinit, also after a failure.
//
// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__map_init(tarn__disk_map *map,
                                           const tarn__disk_shape *shape);
void tarn__map_deinit(tarn__disk_map *map);

// Bytes of memory that such a map can come to.
size_t tarn__map_memory(const tarn__disk_shape *shape);

// Entries of a page.
static inline size_t tarn__map_held(const tarn__disk_map *map) {
  return (size_t)map->shape.block / sizeof(tarn__disk_entry);
}

static inline tarn__disk_entry *tarn__map_page(const tarn__disk_map *map,
                                               size_t level, size_t page) {
  return map->levels[level] + page * tarn__map_held(map);
}

static inline tarn__disk_entry tarn__map_get(const tarn__disk_map *map,
                                             size_t level, size_t i) {
  return map->levels[level][i];
}

static inline void tarn__map_set(tarn__disk_map *map, size_t level, size_t i,
                                 tarn__disk_entry entry) {
  map->levels[level][i] = entry;
  map->changed[level][i / tarn__map_held(map)] = 1;
}

#endif  // TARN_DISK_MAP_H_
