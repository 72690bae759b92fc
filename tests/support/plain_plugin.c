// A test double: a plug-in with the 22 memory functions of PaddlePaddle's
// document and nothing else. It has no streams, events or extension table.
// Beside the 22 functions there is only what makes a device of it: the list of
// devices and get_device.
//
// Its devices "plain:0" and "plain:1" have 8 GiB each, in memory of the C
// library. The environment sets what it says of itself, in bytes, when it is
// loaded: PLAIN_CAPACITY, PLAIN_MIN_CHUNK (512), PLAIN_PADDING,
// PLAIN_INIT_SIZE, PLAIN_REALLOC_SIZE, PLAIN_MAX_CHUNK, PLAIN_MAX_ALLOC. A
// size that is not set leaves its function NULL, except for PLAIN_MIN_CHUNK.
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tarn/device_abi.h"

enum { DEVICES = 2, ALIGNMENT = 512 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t capacity;
static size_t used[DEVICES];  // guarded by |lock|

// --- sizes -----------------------------------------------------------------

static size_t min_chunk;
static size_t padding;
static size_t init_size;
static size_t later_size;
static size_t max_chunk;
static size_t max_alloc;

#define SIZE_QUERY(name, variable)                                \
  static C_Status name(const C_Device device, size_t *out_size) { \
    (void)device;                                                 \
    *out_size = (variable);                                       \
    return C_SUCCESS;                                             \
  }

SIZE_QUERY(say_min_chunk, min_chunk)
SIZE_QUERY(say_padding, padding)
SIZE_QUERY(say_init_size, init_size)
SIZE_QUERY(say_realloc_size, later_size)
SIZE_QUERY(say_max_chunk, max_chunk)
SIZE_QUERY(say_max_alloc, max_alloc)

// --- memory ----------------------------------------------------------------

// Addresses are multiples of the chunk, as on devices.
static C_Status take(void **out, size_t size) {
  bool is_power = (min_chunk & (min_chunk - 1)) == 0;
  size_t align = is_power && min_chunk > ALIGNMENT ? min_chunk : ALIGNMENT;
  size_t whole = (size + align - 1) / align * align;
  *out = aligned_alloc(align, whole);
  return *out != NULL ? C_SUCCESS : C_FAILED;
}

static C_Status allocate(const C_Device device, void **out, size_t size) {
  pthread_mutex_lock(&lock);
  C_Status status = C_FAILED;
  *out = NULL;
  if (size <= capacity - used[device->id]) status = take(out, size);
  if (status == C_SUCCESS) used[device->id] += size;
  pthread_mutex_unlock(&lock);
  return status;
}

static C_Status deallocate(const C_Device device, void *ptr, size_t size) {
  pthread_mutex_lock(&lock);
  used[device->id] -= size;
  pthread_mutex_unlock(&lock);
  free(ptr);
  return C_SUCCESS;
}

static C_Status take_host(const C_Device device, void **out, size_t size) {
  (void)device;
  return take(out, size);
}

static C_Status give_host(const C_Device device, void *ptr, size_t size) {
  (void)device;
  (void)size;
  free(ptr);
  return C_SUCCESS;
}

static C_Status set(const C_Device device, void *ptr, unsigned char value,
                    size_t size) {
  (void)device;
  memset(ptr, value, size);
  return C_SUCCESS;
}

static C_Status stats(const C_Device device, size_t *total, size_t *available) {
  pthread_mutex_lock(&lock);
  *total = capacity;
  *available = capacity - used[device->id];
  pthread_mutex_unlock(&lock);
  return C_SUCCESS;
}

// --- copies ----------------------------------------------------------------

static C_Status copy(const C_Device device, void *dst, const void *src,
                     size_t size) {
  (void)device;
  memcpy(dst, src, size);
  return C_SUCCESS;
}

static C_Status copy_p2p(const C_Device dst_device, const C_Device src_device,
                         void *dst, const void *src, size_t size) {
  (void)src_device;
  return copy(dst_device, dst, src, size);
}

static C_Status queue_copy(const C_Device device, C_Stream stream, void *dst,
                           const void *src, size_t size) {
  (void)stream;
  return copy(device, dst, src, size);
}

static C_Status queue_p2p(const C_Device dst_device, const C_Device src_device,
                          C_Stream stream, void *dst, const void *src,
                          size_t size) {
  (void)stream;
  return copy_p2p(dst_device, src_device, dst, src, size);
}

// --- the plug-in -----------------------------------------------------------

static C_Status get_device(const C_Device device) {
  device->id = 0;
  return C_SUCCESS;
}

static C_Status device_count(size_t *out_count) {
  *out_count = DEVICES;
  return C_SUCCESS;
}

static C_Status device_list(size_t *out_ids) {
  for (size_t i = 0; i < DEVICES; i++)
    out_ids[i] = i;
  return C_SUCCESS;
}

static size_t setting(const char *name, size_t otherwise) {
  const char *text = getenv(name);
  return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void fill_sizes(C_DeviceInterface *table) {
  capacity = setting("PLAIN_CAPACITY", (size_t)8 << 30);
  min_chunk = setting("PLAIN_MIN_CHUNK", 512);
  padding = setting("PLAIN_PADDING", 0);
  init_size = setting("PLAIN_INIT_SIZE", 0);
  later_size = setting("PLAIN_REALLOC_SIZE", 0);
  max_chunk = setting("PLAIN_MAX_CHUNK", 0);
  max_alloc = setting("PLAIN_MAX_ALLOC", 0);
  table->device_min_chunk_size = say_min_chunk;
  if (padding != 0) table->device_extra_padding_size = say_padding;
  if (init_size != 0) table->device_init_alloc_size = say_init_size;
  if (later_size != 0) table->device_realloc_size = say_realloc_size;
  if (max_chunk != 0) table->device_max_chunk_size = say_max_chunk;
  if (max_alloc != 0) table->device_max_alloc_size = say_max_alloc;
}

void InitPlugin(CustomRuntimeParams *params) {
  static char type[] = "plain";
  C_DeviceInterface *table = params->interface;
  params->device_type = type;
  params->version = (C_RuntimeVersion){0, 1, 1};
  memset((char *)table + sizeof(size_t), 0, table->size - sizeof(size_t));
  table->get_device = get_device;
  table->get_device_count = device_count;
  table->get_device_list = device_list;
  table->device_memory_allocate = allocate;
  table->device_memory_deallocate = deallocate;
  table->device_memory_set = set;
  table->device_memory_stats = stats;
  table->host_memory_allocate = take_host;
  table->host_memory_deallocate = give_host;
  table->unified_memory_allocate = take_host;
  table->unified_memory_deallocate = give_host;
  table->memory_copy_h2d = copy;
  table->memory_copy_d2h = copy;
  table->memory_copy_d2d = copy;
  table->memory_copy_p2p = copy_p2p;
  table->async_memory_copy_h2d = queue_copy;
  table->async_memory_copy_d2h = queue_copy;
  table->async_memory_copy_d2d = queue_copy;
  table->async_memory_copy_p2p = queue_p2p;
  fill_sizes(table);
}
