// The parts of a command line that several verbs share.
#include "options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_SIZE = 1024 };

int options_next(const tool_verb *verb, int argc, char **argv,
                 const struct option *known) {
  opterr = 0;
  int found = getopt_long(argc, argv, ":ho:", known, NULL);
  if (found == ':') {
    tool_misuse(verb, "option '%s' needs a value", argv[optind - 1]);
    return OPTIONS_WRONG;
  }
  if (found != '?') return found;
  if (optopt > ' ' && optopt < 0x7f && argv[optind - 1][1] != '-') {
    tool_misuse(verb, "no option is named '-%c'", optopt);
  } else {
    tool_misuse(verb, "no option is named '%s'", argv[optind - 1]);
  }
  return OPTIONS_WRONG;
}

bool options_output_parse(const tool_verb *verb, const char *text,
                          options_output *out) {
  static const char *const names[] = {"table", "json", "csv", "md"};
  for (int i = 0; i < 4; i++) {
    if (strcmp(text, names[i]) != 0) continue;
    *out = (options_output)i;
    return true;
  }
  tool_misuse(verb, "'%s' is no output: table, json, csv or md", text);
  return false;
}

bool options_count_parse(const tool_verb *verb, const char *option,
                         const char *text, uint64_t most, uint64_t *out) {
  char *end = NULL;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  bool is_number = *text >= '0' && *text <= '9' && *end == '\0' && errno == 0;
  if (is_number && value >= 1 && value <= most) {
    *out = value;
    return true;
  }
  tool_misuse(verb, "%s wants a whole number from 1 to %llu, not '%s'", option,
              (unsigned long long)most, text);
  return false;
}

// ---------------------------------------------------------------------------
// Names
// ---------------------------------------------------------------------------

bool options_is_known(const char *name, size_t length, tool_name_fn *name_of) {
  for (size_t i = 0; name_of(i) != NULL; i++) {
    if (strncmp(name, name_of(i), length) == 0 && name_of(i)[length] == '\0') {
      return true;
    }
  }
  return false;
}

tool_exit options_unknown(const tool_verb *verb, const char *what,
                          const char *name, tool_name_fn *name_of) {
  char known[NAMES_SIZE];
  const char *nearest = tool_nearest(name, name_of);
  tool_join(name_of, known, sizeof known);
  if (nearest == NULL) {
    return tool_misuse(verb, "no %s is named '%s'; there are: %s", what, name,
                       known);
  }
  return tool_misuse(verb,
                     "no %s is named '%s'; did you mean '%s'? There are: %s",
                     what, name, nearest, known);
}

// ---------------------------------------------------------------------------
// Plug-ins
// ---------------------------------------------------------------------------

static tool_exit load_plugin(const tool_verb *verb, const char *path) {
  char *absolute = NULL;
  if (strchr(path, '/') != NULL) {
    absolute = realpath(path, NULL);
    if (absolute == NULL) {
      return tool_fail(verb, "%s: %s", path, strerror(errno));
    }
  }
  tarn_status status = tarn_plugin_load(absolute ? absolute : path);
  free(absolute);
  return status == TARN_OK ? TOOL_DONE
                           : tool_fail(verb, "%s", tarn_last_error());
}

tool_exit options_plugins_load(const tool_verb *verb,
                               const options_list *paths) {
  tool_exit status = TOOL_DONE;
  for (size_t i = 0; i < paths->count && status == TOOL_DONE; i++) {
    status = load_plugin(verb, paths->items[i]);
  }
  return status;
}

// ---------------------------------------------------------------------------
// Lists
// ---------------------------------------------------------------------------

void options_list_add(options_list *list, const char *text, size_t length) {
  char **items = tool_array(list->count + 1, sizeof *items);
  for (size_t i = 0; i < list->count; i++)
    items[i] = list->items[i];
  items[list->count] = tool_array(length + 1, 1);
  memcpy(items[list->count], text, length);
  free(list->items);
  list->items = items;
  list->count++;
}

void options_list_free(options_list *list) {
  for (size_t i = 0; i < list->count; i++)
    free(list->items[i]);
  free(list->items);
  *list = (options_list){0};
}

// Whether key=value stands at |text|, and not a pool with options.
static bool is_option(const char *text) {
  return text[strcspn(text, ",:=")] == '=';
}

void options_pools_split(const char *text, options_list *out_pools) {
  const char *begin = text;
  for (;;) {
    const char *end = begin + strcspn(begin, ",");
    while (*end == ',' && is_option(end + 1)) {
      end += 1 + strcspn(end + 1, ",");
    }
    options_list_add(out_pools, begin, (size_t)(end - begin));
    if (*end == '\0') return;
    begin = end + 1;
  }
}
