// The faulty plug-in's extension: handles, a default stream, and where the
// fault is one of theirs ranges (faulty_ranges.c). What is exported is opened
// in this process at the address that it has.
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "faulty_ranges.h"
#include "tarn/device_ext.h"

// Whether the plug-in has this fault.
static bool has(const char *fault) {
  const char *chosen = getenv("TARN_FAULT");
  return chosen != NULL && strcmp(chosen, fault) == 0;
}

typedef struct handle {
  char magic[8];
  uint64_t address;
  uint64_t size;
} handle;

static const char magic[8] = "faulty";

static tarn_status allocation_export(int id, uint64_t addr, size_t size,
                                     void *out_handle) {
  handle made = {.address = addr, .size = size};
  (void)id;
  memcpy(made.magic, magic, sizeof magic);
  memcpy(out_handle, &made, sizeof made);
  return TARN_OK;
}

static tarn_status allocation_import(int id, const void *given, size_t size,
                                     uint64_t *out_addr) {
  handle h;
  (void)id;
  memcpy(&h, given, sizeof h);
  bool known = memcmp(h.magic, magic, sizeof magic) == 0 && h.size == size;
  *out_addr = has("import_keeps_output") ? 4096 : 0;
  if (!known && !has("import_takes_anything")) return TARN_E_INVALID;
  *out_addr = h.address;
  if (has("import_is_a_copy")) {
    void *copy = NULL;
    (void)posix_memalign(&copy, 256, size);
    if (copy != NULL) memcpy(copy, (void *)(uintptr_t)h.address, size);
    *out_addr = (uintptr_t)copy;
  }
  return TARN_OK;
}

static tarn_status allocation_close(int id, uint64_t addr, size_t size) {
  (void)id;
  (void)addr;
  (void)size;
  return TARN_OK;
}

// As many bytes as a stream of faulty_plugin.c has, or more: all of them 0, it
// is one of device 0, with nothing on it.
static uint64_t stream[32];

static tarn_status default_stream(int id, void **out_stream) {
  static size_t calls;
  (void)id;
  *out_stream = stream;
  if (has("default_stream_is_null")) *out_stream = NULL;
  if (has("default_stream_changes") && calls++ > 0) *out_stream = stream + 16;
  return TARN_OK;
}

static tarn_status stream_capturing(int id, void *queue, bool *out_capturing) {
  (void)id;
  (void)queue;
  *out_capturing = has("capturing_is_always");
  return has("capturing_refuses") ? TARN_E_INVALID : TARN_OK;
}

const tarn_device_ext *TarnDeviceExt(void) {
  static tarn_device_ext ext = {
      .struct_size = sizeof ext,
      .version = TARN_DEVICE_EXT_VERSION,
      .allocation_export = allocation_export,
      .allocation_import = allocation_import,
      .allocation_close = allocation_close,
      .default_stream = default_stream,
      .stream_capturing = stream_capturing,
  };
  faulty_add_ranges(&ext);
  return &ext;
}
