// fake_plugin.h - a test double: a device plug-in whose every habit can be set.
//
// It is no device: memory is the C library's, and what is queued on a stream
// runs only when a caller waits for it. That makes order visible: a copy
// without a wait has not run yet. Set its habits, then add it:
//
//   fake.missing = FAKE_MISSES(memory_copy_p2p);
//   fake_add();                               // its devices are "fake:0", ...
#ifndef TARN_TESTS_SUPPORT_FAKE_PLUGIN_H_
#define TARN_TESTS_SUPPORT_FAKE_PLUGIN_H_

#include <stddef.h>

#include "tarn/base.h"
#include "tarn/device_abi.h"

// The bit of a function in fake.missing.
#define FAKE_MISSES(function) \
  (UINT64_C(1) << (offsetof(C_DeviceInterface, function) / 8))

typedef struct fake_habits {
  const char *type;     // "fake"
  uint64_t missing;     // functions that it leaves NULL
  size_t devices;       // 2
  size_t capacity;      // bytes of each device; asking for more is C_FAILED
  size_t min_chunk;     // 256
  size_t padding;       // 0
  size_t max_alloc;     // 1 MiB; 0: the function is missing, as below
  size_t max_chunk;     // 0
  size_t init_size;     // 0
  size_t realloc_size;  // 0
  size_t misalign;      // added to every address that it gives
  int id_offset;        // init_device adds it to the id
  bool null_handles;    // streams and events stay NULL
  bool forks;           // initialize starts a helper, as drivers do
  bool full_is_null;    // out of memory: C_SUCCESS and NULL
  bool boasts;          // says that all of its capacity is free
  bool strikes;         // every call may fail through faults_strike
  void (*allocating)(void);  // called before memory is given; NULL: nothing is
  void (*freeing)(void);     // the same before memory is taken back
  void (*answered)(void);    // the same once it knows what memory there is
  C_Status size_answer;      // of the size queries but min_chunk
  C_Status sync_answer;      // of synchronize_stream
  C_Status copy_answer;      // of copies, which are made all the same
  C_Status query_answer;     // of query_event and query_stream when not yet

  // How it treats the table that it is given.
  size_t wants_params;  // leaves if params->size is not this; 0: takes any
  size_t wants_table;   // the same for interface->size
  size_t clears;        // clears so many bytes first; 0: none
  bool clears_size;     // sets interface->size to 0
} fake_habits;

// What has happened to it, over all devices.
typedef struct fake_ledger {
  size_t live_bytes;
  size_t live_blocks;
  size_t allocations;
  size_t streams;
  size_t events;
  size_t open_devices;
  size_t set_device_calls;
  size_t wrong_device;  // calls for a device that was not the current one
  size_t wrong_id;      // calls with an id that no device of it has
  size_t wrong_size;    // deallocations with a size that was never given
  size_t copies;        // made, queued ones when they ran
  size_t waits;         // synchronize_stream and _event calls
  size_t memory_queries;
  size_t size_queries;  // but of min_chunk and the padding
} fake_ledger;

extern fake_habits fake;
extern fake_ledger fake_seen;

// Its InitPlugin.
void fake_init(CustomRuntimeParams *params);

// Adds it to the library's plug-ins unless it is there already, with
// fake_extension.h's extension if that is wanted.
void fake_add(void);

// --- for the extension's slots ---------------------------------------------

// Notes a call for device |id|; true if it is to fail.
bool fake_called(int id);

// Memory at |misalign| bytes behind a multiple of |align|; NULL if there is
// none. Any of the functions that take memory back takes this back too.
void *fake_take(size_t size, size_t align, size_t misalign);
bool fake_give(void *ptr, size_t size);

// Runs |callback| behind what is on |stream|.
void fake_queue(C_Stream stream, C_Callback callback, void *user_data);

#endif  // TARN_TESTS_SUPPORT_FAKE_PLUGIN_H_
