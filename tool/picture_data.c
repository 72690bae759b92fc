// What the script of the picture draws, as JSON.
#include "picture_data.h"

#include <endian.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "layout.h"

enum { PATH_SHOWN = 250 };  // bytes of the path of a frame

// ---------------------------------------------------------------------------
// Arrays in base64
// ---------------------------------------------------------------------------

// One value of an array, of element |index|.
typedef uint32_t uint_of(const void *context, size_t index);
typedef double double_of(const void *context, size_t index);

static void write_uints(json *out, const char *key, size_t count,
                        uint_of *value_of, const void *context) {
  uint32_t *array = tool_array(count, sizeof *array);
  for (size_t i = 0; i < count; i++)
    array[i] = htole32(value_of(context, i));
  json_key(out, key);
  json_base64(out, array, count * sizeof *array);
  free(array);
}

static void write_doubles(json *out, const char *key, size_t count,
                          double_of *value_of, const void *context) {
  uint64_t *array = tool_array(count, sizeof *array);
  for (size_t i = 0; i < count; i++) {
    double value = value_of(context, i);
    memcpy(&array[i], &value, sizeof value);
    array[i] = htole64(array[i]);
  }
  json_key(out, key);
  json_base64(out, array, count * sizeof *array);
  free(array);
}

// ---------------------------------------------------------------------------
// The trace
// ---------------------------------------------------------------------------

static uint32_t born_of(const void *context, size_t index) {
  const tarn_trace *trace = context;
  uint32_t born = trace->blocks[index].born;
  return born == TARN_TRACE_BASELINE ? 0 : born;
}

static uint32_t died_of(const void *context, size_t index) {
  const tarn_trace *trace = context;
  uint32_t died = trace->blocks[index].died;
  return died == TARN_TRACE_NEVER ? (uint32_t)trace->event_count : died;
}

static uint32_t stack_of(const void *context, size_t index) {
  const tarn_trace *trace = context;
  return trace->blocks[index].stack;
}

static double size_of(const void *context, size_t index) {
  const tarn_trace *trace = context;
  return (double)trace->blocks[index].size;
}

// Since the first event; the end of the last is a little after it began. A
// clock that went back is held until it has caught up.
static double time_of(const void *context, size_t index) {
  const double *times = context;
  return times[index];
}

static bool has_clock(const tarn_trace *trace) {
  size_t count = trace->event_count;
  return count > 1 && trace->events[0].time_us > 0 &&
         trace->events[count - 1].time_us > trace->events[0].time_us;
}

static void write_times(json *out, const tarn_trace *trace) {
  size_t count = trace->event_count;
  double *times = tool_array(count + 1, sizeof *times);
  uint64_t latest = trace->events[0].time_us;
  for (size_t i = 0; i < count; i++) {
    uint64_t now = trace->events[i].time_us;
    if (now > latest) latest = now;
    times[i] = (double)(latest - trace->events[0].time_us);
  }
  times[count] = times[count - 1] * (1 + 1.0 / (double)count);
  write_doubles(out, "time", count + 1, time_of, times);
  free(times);
}

static void write_clock(json *out, const tarn_trace *trace) {
  if (has_clock(trace)) {
    write_times(out, trace);
  } else {
    json_key(out, "time");
    json_double(out, NAN);
  }
}

static void write_blocks(json *out, const tarn_trace *trace) {
  size_t count = trace->block_count;
  write_uints(out, "born", count, born_of, trace);
  write_uints(out, "died", count, died_of, trace);
  write_uints(out, "stack", count, stack_of, trace);
  write_doubles(out, "size", count, size_of, trace);
}

// The end of |file| that fits, which tells more than its beginning; |*out_cut|
// says that something is missing in front.
static const char *end_of_path(const char *file, bool *out_cut) {
  size_t length = strlen(file);
  const char *end = length > PATH_SHOWN ? file + length - PATH_SHOWN : file;
  *out_cut = end != file;
  while (*out_cut && ((unsigned char)*end & 0xc0) == 0x80)
    end++;  // not within a character
  return end;
}

// "function  file:7", without what is not known.
static void write_frame(json *out, const tarn_trace_frame *frame) {
  char text[512], line[16] = "";
  bool cut = false;
  const char *file =
      strcmp(frame->file, "??") == 0 ? "" : end_of_path(frame->file, &cut);
  const char *gap = *frame->function && *file ? "  " : "";
  if (frame->line > 0) snprintf(line, sizeof line, ":%" PRIu32, frame->line);
  snprintf(text, sizeof text, "%.200s%s%s%.250s%s", frame->function, gap,
           cut ? "\xe2\x80\xa6" : "", file, line);
  json_text(out, text);
}

static void write_frames(json *out, const tarn_trace *trace) {
  json_key(out, "frames");
  json_begin_array(out);
  for (size_t i = 0; i < trace->frame_count; i++) {
    write_frame(out, &trace->frames[i]);
  }
  json_end_array(out);
}

static void write_stacks(json *out, const tarn_trace *trace) {
  json_key(out, "stacks");
  json_begin_array(out);
  for (size_t i = 0; i < trace->stack_count; i++) {
    const tarn_trace_stack *stack = &trace->stacks[i];
    json_begin_array(out);
    for (uint32_t k = 0; k < stack->count; k++) {
      json_uint(out, trace->frame_indices[stack->first + k]);
    }
    json_end_array(out);
  }
  json_end_array(out);
}

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

static void write_ranges(json *out, const layout *l) {
  json_key(out, "ranges");
  json_begin_array(out);
  for (size_t i = 0; i < l->range_count; i++) {
    char address[32];
    snprintf(address, sizeof address, "0x%" PRIx64, l->ranges[i].address);
    json_begin_array(out);
    json_text(out, address);
    json_uint(out, l->ranges[i].size);
    json_uint(out, l->ranges[i].height);
    json_end_array(out);
  }
  json_end_array(out);
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
  write_uints(out, "reserved_event", c.count, change_position, &c);
  write_doubles(out, "reserved_bytes", c.count, change_bytes, &c);
  free(c.positions);
}

static void write_pool(json *out, const tarn_trace *trace,
                       const replay_result *result) {
  const replay_history *history = &result->history;
  layout l = layout_make(trace->blocks, history->addresses, trace->block_count);
  placed p = {.layout = &l, .addresses = history->addresses};
  json_begin_object(out);
  json_key(out, "name");
  json_text(out, result->pool);
  json_key(out, "height");
  json_uint(out, l.height);
  write_ranges(out, &l);
  write_doubles(out, "at", trace->block_count, height_of, &p);
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
  json_key(&writer, "events");
  json_uint(&writer, r->trace->event_count);
  json_key(&writer, "baseline");
  json_uint(&writer, r->trace->baseline_count);
  write_blocks(&writer, r->trace);
  write_clock(&writer, r->trace);
  write_frames(&writer, r->trace);
  write_stacks(&writer, r->trace);
  json_key(&writer, "pools");
  json_begin_array(&writer);
  for (size_t i = 0; i < r->result_count; i++) {
    write_pool(&writer, r->trace, &r->results[i]);
  }
  json_end_array(&writer);
  json_end_object(&writer);
}
