// The fake device. One lock for all of it: it is here to be looked into, not
// to be fast.
#include "support/fake_plugin.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/fake_extension.h"
#include "support/faults.h"
#include "tarn/device.h"

fake_habits fake = {
    .type = "fake",
    .devices = 2,
    .capacity = (size_t)1 << 40,
    .min_chunk = 256,
    .max_alloc = (size_t)1 << 20,
    .query_answer = C_WARNING,
};
fake_ledger fake_seen;

// Guards all here; recursive, since callbacks run under it.
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static _Thread_local int current = -1;

enum { OPS_MAX = 4096, BLOCKS_MAX = 65536 };

typedef struct operation {
  void *dst;
  const void *src;
  size_t size;
  struct C_Stream_st *other;  // wait: for this stream ...
  size_t position;            // ... to have come so far
  C_Callback callback;
  void *user_data;
} operation;

// Kept after its end, without its operations: events may still name it.
struct C_Stream_st {
  struct C_Device_st device;
  operation *ops;
  size_t queued;
  size_t done;
  C_Stream next;  // in the list of those alive, or ended
};

struct C_Event_st {
  C_Stream stream;
  size_t position;
};

static C_Stream live_streams;
static C_Stream ended_streams;

static struct {
  void *ptr;     // as it was given
  void *memory;  // as the C library gave it
  size_t size;
} blocks[BLOCKS_MAX];

static void count(size_t *counter, size_t change) {
  pthread_mutex_lock(&lock);
  *counter += change;
  pthread_mutex_unlock(&lock);
}

// --- habits ----------------------------------------------------------------

// Whether the call is to fail, after noting whom it concerns.
static bool enter(const C_Device device) {
  int first = fake.id_offset;
  if (device->id < first || device->id >= first + (int)fake.devices) {
    fake_seen.wrong_id++;
  }
  if (device->id != current) fake_seen.wrong_device++;
  return fake.strikes && faults_strike();
}

static bool struck(const C_Device device) {
  pthread_mutex_lock(&lock);
  bool result = enter(device);
  pthread_mutex_unlock(&lock);
  return result;
}

bool fake_called(int id) {
  struct C_Device_st device = {id};
  return struck(&device);
}

// --- devices ---------------------------------------------------------------

static C_Status run_helper(void) {
  pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 1;
  return waitpid(child, &status, 0) == child && status == 0 ? C_SUCCESS
                                                            : C_ERROR;
}

static C_Status initialize(void) {
  if (fake.forks) return run_helper();
  return fake.strikes && faults_strike() ? C_ERROR : C_SUCCESS;
}

static C_Status finalize(void) {
  return C_SUCCESS;
}

static C_Status init_device(const C_Device device) {
  if (fake.strikes && faults_strike()) return C_ERROR;
  device->id += fake.id_offset;
  count(&fake_seen.open_devices, 1);
  return C_SUCCESS;
}

static C_Status set_device(const C_Device device) {
  if (fake.strikes && faults_strike()) return C_ERROR;
  count(&fake_seen.set_device_calls, 1);
  current = device->id;
  return C_SUCCESS;
}

static C_Status get_device(const C_Device device) {
  device->id = current;
  return C_SUCCESS;
}

static C_Status deinit_device(const C_Device device) {
  (void)device;
  count(&fake_seen.open_devices, (size_t)-1);
  return C_SUCCESS;
}

static C_Status get_device_count(size_t *count) {
  *count = fake.devices;
  return C_SUCCESS;
}

static C_Status get_device_list(size_t *ids) {
  for (size_t i = 0; i < fake.devices; i++)
    ids[i] = i;
  return C_SUCCESS;
}

// --- streams ---------------------------------------------------------------

static C_Status create_stream(const C_Device device, C_Stream *stream) {
  if (struck(device)) return C_INTERNAL_ERROR;
  if (fake.null_handles) return C_SUCCESS;
  *stream = calloc(1, sizeof **stream);
  ck_assert_ptr_nonnull(*stream);
  (*stream)->ops = malloc(OPS_MAX * sizeof *(*stream)->ops);
  ck_assert_ptr_nonnull((*stream)->ops);
  (*stream)->device = *device;
  pthread_mutex_lock(&lock);
  (*stream)->next = live_streams;
  live_streams = *stream;
  fake_seen.streams++;
  pthread_mutex_unlock(&lock);
  return C_SUCCESS;
}

// Runs what is queued on |stream| up to |position|. Bounded: every wait looks
// back at what was queued before it.
static void run_to(C_Stream stream, size_t position) {
  while (stream->done < position) {
    operation op = stream->ops[stream->done++];
    C_Status status = C_SUCCESS;
    if (op.other != NULL) run_to(op.other, op.position);
    if (op.dst != NULL) {
      memcpy(op.dst, op.src, op.size);
      count(&fake_seen.copies, 1);
    }
    if (op.callback != NULL) {
      op.callback(&stream->device, stream, op.user_data, &status);
    }
  }
}

static void queue(C_Stream stream, operation op) {
  pthread_mutex_lock(&lock);
  ck_assert_uint_lt(stream->queued, OPS_MAX);
  stream->ops[stream->queued++] = op;
  pthread_mutex_unlock(&lock);
}

void fake_queue(C_Stream stream, C_Callback callback, void *user_data) {
  queue(stream, (operation){.callback = callback, .user_data = user_data});
}

static C_Status synchronize_stream(const C_Device device, C_Stream stream) {
  count(&fake_seen.waits, 1);
  if (stream != NULL) {
    pthread_mutex_lock(&lock);
    run_to(stream, stream->queued);
    pthread_mutex_unlock(&lock);
  }
  if (struck(device)) return C_INTERNAL_ERROR;
  return fake.sync_answer;
}

// Only once no stream or event is left that could name them.
static void free_ended_locked(void) {
  if (fake_seen.streams != 0 || fake_seen.events != 0) return;
  while (ended_streams != NULL) {
    C_Stream next = ended_streams->next;
    free(ended_streams);
    ended_streams = next;
  }
}

static C_Status destroy_stream(const C_Device device, C_Stream stream) {
  (void)device;
  if (stream == NULL) return C_SUCCESS;
  pthread_mutex_lock(&lock);
  run_to(stream, stream->queued);
  free(stream->ops);
  stream->ops = NULL;
  C_Stream *link = &live_streams;
  while (*link != stream)
    link = &(*link)->next;
  *link = stream->next;
  stream->next = ended_streams;
  ended_streams = stream;
  fake_seen.streams--;
  free_ended_locked();
  pthread_mutex_unlock(&lock);
  return C_SUCCESS;
}

static C_Status query_stream(const C_Device device, C_Stream stream) {
  if (struck(device)) return C_INTERNAL_ERROR;
  pthread_mutex_lock(&lock);
  bool done = stream == NULL || stream->done == stream->queued;
  pthread_mutex_unlock(&lock);
  return done ? C_SUCCESS : fake.query_answer;
}

static C_Status stream_add_callback(const C_Device device, C_Stream stream,
                                    C_Callback callback, void *user_data) {
  if (struck(device)) return C_INTERNAL_ERROR;
  fake_queue(stream, callback, user_data);
  return C_SUCCESS;
}

static C_Status synchronize_device(const C_Device device) {
  pthread_mutex_lock(&lock);
  for (C_Stream stream = live_streams; stream != NULL; stream = stream->next) {
    if (stream->device.id == device->id) run_to(stream, stream->queued);
  }
  pthread_mutex_unlock(&lock);
  return struck(device) ? C_INTERNAL_ERROR : C_SUCCESS;
}

// --- events ----------------------------------------------------------------

static C_Status create_event(const C_Device device, C_Event *event) {
  if (struck(device)) return C_INTERNAL_ERROR;
  if (fake.null_handles) return C_SUCCESS;
  *event = calloc(1, sizeof **event);
  ck_assert_ptr_nonnull(*event);
  count(&fake_seen.events, 1);
  return C_SUCCESS;
}

static C_Status record_event(const C_Device device, C_Stream stream,
                             C_Event event) {
  if (struck(device)) return C_INTERNAL_ERROR;
  pthread_mutex_lock(&lock);
  event->stream = stream;
  event->position = stream->queued;
  pthread_mutex_unlock(&lock);
  return C_SUCCESS;
}

static C_Status destroy_event(const C_Device device, C_Event event) {
  (void)device;
  free(event);
  pthread_mutex_lock(&lock);
  fake_seen.events--;
  free_ended_locked();
  pthread_mutex_unlock(&lock);
  return C_SUCCESS;
}

static C_Status query_event(const C_Device device, C_Event event) {
  if (struck(device)) return C_INTERNAL_ERROR;
  bool done = event->stream == NULL || event->stream->done >= event->position;
  return done ? C_SUCCESS : fake.query_answer;
}

static C_Status synchronize_event(const C_Device device, C_Event event) {
  count(&fake_seen.waits, 1);
  if (event->stream != NULL) {
    pthread_mutex_lock(&lock);
    run_to(event->stream, event->position);
    pthread_mutex_unlock(&lock);
  }
  if (struck(device)) return C_INTERNAL_ERROR;
  return C_SUCCESS;
}

static C_Status stream_wait_event(const C_Device device, C_Stream stream,
                                  C_Event event) {
  if (struck(device)) return C_INTERNAL_ERROR;
  queue(stream,
        (operation){.other = event->stream, .position = event->position});
  return C_SUCCESS;
}

// --- memory ----------------------------------------------------------------

static C_Status no_memory(void **ptr) {
  *ptr = NULL;
  return fake.full_is_null ? C_SUCCESS : C_FAILED;
}

static bool note_block(void *ptr, void *memory, size_t size) {
  for (size_t i = 0; i < BLOCKS_MAX; i++) {
    if (blocks[i].ptr != NULL) continue;
    blocks[i].ptr = ptr;
    blocks[i].memory = memory;
    blocks[i].size = size;
    fake_seen.live_bytes += size;
    fake_seen.live_blocks++;
    fake_seen.allocations++;
    return true;
  }
  return false;
}

static void *take_locked(size_t size, size_t align, size_t misalign) {
  char *memory = NULL;
  if (size > fake.capacity - fake_seen.live_bytes) return NULL;
  if (posix_memalign((void **)&memory, align, size + misalign) != 0) {
    return NULL;
  }
  ck_assert(note_block(memory + misalign, memory, size));
  return memory + misalign;
}

void *fake_take(size_t size, size_t align, size_t misalign) {
  pthread_mutex_lock(&lock);
  void *ptr = take_locked(size, align, misalign);
  pthread_mutex_unlock(&lock);
  return ptr;
}

static C_Status allocate_locked(void **ptr, size_t size) {
  bool is_power = fake.min_chunk != 0 && tarn_is_power_of_two(fake.min_chunk);
  size_t align = is_power && fake.min_chunk > 4096 ? fake.min_chunk : 4096;
  *ptr = take_locked(size, align, fake.misalign);
  return *ptr != NULL ? C_SUCCESS : no_memory(ptr);
}

static C_Status allocate(const C_Device device, void **ptr, size_t size) {
  if (fake.allocating != NULL) fake.allocating();
  pthread_mutex_lock(&lock);
  C_Status status = enter(device) ? no_memory(ptr) : allocate_locked(ptr, size);
  pthread_mutex_unlock(&lock);
  return status;
}

static C_Status deallocate_locked(void *ptr, size_t size) {
  for (size_t i = 0; i < BLOCKS_MAX; i++) {
    if (blocks[i].ptr != ptr) continue;
    if (blocks[i].size != size) fake_seen.wrong_size++;
    fake_seen.live_bytes -= blocks[i].size;
    fake_seen.live_blocks--;
    blocks[i].ptr = NULL;
    free(blocks[i].memory);
    return C_SUCCESS;
  }
  return C_ERROR;
}

bool fake_give(void *ptr, size_t size) {
  pthread_mutex_lock(&lock);
  C_Status status = deallocate_locked(ptr, size);
  pthread_mutex_unlock(&lock);
  return status == C_SUCCESS;
}

// A fault here still frees: else every fault would be a leak by design.
static C_Status deallocate(const C_Device device, void *ptr, size_t size) {
  if (fake.freeing != NULL) fake.freeing();
  pthread_mutex_lock(&lock);
  bool fails = enter(device);
  C_Status status = deallocate_locked(ptr, size);
  pthread_mutex_unlock(&lock);
  return fails ? C_INTERNAL_ERROR : status;
}

static C_Status memory_set(const C_Device device, void *ptr,
                           unsigned char value, size_t size) {
  if (struck(device)) return C_INTERNAL_ERROR;
  memset(ptr, value, size);
  return fake.copy_answer;
}

static C_Status copy(const C_Device device, void *dst, const void *src,
                     size_t size) {
  if (struck(device)) return C_INTERNAL_ERROR;
  memcpy(dst, src, size);
  count(&fake_seen.copies, 1);
  return fake.copy_answer;
}

static C_Status copy_p2p(const C_Device dst_device, const C_Device src_device,
                         void *dst, const void *src, size_t size) {
  (void)dst_device;
  return copy(src_device, dst, src, size);
}

static C_Status async_copy(const C_Device device, C_Stream stream, void *dst,
                           const void *src, size_t size) {
  if (struck(device)) return C_INTERNAL_ERROR;
  queue(stream, (operation){.dst = dst, .src = src, .size = size});
  return fake.copy_answer;
}

static C_Status async_copy_p2p(const C_Device dst_device,
                               const C_Device src_device, C_Stream stream,
                               void *dst, const void *src, size_t size) {
  (void)dst_device;
  return async_copy(src_device, stream, dst, src, size);
}

// --- sizes -----------------------------------------------------------------

static C_Status memory_stats(const C_Device device, size_t *total,
                             size_t *available) {
  count(&fake_seen.memory_queries, 1);
  if (struck(device)) return C_INTERNAL_ERROR;
  *total = fake.capacity;
  pthread_mutex_lock(&lock);
  *available = fake.capacity - (fake.boasts ? 0 : fake_seen.live_bytes);
  pthread_mutex_unlock(&lock);
  if (fake.answered != NULL) fake.answered();
  return C_SUCCESS;
}

static C_Status min_chunk(const C_Device device, size_t *size) {
  if (struck(device)) return C_INTERNAL_ERROR;
  *size = fake.min_chunk;
  return C_SUCCESS;
}

static C_Status padding(const C_Device device, size_t *size) {
  if (struck(device)) return C_INTERNAL_ERROR;
  *size = fake.padding;
  return fake.size_answer;
}

#define SIZE_QUERY(name)                                            \
  static C_Status say_##name(const C_Device device, size_t *size) { \
    count(&fake_seen.size_queries, 1);                              \
    if (struck(device)) return C_INTERNAL_ERROR;                    \
    *size = fake.name;                                              \
    return fake.size_answer;                                        \
  }

SIZE_QUERY(max_alloc)
SIZE_QUERY(max_chunk)
SIZE_QUERY(init_size)
SIZE_QUERY(realloc_size)

// Sizes of 0 that no answer goes with are missing.
static uint64_t missing_sizes(void) {
  uint64_t bits = 0;
  if (fake.size_answer != C_SUCCESS) return 0;
  if (fake.max_alloc == 0) bits |= FAKE_MISSES(device_max_alloc_size);
  if (fake.max_chunk == 0) bits |= FAKE_MISSES(device_max_chunk_size);
  if (fake.init_size == 0) bits |= FAKE_MISSES(device_init_alloc_size);
  if (fake.realloc_size == 0) bits |= FAKE_MISSES(device_realloc_size);
  return bits;
}

// --- the table -------------------------------------------------------------

static const C_DeviceInterface complete = {
    .initialize = initialize,
    .finalize = finalize,
    .init_device = init_device,
    .set_device = set_device,
    .get_device = get_device,
    .deinit_device = deinit_device,
    .create_stream = create_stream,
    .destroy_stream = destroy_stream,
    .query_stream = query_stream,
    .stream_add_callback = stream_add_callback,
    .create_event = create_event,
    .record_event = record_event,
    .destroy_event = destroy_event,
    .query_event = query_event,
    .synchronize_device = synchronize_device,
    .synchronize_stream = synchronize_stream,
    .synchronize_event = synchronize_event,
    .stream_wait_event = stream_wait_event,
    .device_memory_allocate = allocate,
    .device_memory_deallocate = deallocate,
    .device_memory_set = memory_set,
    .host_memory_allocate = allocate,
    .host_memory_deallocate = deallocate,
    .unified_memory_allocate = allocate,
    .unified_memory_deallocate = deallocate,
    .memory_copy_h2d = copy,
    .memory_copy_d2h = copy,
    .memory_copy_d2d = copy,
    .memory_copy_p2p = copy_p2p,
    .async_memory_copy_h2d = async_copy,
    .async_memory_copy_d2h = async_copy,
    .async_memory_copy_d2d = async_copy,
    .async_memory_copy_p2p = async_copy_p2p,
    .get_device_count = get_device_count,
    .get_device_list = get_device_list,
    .device_memory_stats = memory_stats,
    .device_min_chunk_size = min_chunk,
    .device_max_chunk_size = say_max_chunk,
    .device_max_alloc_size = say_max_alloc,
    .device_extra_padding_size = padding,
    .device_init_alloc_size = say_init_size,
    .device_realloc_size = say_realloc_size,
};

enum { FUNCTIONS_END = offsetof(C_DeviceInterface, beyond) / 8 };

// Sets only what it has, as real plug-ins do: the rest keeps what was there.
static void fill_table(C_DeviceInterface *table) {
  void *const *from = (void *const *)(const void *)&complete;
  void **to = (void **)(void *)table;
  uint64_t missing = fake.missing | missing_sizes();
  for (size_t i = 1; i < FUNCTIONS_END; i++) {
    bool has = from[i] != NULL && (missing & (UINT64_C(1) << i)) == 0;
    if (has) to[i] = from[i];
  }
}

void fake_init(CustomRuntimeParams *params) {
  C_DeviceInterface *table = params->interface;
  if (fake.wants_params != 0 && params->size != fake.wants_params) return;
  if (fake.wants_table != 0 && table->size != fake.wants_table) return;
  if (fake.clears != 0) memset((void *)table, 0, fake.clears);
  fill_table(table);
  if (fake.clears_size) table->size = 0;
  params->device_type = (char *)(uintptr_t)fake.type;
  params->version.minor = 1;
  params->version.patch = 1;
}

void fake_add(void) {
  tarn_status status =
      tarn_plugin_register(fake_init, fake_extension, "a test double");
  ck_assert_msg(status == TARN_OK || status == TARN_E_STATE, "%s",
                tarn_last_error());  // TARN_E_STATE: added before
}
