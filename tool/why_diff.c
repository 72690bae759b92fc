// Two peaks, frame by frame.
//
//   rows of this trace ─┐  by name   ┌─► matched
//                       ├──────────► │  by file and function, line by line
//   rows of the other ──┘            └─► matched, or alone on their side
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "why.h"

// A row of either side that found no partner by name.
typedef struct loner {
  const tarn_trace_frame *frame;
  size_t change;  // its index
} loner;

typedef struct differ {
  const tarn_trace *trace;
  const tarn_trace *other;
  names known;
  why_change *items;
  size_t count;
} differ;

static why_change *change_of(differ *d, const tarn_trace *trace,
                             const holder *row) {
  char *name = frame_names_holder(trace, row);
  size_t at = names_add(&d->known, name);
  if (at < d->count) {
    free(name);
  } else {
    d->items[d->count++].frame = name;
  }
  return &d->items[at];
}

static void add_rows(differ *d, const holder_list *list) {
  for (size_t i = 0; i < list->count; i++) {
    why_change *change = change_of(d, d->trace, &list->items[i]);
    change->bytes += list->items[i].bytes;
    change->blocks += list->items[i].blocks;
  }
}

static void add_other_rows(differ *d, const holder_list *list) {
  for (size_t i = 0; i < list->count; i++) {
    why_change *change = change_of(d, d->other, &list->items[i]);
    change->other_bytes += list->items[i].bytes;
    change->other_blocks += list->items[i].blocks;
  }
}

// ---------------------------------------------------------------------------
// Lines that moved
// ---------------------------------------------------------------------------

static int compare_loners(const void *a, const void *b) {
  const loner *x = a, *y = b;
  int order = strcmp(x->frame->file, y->frame->file);
  if (order == 0) order = strcmp(x->frame->function, y->frame->function);
  if (order != 0) return order;
  return (x->frame->line > y->frame->line) - (x->frame->line < y->frame->line);
}

static int compare_functions(const loner *x, const loner *y) {
  int order = strcmp(x->frame->file, y->frame->file);
  return order ? order : strcmp(x->frame->function, y->frame->function);
}

typedef struct loner_list {
  loner *items;
  size_t count;
} loner_list;

// The rows of |list| that have nothing on the other side.
static loner_list find_loners(const differ *d, const tarn_trace *trace,
                              const holder_list *list) {
  loner_list found = {0};
  found.items = tool_array(list->count + 1, sizeof *found.items);
  for (size_t i = 0; i < list->count; i++) {
    const holder *row = &list->items[i];
    if (!holder_has_frame(row)) continue;
    char *name = frame_names_holder(trace, row);
    size_t at = names_find(&d->known, name);
    const why_change *change = &d->items[at];
    free(name);
    if (change->blocks > 0 && change->other_blocks > 0) continue;
    found.items[found.count++] = (loner){&trace->frames[row->frame], at};
  }
  if (found.count > 1) {
    qsort(found.items, found.count, sizeof *found.items, compare_loners);
  }
  return found;
}

static void marry(differ *d, const loner *mine, const loner *theirs) {
  why_change *change = &d->items[mine->change];
  why_change *gone = &d->items[theirs->change];
  change->other_bytes = gone->other_bytes;
  change->other_blocks = gone->other_blocks;
  gone->other_bytes = gone->other_blocks = 0;
}

static void match_moved(differ *d, const loner_list *mine,
                        const loner_list *theirs) {
  size_t i = 0, k = 0;
  while (i < mine->count && k < theirs->count) {
    int order = compare_functions(&mine->items[i], &theirs->items[k]);
    if (order == 0) marry(d, &mine->items[i], &theirs->items[k]);
    i += order <= 0;
    k += order >= 0;
  }
}

// ---------------------------------------------------------------------------
// The list
// ---------------------------------------------------------------------------

static uint64_t distance(const why_change *change) {
  return change->bytes > change->other_bytes
             ? change->bytes - change->other_bytes
             : change->other_bytes - change->bytes;
}

static int compare_changes(const void *a, const void *b) {
  const why_change *x = a, *y = b;
  uint64_t dx = distance(x), dy = distance(y);
  if (dx != dy) return dx < dy ? 1 : -1;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return strcmp(x->frame, y->frame);
}

// Without the rows that were matched with another row.
static void drop_empty(differ *d) {
  size_t kept = 0;
  for (size_t i = 0; i < d->count; i++) {
    if (d->items[i].blocks == 0 && d->items[i].other_blocks == 0) {
      free(d->items[i].frame);
    } else {
      d->items[kept++] = d->items[i];
    }
  }
  d->count = kept;
}

why_diff why_diff_make(const tarn_trace *trace, const holder_list *list,
                       const tarn_trace *other, const holder_list *other_list) {
  differ d = {.trace = trace, .other = other, .known = names_make()};
  d.items = tool_array(list->count + other_list->count + 1, sizeof *d.items);
  add_rows(&d, list);
  add_other_rows(&d, other_list);
  loner_list mine = find_loners(&d, trace, list);
  loner_list theirs = find_loners(&d, other, other_list);
  match_moved(&d, &mine, &theirs);
  names_deinit(&d.known);
  drop_empty(&d);
  if (d.count > 1) qsort(d.items, d.count, sizeof *d.items, compare_changes);
  free(mine.items);
  free(theirs.items);
  return (why_diff){.other = other, .items = d.items, .count = d.count};
}

void why_diff_cut(why_diff *diff, size_t top) {
  if (top == 0 || diff->count <= top) return;
  holder others = {.kind = HOLDER_OTHERS, .rows = diff->count - top};
  why_change rest = {.frame = frame_names_holder(NULL, &others)};
  for (size_t i = top; i < diff->count; i++) {
    const why_change *change = &diff->items[i];
    rest.bytes += change->bytes;
    rest.blocks += change->blocks;
    rest.other_bytes += change->other_bytes;
    rest.other_blocks += change->other_blocks;
    free(change->frame);
  }
  diff->items[top] = rest;
  diff->count = top + 1;
}

void why_diff_deinit(why_diff *diff) {
  for (size_t i = 0; i < diff->count; i++)
    free(diff->items[i].frame);
  free(diff->items);
  *diff = (why_diff){0};
}
