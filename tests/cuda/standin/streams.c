// Streams by handle. The legacy stream of a context and those of threads are
// made when they are first used, and are the stand-in's.
#include "streams.h"

#include <string.h>

#include "captures.h"
#include "report.h"
#include "settings.h"

enum { STAGED_MAX = 65536 };

// The thread's stream in each context.
static _Thread_local CUstream own[STANDIN_DEVICES_MAX];

// --- which stream ----------------------------------------------------------

tarn__cuda_result standin_stream_make(CUcontext context, unsigned flags,
                                      CUstream *out) {
  CUstream made = standin_new(STANDIN_STREAM, sizeof(struct CUstream_st));
  if (made == NULL) return TARN__CU_ERROR_OUT_OF_MEMORY;
  made->context = context;
  made->life = context->life;
  made->flags = flags;
  *out = made;
  return TARN__CU_SUCCESS;
}

static tarn__cuda_result find_legacy(CUcontext context, CUstream *out) {
  if (context->legacy == NULL) {
    tarn__cuda_result error = standin_stream_make(context, 0, &context->legacy);
    if (error != TARN__CU_SUCCESS) return error;
    context->legacy->is_legacy = true;
    standin_keep(context->legacy);
  }
  *out = context->legacy;
  return TARN__CU_SUCCESS;
}

static tarn__cuda_result find_own(CUcontext context, CUstream *out) {
  CUstream *mine = &own[context->device];
  if (*mine == NULL || !standin_is(*mine, STANDIN_STREAM) ||
      (*mine)->life != context->life) {
    tarn__cuda_result error = standin_stream_make(context, 0, mine);
    if (error != TARN__CU_SUCCESS) return error;
    (*mine)->is_per_thread = true;
    standin_keep(*mine);
  }
  *out = *mine;
  return TARN__CU_SUCCESS;
}

tarn__cuda_result standin_stream_find(CUcontext context, CUstream handle,
                                      CUstream *out) {
  if (handle == NULL || handle == TARN__CU_STREAM_LEGACY) {
    return find_legacy(context, out);
  }
  if (handle == TARN__CU_STREAM_PER_THREAD) return find_own(context, out);
  tarn__cuda_result error = standin_check(handle, STANDIN_STREAM);
  if (error == TARN__CU_SUCCESS) *out = handle;
  return error;
}

tarn__cuda_result standin_stream_to_queue(CUcontext context, CUstream handle,
                                          CUstream *out) {
  tarn__cuda_result error = standin_stream_find(context, handle, out);
  if (error != TARN__CU_SUCCESS) return error;
  if ((*out)->context != context) {
    return standin_wrong(TARN__CU_ERROR_INVALID_HANDLE,
                         "the stream is of another context");
  }
  return TARN__CU_SUCCESS;
}

// --- what it is told -------------------------------------------------------

// How host memory that is not pinned is read. |out_waits|: the call returns
// when the command is over.
static tarn__cuda_result prepare(standin_work *work, bool *out_waits) {
  const standin_task *task = &work->task;
  *out_waits = false;
  if (task->action != STANDIN_COPY || task->size == 0) return TARN__CU_SUCCESS;
  bool in = standin_span_is_pageable(&work->from);
  bool out = standin_span_is_pageable(&work->to);
  if (!in && !out) return TARN__CU_SUCCESS;
  *out_waits = standin_is_set_to(STANDIN_PAGEABLE, "waits");
  bool staged = in && task->size <= STAGED_MAX &&
                standin_is_set_to(STANDIN_PAGEABLE, "staged");
  return staged ? standin_work_stage(work) : TARN__CU_SUCCESS;
}

static tarn__cuda_result queue_task(CUstream stream, standin_task *task) {
  standin_work work;
  bool waits = false;
  tarn__cuda_result error = standin_work_make(task, stream->context, &work);
  if (error != TARN__CU_SUCCESS) return error;
  error = prepare(&work, &waits);
  if (error != TARN__CU_SUCCESS) {
    standin_work_end(&work);
    return error;
  }
  error = standin_queue_add(stream, &work, 1, NULL, 0);
  if (error == TARN__CU_SUCCESS && waits) {
    standin_use(stream);
    standin_queue_await(stream, stream->queued);
    standin_unuse(stream);
  }
  return error;
}

tarn__cuda_result standin_submit(CUstream stream, standin_task *task) {
  if (stream->capture != NULL) return standin_capture_add(stream, task);
  tarn__cuda_result error = standin_capture_check_legacy(stream);
  if (error == TARN__CU_SUCCESS) return queue_task(stream, task);
  standin_task_end(task);
  return error;
}

tarn__cuda_result standin_submit_order(CUstream stream, CUstream waits,
                                       uint64_t number) {
  tarn__cuda_result error = standin_capture_check_legacy(stream);
  if (error != TARN__CU_SUCCESS) return error;
  standin_task nothing = {.action = STANDIN_NOTHING};
  standin_work work;
  error = standin_work_make(&nothing, stream->context, &work);
  if (error != TARN__CU_SUCCESS) return error;
  return standin_queue_add(stream, &work, 1, waits, number);
}

tarn__cuda_result standin_stream_wait(CUstream stream) {
  tarn__cuda_result error = standin_capture_check_legacy(stream);
  if (error != TARN__CU_SUCCESS) return error;
  if (stream->is_legacy && !standin_queue_is_over(stream)) {
    error = standin_submit_order(stream, NULL, 0);
    if (error != TARN__CU_SUCCESS) return error;
  }
  standin_use(stream);
  standin_queue_await(stream, stream->queued);
  standin_unuse(stream);
  return TARN__CU_SUCCESS;
}
