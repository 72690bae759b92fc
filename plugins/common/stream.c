// Streams as the table has them; the work is done in queue.c.
#include "queue.h"

C_Status tarn__queue_create_stream(const tarn__common_queue_home *home,
                                   C_Stream *stream) {
  if (stream == NULL) return tarn__wordless(C_ERROR);
  *stream = NULL;
  if (home == NULL) return tarn__wordless(C_ERROR);
  C_Stream made = tarn__queue_stream_open();
  if (made == NULL) return tarn__wordless(C_FAILED);
  tarn__queue_enlist(TARN__QUEUE_STREAM, home, &made->entry);
  *stream = made;
  return C_SUCCESS;
}

// Also right for a stream of a parent process: that frees what is left of it.
C_Status tarn__queue_destroy_stream(const C_Device device, C_Stream stream) {
  if (stream == NULL || !tarn__queue_is_at(&stream->entry, device)) {
    return tarn__wordless(C_ERROR);
  }
  tarn__queue_delist(&stream->entry);
  tarn__queue_stream_close(stream);
  return C_SUCCESS;
}

// Its outcome so far.
static C_Status outcome(C_Stream stream) {
  return atomic_load_explicit(&stream->failure, memory_order_acquire);
}

// C_WARNING: something queued is not done yet.
C_Status tarn__queue_query_stream(const C_Device device, C_Stream stream) {
  if (!tarn__queue_is_stream(device, stream)) return tarn__wordless(C_ERROR);
  bool idle = tarn__queue_mark_reached(tarn__queue_mark_now(stream));
  return idle ? outcome(stream) : C_WARNING;
}

static void run_callback(const tarn__common_queue_op *op) {
  C_Stream stream = op->call.stream;
  struct C_Device_st device = {.id = stream->entry.home->id};
  C_Status status = outcome(stream);
  op->call.function(&device, stream, op->call.user_data, &status);
}

// Never run inside this call, even on an idle stream: the caller may hold what
// the callback wants to lock.
C_Status tarn__queue_stream_add_callback(const C_Device device, C_Stream stream,
                                         C_Callback callback, void *user_data) {
  if (!tarn__queue_is_stream(device, stream) || callback == NULL)
    return tarn__wordless(C_ERROR);
  tarn__common_queue_op op = {
      .run = run_callback,
      .call = {callback, user_data, stream},
  };
  return tarn__queue_submit(stream, &op);
}

C_Status tarn__queue_synchronize_stream(const C_Device device,
                                        C_Stream stream) {
  if (!tarn__queue_is_stream(device, stream)) return tarn__wordless(C_ERROR);
  tarn__queue_mark_help(tarn__queue_mark_now(stream));
  return outcome(stream);
}

// One stream after the other, each held, with no lock held: a callback that is
// waited for may create and destroy streams itself. Streams that are younger
// than the call are not waited for.
C_Status tarn__queue_synchronize_device(const tarn__common_queue_home *home) {
  if (home == NULL) return tarn__wordless(C_ERROR);
  C_Status status = C_SUCCESS;
  uint64_t newest = tarn__queue_newest();
  uint64_t serial = 0;
  while (serial < newest) {
    C_Stream stream = tarn__queue_stream_behind(home, serial);
    if (stream == NULL) break;
    serial = stream->entry.serial;
    if (serial <= newest) tarn__queue_mark_help(tarn__queue_mark_now(stream));
    if (status == C_SUCCESS) {
      status = outcome(stream);
      if (status != C_SUCCESS) tarn__text_set(tarn__queue_why(stream));
    }
    tarn__queue_stream_drop(stream);
  }
  return status;
}

static void destroy_streams(const tarn__common_queue_home *home) {
  tarn__common_queue_entry *entry = NULL;
  while ((entry = tarn__queue_any(TARN__QUEUE_STREAM, home)) != NULL) {
    tarn__queue_delist(entry);
    tarn__queue_stream_close(tarn_list_entry(entry, struct C_Stream_st, entry));
  }
}

void tarn__queue_destroy_all(const tarn__common_queue_home *home) {
  destroy_streams(home);
  tarn__queue_destroy_events(home);
}

void tarn__queue_error_text(int id, void *stream, char *out, size_t out_size) {
  struct C_Device_st device = {.id = id};
  const char *line = "";
  if (stream == NULL)
    line = tarn__text_line();
  else if (tarn__queue_is_stream(&device, stream))
    line = tarn__queue_why(stream);
  tarn__text_copy(line, out, out_size);
}
