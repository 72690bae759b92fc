// Captures: what streams are told, in the order in which they are told it, from
// cuStreamBeginCapture to cuStreamEndCapture.
//
//   members   [ the stream that began | others, by waits for events of it ]
//   nodes     [ task | task | ... ]   each of one member
//   known     for each member, how many nodes of each member lie before what
//             it is told next
//
// As documented: the modes of captures and threads; an event of a capture is
// not waited for by the host; the legacy stream does nothing while a blocking
// stream is captured; a capture ends on the stream and, unless it is relaxed,
// in the thread where it began, with all streams joined. Which calls are
// potentially unsafe is documented for a few only. That all calls which
// allocate, free, map, load or wait are is this file's reading.
#include "captures.h"

#include <stdlib.h>
#include <string.h>

#include "report.h"

typedef struct node {
  standin_task task;
  size_t member;
} node;

struct standin_capture {
  standin_capture *next;  // of those that go on
  unsigned mode;
  pthread_t thread;
  bool is_bad;
  bool is_over;
  unsigned uses;  // members, events
  CUstream members[STANDIN_MEMBERS_MAX];
  size_t member_count;
  standin_past known[STANDIN_MEMBERS_MAX];
  size_t told[STANDIN_MEMBERS_MAX];  // nodes of each member
  node *nodes;
  size_t count;
  size_t room;
};

// Guarded by the lock of objects.
static standin_capture *ongoing;

static _Thread_local unsigned thread_mode = TARN__CU_STREAM_CAPTURE_MODE_GLOBAL;

// --- who uses a capture ----------------------------------------------------

static void end_nodes(standin_capture *capture) {
  for (size_t i = 0; i < capture->count; i++)
    standin_task_end(&capture->nodes[i].task);
  free(capture->nodes);
  capture->nodes = NULL;
  capture->count = 0;
}

static void unuse(standin_capture *capture) {
  if (--capture->uses > 0) return;
  end_nodes(capture);
  free(capture);
}

void standin_capture_forget(CUevent event) {
  if (event->capture == NULL) return;
  unuse(event->capture);
  event->capture = NULL;
}

// --- what is forbidden -----------------------------------------------------

static bool forbids(const standin_capture *capture) {
  if (thread_mode == TARN__CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  if (pthread_equal(capture->thread, pthread_self())) {
    return capture->mode != TARN__CU_STREAM_CAPTURE_MODE_RELAXED;
  }
  return thread_mode == TARN__CU_STREAM_CAPTURE_MODE_GLOBAL &&
         capture->mode == TARN__CU_STREAM_CAPTURE_MODE_GLOBAL;
}

tarn__cuda_result standin_capture_check(void) {
  bool is_forbidden = false;
  for (standin_capture *c = ongoing; c != NULL; c = c->next) {
    if (!forbids(c)) continue;
    c->is_bad = true;
    is_forbidden = true;
  }
  if (!is_forbidden) return TARN__CU_SUCCESS;
  return standin_wrong(TARN__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                       "a capture forbids this call, and is broken by it");
}

tarn__cuda_result standin_capture_exchange(unsigned *mode) {
  if (*mode > TARN__CU_STREAM_CAPTURE_MODE_RELAXED) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "mode %u", *mode);
  }
  unsigned before = thread_mode;
  thread_mode = *mode;
  *mode = before;
  return TARN__CU_SUCCESS;
}

tarn__cuda_result standin_capture_break(CUstream stream,
                                        tarn__cuda_result error,
                                        const char *why) {
  stream->capture->is_bad = true;
  return standin_wrong(error, "%s: the capture is broken by it", why);
}

static bool holds_up(const standin_capture *capture,
                     const struct CUstream_st *legacy) {
  for (size_t i = 0; i < capture->member_count; i++) {
    const struct CUstream_st *member = capture->members[i];
    if (member->context == legacy->context &&
        (member->flags & TARN__CU_STREAM_NON_BLOCKING) == 0) {
      return true;
    }
  }
  return false;
}

bool standin_capture_bars(const struct CUstream_st *stream) {
  for (const standin_capture *c = ongoing; c != NULL; c = c->next) {
    if (stream->is_legacy && holds_up(c, stream)) return true;
  }
  return false;
}

tarn__cuda_result standin_capture_check_legacy(
    const struct CUstream_st *stream) {
  if (!standin_capture_bars(stream)) return TARN__CU_SUCCESS;
  for (standin_capture *c = ongoing; c != NULL; c = c->next) {
    if (holds_up(c, stream)) c->is_bad = true;
  }
  return standin_wrong(TARN__CU_ERROR_STREAM_CAPTURE_IMPLICIT,
                       "the legacy stream would wait for a captured one");
}

// --- beginning -------------------------------------------------------------

static void join(standin_capture *capture, CUstream stream) {
  stream->capture = capture;
  stream->member = capture->member_count;
  capture->members[capture->member_count++] = stream;
  capture->uses++;
  standin_use(stream);
}

tarn__cuda_result standin_capture_begin(CUstream stream, unsigned mode) {
  if (mode > TARN__CU_STREAM_CAPTURE_MODE_RELAXED) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "mode %u", mode);
  }
  if (stream->is_legacy) {
    return standin_wrong(TARN__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                         "the legacy stream cannot be captured");
  }
  if (stream->capture != NULL) {
    return standin_capture_break(stream, TARN__CU_ERROR_INVALID_VALUE,
                                 "the stream is captured already");
  }
  standin_capture *made = calloc(1, sizeof *made);
  if (made == NULL) return TARN__CU_ERROR_OUT_OF_MEMORY;
  made->mode = mode;
  made->thread = pthread_self();
  made->next = ongoing;
  ongoing = made;
  join(made, stream);
  return TARN__CU_SUCCESS;
}

unsigned standin_capture_status(const struct CUstream_st *stream) {
  if (stream->capture == NULL) return TARN__CU_STREAM_CAPTURE_STATUS_NONE;
  return stream->capture->is_bad ? TARN__CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : TARN__CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

// --- recording -------------------------------------------------------------

static bool has_room(standin_capture *capture) {
  if (capture->count < capture->room) return true;
  size_t room = capture->room != 0 ? 2 * capture->room : 16;
  node *grown = realloc(capture->nodes, room * sizeof *grown);
  if (grown == NULL) return false;
  capture->nodes = grown;
  capture->room = room;
  return true;
}

tarn__cuda_result standin_capture_add(CUstream stream, standin_task *task) {
  standin_capture *capture = stream->capture;
  bool is_bad = capture->is_bad;
  if (is_bad || !has_room(capture)) {
    standin_task_end(task);
    return is_bad ? TARN__CU_ERROR_STREAM_CAPTURE_INVALIDATED
                  : TARN__CU_ERROR_OUT_OF_MEMORY;
  }
  capture->nodes[capture->count++] = (node){*task, stream->member};
  *task = (standin_task){.action = STANDIN_NOTHING};
  capture->told[stream->member]++;
  capture->known[stream->member].nodes[stream->member]++;
  return TARN__CU_SUCCESS;
}

tarn__cuda_result standin_capture_record(CUstream stream, CUevent event) {
  standin_capture *capture = stream->capture;
  if (capture->is_bad) return TARN__CU_ERROR_STREAM_CAPTURE_INVALIDATED;
  capture->uses++;
  standin_capture_forget(event);
  event->capture = capture;
  event->past = capture->known[stream->member];
  return TARN__CU_SUCCESS;
}

static void learn(standin_past *past, const standin_past *other) {
  for (size_t i = 0; i < STANDIN_MEMBERS_MAX; i++) {
    if (other->nodes[i] > past->nodes[i]) past->nodes[i] = other->nodes[i];
  }
}

static tarn__cuda_result wait_inside(CUstream stream, CUevent event) {
  standin_capture *capture = event->capture;
  if (capture->is_bad) return TARN__CU_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream->capture == NULL) {
    tarn__cuda_result error = standin_capture_check_legacy(stream);
    if (error != TARN__CU_SUCCESS) return error;
    if (capture->member_count == STANDIN_MEMBERS_MAX) {
      return TARN__CU_ERROR_OUT_OF_MEMORY;
    }
    join(capture, stream);
  }
  learn(&capture->known[stream->member], &event->past);
  return TARN__CU_SUCCESS;
}

tarn__cuda_result standin_capture_wait(CUstream stream, CUevent event) {
  standin_capture *capture = event->capture;
  if (capture == NULL) {
    return standin_capture_break(stream,
                                 TARN__CU_ERROR_STREAM_CAPTURE_ISOLATION,
                                 "the event was recorded outside of it");
  }
  if (capture->is_over) {
    return standin_wrong(TARN__CU_ERROR_CAPTURED_EVENT,
                         "the event is of a capture that has ended");
  }
  if (stream->capture != NULL && stream->capture != capture) {
    capture->is_bad = true;
    return standin_capture_break(stream, TARN__CU_ERROR_STREAM_CAPTURE_MERGE,
                                 "the event is of another capture");
  }
  return wait_inside(stream, event);
}

// --- ending ----------------------------------------------------------------

static bool is_joined(const standin_capture *capture) {
  for (size_t i = 0; i < capture->member_count; i++) {
    if (capture->known[0].nodes[i] < capture->told[i]) return false;
  }
  return true;
}

static void unlink_it(standin_capture *capture) {
  standin_capture **at = &ongoing;
  while (*at != capture)
    at = &(*at)->next;
  *at = capture->next;
}

// The caller holds the capture.
static void release_members(standin_capture *capture) {
  for (size_t i = 0; i < capture->member_count; i++) {
    capture->members[i]->capture = NULL;
    standin_unuse(capture->members[i]);
  }
  capture->uses -= (unsigned)capture->member_count;
  capture->member_count = 0;
}

static tarn__cuda_result take_tasks(standin_capture *capture,
                                    standin_task **out_tasks,
                                    size_t *out_count) {
  standin_task *tasks = malloc((capture->count + 1) * sizeof *tasks);
  if (tasks == NULL) return TARN__CU_ERROR_OUT_OF_MEMORY;
  for (size_t i = 0; i < capture->count; i++)
    tasks[i] = capture->nodes[i].task;
  *out_tasks = tasks;
  *out_count = capture->count;
  capture->count = 0;
  return TARN__CU_SUCCESS;
}

static tarn__cuda_result outcome(standin_capture *capture,
                                 standin_task **out_tasks, size_t *out_count) {
  if (capture->is_bad) return TARN__CU_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!is_joined(capture)) {
    return standin_wrong(TARN__CU_ERROR_STREAM_CAPTURE_UNJOINED,
                         "a stream of the capture was not joined");
  }
  return take_tasks(capture, out_tasks, out_count);
}

tarn__cuda_result standin_capture_end(CUstream stream, standin_task **out_tasks,
                                      size_t *out_count) {
  standin_capture *capture = stream->capture;
  if (capture == NULL) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                         "the stream is not captured");
  }
  if (stream->member != 0) {
    return standin_capture_break(stream,
                                 TARN__CU_ERROR_STREAM_CAPTURE_UNMATCHED,
                                 "the capture began on another stream");
  }
  if (capture->mode != TARN__CU_STREAM_CAPTURE_MODE_RELAXED &&
      !pthread_equal(capture->thread, pthread_self())) {
    return standin_capture_break(stream,
                                 TARN__CU_ERROR_STREAM_CAPTURE_WRONG_THREAD,
                                 "the capture began in another thread");
  }
  capture->uses++;
  capture->is_over = true;
  unlink_it(capture);
  tarn__cuda_result error = outcome(capture, out_tasks, out_count);
  release_members(capture);
  unuse(capture);
  return error;
}
