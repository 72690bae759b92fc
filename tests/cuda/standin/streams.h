// streams.h - streams by handle, and what is told to them.
//
// All with the lock of objects held.
#ifndef TARN_TESTS_CUDA_STANDIN_STREAMS_H_
#define TARN_TESTS_CUDA_STANDIN_STREAMS_H_

#include "queue.h"

// The stream that |handle| names in |context|: NULL and CU_STREAM_LEGACY are
// the context's legacy one, CU_STREAM_PER_THREAD the calling thread's. A wrong
// use: it is none.
tarn__cuda_result standin_stream_find(CUcontext context, CUstream handle,
                                      CUstream *out);

// The same, for work that is queued in |context|. A wrong use: the stream is of
// another.
tarn__cuda_result standin_stream_to_queue(CUcontext context, CUstream handle,
                                          CUstream *out);

tarn__cuda_result standin_stream_make(CUcontext context, unsigned flags,
                                      CUstream *out);

// Queues |task| on the stream, or records it where the stream is captured. It
// is the stream's from then on, also after a failure.
tarn__cuda_result standin_submit(CUstream stream, standin_task *task);

// The same for an order: nothing is done, when |waits| has come to |number|.
tarn__cuda_result standin_submit_order(CUstream stream, CUstream waits,
                                       uint64_t number);

// Waits for all that is on the stream, of which nothing may be captured.
tarn__cuda_result standin_stream_wait(CUstream stream);

#endif  // TARN_TESTS_CUDA_STANDIN_STREAMS_H_
