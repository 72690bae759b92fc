// tarn view: a trace as one page: the holders of memory, their time and their
// place.
//
// The room for the page is tried before the trace is read.
#include <stdio.h>
#include <stdlib.h>

#include "kit/format.h"
#include "kit/options.h"
#include "kit/text.h"
#include "load.h"
#include "outfile.h"
#include "verbs.h"
#include "view.h"

static const char help[] =
    "usage: tarn view TRACE|@WORKLOAD --html FILE [OPTION]...\n"
    "\n"
    "Draws a trace as one HTML file that needs nothing else: live bytes over\n"
    "time by who holds them, every block as a box of address and time, the\n"
    "state at any event, holders by frame, search by frame. Press '?' in the\n"
    "page for its keys.\n"
    "\n"
    "A block is held by the innermost frame of its stack that is the caller's\n"
    "own code, as in 'tarn why', or by its tag if it has no stack. Where a "
    "trace\n"
    "has no addresses, as a workload, blocks stand where arena_pool puts "
    "them.\n"
    "The page opens at the last refused request, or else at the peak.\n"
    "\n"
    "  --html FILE         where to; '/dev/stdout' is allowed\n"
    "  --force             overwrite FILE even if it is not a page of tarn's\n"
    "  --title TEXT        over the page, instead of the trace's name\n"
    "  --libraries P,Q     patterns of files and functions that are not the\n"
    "                      caller's own code, as in 'tarn why'\n"
    "  --trace-device N    of a snapshot of several devices, this one "
    "(default:\n"
    "                      the one with most events)\n"
    "  -h, --help          this text\n"
    "\n"
    "Exit status: 1 if the trace cannot be read or the page not written, 2 if\n"
    "the workload does not exist or the command line is wrong.\n";

typedef struct command {
  const tool_verb *verb;
  options_list traces;
  options_list libraries;
  view_options options;
  bool force;
  tarn_trace_options trace_options;
} command;

static tool_exit check(const command *c) {
  if (c->traces.count == 0) return tool_misuse(c->verb, "which trace?");
  if (c->traces.count > 1) {
    return tool_misuse(c->verb, "one trace at a time, not %zu",
                       c->traces.count);
  }
  if (c->options.path == NULL)
    return tool_misuse(c->verb, "where to? --html FILE");
  return load_check(c->verb, c->traces.items[0], &c->trace_options);
}

// One line: the path of the page, and the event at which it opens.
static void tell(const char *path, const tarn_trace *trace, FILE *out) {
  char events[FORMAT_SIZE], blocks[FORMAT_SIZE], bytes[FORMAT_SIZE];
  char event[FORMAT_SIZE];
  size_t at = trace->event_count;
  while (at > 0 && trace->events[at - 1].kind != TARN_TRACE_OOM)
    at--;
  text_write(path, out);
  fprintf(out, ": %s events, %s blocks; ",
          format_count(events, trace->event_count),
          format_count(blocks, trace->block_count));
  if (at > 0) {
    fprintf(out, "opens at event %s, which was refused %s\n",
            format_count(event, at - 1),
            format_bytes(bytes, trace->events[at - 1].size));
  } else if (trace->live_peak_event == TARN_TRACE_BASELINE) {
    fprintf(out, "opens at the peak of %s, before the first event\n",
            format_bytes(bytes, trace->live_peak_bytes));
  } else {
    fprintf(out, "opens at the peak of %s, at event %s\n",
            format_bytes(bytes, trace->live_peak_bytes),
            format_count(event, trace->live_peak_event));
  }
}

static tool_exit work(void *context) {
  command *c = context;
  tarn_trace *trace = NULL;
  c->options.libraries = &c->libraries;
  tool_exit status = check(c);
  if (status != TOOL_DONE) return status;
  outfile_rules rules = {
      .verb = c->verb, .inputs = &c->traces, .force = c->force};
  if (!outfile_try(&rules, OUTFILE_PAGE, c->options.path)) return TOOL_NO;
  status = load_trace(c->verb, c->traces.items[0], &c->trace_options, &trace);
  if (status != TOOL_DONE) return status;
  bool stdout_is_taken = outfile_is_stdout(c->options.path);
  status = view_write(c->verb, trace, &c->options);
  if (status == TOOL_DONE) {
    tell(c->options.path, trace, stdout_is_taken ? stderr : tool_out());
  }
  tarn_trace_destroy(trace);
  return status;
}

static const options_entry entries[] = {
    OPTION_TEXT("html", options.path),   OPTION_FLAG("force", force),
    OPTION_TEXT("title", options.title), OPTION_NAMES("libraries", libraries),
    OPTION_TRACE_DEVICE(trace_options),  {0},
};

const tool_verb verb_view = {
    .name = "view",
    .summary = "a trace as one page: who holds the memory, when, where",
    .help = help,
    .entries = entries,
    OPTIONS_COMMAND(.trace_options = {.struct_size =
                                          sizeof(tarn_trace_options)}),
    .words = offsetof(command, traces),
    .work = work,
};
