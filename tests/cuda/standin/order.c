// Streams and events: the functions that make them, wait for them and end them.
#include "captures.h"
#include "entry.h"
#include "pools.h"
#include "report.h"
#include "streams.h"

// --- streams ---------------------------------------------------------------

tarn__cuda_result cuStreamCreate(CUstream *out, unsigned flags) {
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  if (flags > TARN__CU_STREAM_NON_BLOCKING) {
    return END(standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "flags %u", flags));
  }
  return END(standin_stream_make(context, flags, out));
}

// What is queued still runs.
static tarn__cuda_result destroy_stream(CUstream stream) {
  if (stream == NULL || stream == TARN__CU_STREAM_LEGACY ||
      stream == TARN__CU_STREAM_PER_THREAD) {
    return standin_wrong(TARN__CU_ERROR_INVALID_HANDLE,
                         "a stream that every context has");
  }
  tarn__cuda_result error = standin_check(stream, STANDIN_STREAM);
  if (error != TARN__CU_SUCCESS) return error;
  if (stream->capture != NULL) {
    (void)standin_capture_break(stream,
                                TARN__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                                "a stream that is captured is destroyed");
  }
  standin_destroy(stream);
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuStreamDestroy_v2(CUstream stream) {
  BEGIN(STANDIN_IN_CONTEXT, NULL);
  return END(destroy_stream(stream));
}

static tarn__cuda_result find_to_wait(CUcontext context, CUstream handle,
                                      CUstream *out) {
  tarn__cuda_result error = standin_stream_find(context, handle, out);
  if (error != TARN__CU_SUCCESS) return error;
  if ((*out)->capture == NULL) return TARN__CU_SUCCESS;
  return standin_capture_break(*out, TARN__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                               "the host asks for a stream that is captured");
}

tarn__cuda_result cuStreamQuery(CUstream stream) {
  CUcontext context = NULL;
  BEGIN(STANDIN_NOT_IN_CAPTURES, &context);
  CUstream found = NULL;
  tarn__cuda_result error = find_to_wait(context, stream, &found);
  if (error != TARN__CU_SUCCESS) return END(error);
  bool is_over = standin_queue_is_over(found);
  return END(is_over ? found->context->failure : TARN__CU_ERROR_NOT_READY);
}

static tarn__cuda_result synchronize(CUcontext context, CUstream handle) {
  CUstream found = NULL;
  tarn__cuda_result error = find_to_wait(context, handle, &found);
  if (error != TARN__CU_SUCCESS) return error;
  CUcontext owner = found->context;
  unsigned life = owner->life;
  error = standin_stream_wait(found);
  if (error != TARN__CU_SUCCESS) return error;
  standin_pools_trim();
  return life == owner->life ? owner->failure
                             : TARN__CU_ERROR_CONTEXT_IS_DESTROYED;
}

tarn__cuda_result cuStreamSynchronize(CUstream stream) {
  CUcontext context = NULL;
  BEGIN(STANDIN_NOT_IN_CAPTURES, &context);
  return END(synchronize(context, stream));
}

static tarn__cuda_result call_back(CUcontext context, CUstream handle,
                                   standin_task *task) {
  CUstream stream = NULL;
  tarn__cuda_result error = standin_stream_to_queue(context, handle, &stream);
  if (error != TARN__CU_SUCCESS) return error;
  if (stream->capture != NULL && task->action == STANDIN_CALLBACK) {
    return standin_capture_break(stream,
                                 TARN__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                                 "a callback on a stream that is captured");
  }
  task->call = standin_call();
  return standin_submit(stream, task);
}

tarn__cuda_result cuStreamAddCallback(CUstream stream,
                                      tarn__cuda_callback *callback, void *user,
                                      unsigned flags) {
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  if (flags != 0 || callback == NULL) {
    return END(standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "flags %u", flags));
  }
  standin_task task = {
      .action = STANDIN_CALLBACK, .callback = callback, .user = user};
  return END(call_back(context, stream, &task));
}

tarn__cuda_result cuLaunchHostFunc(CUstream stream,
                                   tarn__cu_host_function *function,
                                   void *user) {
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  standin_task task = {
      .action = STANDIN_HOST_FUNCTION, .host_function = function, .user = user};
  return END(call_back(context, stream, &task));
}

// --- events ----------------------------------------------------------------

static void let_go(CUevent event) {
  if (event->stream != NULL) standin_unuse(event->stream);
  event->stream = NULL;
  standin_capture_forget(event);
}

static void end_event(void *object) {
  let_go(object);
}

tarn__cuda_result cuEventCreate(CUevent *out, unsigned flags) {
  enum { FLAGS = 7 };
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  if (flags > FLAGS) {
    return END(standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "flags %u", flags));
  }
  standin_ends_with(STANDIN_EVENT, end_event);
  CUevent made = standin_new(STANDIN_EVENT, sizeof(struct CUevent_st));
  if (made == NULL) return END(TARN__CU_ERROR_OUT_OF_MEMORY);
  made->context = context;
  made->life = context->life;
  *out = made;
  return END(TARN__CU_SUCCESS);
}

tarn__cuda_result cuEventDestroy_v2(CUevent event) {
  BEGIN(STANDIN_IN_CONTEXT, NULL);
  tarn__cuda_result error = standin_check(event, STANDIN_EVENT);
  if (error == TARN__CU_SUCCESS) standin_destroy(event);
  return END(error);
}

static tarn__cuda_result record(CUcontext context, CUevent event,
                                CUstream handle) {
  CUstream stream = NULL;
  tarn__cuda_result error = standin_check(event, STANDIN_EVENT);
  if (error != TARN__CU_SUCCESS) return error;
  error = standin_stream_find(context, handle, &stream);
  if (error != TARN__CU_SUCCESS) return error;
  if (event->context != stream->context) {
    return standin_wrong(TARN__CU_ERROR_INVALID_HANDLE,
                         "the event and the stream are of two contexts");
  }
  if (stream->capture != NULL) return standin_capture_record(stream, event);
  error = standin_submit_order(stream, NULL, 0);
  if (error != TARN__CU_SUCCESS) return error;
  standin_use(stream);
  let_go(event);
  event->stream = stream;
  event->number = stream->queued;
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuEventRecord(CUevent event, CUstream stream) {
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  return END(record(context, event, stream));
}

static tarn__cuda_result wait_event(CUcontext context, CUstream handle,
                                    CUevent event) {
  CUstream stream = NULL;
  tarn__cuda_result error = standin_check(event, STANDIN_EVENT);
  if (error != TARN__CU_SUCCESS) return error;
  error = standin_stream_find(context, handle, &stream);
  if (error != TARN__CU_SUCCESS) return error;
  bool never = event->stream == NULL && event->capture == NULL;
  if (never) return TARN__CU_SUCCESS;
  if (event->capture != NULL || stream->capture != NULL) {
    return standin_capture_wait(stream, event);
  }
  return standin_submit_order(stream, event->stream, event->number);
}

tarn__cuda_result cuStreamWaitEvent(CUstream stream, CUevent event,
                                    unsigned flags) {
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  if (flags != 0) {
    return END(standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "flags %u", flags));
  }
  return END(wait_event(context, stream, event));
}

static tarn__cuda_result find_event(CUevent event) {
  tarn__cuda_result error = standin_check(event, STANDIN_EVENT);
  if (error != TARN__CU_SUCCESS || event->capture == NULL) return error;
  return standin_wrong(TARN__CU_ERROR_CAPTURED_EVENT,
                       "the event was recorded in a capture");
}

tarn__cuda_result cuEventQuery(CUevent event) {
  BEGIN(STANDIN_NOT_IN_CAPTURES, NULL);
  tarn__cuda_result error = find_event(event);
  if (error != TARN__CU_SUCCESS) return END(error);
  bool is_over =
      event->stream == NULL || event->stream->finished >= event->number;
  return END(is_over ? event->context->failure : TARN__CU_ERROR_NOT_READY);
}

static tarn__cuda_result synchronize_event(CUevent event) {
  tarn__cuda_result error = find_event(event);
  if (error != TARN__CU_SUCCESS) return error;
  CUcontext context = event->context;
  CUstream stream = event->stream;
  if (stream == NULL) return TARN__CU_SUCCESS;
  uint64_t number = event->number;
  standin_use(stream);
  standin_queue_await(stream, number);
  standin_unuse(stream);
  standin_pools_trim();
  return context->failure;
}

tarn__cuda_result cuEventSynchronize(CUevent event) {
  BEGIN(STANDIN_NOT_IN_CAPTURES, NULL);
  return END(synchronize_event(event));
}

// --- captures --------------------------------------------------------------

tarn__cuda_result cuThreadExchangeStreamCaptureMode(unsigned *mode) {
  BEGIN(STANDIN_INITIALISED, NULL);
  return END(standin_capture_exchange(mode));
}

tarn__cuda_result cuStreamIsCapturing(CUstream stream, unsigned *out) {
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  CUstream found = NULL;
  tarn__cuda_result error = standin_stream_find(context, stream, &found);
  if (error != TARN__CU_SUCCESS) return END(error);
  if (standin_capture_bars(found)) {  // nothing is broken by the question
    return END(TARN__CU_ERROR_STREAM_CAPTURE_IMPLICIT);
  }
  *out = standin_capture_status(found);
  return END(TARN__CU_SUCCESS);
}

tarn__cuda_result cuStreamBeginCapture_v2(CUstream stream, unsigned mode) {
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  CUstream found = NULL;
  tarn__cuda_result error = standin_stream_to_queue(context, stream, &found);
  if (error == TARN__CU_SUCCESS) error = standin_capture_begin(found, mode);
  return END(error);
}
