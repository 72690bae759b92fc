// `tarn replay --html`: one file that needs nothing else, says what it should,
// and lets nothing hostile out of the trace.
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "page_script.h"
#include "snapshot_kit.h"
#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"

#define HOSTILE "</script><script>alert(1)</script><img src=x onerror=alert(2)>"

static char *draw(const char *name) {
  const char *path = tool_file("out.html");
  tool_output o = tool_ends(0, "replay", name, "--html", path);
  ck_assert_str_eq(o.err, "");
  assert_contains(o.out, "\npicture  ");
  assert_contains(o.out, path);
  char *page = tool_read_file(path);
  ck_assert_ptr_nonnull(page);
  return page;
}

FIXTURE(tool_files_begin, tool_files_end);

TEST(page_stands_alone) {
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
}

TEST(data_are_complete) {
  char *page = draw("@bert-layer");
  char *data = data_of(page);
  char keys[256];
  ck_assert_str_eq(json_keys(data, "", keys, sizeof keys),
                   "events,baseline,born,died,stack,size,time,frames,stacks,"
                   "kind,block,holder,holders,refused,tag,tags,peak_bytes,"
                   "peak_event,unit,first,whole,role,roles,phases,pools");
  ck_assert_uint_eq(json_size(data, "pools"), 3);
  ck_assert_str_eq(json_keys(data, "pools.1", keys, sizeof keys),
                   "name,height,ranges,at,segments,reserved_event,"
                   "reserved_bytes");
  ck_assert_double_gt(json_number(data, "pools.1.height"), 1 << 20);
  ck_assert_uint_gt(json_size(data, "pools.1.ranges"), 0);
  ck_assert_uint_eq(json_size(data, "pools.1.ranges.0"), 3);
}

// --- snapshots made by hand ------------------------------------------------

static void timed_event(const char *action, uint64_t address, uint64_t size,
                        uint64_t time_us) {
  begin_event(action, address, size);
  snapshot_entry("time_us", time_us);
  pickle_close_dict(&w);
}

static void framed_event(const char *file, const char *function) {
  begin_event("alloc", 0x1000, 4096);
  pickle_text(&w, "frames");
  pickle_open_list(&w);
  pickle_frame(&w, file, 7, function);
  pickle_close_list(&w);
  pickle_close_dict(&w);
}

static const char *write_hostile(const char *name) {
  begin_snapshot();
  framed_event(HOSTILE ".py", HOSTILE "\"'&");
  return write_snapshot(name);
}

// --- what is drawn ---------------------------------------------------------

// A block of 1 MiB from before, which dies; one of 2 MiB that stays. no_pool
// holds of the device what is alive.
TEST(arrays_are_those_of_the_trace) {
  begin_snapshot();
  timed_event("alloc", 0x200000, 2 << 20, 1000);
  timed_event("free_completed", 0x100000, 1 << 20, 1250);
  timed_event("snapshot", 0, 0, 1200);  // a clock that went back
  char *page = draw(write_snapshot("tiny.pickle"));
  char *data = data_of(page);
  double at[2];
  ck_assert_double_eq(json_number(data, "events"), 3);
  ck_assert_double_eq(json_number(data, "baseline"), 1);
  assert_doubles(data, "size", 2, (double[]){1 << 20, 2 << 20});
  assert_uints(data, "born", 2, (uint32_t[]){0, 0});
  assert_uints(data, "died", 2, (uint32_t[]){1, 3});
  assert_uints(data, "stack", 2, (uint32_t[]){UINT32_MAX, UINT32_MAX});
  assert_doubles(data, "time", 4, (double[]){0, 250, 250, 250 * (1 + 1.0 / 3)});
  assert_uints(data, "pools.0.reserved_event", 3, (uint32_t[]){0, 1, 2});
  assert_doubles(data, "pools.0.reserved_bytes", 3,
                 (double[]){1 << 20, 3 << 20, 2 << 20});
  ck_assert_uint_eq(json_decode(data, "pools.0.at", at, sizeof at), sizeof at);
  ck_assert(at[0] >= 0 && at[1] >= 0);
  ck_assert(at[0] >= at[1] + (2 << 20) || at[1] >= at[0] + (1 << 20));
}

TEST(no_clock_no_times) {
  begin_snapshot();
  pickle_event(&w, "alloc", 0x1000, 4096);
  pickle_event(&w, "free_completed", 0x1000, 4096);
  char *page = draw(write_snapshot("timeless.pickle"));
  char *data = data_of(page);
  ck_assert(json_is(data, "time", "null"));
}

// Of a path that is too long the end tells more.
TEST(long_paths_are_cut_in_front) {
  char file[400];
  memset(file, 'd', sizeof file);
  snprintf(file + 300, sizeof file - 300, "/model.py");
  begin_snapshot();
  framed_event(file, "forward");
  char *page = draw(write_snapshot("deep.pickle"));
  char *data = data_of(page);
  assert_contains(data,
                  "[\"forward  \xe2\x80\xa6"
                  "ddd");
  assert_contains(data, "ddd/model.py:7\"]");
}

// The frames are there, and none of their characters can end the script.
TEST(hostile_frames_are_inert) {
  char *page = draw(write_hostile("h.pickle"));
  char *data = data_of(page);
  ck_assert_uint_eq(json_size(data, "frames"), 1);
  assert_contains(data, "\\u003c/script\\u003e");
  ck_assert_uint_eq(count_of(page, "</script>"), 2);
  ck_assert_uint_eq(count_of(page, "<img"), 0);
}

TEST(hostile_file_names_are_inert) {
  char *page = draw(write_hostile("<img src=x onerror=alert(3)>&\".pickle"));
  assert_contains(page, "&lt;img src=x onerror=alert(3)&gt;&amp;&quot;.pickle");
  ck_assert_uint_eq(count_of(page, "<img"), 0);
  static const char turned[] = {'a',        0x1b,       '[',        '2', 'J',
                                (char)0xe2, (char)0x80, (char)0xae, '\0'};
  char name[32];
  snprintf(name, sizeof name, "%s.pickle", turned);
  page = draw(write_hostile(name));
  assert_contains(page, "<h1>a?[2J?.pickle</h1>");
  ck_assert_ptr_null(strchr(page, 0x1b));
}

// --- files -----------------------------------------------------------------

static void assert_picture(const char *folder, const char *name,
                           const char *title) {
  char path[512], heading[64];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  snprintf(heading, sizeof heading, "<h1>%s</h1>", title);
  char *page = tool_read_file(path);
  ck_assert_msg(page != NULL, "no %s", path);
  assert_contains(page, heading);
}

static size_t count_files(const char *folder) {
  size_t count = 0;
  DIR *entries = opendir(folder);
  ck_assert_ptr_nonnull(entries);
  for (struct dirent *e; (e = readdir(entries)) != NULL;)
    count += e->d_name[0] != '.';
  closedir(entries);
  return count;
}

TEST(several_traces_make_a_folder) {
  const char *folder = tool_file("pictures");
  const char *hostile = write_hostile("a b;c.pickle");
  tool_ends(0, "replay", "@bert-layer", hostile, "@bert-layer", "--html",
            folder);
  assert_picture(folder, "bert-layer.html", "@bert-layer");
  assert_picture(folder, "a-b-c.html", "a b;c.pickle");
  assert_picture(folder, "2-bert-layer.html", "@bert-layer");
  ck_assert_uint_eq(count_files(folder), 3);
}

// The second "a" would get the name that the third trace has by itself.
TEST(no_picture_replaces_another) {
  const char *folder = tool_file("collision");
  ck_assert_int_eq(mkdir(tool_file("d1"), 0777), 0);
  ck_assert_int_eq(mkdir(tool_file("d2"), 0777), 0);
  const char *first = write_hostile("d1/a.pickle");
  const char *second = write_hostile("d2/a.pickle");
  const char *third = write_hostile("2-a.pickle");
  tool_ends(0, "replay", first, second, third, "--html", folder);
  assert_picture(folder, "a.html", "a.pickle");
  assert_picture(folder, "2-a.html", "a.pickle");
  assert_picture(folder, "2-2-a.html", "2-a.pickle");
  ck_assert_uint_eq(count_files(folder), 3);
}

// Nothing is measured if the picture has no place.
TEST(pictures_that_cannot_be_written) {
  assert_exits(tool_run("replay", "@bert-layer", "--html",
                        tool_file("no/such/folder.html")),
               1, "folder.html: No such file");
  assert_exits(tool_run("replay", "@bert-layer", "--html", tool_file(".")), 1,
               "Is a directory");
  assert_exits(tool_line("replay @bert-layer @bert-layer --html /dev/null"), 1,
               "several traces need a folder");
}

static void assert_told_all_the_same(tool_output o, const char *part) {
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, part);
  ck_assert(json_valid(o.out));
  ck_assert_uint_eq(json_size(o.out, "results"), 3);
}

// A disk that is full comes too late to measure nothing.
TEST(a_full_disk_keeps_the_report) {
  assert_told_all_the_same(
      tool_line("replay @bert-layer -o json --html /dev/full"),
      "/dev/full: No space left");
}

#define OLD                   \
  "<!DOCTYPE html>\n<html>\n" \
  "<meta name=\"generator\" content=\"tarn replay\">\nold"

static void assert_old(const char *path) {
  char *text = tool_read_file(path);
  ck_assert_str_eq(text, OLD);
}

TEST(a_failure_keeps_the_old_page) {
  struct rlimit small = {.rlim_cur = 8192, .rlim_max = RLIM_INFINITY};
  ck_assert_int_eq(mkdir(tool_file("old"), 0777), 0);
  const char *folder = tool_file("old");
  const char *path = tool_file("old/page.html");
  tool_write_file(path, OLD);
  signal(SIGXFSZ, SIG_IGN);
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
  assert_told_all_the_same(
      tool_run("replay", "@bert-layer", "-o", "json", "--html", path),
      "page.html: File too large");
  assert_old(path);
  ck_assert_uint_eq(count_files(folder), 1);
}

// A link stays one, and the page has the rights that the old one had.
TEST(a_page_takes_the_place_of_the_old_one) {
  struct stat found;
  const char *path = tool_file("out.html");
  const char *link = tool_file("link.html");
  tool_write_file(path, OLD);
  ck_assert_int_eq(chmod(path, 0640), 0);
  ck_assert_int_eq(symlink(path, link), 0);
  tool_ends(0, "replay", "@bert-layer", "--html", link);
  ck_assert(lstat(link, &found) == 0 && S_ISLNK(found.st_mode));
  ck_assert(stat(path, &found) == 0 && found.st_size > 10000);
  ck_assert_int_eq(found.st_mode & 0777, 0640);
}

TEST(a_new_page_has_the_usual_rights) {
  struct stat found;
  umask(027);
  draw("@bert-layer");
  ck_assert_int_eq(stat(tool_file("out.html"), &found), 0);
  ck_assert_int_eq(found.st_mode & 0777, 0640);
}

// --- in a browser ----------------------------------------------------------

// Each drawing shows something and obeys keys and mouse; the addresses move in
// the map that has the focus alone.
static const char use_page[] =
    "const maps = [...document.querySelectorAll('canvas.map:not(.over)')];\n"
    "const [map, other] = maps, over = $('map-over');\n"
    "const colours = c => new Set(pixels(c)).size;\n"
    "out.panels = maps.length;\n"
    "out.maps = Math.min(...maps.map(colours));\n"
    "out.timeline = colours($('timeline'));\n"
    "out.note = text('map-note-1');\n"
    "out.facts = text('moment-facts'); out.legend = text('map-legend');\n"
    "const first = print(map), second = print(other);\n"
    "await press('+', over); out.zoomed = print(map) !== first;\n"
    "const near = print(map);\n"
    "out.together = print(other) !== second;\n"
    "await press('.', over); out.panned = print(map) !== near;\n"
    "await press('0', over); out.restored = print(map) === first;\n"
    "over.focus(); await press('*', over);\n"
    "out.alone = print(map) !== first && print(other) === second;\n"
    "$('map-over-1').focus(); await press('*', $('map-over-1'));\n"
    "out.by_focus = print(other) !== second; await press('0', over);\n"
    "await press('n', over); out.block = text('details');\n"
    "await point('pointermove', over, 200, 100);\n"
    "out.tip = !$('tip').hidden; await press('Escape', over);\n"
    "const asFirst = print(map);\n"
    "await press('+', over); const still = print(map);\n"
    "await point('pointerdown', over, 300, 100);\n"
    "await point('pointermove', over, 200, 100);\n"
    "out.dragged = print(map) !== still;\n"
    "await point('pointercancel', over, 200, 100);\n"
    "const after = print(map);\n"
    "await point('pointermove', over, 400, 100);\n"
    "await point('pointerleave', over, 400, 100);\n"
    "out.let_go = print(map) === after;\n"
    "out.as_first = asFirst === first;\n";

TEST(page_works_in_a_browser) {
  char *page = draw("@bert-layer");
  char *json = page_check(page, "tarn replay --html in a browser", use_page);
  if (json != NULL) {
    ck_assert_msg(json_size(json, "errors") == 0, "%s", json);
    ck_assert_double_eq(json_number(json, "panels"), 3);
    ck_assert_double_gt(json_number(json, "maps"), 4);
    ck_assert_double_gt(json_number(json, "timeline"), 5);
    assert_contains(json, "MiB held at the moment, ");
    assert_contains(json, "alive50.13 MiB (100.0 % of the peak)");
    assert_contains(json, "held by no_pool50.13 MiB");
    assert_contains(json, "output.dense");
    assert_contains(json, "in page_unit_pool0x");
    static const char *const yes[] = {
        "zoomed",   "together", "panned",  "restored", "alone",
        "by_focus", "tip",      "dragged", "let_go",   "as_first"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
      ck_assert_msg(json_is(json, yes[i], "true"), "%s: %s", yes[i], json);
  }
}

TEST(hostile_names_run_nothing) {
  char *page = draw(write_hostile("h.pickle"));
  char *json = page_check(page, "a hostile replay page in a browser",
                          "out.images = document.images.length;\n");
  if (json != NULL) {
    ck_assert_msg(json_size(json, "errors") == 0, "%s", json);
    ck_assert(json_is(json, "images", "0"));
  }
}
