// utf8.h - texts of traces, which are any bytes, for formats that want UTF-8.
#ifndef TARN_TRACE_UTF8_H_
#define TARN_TRACE_UTF8_H_

#include <stddef.h>

// U+FFFD, which stands for each byte that is no part of a character.
#define TARN__UTF8_UNKNOWN "\xef\xbf\xbd"

// The bytes of the character that the zero-ended |text| begins with, 1 to 4; 0
// if it begins with none: a stray byte, an overlong form, half of a pair.
size_t tarn__utf8_character(const char *text);

// How long |text| is once each stray byte is replaced.
size_t tarn__utf8_size(const char *text);

#endif  // TARN_TRACE_UTF8_H_
