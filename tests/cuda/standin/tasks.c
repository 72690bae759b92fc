// Tasks: what is remembered of a call that queues work, and how it is done.
//
// A kernel's addresses are in its struct. What there looks like an address of
// live memory is taken for one: the memory must be there still when the kernel
// runs.
#include "tasks.h"

#include <stdlib.h>
#include <string.h>

#include "report.h"

// --- tasks -----------------------------------------------------------------

bool standin_task_copy(const standin_task *from, standin_task *out) {
  *out = *from;
  if (from->arguments == NULL) return true;
  out->arguments = malloc(from->kernel->size);
  if (out->arguments == NULL) return false;
  memcpy(out->arguments, from->arguments, from->kernel->size);
  return true;
}

void standin_task_end(standin_task *task) {
  free(task->arguments);
  task->arguments = NULL;
}

// --- the bytes of a task ---------------------------------------------------

static tarn__cuda_result add_end(standin_span *span, const standin_end_of *end,
                                 size_t size, bool writes) {
  span->writes = writes;
  return standin_span_add(span, end->context, end->side, end->address, size);
}

static tarn__cuda_result add_addresses(standin_work *work) {
  const standin_task *task = &work->task;
  for (size_t at = 0; at + sizeof(uint64_t) <= task->kernel->size;
       at += sizeof(uint64_t)) {
    uint64_t word = 0;
    memcpy(&word, task->arguments + at, sizeof word);
    const standin_block *block = standin_block_at(word);
    if (block == NULL || block->freed ||
        (block->sort != STANDIN_MAPPED && block->context != work->context)) {
      continue;
    }
    tarn__cuda_result error = standin_span_add(&work->from, work->context,
                                               STANDIN_OF_DEVICE, word, 1);
    if (error != TARN__CU_SUCCESS) return error;
  }
  return TARN__CU_SUCCESS;
}

static tarn__cuda_result find_bytes(standin_work *work) {
  const standin_task *task = &work->task;
  tarn__cuda_result error = TARN__CU_SUCCESS;
  switch (task->action) {
    case STANDIN_COPY:
      error = add_end(&work->from, &task->from, task->size, false);
      if (error != TARN__CU_SUCCESS) return error;
      return add_end(&work->to, &task->to, task->size, true);
    case STANDIN_FILL:
      return add_end(&work->to, &task->to, task->size, true);
    case STANDIN_KERNEL:
      return add_addresses(work);
    case STANDIN_ARRIVE:
    case STANDIN_DEPART:
      standin_block_use(task->block);
      return TARN__CU_SUCCESS;
    default:
      return TARN__CU_SUCCESS;
  }
}

tarn__cuda_result standin_work_make(standin_task *task, CUcontext context,
                                    standin_work *out) {
  *out = (standin_work){.task = *task, .context = context};
  *task = (standin_task){.action = STANDIN_NOTHING};
  tarn__cuda_result error = find_bytes(out);
  if (error != TARN__CU_SUCCESS) standin_work_end(out);
  return error;
}

void standin_work_end(standin_work *work) {
  standin_span_end(&work->to);
  standin_span_end(&work->from);
  bool is_of_pool = work->task.action == STANDIN_ARRIVE ||
                    work->task.action == STANDIN_DEPART;
  if (is_of_pool) standin_block_unuse(work->task.block);
  free(work->staged);
  standin_task_end(&work->task);
  *work = (standin_work){.task = {.action = STANDIN_NOTHING}};
}

tarn__cuda_result standin_work_stage(standin_work *work) {
  work->staged = malloc(work->task.size);
  if (work->staged == NULL) return TARN__CU_ERROR_OUT_OF_MEMORY;
  standin_piece whole = {.at = work->staged, .size = work->task.size};
  standin_span copy = {.pieces = &whole, .count = 1};
  standin_span_copy(&copy, &work->from);
  return TARN__CU_SUCCESS;
}

// --- doing it --------------------------------------------------------------

static tarn__cuda_result move_in_or_out(const standin_task *task) {
  if (task->action == STANDIN_ARRIVE) task->block->present = task->tenant;
  if (task->action != STANDIN_DEPART) return TARN__CU_SUCCESS;
  if (task->block->present != task->tenant) {
    return standin_wrong(TARN__CU_ERROR_ILLEGAL_ADDRESS,
                         "memory of a pool is freed before it is there, in the "
                         "order of streams");
  }
  task->block->present = 0;
  return TARN__CU_SUCCESS;
}

tarn__cuda_result standin_work_before(standin_work *work) {
  tarn__cuda_result error = standin_span_check(&work->from);
  if (error == TARN__CU_SUCCESS) error = standin_span_check(&work->to);
  if (error != TARN__CU_SUCCESS) return error;
  error = move_in_or_out(&work->task);
  if (error != TARN__CU_SUCCESS) return error;
  if (work->task.action == STANDIN_KERNEL) {
    standin_blocks_open(work->context->device);
  }
  return TARN__CU_SUCCESS;
}

void standin_work_after(standin_work *work) {
  if (work->task.action == STANDIN_KERNEL) {
    standin_blocks_close(work->context->device);
  }
}

static void copy(const standin_work *work) {
  if (work->staged == NULL) {
    standin_span_copy(&work->to, &work->from);
    return;
  }
  standin_piece whole = {.at = work->staged, .size = work->task.size};
  standin_span from = {.pieces = &whole, .count = 1};
  standin_span_copy(&work->to, &from);
}

static tarn__cuda_result launch(const standin_task *task) {
  tarn_standin_launch launched = task->launch;
  launched.arguments = task->arguments;
  return task->kernel->function(&launched);
}

tarn__cuda_result standin_work_run(standin_work *work, CUstream stream,
                                   tarn__cuda_result failure) {
  const standin_task *task = &work->task;
  if (task->action == STANDIN_CALLBACK) {
    task->callback(stream, failure, task->user);
  }
  if (failure != TARN__CU_SUCCESS) return failure;
  switch (task->action) {
    case STANDIN_COPY:
      copy(work);
      return TARN__CU_SUCCESS;
    case STANDIN_FILL:
      standin_span_fill(&work->to, task->value);
      return TARN__CU_SUCCESS;
    case STANDIN_KERNEL:
      return launch(task);
    case STANDIN_HOST_FUNCTION:
      task->host_function(task->user);
      return TARN__CU_SUCCESS;
    default:
      return TARN__CU_SUCCESS;
  }
}
