// Streams: order, waiting, and the failure that sticks.
#include "tarn/device.h"

#include <stdio.h>
#include <string.h>

#include "base/biased_lock.h"
#include "base/hostmem.h"
#include "device/device.h"

// --- the failure that sticks -----------------------------------------------

tarn_status tarn__stream_settle(tarn_stream *stream, tarn_status status) {
  if (stream == NULL || status != TARN_E_DEVICE) return status;
  pthread_mutex_lock(&stream->lock);
  if (atomic_load_explicit(&stream->failure, memory_order_relaxed) == TARN_OK) {
    snprintf(stream->text, sizeof stream->text, "%s", tarn_last_error());
    atomic_store_explicit(&stream->failure, status, memory_order_release);
  }
  pthread_mutex_unlock(&stream->lock);
  return status;
}

// The text does not change any more once there is a failure.
tarn_status tarn__stream_tell_failure(tarn_stream *stream) {
  tarn_status failure =
      atomic_load_explicit(&stream->failure, memory_order_acquire);
  return tarn__fail_text(failure, stream->text);
}

tarn_status tarn__stream_refuse(const tarn_stream *stream,
                                const tarn_device *device) {
  if (stream == NULL) return tarn__fail(TARN_E_INVALID, "stream: NULL");
  // If any device will do, nothing else can be wrong.
  if (device == NULL || stream->generation != tarn__os_generation()) {
    return tarn__fail(TARN_E_STATE,
                      "stream %llu was made by the parent before a fork",
                      (unsigned long long)stream->serial);
  }
  return tarn__fail(TARN_E_INVALID, "a stream of %s is none of %s",
                    stream->device->name, device->name);
}

// --- callbacks that have not come yet ---------------------------------------

typedef struct callback_call {
  tarn_stream *stream;
  tarn_stream_callback *callback;
  void *context;
  uint64_t number;  // of those of its stream
  tarn_list node;   // in the stream's list of those that have not come yet
} callback_call;

// Returns its number: it may come, and be gone, as soon as it is known.
static uint64_t add_call(callback_call *call) {
  tarn_stream *stream = call->stream;
  pthread_mutex_lock(&stream->lock);
  uint64_t number = ++stream->last_call;
  call->number = number;
  tarn_list_add_tail(&stream->calls, &call->node);
  pthread_mutex_unlock(&stream->lock);
  return number;
}

static callback_call take_call(callback_call *added) {
  tarn_stream *stream = added->stream;
  pthread_mutex_lock(&stream->lock);
  callback_call call = *added;
  tarn_list_del(&added->node);
  pthread_mutex_unlock(&stream->lock);
  tarn__host_free(added, sizeof *added);
  return call;
}

// Takes out what was refused; false if it has come all the same.
static bool withdraw_call(tarn_stream *stream, uint64_t number) {
  callback_call *found = NULL;
  tarn_list *node = NULL;
  pthread_mutex_lock(&stream->lock);
  tarn_list_for_each (node, &stream->calls) {
    callback_call *call = tarn_list_entry(node, callback_call, node);
    if (call->number != number) continue;
    found = call;
    tarn_list_del(&call->node);
    break;
  }
  pthread_mutex_unlock(&stream->lock);
  if (found == NULL) return false;
  tarn__host_free(found, sizeof *found);
  return true;
}

static void call_back(callback_call call, tarn_status status) {
  tarn__callback_begin();
  call.callback(call.context, status);
  tarn__callback_end();
}

tarn_status tarn__stream_call_the_forgotten(tarn_stream *stream) {
  tarn_status status = TARN_OK;
  while (!tarn_list_empty(&stream->calls)) {
    status = tarn__fail(TARN_E_DEVICE,
                        "%s: a callback was never called by the driver",
                        stream->device->name);
    call_back(
        take_call(tarn_list_entry(stream->calls.next, callback_call, node)),
        status);
  }
  return status;
}

static void forget_calls(tarn_stream *stream) {
  while (!tarn_list_empty(&stream->calls)) {
    callback_call *call =
        tarn_list_entry(stream->calls.next, callback_call, node);
    tarn_list_del(&call->node);
    tarn__host_free(call, sizeof *call);
  }
}

// --- making ----------------------------------------------------------------

void tarn__stream_free(tarn_stream *stream) {
  pthread_mutex_destroy(&stream->lock);
  tarn__host_free(stream, sizeof *stream);
}

// A stream of |device| without a handle and not yet entered; NULL: no memory.
static tarn_stream *make(tarn_device *device) {
  tarn_stream *stream = tarn__host_alloc(sizeof *stream);
  if (stream == NULL) return NULL;
  stream->device = device;
  stream->plugin = device->plugin;
  stream->generation = tarn__os_generation();
  pthread_mutex_init(&stream->lock, NULL);
  tarn_list_init(&stream->calls);
  return stream;
}

static tarn_stream *of_native(tarn__device_native *native) {
  return tarn_list_entry(native, tarn_stream, known);
}

// Enters |stream|, whose handle is set, and returns it; or returns the stream
// that has the handle already. A handle that is |fresh| from the driver has
// none.
static tarn_stream *enter(tarn_stream *stream, bool fresh) {
  tarn_device *device = stream->device;
  stream->known.device = device;
  stream->known.kind = TARN__NATIVE_STREAM;
  tarn__device_count(device, &device->streams, 1);
  tarn__streams_enter(stream);
  tarn__device_native *known =
      tarn__native_enter(&stream->known, stream->native, fresh);
  if (known != &stream->known) {
    tarn__streams_leave(stream);
    tarn__device_count(device, &device->streams, -1);
  }
  return of_native(known);
}

tarn_status tarn_stream_create(tarn_device *device, tarn_stream **out_stream) {
  *out_stream = NULL;
  TARN__TRY(tarn__device_check(device));
  TARN__TRY(tarn__device_enter(device));
  tarn_stream *stream = make(device);
  if (stream == NULL) return TARN_E_NOMEM;
  tarn_status status = TARN__DEVICE_QUEUE(device, create_stream, 0,
                                          (&device->handle, &stream->native));
  if (status != TARN_OK) {
    tarn__stream_free(stream);
    return status;
  }
  *out_stream = enter(stream, true);
  return TARN_OK;
}

// --- adopting --------------------------------------------------------------

// The plug-in's handle for the stream that others name by NULL.
static tarn_status find_default(tarn_device *device, void **out_native) {
  *out_native = atomic_load(&device->default_stream);
  if (*out_native != NULL) return TARN_OK;
  TARN__TRY(tarn__extension_check(device, TARN_EXTENSION_DEFAULT_STREAM,
                                  "default_stream"));
  TARN__TRY(tarn__device_enter(device));
  TARN__TRY(TARN__EXTENSION_CALL(device, default_stream, 0,
                                 (device->handle.id, out_native)));
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
  tarn__departed_end_some(device);
  tarn_stream *stream = make(device);
  if (stream == NULL) return TARN_E_NOMEM;
  tarn_status status = tarn__event_make(device, &stream->last);
  if (status == TARN_OK) {
    stream->native = native;
    *out_stream = enter(stream, false);
    if (*out_stream == stream) return TARN_OK;
  }
  (void)tarn__event_free(stream->last);
  tarn__stream_free(stream);
  return status;
}

tarn_status tarn_stream_adopt(tarn_device *device, void *native,
                              tarn_stream **out_stream) {
  *out_stream = NULL;
  TARN__TRY(tarn__device_check(device));
  if (native == NULL) {
    TARN__TRY(find_default(device, &native));
  }
  tarn__device_native *known =
      tarn__native_use(TARN__NATIVE_STREAM, device, native);
  if (known == NULL) return adopt(device, native, out_stream);
  *out_stream = of_native(known);
  return TARN_OK;
}

// --- ending ----------------------------------------------------------------

static tarn_status end(tarn_stream *stream) {
  tarn_device *device = stream->device;
  tarn__streams_begin_end(stream);
  tarn_status status = tarn_stream_synchronize(stream);
  tarn__streams_leave(stream);
  if (stream->native != NULL) {
    tarn__keep_first(&status,
                     TARN__DEVICE_CALL(device, destroy_stream, 0,
                                       (&device->handle, stream->native)));
  }
  tarn__keep_first(&status, tarn__stream_call_the_forgotten(stream));
  tarn__device_count(device, &device->streams, -1);
  tarn__stream_free(stream);
  return status;
}

void tarn__stream_free_after_fork(tarn_stream *stream) {
  (void)tarn__event_free(stream->last);
  // If a thread of the parent holds it, the list must not be read.
  if (pthread_mutex_trylock(&stream->lock) == 0) {
    forget_calls(stream);
    pthread_mutex_unlock(&stream->lock);
  }
  tarn__stream_free(stream);
}

// In a child of the process that made it: the thread that pinned it does not
// run here, and the device may be gone.
static void end_after_fork(tarn_stream *stream) {
  struct C_Device_st handle;
  stream->pins = 0;
  stream->holds = 0;
  tarn__streams_leave(stream);
  if (stream->last == NULL &&
      tarn__plugin_ends_after_fork(stream->plugin, &handle)) {
    (void)stream->plugin->abi.destroy_stream(&handle, stream->native);
  }
  tarn__stream_free_after_fork(stream);
}

tarn_status tarn_stream_destroy(tarn_stream *stream) {
  if (stream == NULL) return TARN_OK;
  TARN__TRY(tarn__not_in_callback());
  if (!tarn__native_leave(&stream->known)) {
    return TARN_OK;
  }
  if (stream->generation != tarn__os_generation()) {
    end_after_fork(stream);
    return TARN_OK;
  }
  return stream->last != NULL ? tarn__stream_depart(stream) : end(stream);
}

// --- what there is to know -------------------------------------------------

tarn_device *tarn_stream_device(const tarn_stream *stream) {
  return stream->device;
}

uint64_t tarn_stream_serial(const tarn_stream *stream) {
  return stream->serial;
}

void *tarn_stream_native(const tarn_stream *stream) {
  return stream->native;
}

// --- waiting ---------------------------------------------------------------

// Waits even for a failed stream, and even if the device cannot be made
// current: queued work may still be running, and the caller is about to reuse
// its memory.
tarn_status tarn_stream_synchronize(tarn_stream *stream) {
  TARN__TRY(tarn__stream_belongs(stream, NULL));
  tarn_device *device = stream->device;
  tarn_status entered = tarn__device_enter(device);
  if (entered != TARN_OK) (void)tarn__stream_settle(stream, entered);
  C_Status result = C_SUCCESS;
  if (stream->native != NULL) {
    result = device->abi->synchronize_stream(&device->handle, stream->native);
  }
  if (result != C_SUCCESS) {
    (void)tarn__stream_settle(
        stream, tarn__stream_result(stream, "synchronize_stream", result));
  }
  return tarn__stream_failure(stream);
}

// 'Failed' and 'warning' mean 'not yet'; any other no is settled by waiting.
tarn_status tarn_stream_query(tarn_stream *stream) {
  TARN__TRY(tarn__stream_check(stream, NULL));
  tarn_device *device = stream->device;
  TARN__TRY(tarn__device_enter(device));
  if (stream->native == NULL) return TARN_OK;
  C_Status result = device->abi->query_stream(&device->handle, stream->native);
  if (result == C_SUCCESS) return TARN_OK;
  if (result == C_FAILED || result == C_WARNING) return TARN_PENDING;
  return tarn_stream_synchronize(stream);
}

// Behind that, those that departed before have nothing to wait for.
tarn_status tarn_device_synchronize(tarn_device *device) {
  TARN__TRY(tarn__device_check(device));
  TARN__TRY(tarn__device_enter(device));
  tarn_status status =
      TARN__DEVICE_CALL(device, synchronize_device, 0, (&device->handle));
  tarn__keep_first(&status, tarn__departed_synchronize(device));
  return status;
}

// --- callbacks -------------------------------------------------------------

static void run_callback(C_Device handle, C_Stream native, void *user_data,
                         C_Status *result) {
  (void)handle;
  (void)native;
  callback_call call = take_call(user_data);
  tarn_status status = TARN_OK;
  if (result != NULL) {
    status = tarn__stream_result(call.stream, "the work before it", *result);
    status = tarn__stream_settle(call.stream, status);
  }
  if (status == TARN_OK) status = tarn__stream_failure(call.stream);
  call_back(call, status);
}

tarn_status tarn_stream_add_callback(tarn_stream *stream,
                                     tarn_stream_callback *callback,
                                     void *context) {
  TARN__TRY(tarn__stream_check(stream, NULL));
  if (callback == NULL) {
    return tarn__fail(TARN_E_INVALID, "stream: no callback");
  }
  tarn_device *device = stream->device;
  TARN__TRY(tarn__device_enter(device));
  callback_call made = {
      .stream = stream, .callback = callback, .context = context};
  if (stream->native == NULL) {
    call_back(made, TARN_OK);
    return TARN_OK;
  }
  callback_call *call = tarn__host_alloc(sizeof *call);
  if (call == NULL) return TARN_E_NOMEM;
  *call = made;
  uint64_t number = add_call(call);
  tarn_status status =
      TARN__DEVICE_QUEUE(device, stream_add_callback, 0,
                         (&device->handle, stream->native, run_callback, call));
  (void)tarn__stream_settle(stream, status);
  if (status == TARN_OK || withdraw_call(stream, number)) return status;
  return TARN_OK;  // it came; that the driver failed is the stream's
}
