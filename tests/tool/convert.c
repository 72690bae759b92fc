// `tarn convert`: a file for each format, told by its ending or by --to.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/json_check.h"
#include "support/log_file.h"
#include "support/pickle_writer.h"
#include "support/run.h"
#include "support/tool_assert.h"
#include "tarn/trace.h"

static const struct ending {
  const char *file;
  const char *format;  // as tarn_trace_read tells it; NULL: JSON
} endings[] = {
    {"a.tarn", "tarn"},
    {"a.pickle", "pytorch-snapshot"},
    {"a.pkl", "pytorch-snapshot"},
    {"a.json", NULL},
    {"a.json.tarn", "tarn"},
};

static void assert_is(const char *path, const char *format) {
  tarn_trace *trace = NULL;
  if (format == NULL) {
    char *text = tool_read_file(path);
    ck_assert_ptr_nonnull(text);
    ck_assert(json_valid(text));
    ck_assert(json_size(text, "traceEvents") > 10);
    return;
  }
  assert_ok(tarn_trace_read(path, NULL, &trace));
  ck_assert_str_eq(trace->format, format);
  ck_assert_uint_gt(trace->event_count, 0);
  tarn_trace_destroy(trace);
}

FIXTURE(tool_files_begin, tool_files_end);

TEST_LOOP(endings_tell_the_format, sizeof endings / sizeof *endings) {
  const char *path = tool_file(endings[_i].file);
  tool_output o = tool_did("convert", "@bert-layer", path);
  ck_assert_str_eq(o.out, "");
  assert_is(path, endings[_i].format);
}

TEST(to_goes_before_the_ending) {
  const char *path = tool_file("a.json");
  tool_did("convert", "@bert-layer", path, "--to", "pytorch");
  assert_is(path, "pytorch-snapshot");
  path = tool_file("no ending");
  tool_did("convert", "--to", "perfetto", "@bert-layer", path);
  assert_is(path, NULL);
}

// Whatever it goes through, the replay of it is the same.
TEST(formats_follow_each_other) {
  static const char *const names[] = {"1.tarn", "2.pickle", "3.tarn"};
  const char *from = "@kv-decode";
  for (size_t i = 0; i < 3; i++) {
    tool_did("convert", from, tool_file(names[i]));
    from = tool_file(names[i]);
  }
  tool_output first = tool_done("replay @kv-decode -o csv");
  tool_output last = tool_did("replay", from, "-o", "csv");
  ck_assert_ptr_nonnull(strchr(first.out, '\n'));
  ck_assert_uint_gt(strlen(first.out), 100);
  ck_assert_uint_gt(strlen(last.out), 100);
}

static void put_snapshot(const char *path) {
  pickle_writer w = {0};
  pickle_snapshot(&w, 4);
  pickle_middle(&w);
  pickle_event(&w, "alloc", 4096, 100);
  pickle_finish(&w);
  pickle_save(&w, path);
}

TEST(which_device) {
  const char *from = tool_file("in.pickle"), *to = tool_file("out.json");
  put_snapshot(from);
  tool_did("convert", from, to, "--trace-device", "0");
  assert_ended(tool_run("convert", from, to, "--trace-device", "1", "--force"),
               1, "device 1 has no history");
}

// --- what cannot be done ---------------------------------------------------

TEST(what_cannot_be_read_or_written) {
  const char *path = tool_file("a.json");
  assert_ended(tool_run("convert", "no such file", path), 1,
               "tarn convert: no such file: ");
  ck_assert_int_ne(access(path, F_OK), 0);
  assert_ended(tool_run("convert", "@bert-layer", tool_file("no/a.json")), 1,
               "a.json: No such file");
  if (access("/dev/full", W_OK) == 0) {
    assert_ended(tool_line("convert @bert-layer /dev/full --to tarn"), 1,
                 "/dev/full: cannot write to it: No space");
  }
}

// Tags that take six bytes of JSON for each of their own, in events of a few
// bytes.
static void put_bomb(const char *path) {
  log_file w;
  char tag[65];
  memset(tag, 1, 64);
  tag[64] = '\0';
  log_begin(&w);
  log_page(&w, 1);
  log_text(&w, 1, tag);
  for (uint64_t i = 0; i < 10000; i++) {
    log_put(&w, (tarn__trace_log_event){
                    .kind = i % 2 ? TARN__LOG_FREE : TARN__LOG_ALLOC,
                    .number = i,
                    .address = 64,
                    .size = 1,
                    .tag = 1});
  }
  FILE *file = fopen(path, "wb");
  ck_assert_ptr_nonnull(file);
  ck_assert_uint_eq(fwrite(w.bytes, 1, w.size, file), w.size);
  ck_assert_int_eq(fclose(file), 0);
  log_free(&w);
}

TEST(much_out_of_little_is_said) {
  const char *from = tool_file("bomb.tarn");
  put_bomb(from);
  assert_ended(tool_run("convert", from, tool_file("bomb.json")), 0,
               "bomb.json will have more than 100 times as much as ");
  tool_did("convert", from, tool_file("bomb.pickle"));
}

TEST(help) {
  tool_output o = tool_done("convert --help");
  assert_contains(o.out, "usage: tarn convert ");
}

TEST(wrong_use) {
  assert_misuse(tool_run("convert"), "which trace?");
  assert_misused("convert @bert-layer", "into which file?");
  assert_misused("convert @bert-layer a.json b c", "'b' is unexpected");
  assert_misused("convert @bert-layer a.txt",
                 "'a.txt' has no ending that tells a format");
  assert_misused("convert @bert-layer .json", "has no ending");
  assert_misused("convert @bert-layer a --to tar", "tarn, pytorch, perfetto");
  assert_misused("convert @bert a.json", "'@bert'");
  assert_misused("convert @bert-layer a.json --trace-device 0",
                 "--trace-device is for recorded traces");
  assert_misused("convert x a.json --trace-device y", "--trace-device wants");
  assert_misused("convert x a.json --from y", "--from");
}
