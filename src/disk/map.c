// Maps of blocks: arrays of whole pages, so that a page is written from where
// it is used.
#include "disk/map.h"

#include <inttypes.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"

static size_t count_pages(const tarn__disk_shape *shape, size_t level) {
  size_t held = (size_t)shape->block / sizeof(tarn__disk_entry);
  return tarn__divide_up((size_t)shape->levels[level], held);
}

static tarn_status init_level(tarn__disk_map *map, size_t level) {
  size_t pages = count_pages(&map->shape, level);
  map->pages[level] = pages;
  map->levels[level] = tarn__os_map_sparse(pages * (size_t)map->shape.block);
  map->changed[level] = tarn__host_alloc(pages);
  if (map->levels[level] != NULL && map->changed[level] != NULL) return TARN_OK;
  return tarn__fail(TARN_E_NOMEM,
                    "disk: no memory for the map of %" PRIu64 " blocks",
                    map->shape.count);
}

tarn_status tarn__map_init(tarn__disk_map *map, const tarn__disk_shape *shape) {
  *map = (tarn__disk_map){.shape = *shape};
  for (size_t i = 0; i < shape->level_count; i++)
    TARN__TRY(init_level(map, i));
  return TARN_OK;
}

void tarn__map_deinit(tarn__disk_map *map) {
  for (size_t i = 0; i < map->shape.level_count; i++) {
    if (map->levels[i] != NULL)
      tarn__os_unmap(map->levels[i], map->pages[i] * (size_t)map->shape.block);
    tarn__host_free(map->changed[i], map->pages[i]);
  }
  *map = (tarn__disk_map){0};
}

size_t tarn__map_memory(const tarn__disk_shape *shape) {
  size_t memory = 0;
  for (size_t i = 0; i < shape->level_count; i++) {
    memory += (size_t)shape->levels[i] * sizeof(tarn__disk_entry) +
              tarn__os_page() + count_pages(shape, i);
  }
  return memory;
}
