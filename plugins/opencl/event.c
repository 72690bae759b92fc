// Events: each is the cl_event of a marker behind the work of a queue.
//
// A cl_event happens once, so that the plug-in's event is a record that has
// another one after each time it is recorded. A waiting thread or queue takes
// the cl_event of its time: a later record changes nothing for it.
//
// The handle of a record has its lowest bit set, which is clear in a cl_event
// that was adopted: that is looked at as it is.
#include "base/hostmem.h"
#include "opencl.h"

typedef tarn__opencl_device opencl;
typedef tarn__opencl_queue queue;

typedef struct event {
  tarn_list node;  // of all
  const opencl *device;
  pthread_mutex_t lock;  // guards all below
  cl_event marker;       // of the newest record; NULL: it was never recorded
  queue *queue;          // on which; held
  uint64_t fetched;      // rows whose outcome is known behind the marker
} event;

static struct {
  pthread_mutex_t lock;  // guards the list
  tarn_list list;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .list = {&all.list, &all.list}};

// What an event stood for when it was looked at.
typedef struct mark {
  cl_event marker;  // held; NULL: nothing to wait for
  queue *queue;     // held; NULL: an adopted event
  uint64_t fetched;
} mark;

static bool is_own(C_Event handle) {
  return ((uintptr_t)handle & 1) != 0;
}

static event *event_of(C_Event handle) {
  return (event *)(void *)((char *)(void *)handle - 1);
}

static C_Status refuse(const opencl *d) {
  (void)tarn__text_fail(TARN_E_INVALID,
                        "opencl:%d: not an event of this device", d->id);
  return C_ERROR;
}

// --- making and ending -----------------------------------------------------

C_Status tarn__opencl_create_event(const C_Device device, C_Event *out) {
  if (out == NULL) return tarn__wordless(C_ERROR);
  *out = NULL;
  const opencl *d = tarn__opencl_device_of(device);
  if (d == NULL) return C_ERROR;
  event *e = tarn__host_alloc(sizeof *e);
  if (e == NULL) return tarn__wordless(C_FAILED);
  e->device = d;
  pthread_mutex_init(&e->lock, NULL);
  pthread_mutex_lock(&all.lock);
  tarn_list_add_tail(&all.list, &e->node);
  pthread_mutex_unlock(&all.lock);
  *out = (C_Event)(void *)((char *)(void *)e + 1);
  return C_SUCCESS;
}

static void release(mark m) {
  if (m.marker != NULL) (void)tarn__opencl_driver_get()->ReleaseEvent(m.marker);
  tarn__opencl_queue_drop(m.queue);
}

static void free_event(event *e) {
  release((mark){e->marker, e->queue, 0});
  pthread_mutex_destroy(&e->lock);
  tarn__host_free(e, sizeof *e);
}

// An adopted event is its owner's to end.
C_Status tarn__opencl_destroy_event(const C_Device device, C_Event handle) {
  const opencl *d = tarn__opencl_device_of(device);
  if (d == NULL) return C_ERROR;
  if (!is_own(handle) || event_of(handle)->device != d) return refuse(d);
  event *e = event_of(handle);
  pthread_mutex_lock(&all.lock);
  tarn_list_del(&e->node);
  pthread_mutex_unlock(&all.lock);
  free_event(e);
  return C_SUCCESS;
}

void tarn__opencl_events_close(const opencl *d) {
  tarn_list *node = NULL;
  tarn_list *next = NULL;
  pthread_mutex_lock(&all.lock);
  tarn_list_for_each_safe (node, next, &all.list) {
    event *e = tarn_list_entry(node, event, node);
    if (e->device != d) continue;
    tarn_list_del(&e->node);
    free_event(e);
  }
  pthread_mutex_unlock(&all.lock);
}

// --- recording -------------------------------------------------------------

// Queues a marker, and makes it that of |m|.
static C_Status place(opencl *d, C_Stream stream, mark *m) {
  const tarn__opencl_driver *cl = tarn__opencl_driver_get();
  tarn__opencl_work w;
  C_Status status = tarn__opencl_begin(d, stream, &w);
  if (status != C_SUCCESS) return status;
  cl_event last = NULL;
  cl_int error = tarn__opencl_fetch(&w);
  if (error == CL_SUCCESS)
    error = cl->EnqueueMarkerWithWaitList(w.queue, 0, NULL, &m->marker);
  if (error == CL_SUCCESS) {
    m->queue = w.record;
    m->fetched = w.record->fetched;
    tarn__opencl_queue_hold(w.record);
    if (cl->RetainEvent(m->marker) == CL_SUCCESS) last = m->marker;
  }
  return tarn__opencl_end(&w, "record_event", error, last);
}

C_Status tarn__opencl_record_event(const C_Device device, C_Stream stream,
                                   C_Event handle) {
  opencl *d = tarn__opencl_device_of(device);
  mark m = {NULL, NULL, 0};
  if (d == NULL) return C_ERROR;
  if (!is_own(handle)) {
    (void)tarn__text_fail(TARN_E_INVALID,
                          "opencl:%d: a cl_event cannot be recorded", d->id);
    return C_ERROR;
  }
  event *e = event_of(handle);
  if (stream == NULL || e->device != d) return refuse(d);
  C_Status status = place(d, stream, &m);
  if (status != C_SUCCESS) return status;
  pthread_mutex_lock(&e->lock);
  mark before = {e->marker, e->queue, e->fetched};
  e->marker = m.marker;
  e->queue = m.queue;
  e->fetched = m.fetched;
  pthread_mutex_unlock(&e->lock);
  release(before);
  return C_SUCCESS;
}

// --- looking ---------------------------------------------------------------

// What |handle| stands for now. |d| NULL: of any device.
static C_Status look(const opencl *d, C_Event handle, mark *out) {
  *out = (mark){NULL, NULL, 0};
  if (handle == NULL) return tarn__wordless(C_ERROR);
  if (!is_own(handle)) {
    out->marker = (cl_event)(void *)handle;
    cl_int error = tarn__opencl_driver_get()->RetainEvent(out->marker);
    return error == CL_SUCCESS ? C_SUCCESS
                               : tarn__opencl_say(error, "clRetainEvent");
  }
  event *e = event_of(handle);
  if (d != NULL && e->device != d) return refuse(d);
  pthread_mutex_lock(&e->lock);
  *out = (mark){e->marker, e->queue, e->fetched};
  cl_int error = out->marker != NULL
                     ? tarn__opencl_driver_get()->RetainEvent(out->marker)
                     : CL_SUCCESS;
  if (out->marker != NULL && error == CL_SUCCESS)
    tarn__opencl_queue_hold(out->queue);
  pthread_mutex_unlock(&e->lock);
  return error == CL_SUCCESS ? C_SUCCESS
                             : tarn__opencl_say(error, "clRetainEvent");
}

// C_WARNING: it has not happened yet; else the outcome of what is before it.
static C_Status outcome_of(mark m) {
  if (m.marker == NULL) return C_SUCCESS;
  cl_int status = tarn__opencl_status_of(m.marker);
  if (status > CL_COMPLETE) return C_WARNING;
  C_Status outcome = C_SUCCESS;
  if (status < CL_COMPLETE)
    outcome = tarn__opencl_say_failed(status, "what is before an event");
  if (m.queue == NULL) return outcome;
  pthread_mutex_lock(&m.queue->lock);
  if (outcome != C_SUCCESS) {
    tarn__opencl_fail(m.queue, outcome, tarn__text_line());
  } else {
    outcome = tarn__opencl_rows_outcome(m.queue, m.fetched);
  }
  if (outcome != C_SUCCESS) tarn__text_set(m.queue->why);
  pthread_mutex_unlock(&m.queue->lock);
  return outcome;
}

C_Status tarn__opencl_query_event(const C_Device device, C_Event handle) {
  const opencl *d = tarn__opencl_device_of(device);
  mark m;
  if (d == NULL) return C_ERROR;
  C_Status status = look(d, handle, &m);
  if (status != C_SUCCESS) return tarn__opencl_query_answer(status);
  status = outcome_of(m);
  release(m);
  return status;
}

// A wait fails for the event's failure too, which is no failure of the wait.
static C_Status await(mark m) {
  if (m.marker == NULL) return C_SUCCESS;
  cl_int error = tarn__opencl_driver_get()->WaitForEvents(1, &m.marker);
  if (error == CL_SUCCESS || tarn__opencl_status_of(m.marker) <= CL_COMPLETE) {
    return C_SUCCESS;
  }
  return tarn__opencl_say(error, "clWaitForEvents");
}

C_Status tarn__opencl_synchronize_event(const C_Device device, C_Event handle) {
  const opencl *d = tarn__opencl_device_of(device);
  mark m;
  if (d == NULL) return C_ERROR;
  C_Status status = look(d, handle, &m);
  if (status != C_SUCCESS) return status;
  status = await(m);
  if (status == C_SUCCESS) status = outcome_of(m);
  release(m);
  return status;
}

// Whether queues of |d| can wait for the event: it is of the same context.
static bool is_near(const opencl *d, mark m) {
  cl_context context = NULL;
  return tarn__opencl_driver_get()->GetEventInfo(m.marker, CL_EVENT_CONTEXT,
                                                 sizeof(cl_context), &context,
                                                 NULL) == CL_SUCCESS &&
         context == d->context;
}

static C_Status queue_wait(opencl *d, C_Stream stream, mark m) {
  tarn__opencl_work w;
  cl_event barrier = NULL;
  C_Status status = tarn__opencl_begin(d, stream, &w);
  if (status != C_SUCCESS) return status;
  cl_int error = tarn__opencl_driver_get()->EnqueueBarrierWithWaitList(
      w.queue, 1, &m.marker, &barrier);
  return tarn__opencl_end(&w, "stream_wait_event", error, barrier);
}

// What is over is not waited for, be it a failure: that is its own stream's.
// Events of another driver are waited for by the caller.
C_Status tarn__opencl_stream_wait_event(const C_Device device, C_Stream stream,
                                        C_Event handle) {
  opencl *d = tarn__opencl_device_of(device);
  mark m;
  if (d == NULL) return C_ERROR;
  if (stream == NULL) return tarn__wordless(C_ERROR);
  C_Status status = look(NULL, handle, &m);
  if (status != C_SUCCESS) return status;
  if (m.marker != NULL && tarn__opencl_status_of(m.marker) > CL_COMPLETE) {
    if (is_near(d, m)) {
      status = queue_wait(d, stream, m);
    } else {
      status = await(m);
    }
  }
  release(m);
  return status;
}
