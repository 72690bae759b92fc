// Sums over sets of blocks.
//
//   blocks ─► one sum per stack ─► one row per owner ─► sorted
//
// So a stack's owner is looked for once, whatever the number of its blocks.
#include "holders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame_names.h"
#include "kit/format.h"
#include "kit/tool.h"
#include "names.h"

typedef struct sum {
  uint64_t bytes;
  uint64_t blocks;
} sum;

static void count_block(sum *s, uint64_t size) {
  s->bytes += size;
  s->blocks++;
}

// ---------------------------------------------------------------------------
// Rows of frames
// ---------------------------------------------------------------------------

// Sums of a set by stack, before owners are known.
typedef struct tally {
  sum *stacks;  // of each stack of the trace
  sum *tags;    // of each tag, blocks without a stack; the first is no tag
  sum baseline;
  sum kept;
} tally;

typedef struct table_of_rows {
  owners *o;
  const tarn_trace *trace;
  uint32_t *row_of;  // of each frame: its row + 1
  holder_list list;
  size_t capacity;
} table_of_rows;

static holder *new_row(table_of_rows *t) {
  if (t->list.count == t->capacity) {
    size_t wider = t->capacity ? 2 * t->capacity : 64;
    holder *items = tool_array(wider, sizeof *items);
    if (t->list.count > 0) {
      memcpy(items, t->list.items, t->list.count * sizeof *items);
    }
    free(t->list.items);
    t->list.items = items;
    t->capacity = wider;
  }
  return &t->list.items[t->list.count++];
}

static void add_special(table_of_rows *t, holder_kind kind, uint32_t tag,
                        const sum *s) {
  if (s->blocks == 0) return;
  *new_row(t) = (holder){.kind = kind,
                         .frame = UINT32_MAX,
                         .tag = tag,
                         .stack = TARN_TRACE_NO_STACK,
                         .bytes = s->bytes,
                         .blocks = s->blocks};
  t->list.bytes += s->bytes;
  t->list.blocks += s->blocks;
}

static holder *row_of_frame(table_of_rows *t, uint32_t frame) {
  uint32_t *row = &t->row_of[frame];
  if (*row != 0) return &t->list.items[*row - 1];
  holder *new = new_row(t);
  *row = (uint32_t)t->list.count;
  *new =
      (holder){.kind = owners_is_own(t->o, frame) ? HOLDER_OWN : HOLDER_LIBRARY,
               .frame = frame,
               .stack = TARN_TRACE_NO_STACK};
  return new;
}

static void add_stack(table_of_rows *t, uint32_t stack, const sum *s) {
  holder *row = row_of_frame(t, owners_of(t->o, stack));
  row->bytes += s->bytes;
  row->blocks += s->blocks;
  if (row->stack == TARN_TRACE_NO_STACK || s->bytes > row->stack_bytes) {
    row->stack = stack;
    row->stack_bytes = s->bytes;
  }
  t->list.bytes += s->bytes;
  t->list.blocks += s->blocks;
}

static int compare_holders(const void *a, const void *b) {
  const holder *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  if (x->blocks != y->blocks) return x->blocks < y->blocks ? 1 : -1;
  if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
  if (x->tag != y->tag) return x->tag < y->tag ? -1 : 1;
  return (x->frame > y->frame) - (x->frame < y->frame);
}

static holder_list finish(owners *o, const tarn_trace *trace, tally *sums) {
  table_of_rows t = {.o = o, .trace = trace};
  t.row_of = tool_array(trace->frame_count + 1, sizeof *t.row_of);
  for (size_t i = 0; i < trace->stack_count; i++) {
    if (sums->stacks[i].blocks > 0) {
      add_stack(&t, (uint32_t)i, &sums->stacks[i]);
    }
  }
  for (size_t i = 0; i < trace->tag_count; i++) {
    add_special(&t, i == TARN_TRACE_NO_TAG ? HOLDER_NO_STACK : HOLDER_TAG,
                (uint32_t)i, &sums->tags[i]);
  }
  add_special(&t, HOLDER_BASELINE, 0, &sums->baseline);
  add_special(&t, HOLDER_KEPT, 0, &sums->kept);
  if (t.list.count > 1) {
    qsort(t.list.items, t.list.count, sizeof *t.list.items, compare_holders);
  }
  free(t.row_of);
  free(sums->stacks);
  free(sums->tags);
  return t.list;
}

static tally tally_make(const tarn_trace *trace) {
  tally sums = {0};
  sums.stacks = tool_array(trace->stack_count + 1, sizeof *sums.stacks);
  sums.tags = tool_array(trace->tag_count + 1, sizeof *sums.tags);
  return sums;
}

// A stack without frames is no stack.
static bool has_stack(const tarn_trace *trace, uint32_t stack) {
  return stack != TARN_TRACE_NO_STACK && trace->stacks[stack].count > 0;
}

static sum *sum_of(const tarn_trace *trace, tally *sums,
                   const tarn_trace_block *block) {
  bool old = block->born == TARN_TRACE_BASELINE;
  if (!has_stack(trace, block->stack)) {
    bool unknown = old && block->tag == TARN_TRACE_NO_TAG;
    return unknown ? &sums->baseline : &sums->tags[block->tag];
  }
  return old ? &sums->baseline : &sums->stacks[block->stack];
}

static sum *sum_of_old(const tarn_trace *trace, tally *sums,
                       const tarn_trace_block *block) {
  uint32_t stack = block->stack;
  if (stack == TARN_TRACE_NO_STACK && block->died != TARN_TRACE_NEVER) {
    stack = trace->events[block->died].stack;
  }
  if (has_stack(trace, stack)) return &sums->stacks[stack];
  bool kept = block->tag == TARN_TRACE_NO_TAG &&
              block->died == TARN_TRACE_NEVER &&
              block->stack == TARN_TRACE_NO_STACK;
  return kept ? &sums->kept : &sums->tags[block->tag];
}

holder_list holders_by_frame(owners *o, const tarn_trace *trace,
                             const block_set *set) {
  tally sums = tally_make(trace);
  for (size_t i = 0; i < set->count; i++) {
    const tarn_trace_block *block = &trace->blocks[set->items[i]];
    count_block(sum_of(trace, &sums, block), block->size);
  }
  return finish(o, trace, &sums);
}

holder_list holders_of_baseline(owners *o, const tarn_trace *trace,
                                const block_set *baseline) {
  tally sums = tally_make(trace);
  for (size_t i = 0; i < baseline->count; i++) {
    const tarn_trace_block *block = &trace->blocks[baseline->items[i]];
    count_block(sum_of_old(trace, &sums, block), block->size);
  }
  return finish(o, trace, &sums);
}

bool holder_has_frame(const holder *row) {
  return row->kind == HOLDER_OWN || row->kind == HOLDER_LIBRARY;
}

static bool stays(const holder *row) {
  return !holder_has_frame(row) && row->kind != HOLDER_TAG;
}

void holders_cut(holder_list *list, size_t top) {
  holder others = {
      .kind = HOLDER_OTHERS, .frame = UINT32_MAX, .stack = TARN_TRACE_NO_STACK};
  size_t kept = 0;
  if (top == 0) return;
  for (size_t i = 0; i < list->count; i++) {
    const holder *row = &list->items[i];
    if (i < top || stays(row)) {
      list->items[kept++] = *row;
      continue;
    }
    others.bytes += row->bytes;
    others.blocks += row->blocks;
    others.rows++;
  }
  if (others.rows > 0) list->items[kept++] = others;
  list->count = kept;
}

void holder_list_deinit(holder_list *list) {
  free(list->items);
  *list = (holder_list){0};
}

// ---------------------------------------------------------------------------
// Rows with names
// ---------------------------------------------------------------------------

static int compare_named(const void *a, const void *b) {
  const named_sum *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return strcmp(x->name, y->name);
}

// Frees what has no blocks, and sorts the rest.
static void settle(named_sums *sums) {
  size_t kept = 0;
  for (size_t i = 0; i < sums->count; i++) {
    if (sums->items[i].blocks == 0) {
      free(sums->items[i].name);
    } else {
      sums->items[kept++] = sums->items[i];
    }
  }
  sums->count = kept;
  if (kept > 1) {
    qsort(sums->items, kept, sizeof *sums->items, compare_named);
  }
}

static char *module_of(const tarn_trace *trace, const holder *row,
                       const char *root, size_t depth) {
  if (!holder_has_frame(row)) return frame_names_holder(trace, row);
  return frame_names_module(&trace->frames[row->frame], root, depth);
}

named_sums sums_by_module(const tarn_trace *trace, const holder_list *list,
                          const char *root, size_t depth) {
  named_sums sums = {0};
  names known = names_make();
  sums.items = tool_array(list->count + 1, sizeof *sums.items);
  for (size_t i = 0; i < list->count; i++) {
    char *name = module_of(trace, &list->items[i], root, depth);
    size_t at = names_add(&known, name);
    if (at == sums.count) {
      sums.items[sums.count++].name = name;
    } else {
      free(name);
    }
    sums.items[at].bytes += list->items[i].bytes;
    sums.items[at].blocks += list->items[i].blocks;
  }
  names_deinit(&known);
  settle(&sums);
  return sums;
}

enum { SIZE_CLASSES = 64 };

static size_t class_of(uint64_t size) {
  return size == 0 ? 0 : (size_t)(63 - __builtin_clzll(size));
}

// "4 MiB to 8 MiB", the latter excluded.
static char *name_of_class(unsigned power) {
  static const char *const units[] = {"B",   "KiB", "MiB", "GiB",
                                      "TiB", "PiB", "EiB"};
  char text[FORMAT_SIZE];
  unsigned next = power + 1;
  if (next == SIZE_CLASSES) return tool_text("from 8 EiB");
  snprintf(text, sizeof text, "%u %s to %u %s", 1u << power % 10,
           units[power / 10], 1u << next % 10, units[next / 10]);
  return tool_text(text);
}

named_sums sums_by_size(const tarn_trace *trace, const block_set *set) {
  sum classes[SIZE_CLASSES] = {0};
  named_sums sums = {0};
  sums.items = tool_array(SIZE_CLASSES, sizeof *sums.items);
  for (size_t i = 0; i < set->count; i++) {
    uint64_t size = trace->blocks[set->items[i]].size;
    count_block(&classes[class_of(size)], size);
  }
  for (size_t i = SIZE_CLASSES; i > 0; i--) {
    uint64_t least = UINT64_C(1) << (i - 1);
    uint64_t most = least + (least - 1);
    if (classes[i - 1].blocks == 0) continue;
    sums.items[sums.count++] =
        (named_sum){.name = name_of_class((unsigned)(i - 1)),
                    .bytes = classes[i - 1].bytes,
                    .blocks = classes[i - 1].blocks,
                    .least = least,
                    .most = most};
  }
  return sums;
}

named_sums sums_by_tag(const tarn_trace *trace, const block_set *set) {
  named_sums sums = {.count = trace->tag_count};
  sums.items = tool_array(trace->tag_count + 1, sizeof *sums.items);
  for (size_t i = 0; i < trace->tag_count; i++) {
    const char *tag = trace->tags[i];
    sums.items[i].name = tool_text(i == TARN_TRACE_NO_TAG ? "(no tag)" : tag);
  }
  for (size_t i = 0; i < set->count; i++) {
    const tarn_trace_block *block = &trace->blocks[set->items[i]];
    sums.items[block->tag].bytes += block->size;
    sums.items[block->tag].blocks++;
  }
  settle(&sums);
  return sums;
}

static void add_rest(named_sums *sums, size_t top) {
  holder rest = {.kind = HOLDER_OTHERS, .rows = sums->count - top};
  named_sum *row = &sums->items[top];
  uint64_t bytes = 0, blocks = 0;
  for (size_t i = top; i < sums->count; i++) {
    bytes += sums->items[i].bytes;
    blocks += sums->items[i].blocks;
    free(sums->items[i].name);
  }
  *row = (named_sum){.name = frame_names_holder(NULL, &rest),
                     .bytes = bytes,
                     .blocks = blocks};
  sums->count = top + 1;
}

void named_sums_cut(named_sums *sums, size_t top) {
  if (top > 0 && sums->count > top) add_rest(sums, top);
}

void named_sums_deinit(named_sums *sums) {
  for (size_t i = 0; i < sums->count; i++)
    free(sums->items[i].name);
  free(sums->items);
  *sums = (named_sums){0};
}
