// log_read.h - the parts of the reader of Tarn's own format.
//
//   log_page.c     the records of a page
//   log_define.c   definitions, by number; log_resolve.c: raw stacks
//   log_merge.c    the events of all pages in order
//   log_events.c   events to a history
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

// The number of pages behind the header, including a cut one.
size_t tarn__log_page_count(const tarn__trace_input *input);

// Sets |*out_cursor| to the first record of page |index|, counted from 0. A
// page that was never begun has no records. |*out_cut| is set if the file ends
// before the page's records do, and is not changed otherwise.
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

// Whether records of |kind| are in the order of events.
static inline bool tarn__log_is_ordered(tarn__trace_log_kind kind) {
  return kind < TARN__LOG_OLD;
}

// --- Definitions ----------------------------------------------------------
// A definition may come after its first use. So the reader notes all
// definitions first, and then turns their numbers into the history's.

enum {
  TARN__LOG_TEXTS,
  TARN__LOG_TAGS,
  TARN__LOG_FRAMES,
  TARN__LOG_STACKS,
  TARN__LOG_MODULES,
  TARN__LOG_TABLES,
};

typedef struct tarn__trace_log_names {
  const tarn__trace_input *input;
  tarn__trace_history *history;
  tarn__array tables[TARN__LOG_TABLES];  // see log_define.c
  size_t pending;                        // the first raw stack without a moment
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
TARN_MUST_CHECK tarn_status tarn__log_names_tag(tarn__trace_log_names *names,
                                                uint64_t number,
                                                uint32_t *out_tag);

// --- Tables of definitions by number --------------------------------------

// A definition. |value| and |extra| depend on the table:
//   texts    the history's tag, or 0; the size of the bytes at |at|. |moment|
//   is
//            the history's text + 1, or 0: a long text is read once for all the
//            frames that name it
//   frames   the history's frame
//   stacks   the history's stack; whether it is raw
//   modules  the history's text of the path
typedef struct tarn__trace_log_entry {
  uint64_t number;
  const unsigned char *at;  // behind the number; a text's bytes
  uint64_t moment;          // of a stack; of a text, see above
  uint32_t value;
  uint32_t extra;
} tarn__trace_log_entry;

// Sorts by number, then by position in the file. O(n log n), in place.
void tarn__log_entries_sort(tarn__trace_log_entry *entries, size_t count);

// The entry of |number| in a sorted table; NULL if there is none.
tarn__trace_log_entry *tarn__log_entry_find(const tarn__array *table,
                                            uint64_t number);

// Reads numbers from |entry|. The first pass has checked them.
static inline tarn__trace_log_bytes tarn__log_entry_bytes(
    const tarn__trace_log_names *names, const tarn__trace_log_entry *entry) {
  return (tarn__trace_log_bytes){
      .at = entry->at, .end = names->input->bytes + names->input->size};
}

// The history's number of TEXT |number|; if undefined, that of "".
TARN_MUST_CHECK tarn_status tarn__log_names_text(tarn__trace_log_names *names,
                                                 uint64_t number,
                                                 uint32_t *out_text);

// Adds all raw stacks to the history. Texts are settled; modules are sorted by
// number, and each number occurs once.
//
// TARN_E_NOMEM  the budget or the host allocator refused.
TARN_MUST_CHECK tarn_status tarn__log_resolve_raw(tarn__trace_log_names *names);

// --- Events ---------------------------------------------------------------

typedef struct tarn__trace_log_events {
  const tarn__trace_input *input;
  tarn__trace_log_names *names;
  tarn__trace_history *history;
  tarn__trace_ranges mapped;  // ranges from MAP; the value is the block
  // Events are missing: a birth where a block lives implies its death.
  bool lenient;
} tarn__trace_log_events;

void tarn__log_events_init(tarn__trace_log_events *events,
                           tarn__trace_log_names *names);
void tarn__log_events_deinit(tarn__trace_log_events *events);

// Adds the event, old block or segment of |record|.
//
// TARN_E_CORRUPT  as tarn__history_event; an unmapping of 0 bytes or beyond the
//                 address space.
// TARN_E_NOMEM    the budget or the host allocator refused.
TARN_MUST_CHECK tarn_status tarn__log_events_add(
    tarn__trace_log_events *events, const tarn__trace_log_record *record);

// --- Merging pages --------------------------------------------------------

typedef struct tarn__trace_log_merge {
  const tarn__trace_input *input;
  tarn__array pages;  // see log_merge.c
  tarn__array heap;
  bool gap;         // a number is missing before the last event
  bool any;         // there was a last event
  uint64_t number;  // of the last event
  uint64_t soon;    // the address of a coming event, for prefetching
} tarn__trace_log_merge;

void tarn__log_merge_init(tarn__trace_log_merge *merge,
                          const tarn__trace_input *input);
void tarn__log_merge_deinit(tarn__trace_log_merge *merge);

// Adds a page by a cursor to its first record, unless the page has no events.
// All its records have been checked before.
//
// TARN_E_NOMEM  the budget or the host allocator refused.
TARN_MUST_CHECK tarn_status tarn__log_merge_add(tarn__trace_log_merge *merge,
                                                tarn__trace_log_cursor cursor);

// Call it once, between the last page and the first event.
void tarn__log_merge_begin(tarn__trace_log_merge *merge);

static inline bool tarn__log_merge_is_empty(
    const tarn__trace_log_merge *merge) {
  return merge->heap.count == 0;
}

// The next event. The merge is not empty.
//
// Cost: O(log of the pages); less where few pages are open at a time.
// TARN_E_CORRUPT  the event before has the same number.
TARN_MUST_CHECK tarn_status tarn__log_merge_next(
    tarn__trace_log_merge *merge, tarn__trace_log_record *out_record);

#endif  // TARN_TRACE_LOG_READ_H_
