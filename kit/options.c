// The parts of a command line that several verbs share.
#include "options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_SIZE = 1024 };

// ---------------------------------------------------------------------------
// Finding them
// ---------------------------------------------------------------------------

// What getopt_long answers, with a '-' in front of the short options.
enum { END = -1, WRONG = '?', NO_VALUE = ':', WORD = 1 };

// How many bytes of |word|, "--name=value", are "name".
static size_t name_length(const char *word) {
  return strcspn(word + 2, "=");
}

// The options that |word| begins, joined into |out|; all that is known of one
// is its name. Returns how many there are, and the last of them.
static size_t find_begun(const struct option *known, const char *word,
                         const struct option **out_last, char *out) {
  size_t count = 0;
  out[0] = '\0';
  for (; known->name != NULL; known++) {
    if (strncmp(known->name, word + 2, name_length(word)) != 0) continue;
    tool_append(out, NAMES_SIZE, ", --", known->name);
    *out_last = known;
    count++;
  }
  return count;
}

static void refuse_long(const tool_verb *verb, const struct option *known,
                        const char *word) {
  char names[NAMES_SIZE];
  const struct option *last = NULL;
  size_t count = find_begun(known, word, &last, names);
  if (count == 0) {
    tool_misuse(verb, "no option is named '%s'", word);
  } else if (count > 1) {
    tool_misuse(verb, "'%s' may be --%s", word, names);
  } else {
    tool_misuse(verb, "'--%s' takes no value", last->name);
  }
}

// For a long option, getopt sets optopt to 0 if it is unknown, and to its |val|
// from |known| if it takes no value but has one.
static bool is_long(const char *word, const struct option *known) {
  char names[NAMES_SIZE];
  const struct option *last = NULL;
  if (strncmp(word, "--", 2) != 0) return false;
  if (optopt == 0) return true;
  return strchr(word, '=') != NULL &&
         find_begun(known, word, &last, names) == 1 &&
         last->has_arg == no_argument && last->val == optopt;
}

static void refuse(const tool_verb *verb, const struct option *known,
                   const char *word) {
  if (is_long(word, known)) {
    refuse_long(verb, known, word);
  } else {
    tool_misuse(verb, "no option is named '-%c'", optopt);
  }
}

// ---------------------------------------------------------------------------
// A command line
// ---------------------------------------------------------------------------

typedef enum outcome {
  OUTCOME_RUN,
  OUTCOME_HELP,    // the help is wanted, and nothing else
  OUTCOME_MISUSE,  // a message has been written
} outcome;

// What getopt_long answers for an entry: FIRST and its place.
enum { FIRST = 256, ENTRIES_MOST = 30 };

typedef struct line {
  const tool_verb *verb;
  char *command;
  struct option known[ENTRIES_MOST + 2];
  char brief[ENTRIES_MOST];
} line;

// The '-' has the words come in their order among the options, whatever
// POSIXLY_CORRECT says; the '+' ends the options at the first word.
static void make_known(line *l) {
  size_t used = 0;
  int count = 0;
  used += (size_t)snprintf(l->brief, sizeof l->brief, "%c:h",
                           l->verb->has_program ? '+' : '-');
  for (const options_entry *e = l->verb->entries; e->name != NULL; e++) {
    assert(count < ENTRIES_MOST && used + 2 < sizeof l->brief);
    int argument = e->kind == OPTIONS_FLAG ? no_argument : required_argument;
    l->known[count] = (struct option){e->name, argument, NULL, FIRST + count};
    count++;
    if (e->letter == 0) continue;
    l->brief[used++] = e->letter;
    if (argument == required_argument) l->brief[used++] = ':';
    l->brief[used] = '\0';
  }
  l->known[count] = (struct option){"help", no_argument, NULL, 'h'};
}

static const options_entry *entry_of(const line *l, int option) {
  const options_entry *e = l->verb->entries;
  if (option >= FIRST) return &e[option - FIRST];
  while (e->letter != option)
    e++;
  return e;
}

static bool take_trace_device(const tool_verb *verb, const char *name,
                              const char *text, tarn_trace_options *out) {
  uint64_t device = 0;
  out->choose_device =
      options_number_parse(verb, name, text, 0, UINT32_MAX, &device);
  out->device = (uint32_t)device;
  return out->choose_device;
}

static bool take_value(const line *l, const options_entry *e,
                       const char *text) {
  const tool_verb *verb = l->verb;
  void *out = l->command + e->offset;
  char name[64];
  snprintf(name, sizeof name, "--%s", e->name);
  switch (e->kind) {
    case OPTIONS_FLAG:
      return *(bool *)out = true;
    case OPTIONS_TEXT:
      *(const char **)out = text;
      return true;
    case OPTIONS_LIST:
      options_list_add(out, text, strlen(text));
      return true;
    case OPTIONS_NAMES:
      options_names_split(text, out);
      return true;
    case OPTIONS_POOLS:
      options_pools_split(text, out);
      return true;
    case OPTIONS_NUMBER:
      return options_number_parse(verb, name, text, e->least, e->most, out);
    case OPTIONS_BYTES:
      return options_bytes_parse(verb, name, text, out);
    case OPTIONS_OUTPUT:
      return options_output_parse(verb, text, out);
    case OPTIONS_TRACE_DEVICE:
      return take_trace_device(verb, name, text, out);
    case OPTIONS_CALL:
      return e->call(l->command, text);
  }
  return false;
}

static options_list *list_at(const line *l, size_t offset) {
  return (options_list *)(void *)(l->command + offset);
}

static bool take_word(const line *l, const char *word) {
  if (l->verb->words != 0) {
    options_list_add(list_at(l, l->verb->words), word, strlen(word));
    return true;
  }
  tool_misuse(l->verb, "'%s' is unexpected", word);
  return false;
}

static bool take_option(const line *l, int option, char **argv) {
  switch (option) {
    case WORD:
      return take_word(l, optarg);
    case NO_VALUE:
      tool_misuse(l->verb, "option '%s' needs a value", argv[optind - 1]);
      return false;
    case WRONG:
      refuse(l->verb, l->known, argv[optind - 1]);
      return false;
    default:
      return take_value(l, entry_of(l, option), optarg);
  }
}

static outcome parse(const line *l, int argc, char **argv) {
  int option;
  opterr = 0;
  while ((option = getopt_long(argc, argv, l->brief, l->known, NULL)) != END) {
    if (option == 'h') return OUTCOME_HELP;
    if (!take_option(l, option, argv)) return OUTCOME_MISUSE;
  }
  for (; optind < argc; optind++) {
    if (!take_word(l, argv[optind])) return OUTCOME_MISUSE;
  }
  return OUTCOME_RUN;
}

static tool_exit act(const line *l, outcome found) {
  if (found == OUTCOME_MISUSE) return TOOL_MISUSE;
  if (found == OUTCOME_RUN) return l->verb->work(l->command);
  fputs(l->verb->help, tool_out());
  return TOOL_DONE;
}

static bool is_list(options_kind kind) {
  return kind == OPTIONS_LIST || kind == OPTIONS_NAMES || kind == OPTIONS_POOLS;
}

tool_exit options_run(const tool_verb *verb, int argc, char **argv) {
  line l = {.verb = verb, .command = tool_array(1, verb->size)};
  if (verb->defaults != NULL) memcpy(l.command, verb->defaults, verb->size);
  memcpy(l.command, &verb, sizeof verb);
  make_known(&l);
  tool_exit status = act(&l, parse(&l, argc, argv));
  if (verb->end != NULL) verb->end(l.command);
  if (verb->words != 0) options_list_free(list_at(&l, verb->words));
  for (const options_entry *e = verb->entries; e->name != NULL; e++) {
    if (is_list(e->kind)) options_list_free(list_at(&l, e->offset));
  }
  free(l.command);
  return status;
}

tool_exit options_verb_run(const tool_verb *verb, int argc, char **argv) {
  return (verb->run != NULL ? verb->run : options_run)(verb, argc, argv);
}

// ---------------------------------------------------------------------------
// Values
// ---------------------------------------------------------------------------

bool options_output_parse(const tool_verb *verb, const char *text,
                          options_output *out) {
  static const char *const names[] = {"table", "json", "csv", "md"};
  for (int i = 0; i < 4; i++) {
    if (strcmp(text, names[i]) != 0) continue;
    *out = (options_output)i;
    return true;
  }
  tool_misuse(verb, "'%s' is not a format: table, json, csv or md", text);
  return false;
}

bool options_number_parse(const tool_verb *verb, const char *option,
                          const char *text, uint64_t least, uint64_t most,
                          uint64_t *out) {
  char *end = NULL;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  bool is_number = *text >= '0' && *text <= '9' && *end == '\0' && errno == 0;
  if (is_number && value >= least && value <= most) {
    *out = value;
    return true;
  }
  tool_misuse(verb, "%s wants a whole number from %llu to %llu, not '%s'",
              option, (unsigned long long)least, (unsigned long long)most,
              text);
  return false;
}

static size_t bytes_of_unit(const char *suffix) {
  static const char units[] = "KMGT";
  const char *unit = *suffix != '\0' ? strchr(units, *suffix) : NULL;
  if (*suffix == '\0') return 1;
  return unit != NULL && suffix[1] == '\0'
             ? (size_t)1024 << (10 * (unit - units))
             : 0;
}

// The part behind a point, of a unit: ".5G" is 536870912. Reads up to the unit;
// digits beyond the sixth say less than a byte of what people write. Rounded
// up: sizes are cut where they are told, and 6.8G is to be told as 6.80 GiB.
static size_t bytes_of_fraction(const char *point, size_t unit) {
  size_t part = 0;
  size_t scale = 1;
  for (const char *at = point + 1; *at >= '0' && *at <= '9'; at++) {
    if (scale == 1000000) continue;
    part = part * 10 + (size_t)(*at - '0');
    scale *= 10;
  }
  return (part * unit + scale - 1) / scale;  // below 2^20 times at most 2^40
}

bool options_bytes_parse(const tool_verb *verb, const char *option,
                         const char *text, size_t *out) {
  size_t digits = strspn(text, "0123456789");
  const char *point = text[digits] == '.' ? text + digits : NULL;
  size_t decimals = point != NULL ? strspn(point + 1, "0123456789") : 0;
  const char *suffix = point != NULL ? point + 1 + decimals : text + digits;
  size_t unit = bytes_of_unit(suffix);
  bool good = digits > 0 && digits < 20 && unit != 0 &&
              (point == NULL || (decimals > 0 && unit > 1)) &&
              tarn_size_mul(strtoull(text, NULL, 10), unit, out);
  if (good && point != NULL) {
    good = tarn_size_add(*out, bytes_of_fraction(point, unit), out);
  }
  if (good && *out > 0) return true;
  tool_misuse(verb,
              "%s %s is not a number of bytes such as 1073741824, 1G or 1.5G",
              option, text);
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

static bool has_before(const options_list *list, size_t index) {
  for (size_t i = 0; i < index; i++) {
    if (strcmp(list->items[i], list->items[index]) == 0) return true;
  }
  return false;
}

tool_exit options_once(const tool_verb *verb, const char *what,
                       const options_list *list) {
  for (size_t i = 0; i < list->count; i++) {
    if (has_before(list, i)) {
      return tool_misuse(verb, "%s '%s' is named twice", what, list->items[i]);
    }
  }
  return TOOL_DONE;
}

// ---------------------------------------------------------------------------
// Plug-ins and strategies
// ---------------------------------------------------------------------------

static tool_exit load_object(const tool_verb *verb, const char *path,
                             tarn_status (*load)(const char *path)) {
  char *absolute = NULL;
  if (strchr(path, '/') != NULL) {
    absolute = realpath(path, NULL);
    if (absolute == NULL) {
      return tool_fail(verb, "%s: %s", path, strerror(errno));
    }
  }
  tool_out_guard();
  tarn_status status = load(absolute ? absolute : path);
  free(absolute);
  return status == TARN_OK ? TOOL_DONE
                           : tool_fail(verb, "%s", tarn_last_error());
}

static tool_exit load_all(const tool_verb *verb, const options_list *paths,
                          tarn_status (*load)(const char *path)) {
  tool_exit status = TOOL_DONE;
  for (size_t i = 0; i < paths->count && status == TOOL_DONE; i++)
    status = load_object(verb, paths->items[i], load);
  return status;
}

tool_exit options_plugins_load(const tool_verb *verb,
                               const options_list *paths) {
  return load_all(verb, paths, tarn_plugin_load);
}

tool_exit options_strategies_load(const tool_verb *verb,
                                  const options_list *paths) {
  return load_all(verb, paths, tarn_pool_load);
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

void options_names_split(const char *text, options_list *out) {
  while (*text != '\0') {
    size_t length = strcspn(text, ",");
    if (length > 0) options_list_add(out, text, length);
    text += length + (text[length] == ',');
  }
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

static tool_exit check_pool(const tool_verb *verb, const char *pool,
                            options_try_fn *try_pool, const void *context) {
  if (!options_is_known(pool, strcspn(pool, ":"), tarn_pool_strategy_name)) {
    return options_unknown(verb, "pool", pool, tarn_pool_strategy_name);
  }
  tarn_status status = try_pool(context, pool);
  if (status == TARN_OK) return TOOL_DONE;
  return status == TARN_E_INVALID ? tool_misuse(verb, "%s", tarn_last_error())
                                  : tool_fail(verb, "%s", tarn_last_error());
}

tool_exit options_pools_check(const tool_verb *verb, const options_list *pools,
                              options_try_fn *try_pool, const void *context) {
  tool_exit status = TOOL_DONE;
  for (size_t i = 0; status == TOOL_DONE && i < pools->count; i++)
    status = check_pool(verb, pools->items[i], try_pool, context);
  return status;
}

tarn_status options_pool_try_dry(tarn_place place, const char *pool,
                                 size_t limit) {
  tarn_pool_options dry = {.struct_size = sizeof dry,
                           .strategy = pool,
                           .limit = limit,
                           .flags = TARN_POOL_DRY};
  tarn_pool *tried = NULL;
  tarn_status status = tarn_pool_create(place, &dry, &tried);
  return status == TARN_OK ? tarn_pool_destroy(tried) : status;
}
