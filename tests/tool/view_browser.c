// `tarn view` in a browser, where there is a Chromium: the page is opened, used
// by its keys, and what is drawn is looked at. It says what `tarn why` says.
#include "kit/format.h"
#include "support/tagged.h"
#include "tarn/account.h"
#include "tarn/snapshot.h"
#include "view_kit.h"
#include "view_script.h"

static void assert_says(const char *json, const char *path, const char *text) {
  const char *at = json_at(json, path);
  ck_assert_msg(at != NULL, "no %s in %s", path, json);
  size_t length = strlen(text);
  char *found = strndup(at, 1000 + length);
  ck_assert_msg(strstr(found, text) != NULL, "%s: '%s' is not in %s", path,
                text, found);
  free(found);
}

static void assert_keys_work(const char *json) {
  assert_says(json, "opens", "\"After event 6, 60 us: out of memory\"");
  assert_says(json, "peak", "\"After event 2, 20 us: the peak\"");
  assert_value(json, "home", "\"Before the first event\"");
  assert_says(json, "next", "\"After event 0, ");
  assert_says(json, "next_facts", "alive1.00 MiB");
  assert_value(json, "slider", "\"1\"");
  assert_says(json, "end", "\"After event 6, ");
  assert_value(json, "refused",
               "\"32.00 MiB were asked for: the red boxes are as high.\"");
  assert_says(json, "again", ": the peak\"");
  static const char *const yes[] = {
      "zoomed", "panned",      "restored", "cleared", "hidden",  "shown",
      "help",   "found_drawn", "same",     "by_time", "by_event"};
  for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
    assert_value(json, yes[i], "true");
  assert_says(json, "block", "\"Block 1size4.00 MiB");
  assert_says(json, "block", "forward  /app/model.py:7");
  assert_says(json, "no_block", "Click a box");
}

static void assert_found(const char *json) {
  assert_value(
      json, "found",
      "\"1 frame, 1 block: 2.00 MiB at the moment, 2.00 MiB at most\"");
  assert_value(json, "nothing", "\"\"");
  assert_value(json, "chosen",
               "\"1 block: 4.00 MiB at the moment, 4.00 MiB at most\"");
  assert_value(json, "focus", "\"true\"");
}

static void assert_table(const char *json) {
  assert_says(json, "answer", "Out of memory at event 6, 60 us: 32.00 MiB");
  assert_says(json, "answer", "while 3.00 MiB were alive. 16.00 MiB were held");
  assert_says(json, "answer", "Held by optim.py:7 step 2.00 MiB, 66.7 %");
  assert_says(json, "answer", "The peak was 7.00 MiB, after event 2, 20 us.");
  assert_value(json, "rows.0.0", "\"/app/model.py:7 forward\"");
  assert_value(json, "rows.0.1", "\"4.00 MiB\"");
  assert_value(json, "rows.0.2", "\"57.1 %\"");
  assert_value(json, "rows.1.0", "\"/app/optim.py:7 step\"");
  assert_value(json, "rows.2.0", "\"baseline\"");
  assert_value(json, "rows.2.1", "\"1.00 MiB\"");
  ck_assert_uint_eq(json_size(json, "rows"), 4);
  assert_value(json, "rows.3.1", "\"0 B\"");
  assert_value(json, "rows.3.5", "\"1.00 MiB\"");
  assert_value(json, "sums.1", "\"7.00 MiB\"");
  assert_value(json, "sums.6", "\"8.00 MiB\"");
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
  tool_output o = tool_ends(0, "why", trace, "--pool", "none", "-o", "json",
                            "--at", number);
  assert_bytes(json, event, 0, o.out, "at.live_bytes");
  assert_bytes(json, event, 2, o.out, "reserved_bytes");
  assert_bytes(json, event, 3, o.out, "free_bytes");
  assert_bytes(json, event, 4, o.out, "largest_hole_bytes");
}

FIXTURE(tool_files_begin, tool_files_end);

// A block of 5000 bytes takes 5120: what is left over of its unit is no hole.
TEST(page_says_what_why_says) {
  begin_snapshot();
  event_by("segment_alloc", 64 * MIB, 16 * MIB, NULL, NULL);
  event_by("alloc", 64 * MIB, 5000, "/app/model.py", "forward");
  event_by("alloc", 64 * MIB + 5120, 7000, "/app/model.py", "forward");
  event_by("segment_alloc", 96 * MIB, 2 * MIB, NULL, NULL);
  event_by("alloc", 96 * MIB, 2 * MIB, "/app/optim.py", "step");
  event_by("free_completed", 64 * MIB, 5000, NULL, NULL);
  event_by("oom", 0, 32 * MIB, NULL, NULL);
  const char *trace = write_snapshot("same.pickle");
  char *page = view(trace);
  char *json = page_check(page, "tarn view in a browser", VIEW_SCRIPT_MOMENTS);
  for (size_t i = 0; json != NULL && i < 7; i++)
    assert_moment(json, trace, i);
  if (json != NULL) {
    ck_assert_msg(json_size(json, "errors") == 0, "%s", json);
    assert_says(json, "moments.2.3", " in 1 hole\"");
    assert_says(json, "home_facts", "held of the device0 B");
    assert_value(json, "dragged", "true");
    assert_value(json, "let_go", "true");
    assert_says(json, "brushed", "events ");
  }
}

// --- of a pool's own snapshot ----------------------------------------------

static const char *const strategies[] = {"arena_pool", "page_unit_pool",
                                         "buddy_pool", "no_pool"};

enum { STRATEGIES = sizeof strategies / sizeof *strategies };

static void take(tarn_pool *pool, tarn_tag tag, size_t size, tarn_block *out) {
  assert_ok(alloc_tagged(pool, size, 0, NULL, tag, out));
}

// A program that ends with a refused request of 60 MB. Its segments touch, and
// blocks lie across their borders.
static const char *write_refusal(const char *strategy) {
  const char *path = tool_file("refused.tarn");
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
  ck_assert_int_eq(alloc_tagged(pool, 60000000, 0, NULL, work, &block),
                   TARN_FULL);
  assert_ok(tarn_pool_snapshot_on_full(TARN_TRACE_FORMAT_TARN, NULL));
  for (size_t i = 0; i < 20; i++)
    assert_ok(tarn_pool_free(&blocks[i], NULL));
  for (size_t i = 20; i < 24; i += 2)
    assert_ok(tarn_pool_free(&blocks[i], NULL));
  assert_ok(tarn_pool_destroy(pool));
  return path;
}

TEST_LOOP(pools_snapshots_say_what_why_says, STRATEGIES) {
  const char *trace = write_refusal(strategies[_i]);
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
}

// The box in the map is as high as the request, on the scale of the blocks:
// 24 MiB beside two holes of 16 MiB in a segment of 64 MiB.
TEST(page_opens_at_the_refusal) {
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
}

TEST(page_works_in_a_browser) {
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
    assert_value(json, "hacked", "false");
    assert_says(json, "rows.3.0", "\\u003c/script\\u003e");
    ck_assert_double_eq(json_number(json, "images"), 0);
    ck_assert_double_eq(json_number(json, "links"), 0);
    ck_assert_double_eq(json_number(json, "unnamed"), 0);
  }
}

TEST(small_pages_work_in_a_browser) {
  begin_snapshot();
  event_by("alloc", 64 * MIB, 4 * MIB, NULL, NULL);
  char *page = view(write_snapshot("one.pickle"));
  char *json = page_check(page, "tarn view in a browser", VIEW_SCRIPT);
  if (json != NULL) {
    ck_assert_msg(json_size(json, "errors") == 0, "%s", json);
    assert_says(json, "answer", "Held by without a stack 4.00 MiB, 100.0 %");
    assert_value(json, "end", "\"After event 0: the peak\"");
  }
}

#define VIEW_SCRIPT_ROLES                                                \
  "const plainOf = id => print($(id));\n"                                \
  "  out.answer = text('answer'); out.title = text('timeline-title');\n" \
  "  out.legend = text('map-legend');\n"                                 \
  "  out.list = text('moment-holders');\n"                               \
  "  out.description = text('description');\n"                           \
  "  out.fold = text('base');\n"                                         \
  "  const plain = plainOf('map');\n"                                    \
  "  await press('h'); out.unfolded = plainOf('map') !== plain;\n"       \
  "  await press('h'); out.folded = plainOf('map') === plain;\n"         \
  "  await press('f'); out.frames = text('timeline-title');\n"           \
  "  out.frame_list = text('moment-holders');\n"                         \
  "  out.recoloured = plainOf('map') !== plain;\n"                       \
  "  await press('f'); out.again = plainOf('map') === plain;\n"          \
  "  $('moment-holders').querySelector('button').click();\n"             \
  "  await rest(); out.chosen = text('found');\n"

// 64 MiB of weights, never freed; a training step of one layer.
static const char *write_training(void) {
  const char *engine = "torch::autograd::Engine::thread_main()";
  begin_snapshot_of_block(64 * MIB, 64 * MIB, 64 * MIB, 64 * MIB);
  event_by("segment_alloc", 256 * MIB, 128 * MIB, NULL, NULL);
  event_by("alloc", 256 * MIB, 8 * MIB, "/app/model.py", "forward");
  event_by("alloc", 320 * MIB, 64 * MIB, "??", engine);
  event_by("free_completed", 256 * MIB, 8 * MIB, "??", engine);
  event_by("alloc", 256 * MIB, 16 * MIB, "/v/torch/optim/optimizer.py",
           "wrapper");
  event_by("free_completed", 256 * MIB, 16 * MIB, "/v/torch/optim/optimizer.py",
           "wrapper");
  return write_snapshot("training.pickle");
}

TEST(roles_are_shown_first) {
  char *page = view(write_training());
  char *json = page_check(page, "tarn view in a browser", VIEW_SCRIPT_ROLES);
  if (json == NULL) return;
  ck_assert_msg(json_size(json, "errors") == 0, "%s", json);
  assert_says(json, "answer",
              "Peak 144.00 MiB in the optimizer, after event 4");
  assert_says(json, "answer",
              "Alive were weights 64.00 MiB, 44.4 %, gradients");
  assert_value(json, "title", "\"Live bytes by role\"");
  assert_says(json, "legend", "weightsgradientsactivationstemporaries");
  assert_says(json, "list", "temporaries16.00 MiB");
  assert_value(json, "fold", "\"Fold the baseline\"");
  assert_value(json, "frames", "\"Live bytes by holder\"");
  assert_says(json, "frame_list", "baseline64.00 MiB");
  assert_says(json, "chosen", "1 block: 64.00 MiB at the moment");
  static const char *const yes[] = {"unfolded", "folded", "recoloured",
                                    "again"};
  for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
    assert_value(json, yes[i], "true");
}

// A part has the numbers and the roles of the whole; a baseline of more than
// 60% is folded.
TEST(a_part_of_a_trace) {
  const char *trace = write_training(), *path = tool_file("part.html");
  tool_output o =
      tool_did("view", trace, "--html", path, "--from", "1", "--to", "3");
  assert_contains(o.out,
                  "2 events, 3 blocks; opens at the peak of 136.00 MiB, "
                  "at event 2\n");
  char *json = page_check(tool_read_file(path), "tarn view in a browser",
                          VIEW_SCRIPT_ROLES);
  if (json == NULL) return;
  assert_says(json, "answer", "Peak 136.00 MiB in backward, after event 2");
  assert_says(json, "description", "events 1 to 2 of 6");
  assert_says(json, "legend", "weightsgradientsactivations");
  o = tool_did("view", trace, "--html", path, "--from", "1", "--to", "2");
  json = page_check(tool_read_file(path), "tarn view in a browser",
                    VIEW_SCRIPT_ROLES);
  assert_value(json, "fold", "\"Unfold\"");
}
