// lines.h - a file as lines, and the numbers that stand in them.
//
// Logs are written while programs run, so the last line may be cut at any byte:
// one without a newline is passed over, whatever stands in it, unless asked
// for.
#ifndef TARN_BASE_LINES_H_
#define TARN_BASE_LINES_H_

#include "tarn/base.h"

typedef struct tarn__lines {
  const char *bytes;
  size_t size;
  size_t at;
  size_t number;    // of the line read last, from 1 on; blank ones count
  bool takes_last;  // also without a newline; set it after init
  bool has_begun;   // a line was there that is not blank
  bool unfinished;  // set when the last line turns out to have no newline
} tarn__lines;

// Byte order marks before the first line that is not blank are passed over:
// whoever writes the lines again may leave out what comes before.
void tarn__lines_init(tarn__lines *lines, const void *bytes, size_t size);

// The next line that is not blank, without its newline and a carriage return
// before that; false at the end.
TARN_MUST_CHECK bool tarn__lines_next(tarn__lines *lines, const char **out_text,
                                      size_t *out_size);

// A number to |base|, at most 16, of digits only, at least one; false if it is
// not that, or beyond 64 bits.
TARN_MUST_CHECK bool tarn__text_digits(const char *text, size_t size,
                                       uint64_t base, uint64_t *out_number);

// A number of digits only, at least one; false if it is not that, or beyond 64
// bits.
TARN_MUST_CHECK bool tarn__text_decimal(const char *text, size_t size,
                                        uint64_t *out_number);

// An address as C libraries print them: digits of base 16, with or without 0x
// before them, or "(nil)" for 0.
TARN_MUST_CHECK bool tarn__text_address(const char *text, size_t size,
                                        uint64_t *out_address);

// Whether |size| bytes of |text| are |literal|.
bool tarn__text_is(const char *text, size_t size, const char *literal);

#endif  // TARN_BASE_LINES_H_
