// The command line, by hand: a name, and for most a value.
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

// A number up to |most|, with nothing behind it.
static bool read_number(const char *text, uint64_t most, uint64_t *out) {
  uint64_t number = 0;
  if (*text == '\0') return false;
  for (; *text >= '0' && *text <= '9'; text++) {
    number = number * 10 + (uint64_t)(*text - '0');
    if (number > most) return false;
  }
  *out = number;
  return *text == '\0';
}

static bool read_count(const char *text, size_t most, size_t *out) {
  uint64_t number;
  if (!read_number(text, most, &number) || number == 0) return false;
  *out = (size_t)number;
  return true;
}

static bool read_type(const char *text, tarn_whole_type *out) {
  for (tarn_whole_type type = TARN_WHOLE_CONTINUOUS;
       tarn_whole_type_name(type) != NULL; type++) {
    if (strcmp(text, tarn_whole_type_name(type)) != 0) continue;
    *out = type;
    return true;
  }
  return false;
}

static bool read_output(const char *text, bool *out_json) {
  *out_json = strcmp(text, "json") == 0;
  return *out_json || strcmp(text, "text") == 0;
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

typedef enum answer { READ, WRONG, UNKNOWN } answer;

static answer answer_of(bool good) {
  return good ? READ : WRONG;
}

static answer read_value(options *o, const char *name, const char *value) {
  if (strcmp(name, "--rows") == 0)
    return answer_of(read_count(value, MOST_ROWS, &o->rows));
  if (strcmp(name, "--batch") == 0)
    return answer_of(read_count(value, MOST_BATCH, &o->batch));
  if (strcmp(name, "--width") == 0)
    return answer_of(read_count(value, MOST_WIDTH, &o->width));
  if (strcmp(name, "--steps") == 0)
    return answer_of(read_count(value, MOST_STEPS, &o->steps));
  if (strcmp(name, "--seed") == 0)
    return answer_of(read_number(value, UINT32_MAX, &o->seed));
  if (strcmp(name, "--type") == 0) return answer_of(read_type(value, &o->type));
  if (strcmp(name, "-d") == 0 || strcmp(name, "--device") == 0)
    return answer_of(read_text(value, &o->device));
  if (strcmp(name, "--trace") == 0)
    return answer_of(read_text(value, &o->trace));
  if (strcmp(name, "-o") == 0) return answer_of(read_output(value, &o->json));
  return UNKNOWN;
}

static bool read_switch(options *o, const char *name) {
  if (strcmp(name, "--no-prefetch") == 0) {
    o->prefetch = false;
    return true;
  }
  if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0)
    return o->help = true;
  return false;
}

static void complain(options *o, const char *what, const char *argument) {
  snprintf(o->wrong, sizeof o->wrong, "%s '%.80s'; -h tells what there is",
           what, argument);
}

static void read_all(options *o, int argc, char **argv) {
  for (int i = 1; i < argc && o->wrong[0] == '\0'; i++) {
    if (read_switch(o, argv[i])) continue;
    bool has_value = i + 1 < argc;
    answer is = read_value(o, argv[i], has_value ? argv[i + 1] : "");
    if (is == UNKNOWN) {
      complain(o, "no option", argv[i]);
    } else if (!has_value) {
      complain(o, "a value is wanted by", argv[i]);
    } else if (is == WRONG) {
      complain(o, "a wrong value of", argv[i]);
    }
    i++;
  }
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
  read_all(&o, argc, argv);
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
