// Streams as the table has them; the work is done in queue.c.
#include "cpu.h"

bool tarn__cpu_is_stream(const struct C_Device_st *device,
                         const struct C_Stream_st *stream) {
  return tarn__cpu_is_device(device) && stream != NULL &&
         !tarn__cpu_is_stale(&stream->entry);
}

C_Status tarn__cpu_create_stream(const C_Device device, C_Stream *stream) {
  if (stream == NULL) return C_ERROR;
  *stream = NULL;
  if (!tarn__cpu_is_device(device)) return C_ERROR;
  C_Stream made = tarn__cpu_stream_open();
  if (made == NULL) return C_FAILED;
  tarn__cpu_enlist(TARN__CPU_STREAM, &made->entry);
  *stream = made;
  return C_SUCCESS;
}

// Also right for a stream of a parent process: that frees what is left of it.
C_Status tarn__cpu_destroy_stream(const C_Device device, C_Stream stream) {
  if (!tarn__cpu_is_device(device) || stream == NULL) return C_ERROR;
  tarn__cpu_delist(&stream->entry);
  tarn__cpu_stream_close(stream);
  return C_SUCCESS;
}

// C_WARNING: something queued is not done yet.
C_Status tarn__cpu_query_stream(const C_Device device, C_Stream stream) {
  if (!tarn__cpu_is_stream(device, stream)) return C_ERROR;
  bool idle = tarn__cpu_mark_reached(tarn__cpu_mark_now(stream));
  return idle ? C_SUCCESS : C_WARNING;
}

// A copy of host memory cannot fail, so neither can what came before.
static void run_callback(const tarn__cpu_op *op) {
  struct C_Device_st device = {.id = 0};
  C_Status status = C_SUCCESS;
  op->call.function(&device, op->call.stream, op->call.user_data, &status);
}

// Never run inside this call, even on an idle stream: the caller may hold what
// the callback wants to lock.
C_Status tarn__cpu_add_callback(const C_Device device, C_Stream stream,
                                C_Callback callback, void *user_data) {
  if (!tarn__cpu_is_stream(device, stream) || callback == NULL) return C_ERROR;
  tarn__cpu_op op = {
      .run = run_callback,
      .call = {callback, user_data, stream},
  };
  return tarn__cpu_submit(stream, &op);
}

C_Status tarn__cpu_synchronize_stream(const C_Device device, C_Stream stream) {
  if (!tarn__cpu_is_stream(device, stream)) return C_ERROR;
  tarn__cpu_mark_help(tarn__cpu_mark_now(stream));
  return C_SUCCESS;
}

// One stream after the other, each held, with no lock held: a callback that is
// waited for may create and destroy streams itself. Streams that are younger
// than the call are not waited for.
C_Status tarn__cpu_synchronize_device(const C_Device device) {
  if (!tarn__cpu_is_device(device)) return C_ERROR;
  uint64_t newest = tarn__cpu_newest();
  uint64_t serial = 0;
  while (serial < newest) {
    C_Stream stream = tarn__cpu_stream_behind(serial);
    if (stream == NULL) break;
    serial = stream->entry.serial;
    if (serial <= newest) tarn__cpu_mark_help(tarn__cpu_mark_now(stream));
    tarn__cpu_stream_drop(stream);
  }
  return C_SUCCESS;
}

void tarn__cpu_destroy_streams(void) {
  tarn__cpu_entry *entry = NULL;
  while ((entry = tarn__cpu_any(TARN__CPU_STREAM)) != NULL) {
    tarn__cpu_delist(entry);
    tarn__cpu_stream_close(tarn_list_entry(entry, struct C_Stream_st, entry));
  }
}
