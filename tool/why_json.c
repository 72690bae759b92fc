// The answer for programs: one document in one line.
#include <math.h>
#include <stdlib.h>

#include "kit/json.h"
#include "kit/tool.h"
#include "why.h"

static void put_uint(json *out, const char *key, uint64_t value) {
  json_key(out, key);
  json_uint(out, value);
}

static void put_text(json *out, const char *key, const char *value) {
  json_key(out, key);
  json_text(out, value);
}

static void put_moment(json *out, const char *key, moment when) {
  json_key(out, key);
  if (when == TARN_TRACE_BASELINE) {
    json_double(out, NAN);  // null
  } else {
    json_uint(out, when);
  }
}

// 0 of what is not known is null.
static void put_known(json *out, const char *key, bool known, uint64_t value) {
  json_key(out, key);
  if (known) {
    json_uint(out, value);
  } else {
    json_double(out, NAN);
  }
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
  put_text(out, "frame", name);
  put_uint(out, "bytes", row->bytes);
  put_uint(out, "blocks", row->blocks);
  put_text(out, "kind", kinds[row->kind]);
  json_end_object(out);
  free(name);
}

static void put_holders(json *out, const char *key, const tarn_trace *trace,
                        const holder_list *list) {
  json_key(out, key);
  json_begin_array(out);
  for (size_t i = 0; i < list->count; i++)
    put_holder(out, trace, &list->items[i]);
  json_end_array(out);
}

static void put_sums(json *out, const char *key, const char *name_key,
                     const named_sums *sums) {
  json_key(out, key);
  json_begin_array(out);
  for (size_t i = 0; i < sums->count; i++) {
    const named_sum *row = &sums->items[i];
    json_begin_object(out);
    put_text(out, name_key, row->name);
    put_uint(out, "bytes", row->bytes);
    put_uint(out, "blocks", row->blocks);
    if (row->most > 0) put_uint(out, "least_bytes", row->least);
    if (row->most > 0) put_uint(out, "most_bytes", row->most);
    json_end_object(out);
  }
  json_end_array(out);
}

static void put_what_if(json *out, const what_if *w) {
  json_key(out, "what_if");
  json_begin_array(out);
  for (size_t i = 0; i < w->count; i++) {
    const what_if_row *row = &w->rows[i];
    json_begin_object(out);
    put_text(out, "strategy", row->strategy);
    put_uint(out, "reserved_bytes", row->reserved_bytes);
    json_key(out, "fits");
    if (row->fits == FITS_UNASKED) {
      json_double(out, NAN);
    } else {
      json_bool(out, row->fits == FITS);
    }
    json_end_object(out);
  }
  json_end_array(out);
}

// ---------------------------------------------------------------------------
// Moments
// ---------------------------------------------------------------------------

static void put_space(json *out, const holes *space) {
  put_known(out, "reserved_bytes", space->known, space->reserved_bytes);
  put_known(out, "free_bytes", space->known, space->free_bytes);
  put_known(out, "largest_hole_bytes", space->known, space->largest);
  put_known(out, "holes", space->known, space->count);
}

static void put_asker(json *out, const tarn_trace *trace, const why_oom *oom) {
  char *name = oom->asker == TARN_TRACE_NO_STACK
                   ? tool_text("(no stack)")
                   : frame_names_frame(&trace->frames[oom->asker]);
  put_text(out, "frame", name);
  put_text(out, "tag", trace->tags[trace->events[oom->event].tag]);
  free(name);
}

static void put_oom(json *out, const tarn_trace *trace, const why_oom *oom) {
  json_begin_object(out);
  put_uint(out, "event", oom->event);
  put_uint(out, "time_us", trace->events[oom->event].time_us);
  put_uint(out, "request_bytes", oom->size);
  put_asker(out, trace, oom);
  put_known(out, "device_free_bytes", oom->device_free > 0, oom->device_free);
  put_text(out, "reason", why_refused_word(oom->reason));
  put_uint(out, "live_bytes", oom->live_bytes);
  put_space(out, &oom->space);
  json_key(out, "fragmentation");
  json_double(out, oom->space.fragmentation);
  put_holders(out, "holders", trace, &oom->holders);
  json_end_object(out);
}

static void put_ooms(json *out, const why_answer *a) {
  put_uint(out, "oom_count", a->oom_total);
  json_key(out, "oom");
  json_begin_array(out);
  for (size_t i = 0; i < a->oom_count; i++)
    put_oom(out, a->trace, &a->oom[i]);
  json_end_array(out);
}

static void put_at(json *out, const why_answer *a) {
  json_key(out, "at");
  json_begin_object(out);
  put_moment(out, "event", a->at);
  put_uint(out, "live_bytes", a->live.bytes);
  put_uint(out, "live_blocks", a->live.count);
  json_end_object(out);
}

static void put_churn(json *out, const why_answer *a) {
  json_key(out, "churn");
  json_begin_object(out);
  put_uint(out, "bytes", a->churn.bytes);
  put_uint(out, "blocks", a->churn.blocks);
  put_holders(out, "holders", a->trace, &a->churn);
  json_end_object(out);
}

// ---------------------------------------------------------------------------
// The difference
// ---------------------------------------------------------------------------

static void put_change(json *out, const why_change *change) {
  json_begin_object(out);
  put_text(out, "frame", change->frame);
  put_uint(out, "bytes", change->bytes);
  put_uint(out, "blocks", change->blocks);
  put_uint(out, "other_bytes", change->other_bytes);
  put_uint(out, "other_blocks", change->other_blocks);
  json_end_object(out);
}

static void put_diff(json *out, const why_answer *a) {
  if (!a->has_diff) return;
  json_key(out, "diff");
  json_begin_object(out);
  put_text(out, "other", a->diff.other->name);
  put_uint(out, "other_peak_bytes", a->diff.other->live_peak_bytes);
  json_key(out, "frames");
  json_begin_array(out);
  for (size_t i = 0; i < a->diff.count; i++)
    put_change(out, &a->diff.items[i]);
  json_end_array(out);
  json_end_object(out);
}

void why_write_json(const why_answer *a) {
  json out = json_to(tool_out());
  json_begin_object(&out);
  put_text(&out, "trace", a->trace->name);
  put_uint(&out, "peak_bytes", a->trace->live_peak_bytes);
  put_moment(&out, "peak_event", a->trace->live_peak_event);
  put_holders(&out, "holders", a->trace, &a->holders);
  json_key(&out, "fragmentation");
  json_double(&out, a->space.fragmentation);
  put_what_if(&out, &a->strategies);
  put_uint(&out, "events", a->trace->event_count);
  put_at(&out, a);
  put_space(&out, &a->space);
  put_uint(&out, "baseline_bytes", a->trace->baseline_bytes);
  put_holders(&out, "baseline", a->trace, &a->baseline_holders);
  put_sums(&out, "modules", "module", &a->modules);
  put_sums(&out, "size_classes", "size", &a->sizes);
  put_sums(&out, "tags", "tag", &a->tags);
  put_churn(&out, a);
  put_ooms(&out, a);
  put_diff(&out, a);
  json_end_object(&out);
  json_finish(&out);
}
