// Dense rows that have come to the owner of their row, handed to a sink.
#include "base/status.h"
#include "whole/exchange.h"

enum { WINDOW = 256 };  // rows that are handed over at a time

static tarn_status check_width(const tarn__whole_course *c, size_t width) {
  size_t all = c->order->table.width;
  if (width == all) return TARN_OK;
  return tarn__fail(TARN_E_UNSUPPORTED,
                    "whole rows: a slot of staging has room for %zu of the %zu "
                    "elements of a row",
                    width, all);
}

// Another rank may change its numbers after they were checked.
static size_t take_listed(const tarn__whole_course *c, const void *numbers,
                          size_t first, size_t count, const unsigned char *rows,
                          size_t row_bytes, tarn__whole_arrival *out) {
  size_t taken = 0;
  for (size_t k = first; k < first + count; k++) {
    uint64_t row = tarn__course_number_at(c, numbers, k);
    if (row < c->kept->own_rows)
      out[taken++] = (tarn__whole_arrival){row, rows + k * row_bytes};
  }
  return taken;
}

tarn_status tarn__sink_staged(const tarn__whole_course *c,
                              const tarn__whole_span *span, const void *numbers,
                              size_t count, const unsigned char *staged) {
  tarn__whole_arrival arrivals[WINDOW];
  const tarn__whole_sink *sink = c->order->sink;
  TARN__TRY(check_width(c, span->width));
  for (size_t k = 0; k < count; k += WINDOW) {
    size_t some = take_listed(c, numbers, k, tarn__lesser(count - k, WINDOW),
                              staged, span->row_bytes, arrivals);
    TARN__TRY(sink->take(sink->context, arrivals, some, c->dtype, span->width));
  }
  return TARN_OK;
}

static void take_entries(const tarn__whole_course *c, const uint64_t *entries,
                         size_t count, tarn__whole_arrival *out) {
  const tarn_rows *rows = &c->order->rows;
  tarn_addr dense = rows->dense + c->piece * rows->dense_stride;
  for (size_t k = 0; k < count; k++) {
    uint64_t row = tarn__entry_row(entries[k]) - c->kept->own_first;
    tarn_addr at =
        dense + tarn__entry_position(entries[k]) * rows->dense_stride;
    out[k] = (tarn__whole_arrival){row, (const void *)(uintptr_t)at};
  }
}

tarn_status tarn__sink_entries(const tarn__whole_course *c,
                               const uint64_t *entries, size_t count) {
  tarn__whole_arrival arrivals[WINDOW];
  const tarn__whole_sink *sink = c->order->sink;
  TARN__TRY(check_width(c, c->span.width));
  for (size_t k = 0; k < count; k += WINDOW) {
    size_t some = tarn__lesser(count - k, WINDOW);
    take_entries(c, entries + k, some, arrivals);
    TARN__TRY(sink->take(sink->context, arrivals, some,
                         c->order->rows.dense_dtype, c->span.width));
  }
  return TARN_OK;
}
