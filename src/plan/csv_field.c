// What stands in the fields of a line, as numbers.
#include <inttypes.h>
#include <string.h>

#include "base/lines.h"
#include "base/status.h"
#include "plan/csv_table.h"

tarn_status tarn__plan_csv_number(const tarn__plan_csv_line *line,
                                  const tarn__plan_csv_field *from,
                                  const char *what, uint64_t *out_number) {
  if (tarn__text_decimal(from->text, from->size, out_number)) return TARN_OK;
  if (from->size == 0) {
    return tarn__plan_csv_fail(line, from->column, "%s is empty", what);
  }
  return tarn__plan_csv_fail(
      line, from->column, "%s '%.*s' is no whole number from 0 up to 2^64 - 1",
      what, tarn__plan_csv_shown(from->size), from->text);
}

tarn_status tarn__plan_csv_last(const tarn__plan_csv_line *line,
                                const tarn__plan_csv_field *from, bool is_in,
                                const char *what, uint64_t *out_last) {
  tarn_status status = tarn__plan_csv_number(line, from, what, out_last);
  if (status != TARN_OK || !is_in) return status;
  if (++*out_last != 0) return TARN_OK;
  return tarn__plan_csv_fail(line, from->column, "%s '%.*s' has no step behind",
                             what, tarn__plan_csv_shown(from->size),
                             from->text);
}

tarn_status tarn__plan_csv_gap(const tarn__plan_csv_line *line,
                               const tarn__plan_csv_field *word,
                               bool last_is_in, tarn_plan_gap *out_gap) {
  const char *minus = memchr(word->text, '-', word->size);
  if (memchr(word->text, '@', word->size) != NULL) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "%s:%zu:%zu: gap '%.*s' has a window, which Tarn has no "
                      "notion of",
                      line->path, line->number, word->column,
                      tarn__plan_csv_shown(word->size), word->text);
  }
  if (minus == NULL) {
    return tarn__plan_csv_fail(line, word->column,
                               "gap '%.*s' is no two steps, as 3-5",
                               tarn__plan_csv_shown(word->size), word->text);
  }
  size_t at = (size_t)(minus - word->text);
  tarn__plan_csv_field first = {word->text, at, word->column};
  tarn__plan_csv_field last = {minus + 1, word->size - at - 1,
                               word->column + at + 1};
  tarn_status status =
      tarn__plan_csv_number(line, &first, "gap's step", &out_gap->first);
  if (status != TARN_OK) return status;
  return tarn__plan_csv_last(line, &last, last_is_in, "gap's step",
                             &out_gap->last);
}

static uint64_t divisor_of(uint64_t a, uint64_t b) {
  while (b != 0) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

tarn_status tarn__plan_csv_alignment(const tarn__plan_csv_line *line,
                                     const tarn__plan_csv_field *from,
                                     uint64_t least, uint64_t *out_alignment) {
  uint64_t own = 0;
  tarn_status status = TARN_OK;
  if (from->size > 0)
    status = tarn__plan_csv_number(line, from, "alignment", &own);
  if (status != TARN_OK) return status;
  if (own == 0) own = 1;
  if (least == 0) least = 1;
  if (__builtin_mul_overflow(own / divisor_of(own, least), least,
                             out_alignment)) {
    return tarn__plan_csv_fail(line, from->column,
                               "alignment %" PRIu64 " and one of %" PRIu64
                               " are together 2^64 or more",
                               own, least);
  }
  return TARN_OK;
}

tarn_status tarn__plan_csv_arena(const tarn__plan_csv_line *line,
                                 const tarn__plan_csv_field *from,
                                 uint32_t *out_arena) {
  uint64_t arena = 0;
  tarn_status status = tarn__plan_csv_number(line, from, "arena", &arena);
  if (status != TARN_OK) return status;
  if (arena >= UINT32_MAX) {
    return tarn__plan_csv_fail(line, from->column,
                               "arena %" PRIu64 " is beyond 2^32 - 2", arena);
  }
  *out_arena = (uint32_t)arena;
  return TARN_OK;
}
