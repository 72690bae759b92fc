// The parts of `tarn why`, on traces that are built event by event: holders of
// what lives, and sums of them. Sums are exact: every byte that lives is in one
// row.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame_names.h"
#include "holders.h"
#include "moment.h"
#include "owners.h"
#include "why_kit.h"

static uint64_t sum_of_rows(const holder_list *list, uint64_t *out_blocks) {
  uint64_t bytes = 0;
  *out_blocks = 0;
  for (size_t i = 0; i < list->count; i++) {
    bytes += list->items[i].bytes;
    *out_blocks += list->items[i].blocks;
    require(list->items[i].blocks > 0);
  }
  return bytes;
}

static void require_sorted(const holder_list *list) {
  for (size_t i = 1; i < list->count; i++) {
    require(list->items[i - 1].bytes >= list->items[i].bytes);
  }
}

static void require_sums(const named_sums *sums, const block_set *set) {
  uint64_t bytes = 0, blocks = 0;
  for (size_t i = 0; i < sums->count; i++) {
    bytes += sums->items[i].bytes;
    blocks += sums->items[i].blocks;
  }
  require(bytes == set->bytes && blocks == set->count);
}

static void require_exact(owners *o, const tarn_trace *trace,
                          const block_set *set) {
  uint64_t blocks = 0;
  holder_list rows = holders_by_frame(o, trace, set);
  require(sum_of_rows(&rows, &blocks) == set->bytes && blocks == set->count);
  require(rows.bytes == set->bytes && rows.blocks == set->count);
  require_sorted(&rows);
  named_sums modules = sums_by_module(trace, &rows, "/home/me/", 0);
  named_sums sizes = sums_by_size(trace, set);
  named_sums tags = sums_by_tag(trace, set);
  require_sums(&modules, set);
  require_sums(&sizes, set);
  require_sums(&tags, set);
  named_sums_cut(&modules, 1);
  require_sums(&modules, set);
  require(modules.count <= 2);
  holders_cut(&rows, 2);
  require(sum_of_rows(&rows, &blocks) == set->bytes && blocks == set->count);
  named_sums_deinit(&modules);
  named_sums_deinit(&sizes);
  named_sums_deinit(&tags);
  holder_list_deinit(&rows);
}

// What lives after |count| events, counted one by one.
static uint64_t live_after(const tarn_trace *trace, size_t count) {
  uint64_t live = trace->baseline_bytes;
  for (size_t i = 0; i < count; i++) {
    const tarn_trace_event *e = &trace->events[i];
    if (e->kind == TARN_TRACE_ALLOC) live += trace->blocks[e->block].size;
    if (e->kind == TARN_TRACE_FREE) live -= trace->blocks[e->block].size;
  }
  return live;
}

TEST_LOOP(every_byte_is_in_one_row, 8) {
  tarn_trace *trace = random_trace((uint32_t)_i + 1);
  owners *o = owners_create(trace, &no_patterns);
  for (size_t i = 0; i < trace->event_count; i += 7) {
    block_set live = moment_live(trace, (moment)i);
    require(live.bytes == live_after(trace, i + 1));
    require_exact(o, trace, &live);
    block_set_deinit(&live);
  }
  block_set before = moment_live(trace, TARN_TRACE_BASELINE);
  require(before.count == trace->baseline_count);
  require(before.bytes == trace->baseline_bytes);
  require_exact(o, trace, &before);
  block_set_deinit(&before);
  block_set peak = moment_live(trace, trace->live_peak_event);
  ck_assert_uint_eq(peak.bytes, trace->live_peak_bytes);
  block_set_deinit(&peak);
  owners_destroy(o);
  tarn_trace_destroy(trace);
}

// What lives at a moment, what came and went, and what came later and stays or
// was older and went before: these are all.
TEST(churn_is_the_rest) {
  tarn_trace *trace = random_trace(99);
  moment at = trace->live_peak_event;
  block_set live = moment_live(trace, at);
  block_set churn = moment_churn(trace, at);
  size_t others = 0;
  for (size_t i = 0; i < trace->block_count; i++) {
    const tarn_trace_block *b = &trace->blocks[i];
    bool old_and_gone = b->born == TARN_TRACE_BASELINE && b->died <= at;
    bool later = b->born != TARN_TRACE_BASELINE && b->born > at &&
                 b->died == TARN_TRACE_NEVER;
    others += old_and_gone || later;
  }
  ck_assert_uint_gt(churn.count, 0);
  ck_assert_uint_eq(live.count + churn.count + others, trace->block_count);
  block_set_deinit(&live);
  block_set_deinit(&churn);
  tarn_trace_destroy(trace);
}

static void assert_row(const tarn_trace *trace, const holder *row,
                       const char *name, uint64_t bytes, uint64_t blocks) {
  char *got = frame_names_holder(trace, row);
  ck_assert_str_eq(got, name);
  ck_assert_uint_eq(row->bytes, bytes);
  ck_assert_uint_eq(row->blocks, blocks);
  free(got);
}

TEST(rows_of_their_own) {
  begin();
  tarn_trace_block old = {
      .size = 7, .address = 1, .stack = stack_at("/a/x.py", 1, "f")};
  assert_ok(tarn_trace_builder_old(builder, &old));
  alloc(100, 50, stack_at("/a/x.py", 1, "f"));
  alloc(200, 60, stack_at("/a/x.py", 1, "f"));
  alloc(300, 70, stack_at("/a/y.py", 2, "g"));
  alloc(400, 5, TARN_TRACE_NO_STACK);
  alloc(500, 2, stack_at("/a/z.py", 3, "h"));
  tarn_trace *trace = finish();
  owners *o = owners_create(trace, &no_patterns);
  block_set live = moment_live(trace, 4);
  holder_list rows = holders_by_frame(o, trace, &live);
  ck_assert_uint_eq(rows.count, 5);
  assert_row(trace, &rows.items[0], "/a/x.py:1 f", 110, 2);
  assert_row(trace, &rows.items[1], "/a/y.py:2 g", 70, 1);
  assert_row(trace, &rows.items[2], "(before the trace began)", 7, 1);
  assert_row(trace, &rows.items[3], "(no stack)", 5, 1);
  assert_row(trace, &rows.items[4], "/a/z.py:3 h", 2, 1);
  holders_cut(&rows, 1);
  ck_assert_uint_eq(rows.count, 4);
  assert_row(trace, &rows.items[1], "(before the trace began)", 7, 1);
  assert_row(trace, &rows.items[3], "(2 others)", 72, 2);
  holder_list_deinit(&rows);
  block_set_deinit(&live);
  owners_destroy(o);
  tarn_trace_destroy(trace);
}

static uint32_t tag_of(const char *name) {
  uint32_t tag = 0;
  assert_ok(tarn_trace_builder_tag(builder, name, &tag));
  return tag;
}

static void alloc_tagged(uint64_t address, uint64_t size, uint32_t tag,
                         uint32_t stack) {
  tarn_trace_event e = {.kind = TARN_TRACE_ALLOC,
                        .address = address,
                        .size = size,
                        .stack = stack,
                        .tag = tag};
  assert_ok(tarn_trace_builder_event(builder, &e));
}

// A stack says more than a tag; a tag more than that a block is old.
TEST(tags_hold_what_has_no_stack) {
  begin();
  uint32_t weights = tag_of("weights"), work = tag_of("work");
  tarn_trace_block old = {
      .size = 40, .address = 1, .stack = TARN_TRACE_NO_STACK, .tag = weights};
  assert_ok(tarn_trace_builder_old(builder, &old));
  alloc_tagged(100, 50, weights, TARN_TRACE_NO_STACK);
  alloc_tagged(200, 30, work, TARN_TRACE_NO_STACK);
  alloc_tagged(300, 20, work, stack_of(NULL, 0));
  alloc_tagged(400, 70, work, stack_at("/a/x.py", 1, "f"));
  alloc(500, 5, TARN_TRACE_NO_STACK);
  tarn_trace *trace = finish();
  owners *o = owners_create(trace, &no_patterns);
  block_set live = moment_live(trace, 4);
  holder_list rows = holders_by_frame(o, trace, &live);
  ck_assert_uint_eq(rows.count, 4);
  assert_row(trace, &rows.items[0], "weights", 90, 2);
  assert_row(trace, &rows.items[1], "/a/x.py:1 f", 70, 1);
  assert_row(trace, &rows.items[2], "work", 50, 2);
  assert_row(trace, &rows.items[3], "(no stack)", 5, 1);
  char *name = frame_names_short(trace, &rows.items[2], "");
  ck_assert_str_eq(name, "tag work");
  free(name);
  named_sums modules = sums_by_module(trace, &rows, "/a/", 0);
  ck_assert_uint_eq(modules.count, 4);
  ck_assert_str_eq(modules.items[2].name, "work");
  named_sums_deinit(&modules);
  holders_cut(&rows, 1);
  ck_assert_uint_eq(rows.count, 3);
  assert_row(trace, &rows.items[2], "(2 others)", 120, 3);
  holder_list_deinit(&rows);
  block_set old_ones = block_set_baseline(trace, &live);
  rows = holders_of_baseline(o, trace, &old_ones);
  ck_assert_uint_eq(rows.count, 1);
  assert_row(trace, &rows.items[0], "weights", 40, 1);
  holder_list_deinit(&rows);
  block_set_deinit(&old_ones);
  block_set_deinit(&live);
  owners_destroy(o);
  tarn_trace_destroy(trace);
}

TEST(the_baseline_is_told_apart) {
  begin();
  tarn_trace_block known = {
      .size = 7, .address = 1, .stack = stack_at("/a/x.py", 1, "f")};
  tarn_trace_block kept = {
      .size = 9, .address = 50, .stack = TARN_TRACE_NO_STACK};
  assert_ok(tarn_trace_builder_old(builder, &known));
  assert_ok(tarn_trace_builder_old(builder, &kept));
  event(TARN_TRACE_FREE, 100, 30, stack_at("/a/step.py", 73, "step"));
  event(TARN_TRACE_FREE, 200, 3, TARN_TRACE_NO_STACK);
  tarn_trace *trace = finish();
  owners *o = owners_create(trace, &no_patterns);
  block_set live = moment_live(trace, TARN_TRACE_BASELINE);
  block_set old = block_set_baseline(trace, &live);
  ck_assert_uint_eq(old.bytes, 49);
  holder_list rows = holders_of_baseline(o, trace, &old);
  ck_assert_uint_eq(rows.count, 4);
  assert_row(trace, &rows.items[0], "/a/step.py:73 step", 30, 1);
  assert_row(trace, &rows.items[1], "(never freed in the trace)", 9, 1);
  assert_row(trace, &rows.items[2], "/a/x.py:1 f", 7, 1);
  assert_row(trace, &rows.items[3], "(no stack)", 3, 1);
  holder_list_deinit(&rows);
  block_set_deinit(&old);
  block_set_deinit(&live);
  owners_destroy(o);
  tarn_trace_destroy(trace);
}

TEST(sizes_have_classes) {
  static const uint64_t sizes[] = {
      1, 1023, 1024, 2047, UINT64_C(1) << 40, UINT64_C(1) << 63};
  tarn_trace_block blocks[COUNT(sizes)] = {{0}};
  uint32_t all[COUNT(sizes)];
  for (uint32_t i = 0; i < COUNT(sizes); i++) {
    blocks[i].size = sizes[i];
    all[i] = i;
  }
  tarn_trace trace = {.blocks = blocks, .block_count = COUNT(sizes)};
  block_set set = {.items = all, .count = COUNT(sizes)};
  named_sums sums = sums_by_size(&trace, &set);
  ck_assert_uint_eq(sums.count, 5);
  ck_assert_str_eq(sums.items[0].name, "from 8 EiB");
  ck_assert_uint_eq(sums.items[0].most, UINT64_MAX);
  ck_assert_str_eq(sums.items[1].name, "1 TiB to 2 TiB");
  ck_assert_str_eq(sums.items[2].name, "1 KiB to 2 KiB");
  ck_assert_uint_eq(sums.items[2].blocks, 2);
  ck_assert_uint_eq(sums.items[2].bytes, 1024 + 2047);
  ck_assert_str_eq(sums.items[3].name, "512 B to 1 KiB");
  ck_assert_str_eq(sums.items[4].name, "1 B to 2 B");
  named_sums_deinit(&sums);
}

TEST(tags_are_summed) {
  uint32_t tag = 0;
  begin();
  assert_ok(tarn_trace_builder_tag(builder, "weights", &tag));
  tarn_trace_event e = {.kind = TARN_TRACE_ALLOC,
                        .address = 1,
                        .size = 10,
                        .stack = TARN_TRACE_NO_STACK,
                        .tag = tag};
  assert_ok(tarn_trace_builder_event(builder, &e));
  alloc(100, 3, TARN_TRACE_NO_STACK);
  tarn_trace *trace = finish();
  block_set live = moment_live(trace, 1);
  named_sums sums = sums_by_tag(trace, &live);
  ck_assert_uint_eq(sums.count, 2);
  ck_assert_str_eq(sums.items[0].name, "weights");
  ck_assert_uint_eq(sums.items[0].bytes, 10);
  ck_assert_str_eq(sums.items[1].name, "(no tag)");
  ck_assert_uint_eq(sums.items[1].bytes, 3);
  named_sums_deinit(&sums);
  block_set_deinit(&live);
  tarn_trace_destroy(trace);
}
