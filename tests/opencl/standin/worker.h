// worker.h - the thread behind a queue.
#ifndef TARN_TESTS_OPENCL_STANDIN_WORKER_H_
#define TARN_TESTS_OPENCL_STANDIN_WORKER_H_

#include "commands.h"

// With the lock held. Makes the queue's thread, if it has none.
cl_int standin_queue_thread(cl_command_queue queue);

// With the lock held. The queue has the command from now on.
void standin_queue_add(standin_command *command);

// With the lock held. While it is on, no command begins.
void standin_queue_hold(bool on);

// With the lock held. Waits until each queue is empty, or at a command that
// cannot begin.
void standin_queues_settle(void);

// With the lock held: commands in all queues.
size_t standin_queued_commands(void);

#endif  // TARN_TESTS_OPENCL_STANDIN_WORKER_H_
