// stream.h - the order of a device's work: streams, and events in them.
//
// A stream runs what is queued on it in order. The first failure on it sticks:
// every later wait, query or copy on it returns that failure, with its text,
// until the stream is destroyed. An event is a mark in a stream. It takes over
// the stream's failure, if there is one.
//
// A program makes streams here, or adopts streams that it has from elsewhere:
// a runtime's own, a framework's default stream. Every function of Tarn that
// takes a stream takes both.
//
//   tarn_stream *stream;
//   tarn_stream_adopt(gpu, runtime_stream, &stream);   // a cudaStream_t, ...
//   tarn_pool_alloc(pool, 1 << 20, 0, stream, &block);
//   launch(kernel, runtime_stream, block.pointer);
//   tarn_pool_free(&block, stream);                    // nobody waits
//   tarn_stream_destroy(stream);                       // nor here
//
// tarn/device.h, which includes this header, says what holds of threads, forks
// and errors. The errors here include those that it lists for all functions.
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

// TARN_E_DEVICE  the driver failed.
TARN_API TARN_MUST_CHECK tarn_status
tarn_stream_create(tarn_device *device, tarn_stream **out_stream);

// The stream whose handle in the driver of |device| is |native|: what the
// plug-in calls a C_Stream, for CUDA a cudaStream_t. The same handle gives the
// same object, with the same serial, as long as somebody has it, whether Tarn
// made the stream or adopted it first.
//
// NULL is a framework's default stream, on devices with
// TARN_EXTENSION_DEFAULT_STREAM. tarn_stream_native then gives the handle that
// the plug-in has for it.
//
// Lifetime: each adoption needs its tarn_stream_destroy. The native stream
//           stays its owner's, who ends it after the last of them: by then the
//           driver may have given the handle to another stream.
// Cost:     of a handle that is known, one lock and one look-up; of a new one,
//           an event of the driver's, kept for the last tarn_stream_destroy.
// TARN_E_UNSUPPORTED  a device without streams (TARN_FN_STREAMS); or |native|
//                     is NULL, and the plug-in has no handle for the default
//                     stream.
// TARN_E_DEVICE       the driver failed. It need not notice that |native| is no
//                     stream.
TARN_API TARN_MUST_CHECK tarn_status
tarn_stream_adopt(tarn_device *device, void *native, tarn_stream **out_stream);

// Gives back one tarn_stream_create or tarn_stream_adopt. All but the last of a
// stream do nothing else, and are TARN_OK.
//
// The last one of a stream that Tarn made waits for what is queued, then
// destroys. The status says whether the stream's work went well.
//
// The last one of an adopted stream neither waits nor ends the native stream.
// It records an event behind what is queued by now. Until that is reached the
// stream's serial stays: streams and threads that take memory which the stream
// used wait for the event, and the device cannot be closed. If the handle is
// adopted again, that is another object with a serial of its own. The call
// waits only where no event can be recorded and asked about: on a device
// without TARN_FN_EVENTS, or whose plug-in lacks query_event, on a stream that
// has failed, and where the driver refuses.
//
// TARN_E_DEVICE  the stream's work, or the driver, has failed. It is destroyed
//                all the same.
TARN_API tarn_status tarn_stream_destroy(tarn_stream *stream);

TARN_API tarn_device *tarn_stream_device(const tarn_stream *stream);

// A number that no other stream of this process has or will have; never 0.
TARN_API uint64_t tarn_stream_serial(const tarn_stream *stream);

// The plug-in's own handle, for kernels; NULL where everything is synchronous.
TARN_API void *tarn_stream_native(const tarn_stream *stream);

// Waits until all that was queued before the call is done.
TARN_API TARN_MUST_CHECK tarn_status
tarn_stream_synchronize(tarn_stream *stream);

// TARN_PENDING while something queued is not done.
TARN_API TARN_MUST_CHECK tarn_status tarn_stream_query(tarn_stream *stream);

// Runs |callback| behind what is queued, on a thread of the driver or on one
// that waits for the stream. It must not wait, so it must not call this room
// or the pools: what it calls of them answers TARN_E_STATE.
typedef void tarn_stream_callback(void *context, tarn_status status);
TARN_API TARN_MUST_CHECK tarn_status tarn_stream_add_callback(
    tarn_stream *stream, tarn_stream_callback *callback, void *context);

// What is queued on |stream| from now on waits until |event| has happened, as
// it was recorded last; an event never recorded holds nothing up. Between
// plug-ins that do not know each other the calling thread does the waiting.
TARN_API TARN_MUST_CHECK tarn_status tarn_stream_wait_event(tarn_stream *stream,
                                                            tarn_event *event);

// What is queued on |stream| from now on waits for all that the stream with
// |serial| has queued by now. If that stream was adopted and has been
// destroyed, it waits for what was queued before that. A stream that Tarn made
// and that has been destroyed has done its work: there is nothing to wait for.
// |stream| NULL: the calling thread waits.
TARN_API TARN_MUST_CHECK tarn_status tarn_stream_join(tarn_stream *stream,
                                                      uint64_t serial);

// ---------------------------------------------------------------------------
// Events
// ---------------------------------------------------------------------------

// TARN_E_DEVICE  the driver failed.
TARN_API TARN_MUST_CHECK tarn_status tarn_event_create(tarn_device *device,
                                                       tarn_event **out_event);

// The event whose handle in the driver of |device| is |native|: what the
// plug-in calls a C_Event, for CUDA a cudaEvent_t. The same handle gives the
// same object as long as somebody has it, whether Tarn made the event or
// adopted it first. From the first adoption on others may record it: the driver
// is asked each time whether it is reached, and it takes no stream's failure
// over.
//
// Lifetime: each adoption needs its tarn_event_destroy. The native event stays
//           its owner's, who ends it after the last of them.
// Cost:     one lock and one look-up. The driver is not called.
// TARN_E_INVALID      |native| is NULL.
// TARN_E_UNSUPPORTED  a device without events (TARN_FN_EVENTS).
TARN_API TARN_MUST_CHECK tarn_status tarn_event_adopt(tarn_device *device,
                                                      void *native,
                                                      tarn_event **out_event);

// Gives back one tarn_event_create or tarn_event_adopt. The last one destroys
// what Tarn made, at once; the work in front of the mark goes on. It does not
// end an adopted native event.
TARN_API tarn_status tarn_event_destroy(tarn_event *event);

TARN_API tarn_device *tarn_event_device(const tarn_event *event);

// The plug-in's own handle, for what waits outside of Tarn; NULL where
// everything is synchronous.
TARN_API void *tarn_event_native(const tarn_event *event);

// Puts the mark behind what is on |stream| now; an earlier mark is forgotten.
//
// TARN_E_INVALID  |stream| is of another device.
TARN_API TARN_MUST_CHECK tarn_status tarn_event_record(tarn_event *event,
                                                       tarn_stream *stream);

// TARN_OK if the mark is reached or was never set, TARN_PENDING if not yet.
// Where the driver answers neither, the call waits for the mark to learn why.
TARN_API TARN_MUST_CHECK tarn_status tarn_event_query(tarn_event *event);

// Waits until the mark is reached.
TARN_API TARN_MUST_CHECK tarn_status tarn_event_synchronize(tarn_event *event);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_STREAM_H_
