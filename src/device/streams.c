// Which streams there are, by serial.
//
//   buckets  [ 0 ]-> stream 128 -> stream 64       all: in the order of serials
//            [ 1 ]-> stream 65
//            [ 2 ]
//
// Serials are counted up, so their low bits spread them evenly over as many
// buckets as there are streams: a look-up takes a step or two. What else a
// stream may be found by is another index beside this one; its struct is what
// all of them lead to, and stays for as long as its serial means something.
#include "device/streams.h"

#include <string.h>

#include "base/hostmem.h"
#include "device/device.h"

enum { FIRST_BUCKETS = 64 };

static tarn_stream *first_buckets[FIRST_BUCKETS];  // guarded as the rest

static struct {
  pthread_mutex_t lock;  // guards all below, and of every stream its node, its
                         // link in the bucket and its pins
  pthread_cond_t unpinned;
  tarn_list all;  // by rising serial
  tarn_stream **buckets;
  size_t bucket_count;  // a power of two
  size_t count;
  uint64_t last_serial;
} streams = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .unpinned = PTHREAD_COND_INITIALIZER,
    .all = {&streams.all, &streams.all},
    .buckets = first_buckets,
    .bucket_count = FIRST_BUCKETS,
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

// --- buckets; the lock is held ---------------------------------------------

static tarn_stream **bucket_of(uint64_t serial) {
  return &streams.buckets[serial & (streams.bucket_count - 1)];
}

// The link that leads to the stream with |serial|, or would.
static tarn_stream **link_to(uint64_t serial) {
  tarn_stream **link = bucket_of(serial);
  while (*link != NULL && (*link)->serial != serial)
    link = &(*link)->next_in_bucket;
  return link;
}

static void put_in_bucket(tarn_stream *stream) {
  tarn_stream **bucket = bucket_of(stream->serial);
  stream->next_in_bucket = *bucket;
  *bucket = stream;
}

static void free_buckets(tarn_stream **buckets, size_t count) {
  if (buckets == first_buckets) return;
  tarn__host_free_array(buckets, count, sizeof *buckets);
}

// Without host memory the chains become longer, and that is all.
static void grow_buckets(void) {
  size_t count = streams.bucket_count * 2;
  tarn_stream **grown = tarn__host_array(count, sizeof *grown);
  tarn_list *node = NULL;
  if (grown == NULL) return;
  free_buckets(streams.buckets, streams.bucket_count);
  streams.buckets = grown;
  streams.bucket_count = count;
  tarn_list_for_each (node, &streams.all)
    put_in_bucket(of_node(node));
}

// Nothing is held at rest.
static void reset_buckets(void) {
  free_buckets(streams.buckets, streams.bucket_count);
  memset(first_buckets, 0, sizeof first_buckets);
  streams.buckets = first_buckets;
  streams.bucket_count = FIRST_BUCKETS;
}

// --- coming and going ------------------------------------------------------

void tarn__streams_enter(tarn_stream *stream) {
  tarn__streams_lock();
  if (streams.count >= streams.bucket_count) grow_buckets();
  stream->serial = ++streams.last_serial;
  tarn_list_add_tail(&streams.all, &stream->node);
  put_in_bucket(stream);
  streams.count++;
  tarn__streams_unlock();
}

void tarn__streams_leave(tarn_stream *stream) {
  tarn__streams_lock();
  tarn_list_del(&stream->node);
  *link_to(stream->serial) = stream->next_in_bucket;
  if (--streams.count == 0) reset_buckets();
  while (stream->pins > 0)
    pthread_cond_wait(&streams.unpinned, &streams.lock);
  tarn__streams_unlock();
}

// --- looking up ------------------------------------------------------------

bool tarn__stream_is_gone(uint64_t serial) {
  tarn__streams_lock();
  bool found = *link_to(serial) != NULL;
  tarn__streams_unlock();
  return !found;
}

static bool is_busy(const tarn_stream *stream) {
  return stream->native != NULL && stream->generation == tarn__os_generation();
}

tarn_stream *tarn__stream_pin(uint64_t serial) {
  tarn__streams_lock();
  tarn_stream *found = *link_to(serial);
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

// Where the walk goes on. A stream that has left meanwhile has no neighbours:
// then it is the first of those that were made later.
static tarn_list *behind(const tarn_stream *stream) {
  tarn_list *node = streams.all.next;
  if (stream == NULL) return node;
  if (!tarn_list_empty(&stream->node)) return stream->node.next;
  while (node != &streams.all && of_node(node)->serial < stream->serial)
    node = node->next;
  return node;
}

tarn_stream *tarn__streams_next(const tarn_device *device,
                                tarn_stream *stream) {
  tarn_stream *found = NULL;
  tarn__streams_lock();
  tarn_list *node = behind(stream);
  for (; node != &streams.all && found == NULL; node = node->next) {
    tarn_stream *next = of_node(node);
    if (next->device == device && is_busy(next)) found = next;
  }
  if (found != NULL) found->pins++;
  if (stream != NULL) unpin_locked(stream);
  tarn__streams_unlock();
  return found;
}

size_t tarn__streams_most_steps(void) {
  size_t most = 0;
  tarn__streams_lock();
  for (size_t i = 0; i < streams.bucket_count; i++) {
    size_t steps = 0;
    const tarn_stream *stream = streams.buckets[i];
    for (; stream != NULL; stream = stream->next_in_bucket)
      steps++;
    if (steps > most) most = steps;
  }
  tarn__streams_unlock();
  return most;
}
