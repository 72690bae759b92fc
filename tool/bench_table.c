// tarn bench table: tables in files, beside what the system does of the same
// kind.
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench/place.h"
#include "bench/table_bench.h"
#include "bench_each.h"
#include "kit/options.h"

static const char help[] =
    "usage: tarn bench table [OPTION]... [PART]...\n"
    "\n"
    "Tells how fast tables that several processes have together are kept, and\n"
    "changed, beside what the system or another library does of the same kind\n"
    "in the same run. Without a PART it measures all:\n"
    "\n"
    "  files            stored in files and loaded, over preads and pwrites by "
    "as\n"
    "                   many processes, and over fio where that is installed\n"
    "  apply            changed by the optimizer of an embedding, over gathers "
    "of\n"
    "                   the same rows, and over PyTorch's where that is "
    "installed\n"
    "  cache            rows kept near their user: misses over those of LRU, "
    "and\n"
    "                   hits over gathers of the same rows\n"
    "  disk             on a disk, with a quarter of its bytes as memory, "
    "over\n"
    "                   fio and over NumPy's memmap with as much memory\n"
    "\n"
    "  -n, --ranks N    processes, 1 to 64 (default: 2)\n"
    "  --size BYTES     of a table (default: as is usual for each part)\n"
    "  --row BYTES      of a row, a multiple of 4 (default: 256)\n"
    "  --folder FOLDER  in which files are made, and removed (default: TMPDIR "
    "of\n"
    "                   the environment, or the current one)\n"
    "  --passes N       passes that count, 1 to 101 (default: 7)\n"
    "  -o FORMAT        table (default), json, csv or md\n"
    "  -h, --help       this text\n"
    "\n"
    "Values are medians, low and high their quartiles.\n"
    "\n"
    "Exit status: 1 if something could not be measured, or rows were wrong (a\n"
    "goal that is missed does not count, nor what this machine lacks).\n";

enum { RANKS = 2, PASSES = 7, ROW = 256, ROW_MOST = 65536 };

typedef struct command {
  const tool_verb *verb;
  options_list parts;
  uint64_t ranks;
  uint64_t passes;
  size_t size;
  uint64_t row;
  const char *folder;
  options_output output;
} command;

// ---------------------------------------------------------------------------
// What is asked
// ---------------------------------------------------------------------------

static const char *part_name(size_t index) {
  const table_part *part = table_part_at(index);
  return part != NULL ? part->name : NULL;
}

static const table_part *find_part(const char *name) {
  const table_part *part = NULL;
  for (size_t i = 0; (part = table_part_at(i)) != NULL; i++)
    if (strcmp(part->name, name) == 0) return part;
  return NULL;
}

static tool_exit choose_parts(command *c) {
  for (size_t i = 0; i < c->parts.count; i++) {
    if (find_part(c->parts.items[i]) == NULL)
      return options_unknown(c->verb, "part", c->parts.items[i], part_name);
  }
  if (c->parts.count > 0) return options_once(c->verb, "part", &c->parts);
  const char *name = NULL;
  for (size_t i = 0; (name = part_name(i)) != NULL; i++)
    options_list_add(&c->parts, name, strlen(name));
  return TOOL_DONE;
}

static const char *usual_folder(void) {
  const char *named = getenv("TMPDIR");
  return named != NULL && *named != '\0' ? named : ".";
}

static tool_exit check(command *c) {
  if (c->row % sizeof(float) != 0)
    return tool_misuse(c->verb, "--row wants a multiple of 4, not '%zu'",
                       (size_t)c->row);
  if (place_is_given())
    return tool_misuse(c->verb, "it starts its ranks itself, and is no rank");
  if (c->folder == NULL) c->folder = usual_folder();
  return choose_parts(c);
}

// ---------------------------------------------------------------------------
// The work
// ---------------------------------------------------------------------------

static tool_exit tell(const command *c, const table_part *part,
                      const table_result *r) {
  tool_exit status = TOOL_DONE;
  if (r->failed[0] != '\0')
    status = tool_fail(c->verb, "%s: %s", part->name, r->failed);
  for (size_t i = 0; i < part->count; i++) {
    const table_value *v = &r->values[i];
    if (v->why[0] == '\0' || v->is_skipped) continue;
    status = tool_fail(c->verb, "%s: %s: %s", part->name, part->figures[i].name,
                       v->why);
  }
  return status;
}

static tool_exit measure_part(void *context, size_t index, void *result) {
  const command *c = context;
  const table_part *part = find_part(c->parts.items[index]);
  char why[CHILD_TEXT_SIZE];
  const table_bench bench = {.ranks = (size_t)c->ranks,
                             .passes = (size_t)c->passes,
                             .size = c->size,
                             .row_bytes = (size_t)c->row,
                             .folder = c->folder};
  if (!table_bench_run(&bench, part, result, why))
    return tool_fail(c->verb, "%s: %s", part->name, why);
  return tell(c, part, result);
}

static void write_value(sheet *s, const table_part *part, size_t index,
                        const table_value *v) {
  sheet_text(s, "part", "part", part->name);
  bench_figure_cells(s, &part->figures[index], NULL, v->value);
  sheet_number(s, "low", "low", v->low, 3);
  sheet_number(s, "high", "high", v->high, 3);
  sheet_failed(s, "failed", v->why);
  sheet_row_end(s);
}

static void report(const void *context, const void *results) {
  const command *c = context;
  sheet *s = bench_sheet_begin(c->output);
  sheet_list(s, "results");
  for (size_t i = 0; i < c->parts.count; i++) {
    const table_part *part = find_part(c->parts.items[i]);
    const table_result *r = (const table_result *)results + i;
    for (size_t k = 0; k < part->count; k++)
      write_value(s, part, k, &r->values[k]);
  }
  sheet_end(s);
}

static tool_exit work(void *context) {
  command *c = context;
  tool_exit status = check(c);
  if (status != TOOL_DONE) return status;
  return bench_each(&c->parts, sizeof(table_result), measure_part, report, c);
}

static const options_entry entries[] = {
    OPTION_NUMBER_OR("ranks", 'n', ranks, 1, TABLE_RANKS_MOST),
    OPTION_BYTES("size", size),
    OPTION_NUMBER("row", row, sizeof(float), ROW_MOST),
    OPTION_TEXT("folder", folder),
    OPTION_NUMBER("passes", passes, 1, TABLE_PASSES_MOST),
    OPTION_OUTPUT(output),
    {0},
};

const tool_verb bench_of_tables = {
    .name = "bench table",
    .summary = "tables in files, over preads, pwrites and fio",
    .help = help,
    .entries = entries,
    .words = offsetof(command, parts),
    OPTIONS_COMMAND(.ranks = RANKS, .passes = PASSES, .row = ROW),
    .work = work,
};
