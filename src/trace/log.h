// log.h - Tarn's own format of traces, and how a record is written in it.
//
// Two writers use it: the recorder, from many threads, into a mapped file,
// while the program runs and may be killed; and tarn_trace_write, all at once.
// So a file is complete at every moment, and only the ends of pages change.
// docs/trace-format.md describes it for authors of other readers.
//
//   page 0    header
//   page 1    | magic thread used | bases | record record record ... |
//   page 2    ...                         (of another thread, say)
//
// Pages have 4096 bytes; their numbers, and the header's, are little-endian.
// Each page but the first belongs to one writer from when it is handed out, and
// is filled from front to back; |used| is stored after the bytes that it
// counts, so that what a page says it holds is whole. A page without the magic
// was handed out and never begun.
//
// Records do not cross pages. A record is a byte, and then numbers in LEB128 (7
// bits a byte, the lowest first, at most 10 bytes); differences are zigzag (0,
// -1, 1, -2 ...) but that of the number.
//
//   byte        kind in the low 4 bits, the LOG_HAS_ bits above them
//   events      number   what to add to that of the page's event before
//               time     LOG_HAS_TIME: microseconds, difference to that event's
//               address  difference to that event's
//               size     bytes; not of FREE and FREE_REQUESTED
//               stack    LOG_HAS_STACK: number of a STACK, RAW_STACK or
//               MIXED_STACK tag      LOG_HAS_TAG: number of a TEXT stream,
//               device   LOG_HAS_PLACE: both, else both are 0
//   definitions a byte that says which, and what stands there; see below
//
// For a page's first event "before" are the page's bases. Events of all pages
// in the order of their numbers are the trace; no two have the same. Numbers
// may be missing, where a writer was killed between taking one and writing. OLD
// and SEGMENT have the fields of events, but their numbers mean nothing, beyond
// being what the next event's is added to. Definitions hold for the whole file,
// wherever they stand. A number that nothing defines is no stack, no tag, an
// empty text: its definition was lost with its writer. So is 0.
#ifndef TARN_TRACE_LOG_H_
#define TARN_TRACE_LOG_H_

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "as it is written");

enum { TARN__LOG_VERSION = 1, TARN__LOG_PAGE = 4096 };

#define TARN__LOG_MAGIC "\211TARN\r\n\032"         // 8 bytes
#define TARN__LOG_PAGE_MAGIC UINT32_C(0x31475054)  // "TPG1"

typedef struct tarn__trace_log_header {
  char magic[8];
  uint32_t version;
  uint32_t page_bytes;
  uint64_t start_us;      // since 1970, when time 0 of the events was
  uint64_t process;       // its id
  _Atomic uint64_t lost;  // events that could not be written
  char program[256];      // its path, ended by a zero byte

  // The rest only tarn_trace_write sets; a recorder leaves it 0.
  uint64_t flags;  // LOG_ANONYMOUS, LOG_CUT
  uint64_t unknown_count;
  uint64_t ignored_count;
  uint64_t ignored_bytes;
} tarn__trace_log_header;

enum {
  // Addresses of blocks are only numbers that tell blocks apart, since the true
  // ones are not known: a reader gives each block the address 0.
  TARN__LOG_ANONYMOUS = 1,
  TARN__LOG_CUT = 2,  // the trace is a copy of one that was unfinished
};

typedef struct tarn__trace_log_page {
  _Atomic uint32_t magic;
  uint32_t thread;        // of the events in it, up to a LOG_THREAD
  _Atomic uint32_t used;  // bytes of |records| that are whole
  uint32_t reserved;
  uint64_t number;  // bases: of what the first event differs from
  uint64_t time_us;
  uint64_t address;
  unsigned char records[TARN__LOG_PAGE - 40];
} tarn__trace_log_page;

_Static_assert(sizeof(tarn__trace_log_page) == TARN__LOG_PAGE, "a page");
_Static_assert(sizeof(tarn__trace_log_header) <= TARN__LOG_PAGE, "within one");

typedef enum tarn__trace_log_kind {
  // 1 to 9: events, as in tarn_trace_kind.
  TARN__LOG_ALLOC = 1,
  TARN__LOG_FREE = 2,
  TARN__LOG_OOM = 8,
  // A range that the program mapped: a birth as ALLOC is, but UNMAP may end any
  // part of it, or parts of several; the remaining parts are blocks of their
  // own.
  TARN__LOG_MAP = 10,
  TARN__LOG_UNMAP = 11,
  // From here on without an order.
  TARN__LOG_OLD = 12,      // a block that lived before the first event
  TARN__LOG_SEGMENT = 13,  // device memory that the allocator held at the end
  TARN__LOG_DEFINE = 14,   // a definition
} tarn__trace_log_kind;

enum {
  TARN__LOG_KIND_MASK = 0x0f,
  TARN__LOG_HAS_TIME = 0x10,
  TARN__LOG_HAS_STACK = 0x20,
  TARN__LOG_HAS_TAG = 0x40,
  TARN__LOG_HAS_PLACE = 0x80,
};

// The second byte of a definition, and the numbers behind it. Each begins with
// the number that it defines, of a sequence of its own per kind (stacks: one
// for all); the first of several definitions of a number holds.
typedef enum tarn__trace_log_definition {
  TARN__LOG_TEXT = 1,       // number, length, bytes (none of them zero)
  TARN__LOG_FRAME = 2,      // number, file TEXT, function TEXT, line
  TARN__LOG_STACK = 3,      // number, count, FRAMEs, innermost first
  TARN__LOG_RAW_STACK = 4,  // number, count, return addresses, innermost first,
                            // each a zigzag difference to the one before (0)
  // A file that was mapped to run: number, path TEXT, first address, bytes,
  // what to take off an address in it to get one of the file, as its own
  // symbols have it (modulo 2^64), and the number of the event at which it
  // appeared. A raw stack is of the moment of the event that follows it in its
  // page, else of the page's last. Of modules that hold an address, the one
  // that appeared last up to that moment counts, else that which did first.
  TARN__LOG_MODULE = 5,
  TARN__LOG_DEVICE = 6,  // number, name TEXT; 0 is the host unless defined

  // A TEXT that is a tag. Not needed for one: readers count tags in the order
  // of these, and then in that in which events first name them.
  TARN__LOG_TAG = 7,
  // The number of the thread of all events behind it in the page. For writers
  // that have one page for all threads.
  TARN__LOG_THREAD = 8,
  // A raw stack with FRAMEs in it (number: one sequence for all stacks): count,
  // and for each a number, innermost first: 2 x the zigzag difference to the
  // address before (0), or 1 + 2 x the number of a FRAME. Addresses are below
  // 2^61.
  TARN__LOG_MIXED_STACK = 9,
} tarn__trace_log_definition;

enum {
  TARN__LOG_MOST_TEXT = 2048,  // bytes; writers cut what is longer
  TARN__LOG_MOST_FRAMES = 256,
  TARN__LOG_MOST_NUMBER = 10,    // bytes of a number
  TARN__LOG_MOST_EVENT = 96,     // bytes that each event fits in
  TARN__LOG_MOST_DEVICES = 256,  // their numbers are below
};

// --- writing --------------------------------------------------------------

static inline unsigned char *tarn__log_put_number(unsigned char *at,
                                                  uint64_t number) {
  for (; number >= 0x80; number >>= 7)
    *at++ = (unsigned char)(number | 0x80);
  *at++ = (unsigned char)number;
  return at;
}

static inline uint64_t tarn__log_zigzag(uint64_t now, uint64_t before) {
  uint64_t difference = now - before;
  return (difference << 1) ^ (0 - (difference >> 63));
}

// What a mixed stack has of a return address, and of a FRAME.

static inline uint64_t tarn__log_mixed_address(uint64_t now, uint64_t before) {
  return tarn__log_zigzag(now, before) << 1;
}

static inline uint64_t tarn__log_mixed_frame(uint64_t frame) {
  return frame << 1 | 1;
}

// An event as it is written; 0 in |stack| means none, so that numbers of stacks
// and tags begin at 1 here.
typedef struct tarn__trace_log_event {
  tarn__trace_log_kind kind;
  uint64_t number;
  uint64_t time_us;
  uint64_t address;
  uint64_t size;
  uint64_t stack;
  uint64_t tag;
  uint64_t stream;
  uint64_t device;
} tarn__trace_log_event;

// The position of a writer in its page: the values from which the next event is
// a difference.
typedef struct tarn__trace_log_writer {
  tarn__trace_log_page *page;
  uint32_t used;
  uint64_t number;
  uint64_t time_us;
  uint64_t address;
} tarn__trace_log_writer;

// Begins |page|, of zero bytes, at the event that will be written first.
static inline void tarn__log_begin(tarn__trace_log_writer *writer,
                                   tarn__trace_log_page *page, uint32_t thread,
                                   const tarn__trace_log_event *first) {
  *writer = (tarn__trace_log_writer){.page = page,
                                     .number = first->number,
                                     .time_us = first->time_us,
                                     .address = first->address};
  page->thread = thread;
  page->number = first->number;
  page->time_us = first->time_us;
  page->address = first->address;
  atomic_store_explicit(&page->magic, TARN__LOG_PAGE_MAGIC,
                        memory_order_release);
}

static inline size_t tarn__log_room(const tarn__trace_log_writer *writer) {
  return sizeof writer->page->records - writer->used;
}

// Publishes what was written up to |end| behind the records that are whole.
static inline void tarn__log_publish(tarn__trace_log_writer *writer,
                                     const unsigned char *end) {
  writer->used = (uint32_t)(end - writer->page->records);
  atomic_store_explicit(&writer->page->used, writer->used,
                        memory_order_release);
}

// Begins a definition of |number| and returns where the rest of it goes. The
// page has room for two bytes, the number and the rest.
static inline unsigned char *tarn__log_put_definition(
    tarn__trace_log_writer *writer, tarn__trace_log_definition which,
    uint64_t number) {
  unsigned char *at = writer->page->records + writer->used;
  *at++ = TARN__LOG_DEFINE;
  *at++ = (unsigned char)which;
  return tarn__log_put_number(at, number);
}

static inline int tarn__log_has_size(tarn__trace_log_kind kind) {
  return kind != TARN__LOG_FREE && kind != 3;  // nor FREE_REQUESTED
}

// Writes |event|; there is room for TARN__LOG_MOST_EVENT bytes. Its number is
// not below that of the page's event before.
static inline void tarn__log_put_event(tarn__trace_log_writer *writer,
                                       const tarn__trace_log_event *event) {
  unsigned char *begin = writer->page->records + writer->used;
  unsigned char *at = begin + 1;
  unsigned flags = (unsigned)event->kind;
  at = tarn__log_put_number(at, event->number - writer->number);
  if (event->time_us != writer->time_us) {
    flags |= TARN__LOG_HAS_TIME;
    at = tarn__log_put_number(
        at, tarn__log_zigzag(event->time_us, writer->time_us));
  }
  at = tarn__log_put_number(at,
                            tarn__log_zigzag(event->address, writer->address));
  if (tarn__log_has_size(event->kind)) {
    at = tarn__log_put_number(at, event->size);
  }
  if (event->stack != 0) {
    flags |= TARN__LOG_HAS_STACK;
    at = tarn__log_put_number(at, event->stack);
  }
  if (event->tag != 0) {
    flags |= TARN__LOG_HAS_TAG;
    at = tarn__log_put_number(at, event->tag);
  }
  if ((event->stream | event->device) != 0) {
    flags |= TARN__LOG_HAS_PLACE;
    at = tarn__log_put_number(at, event->stream);
    at = tarn__log_put_number(at, event->device);
  }
  *begin = (unsigned char)flags;
  writer->number = event->number;
  writer->time_us = event->time_us;
  writer->address = event->address;
  tarn__log_publish(writer, at);
}

#endif  // TARN_TRACE_LOG_H_
