// A trace for the scripts of a page, as JSON.
#include "trace_data.h"

#include <endian.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kit/text.h"
#include "kit/tool.h"

enum { PATH_SHOWN = 250 };  // bytes of the path of a frame

// ---------------------------------------------------------------------------
// Arrays in base64
// ---------------------------------------------------------------------------

void trace_data_uints(json *out, const char *key, size_t count,
                      trace_data_uint *value_of, const void *context) {
  uint32_t *array = tool_array(count, sizeof *array);
  for (size_t i = 0; i < count; i++)
    array[i] = htole32(value_of(context, i));
  json_key(out, key);
  json_base64(out, array, count * sizeof *array);
  free(array);
}

void trace_data_doubles(json *out, const char *key, size_t count,
                        trace_data_double *value_of, const void *context) {
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
  trace_data_doubles(out, "time", count + 1, time_of, times);
  free(times);
}

static void write_clock(json *out, const tarn_trace *trace) {
  if (has_clock(trace)) {
    write_times(out, trace);
  } else {
    json_key_null(out, "time");
  }
}

static void write_blocks(json *out, const tarn_trace *trace) {
  size_t count = trace->block_count;
  trace_data_uints(out, "born", count, born_of, trace);
  trace_data_uints(out, "died", count, died_of, trace);
  trace_data_uints(out, "stack", count, stack_of, trace);
  trace_data_doubles(out, "size", count, size_of, trace);
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

// "function  file:7", without what is not known. Marks that turn the direction
// of text are taken out: they would turn the figures beside it as well.
static void write_frame(json *out, const tarn_trace_frame *frame) {
  char text[512], line[16] = "";
  bool cut = false;
  const char *file =
      strcmp(frame->file, "??") == 0 ? "" : end_of_path(frame->file, &cut);
  const char *gap = *frame->function && *file ? "  " : "";
  if (frame->line > 0) snprintf(line, sizeof line, ":%" PRIu32, frame->line);
  snprintf(text, sizeof text, "%.200s%s%s%.250s%s", frame->function, gap,
           cut ? "\xe2\x80\xa6" : "", file, line);
  text_neutralise(text, "");
  json_text(out, text);
}

static void write_frames(json *out, const tarn_trace *trace) {
  json_key_array(out, "frames");
  for (size_t i = 0; i < trace->frame_count; i++) {
    write_frame(out, &trace->frames[i]);
  }
  json_end_array(out);
}

static void write_stacks(json *out, const tarn_trace *trace) {
  json_key_array(out, "stacks");
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

void trace_data_write(json *out, const tarn_trace *trace) {
  json_key_uint(out, "events", trace->event_count);
  json_key_uint(out, "baseline", trace->baseline_count);
  write_blocks(out, trace);
  write_clock(out, trace);
  write_frames(out, trace);
  write_stacks(out, trace);
}

static void write_range(json *out, const layout_range *range) {
  char address[32];
  snprintf(address, sizeof address, "0x%" PRIx64, range->address);
  json_begin_array(out);
  json_text(out, address);
  json_uint(out, range->size);
  json_uint(out, range->height);
  json_end_array(out);
}

void trace_data_layout(json *out, const layout *l) {
  json_key_uint(out, "height", l->height);
  json_key_array(out, "ranges");
  for (size_t i = 0; i < l->range_count; i++)
    write_range(out, &l->ranges[i]);
  json_end_array(out);
}
