// The report of buffers that do not fit: those that could lie elsewhere; then a
// conflict, the buffers by name, what they need in which step, and what there
// is.
//
// Their need is the lower bound of a problem of these buffers alone; the step
// is found by a sweep over their beginnings and ends.
#include "plan_conflict.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kit/format.h"
#include "kit/sheet.h"
#include "plan_changes.h"
#include "plan_fit.h"

enum { ROWS = 20 };  // more buffers than that tell a person nothing

// ---------------------------------------------------------------------------
// How much, and when
// ---------------------------------------------------------------------------

// The step in which most is live. Sizes sum up to less than 2^63.
static plan_pressure most_live(const plan_answer *answer) {
  plan_changes changes = plan_changes_make(&answer->problem, answer->conflict,
                                           answer->info.conflict_count, NULL);
  plan_pressure most = {.has_step = true};
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

static uint64_t bound_of(const plan_answer *answer) {
  size_t count = answer->problem.count;
  bool *left_out = tool_array(count, sizeof *left_out);
  uint64_t bound = 0;
  memset(left_out, true, count * sizeof *left_out);
  for (size_t i = 0; i < answer->info.conflict_count; i++)
    left_out[answer->conflict[i]] = false;
  plan_part part = plan_part_make(&answer->problem, left_out);
  if (tarn_plan_lower_bound(&part.problem, &bound) != TARN_OK) bound = 0;
  plan_part_deinit(&part);
  free(left_out);
  return bound;
}

plan_pressure plan_conflict_pressure(const plan_answer *answer) {
  if (answer->conflict == NULL) return (plan_pressure){0};
  plan_pressure pressure = most_live(answer);
  uint64_t bound = bound_of(answer);
  // In place they need less, fixed offsets make them need more.
  pressure.has_step = pressure.bytes == bound;
  pressure.bytes = bound;
  return pressure;
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

static void add_row(sheet *s, const plan_answer *answer, size_t index) {
  const tarn_plan_buffer *b = &answer->problem.buffers[index];
  char text[FORMAT_SIZE];
  sheet_text(s, "buffer", NULL, plan_input_id(answer->input, index));
  sheet_uint(s, "bytes", NULL, b->size, SHEET_COUNT);
  snprintf(text, sizeof text, "%" PRIu64 "..%" PRIu64, b->first, b->last);
  sheet_figure(s, "steps", NULL, text);
  describe_place(b, text);
  sheet_text(s, "offset", NULL, text);
  sheet_row_end(s);
}

static void list(const plan_answer *answer, const size_t *buffers, size_t count,
                 FILE *out) {
  sheet *s = sheet_begin_on(out, OUTPUT_TABLE, NULL);
  for (size_t i = 0; i < count; i++)
    add_row(s, answer, buffers[i]);
  sheet_end(s);
}

// ---------------------------------------------------------------------------
// What must move
// ---------------------------------------------------------------------------

static void write_needed(const plan_answer *answer, FILE *out) {
  const plan_shortage *s = &answer->shortage;
  char needed[FORMAT_SIZE], room[FORMAT_SIZE];
  if (s->excess == 0) return;
  format_bytes_apart(needed, s->needed, room,
                     plan_fit_capacity(&answer->problem));
  fprintf(out, "%s are needed at once%s; the capacity is %s: that is proved.\n",
          needed, s->has_step ? "" : " at least", room);
}

static void write_moves(const plan_answer *answer, FILE *out) {
  const plan_moves *moves = &answer->shortage.moves;
  const plan_input *input = answer->input;
  char bytes[FORMAT_SIZE], height[FORMAT_SIZE], room[FORMAT_SIZE];
  char more[FORMAT_SIZE];
  uint64_t capacity = plan_fit_capacity(&answer->problem);
  size_t shown = moves->count < ROWS ? moves->count : ROWS;
  if (!moves->known) {
    fprintf(out,
            "Nothing was found that could lie elsewhere for the rest "
            "to fit into %s.\n",
            format_bytes(room, capacity));
    return;
  }
  if (input->kind->list != NULL) {
    input->kind->list(input, moves->items, shown, out);
  } else {
    list(answer, moves->items, shown, out);
  }
  if (shown < moves->count) {
    fprintf(out, "and %s smaller ones; -o json names all\n",
            format_count(more, moves->count - shown));
  }
  format_bytes_apart(height, moves->height, room, capacity);
  fprintf(out,
          "\nMoved elsewhere, %s %s; a plan of all others needs %s of %s.\n",
          moves->count == 1 ? "it takes" : "they take",
          format_bytes(bytes, moves->bytes), height, room);
}

static void write_shortage(const plan_answer *answer, FILE *out) {
  if (plan_fit_capacity(&answer->problem) == 0) return;
  write_moves(answer, out);
  write_needed(answer, out);
  fputc('\n', out);
}

// ---------------------------------------------------------------------------
// The conflict
// ---------------------------------------------------------------------------

static void write_too_much(const plan_answer *answer,
                           const plan_pressure *pressure, uint64_t capacity,
                           FILE *out) {
  char needed[FORMAT_SIZE], there[FORMAT_SIZE], where[FORMAT_SIZE];
  bool one = answer->info.conflict_count == 1;
  format_bytes_apart(needed, pressure->bytes, there, capacity);
  fprintf(out, "%s %s", one ? "It needs" : "They need", needed);
  if (pressure->has_step && !one) {
    fprintf(
        out, " together%s",
        plan_input_step(answer->input, pressure->step, where, sizeof where));
  } else if (!one) {
    fputs(" at least", out);
  }
  fprintf(out, "; the capacity is %s.\n", there);
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

// A buffer that is larger than each arena, though not than all together.
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
  plan_pressure pressure = plan_conflict_pressure(answer);
  uint64_t capacity = plan_fit_capacity(&answer->problem);
  char needed[FORMAT_SIZE];
  if (write_too_large(answer, out)) return;
  if (capacity > 0 && pressure.bytes > capacity) {
    write_too_much(answer, &pressure, capacity, out);
    return;
  }
  fprintf(out,
          "No step needs more than %s of theirs, and so much there is. But no "
          "way to\narrange them fits: all were tried.\n",
          format_bytes_exact(needed, pressure.bytes));
}

void plan_conflict_write(const plan_answer *answer, FILE *out) {
  size_t count = answer->info.conflict_count;
  char number[FORMAT_SIZE];
  write_shortage(answer, out);
  if (answer->conflict == NULL || count == 0) return;
  if (count > ROWS && answer->shortage.excess > 0) return;  // that says it all
  if (count == 1) {
    fputs("This buffer alone does not fit:\n\n", out);
  } else if (count <= ROWS) {
    fprintf(out, "These %zu buffers cannot lie together:\n\n", count);
  } else {
    fprintf(out, "%s buffers cannot lie together; -o json names them.\n",
            format_count(number, count));
  }
  if (count <= ROWS) {
    list(answer, answer->conflict, count, out);
    fputc('\n', out);
  }
  write_reason(answer, out);
  if (count > 1) {
    fputs(answer->info.conflict_minimal
              ? "Without any one of them the rest of these would fit; there "
                "may be more such sets.\n"
              : "Whether fewer of them are the reason already is not known.\n",
          out);
  }
  fputc('\n', out);
}
