// bytes.h - sizes in texts, as people write and read them.
#ifndef TARN_BASE_BYTES_H_
#define TARN_BASE_BYTES_H_

#include <stdbool.h>
#include <stddef.h>

#include "tarn/base.h"

enum { TARN__BYTES_TEXT = 56 };

// "64.00 MiB", or below one KiB "100 bytes". Cut to two digits, not rounded, so
// that no size is shown as more than it is. Returns |out|.
const char *tarn__bytes_short(size_t bytes, char out[TARN__BYTES_TEXT]);

// The same with all digits: "64.00 MiB (67108864 bytes)".
const char *tarn__bytes_text(size_t bytes, char out[TARN__BYTES_TEXT]);

// Parses digits and at most one of K, M, G, T. False: |text| is not that, or
// too large.
TARN_MUST_CHECK bool tarn__bytes_parse(const char *text, size_t *out_bytes);

// Parses digits and a percent sign, up to 1000%. False: |text| is not that.
TARN_MUST_CHECK bool tarn__percent_parse(const char *text, size_t *out_percent);

#endif  // TARN_BASE_BYTES_H_
