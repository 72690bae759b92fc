// Events: each is a record with a CUevent, or a CUevent that was adopted.
//
// A CUevent is recorded again and again, and a wait or query takes what it
// stands for at the time of the call: that is the driver's to see to. A record
// adds the mark of what was before it, for the outcome of rows.
//
// The handle of a record has its lowest bit set, which is clear in a CUevent:
// that is looked at as it is, and rows before it are told by their stream.
#include "base/hostmem.h"
#include "gpu.h"

typedef tarn__cuda_device cuda;
typedef tarn__cuda_mark mark;

typedef struct record {
  uint64_t number;  // of the event's records; 0: there was none
  C_Stream stream;
  mark mark;
} record;

typedef struct event {
  tarn_list node;  // of all
  const cuda *device;
  CUevent handle;

  pthread_mutex_t lock;  // held while the event is recorded or asked
  record newest;         // guarded by it
} event;

static struct {
  pthread_mutex_t lock;  // guards the list
  tarn_list list;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .list = {&all.list, &all.list}};

static bool is_own(C_Event handle) {
  return ((uintptr_t)handle & 1) != 0;
}

static event *event_of(C_Event handle) {
  return (event *)(void *)((char *)(void *)handle - 1);
}

static CUevent native(C_Event handle) {
  return is_own(handle) ? event_of(handle)->handle : (CUevent)(void *)handle;
}

static C_Status refuse(const cuda *d) {
  (void)tarn__text_fail(TARN_E_INVALID, "%s:%d: not an event of this device",
                        tarn__cuda_vendor_of.type, d->id);
  return C_ERROR;
}

// Whether |handle| can be used with |d|. An adopted event is the driver's to
// judge.
static bool is_of(const cuda *d, C_Event handle) {
  return handle != NULL && (!is_own(handle) || event_of(handle)->device == d);
}

// --- making and ending -----------------------------------------------------

static C_Status make(const cuda *d, CUevent *out) {
  tarn__cuda_scope scope;
  C_Status status = tarn__cuda_enter(d, true, &scope);
  if (status != C_SUCCESS) return status;
  tarn__cuda_result error =
      tarn__cuda_driver_get()->EventCreate(out, TARN__CU_EVENT_DISABLE_TIMING);
  if (error != TARN__CU_SUCCESS)
    status = tarn__cuda_say(error, "cuEventCreate");
  tarn__cuda_leave(&scope);
  return status;
}

static C_Status destroy(const event *e) {
  tarn__cuda_scope scope;
  C_Status status = tarn__cuda_enter(e->device, true, &scope);
  if (status != C_SUCCESS) return status;
  tarn__cuda_result error = tarn__cuda_driver_get()->EventDestroy(e->handle);
  if (error != TARN__CU_SUCCESS)
    status = tarn__cuda_say(error, "cuEventDestroy");
  tarn__cuda_leave(&scope);
  return status;
}

static void free_event(event *e) {
  tarn__cuda_mark_drop(e->newest.mark);
  pthread_mutex_destroy(&e->lock);
  tarn__host_free(e, sizeof *e);
}

C_Status tarn__cuda_create_event(const C_Device device, C_Event *out) {
  if (out == NULL) return tarn__wordless(C_ERROR);
  *out = NULL;
  const cuda *d = tarn__cuda_device_of(device);
  if (d == NULL) return C_ERROR;
  event *e = tarn__host_alloc(sizeof *e);
  if (e == NULL) return tarn__wordless(C_FAILED);
  C_Status status = make(d, &e->handle);
  if (status != C_SUCCESS) {
    tarn__host_free(e, sizeof *e);
    return status;
  }
  e->device = d;
  pthread_mutex_init(&e->lock, NULL);
  pthread_mutex_lock(&all.lock);
  tarn_list_add_tail(&all.list, &e->node);
  pthread_mutex_unlock(&all.lock);
  *out = (C_Event)(void *)((char *)(void *)e + 1);
  return C_SUCCESS;
}

// An adopted event is its owner's to end.
C_Status tarn__cuda_destroy_event(const C_Device device, C_Event handle) {
  const cuda *d = tarn__cuda_device_of(device);
  if (d == NULL) return C_ERROR;
  if (!is_own(handle) || event_of(handle)->device != d) return refuse(d);
  event *e = event_of(handle);
  pthread_mutex_lock(&all.lock);
  tarn_list_del(&e->node);
  pthread_mutex_unlock(&all.lock);
  C_Status status = destroy(e);
  free_event(e);
  return status;
}

void tarn__cuda_events_close(const cuda *d) {
  bool entered = tarn__cuda_is_entered(d);
  tarn_list *node = NULL;
  tarn_list *next = NULL;
  pthread_mutex_lock(&all.lock);
  tarn_list_for_each_safe (node, next, &all.list) {
    event *e = tarn_list_entry(node, event, node);
    if (e->device != d) continue;
    tarn_list_del(&e->node);
    if (entered) (void)tarn__cuda_driver_get()->EventDestroy(e->handle);
    free_event(e);
  }
  pthread_mutex_unlock(&all.lock);
}

// --- recording -------------------------------------------------------------

static tarn__cuda_result record_own(const tarn__cuda_work *w, event *e) {
  C_Stream stream = (C_Stream)(void *)w->stream;
  pthread_mutex_lock(&e->lock);
  mark old = tarn__cuda_mark_of(w->device, stream);
  tarn__cuda_result error =
      tarn__cuda_driver_get()->EventRecord(e->handle, w->stream);
  if (error == TARN__CU_SUCCESS) {
    record made = {e->newest.number + 1, stream, old};
    old = e->newest.mark;
    e->newest = made;
  }
  pthread_mutex_unlock(&e->lock);
  tarn__cuda_mark_drop(old);
  return error;
}

C_Status tarn__cuda_record_event(const C_Device device, C_Stream stream,
                                 C_Event handle) {
  cuda *d = tarn__cuda_device_of(device);
  tarn__cuda_work w;
  if (d == NULL) return C_ERROR;
  if (stream == NULL) return tarn__wordless(C_ERROR);
  if (!is_of(d, handle)) return refuse(d);
  C_Status status = tarn__cuda_begin(d, stream, &w);
  if (status != C_SUCCESS) return status;
  tarn__cuda_result error =
      is_own(handle)
          ? record_own(&w, event_of(handle))
          : tarn__cuda_driver_get()->EventRecord(native(handle), w.stream);
  return tarn__cuda_end(&w, "cuEventRecord", error);
}

// The driver takes events of any device here. On a stream that captures no
// other call may come with it.
C_Status tarn__cuda_stream_wait_event(const C_Device device, C_Stream stream,
                                      C_Event handle) {
  cuda *d = tarn__cuda_device_of(device);
  tarn__cuda_work w;
  if (d == NULL) return C_ERROR;
  if (stream == NULL || handle == NULL) return tarn__wordless(C_ERROR);
  C_Status status = tarn__cuda_begin(d, stream, &w);
  if (status != C_SUCCESS) return status;
  tarn__cuda_result error =
      tarn__cuda_driver_get()->StreamWaitEvent(w.stream, native(handle), 0);
  return tarn__cuda_end(&w, "cuStreamWaitEvent", error);
}

// --- asking and waiting ----------------------------------------------------

// The mark goes with the driver's answer: no record comes between.
static tarn__cuda_result ask(C_Event handle, mark *out) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  if (!is_own(handle)) return cu->EventQuery(native(handle));
  event *e = event_of(handle);
  pthread_mutex_lock(&e->lock);
  tarn__cuda_result error = cu->EventQuery(e->handle);
  if (error == TARN__CU_SUCCESS) *out = tarn__cuda_mark_again(e->newest.mark);
  pthread_mutex_unlock(&e->lock);
  return error;
}

C_Status tarn__cuda_query_event(const C_Device device, C_Event handle) {
  const cuda *d = tarn__cuda_device_of(device);
  tarn__cuda_scope scope;
  mark m = {NULL, 0, false};
  if (d == NULL) return C_ERROR;
  if (!is_of(d, handle)) return refuse(d);
  C_Status status = tarn__cuda_enter(d, true, &scope);
  if (status != C_SUCCESS) return tarn__cuda_query_answer(status);
  tarn__cuda_result error = ask(handle, &m);
  if (error == TARN__CU_SUCCESS) {
    status = tarn__cuda_mark_settle(m, false);
  } else if (error == TARN__CU_ERROR_NOT_READY) {
    status = C_WARNING;
  } else {
    status = tarn__cuda_query_answer(tarn__cuda_say(error, "cuEventQuery"));
  }
  tarn__cuda_leave(&scope);
  return status;
}

// Its mark is the caller's to drop.
static record newest(event *e) {
  pthread_mutex_lock(&e->lock);
  record r = e->newest;
  r.mark = tarn__cuda_mark_again(r.mark);
  pthread_mutex_unlock(&e->lock);
  return r;
}

static tarn__cuda_result await(CUevent handle) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  tarn__cuda_result error = cu->EventSynchronize(handle);
  if (error != TARN__CU_SUCCESS) (void)cu->EventSynchronize(handle);
  return error;
}

// Where the event was recorded anew since |out|, the wait may have been for
// that record, on another stream: what was there before is then not known to be
// over.
static tarn__cuda_result await_own(event *e, record *out) {
  tarn__cuda_result error = await(e->handle);
  record now = newest(e);
  tarn__cuda_mark_drop(now.mark);
  if (now.number != out->number) out->mark.is_behind_all = false;
  return error;
}

// The outcome, and the driver's answer; where the context is gone, that.
static C_Status synchronize(const cuda *d, C_Event handle, record *out,
                            tarn__cuda_result *out_error) {
  tarn__cuda_scope scope;
  *out = (record){.number = 0};
  if (is_own(handle)) *out = newest(event_of(handle));
  *out_error = TARN__CU_ERROR_CONTEXT_IS_DESTROYED;
  C_Status status = tarn__cuda_enter(d, true, &scope);
  if (status != C_SUCCESS) {
    tarn__cuda_mark_drop(out->mark);
    return status;
  }
  *out_error =
      is_own(handle) ? await_own(event_of(handle), out) : await(native(handle));
  if (*out_error == TARN__CU_SUCCESS) {
    status = tarn__cuda_mark_settle(out->mark, false);
  } else {
    tarn__cuda_mark_drop(out->mark);
    status = tarn__cuda_say(*out_error, "cuEventSynchronize");
  }
  tarn__cuda_leave(&scope);
  return status;
}

C_Status tarn__cuda_synchronize_event(const C_Device device, C_Event handle) {
  const cuda *d = tarn__cuda_device_of(device);
  tarn__cuda_result error = TARN__CU_SUCCESS;
  record r;
  if (d == NULL) return C_ERROR;
  if (!is_of(d, handle)) return refuse(d);
  C_Status status = synchronize(d, handle, &r, &error);
  return tarn__cuda_has_failed(error) && r.stream != NULL
             ? tarn__cuda_calls_fail(d, r.stream, status)
             : status;
}
