// The cells of a figure, the same for all benchmarks; the process that measures
// those of a device; and the machine, in one line, as the heading of a report.
#include "figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

// ---------------------------------------------------------------------------
// Figures
// ---------------------------------------------------------------------------

// Whole numbers are counts or bytes.
static int decimals_of(double value) {
  return value == floor(value) ? 0 : 3;
}

void bench_figure_cells(sheet *s, const bench_figure *figure,
                        const char *device, double value) {
  sheet_text(s, "figure", "name", figure->name);
  if (device != NULL) sheet_text(s, "device", "device", device);
  sheet_number(s, "value", "value", value, decimals_of(value));
  sheet_text(s, "unit", "unit", figure->unit);
  sheet_goal(s, "goal", value, figure->bound, figure->goal);
  sheet_only(s, SHEET_PEOPLE | SHEET_CSV);
  sheet_text(s, "what", "what", figure->what);
  sheet_only(s, SHEET_ALL);
}

void bench_figure_write(sheet *s, const bench_figure *figure,
                        const char *device, double value, const char *failed) {
  bench_figure_cells(s, figure, device, value);
  if (failed != NULL) sheet_failed(s, "failed", failed);
  sheet_row_end(s);
}

bool bench_figures_run(child_work *work, void *bench, bench_figures *out,
                       char *why) {
  if (!child_run(work, bench, (child_limits){0}, out, sizeof *out, why))
    return false;
  snprintf(why, CHILD_TEXT_SIZE, "%s", out->why);
  return *why == '\0';
}

// ---------------------------------------------------------------------------
// The machine
// ---------------------------------------------------------------------------

enum { MACHINE_SIZE = 256, LINE_SIZE = 256, MODEL_SIZE = 96 };

#if !defined(__OPTIMIZE__)
#define BUILD ", NOT OPTIMISED"
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BUILD ", WITH SANITIZERS"
#else
#define BUILD ""
#endif

// The value of "model name	: Intel(R) ...".
static bool model_in(const char *line, char *out) {
  const char *colon = strchr(line, ':');
  if (strncmp(line, "model name", 10) != 0 || colon == NULL) return false;
  const char *value = colon + 1 + strspn(colon + 1, " \t");
  snprintf(out, MODEL_SIZE, "%.*s", (int)strcspn(value, "\n"), value);
  return *out != '\0';
}

// Not every processor has a line for its name; then |out| stays as it is.
static void read_model(char *out) {
  char line[LINE_SIZE];
  FILE *in = fopen("/proc/cpuinfo", "r");
  if (in == NULL) return;
  while (fgets(line, sizeof line, in) != NULL) {
    if (model_in(line, out)) break;
  }
  fclose(in);
}

// The kernel's version without what a distribution or a host adds to it.
static const char *version_of(char *release) {
  release[strspn(release, "0123456789.")] = '\0';
  return release;
}

// "Intel(R) Xeon(R) Processor, 2 cores, Linux 6.1.0".
static const char *describe(void) {
  static char text[MACHINE_SIZE];
  struct utsname system = {0};
  char model[MODEL_SIZE];
  (void)uname(&system);
  snprintf(model, sizeof model, "%.64s", system.machine);
  read_model(model);
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  snprintf(text, sizeof text, "%s, %ld core%s, %.32s %.64s" BUILD, model, cores,
           cores == 1 ? "" : "s", system.sysname, version_of(system.release));
  return text;
}

sheet *bench_sheet_begin(options_output output) {
  return sheet_begin(output, describe());
}
