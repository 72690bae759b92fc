// Copy streams and spare events of a device.
//
//   copy streams   in ── stream, users       current: for the next transfer
//              out ─ stream, users
//   retired    stream, users ── ...      failed, but still in use
//   spare      event, event, ...           of reached or forgotten points
//
// Invariants:
//   * a retired copy stream has users; the last of them destroys it
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
  struct copy_stream *next;  // retired too
  tarn_stream *stream;
  size_t users;
} copy_stream;

struct tarn__synced_copy_streams {
  uint32_t generation;  // of forks

  pthread_mutex_t streams_lock;  // guards the next two
  copy_stream *current[TARN__COPY_STREAM_COUNT];
  copy_stream *retired;

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
  for (int way = 0; way < TARN__COPY_STREAM_COUNT; way++) {
    destroy_copy_stream(copy_streams->current[way]);
    copy_streams->current[way] = NULL;
  }
  while (copy_streams->retired != NULL) {
    copy_stream *ended = copy_streams->retired;
    copy_streams->retired = ended->next;
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
  for (int way = 0; way < TARN__COPY_STREAM_COUNT; way++) {
    const copy_stream *current = copy_streams->current[way];
    if (current != NULL && current->users > 0) return true;
  }
  return copy_streams->retired != NULL;
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
  tarn_status status = tell_buffers(device, false);
  if (status != TARN_OK) return status;
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

// --- copy streams
// --------------------------------------------------------------

static bool has_failed(tarn_stream *stream) {
  tarn_status status = tarn_stream_query(stream);
  return status != TARN_OK && status != TARN_PENDING;
}

static tarn_status create_copy_stream(tarn_device *device, copy_stream **out) {
  copy_stream *made = tarn__host_alloc(sizeof *made);
  if (made == NULL) return TARN_E_NOMEM;
  tarn_status status = tarn_stream_create(device, &made->stream);
  if (status != TARN_OK) {
    tarn__host_free(made, sizeof *made);
    return status;
  }
  *out = made;
  return TARN_OK;
}

// Removes a failed stream; returns it if it has no users.
static copy_stream *retire(tarn__synced_copy_streams *copy_streams,
                           copy_stream **current) {
  copy_stream *failed = *current;
  if (failed == NULL || !has_failed(failed->stream)) return NULL;
  *current = NULL;
  if (failed->users == 0) return failed;
  failed->next = copy_streams->retired;
  copy_streams->retired = failed;
  return NULL;
}

tarn_status tarn__copy_streams_copy_stream(tarn_device *device,
                                           tarn__synced_copy_stream way,
                                           tarn_stream **out_stream) {
  tarn__synced_copy_streams *copy_streams = NULL;
  *out_stream = NULL;
  tarn_status status = tarn__copy_streams_of(device, &copy_streams);
  if (status != TARN_OK) return status;
  copy_stream **current = &copy_streams->current[way];
  pthread_mutex_lock(&copy_streams->streams_lock);
  copy_stream *ended = retire(copy_streams, current);
  if (*current == NULL) status = create_copy_stream(device, current);
  if (status == TARN_OK) {
    (*current)->users++;
    *out_stream = (*current)->stream;
  }
  pthread_mutex_unlock(&copy_streams->streams_lock);
  destroy_copy_stream(ended);
  return status;
}

static bool release_current(tarn__synced_copy_streams *copy_streams,
                            const tarn_stream *stream) {
  for (int way = 0; way < TARN__COPY_STREAM_COUNT; way++) {
    copy_stream *current = copy_streams->current[way];
    if (current == NULL || current->stream != stream) continue;
    current->users--;
    return true;
  }
  return false;
}

// Removes and returns the stream if it has no users left.
static copy_stream *release_retired(tarn__synced_copy_streams *copy_streams,
                                    const tarn_stream *stream) {
  copy_stream **link = &copy_streams->retired;
  while (*link != NULL && (*link)->stream != stream)
    link = &(*link)->next;
  copy_stream *found = *link;
  if (found == NULL || --found->users > 0) return NULL;
  *link = found->next;
  return found;
}

void tarn__copy_streams_release_copy_stream(tarn_stream *stream) {
  if (stream == NULL) return;
  tarn_device *device = tarn_stream_device(stream);
  tarn__synced_copy_streams *copy_streams =
      tarn_device_attached(device, TARN_SLOT_SYNCED);
  if (copy_streams == NULL) return;  // a parent's, before a fork
  copy_stream *ended = NULL;
  pthread_mutex_lock(&copy_streams->streams_lock);
  if (!release_current(copy_streams, stream)) {
    ended = release_retired(copy_streams, stream);
  }
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
  if (status == TARN_OK) {
    *out_event = event;
  } else {
    tarn__host_free(event, sizeof *event);
  }
  return status;
}

tarn_status tarn__copy_streams_take_event(tarn_device *device,
                                          tarn__synced_event **out_event) {
  tarn__synced_copy_streams *copy_streams = NULL;
  *out_event = NULL;
  tarn_status status = tarn__copy_streams_of(device, &copy_streams);
  if (status != TARN_OK) return status;
  pthread_mutex_lock(&copy_streams->events_lock);
  if (copy_streams->spare_count > 0) {
    *out_event = copy_streams->spare[--copy_streams->spare_count];
  }
  pthread_mutex_unlock(&copy_streams->events_lock);
  return *out_event != NULL ? TARN_OK : make_event(device, out_event);
}

// A parent's device may be gone by now, so it is the event that is asked. Who
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
  if (event == NULL) return;
  tarn__synced_copy_streams *copy_streams = NULL;
  if (!is_of_a_parent(event->event)) {
    copy_streams = tarn_device_attached(event->device, TARN_SLOT_SYNCED);
  }
  if (copy_streams != NULL && keep(copy_streams, event)) return;
  destroy_event(event);
}
