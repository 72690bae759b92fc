// The answer of `tarn why`, put together.
#include "why.h"

#include <stdio.h>
#include <stdlib.h>

#include "kit/format.h"
#include "kit/tool.h"

// ---------------------------------------------------------------------------
// Refused requests
// ---------------------------------------------------------------------------

// An allocator that finds no hole asks the device.
static why_refused judge(uint64_t size, uint64_t device_free,
                         const holes *space) {
  if (!space->known) return REFUSED_UNKNOWN;
  if (space->largest_of_stream >= size || device_free >= size) {
    return REFUSED_BY_RULE;
  }
  if (space->largest >= size) return REFUSED_OTHER_STREAM;
  return space->free_bytes < size - device_free ? REFUSED_LESS_FREE
                                                : REFUSED_FRAGMENTED;
}

static why_oom look_into(const why_answer *a, uint32_t event) {
  const tarn_trace *trace = a->trace;
  const tarn_trace_event *refused = &trace->events[event];
  block_set live = moment_live(trace, event);
  why_oom oom = {.event = event,
                 .size = refused->size,
                 .device_free = refused->address,
                 .asker = owners_of(a->owners, refused->stack),
                 .live_bytes = live.bytes,
                 .live_blocks = live.count,
                 .space = holes_find(trace, &live, event, refused->stream),
                 .role_sums = roles_sum(&a->roles, trace, &live),
                 .holders = holders_by_frame(a->owners, trace, &live)};
  oom.reason = judge(oom.size, oom.device_free, &oom.space);
  block_set_deinit(&live);
  return oom;
}

static void look_into_ooms(why_answer *a) {
  uint32_t events[WHY_OOM_MOST];
  for (size_t i = 0; i < a->trace->event_count; i++) {
    if (a->trace->events[i].kind != TARN_TRACE_OOM) continue;
    events[a->oom_total++ % WHY_OOM_MOST] = (uint32_t)i;
  }
  size_t count = a->oom_total < WHY_OOM_MOST ? a->oom_total : WHY_OOM_MOST;
  a->oom = tool_array(count + 1, sizeof *a->oom);
  for (size_t i = a->oom_total - count; i < a->oom_total; i++) {
    a->oom[a->oom_count++] = look_into(a, events[i % WHY_OOM_MOST]);
  }
}

const char *why_refused_word(why_refused reason) {
  static const char *const words[] = {
      [REFUSED_UNKNOWN] = "unknown",
      [REFUSED_LESS_FREE] = "less_free_than_asked",
      [REFUSED_FRAGMENTED] = "fragmented",
      [REFUSED_OTHER_STREAM] = "other_stream",
      [REFUSED_BY_RULE] = "refused_by_rule",
  };
  return words[reason];
}

// "; the device had 1.00 GiB left", if that was recorded.
static void add_device(const why_oom *oom, char *out, size_t out_size) {
  char left[FORMAT_SIZE];
  out[0] = '\0';
  if (oom->device_free == 0) return;
  snprintf(out, out_size, "; the device had %s left",
           format_bytes(left, oom->device_free));
}

static const char *explain(const why_oom *oom) {
  bool device = oom->device_free > 0;
  switch (oom->reason) {
    case REFUSED_LESS_FREE:
      return device ? "together less than was asked for"
                    : "less than was asked for, and the device or a limit "
                      "gave no more";
    case REFUSED_FRAGMENTED:
      return device ? "together enough, but not in one piece"
                    : "enough, but not in one piece";
    case REFUSED_OTHER_STREAM:
      return "the hole is large enough, but of another stream";
    case REFUSED_BY_RULE:
      return "large enough, so a limit or a rule of the allocator refused it";
    case REFUSED_UNKNOWN:
      break;
  }
  return "";
}

char *why_refused_text(const why_oom *oom, char *out, size_t out_size) {
  char held[FORMAT_SIZE], free_bytes[FORMAT_SIZE], largest[FORMAT_SIZE];
  char count[FORMAT_SIZE], device[2 * FORMAT_SIZE];
  const holes *h = &oom->space;
  add_device(oom, device, sizeof device);
  if (!h->known) {
    snprintf(out, out_size,
             "The trace does not tell what the allocator held then%s.", device);
    return out;
  }
  format_bytes(held, h->reserved_bytes);
  if (h->count == 0) {
    snprintf(out, out_size, "The allocator held %s, none of it free%s: %s.",
             held, device, explain(oom));
    return out;
  }
  snprintf(out, out_size,
           "The allocator held %s, %s of it free in %s hole%s, the largest "
           "%s%s: %s.",
           held, format_bytes(free_bytes, h->free_bytes),
           format_count(count, h->count), h->count == 1 ? "" : "s",
           format_bytes(largest, h->largest), device, explain(oom));
  return out;
}

// ---------------------------------------------------------------------------
// Moments
// ---------------------------------------------------------------------------

// Behind "at event ...", if the trace has a clock.
static void add_time(const tarn_trace *trace, moment when, char *out,
                     size_t out_size) {
  char seconds[FORMAT_SIZE];
  uint64_t first = trace->events[0].time_us;
  uint64_t then = trace->events[when].time_us;
  out[0] = '\0';
  if (first == 0 || then < first) return;
  snprintf(out, out_size, " (%s s after the first)",
           format_fixed(seconds, (double)(then - first) / 1e6, 3));
}

char *why_when(const tarn_trace *trace, moment when, char *out) {
  char event[FORMAT_SIZE], count[FORMAT_SIZE], time[FORMAT_SIZE];
  if (when == TARN_TRACE_BASELINE) {
    snprintf(out, WHY_TEXT_SIZE, "before the first event");
    return out;
  }
  add_time(trace, when, time, sizeof time);
  snprintf(out, WHY_TEXT_SIZE, "at event %.24s of %.24s%s",
           format_count(event, when), format_count(count, trace->event_count),
           time);
  return out;
}

// ---------------------------------------------------------------------------
// The whole
// ---------------------------------------------------------------------------

static uint64_t stream_at(const tarn_trace *trace, moment at) {
  return at == TARN_TRACE_BASELINE ? 0 : trace->events[at].stream;
}

why_answer why_ask(const tarn_trace *trace, owners *o, moment at,
                   size_t depth) {
  why_answer a = {.trace = trace,
                  .owners = o,
                  .at = at,
                  .at_peak = at == trace->live_peak_event};
  block_set churn = moment_churn(trace, at);
  a.live = moment_live(trace, at);
  a.baseline = block_set_baseline(trace, &a.live);
  a.roles = roles_find(trace);
  a.role_sums = roles_sum(&a.roles, trace, &a.live);
  a.savings = savings_find(trace, &a.roles);
  a.holders = holders_by_frame(o, trace, &a.live);
  a.baseline_holders = holders_of_baseline(o, trace, &a.baseline);
  a.churn = holders_by_frame(o, trace, &churn);
  a.root = frame_names_root(trace, o);
  a.modules = sums_by_module(trace, &a.holders, a.root, depth);
  a.sizes = sums_by_size(trace, &a.live);
  a.tags = sums_by_tag(trace, &a.live);
  a.space = holes_find(trace, &a.live, at, stream_at(trace, at));
  look_into_ooms(&a);
  block_set_deinit(&churn);
  return a;
}

void why_cut(why_answer *a, size_t top) {
  holders_cut(&a->holders, top);
  holders_cut(&a->baseline_holders, top);
  holders_cut(&a->churn, top);
  named_sums_cut(&a->modules, top);
  named_sums_cut(&a->tags, top);
  for (size_t i = 0; i < a->oom_count; i++)
    holders_cut(&a->oom[i].holders, top);
  if (a->has_diff) why_diff_cut(&a->diff, top);
}

void why_deinit(why_answer *a) {
  for (size_t i = 0; i < a->oom_count; i++)
    holder_list_deinit(&a->oom[i].holders);
  free(a->oom);
  free(a->root);
  roles_deinit(&a->roles);
  block_set_deinit(&a->live);
  block_set_deinit(&a->baseline);
  holder_list_deinit(&a->holders);
  holder_list_deinit(&a->baseline_holders);
  holder_list_deinit(&a->churn);
  named_sums_deinit(&a->modules);
  named_sums_deinit(&a->sizes);
  named_sums_deinit(&a->tags);
  what_if_deinit(&a->strategies);
  why_diff_deinit(&a->diff);
  *a = (why_answer){0};
}
