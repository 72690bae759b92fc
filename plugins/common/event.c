// Events: each is a mark in a stream's queue.
//
//   stream   ... op 7 | op 8 | op 9 ...
//                     ^
//   event    {stream, ticket 7}: happened when 7 operations are done, and
//            failed if one of them has
//
// Recording queues nothing: it notes the ticket. A waiting thread or operation
// takes a copy of the mark. So a later record, on this stream or another,
// changes nothing for it, nor does destroying the event. A mark that is kept
// holds its stream's struct, though the stream may be destroyed; then it is
// done.
#include "base/hostmem.h"
#include "queue.h"

struct C_Event_st {
  tarn__common_queue_entry entry;
  pthread_mutex_t lock;          // guards mark
  tarn__common_queue_mark mark;  // of the most recent record
};

static bool is_event(const struct C_Device_st *device,
                     const struct C_Event_st *event) {
  return event != NULL && tarn__queue_is_at(&event->entry, device) &&
         !tarn__queue_is_stale(&event->entry);
}

C_Status tarn__queue_create_event(const tarn__common_queue_home *home,
                                  C_Event *event) {
  if (event == NULL) return tarn__wordless(C_ERROR);
  *event = NULL;
  if (home == NULL) return tarn__wordless(C_ERROR);
  C_Event made = tarn__host_alloc(sizeof *made);
  if (made == NULL) return tarn__wordless(C_FAILED);
  pthread_mutex_init(&made->lock, NULL);
  tarn__queue_enlist(TARN__QUEUE_EVENT, home, &made->entry);
  *event = made;
  return C_SUCCESS;
}

static void free_event(C_Event event) {
  tarn__queue_delist(&event->entry);
  tarn__queue_stream_drop(event->mark.stream);
  if (!tarn__queue_is_stale(&event->entry)) pthread_mutex_destroy(&event->lock);
  tarn__host_free(event, sizeof *event);
}

// Also right for an event of a parent process.
C_Status tarn__queue_destroy_event(const C_Device device, C_Event event) {
  if (event == NULL || !tarn__queue_is_at(&event->entry, device)) {
    return tarn__wordless(C_ERROR);
  }
  free_event(event);
  return C_SUCCESS;
}

C_Status tarn__queue_record_event(const C_Device device, C_Stream stream,
                                  C_Event event) {
  if (!tarn__queue_is_stream(device, stream) || !is_event(device, event)) {
    return tarn__wordless(C_ERROR);
  }
  tarn__common_queue_mark mark = tarn__queue_mark_now(stream);
  tarn__queue_stream_hold(stream);
  pthread_mutex_lock(&event->lock);
  C_Stream before = event->mark.stream;
  event->mark = mark;
  pthread_mutex_unlock(&event->lock);
  tarn__queue_stream_drop(before);
  return C_SUCCESS;
}

// The mark of the most recent record, its stream held.
static tarn__common_queue_mark copy_mark(C_Event event) {
  pthread_mutex_lock(&event->lock);
  tarn__common_queue_mark mark = event->mark;
  if (mark.stream != NULL) tarn__queue_stream_hold(mark.stream);
  pthread_mutex_unlock(&event->lock);
  return mark;
}

static C_Status outcome(tarn__common_queue_mark mark) {
  C_Status status = tarn__queue_mark_outcome(mark);
  return status == C_SUCCESS ? status : tarn__wordless(status);
}

// C_SUCCESS if the event has happened or was never recorded, C_WARNING if it
// has not happened yet; the stream's failure if that came before it.
C_Status tarn__queue_query_event(const C_Device device, C_Event event) {
  if (!is_event(device, event)) return tarn__wordless(C_ERROR);
  tarn__common_queue_mark mark = copy_mark(event);
  bool reached = tarn__queue_mark_reached(mark);
  C_Status status = reached ? outcome(mark) : C_WARNING;
  tarn__queue_stream_drop(mark.stream);
  return status;
}

C_Status tarn__queue_synchronize_event(const C_Device device, C_Event event) {
  if (!is_event(device, event)) return tarn__wordless(C_ERROR);
  tarn__common_queue_mark mark = copy_mark(event);
  tarn__queue_mark_help(mark);
  C_Status status = outcome(mark);
  tarn__queue_stream_drop(mark.stream);
  return status;
}

static void run_wait(const tarn__common_queue_op *op) {
  tarn__queue_mark_await(op->mark);
}

// Nothing is queued for a mark that is reached, or that stands in the same
// stream and so is reached before anything queued from now on.
C_Status tarn__queue_stream_wait_event(const C_Device device, C_Stream stream,
                                       C_Event event) {
  if (!tarn__queue_is_stream(device, stream) || event == NULL ||
      tarn__queue_is_stale(&event->entry)) {
    return tarn__wordless(C_ERROR);
  }
  C_Status status = C_SUCCESS;
  tarn__common_queue_op op = {.run = run_wait, .mark = copy_mark(event)};
  if (op.mark.stream != stream && !tarn__queue_mark_reached(op.mark)) {
    status = tarn__queue_submit(stream, &op);
    if (status == C_SUCCESS) return status;  // the queue drops the mark
  }
  tarn__queue_stream_drop(op.mark.stream);
  return status;
}

void tarn__queue_destroy_events(const tarn__common_queue_home *home) {
  tarn__common_queue_entry *entry = NULL;
  while ((entry = tarn__queue_any(TARN__QUEUE_EVENT, home)) != NULL) {
    free_event(tarn_list_entry(entry, struct C_Event_st, entry));
  }
}
