// The cells of a figure, the same for all benchmarks.
#include "figure.h"

#include <math.h>

// Whole numbers are counts or bytes.
static int decimals_of(double value) {
  return value == floor(value) ? 0 : 3;
}

void bench_figure_write(sheet *s, const bench_figure *figure,
                        const char *device, double value, const char *failed) {
  sheet_text(s, "figure", "name", figure->name);
  if (device != NULL) sheet_text(s, "device", "device", device);
  sheet_number(s, "value", "value", value, decimals_of(value));
  sheet_text(s, "unit", "unit", figure->unit);
  sheet_goal(s, "goal", value, figure->bound, figure->goal);
  sheet_only(s, SHEET_PEOPLE | SHEET_CSV);
  sheet_text(s, "what", "what", figure->what);
  sheet_only(s, SHEET_ALL);
  if (failed != NULL) sheet_failed(s, "failed", failed);
  sheet_row_end(s);
}
