// Which streams there are, by serial.
//
//   serials   buckets of all          serials are counted up, so their low bits
//                                     spread them evenly
//   living    1 ─ 4 ─ 5 ─ 9           by rising serial
//   departed  2 ─ 7                   the one looked at longest ago first
//
// What else a stream may be found by is another index beside this one
// (natives.h); its struct is what all of them lead to, and stays for as long as
// its serial means something.
#include "device/streams.h"

#include "device/device.h"

static struct {
  pthread_mutex_t lock;  // guards all below, and of every stream its node, its
                         // link and its counts
  pthread_cond_t unpinned;
  tarn_list living;
  tarn_list departed;
  tarn__device_buckets serials;
  uint64_t last_serial;
} streams = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .unpinned = PTHREAD_COND_INITIALIZER,
    .living = {&streams.living, &streams.living},
    .departed = {&streams.departed, &streams.departed},
    .serials = TARN__BUCKETS(streams.serials),
};

void tarn__streams_lock(void) {
  pthread_mutex_lock(&streams.lock);
}

void tarn__streams_unlock(void) {
  pthread_mutex_unlock(&streams.lock);
}

void tarn__streams_unlock_in_child(void) {
  streams.unpinned = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  tarn__streams_unlock();
}

static tarn_stream *of_node(tarn_list *node) {
  return tarn_list_entry(node, tarn_stream, node);
}

// The lock is held, as for all that is static here.
static tarn_stream *find(uint64_t serial) {
  tarn__device_link *link = tarn__buckets_at(&streams.serials, serial);
  while (link != NULL && link->key != serial)
    link = link->next;
  return link != NULL ? tarn_list_entry(link, tarn_stream, by_serial) : NULL;
}

// --- coming and going ------------------------------------------------------

void tarn__streams_enter(tarn_stream *stream) {
  tarn__streams_lock();
  stream->serial = ++streams.last_serial;
  stream->by_serial.key = stream->serial;
  tarn_list_add_tail(&streams.living, &stream->node);
  tarn__buckets_put(&streams.serials, &stream->by_serial);
  tarn__streams_unlock();
}

void tarn__streams_begin_end(tarn_stream *stream) {
  tarn__streams_lock();
  stream->ends = true;
  tarn__streams_unlock();
}

static void remove_stream(tarn_stream *stream) {
  tarn_list_del(&stream->node);
  tarn__buckets_take(&streams.serials, &stream->by_serial);
}

void tarn__streams_leave(tarn_stream *stream) {
  tarn__streams_lock();
  remove_stream(stream);
  while (stream->pins + stream->holds > 0)
    pthread_cond_wait(&streams.unpinned, &streams.lock);
  tarn__streams_unlock();
}

void tarn__streams_depart(tarn_stream *stream) {
  tarn__streams_lock();
  tarn_list_del(&stream->node);
  tarn_list_add_tail(&streams.departed, &stream->node);
  stream->departed = true;
  stream->holds++;
  while (stream->pins > 0)
    pthread_cond_wait(&streams.unpinned, &streams.lock);
  tarn__streams_unlock();
}

// --- living streams --------------------------------------------------------

bool tarn__stream_is_gone(uint64_t serial) {
  tarn__streams_lock();
  bool found = find(serial) != NULL;
  tarn__streams_unlock();
  return !found;
}

bool tarn__stream_is_departed(uint64_t serial) {
  tarn__streams_lock();
  const tarn_stream *found = find(serial);
  bool departed = found != NULL && found->departed;
  tarn__streams_unlock();
  return departed;
}

static bool is_foreign(const tarn_stream *stream) {
  return stream->generation != tarn__os_generation();
}

static bool is_busy(const tarn_stream *stream) {
  return stream->native != NULL && !stream->departed && !is_foreign(stream);
}

tarn_stream *tarn__stream_pin(uint64_t serial) {
  tarn__streams_lock();
  tarn_stream *found = find(serial);
  if (found != NULL && !is_busy(found)) found = NULL;
  if (found != NULL) found->pins++;
  tarn__streams_unlock();
  return found;
}

static void unpin_locked(tarn_stream *stream) {
  stream->pins--;
  pthread_cond_broadcast(&streams.unpinned);
}

void tarn__stream_unpin(tarn_stream *stream) {
  tarn__streams_lock();
  unpin_locked(stream);
  tarn__streams_unlock();
}

bool tarn__stream_unpin_waiting(tarn_stream *stream) {
  tarn__streams_lock();
  bool stays = !stream->ends;
  unpin_locked(stream);
  tarn__streams_unlock();
  return stays;
}

void tarn__stream_pin_to_hold(tarn_stream *stream) {
  tarn__streams_lock();
  stream->holds++;
  unpin_locked(stream);
  tarn__streams_unlock();
}

// Where the walk goes on. A stream that is not among the living any more has no
// neighbours there: then it is the first of those that were made later.
static tarn_list *behind(const tarn_stream *stream) {
  tarn_list *node = streams.living.next;
  if (stream == NULL) return node;
  if (!stream->departed && !tarn_list_empty(&stream->node)) {
    return stream->node.next;
  }
  while (node != &streams.living && of_node(node)->serial < stream->serial)
    node = node->next;
  return node;
}

tarn_stream *tarn__streams_next(const tarn_device *device,
                                tarn_stream *stream) {
  tarn_stream *found = NULL;
  tarn__streams_lock();
  tarn_list *node = behind(stream);
  for (; node != &streams.living && found == NULL; node = node->next) {
    tarn_stream *next = of_node(node);
    if (next->device == device && is_busy(next)) found = next;
  }
  if (found != NULL) found->pins++;
  if (stream != NULL) unpin_locked(stream);
  tarn__streams_unlock();
  return found;
}

// --- living and departed streams -------------------------------------------

// The first of the living above |serial|: often the neighbour of that one.
static tarn_list *first_above(uint64_t serial) {
  const tarn_stream *known = find(serial);
  tarn_list *node = streams.living.next;
  if (known != NULL && !known->departed) node = known->node.next;
  while (node != &streams.living &&
         (of_node(node)->serial <= serial || is_foreign(of_node(node))))
    node = node->next;
  return node;
}

uint64_t tarn__streams_newest(void) {
  tarn__streams_lock();
  uint64_t newest = streams.last_serial;
  tarn__streams_unlock();
  return newest;
}

uint64_t tarn__streams_above(uint64_t serial) {
  tarn__streams_lock();
  tarn_list *node = first_above(serial);
  uint64_t least = node != &streams.living ? of_node(node)->serial : UINT64_MAX;
  tarn_list_for_each (node, &streams.departed) {
    const tarn_stream *departed = of_node(node);
    if (is_foreign(departed) || departed->serial <= serial) continue;
    if (departed->serial < least) least = departed->serial;
  }
  tarn__streams_unlock();
  return least != UINT64_MAX ? least : 0;
}

// --- departed streams ------------------------------------------------------

// In a child of fork, threads that held it are not there.
static tarn_stream *hold_locked(tarn_stream *stream) {
  if (is_foreign(stream)) stream->holds = 0;
  stream->holds++;
  return stream;
}

tarn_stream *tarn__departed_hold(uint64_t serial) {
  tarn__streams_lock();
  tarn_stream *found = find(serial);
  bool departed = found != NULL && found->departed;
  if (departed) (void)hold_locked(found);
  tarn__streams_unlock();
  return departed ? found : NULL;
}

tarn_stream *tarn__departed_next(const tarn_device *device) {
  tarn_stream *found = NULL;
  tarn_list *node = NULL;
  tarn__streams_lock();
  tarn_list_for_each (node, &streams.departed) {
    if (of_node(node)->device != device) continue;
    found = hold_locked(of_node(node));
    tarn_list_del(node);
    tarn_list_add_tail(&streams.departed, node);
    break;
  }
  tarn__streams_unlock();
  return found;
}

tarn_stream *tarn__departed_above(const tarn_device *device, uint64_t serial,
                                  uint64_t newest) {
  tarn_stream *found = NULL;
  tarn_list *node = NULL;
  tarn__streams_lock();
  tarn_list_for_each (node, &streams.departed) {
    tarn_stream *departed = of_node(node);
    if (departed->device != device || departed->serial <= serial) continue;
    if (departed->serial > newest) continue;
    newest = departed->serial;
    found = departed;
  }
  if (found != NULL) (void)hold_locked(found);
  tarn__streams_unlock();
  return found;
}

size_t tarn__departed_count(const tarn_device *device) {
  size_t count = 0;
  tarn_list *node = NULL;
  tarn__streams_lock();
  tarn_list_for_each (node, &streams.departed)
    if (of_node(node)->device == device) count++;
  tarn__streams_unlock();
  return count;
}

bool tarn__stream_drop(tarn_stream *stream, bool over) {
  tarn__streams_lock();
  stream->holds--;
  stream->over = stream->over || (over && stream->departed);
  bool last = stream->over && stream->holds == 0;
  if (last) remove_stream(stream);
  pthread_cond_broadcast(&streams.unpinned);
  tarn__streams_unlock();
  return last;
}

size_t tarn__streams_most_steps(void) {
  tarn__streams_lock();
  size_t most = tarn__buckets_longest(&streams.serials);
  tarn__streams_unlock();
  return most;
}
