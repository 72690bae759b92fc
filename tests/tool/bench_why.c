// `tarn bench why`: its rows and keys, what it makes, wrong use. No figure is
// compared with a time.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/why_bench.h"
#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"

static unsigned char *read_whole(const char *path, size_t *out_size) {
  FILE *in = fopen(path, "rb");
  ck_assert_ptr_nonnull(in);
  ck_assert_int_eq(fseek(in, 0, SEEK_END), 0);
  *out_size = (size_t)ftell(in);
  rewind(in);
  unsigned char *bytes = malloc(*out_size);
  ck_assert_ptr_nonnull(bytes);
  ck_assert_uint_eq(fread(bytes, 1, *out_size, in), *out_size);
  fclose(in);
  return bytes;
}

TEST(json_has_the_published_keys) {
  char text[128];
  tool_output o = tool_done("bench why --opcodes 20000 --passes 2 -o json");
  ck_assert(json_valid(o.out));
  assert_keys(o.out, "", "results,machine");
  ck_assert_uint_eq(json_size(o.out, "results"), WHY_BENCH_ROWS);
  for (size_t i = 0; i < WHY_BENCH_ROWS; i++) {
    const bench_figure *figure = why_bench_figure_at((why_bench_row)i);
    snprintf(text, sizeof text, "\"%s\"", figure->name);
    ck_assert(json_is(o.out, json_row(i, "name"), text));
    assert_keys(o.out, json_row(i, ""), "name,value,unit,goal,met");
    ck_assert_double_ge(json_number(o.out, json_row(i, "value")), 0);
    ck_assert(isnan(figure->goal) ==
              json_is(o.out, json_row(i, "goal"), "null"));
  }
  double opcodes = json_number(o.out, json_row(WHY_BENCH_OPCODES, "value"));
  ck_assert_double_gt(opcodes, 15000);
  ck_assert_double_lt(opcodes, 60000);
  ck_assert_double_eq(json_number(o.out, json_row(WHY_BENCH_WHY_WALL, "goal")),
                      1);
  ck_assert_double_eq(json_number(o.out, json_row(WHY_BENCH_WHY_PEAK, "goal")),
                      400e6);
}

TEST(the_same_snapshot_each_time) {
  const char *path[2];
  unsigned char *bytes[2];
  size_t size[2];
  tarn_trace *trace = NULL;
  tool_files_begin();
  for (int i = 0; i < 2; i++) {
    path[i] = tool_file(i == 0 ? "a" : "b");
    assert_ok(why_trace_write(100000, path[i]));
    bytes[i] = read_whole(path[i], &size[i]);
  }
  ck_assert_uint_eq(size[0], size[1]);
  ck_assert_mem_eq(bytes[0], bytes[1], size[0]);
  uint64_t opcodes = why_trace_opcodes(bytes[0], size[0]);
  ck_assert_uint_gt(opcodes, 90000);
  ck_assert_uint_lt(opcodes, 160000);
  ck_assert_uint_eq(why_trace_opcodes(bytes[0], size[0] - 1), opcodes - 1);
  bytes[0][2] = 'R';
  ck_assert_uint_eq(why_trace_opcodes(bytes[0], size[0]), 0);
  assert_ok(tarn_trace_read(path[1], NULL, &trace));
  ck_assert_uint_eq(trace->stack_count, 50);
  ck_assert_uint_eq(trace->stacks[0].count, WHY_TRACE_DEPTH);
  ck_assert_uint_gt(trace->baseline_count, 0);
  tarn_trace_destroy(trace);
  free(bytes[0]);
  free(bytes[1]);
  tool_files_end();
}

TEST(tables_and_a_file_that_stays) {
  tool_files_begin();
  const char *path = tool_file("kept.pickle");
  tool_output o = tool_did("bench", "why", "--opcodes", "5000", "--passes", "1",
                           "--keep", path);
  assert_contains(o.out, "Linux ");  // the machine
  assert_contains(o.out, "\nread_cpu ");
  assert_contains(o.out, "<= 400000000");
  ck_assert_int_eq(access(path, R_OK), 0);
  o = tool_done("bench why --opcodes 5000 --passes 1 -o csv");
  ck_assert_int_eq(strncmp(o.out, "name,value,unit,goal,met,what", 29), 0);
  o = tool_done("bench why --opcodes 5000 --passes 1 -o md");
  assert_contains(o.out, "\n| figure ");
  tool_files_end();
}

TEST(no_place_for_it) {
  tool_output o = tool_ended(
      1, tool_line("bench why --opcodes 5000 --keep /nowhere/x -o json"));
  assert_contains(o.err, "making the snapshot: /nowhere/x: cannot make it");
  ck_assert(json_valid(o.out));
  ck_assert(json_is(o.out, json_row(WHY_BENCH_WHY_WALL, "value"), "null"));
  setenv("TMPDIR", "/nowhere", 1);
  o = tool_line("bench why --opcodes 5000");
  unsetenv("TMPDIR");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "No such file");
}

TEST(help_and_wrong_use) {
  tool_output o = tool_done("bench why --help");
  assert_contains(o.out, "usage: tarn bench why ");
  assert_misused("bench why --opcodes 999", "--opcodes wants a whole number");
  assert_misused("bench why --passes 0", "--passes wants a whole number");
  assert_misused("bench why --passes 102", "--passes wants a whole number");
  assert_misused("bench why -o xml", "'xml' is not a format");
  assert_misused("bench why file", "'file' is unexpected");
}
