// The functions of the table and the slots of the extension, by name.
#include <stdio.h>
#include <string.h>

#include "check.h"

#define WAITS "Tarn waits for the stream and copies"

static const struct {
  size_t offset;
  const char *name;
  const char *stand_in;
} functions[] = {
#define FUNCTION(name, text) \
  { NEED(name), #name, text }
    FUNCTION(initialize, "nothing to do"),
    FUNCTION(finalize, "nothing to do"),
    FUNCTION(init_device, "nothing to do"),
    FUNCTION(set_device, "nothing to do"),
    FUNCTION(get_device, "Tarn does not ask"),
    FUNCTION(deinit_device, "nothing to do"),
    FUNCTION(create_stream, "to Tarn everything is synchronous"),
    FUNCTION(destroy_stream, "to Tarn everything is synchronous"),
    FUNCTION(query_stream, "Tarn waits, then says yes"),
    FUNCTION(stream_add_callback, "Tarn waits, then calls it"),
    FUNCTION(create_event, "Tarn waits for the stream instead"),
    FUNCTION(record_event, "Tarn waits for the stream instead"),
    FUNCTION(destroy_event, "Tarn waits for the stream instead"),
    FUNCTION(query_event, "Tarn waits, then says yes"),
    FUNCTION(synchronize_device, "Tarn waits for each stream"),
    FUNCTION(synchronize_stream, "to Tarn everything is synchronous"),
    FUNCTION(synchronize_event, "Tarn waits for the stream instead"),
    FUNCTION(stream_wait_event, "the host waits"),
    FUNCTION(device_memory_allocate, "required"),
    FUNCTION(device_memory_deallocate, "required"),
    FUNCTION(device_memory_set, "Tarn copies pieces of filled host memory"),
    FUNCTION(host_memory_allocate, "Tarn takes plain memory of the host"),
    FUNCTION(host_memory_deallocate, "Tarn takes plain memory of the host"),
    FUNCTION(unified_memory_allocate, "nothing can stand in"),
    FUNCTION(unified_memory_deallocate, "nothing can stand in"),
    FUNCTION(memory_copy_h2d, "required"),
    FUNCTION(memory_copy_d2h, "required"),
    FUNCTION(memory_copy_d2d, "required"),
    FUNCTION(memory_copy_p2p, "Tarn copies through the host"),
    FUNCTION(async_memory_copy_h2d, WAITS),
    FUNCTION(async_memory_copy_d2h, WAITS),
    FUNCTION(async_memory_copy_d2d, WAITS),
    FUNCTION(async_memory_copy_p2p, WAITS),
    FUNCTION(get_device_count, "required"),
    FUNCTION(get_device_list, "Tarn takes 0, 1, 2, ..."),
    FUNCTION(device_memory_stats, "required"),
    FUNCTION(device_min_chunk_size, "required"),
    FUNCTION(device_max_chunk_size, "Tarn takes device_max_alloc_size"),
    FUNCTION(device_max_alloc_size, "Tarn takes the memory that is free"),
    FUNCTION(device_extra_padding_size, "Tarn takes 0"),
    FUNCTION(device_init_alloc_size, "Tarn takes device_max_alloc_size"),
    FUNCTION(device_realloc_size, "Tarn takes device_max_alloc_size"),
#undef FUNCTION
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

static size_t find_function(size_t offset) {
  for (size_t i = 0; i < FUNCTIONS; i++) {
    if (functions[i].offset == offset) return i;
  }
  return FUNCTIONS;
}

const char *conform_function_name(size_t offset) {
  size_t i = find_function(offset);
  return i < FUNCTIONS ? functions[i].name : "a reserved slot";
}

const char *conform_stand_in(size_t offset) {
  size_t i = find_function(offset);
  return i < FUNCTIONS ? functions[i].stand_in : "nothing";
}

bool conform_has(const void *table, size_t offset) {
  void *function = NULL;
  memcpy(&function, (const char *)table + offset, sizeof function);
  return function != NULL;
}

static const struct {
  size_t offset;
  const char *name;
} slots[] = {
#define NAMED(name) \
  { SLOT(name), #name }
    NAMED(alignment),     NAMED(allocate_aligned), NAMED(range_granularity),
    NAMED(range_map),     NAMED(memory_export),    NAMED(allocate_async),
    NAMED(host_register), NAMED(pointer_query),    NAMED(error_text),
    NAMED(gather),        NAMED(scatter),          NAMED(scatter_add),
#undef NAMED
};
enum { SLOTS = sizeof slots / sizeof slots[0] };

const char *conform_slot_name(size_t offset) {
  for (size_t i = 0; i < SLOTS; i++) {
    if (slots[i].offset == offset) return slots[i].name;
  }
  return "a slot";
}

const char *conform_status(C_Status status) {
  static _Thread_local char number[32];
  switch (status) {
    case C_SUCCESS:
      return "C_SUCCESS";
    case C_WARNING:
      return "C_WARNING";
    case C_FAILED:
      return "C_FAILED";
    case C_ERROR:
      return "C_ERROR";
    case C_INTERNAL_ERROR:
      return "C_INTERNAL_ERROR";
  }
  snprintf(number, sizeof number, "status %d", (int)status);
  return number;
}
