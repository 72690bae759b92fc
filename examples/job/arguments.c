#include "arguments.h"

#include <stdio.h>
#include <string.h>

bool argument_number(const char *text, uint64_t least, uint64_t most,
                     uint64_t *out) {
  uint64_t number = 0;
  if (*text == '\0') return false;
  for (; *text >= '0' && *text <= '9'; text++) {
    number = number * 10 + (uint64_t)(*text - '0');
    if (number > most) return false;
  }
  *out = number;
  return *text == '\0' && number >= least;
}

bool argument_count(const char *text, size_t least, size_t most, size_t *out) {
  uint64_t number = 0;
  if (!argument_number(text, least, most, &number)) return false;
  *out = (size_t)number;
  return true;
}

bool argument_output(const char *text, bool *out_json) {
  *out_json = strcmp(text, "json") == 0;
  return *out_json || strcmp(text, "text") == 0;
}

static void complain(char *wrong, const char *what, const char *argument) {
  snprintf(wrong, ARGUMENTS_WRONG_SIZE, "%s '%.80s'; -h tells what there is",
           what, argument);
}

void arguments_read(const arguments *of, void *options, int argc, char **argv,
                    char *out_wrong) {
  out_wrong[0] = '\0';
  for (int i = 1; i < argc && out_wrong[0] == '\0'; i++) {
    if (of->read_switch(options, argv[i])) continue;
    bool has_value = i + 1 < argc;
    argument_answer is =
        of->read_value(options, argv[i], has_value ? argv[i + 1] : "");
    if (is == ARGUMENT_UNKNOWN) {
      complain(out_wrong, "no option", argv[i]);
    } else if (!has_value) {
      complain(out_wrong, "a value is wanted by", argv[i]);
    } else if (is == ARGUMENT_WRONG) {
      complain(out_wrong, "a wrong value of", argv[i]);
    }
    i++;
  }
}
