// Which streams there are, by serial, and the end of adopted streams.
//
//   adopt ──► living ──last destroy──► departed ──event reached──► gone
//               ▲                         │
//               │                         └─ its serial leads to its event
//   adopt of the same handle: another stream, another serial
//
// natives.h has another index beside this one, by handle. Both lead to the
// stream's struct, which stays as long as its serial has a meaning.
//
// The event is created at the adoption, so that the last destroy cannot fail
// for lack of one. A departed stream whose work is done ends when a thread
// waits for it, when another stream is adopted or departs, and when the device
// is synchronised or closed. So few departed streams have no work left.
#include "device/streams.h"

#include "device/device.h"

enum { RECENT = 256 };

static struct {
  pthread_mutex_t lock;  // guards all below, and of every stream its node in
                         // the map, its node in the list, and its counts
  pthread_cond_t unpinned;
  tarn__range_map all;          // by serial
  tarn_stream *recent[RECENT];  // the newest, by the last bits of the serial:
                                // most serials are found here
  tarn_list departed;           // the one looked at longest ago first
  uint64_t last_serial;
} streams = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .unpinned = PTHREAD_COND_INITIALIZER,
    .departed = {&streams.departed, &streams.departed},
};

// No thread of a child waits for the condition.
static void unlock_in_child(void) {
  streams.unpinned = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  pthread_mutex_unlock(&streams.lock);
}

TARN__LOCK_AROUND_FORKS(LAST, streams, &streams.lock, unlock_in_child)

static tarn_stream *of_serial(tarn__range_map_node *node) {
  return tarn_list_entry(node, tarn_stream, by_serial);
}

static bool is_foreign(const tarn_stream *stream) {
  return stream->generation != tarn__os_generation();
}

// The lock is held.
static tarn_stream *find(uint64_t serial) {
  tarn_stream *recent = streams.recent[serial % RECENT];
  if (recent != NULL && recent->serial == serial) return recent;
  tarn__range_map_node *node = tarn__range_map_at(&streams.all, serial);
  return node != NULL && node->start == serial ? of_serial(node) : NULL;
}

static void remove_stream(tarn_stream *stream) {
  tarn_stream **recent = &streams.recent[stream->serial % RECENT];
  if (*recent == stream) *recent = NULL;
  tarn__range_map_remove(&streams.all, &stream->by_serial);
  if (stream->departed) tarn_list_del(&stream->node);
}

// --- living streams --------------------------------------------------------

void tarn__streams_enter(tarn_stream *stream) {
  lock_streams();
  stream->serial = ++streams.last_serial;
  stream->by_serial.start = stream->serial;
  tarn__range_map_insert(&streams.all, &stream->by_serial);
  streams.recent[stream->serial % RECENT] = stream;
  unlock_streams();
}

void tarn__streams_begin_end(tarn_stream *stream) {
  lock_streams();
  stream->ends = true;
  unlock_streams();
}

void tarn__streams_leave(tarn_stream *stream) {
  lock_streams();
  remove_stream(stream);
  while (stream->pins + stream->holds > 0)
    pthread_cond_wait(&streams.unpinned, &streams.lock);
  unlock_streams();
}

bool tarn__stream_is_gone(uint64_t serial) {
  lock_streams();
  bool found = find(serial) != NULL;
  unlock_streams();
  return !found;
}

bool tarn__stream_is_departed(uint64_t serial) {
  lock_streams();
  const tarn_stream *found = find(serial);
  bool departed = found != NULL && found->departed;
  unlock_streams();
  return departed;
}

static bool can_queue(const tarn_stream *stream) {
  return stream->native != NULL && !stream->departed && !is_foreign(stream);
}

tarn_stream *tarn__stream_pin(uint64_t serial) {
  lock_streams();
  tarn_stream *found = find(serial);
  if (found != NULL && !can_queue(found)) found = NULL;
  if (found != NULL) found->pins++;
  unlock_streams();
  return found;
}

static void unpin_locked(tarn_stream *stream) {
  stream->pins--;
  pthread_cond_broadcast(&streams.unpinned);
}

void tarn__stream_unpin(tarn_stream *stream) {
  lock_streams();
  unpin_locked(stream);
  unlock_streams();
}

bool tarn__stream_unpin_waiting(tarn_stream *stream) {
  lock_streams();
  bool stays = !stream->ends;
  unpin_locked(stream);
  unlock_streams();
  return stays;
}

void tarn__stream_pin_to_hold(tarn_stream *stream) {
  lock_streams();
  stream->holds++;
  unpin_locked(stream);
  unlock_streams();
}

// --- walks -----------------------------------------------------------------

// The lowest serial above |serial| of those of |device|; UINT64_MAX: none.
static uint64_t next_above(const tarn_device *device, uint64_t serial) {
  tarn__range_map_node *node = tarn__range_map_at(&streams.all, serial);
  node = tarn__range_map_behind(&streams.all, node);
  for (; node != NULL; node = tarn__range_map_next(node)) {
    const tarn_stream *stream = of_serial(node);
    bool fits = device == NULL || stream->device == device;
    if (fits && !is_foreign(stream)) return node->start;
  }
  return UINT64_MAX;
}

tarn_status tarn__streams_each(const tarn_device *device,
                               tarn_status (*visit)(uint64_t serial)) {
  tarn_status first = TARN_OK;
  lock_streams();
  uint64_t newest = streams.last_serial;
  uint64_t serial = next_above(device, 0);
  while (serial <= newest) {
    unlock_streams();
    tarn__keep_first(&first, visit(serial));
    lock_streams();
    serial = next_above(device, serial);
  }
  unlock_streams();
  return first;
}

static tarn_status synchronize_living(uint64_t serial) {
  tarn_stream *stream = tarn__stream_pin(serial);
  if (stream == NULL) return TARN_OK;
  tarn_status status = tarn_stream_synchronize(stream);
  tarn__stream_unpin(stream);
  return status;
}

tarn_status tarn__streams_synchronize(const tarn_device *device) {
  return tarn__streams_each(device, synchronize_living);
}

// --- departed streams ------------------------------------------------------

// In a child of fork, threads that held it are not there.
static tarn_stream *hold_locked(tarn_stream *stream) {
  if (is_foreign(stream)) stream->holds = 0;
  stream->holds++;
  return stream;
}

tarn_stream *tarn__departed_hold(uint64_t serial) {
  lock_streams();
  tarn_stream *found = find(serial);
  if (found != NULL) found = found->departed ? hold_locked(found) : NULL;
  unlock_streams();
  return found;
}

tarn_stream *tarn__departed_next(const tarn_device *device) {
  tarn_stream *found = NULL;
  tarn_list *node = NULL;
  lock_streams();
  tarn_list_for_each (node, &streams.departed) {
    tarn_stream *stream = tarn_list_entry(node, tarn_stream, node);
    if (stream->device != device) continue;
    found = hold_locked(stream);
    tarn_list_del(node);
    tarn_list_add_tail(&streams.departed, node);
    break;
  }
  unlock_streams();
  return found;
}

size_t tarn__departed_count(const tarn_device *device) {
  size_t count = 0;
  tarn_list *node = NULL;
  lock_streams();
  tarn_list_for_each (node, &streams.departed)
    count += tarn_list_entry(node, tarn_stream, node)->device == device;
  unlock_streams();
  return count;
}

// The driver has called all callbacks that were in front of the event.
static void end(tarn_stream *stream) {
  tarn_device *device = stream->device;
  (void)tarn__event_free(stream->last);
  (void)tarn__stream_call_the_forgotten(stream);
  tarn__device_count(device, &device->streams, -1);
  tarn__stream_free(stream);
}

void tarn__stream_release(tarn_stream *stream, bool over) {
  lock_streams();
  stream->holds--;
  stream->over = stream->over || (over && stream->departed);
  bool last = stream->over && stream->holds == 0;
  if (last) remove_stream(stream);
  pthread_cond_broadcast(&streams.unpinned);
  unlock_streams();
  if (last && is_foreign(stream)) {
    tarn__stream_free_after_fork(stream);
  } else if (last) {
    end(stream);
  }
}

// A failure, too, is an end. In a child of fork nothing of it runs. Where the
// plug-in has no query_event this waits.
static void end_some_departed(const tarn_device *device, size_t most) {
  for (; most > 0; most--) {
    tarn_stream *stream = tarn__departed_next(device);
    if (stream == NULL) return;
    bool over = tarn_event_query(stream->last) != TARN_PENDING;
    tarn__stream_release(stream, over);
  }
}

void tarn__departed_end_some(const tarn_device *device) {
  enum { LOOKED_AT = 4 };
  end_some_departed(device, LOOKED_AT);
}

void tarn__departed_end(const tarn_device *device) {
  end_some_departed(device, tarn__departed_count(device));
}

static tarn_status synchronize_departed(uint64_t serial) {
  tarn_stream *stream = tarn__departed_hold(serial);
  if (stream == NULL) return TARN_OK;
  tarn_status status = tarn_event_synchronize(stream->last);
  tarn__stream_release(stream, true);
  return status;
}

tarn_status tarn__departed_synchronize(const tarn_device *device) {
  return tarn__streams_each(device, synchronize_departed);
}

// Returns, with a hold on it, when no thread has it pinned.
static void depart(tarn_stream *stream) {
  lock_streams();
  tarn_list_add_tail(&streams.departed, &stream->node);
  stream->departed = true;
  stream->holds++;
  while (stream->pins > 0)
    pthread_cond_wait(&streams.unpinned, &streams.lock);
  unlock_streams();
}

// A stream that has failed takes no event, nor may a driver that is out of
// resources: then the work is waited for.
tarn_status tarn__stream_depart(tarn_stream *stream) {
  const tarn_device *device = stream->device;
  tarn__streams_begin_end(stream);
  bool recorded = tarn_event_record(stream->last, stream) == TARN_OK;
  tarn_status status = recorded ? TARN_OK : tarn_stream_synchronize(stream);
  depart(stream);
  if (recorded) status = tarn_event_query(stream->last);
  bool over = !recorded || status != TARN_PENDING;
  tarn__stream_release(stream, over);
  tarn__departed_end_some(device);
  return over ? status : TARN_OK;
}
