// Adopted streams: the state of one after its last tarn_stream_destroy.
//
//   adopt ──► living ──last destroy──► departed ──event reached──► gone
//               ▲                         │
//               │                         └─ its serial leads to its event
//   adopt of the same handle: another stream, another serial
//
// The event is created at the adoption, so that the last destroy cannot fail
// for lack of one. A departed stream whose work is done ends when a thread
// waits for it, when another stream is adopted or departs, and when the device
// is synchronised or closed. So few departed streams have no work left.
#include "device/device.h"

// --- departing -------------------------------------------------------------

enum { LOOKED_AT = 4 };  // departed streams, when one comes or goes

// The driver has called all callbacks that were in front of the event.
static void end(tarn_stream *stream) {
  tarn_device *device = stream->device;
  (void)tarn__event_free(stream->last);
  (void)tarn__stream_call_the_forgotten(stream);
  tarn__device_count(device, &device->streams, -1);
  tarn__stream_free(stream);
}

// A failure, too, is an end. In a child of fork nothing of it runs. Where the
// plug-in has no query_event this waits.
static bool is_over(const tarn_stream *stream) {
  return tarn_event_query(stream->last) != TARN_PENDING;
}

void tarn__stream_release(tarn_stream *stream, bool over) {
  if (!tarn__stream_drop(stream, over)) return;
  if (stream->generation == tarn__os_generation()) {
    end(stream);
  } else {
    tarn__stream_free_after_fork(stream);
  }
}

static void end_some_departed(const tarn_device *device, size_t most) {
  for (; most > 0; most--) {
    tarn_stream *stream = tarn__departed_next(device);
    if (stream == NULL) return;
    tarn__stream_release(stream, is_over(stream));
  }
}

void tarn__departed_end(const tarn_device *device) {
  end_some_departed(device, tarn__departed_count(device));
}

tarn_status tarn__departed_synchronize(const tarn_device *device) {
  tarn_status first = TARN_OK;
  uint64_t newest = tarn__streams_newest();
  tarn_stream *stream = tarn__departed_above(device, 0, newest);
  while (stream != NULL) {
    uint64_t serial = stream->serial;
    tarn_status status = tarn_event_synchronize(stream->last);
    if (first == TARN_OK) first = status;
    tarn__stream_release(stream, true);
    stream = tarn__departed_above(device, serial, newest);
  }
  return first;
}

// A stream that has failed takes no event, nor may a driver that is out of
// resources: then the work is waited for.
tarn_status tarn__stream_depart(tarn_stream *stream) {
  const tarn_device *device = stream->device;
  tarn__streams_begin_end(stream);
  bool recorded = tarn_event_record(stream->last, stream) == TARN_OK;
  tarn_status status = recorded ? TARN_OK : tarn_stream_synchronize(stream);
  tarn__streams_depart(stream);
  if (recorded) status = tarn_event_query(stream->last);
  bool over = !recorded || status != TARN_PENDING;
  tarn__stream_release(stream, over);
  end_some_departed(device, LOOKED_AT);
  return over ? status : TARN_OK;
}

// --- adopting --------------------------------------------------------------

// The plug-in's handle for the stream that others name by NULL.
static tarn_status find_default(tarn_device *device, void **out_native) {
  *out_native = atomic_load(&device->default_stream);
  if (*out_native != NULL) return TARN_OK;
  if (device->ext->default_stream == NULL) {
    return tarn__extension_lacks(device, "default_stream");
  }
  tarn_status status = tarn__device_enter(device);
  if (status != TARN_OK) return status;
  status = device->ext->default_stream(device->handle.id, out_native);
  status = tarn__extension_result(device, "default_stream", 0, status);
  if (status != TARN_OK) return status;
  if (*out_native == NULL) {
    return tarn__fail(TARN_E_DEVICE, "%s: default_stream gave no stream",
                      device->name);
  }
  atomic_store(&device->default_stream, *out_native);
  return TARN_OK;
}

static tarn_status adopt(tarn_device *device, void *native,
                         tarn_stream **out_stream) {
  if ((device->info.functions & TARN_FN_STREAMS) == 0) {
    return tarn__fail(TARN_E_UNSUPPORTED, "%s has no streams to adopt",
                      device->name);
  }
  end_some_departed(device, LOOKED_AT);
  tarn_stream *stream = tarn__stream_make(device);
  if (stream == NULL) return TARN_E_NOMEM;
  tarn_status status = tarn__event_make(device, &stream->last);
  if (status == TARN_OK) {
    stream->native = native;
    *out_stream = tarn__stream_enter(stream, false);
    if (*out_stream == stream) return TARN_OK;
  }
  (void)tarn__event_free(stream->last);
  tarn__stream_free(stream);
  return status;
}

tarn_status tarn_stream_adopt(tarn_device *device, void *native,
                              tarn_stream **out_stream) {
  *out_stream = NULL;
  tarn_status status = tarn__device_check(device);
  if (status == TARN_OK && native == NULL) {
    status = find_default(device, &native);
  }
  if (status != TARN_OK) return status;
  tarn__device_native *known =
      tarn__natives_use(&tarn__native_streams, device, native);
  if (known == NULL) return adopt(device, native, out_stream);
  *out_stream = tarn__stream_of_native(known);
  return TARN_OK;
}
