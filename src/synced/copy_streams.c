// Copy streams and spare events of a device.
//
//   streams   in, users ── out, users ── in, users, failed
//   spare     event, event, ...       of reached or forgotten points
//
// Invariants:
//   * each way has one stream at most that is not known to have failed: the
//     next transfer takes it
//   * a stream that is known to have failed has users; the last of them
//     destroys it
//   * a spare event belongs to no point
//   * without users and events in use, nothing here keeps the device open after
//     it was asked to close
#include "synced/copy_streams.h"

#include <pthread.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "synced/core.h"

enum { MOST_SPARE = 256 };

typedef struct copy_stream {
  struct copy_stream *next;
  tarn_stream *stream;
  tarn__synced_copy_stream way;
  bool failed;  // as far as known
  size_t users;
} copy_stream;

struct tarn__synced_copy_streams {
  uint32_t generation;  // of forks

  pthread_mutex_t streams_lock;  // guards the next
  copy_stream *streams;

  pthread_mutex_t events_lock;  // guards all below
  tarn__synced_event *spare[MOST_SPARE];
  size_t spare_count;
};

// --- ending ----------------------------------------------------------------

// The users of the stream have seen its errors.
static void destroy_copy_stream(copy_stream *ended) {
  if (ended == NULL) return;
  (void)tarn_stream_destroy(ended->stream);
  tarn__host_free(ended, sizeof *ended);
}

static void drop_copy_streams(tarn__synced_copy_streams *copy_streams) {
  while (copy_streams->streams != NULL) {
    copy_stream *ended = copy_streams->streams;
    copy_streams->streams = ended->next;
    destroy_copy_stream(ended);
  }
}

static void destroy_event(tarn__synced_event *event) {
  (void)tarn_event_destroy(event->event);
  tarn__host_free(event, sizeof *event);
}

static void drop_events(tarn__synced_copy_streams *copy_streams) {
  while (copy_streams->spare_count > 0)
    destroy_event(copy_streams->spare[--copy_streams->spare_count]);
}

static bool is_used(const tarn__synced_copy_streams *copy_streams) {
  const copy_stream *known = copy_streams->streams;
  while (known != NULL && known->users == 0)
    known = known->next;
  return known != NULL;
}

typedef struct closing {
  const tarn_device *device;
  bool commit;
} closing;

static tarn_status tell_buffer(void *context, tarn__synced_core *core) {
  const closing *c = context;
  return core->on_close(core, c->device, c->commit);
}

static tarn_status tell_buffers(const tarn_device *device, bool commit) {
  closing c = {device, commit};
  return tarn__registry_each(tell_buffer, &c);
}

// Idle streams and events do not keep the device open. If it stays open for
// another reason, they are created again at next use.
static tarn_status ask(tarn_device *device,
                       tarn__synced_copy_streams *copy_streams) {
  TARN__TRY(tell_buffers(device, false));
  pthread_mutex_lock(&copy_streams->streams_lock);
  bool used = is_used(copy_streams);
  if (!used) drop_copy_streams(copy_streams);
  pthread_mutex_unlock(&copy_streams->streams_lock);
  if (used) {
    return tarn__fail(TARN_E_STATE,
                      "%s: cannot close: synced buffers copy there",
                      tarn_device_name(device));
  }
  pthread_mutex_lock(&copy_streams->events_lock);
  drop_events(copy_streams);
  pthread_mutex_unlock(&copy_streams->events_lock);
  return TARN_OK;
}

// In a child of fork the locks may be held by threads that do not exist there.
static void release(tarn__synced_copy_streams *copy_streams) {
  if (copy_streams->generation == tarn__os_generation()) {
    pthread_mutex_destroy(&copy_streams->streams_lock);
    pthread_mutex_destroy(&copy_streams->events_lock);
  }
  tarn__host_free(copy_streams, sizeof *copy_streams);
}

static tarn_status on_close(tarn_device *device, void *pointer, bool commit) {
  tarn__synced_copy_streams *copy_streams = pointer;
  if (!commit) return ask(device, copy_streams);
  bool ours = copy_streams->generation == tarn__os_generation();
  if (ours) (void)tell_buffers(device, true);
  drop_copy_streams(copy_streams);
  drop_events(copy_streams);
  release(copy_streams);
  return TARN_OK;
}

// --- making ----------------------------------------------------------------

static tarn__synced_copy_streams *create(void) {
  tarn__synced_copy_streams *made = tarn__host_alloc(sizeof *made);
  if (made == NULL) return NULL;
  made->generation = tarn__os_generation();
  pthread_mutex_init(&made->streams_lock, NULL);
  pthread_mutex_init(&made->events_lock, NULL);
  return made;
}

static tarn_status attach(tarn_device *device,
                          tarn__synced_copy_streams **out) {
  tarn__synced_copy_streams *made = create();
  if (made == NULL) return TARN_E_NOMEM;
  tarn_status status =
      tarn_device_attach(device, TARN_SLOT_SYNCED, made, on_close);
  if (status == TARN_OK) {
    *out = made;
    return TARN_OK;
  }
  release(made);
  *out = tarn_device_attached(device, TARN_SLOT_SYNCED);
  return *out != NULL ? TARN_OK : status;  // another was quicker
}

tarn_status tarn__copy_streams_of(
    tarn_device *device, tarn__synced_copy_streams **out_copy_streams) {
  *out_copy_streams = tarn_device_attached(device, TARN_SLOT_SYNCED);
  return *out_copy_streams != NULL ? TARN_OK : attach(device, out_copy_streams);
}

// --- copy streams -----------------------------------------------------------

// The stream for the next transfer, unless it has failed. A failed stream is
// marked.
static copy_stream *find_sound(const tarn__synced_copy_streams *copy_streams,
                               tarn__synced_copy_stream way) {
  copy_stream *known = copy_streams->streams;
  while (known != NULL && (known->way != way || known->failed))
    known = known->next;
  if (known == NULL) return NULL;
  tarn_status status = tarn_stream_query(known->stream);
  known->failed = status != TARN_OK && status != TARN_PENDING;
  return known->failed ? NULL : known;
}

static tarn_status create_copy_stream(tarn__synced_copy_streams *copy_streams,
                                      tarn_device *device,
                                      tarn__synced_copy_stream way,
                                      copy_stream **out) {
  copy_stream *made = tarn__host_alloc(sizeof *made);
  if (made == NULL) return TARN_E_NOMEM;
  tarn_status status = tarn_stream_create(device, &made->stream);
  if (status != TARN_OK) {
    tarn__host_free(made, sizeof *made);
    return status;
  }
  made->way = way;
  made->next = copy_streams->streams;
  copy_streams->streams = made;
  *out = made;
  return TARN_OK;
}

// Removes a failed stream without users and returns it; NULL: there is none.
static copy_stream *take_ended(tarn__synced_copy_streams *copy_streams) {
  copy_stream **link = &copy_streams->streams;
  while (*link != NULL && (!(*link)->failed || (*link)->users > 0))
    link = &(*link)->next;
  copy_stream *ended = *link;
  if (ended != NULL) *link = ended->next;
  return ended;
}

tarn_status tarn__copy_streams_copy_stream(tarn_device *device,
                                           tarn__synced_copy_stream way,
                                           tarn_stream **out_stream) {
  tarn__synced_copy_streams *copy_streams = NULL;
  *out_stream = NULL;
  TARN__TRY(tarn__copy_streams_of(device, &copy_streams));
  pthread_mutex_lock(&copy_streams->streams_lock);
  tarn_status status = TARN_OK;
  copy_stream *current = find_sound(copy_streams, way);
  copy_stream *ended = take_ended(copy_streams);
  if (current == NULL) {
    status = create_copy_stream(copy_streams, device, way, &current);
  }
  if (status == TARN_OK) {
    current->users++;
    *out_stream = current->stream;
  }
  pthread_mutex_unlock(&copy_streams->streams_lock);
  destroy_copy_stream(ended);
  return status;
}

void tarn__copy_streams_release_copy_stream(tarn_stream *stream) {
  if (stream == NULL) return;
  tarn_device *device = tarn_stream_device(stream);
  tarn__synced_copy_streams *copy_streams =
      tarn_device_attached(device, TARN_SLOT_SYNCED);
  if (copy_streams == NULL) return;  // a parent's, before a fork
  pthread_mutex_lock(&copy_streams->streams_lock);
  copy_stream *known = copy_streams->streams;
  while (known->stream != stream)
    known = known->next;
  known->users--;
  copy_stream *ended = take_ended(copy_streams);
  pthread_mutex_unlock(&copy_streams->streams_lock);
  destroy_copy_stream(ended);
}

// --- events ----------------------------------------------------------------

static tarn_status make_event(tarn_device *device,
                              tarn__synced_event **out_event) {
  tarn__synced_event *event = tarn__host_alloc(sizeof *event);
  if (event == NULL) return TARN_E_NOMEM;
  event->device = device;
  tarn_status status = tarn_event_create(device, &event->event);
  if (status != TARN_OK) {
    tarn__host_free(event, sizeof *event);
    return status;
  }
  *out_event = event;
  return TARN_OK;
}

tarn_status tarn__copy_streams_take_event(tarn_device *device,
                                          tarn__synced_event **out_event) {
  tarn__synced_copy_streams *copy_streams = NULL;
  *out_event = NULL;
  TARN__TRY(tarn__copy_streams_of(device, &copy_streams));
  pthread_mutex_lock(&copy_streams->events_lock);
  if (copy_streams->spare_count > 0) {
    *out_event = copy_streams->spare[--copy_streams->spare_count];
  }
  pthread_mutex_unlock(&copy_streams->events_lock);
  if (*out_event == NULL) TARN__TRY(make_event(device, out_event));
  atomic_init(&(*out_event)->count, 1);
  return TARN_OK;
}

// A parent's device may be gone by now, so the event is asked. A process that
// never forked need not ask.
static bool is_of_a_parent(tarn_event *event) {
  return tarn__os_generation() != 0 && tarn_event_query(event) == TARN_E_STATE;
}

static bool keep(tarn__synced_copy_streams *copy_streams,
                 tarn__synced_event *event) {
  pthread_mutex_lock(&copy_streams->events_lock);
  bool kept = copy_streams->spare_count < MOST_SPARE;
  if (kept) copy_streams->spare[copy_streams->spare_count++] = event;
  pthread_mutex_unlock(&copy_streams->events_lock);
  return kept;
}

void tarn__copy_streams_give_event(tarn__synced_event *event) {
  if (event == NULL || atomic_fetch_sub(&event->count, 1) > 1) return;
  tarn__synced_copy_streams *copy_streams = NULL;
  if (!is_of_a_parent(event->event)) {
    copy_streams = tarn_device_attached(event->device, TARN_SLOT_SYNCED);
  }
  if (copy_streams != NULL && keep(copy_streams, event)) return;
  destroy_event(event);
}
