// A device plug-in with one fault, which TARN_FAULT in the environment names;
// without it, it is in order. To see that `tarn conform` finds each.
//
// Two devices of 1 GiB in the C library's memory. What is queued on a stream
// runs when a caller waits for it or asks, so that a caller that does not wait
// sees that nothing has happened yet.
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tarn/device_abi.h"

enum { DEVICES = 2, ALIGN = 256, WORST_ORDER = 64 };

static const size_t capacity = (size_t)1 << 30;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // guards all below
static size_t used[DEVICES];
static size_t elsewhere;  // what another process has taken
static void *newest;      // the block that was taken last

static _Thread_local int current;
static int current_of_all;

// Whether the plug-in has this fault.
static bool has(const char *fault) {
  const char *chosen = getenv("TARN_FAULT");
  return chosen != NULL && strcmp(chosen, fault) == 0;
}

static bool is_device(const struct C_Device_st *device) {
  if (has("any_id")) return true;
  return device->id >= 0 && device->id < DEVICES;
}

static int index_of(const struct C_Device_st *device) {
  if (has("current_decides")) return current_of_all;
  return device->id >= 0 && device->id < DEVICES ? device->id : 0;
}

static _Noreturn void die(void) {
  abort();
}

// --- devices ---------------------------------------------------------------

static C_Status initialize(void) {
  if (has("initialize_dies")) die();
  return has("initialize_fails") ? C_INTERNAL_ERROR : C_SUCCESS;
}

static C_Status finalize(void) {
  return has("finalize_fails") ? C_ERROR : C_SUCCESS;
}

static C_Status check_device(const C_Device device) {
  return is_device(device) ? C_SUCCESS : C_ERROR;
}

static C_Status set_device(const C_Device device) {
  if (!is_device(device)) return C_ERROR;
  current = current_of_all = device->id;
  return C_SUCCESS;
}

static C_Status get_device(const C_Device device) {
  bool global = has("current_is_global") || has("current_decides") ||
                has("memory_in_common") || has("another_process");
  device->id = global ? current_of_all : current;
  return C_SUCCESS;
}

static C_Status device_count(size_t *count) {
  *count = has("no_devices") ? 0 : DEVICES;
  return C_SUCCESS;
}

static C_Status device_list(size_t *ids) {
  ids[0] = 0;
  ids[1] = has("list_repeats") ? 0 : 1;
  if (has("list_too_long")) ids[2] = 2;
  return C_SUCCESS;
}

// --- memory ----------------------------------------------------------------

static size_t whole_size(size_t size) {
  return (size + ALIGN - 1) / ALIGN * ALIGN;
}

// No room, as each fault would have it.
static C_Status refuse(void **ptr) {
  *ptr = NULL;
  if (has("full_exits")) _exit(3);
  if (has("full_is_internal")) return C_INTERNAL_ERROR;
  return has("full_is_null") ? C_SUCCESS : C_FAILED;
}

static bool fits(int id, size_t size) {
  if (size > (size_t)1 << 60) return false;
  if (has("mostly_taken") && size > capacity / 4 - used[id]) return false;
  return has("promises_all") || size <= capacity - used[id];
}

static void *take(size_t size) {
  if (has("one_block_for_all") && newest != NULL) return newest;
  size_t shift = has("misaligned") ? 8 : has("aligned_to_16") ? 16 : 0;
  size_t room = has("one_block_for_all") ? (size_t)1 << 20 : size + ALIGN;
  char *block = aligned_alloc(ALIGN, room);
  if (block == NULL) return NULL;
  newest = block + shift;
  return newest;
}

static C_Status allocate(const C_Device device, void **ptr, size_t size) {
  if (!is_device(device) || size == 0) return C_ERROR;
  int id = index_of(device);
  pthread_mutex_lock(&lock);
  bool room = fits(id, size);
  size_t whole = room ? whole_size(size) : 0;
  if (room && has("devices_share") && id == 1 && newest != NULL) {
    *ptr = newest;
  } else if (room) {
    bool huge = whole > capacity;  // as promised, though nothing is there
    *ptr = take(huge ? ALIGN : whole);
  }
  if (room) used[id] += whole;
  pthread_mutex_unlock(&lock);
  return room ? C_SUCCESS : refuse(ptr);
}

// Blocks that are shifted or shared are not given back: it is a test.
static C_Status deallocate(const C_Device device, void *ptr, size_t size) {
  if (!is_device(device)) return C_ERROR;
  bool odd = has("misaligned") || has("aligned_to_16") ||
             has("one_block_for_all") || has("devices_share");
  pthread_mutex_lock(&lock);
  if (!has("never_free")) used[index_of(device)] -= whole_size(size);
  if (!odd && newest == ptr) newest = NULL;
  pthread_mutex_unlock(&lock);
  if (!odd) free(ptr);
  return has("free_fails") ? C_ERROR : C_SUCCESS;
}

static C_Status host_allocate(const C_Device device, void **ptr, size_t size) {
  if (!is_device(device) || size > capacity) return C_FAILED;
  *ptr =
      has("host_memory_null") ? NULL : aligned_alloc(ALIGN, whole_size(size));
  return C_SUCCESS;
}

static C_Status host_deallocate(const C_Device device, void *ptr, size_t size) {
  (void)size;
  free(ptr);
  return check_device(device);
}

static C_Status set(const C_Device device, void *ptr, unsigned char value,
                    size_t size) {
  if (has("set_value_wrong") && value == 0x80) value = 0;
  if (has("set_too_long")) size++;
  memset(ptr, value, size);
  return check_device(device);
}

static C_Status stats(const C_Device device, size_t *total, size_t *free_) {
  if (!is_device(device)) return C_ERROR;
  pthread_mutex_lock(&lock);
  size_t taken = used[index_of(device)];
  if (has("memory_in_common")) taken = used[0] + used[1];
  if (has("another_process")) taken += elsewhere += ALIGN;
  pthread_mutex_unlock(&lock);
  *total = has("total_shrinks") ? capacity - taken : capacity;
  *free_ = capacity - taken;
  if (has("mostly_taken")) *free_ = capacity / 4 - taken;
  if (has("stats_stand_still")) *free_ = capacity / 2;
  if (has("free_above_total")) *free_ = capacity + 1;
  if (has("no_total")) *total = *free_ = 0;
  return C_SUCCESS;
}

static C_Status min_chunk(const C_Device device, size_t *size) {
  *size = has("min_chunk_0") ? 0 : has("min_chunk_odd") ? 48 : ALIGN;
  return check_device(device);
}

static C_Status max_alloc(const C_Device device, size_t *size) {
  if (has("size_fails")) return C_ERROR;
  *size = has("max_alloc_above_total") ? 2 * capacity : capacity;
  return check_device(device);
}

static C_Status padding(const C_Device device, size_t *size) {
  *size = has("padding_huge") ? capacity : 0;
  return check_device(device);
}

// --- copies ----------------------------------------------------------------

static C_Status h2d(const C_Device device, void *dst, const void *src,
                    size_t size) {
  memcpy(dst, src, size - has("h2d_too_short"));
  return check_device(device);
}

static C_Status d2h(const C_Device device, void *dst, const void *src,
                    size_t size) {
  memcpy(dst, src, size + (has("d2h_too_long") && size == 100));
  return check_device(device);
}

static C_Status d2d(const C_Device device, void *dst, const void *src,
                    size_t size) {
  if (has("d2d_dies")) die();
  memcpy(dst, src, has("d2d_whole_words") ? size & ~(size_t)7 : size);
  return check_device(device);
}

static C_Status p2p(const C_Device dst_device, const C_Device src_device,
                    void *dst, const void *src, size_t size) {
  if (!is_device(dst_device) || !is_device(src_device)) return C_ERROR;
  if (has("p2p_does_nothing")) return C_SUCCESS;
  memcpy(dst, src, size);
  return C_SUCCESS;
}

// --- streams ---------------------------------------------------------------

typedef struct op {
  struct op *next;
  void *dst;  // NULL: a callback
  const void *src;
  size_t size;
  C_Callback callback;
  void *user_data;
} op;

struct C_Stream_st {
  int device;
  pthread_mutex_t lock;  // guards the list, and is held while it runs
  op *first;
  op *last;
};

static C_Status create_stream(const C_Device device, C_Stream *stream) {
  if (!is_device(device)) return C_ERROR;
  C_Stream made = calloc(1, sizeof *made);
  if (made == NULL) return C_FAILED;
  made->device = device->id;
  pthread_mutex_init(&made->lock, NULL);
  *stream = made;
  return C_SUCCESS;
}

static void run_op(C_Stream stream, const op *o) {
  struct C_Device_st device = {.id = stream->device};
  C_Status status = has("callback_status_wrong") ? C_FAILED : C_SUCCESS;
  if (o->callback == NULL) {
    memcpy(o->dst, o->src, o->size);
    return;
  }
  if (has("callback_never")) return;
  o->callback(&device, stream, o->user_data, &status);
  if (has("callback_twice")) {
    o->callback(&device, stream, o->user_data, &status);
  }
}

static void run_all(C_Stream stream) {
  pthread_mutex_lock(&stream->lock);
  while (stream->first != NULL) {
    op *o = stream->first;
    stream->first = o->next;
    run_op(stream, o);
    free(o);
  }
  stream->last = NULL;
  pthread_mutex_unlock(&stream->lock);
}

static void add_op(C_Stream stream, op *o) {
  pthread_mutex_lock(&stream->lock);
  bool in_front =
      has("order_broken") || (has("callback_early") && o->callback != NULL);
  if (in_front || stream->first == NULL) {
    o->next = stream->first;
    stream->first = o;
    if (stream->last == NULL) stream->last = o;
  } else {
    stream->last->next = o;
    stream->last = o;
  }
  pthread_mutex_unlock(&stream->lock);
}

static C_Status queue(C_Stream stream, op wanted) {
  op *o = malloc(sizeof *o);
  if (o == NULL) return C_FAILED;
  *o = wanted;
  add_op(stream, o);
  return C_SUCCESS;
}

static C_Status queue_copy(const C_Device device, C_Stream stream, void *dst,
                           const void *src, size_t size) {
  if (!is_device(device)) return C_ERROR;
  if (has("queued_too_short")) size--;
  return queue(stream, (op){.dst = dst, .src = src, .size = size});
}

// A queue of one: what is before it is waited for.
static C_Status queue_h2d(const C_Device device, C_Stream stream, void *dst,
                          const void *src, size_t size) {
  if (has("queue_is_short")) run_all(stream);
  return queue_copy(device, stream, dst, src, size);
}

static C_Status queue_p2p(const C_Device dst_device, const C_Device src_device,
                          C_Stream stream, void *dst, const void *src,
                          size_t size) {
  return is_device(dst_device) ? queue_copy(src_device, stream, dst, src, size)
                               : C_ERROR;
}

static C_Status add_callback(const C_Device device, C_Stream stream,
                             C_Callback callback, void *user_data) {
  if (!is_device(device)) return C_ERROR;
  return queue(stream, (op){.callback = callback, .user_data = user_data});
}

static C_Status synchronize_stream(const C_Device device, C_Stream stream) {
  while (has("synchronize_hangs"))
    (void)sleep(1);
  if (!has("synchronize_does_nothing")) run_all(stream);
  return check_device(device);
}

static C_Status query_stream(const C_Device device, C_Stream stream) {
  if (has("query_says_yes")) return C_SUCCESS;
  run_all(stream);
  return check_device(device);
}

static C_Status synchronize_device(const C_Device device) {
  return check_device(device);
}

static C_Status destroy_stream(const C_Device device, C_Stream stream) {
  if (!has("destroy_drops_work")) run_all(stream);
  while (stream->first != NULL) {
    op *o = stream->first;
    stream->first = o->next;
    free(o);
  }
  pthread_mutex_destroy(&stream->lock);
  free(stream);
  return check_device(device);
}

// --- events ----------------------------------------------------------------

// Happened when all is done that was on its stream.
struct C_Event_st {
  C_Stream stream;  // NULL: never recorded
};

static C_Status create_event(const C_Device device, C_Event *event) {
  *event = calloc(1, sizeof **event);
  return *event != NULL ? check_device(device) : C_FAILED;
}

static C_Status record_event(const C_Device device, C_Stream stream,
                             C_Event event) {
  if (!has("first_record_counts") || event->stream == NULL) {
    event->stream = stream;
  }
  return check_device(device);
}

static C_Status destroy_event(const C_Device device, C_Event event) {
  free(event);
  return check_device(device);
}

static C_Status query_event(const C_Device device, C_Event event) {
  if (has("event_never_happens")) return C_WARNING;
  if (event->stream != NULL) run_all(event->stream);
  return check_device(device);
}

static C_Status synchronize_event(const C_Device device, C_Event event) {
  if (has("event_unrecorded_fails") && event->stream == NULL) return C_ERROR;
  if (event->stream != NULL && !has("event_is_not_awaited")) {
    run_all(event->stream);
  }
  return check_device(device);
}

static C_Status stream_wait_event(const C_Device device, C_Stream stream,
                                  C_Event event) {
  bool waits = event->stream != NULL && event->stream != stream;
  if (waits && !has("wait_is_ignored")) run_all(event->stream);
  return check_device(device);
}

// --- the table -------------------------------------------------------------

static void fill(C_DeviceInterface *table) {
  table->initialize = initialize;
  table->finalize = finalize;
  table->init_device = table->deinit_device = check_device;
  table->set_device = set_device;
  table->get_device = get_device;
  table->get_device_count = device_count;
  table->get_device_list = device_list;
  table->create_stream = create_stream;
  table->destroy_stream = has("half_of_streams") ? NULL : destroy_stream;
  table->query_stream = query_stream;
  if (has("destroy_drops_work")) table->synchronize_device = synchronize_device;
  table->synchronize_stream = synchronize_stream;
  table->stream_add_callback = add_callback;
  table->create_event = create_event;
  table->record_event = record_event;
  table->destroy_event = destroy_event;
  table->query_event = query_event;
  table->synchronize_event = synchronize_event;
  table->stream_wait_event = stream_wait_event;
  table->device_memory_allocate = allocate;
  table->device_memory_deallocate = deallocate;
  table->device_memory_set = set;
  table->host_memory_allocate = host_allocate;
  table->host_memory_deallocate = host_deallocate;
  table->memory_copy_h2d = h2d;
  table->memory_copy_d2h = d2h;
  table->memory_copy_d2d = d2d;
  table->memory_copy_p2p = p2p;
  table->async_memory_copy_h2d = has("queues_no_copies") ? NULL : queue_h2d;
  table->async_memory_copy_d2h = queue_copy;
  table->async_memory_copy_d2d = queue_copy;
  table->async_memory_copy_p2p = queue_p2p;
  table->device_memory_stats = stats;
  table->device_min_chunk_size = min_chunk;
  table->device_max_alloc_size = max_alloc;
  table->device_extra_padding_size = padding;
}

void InitPlugin(CustomRuntimeParams *params) {
  static char type[] = "faulty";
  static char other[] = "other";
  if (has("load_dies")) die();
  while (has("load_hangs"))
    (void)sleep(1);
  if (has("no_type")) return;
  C_DeviceInterface *table = params->interface;
  size_t size = table->size;
  memset(table, 0, has("table_overrun") ? 1040 : size);
  if (!has("size_cleared")) table->size = size;
  fill(table);
  if (has("slots_beyond")) table->beyond[3] = type;
  if (has("slots_reserved")) table->reserved_mem_api[1] = type;
  params->version = (C_RuntimeVersion){0, has("version_wrong") ? 2 : 1, 1};
  bool differs = has("type_differs") && size == 912;
  params->device_type = differs ? other : type;
}
