// The command line, by hand: a name, and for most a value.
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 65536 };  // of a batch, a width, and of steps

// --- values ----------------------------------------------------------------

// A number from 1 to MOST up to |*text|'s next |end|.
static bool read_number(const char **text, size_t *out_number) {
  size_t number = 0;
  const char *at = *text;
  while (*at >= '0' && *at <= '9' && number <= MOST)
    number = number * 10 + (size_t)(*at++ - '0');
  if (at == *text || number < 1 || number > MOST) return false;
  *out_number = number;
  *text = at;
  return true;
}

static bool read_count(const char *text, size_t *out_number) {
  return read_number(&text, out_number) && *text == '\0';
}

static bool read_hidden(net_options *options, const char *text) {
  size_t count = 0;
  size_t widths[NET_MOST_HIDDEN];
  if (options->hidden_count == 0) return false;
  do {
    if (count == NET_MOST_HIDDEN || !read_number(&text, &widths[count++]))
      return false;
  } while (*text++ == ',');
  if (text[-1] != '\0') return false;
  memcpy(options->hidden, widths, count * sizeof *widths);
  options->hidden_count = count;
  return true;
}

static bool read_text(const char *text, const char **out_text) {
  *out_text = text;
  return *text != '\0';
}

// --- options ---------------------------------------------------------------

static bool read_switch(net_options *options, const char *name) {
  if (strcmp(name, "--infer") == 0) return options->infer = true;
  if (strcmp(name, "--dry-run") == 0) return options->dry_run = true;
  if (strcmp(name, "--queued") == 0) return options->queued = true;
  if (strcmp(name, "--help") == 0) return options->help = true;
  return false;
}

typedef enum answer { READ, WRONG, UNKNOWN } answer;

static answer read_value(net_options *options, const char *name,
                         const char *value) {
  bool good = false;
  if (strcmp(name, "--batch") == 0) {
    good = read_count(value, &options->batch);
  } else if (strcmp(name, "--steps") == 0) {
    good = read_count(value, &options->steps);
  } else if (strcmp(name, "--hidden") == 0) {
    good = read_hidden(options, value);
  } else if (strcmp(name, "--device") == 0) {
    good = read_text(value, &options->device);
  } else if (strcmp(name, "--svg") == 0) {
    good = read_text(value, &options->svg);
  } else if (strcmp(name, "--load") == 0) {
    good = read_text(value, &options->load);
  } else if (strcmp(name, "--save") == 0) {
    good = read_text(value, &options->save);
  } else if (strcmp(name, "-o") == 0) {
    good = options->json = strcmp(value, "json") == 0;
  } else {
    return UNKNOWN;
  }
  return good ? READ : WRONG;
}

static bool complain(const char *program, const char *what, const char *arg) {
  fprintf(stderr, "%s: %s '%s'; --help tells what there is\n", program, what,
          arg);
  return false;
}

bool net_options_read(net_options *options, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    if (read_switch(options, argv[i])) continue;
    bool has_value = i + 1 < argc;
    answer is = read_value(options, argv[i], has_value ? argv[i + 1] : "");
    if (is == UNKNOWN) return complain(argv[0], "no option", argv[i]);
    if (!has_value) return complain(argv[0], "a value is wanted by", argv[i]);
    if (is == WRONG) return complain(argv[0], "a wrong value of", argv[i]);
    i++;
  }
  return true;
}

// --- help ------------------------------------------------------------------

void net_options_help(const char *name, const net_options *defaults) {
  printf("Usage: %s [options]\n\n", name);
  printf("  --batch N      images in a step (%zu)\n", defaults->batch);
  printf("  --steps N      steps of training (%zu)\n", defaults->steps);
  if (defaults->hidden_count != 0)
    printf("  --hidden A,B   widths of the hidden layers (%zu,%zu)\n",
           defaults->hidden[0], defaults->hidden[1]);
  printf("  --device D     where all of it is (%s)\n", defaults->device);
  printf(
      "  --queued       copies to a device go on beside the layers, which\n");
  printf("                 takes memory in each step\n");
  printf("  --infer        forward only, with the parameters at the start\n");
  printf("  --dry-run      the plan, without the memory\n");
  printf("  --load FILE    start with parameters of a safetensors file\n");
  printf("  --save FILE    write them to one at the end\n");
  printf("  --svg FILE     a picture of the plan\n");
  printf("  -o json        one line of JSON, last on standard output\n");
}
