// Allocations of other processes, by handles. A device may be unable to open in
// a process what that has exported itself: then there is less to be seen here.
#include <string.h>

#include "check.h"

enum { SIZE = 64 << 10 };

typedef struct handle {
  unsigned char bytes[TARN_EXT_HANDLE_SIZE];
} handle;

static bool export_block(conform_target *t, void **out_block, handle *out) {
  memset(out, 0, sizeof *out);
  if (!check_take(t, SIZE, out_block)) return false;
  EXTENSION(t, allocation_export, t->device.id, (uintptr_t)*out_block, SIZE,
            out->bytes);
  return true;
}

static bool share(conform_target *t) {
  void *block = NULL;
  uint64_t imported = 0;
  handle h;
  if (!export_block(t, &block, &h) || !check_write(t, block, SIZE, 120)) {
    return false;
  }
  EXTENSION(t, allocation_import, t->device.id, h.bytes, SIZE, &imported);
  EXPECT(t, imported != 0, "allocation_import gave address 0");
  void *again = (void *)(uintptr_t)imported;
  bool same = check_verify(t, "memory that was imported", again, SIZE, 120) &&
              check_write(t, again, SIZE, 121) &&
              check_verify(t, "exported memory, written by who imported", block,
                           SIZE, 121);
  if (!same) return false;
  EXTENSION(t, allocation_close, t->device.id, imported, SIZE);
  return check_verify(t, "exported memory whose import is closed", block, SIZE,
                      121) &&
         check_give(t, block);
}

static bool refused(conform_target *t, const char *what, const handle *h,
                    size_t size) {
  uint64_t imported = 1;
  tarn_status got =
      t->ext->allocation_import(t->device.id, h->bytes, size, &imported);
  if (!conform_can(t, "allocation_import", got)) return false;
  if (!conform_was_refused(t, what, got)) return false;
  EXPECT(t, imported == 0, "the address is 0x%llx after a refusal, not 0",
         (unsigned long long)imported);
  return true;
}

static bool import_refuses(conform_target *t) {
  void *block = NULL;
  handle h;
  handle none = {{0}};
  if (!export_block(t, &block, &h)) return false;
  return refused(t, "a handle of zeros", &none, SIZE) &&
         refused(t, "twice the size of what was exported", &h,
                 (size_t)2 * SIZE) &&
         check_give(t, block);
}

#define EXPORT                                          \
  "table->device_memory_allocate(&d, &block, 65536);\n" \
  "ext->allocation_export(d.id, (uintptr_t)block, 65536, handle);\n"

static const conform_check checks[] = {
    {CHECK("handles.export_and_import", share,
           .extends = {SLOT(allocation_export)}),
     .code = EXPORT "ext->allocation_import(d.id, handle, 65536, &address);\n"
                    "// both addresses show the same bytes\n"
                    "ext->allocation_close(d.id, address, 65536);\n"},
    {CHECK("handles.import_refuses", import_refuses,
           .extends = {SLOT(allocation_export)}),
     .code = EXPORT
     "assert(ext->allocation_import(d.id, handle, 131072, &address) ==\n"
     "       TARN_E_INVALID);\n"
     "memset(handle, 0, 64);\n"
     "assert(ext->allocation_import(d.id, handle, 65536, &address) ==\n"
     "       TARN_E_INVALID);\n"},
};

const conform_subject conform_handles = CONFORM_SUBJECT(checks);
