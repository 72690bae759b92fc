// queue.h - the commands of a stream, and the thread behind it.
//
// All with the lock of objects held.
#ifndef TARN_TESTS_CUDA_STANDIN_QUEUE_H_
#define TARN_TESTS_CUDA_STANDIN_QUEUE_H_

#include "tasks.h"

// Queues |count| works as one command. They are the command's from then on,
// also after a failure. With a |waits|, it begins when |waits| has come to
// |number|.
tarn__cuda_result standin_queue_add(CUstream stream, standin_work *works,
                                    size_t count, CUstream waits,
                                    uint64_t number);

// Waits until the stream has come to |number|. The caller holds the stream.
void standin_queue_await(CUstream stream, uint64_t number);

// True if nothing is queued, nor on a stream that the legacy one waits for.
bool standin_queue_is_over(CUstream stream);

// While it is on, no command begins.
void standin_queue_hold(bool on);

// Waits until each stream is empty, or at a command that cannot begin.
void standin_queues_settle(void);

// Commands in all streams.
size_t standin_queued_commands(void);

// What the program calls the stream.
CUstream standin_queue_handle(CUstream stream);

#endif  // TARN_TESTS_CUDA_STANDIN_QUEUE_H_
