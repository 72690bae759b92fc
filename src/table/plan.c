// What a store writes around its arrays, and the checksums of their bytes.
#include "table/plan.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "format/npy.h"

enum { CHUNK = TARN__TABLE_CHUNK };

tarn_dtype tarn__table_plan_dtype(const tarn__table_call *call, size_t tensor) {
  tarn_dtype dtype = call->options.dtype;
  return dtype != TARN_DTYPE_NONE ? dtype : call->tensors[tensor].tensor.dtype;
}

// Bytes of a tensor in the file.
static bool measure(const tarn__table_call *call, size_t i, size_t *out_size) {
  const tarn_whole_tensor *t = &call->tensors[i].tensor;
  return tarn_size_mul(t->rows, t->width, out_size) &&
         tarn_size_mul(*out_size,
                       tarn_dtype_size(tarn__table_plan_dtype(call, i)),
                       out_size);
}

static tarn_status refuse_size(const tarn__table_call *call) {
  return tarn__fail(TARN_E_INVALID, "%s: '%s' would be too large", call->name,
                    call->path);
}

// --- formats ---------------------------------------------------------------

static tarn_status plan_raw(tarn__table_plan *p, const tarn__table_call *call) {
  size_t size = 0;
  p->checked = false;
  if (!measure(call, 0, &size)) return refuse_size(call);
  p->length = p->size = size;
  return TARN_OK;
}

static tarn_status plan_npy(tarn__table_plan *p, const tarn__table_call *call) {
  size_t size = 0;
  if (!measure(call, 0, &size) ||
      !tarn__sums_place(TARN__NPY_WRITTEN, size, &p->block)) {
    return refuse_size(call);
  }
  p->begin = p->at[0] = TARN__NPY_WRITTEN;
  p->length = size;
  p->size = p->checked ? p->block.offset + p->block.size : p->begin + size;
  return TARN_OK;
}

static tarn_status declare(tarn_safetensors_writer *writer,
                           const tarn__table_call *call, size_t *io_length) {
  for (size_t i = 0; i < call->count; i++) {
    const tarn_whole_tensor *t = &call->tensors[i].tensor;
    const int64_t dims[] = {(int64_t)t->rows, (int64_t)t->width};
    const tarn_shape shape = {dims, t->dims};
    size_t size = 0;
    if (!measure(call, i, &size) ||
        !tarn_size_add(*io_length, size, io_length)) {
      return refuse_size(call);
    }
    TARN__TRY(tarn__safetensors_declare(
        writer, call->tensors[i].name, tarn__table_plan_dtype(call, i), shape));
  }
  return TARN_OK;
}

// A text of as many digits as the checksums will have.
static tarn_status reserve_text(tarn__table_plan *p,
                                tarn_safetensors_writer *writer) {
  size_t digits = p->sum_count * TARN__SUMS_DIGITS;
  char *text = tarn__host_alloc(digits + 1);
  if (text == NULL) return TARN_E_NOMEM;
  memset(text, '0', digits);
  tarn_status status = tarn_safetensors_add_metadata(
      writer, TARN__SUMS_CHUNK_KEY, TARN__SUMS_CHUNK_TEXT);
  if (status == TARN_OK)
    status = tarn_safetensors_add_metadata(writer, TARN__SUMS_KEY, text);
  tarn__host_free(text, digits + 1);
  return status;
}

static tarn_status plan_header(tarn__table_plan *p,
                               const tarn__table_call *call,
                               tarn_safetensors_writer *writer) {
  size_t length = 0;
  TARN__TRY(declare(writer, call, &length));
  p->length = length;
  p->sum_count = tarn__sums_count(length);
  if (p->checked) TARN__TRY(reserve_text(p, writer));
  TARN__TRY(tarn__safetensors_plan_init(writer, TARN__TABLE_BLOCK, &p->header));
  p->begin = p->header.head.count;
  p->size = p->header.size;
  for (size_t i = 0; i < p->count; i++)
    p->at[i] = tarn__safetensors_plan_offset(&p->header, i);
  if (p->checked) p->text = tarn__safetensors_plan_value(&p->header, 1);
  return TARN_OK;
}

static tarn_status plan_safetensors(tarn__table_plan *p,
                                    const tarn__table_call *call) {
  tarn_safetensors_writer *writer = NULL;
  TARN__TRY(tarn_safetensors_writer_create(&writer));
  tarn_status status = plan_header(p, call, writer);
  tarn_safetensors_writer_destroy(writer);
  return status;
}

// --- make and end ----------------------------------------------------------

tarn_status tarn__table_plan_make(const tarn__table_call *call,
                                  tarn__table_plan *out) {
  static tarn_status (*const plans[])(tarn__table_plan *,
                                      const tarn__table_call *) = {
      [TARN_FILE_NPY] = plan_npy,
      [TARN_FILE_SAFETENSORS] = plan_safetensors,
      [TARN_FILE_RAW] = plan_raw};
  const tarn_file_options *o = &call->options;
  *out = (tarn__table_plan){.format = o->format,
                            .checked = (o->flags & TARN_FILE_UNCHECKED) == 0,
                            .count = call->count};
  out->at = tarn__host_array(call->count, sizeof *out->at);
  if (out->at == NULL) return TARN_E_NOMEM;
  TARN__TRY(plans[o->format](out, call));
  out->sum_count = tarn__sums_count(out->length);
  return TARN_OK;
}

void tarn__table_plan_end(tarn__table_plan *plan) {
  tarn__host_free_array(plan->at, plan->count, sizeof *plan->at);
  if (plan->header.head.items != NULL)
    tarn__safetensors_plan_deinit(&plan->header);
  *plan = (tarn__table_plan){0};
}

// --- checksums -------------------------------------------------------------

static int by_offset(const void *left, const void *right) {
  const tarn__table_piece *a = left;
  const tarn__table_piece *b = right;
  return (a->at > b->at) - (a->at < b->at);
}

// Together the pieces are all bytes, each once, and none is in two chunks.
static void combine(const tarn__table_plan *p, const tarn__table_piece *pieces,
                    size_t count, uint32_t *sums) {
  uint64_t at = p->begin;
  for (size_t i = 0; i < count; i++) {
    assert(pieces[i].at == at);
    uint32_t *sum = &sums[(at - p->begin) / CHUNK];
    bool first = (at - p->begin) % CHUNK == 0;
    *sum = first ? pieces[i].sum
                 : tarn__crc32c_combine(*sum, pieces[i].sum, pieces[i].size);
    at += pieces[i].size;
  }
  assert(at == p->begin + p->length);
}

// --- what stands around the arrays -----------------------------------------

static tarn_status write_at(const tarn__table_call *call, int fd,
                            uint64_t offset, const void *bytes, size_t size) {
  if (tarn__os_write_at(fd, offset, bytes, size)) return TARN_OK;
  int error = errno;
  return tarn__fail(TARN_E_IO, "table: '%s': cannot write byte %" PRIu64 ": %s",
                    call->path, offset, strerror(error));
}

static tarn_status write_block(const tarn__table_plan *p,
                               const tarn__table_call *call, int fd,
                               const unsigned char *id, const uint32_t *sums) {
  unsigned char *block = tarn__host_alloc(p->block.size);
  if (block == NULL) return TARN_E_NOMEM;
  tarn__sums_write(&p->block, id, sums, block);
  tarn_status status =
      write_at(call, fd, p->block.offset, block, p->block.size);
  tarn__host_free(block, p->block.size);
  return status;
}

static tarn_status write_npy_header(const tarn__table_call *call, int fd) {
  char head[TARN__NPY_WRITTEN];
  const tarn_whole_tensor *t = &call->tensors[0].tensor;
  const size_t dims[] = {t->rows, t->width};
  tarn__npy_write(tarn__table_plan_dtype(call, 0), t->dims, dims, head);
  return write_at(call, fd, 0, head, sizeof head);
}

static tarn_status write_around(tarn__table_plan *p,
                                const tarn__table_call *call, int fd,
                                const unsigned char *id, const uint32_t *sums) {
  char *head = p->header.head.items;
  switch (p->format) {
    case TARN_FILE_NPY:
      TARN__TRY(write_npy_header(call, fd));
      return p->checked ? write_block(p, call, fd, id, sums) : TARN_OK;
    case TARN_FILE_SAFETENSORS:
      if (p->checked) tarn__sums_to_text(sums, p->sum_count, head + p->text);
      return write_at(call, fd, 0, head, p->header.head.count);
    default:
      return TARN_OK;
  }
}

tarn_status tarn__table_plan_complete(tarn__table_plan *plan,
                                      const tarn__table_call *call, int fd,
                                      const unsigned char id[TARN__SUMS_ID],
                                      tarn__table_piece *pieces,
                                      size_t piece_count) {
  size_t room = plan->sum_count + 1;
  uint32_t *sums = tarn__host_array(room, sizeof *sums);
  if (sums == NULL) return TARN_E_NOMEM;
  if (plan->checked) {
    if (piece_count > 0) qsort(pieces, piece_count, sizeof *pieces, by_offset);
    combine(plan, pieces, piece_count, sums);
  }
  tarn_status status = write_around(plan, call, fd, id, sums);
  tarn__host_free_array(sums, room, sizeof *sums);
  return status;
}
