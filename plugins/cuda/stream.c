// Streams as the ABI's table has them, and callbacks.
//
// Waits and queries are made in the mode RELAXED: another thread may be
// capturing. What is queued on a stream is not: a stream that captures says
// itself what it does not take.
//
// Callbacks are cuStreamAddCallback's, which the driver also makes on a stream
// that has failed. The driver is given a number, by which each is found until
// it is called: where a context was destroyed, a driver may call late or never,
// and behind the end of a stream nobody must be called any more.
#include "base/hostmem.h"
#include "gpu.h"

typedef tarn__cuda_device cuda;
typedef tarn__cuda_queue queue;

// A callback that has not come.
typedef struct call {
  tarn_list node;
  uint64_t number;
  const cuda *device;
  C_Stream stream;
  C_Callback function;
  void *user_data;
  tarn__cuda_mark mark;  // what is before it
} call;

static struct {
  pthread_mutex_t lock;  // guards all below
  tarn_list list;
  uint64_t last;  // number
} calls = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .list = {&calls.list, &calls.list}};

// --- callbacks -------------------------------------------------------------

static uint64_t enlist(call *c) {
  pthread_mutex_lock(&calls.lock);
  uint64_t number = c->number = ++calls.last;
  tarn_list_add_tail(&calls.list, &c->node);
  pthread_mutex_unlock(&calls.lock);
  return number;
}

// Takes the callback off the list. NULL: it has come, or nobody is called any
// more.
static call *claim(uint64_t number) {
  call *found = NULL;
  tarn_list *node = NULL;
  pthread_mutex_lock(&calls.lock);
  tarn_list_for_each (node, &calls.list) {
    call *c = tarn_list_entry(node, call, node);
    if (c->number != number) continue;
    tarn_list_del(node);
    found = c;
    break;
  }
  pthread_mutex_unlock(&calls.lock);
  return found;
}

static void free_call(call *c) {
  if (c == NULL) return;
  tarn__cuda_mark_drop(c->mark);
  tarn__host_free(c, sizeof *c);
}

void tarn__cuda_calls_forget(const cuda *d, C_Stream stream) {
  tarn_list *node = NULL;
  tarn_list *next = NULL;
  pthread_mutex_lock(&calls.lock);
  tarn_list_for_each_safe (node, next, &calls.list) {
    call *c = tarn_list_entry(node, call, node);
    if (c->device != d || (stream != NULL && c->stream != stream)) continue;
    tarn_list_del(node);
    free_call(c);
  }
  pthread_mutex_unlock(&calls.lock);
}

// Called by the driver, which takes no calls from here. The thread's text is
// the reason of a failure.
static void arrive(CUstream stream, tarn__cu_result error, void *number) {
  (void)stream;
  call *c = claim((uintptr_t)number);
  if (c == NULL) return;
  struct C_Device_st device = {c->device->id};
  C_Status outcome =
      error == TARN__CU_SUCCESS
          ? tarn__cuda_mark_settle(tarn__cuda_mark_again(c->mark), false)
          : tarn__cuda_say(error, "what is before a callback");
  c->function(&device, c->stream, c->user_data, &outcome);
  free_call(c);
}

// Queues |c|, which it takes.
static C_Status add_call(cuda *d, C_Stream stream, call *c) {
  tarn__cuda_work w;
  C_Status status = tarn__cuda_begin(d, stream, &w);
  if (status != C_SUCCESS) {
    free_call(c);
    return status;
  }
  c->mark = tarn__cuda_mark_of(d, stream);
  uint64_t number = enlist(c);
  tarn__cu_result error = tarn__cuda_driver_get()->StreamAddCallback(
      w.stream, arrive, (void *)(uintptr_t)number, 0);
  if (error != TARN__CU_SUCCESS) free_call(claim(number));
  return tarn__cuda_end(&w, "cuStreamAddCallback", error);
}

C_Status tarn__cuda_stream_add_callback(const C_Device device, C_Stream stream,
                                        C_Callback callback, void *user_data) {
  cuda *d = tarn__cuda_device_of(device);
  if (d == NULL) return C_ERROR;
  if (stream == NULL || callback == NULL) return tarn__wordless(C_ERROR);
  call *c = tarn__host_alloc(sizeof *c);
  if (c == NULL) return tarn__wordless(C_FAILED);
  c->device = d;
  c->stream = stream;
  c->function = callback;
  c->user_data = user_data;
  return add_call(d, stream, c);
}

static tarn__cu_result drain_context(void) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  tarn__cu_result error = cu->CtxSynchronize();
  if (error != TARN__CU_SUCCESS) (void)cu->CtxSynchronize();
  return error;
}

void tarn__cuda_calls_close(const cuda *d) {
  if (tarn__cuda_is_entered(d)) (void)drain_context();
  tarn__cuda_calls_forget(d, NULL);
}

// --- waiting ---------------------------------------------------------------

// The outcome of a wait or query that ended with |error|: with none, |mark| is
// reached.
static C_Status outcome_of(tarn__cuda_mark mark, tarn__cu_result error,
                           const char *what, bool is_told) {
  if (error == TARN__CU_SUCCESS) return tarn__cuda_mark_settle(mark, is_told);
  tarn__cuda_mark_drop(mark);
  return tarn__cuda_say(error, what);
}

C_Status tarn__cuda_synchronize_stream(const C_Device device, C_Stream stream) {
  cuda *d = tarn__cuda_device_of(device);
  tarn__cuda_scope scope;
  if (d == NULL) return C_ERROR;
  if (stream == NULL) return tarn__wordless(C_ERROR);
  C_Status status = tarn__cuda_enter(d, true, &scope);
  if (status != C_SUCCESS) return status;
  tarn__cuda_mark mark = tarn__cuda_mark_of(d, stream);
  tarn__cu_result error = tarn__cuda_drain((CUstream)(void *)stream);
  status = outcome_of(mark, error, "cuStreamSynchronize", true);
  tarn__cuda_leave(&scope);
  return status;
}

C_Status tarn__cuda_query_stream(const C_Device device, C_Stream stream) {
  cuda *d = tarn__cuda_device_of(device);
  tarn__cuda_scope scope;
  if (d == NULL) return C_ERROR;
  if (stream == NULL) return tarn__wordless(C_ERROR);
  C_Status status = tarn__cuda_enter(d, true, &scope);
  if (status != C_SUCCESS) return tarn__cuda_query_answer(status);
  tarn__cuda_mark mark = tarn__cuda_mark_of(d, stream);
  tarn__cu_result error =
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
  tarn__cu_result error = drain_context();
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
  C_Stream stream = (C_Stream)(void *)q->handle;
  C_Status status = tarn__cuda_enter(d, true, &scope);
  if (status != C_SUCCESS) {
    tarn__cuda_calls_forget(d, stream);
    tarn__cuda_queue_forget(q);
    return status;
  }
  (void)tarn__cuda_drain(q->handle);
  tarn__cuda_calls_forget(d, stream);
  tarn__cu_result error = tarn__cuda_queue_close(q);
  if (error != TARN__CU_SUCCESS)
    status = tarn__cuda_say(error, "cuStreamDestroy");
  tarn__cuda_leave(&scope);
  return status;
}

// An adopted stream is its owner's to end.
C_Status tarn__cuda_destroy_stream(const C_Device device, C_Stream stream) {
  const cuda *d = tarn__cuda_device_of(device);
  if (d == NULL) return C_ERROR;
  queue *q = tarn__cuda_queue_known(stream);
  if (q == NULL || q->device != d) {
    tarn__cuda_queue_drop(q);
    (void)tarn__text_fail(TARN_E_INVALID,
                          "%s:%d: not a stream that was created here",
                          tarn__cuda_vendor_of.type, d->id);
    return C_ERROR;
  }
  C_Status status = end_stream(d, q);
  tarn__cuda_queue_drop(q);
  return status;
}
