// One stream behind another, by serial.
//
//   stream    ... | waits for the event | ...
//                            ▲
//   serial    ... 7 | 8 | event             living: the event is recorded now
//             ... 7 | 8 | last event        departed: it was when it departed
//
// Of a serial that is gone, the work is done.
#include "device/device.h"

__attribute__((cold, noinline)) static tarn_status check_other(
    const tarn_stream *stream, const tarn_device *device,
    tarn_place_kind kind) {
  bool any = kind != TARN_PLACE_DEVICE;
  if (any && stream->generation == tarn__os_generation()) return TARN_OK;
  return tarn__stream_refuse(stream, any ? NULL : device);
}

// The kind counts only where the devices differ: each request that names a
// stream passes here.
tarn_status tarn__stream_serial_for(const tarn_stream *stream,
                                    const tarn_device *device,
                                    tarn_place_kind kind,
                                    uint64_t *out_serial) {
  *out_serial = stream->serial;
  bool own =
      stream->device == device && stream->generation == tarn__os_generation();
  return own ? TARN_OK : check_other(stream, device, kind);
}

// --- behind a living stream ------------------------------------------------

static tarn_status wait_for_event(tarn_stream *stream, tarn_event *event) {
  return stream != NULL ? tarn_stream_wait_event(stream, event)
                        : tarn_event_synchronize(event);
}

static bool has_failed(tarn_stream *stream) {
  return stream != NULL && tarn__stream_failure(stream) != TARN_OK;
}

// |other| is pinned until it has the event: then it may depart.
static tarn_status join_living(tarn_stream *stream, tarn_stream *other) {
  tarn_event *event = NULL;
  tarn_status status = tarn__event_make(other->device, &event);
  if (status == TARN_OK) status = tarn_event_record(event, other);
  tarn__stream_pin_to_hold(other);
  if (status == TARN_OK) status = wait_for_event(stream, event);
  (void)tarn__event_free(event);
  tarn__stream_release(other, false);
  return status;
}

// --- behind a departed one -------------------------------------------------

static tarn_status join_departed(tarn_stream *stream, uint64_t serial) {
  tarn_stream *other = tarn__departed_hold(serial);
  if (other == NULL) return TARN_OK;
  bool over = tarn_event_query(other->last) != TARN_PENDING;
  tarn_status status = over ? TARN_OK : wait_for_event(stream, other->last);
  tarn__stream_release(other, over || stream == NULL);
  return status;
}

// --- behind either ---------------------------------------------------------

// Where no event can be had, or the stream has failed, the host waits for it. A
// failure that it had before is not the waiter's: what matters here is only
// that it has come to an end.
static tarn_status wait_on_host(uint64_t serial) {
  tarn_stream *other = tarn__stream_pin(serial);
  if (other == NULL) return join_departed(NULL, serial);
  bool had_failed = has_failed(other);
  tarn_status status = tarn_stream_synchronize(other);
  tarn__stream_unpin(other);
  return had_failed ? TARN_OK : status;
}

tarn_status tarn_stream_join(tarn_stream *stream, uint64_t serial) {
  TARN__TRY(stream != NULL ? tarn__stream_check(stream, NULL)
                           : tarn__not_in_callback());
  if (stream != NULL && stream->serial == serial) return TARN_OK;
  tarn_stream *other = tarn__stream_pin(serial);
  if (has_failed(other)) {
    tarn__stream_unpin(other);
    return wait_on_host(serial);
  }
  tarn_status status = other != NULL ? join_living(stream, other)
                                     : join_departed(stream, serial);
  bool settled = status == TARN_OK || has_failed(stream);
  return settled ? status : wait_on_host(serial);
}

static tarn_status join_on_host(uint64_t serial) {
  return tarn_stream_join(NULL, serial);
}

tarn_status tarn__place_synchronize(tarn_place place) {
  tarn_device *device = NULL;
  if (place.kind != TARN_PLACE_DEVICE) {
    return tarn__streams_each(NULL, join_on_host);
  }
  TARN__TRY(tarn__place_device(place, &device));
  return tarn_device_synchronize(device);
}

// --- without waiting -------------------------------------------------------

// Where the plug-in cannot be asked, or says anything but yes, only waiting
// would tell.
static bool is_done(tarn_stream *stream) {
  tarn_device *device = stream->device;
  return stream->plugin->own.query_stream != NULL &&
         tarn__stream_check(stream, NULL) == TARN_OK &&
         tarn__device_enter(device) == TARN_OK &&
         device->abi->query_stream(&device->handle, stream->native) ==
             C_SUCCESS;
}

static bool is_departed_done(const tarn_stream *departed) {
  return departed->plugin->own.query_event != NULL &&
         tarn__event_is_reached(departed->last);
}

bool tarn__stream_is_idle(uint64_t serial) {
  tarn_stream *stream = tarn__stream_pin(serial);
  if (stream != NULL) {
    bool idle = is_done(stream);
    tarn__stream_unpin(stream);
    return idle;
  }
  stream = tarn__departed_hold(serial);
  if (stream == NULL) return true;
  bool over = is_departed_done(stream);
  tarn__stream_release(stream, over);
  return over;
}

// The stream of a capture that went wrong still captures.
static bool captures(const tarn_stream *stream) {
  tarn_device *device = stream->device;
  bool capturing = false;
  return device->ext->stream_capturing != NULL &&
         tarn__device_enter(device) == TARN_OK &&
         device->ext->stream_capturing(device->handle.id, stream->native,
                                       &capturing) == TARN_OK &&
         capturing;
}

bool tarn__stream_is_capturing(uint64_t serial) {
  tarn_stream *stream = tarn__stream_pin(serial);
  if (stream == NULL) return false;
  bool capturing = captures(stream);
  tarn__stream_unpin(stream);
  return capturing;
}

// Whether |stream| itself can wait for an event of |device|.
static bool can_follow(const tarn_stream *stream, const tarn_device *device) {
  const C_DeviceInterface *own = &device->plugin->own;
  return stream != NULL && stream->native != NULL &&
         stream->plugin == device->plugin && own->create_event != NULL &&
         own->record_event != NULL && own->stream_wait_event != NULL;
}

// The mark is put, and waited for, in the two streams only.
static tarn_status queue_wait(tarn_stream *stream, tarn_stream *other) {
  tarn_event *event = NULL;
  tarn_status status = tarn__event_make(other->device, &event);
  if (status == TARN_OK && tarn_event_native(event) == NULL) {
    status = TARN_PENDING;  // recording it would wait
  }
  if (status == TARN_OK) status = tarn_event_record(event, other);
  if (status == TARN_OK) status = tarn_stream_wait_event(stream, event);
  (void)tarn__event_free(event);
  return status;
}

static tarn_status follow_living(tarn_stream *stream, tarn_stream *other) {
  tarn_status status = TARN_OK;
  if (!is_done(other)) {
    bool queues = !has_failed(other) && can_follow(stream, other->device);
    status = queues ? queue_wait(stream, other) : TARN_PENDING;
  }
  tarn__stream_unpin(other);
  return status;
}

static tarn_status follow_departed(tarn_stream *stream, uint64_t serial) {
  tarn_stream *other = tarn__departed_hold(serial);
  if (other == NULL) return TARN_OK;
  bool over = is_departed_done(other);
  tarn_status status = over ? TARN_OK : TARN_PENDING;
  if (!over && can_follow(stream, other->device)) {
    status = tarn_stream_wait_event(stream, other->last);
  }
  tarn__stream_release(other, over);
  return status;
}

tarn_status tarn__stream_join_at_once(tarn_stream *stream, uint64_t serial) {
  TARN__TRY(stream != NULL ? tarn__stream_check(stream, NULL)
                           : tarn__not_in_callback());
  if (stream != NULL && stream->serial == serial) return TARN_OK;
  tarn_stream *other = tarn__stream_pin(serial);
  tarn_status status = other != NULL ? follow_living(stream, other)
                                     : follow_departed(stream, serial);
  return status == TARN_OK || has_failed(stream) ? status : TARN_PENDING;
}

// --- by serial only --------------------------------------------------------

// The host does not wait with the stream pinned: its owner could not give it
// back during the wait. A stream that is given back may have recorded its last
// event, or been waited for, before the wait was queued.
tarn_status tarn__stream_follow(uint64_t serial, uint64_t first) {
  tarn_stream *stream = tarn__stream_pin(serial);
  if (stream == NULL) return tarn_stream_join(NULL, first);
  bool queued = tarn__stream_join_at_once(stream, first) == TARN_OK;
  bool stays = tarn__stream_unpin_waiting(stream);
  return queued && stays ? TARN_OK : tarn_stream_join(NULL, first);
}
