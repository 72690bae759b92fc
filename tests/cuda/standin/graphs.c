// Graphs: what a capture has recorded, done again by each launch, at the same
// addresses, in the order in which it was recorded.
#include <stdlib.h>

#include "captures.h"
#include "entry.h"
#include "report.h"
#include "streams.h"

typedef struct tasks {
  standin_task *all;
  size_t count;
} tasks;

struct CUgraph_st {
  standin_object object;
  tasks tasks;
};

struct CUgraphExec_st {
  standin_object object;
  tasks tasks;
};

static void end_tasks(tasks *of) {
  for (size_t i = 0; i < of->count; i++)
    standin_task_end(&of->all[i]);
  free(of->all);
  *of = (tasks){.count = 0};
}

static void end_graph(void *object) {
  end_tasks(&((CUgraph)object)->tasks);
}

static void end_exec(void *object) {
  end_tasks(&((CUgraphExec)object)->tasks);
}

static bool copy_tasks(const tasks *from, tasks *out) {
  out->all = malloc((from->count + 1) * sizeof *out->all);
  if (out->all == NULL) return false;
  for (; out->count < from->count; out->count++) {
    if (!standin_task_copy(&from->all[out->count], &out->all[out->count])) {
      end_tasks(out);
      return false;
    }
  }
  return true;
}

// --- from capture to launch ------------------------------------------------

static tarn__cuda_result end_capture(CUcontext context, CUstream handle,
                                     CUgraph *out) {
  CUstream stream = NULL;
  *out = NULL;
  tarn__cuda_result error = standin_stream_find(context, handle, &stream);
  if (error != TARN__CU_SUCCESS) return error;
  standin_ends_with(STANDIN_GRAPH, end_graph);
  tasks captured = {.count = 0};
  error = standin_capture_end(stream, &captured.all, &captured.count);
  if (error != TARN__CU_SUCCESS) return error;
  CUgraph made = standin_new(STANDIN_GRAPH, sizeof(struct CUgraph_st));
  if (made == NULL) {
    end_tasks(&captured);
    return TARN__CU_ERROR_OUT_OF_MEMORY;
  }
  made->tasks = captured;
  *out = made;
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuStreamEndCapture(CUstream stream, CUgraph *out) {
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  return END(end_capture(context, stream, out));
}

static tarn__cuda_result instantiate(CUgraph graph, unsigned long long flags,
                                     CUgraphExec *out) {
  tarn__cuda_result error = standin_check(graph, STANDIN_GRAPH);
  if (error != TARN__CU_SUCCESS) return error;
  if (flags != 0) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "flags %llu", flags);
  }
  standin_ends_with(STANDIN_EXEC, end_exec);
  CUgraphExec made = standin_new(STANDIN_EXEC, sizeof(struct CUgraphExec_st));
  if (made == NULL) return TARN__CU_ERROR_OUT_OF_MEMORY;
  if (!copy_tasks(&graph->tasks, &made->tasks)) {
    standin_destroy(made);
    return TARN__CU_ERROR_OUT_OF_MEMORY;
  }
  *out = made;
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph,
                                              unsigned long long flags) {
  BEGIN(STANDIN_IN_CONTEXT, NULL);
  return END(instantiate(graph, flags, out));
}

// |works| has room for all.
static tarn__cuda_result make_works(const tasks *from, CUcontext context,
                                    standin_work *works) {
  tarn__cuda_result error = TARN__CU_SUCCESS;
  size_t made = 0;
  while (made < from->count && error == TARN__CU_SUCCESS) {
    standin_task task;
    if (!standin_task_copy(&from->all[made], &task)) {
      error = TARN__CU_ERROR_OUT_OF_MEMORY;
    } else {
      error = standin_work_make(&task, context, &works[made]);
    }
    if (error == TARN__CU_SUCCESS) made++;
  }
  if (error == TARN__CU_SUCCESS) return error;
  while (made > 0)
    standin_work_end(&works[--made]);
  return error;
}

// Into another capture: what is in a graph becomes part of it.
static tarn__cuda_result record(const tasks *from, CUstream stream) {
  tarn__cuda_result error = TARN__CU_SUCCESS;
  for (size_t i = 0; i < from->count && error == TARN__CU_SUCCESS; i++) {
    standin_task task;
    if (!standin_task_copy(&from->all[i], &task)) {
      return TARN__CU_ERROR_OUT_OF_MEMORY;
    }
    error = standin_capture_add(stream, &task);
  }
  return error;
}

static tarn__cuda_result launch(CUcontext context, CUgraphExec exec,
                                CUstream handle) {
  CUstream stream = NULL;
  tarn__cuda_result error = standin_check(exec, STANDIN_EXEC);
  if (error != TARN__CU_SUCCESS) return error;
  error = standin_stream_to_queue(context, handle, &stream);
  if (error != TARN__CU_SUCCESS) return error;
  if (stream->capture != NULL) return record(&exec->tasks, stream);
  error = standin_capture_check_legacy(stream);
  if (error != TARN__CU_SUCCESS) return error;
  standin_work *works = malloc((exec->tasks.count + 1) * sizeof *works);
  if (works == NULL) return TARN__CU_ERROR_OUT_OF_MEMORY;
  error = make_works(&exec->tasks, context, works);
  if (error == TARN__CU_SUCCESS) {
    error = standin_queue_add(stream, works, exec->tasks.count, NULL, 0);
  }
  free(works);
  return error;
}

tarn__cuda_result cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  return END(launch(context, graph, stream));
}

tarn__cuda_result cuGraphExecDestroy(CUgraphExec graph) {
  BEGIN(STANDIN_INITIALISED, NULL);
  tarn__cuda_result error = standin_check(graph, STANDIN_EXEC);
  if (error == TARN__CU_SUCCESS) standin_destroy(graph);
  return END(error);
}

tarn__cuda_result cuGraphDestroy(CUgraph graph) {
  BEGIN(STANDIN_INITIALISED, NULL);
  tarn__cuda_result error = standin_check(graph, STANDIN_GRAPH);
  if (error == TARN__CU_SUCCESS) standin_destroy(graph);
  return END(error);
}
