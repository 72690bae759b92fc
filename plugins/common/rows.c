// Gather and scatter. If addresses are pointers, rows_direct.c moves the rows;
// otherwise base/rows_walk.c does. Memory may be in pieces then: bytes that
// cross pieces go through room.
#include "common/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/convert.h"
#include "base/hostmem.h"
#include "base/rows_walk.h"
#include "base/status.h"
#include "common/rows_direct.h"

typedef struct job {
  tarn__common_rows_reach *reach;
  void *context;
  char *text;
  size_t text_size;
} job;

// --- memory in pieces ------------------------------------------------------

// At least one of |size| bytes at |at|; NULL: none is reached.
static unsigned char *reach_some(const job *j, tarn_addr at, size_t size,
                                 size_t *out_size) {
  *out_size = size;
  unsigned char *bytes = j->reach(j->context, at, size, out_size);
  *out_size = tarn__lesser(*out_size, size);
  if (bytes == NULL) {
    snprintf(j->text, j->text_size,
             "the device does not reach %zu bytes at 0x%" PRIx64, size, at);
  }
  return bytes;
}

// Copies |size| bytes at |at| to |bytes|, or from there.
static tarn_status copy_pieces(const job *j, tarn_addr at, unsigned char *bytes,
                               size_t size, bool from) {
  size_t now = 0;
  for (size_t done = 0; done < size; done += now) {
    unsigned char *piece = reach_some(j, at + done, size - done, &now);
    if (piece == NULL) return TARN_E_INVALID;
    memcpy(from ? piece : bytes + done, from ? bytes + done : piece, now);
  }
  return TARN_OK;
}

static tarn_status view(void *context, tarn_addr at, size_t size, bool read,
                        unsigned char **bytes) {
  size_t here = 0;
  unsigned char *piece = reach_some(context, at, size, &here);
  if (piece == NULL) return TARN_E_INVALID;
  if (here == size) {
    *bytes = piece;
    return TARN_OK;
  }
  return read ? copy_pieces(context, at, *bytes, size, false) : TARN_OK;
}

static tarn_status write(void *context, tarn_addr to, unsigned char *bytes,
                         size_t size) {
  return copy_pieces(context, to, bytes, size, true);
}

__attribute__((noinline)) static tarn_status run_in_pieces(
    job *j, tarn__rows_action action, const tarn_rows *rows) {
  unsigned char room[64 << 10];
  const tarn__rows_reach reach = {view, write, NULL, j, room, sizeof room};
  return tarn__rows_walk(action, rows, &reach, j->text, j->text_size);
}

tarn_status tarn__rows_run(tarn__rows_action action, const tarn_rows *rows,
                           tarn__common_rows_reach *reach, void *context,
                           char *text, size_t text_size) {
  job j = {reach, context, text, text_size};
  if (text_size != 0) text[0] = '\0';
  if (action == TARN__ROWS_SCATTER_ADD &&
      !tarn__convert_can_add(rows->table_dtype)) {
    snprintf(text, text_size, "elements of %s cannot be added",
             tarn_dtype_name(rows->table_dtype));
    return TARN_E_INVALID;
  }
  return reach != NULL ? run_in_pieces(&j, action, rows)
                       : tarn__rows_direct(action, rows, text, text_size);
}

// --- for a queue -----------------------------------------------------------

tarn_rows *tarn__rows_copy(const tarn_rows *rows, size_t *out_size) {
  const tarn_reference *table = &rows->table;
  size_t entries = 0;
  size_t size = 0;
  *out_size = 0;
  if (!tarn_size_mul(table->count, sizeof(tarn_addr) + sizeof(size_t),
                     &entries) ||
      !tarn_size_add(entries, sizeof *rows + sizeof(size_t), &size)) {
    return NULL;
  }
  tarn_rows *copy = tarn__host_alloc(size);
  if (copy == NULL) return NULL;
  tarn_addr *chunks = (tarn_addr *)(copy + 1);
  size_t *offsets = (size_t *)(chunks + table->count);
  memcpy(copy, rows, tarn__lesser(rows->struct_size, sizeof *copy));
  copy->table.chunks = chunks;
  copy->table.offsets = offsets;
  if (table->count != 0) {
    memcpy(chunks, table->chunks, table->count * sizeof *chunks);
    memcpy(offsets, table->offsets, (table->count + 1) * sizeof *offsets);
  }
  *out_size = size;
  return copy;
}

C_Status tarn__rows_submit(C_Stream stream, tarn__common_queue_op *op,
                           const tarn_rows *rows) {
  op->owned = tarn__rows_copy(rows, &op->owned_size);
  if (op->owned == NULL) return tarn__wordless(C_FAILED);
  C_Status status = tarn__queue_submit(stream, op);
  if (status != C_SUCCESS) tarn__host_free(op->owned, op->owned_size);
  return status;
}
