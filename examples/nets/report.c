// Reports, on standard output.
#include "report.h"

#include <math.h>
#include <stdio.h>

static double mib(double bytes) {
  return bytes / 1048576;
}

static double mib_of(size_t bytes) {
  return mib((double)bytes);
}

// --- for people ------------------------------------------------------------

static void print_kinds(const tarn_model_needs *m) {
  static const tarn_tensor_kind kinds[] = {TARN_PARAM, TARN_STATE, TARN_OUTPUT,
                                           TARN_CACHE};
  printf("%-10s %10s %10s   MiB\n", "", "data", "diff");
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    printf("%-10s %10.2f %10.2f\n", tarn_tensor_kind_name(kinds[i]),
           mib_of(m->kinds[kinds[i]]), mib_of(m->diffs[kinds[i]]));
  printf("%-10s %10.2f\n", "  of it fed", mib_of(m->fed));
}

void net_report_memory(const net_report *report) {
  const tarn_model_needs *m = &report->memory;
  printf("%s at batch %zu on %s, to %s\n", report->net, report->options->batch,
         report->options->device, report->options->infer ? "infer" : "train");
  print_kinds(m);
  printf(
      "outputs, diffs and caches: naive %.2f, planned %.2f, bound %.2f (%s)"
      "\n",
      mib_of(m->naive), mib_of(m->planned), mib_of(m->bound),
      tarn_plan_answer_name(m->answer));
  printf("%zu of them in the place of others; most is needed by %s %s\n",
         m->in_place, report->peak_step,
         m->peak_pass == TARN_FORWARD ? "forward" : "backward");
  printf("all of it: %.2f, ", mib_of(m->total));
  if (m->free == 0) {
    printf("and how much is free is not known\n");
  } else {
    printf("and %.2f are free: it %s\n", mib_of(m->free),
           m->fits ? "fits" : "does not fit");
  }
}

void net_report_result(const net_report *report) {
  const net_result *r = &report->result;
  printf("loss of the first batch: %.4f, and %.4f after %zu steps\n",
         r->loss_first, r->loss, report->options->steps);
  printf("right about %.1f%% of held-out images\n", 100 * r->accuracy);
  printf(
      "%.3f steps/s, %g allocations in each; peak of the pools %.2f MiB; "
      "%g bytes left\n",
      r->steps_per_s, r->allocations_per_step, mib(report->peak_bytes),
      report->left_bytes);
}

// --- for programs ----------------------------------------------------------

// What was not measured is null.
static void print_number(const char *key, double value, int decimals) {
  if (isnan(value)) {
    printf(",\"%s\":null", key);
  } else {
    printf(",\"%s\":%.*f", key, decimals, value);
  }
}

// All digits, so that two runs can be told to be the same.
static void print_loss(const char *key, double value) {
  if (isfinite(value)) {
    printf(",\"%s\":%.17g", key, value);
  } else {
    printf(",\"%s\":null", key);
  }
}

static void print_mib(const char *key, double bytes) {
  print_number(key, mib(bytes), 3);
}

// Control bytes, quotes and backslashes as JSON wants them.
static void print_text(const char *text) {
  putchar('"');
  for (; *text != '\0'; text++) {
    unsigned char byte = (unsigned char)*text;
    if (byte < 0x20 || byte == '"' || byte == '\\' || byte >= 0x7f) {
      printf("\\u%04x", byte);
    } else {
      putchar(byte);
    }
  }
  putchar('"');
}

void net_report_json(const net_report *report) {
  const tarn_model_needs *m = &report->memory;
  const net_result *r = &report->result;
  printf("{\"net\":\"%s\",\"device\":", report->net);
  print_text(report->options->device);
  print_number("batch", (double)report->options->batch, 0);
  print_number("steps", (double)report->options->steps, 0);
  print_number("steps_per_s", r->steps_per_s, 3);
  print_loss("loss_first", r->loss_first);
  print_loss("loss", r->loss);
  print_number("accuracy", r->accuracy, 4);
  print_mib("params_mib", (double)m->kinds[TARN_PARAM]);
  print_mib("naive_mib", (double)m->naive);
  print_mib("planned_mib", (double)m->planned);
  print_mib("bound_mib", (double)m->bound);
  print_mib("peak_mib", report->peak_bytes);
  print_number("allocations_per_step", r->allocations_per_step, 3);
  print_number("left_bytes", report->left_bytes, 0);
  printf("}\n");
}
