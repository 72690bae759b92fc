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
#include "slice.h"
#include "verbs.h"
#include "view.h"

static const char help[] =
    "usage: tarn view TRACE|@WORKLOAD --html FILE [OPTION]...\n"
    "\n"
    "Draws a trace as one HTML file that needs nothing else: live bytes over\n"
    "time by what they are for or who holds them, the passes of the program,\n"
    "every block as a box of address and time, the state at any event, "
    "holders\n"
    "by frame, search by frame. Press '?' in the page for its keys.\n"
    "\n"
    "What memory is for is told as in 'tarn why'; where it is unknown, the\n"
    "colours are those of holders.\n"
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
    "  --from N, --to N    only the events from N on, up to N: the rest is cut "
    "off\n"
    "                      before anything is drawn, for traces that are too\n"
    "                      large for a page (default: all)\n"
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
  uint64_t from;
  uint64_t to;  // 0: all
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
  if (c->to > 0 && c->from >= c->to)
    return tool_misuse(c->verb, "--from is not below --to");
  return load_check(c->verb, c->traces.items[0], &c->trace_options);
}

// One line: the path of the page, and the event at which it opens; |first| is
// the number of the first event of |trace|.
static void tell(const char *path, const tarn_trace *trace, uint32_t first,
                 FILE *out) {
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
            format_count(event, first + at - 1),
            format_bytes(bytes, trace->events[at - 1].size));
  } else if (trace->live_peak_event == TARN_TRACE_BASELINE) {
    fprintf(out, "opens at the peak of %s, before the first event\n",
            format_bytes(bytes, trace->live_peak_bytes));
  } else {
    fprintf(out, "opens at the peak of %s, at event %s\n",
            format_bytes(bytes, trace->live_peak_bytes),
            format_count(event, first + trace->live_peak_event));
  }
}

static tool_exit write_page(command *c, const tarn_trace *trace) {
  bool stdout_is_taken = outfile_is_stdout(c->options.path);
  tool_exit status = view_write(c->verb, trace, &c->options);
  if (status == TOOL_DONE) {
    tell(c->options.path, trace, c->options.first,
         stdout_is_taken ? stderr : tool_out());
  }
  return status;
}

// A browser holds some 40 bytes for each event of its page several times.
enum { EVENTS_MANY = 1000000 };

static void note_many(const command *c, const tarn_trace *trace) {
  char events[FORMAT_SIZE];
  if (trace->event_count <= EVENTS_MANY) return;
  tool_say(c->verb,
           "%s: %s events are many for a browser; --from and --to draw a part",
           trace->name, format_count(events, trace->event_count));
}

// Roles are those of the whole trace: a part of a step does not tell them.
static tool_exit write_part(command *c, const tarn_trace *trace,
                            const roles *whole) {
  uint64_t count = trace->event_count;
  uint64_t to = c->to > 0 && c->to < count ? c->to : count;
  if (c->from >= to) {
    return tool_fail(c->verb, "%s: no event %llu: it has %zu", trace->name,
                     (unsigned long long)c->from, trace->event_count);
  }
  slice s = slice_make(trace, (uint32_t)c->from, (uint32_t)to);
  roles part = slice_roles(&s, whole);
  c->options.roles = &part;
  c->options.first = s.first;
  tool_exit status = write_page(c, &s.trace);
  roles_deinit(&part);
  slice_deinit(&s);
  return status;
}

static tool_exit draw(command *c, const tarn_trace *trace) {
  roles whole = roles_find(trace);
  bool all = c->from == 0 && c->to == 0;
  tool_exit status;
  c->options.libraries = &c->libraries;
  c->options.whole_events = trace->event_count;
  c->options.roles = &whole;
  if (all) note_many(c, trace);
  status = all ? write_page(c, trace) : write_part(c, trace, &whole);
  roles_deinit(&whole);
  return status;
}

static tool_exit work(void *context) {
  command *c = context;
  tarn_trace *trace = NULL;
  tool_exit status = check(c);
  if (status != TOOL_DONE) return status;
  outfile_rules rules = {
      .verb = c->verb, .inputs = &c->traces, .force = c->force};
  if (!outfile_try(&rules, OUTFILE_PAGE, c->options.path)) return TOOL_NO;
  status = load_trace(c->verb, c->traces.items[0], &c->trace_options, &trace);
  if (status != TOOL_DONE) return status;
  status = draw(c, trace);
  tarn_trace_destroy(trace);
  return status;
}

static const options_entry entries[] = {
    OPTION_TEXT("html", options.path),
    OPTION_FLAG("force", force),
    OPTION_TEXT("title", options.title),
    OPTION_NAMES("libraries", libraries),
    OPTION_NUMBER("from", from, 0, UINT32_MAX - 1),
    OPTION_NUMBER("to", to, 1, UINT32_MAX),
    OPTION_TRACE_DEVICE(trace_options),
    {0},
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
