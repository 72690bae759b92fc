// Merging: sorted by what has to match, neighbours stand side by side.
#include "plan_merged.h"

#include <stdlib.h>

typedef struct piece {
  tarn_plan_buffer buffer;
  uint64_t offset;
  size_t index;
  uint32_t arena;
  uint8_t colour;
} piece;

static int order(uint64_t a, uint64_t b) {
  return (a > b) - (a < b);
}

static int compare_kinds(const piece *a, const piece *b) {
  int by = order(a->arena, b->arena);
  if (by == 0) by = order(a->buffer.first, b->buffer.first);
  if (by == 0) by = order(a->buffer.last, b->buffer.last);
  return by != 0 ? by : order(a->colour, b->colour);
}

static int compare(const void *a, const void *b) {
  const piece *x = a, *y = b;
  int by = compare_kinds(x, y);
  return by != 0 ? by : order(x->offset, y->offset);
}

static bool goes_on(const piece *below, const piece *above) {
  return compare_kinds(below, above) == 0 && below->buffer.gap_count == 0 &&
         above->buffer.gap_count == 0 &&
         below->offset + below->buffer.size == above->offset;
}

static piece *sorted_pieces(const plan_answer *answer) {
  size_t count = answer->problem.count;
  piece *pieces = tool_array(count + 1, sizeof *pieces);
  for (size_t i = 0; i < count; i++) {
    pieces[i] =
        (piece){.buffer = answer->problem.buffers[i],
                .offset = answer->offsets[i],
                .index = i,
                .arena = answer->arenas != NULL ? answer->arenas[i] : 0,
                .colour = answer->input->kind->colour(answer->input, i)};
  }
  qsort(pieces, count, sizeof *pieces, compare);
  return pieces;
}

static void add(plan_merged *m, const piece *p) {
  m->buffers[m->count] = p->buffer;
  m->offsets[m->count] = p->offset;
  m->arenas[m->count] = p->arena;
  m->first[m->count] = p->index;
  m->parts[m->count] = 1;
  m->colour[m->count++] = p->colour;
}

plan_merged plan_merged_make(const plan_answer *answer) {
  size_t count = answer->problem.count;
  piece *pieces = sorted_pieces(answer);
  plan_merged m = {.buffers = tool_array(count + 1, sizeof *m.buffers),
                   .offsets = tool_array(count + 1, sizeof *m.offsets),
                   .arenas = tool_array(count + 1, sizeof *m.arenas),
                   .first = tool_array(count + 1, sizeof *m.first),
                   .parts = tool_array(count + 1, sizeof *m.parts),
                   .colour = tool_array(count + 1, sizeof *m.colour)};
  for (size_t i = 0; i < count; i++) {
    if (i > 0 && goes_on(&pieces[i - 1], &pieces[i])) {
      m.buffers[m.count - 1].size += pieces[i].buffer.size;
      m.parts[m.count - 1]++;
    } else {
      add(&m, &pieces[i]);
    }
  }
  free(pieces);
  return m;
}

void plan_merged_deinit(plan_merged *m) {
  free(m->buffers);
  free(m->offsets);
  free(m->arenas);
  free(m->first);
  free(m->parts);
  free(m->colour);
  *m = (plan_merged){0};
}
