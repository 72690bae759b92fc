// log_page.h - the records of Tarn's own format, one after the other.
#ifndef TARN_TRACE_LOG_PAGE_H_
#define TARN_TRACE_LOG_PAGE_H_

#include "trace/log.h"
#include "trace/readers.h"

// Where a reader stands in a page.
typedef struct tarn__trace_log_cursor {
  const unsigned char *at;   // the next record
  const unsigned char *end;  // of those that are whole
  uint64_t number;           // of the event before
  uint64_t time_us;
  uint64_t address;
  uint32_t thread;
} tarn__trace_log_cursor;

// A record. Of events |event| holds all; of definitions |number| is what is
// defined and |body| what stands behind that number, up to |end|.
typedef struct tarn__trace_log_record {
  const unsigned char *begin;
  const unsigned char *end;
  tarn__trace_log_event event;  // of a definition, only its kind
  uint32_t thread;
  tarn__trace_log_definition definition;
  uint64_t number;
  const unsigned char *body;
} tarn__trace_log_record;

// Numbers out of bytes that end at |end|. A failure sticks, and what is taken
// then is 0.
typedef struct tarn__trace_log_bytes {
  const unsigned char *at;
  const unsigned char *end;
  bool cut;     // they ended within a number
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

// How many pages follow the header, the one that is cut short included.
size_t tarn__log_page_count(const tarn__trace_input *input);

// Sets |*out_cursor| to the first record of page |index|, from 0 on; to one
// without records where the page was never begun. |*out_cut| is set where the
// page says that it holds more than is there, and kept otherwise.
//
// TARN_E_CORRUPT  it is no page, or says to hold more than a page can.
TARN_MUST_CHECK tarn_status
tarn__log_open_page(const tarn__trace_input *input, size_t index,
                    tarn__trace_log_cursor *out_cursor, bool *out_cut);

// Reads the record at |cursor|, which is not at its end, and moves behind it.
// Where the page ends within the record, |*out_cut| is set and the cursor is at
// its end; the record is none then.
//
// TARN_E_CORRUPT  a kind or a definition that is none, a number beyond 64 bits
//                 or beyond what it may be.
TARN_MUST_CHECK tarn_status tarn__log_next(const tarn__trace_input *input,
                                           tarn__trace_log_cursor *cursor,
                                           tarn__trace_log_record *out_record,
                                           bool *out_cut);

// Whether a record of |kind| has its place in the order of the events.
static inline bool tarn__log_is_ordered(tarn__trace_log_kind kind) {
  return kind < TARN__LOG_OLD;
}

#endif  // TARN_TRACE_LOG_PAGE_H_
