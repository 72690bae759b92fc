#include "options.h"

#include <stdio.h>
#include <string.h>

#include "job/arguments.h"
#include "towers.h"

static const options defaults = {.users = 300000,
                                 .items = 100000,
                                 .batch = 2048,
                                 .steps = 400,
                                 .flush = 50,
                                 .seed = 1,
                                 .path = "recommend"};

// --- values ----------------------------------------------------------------

// Of too few users and items, all pairs or none may be held out.
enum {
  LEAST_ROWS = 100,
  MOST_ROWS = 1 << 28,
  MOST_BATCH = 1 << 18,
  MOST_STEPS = 1 << 24
};

static bool read_path(const char *text, const char **out) {
  *out = text;
  return *text != '\0' && strlen(text) < OPTIONS_PATH_SIZE;
}

// --- options ---------------------------------------------------------------

static argument_answer read_value(void *into, const char *name,
                                  const char *value) {
  options *o = into;
  if (strcmp(name, "--users") == 0)
    return argument_answer_of(
        argument_count(value, LEAST_ROWS, MOST_ROWS, &o->users));
  if (strcmp(name, "--items") == 0)
    return argument_answer_of(
        argument_count(value, LEAST_ROWS, MOST_ROWS, &o->items));
  if (strcmp(name, "--batch") == 0)
    return argument_answer_of(
        argument_count(value, SLICE, MOST_BATCH, &o->batch));
  if (strcmp(name, "--steps") == 0)
    return argument_answer_of(argument_count(value, 1, MOST_STEPS, &o->steps));
  if (strcmp(name, "--flush") == 0)
    return argument_answer_of(argument_count(value, 1, MOST_STEPS, &o->flush));
  if (strcmp(name, "--seed") == 0)
    return argument_answer_of(argument_number(value, 0, UINT32_MAX, &o->seed));
  if (strcmp(name, "--path") == 0)
    return argument_answer_of(read_path(value, &o->path));
  if (strcmp(name, "-o") == 0)
    return argument_answer_of(argument_output(value, &o->json));
  return ARGUMENT_UNKNOWN;
}

static bool read_switch(void *into, const char *name) {
  options *o = into;
  if (strcmp(name, "--new") == 0) return o->anew = true;
  if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0)
    return o->help = true;
  return false;
}

options options_read(int argc, char **argv) {
  options o = defaults;
  static const arguments taken = {read_switch, read_value};
  arguments_read(&taken, &o, argc, argv, o.wrong);
  if (o.wrong[0] == '\0' && o.batch % SLICE != 0) {
    snprintf(o.wrong, sizeof o.wrong,
             "a batch of %zu pairs is no multiple of %d", o.batch, SLICE);
  }
  return o;
}

// --- help ------------------------------------------------------------------

void options_help(void) {
  printf("Usage: recommend [option]...\n\n");
  printf("Learns which items users take, with vectors in a table on disks\n");
  printf("that is four times as large as the memory it is given. A training\n");
  printf("that was killed goes on from its last flush.\n\n");
  printf("  --users N   (%zu)\n", defaults.users);
  printf("  --items N   (%zu)\n", defaults.items);
  printf("  --batch N   pairs of a step, of all ranks together (%zu)\n",
         defaults.batch);
  printf("  --steps N   of the whole training (%zu)\n", defaults.steps);
  printf("  --flush N   steps between two flushes (%zu)\n", defaults.flush);
  printf("  --seed N    of the users, the items and the pairs (%llu)\n",
         (unsigned long long)defaults.seed);
  printf("  --path P    of the table's files, P_part_I_of_N (%s)\n",
         defaults.path);
  printf("  --new       begins anew, whatever is there\n");
  printf("  -o json     one line of JSON at the end; progress on stderr\n");
  printf("  -h          this text\n");
}
