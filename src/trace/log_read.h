// log_read.h - the parts of the reader of Tarn's own format.
//
//   log_page.c     the records of a page
//   log_names.c    definitions, by number
//   log_read.c     all of it
#ifndef TARN_TRACE_LOG_READ_H_
#define TARN_TRACE_LOG_READ_H_

#include "trace/history.h"
#include "trace/log.h"
#include "trace/ranges.h"
#include "trace/readers.h"

// --- Pages and records ----------------------------------------------------

// A position in a page.
typedef struct tarn__trace_log_cursor {
  const unsigned char *at;   // the next record
  const unsigned char *end;  // of complete records
  uint64_t number;           // of the event before
  uint64_t time_us;
  uint64_t address;
  uint32_t thread;
} tarn__trace_log_cursor;

// A record. An event is all in |event|. A definition defines |number|, and its
// other bytes are from |body| to |end|.
typedef struct tarn__trace_log_record {
  const unsigned char *begin;
  const unsigned char *end;
  tarn__trace_log_event event;  // of a definition, only its kind
  uint32_t thread;
  tarn__trace_log_definition definition;
  uint64_t number;
  const unsigned char *body;
} tarn__trace_log_record;

// Reads numbers from bytes that end at |end|. After a failure all numbers are
// 0.
typedef struct tarn__trace_log_bytes {
  const unsigned char *at;
  const unsigned char *end;
  bool cut;     // the bytes ended within a number
  bool beyond;  // a number had more than 64 bits
} tarn__trace_log_bytes;

uint64_t tarn__log_take_slow(tarn__trace_log_bytes *bytes);

static inline uint64_t tarn__log_take(tarn__trace_log_bytes *bytes) {
  if (bytes->at < bytes->end && *bytes->at < 0x80) return *bytes->at++;
  return tarn__log_take_slow(bytes);
}

static inline uint64_t tarn__log_unzigzag(uint64_t coded) {
  return (coded >> 1) ^ (0 - (coded & 1));
}

// Fails with TARN_E_CORRUPT, naming the file and the byte |at|.
__attribute__((format(printf, 3, 4), cold)) tarn_status tarn__log_corrupt(
    const tarn__trace_input *input, const unsigned char *at, const char *format,
    ...);

// Sets |*out_cursor| to the first record of page |index|, which is in the file
// and not the header, page 0. A page that was never begun has no records.
// |*out_cut| is set if the file ends before the page's records do, and is not
// changed otherwise.
//
// TARN_E_CORRUPT  not a page, or more bytes used than a page has.
TARN_MUST_CHECK tarn_status
tarn__log_open_page(const tarn__trace_input *input, size_t index,
                    tarn__trace_log_cursor *out_cursor, bool *out_cut);

// Reads the record at |cursor|, which is not at its end, and moves behind it.
// If the page ends within the record, |*out_cut| is set, the cursor moves to
// its end, and there is no record.
//
// TARN_E_CORRUPT  an unknown kind or definition, a number beyond 64 bits or
//                 beyond its limit.
TARN_MUST_CHECK tarn_status tarn__log_next(const tarn__trace_input *input,
                                           tarn__trace_log_cursor *cursor,
                                           tarn__trace_log_record *out_record,
                                           bool *out_cut);

// --- Definitions ----------------------------------------------------------
// A definition may come after its first use. So the reader notes all
// definitions first, and then turns their numbers into the history's.

// A table for each kind of definition, without LOG_DEVICE and LOG_THREAD; that
// of stacks has raw ones too.
enum { TARN__LOG_TABLES = TARN__LOG_TAG + 1 };

typedef struct tarn__trace_log_names {
  const tarn__trace_input *input;
  tarn__trace_history *history;
  tarn__array tables[TARN__LOG_TABLES];  // see log_names.c
  size_t pending;                        // the first raw stack without a moment
  bool has_raw;                          // there are raw stacks
  tarn__trace_ranges now;   // modules at the present moment, by index
  tarn__trace_ranges ever;  // all modules
  size_t next;              // module that has not appeared yet
} tarn__trace_log_names;

void tarn__log_names_init(tarn__trace_log_names *names,
                          const tarn__trace_input *input,
                          tarn__trace_history *history);
void tarn__log_names_deinit(tarn__trace_log_names *names);

// Notes a definition of any kind.
//
// TARN_E_NOMEM  the budget or the host allocator refused.
TARN_MUST_CHECK tarn_status tarn__log_names_note(
    tarn__trace_log_names *names, const tarn__trace_log_record *record);

// Sets the moment of the raw stacks noted since the last such call to event
// |number|.
void tarn__log_names_moment(tarn__trace_log_names *names, uint64_t number);

// Adds all noted definitions to the history. Nothing is noted afterwards.
//
// TARN_E_NOMEM  the budget or the host allocator refused.
TARN_MUST_CHECK tarn_status
tarn__log_names_settle(tarn__trace_log_names *names);

// The history's number of a stack; TARN_TRACE_NO_STACK if undefined.
uint32_t tarn__log_names_stack(const tarn__trace_log_names *names,
                               uint64_t number);

// The history's number of a tag; TARN_TRACE_NO_TAG if undefined.
//
// TARN_E_NOMEM  the budget or the host allocator refused.
TARN_MUST_CHECK tarn_status tarn__log_names_tag(
    const tarn__trace_log_names *names, uint64_t number, uint32_t *out_tag);

#endif  // TARN_TRACE_LOG_READ_H_
