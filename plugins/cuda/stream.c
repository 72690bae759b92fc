// Streams as the ABI's table has them.
//
// Waits and queries are made in the mode RELAXED: another thread may be
// capturing. What is queued on a stream is not: a stream that captures says
// itself what it does not take.
#include "gpu.h"

typedef tarn__cuda_device cuda;
typedef tarn__cuda_queue queue;

// --- waiting ---------------------------------------------------------------

// The outcome of a wait or query that ended with |error|: with none, |mark| is
// reached.
static C_Status outcome_of(tarn__cuda_mark mark, tarn__cuda_result error,
                           const char *what, bool is_told) {
  if (error == TARN__CU_SUCCESS) return tarn__cuda_mark_settle(mark, is_told);
  tarn__cuda_mark_drop(mark);
  return tarn__cuda_say(error, what);
}

// The outcome, and the driver's answer; where the context is gone, that.
static C_Status await(cuda *d, C_Stream stream, tarn__cuda_result *out_error) {
  tarn__cuda_scope scope;
  *out_error = TARN__CU_ERROR_CONTEXT_IS_DESTROYED;
  C_Status status = tarn__cuda_enter(d, true, &scope);
  if (status != C_SUCCESS) return status;
  tarn__cuda_mark mark = tarn__cuda_mark_of(d, stream);
  *out_error = tarn__cuda_drain((CUstream)(void *)stream);
  status = outcome_of(mark, *out_error, "cuStreamSynchronize", true);
  tarn__cuda_leave(&scope);
  return status;
}

C_Status tarn__cuda_synchronize_stream(const C_Device device, C_Stream stream) {
  cuda *d = tarn__cuda_device_of(device);
  tarn__cuda_result error = TARN__CU_SUCCESS;
  if (d == NULL) return C_ERROR;
  if (stream == NULL) return tarn__wordless(C_ERROR);
  C_Status status = await(d, stream, &error);
  return tarn__cuda_has_failed(error) ? tarn__cuda_calls_fail(d, stream, status)
                                      : status;
}

C_Status tarn__cuda_query_stream(const C_Device device, C_Stream stream) {
  cuda *d = tarn__cuda_device_of(device);
  tarn__cuda_scope scope;
  if (d == NULL) return C_ERROR;
  if (stream == NULL) return tarn__wordless(C_ERROR);
  C_Status status = tarn__cuda_enter(d, true, &scope);
  if (status != C_SUCCESS) return tarn__cuda_query_answer(status);
  tarn__cuda_mark mark = tarn__cuda_mark_of(d, stream);
  tarn__cuda_result error =
      tarn__cuda_driver_get()->StreamQuery((CUstream)(void *)stream);
  if (error == TARN__CU_ERROR_NOT_READY) {
    tarn__cuda_mark_drop(mark);
    status = C_WARNING;
  } else {
    status = tarn__cuda_query_answer(
        outcome_of(mark, error, "cuStreamQuery", false));
  }
  tarn__cuda_leave(&scope);
  return status;
}

C_Status tarn__cuda_synchronize_device(const C_Device device) {
  const cuda *d = tarn__cuda_device_of(device);
  tarn__cuda_scope scope;
  if (d == NULL) return C_ERROR;
  C_Status status = tarn__cuda_enter(d, true, &scope);
  if (status != C_SUCCESS) return status;
  tarn__cuda_result error = tarn__cuda_drain_context();
  status = error == TARN__CU_SUCCESS
               ? tarn__cuda_queues_outcome(d)
               : tarn__cuda_say(error, "cuCtxSynchronize");
  tarn__cuda_leave(&scope);
  return status;
}

// --- making and ending -----------------------------------------------------

C_Status tarn__cuda_create_stream(const C_Device device, C_Stream *stream) {
  tarn__cuda_scope scope;
  if (stream == NULL) return tarn__wordless(C_ERROR);
  *stream = NULL;
  cuda *d = tarn__cuda_device_of(device);
  if (d == NULL) return C_ERROR;
  C_Status status = tarn__cuda_enter(d, true, &scope);
  if (status != C_SUCCESS) return status;
  status = tarn__cuda_queue_open(d, stream);
  tarn__cuda_leave(&scope);
  return status;
}

// Destroys the stream of |q|, whatever has failed there.
static C_Status end_stream(const cuda *d, queue *q) {
  tarn__cuda_scope scope;
  C_Status status = tarn__cuda_enter(d, true, &scope);
  if (status != C_SUCCESS) {
    tarn__cuda_queue_forget(q);
    return status;
  }
  tarn__cuda_result error = tarn__cuda_queue_close(q);
  status = tarn__cuda_say(error, "cuStreamDestroy");
  tarn__cuda_leave(&scope);
  return status;
}

// An adopted stream is its owner's to end.
C_Status tarn__cuda_destroy_stream(const C_Device device, C_Stream stream) {
  cuda *d = tarn__cuda_device_of(device);
  tarn__cuda_result error = TARN__CU_SUCCESS;
  if (d == NULL) return C_ERROR;
  queue *q = tarn__cuda_queue_known(stream);
  if (q == NULL || q->device != d) {
    tarn__cuda_queue_drop(q);
    (void)tarn__text_fail(TARN_E_INVALID,
                          "%s:%d: not a stream that was created here",
                          tarn__cuda_vendor_of.type, d->id);
    return C_ERROR;
  }
  C_Status waited = await(d, stream, &error);
  if (error != TARN__CU_SUCCESS) (void)tarn__cuda_calls_fail(d, stream, waited);
  C_Status status = end_stream(d, q);
  tarn__cuda_queue_drop(q);
  return status;
}
