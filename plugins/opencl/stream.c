// Streams as the ABI's table has them, and callbacks.
//
// A program may queue commands on the native queue itself, which the plug-in
// does not see. So a wait covers the whole queue, and a query, when the plug-in
// knows of nothing that is under way, puts a marker behind it and looks for the
// marker for a moment.
//
// A callback is that of a marker's event. The marker is held back by a gate
// until the callback is set: a driver may call at once, within the call that
// sets it, where the event has happened already. Where the queue has failed, a
// driver need not call at all; then a thread that waits for the stream calls.
#include <sched.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "devices.h"

typedef tarn__opencl_device opencl;
typedef tarn__opencl_queue queue;

// A callback that has not returned.
typedef struct call {
  tarn_list node;  // of the queue's calls, then of those that are forgotten
  queue *queue;    // held
  C_Callback function;
  void *user_data;
  cl_event marker;
  uint64_t number;   // of the queue's callbacks
  uint64_t fetched;  // rows whose outcome is known behind the marker
  bool is_claimed;   // it is being called
} call;

// How long a query looks for its marker. On a queue that only Tarn has used,
// the marker is all there is: a driver's thread has to wake up for it. Once one
// has not come in that time, the program has work of its own there, and a query
// must not wait for that.
static const uint64_t ALONE_NS = 500000000;
static const uint64_t SHARED_NS = 100000;

// Callbacks that drivers have not called, and may yet: kept until no driver has
// the context.
static struct {
  pthread_mutex_t lock;  // guards the list
  tarn_list list;
} forgotten = {.lock = PTHREAD_MUTEX_INITIALIZER,
               .list = {&forgotten.list, &forgotten.list}};

// --- callbacks -------------------------------------------------------------

static call *call_of(tarn_list *node) {
  return tarn_list_entry(node, call, node);
}

// The outcome that |c| is told, whose marker has |status|. Of a failure the
// stream's reason is known from now on: who is told asks for it. Caller holds
// the queue's lock.
static C_Status outcome_of(const call *c, cl_int status) {
  if (status < CL_COMPLETE) {
    (void)tarn__opencl_settle(c->queue);
    return C_INTERNAL_ERROR;
  }
  (void)tarn__opencl_rows_outcome(c->queue, c->fetched);
  return atomic_load_explicit(&c->queue->failure, memory_order_relaxed);
}

// Calls |c|, which is claimed, and takes it off its queue.
static void run(call *c, C_Status outcome) {
  queue *q = c->queue;
  struct C_Device_st device = {q->device->id};
  c->function(&device, (C_Stream)(void *)q->handle, c->user_data, &outcome);
  pthread_mutex_lock(&q->lock);
  tarn_list_del(&c->node);
  pthread_cond_broadcast(&q->called);
  pthread_mutex_unlock(&q->lock);
}

static void free_call(call *c) {
  (void)tarn__opencl_driver_get()->ReleaseEvent(c->marker);
  tarn__opencl_queue_drop(c->queue);
  tarn__host_free(c, sizeof *c);
}

// Called by the driver.
static void CL_CALLBACK arrive(cl_event event, cl_int status, void *context) {
  (void)event;
  call *c = context;
  pthread_mutex_lock(&c->queue->lock);
  bool is_first = !c->is_claimed;
  c->is_claimed = true;
  C_Status outcome = outcome_of(c, status);
  pthread_mutex_unlock(&c->queue->lock);
  if (!is_first) return;  // it is forgotten
  run(c, outcome);
  free_call(c);
}

// Claims the first callback whose marker has failed; NULL: there is none.
static call *claim_failed(queue *q) {
  call *found = NULL;
  tarn_list *node = NULL;
  pthread_mutex_lock(&q->lock);
  tarn_list_for_each (node, &q->calls) {
    call *c = call_of(node);
    if (c->is_claimed || tarn__opencl_status_of(c->marker) >= CL_COMPLETE)
      continue;
    c->is_claimed = true;
    found = c;
    break;
  }
  pthread_mutex_unlock(&q->lock);
  return found;
}

static void call_failed(queue *q) {
  call *c = NULL;
  while ((c = claim_failed(q)) != NULL) {
    run(c, C_INTERNAL_ERROR);
    pthread_mutex_lock(&forgotten.lock);
    tarn_list_add_tail(&forgotten.list, &c->node);
    pthread_mutex_unlock(&forgotten.lock);
  }
}

// Returns when the callbacks up to |number| have returned.
static void await_calls(queue *q, uint64_t number) {
  call_failed(q);
  pthread_mutex_lock(&q->lock);
  while (!tarn_list_empty(&q->calls) &&
         call_of(q->calls.next)->number <= number)
    pthread_cond_wait(&q->called, &q->lock);
  pthread_mutex_unlock(&q->lock);
}

void tarn__opencl_forget_calls(const opencl *d) {
  tarn_list *node = NULL;
  tarn_list *next = NULL;
  pthread_mutex_lock(&forgotten.lock);
  tarn_list_for_each_safe (node, next, &forgotten.list) {
    call *c = call_of(node);
    if (c->queue->device != d) continue;
    tarn_list_del(&c->node);
    free_call(c);
  }
  pthread_mutex_unlock(&forgotten.lock);
}

// --- adding one ------------------------------------------------------------

// Queues the marker of |c| behind |gate|, and enters the callback.
static C_Status queue_call(tarn__opencl_work *w, call *c, cl_event gate) {
  const tarn__opencl_driver *cl = tarn__opencl_driver_get();
  cl_int error = tarn__opencl_fetch(w);
  if (error == CL_SUCCESS) {
    error = cl->EnqueueMarkerWithWaitList(w->queue, 1, &gate, &c->marker);
  }
  if (error != CL_SUCCESS) return tarn__opencl_say(error, "clEnqueueMarker");
  c->fetched = w->record->fetched;
  error = cl->SetEventCallback(c->marker, CL_COMPLETE, arrive, c);
  if (error == CL_SUCCESS) {
    c->number = ++w->record->calls_added;
    tarn_list_add_tail(&w->record->calls, &c->node);
    return C_SUCCESS;
  }
  tarn__opencl_keep(w->record, "callback", c->marker);
  return tarn__opencl_say(error, "clSetEventCallback");
}

// Lets the queue go on. One that does not would stand still for good: where the
// driver refuses, it is asked once more.
static void open_gate(cl_event gate) {
  const tarn__opencl_driver *cl = tarn__opencl_driver_get();
  if (cl->SetUserEventStatus(gate, CL_COMPLETE) != CL_SUCCESS)
    (void)cl->SetUserEventStatus(gate, CL_COMPLETE);
  (void)cl->ReleaseEvent(gate);
}

static C_Status add_call(opencl *d, C_Stream stream, call *c) {
  const tarn__opencl_driver *cl = tarn__opencl_driver_get();
  tarn__opencl_work w;
  cl_int error = CL_SUCCESS;
  cl_event gate = cl->CreateUserEvent(d->context, &error);
  if (gate == NULL) return tarn__opencl_say(error, "clCreateUserEvent");
  C_Status status = tarn__opencl_begin(d, stream, &w);
  if (status == C_SUCCESS) {
    c->queue = w.record;
    tarn__opencl_queue_hold(w.record);
    status = queue_call(&w, c, gate);
    cl_event last = NULL;
    if (status == C_SUCCESS && cl->RetainEvent(c->marker) == CL_SUCCESS) {
      last = c->marker;
    }
    (void)tarn__opencl_end(&w, "callback", CL_SUCCESS, last);
  }
  open_gate(gate);
  return status;
}

C_Status tarn__opencl_stream_add_callback(const C_Device device,
                                          C_Stream stream, C_Callback callback,
                                          void *user_data) {
  opencl *d = tarn__opencl_device_of(device);
  if (d == NULL) return C_ERROR;
  if (stream == NULL || callback == NULL) return tarn__wordless(C_ERROR);
  call *c = tarn__host_alloc(sizeof *c);
  if (c == NULL) return tarn__wordless(C_FAILED);
  c->function = callback;
  c->user_data = user_data;
  C_Status status = add_call(d, stream, c);
  if (status != C_SUCCESS) {
    tarn__opencl_queue_drop(c->queue);
    tarn__host_free(c, sizeof *c);
  }
  return status;
}

// --- waiting ---------------------------------------------------------------

static C_Status failure_of(queue *q) {
  C_Status failure = atomic_load_explicit(&q->failure, memory_order_acquire);
  if (failure != C_SUCCESS) tarn__text_set(q->why);
  return failure;
}

// The outcome of a wait on |q|: what has failed there says more than the wait.
// One that has failed alone fails the stream as well.
static C_Status outcome_of_wait(queue *q, cl_int fetched, cl_int finished) {
  C_Status status = failure_of(q);
  if (status != C_SUCCESS) return status;
  if (fetched == CL_SUCCESS && finished == CL_SUCCESS) return C_SUCCESS;
  status = fetched != CL_SUCCESS ? tarn__opencl_say(fetched, "rows")
                                 : tarn__opencl_say(finished, "clFinish");
  pthread_mutex_lock(&q->lock);
  tarn__opencl_fail(q, status, tarn__text_line());
  pthread_mutex_unlock(&q->lock);
  return failure_of(q);
}

// Waits for what the plug-in has queued, which takes a driver less time than to
// finish a queue, then for what the program may have. Takes the hold of |q|.
static C_Status finish(queue *q) {
  const tarn__opencl_driver *cl = tarn__opencl_driver_get();
  tarn__opencl_queue_hold(q);
  tarn__opencl_work w = tarn__opencl_begin_on(q);
  uint64_t calls = q->calls_added;
  cl_int fetched = tarn__opencl_fetch(&w);
  cl_event last = tarn__opencl_newest(q);
  (void)tarn__opencl_end(&w, "rows", CL_SUCCESS, NULL);
  if (last != NULL) {
    (void)cl->WaitForEvents(1, &last);
    (void)cl->ReleaseEvent(last);
  }
  cl_int finished = tarn__opencl_drain(q->handle);
  pthread_mutex_lock(&q->lock);
  (void)tarn__opencl_settle(q);
  pthread_mutex_unlock(&q->lock);
  await_calls(q, calls);
  C_Status status = outcome_of_wait(q, fetched, finished);
  pthread_mutex_lock(&q->lock);
  tarn__opencl_queue_leave(q);
  return status;
}

C_Status tarn__opencl_synchronize_stream(const C_Device device,
                                         C_Stream stream) {
  opencl *d = tarn__opencl_device_of(device);
  if (d == NULL) return C_ERROR;
  if (stream == NULL) return tarn__wordless(C_ERROR);
  queue *q = tarn__opencl_queue_of(d, stream);
  return q != NULL ? finish(q) : C_ERROR;
}

// One stream after the other, in the order of their handles.
C_Status tarn__opencl_synchronize_device(const C_Device device) {
  const opencl *d = tarn__opencl_listed(device);
  if (d == NULL) return C_ERROR;
  C_Status status = C_SUCCESS;
  queue *q = tarn__opencl_queue_behind(d, 0);
  while (q != NULL) {
    uint64_t handle = q->node.start;
    C_Status outcome = finish(q);
    if (status == C_SUCCESS) status = outcome;
    q = tarn__opencl_queue_behind(d, handle);
  }
  return status;
}

// Puts a marker behind all that is queued, and waits a moment for it. Caller
// holds the lock.
static C_Status probe(tarn__opencl_work *w) {
  const tarn__opencl_driver *cl = tarn__opencl_driver_get();
  cl_event marker = NULL;
  cl_int error = tarn__opencl_fetch(w);
  if (error == CL_SUCCESS)
    error = cl->EnqueueMarkerWithWaitList(w->queue, 0, NULL, &marker);
  if (error != CL_SUCCESS) return tarn__opencl_say(error, "clEnqueueMarker");
  (void)cl->Flush(w->queue);
  tarn__opencl_keep(w->record, "query_stream", marker);
  bool is_shared = w->record->is_shared;
  uint64_t deadline = tarn__os_now_ns() + (is_shared ? SHARED_NS : ALONE_NS);
  C_Status status = C_WARNING;
  while ((status = tarn__opencl_settle(w->record)) == C_WARNING &&
         tarn__os_now_ns() < deadline)
    sched_yield();
  if (status == C_WARNING) w->record->is_shared = true;
  return status;
}

C_Status tarn__opencl_query_stream(const C_Device device, C_Stream stream) {
  opencl *d = tarn__opencl_device_of(device);
  tarn__opencl_work w;
  if (d == NULL) return C_ERROR;
  if (stream == NULL) return tarn__wordless(C_ERROR);
  C_Status status = tarn__opencl_begin(d, stream, &w);
  if (status != C_SUCCESS) return tarn__opencl_query_answer(status);
  queue *q = w.record;
  tarn__opencl_queue_hold(q);
  status = tarn__opencl_settle(q);
  if (status == C_SUCCESS && !tarn_list_empty(&q->calls)) status = C_WARNING;
  if (status == C_SUCCESS) status = probe(&w);
  tarn__opencl_queue_leave(q);
  if (status != C_SUCCESS && status != C_WARNING) {
    call_failed(q);
    (void)failure_of(q);
  }
  tarn__opencl_queue_drop(q);
  return tarn__opencl_query_answer(status);
}

// --- making and ending -----------------------------------------------------

C_Status tarn__opencl_create_stream(const C_Device device, C_Stream *stream) {
  if (stream == NULL) return tarn__wordless(C_ERROR);
  *stream = NULL;
  opencl *d = tarn__opencl_device_of(device);
  return d != NULL ? tarn__opencl_queue_open(d, stream) : C_ERROR;
}

// An adopted queue is its owner's to end.
C_Status tarn__opencl_destroy_stream(const C_Device device, C_Stream stream) {
  const opencl *d = tarn__opencl_device_of(device);
  if (d == NULL) return C_ERROR;
  queue *q = tarn__opencl_queue_known(stream);
  bool is_ours = q != NULL && q->device == d && !q->is_adopted;
  if (!is_ours) {
    tarn__opencl_queue_drop(q);
    (void)tarn__text_fail(
        TARN_E_INVALID, "opencl:%d: not a stream that was created here", d->id);
    return C_ERROR;
  }
  tarn__opencl_queue_hold(q);
  (void)finish(q);
  tarn__opencl_queue_close(q);
  tarn__opencl_queue_drop(q);
  return C_SUCCESS;
}
