// tarn devices: the devices, and the functions that each has itself.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/json.h"
#include "kit/options.h"
#include "kit/table.h"
#include "kit/text.h"
#include "verbs.h"

static const char help[] =
    "usage: tarn devices [OPTION]...\n"
    "\n"
    "Lists the devices of this machine: those that are built in, and those of\n"
    "the plug-ins named. Of the optional functions of the plug-in ABI it "
    "tells\n"
    "which are the plug-in's own and for which Tarn stands in; beyond the\n"
    "ABI, what the plug-in's extension has.\n"
    "\n"
    "  --plugin FILE   load this plug-in first; may be given several times.\n"
    "                  A name without '/' is looked for in $TARN_PLUGIN_DIR\n"
    "  -o FORMAT       table (default), json, csv or md\n"
    "  -h, --help      this text\n"
    "\n"
    "A size of '-' or 0, or an alignment of 1, means that the device names\n"
    "none. Exit status: 1 if a plug-in cannot be loaded or a device cannot be "
    "opened.\n";

enum { FUNCTION_BITS = 32, NAMES_SIZE = 1024 };

// One device as it was found; texts of |info| live as long as it is open.
typedef struct found {
  tarn_device *device;
  tarn_device_info info;
  size_t total;
  size_t free;
} found;

typedef struct survey {
  const tool_verb *verb;
  found *items;
  size_t count;
  bool failed;  // something could not be opened
} survey;

// ---------------------------------------------------------------------------
// Looking
// ---------------------------------------------------------------------------

static tarn_status look(tarn_device *device, found *out) {
  tarn_status status = tarn_device_query(device, &out->info);
  if (status != TARN_OK) return status;
  return tarn_device_memory(device, &out->total, &out->free);
}

static void append(survey *s, const found *item) {
  found *items = tool_array(s->count + 1, sizeof *items);
  if (s->count > 0) memcpy(items, s->items, s->count * sizeof *items);
  items[s->count++] = *item;
  free(s->items);
  s->items = items;
}

// A device that does not open must not hide the others.
static tarn_status visit(void *context, const char *name) {
  survey *s = context;
  found item = {.info.struct_size = sizeof item.info};
  if (tarn_device_open(name, &item.device) == TARN_OK &&
      look(item.device, &item) == TARN_OK) {
    append(s, &item);
    return TARN_OK;
  }
  tool_say(s->verb, "%s: %s", name, tarn_last_error());
  if (item.device != NULL) (void)tarn_device_close(item.device);
  s->failed = true;
  return TARN_OK;
}

static void close_all(survey *s) {
  for (size_t i = 0; i < s->count; i++) {
    (void)tarn_device_close(s->items[i].device);
  }
  free(s->items);
}

// ---------------------------------------------------------------------------
// Telling
// ---------------------------------------------------------------------------

// The name of function |bit| if it is (|own|) or is not (!|own|) the
// plug-in's; NULL otherwise.
static const char *function_name(const found *item, int bit, bool own) {
  uint32_t mask = UINT32_C(1) << bit;
  if (((item->info.functions & mask) != 0) != own) return NULL;
  return tarn_device_function_name((tarn_device_function)mask);
}

static const char *join_functions(const found *item, bool own, char *out) {
  out[0] = '\0';
  for (int bit = 0; bit < FUNCTION_BITS; bit++) {
    const char *name = function_name(item, bit, own);
    if (name != NULL) tool_append(out, NAMES_SIZE, " ", name);
  }
  return out;
}

// The name of extension |bit| if the device has it; NULL otherwise.
static const char *extension_name(const found *item, int bit) {
  uint32_t mask = UINT32_C(1) << bit;
  if ((item->info.extensions & mask) == 0) return NULL;
  return tarn_device_extension_name((tarn_device_extension)mask);
}

static const char *join_extensions(const found *item, char *out) {
  out[0] = '\0';
  for (int bit = 0; bit < FUNCTION_BITS; bit++) {
    const char *name = extension_name(item, bit);
    if (name != NULL) tool_append(out, NAMES_SIZE, " ", name);
  }
  return out;
}

static void write_json_extensions(json *out, const found *item) {
  json_key_array(out, "extensions");
  for (int bit = 0; bit < FUNCTION_BITS; bit++) {
    const char *name = extension_name(item, bit);
    if (name != NULL) json_text(out, name);
  }
  json_end_array(out);
}

static void write_json_functions(json *out, const char *key, const found *item,
                                 bool own) {
  json_key_array(out, key);
  for (int bit = 0; bit < FUNCTION_BITS; bit++) {
    const char *name = function_name(item, bit, own);
    if (name != NULL) json_text(out, name);
  }
  json_end_array(out);
}

static void write_json_device(json *out, const found *item) {
  const tarn_device_info *info = &item->info;
  json_begin_object(out);
  json_key_text(out, "device", info->name);
  json_key_text(out, "type", info->type);
  json_key_text(out, "plugin", info->plugin);
  json_key_int(out, "id", info->id);
  json_key_uint(out, "total_bytes", item->total);
  json_key_uint(out, "free_bytes", item->free);
  json_key_bool(out, "host_accessible", info->host_accessible);
  json_key_uint(out, "min_chunk", info->min_chunk);
  json_key_uint(out, "max_chunk", info->max_chunk);
  json_key_uint(out, "max_alloc", info->max_alloc);
  json_key_uint(out, "padding", info->padding);
  json_key_uint(out, "init_size", info->init_size);
  json_key_uint(out, "realloc_size", info->realloc_size);
  json_key_uint(out, "alignment", info->alignment);
  write_json_functions(out, "functions", item, true);
  write_json_functions(out, "stand_ins", item, false);
  write_json_extensions(out, item);
  json_end_object(out);
}

static void write_json(const survey *s) {
  json out = json_to(tool_out());
  json_begin_object(&out);
  json_key_array(&out, "devices");
  for (size_t i = 0; i < s->count; i++)
    write_json_device(&out, &s->items[i]);
  json_end_array(&out);
  json_end_object(&out);
  json_finish(&out);
}

static const table_column columns[] = {
    {"device", "device", false},
    {"memory", "total_bytes", true},
    {"free", "free_bytes", true},
    {"host access", "host_accessible", false},
    {"min chunk", "min_chunk", true},
    {"max chunk", "max_chunk", true},
    {"max alloc", "max_alloc", true},
    {"padding", "padding", true},
    {"init", "init_size", true},
    {"realloc", "realloc_size", true},
    {"alignment", "alignment", true},
    // The plain table tells these below, where there is room.
    {"plug-in", "plugin", false},
    {"own functions", "functions", false},
    {"stand-ins", "stand_ins", false},
    {"extensions", "extensions", false},
};

enum { COLUMN_COUNT = sizeof columns / sizeof columns[0], BELOW = 4 };

static void add_row(table *t, const found *item, bool whole) {
  const tarn_device_info *info = &item->info;
  char names[NAMES_SIZE];
  table_text(t, info->name);
  table_bytes(t, item->total);
  table_bytes(t, item->free);
  table_text(t, info->host_accessible ? "yes" : "no");
  table_bytes(t, info->min_chunk);
  table_bytes(t, info->max_chunk);
  table_bytes(t, info->max_alloc);
  table_bytes(t, info->padding);
  table_bytes(t, info->init_size);
  table_bytes(t, info->realloc_size);
  table_bytes(t, info->alignment);
  if (!whole) return;
  table_text(t, info->plugin);
  table_text(t, join_functions(item, true, names));
  table_text(t, join_functions(item, false, names));
  table_text(t, join_extensions(item, names));
}

static void write_wrapped(const char *title, const char *words) {
  enum { INDENT = 13, MARGIN = 78 };
  int column = fprintf(tool_out(), "  %-*s", INDENT - 2, title);
  while (*words) {
    int length = (int)strcspn(words, " ");
    if (column > INDENT && column + 1 + length > MARGIN) {
      column = fprintf(tool_out(), "\n%*s", INDENT, "") - 1;
    }
    column += fprintf(tool_out(), "%s%.*s", column > INDENT ? " " : "", length,
                      words);
    words += length + (words[length] == ' ');
  }
  fputc('\n', tool_out());
}

static void write_extensions(const found *item) {
  char names[NAMES_SIZE];
  join_extensions(item, names);
  if (*names != '\0') write_wrapped("extensions", names);
}

// Only where there are stand-ins is there something to tell apart.
static void write_functions(const found *item) {
  char own[NAMES_SIZE];
  char stand_ins[NAMES_SIZE];
  join_functions(item, true, own);
  join_functions(item, false, stand_ins);
  fputc('\n', tool_out());
  text_write(item->info.name, tool_out());
  fputs(" (", tool_out());
  text_write(item->info.plugin, tool_out());
  if (*stand_ins == '\0') {
    fputs("): all optional functions are its own\n", tool_out());
    return;
  }
  fputs(")\n", tool_out());
  write_wrapped("its own", *own != '\0' ? own : "none");
  write_wrapped("stand-ins", stand_ins);
}

static void write_table(const survey *s, table_style style) {
  bool plain = style == TABLE_PLAIN;
  table *t = table_create(columns, plain ? COLUMN_COUNT - BELOW : COLUMN_COUNT);
  for (size_t i = 0; i < s->count; i++)
    add_row(t, &s->items[i], !plain);
  table_write(t, style, tool_out());
  table_destroy(t);
  for (size_t i = 0; plain && i < s->count; i++) {
    write_functions(&s->items[i]);
    write_extensions(&s->items[i]);
  }
}

static void write_survey(const survey *s, options_output output) {
  if (output == OUTPUT_JSON) {
    write_json(s);
  } else {
    write_table(s, table_style_of(output));
  }
}

// ---------------------------------------------------------------------------
// The verb
// ---------------------------------------------------------------------------

static tool_exit list(const tool_verb *verb, options_output output) {
  survey s = {.verb = verb};
  tarn_status status = tarn_device_each(visit, &s);
  if (status != TARN_OK) {
    close_all(&s);
    return tool_fail(verb, "%s", tarn_last_error());
  }
  write_survey(&s, output);
  close_all(&s);
  return s.failed ? TOOL_NO : TOOL_DONE;
}

typedef struct command {
  const tool_verb *verb;
  options_output output;
  options_list plugins;
} command;

static tool_exit work(void *context) {
  const command *c = context;
  tool_exit status = options_plugins_load(c->verb, &c->plugins);
  return status == TOOL_DONE ? list(c->verb, c->output) : status;
}

static tool_exit run(const tool_verb *verb, int argc, char **argv) {
  command c = {.verb = verb};
  const options_entry entries[] = {
      OPTION_OUTPUT(&c.output),
      OPTION_LIST("plugin", &c.plugins),
      {0},
  };
  options_spec spec = {.verb = verb, .entries = entries, .run = work};
  tool_exit status = options_run(&spec, &c, argc, argv);
  return status;
}

const tool_verb verb_devices = {
    .name = "devices",
    .summary = "what there is: memory, sizes, own functions and stand-ins",
    .help = help,
    .run = run,
};
