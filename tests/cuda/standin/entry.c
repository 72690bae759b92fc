// The gate of each function, and the current contexts of threads.
//
// A context is the primary one of a device. Its struct is there for ever, so
// that a program's handle of it never becomes that of another. A program may
// make one current that is not retained, or not any more: the calls that follow
// say CUDA_ERROR_CONTEXT_IS_DESTROYED then, as documented for that error.
#include "entry.h"

#include "captures.h"
#include "faults.h"
#include "report.h"

enum { STACK = 64 };

// The program's contexts, the newest last.
static _Thread_local CUcontext stack[STACK];
static _Thread_local unsigned depth;
static _Thread_local bool in_callback;

// Guarded by the lock of objects.
static struct CUctx_st contexts[STANDIN_DEVICES_MAX] = {
    {.object = {.kind = STANDIN_CONTEXT}, .device = 0, .life = 1},
    {.object = {.kind = STANDIN_CONTEXT}, .device = 1, .life = 1},
};

// --- contexts --------------------------------------------------------------

CUcontext standin_context_of(int device) {
  return &contexts[device];
}

bool standin_context_is_active(const struct CUctx_st *context) {
  return context->is_active;
}

void standin_context_fail(CUcontext context, tarn__cuda_result error) {
  if (context->failure == TARN__CU_SUCCESS) context->failure = error;
}

CUcontext standin_current(void) {
  return depth > 0 ? stack[depth - 1] : NULL;
}

static tarn__cuda_result check_context(const struct CUctx_st *context) {
  for (size_t i = 0; i < STANDIN_DEVICES_MAX; i++) {
    if (context == &contexts[i]) return TARN__CU_SUCCESS;
  }
  return standin_wrong(TARN__CU_ERROR_INVALID_CONTEXT, "%p is no context",
                       (const void *)context);
}

tarn__cuda_result standin_push(CUcontext context) {
  tarn__cuda_result error = check_context(context);
  if (error != TARN__CU_SUCCESS) return error;
  if (depth == STACK) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                         "%u contexts are pushed and none is popped", depth);
  }
  stack[depth++] = context;
  return TARN__CU_SUCCESS;
}

tarn__cuda_result standin_pop(CUcontext *out) {
  if (depth == 0) {
    return standin_wrong(TARN__CU_ERROR_INVALID_CONTEXT, "no context to pop");
  }
  CUcontext popped = stack[--depth];
  if (out != NULL) *out = popped;
  return TARN__CU_SUCCESS;
}

tarn__cuda_result standin_set_current(CUcontext context) {
  if (context != NULL) {
    tarn__cuda_result error = check_context(context);
    if (error != TARN__CU_SUCCESS) return error;
  }
  if (depth > 0) depth--;
  return context != NULL ? standin_push(context) : TARN__CU_SUCCESS;
}

// --- the gate --------------------------------------------------------------

void standin_set_in_callback(bool on) {
  in_callback = on;
}

static tarn__cuda_result find_context(CUcontext *out) {
  CUcontext context = standin_current();
  if (context == NULL) {
    return standin_wrong(TARN__CU_ERROR_INVALID_CONTEXT,
                         "the thread has no current context");
  }
  if (!standin_context_is_active(context)) {
    return TARN__CU_ERROR_CONTEXT_IS_DESTROYED;
  }
  if (out != NULL) *out = context;
  return context->failure;
}

static tarn__cuda_result give(standin_need need, CUcontext *out_context) {
  if (need < STANDIN_INITIALISED) return TARN__CU_SUCCESS;
  if (!standin_is_bound()) {
    return standin_wrong(TARN__CU_ERROR_NOT_INITIALIZED, "before cuInit");
  }
  if (need >= STANDIN_IN_CONTEXT) {
    tarn__cuda_result error = find_context(out_context);
    if (error != TARN__CU_SUCCESS) return error;
  }
  bool is_safe = need == STANDIN_INITIALISED || need == STANDIN_IN_CONTEXT;
  return is_safe ? TARN__CU_SUCCESS : standin_capture_check();
}

tarn__cuda_result standin_begin(const char *name, standin_need need,
                                CUcontext *out_context) {
  if (in_callback) {
    return standin_wrong(TARN__CU_ERROR_NOT_PERMITTED,
                         "%s is called in a callback", name);
  }
  tarn__cuda_result error = standin_call_may_begin(name);
  if (error != TARN__CU_SUCCESS) return error;
  standin_lock();
  error = give(need, out_context);
  if (error != TARN__CU_SUCCESS) standin_unlock();
  return error;
}

tarn__cuda_result standin_end(tarn__cuda_result result) {
  standin_unlock();
  return result;
}
