// What the file of a rank says of its table.
#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "disk/table.h"
#include "embedding/embedding.h"

static const char magic[] = "TARNDISK";

// --- filling ---------------------------------------------------------------

static size_t record_of(const tarn_disk_options *o,
                        const tarn_embedding_options *optimizer) {
  return optimizer != NULL
             ? tarn__embedding_block(o->dtype, o->width, optimizer)
             : o->width * tarn_dtype_size(o->dtype);
}

void tarn__table_note_take(tarn__disk_table_note *note,
                           const tarn_embedding_options *o) {
  const float numbers[] = {o->learning_rate, o->weight_decay, o->epsilon,
                           o->momentum,      o->beta1,        o->beta2,
                           o->alpha,         o->initial};
  _Static_assert(sizeof numbers == sizeof note->numbers, "all of them");
  note->optimizer = (uint32_t)o->optimizer;
  note->flags = o->flags;
  note->seed = o->seed;
  memcpy(note->numbers, numbers, sizeof numbers);
}

void tarn__table_note_fill(const tarn_disk_options *options,
                           const tarn_embedding_options *optimizer,
                           tarn__disk_table_note *out) {
  *out = (tarn__disk_table_note){.rows = options->rows,
                                 .width = options->width,
                                 .record = record_of(options, optimizer),
                                 .dtype = (uint32_t)options->dtype};
  memcpy(out->magic, magic, sizeof out->magic);
  if (optimizer != NULL) tarn__table_note_take(out, optimizer);
}

tarn_embedding_options tarn__table_note_optimizer(
    const tarn__disk_table_note *n) {
  return (tarn_embedding_options){.struct_size = sizeof(tarn_embedding_options),
                                  .optimizer = (tarn_optimizer)n->optimizer,
                                  .flags = n->flags,
                                  .learning_rate = n->numbers[0],
                                  .weight_decay = n->numbers[1],
                                  .epsilon = n->numbers[2],
                                  .momentum = n->numbers[3],
                                  .beta1 = n->numbers[4],
                                  .beta2 = n->numbers[5],
                                  .alpha = n->numbers[6],
                                  .initial = n->numbers[7],
                                  .seed = n->seed};
}

// --- reading ---------------------------------------------------------------

static bool fits(const tarn__disk_table_note *n) {
  const tarn_embedding_options optimizer = tarn__table_note_optimizer(n);
  const tarn_disk_options options = {.dtype = (tarn_dtype)n->dtype,
                                     .width = (size_t)n->width};
  bool learns = n->optimizer != 0;
  size_t size = 0;
  if (tarn_dtype_size(options.dtype) == 0 || n->width == 0 ||
      !tarn_size_mul((size_t)n->rows, (size_t)n->record, &size) ||
      n->width > SIZE_MAX / 64 || n->count > n->rows ||
      n->first > n->rows - n->count || n->rank >= n->ranks) {
    return false;
  }
  if (learns && tarn__optimizer_check(&optimizer) != TARN_OK) return false;
  return record_of(&options, learns ? &optimizer : NULL) == n->record;
}

tarn_status tarn__table_note_read(const char *path,
                                  const tarn__disk_records_info *info,
                                  tarn__disk_table_note *out) {
  memcpy(out, info->note, sizeof *out);
  uint64_t records = out->count > 0 ? out->count : 1;
  if (memcmp(out->magic, magic, sizeof out->magic) == 0 && fits(out) &&
      info->shape.size == out->record && info->shape.count == records) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_CORRUPT,
                    "disk: '%s': its %" PRIu64
                    " records of %zu bytes are no rows of a table: the note of "
                    "epoch %" PRIu64 " should begin with \"%s\", and fit",
                    path, info->shape.count, info->shape.size, info->newest,
                    magic);
}

// --- comparing -------------------------------------------------------------

static tarn_status compare(const char *path, const char *what, uint64_t has,
                           uint64_t given) {
  if (given == 0 || has == given) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "disk: '%s': the table has %s %" PRIu64 ", not %" PRIu64,
                    path, what, has, given);
}

static const char *name_of(uint32_t optimizer) {
  return optimizer != 0 ? tarn_optimizer_name((tarn_optimizer)optimizer)
                        : "no optimizer";
}

static tarn_status compare_optimizer(const char *path,
                                     const tarn__disk_table_note *note,
                                     const tarn_embedding_options *given) {
  const tarn_disk_options shape = {.dtype = (tarn_dtype)note->dtype,
                                   .width = (size_t)note->width};
  tarn_embedding_options own = tarn__table_note_optimizer(note);
  if (given->optimizer == own.optimizer && given->flags == own.flags &&
      given->initial == own.initial &&
      record_of(&shape, given) == note->record) {
    return TARN_OK;
  }
  return tarn__fail(
      TARN_E_INVALID,
      "disk: '%s': the table has %s with flags %u, momentum %g and initial %g, "
      "not %s with %u, %g and %g",
      path, name_of(note->optimizer), (unsigned)own.flags, (double)own.momentum,
      (double)own.initial, name_of((uint32_t)given->optimizer),
      (unsigned)given->flags, (double)given->momentum, (double)given->initial);
}

tarn_status tarn__table_note_compare(const char *path,
                                     const tarn__disk_table_note *note,
                                     const tarn_disk_options *options,
                                     const tarn_embedding_options *optimizer) {
  if (options->dtype != TARN_DTYPE_NONE &&
      (uint32_t)options->dtype != note->dtype) {
    return tarn__fail(TARN_E_INVALID, "disk: '%s': the table is of %s, not %s",
                      path, tarn_dtype_name((tarn_dtype)note->dtype),
                      tarn_dtype_name(options->dtype));
  }
  TARN__TRY(compare(path, "rows:", note->rows, options->rows));
  TARN__TRY(compare(path, "a width of", note->width, options->width));
  if (optimizer == NULL) return TARN_OK;
  return compare_optimizer(path, note, optimizer);
}
