// Events: points in the order of a stream.
//
//   never recorded ──record──► recorded ──the work before it is done──► reached
//
// An event without a native handle, or one recorded on a stream without a
// native handle, is reached as soon as it is recorded: recording waits. Other
// code may record an adopted event, so that only the driver knows its state.
#include "base/hostmem.h"
#include "device/device.h"

struct tarn_event {
  tarn_device *device;
  const tarn__device_plugin *plugin;  // the device's, for when that is gone
  C_Event native;
  bool adopted;  // the native event is its owner's
  uint32_t generation;
  tarn__device_native known;  // by its handle; but of tarn__event_make

  pthread_mutex_t lock;   // guards all below
  bool marked;            // the driver has to be asked
  bool shared;            // others record it too: always
  uint64_t records;       // how often it was recorded
  tarn__failure failure;  // what the stream had, or a wait found
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
  TARN__TRY(check(event));
  return tarn__device_enter(event->device);
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
  TARN__TRY(tarn__device_enter(device));
  tarn_event *event = make(device);
  if (event == NULL) return TARN_E_NOMEM;
  tarn_status status = TARN__DEVICE_QUEUE(device, create_event, 0,
                                          (&device->handle, &event->native));
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
  event->known.kind = TARN__NATIVE_EVENT;
  tarn__device_count(device, &device->events, 1);
  tarn__device_native *known =
      tarn__native_enter(&event->known, event->native, fresh);
  if (known != &event->known) {
    tarn__device_count(device, &device->events, -1);
    release(event);
  }
  return of_native(known);
}

tarn_status tarn_event_create(tarn_device *device, tarn_event **out_event) {
  *out_event = NULL;
  TARN__TRY(tarn__device_check(device));
  TARN__TRY(tarn__event_make(device, out_event));
  *out_event = enter(*out_event, true);
  return TARN_OK;
}

tarn_status tarn_event_adopt(tarn_device *device, void *native,
                             tarn_event **out_event) {
  *out_event = NULL;
  TARN__TRY(tarn__device_check(device));
  if (native == NULL) {
    return tarn__fail(TARN_E_INVALID, "%s: adopt: an event's handle is NULL",
                      device->name);
  }
  if ((device->info.functions & TARN_FN_EVENTS) == 0) {
    return tarn__fail(TARN_E_UNSUPPORTED, "%s has no events to adopt",
                      device->name);
  }
  tarn__device_native *known =
      tarn__native_use(TARN__NATIVE_EVENT, device, native);
  if (known == NULL) {
    tarn_event *event = make(device);
    if (event == NULL) return TARN_E_NOMEM;
    event->native = native;
    event->adopted = true;
    *out_event = enter(event, false);
  } else {
    *out_event = of_native(known);
  }
  pthread_mutex_lock(&(*out_event)->lock);
  (*out_event)->shared = true;
  pthread_mutex_unlock(&(*out_event)->lock);
  return TARN_OK;
}

static tarn_status end_native(tarn_event *event) {
  tarn_device *device = event->device;
  struct C_Device_st handle;
  if (event->adopted || event->native == NULL) return TARN_OK;
  if (event->generation != tarn__os_generation()) {
    if (tarn__plugin_ends_after_fork(event->plugin, &handle)) {
      (void)event->plugin->abi.destroy_event(&handle, event->native);
    }
    return TARN_OK;
  }
  tarn_status status = tarn__device_enter(device);
  tarn__keep_first(&status,
                   TARN__DEVICE_CALL(device, destroy_event, 0,
                                     (&device->handle, event->native)));
  return status;
}

tarn_status tarn__event_free(tarn_event *event) {
  if (event == NULL) return TARN_OK;
  tarn_status status = end_native(event);
  release(event);
  return status;
}

tarn_status tarn_event_destroy(tarn_event *event) {
  if (event == NULL) return TARN_OK;
  TARN__TRY(tarn__not_in_callback());
  if (!tarn__native_leave(&event->known)) return TARN_OK;
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

// --- recording -------------------------------------------------------------

// Puts the driver's mark, or waits where there can be none.
static tarn_status put_mark(tarn_event *event, tarn_stream *stream,
                            bool *out_marked) {
  *out_marked = event->native != NULL && stream->native != NULL;
  if (!*out_marked) return tarn_stream_synchronize(stream);
  tarn_device *device = event->device;
  tarn_status status =
      TARN__DEVICE_QUEUE(device, record_event, 0,
                         (&device->handle, stream->native, event->native));
  return tarn__stream_settle(stream, status);
}

tarn_status tarn_event_record(tarn_event *event, tarn_stream *stream) {
  TARN__TRY(enter_for(event));
  TARN__TRY(tarn__stream_belongs(stream, event->device));

  bool marked = false;
  tarn_status status = tarn__stream_failure(stream);
  if (status == TARN_OK) status = put_mark(event, stream, &marked);
  pthread_mutex_lock(&event->lock);
  event->records++;
  event->marked = marked && status == TARN_OK;
  event->failure.status = TARN_OK;
  tarn__failure_note(&event->failure, status);
  pthread_mutex_unlock(&event->lock);
  return status;
}

// --- waiting ---------------------------------------------------------------

// The state as far as it is known without the driver: a failure, or reached.
// Sets |*out_ask| if only the driver knows it, and |*out_record| to the record
// asked.
static tarn_status known(tarn_event *event, bool *out_ask,
                         uint64_t *out_record) {
  *out_ask = false;
  TARN__TRY(check(event));
  pthread_mutex_lock(&event->lock);
  *out_ask = event->marked || event->shared;
  *out_record = event->records;
  tarn_status status =
      event->shared ? TARN_OK : tarn__failure_tell(&event->failure);
  pthread_mutex_unlock(&event->lock);
  return status;
}

// A failure that a wait found, unless the event has been recorded anew.
static tarn_status keep(tarn_event *event, uint64_t record,
                        tarn_status status) {
  if (status == TARN_OK) return status;
  pthread_mutex_lock(&event->lock);
  if (event->records == record) {
    event->failure.status = TARN_OK;
    tarn__failure_note(&event->failure, status);
    event->marked = false;
  }
  pthread_mutex_unlock(&event->lock);
  return status;
}

// Waits even if the device cannot be made current: the work before the event
// may still be running, and the caller is about to reuse its memory.
tarn_status tarn_event_synchronize(tarn_event *event) {
  bool ask = false;
  uint64_t record = 0;
  tarn_status status = known(event, &ask, &record);
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
  tarn_status status = known(event, &ask, &record);
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
  TARN__TRY(tarn__stream_check(stream, NULL));
  TARN__TRY(enter_for(event));
  tarn_status status = known(event, &ask, &record);
  if (status != TARN_OK || !ask) return status;
  // A stream without a handle runs what it is given at once, and a plug-in
  // cannot wait for what another one does: the host waits instead.
  bool together =
      stream->native != NULL && stream->device->plugin == event->device->plugin;
  if (!together) return tarn_event_synchronize(event);
  TARN__TRY(tarn__device_enter(stream->device));
  status = TARN__DEVICE_QUEUE(
      stream->device, stream_wait_event, 0,
      (&stream->device->handle, stream->native, event->native));
  return tarn__stream_settle(stream, status);
}
