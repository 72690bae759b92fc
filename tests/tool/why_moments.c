// The parts of `tarn why` that look at moments: what was held and where the
// holes are, why requests were refused, and what differs between two peaks.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holes.h"
#include "moment.h"
#include "names.h"
#include "why.h"
#include "why_kit.h"

// ---------------------------------------------------------------------------
// Segments and holes
// ---------------------------------------------------------------------------

static void segment(uint64_t address, uint64_t size, uint64_t stream) {
  tarn_trace_segment s = {address, size, stream};
  assert_ok(tarn_trace_builder_segment(builder, &s));
}

// "1000+200 1400+100" of what is held at |when|.
static void assert_spans(const tarn_trace *trace, moment when,
                         const char *expected) {
  char text[256] = "";
  span_list list = moment_spans(trace, when);
  uint64_t bytes = 0;
  for (size_t i = 0; i < list.count; i++) {
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%llu+%llu", i ? " " : "",
             (unsigned long long)list.items[i].address,
             (unsigned long long)list.items[i].size);
    bytes += list.items[i].size;
  }
  ck_assert_str_eq(text, expected);
  ck_assert_uint_eq(bytes, list.bytes);
  span_list_deinit(&list);
}

TEST(segments_are_found_backwards) {
  begin();
  event(TARN_TRACE_SEGMENT_ALLOC, 1000, 200, TARN_TRACE_NO_STACK);
  event(TARN_TRACE_SEGMENT_FREE, 5000, 50, TARN_TRACE_NO_STACK);
  event(TARN_TRACE_SEGMENT_ALLOC, 1200, 100, TARN_TRACE_NO_STACK);
  event(TARN_TRACE_SEGMENT_FREE, 1000, 200, TARN_TRACE_NO_STACK);
  segment(1200, 100, 0);
  segment(9000, 10, 0);
  tarn_trace *trace = finish();
  assert_spans(trace, TARN_TRACE_BASELINE, "5000+50 9000+10");
  assert_spans(trace, 0, "1000+200 5000+50 9000+10");
  assert_spans(trace, 1, "1000+200 9000+10");
  assert_spans(trace, 2, "1000+200 1200+100 9000+10");
  assert_spans(trace, 3, "1200+100 9000+10");
  ck_assert(moment_knows_spans(trace));
  uint64_t wanted = 0;
  ck_assert_uint_eq(moment_held_peak(trace, UINT64_MAX, &wanted), 310);
  ck_assert_uint_eq(wanted, 310);
  tarn_trace_destroy(trace);
}

TEST(segments_are_found_forwards) {
  begin();
  event(TARN_TRACE_SEGMENT_FREE, 5000, 50, TARN_TRACE_NO_STACK);
  event(TARN_TRACE_SEGMENT_ALLOC, 1000, 200, TARN_TRACE_NO_STACK);
  event(TARN_TRACE_SEGMENT_ALLOC, 1200, 100, TARN_TRACE_NO_STACK);
  event(TARN_TRACE_SEGMENT_FREE, 1000, 200, TARN_TRACE_NO_STACK);
  tarn_trace *trace = finish();
  assert_spans(trace, TARN_TRACE_BASELINE, "");
  assert_spans(trace, 1, "1000+200");
  assert_spans(trace, 2, "1000+200 1200+100");
  assert_spans(trace, 3, "1200+100");
  uint64_t wanted = 0;
  ck_assert_uint_eq(moment_held_peak(trace, UINT64_MAX, &wanted), 300);
  tarn_trace_destroy(trace);
}

TEST(mapped_ranges_grow_together) {
  begin();
  event(TARN_TRACE_SEGMENT_MAP, 1000, 100, TARN_TRACE_NO_STACK);
  event(TARN_TRACE_SEGMENT_MAP, 1100, 100, TARN_TRACE_NO_STACK);
  event(TARN_TRACE_SEGMENT_UNMAP, 1050, 50, TARN_TRACE_NO_STACK);
  tarn_trace *trace = finish();
  assert_spans(trace, 0, "1000+100");
  assert_spans(trace, 1, "1000+200");
  assert_spans(trace, 2, "1000+50 1100+100");
  tarn_trace_destroy(trace);
}

// Where segments begin at the end says nothing of where they began before.
TEST(later_borders_do_not_count) {
  begin();
  event(TARN_TRACE_SEGMENT_MAP, 1000, 100, TARN_TRACE_NO_STACK);
  event(TARN_TRACE_SEGMENT_UNMAP, 1000, 50, TARN_TRACE_NO_STACK);
  segment(1050, 50, 0);
  tarn_trace *trace = finish();
  assert_spans(trace, 0, "1000+100");
  assert_spans(trace, 1, "1050+50");
  tarn_trace_destroy(trace);
  begin();
  event(TARN_TRACE_SEGMENT_ALLOC, 1000, 300, TARN_TRACE_NO_STACK);
  event(TARN_TRACE_SEGMENT_FREE, 1000, 300, TARN_TRACE_NO_STACK);
  event(TARN_TRACE_SEGMENT_ALLOC, 1000, 100, TARN_TRACE_NO_STACK);
  event(TARN_TRACE_SEGMENT_ALLOC, 1100, 200, TARN_TRACE_NO_STACK);
  segment(1000, 100, 0);
  segment(1100, 200, 0);
  trace = finish();
  assert_spans(trace, TARN_TRACE_BASELINE, "");
  assert_spans(trace, 0, "1000+300");
  assert_spans(trace, 1, "");
  assert_spans(trace, 2, "1000+100");
  assert_spans(trace, 3, "1000+100 1100+200");
  tarn_trace_destroy(trace);
}

// Beside what was mapped, segments that were allocated stay apart.
TEST(allocated_segments_stay_apart) {
  begin();
  event(TARN_TRACE_SEGMENT_MAP, 1000, 100, TARN_TRACE_NO_STACK);
  event(TARN_TRACE_SEGMENT_ALLOC, 1100, 100, TARN_TRACE_NO_STACK);
  event(TARN_TRACE_SEGMENT_MAP, 1200, 100, TARN_TRACE_NO_STACK);
  segment(1000, 300, 0);
  tarn_trace *trace = finish();
  assert_spans(trace, 0, "1000+100");
  assert_spans(trace, 2, "1000+100 1100+200");
  tarn_trace_destroy(trace);
}

static holes holes_at_end(const tarn_trace *trace, uint64_t stream) {
  moment at = (moment)(trace->event_count - 1);
  block_set live = moment_live(trace, at);
  holes found = holes_find(trace, &live, at, stream);
  block_set_deinit(&live);
  return found;
}

//   1000      1100  1150     1300   1400    1500          9000   9100
//     [ hole   | block | hole  | block ]      [   block   ] [ hole ]
TEST(holes_lie_between_blocks) {
  begin();
  alloc(1300, 100, TARN_TRACE_NO_STACK);
  alloc(1100, 50, TARN_TRACE_NO_STACK);
  alloc(1400, 100, TARN_TRACE_NO_STACK);
  alloc(7777, 100, TARN_TRACE_NO_STACK);  // outside of all
  segment(1000, 400, 0);
  segment(1400, 100, 0);
  segment(9000, 100, 5);
  tarn_trace *trace = finish();
  holes found = holes_at_end(trace, 5);
  ck_assert(found.known);
  ck_assert_uint_eq(found.reserved_bytes, 600);
  ck_assert_uint_eq(found.free_bytes, 100 + 150 + 100);
  ck_assert_uint_eq(found.count, 3);
  ck_assert_uint_eq(found.largest, 150);
  ck_assert_uint_eq(found.largest_of_stream, 100);
  ck_assert_double_eq_tol(found.fragmentation, 1 - 150.0 / 350, 1e-12);
  tarn_trace_destroy(trace);
}

TEST(nothing_free_is_not_fragmented) {
  begin();
  alloc(1000, 100, TARN_TRACE_NO_STACK);
  segment(1000, 100, 0);
  tarn_trace *trace = finish();
  holes full = holes_at_end(trace, 0);
  ck_assert(full.known);
  ck_assert_uint_eq(full.free_bytes, 0);
  ck_assert(isnan(full.fragmentation));
  tarn_trace_destroy(trace);
  begin();
  alloc(1000, 100, TARN_TRACE_NO_STACK);
  trace = finish();
  ck_assert(!moment_knows_spans(trace));
  holes unknown = holes_at_end(trace, 0);
  ck_assert(!unknown.known);
  ck_assert(isnan(unknown.fragmentation));
  tarn_trace_destroy(trace);
}

// ---------------------------------------------------------------------------
// Refused requests
// ---------------------------------------------------------------------------

// A request of |size| on |stream|, where 300 bytes in holes of 100 and 200 are
// free for stream 0, and 50 in one hole for stream 1.
static why_refused reason_beside(uint64_t size, uint64_t stream,
                                 uint64_t device_free) {
  begin();
  alloc(1100, 100, TARN_TRACE_NO_STACK);
  tarn_trace_event refused = {.kind = TARN_TRACE_OOM,
                              .size = size,
                              .address = device_free,
                              .stream = stream,
                              .stack = TARN_TRACE_NO_STACK};
  assert_ok(tarn_trace_builder_event(builder, &refused));
  segment(1000, 400, 0);
  segment(9000, 50, 1);
  tarn_trace *trace = finish();
  owners *o = owners_create(trace, &no_patterns);
  why_answer answer = why_ask(trace, o, trace->live_peak_event, 0);
  ck_assert_uint_eq(answer.oom_count, 1);
  ck_assert_uint_eq(answer.oom[0].event, 1);
  ck_assert_uint_eq(answer.oom[0].size, size);
  ck_assert_uint_eq(answer.oom[0].device_free, device_free);
  ck_assert_uint_eq(answer.oom[0].live_bytes, 100);
  ck_assert_uint_eq(answer.oom[0].space.free_bytes, 350);
  why_refused reason = answer.oom[0].reason;
  why_deinit(&answer);
  owners_destroy(o);
  tarn_trace_destroy(trace);
  return reason;
}

static why_refused reason_of(uint64_t size, uint64_t stream) {
  return reason_beside(size, stream, 0);
}

// What the device has left counts too.
TEST(a_device_has_a_rest) {
  ck_assert_int_eq(reason_beside(361, 0, 10), REFUSED_LESS_FREE);
  ck_assert_int_eq(reason_beside(360, 0, 10), REFUSED_FRAGMENTED);
  ck_assert_int_eq(reason_beside(360, 0, 360), REFUSED_BY_RULE);
  ck_assert_int_eq(reason_beside(51, 1, 50), REFUSED_OTHER_STREAM);
}

TEST(refusals_have_reasons) {
  ck_assert_int_eq(reason_of(351, 0), REFUSED_LESS_FREE);
  ck_assert_int_eq(reason_of(201, 0), REFUSED_FRAGMENTED);
  ck_assert_int_eq(reason_of(200, 0), REFUSED_BY_RULE);
  ck_assert_int_eq(reason_of(51, 1), REFUSED_OTHER_STREAM);
}

// Of very many refusals the last ones are looked into.
TEST(the_last_refusals_count) {
  begin();
  for (uint64_t i = 0; i < 100; i++)
    event(TARN_TRACE_OOM, 0, i + 1, TARN_TRACE_NO_STACK);
  tarn_trace *trace = finish();
  owners *o = owners_create(trace, &no_patterns);
  why_answer answer = why_ask(trace, o, TARN_TRACE_BASELINE, 0);
  ck_assert_uint_eq(answer.oom_total, 100);
  ck_assert_uint_eq(answer.oom_count, WHY_OOM_MOST);
  ck_assert_uint_eq(answer.oom[0].size, 100 - WHY_OOM_MOST + 1);
  ck_assert_uint_eq(answer.oom[WHY_OOM_MOST - 1].size, 100);
  ck_assert_int_eq(answer.oom[0].reason, REFUSED_UNKNOWN);
  why_deinit(&answer);
  owners_destroy(o);
  tarn_trace_destroy(trace);
}

// ---------------------------------------------------------------------------
// Differences
// ---------------------------------------------------------------------------

typedef struct peak {
  tarn_trace *trace;
  owners *owners;
  holder_list rows;
} peak;

static peak peak_of(tarn_trace *trace) {
  peak p = {.trace = trace, .owners = owners_create(trace, &no_patterns)};
  block_set live = moment_live(trace, trace->live_peak_event);
  p.rows = holders_by_frame(p.owners, trace, &live);
  block_set_deinit(&live);
  return p;
}

static void peak_free(peak *p) {
  holder_list_deinit(&p->rows);
  owners_destroy(p->owners);
  tarn_trace_destroy(p->trace);
}

static void assert_change(const why_change *change, const char *frame,
                          uint64_t bytes, uint64_t other_bytes) {
  ck_assert_str_eq(change->frame, frame);
  ck_assert_uint_eq(change->bytes, bytes);
  ck_assert_uint_eq(change->other_bytes, other_bytes);
}

TEST(names_have_numbers) {
  enum { NAMES = 1000 };
  char texts[NAMES][16];
  names n = names_make();
  for (size_t i = 0; i < NAMES; i++) {
    snprintf(texts[i], sizeof texts[i], "name %zu", i);
    require(names_find(&n, texts[i]) == NAMES_NONE);
    require(names_add(&n, texts[i]) == i);
    require(names_add(&n, texts[i]) == i);
  }
  for (size_t i = 0; i < NAMES; i++)
    require(names_find(&n, texts[i]) == i);
  ck_assert_uint_eq(n.count, NAMES);
  names_deinit(&n);
}

TEST(frames_are_matched) {
  begin();
  alloc(1000, 100, stack_at("/a/x.py", 12, "f"));  // was line 10
  alloc(2000, 500, stack_at("/a/x.py", 22, "f"));  // was line 20
  alloc(3000, 40, stack_at("/a/y.py", 1, "same"));
  alloc(4000, 3, stack_at("/a/y.py", 9, "new"));
  peak now = peak_of(finish());
  begin();
  alloc(1000, 90, stack_at("/a/x.py", 10, "f"));
  alloc(2000, 100, stack_at("/a/x.py", 20, "f"));
  alloc(3000, 41, stack_at("/a/y.py", 1, "same"));
  alloc(4000, 200, stack_at("/a/z.py", 5, "gone"));
  alloc(5000, 1, TARN_TRACE_NO_STACK);
  peak before = peak_of(finish());
  why_diff diff =
      why_diff_make(now.trace, &now.rows, before.trace, &before.rows);
  ck_assert_uint_eq(diff.count, 6);
  assert_change(&diff.items[0], "/a/x.py:22 f", 500, 100);
  assert_change(&diff.items[1], "/a/z.py:5 gone", 0, 200);
  assert_change(&diff.items[2], "/a/x.py:12 f", 100, 90);
  assert_change(&diff.items[3], "/a/y.py:9 new", 3, 0);
  assert_change(&diff.items[4], "/a/y.py:1 same", 40, 41);
  assert_change(&diff.items[5], "(no stack)", 0, 1);
  why_diff_cut(&diff, 0);
  ck_assert_uint_eq(diff.count, 6);
  why_diff_cut(&diff, 4);
  ck_assert_uint_eq(diff.count, 5);
  assert_change(&diff.items[4], "(2 others)", 40, 42);
  why_diff_deinit(&diff);
  peak_free(&now);
  peak_free(&before);
}

// Sums of both sides are kept, whatever is matched with what.
TEST(differences_add_up) {
  peak now = peak_of(random_trace(5));
  peak before = peak_of(random_trace(6));
  why_diff diff =
      why_diff_make(now.trace, &now.rows, before.trace, &before.rows);
  uint64_t bytes = 0, other_bytes = 0;
  for (size_t i = 0; i < diff.count; i++) {
    bytes += diff.items[i].bytes;
    other_bytes += diff.items[i].other_bytes;
  }
  ck_assert_uint_eq(bytes, now.trace->live_peak_bytes);
  ck_assert_uint_eq(other_bytes, before.trace->live_peak_bytes);
  why_diff_deinit(&diff);
  peak_free(&now);
  peak_free(&before);
}
