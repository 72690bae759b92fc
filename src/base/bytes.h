// bytes.h - sizes in texts for people.
#ifndef TARN_BASE_BYTES_H_
#define TARN_BASE_BYTES_H_

#include <stddef.h>

enum { TARN__BYTES_TEXT = 56 };

// "64.00 MiB", or below one KiB "100 bytes". Cut to two digits, not rounded, so
// that no size is shown as more than it is. Returns |out|.
const char *tarn__bytes_short(size_t bytes, char out[TARN__BYTES_TEXT]);

// The same with all digits: "64.00 MiB (67108864 bytes)".
const char *tarn__bytes_text(size_t bytes, char out[TARN__BYTES_TEXT]);

#endif  // TARN_BASE_BYTES_H_
