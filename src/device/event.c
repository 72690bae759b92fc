// Events: points in the order of a stream.
//
//   never recorded ──record──► recorded ──the work before it is done──► reached
//
// An event without a native handle, or one recorded on a stream without a
// native handle, is reached as soon as it is recorded: recording waits. Other
// code may record an adopted event, so that only the driver knows its state.
#include <stdio.h>

#include "base/hostmem.h"
#include "device/device.h"

struct tarn_event {
  tarn_device *device;
  const tarn__device_plugin *plugin;  // the device's, for when that is gone
  C_Event native;
  bool adopted;  // the native event is its owner's
  uint32_t generation;
  tarn__device_native known;  // by its handle; but of tarn__event_make

  pthread_mutex_t lock;  // guards all below
  bool marked;           // the driver has to be asked
  bool shared;           // others record it too: always
  uint64_t records;      // how often it was recorded
  tarn_status failure;   // what the stream had, or a wait found
  char text[TARN__TEXT_SIZE];
};

static tarn_status check(const tarn_event *event) {
  if (event == NULL) return tarn__fail(TARN_E_INVALID, "event: NULL");
  if (event->generation != tarn__os_generation()) {
    return tarn__fail(TARN_E_STATE,
                      "an event was made by the parent before a fork");
  }
  return tarn__not_in_callback();
}

static tarn_status enter_for(const tarn_event *event) {
  tarn_status status = check(event);
  return status != TARN_OK ? status : tarn__device_enter(event->device);
}

static void release(tarn_event *event) {
  pthread_mutex_destroy(&event->lock);
  tarn__host_free(event, sizeof *event);
}

static tarn_event *make(tarn_device *device) {
  tarn_event *event = tarn__host_alloc(sizeof *event);
  if (event == NULL) return NULL;
  event->device = device;
  event->plugin = device->plugin;
  event->generation = tarn__os_generation();
  pthread_mutex_init(&event->lock, NULL);
  return event;
}

tarn_status tarn__event_make(tarn_device *device, tarn_event **out_event) {
  *out_event = NULL;
  tarn_status status = tarn__device_enter(device);
  if (status != TARN_OK) return status;
  tarn_event *event = make(device);
  if (event == NULL) return TARN_E_NOMEM;
  C_Status result = device->abi->create_event(&device->handle, &event->native);
  status = tarn__device_queued(device, "create_event", 0, result);
  if (status != TARN_OK) {
    release(event);
    return status;
  }
  *out_event = event;
  return TARN_OK;
}

static tarn_event *of_native(tarn__device_native *native) {
  return tarn_list_entry(native, tarn_event, known);
}

// |event|, or what has its handle already: of a |fresh| one, none has.
static tarn_event *enter(tarn_event *event, bool fresh) {
  tarn_device *device = event->device;
  event->known.device = device;
  event->known.handle = event->native;
  tarn__device_count(device, &device->events, 1);
  tarn__device_native *known =
      tarn__natives_enter(&tarn__native_events, &event->known, fresh);
  if (known != &event->known) {
    tarn__device_count(device, &device->events, -1);
    release(event);
  }
  return of_native(known);
}

tarn_status tarn_event_create(tarn_device *device, tarn_event **out_event) {
  *out_event = NULL;
  tarn_status status = tarn__device_check(device);
  if (status == TARN_OK) status = tarn__event_make(device, out_event);
  if (status == TARN_OK) *out_event = enter(*out_event, true);
  return status;
}

static void share(tarn_event *event) {
  pthread_mutex_lock(&event->lock);
  event->shared = true;
  pthread_mutex_unlock(&event->lock);
}

tarn_status tarn_event_adopt(tarn_device *device, void *native,
                             tarn_event **out_event) {
  *out_event = NULL;
  tarn_status status = tarn__device_check(device);
  if (status != TARN_OK) return status;
  if (native == NULL) {
    return tarn__fail(TARN_E_INVALID, "%s: adopt: an event's handle is NULL",
                      device->name);
  }
  if ((device->info.functions & TARN_FN_EVENTS) == 0) {
    return tarn__fail(TARN_E_UNSUPPORTED, "%s has no events to adopt",
                      device->name);
  }
  tarn__device_native *known =
      tarn__natives_use(&tarn__native_events, device, native);
  if (known == NULL) {
    tarn_event *event = make(device);
    if (event == NULL) return TARN_E_NOMEM;
    event->native = native;
    event->adopted = true;
    *out_event = enter(event, false);
  } else {
    *out_event = of_native(known);
  }
  share(*out_event);
  return TARN_OK;
}

static tarn_status end_native(tarn_event *event) {
  tarn_device *device = event->device;
  if (event->adopted || event->native == NULL) return TARN_OK;
  tarn_status status = tarn__device_enter(device);
  C_Status result = device->abi->destroy_event(&device->handle, event->native);
  tarn_status ended = tarn__device_result(device, "destroy_event", 0, result);
  return status != TARN_OK ? status : ended;
}

static void end_after_fork(tarn_event *event) {
  struct C_Device_st handle;
  if (!event->adopted && tarn__plugin_ends_after_fork(event->plugin, &handle)) {
    (void)event->plugin->abi.destroy_event(&handle, event->native);
  }
}

tarn_status tarn__event_free(tarn_event *event) {
  tarn_status status = TARN_OK;
  if (event == NULL) return TARN_OK;
  if (event->generation == tarn__os_generation()) {
    status = end_native(event);
  } else {
    end_after_fork(event);
  }
  release(event);
  return status;
}

tarn_status tarn_event_destroy(tarn_event *event) {
  if (event == NULL) return TARN_OK;
  tarn_status status = tarn__not_in_callback();
  if (status != TARN_OK) return status;
  if (!tarn__natives_leave(&tarn__native_events, &event->known)) {
    return TARN_OK;
  }
  if (event->generation == tarn__os_generation()) {
    tarn__device_count(event->device, &event->device->events, -1);
  }
  return tarn__event_free(event);
}

tarn_device *tarn_event_device(const tarn_event *event) {
  return event->device;
}

void *tarn_event_native(const tarn_event *event) {
  return event->native;
}

bool tarn__event_is_marked_by_driver(const tarn_event *event) {
  return event->native != NULL;
}

// --- recording -------------------------------------------------------------

// Puts the driver's mark, or waits where there can be none.
static tarn_status put_mark(tarn_event *event, tarn_stream *stream,
                            bool *out_marked) {
  *out_marked = event->native != NULL && stream->native != NULL;
  if (!*out_marked) return tarn_stream_synchronize(stream);
  tarn_device *device = event->device;
  C_Status result =
      device->abi->record_event(&device->handle, stream->native, event->native);
  tarn_status status = tarn__device_queued(device, "record_event", 0, result);
  return tarn__stream_settle(stream, status);
}

tarn_status tarn_event_record(tarn_event *event, tarn_stream *stream) {
  tarn_status status = enter_for(event);
  if (status != TARN_OK) return status;
  status = tarn__stream_belongs(stream, event->device);
  if (status != TARN_OK) return status;

  bool marked = false;
  status = tarn__stream_failure(stream);
  if (status == TARN_OK) status = put_mark(event, stream, &marked);
  pthread_mutex_lock(&event->lock);
  event->records++;
  event->marked = marked && status == TARN_OK;
  event->failure = status;
  if (status != TARN_OK) {
    snprintf(event->text, sizeof event->text, "%s", tarn_last_error());
  }
  pthread_mutex_unlock(&event->lock);
  return status;
}

// --- waiting ---------------------------------------------------------------

// The state as far as it is known without the driver: a failure, or reached.
// Sets
// |*out_ask| if only the driver knows it, and |*out_record| to the record
// asked.
static tarn_status known(tarn_event *event, bool *out_ask,
                         uint64_t *out_record) {
  pthread_mutex_lock(&event->lock);
  *out_ask = event->marked || event->shared;
  *out_record = event->records;
  tarn_status status = event->shared ? TARN_OK : event->failure;
  if (status != TARN_OK) (void)tarn__fail_text(status, event->text);
  pthread_mutex_unlock(&event->lock);
  return status;
}

// A failure that a wait found, unless the event was recorded anew meanwhile.
static tarn_status keep(tarn_event *event, uint64_t record,
                        tarn_status status) {
  if (status == TARN_OK) return status;
  pthread_mutex_lock(&event->lock);
  if (event->records == record) {
    event->failure = status;
    event->marked = false;
    snprintf(event->text, sizeof event->text, "%s", tarn_last_error());
  }
  pthread_mutex_unlock(&event->lock);
  return status;
}

// Waits even if the device cannot be made current: the work before the event
// may still be running, and the caller is about to reuse its memory.
tarn_status tarn_event_synchronize(tarn_event *event) {
  bool ask = false;
  uint64_t record = 0;
  tarn_status status = check(event);
  if (status == TARN_OK) status = known(event, &ask, &record);
  if (status != TARN_OK || !ask) return status;
  tarn_device *device = event->device;
  tarn_status entered = tarn__device_enter(device);
  C_Status result =
      device->abi->synchronize_event(&device->handle, event->native);
  if (result != C_SUCCESS || entered == TARN_OK) {
    entered = tarn__device_result(device, "synchronize_event", 0, result);
  }
  return keep(event, record, entered);
}

// A plug-in says C_FAILED both for 'not yet' and for a failure; only waiting
// tells them apart, so both are 'not yet' here.
tarn_status tarn_event_query(tarn_event *event) {
  bool ask = false;
  uint64_t record = 0;
  tarn_status status = check(event);
  if (status == TARN_OK) status = known(event, &ask, &record);
  if (status != TARN_OK || !ask) return status;
  tarn_device *device = event->device;
  if (tarn__device_enter(device) != TARN_OK) {
    return tarn_event_synchronize(event);
  }
  C_Status result = device->abi->query_event(&device->handle, event->native);
  if (result == C_SUCCESS) return TARN_OK;
  if (result == C_FAILED || result == C_WARNING) return TARN_PENDING;
  return tarn_event_synchronize(event);
}

bool tarn__event_is_reached(tarn_event *event) {
  bool ask = false;
  uint64_t record = 0;
  tarn_device *device = event->device;
  if (check(event) != TARN_OK) {
    return event->generation != tarn__os_generation();  // nothing of it runs
  }
  if (known(event, &ask, &record) != TARN_OK || !ask) return true;
  return tarn__device_enter(device) == TARN_OK &&
         device->abi->query_event(&device->handle, event->native) == C_SUCCESS;
}

tarn_status tarn_stream_wait_event(tarn_stream *stream, tarn_event *event) {
  bool ask = false;
  uint64_t record = 0;
  tarn_status status = tarn__stream_check(stream, NULL);
  if (status == TARN_OK) status = enter_for(event);
  if (status == TARN_OK) status = known(event, &ask, &record);
  if (status != TARN_OK || !ask) return status;
  // A stream without a handle runs what it is given at once, and a plug-in
  // cannot wait for what another one does: the host waits instead.
  bool together =
      stream->native != NULL && stream->device->plugin == event->device->plugin;
  if (!together) return tarn_event_synchronize(event);
  status = tarn__device_enter(stream->device);
  if (status != TARN_OK) return status;
  C_Status result = stream->abi->stream_wait_event(
      &stream->device->handle, stream->native, event->native);
  status = tarn__device_queued(stream->device, "stream_wait_event", 0, result);
  return tarn__stream_settle(stream, status);
}
