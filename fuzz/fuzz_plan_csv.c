// Any bytes as a table of buffers: read within the memory that is promised,
// solved if it is small, checked, written, and read again as it was.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "tarn/plan_csv.h"

enum { MOST_BUFFERS = 12, MOST_ARENAS = 4, NODES = 300 };

static tarn_plan_table *read_bytes(const uint8_t *bytes, size_t size,
                                   bool answers) {
  const tarn_plan_csv_options options = {.struct_size = sizeof options,
                                         .offsets_are_answers = answers};
  tarn_plan_table *table = NULL;
  fuzz_memory_begin();
  tarn_status status =
      tarn_plan_table_read_bytes(bytes, size, "fuzzed", &options, &table);
  require((status == TARN_OK) == (table != NULL), "status and table disagree");
  require(status == TARN_OK || status == TARN_E_CORRUPT ||
              status == TARN_E_UNSUPPORTED,
          "another status");
  require(status == TARN_OK || strncmp(tarn_last_error(), "fuzzed:", 7) == 0,
          "no place");
  fuzz_memory_check(size);
  return table;
}

// The table written with |plan|, read again: the same buffers.
static void write_and_read(const tarn_plan_table *table, const tarn_plan *plan,
                           const tarn_plan_problem *solved) {
  const tarn_plan_csv_options options = {.struct_size = sizeof options,
                                         .offsets_are_answers = true};
  char path[64];
  tarn_plan_table *again = NULL;
  uint64_t height = 0;
  snprintf(path, sizeof path, "/tmp/tarn-fuzz-plan-%ld.csv", (long)getpid());
  require(tarn_plan_table_write(table, tarn_plan_offsets(plan),
                                tarn_plan_arenas(plan), path) == TARN_OK,
          "not written");
  require(tarn_plan_table_read(path, &options, &again) == TARN_OK,
          "not read again");
  unlink(path);
  const tarn_plan_problem *problem = tarn_plan_table_problem(again);
  require(problem->count == solved->count, "another count");
  for (size_t i = 0; i < problem->count; i++) {
    const tarn_plan_buffer *a = &problem->buffers[i];
    const tarn_plan_buffer *b = &solved->buffers[i];
    require(a->first == b->first && a->last == b->last && a->size == b->size &&
                a->gap_count == b->gap_count && a->alignment == b->alignment,
            "another buffer");
    require(
        strcmp(tarn_plan_table_id(table, i), tarn_plan_table_id(again, i)) == 0,
        "another id");
  }
  require(tarn_plan_verify(solved, tarn_plan_table_offsets(again),
                           tarn_plan_table_arenas(again), &height) == TARN_OK,
          "another plan");
  tarn_plan_table_destroy(again);
}

// Height of the plan; 0: there is none.
static uint64_t solve(const tarn_plan_table *table,
                      const tarn_plan_problem *problem) {
  const tarn_plan_options options = {.struct_size = sizeof options,
                                     .time_limit_s = INFINITY,
                                     .node_limit = NODES,
                                     .minimise = true};
  tarn_plan *plan = NULL;
  tarn_plan_info info = {.struct_size = sizeof info};
  uint64_t height = 0;
  tarn_status status = tarn_plan_solve(problem, &options, &plan);
  if (status != TARN_OK) {  // alignments that are too much together
    require(status == TARN_E_INVALID, "not solved");
    return 0;
  }
  require(tarn_plan_query(plan, &info) == TARN_OK, "no info");
  require(
      (tarn_plan_offsets(plan) != NULL) == (info.answer == TARN_PLAN_OPTIMAL ||
                                            info.answer == TARN_PLAN_FEASIBLE),
      "answer and offsets disagree");
  if (tarn_plan_offsets(plan) != NULL) {
    require(tarn_plan_verify(problem, tarn_plan_offsets(plan),
                             tarn_plan_arenas(plan), &height) == TARN_OK,
            "a wrong plan");
    require(height == info.height && height >= info.lower_bound, "heights");
    write_and_read(table, plan, problem);
  }
  tarn_plan_destroy(plan);
  return height;
}

static void solve_small(const tarn_plan_table *table) {
  tarn_plan_problem problem = *tarn_plan_table_problem(table);
  uint64_t capacities[MOST_ARENAS] = {0};
  bool is_fixed = false;
  if (problem.count > MOST_BUFFERS) return;
  problem.arena_count = 1;
  for (size_t i = 0; i < problem.count; i++) {
    const tarn_plan_buffer *b = &problem.buffers[i];
    if ((b->flags & TARN_PLAN_FIXED) != 0) is_fixed = true;
    if ((b->flags & TARN_PLAN_IN_ARENA) == 0) continue;
    if (b->arena >= MOST_ARENAS) return;
    if (b->arena >= problem.arena_count) problem.arena_count = b->arena + 1;
  }
  if (problem.arena_count > 1 && is_fixed) return;
  problem.capacities = capacities;
  uint64_t height = solve(table, &problem);
  if (height < 2) return;
  capacities[0] = height - 1;
  solve(table, &problem);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  tarn_plan_table_destroy(read_bytes(bytes, size, true));
  tarn_plan_table *table = read_bytes(bytes, size, false);
  if (table != NULL) solve_small(table);
  tarn_plan_table_destroy(table);
  fuzz_memory_end();
  return 0;
}
