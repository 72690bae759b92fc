// The answer for programs: one document in one line.
#include <stdlib.h>

#include "kit/json.h"
#include "kit/tool.h"
#include "roles_json.h"
#include "why.h"

static void put_moment(json *out, const char *key, moment when) {
  json_key_uint_if(out, key, when != TARN_TRACE_BASELINE, when);
}

// ---------------------------------------------------------------------------
// Lists
// ---------------------------------------------------------------------------

static const char *const kinds[] = {
    [HOLDER_OWN] = "own",           [HOLDER_LIBRARY] = "library",
    [HOLDER_TAG] = "tag",           [HOLDER_BASELINE] = "baseline",
    [HOLDER_NO_STACK] = "no_stack", [HOLDER_KEPT] = "never_freed",
    [HOLDER_OTHERS] = "others",
};

static void put_holder(json *out, const tarn_trace *trace, const holder *row) {
  char *name = frame_names_holder(trace, row);
  json_begin_object(out);
  json_key_text(out, "frame", name);
  json_key_uint(out, "bytes", row->bytes);
  json_key_uint(out, "blocks", row->blocks);
  json_key_text(out, "kind", kinds[row->kind]);
  json_end_object(out);
  free(name);
}

static void put_holders(json *out, const char *key, const tarn_trace *trace,
                        const holder_list *list) {
  json_key_array(out, key);
  for (size_t i = 0; i < list->count; i++)
    put_holder(out, trace, &list->items[i]);
  json_end_array(out);
}

static void put_sums(json *out, const char *key, const char *name_key,
                     const named_sums *sums) {
  json_key_array(out, key);
  for (size_t i = 0; i < sums->count; i++) {
    const named_sum *row = &sums->items[i];
    json_begin_object(out);
    json_key_text(out, name_key, row->name);
    json_key_uint(out, "bytes", row->bytes);
    json_key_uint(out, "blocks", row->blocks);
    if (row->most > 0) json_key_uint(out, "least_bytes", row->least);
    if (row->most > 0) json_key_uint(out, "most_bytes", row->most);
    json_end_object(out);
  }
  json_end_array(out);
}

static void put_savings(json *out, const savings *found) {
  json_key_array(out, "would_help");
  for (size_t i = 0; i < found->count; i++) {
    const saving *s = &found->items[i];
    json_begin_object(out);
    json_key_text(out, "what", s->way);
    json_key_text(out, "of", s->why);
    json_key_uint(out, "held_bytes", s->held);
    json_key_uint(out, "saved_bytes", s->saved);
    json_end_object(out);
  }
  json_end_array(out);
}

static void put_what_if(json *out, const what_if *w) {
  json_key_array(out, "what_if");
  for (size_t i = 0; i < w->count; i++) {
    const what_if_row *row = &w->rows[i];
    json_begin_object(out);
    json_key_text(out, "strategy", row->strategy);
    json_key_uint(out, "reserved_bytes", row->reserved_bytes);
    json_key_bool_if(out, "fits", row->fits != FITS_UNASKED, row->fits == FITS);
    json_end_object(out);
  }
  json_end_array(out);
}

// ---------------------------------------------------------------------------
// Moments
// ---------------------------------------------------------------------------

static void put_space(json *out, const holes *space) {
  json_key_uint_if(out, "reserved_bytes", space->known, space->reserved_bytes);
  json_key_uint_if(out, "free_bytes", space->known, space->free_bytes);
  json_key_uint_if(out, "largest_hole_bytes", space->known, space->largest);
  json_key_uint_if(out, "holes", space->known, space->count);
}

static void put_asker(json *out, const tarn_trace *trace, const why_oom *oom) {
  char *name = oom->asker == TARN_TRACE_NO_STACK
                   ? tool_text("(no stack)")
                   : frame_names_frame(&trace->frames[oom->asker]);
  json_key_text(out, "frame", name);
  json_key_text(out, "tag", trace->tags[trace->events[oom->event].tag]);
  free(name);
}

static void put_oom(json *out, const why_answer *a, const why_oom *oom) {
  const tarn_trace *trace = a->trace;
  json_begin_object(out);
  json_key_uint(out, "event", oom->event);
  json_key_uint(out, "time_us", trace->events[oom->event].time_us);
  json_key_uint(out, "request_bytes", oom->size);
  put_asker(out, trace, oom);
  json_key_uint_if(out, "device_free_bytes", oom->device_free > 0,
                   oom->device_free);
  json_key_text(out, "reason", why_refused_word(oom->reason));
  json_key_uint(out, "live_bytes", oom->live_bytes);
  put_space(out, &oom->space);
  json_key_double(out, "fragmentation", oom->space.fragmentation);
  put_holders(out, "holders", trace, &oom->holders);
  roles_json_put(out, &a->roles, &oom->role_sums, oom->event);
  json_end_object(out);
}

static void put_ooms(json *out, const why_answer *a) {
  json_key_uint(out, "oom_count", a->oom_total);
  json_key_array(out, "oom");
  for (size_t i = 0; i < a->oom_count; i++)
    put_oom(out, a, &a->oom[i]);
  json_end_array(out);
}

static void put_at(json *out, const why_answer *a) {
  json_key(out, "at");
  json_begin_object(out);
  put_moment(out, "event", a->at);
  json_key_uint(out, "live_bytes", a->live.bytes);
  json_key_uint(out, "live_blocks", a->live.count);
  json_end_object(out);
}

static void put_churn(json *out, const why_answer *a) {
  json_key(out, "churn");
  json_begin_object(out);
  json_key_uint(out, "bytes", a->churn.bytes);
  json_key_uint(out, "blocks", a->churn.blocks);
  put_holders(out, "holders", a->trace, &a->churn);
  json_end_object(out);
}

// ---------------------------------------------------------------------------
// The difference
// ---------------------------------------------------------------------------

static void put_change(json *out, const why_change *change) {
  json_begin_object(out);
  json_key_text(out, "frame", change->frame);
  json_key_uint(out, "bytes", change->bytes);
  json_key_uint(out, "blocks", change->blocks);
  json_key_uint(out, "other_bytes", change->other_bytes);
  json_key_uint(out, "other_blocks", change->other_blocks);
  json_end_object(out);
}

static void put_diff(json *out, const why_answer *a) {
  if (!a->has_diff) return;
  json_key(out, "diff");
  json_begin_object(out);
  json_key_text(out, "other", a->diff.other->name);
  json_key_uint(out, "other_peak_bytes", a->diff.other->live_peak_bytes);
  json_key_array(out, "frames");
  for (size_t i = 0; i < a->diff.count; i++)
    put_change(out, &a->diff.items[i]);
  json_end_array(out);
  json_end_object(out);
}

void why_write_json(const why_answer *a) {
  json out = json_to(tool_out());
  json_begin_object(&out);
  json_key_text(&out, "trace", a->trace->name);
  json_key_uint(&out, "peak_bytes", a->trace->live_peak_bytes);
  put_moment(&out, "peak_event", a->trace->live_peak_event);
  put_holders(&out, "holders", a->trace, &a->holders);
  json_key_double(&out, "fragmentation", a->space.fragmentation);
  put_what_if(&out, &a->strategies);
  json_key_uint(&out, "events", a->trace->event_count);
  put_at(&out, a);
  put_space(&out, &a->space);
  json_key_uint(&out, "baseline_bytes", a->trace->baseline_bytes);
  put_holders(&out, "baseline", a->trace, &a->baseline_holders);
  put_sums(&out, "modules", "module", &a->modules);
  put_sums(&out, "size_classes", "size", &a->sizes);
  put_sums(&out, "tags", "tag", &a->tags);
  put_churn(&out, a);
  put_ooms(&out, a);
  put_diff(&out, a);
  roles_json_put(&out, &a->roles, &a->role_sums, a->at);
  put_savings(&out, &a->savings);
  json_end_object(&out);
  json_finish(&out);
}
