// Reads Tarn's own format: from pages to a history.
//
// Three passes over the pages, since definitions, and the device with most
// events, may be known only at the end:
//
//   survey  checks every record, notes definitions, counts events by device
//   old     the baseline and segments of the chosen device
//   events  of all pages, merged by number; those of the device are added
//
// A file may be cut anywhere, or grow during the read: each page tells how many
// of its bytes are complete, and only these are read.
#include <string.h>

#include "base/status.h"
#include "trace/log_read.h"
#include "trace/readers.h"

// What the events of a device come to.
typedef struct tally {
  size_t events;
  size_t blocks;
  size_t olds;
  size_t segments;
} tally;

typedef struct reader {
  const tarn__trace_input *input;
  tarn__trace_log_header header;
  tarn__trace_history history;
  tarn__trace_log_names names;
  tarn__trace_log_merge merge;
  tarn__trace_log_events events;
  tally tallies[TARN__LOG_MOST_DEVICES];
  uint32_t device;
  bool cut;
} reader;

bool tarn__log_sniff(const tarn__trace_input *input) {
  const size_t size = sizeof(((tarn__trace_log_header *)NULL)->magic);
  return input->size >= size &&
         memcmp(input->bytes, TARN__LOG_MAGIC, size) == 0;
}

// --- survey ----------------------------------------------------------------

static tarn_status read_header(reader *r) {
  const tarn__trace_input *input = r->input;
  if (input->size < sizeof r->header) {
    return tarn__log_corrupt(input, input->bytes + input->size,
                             "the file ends within its header");
  }
  memcpy(&r->header, input->bytes, sizeof r->header);
  if (r->header.version != TARN__LOG_VERSION) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "%s: byte %zu: version %u; this reads version %d",
                      input->name, offsetof(tarn__trace_log_header, version),
                      r->header.version, TARN__LOG_VERSION);
  }
  r->cut = input->size % TARN__LOG_PAGE != 0;
  if (r->header.page_bytes == TARN__LOG_PAGE) return TARN_OK;
  return tarn__log_corrupt(
      input, input->bytes + offsetof(tarn__trace_log_header, page_bytes),
      "pages of %u bytes", r->header.page_bytes);
}

static void count(reader *r, const tarn__trace_log_event *event) {
  tally *of = &r->tallies[event->device];
  tarn__trace_log_kind kind = event->kind;
  of->olds += kind == TARN__LOG_OLD;
  of->segments += kind == TARN__LOG_SEGMENT;
  of->events += tarn__log_is_ordered(kind);
  of->blocks +=
      kind == TARN__LOG_ALLOC || kind == TARN__LOG_MAP || kind == TARN__LOG_OLD;
}

static tarn_status survey_page(reader *r, tarn__trace_log_cursor cursor) {
  tarn__trace_log_record record;
  bool cut = false;
  tarn_status status = TARN_OK;
  while (status == TARN_OK && cursor.at != cursor.end) {
    status = tarn__log_next(r->input, &cursor, &record, &cut);
    if (status != TARN_OK || cut) break;
    if (record.event.kind == TARN__LOG_DEFINE) {
      status = tarn__log_names_note(&r->names, &record);
      continue;
    }
    count(r, &record.event);
    tarn__log_names_moment(&r->names, cursor.number);
  }
  tarn__log_names_moment(&r->names, cursor.number);
  r->cut |= cut;
  return status;
}

static tarn_status survey(reader *r) {
  tarn__trace_log_cursor cursor;
  tarn_status status = read_header(r);
  size_t pages = tarn__log_page_count(r->input);
  for (size_t i = 0; status == TARN_OK && i < pages; i++) {
    status = tarn__log_open_page(r->input, i, &cursor, &r->cut);
    if (status == TARN_OK) status = survey_page(r, cursor);
    if (status == TARN_OK) status = tarn__log_merge_add(&r->merge, cursor);
  }
  return status;
}

// --- the device ------------------------------------------------------------

static bool has_history(const reader *r, uint32_t device) {
  const tally *of = &r->tallies[device];
  return (of->events | of->olds | of->segments) != 0;
}

static uint32_t count_devices(const reader *r) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < TARN__LOG_MOST_DEVICES; i++)
    found += has_history(r, i);
  return found == 0 ? 1 : found;
}

static bool is_busier(const tally *one, const tally *other) {
  if (one->events != other->events) return one->events > other->events;
  if (one->segments != other->segments) return one->segments > other->segments;
  return one->olds > other->olds && other->olds == 0;
}

static tarn_status choose_device(reader *r) {
  const tarn_trace_options *options = r->input->options;
  r->device = options->device;
  if (!options->choose_device) {
    r->device = 0;
    for (uint32_t i = 1; i < TARN__LOG_MOST_DEVICES; i++) {
      if (is_busier(&r->tallies[i], &r->tallies[r->device])) r->device = i;
    }
    return TARN_OK;
  }
  if (r->device < TARN__LOG_MOST_DEVICES && has_history(r, r->device)) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID, "%s: device %u has no history",
                    r->input->name, r->device);
}

// Reserves the known minimum, so that arrays need not grow.
static tarn_status reserve(reader *r) {
  const tally *of = &r->tallies[r->device];
  tarn__budget *budget = r->input->budget;
  tarn_status status =
      tarn__array_reserve(budget, &r->history.events, of->events);
  if (status != TARN_OK) return status;
  return tarn__array_reserve(budget, &r->history.blocks, of->blocks);
}

// --- the baseline and segments ---------------------------------------------

static tarn_status read_old_page(reader *r, tarn__trace_log_cursor cursor) {
  tarn__trace_log_record record;
  bool cut = false;
  tarn_status status = TARN_OK;
  while (status == TARN_OK && cursor.at != cursor.end) {
    status = tarn__log_next(r->input, &cursor, &record, &cut);
    if (status != TARN_OK || cut) break;
    if (record.event.device != r->device) continue;
    if (record.event.kind == TARN__LOG_OLD ||
        record.event.kind == TARN__LOG_SEGMENT) {
      status = tarn__log_events_add(&r->events, &record);
    }
  }
  return status;
}

static tarn_status read_old(reader *r) {
  tarn__trace_log_cursor cursor;
  const tally *of = &r->tallies[r->device];
  tarn_status status = TARN_OK;
  if ((of->olds | of->segments) == 0) return TARN_OK;
  size_t pages = tarn__log_page_count(r->input);
  for (size_t i = 0; status == TARN_OK && i < pages; i++) {
    status = tarn__log_open_page(r->input, i, &cursor, &r->cut);
    if (status == TARN_OK) status = read_old_page(r, cursor);
  }
  return status;
}

// --- events ----------------------------------------------------------------

static tarn_status read_events(reader *r) {
  tarn__trace_log_record record;
  tarn_status status = TARN_OK;
  tarn__log_merge_begin(&r->merge);
  while (status == TARN_OK && !tarn__log_merge_is_empty(&r->merge)) {
    status = tarn__log_merge_next(&r->merge, &record);
    if (status != TARN_OK || record.event.device != r->device) continue;
    tarn__history_expect(&r->history, r->merge.soon);
    r->events.lenient = r->merge.gap || r->header.lost != 0;
    status = tarn__log_events_add(&r->events, &record);
  }
  return status;
}

static void forget_addresses(tarn__trace_history *history) {
  tarn_trace_event *events = history->events.items;
  tarn_trace_block *blocks = history->blocks.items;
  for (size_t i = 0; i < history->events.count; i++) {
    if (events[i].block != TARN_TRACE_NO_BLOCK) events[i].address = 0;
  }
  for (size_t i = 0; i < history->blocks.count; i++)
    blocks[i].address = 0;
}

// --- the whole -------------------------------------------------------------

static tarn_status read_all(reader *r) {
  tarn_status status = survey(r);
  if (status == TARN_OK) status = choose_device(r);
  if (status == TARN_OK) status = tarn__log_names_settle(&r->names);
  if (status == TARN_OK) status = reserve(r);
  if (status == TARN_OK) status = read_old(r);
  if (status == TARN_OK) status = read_events(r);
  if (status == TARN_OK && (r->header.flags & TARN__LOG_ANONYMOUS) != 0) {
    forget_addresses(&r->history);
  }
  return status;
}

static void copy_header(const reader *r, tarn_trace *trace) {
  const tarn__trace_log_header *header = &r->header;
  trace->device = r->device;
  trace->device_count = count_devices(r);
  trace->lost_count = header->lost;
  trace->unknown_count += header->unknown_count;
  trace->ignored_count = header->ignored_count;
  trace->ignored_bytes = header->ignored_bytes;
  trace->unfinished = r->cut || (header->flags & TARN__LOG_CUT) != 0;
}

static void init(reader *r, const tarn__trace_input *input) {
  *r = (reader){.input = input};
  tarn__history_init(&r->history, input->budget, input->name);
  r->history.frees_without_size = true;
  tarn__log_names_init(&r->names, input, &r->history);
  tarn__log_merge_init(&r->merge, input);
  tarn__log_events_init(&r->events, &r->names);
}

static void drop_tables(reader *r) {
  tarn__log_events_deinit(&r->events);
  tarn__log_merge_deinit(&r->merge);
  tarn__log_names_deinit(&r->names);
}

tarn_status tarn__log_read(const tarn__trace_input *input,
                           tarn_trace **out_trace) {
  reader r;
  *out_trace = NULL;
  init(&r, input);
  tarn_status status = read_all(&r);
  drop_tables(&r);
  if (status == TARN_OK) {
    status = tarn__history_finish(&r.history, "tarn", out_trace);
  }
  if (status == TARN_OK) copy_header(&r, *out_trace);
  tarn__history_deinit(&r.history);
  return status;
}
