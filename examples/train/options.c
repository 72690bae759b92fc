#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/arguments.h"
#include "loader.h"

static const options defaults = {.rows = 100000,
                                 .batch = 2048,
                                 .width = 256,
                                 .steps = 120,
                                 .seed = 1,
                                 .type = TARN_WHOLE_DISTRIBUTED,
                                 .device = "cpu:0",
                                 .prefetch = true};

// --- values ----------------------------------------------------------------

static bool read_type(const char *text, tarn_whole_type *out) {
  for (tarn_whole_type type = TARN_WHOLE_CONTINUOUS;
       tarn_whole_type_name(type) != NULL; type++) {
    if (strcmp(text, tarn_whole_type_name(type)) != 0) continue;
    *out = type;
    return true;
  }
  return false;
}

static bool read_text(const char *text, const char **out) {
  *out = text;
  return *text != '\0';
}

// --- options ---------------------------------------------------------------

enum {
  MOST_ROWS = 1 << 28,
  MOST_BATCH = 1 << 20,
  MOST_WIDTH = 1 << 14,
  MOST_STEPS = 1 << 24
};

static argument_answer read_value(void *into, const char *name,
                                  const char *value) {
  options *o = into;
  if (strcmp(name, "--rows") == 0)
    return argument_answer_of(argument_count(value, 1, MOST_ROWS, &o->rows));
  if (strcmp(name, "--batch") == 0)
    return argument_answer_of(argument_count(value, 1, MOST_BATCH, &o->batch));
  if (strcmp(name, "--width") == 0)
    return argument_answer_of(argument_count(value, 1, MOST_WIDTH, &o->width));
  if (strcmp(name, "--steps") == 0)
    return argument_answer_of(argument_count(value, 1, MOST_STEPS, &o->steps));
  if (strcmp(name, "--seed") == 0)
    return argument_answer_of(argument_number(value, 0, UINT32_MAX, &o->seed));
  if (strcmp(name, "--type") == 0)
    return argument_answer_of(read_type(value, &o->type));
  if (strcmp(name, "-d") == 0 || strcmp(name, "--device") == 0)
    return argument_answer_of(read_text(value, &o->device));
  if (strcmp(name, "--trace") == 0)
    return argument_answer_of(read_text(value, &o->trace));
  if (strcmp(name, "-o") == 0)
    return argument_answer_of(argument_output(value, &o->json));
  return ARGUMENT_UNKNOWN;
}

static bool read_switch(void *into, const char *name) {
  options *o = into;
  if (strcmp(name, "--no-prefetch") == 0) {
    o->prefetch = false;
    return true;
  }
  if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0)
    return o->help = true;
  return false;
}

// What one value alone does not tell.
static void check(options *o) {
  size_t held_out = HELD_OUT_BATCHES * o->batch;
  if (o->batch % SLICES != 0) {
    snprintf(o->wrong, sizeof o->wrong,
             "a batch of %zu rows is no multiple of %d", o->batch, SLICES);
  } else if (o->rows < 2 * held_out) {
    snprintf(o->wrong, sizeof o->wrong,
             "%zu rows are too few: %zu, %d batches, are held out, and as many "
             "are wanted to learn from",
             o->rows, held_out, HELD_OUT_BATCHES);
  }
}

options options_read(int argc, char **argv) {
  options o = defaults;
  static const arguments taken = {read_switch, read_value};
  arguments_read(&taken, &o, argc, argv, o.wrong);
  if (o.wrong[0] == '\0') check(&o);
  return o;
}

// --- help ------------------------------------------------------------------

void options_help(void) {
  printf("Usage: train [option]...\n\n");
  printf("Learns the classes of nodes from their features, which lie in a\n");
  printf("table over the ranks that `tarn run` or mpirun has started.\n\n");
  printf("  --rows N       rows of the table (%zu)\n", defaults.rows);
  printf("  --batch N      rows of a step, of all ranks together (%zu)\n",
         defaults.batch);
  printf("  --width N      of each hidden layer (%zu)\n", defaults.width);
  printf("  --steps N      steps of training (%zu)\n", defaults.steps);
  printf("  --seed N       of the table, the batches and the weights (%llu)\n",
         (unsigned long long)defaults.seed);
  printf(
      "  --type T       of the table: continuous, chunked, distributed (%s)\n",
      tarn_whole_type_name(defaults.type));
  printf("  -d DEVICE      where the net is (%s); the host computes\n",
         defaults.device);
  printf("  --no-prefetch  a batch is gathered when it is needed\n");
  printf("  --trace FILE   a timeline of the host's pool, for `tarn view`\n");
  printf("  -o json        one line of JSON at the end; progress on stderr\n");
  printf("  -h             this text\n");
}
