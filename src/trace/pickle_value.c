// Reads the tree that the pickle machine built.
//
// Invariant: a scalar's byte is that of an opcode which the machine has found
// complete, so decoding it again needs no check.
#include "trace/pickle.h"

#include <string.h>

// A little-endian number in two's complement, of at most 9 bytes: a ninth may
// only extend the sign.
static bool decode_signed(const unsigned char *bytes, size_t size,
                          bool *out_negative, uint64_t *out_magnitude) {
  size_t low = size < 8 ? size : 8;
  bool negative = size != 0 && (bytes[size - 1] & 0x80) != 0;
  uint64_t number = tarn__pickle_little(bytes, low);
  if (size > low && bytes[low] != (negative ? 0xff : 0)) return false;
  if (negative && low < 8) number |= UINT64_MAX << (8 * low);
  if (negative && number == 0) return false;  // minus 2 to the 64
  *out_negative = negative;
  *out_magnitude = negative ? 0 - number : number;
  return true;
}

bool tarn__pickle_int(const tarn__trace_pickle *pickle,
                      tarn__trace_pickle_value value, bool *out_negative,
                      uint64_t *out_magnitude) {
  size_t from = 0;
  size_t size = 0;
  const unsigned char *code = pickle->bytes + value.at;
  if (*code == 'K' || *code == 'M') {  // the two that have no sign
    *out_negative = false;
    *out_magnitude = tarn__pickle_little(code + 1, *code == 'K' ? 1 : 2);
    return true;
  }
  tarn__pickle_argument(pickle, value.at, &from, &size);
  if (size > TARN__PICKLE_INT_MOST) return false;
  return decode_signed(pickle->bytes + from, size, out_negative, out_magnitude);
}

void tarn__pickle_text(const tarn__trace_pickle *pickle,
                       tarn__trace_pickle_value value, const char **out_bytes,
                       size_t *out_size) {
  size_t from = 0;
  tarn__pickle_argument(pickle, value.at, &from, out_size);
  *out_bytes = (const char *)pickle->bytes + from;
}

static bool is_text(const tarn__trace_pickle *pickle,
                    tarn__trace_pickle_value value, const char *text) {
  const char *bytes = NULL;
  size_t size = 0;
  if (value.type != TARN__TEXT) return false;
  tarn__pickle_text(pickle, value, &bytes, &size);
  return size == strlen(text) && memcmp(bytes, text, size) == 0;
}

static size_t search(const tarn__trace_pickle *pickle,
                     tarn__trace_pickle_value value, const char *table,
                     size_t row_size, size_t rows) {
  size_t row = 0;
  for (; row < rows; row++) {
    const char *text = NULL;
    memcpy(&text, table + row * row_size, sizeof text);
    if (is_text(pickle, value, text)) break;
  }
  return row;
}

size_t tarn__pickle_find(const tarn__trace_pickle *pickle,
                         tarn__trace_pickle_value value, const void *table,
                         size_t row_size, size_t rows) {
  if (value.type != TARN__TEXT) return rows;
  tarn__trace_pickle_known *known =
      (tarn__trace_pickle_known *)pickle->known.items +
      value.at % TARN__PICKLE_KNOWN;
  if (known->at != value.at || known->table != table) {
    *known = (tarn__trace_pickle_known){
        .table = table,
        .at = value.at,
        .row = (uint32_t)search(pickle, value, table, row_size, rows)};
  }
  return known->row;
}
