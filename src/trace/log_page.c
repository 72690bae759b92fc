// Reads records from pages.
//
// Each byte is bounds-checked, since a page may end anywhere. The reason of a
// failure is found at the end of its record.
#include "trace/log_read.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/status.h"

enum { PAGE_HEAD = offsetof(tarn__trace_log_page, records) };

tarn_status tarn__log_corrupt(const tarn__trace_input *input,
                              const unsigned char *at, const char *format,
                              ...) {
  char text[160];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return tarn__fail(TARN_E_CORRUPT, "%s: byte %zu: %s", input->name,
                    (size_t)(at - input->bytes), text);
}

// --- pages -----------------------------------------------------------------

tarn_status tarn__log_open_page(const tarn__trace_input *input, size_t index,
                                tarn__trace_log_cursor *out_cursor,
                                bool *out_cut) {
  tarn__trace_log_page page;  // only its head is copied
  size_t offset = index * TARN__LOG_PAGE;
  const unsigned char *begin = input->bytes + offset;
  *out_cursor = (tarn__trace_log_cursor){.at = begin, .end = begin};
  if (input->size - offset < PAGE_HEAD) {
    *out_cut = true;
    return TARN_OK;
  }
  memcpy(&page, begin, PAGE_HEAD);
  size_t there = input->size - offset - PAGE_HEAD;
  uint32_t magic = atomic_load_explicit(&page.magic, memory_order_relaxed);
  uint32_t used = atomic_load_explicit(&page.used, memory_order_relaxed);
  if (magic == 0) return TARN_OK;
  if (magic != TARN__LOG_PAGE_MAGIC) {
    return tarn__log_corrupt(input, begin, "0x%08x where a page begins", magic);
  }
  if (used > sizeof page.records) {
    return tarn__log_corrupt(input,
                             begin + offsetof(tarn__trace_log_page, used),
                             "a page with %u bytes of records", used);
  }
  if (used > there) *out_cut = true;
  *out_cursor = (tarn__trace_log_cursor){
      .at = begin + PAGE_HEAD,
      .end = begin + PAGE_HEAD + tarn__lesser(used, there),
      .number = page.number,
      .time_us = page.time_us,
      .address = page.address,
      .thread = page.thread};
  return TARN_OK;
}

// --- numbers ---------------------------------------------------------------

uint64_t tarn__log_take_slow(tarn__trace_log_bytes *bytes) {
  uint64_t number = 0;
  for (unsigned shift = 0; bytes->at < bytes->end; shift += 7) {
    unsigned char byte = *bytes->at++;
    if (shift == 63 && byte > 1) {
      bytes->beyond = true;
      bytes->at = bytes->end;
      return 0;
    }
    number |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return number;
  }
  if (!bytes->beyond) bytes->cut = true;
  return 0;
}

// --- records ---------------------------------------------------------------

// A record that is being read.
typedef struct taking {
  const tarn__trace_input *input;
  tarn__trace_log_record *record;
  tarn__trace_log_bytes bytes;
} taking;

static uint64_t take(taking *t) {
  return tarn__log_take(&t->bytes);
}

static tarn_status check_below(const taking *t, const char *what,
                               uint64_t number, uint64_t end) {
  if (number < end) return TARN_OK;
  return tarn__log_corrupt(t->input, t->record->begin, "%s %llu is beyond %llu",
                           what, (unsigned long long)number,
                           (unsigned long long)(end - 1));
}

static tarn_status take_event(taking *t, const tarn__trace_log_cursor *cursor,
                              unsigned flags) {
  tarn__trace_log_event *event = &t->record->event;
  uint64_t step = take(t);
  event->number = cursor->number + step;
  event->time_us = cursor->time_us;
  if ((flags & TARN__LOG_HAS_TIME) != 0) {
    event->time_us += tarn__log_unzigzag(take(t));
  }
  event->address = cursor->address + tarn__log_unzigzag(take(t));
  if (tarn__log_has_size(event->kind)) event->size = take(t);
  if ((flags & TARN__LOG_HAS_STACK) != 0) event->stack = take(t);
  if ((flags & TARN__LOG_HAS_TAG) != 0) event->tag = take(t);
  if ((flags & TARN__LOG_HAS_PLACE) != 0) {
    event->stream = take(t);
    event->device = take(t);
  }
  if (event->number < step) {
    return tarn__log_corrupt(t->input, t->record->begin,
                             "an event's number is beyond 64 bits");
  }
  return check_below(t, "device", event->device, TARN__LOG_MOST_DEVICES);
}

static tarn_status take_text(taking *t) {
  uint64_t size = take(t);
  if (size > TARN__LOG_MOST_TEXT) {
    return tarn__log_corrupt(t->input, t->record->begin, "a text of %llu bytes",
                             (unsigned long long)size);
  }
  if (size > (size_t)(t->bytes.end - t->bytes.at)) {
    t->bytes.cut = true;
    return TARN_OK;
  }
  if (memchr(t->bytes.at, '\0', size) != NULL) {
    return tarn__log_corrupt(t->input, t->record->begin,
                             "a text with a zero byte in it");
  }
  t->bytes.at += size;
  return TARN_OK;
}

static tarn_status take_stack(taking *t) {
  uint64_t count = take(t);
  if (count > TARN__LOG_MOST_FRAMES) {
    return tarn__log_corrupt(t->input, t->record->begin,
                             "a stack of %llu frames",
                             (unsigned long long)count);
  }
  for (uint64_t i = 0; i < count; i++)
    (void)take(t);
  return TARN_OK;
}

static tarn_status take_frame(taking *t) {
  (void)take(t);
  (void)take(t);
  uint64_t line = take(t);
  if (line <= UINT32_MAX) return TARN_OK;
  return tarn__log_corrupt(t->input, t->record->begin,
                           "line %llu is beyond 32 bits",
                           (unsigned long long)line);
}

static tarn_status take_module(taking *t) {
  size_t end = 0;
  (void)take(t);
  uint64_t first = take(t);
  uint64_t size = take(t);
  (void)take(t);
  (void)take(t);
  if (tarn_size_add(first, size, &end)) return TARN_OK;
  return tarn__log_corrupt(t->input, t->record->begin,
                           "a module of %llu bytes at address 0x%llx",
                           (unsigned long long)size, (unsigned long long)first);
}

static tarn_status take_definition(taking *t) {
  tarn__trace_log_record *record = t->record;
  tarn__trace_log_bytes *bytes = &t->bytes;
  if (bytes->at == bytes->end) {
    bytes->cut = true;
    return TARN_OK;
  }
  unsigned char which = *bytes->at++;
  record->definition = which;
  record->number = take(t);
  record->body = bytes->at;
  switch (which) {
    case TARN__LOG_TEXT:
      return take_text(t);
    case TARN__LOG_FRAME:
      return take_frame(t);
    case TARN__LOG_STACK:
    case TARN__LOG_RAW_STACK:
    case TARN__LOG_MIXED_STACK:
      return take_stack(t);
    case TARN__LOG_MODULE:
      return take_module(t);
    case TARN__LOG_DEVICE:
      (void)take(t);
      return check_below(t, "device", record->number, TARN__LOG_MOST_DEVICES);
    case TARN__LOG_TAG:
      return TARN_OK;
    case TARN__LOG_THREAD:
      return check_below(t, "thread", record->number, UINT64_C(1) << 32);
    default:
      return tarn__log_corrupt(t->input, record->begin,
                               "%u is not a kind of definition", which);
  }
}

static tarn_status take_record(taking *t,
                               const tarn__trace_log_cursor *cursor) {
  unsigned first = *t->bytes.at++;
  unsigned kind = first & TARN__LOG_KIND_MASK;
  t->record->event.kind = kind;
  if (kind == TARN__LOG_DEFINE && first == kind) {
    return take_definition(t);
  }
  if (kind >= TARN__LOG_ALLOC && kind < TARN__LOG_DEFINE) {
    return take_event(t, cursor, first);
  }
  return tarn__log_corrupt(t->input, t->record->begin,
                           "0x%02x where a record begins", first);
}

static void move(tarn__trace_log_cursor *cursor,
                 const tarn__trace_log_record *record) {
  cursor->at = record->end;
  if (record->event.kind != TARN__LOG_DEFINE) {
    cursor->number = record->event.number;
    cursor->time_us = record->event.time_us;
    cursor->address = record->event.address;
  } else if (record->definition == TARN__LOG_THREAD) {
    cursor->thread = (uint32_t)record->number;
  }
}

tarn_status tarn__log_next(const tarn__trace_input *input,
                           tarn__trace_log_cursor *cursor,
                           tarn__trace_log_record *out_record, bool *out_cut) {
  taking t = {.input = input,
              .record = out_record,
              .bytes = {.at = cursor->at, .end = cursor->end}};
  *out_record =
      (tarn__trace_log_record){.begin = cursor->at, .thread = cursor->thread};
  tarn_status status = take_record(&t, cursor);
  if (t.bytes.beyond) {
    return tarn__log_corrupt(input, out_record->begin,
                             "a record with a number beyond 64 bits");
  }
  if (t.bytes.cut) {
    *out_cut = true;
    cursor->at = cursor->end;
    return TARN_OK;
  }
  if (status != TARN_OK) return status;
  out_record->end = t.bytes.at;
  move(cursor, out_record);
  return TARN_OK;
}
