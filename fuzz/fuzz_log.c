// Tarn's own format. An input is the records alone, so that no byte of it is
// wasted on what a page must be:
//
//   flags    1  the input is a whole file behind its magic, as it is
//            2  the last page is cut behind its records
//            4  events were lost
//            8  addresses are no more than numbers
//   then, page by page: thread, number, bytes / 8, records
//
// What can be read is written and read again, and must be the same.
#include <string.h>

#include "tarn/trace_write.h"
#include "trace/log.h"

#define LLVMFuzzerTestOneInput fuzz_read
#include "trace_fuzz.h"
#undef LLVMFuzzerTestOneInput

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum {
  RAW = 1,
  CUT = 2,
  LOST = 4,
  ANONYMOUS = 8,
  PAGE_HEAD = 3,
  RECORDS = offsetof(tarn__trace_log_page, records),
  MOST = 1 << 20,
};

typedef struct bytes {
  unsigned char items[MOST];
  size_t size;
} bytes;

static bytes made;
static bytes written;

static tarn_status gather(void *context, const void *from, size_t size) {
  bytes *all = context;
  if (size > MOST - all->size) return TARN_FULL;
  memcpy(all->items + all->size, from, size);
  all->size += size;
  return TARN_OK;
}

static void put_header(unsigned flags) {
  tarn__trace_log_header header = {.magic = TARN__LOG_MAGIC,
                                   .version = TARN__LOG_VERSION,
                                   .page_bytes = TARN__LOG_PAGE,
                                   .lost = (flags & LOST) != 0,
                                   .flags = (flags & ANONYMOUS) != 0};
  memset(made.items, 0, TARN__LOG_PAGE);
  memcpy(made.items, &header, sizeof header);
  made.size = TARN__LOG_PAGE;
}

// A page out of what |from| begins with; returns how much that was.
static size_t put_page(const uint8_t *from, size_t size) {
  static tarn__trace_log_page page;
  size_t count = (size_t)from[2] * 8;
  if (count > size - PAGE_HEAD) count = size - PAGE_HEAD;
  memset(&page, 0, sizeof page);
  page.magic = TARN__LOG_PAGE_MAGIC;
  page.thread = from[0];
  page.number = from[1];
  page.used = (uint32_t)count;
  memcpy(page.records, from + PAGE_HEAD, count);
  (void)!gather(&made, &page, sizeof page);
  return PAGE_HEAD + count;
}

static void make(unsigned flags, const uint8_t *from, size_t size) {
  size_t last = 0;
  put_header(flags);
  if ((flags & RAW) != 0) {
    made.size = sizeof made.items < size + 8 ? sizeof made.items : size + 8;
    memcpy(made.items + 8, from, made.size - 8);
    return;
  }
  while (size > PAGE_HEAD && made.size < MOST) {
    last = put_page(from, size) - PAGE_HEAD;
    from += PAGE_HEAD + last;
    size -= PAGE_HEAD + last;
  }
  if ((flags & CUT) != 0 && last != 0) {
    made.size -= TARN__LOG_PAGE - RECORDS - last + 1;
  }
}

// A block that ends where the address space does cannot be moved from 0.
static int is_copied(const tarn_trace *trace) {
  return trace->block_count == 0 || trace->blocks[0].address != 0 ||
         trace->live_peak_bytes < UINT64_C(1) << 62;
}

static void copy(void) {
  tarn_trace *trace = NULL;
  tarn_trace *again = NULL;
  if (tarn_trace_read_bytes(made.items, made.size, "made", NULL, &trace) !=
      TARN_OK) {
    return;
  }
  written.size = 0;
  if (is_copied(trace) && tarn_trace_write_to(trace, TARN_TRACE_FORMAT_TARN,
                                              gather, &written) == TARN_OK) {
    tarn_status status = tarn_trace_read_bytes(written.items, written.size,
                                               "copy", NULL, &again);
    require(status == TARN_OK, tarn_last_error());
    require(again->event_count == trace->event_count &&
                again->block_count == trace->block_count &&
                again->baseline_count == trace->baseline_count &&
                again->stack_count == trace->stack_count &&
                again->frame_count == trace->frame_count &&
                again->tag_count == trace->tag_count &&
                again->segment_count == trace->segment_count &&
                again->live_peak_bytes == trace->live_peak_bytes &&
                again->live_peak_event == trace->live_peak_event &&
                again->unfinished == trace->unfinished,
            "a copy is another trace");
    require(trace->event_count == 0 ||
                memcmp(again->events, trace->events,
                       trace->event_count * sizeof *trace->events) == 0,
            "a copy has other events");
  }
  tarn_trace_destroy(again);
  tarn_trace_destroy(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *from, size_t size) {
  if (size == 0) return 0;
  make(from[0], from + 1, size - 1);
  (void)fuzz_read(made.items, made.size);
  copy();
  return 0;
}
