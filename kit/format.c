// Numbers as people read them.
#include "format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const units[] = {"B",   "KiB", "MiB", "GiB",
                                    "TiB", "PiB", "EiB"};

// Cut, not rounded: 1048575 is 1023.99 KiB, never 1024.00.
static char *put_bytes(char *out, uint64_t bytes, int decimals) {
  char digits[FORMAT_SIZE / 2];
  size_t unit = 0;
  while (unit < 6 && bytes >> (10 * (unit + 1)) != 0)
    unit++;
  uint64_t mask = (UINT64_C(1) << (10 * unit)) - 1, rest = bytes & mask;
  for (int i = 0; i < decimals; i++) {
    rest *= 10;  // less than 2^64, as rest is less than 2^60
    digits[i] = (char)('0' + (rest >> (10 * unit)));
    rest &= mask;
  }
  if (unit == 0) {
    snprintf(out, FORMAT_SIZE, "%" PRIu64 " B", bytes);
  } else {
    snprintf(out, FORMAT_SIZE, "%" PRIu64 ".%.*s %s", bytes >> (10 * unit),
             decimals, digits, units[unit]);
  }
  return out;
}

enum { FEW = 2, MANY = 9 };  // digits behind the point

char *format_bytes(char *out, uint64_t bytes) {
  return put_bytes(out, bytes, FEW);
}

void format_bytes_apart(char *out_a, uint64_t a, char *out_b, uint64_t b) {
  int decimals = FEW;
  do {
    put_bytes(out_a, a, decimals);
    put_bytes(out_b, b, decimals);
  } while (a != b && strcmp(out_a, out_b) == 0 && decimals++ < MANY);
  if (a == b || strcmp(out_a, out_b) != 0) return;
  snprintf(out_a, FORMAT_SIZE, "%" PRIu64 " bytes", a);
  snprintf(out_b, FORMAT_SIZE, "%" PRIu64 " bytes", b);
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
