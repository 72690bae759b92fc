// A conflict, told: the buffers by name, what they need in which step, and what
// there is.
//
// What they need is the lower bound of a problem of these buffers alone; the
// step is found by a sweep over their beginnings and ends.
#include "plan_conflict.h"

#include <inttypes.h>
#include <stdlib.h>

#include "format.h"
#include "plan_changes.h"
#include "table.h"

enum { ROWS = 20 };  // more buffers than that tell a person nothing

// ---------------------------------------------------------------------------
// How much, and when
// ---------------------------------------------------------------------------

// The step in which most is live. Sizes sum up to less than 2^63.
static plan_crowd most_live(const plan_answer *answer) {
  plan_changes changes = plan_changes_make(&answer->problem, answer->conflict,
                                           answer->info.conflict_count, NULL);
  plan_crowd most = {.has_step = true};
  uint64_t live = 0;
  for (size_t i = 0; i < changes.count; i++) {
    const plan_change *change = &changes.items[i];
    live = change->begins ? live + change->size : live - change->size;
    if (live <= most.bytes) continue;
    most.bytes = live;
    most.step = change->step;
  }
  plan_changes_deinit(&changes);
  return most;
}

// ---------------------------------------------------------------------------
// The problem of these buffers alone
// ---------------------------------------------------------------------------

// Where |buffer| stands in the conflict, which ascends; its count: nowhere.
static size_t place_of(const plan_answer *answer, size_t buffer) {
  size_t low = 0, high = answer->info.conflict_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (answer->conflict[middle] < buffer) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  bool found =
      low < answer->info.conflict_count && answer->conflict[low] == buffer;
  return found ? low : answer->info.conflict_count;
}

static size_t take_pairs(const plan_answer *answer, tarn_plan_pair *out) {
  size_t count = 0;
  for (size_t i = 0; i < answer->problem.pair_count; i++) {
    const tarn_plan_pair *pair = &answer->problem.pairs[i];
    tarn_plan_pair taken = {place_of(answer, pair->giver),
                            place_of(answer, pair->taker)};
    bool in = taken.giver < answer->info.conflict_count &&
              taken.taker < answer->info.conflict_count;
    if (in) out[count++] = taken;
  }
  return count;
}

static uint64_t bound_of(const plan_answer *answer) {
  size_t count = answer->info.conflict_count;
  tarn_plan_buffer *buffers = tool_array(count, sizeof *buffers);
  tarn_plan_pair *pairs = tool_array(answer->problem.pair_count, sizeof *pairs);
  tarn_plan_problem problem = answer->problem;
  uint64_t bound = 0;
  for (size_t i = 0; i < count; i++)
    buffers[i] = answer->problem.buffers[answer->conflict[i]];
  problem.buffers = buffers;
  problem.count = count;
  problem.pairs = pairs;
  problem.pair_count = take_pairs(answer, pairs);
  if (tarn_plan_lower_bound(&problem, &bound) != TARN_OK) bound = 0;
  free(pairs);
  free(buffers);
  return bound;
}

plan_crowd plan_conflict_crowd(const plan_answer *answer) {
  if (answer->conflict == NULL) return (plan_crowd){0};
  plan_crowd crowd = most_live(answer);
  uint64_t bound = bound_of(answer);
  // In place they need less, fixed offsets make them need more.
  crowd.has_step = crowd.bytes == bound;
  crowd.bytes = bound;
  return crowd;
}

// ---------------------------------------------------------------------------
// Telling
// ---------------------------------------------------------------------------

static void describe_place(const tarn_plan_buffer *b, char *out) {
  out[0] = '\0';
  if ((b->flags & TARN_PLAN_FIXED) != 0) {
    snprintf(out, FORMAT_SIZE, "fixed at %" PRIu64, b->offset);
  } else if (b->alignment > 1) {
    snprintf(out, FORMAT_SIZE, "a multiple of %" PRIu64, b->alignment);
  }
}

static void add_row(table *t, const plan_answer *answer, size_t index) {
  const tarn_plan_buffer *b = &answer->problem.buffers[index];
  char text[FORMAT_SIZE];
  table_text(t, plan_input_id(answer->input, index));
  table_count(t, b->size);
  snprintf(text, sizeof text, "%" PRIu64 "..%" PRIu64, b->first, b->last);
  table_text(t, text);
  describe_place(b, text);
  table_text(t, text);
}

static void write_rows(const plan_answer *answer, FILE *out) {
  static const table_column columns[] = {{"buffer", "id", false},
                                         {"bytes", "size", true},
                                         {"steps", "steps", true},
                                         {"offset", "offset", false}};
  size_t count = answer->info.conflict_count;
  size_t shown = count <= ROWS ? count : ROWS;
  table *t = table_create(columns, sizeof columns / sizeof *columns);
  for (size_t i = 0; i < shown; i++)
    add_row(t, answer, answer->conflict[i]);
  table_write(t, TABLE_PLAIN, out);
  table_destroy(t);
  if (shown < count) {
    fprintf(out, "... and %zu more; -o json has them all\n", count - shown);
  }
  fputc('\n', out);
}

static void write_step(const plan_answer *answer, uint64_t step, FILE *out) {
  fprintf(out, " together in step %" PRIu64, step);
  if (answer->input->kind->counts_events && step > 0) {
    fprintf(out, ", after event %" PRIu64, step - 1);
  }
}

static void write_too_much(const plan_answer *answer, const plan_crowd *crowd,
                           uint64_t capacity, FILE *out) {
  char needed[FORMAT_SIZE], there[FORMAT_SIZE];
  bool one = answer->info.conflict_count == 1;
  fprintf(out, "%s %s", one ? "It needs" : "They need",
          format_bytes_exact(needed, crowd->bytes));
  if (crowd->has_step && !one) {
    write_step(answer, crowd->step, out);
  } else if (!one) {
    fputs(" at least", out);
  }
  fprintf(out, "; the capacity is %s.\n", format_bytes_exact(there, capacity));
}

// The largest that buffer |index| may lie in.
static uint64_t largest_arena(const plan_answer *answer, size_t index) {
  const tarn_plan_buffer *b = &answer->problem.buffers[index];
  const uint64_t *capacities = answer->problem.capacities;
  uint64_t largest = 0;
  if ((b->flags & TARN_PLAN_IN_ARENA) != 0) return capacities[b->arena];
  for (size_t i = 0; i < answer->problem.arena_count; i++) {
    if (capacities[i] > largest) largest = capacities[i];
  }
  return largest;
}

// One buffer that is larger than each arena, though not than all together.
static bool write_too_large(const plan_answer *answer, FILE *out) {
  char needed[FORMAT_SIZE], there[FORMAT_SIZE];
  if (answer->info.conflict_count != 1) return false;
  size_t index = answer->conflict[0];
  uint64_t size = answer->problem.buffers[index].size;
  uint64_t largest = largest_arena(answer, index);
  if (answer->problem.arena_count < 2 || size <= largest) return false;
  fprintf(out, "It needs %s in one piece; the largest arena for it has %s.\n",
          format_bytes_exact(needed, size), format_bytes_exact(there, largest));
  return true;
}

static void write_reason(const plan_answer *answer, FILE *out) {
  plan_crowd crowd = plan_conflict_crowd(answer);
  uint64_t capacity = plan_capacity(answer);
  char needed[FORMAT_SIZE];
  if (write_too_large(answer, out)) return;
  if (capacity > 0 && crowd.bytes > capacity) {
    write_too_much(answer, &crowd, capacity, out);
    return;
  }
  fprintf(out,
          "No step needs more than %s of theirs, and so much there is. But no "
          "way to\narrange them fits: all were tried.\n",
          format_bytes_exact(needed, crowd.bytes));
}

void plan_conflict_write(const plan_answer *answer, FILE *out) {
  size_t count = answer->info.conflict_count;
  if (answer->conflict == NULL || count == 0) return;
  if (count == 1) {
    fputs("This buffer alone does not fit:\n\n", out);
  } else {
    fprintf(out, "These %zu buffers cannot lie together:\n\n", count);
  }
  write_rows(answer, out);
  write_reason(answer, out);
  if (count == 1) return;
  fputs(answer->info.conflict_minimal
            ? "Without any one of them the rest of these would fit; there may "
              "be more such sets.\n"
            : "Whether fewer of them are the reason already is not known.\n",
        out);
}
