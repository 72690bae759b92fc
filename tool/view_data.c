// The data of the view's scripts, as JSON. Heights are computed here, so that
// no address of 64 bits passes through a script's numbers.
#include "view_data.h"

#include <inttypes.h>
#include <stdlib.h>

#include "holes.h"
#include "kit/json.h"
#include "kit/text.h"
#include "kit/tool.h"
#include "layout.h"
#include "trace_data.h"
#include "view_holders.h"
#include "view_segments.h"

// ---------------------------------------------------------------------------
// Events
// ---------------------------------------------------------------------------

static void write_kinds(json *out, const tarn_trace *trace) {
  uint8_t *kinds = tool_array(trace->event_count, sizeof *kinds);
  for (size_t i = 0; i < trace->event_count; i++)
    kinds[i] = (uint8_t)trace->events[i].kind;
  json_key(out, "kind");
  json_base64(out, kinds, trace->event_count);
  free(kinds);
}

static uint32_t block_of(const void *context, size_t index) {
  const tarn_trace *trace = context;
  return trace->events[index].block;
}

static void write_peak(json *out, const tarn_trace *trace) {
  bool before = trace->live_peak_event == TARN_TRACE_BASELINE;
  json_key_uint(out, "peak_bytes", trace->live_peak_bytes);
  json_key_int(out, "peak_event",
               before ? -1 : (int64_t)trace->live_peak_event);
}

// ---------------------------------------------------------------------------
// Whose and what for
// ---------------------------------------------------------------------------

static uint32_t holder_of(const void *context, size_t index) {
  const view_holders *h = context;
  return h->of_block[index];
}

// The first holders have fixed names; of the others a frame, or -1 - the tag.
static void write_names(json *out, const view_holders *h) {
  json_key_array(out, "holders");
  for (size_t i = 0; i < h->count; i++)
    json_int(out, i < VIEW_HOLDERS ? -1 : h->names[i]);
  json_end_array(out);
}

static void write_refused_one(json *out, const tarn_trace *trace, size_t index,
                              uint32_t holder) {
  json_begin_array(out);
  json_uint(out, index);
  json_uint(out, trace->events[index].size);
  json_uint(out, trace->events[index].stack);
  json_uint(out, holder);
  json_end_array(out);
}

static void write_refused(json *out, const tarn_trace *trace,
                          const view_holders *h) {
  json_key_array(out, "refused");
  for (size_t i = 0; i < trace->event_count; i++) {
    if (trace->events[i].kind != TARN_TRACE_OOM) continue;
    write_refused_one(out, trace, i, h->of_event[i]);
  }
  json_end_array(out);
}

static void write_holders(json *out, const view_data *v) {
  const tarn_trace *trace = v->trace;
  view_holders h = view_holders_make(trace, v->libraries);
  trace_data_uints(out, "holder", trace->block_count, holder_of, &h);
  write_names(out, &h);
  write_refused(out, trace, &h);
  view_holders_deinit(&h);
}

static uint32_t tag_of(const void *context, size_t index) {
  const tarn_trace *trace = context;
  return trace->blocks[index].tag;
}

// The beginning of a long one is enough.
static void write_tag(json *out, const char *tag) {
  char text[256];
  snprintf(text, sizeof text, "%s", tag);
  text_neutralise(text, "");
  json_text(out, text);
}

static void write_tags(json *out, const tarn_trace *trace) {
  if (trace->tag_count > 1) {
    trace_data_uints(out, "tag", trace->block_count, tag_of, trace);
  } else {
    json_key_null(out, "tag");
  }
  json_key_array(out, "tags");
  for (size_t i = 0; i < trace->tag_count; i++)
    write_tag(out, trace->tags[i]);
  json_end_array(out);
}

// ---------------------------------------------------------------------------
// Roles and passes
// ---------------------------------------------------------------------------

static bool any_role(const view_data *v) {
  for (size_t i = 0; i < v->trace->block_count; i++) {
    if (roles_of(v->roles, (uint32_t)i) != ROLE_UNKNOWN) return true;
  }
  return false;
}

static void write_role_of(json *out, const view_data *v) {
  size_t count = v->trace->block_count;
  if (!any_role(v)) {
    json_key_null(out, "role");
    return;
  }
  uint8_t *of_block = tool_array(count, sizeof *of_block);
  for (size_t i = 0; i < count; i++)
    of_block[i] = (uint8_t)roles_of(v->roles, (uint32_t)i);
  json_key(out, "role");
  json_base64(out, of_block, count);
  free(of_block);
}

static void write_roles(json *out, const view_data *v) {
  write_role_of(out, v);
  json_key_array(out, "roles");
  for (int i = 0; i < ROLES; i++)
    json_text(out, role_plural((role)i));
  json_end_array(out);
}

static void write_phases(json *out, const phases *p) {
  json_key_array(out, "phases");
  for (size_t i = 0; i < p->run_count; i++) {
    const phase_run *run = &p->runs[i];
    if (run->what == PHASE_OTHER) continue;
    json_begin_array(out);
    json_text(out, phase_name(run->what));
    json_uint(out, run->first);
    json_uint(out, run->end);
    json_end_array(out);
  }
  json_end_array(out);
}

// ---------------------------------------------------------------------------
// Addresses
// ---------------------------------------------------------------------------

// Blocks and segments, packed together.
typedef struct placed {
  layout layout;
  const tarn_addr *addresses;  // of the blocks
  view_segments segments;
} placed;

static placed place_all(const view_data *v, const view_pool *pool) {
  placed p = {.addresses = pool->addresses};
  if (pool->name == NULL) p.segments = view_segments_make(v->trace);
  size_t count = p.segments.count;
  layout_range *ranges = tool_array(count, sizeof *ranges);
  for (size_t i = 0; i < count; i++) {
    ranges[i].address = p.segments.items[i].address;
    ranges[i].size = p.segments.items[i].size;
  }
  p.layout = layout_make(v->trace->blocks, pool->addresses,
                         v->trace->block_count, ranges, count);
  free(ranges);
  return p;
}

static double block_height(const void *context, size_t index) {
  const placed *p = context;
  tarn_addr address = p->addresses[index];
  return address == 0 ? -1 : (double)layout_height(&p->layout, address);
}

static double segment_height(const void *context, size_t index) {
  const placed *p = context;
  return (double)layout_height(&p->layout, p->segments.items[index].address);
}

static double segment_size(const void *context, size_t index) {
  const placed *p = context;
  return (double)p->segments.items[index].size;
}

static uint32_t segment_born(const void *context, size_t index) {
  const placed *p = context;
  return p->segments.items[index].born;
}

static uint32_t segment_died(const void *context, size_t index) {
  const placed *p = context;
  return p->segments.items[index].died;
}

static uint32_t segment_begins(const void *context, size_t index) {
  const placed *p = context;
  return p->segments.items[index].begins;
}

static void write_segments(json *out, const placed *p) {
  size_t count = p->segments.count;
  json_key(out, "segments");
  json_begin_object(out);
  trace_data_doubles(out, "at", count, segment_height, p);
  trace_data_doubles(out, "size", count, segment_size, p);
  trace_data_uints(out, "born", count, segment_born, p);
  trace_data_uints(out, "died", count, segment_died, p);
  trace_data_uints(out, "begins", count, segment_begins, p);
  json_end_object(out);
}

// Where the bytes held changed: |positions| of them, in reserved[].
typedef struct changes {
  const uint64_t *reserved;
  uint32_t *positions;
  size_t count;
} changes;

static changes find_changes(const uint64_t *reserved, size_t count) {
  changes c = {.reserved = reserved,
               .positions = tool_array(count, sizeof(uint32_t))};
  for (size_t i = 0; i < count; i++) {
    if (i == 0 || reserved[i] != reserved[i - 1]) {
      c.positions[c.count++] = (uint32_t)i;
    }
  }
  return c;
}

static uint32_t change_position(const void *context, size_t index) {
  const changes *c = context;
  return c->positions[index];
}

static double change_bytes(const void *context, size_t index) {
  const changes *c = context;
  return (double)c->reserved[c->positions[index]];
}

static void write_reserved(json *out, const uint64_t *reserved, size_t count) {
  changes c = find_changes(reserved, count);
  trace_data_uints(out, "reserved_event", c.count, change_position, &c);
  trace_data_doubles(out, "reserved_bytes", c.count, change_bytes, &c);
  free(c.positions);
}

static void write_pool(json *out, const view_data *v, const view_pool *pool) {
  placed p = place_all(v, pool);
  json_begin_object(out);
  json_key_text(out, "name", pool->name);
  trace_data_layout(out, &p.layout);
  trace_data_doubles(out, "at", v->trace->block_count, block_height, &p);
  write_segments(out, &p);
  if (pool->reserved != NULL) {
    write_reserved(out, pool->reserved, v->trace->event_count + 1);
  }
  json_end_object(out);
  layout_deinit(&p.layout);
  view_segments_deinit(&p.segments);
}

// ---------------------------------------------------------------------------
// All
// ---------------------------------------------------------------------------

void view_data_write(const view_data *v, FILE *out) {
  json writer = json_to(out);
  writer.for_html = true;
  json_begin_object(&writer);
  trace_data_write(&writer, v->trace);
  write_kinds(&writer, v->trace);
  trace_data_uints(&writer, "block", v->trace->event_count, block_of, v->trace);
  write_holders(&writer, v);
  write_tags(&writer, v->trace);
  write_peak(&writer, v->trace);
  json_key_uint(&writer, "unit", holes_unit(v->trace));
  json_key_uint(&writer, "first", v->first);
  json_key_uint(&writer, "whole", v->whole_events);
  write_roles(&writer, v);
  write_phases(&writer, &v->roles->phases);
  json_key_array(&writer, "pools");
  for (size_t i = 0; i < v->pool_count; i++)
    write_pool(&writer, v, &v->pools[i]);
  json_end_array(&writer);
  json_end_object(&writer);
}
