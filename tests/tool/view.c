// `tarn view`: one file that needs nothing else and says what the trace says;
// nothing hostile gets out of it.
#include <unistd.h>

#include "page_script.h"
#include "view_kit.h"

// --- the file --------------------------------------------------------------

FIXTURE(tool_files_begin, tool_files_end);

TEST(page_stands_alone) {
  char *page = view("@bert-layer");
  assert_contains(page, "<!DOCTYPE html>");
  assert_contains(page, "<h1>@bert-layer</h1>");
  assert_contains(page, "<noscript>");
  assert_contains(page, "default-src 'none'");
  static const char *const absent[] = {"{{",        "http://", "https://",
                                       " src=",     " href=",  "@import",
                                       "innerHTML", "eval(",   "fetch("};
  for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
    ck_assert_msg(strstr(page, absent[i]) == NULL, "'%s' is there", absent[i]);
  }
}

static void assert_line(const char *trace, const char *line) {
  char expected[600];
  const char *path = tool_file("out.html");
  tool_output o = tool_ends(0, "view", trace, "--html", path);
  snprintf(expected, sizeof expected, "%s: %s\n", path, line);
  ck_assert_str_eq(o.out, expected);
}

// A page on stdout stands there alone.
TEST(one_line_says_what_was_written) {
  assert_line("@bert-layer",
              "192 events, 96 blocks; opens at the peak of 50.13 MiB, at event "
              "68");
  const char *refused = write_known();
  assert_line(refused,
              "7 events, 4 blocks; opens at event 6, which was refused 32.00 "
              "MiB");
  begin_snapshot();
  const char *empty = write_snapshot("empty.pickle");
  assert_line(empty,
              "0 events, 0 blocks; opens at the peak of 0 B, before the first "
              "event");
  const char *standard = tool_file("stdout");  // as /dev/stdout is one
  ck_assert_int_eq(symlink("/proc/self/fd/1", standard), 0);
  tool_output o = tool_ends(0, "view", "@bert-layer", "--html", standard);
  ck_assert_int_eq(strncmp(o.out, "<!DOCTYPE html>", 15), 0);
  ck_assert_str_eq(o.out + strlen(o.out) - 8, "</html>\n");
  assert_contains(o.err, "stdout: 192 events");
}

TEST(data_are_complete) {
  char *page = view("@bert-layer");
  char *data = data_of(page);
  char keys[256];
  ck_assert_str_eq(
      json_keys(data, "", keys, sizeof keys),
      "events,baseline,born,died,stack,size,time,frames,stacks,kind,block,"
      "holder,holders,refused,tag,tags,peak_bytes,peak_event,unit,"
      "first,whole,role,roles,phases,pools");
  assert_keys(data, "pools.0", "name,height,ranges,at,segments");
  ck_assert(json_is(data, "pools.0.name", "\"arena_pool\""));
  ck_assert(json_is(data, "tag", "null"));
  ck_assert_double_gt(json_number(data, "pools.0.height"), MIB);
}

// The baseline's block has no segment; a gap above the segment is folded away.
TEST(arrays_are_those_of_the_trace) {
  char *page = view(write_known());
  char *data = data_of(page);
  ck_assert_double_eq(json_number(data, "events"), 7);
  ck_assert_double_eq(json_number(data, "baseline"), 1);
  ck_assert_double_eq(json_number(data, "peak_bytes"), 7 * MIB);
  ck_assert_double_eq(json_number(data, "peak_event"), 2);
  ck_assert(json_is(data, "pools.0.name", "null"));
  assert_doubles(data, "size", 4, (double[]){MIB, 4 * MIB, 2 * MIB, MIB});
  assert_uints(data, "born", 4, (uint32_t[]){0, 1, 2, 5});
  assert_uints(data, "died", 4, (uint32_t[]){4, 3, 7, 7});
  assert_uints(data, "holder", 4, (uint32_t[]){0, 2, 3, 4});
  assert_doubles(data, "pools.0.at", 4, (double[]){16 * MIB, 0, 8 * MIB, 0});
  assert_uints(data, "block", 7,
               (uint32_t[]){UINT32_MAX, 1, 2, 1, 0, 3, UINT32_MAX});
  assert_doubles(data, "pools.0.segments.at", 1, (double[]){0});
  assert_doubles(data, "pools.0.segments.size", 1, (double[]){16 * MIB});
  ck_assert_double_eq(json_number(data, "refused.0.0"), 6);
  ck_assert_double_eq(json_number(data, "refused.0.1"), 32 * MIB);
  ck_assert_double_eq(json_number(data, "holders.0"), -1);
  ck_assert_double_eq(json_number(data, "holders.1"), -1);
  ck_assert_uint_eq(json_size(data, "holders"), 5);
}

// A segment from before is given back; of one that was mapped the middle is
// unmapped, and its ends stay.
TEST(segments_come_and_go) {
  begin_snapshot();
  event_by("segment_free", 256 * MIB, 4 * MIB, NULL, NULL);
  event_by("segment_map", 64 * MIB, 12 * MIB, NULL, NULL);
  event_by("segment_unmap", 68 * MIB, 4 * MIB, NULL, NULL);
  event_by("alloc", 64 * MIB, MIB, "/app/model.py", "forward");
  char *page = view(write_snapshot("segments.pickle"));
  char *data = data_of(page);
  assert_doubles(data, "pools.0.segments.size", 4,
                 (double[]){4 * MIB, 4 * MIB, 4 * MIB, 4 * MIB});
  assert_doubles(data, "pools.0.segments.at", 4,
                 (double[]){12 * MIB, 4 * MIB, 0, 8 * MIB});
  assert_uints(data, "pools.0.segments.born", 4,
               (uint32_t[]){UINT32_MAX, 1, 1, 1});
  assert_uints(data, "pools.0.segments.died", 4, (uint32_t[]){0, 2, 4, 4});
}

TEST(libraries_own_nothing) {
  const char *trace = write_known();
  const char *path = tool_file("out.html");
  tool_did("view", trace, "--html", path, "--libraries",
           "*/model.py,*/optim.py");
  char *page = tool_read_file(path);
  char *data = data_of(page);
  assert_uints(data, "holder", 4, (uint32_t[]){0, 2, 2, 3});
}

TEST(empty_traces_have_a_page) {
  begin_snapshot();
  const char *path = write_snapshot("empty.pickle");
  const char *page = tool_file("out.html");
  assert_ended(tool_run("view", path, "--html", page), 0, "no events recorded");
  char *text = tool_read_file(page);
  char *data = data_of(text);
  ck_assert_double_eq(json_number(data, "peak_bytes"), 0);
  ck_assert_double_eq(json_number(data, "peak_event"), -1);
}

// --- hostile ---------------------------------------------------------------

TEST(hostile_frames_are_inert) {
  char *page = view(write_known());
  assert_contains(page, "\\u003c/script\\u003e");
  ck_assert_uint_eq(count_of(page, "</script>"), 2);
  ck_assert_uint_eq(count_of(page, "<img"), 0);
  ck_assert_ptr_null(strchr(page, 0x1b));
}

// Marks that turn text around would turn the figures beside it as well; a name
// is not cut within a character.
TEST(names_turn_nothing_around) {
  const char turned[] = {'/',        'a',        'p',        'p', '/', 'a',
                         (char)0xe2, (char)0x80, (char)0xae, 't', 'x', 't',
                         '.',        'p',        'y',        '\0'};
  const char isolated[] = {(char)0xe2, (char)0x81, (char)0xa7, '\0'};
  char name[256];
  memset(name, 'x', sizeof name);
  snprintf(name + 199, sizeof name - 199, "\xc3\xa9\xc3\xa9");
  begin_snapshot();
  event_by("alloc", 64 * MIB, MIB, turned, isolated);
  event_by("alloc", 96 * MIB, MIB, "/app/b.py", name);
  char *page = view(write_snapshot("turned.pickle"));
  char *data = data_of(page);
  assert_contains(data, "\"?  /app/a?txt.py:7\"");
  assert_contains(data, "xxx?  /app/b.py:7\"");
  ck_assert_ptr_null(strstr(data, "\\u202e"));
  ck_assert_ptr_null(strstr(data, "\\ufffd"));
}

TEST(titles_are_inert) {
  const char *path = tool_file("out.html");
  tool_did("view", "@bert-layer", "--html", path, "--title",
           "<img src=x>&\"\x1b[2J");
  char *page = tool_read_file(path);
  assert_contains(page, "<h1>&lt;img src=x&gt;&amp;&quot;?[2J</h1>");
  ck_assert_uint_eq(count_of(page, "<img"), 0);
}

// --- wrong use -------------------------------------------------------------

TEST(wrong_use) {
  assert_misuse(tool_run("view"), "which trace?");
  assert_misused("view @bert-layer", "--html FILE");
  assert_misused("view a b --html c", "one trace");
  assert_misused("view @bert-lair --html c", "@bert-layer");
  assert_misused("view @bert-layer --trace-device 0 --html c",
                 "--trace-device");
  assert_misused("view x --trace-device y --html c", "--trace-device");
  tool_output o = tool_done("view --help");
  assert_contains(o.out, "usage: tarn view ");
}

TEST(what_cannot_be_done) {
  const char *path = tool_file("out.html");
  assert_misused("view @bert-layer --html c --from 7 --to 7",
                 "--from is not below --to");
  assert_ended(tool_run("view", "@bert-layer", "--html", path, "--from", "192"),
               1, "@bert-layer: no event 192: it has 192");
  assert_ended(tool_line("view @bert-layer --html /nowhere/x.html"), 1,
               "/nowhere/x.html: No such file");
  assert_ended(tool_line("view @bert-layer --html /"), 1, "Is a directory");
  assert_ended(tool_line("view @bert-layer --html /dev/full"), 1,
               "No space left");
  assert_ended(tool_run("view", "/nowhere.pickle", "--html", path), 1,
               "/nowhere.pickle");
  ck_assert_int_ne(access(path, F_OK), 0);
}
