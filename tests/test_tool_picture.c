// `tarn replay --html`: one file that needs nothing else, says what it should,
// and lets nothing hostile out of the trace.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/json_check.h"
#include "support/pickle_writer.h"
#include "support/run.h"
#include "support/tool_run.h"

#define HOSTILE "</script><script>alert(1)</script><img src=x onerror=alert(2)>"

static void assert_contains(const char *text, const char *part) {
  ck_assert_msg(strstr(text, part) != NULL, "'%s' is missing", part);
}

static size_t count_of(const char *text, const char *part) {
  size_t count = 0;
  while ((text = strstr(text, part)) != NULL) {
    count++;
    text += strlen(part);
  }
  return count;
}

static char *draw(const char *name) {
  char *trace = strdup(name);  // it may stand where tool_file writes
  char *path = strdup(tool_file("out.html"));
  tool_output o = tool_run("replay", trace, "--html", path);
  ck_assert_msg(o.status == 0, "exit %d: %s", o.status, o.err);
  ck_assert_str_eq(o.err, "");
  char *page = tool_read_file(path);
  ck_assert_ptr_nonnull(page);
  tool_output_free(&o);
  free(path);
  free(trace);
  return page;
}

// The JSON that the page's script draws. Free it.
static char *data_of(const char *page) {
  const char *begin = strstr(page, "id=\"data\">");
  ck_assert_ptr_nonnull(begin);
  begin += strlen("id=\"data\">");
  char *data = strndup(begin, strcspn(begin, "<"));
  ck_assert_msg(json_valid(data), "%s", data);
  return data;
}

START_TEST(page_stands_alone) {
  char *page = draw("@bert-layer");
  assert_contains(page, "<!DOCTYPE html>");
  assert_contains(page, "<h1>@bert-layer</h1>");
  assert_contains(page, "<noscript>");
  assert_contains(page, ">no_pool</th>");
  assert_contains(page, ">page_unit_pool</th>");
  ck_assert_ptr_null(strstr(page, "{{"));
  ck_assert_ptr_null(strstr(page, "http://"));
  ck_assert_ptr_null(strstr(page, "https://"));
  ck_assert_ptr_null(strstr(page, " src="));
  ck_assert_ptr_null(strstr(page, "@import"));
  free(page);
}
END_TEST

START_TEST(data_are_complete) {
  char *page = draw("@bert-layer");
  char *data = data_of(page);
  char keys[256];
  ck_assert_str_eq(json_keys(data, "", keys, sizeof keys),
                   "events,baseline,born,died,stack,size,time,frames,stacks,"
                   "pools");
  ck_assert_uint_eq(json_size(data, "pools"), 2);
  ck_assert_str_eq(json_keys(data, "pools.1", keys, sizeof keys),
                   "name,height,ranges,at,reserved_event,reserved_bytes");
  ck_assert_double_gt(json_number(data, "pools.1.height"), 1 << 20);
  ck_assert_uint_gt(json_size(data, "pools.1.ranges"), 0);
  ck_assert_uint_eq(json_size(data, "pools.1.ranges.0"), 3);
  free(data);
  free(page);
}
END_TEST

static void pickle_entry(pickle_writer *w, const char *key, uint64_t value) {
  pickle_text(w, key);
  pickle_int(w, value);
}

static const char *write_hostile(const char *name) {
  pickle_writer w = {0};
  pickle_snapshot(&w, 4);
  pickle_middle(&w);
  pickle_open_dict(&w);
  pickle_text(&w, "action");
  pickle_text(&w, "alloc");
  pickle_entry(&w, "addr", 0x1000);
  pickle_entry(&w, "size", 4096);
  pickle_entry(&w, "stream", 0);
  pickle_text(&w, "frames");
  pickle_open_list(&w);
  pickle_frame(&w, HOSTILE ".py", 7, HOSTILE "\"'&");
  pickle_close_list(&w);
  pickle_close_dict(&w);
  pickle_finish(&w);
  const char *path = tool_file(name);
  FILE *out = fopen(path, "wb");
  ck_assert_ptr_nonnull(out);
  ck_assert_uint_eq(fwrite(w.bytes, 1, w.size, out), w.size);
  fclose(out);
  pickle_free(&w);
  return path;
}

// The frames are there, and none of their characters can end the script.
START_TEST(hostile_frames_are_inert) {
  char *page = draw(write_hostile("h.pickle"));
  char *data = data_of(page);
  ck_assert_uint_eq(json_size(data, "frames"), 1);
  assert_contains(data, "\\u003c/script\\u003e");
  ck_assert_uint_eq(count_of(page, "</script>"), 2);
  ck_assert_uint_eq(count_of(page, "<img"), 0);
  free(data);
  free(page);
}
END_TEST

START_TEST(hostile_file_names_are_inert) {
  char *page = draw(write_hostile("<img src=x onerror=alert(3)>&\".pickle"));
  assert_contains(page, "&lt;img src=x onerror=alert(3)&gt;&amp;&quot;.pickle");
  ck_assert_uint_eq(count_of(page, "<img"), 0);
  free(page);
}
END_TEST

START_TEST(several_traces_make_a_folder) {
  char *folder = strdup(tool_file("pictures"));
  char *hostile = strdup(write_hostile("a b;c.pickle"));
  tool_output o = tool_run("replay", "@bert-layer", hostile, "@bert-layer",
                           "--html", folder);
  ck_assert_msg(o.status == 0, "exit %d: %s", o.status, o.err);
  static const char *const names[] = {"bert-layer.html", "a-b-c.html",
                                      "2-bert-layer.html"};
  for (size_t i = 0; i < 3; i++) {
    char path[512];
    struct stat found;
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    ck_assert_msg(stat(path, &found) == 0, "no %s", path);
    ck_assert_int_gt(found.st_size, 10000);
  }
  tool_output_free(&o);
  free(hostile);
  free(folder);
}
END_TEST

START_TEST(pictures_that_cannot_be_written) {
  tool_output o = tool_run("replay", "@bert-layer", "--html",
                           tool_file("no/such/folder.html"));
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "folder.html: No such file");
  ck_assert_str_eq(o.out, "");
  tool_output_free(&o);
  o = tool_run("replay", "@bert-layer", "--html", "/dev/full");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "/dev/full: ");
  tool_output_free(&o);
  o = tool_run("replay", "@bert-layer", "@bert-layer", "--html", "/dev/null");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "several traces need a folder");
  tool_output_free(&o);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("tool_picture");
  TCase *pages = tcase_create("pages");
  tcase_add_checked_fixture(pages, tool_files_begin, tool_files_end);
  tcase_set_timeout(pages, 240);
  tcase_add_test(pages, page_stands_alone);
  tcase_add_test(pages, data_are_complete);
  tcase_add_test(pages, hostile_frames_are_inert);
  tcase_add_test(pages, hostile_file_names_are_inert);
  tcase_add_test(pages, several_traces_make_a_folder);
  tcase_add_test(pages, pictures_that_cannot_be_written);
  suite_add_tcase(suite, pages);
  return run_suite(suite);
}
