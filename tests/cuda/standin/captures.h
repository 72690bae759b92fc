// captures.h - streams whose work is recorded and not done.
//
// All with the lock of objects held.
#ifndef TARN_TESTS_CUDA_STANDIN_CAPTURES_H_
#define TARN_TESTS_CUDA_STANDIN_CAPTURES_H_

#include "tasks.h"

// CUDA_SUCCESS where the calling thread may make a call that is potentially
// unsafe. Else a wrong use, and the captures that forbid it are no good any
// more.
tarn__cuda_result standin_capture_check(void);

// Sets the thread's mode; |mode| becomes the one before.
tarn__cuda_result standin_capture_exchange(unsigned *mode);

tarn__cuda_result standin_capture_begin(CUstream stream, unsigned mode);

// Ends it. The tasks are the caller's.
tarn__cuda_result standin_capture_end(CUstream stream, standin_task **out_tasks,
                                      size_t *out_count);

// CU_STREAM_CAPTURE_STATUS_...
unsigned standin_capture_status(const struct CUstream_st *stream);

// Records |task|, which is the capture's from then on.
tarn__cuda_result standin_capture_add(CUstream stream, standin_task *task);

// A wrong use that no mode permits: the capture of |stream| is no good any
// more.
tarn__cuda_result standin_capture_break(CUstream stream,
                                        tarn__cuda_result error,
                                        const char *why);

// True if |stream| is the legacy one, and would wait for a captured stream.
bool standin_capture_bars(const struct CUstream_st *stream);

// Where it is, a wrong use, and those captures are no good any more. Else
// CUDA_SUCCESS: the stream may be told something.
tarn__cuda_result standin_capture_check_legacy(
    const struct CUstream_st *stream);

// |event| is recorded on |stream|, which is captured.
tarn__cuda_result standin_capture_record(CUstream stream, CUevent event);

// |event| is not the record of a capture any more.
void standin_capture_forget(CUevent event);

// |stream| waits for |event|; one of the two is of a capture.
tarn__cuda_result standin_capture_wait(CUstream stream, CUevent event);

#endif  // TARN_TESTS_CUDA_STANDIN_CAPTURES_H_
