// Gather and scatter, at once or queued. Addresses are pointers here.
#include "common/rows.h"

#include <string.h>

#include "base/rows.h"
#include "base/status.h"
#include "cpu.h"

// The context of a queued call; its rows belong to the operation.
typedef struct task {
  tarn__rows_action action;
  C_Stream stream;
} task;

_Static_assert(sizeof(task) <= sizeof((tarn__common_queue_op){0}.words),
               "a task is an operation's context");

static void run_task(const tarn__common_queue_op *op) {
  task t;
  char why[TARN__COMMON_LINE];
  memcpy(&t, op->words, sizeof t);
  if (tarn__rows_run(t.action, op->owned, NULL, NULL, why, sizeof why) !=
      TARN_OK) {
    tarn__queue_fail(t.stream, C_ERROR, why);
  }
}

static bool is_brief(const tarn_rows *rows) {
  size_t bytes = 0;
  return tarn_size_mul(
             rows->index_count,
             tarn__rows_table_bytes(rows) + tarn__rows_dense_bytes(rows),
             &bytes) &&
         bytes <= TARN__CPU_BRIEF_SIZE;
}

static tarn_status queue_task(tarn__rows_action action, const tarn_rows *rows,
                              C_Stream stream) {
  tarn__common_queue_op op = {.run = run_task, .brief = is_brief(rows)};
  task t = {action, stream};
  memcpy(op.words, &t, sizeof t);
  if (tarn__rows_submit(stream, &op, rows) == C_SUCCESS) return TARN_OK;
  return tarn__text_fail(TARN_E_NOMEM, "no host memory to queue rows");
}

static tarn_status move_rows(tarn__rows_action action, int id, C_Stream stream,
                             const tarn_rows *rows) {
  TARN__TRY(tarn__cpu_check_stream(id, stream));
  if (rows == NULL) return tarn__text_fail(TARN_E_INVALID, "rows is NULL");
  if (tarn__rows_are_newer(rows)) {
    return tarn__text_fail(TARN_E_UNSUPPORTED, "unknown flags 0x%x of rows",
                           (unsigned)rows->flags);
  }
  if (stream != NULL) return queue_task(action, rows, stream);
  char why[TARN__COMMON_LINE];
  tarn_status status =
      tarn__rows_run(action, rows, NULL, NULL, why, sizeof why);
  if (status != TARN_OK) tarn__text_set(why);
  return status;
}

tarn_status tarn__cpu_gather(int id, void *stream, const tarn_rows *rows) {
  return move_rows(TARN__ROWS_GATHER, id, stream, rows);
}

tarn_status tarn__cpu_scatter(int id, void *stream, const tarn_rows *rows) {
  return move_rows(TARN__ROWS_SCATTER, id, stream, rows);
}

tarn_status tarn__cpu_scatter_add(int id, void *stream, const tarn_rows *rows) {
  return move_rows(TARN__ROWS_SCATTER_ADD, id, stream, rows);
}
