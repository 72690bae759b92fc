// format.h - numbers as people read them.
#ifndef TARN_KIT_FORMAT_H_
#define TARN_KIT_FORMAT_H_

#include <stddef.h>
#include <stdint.h>

enum { FORMAT_SIZE = 64 };  // bytes that every text here fits in

// Each writes into |out|, FORMAT_SIZE bytes, and returns it.

// "0 B", "1023 B", "1.50 GiB": three or four digits, never rounded up into
// the next unit.
char *format_bytes(char *out, uint64_t bytes);

// Two sizes as above, with more digits where they would read the same though
// they are not: "6.003 GiB" and "6.000 GiB".
void format_bytes_apart(char *out_a, uint64_t a, char *out_b, uint64_t b);

// "1.50 MiB (1572864 bytes)"; "17 bytes" where the first would say no more.
char *format_bytes_exact(char *out, uint64_t bytes);

// "1,234,567".
char *format_count(char *out, uint64_t count);

// With |decimals| digits behind the point; "-" for NaN and infinities.
char *format_fixed(char *out, double value, int decimals);

#endif  // TARN_KIT_FORMAT_H_
