// tarn devices: the devices, and the functions that each has itself.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/options.h"
#include "kit/sheet.h"
#include "kit/text.h"
#include "verbs.h"

static const char help[] =
    "usage: tarn devices [OPTION]...\n"
    "\n"
    "Lists the devices of this machine: those that are built in, and those of\n"
    "plug-ins that are named, stand beside the library or in "
    "$TARN_PLUGIN_DIR.\n"
    "Where such a plug-in cannot be used, one line says why. Of the optional "
    "functions of the plug-in ABI it "
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

enum { NAMES_SIZE = 1024 };

// One plug-in; the texts are copies.
typedef struct found_plugin {
  char *type;
  char *origin;
  char *reason;  // "": it can be used
  size_t device_count;
  tarn_status status;
} found_plugin;

// One device; the texts of |info| live as long as it is open.
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
  found_plugin *plugins;
  size_t plugin_count;
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

static tarn_status visit_plugin(void *context, const tarn_plugin_info *info) {
  survey *s = context;
  found_plugin *plugins = tool_array(s->plugin_count + 1, sizeof *plugins);
  if (s->plugin_count > 0)
    memcpy(plugins, s->plugins, s->plugin_count * sizeof *plugins);
  plugins[s->plugin_count++] = (found_plugin){
      .type = tool_text(info->type),
      .origin = tool_text(info->origin),
      .reason = tool_text(info->reason),
      .device_count = info->device_count,
      .status = info->status,
  };
  free(s->plugins);
  s->plugins = plugins;
  return TARN_OK;
}

static tarn_status look_at_all(survey *s) {
  tarn_status status = tarn_device_each(visit, s);
  return status == TARN_OK ? tarn_plugin_each(visit_plugin, s) : status;
}

static void end_survey(survey *s) {
  for (size_t i = 0; i < s->count; i++) {
    (void)tarn_device_close(s->items[i].device);
  }
  for (size_t i = 0; i < s->plugin_count; i++) {
    free(s->plugins[i].type);
    free(s->plugins[i].origin);
    free(s->plugins[i].reason);
  }
  free(s->items);
  free(s->plugins);
}

// ---------------------------------------------------------------------------
// Telling
// ---------------------------------------------------------------------------

// The names of the functions, or of the extensions, whose bits are set.
static const char *join(uint32_t bits, bool are_extensions,
                        char out[NAMES_SIZE]) {
  out[0] = '\0';
  for (uint32_t left = bits; left != 0; left &= left - 1) {
    uint32_t bit = left & (~left + 1);  // the lowest
    const char *name =
        are_extensions ? tarn_device_extension_name((tarn_device_extension)bit)
                       : tarn_device_function_name((tarn_device_function)bit);
    if (name != NULL) tool_append(out, NAMES_SIZE, " ", name);
  }
  return out;
}

static void write_sizes(sheet *s, const found *item) {
  const tarn_device_info *info = &item->info;
  const struct {
    const char *title;
    const char *key;
    uint64_t bytes;
  } sizes[] = {
      {"min chunk", "min_chunk", info->min_chunk},
      {"max chunk", "max_chunk", info->max_chunk},
      {"max alloc", "max_alloc", info->max_alloc},
      {"padding", "padding", info->padding},
      {"init", "init_size", info->init_size},
      {"realloc", "realloc_size", info->realloc_size},
      {"alignment", "alignment", info->alignment},
  };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    sheet_uint(s, sizes[i].title, sizes[i].key, sizes[i].bytes, SHEET_BYTES);
}

// The plain table has these below, where there is room.
static void write_names(sheet *s, const found *item, bool plain) {
  char names[NAMES_SIZE];
  const tarn_device_info *info = &item->info;
  if (plain) return;
  sheet_only(s, SHEET_PEOPLE | SHEET_CSV);
  sheet_text(s, "plug-in", "plugin", info->plugin);
  sheet_only(s, SHEET_ALL);
  sheet_words(s, "own functions", "functions",
              join(info->functions, false, names));
  sheet_words(s, "stand-ins", "stand_ins",
              join(~info->functions, false, names));
  sheet_words(s, "extensions", "extensions",
              join(info->extensions, true, names));
}

static void write_row(sheet *s, const found *item, options_output output) {
  const tarn_device_info *info = &item->info;
  sheet_text(s, "device", "device", info->name);
  sheet_only(s, SHEET_JSON);
  sheet_text(s, NULL, "type", info->type);
  sheet_text(s, NULL, "plugin", info->plugin);
  sheet_text(s, NULL, "description", info->description);
  sheet_uint(s, NULL, "id", (uint64_t)info->id, SHEET_COUNT);
  sheet_only(s, SHEET_ALL);
  sheet_uint(s, "memory", "total_bytes", item->total, SHEET_BYTES);
  sheet_uint(s, "free", "free_bytes", item->free, SHEET_BYTES);
  if (output == OUTPUT_JSON) {
    sheet_bool(s, NULL, "host_accessible", info->host_accessible);
  } else {
    sheet_text(s, "host access", "host_accessible",
               info->host_accessible ? "yes" : "no");
  }
  write_sizes(s, item);
  write_names(s, item, output == OUTPUT_TABLE);
  sheet_row_end(s);
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
  const char *description = item->info.description;
  if (*description != '\0') write_wrapped("described", description);
  join(item->info.extensions, true, names);
  if (*names != '\0') write_wrapped("extensions", names);
}

// Only where there are stand-ins is there something to tell apart.
static void write_functions(const found *item) {
  char own[NAMES_SIZE];
  char stand_ins[NAMES_SIZE];
  join(item->info.functions, false, own);
  join(~item->info.functions, false, stand_ins);
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

static void write_plugin(sheet *s, const found_plugin *plugin) {
  sheet_only(s, SHEET_JSON);
  sheet_text(s, NULL, "type", plugin->type);
  sheet_text(s, NULL, "plugin", plugin->origin);
  sheet_uint(s, NULL, "device_count", plugin->device_count, SHEET_COUNT);
  sheet_text(s, NULL, "status", tarn_status_name(plugin->status));
  sheet_text(s, NULL, "reason",
             *plugin->reason != '\0' ? plugin->reason : NULL);
  sheet_row_end(s);
}

// What no row of the table tells, in a line for each plug-in that has none.
static void write_deviceless(const survey *all) {
  bool is_first = true;
  for (size_t i = 0; i < all->plugin_count; i++) {
    const found_plugin *p = &all->plugins[i];
    if (p->device_count > 0) continue;
    if (is_first) fputc('\n', tool_out());
    is_first = false;
    text_write(p->type, tool_out());
    fputs(p->status == TARN_OK ? ": no device is here: " : ": cannot be used: ",
          tool_out());
    text_write(p->origin, tool_out());
    if (p->status != TARN_OK) fputs(": ", tool_out());
    text_write(p->reason, tool_out());
    fputc('\n', tool_out());
  }
}

static void write_survey(const survey *all, options_output output) {
  sheet *s = sheet_begin(output, NULL);
  sheet_list(s, "devices");
  for (size_t i = 0; i < all->count; i++)
    write_row(s, &all->items[i], output);
  sheet_list(s, "plugins");
  for (size_t i = 0; i < all->plugin_count; i++)
    write_plugin(s, &all->plugins[i]);
  sheet_end(s);
  for (size_t i = 0; output == OUTPUT_TABLE && i < all->count; i++) {
    write_functions(&all->items[i]);
    write_extensions(&all->items[i]);
  }
  if (output == OUTPUT_TABLE || output == OUTPUT_MARKDOWN)
    write_deviceless(all);
}

// ---------------------------------------------------------------------------
// The verb
// ---------------------------------------------------------------------------

static tool_exit list(const tool_verb *verb, options_output output) {
  survey s = {.verb = verb};
  if (look_at_all(&s) != TARN_OK) {
    tool_fail(verb, "%s", tarn_last_error());
    end_survey(&s);
    return TOOL_NO;
  }
  write_survey(&s, output);
  end_survey(&s);
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

static const options_entry entries[] = {
    OPTION_OUTPUT(output),
    OPTION_LIST("plugin", plugins),
    {0},
};

const tool_verb verb_devices = {
    .name = "devices",
    .summary = "what there is: memory, sizes, own functions and stand-ins",
    .help = help,
    .entries = entries,
    .size = sizeof(command),
    .work = work,
};
