// tarn bench view: how fast a page of `tarn view` appears and moves, in a
// Chromium without a window and without a GPU.
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "bench/browser.h"
#include "bench/figure.h"
#include "bench/view_trace.h"
#include "kit/json.h"
#include "kit/options.h"
#include "outfile.h"
#include "view.h"

static const char help[] =
    "usage: tarn bench view [OPTION]...\n"
    "\n"
    "Makes a trace, draws it as 'tarn view' does, opens the page in Chromium\n"
    "without a window, lets it pan and zoom by itself for 12 seconds, and "
    "tells\n"
    "how that went. Without Chromium only the page's size is told.\n"
    "\n"
    "  --events N       of the trace, 1000 to 1000000 (default: 100000)\n"
    "  --html FILE      keep the page there\n"
    "  --force          overwrite FILE even if it is not a page of tarn's\n"
    "  -o FORMAT        table (default), json, csv or md\n"
    "  -h, --help       this text\n"
    "\n"
    "Chromium is looked for on the PATH, or is what TARN_CHROMIUM names. The\n"
    "goals are those of 100000 events.\n"
    "\n"
    "Exit status: 1 if something could not be measured or, with Chromium, a\n"
    "page did not open; 2 on wrong use.\n";

enum { EVENTS = 100000, SECONDS = 120, WHY_SIZE = 4200 };

typedef struct figure {
  bench_figure shown;
  const char *group;  // of the page's figures; NULL: not within one
  const char *key;
} figure;

static const figure figures[] = {
    {{"file_size", "MB", "of the page", 12, SHEET_AT_MOST}, NULL, NULL},
    {{"first_paint", "ms", "until something is seen", 2000, SHEET_AT_MOST},
     NULL,
     "first_paint_ms"},
    {{"drawn", "ms", "until all is drawn", 2000, SHEET_AT_MOST},
     NULL,
     "drawn_ms"},
    {{"pan", "/s", "median frame, a quarter of the trace in sight", 30,
      SHEET_AT_LEAST},
     "pan",
     "frames_per_second"},
    {{"pan_slow", "/s", "of 20 frames the slowest", NAN, SHEET_AT_LEAST},
     "pan",
     "slow_frames_per_second"},
    {{"pan_work", "ms", "the script's part of a frame", NAN, SHEET_AT_MOST},
     "pan",
     "work_median_ms"},
    {{"pan_near", "/s", "median frame, a fiftieth in sight", 30,
      SHEET_AT_LEAST},
     "pan_near",
     "frames_per_second"},
    {{"zoom", "/s", "median frame while zooming", NAN, SHEET_AT_LEAST},
     "zoom",
     "frames_per_second"},
    {{"zoom_work", "ms", "the script's part of a frame", NAN, SHEET_AT_MOST},
     "zoom",
     "work_median_ms"},
    {{"moments", "/s", "median frame, another moment in each", NAN,
      SHEET_AT_LEAST},
     "moments",
     "frames_per_second"},
};
enum { FIGURES = sizeof figures / sizeof *figures };

typedef struct command {
  const tool_verb *verb;
  const char *html;
  bool force;
  uint64_t events;
  options_output output;
  double values[FIGURES];
  char without[WHY_SIZE];  // why nothing was measured; "": all was
} command;

// ---------------------------------------------------------------------------
// Measuring
// ---------------------------------------------------------------------------

// The number behind |key| in |text|, from |group| on; NaN if there is none.
static double number_of(const char *text, const char *group, const char *key) {
  char name[64];
  if (group != NULL) {
    snprintf(name, sizeof name, "\"%s\":", group);
    text = strstr(text, name);
    if (text == NULL) return NAN;
  }
  snprintf(name, sizeof name, "\"%s\":", key);
  const char *at = strstr(text, name);
  char *end;
  if (at == NULL) return NAN;
  double value = strtod(at + strlen(name), &end);
  return end == at + strlen(name) ? NAN : value;
}

static tool_exit take_figures(command *c, const char *page) {
  const char *text = strstr(page, "<pre id=\"measured\">");
  if (text == NULL) return tool_fail(c->verb, "the page measured nothing");
  for (size_t i = 1; i < FIGURES; i++)
    c->values[i] = number_of(text, figures[i].group, figures[i].key);
  return TOOL_DONE;
}

static tool_exit measure(command *c, const char *path) {
  char program[BROWSER_PATH_SIZE];
  if (!browser_find(program)) {
    snprintf(c->without, sizeof c->without, "SKIPPED: there is no Chromium");
    tool_say(c->verb, "%s", c->without);
    return TOOL_DONE;
  }
  char *page = browser_dump(program, path, "#measure", SECONDS, c->without,
                            sizeof c->without);
  if (page == NULL) return tool_fail(c->verb, "%s", c->without);
  tool_exit status = take_figures(c, page);
  free(page);
  return status;
}

static tool_exit draw_and_measure(command *c, const char *path) {
  tarn_trace *trace = NULL;
  struct stat found;
  view_options options = {.path = path, .libraries = &(options_list){0}};
  if (view_trace_make(c->events, &trace) != TARN_OK) {
    return tool_fail(c->verb, "%s", tarn_last_error());
  }
  roles known = roles_find(trace);
  options.roles = &known;
  options.whole_events = trace->event_count;
  tool_exit status = view_write(c->verb, trace, &options);
  roles_deinit(&known);
  tarn_trace_destroy(trace);
  if (status != TOOL_DONE) return status;
  if (stat(path, &found) == 0) c->values[0] = (double)found.st_size / 1e6;
  return measure(c, path);
}

// In a place of its own, unless the page is to be kept.
static tool_exit measure_somewhere(command *c) {
  char path[BROWSER_PATH_SIZE];
  const char *tmp = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/tarn-view-XXXXXX.html", tmp ? tmp : "/tmp");
  if (c->html != NULL) {
    char *whole;
    outfile_rules rules = {.verb = c->verb, .force = c->force};
    if (!outfile_try(&rules, OUTFILE_PAGE, c->html)) return TOOL_NO;
    int fd = open(c->html, O_WRONLY | O_CREAT, 0666);
    if (fd >= 0) close(fd);
    whole = realpath(c->html, NULL);
    if (whole == NULL) return tool_fail(c->verb, "%s: no such place", c->html);
    tool_exit status = draw_and_measure(c, whole);
    free(whole);
    return status;
  }
  int fd = mkstemps(path, (int)strlen(".html"));
  if (fd < 0) return tool_fail(c->verb, "%s: cannot be made", path);
  close(fd);
  tool_exit status = draw_and_measure(c, path);
  unlink(path);
  return status;
}

// ---------------------------------------------------------------------------
// Telling
// ---------------------------------------------------------------------------

static void tell(const command *c) {
  sheet *s = bench_sheet_begin(c->output);
  json *out = sheet_json(s);
  if (out != NULL) {
    json_key_uint(out, "events", c->events);
  }
  sheet_note(s, "%llu events", (unsigned long long)c->events);
  sheet_list(s, "results");
  for (size_t i = 0; i < FIGURES; i++)
    bench_figure_write(s, &figures[i].shown, NULL, c->values[i], NULL);
  sheet_end(s);
}

// ---------------------------------------------------------------------------
// The command line
// ---------------------------------------------------------------------------

static tool_exit work(void *context) {
  command *c = context;
  for (size_t i = 0; i < FIGURES; i++)
    c->values[i] = NAN;
  tool_exit status = measure_somewhere(c);
  tell(c);
  return status;
}

static const options_entry entries[] = {
    OPTION_NUMBER("events", events, 1000, 1000000),
    OPTION_FLAG("force", force),
    OPTION_TEXT("html", html),
    OPTION_OUTPUT(output),
    {0},
};

const tool_verb bench_of_views = {
    .name = "bench view",
    .summary = "how fast a page of tarn view appears and moves",
    .help = help,
    .entries = entries,
    OPTIONS_COMMAND(.events = EVENTS),
    .work = work,
};
