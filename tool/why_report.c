// The answer for people: first what they asked for, then what explains it.
//
//   out of memory?  peak, its pass and roles, what would help   (sentences)
//   roles ─► holders ─► difference ─► older than the trace ─► what if ─►
//   modules ─► sizes ─► tags ─► came and went ─► holes    (tables)
//
// Sentences and cells may hold names out of a file: all pass say() or a table.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/format.h"
#include "kit/sheet.h"
#include "kit/text.h"
#include "why.h"

// Roles with less of what was alive are in the table only.
static const double HEADLINE_PERCENT = 1;

typedef struct reporter {
  const why_answer *answer;
  options_output output;
  bool colours;
} reporter;

// ---------------------------------------------------------------------------
// Sentences
// ---------------------------------------------------------------------------

static void write_escaped(const char *text) {
  for (; *text; text++) {
    if (strchr("\\`*_<>[]|", *text) != NULL) fputc('\\', tool_out());
    fputc(*text, tool_out());
  }
}

__attribute__((format(printf, 2, 3))) static void say(const reporter *r,
                                                      const char *format, ...) {
  char *text = NULL;
  va_list args;
  va_start(args, format);
  int length = vasprintf(&text, format, args);
  va_end(args);
  if (length < 0) return;
  text_neutralise(text, "\n");
  if (r->output == OUTPUT_MARKDOWN) {
    write_escaped(text);
  } else {
    fputs(text, tool_out());
  }
  free(text);
}

typedef enum tone { PLAIN, BOLD, ALARM, ADVICE } tone;

// From here on, on a terminal with colours.
static void set(const reporter *r, tone t) {
  static const char *const codes[] = {"0", "1", "1;31", "1;32"};
  if (r->colours) fprintf(tool_out(), "\x1b[%sm", codes[t]);
}

static void title(const reporter *r, const char *text) {
  bool markdown = r->output == OUTPUT_MARKDOWN;
  fputs(markdown ? "\n### " : "\n", tool_out());
  set(r, BOLD);
  fputs(text, tool_out());
  set(r, PLAIN);
  fputs(markdown ? "\n\n" : "\n", tool_out());
}

static sheet *begin_table(const reporter *r, const char *heading) {
  title(r, heading);
  return sheet_begin(r->output, NULL);
}

static double percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100 * (double)part / (double)whole;
}

// "NAME: 1.53 GiB in 217 blocks (23.5%)", with |whole| as the 100%.
static void say_holder(const reporter *r, const holder *row, uint64_t whole) {
  char bytes[FORMAT_SIZE], blocks[FORMAT_SIZE];
  const why_answer *a = r->answer;
  char *name = frame_names_short(a->trace, row, a->root);
  say(r, "%s: %s in %s block%s (%.1f%%)", name, format_bytes(bytes, row->bytes),
      format_count(blocks, row->blocks), row->blocks == 1 ? "" : "s",
      percent(row->bytes, whole));
  free(name);
}

static const holder *first_of(const holder_list *list, bool own_only) {
  for (size_t i = 0; i < list->count; i++) {
    const holder *row = &list->items[i];
    bool named = holder_has_frame(row) || row->kind == HOLDER_TAG;
    if (own_only ? row->kind == HOLDER_OWN : named) return row;
  }
  return NULL;
}

// "most is held by ...", behind |lead|. Memory that is older than the trace or
// has no stack is reported first if it is more, since no line can be named for
// it.
static void say_most(const reporter *r, const char *lead,
                     const holder_list *list) {
  char bytes[FORMAT_SIZE];
  const holder *top = list->count > 0 ? &list->items[0] : NULL;
  const holder *named = first_of(list, false);
  if (top != NULL && top != named) {
    bool old = top->kind == HOLDER_BASELINE;
    say(r, "%s%s of it (%.1f%%) %s", lead, format_bytes(bytes, top->bytes),
        percent(top->bytes, list->bytes),
        old ? "was there before the trace began"
            : "was recorded without stacks");
  }
  if (named == NULL) return;
  say(r, "%s%s", top == named ? lead : "",
      top == named ? "most is held by " : ", most of the rest is ");
  say_holder(r, named, list->bytes);
}

// " in backward,": the pass at the moment, if it is known.
static void say_phase(const reporter *r, moment at) {
  phase what = phases_at(&r->answer->roles.phases, at);
  const char *article = what == PHASE_OPTIMIZER ? "the " : "";
  if (what != PHASE_OTHER) say(r, " in %s%s,", article, phase_name(what));
}

// "optimizer states 3.15 GiB (49.4%), ...": the roles of most bytes.
static void say_roles(const reporter *r, const role_sums *sums,
                      uint64_t whole) {
  char bytes[FORMAT_SIZE];
  for (size_t i = 0; i < sums->count; i++) {
    const role_sum *row = &sums->items[i];
    double share = percent(row->bytes, whole);
    if (i > 0 && share < HEADLINE_PERCENT) break;
    say(r, "%s%s %s (%.1f%%)", i > 0 ? ", " : "", role_plural(row->what),
        format_bytes(bytes, row->bytes), share);
  }
}

// What was alive at a moment: by role, and then by frame.
static void say_alive(const reporter *r, const role_sums *sums,
                      const holder_list *list) {
  bool tells = role_sums_tell(sums);
  if (tells) {
    say(r, ": ");
    say_roles(r, sums, list->bytes);
    say(r, ".\n");
  }
  say_most(r, tells ? "By frame: " : "; ", list);
}

static void say_own(const reporter *r, const holder_list *list) {
  const holder *named = first_of(list, false);
  const holder *own = first_of(list, true);
  if (own == NULL || own == named) return;
  say(r, "Of your own code most is held by ");
  say_holder(r, own, list->bytes);
  say(r, ".\n");
}

// ---------------------------------------------------------------------------
// The answer
// ---------------------------------------------------------------------------

// The line that asked, and what for.
static void say_asker(const reporter *r, const why_oom *oom) {
  const why_answer *a = r->answer;
  const char *tag = a->trace->tags[a->trace->events[oom->event].tag];
  if (oom->asker == TARN_TRACE_NO_STACK && *tag == '\0') return;
  holder row = {.kind = HOLDER_OWN, .frame = oom->asker};
  char *name = oom->asker == TARN_TRACE_NO_STACK
                   ? NULL
                   : frame_names_short(a->trace, &row, a->root);
  say(r, "Asked for%s%s%s%s.\n", *tag ? " as " : "", tag, name ? " by " : "",
      name ? name : "");
  free(name);
}

static void say_oom(const reporter *r, const why_oom *oom) {
  char when[WHY_TEXT_SIZE], size[FORMAT_SIZE], live[FORMAT_SIZE];
  char reason[2 * WHY_TEXT_SIZE];
  set(r, ALARM);
  say(r, "Out of memory");
  set(r, PLAIN);
  say_phase(r, oom->event);
  say(r, " %s: %s more w%s asked for while %s w%s alive",
      why_when(r->answer->trace, oom->event, when),
      format_bytes_exact(size, oom->size), oom->size == 1 ? "as" : "ere",
      format_bytes(live, oom->live_bytes), oom->live_bytes == 1 ? "as" : "ere");
  say_alive(r, &oom->role_sums, &oom->holders);
  say(r, ".\n");
  say_asker(r, oom);
  say(r, "%s\n", why_refused_text(oom, reason, sizeof reason));
  say_own(r, &oom->holders);
}

static void say_ooms(const reporter *r) {
  const why_answer *a = r->answer;
  char count[FORMAT_SIZE];
  if (a->oom_total == 0) return;
  say_oom(r, &a->oom[a->oom_count - 1]);
  if (a->oom_total > 1) {
    say(r, "%s requests were refused; this is the last of them.\n",
        format_count(count, a->oom_total));
  }
  fputc('\n', tool_out());
}

// What the trace lacks for telling all roles.
static void say_untold(const reporter *r) {
  const bool *has = r->answer->roles.phases.has;
  if (r->answer->live.count == 0) return;
  if (!phases_are_known(&r->answer->roles.phases)) {
    say(r,
        "What it was for cannot be told: no stack names a pass of "
        "PyTorch.\n");
  } else if (!has[PHASE_BACKWARD] && !has[PHASE_OPTIMIZER]) {
    say(r,
        "The trace has neither a backward pass nor an optimizer: it cannot "
        "tell weights from buffers, inputs or what an optimizer keeps.\n");
  } else if (!has[PHASE_BACKWARD]) {
    say(r,
        "The trace has no backward pass: it cannot tell weights, gradients "
        "and what the optimizer keeps apart.\n");
  } else if (!has[PHASE_OPTIMIZER]) {
    say(r,
        "The trace has no optimizer's step: what an optimizer keeps is told "
        "by sizes alone.\n");
  }
}

static void say_savings(const reporter *r) {
  const savings *found = &r->answer->savings;
  char saved[FORMAT_SIZE], held[FORMAT_SIZE];
  if (!r->answer->at_peak) return;
  for (size_t i = 0; i < found->count; i++) {
    const saving *s = &found->items[i];
    set(r, ADVICE);
    say(r, "Would help:");
    set(r, PLAIN);
    say(r, " %s: up to %s less (%s: %s).\n", s->way,
        format_bytes(saved, s->saved), s->why, format_bytes(held, s->held));
  }
}

static void say_peak(const reporter *r) {
  const why_answer *a = r->answer;
  char bytes[FORMAT_SIZE], when[WHY_TEXT_SIZE];
  if (a->trace->live_peak_bytes == 0) {
    say(r, "Nothing was ever alive in this trace: its peak is 0 bytes.\n");
    return;
  }
  set(r, BOLD);
  say(r, "Peak %s", format_bytes_exact(bytes, a->trace->live_peak_bytes));
  set(r, PLAIN);
  if (a->at_peak) say_phase(r, a->at);
  say(r, " %s", why_when(a->trace, a->trace->live_peak_event, when));
  if (a->at_peak) say_alive(r, &a->role_sums, &a->holders);
  say(r, ".\n");
  if (!a->at_peak) return;
  say_own(r, &a->holders);
  say_untold(r);
  say_savings(r);
}

static void say_moment(const reporter *r) {
  const why_answer *a = r->answer;
  char bytes[FORMAT_SIZE], when[WHY_TEXT_SIZE];
  if (a->at_peak) return;
  say(r, "%s alive", format_bytes_exact(bytes, a->live.bytes));
  say_phase(r, a->at);
  say(r, " %s", why_when(a->trace, a->at, when));
  say_alive(r, &a->role_sums, &a->holders);
  say(r, ".\n");
  say_own(r, &a->holders);
  say_untold(r);
}

static void say_diff(const reporter *r) {
  const why_answer *a = r->answer;
  char change[FORMAT_SIZE], other[FORMAT_SIZE];
  if (!a->has_diff) return;
  uint64_t mine = a->trace->live_peak_bytes;
  uint64_t theirs = a->diff.other->live_peak_bytes;
  if (mine == theirs) {
    say(r, "That is as much as the peak of %s.\n", a->diff.other->name);
    return;
  }
  say(r, "That is %s %s than the peak of %s (%s).\n",
      format_bytes_exact(change, mine > theirs ? mine - theirs : theirs - mine),
      mine > theirs ? "more" : "less", a->diff.other->name,
      format_bytes(other, theirs));
}

static void say_fits(const reporter *r) {
  const why_answer *a = r->answer;
  char capacity[FORMAT_SIZE], peak[FORMAT_SIZE];
  if (a->capacity == 0) return;
  uint64_t needed = a->strategies.needed_bytes;
  format_bytes_apart(capacity, a->capacity, peak, needed);
  if (needed > a->capacity) {
    say(r, "No allocator could have fitted it into %s: %s %s %s at once.\n",
        capacity, peak, needed == 1 ? "was" : "were",
        needed > a->trace->live_peak_bytes ? "needed" : "alive");
    return;
  }
  for (size_t i = 0; i < a->strategies.count; i++) {
    if (a->strategies.rows[i].fits != FITS) continue;
    say(r, "It fits into %s: see below.\n", capacity);
    return;
  }
  say(r, "It does not fit into %s with any allocator below.\n", capacity);
}

// ---------------------------------------------------------------------------
// Tables
// ---------------------------------------------------------------------------

// The next frame outwards that is the caller's own, of the stack that holds
// most; blank if there is none.
static void add_caller(const reporter *r, sheet *s, owners *o,
                       const holder *row) {
  static const char called[] = "mostly called from";
  const tarn_trace *trace = r->answer->trace;
  if (row->stack == TARN_TRACE_NO_STACK) {
    sheet_text(s, called, NULL, "");
    return;
  }
  const tarn_trace_stack *stack = &trace->stacks[row->stack];
  const uint32_t *frames = trace->frame_indices + stack->first;
  bool found = false;
  for (uint32_t i = 0; i < stack->count; i++) {
    bool own = owners_is_own(o, frames[i]);
    if (found && own && frames[i] != row->frame) {
      holder caller = {.kind = HOLDER_OWN, .frame = frames[i]};
      char *name = frame_names_short(trace, &caller, r->answer->root);
      sheet_text(s, called, NULL, name);
      free(name);
      return;
    }
    found |= frames[i] == row->frame;
  }
  sheet_text(s, called, NULL, "");
}

static void add_share(sheet *s, uint64_t bytes, uint64_t whole,
                      uint64_t blocks) {
  sheet_uint(s, "bytes", NULL, bytes, SHEET_BYTES);
  sheet_percent(s, "share", NULL, (double)bytes, (double)whole);
  sheet_uint(s, "blocks", NULL, blocks, SHEET_COUNT);
}

static void add_rule(sheet *s, const char *what, const char *rule) {
  sheet_text(s, "role", NULL, what);
  sheet_text(s, "rule", NULL, rule);
  sheet_row_end(s);
}

// A row for each role; its other rules stand below it.
static void write_roles(const reporter *r) {
  const role_sums *sums = &r->answer->role_sums;
  if (!role_sums_tell(sums)) return;
  sheet *s = begin_table(
      r, r->answer->at_peak ? "What it is for at the peak" : "What it is for");
  for (size_t i = 0; i < sums->count; i++) {
    const role_sum *row = &sums->items[i];
    add_share(s, row->bytes, r->answer->live.bytes, row->blocks);
    add_rule(s, role_name(row->what), row->rules[0]);
    for (size_t k = 1; k < row->rule_count; k++) {
      sheet_figure(s, "bytes", NULL, "");
      sheet_figure(s, "share", NULL, "");
      sheet_figure(s, "blocks", NULL, "");
      add_rule(s, "", row->rules[k]);
    }
  }
  sheet_end(s);
}

static bool any_frame(const holder_list *list) {
  for (size_t i = 0; i < list->count; i++) {
    if (holder_has_frame(&list->items[i])) return true;
  }
  return false;
}

static bool any_tag(const holder_list *list) {
  for (size_t i = 0; i < list->count; i++) {
    if (list->items[i].kind == HOLDER_TAG) return true;
  }
  return false;
}

static void write_frames(const reporter *r, const char *heading,
                         const holder_list *list, owners *callers) {
  const char *column = any_tag(list) ? "frame or tag" : "frame";
  if (list->count == 0) return;
  if (!any_frame(list)) callers = NULL;
  sheet *s = begin_table(r, heading);
  for (size_t i = 0; i < list->count; i++) {
    const holder *row = &list->items[i];
    char *name = frame_names_short(r->answer->trace, row, r->answer->root);
    add_share(s, row->bytes, list->bytes, row->blocks);
    sheet_text(s, column, NULL, name);
    free(name);
    if (callers) add_caller(r, s, callers, row);
    sheet_row_end(s);
  }
  sheet_end(s);
}

static void write_sums(const reporter *r, const char *heading,
                       const char *column, const named_sums *sums,
                       uint64_t whole) {
  if (sums->count == 0) return;
  sheet *s = begin_table(r, heading);
  for (size_t i = 0; i < sums->count; i++) {
    add_share(s, sums->items[i].bytes, whole, sums->items[i].blocks);
    sheet_text(s, column, NULL, sums->items[i].name);
    sheet_row_end(s);
  }
  sheet_end(s);
}

static void add_change(sheet *s, uint64_t now, uint64_t before) {
  char bytes[FORMAT_SIZE], text[FORMAT_SIZE + 2];
  format_bytes(bytes, now >= before ? now - before : before - now);
  snprintf(text, sizeof text, "%s%s",
           now > before   ? "+"
           : now < before ? "-"
                          : "",
           bytes);
  sheet_figure(s, "change", NULL, text);
}

static void write_diff(const reporter *r) {
  const why_diff *diff = &r->answer->diff;
  if (!r->answer->has_diff || diff->count == 0) return;
  sheet *s = begin_table(r, "What grew and shrank between the peaks");
  for (size_t i = 0; i < diff->count; i++) {
    const why_change *change = &diff->items[i];
    add_change(s, change->bytes, change->other_bytes);
    sheet_uint(s, "bytes", NULL, change->bytes, SHEET_BYTES);
    sheet_uint(s, "of the other", NULL, change->other_bytes, SHEET_BYTES);
    sheet_uint(s, "blocks", NULL, change->blocks, SHEET_COUNT);
    sheet_uint(s, "of the other", NULL, change->other_blocks, SHEET_COUNT);
    sheet_text(s, "frame", NULL, change->frame);
    sheet_row_end(s);
  }
  sheet_end(s);
}

static const char *fits_word(const what_if_row *row) {
  switch (row->fits) {
    case FITS_NOT:
      return "no";
    case FITS:
      return row->squeezed ? "yes, giving back what is idle" : "yes";
    case FITS_UNASKED:
      break;
  }
  return "";
}

static void write_what_if(const reporter *r) {
  const why_answer *a = r->answer;
  const what_if *w = &a->strategies;
  if (w->count == 0) return;
  sheet *s = begin_table(
      r, a->oom_total > 0
             ? "What other allocators would have held to serve what was "
               "refused too"
             : "What other allocators would have held");
  for (size_t i = 0; i < w->count; i++) {
    const what_if_row *row = &w->rows[i];
    uint64_t live = row->served_bytes;
    double over = (double)row->reserved_bytes / (double)live;
    sheet_uint(s, "reserved peak", NULL, row->reserved_bytes, SHEET_BYTES);
    sheet_number(s, "over live", NULL, live > 0 ? over : NAN, 3);
    sheet_text(s, "allocator", NULL, row->strategy);
    if (a->capacity > 0) sheet_text(s, "fits", NULL, fits_word(row));
    sheet_row_end(s);
  }
  sheet_end(s);
}

static void write_holes(const reporter *r) {
  const holes *h = &r->answer->space;
  char reserved[FORMAT_SIZE], free_bytes[FORMAT_SIZE], largest[FORMAT_SIZE];
  char count[FORMAT_SIZE];
  title(r, "Holes");
  if (!h->known) {
    say(r, "The trace does not tell what the allocator held.\n");
    return;
  }
  if (h->count == 0) {
    say(r, "%s reserved, none of it free.\n",
        format_bytes(reserved, h->reserved_bytes));
    return;
  }
  say(r, "%s reserved, %s of it free in %s hole%s, the largest %s",
      format_bytes(reserved, h->reserved_bytes),
      format_bytes(free_bytes, h->free_bytes), format_count(count, h->count),
      h->count == 1 ? "" : "s", format_bytes(largest, h->largest));
  say(r, ": %.0f%% fragmented.\n", 100 * h->fragmentation);
}

// The recorded stacks of blocks that are older than the trace: at their birth,
// or only at their death. Their tags are in the table of holders.
static void write_baseline(const reporter *r) {
  const why_answer *a = r->answer;
  bool born = false;
  if (!any_frame(&a->baseline_holders)) return;
  for (size_t i = 0; i < a->baseline.count; i++) {
    const tarn_trace_block *block = &a->trace->blocks[a->baseline.items[i]];
    born |= block->stack != TARN_TRACE_NO_STACK;
  }
  write_frames(r,
               born ? "Older than the trace, by the line that allocated or, "
                      "if that is unknown, freed it"
                    : "Older than the trace, by the line that freed it",
               &a->baseline_holders, NULL);
}

void why_write_report(const why_answer *a, options_output output) {
  reporter r = {.answer = a,
                .output = output,
                .colours = output == OUTPUT_TABLE && tool_has_colours()};
  say_ooms(&r);
  say_peak(&r);
  say_moment(&r);
  say_diff(&r);
  say_fits(&r);
  write_roles(&r);
  write_frames(&r, a->at_peak ? "Who holds it at the peak" : "Who holds it",
               &a->holders, a->owners);
  if (*a->root != '\0') say(&r, "Files are below %s.\n", a->root);
  write_diff(&r);
  write_baseline(&r);
  write_what_if(&r);
  if (any_frame(&a->holders)) {
    write_sums(&r, "By module", "module", &a->modules, a->live.bytes);
  }
  write_sums(&r, "By size of block", "size", &a->sizes, a->live.bytes);
  if (a->trace->tag_count > 1) {
    write_sums(&r, "By tag", "tag", &a->tags, a->live.bytes);
  }
  write_frames(&r,
               a->at_peak ? "What came and went without counting at the peak"
                          : "What came and went without counting at that event",
               &a->churn, NULL);
  write_holes(&r);
}
