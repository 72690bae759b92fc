// The extension of the hostile plug-in: all slots, if the recipe has "ext",
// but those that it names in ext.without.SLOT; ext.without.ranges stands for
// eight of them.
//
// Ranges are memory from the start, and mapping joins nothing: what is told
// apart here is only what is said.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/slots.h"
#include "hostile_recipe.h"
#include "tarn/device_ext.h"

enum { ALIGN = 256, GRANULE = 64 << 10 };

#define BEGIN(slot) HOSTILE_BEGIN(tarn_status, slot)
#define END(slot) HOSTILE_END(tarn_status, slot)

// What the recipe says instead of |value|.
static uint64_t gives(const char *slot, uint64_t value) {
  return hostile_number(hostile_joined("gives.", slot), value);
}

// --- memory ----------------------------------------------------------------

static tarn_status alignment(int id, size_t *out_align) {
  (void)id;
  BEGIN("alignment");
  *out_align = gives("alignment", ALIGN);
  END("alignment");
}

static tarn_status take(const char *slot, size_t size, size_t align,
                        uint64_t *out_addr) {
  void *memory = NULL;
  BEGIN(slot);
  if (hostile_given(hostile_joined("gives.", slot))) {
    *out_addr = gives(slot, 0);
    END(slot);
  }
  if (posix_memalign(&memory, align, size) != 0) return TARN_FULL;
  *out_addr = (uint64_t)(uintptr_t)memory;
  hostile_live++;
  END(slot);
}

static tarn_status give(const char *slot, uint64_t addr) {
  BEGIN(slot);
  free((void *)(uintptr_t)addr);
  hostile_live--;
  END(slot);
}

static tarn_status allocate_aligned(int id, size_t size, size_t align,
                                    uint64_t *out_addr) {
  (void)id;
  size_t off =
      hostile_given("ext.misaligns") ? hostile_number("misalign", 0) : 0;
  tarn_status status = take("allocate_aligned", size + off, align, out_addr);
  *out_addr += off;
  return status;
}

static tarn_status allocate_async(int id, void *stream, size_t size,
                                  uint64_t *out_addr) {
  (void)id;
  (void)stream;
  return take("allocate_async", size, ALIGN, out_addr);
}

static tarn_status deallocate_async(int id, void *stream, uint64_t addr,
                                    size_t size) {
  (void)id;
  (void)stream;
  (void)size;
  return give("deallocate_async", addr);
}

static tarn_status host_register(int id, void *ptr, size_t size) {
  (void)id;
  (void)ptr;
  (void)size;
  BEGIN("host_register");
  hostile_live++;
  END("host_register");
}

static tarn_status host_unregister(int id, void *ptr) {
  (void)id;
  (void)ptr;
  BEGIN("host_unregister");
  hostile_live--;
  END("host_unregister");
}

// --- ranges ----------------------------------------------------------------

static tarn_status range_granularity(int id, size_t *out_size) {
  (void)id;
  BEGIN("range_granularity");
  *out_size = gives("range_granularity", GRANULE);
  END("range_granularity");
}

static tarn_status range_reserve(int id, size_t size, size_t align,
                                 uint64_t *out_addr) {
  (void)id;
  return take("range_reserve", size, align, out_addr);
}

static tarn_status range_release(int id, uint64_t addr, size_t size) {
  (void)id;
  (void)size;
  if (hostile_given("gives.range_reserve")) return TARN_OK;  // never was one
  return give("range_release", addr);
}

static tarn_status memory_create(int id, size_t size, uint32_t flags,
                                 uint64_t *out_memory) {
  (void)id;
  (void)size;
  (void)flags;
  BEGIN("memory_create");
  *out_memory = gives("memory_create", 1);
  if (*out_memory != 0) hostile_live++;
  END("memory_create");
}

static tarn_status memory_destroy(int id, uint64_t memory) {
  (void)id;
  (void)memory;
  BEGIN("memory_destroy");
  hostile_live--;
  END("memory_destroy");
}

static tarn_status range_map(int id, uint64_t addr, size_t size,
                             uint64_t memory) {
  (void)id;
  (void)addr;
  (void)size;
  (void)memory;
  BEGIN("range_map");
  END("range_map");
}

static tarn_status range_unmap(int id, uint64_t addr, size_t size) {
  (void)id;
  (void)addr;
  (void)size;
  BEGIN("range_unmap");
  END("range_unmap");
}

static tarn_status range_set_access(int id, uint64_t addr, size_t size, int by,
                                    tarn_ext_access access) {
  (void)id;
  (void)addr;
  (void)size;
  (void)by;
  (void)access;
  BEGIN("range_set_access");
  END("range_set_access");
}

static tarn_status range_move(int id, uint64_t from, uint64_t to, size_t size,
                              size_t *out_moved) {
  (void)id;
  (void)from;
  (void)to;
  BEGIN("range_move");
  *out_moved = gives("range_move", size);
  END("range_move");
}

static tarn_status memory_export(int id, uint64_t memory, int *out_fd) {
  (void)id;
  (void)memory;
  BEGIN("memory_export");
  bool told = hostile_given("gives.memory_export");
  *out_fd = told ? (int)gives("memory_export", 0) : dup(STDERR_FILENO);
  END("memory_export");
}

static tarn_status memory_import(int id, int fd, size_t size,
                                 uint64_t *out_memory) {
  (void)id;
  (void)fd;
  (void)size;
  BEGIN("memory_import");
  *out_memory = gives("memory_import", 2);
  if (*out_memory != 0) hostile_live++;
  END("memory_import");
}

static tarn_status allocation_export(int id, uint64_t addr, size_t size,
                                     void *out_handle) {
  (void)id;
  (void)size;
  BEGIN("allocation_export");
  memcpy(out_handle, &addr, sizeof addr);
  END("allocation_export");
}

static tarn_status allocation_import(int id, const void *handle, size_t size,
                                     uint64_t *out_addr) {
  uint64_t addr = 0;
  (void)id;
  (void)size;
  BEGIN("allocation_import");
  memcpy(&addr, handle, sizeof addr);
  *out_addr = gives("allocation_import", addr);
  END("allocation_import");
}

static tarn_status allocation_close(int id, uint64_t addr, size_t size) {
  (void)id;
  (void)addr;
  (void)size;
  BEGIN("allocation_close");
  END("allocation_close");
}

static char ext_stream;  // the plug-in does not look into streams

static tarn_status default_stream(int id, void **out_stream) {
  (void)id;
  BEGIN("default_stream");
  *out_stream =
      (void *)(uintptr_t)gives("default_stream", (uintptr_t)&ext_stream);
  END("default_stream");
}

static tarn_status stream_capturing(int id, void *stream, bool *out_capturing) {
  (void)id;
  (void)stream;
  BEGIN("stream_capturing");
  *out_capturing = hostile_number("capturing", 0) != 0;
  END("stream_capturing");
}

// --- what is known ---------------------------------------------------------

static tarn_status pointer_query(int id, uint64_t addr, tarn_ext_pointer *out) {
  BEGIN("pointer_query");
  out->kind =
      (tarn_ext_kind)(int)hostile_number("pointer.kind", TARN_EXT_KIND_DEVICE);
  out->id = (int)hostile_number("pointer.id", (size_t)id);
  out->base = hostile_number("pointer.base", addr);
  out->size = hostile_number("pointer.size", 0);
  END("pointer_query");
}

static void error_text(int id, void *stream, char *out, size_t out_size) {
  (void)id;
  (void)stream;
  if (hostile_given("text.nothing")) return;
  if (hostile_given("text.endless")) {
    memset(out, 'x', out_size);
  } else if (hostile_given("text.controls")) {
    snprintf(out, out_size, "a\x1b[31m\nb");
  } else {
    snprintf(out, out_size, "in the driver's words");
  }
}

// --- rows ------------------------------------------------------------------

static float *row_of(const tarn_rows *rows, size_t i) {
  const int64_t *indices = (const int64_t *)(uintptr_t)rows->indices;
  char *table = (char *)(uintptr_t)rows->table.chunks[0];
  return (float *)(void *)(table + rows->table_offset +
                           (size_t)indices[i] * rows->table_stride);
}

static tarn_status move(const char *slot, const tarn_rows *rows) {
  BEGIN(slot);
  for (size_t i = 0; i < rows->index_count; i++) {
    float *dense = (float *)(uintptr_t)(rows->dense + i * rows->dense_stride);
    float *row = row_of(rows, i);
    for (size_t k = 0; k < rows->width; k++) {
      if (strcmp(slot, "gather") == 0) dense[k] = row[k];
      if (strcmp(slot, "scatter") == 0) row[k] = dense[k];
      if (strcmp(slot, "scatter_add") == 0) row[k] += dense[k];
    }
  }
  END(slot);
}

static tarn_status gather(int id, void *stream, const tarn_rows *rows) {
  (void)id;
  (void)stream;
  return move("gather", rows);
}

static tarn_status scatter(int id, void *stream, const tarn_rows *rows) {
  (void)id;
  (void)stream;
  return move("scatter", rows);
}

static tarn_status scatter_add(int id, void *stream, const tarn_rows *rows) {
  (void)id;
  (void)stream;
  return move("scatter_add", rows);
}

// --- the table -------------------------------------------------------------

#define FILL(slot) \
  if (!hostile_given(hostile_joined("ext.without.", #slot))) ext.slot = slot;
#define CLEAR(slot) ext.slot = NULL;

const tarn_device_ext *TarnDeviceExt(void) {
  static tarn_device_ext ext;
  if (!hostile_given("ext")) return NULL;
  memset(&ext, 0, sizeof ext);
  ext.struct_size = hostile_number("ext.size", sizeof ext);
  ext.version =
      (uint32_t)hostile_number("ext.version", TARN_DEVICE_EXT_VERSION);
  ext.flags = (uint32_t)hostile_number("ext.flags", 0);
  FILL(error_text)
  TARN__COMMON_EXT_SLOTS(FILL)
  TARN__COMMON_EXT_MORE_SLOTS(FILL)
  if (hostile_given("ext.without.ranges")) {
    TARN__COMMON_RANGE_SLOTS(CLEAR)
    TARN__COMMON_MOVE_SLOT(CLEAR)
  }
  return &ext;
}
