// slots.h - the slots of a plug-in's tables by name, for lists of functions.
//
// A plug-in that gives its functions the names of their slots, with a prefix,
// declares them by one macro and lists them in a table by another:
//
//   #define DECLARE(name) TARN__COMMON_EXT_DECLARE(tarn__cpu_, name);
//   TARN__COMMON_EXT_SLOTS(DECLARE)
//
//   #define ENTRY(name) .name = tarn__cpu_##name,
//   static const tarn_device_ext ext = {TARN__COMMON_EXT_SLOTS(ENTRY)};
#ifndef TARN_PLUGINS_COMMON_SLOTS_H_
#define TARN_PLUGINS_COMMON_SLOTS_H_

// Declares a function of the type that the slot |name| has.
#define TARN__COMMON_ABI_DECLARE(prefix, name) \
  __typeof__(*((C_DeviceInterface *)NULL)->name) prefix##name
#define TARN__COMMON_EXT_DECLARE(prefix, name) \
  __typeof__(*((tarn_device_ext *)NULL)->name) prefix##name

// The functions of the ABI's table that are given a device.
#define TARN__COMMON_ABI_SLOTS(X) \
  X(init_device)                  \
  X(set_device)                   \
  X(get_device)                   \
  X(deinit_device)                \
  X(create_stream)                \
  X(destroy_stream)               \
  X(query_stream)                 \
  X(stream_add_callback)          \
  X(create_event)                 \
  X(record_event)                 \
  X(destroy_event)                \
  X(query_event)                  \
  X(synchronize_device)           \
  X(synchronize_stream)           \
  X(synchronize_event)            \
  X(stream_wait_event)            \
  X(device_memory_allocate)       \
  X(device_memory_deallocate)     \
  X(device_memory_set)            \
  X(host_memory_allocate)         \
  X(host_memory_deallocate)       \
  X(unified_memory_allocate)      \
  X(unified_memory_deallocate)    \
  X(memory_copy_h2d)              \
  X(memory_copy_d2h)              \
  X(memory_copy_d2d)              \
  X(memory_copy_p2p)              \
  X(async_memory_copy_h2d)        \
  X(async_memory_copy_d2h)        \
  X(async_memory_copy_d2d)        \
  X(async_memory_copy_p2p)        \
  X(device_memory_stats)          \
  X(device_min_chunk_size)        \
  X(device_max_chunk_size)        \
  X(device_max_alloc_size)        \
  X(device_extra_padding_size)    \
  X(device_init_alloc_size)       \
  X(device_realloc_size)

// The set of address ranges.
#define TARN__COMMON_RANGE_SLOTS(X) \
  X(range_granularity)              \
  X(range_reserve)                  \
  X(range_release)                  \
  X(memory_create)                  \
  X(memory_destroy)                 \
  X(range_map)                      \
  X(range_unmap)                    \
  X(range_set_access)

// Slots of the extension that cpu and sim have, but error_text.
#define TARN__COMMON_EXT_SLOTS(X) \
  TARN__COMMON_RANGE_SLOTS(X)     \
  X(alignment)                    \
  X(allocate_aligned)             \
  X(memory_export)                \
  X(memory_import)                \
  X(allocate_async)               \
  X(deallocate_async)             \
  X(host_register)                \
  X(host_unregister)              \
  X(pointer_query)                \
  X(gather)                       \
  X(scatter)                      \
  X(scatter_add)

// That of moves, which cpu and sim have and cards have not.
#define TARN__COMMON_MOVE_SLOT(X) X(range_move)

// Those that sim has besides.
#define TARN__COMMON_EXT_MORE_SLOTS(X) \
  TARN__COMMON_MOVE_SLOT(X)            \
  X(allocation_export)                 \
  X(allocation_import)                 \
  X(allocation_close)                  \
  X(default_stream)                    \
  X(stream_capturing)

#endif  // TARN_PLUGINS_COMMON_SLOTS_H_
