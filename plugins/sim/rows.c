// Gather and scatter, by plugins/common. This file knows what a device reaches:
//
//   own blocks, unified memory, mapped bytes   as an end of a copy within it
//   host memory                                if the device has pinned it or
//                                              it is registered
//
// All addresses are checked when a call is queued, and again when they are
// used. Indices are checked when they are used, since they may be written
// later.
#include "common/rows.h"

#include <string.h>

#include "base/rows.h"
#include "base/status.h"
#include "extension.h"

typedef struct job {
  tarn__sim_device *device;
  C_Stream stream;  // NULL: at once
  const tarn_rows *rows;
  tarn__sim_call call;
} job;

_Static_assert(sizeof(job) <= sizeof((tarn__common_queue_op){0}.words),
               "a job is an operation's context");

static tarn__rows_action action_of(tarn__sim_call call) {
  if (call == TARN__SIM_gather) return TARN__ROWS_GATHER;
  return call == TARN__SIM_scatter ? TARN__ROWS_SCATTER
                                   : TARN__ROWS_SCATTER_ADD;
}

// --- what the device reaches -----------------------------------------------

// Context of tarn__common_rows_reach.
typedef struct view {
  tarn__sim_device *device;
  tarn__sim_call call;
  const tarn_rows *rows;
  unsigned how;   // TARN__SIM_LATE: as they are used
  bool refused;   // and the report says why
  size_t across;  // bytes of the host's so far
} view;

static size_t end_of_rows(size_t count, size_t stride, size_t bytes) {
  return count == 0 ? 0 : (count - 1) * stride + bytes;
}

static size_t dense_size(const tarn_rows *rows) {
  return end_of_rows(rows->index_count, rows->dense_stride,
                     tarn__rows_dense_bytes(rows));
}

static size_t indices_size(const tarn_rows *rows) {
  return rows->index_count * tarn_dtype_size(rows->index_dtype);
}

// A gather writes the dense rows; the others write the table.
static bool is_written(const view *v, uint64_t address) {
  bool dense = address - v->rows->dense < dense_size(v->rows);
  bool index = address - v->rows->indices < indices_size(v->rows);
  return v->call == TARN__SIM_gather ? dense : !dense && !index;
}

static size_t rest_of(const tarn__common_extents *extents, uint64_t address) {
  const tarn__common_extent *extent =
      tarn__common_extents_find(extents, address);
  if (extent == NULL || address - extent->node.start >= extent->asked) return 0;
  return extent->asked - (size_t)(address - extent->node.start);
}

// How many bytes of known host memory stand at |address|.
static size_t host_bytes(tarn__sim_device *device, uint64_t address) {
  pthread_mutex_lock(&device->lock);
  size_t rest = rest_of(&device->mapped[TARN__SIM_HOST], address);
  if (rest == 0) rest = rest_of(&device->registered, address);
  pthread_mutex_unlock(&device->lock);
  return rest;
}

static unsigned char *reach(void *context, tarn_addr addr, size_t size,
                            size_t *out_size) {
  view *v = context;
  const void *address = (const void *)(uintptr_t)addr;
  size_t host = 0;
  if (tarn__sim_owner(address) == NULL) host = host_bytes(v->device, addr);
  if (host != 0) {
    *out_size = host < size ? host : size;
    v->across += *out_size;
    return (unsigned char *)(uintptr_t)addr;
  }
  tarn__sim_end end = {.device = v->device, .address = address};
  tarn__sim_piece piece = {NULL, 0};
  unsigned how = v->how | TARN__SIM_PIECE;
  if (is_written(v, addr)) how |= TARN__SIM_TO_WRITE;
  v->refused = tarn__sim_resolve(v->device, v->call, how, size, &end, &piece) !=
               C_SUCCESS;
  *out_size = piece.size;
  return piece.bytes;
}

// --- before the queue ------------------------------------------------------

static bool reach_all(view *v, uint64_t address, size_t size) {
  while (size != 0) {
    size_t here = 0;
    if (reach(v, address, size, &here) == NULL) return false;
    address += here;
    size -= here;
  }
  return true;
}

// Only the bytes from the first row to the last belong to the table.
static bool reach_table(view *v) {
  const tarn_reference *table = &v->rows->table;
  size_t begin = v->rows->table_offset;
  size_t end = begin + end_of_rows(v->rows->table_count, v->rows->table_stride,
                                   tarn__rows_table_bytes(v->rows));
  for (size_t i = 0; i < table->count; i++) {
    size_t first = table->offsets[i] > begin ? table->offsets[i] : begin;
    size_t last = table->offsets[i + 1] < end ? table->offsets[i + 1] : end;
    if (first >= last) continue;
    uint64_t address = table->chunks[i] + (first - table->offsets[i]);
    if (!reach_all(v, address, last - first)) return false;
  }
  return true;
}

static tarn_status check(tarn__sim_device *device, tarn__sim_call call,
                         const tarn_rows *rows) {
  view v = {.device = device, .call = call, .rows = rows};
  bool fine = reach_table(&v) && reach_all(&v, rows->dense, dense_size(rows)) &&
              reach_all(&v, rows->indices, indices_size(rows));
  return fine ? TARN_OK : TARN_E_INVALID;
}

// --- doing it --------------------------------------------------------------

static tarn_status run(const job *j) {
  char text[TARN__COMMON_LINE];
  view v = {.device = j->device,
            .call = j->call,
            .rows = j->rows,
            .how = TARN__SIM_LATE};
  uint64_t begin = tarn__sim_is_slow() ? tarn__os_now_ns() : 0;
  tarn_status status =
      tarn__rows_run(action_of(j->call), j->rows, reach, &v, text, sizeof text);
  if (status != TARN_OK && !v.refused) {
    (void)tarn__sim_misuse("sim:%d: %s: %s", j->device->home.id,
                           tarn__sim_call_name(j->call), text);
  }
  if (tarn__sim_is_slow()) tarn__sim_linger(begin, v.across);
  return status;
}

static void run_queued(const tarn__common_queue_op *op) {
  job j;
  memcpy(&j, op->words, sizeof j);
  j.rows = op->owned;
  if (run(&j) != TARN_OK) {
    tarn__queue_fail(j.stream, C_ERROR, tarn__text_line());
  }
}

static tarn_status queue(const job *j) {
  tarn__common_queue_op op = {.run = run_queued};
  memcpy(op.words, j, sizeof *j);
  if (tarn__rows_submit(j->stream, &op, j->rows) == C_SUCCESS) return TARN_OK;
  return tarn__sim_no_resources(j->device, "host memory");
}

static tarn_status make(tarn__sim_call call, int id, void *stream,
                        const tarn_rows *rows) {
  job j = {.rows = rows, .call = call};
  TARN__TRY(tarn__sim_admit(call, id, &j.device));
  TARN__TRY(tarn__sim_admit_stream(call, j.device, stream, &j.stream));
  if (tarn__rows_are_newer(rows)) return TARN_E_UNSUPPORTED;
  TARN__TRY(check(j.device, call, rows));
  return j.stream != NULL ? queue(&j) : run(&j);
}

tarn_status tarn__sim_gather(int id, void *stream, const tarn_rows *rows) {
  return make(TARN__SIM_gather, id, stream, rows);
}

tarn_status tarn__sim_scatter(int id, void *stream, const tarn_rows *rows) {
  return make(TARN__SIM_scatter, id, stream, rows);
}

tarn_status tarn__sim_scatter_add(int id, void *stream, const tarn_rows *rows) {
  return make(TARN__SIM_scatter_add, id, stream, rows);
}
