// The tool's parts, without running it: numbers for people, JSON, tables, the
// stopwatch, folded addresses.
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/format.h"
#include "kit/json.h"
#include "kit/stopwatch.h"
#include "kit/table.h"
#include "kit/text.h"
#include "kit/tool.h"
#include "layout.h"
#include "replay.h"
#include "support/json_check.h"
#include "support/run.h"

// --- format ----------------------------------------------------------------

static void assert_bytes(uint64_t bytes, const char *expected) {
  char text[FORMAT_SIZE];
  ck_assert_str_eq(format_bytes(text, bytes), expected);
}

TEST(bytes_have_units) {
  assert_bytes(0, "0 B");
  assert_bytes(1023, "1023 B");
  assert_bytes(1024, "1.00 KiB");
  assert_bytes(1536, "1.50 KiB");
  assert_bytes(1610612736, "1.50 GiB");
  assert_bytes(UINT64_C(1) << 60, "1.00 EiB");
}

// Never rounded up into the next unit, nor beyond what there is.
TEST(bytes_are_cut) {
  assert_bytes(1048575, "1023.99 KiB");
  assert_bytes(1034, "1.00 KiB");  // 1.0098
  assert_bytes(1035, "1.01 KiB");  // 1.0107
  assert_bytes((UINT64_C(1) << 50) - 1, "1023.99 TiB");
  assert_bytes(UINT64_MAX, "15.99 EiB");
}

TEST(exact_bytes_name_both) {
  char text[FORMAT_SIZE];
  ck_assert_str_eq(format_bytes_exact(text, 1), "1 byte");
  ck_assert_str_eq(format_bytes_exact(text, 1000), "1000 bytes");
  ck_assert_str_eq(format_bytes_exact(text, 1572864),
                   "1.50 MiB (1572864 bytes)");
  ck_assert_str_eq(format_bytes_exact(text, UINT64_MAX),
                   "15.99 EiB (18446744073709551615 bytes)");
}

static void assert_apart(uint64_t a, uint64_t b, const char *text_a,
                         const char *text_b) {
  char got_a[FORMAT_SIZE], got_b[FORMAT_SIZE];
  format_bytes_apart(got_a, a, got_b, b);
  ck_assert_str_eq(got_a, text_a);
  ck_assert_str_eq(got_b, text_b);
}

TEST(bytes_are_told_apart) {
  assert_apart(5120, 2048, "5.00 KiB", "2.00 KiB");
  assert_apart(5120, 5120, "5.00 KiB", "5.00 KiB");
  assert_apart(6446219264, 6442450944, "6.003 GiB", "6.000 GiB");
  assert_apart(7013335296, 7013335295, "6.531677484 GiB", "6.531677483 GiB");
  assert_apart((UINT64_C(1) << 60) + 1, UINT64_C(1) << 60,
               "1152921504606846977 bytes", "1152921504606846976 bytes");
  assert_apart(UINT64_MAX, UINT64_MAX - 1, "18446744073709551615 bytes",
               "18446744073709551614 bytes");
}

TEST(counts_have_commas) {
  char text[FORMAT_SIZE];
  ck_assert_str_eq(format_count(text, 0), "0");
  ck_assert_str_eq(format_count(text, 999), "999");
  ck_assert_str_eq(format_count(text, 1000), "1,000");
  ck_assert_str_eq(format_count(text, 1234567), "1,234,567");
  ck_assert_str_eq(format_count(text, UINT64_MAX),
                   "18,446,744,073,709,551,615");
}

TEST(fixed_fits_every_number) {
  char text[FORMAT_SIZE];
  ck_assert_str_eq(format_fixed(text, 21.349, 1), "21.3");
  ck_assert_str_eq(format_fixed(text, NAN, 2), "-");
  ck_assert_str_eq(format_fixed(text, INFINITY, 2), "-");
  ck_assert_uint_lt(strlen(format_fixed(text, DBL_MAX, 3)), FORMAT_SIZE);
  ck_assert_uint_lt(strlen(format_fixed(text, -DBL_MAX, 3)), FORMAT_SIZE);
}

// --- json ------------------------------------------------------------------

static char *text_of;
static size_t text_size;

static json open_json(void) {
  return json_to(open_memstream(&text_of, &text_size));
}

static void assert_written(json *writer, const char *expected) {
  fclose(writer->out);
  ck_assert_str_eq(text_of, expected);
  ck_assert(json_valid(text_of));
  free(text_of);
}

static void assert_text(const char *text, const char *expected) {
  json writer = open_json();
  json_text(&writer, text);
  assert_written(&writer, expected);
}

TEST(json_nests) {
  json writer = open_json();
  json_begin_object(&writer);
  json_key(&writer, "a");
  json_begin_array(&writer);
  json_uint(&writer, UINT64_MAX);
  json_int(&writer, INT64_MIN);
  json_begin_object(&writer);
  json_end_object(&writer);
  json_bool(&writer, true);
  json_end_array(&writer);
  json_key(&writer, "b");
  json_bool(&writer, false);
  json_end_object(&writer);
  json_finish(&writer);
  assert_written(&writer,
                 "{\"a\":[18446744073709551615,-9223372036854775808,{},true],"
                 "\"b\":false}\n");
}

TEST(json_escapes) {
  assert_text("a\"b\\c/d", "\"a\\\"b\\\\c/d\"");
  assert_text("\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"");
  assert_text("\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\"");
  assert_text("</script>", "\"</script>\"");
}

TEST(json_keeps_only_utf8) {
  assert_text("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
              "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
  assert_text("a\xff", "\"a\\ufffd\"");
  assert_text("\xc3", "\"\\ufffd\"");                        // cut short
  assert_text("\xc0\xaf", "\"\\ufffd\\ufffd\"");             // overlong
  assert_text("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"");  // surrogate
  assert_text("\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

// The value stays, but a terminal that it is shown on does not obey it.
TEST(json_escapes_what_terminals_obey) {
  assert_text("\xc2\x9b\xc2\xa0", "\"\\u009b\xc2\xa0\"");
  assert_text("\xe2\x80\xae\xe2\x81\xa6", "\"\\u202e\\u2066\"");
}

TEST(json_is_inert_in_html) {
  json writer = open_json();
  writer.for_html = true;
  json_text(&writer, "</script>&<!--");
  assert_written(&writer, "\"\\u003c/script\\u003e\\u0026\\u003c!--\"");
}

static void assert_double(double value, const char *expected) {
  json writer = open_json();
  json_double(&writer, value);
  assert_written(&writer, expected);
}

TEST(json_doubles_come_back) {
  assert_double(0, "0");
  assert_double(0.1, "0.1");
  assert_double(1.0 / 3, "0.3333333333333333");
  assert_double(1e300, "1e+300");
  assert_double(NAN, "null");
  assert_double(-INFINITY, "null");
}

TEST(json_base64_pads) {
  json writer = open_json();
  json_begin_array(&writer);
  json_base64(&writer, "", 0);
  json_base64(&writer, "f", 1);
  json_base64(&writer, "fo", 2);
  json_base64(&writer, "foobar", 6);
  json_end_array(&writer);
  assert_written(&writer, "[\"\",\"Zg==\",\"Zm8=\",\"Zm9vYmFy\"]");
}

// The checker that the other tests rely on must refuse what is no JSON.
TEST(checker_is_strict) {
  static const char *const wrong[] = {
      "",      "{",       "[1,]",     "{\"a\":1,}",  "[1 2]",  "01",
      "1.",    ".5",      "nan",      "'a'",         "\"\t\"", "\"\\x\"",
      "[1]]",  "{\"a\"}", "\"\xff\"", "\"\\u12g4\"", "tru",    "+1",
      "{1:2}", "[",       "1e",       "\"a",         "[1],",   "-"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    ck_assert_msg(!json_valid(wrong[i]), "'%s' passed", wrong[i]);
  }
  ck_assert(json_valid(" {\"a\" : [1, -2.5e+3, \"\\u00e9\", null]} \n"));
}

// --- table -----------------------------------------------------------------

static const table_column columns[] = {
    {"pool", "pool", false},
    {"held", "reserved_peak_bytes", true},
    {"hits", "hit_percent", true},
};

static char *write_table(table_style style) {
  FILE *out = open_memstream(&text_of, &text_size);
  table *t = table_create(columns, 3);
  table_text(t, "no_pool");
  table_bytes(t, 1536);
  table_percent(t, 1, 8);
  table_text(t, "a,\"b|\x1b");
  table_count(t, 12345);
  table_percent(t, 0, 0);
  table_write(t, style, out);
  table_destroy(t);
  fclose(out);
  return text_of;
}

static void assert_table(table_style style, const char *expected) {
  char *text = write_table(style);
  ck_assert_str_eq(text, expected);
  free(text);
}

TEST(table_aligns) {
  assert_table(TABLE_PLAIN,
               "pool         held   hits\n"
               "no_pool  1.50 KiB  12.5%\n"
               "a,\"b|?     12,345      -\n");
}

TEST(table_as_csv) {
  assert_table(TABLE_CSV,
               "pool,reserved_peak_bytes,hit_percent\n"
               "no_pool,1536,12.5\n"
               "\"a,\"\"b|?\",12345,\n");
}

TEST(table_as_markdown) {
  assert_table(TABLE_MARKDOWN,
               "| pool    |     held |  hits |\n"
               "|---------|---------:|------:|\n"
               "| no_pool | 1.50 KiB | 12.5% |\n"
               "| a,\"b\\|?  |   12,345 |     - |\n");
}

TEST(table_without_rows) {
  FILE *out = open_memstream(&text_of, &text_size);
  table *t = table_create(columns, 3);
  table_write(t, TABLE_CSV, out);
  table_destroy(t);
  fclose(out);
  ck_assert_str_eq(text_of, "pool,reserved_peak_bytes,hit_percent\n");
  free(text_of);
}

// A line break can be told in CSV, and nothing else that a terminal obeys.
TEST(csv_keeps_line_breaks) {
  static const table_column one[] = {{"trace", "trace", false}};
  FILE *out = open_memstream(&text_of, &text_size);
  table *t = table_create(one, 1);
  table_text(t, "a\nb\r\x1b\xc2\x9b\x9b");
  table_write(t, TABLE_CSV, out);
  table_write(t, TABLE_PLAIN, out);
  table_destroy(t);
  fclose(out);
  ck_assert_str_eq(text_of, "trace\n\"a\nb????\"\ntrace\na?b????\n");
  free(text_of);
}

// --- text ------------------------------------------------------------------

static void assert_neutral(const char *text, const char *expected) {
  char copy[64];
  snprintf(copy, sizeof copy, "%s", text);
  text_neutralise(copy, "");
  ck_assert_str_eq(copy, expected);
}

TEST(text_without_controls) {
  assert_neutral("", "");
  assert_neutral("a b~", "a b~");
  assert_neutral("\x1b[2J\n\t\x7f", "?[2J???");
  assert_neutral("\xc2\x80-\xc2\x9b-\xc2\x9f-\xc2\xa0", "?-?-?-\xc2\xa0");
  assert_neutral("\x80\x9b\x9f", "???");  // C1 as one byte
  assert_neutral("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
                 "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  assert_neutral("a\xc3", "a?");
  assert_neutral("\xe2\x82", "??");
  assert_neutral("\xc0\x9b", "??");  // an overlong ESC
}

TEST(text_in_one_direction) {
  assert_neutral("\xe2\x80\xa9-\xe2\x80\xaa-\xe2\x80\xae-\xe2\x80\xaf",
                 "\xe2\x80\xa9-?-?-\xe2\x80\xaf");
  assert_neutral("\xe2\x81\xa5-\xe2\x81\xa6-\xe2\x81\xa9-\xe2\x81\xaa",
                 "\xe2\x81\xa5-?-?-\xe2\x81\xaa");
}

TEST(text_keeps_what_it_is_told) {
  char text[] = "a\nb\rc\x7f";
  text_neutralise(text, "\n\x7f");
  ck_assert_str_eq(text, "a\nb?c?");
}

TEST(joined_texts_are_cut) {
  char text[8] = "";
  tool_append(text, sizeof text, ", ", "ab");
  ck_assert_str_eq(text, "ab");
  tool_append(text, sizeof text, ", ", "cdefgh");
  ck_assert_str_eq(text, "ab, cde");
  tool_append(text, sizeof text, ", ", "x");
  ck_assert_str_eq(text, "ab, cde");
}

// --- figures ---------------------------------------------------------------

// 1, 2, ... |count|, the largest first.
static void assert_percentile(size_t count, size_t percent, uint64_t expected) {
  uint64_t ticks[1000];
  for (size_t i = 0; i < count; i++)
    ticks[i] = count - i;
  stopwatch_sort(ticks, count);
  ck_assert_uint_eq(stopwatch_percentile(ticks, count, percent), expected);
}

TEST(percentiles_of_known_arrays) {
  assert_percentile(1, 50, 1);
  assert_percentile(2, 50, 1);  // the lower of two
  assert_percentile(3, 50, 2);
  assert_percentile(4, 50, 2);
  assert_percentile(1, 99, 1);
  assert_percentile(99, 99, 99);
  assert_percentile(100, 99, 99);
  assert_percentile(101, 99, 100);
  assert_percentile(1000, 99, 990);
  assert_percentile(1000, 100, 1000);
}

static double steady_of(const double *ms, size_t count) {
  replay_iteration iterations[8] = {{0}};
  for (size_t i = 0; i < count; i++)
    iterations[i].alloc_ms = ms[i];
  replay_result result = {.iterations = iterations, .iteration_count = count};
  return replay_steady(&result)->alloc_ms;
}

TEST(steady_is_the_lower_median) {
  static const double ms[] = {9, 4, 2, 3, 1, 5};
  ck_assert_double_eq(steady_of(ms, 1), 9);
  ck_assert_double_eq(steady_of(ms, 2), 4);
  ck_assert_double_eq(steady_of(ms, 3), 2);  // of 4, 2
  ck_assert_double_eq(steady_of(ms, 4), 3);  // of 4, 2, 3
  ck_assert_double_eq(steady_of(ms, 5), 2);  // of 4, 2, 3, 1
  ck_assert_double_eq(steady_of(ms, 6), 3);
}

// --- stopwatch -------------------------------------------------------------

TEST(stopwatch_agrees_with_the_clock) {
  stopwatch watch = stopwatch_start();
  uint64_t begin_ns = stopwatch_clock_ns();
  uint64_t begin = stopwatch_now(&watch);
  while (stopwatch_clock_ns() - begin_ns < 20000000) {
  }
  double ns = stopwatch_ns(&watch, (double)stopwatch_since(&watch, begin));
  double clock = (double)(stopwatch_clock_ns() - begin_ns);
  ck_assert_double_gt(ns, 0.5 * clock);
  ck_assert_double_lt(ns, 1.5 * clock);
}

// Nothing takes about no time: at least half of all empty measurements are 0.
TEST(stopwatch_takes_its_own_cost_off) {
  enum { COUNT = 1000 };
  stopwatch watch = stopwatch_start();
  size_t zeros = 0;
  for (int i = 0; i < COUNT; i++) {
    uint64_t begin = stopwatch_now(&watch);
    uint64_t ticks = stopwatch_since(&watch, begin);
    if (stopwatch_ns(&watch, (double)ticks) < 20) zeros++;
  }
  ck_assert_uint_ge(zeros, COUNT / 4);
}

// Readings of a clock that advances by 10: three of 20, one of 30.
TEST(equal_readings_are_spread) {
  static const uint64_t four[] = {20, 20, 20, 30};
  static const uint64_t same[] = {20, 20, 20, 20};
  stopwatch watch = {.ns_per_tick = 2, .empty_mean = 16, .step = 10};
  // The second of three within 15 to 25; the only one within 25 to 35.
  ck_assert_double_eq_tol(stopwatch_spread(&watch, four, 4, 50), 2 * 4, 1e-9);
  ck_assert_double_eq_tol(stopwatch_spread(&watch, four, 4, 99), 2 * 14, 1e-9);
  ck_assert_double_eq_tol(stopwatch_spread(&watch, same, 4, 50),
                          2 * (15 + 10 * 1.5 / 4 - 16), 1e-9);
  ck_assert_double_eq(stopwatch_spread(&watch, same, 0, 50), 0);
  // Where the clock shows each tick, it is the reading.
  watch.step = 1;
  ck_assert_double_eq_tol(stopwatch_spread(&watch, four, 4, 99), 2 * 14, 1e-9);
}

// --- clocks that advance by steps ------------------------------------------

static const uint64_t steps_ns[] = {10, 1000, 100000};
enum { STEPS = 3 };

TEST_LOOP(a_coarse_clock_is_one, STEPS) {
  stopwatch watch = stopwatch_coarse(steps_ns[_i]);
  ck_assert(!watch.counts_cycles);
  ck_assert_uint_gt(watch.step, 0);
  ck_assert_uint_eq(watch.step % steps_ns[_i], 0);
  uint64_t begin = stopwatch_now(&watch);
  ck_assert_uint_eq(begin % steps_ns[_i], 0);
  ck_assert_double_ge(stopwatch_pass_ns(&watch, begin), (double)steps_ns[_i]);
}

static void assert_iteration(const replay_iteration *i) {
  ck_assert_double_gt(i->pass_ms, 0);
  ck_assert_double_gt(i->alloc_ms, 0);
  ck_assert_double_gt(i->free_ms, 0);
  ck_assert_double_eq_tol(i->alloc_ms + i->free_ms, i->pass_ms, 1e-9);
  ck_assert_double_gt(i->alloc_ns_median, 0);
  ck_assert_double_ge(i->alloc_ns_p99, i->alloc_ns_median);
}

// Requests take less than such a clock shows, and passes too: no figure is 0.
TEST_LOOP(no_replay_takes_no_time, STEPS) {
  tarn_device *device = NULL;
  tarn_trace *trace = NULL;
  stopwatch watch = stopwatch_coarse(steps_ns[_i]);
  tool_progress progress;
  replay_result result;
  assert_ok(tarn_device_open("cpu:0", &device));
  assert_ok(tarn_trace_make("@bert-layer", &trace));
  tool_progress_begin(&progress, 16);
  for (size_t threads = 1; threads <= 2; threads++) {
    replay_options options = {.device = device,
                              .pool = "arena_pool",
                              .iterations = 8,
                              .threads = threads};
    ck_assert_msg(replay_run(trace, &options, &watch, &progress, &result), "%s",
                  result.error);
    ck_assert_uint_eq(result.failed, 0);
    for (size_t i = 0; i < result.iteration_count; i++)
      assert_iteration(&result.iterations[i]);
    replay_result_deinit(&result);
  }
  tarn_trace_destroy(trace);
  assert_ok(tarn_device_close(device));
}

// --- layout ----------------------------------------------------------------

enum { KB = 1024 };

TEST(layout_folds_gaps) {
  static const tarn_trace_block blocks[] = {
      {.size = 8 * KB}, {.size = 8 * KB}, {.size = 8 * KB}, {.size = 4 * KB}};
  static const tarn_addr addresses[] = {0x7f0000000000, 0x550000000000,
                                        0x550000002000, 0x550000001000};
  layout l = layout_make(blocks, addresses, 4, NULL, 0);
  ck_assert_uint_eq(l.range_count, 2);
  ck_assert_uint_eq(l.ranges[0].address, 0x550000000000);
  ck_assert_uint_eq(l.ranges[0].size, 16 * KB);
  ck_assert_uint_eq(l.height, 24 * KB);
  ck_assert_uint_eq(layout_height(&l, 0x550000000000), 0);
  ck_assert_uint_eq(layout_height(&l, 0x550000002000), 8 * KB);
  ck_assert_uint_eq(layout_height(&l, 0x7f0000000000), 16 * KB);
  layout_deinit(&l);
}

TEST(layout_keeps_small_gaps) {
  static const tarn_trace_block blocks[] = {{.size = 64 * KB},
                                            {.size = 64 * KB}};
  static const tarn_addr addresses[] = {0x100000, 0x110010};
  layout l = layout_make(blocks, addresses, 2, NULL, 0);
  ck_assert_uint_eq(l.range_count, 1);
  ck_assert_uint_eq(l.height, 128 * KB + 16);
  layout_deinit(&l);
}

// Memory that is held but stands nowhere is a range at address 0.
TEST(layout_has_ranges_at_zero) {
  static const tarn_trace_block blocks[] = {{.size = 64 * KB}};
  static const tarn_addr addresses[] = {0x550000000000};
  static const layout_range others[] = {{.address = 0, .size = 8 * KB},
                                        {.address = 8 * KB, .size = 8 * KB}};
  layout l = layout_make(blocks, addresses, 1, others, 2);
  ck_assert_uint_eq(l.range_count, 2);
  ck_assert_uint_eq(l.height, 80 * KB);
  ck_assert_uint_eq(layout_height(&l, 0), 0);
  ck_assert_uint_eq(layout_height(&l, 8 * KB), 8 * KB);
  ck_assert_uint_eq(layout_height(&l, 0x550000000000), 16 * KB);
  layout_deinit(&l);
}

TEST(layout_passes_over_refused_blocks) {
  static const tarn_trace_block blocks[] = {{.size = 5}, {.size = 0}};
  static const tarn_addr addresses[] = {0, UINT64_MAX};
  layout l = layout_make(blocks, addresses, 2, NULL, 0);
  ck_assert_uint_eq(l.range_count, 1);
  ck_assert_uint_eq(l.height, 1);
  ck_assert_uint_eq(layout_height(&l, UINT64_MAX), 0);
  layout_deinit(&l);
  l = layout_make(blocks, addresses, 1, NULL, 0);
  ck_assert_uint_eq(l.height, 0);
  layout_deinit(&l);
}
