// device_scenes.h - small programs that together call every public function of
// the device room: what the sweeps of injected faults run.
//
// Whatever fails on the way, a scene goes on as far as it can, checks that
// outputs are zero where the status is not TARN_OK, and leaves nothing behind.
#ifndef TARN_TESTS_DEVICE_DEVICE_SCENES_H_
#define TARN_TESTS_DEVICE_DEVICE_SCENES_H_

#include <stddef.h>
#include <stdint.h>

#include "tarn/base.h"

// Every function that device.h, range.h and rows.h declare.
#define DEVICE_FUNCTIONS(X)       \
  X(tarn_place_equal)             \
  X(tarn_place_text)              \
  X(tarn_plugin_load)             \
  X(tarn_plugin_register)         \
  X(tarn_device_each)             \
  X(tarn_plugin_each)             \
  X(tarn_device_open)             \
  X(tarn_device_close)            \
  X(tarn_device_name)             \
  X(tarn_device_function_name)    \
  X(tarn_device_extension_name)   \
  X(tarn_device_query)            \
  X(tarn_device_type)             \
  X(tarn_device_functions)        \
  X(tarn_device_extensions)       \
  X(tarn_device_host_accessible)  \
  X(tarn_device_memory)           \
  X(tarn_device_synchronize)      \
  X(tarn_device_allocate)         \
  X(tarn_device_allocate_aligned) \
  X(tarn_device_deallocate)       \
  X(tarn_device_allocate_on)      \
  X(tarn_device_deallocate_on)    \
  X(tarn_device_export)           \
  X(tarn_device_import)           \
  X(tarn_device_import_close)     \
  X(tarn_device_host_register)    \
  X(tarn_device_host_unregister)  \
  X(tarn_device_pointer_query)    \
  X(tarn_device_host_view)        \
  X(tarn_copy_h2d)                \
  X(tarn_copy_d2h)                \
  X(tarn_copy_d2d)                \
  X(tarn_copy_p2p)                \
  X(tarn_device_set)              \
  X(tarn_stream_create)           \
  X(tarn_stream_adopt)            \
  X(tarn_stream_destroy)          \
  X(tarn_stream_device)           \
  X(tarn_stream_serial)           \
  X(tarn_stream_native)           \
  X(tarn_stream_synchronize)      \
  X(tarn_stream_query)            \
  X(tarn_stream_add_callback)     \
  X(tarn_stream_wait_event)       \
  X(tarn_stream_join)             \
  X(tarn_event_create)            \
  X(tarn_event_adopt)             \
  X(tarn_event_destroy)           \
  X(tarn_event_device)            \
  X(tarn_event_native)            \
  X(tarn_event_record)            \
  X(tarn_event_query)             \
  X(tarn_event_synchronize)       \
  X(tarn_device_attach)           \
  X(tarn_device_attached)         \
  X(tarn_range_granularity)       \
  X(tarn_range_reserve)           \
  X(tarn_range_release)           \
  X(tarn_memory_create)           \
  X(tarn_memory_destroy)          \
  X(tarn_range_map)               \
  X(tarn_range_unmap)             \
  X(tarn_range_set_access)        \
  X(tarn_range_move)              \
  X(tarn_memory_export)           \
  X(tarn_memory_import)           \
  X(tarn_rows_gather)             \
  X(tarn_rows_scatter)            \
  X(tarn_rows_scatter_add)

#define DEVICE_FUNCTION_NUMBER(function) DEVICE_CALLS_##function,
enum { DEVICE_FUNCTIONS(DEVICE_FUNCTION_NUMBER) DEVICE_FUNCTION_COUNT };

// How often each was called by a scene, in this process.
extern size_t device_calls[DEVICE_FUNCTION_COUNT];

const char *device_function_name(size_t number);

// What a scene plays on: two devices by name, which may be one and the same.
typedef struct scene_place {
  const char *device;
  const char *other;
  const char *plugin;  // a shared object to load; NULL: none
} scene_place;

// Called with each status of a scene's calls that is not TARN_OK or
// TARN_PENDING, and its text. NULL: nobody looks.
extern void (*scene_watch)(tarn_status status, const char *text);

size_t scene_count(void);
const char *scene_name(size_t scene);

// Plays the |scene|-th.
void scene_play(size_t scene, const scene_place *place);

// Plays |steps| steps, drawn by |seed|.
void scene_play_random(uint64_t seed, size_t steps, const scene_place *place);

#endif  // TARN_TESTS_DEVICE_DEVICE_SCENES_H_
