// fake_extension.h - what the fake plug-in has beyond the ABI: nothing, unless
// a test says so.
//
//   fake_ext.there = true;
//   fake_ext.missing = FAKE_SLOT(allocate_aligned);
//   fake_add();
//
// Its ranges are addresses only and its memory handles only: what is mapped
// where is recorded and checked, but it cannot be accessed. Gather and
// scatter move nothing: they note that they were called.
#ifndef TARN_TESTS_SUPPORT_FAKE_EXTENSION_H_
#define TARN_TESTS_SUPPORT_FAKE_EXTENSION_H_

#include "tarn/device_ext.h"

// The bit of a slot.
#define FAKE_SLOT(slot)                                     \
  (UINT64_C(1) << ((offsetof(tarn_device_ext, slot) -       \
                    offsetof(tarn_device_ext, alignment)) / \
                   8))

// All slots of ranges; those of other processes stand apart.
#define FAKE_SLOTS_RANGES                                                      \
  (FAKE_SLOT(range_granularity) | FAKE_SLOT(range_reserve) |                   \
   FAKE_SLOT(range_release) | FAKE_SLOT(memory_create) |                       \
   FAKE_SLOT(memory_destroy) | FAKE_SLOT(range_map) | FAKE_SLOT(range_unmap) | \
   FAKE_SLOT(range_set_access))
#define FAKE_SLOTS_SHARING (FAKE_SLOT(memory_export) | FAKE_SLOT(memory_import))

#define FAKE_SLOTS_HANDLES                                       \
  (FAKE_SLOT(allocation_export) | FAKE_SLOT(allocation_import) | \
   FAKE_SLOT(allocation_close))

typedef struct fake_ext_habits {
  bool there;          // it has an extension at all
  uint64_t missing;    // slots that are NULL
  size_t struct_size;  // what it says; 0: the truth
  uint32_t version;    // 0: the present one
  uint32_t flags;

  size_t alignment;    // 256
  size_t granularity;  // 64 KiB
  size_t most_range;   // range_reserve answers |answer| beyond it; 0: no bound
  size_t misalign;     // added to the addresses of allocate_aligned, _async and
                       // range_reserve
  uint64_t refusing;   // slots that do nothing and answer |answer|
  int answer;
  uint64_t empty;            // slots that do nothing and answer TARN_OK
  const char *text;          // error_text, NULL: it writes nothing
  const char *stream_text;   // error_text of a stream
  const char *description;   // describe; NULL: it writes nothing
  void *stream;              // what default_stream answers
  const void *capturing;     // the stream of which stream_capturing says yes
  tarn_ext_pointer pointer;  // what pointer_query answers
  void (*asked)(void);       // called by pointer_query first; NULL: nothing is
} fake_ext_habits;

// What has happened to it.
typedef struct fake_ext_ledger {
  size_t ranges;           // reserved now
  size_t memories;         // handles now
  size_t mappings;         // now
  size_t registered;       // now
  size_t imports;          // now
  size_t wrong;            // releases, unmaps, ... of what there is not
  uint64_t called;         // slots that were called
  size_t align;            // of the last range_reserve or allocate_aligned
  tarn_ext_access access;  // of the last range_set_access
  int by;
  void *stream;    // of the last gather or scatter
  tarn_rows rows;  // and what it was given
} fake_ext_ledger;

extern fake_ext_habits fake_ext;
extern fake_ext_ledger fake_ext_seen;

// Its TarnDeviceExt.
const tarn_device_ext *fake_extension(void);

#endif  // TARN_TESTS_SUPPORT_FAKE_EXTENSION_H_
