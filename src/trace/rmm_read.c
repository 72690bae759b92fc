// The log of RMM's logging resource adaptor: a header, then a line for each
// request.
//
//   Thread,Time,Action,Pointer,Size,Stream
//   7318,14:02:11.180231,allocate,0x7f2c4a000000,1048576,0x0
//   7318,14:02:11.180502,free,0x7f2c4a000000,1048576,0x0
//   7318,14:02:11.190011,allocate failure,(nil),68719476736,0x0
//
// The log has no quotes. A line is written after its allocate and before its
// free, so that an address is always seen freed before another thread allocates
// it. RMM requires that a free has the size of its allocate, and the history
// checks it.
//
// The time is the time of day. It is read as microseconds since the first line.
// A day is added if it falls back by more than half a day. If it falls back by
// less, since threads overtook each other on their way to the file, it stands
// still.
//
// Invariant: |now| is the time of the line before, and no time is below it.
#include <string.h>

#include "base/lines.h"
#include "base/status.h"
#include "trace/history.h"
#include "trace/readers.h"

enum { THREAD, TIME, ACTION, POINTER, SIZE, STREAM, COLUMNS };
static const char *const columns[COLUMNS] = {"Thread",  "Time", "Action",
                                             "Pointer", "Size", "Stream"};

#define DAY_US UINT64_C(86400000000)
#define MINUTE_US UINT64_C(60000000)

typedef struct field {
  const char *text;
  size_t size;
} field;

typedef struct reader {
  tarn__lines lines;
  tarn__trace_history history;
  bool begun;
  uint64_t start_us;  // of the first line's day
  uint64_t days_us;   // days that have passed since
  uint64_t now;       // since the first line
} reader;

// The error of a wrong value in |column|.
static tarn_status wrong_field(const reader *r, int column, const field *found,
                               const char *what) {
  enum { SHOWN = 48 };
  int shown = found->size < SHOWN ? (int)found->size : SHOWN;
  return tarn__fail(TARN_E_CORRUPT, "%s: line %zu: column %s: '%.*s' is %s",
                    r->history.name, r->lines.number, columns[column], shown,
                    found->text, what);
}

// --- fields ----------------------------------------------------------------

static tarn_status split(const reader *r, const char *line, size_t size,
                         field fields[COLUMNS]) {
  const char *end = line + size;
  int count = 0;
  for (const char *at = line; at != NULL; count++) {
    const char *comma = memchr(at, ',', (size_t)(end - at));
    if (count < COLUMNS) {
      fields[count] = (field){
          .text = at, .size = (size_t)((comma == NULL ? end : comma) - at)};
    }
    at = comma == NULL ? NULL : comma + 1;
  }
  if (count == COLUMNS) return TARN_OK;
  return tarn__fail(TARN_E_CORRUPT, "%s: line %zu: %d columns, not 6",
                    r->history.name, r->lines.number, count);
}

static bool is_decimal(const field *from, uint64_t *out_number) {
  return tarn__text_decimal(from->text, from->size, out_number);
}

static bool is_address(const field *from, uint64_t *out_address) {
  return tarn__text_address(from->text, from->size, out_address);
}

static tarn_status read_header(reader *r) {
  const char *line = NULL;
  size_t size = 0;
  field fields[COLUMNS] = {{0}};
  if (!tarn__lines_next(&r->lines, &line, &size)) return TARN_OK;
  TARN__TRY(split(r, line, size, fields));
  for (int i = 0; i < COLUMNS; i++) {
    if (!tarn__text_is(fields[i].text, fields[i].size, columns[i])) {
      return wrong_field(r, i, &fields[i], "another column's name");
    }
  }
  return TARN_OK;
}

// --- times -----------------------------------------------------------------

// Two digits at |text| that are below |limit|.
static bool read_pair(const char *text, uint64_t limit, uint64_t *out_number) {
  return tarn__text_decimal(text, 2, out_number) && *out_number < limit;
}

// Digits behind the second, at most 9 of them, as microseconds.
static bool read_fraction(const char *text, size_t size, uint64_t *out_us) {
  uint64_t number = 0;
  if (size > 9 || !tarn__text_decimal(text, size, &number)) return false;
  for (; size < 6; size++)
    number *= 10;
  for (; size > 6; size--)
    number /= 10;
  *out_us = number;
  return true;
}

// HH:MM:SS, and a fraction behind a point or, as early versions wrote it, a
// colon.
static bool read_clock(const field *from, uint64_t *out_us) {
  const char *text = from->text;
  uint64_t hour = 0;
  uint64_t minute = 0;
  uint64_t second = 0;
  uint64_t fraction = 0;
  if (from->size < 8 || text[2] != ':' || text[5] != ':' ||
      !read_pair(text, 24, &hour) || !read_pair(text + 3, 60, &minute) ||
      !read_pair(text + 6, 61, &second)) {
    return false;
  }
  if (from->size > 8 && ((text[8] != '.' && text[8] != ':') ||
                         !read_fraction(text + 9, from->size - 9, &fraction))) {
    return false;
  }
  *out_us = ((hour * 60 + minute) * 60 + second) * 1000000 + fraction;
  return true;
}

// Sets |now| to the time of a line that was written at |clock| of its day.
static void pass_time(reader *r, uint64_t clock) {
  if (!r->begun) r->start_us = clock;
  r->begun = true;
  uint64_t then = r->start_us + r->now;
  uint64_t time = r->days_us + clock;
  if (time + DAY_US / 2 < then) {
    r->days_us += DAY_US;
    time += DAY_US;
  }
  // A line from before midnight, behind one from after it.
  if (time + MINUTE_US > then + DAY_US) return;
  if (time > then) r->now = time - r->start_us;
}

// --- lines -----------------------------------------------------------------

static tarn_status read_kind(const reader *r, const field *from,
                             tarn_trace_kind *out_kind) {
  static const struct action {
    const char *name;
    tarn_trace_kind kind;
  } actions[] = {{"allocate", TARN_TRACE_ALLOC},
                 {"free", TARN_TRACE_FREE},
                 {"allocate failure", TARN_TRACE_OOM}};
  for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
    if (tarn__text_is(from->text, from->size, actions[i].name)) {
      *out_kind = actions[i].kind;
      return TARN_OK;
    }
  }
  return wrong_field(r, ACTION, from, "no action");
}

static tarn_status read_event(reader *r, const field *fields,
                              tarn_trace_event *event) {
  uint64_t thread = 0;
  uint64_t clock = 0;
  if (!is_decimal(&fields[THREAD], &thread) || thread > UINT32_MAX) {
    return wrong_field(r, THREAD, &fields[THREAD], "no number of a thread");
  }
  if (!read_clock(&fields[TIME], &clock)) {
    return wrong_field(r, TIME, &fields[TIME], "no time");
  }
  TARN__TRY(read_kind(r, &fields[ACTION], &event->kind));
  if (!is_address(&fields[POINTER], &event->address)) {
    return wrong_field(r, POINTER, &fields[POINTER], "no address");
  }
  if (!is_decimal(&fields[SIZE], &event->size)) {
    return wrong_field(r, SIZE, &fields[SIZE], "no number of bytes");
  }
  // Early versions wrote a stream in decimal; a handle begins with 0x.
  if (!is_decimal(&fields[STREAM], &event->stream) &&
      !is_address(&fields[STREAM], &event->stream)) {
    return wrong_field(r, STREAM, &fields[STREAM], "no stream");
  }
  pass_time(r, clock);
  event->thread = (uint32_t)thread;
  event->time_us = r->now;
  return TARN_OK;
}

// Requests of 0 bytes, and the null pointer that RMM's resources return for
// them, hold no memory.
static bool holds_nothing(const tarn_trace_event *event) {
  return event->kind != TARN_TRACE_OOM &&
         (event->size == 0 || event->address == 0);
}

static tarn_status read_line(reader *r, const char *line, size_t size) {
  field fields[COLUMNS] = {{0}};
  tarn_trace_event event = {.stack = TARN_TRACE_NO_STACK};
  TARN__TRY(split(r, line, size, fields));
  TARN__TRY(read_event(r, fields, &event));
  if (holds_nothing(&event)) return TARN_OK;
  r->history.byte = r->lines.number;
  return tarn__history_event(&r->history, &event);
}

static tarn_status read_lines(reader *r) {
  const char *line = NULL;
  size_t size = 0;
  TARN__TRY(read_header(r));
  while (tarn__lines_next(&r->lines, &line, &size))
    TARN__TRY(read_line(r, line, size));
  return TARN_OK;
}

// --- the whole -------------------------------------------------------------

bool tarn__rmm_sniff(const tarn__trace_input *input) {
  static const char begin[] = "Thread,";
  tarn__lines lines;
  tarn__lines_init(&lines, input->bytes, input->size);
  return lines.size - lines.at >= sizeof begin - 1 &&
         memcmp(lines.bytes + lines.at, begin, sizeof begin - 1) == 0;
}

tarn_status tarn__rmm_read(const tarn__trace_input *input,
                           tarn_trace **out_trace) {
  const tarn__trace_tally only = {.events = 1};
  reader r = {0};
  tarn__lines_init(&r.lines, input->bytes, input->size);
  tarn__history_init(&r.history, input->budget, input->name);
  r.history.unit = "line";
  tarn_status status =
      tarn__trace_choose_device(input, &only, sizeof only, 1, &r.history.trace);
  if (status == TARN_OK) status = read_lines(&r);
  r.history.trace.unfinished = r.lines.unfinished;
  return tarn__history_finish(&r.history, status, "rmm-csv", out_trace);
}
