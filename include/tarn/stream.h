// stream.h - the order of a device's work: streams, and events in them.
//
// A stream runs what is queued on it in order. The first failure on it sticks:
// every later wait, query or copy on it returns that failure, with its text,
// until the stream is destroyed. An event is a point in the order of a stream.
// It reports the stream's failure, if there is one.
//
// A program creates streams here, or adopts streams of a runtime or a
// framework. Every function of Tarn that takes a stream takes both.
//
//   tarn_stream *stream;
//   tarn_stream_adopt(gpu, runtime_stream, &stream);   // a cudaStream_t, ...
//   tarn_pool_alloc(pool, 1 << 20, 0, stream, &block);
//   launch(kernel, runtime_stream, block.pointer);
//   tarn_pool_free(&block, stream);                    // does not wait
//   tarn_stream_destroy(stream);                       // does not wait
//
// Threads, forks and common errors: as at the head of tarn/device.h, which
// includes this header.
#ifndef TARN_STREAM_H_
#define TARN_STREAM_H_

#include "tarn/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_device tarn_device;
typedef struct tarn_stream tarn_stream;
typedef struct tarn_event tarn_event;

// ---------------------------------------------------------------------------
// Streams
// ---------------------------------------------------------------------------

// Creates a stream.
//
// TARN_E_DEVICE  the driver failed.
TARN_API TARN_MUST_CHECK tarn_status
tarn_stream_create(tarn_device *device, tarn_stream **out_stream);

// Adopts the stream with the handle |native| in the driver of |device|: a
// C_Stream of the plug-in, for CUDA a cudaStream_t. The same handle gives the
// same object, with the same serial, until its last tarn_stream_destroy, also
// if Tarn created the stream.
//
// NULL is a framework's default stream, on devices with
// TARN_EXTENSION_DEFAULT_STREAM. tarn_stream_native then gives the plug-in's
// handle of it.
//
// Lifetime: each adoption needs its tarn_stream_destroy. The native stream
//           stays its owner's and must outlive the last of them, since the
//           driver may reuse its handle.
// Cost:     one lock and one look-up for a known handle; for a new one, also an
//           event of the driver, kept for the last tarn_stream_destroy.
// TARN_E_UNSUPPORTED  a device without streams (TARN_FN_STREAMS); or |native|
//                     is NULL and the plug-in has no handle of the default
//                     stream.
// TARN_E_DEVICE       the driver failed. It need not notice an invalid
//                     |native|.
TARN_API TARN_MUST_CHECK tarn_status
tarn_stream_adopt(tarn_device *device, void *native, tarn_stream **out_stream);

// Undoes one tarn_stream_create or tarn_stream_adopt. Each call other than the
// last one for a stream only counts, and returns TARN_OK.
//
// The last call for a stream that Tarn created waits for the queued work, then
// destroys the stream. The status reports failures of its work.
//
// The last call for an adopted stream neither waits nor ends the native stream.
// It records an event behind the work queued by now. Until that event is
// reached, the stream's serial stays valid: streams and threads that take
// memory which the stream used wait for the event, and the device cannot be
// closed. Adopting the handle again gives another object with a new serial. The
// call waits only if no event can be recorded and queried: on a device without
// TARN_FN_EVENTS, without query_event, on a failed stream, or if the driver
// refuses.
//
// TARN_E_DEVICE  the stream's work, or the driver, has failed. The stream is
//                destroyed nevertheless.
TARN_API tarn_status tarn_stream_destroy(tarn_stream *stream);

TARN_API tarn_device *tarn_stream_device(const tarn_stream *stream);

// The stream's serial: a number unique in this process, never reused, never 0.
TARN_API uint64_t tarn_stream_serial(const tarn_stream *stream);

// The driver's handle, for kernels; NULL if the device is synchronous.
TARN_API void *tarn_stream_native(const tarn_stream *stream);

// Waits for all work queued before the call.
TARN_API TARN_MUST_CHECK tarn_status
tarn_stream_synchronize(tarn_stream *stream);

// TARN_OK if all queued work is done, TARN_PENDING if not.
TARN_API TARN_MUST_CHECK tarn_status tarn_stream_query(tarn_stream *stream);

// Queues a call of |callback|, on a thread of the driver or on a thread that
// waits for the stream. It must not wait: functions of this header, of
// tarn/device.h and of pools return TARN_E_STATE to it. Work queued later may
// run before it returns: streams of cpu and sim wait for a callback, those of
// OpenCL do not.
typedef void tarn_stream_callback(void *context, tarn_status status);
TARN_API TARN_MUST_CHECK tarn_status tarn_stream_add_callback(
    tarn_stream *stream, tarn_stream_callback *callback, void *context);

// Makes work queued on |stream| from now on wait for the last record of
// |event|. An event that was never recorded does not delay it. Between devices
// of different plug-ins the calling thread waits instead.
TARN_API TARN_MUST_CHECK tarn_status tarn_stream_wait_event(tarn_stream *stream,
                                                            tarn_event *event);

// Makes work queued on |stream| from now on wait for all work that the stream
// with |serial| has queued by now. For an adopted stream that was destroyed, it
// waits for the work queued before that. A stream that Tarn created has no work
// left after it was destroyed. |stream| NULL: the calling thread waits.
TARN_API TARN_MUST_CHECK tarn_status tarn_stream_join(tarn_stream *stream,
                                                      uint64_t serial);

// ---------------------------------------------------------------------------
// Events
// ---------------------------------------------------------------------------

// Creates an event.
//
// TARN_E_DEVICE  the driver failed.
TARN_API TARN_MUST_CHECK tarn_status tarn_event_create(tarn_device *device,
                                                       tarn_event **out_event);

// Adopts the event with the handle |native| in the driver of |device|: a
// C_Event of the plug-in, for CUDA a cudaEvent_t. The same handle gives the
// same object until its last tarn_event_destroy, also if Tarn created the
// event. After an adoption other code may record the event, so that the driver
// is asked in each query, and the event reports no failure of a stream.
//
// Lifetime: each adoption needs its tarn_event_destroy. The native event stays
//           its owner's and must outlive the last of them.
// Cost:     one lock and one look-up. The driver is not called.
// TARN_E_INVALID      |native| is NULL.
// TARN_E_UNSUPPORTED  a device without events (TARN_FN_EVENTS).
TARN_API TARN_MUST_CHECK tarn_status tarn_event_adopt(tarn_device *device,
                                                      void *native,
                                                      tarn_event **out_event);

// Undoes one tarn_event_create or tarn_event_adopt. The last call destroys an
// event that Tarn created at once; the work before it goes on. An adopted
// native event stays.
TARN_API tarn_status tarn_event_destroy(tarn_event *event);

TARN_API tarn_device *tarn_event_device(const tarn_event *event);

// The driver's handle, for waits outside of Tarn; NULL if the device is
// synchronous.
TARN_API void *tarn_event_native(const tarn_event *event);

// Records |event| behind the work now queued on |stream|. An earlier record is
// forgotten.
//
// TARN_E_INVALID  |stream| is of another device.
TARN_API TARN_MUST_CHECK tarn_status tarn_event_record(tarn_event *event,
                                                       tarn_stream *stream);

// TARN_OK if the last record is reached or the event was never recorded,
// TARN_PENDING if not. If the driver fails to answer, the call waits for the
// event to get the reason.
TARN_API TARN_MUST_CHECK tarn_status tarn_event_query(tarn_event *event);

// Waits until the last record is reached.
TARN_API TARN_MUST_CHECK tarn_status tarn_event_synchronize(tarn_event *event);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_STREAM_H_
