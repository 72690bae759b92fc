// Numbers as people read them.
#include "format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const units[] = {"B",   "KiB", "MiB", "GiB",
                                    "TiB", "PiB", "EiB"};

// Cut, not rounded, to hundredths: 1048575 is 1023.99 KiB, never 1024.00.
static void scale(uint64_t bytes, uint64_t *out_whole, uint64_t *out_hundredths,
                  size_t *out_unit) {
  size_t unit = 0;
  while (unit < 6 && bytes >> (10 * (unit + 1)) != 0)
    unit++;
  uint64_t rest = bytes & ((UINT64_C(1) << (10 * unit)) - 1);
  size_t spare = unit == 6 ? 10 : 0;  // bits without which 100 x rest fits
  *out_whole = bytes >> (10 * unit);
  *out_hundredths = (rest >> spare) * 100 >> (10 * unit - spare);
  *out_unit = unit;
}

char *format_bytes(char *out, uint64_t bytes) {
  uint64_t whole, hundredths;
  size_t unit;
  scale(bytes, &whole, &hundredths, &unit);
  if (unit == 0) {
    snprintf(out, FORMAT_SIZE, "%" PRIu64 " B", whole);
  } else {
    snprintf(out, FORMAT_SIZE, "%" PRIu64 ".%02" PRIu64 " %s", whole,
             hundredths, units[unit]);
  }
  return out;
}

char *format_bytes_exact(char *out, uint64_t bytes) {
  char human[FORMAT_SIZE];
  if (bytes < 1024) {
    snprintf(out, FORMAT_SIZE, "%" PRIu64 " byte%s", bytes,
             bytes == 1 ? "" : "s");
  } else {
    snprintf(out, FORMAT_SIZE, "%.16s (%" PRIu64 " bytes)",
             format_bytes(human, bytes), bytes);
  }
  return out;
}

char *format_count(char *out, uint64_t count) {
  char digits[24];
  size_t length = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, count);
  size_t used = 0;
  for (size_t i = 0; i < length; i++) {
    if (i > 0 && (length - i) % 3 == 0) out[used++] = ',';
    out[used++] = digits[i];
  }
  out[used] = '\0';
  return out;
}

char *format_fixed(char *out, double value, int decimals) {
  if (!isfinite(value)) {
    snprintf(out, FORMAT_SIZE, "-");
  } else if (fabs(value) < 1e18) {
    snprintf(out, FORMAT_SIZE, "%.*f", decimals, value);
  } else {
    snprintf(out, FORMAT_SIZE, "%.6g", value);
  }
  return out;
}
