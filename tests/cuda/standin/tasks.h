// tasks.h - what a command is to do, as the program has said it.
#ifndef TARN_TESTS_CUDA_STANDIN_TASKS_H_
#define TARN_TESTS_CUDA_STANDIN_TASKS_H_

#include "cuda/standin.h"
#include "spans.h"

typedef enum standin_action {
  STANDIN_NOTHING,  // but to keep the order
  STANDIN_COPY,
  STANDIN_FILL,
  STANDIN_KERNEL,
  STANDIN_CALLBACK,       // cuStreamAddCallback
  STANDIN_HOST_FUNCTION,  // cuLaunchHostFunc
  STANDIN_ARRIVE,         // memory of a pool is there from now on
  STANDIN_DEPART,         // and not any more
} standin_action;

// Where a copy begins or ends.
typedef struct standin_end_of {
  CUcontext context;
  standin_side side;
  uint64_t address;
} standin_end_of;

// Plain data, but |arguments|, which is its own.
typedef struct standin_task {
  standin_action action;
  const char *call;
  standin_end_of to;
  standin_end_of from;
  size_t size;
  unsigned char value;
  const tarn_standin_kernel *kernel;
  tarn_standin_launch launch;
  unsigned char *arguments;
  tarn__cuda_callback *callback;
  tarn__cu_host_function *host_function;
  void *user;
  standin_block *block;  // that arrives or departs
  uint64_t tenant;
} standin_task;

// A copy of |from|. False if there is no host memory.
bool standin_task_copy(const standin_task *from, standin_task *out);
void standin_task_end(standin_task *task);

// A task with the bytes that it means.
typedef struct standin_work {
  standin_task task;
  CUcontext context;  // of the stream
  standin_span to;
  standin_span from;
  unsigned char *staged;  // a copy of what |from| was; NULL: none
} standin_work;

// All with the lock held, but standin_work_run.

// Finds the bytes. |task| is the work's from then on, also after a failure.
tarn__cuda_result standin_work_make(standin_task *task, CUcontext context,
                                    standin_work *out);

// Reads the source now.
tarn__cuda_result standin_work_stage(standin_work *work);

// Just before and behind standin_work_run.
tarn__cuda_result standin_work_before(standin_work *work);
void standin_work_after(standin_work *work);

// What is done without the lock. |failure|: of the context; then nothing but a
// callback is done.
tarn__cuda_result standin_work_run(standin_work *work, CUstream stream,
                                   tarn__cuda_result failure);

void standin_work_end(standin_work *work);

#endif  // TARN_TESTS_CUDA_STANDIN_TASKS_H_
