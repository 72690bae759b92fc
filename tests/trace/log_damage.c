// Files of Tarn's own format that are damaged: each thing that can be wrong is
// refused with the byte at which it stands, and what is cut is read as far as
// it goes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log_kit.h"
#include "support/mix.h"
#include "support/trace_written.h"

// The first |size| bytes of the file.
static tarn_status read_first(size_t size, tarn_trace **out_trace) {
  return read_exactly("damaged", file.bytes, size, NULL, out_trace);
}

static void assert_refused(size_t byte, const char *text) {
  char want[320];
  assert_status(read_first(file.size, &trace), TARN_E_CORRUPT);
  snprintf(want, sizeof want, "damaged: byte %zu: %s", byte, text);
  assert_error_says(want);
}

// One of everything.
static void small_file(void) {
  log_page(&file, 1);
  log_text(&file, 1, "main.c");
  LOG_DEFINE(&file, TARN__LOG_TAG, 1);
  LOG_DEFINE(&file, TARN__LOG_FRAME, 1, 1, 1, 300);
  LOG_DEFINE(&file, TARN__LOG_STACK, 1, 1, 1);
  LOG_DEFINE(&file, TARN__LOG_MODULE, 1, 1, 0x1000, 0x1000, 0, 1);
  LOG_DEFINE(&file, TARN__LOG_RAW_STACK, 2, 2, 0x2100, 0x21);
  LOG_DEFINE(&file, TARN__LOG_MIXED_STACK, 3, 2, 0x4200, 3);
  LOG_DEFINE(&file, TARN__LOG_DEVICE, 0, 1);
  log_event(&file, TARN__LOG_OLD, 0, 64, 64);
  for (uint64_t i = 0; i < 3; i++) {
    log_put(&file, (tarn__trace_log_event){.kind = TARN__LOG_ALLOC,
                                           .number = 3 * i,
                                           .time_us = 1000 * i,
                                           .address = 4096 * (i + 1),
                                           .size = 1000,
                                           .stack = i,
                                           .tag = i,
                                           .stream = i});
  }
  log_page(&file, 2);
  log_event(&file, TARN__LOG_MAP, 1, 1 << 20, 1 << 14);
  log_event(&file, TARN__LOG_UNMAP, 2, (1 << 20) + 4096, 4096);
  LOG_DEFINE(&file, TARN__LOG_THREAD, 3);
  log_event(&file, TARN__LOG_FREE, 4, 4096, 0);
  log_event(&file, TARN__LOG_FREE, 5, 64, 0);
  log_event(&file, TARN__LOG_OOM, 7, 0, 1 << 30);
  log_event(&file, TARN__LOG_SEGMENT, 7, 4096, 1 << 20);
}

// --- what is wrong ---------------------------------------------------------

static const struct wrong {
  const char *bytes;
  size_t size;
  const char *text;
} wrongs[] = {
#define WRONG(literal, text) \
  { (literal), sizeof(literal) - 1, (text) }
    WRONG("\0", "0x00 where a record begins"),
    WRONG("\x0f", "0x0f where a record begins"),
    WRONG("\xff", "0xff where a record begins"),
    WRONG("\x1e\x01", "0x1e where a record begins"),
    WRONG("\x0e\x00\x01", "0 is not a kind of definition"),
    WRONG("\x0e\x0a\x01", "10 is not a kind of definition"),
    WRONG("\x0e\xff\x01", "255 is not a kind of definition"),
    WRONG("\x0e\x01\x01\x81\x10", "a text of 2049 bytes"),
    WRONG("\x0e\x01\x01\x02x\0", "a text with a zero byte in it"),
    WRONG("\x0e\x02\x01\x01\x01\x80\x80\x80\x80\x10",
          "line 4294967296 is beyond 32 bits"),
    WRONG("\x0e\x03\x01\x81\x02", "a stack of 257 frames"),
    WRONG("\x0e\x04\x01\x81\x02", "a stack of 257 frames"),
    WRONG("\x0e\x09\x01\x81\x02", "a stack of 257 frames"),
    WRONG("\x0e\x05\x01\x01\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00"
          "\x00",
          "a module of 18446744073709551615 bytes at address 0x10"),
    WRONG("\x0e\x06\x80\x02\x01", "device 256 is beyond 255"),
    WRONG("\x0e\x08\x80\x80\x80\x80\x10",
          "thread 4294967296 is beyond 4294967295"),
    WRONG("\x81\x01\x02\x01\x00\x80\x02", "device 256 is beyond 255"),
    WRONG("\x01\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02\x02\x01",
          "a record with a number beyond 64 bits"),
    WRONG("\x01\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\x02\x01",
          "a record with a number beyond 64 bits"),
    WRONG("\x01\x01\x02\x00", "a block of 0 bytes at address 0x1"),
    WRONG("\x01\x01\x01\x02", "a block of 2 bytes beyond the address space"),
    WRONG("\x0a\x01\x02\x00", "a range of 0 bytes at address 0x1"),
    WRONG("\x0b\x01\x01\x02",
          "a range of 2 bytes at address 0xffffffffffffffff"),
    WRONG("\x0d\x01\x01\x02", "a segment of 2 bytes beyond the address space"),
    WRONG("\x0c\x01\x02\x00", "a block of 0 bytes at address 0x1"),
#undef WRONG
};

TEST_LOOP(what_is_wrong_is_told_with_its_byte,
          (int)(sizeof wrongs / sizeof *wrongs)) {
  log_page(&file, 1);
  log_text(&file, 1, "before");
  size_t byte = log_at(&file);
  log_raw(&file, wrongs[_i].bytes, wrongs[_i].size);
  log_text(&file, 2, "long enough for what a record may want of the next");
  assert_refused(byte, wrongs[_i].text);
}

TEST(a_number_may_have_64_bits) {
  tarn__trace_log_page *page = log_page(&file, 1);
  page->number = UINT64_MAX - 1;
  log_raw(&file, "\x01\x01\x02\x01", 4);
  assert_ok(read_first(file.size, &trace));
  tarn_trace_destroy(trace);
  trace = NULL;
  size_t byte = log_at(&file);
  log_raw(&file, "\x01\x01\x02\x01", 4);
  assert_refused(byte, "an event's number is beyond 64 bits");
}

TEST_LOOP(contradictions_are_told, 4) {
  log_page(&file, 1);
  log_event(&file, TARN__LOG_ALLOC, 1, 512, 8);
  size_t byte = log_at(&file);
  switch (_i) {
    case 0:
      log_event(&file, TARN__LOG_ALLOC, 2, 512, 9);
      assert_refused(byte,
                     "an alloc of 9 bytes where a block of 8 lives at "
                     "address 0x200");
      break;
    case 1:
      log_event(&file, TARN__LOG_OLD, 2, 64, 9);
      byte = log_at(&file);
      log_event(&file, TARN__LOG_OLD, 2, 64, 9);
      assert_refused(byte, "a second block of the baseline at address 0x40");
      break;
    case 2:
      log_event(&file, TARN__LOG_ALLOC, 1, 1024, 9);
      assert_refused(byte, "a second event of number 1");
      break;
    default:
      log_page(&file, 2);
      log_event(&file, TARN__LOG_FREE, 1, 64, 0);
      assert_refused(byte + TARN__LOG_PAGE - 5, "a second event of number 1");
  }
}

TEST_LOOP(a_wrong_page_is_told, 2) {
  tarn__trace_log_page *page = log_page(&file, 1);
  if (_i == 0) {
    page->magic = 0x12345678;
    assert_refused(TARN__LOG_PAGE, "0x12345678 where a page begins");
  } else {
    page->used = sizeof page->records + 1;
    assert_refused(TARN__LOG_PAGE + 8, "a page with 4057 bytes of records");
  }
}

TEST(a_wrong_header_is_told) {
  log_header(&file)->page_bytes = 8192;
  assert_refused(12, "pages of 8192 bytes");
  log_header(&file)->version = 2;
  assert_status(read_first(file.size, &trace), TARN_E_UNSUPPORTED);
  assert_error_says("damaged: byte 8: version 2; this reads version 1");
  file.size = sizeof(tarn__trace_log_header) - 1;
  assert_refused(file.size, "the file ends within its header");
}

// --- what is cut -----------------------------------------------------------

// Whether |part| is |whole| up to some event.
static void assert_prefix(const tarn_trace *part, const tarn_trace *whole) {
  ck_assert_uint_le(part->event_count, whole->event_count);
  for (size_t i = 0; i < part->event_count; i++) {
    require(part->events[i].kind == whole->events[i].kind);
    require(part->events[i].address == whole->events[i].address);
    require(part->events[i].size == whole->events[i].size);
  }
}

TEST(a_file_cut_anywhere_is_read_as_far_as_it_goes) {
  tarn_trace *whole = NULL;
  size_t events = 0;
  log_page(&file, 1);
  for (uint64_t i = 0; i < 900; i++)
    log_event(&file, TARN__LOG_ALLOC, i, i * 4096, 1000);
  assert_ok(read_first(file.size, &whole));
  ck_assert_uint_eq(whole->event_count, 900);
  ck_assert_uint_eq(file.size, 3 * TARN__LOG_PAGE);
  for (size_t size = 0; size < file.size;
       size += size % TARN__LOG_PAGE < 200 ? 1 : 13) {
    tarn_trace *part = NULL;
    tarn_status status = read_first(size, &part);
    if (size < sizeof(tarn__trace_log_header)) {
      require(status == TARN_E_CORRUPT);
      continue;
    }
    require(status == TARN_OK);
    require(part->unfinished == (size % TARN__LOG_PAGE != 0));
    require(part->event_count >= events);
    events = part->event_count;
    assert_prefix(part, whole);
    tarn_trace_destroy(part);
  }
  ck_assert_uint_gt(events, 890);
  tarn_trace_destroy(whole);
}

// As a killed writer of another kind might leave it.
TEST(a_page_that_ends_within_a_record_is_unfinished) {
  tarn__trace_log_page *page = log_page(&file, 1);
  log_event(&file, TARN__LOG_ALLOC, 1, 1, 1);
  log_text(&file, 1, "a text that is long");
  page->used -= 5;
  log_page(&file, 2);
  log_event(&file, TARN__LOG_ALLOC, 2, 2, 1);
  assert_ok(read_first(file.size, &trace));
  ck_assert_int_eq(trace->unfinished, true);
  ck_assert_uint_eq(trace->event_count, 2);
}

TEST(pages_that_were_never_begun_are_passed_over) {
  log_page(&file, 1)->magic = 0;
  log_page(&file, 1);
  log_event(&file, TARN__LOG_ALLOC, 1, 1, 1);
  tarn__trace_log_page *page = log_page(&file, 1);
  memset(page, 0xff, sizeof *page);
  page->magic = 0;
  assert_ok(read_first(file.size, &trace));
  ck_assert_int_eq(trace->unfinished, false);
  ck_assert_uint_eq(trace->event_count, 1);
}

// --- anything --------------------------------------------------------------

static bool read_and_drop(void) {
  tarn_status status = read_first(file.size, &trace);
  require(status == TARN_OK || status == TARN_E_CORRUPT ||
          status == TARN_E_UNSUPPORTED);
  tarn_trace_destroy(trace);
  trace = NULL;
  return status == TARN_OK;
}

TEST(flipped_bits_of_a_file_give_a_status) {
  size_t passed = 0;
  small_file();
  ck_assert(read_and_drop());
  size_t ends[] = {sizeof(tarn__trace_log_header), TARN__LOG_PAGE + 200,
                   2 * TARN__LOG_PAGE + 200};
  for (size_t part = 0; part < 3; part++) {
    for (size_t at = part * TARN__LOG_PAGE; at < ends[part]; at++) {
      for (unsigned bit = at % 2; bit < 8; bit += 2) {
        file.bytes[at] ^= (unsigned char)(1u << bit);
        passed += read_and_drop();
        file.bytes[at] ^= (unsigned char)(1u << bit);
      }
    }
  }
  ck_assert_uint_gt(passed, 0);
}

// Values that mean something somewhere.
TEST_LOOP(any_byte_of_a_file_gives_a_status, 3) {
  static const unsigned char values[] = {0,    1,    2,    4,    0x0a, 0x0b,
                                         0x0c, 0x0e, 0x7f, 0x80, 0xf1, 0xff};
  size_t refused = 0;
  small_file();
  size_t first = (size_t)_i * TARN__LOG_PAGE;
  for (size_t at = first; at < first + 200; at++) {
    unsigned char was = file.bytes[at];
    for (size_t i = 0; i < sizeof values; i++) {
      file.bytes[at] = values[i];
      refused += !read_and_drop();
    }
    file.bytes[at] = was;
  }
  ck_assert_uint_gt(refused, 100);
}

TEST_LOOP(many_changes_at_once_never_do_harm, 4) {
  enum { ROUNDS = 3000 };
  uint64_t state = 0x9e3779b97f4a7c15u + (uint64_t)_i;
  size_t refused = 0;
  small_file();
  unsigned char *kept = malloc(file.size);
  ck_assert_ptr_nonnull(kept);
  memcpy(kept, file.bytes, file.size);
  for (int round = 0; round < ROUNDS; round++) {
    for (int change = round % 6; change >= 0; change--) {
      state = mix(state, 0);
      size_t page = (state >> 40) % 2 + 1;
      size_t at = page * TARN__LOG_PAGE + (size_t)(state >> 16) % 160;
      file.bytes[at] = (unsigned char)(state >> 8);
    }
    refused += !read_and_drop();
    memcpy(file.bytes, kept, file.size);
  }
  ck_assert_uint_gt(refused, ROUNDS / 4);
  free(kept);
}

FIXTURE(begin, end);

int main(void) {
  faults_install();
  return run_tests();
}
