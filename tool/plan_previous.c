// Previous plans: ids are sorted once, and looked up.
#include "plan_previous.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry {
  const char *id;
  size_t index;
} entry;

static int compare_entries(const void *a, const void *b) {
  return strcmp(((const entry *)a)->id, ((const entry *)b)->id);
}

static entry *sort_ids(const tarn_plan_table *table, size_t count) {
  entry *entries = tool_array(count, sizeof *entries);
  for (size_t i = 0; i < count; i++)
    entries[i] = (entry){tarn_plan_table_id(table, i), i};
  qsort(entries, count, sizeof *entries, compare_entries);
  return entries;
}

// How many have been found.
static size_t look_up(const plan_input *input, const tarn_plan_table *table,
                      plan_previous *out) {
  const tarn_plan_problem *old = tarn_plan_table_problem(table);
  const uint64_t *offsets = tarn_plan_table_offsets(table);
  const uint32_t *arenas = tarn_plan_table_arenas(table);
  entry *entries = sort_ids(table, old->count);
  size_t count = 0;
  for (size_t i = 0; i < input->problem.count; i++) {
    entry wanted = {.id = plan_input_id(input, i)};
    const entry *found =
        bsearch(&wanted, entries, old->count, sizeof wanted, compare_entries);
    out->offsets[i] = TARN_PLAN_NO_OFFSET;
    if (found == NULL) continue;
    count++;
    out->offsets[i] = offsets[found->index];
    if (arenas != NULL) out->arenas[i] = arenas[found->index];
  }
  free(entries);
  return count;
}

tool_exit plan_previous_read(const plan_input *input, const char *path,
                             plan_previous *out) {
  tarn_plan_csv_options options = {.struct_size = sizeof options,
                                   .offsets_are_answers = true};
  tarn_plan_table *table = NULL;
  if (tarn_plan_table_read(path, &options, &table) != TARN_OK) {
    return tool_fail(input->verb, "%s", tarn_last_error());
  }
  tool_exit status = TOOL_DONE;
  out->offsets = tool_array(input->problem.count, sizeof *out->offsets);
  out->arenas = tool_array(input->problem.count, sizeof *out->arenas);
  if (tarn_plan_table_offsets(table) == NULL) {
    status = tool_fail(input->verb,
                       "%s: it is no plan: not all of its lines "
                       "have an offset",
                       path);
  }
  if (status == TOOL_DONE && input->problem.count > 0 &&
      look_up(input, table, out) == 0) {
    status =
        tool_fail(input->verb, "%s: it has no buffer of %s", path, input->path);
  }
  tarn_plan_table_destroy(table);
  return status;
}

void plan_previous_deinit(plan_previous *previous) {
  free(previous->offsets);
  free(previous->arenas);
  *previous = (plan_previous){0};
}
