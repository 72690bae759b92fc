// What the script of the picture draws, as JSON.
#include "picture_data.h"

#include <stdlib.h>

#include "kit/json.h"
#include "kit/tool.h"
#include "layout.h"
#include "trace_data.h"

// ---------------------------------------------------------------------------
// A pool
// ---------------------------------------------------------------------------

typedef struct placed {
  const layout *layout;
  const tarn_addr *addresses;
} placed;

static double height_of(const void *context, size_t index) {
  const placed *p = context;
  if (p->addresses[index] == 0) return -1;
  return (double)layout_height(p->layout, p->addresses[index]);
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

static void write_pool(json *out, const tarn_trace *trace,
                       const replay_result *result) {
  const replay_history *history = &result->history;
  layout l = layout_make(trace->blocks, history->addresses, trace->block_count,
                         NULL, 0);
  placed p = {.layout = &l, .addresses = history->addresses};
  json_begin_object(out);
  json_key(out, "name");
  json_text(out, result->pool);
  trace_data_layout(out, &l);
  trace_data_doubles(out, "at", trace->block_count, height_of, &p);
  write_reserved(out, history->reserved, trace->event_count + 1);
  json_end_object(out);
  layout_deinit(&l);
}

// ---------------------------------------------------------------------------
// All
// ---------------------------------------------------------------------------

void picture_data_write(const report *r, FILE *out) {
  json writer = json_to(out);
  writer.for_html = true;
  json_begin_object(&writer);
  trace_data_write(&writer, r->trace);
  json_key(&writer, "pools");
  json_begin_array(&writer);
  for (size_t i = 0; i < r->result_count; i++) {
    write_pool(&writer, r->trace, &r->results[i]);
  }
  json_end_array(&writer);
  json_end_object(&writer);
}
