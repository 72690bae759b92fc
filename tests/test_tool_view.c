// `tarn view`: one file that needs nothing else and says what the trace says;
// nothing hostile gets out of it. Where there is a Chromium the page is opened,
// used by its keys, and what is drawn is looked at.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format.h"
#include "support/json_check.h"
#include "support/pickle_writer.h"
#include "support/run.h"
#include "support/tool_assert.h"
#include "support/tool_run.h"
#include "support/view_script.h"
#include "tarn/account.h"
#include "tarn/snapshot.h"

#define HOSTILE \
  "</script><script>window.hacked=true</script><img src=x onerror=hacked()>"

#define MIB ((uint64_t)1 << 20)

static char *view(const char *name) {
  char *trace = strdup(name);  // it may stand where tool_file writes
  char *path = strdup(tool_file("out.html"));
  tool_output o = tool_run("view", trace, "--html", path);
  assert_done(&o);
  ck_assert_int_eq(strncmp(o.out, path, strlen(path)), 0);
  ck_assert_uint_eq(strcspn(o.out, "\n") + 1, strlen(o.out));
  char *page = tool_read_file(path);
  ck_assert_ptr_nonnull(page);
  tool_output_free(&o);
  free(path);
  free(trace);
  return page;
}

// --- snapshots made by hand ------------------------------------------------

static pickle_writer w;
static uint64_t time_us;

static void begin_snapshot(void) {
  w = (pickle_writer){0};
  time_us = 1000;
  pickle_snapshot(&w, 4);
  pickle_middle(&w);
}

static void entry(const char *key, uint64_t value) {
  pickle_text(&w, key);
  pickle_int(&w, value);
}

static void event_by(const char *action, uint64_t address, uint64_t size,
                     const char *file, const char *function) {
  pickle_open_dict(&w);
  pickle_text(&w, "action");
  pickle_text(&w, action);
  entry("addr", address);
  entry("size", size);
  entry("stream", 0);
  entry("time_us", time_us);
  time_us += 10;
  pickle_text(&w, "frames");
  pickle_open_list(&w);
  if (file != NULL) pickle_frame(&w, file, 7, function);
  if (file != NULL) pickle_frame(&w, "/app/main.py", 3, "main");
  pickle_close_list(&w);
  pickle_close_dict(&w);
}

static const char *write_snapshot(const char *name) {
  pickle_finish(&w);
  const char *path = tool_file(name);
  pickle_save(&w, path);
  return path;
}

// 1 MiB from before; 4 and 2 MiB come, the 4 go: the peak is after event 2.
static const char *write_known(void) {
  begin_snapshot();
  event_by("segment_alloc", 64 * MIB, 16 * MIB, NULL, NULL);
  event_by("alloc", 64 * MIB, 4 * MIB, "/app/model.py", "forward");
  event_by("alloc", 72 * MIB, 2 * MIB, "/app/optim.py", "step");
  event_by("free_completed", 64 * MIB, 4 * MIB, NULL, NULL);
  event_by("free_completed", 200 * MIB, MIB, NULL, NULL);
  event_by("alloc", 64 * MIB, MIB, HOSTILE ".py", HOSTILE "\"'&\x1b[2J");
  event_by("oom", 0, 32 * MIB, NULL, NULL);
  return write_snapshot("known.pickle");
}

// --- the file --------------------------------------------------------------

START_TEST(page_stands_alone) {
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
  free(page);
}
END_TEST

static void assert_line(const char *trace, const char *line) {
  char expected[600];
  char *path = strdup(tool_file("out.html"));
  tool_output o = tool_run("view", trace, "--html", path);
  ck_assert_int_eq(o.status, 0);
  snprintf(expected, sizeof expected, "%s: %s\n", path, line);
  ck_assert_str_eq(o.out, expected);
  tool_output_free(&o);
  free(path);
}

// A page on stdout stands there alone.
START_TEST(one_line_says_what_was_written) {
  assert_line("@bert-layer",
              "192 events, 96 blocks; opens at the peak of 50.13 MiB, at event "
              "68");
  char *refused = strdup(write_known());
  assert_line(refused,
              "7 events, 4 blocks; opens at event 6, which was refused 32.00 "
              "MiB");
  free(refused);
  begin_snapshot();
  char *empty = strdup(write_snapshot("empty.pickle"));
  assert_line(empty,
              "0 events, 0 blocks; opens at the peak of 0 B, before the first "
              "event");
  free(empty);
  char *standard = strdup(tool_file("stdout"));  // as /dev/stdout is one
  ck_assert_int_eq(symlink("/proc/self/fd/1", standard), 0);
  tool_output o = tool_run("view", "@bert-layer", "--html", standard);
  ck_assert_int_eq(o.status, 0);
  ck_assert_int_eq(strncmp(o.out, "<!DOCTYPE html>", 15), 0);
  ck_assert_str_eq(o.out + strlen(o.out) - 8, "</html>\n");
  assert_contains(o.err, "stdout: 192 events");
  tool_output_free(&o);
  free(standard);
}
END_TEST

START_TEST(data_are_complete) {
  char *page = view("@bert-layer");
  char *data = data_of(page);
  char keys[256];
  ck_assert_str_eq(
      json_keys(data, "", keys, sizeof keys),
      "events,baseline,born,died,stack,size,time,frames,stacks,kind,block,"
      "holder,holders,refused,tag,tags,peak_bytes,peak_event,unit,placed,"
      "height,ranges,at,segments");
  ck_assert(json_is(data, "placed", "\"arena_pool\""));
  ck_assert(json_is(data, "tag", "null"));
  ck_assert_double_gt(json_number(data, "height"), MIB);
  free(data);
  free(page);
}
END_TEST

static void assert_uints(const char *data, const char *path, size_t count,
                         const uint32_t *expected) {
  uint32_t found[16] = {0};
  size_t size = json_decode(data, path, found, sizeof found);
  ck_assert_msg(size == count * sizeof *found, "%s has %zu bytes", path, size);
  for (size_t i = 0; i < count; i++)
    ck_assert_msg(found[i] == expected[i], "%s[%zu] is %u", path, i, found[i]);
}

static void assert_doubles(const char *data, const char *path, size_t count,
                           const double *expected) {
  double found[16] = {0};
  size_t size = json_decode(data, path, found, sizeof found);
  ck_assert_msg(size == count * sizeof *found, "%s has %zu bytes", path, size);
  for (size_t i = 0; i < count; i++)
    ck_assert_msg(found[i] == expected[i], "%s[%zu] is %g", path, i, found[i]);
}

// The baseline's block has no segment; a gap above the segment is folded away.
START_TEST(arrays_are_those_of_the_trace) {
  char *page = view(write_known());
  char *data = data_of(page);
  ck_assert_double_eq(json_number(data, "events"), 7);
  ck_assert_double_eq(json_number(data, "baseline"), 1);
  ck_assert_double_eq(json_number(data, "peak_bytes"), 7 * MIB);
  ck_assert_double_eq(json_number(data, "peak_event"), 2);
  ck_assert(json_is(data, "placed", "null"));
  assert_doubles(data, "size", 4, (double[]){MIB, 4 * MIB, 2 * MIB, MIB});
  assert_uints(data, "born", 4, (uint32_t[]){0, 1, 2, 5});
  assert_uints(data, "died", 4, (uint32_t[]){4, 3, 7, 7});
  assert_uints(data, "holder", 4, (uint32_t[]){0, 2, 3, 4});
  assert_doubles(data, "at", 4, (double[]){16 * MIB, 0, 8 * MIB, 0});
  assert_uints(data, "block", 7,
               (uint32_t[]){UINT32_MAX, 1, 2, 1, 0, 3, UINT32_MAX});
  assert_doubles(data, "segments.at", 1, (double[]){0});
  assert_doubles(data, "segments.size", 1, (double[]){16 * MIB});
  ck_assert_double_eq(json_number(data, "refused.0.0"), 6);
  ck_assert_double_eq(json_number(data, "refused.0.1"), 32 * MIB);
  ck_assert_double_eq(json_number(data, "holders.0"), -1);
  ck_assert_double_eq(json_number(data, "holders.1"), -1);
  ck_assert_uint_eq(json_size(data, "holders"), 5);
  free(data);
  free(page);
}
END_TEST

// A segment from before is given back; of one that was mapped the middle is
// unmapped, and its ends stay.
START_TEST(segments_come_and_go) {
  begin_snapshot();
  event_by("segment_free", 256 * MIB, 4 * MIB, NULL, NULL);
  event_by("segment_map", 64 * MIB, 12 * MIB, NULL, NULL);
  event_by("segment_unmap", 68 * MIB, 4 * MIB, NULL, NULL);
  event_by("alloc", 64 * MIB, MIB, "/app/model.py", "forward");
  char *page = view(write_snapshot("segments.pickle"));
  char *data = data_of(page);
  assert_doubles(data, "segments.size", 4,
                 (double[]){4 * MIB, 4 * MIB, 4 * MIB, 4 * MIB});
  assert_doubles(data, "segments.at", 4,
                 (double[]){12 * MIB, 4 * MIB, 0, 8 * MIB});
  assert_uints(data, "segments.born", 4, (uint32_t[]){UINT32_MAX, 1, 1, 1});
  assert_uints(data, "segments.died", 4, (uint32_t[]){0, 2, 4, 4});
  free(data);
  free(page);
}
END_TEST

START_TEST(libraries_own_nothing) {
  char *trace = strdup(write_known());
  char *path = strdup(tool_file("out.html"));
  tool_output o = tool_run("view", trace, "--html", path, "--libraries",
                           "*/model.py,*/optim.py");
  assert_done(&o);
  char *page = tool_read_file(path);
  char *data = data_of(page);
  assert_uints(data, "holder", 4, (uint32_t[]){0, 2, 2, 3});
  tool_output_free(&o);
  free(data);
  free(page);
  free(path);
  free(trace);
}
END_TEST

START_TEST(empty_traces_have_a_page) {
  begin_snapshot();
  const char *path = strdup(write_snapshot("empty.pickle"));
  char *page = strdup(tool_file("out.html"));
  tool_output o = tool_run("view", path, "--html", page);
  ck_assert_int_eq(o.status, 0);
  assert_contains(o.err, "no events recorded");
  char *text = tool_read_file(page);
  char *data = data_of(text);
  ck_assert_double_eq(json_number(data, "peak_bytes"), 0);
  ck_assert_double_eq(json_number(data, "peak_event"), -1);
  tool_output_free(&o);
  free(data);
  free(text);
  free(page);
  free((char *)path);
}
END_TEST

// --- hostile ---------------------------------------------------------------

START_TEST(hostile_frames_are_inert) {
  char *page = view(write_known());
  assert_contains(page, "\\u003c/script\\u003e");
  ck_assert_uint_eq(count_of(page, "</script>"), 2);
  ck_assert_uint_eq(count_of(page, "<img"), 0);
  ck_assert_ptr_null(strchr(page, 0x1b));
  free(page);
}
END_TEST

// Marks that turn text around would turn the figures beside it as well; a name
// is not cut within a character.
START_TEST(names_turn_nothing_around) {
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
  free(data);
  free(page);
}
END_TEST

START_TEST(titles_are_inert) {
  char *path = strdup(tool_file("out.html"));
  tool_output o = tool_run("view", "@bert-layer", "--html", path, "--title",
                           "<img src=x>&\"\x1b[2J");
  assert_done(&o);
  char *page = tool_read_file(path);
  assert_contains(page, "<h1>&lt;img src=x&gt;&amp;&quot;?[2J</h1>");
  ck_assert_uint_eq(count_of(page, "<img"), 0);
  tool_output_free(&o);
  free(page);
  free(path);
}
END_TEST

// --- wrong use -------------------------------------------------------------

START_TEST(wrong_use) {
  assert_misuse(tool_run("view"), "which trace?");
  assert_misuse(tool_run("view", "@bert-layer"), "--html FILE");
  assert_misuse(tool_run("view", "a", "b", "--html", "c"), "one trace");
  assert_misuse(tool_run("view", "@bert-lair", "--html", "c"), "@bert-layer");
  assert_misuse(
      tool_run("view", "@bert-layer", "--trace-device", "0", "--html", "c"),
      "--trace-device");
  assert_misuse(tool_run("view", "x", "--trace-device", "y", "--html", "c"),
                "--trace-device");
  tool_output o = tool_run("view", "--help");
  assert_done(&o);
  assert_contains(o.out, "usage: tarn view ");
  tool_output_free(&o);
}
END_TEST

static void assert_failed(tool_output o, const char *part) {
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, part);
  tool_output_free(&o);
}

START_TEST(what_cannot_be_done) {
  char *path = strdup(tool_file("out.html"));
  assert_failed(tool_run("view", "@bert-layer", "--html", "/nowhere/x.html"),
                "/nowhere/x.html: No such file");
  assert_failed(tool_run("view", "@bert-layer", "--html", "/"),
                "Is a directory");
  assert_failed(tool_run("view", "@bert-layer", "--html", "/dev/full"),
                "No space left");
  assert_failed(tool_run("view", "/nowhere.pickle", "--html", path),
                "/nowhere.pickle");
  ck_assert_int_ne(access(path, F_OK), 0);
  free(path);
}
END_TEST

// --- in a browser ----------------------------------------------------------

static void assert_says(const char *json, const char *path, const char *text) {
  const char *at = json_at(json, path);
  ck_assert_msg(at != NULL, "no %s in %s", path, json);
  size_t length = strlen(text);
  char *found = strndup(at, 1000 + length);
  ck_assert_msg(strstr(found, text) != NULL, "%s: '%s' is not in %s", path,
                text, found);
  free(found);
}

static void assert_is(const char *json, const char *path, const char *value) {
  ck_assert_msg(json_is(json, path, value), "%s is not %s in %s", path, value,
                json);
}

static void assert_keys_work(const char *json) {
  assert_says(json, "opens", "\"After event 6, 60 us: out of memory\"");
  assert_says(json, "peak", "\"After event 2, 20 us: the peak\"");
  assert_is(json, "home", "\"Before the first event\"");
  assert_says(json, "next", "\"After event 0, ");
  assert_says(json, "next_facts", "alive1.00 MiB");
  assert_is(json, "slider", "\"1\"");
  assert_says(json, "end", "\"After event 6, ");
  assert_is(json, "refused",
            "\"32.00 MiB were asked for: the red boxes are as high.\"");
  assert_says(json, "again", ": the peak\"");
  static const char *const yes[] = {
      "zoomed", "panned",      "restored", "cleared", "hidden",  "shown",
      "help",   "found_drawn", "same",     "by_time", "by_event"};
  for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
    assert_is(json, yes[i], "true");
  assert_says(json, "block", "\"Block 1size4.00 MiB");
  assert_says(json, "block", "forward  /app/model.py:7");
  assert_says(json, "no_block", "Click a box");
}

static void assert_found(const char *json) {
  assert_is(json, "found",
            "\"1 frame, 1 block: 2.00 MiB at the moment, 2.00 MiB at most\"");
  assert_is(json, "nothing", "\"\"");
  assert_is(json, "chosen",
            "\"1 block: 4.00 MiB at the moment, 4.00 MiB at most\"");
  assert_is(json, "focus", "\"true\"");
}

static void assert_table(const char *json) {
  assert_says(json, "answer", "Out of memory at event 6, 60 us: 32.00 MiB");
  assert_says(json, "answer", "while 3.00 MiB were alive. 16.00 MiB were held");
  assert_says(json, "answer", "Held by optim.py:7 step 2.00 MiB, 66.7 %");
  assert_says(json, "answer", "The peak was 7.00 MiB, after event 2, 20 us.");
  assert_is(json, "rows.0.0", "\"/app/model.py:7 forward\"");
  assert_is(json, "rows.0.1", "\"4.00 MiB\"");
  assert_is(json, "rows.0.2", "\"57.1 %\"");
  assert_is(json, "rows.1.0", "\"/app/optim.py:7 step\"");
  assert_is(json, "rows.2.0", "\"baseline\"");
  assert_is(json, "rows.2.1", "\"1.00 MiB\"");
  ck_assert_uint_eq(json_size(json, "rows"), 4);
  assert_is(json, "rows.3.1", "\"0 B\"");
  assert_is(json, "rows.3.5", "\"1.00 MiB\"");
  assert_is(json, "sums.1", "\"7.00 MiB\"");
  assert_is(json, "sums.6", "\"8.00 MiB\"");
  // 4 and 2 MiB within 16: holes of 4 and 6 MiB.
  assert_says(json, "facts", "held of the device16.00 MiB");
  assert_says(json, "facts", "free within10.00 MiB in 2 holes");
  assert_says(json, "facts", "largest hole6.00 MiB");
}

// --- the page and `tarn why` tell the same ----------------------------------

static void assert_bytes(const char *json, size_t moment, int fact,
                         const char *why, const char *key) {
  char path[64], bytes[64], text[80];
  format_bytes(bytes, (uint64_t)json_number(why, key));
  snprintf(text, sizeof text, "\"%s", bytes);
  snprintf(path, sizeof path, "moments.%zu.%d", moment, fact);
  const char *at = json_at(json, path);
  ck_assert_msg(at != NULL && strncmp(at, text, strlen(text)) == 0,
                "%s: the page has %.60s, tarn why %s of %s", path, at, bytes,
                key);
}

// The facts of the page: alive, blocks, held, free, largest hole.
static void assert_moment(const char *json, const char *trace, size_t event) {
  char number[16];
  snprintf(number, sizeof number, "%zu", event);
  tool_output o =
      tool_run("why", trace, "--pool", "none", "-o", "json", "--at", number);
  ck_assert_msg(o.status == 0, "exit %d: %s", o.status, o.err);
  assert_bytes(json, event, 0, o.out, "at.live_bytes");
  assert_bytes(json, event, 2, o.out, "reserved_bytes");
  assert_bytes(json, event, 3, o.out, "free_bytes");
  assert_bytes(json, event, 4, o.out, "largest_hole_bytes");
  tool_output_free(&o);
}

// A block of 5000 bytes takes 5120: what is left over of its unit is no hole.
START_TEST(page_says_what_why_says) {
  begin_snapshot();
  event_by("segment_alloc", 64 * MIB, 16 * MIB, NULL, NULL);
  event_by("alloc", 64 * MIB, 5000, "/app/model.py", "forward");
  event_by("alloc", 64 * MIB + 5120, 7000, "/app/model.py", "forward");
  event_by("segment_alloc", 96 * MIB, 2 * MIB, NULL, NULL);
  event_by("alloc", 96 * MIB, 2 * MIB, "/app/optim.py", "step");
  event_by("free_completed", 64 * MIB, 5000, NULL, NULL);
  event_by("oom", 0, 32 * MIB, NULL, NULL);
  char *trace = strdup(write_snapshot("same.pickle"));
  char *page = view(trace);
  char *json = page_check(page, "tarn view in a browser", VIEW_SCRIPT_MOMENTS);
  for (size_t i = 0; json != NULL && i < 7; i++)
    assert_moment(json, trace, i);
  if (json != NULL) {
    ck_assert_msg(json_size(json, "errors") == 0, "%s", json);
    assert_says(json, "moments.2.3", " in 1 hole\"");
    assert_says(json, "home_facts", "held of the device0 B");
    assert_is(json, "dragged", "true");
    assert_is(json, "let_go", "true");
    assert_says(json, "brushed", "events ");
  }
  free(json);
  free(page);
  free(trace);
}
END_TEST

// --- of a pool's own snapshot ----------------------------------------------

static const char *const strategies[] = {"arena_pool", "page_unit_pool",
                                         "buddy_pool", "no_pool"};

enum { STRATEGIES = sizeof strategies / sizeof *strategies };

static void take(tarn_pool *pool, tarn_tag tag, size_t size, tarn_block *out) {
  assert_ok(tarn_pool_alloc_tagged(pool, size, 0, NULL, tag, out));
}

// A program that ends with a refused request of 60 MB. Its segments touch, and
// blocks lie across their borders. Free the path.
static char *write_refusal(const char *strategy) {
  char *path = strdup(tool_file("refused.tarn"));
  tarn_pool_options options = {.struct_size = sizeof options,
                               .strategy = strategy,
                               .limit = (size_t)64 << 20};
  tarn_pool *pool = NULL;
  tarn_tag weights, work;
  tarn_block blocks[24], block;
  assert_ok(tarn_pool_create(TARN_HOST, &options, &pool));
  assert_ok(tarn_pool_tag("weights", &weights));
  assert_ok(tarn_pool_tag("work", &work));
  assert_ok(tarn_pool_account(
      pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS | TARN_COUNT_TIMES));
  assert_ok(tarn_pool_snapshot_on_full(TARN_TRACE_FORMAT_TARN, path));
  for (size_t i = 0; i < 24; i++)
    take(pool, i < 8 ? weights : work, 300001 + i * 70001, &blocks[i]);
  for (size_t i = 9; i < 24; i += 2)
    assert_ok(tarn_pool_free(&blocks[i], NULL));
  for (size_t i = 9; i < 20; i += 2)
    take(pool, work, 150001 + i * 50001, &blocks[i]);
  ck_assert_int_eq(
      tarn_pool_alloc_tagged(pool, 60000000, 0, NULL, work, &block), TARN_FULL);
  assert_ok(tarn_pool_snapshot_on_full(TARN_TRACE_FORMAT_TARN, NULL));
  for (size_t i = 0; i < 20; i++)
    assert_ok(tarn_pool_free(&blocks[i], NULL));
  for (size_t i = 20; i < 24; i += 2)
    assert_ok(tarn_pool_free(&blocks[i], NULL));
  assert_ok(tarn_pool_destroy(pool));
  return path;
}

START_TEST(pools_snapshots_say_what_why_says) {
  char *trace = write_refusal(strategies[_i]);
  char *page = view(trace);
  char *json =
      page_check(page, "tarn view in a browser", VIEW_SCRIPT_ALL_MOMENTS);
  size_t count = json != NULL ? json_size(json, "moments") : 0;
  if (json != NULL) {
    ck_assert_uint_gt(count, 40);
    assert_says(json, "opens", ": out of memory\"");
    assert_says(json, "what", "57.22 MiB were asked for by tag work");
    assert_says(json, "answer", "Held by tag work ");
  }
  for (size_t i = 0; i < count; i++)
    assert_moment(json, trace, i);
  free(json);
  free(page);
  free(trace);
}
END_TEST

// The box in the map is as high as the request, on the scale of the blocks:
// 24 MiB beside two holes of 16 MiB in a segment of 64 MiB.
START_TEST(page_opens_at_the_refusal) {
  begin_snapshot();
  event_by("segment_alloc", 64 * MIB, 64 * MIB, NULL, NULL);
  event_by("alloc", 64 * MIB, 16 * MIB, "/app/model.py", "forward");
  event_by("alloc", 96 * MIB, 16 * MIB, "/app/model.py", "forward");
  event_by("oom", 0, 24 * MIB, "/app/optim.py", "step");
  event_by("oom", 0, 300 * MIB, NULL, NULL);
  event_by("oom", 0, 24 * MIB, "/app/optim.py", "step");
  for (int i = 0; i < 20; i++)
    event_by("free_completed", (100 + (uint64_t)i) * 1000 * MIB, 1, NULL, NULL);
  char *page = view(write_snapshot("refused.pickle"));
  char *json = page_check(page, "tarn view in a browser", VIEW_SCRIPT_REFUSAL);
  if (json != NULL) {
    ck_assert_msg(json_size(json, "errors") == 0, "%s", json);
    assert_says(json, "opens", "\"After event 5, 50 us: out of memory\"");
    assert_says(json, "what", "24.00 MiB were asked for by optim.py:7 step");
    assert_says(json, "answer", "3 requests were refused; this is the last");
    assert_says(json, "answer", "32.00 MiB of it free, the largest hole 16.00");
    // 256 MiB are shown, four times the addresses; 300 are cut to that.
    ck_assert_double_eq_tol(json_number(json, "box"), 24.0 / 256, 0.01);
    ck_assert_double_eq_tol(json_number(json, "cut"), 1, 0.01);
    ck_assert_double_eq(json_number(json, "none"), 0);
  }
  free(json);
  free(page);
}
END_TEST

START_TEST(page_works_in_a_browser) {
  char *page = view(write_known());
  char *json = page_check(page, "tarn view in a browser", VIEW_SCRIPT);
  if (json != NULL) {
    ck_assert_msg(json_size(json, "errors") == 0, "%s", json);
    ck_assert_double_gt(json_number(json, "timeline"), 8);
    ck_assert_double_gt(json_number(json, "map"), 4);
    ck_assert_double_gt(json_number(json, "over"), 2);
    assert_table(json);
    assert_keys_work(json);
    assert_found(json);
    assert_is(json, "hacked", "false");
    assert_says(json, "rows.3.0", "\\u003c/script\\u003e");
    ck_assert_double_eq(json_number(json, "images"), 0);
    ck_assert_double_eq(json_number(json, "links"), 0);
    ck_assert_double_eq(json_number(json, "unnamed"), 0);
  }
  free(json);
  free(page);
}
END_TEST

START_TEST(small_pages_work_in_a_browser) {
  begin_snapshot();
  event_by("alloc", 64 * MIB, 4 * MIB, NULL, NULL);
  char *page = view(write_snapshot("one.pickle"));
  char *json = page_check(page, "tarn view in a browser", VIEW_SCRIPT);
  if (json != NULL) {
    ck_assert_msg(json_size(json, "errors") == 0, "%s", json);
    assert_says(json, "answer", "Held by without a stack 4.00 MiB, 100.0 %");
    assert_is(json, "end", "\"After event 0: the peak\"");
  }
  free(json);
  free(page);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("tool_view");
  TCase *pages = tcase_create("pages");
  tcase_add_checked_fixture(pages, tool_files_begin, tool_files_end);
  tcase_set_timeout(pages, 250);
  tcase_add_test(pages, page_stands_alone);
  tcase_add_test(pages, one_line_says_what_was_written);
  tcase_add_test(pages, data_are_complete);
  tcase_add_test(pages, arrays_are_those_of_the_trace);
  tcase_add_test(pages, segments_come_and_go);
  tcase_add_test(pages, libraries_own_nothing);
  tcase_add_test(pages, empty_traces_have_a_page);
  tcase_add_test(pages, hostile_frames_are_inert);
  tcase_add_test(pages, titles_are_inert);
  tcase_add_test(pages, wrong_use);
  tcase_add_test(pages, what_cannot_be_done);
  tcase_add_test(pages, names_turn_nothing_around);
  tcase_add_test(pages, page_says_what_why_says);
  tcase_add_loop_test(pages, pools_snapshots_say_what_why_says, 0, STRATEGIES);
  tcase_add_test(pages, page_opens_at_the_refusal);
  tcase_add_test(pages, page_works_in_a_browser);
  tcase_add_test(pages, small_pages_work_in_a_browser);
  suite_add_tcase(suite, pages);
  return run_suite(suite);
}
