// `tarn replay`: wrong use, and traces that cannot be read.
#include "support/pickle_writer.h"
#include "support/run.h"
#include "support/tool_assert.h"

FIXTURE(tool_files_begin, tool_files_end);

TEST(wrong_names) {
  assert_misuse(tool_run("replay"), "which trace?");
  assert_misused("replay @bert", "did you mean '@bert-layer'?");
  assert_misused("replay @x", "there are: @bert-layer, ");
  assert_misused("replay @bert-layer --pool page_unit_pol",
                 "did you mean 'page_unit_pool'?");
  assert_misused("replay @bert-layer --pool no_pool,", "no pool is named ''");
  assert_misused("replay @bert-layer --pool no_pool,no_pool",
                 "pool 'no_pool' is named twice");
  assert_misused("replay @bert-layer --pool no_pool:x=1", "tarn replay: ");
  assert_misused("replay @bert-layer --device abacus:0", "cpu");
}

TEST(wrong_numbers) {
  static const char *const wrong[] = {
      "0", "-1", "", "2x", " 2", "1e3", "99999999999999999999"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    assert_misuse(tool_run("replay", "@bert-layer", "--iterations", wrong[i]),
                  "--iterations wants a whole number");
  }
  assert_misused("replay @bert-layer --threads 0",
                 "--threads wants a whole number from 1 to 64");
  assert_misused("replay @bert-layer --threads 65", "--threads wants");
  assert_misused("replay @bert-layer --trace-device x",
                 "--trace-device wants a whole number from 0 to 4294967295");
  assert_misused("replay @bert-layer --trace-device -1",
                 "--trace-device wants a whole number");
  assert_misused("replay @bert-layer --trace-device 0",
                 "--trace-device is for recorded traces: @bert-layer has none");
  static const char *const no_bytes[] = {
      "0",   "-1",  "",      "G",   "1X",   "1GB",  "18446744073709551616",
      "1.5", "1.G", "1.5.G", ".5G", "0.0K", "1,5G", "99999999T"};
  for (size_t i = 0; i < sizeof no_bytes / sizeof no_bytes[0]; i++) {
    assert_misuse(tool_run("replay", "@bert-layer", "--limit", no_bytes[i]),
                  "is not a number of bytes");
  }
  assert_misused("replay @bert-layer --dry --touch",
                 "--dry has no memory for --touch");
  assert_misused("replay @bert-layer --dry --pool page_unit_pool:page=7",
                 "page=7 is not a power of two");
  assert_misused("replay @bert-layer --html /dev/stdout -ocsv",
                 "--html /dev/stdout and -o both want stdout");
  assert_misused("replay @bert-layer -o yaml", "'yaml' is not a format");
}

TEST(missing_file) {
  assert_exits(tool_run("replay", tool_file("nowhere.pickle")), 1,
               "nowhere.pickle");
}

TEST(truncated_snapshot) {
  pickle_writer w = {0};
  pickle_snapshot(&w, 4);
  pickle_middle(&w);
  pickle_event(&w, "alloc", 0x1000, 4096);
  pickle_finish(&w);
  w.size /= 2;
  const char *path = tool_file("cut.pickle");
  pickle_save(&w, path);
  assert_exits(tool_run("replay", path), 1, "cut.pickle: byte ");
  // One bad trace among good ones: no half a document.
  assert_exits(tool_run("replay", "@bert-layer", path, "-o", "json"), 1,
               "cut.pickle: byte ");
}
