// Damaged snapshots, and expensive ones: every result is a status, within the
// time and the memory that the file's size allows.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/faults.h"
#include "support/mix.h"
#include "support/pickle_writer.h"
#include "support/run.h"
#include "support/trace_written.h"

static pickle_writer w;

static void begin(void) {
  w = (pickle_writer){0};
}

static void end(void) {
  pickle_free(&w);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// One of everything, with shared frames.
static void small_snapshot(int protocol) {
  pickle_snapshot(&w, protocol);
  pickle_open_segment(&w, 4096, 4096);
  pickle_block(&w, 4096, 512, 500, "active_allocated");
  pickle_block(&w, 4608, 512, 0, "inactive");
  pickle_close_segment(&w);
  pickle_middle(&w);
  for (uint64_t i = 0; i < 3; i++) {
    pickle_open_dict(&w);
    pickle_text(&w, "action");
    pickle_text(&w, i == 1 ? "free_completed" : "alloc");
    pickle_text(&w, "addr");
    pickle_int(&w, 4608);
    pickle_text(&w, "size");
    pickle_int(&w, 100);
    pickle_text(&w, "frames");
    if (i == 0) {
      pickle_open_list(&w);
      pickle_frame(&w, "model.py", 12, "forward");
      pickle_frame(&w, "tag", 0, "weights");
      pickle_close_list(&w);
      pickle_put(&w, 0);
    } else {
      pickle_get(&w, 0);
    }
    pickle_close_dict(&w);
  }
  pickle_finish(&w);
}

static tarn_status read_and_drop(const void *bytes, size_t size) {
  tarn_trace *trace = NULL;
  tarn_status status = read_exactly("hostile", bytes, size, NULL, &trace);
  tarn_trace_destroy(trace);
  return status;
}

// What costs much would take minutes; a sanitizer makes the rest some seconds.
static tarn_status read_and_drop_soon(const void *bytes, size_t size) {
  enum { SECONDS = 5 };
  clock_t before = clock();
  tarn_status status = read_and_drop(bytes, size);
  ck_assert_int_lt(clock() - before, SECONDS * CLOCKS_PER_SEC);
  return status;
}

TEST_RANGE(cut_at_every_byte_is_corrupt, 2, 6) {
  small_snapshot(_i);
  ck_assert_int_eq(read_and_drop(w.bytes, w.size), TARN_OK);
  for (size_t size = 0; size < w.size; size++) {
    assert_status(read_and_drop(w.bytes, size), TARN_E_CORRUPT);
  }
}

TEST_LOOP(mutations_never_do_harm, 4) {
  enum { ROUNDS = 10000 };
  uint64_t state = 0x9e3779b97f4a7c15u + (uint64_t)_i;
  size_t refused = 0;
  small_snapshot(4);
  unsigned char *mutant = malloc(w.size);
  ck_assert_ptr_nonnull(mutant);
  for (int round = 0; round < ROUNDS; round++) {
    memcpy(mutant, w.bytes, w.size);
    for (int change = round % 4; change >= 0; change--) {
      uint64_t random = state = mix(state, 0);
      size_t at = (size_t)(random >> 16) % w.size;
      if (random & 1) mutant[at] ^= (unsigned char)(1u << (random >> 1 & 7));
      if (!(random & 1)) mutant[at] = (unsigned char)(random >> 8);
    }
    if (read_and_drop(mutant, w.size) != TARN_OK) refused++;
  }
  ck_assert_uint_gt(refused, ROUNDS / 2);
  free(mutant);
}

// --- much out of little ----------------------------------------------------

TEST(a_bomb_of_lists_is_not_unfolded) {
  pickle_snapshot(&w, 4);
  pickle_middle(&w);
  pickle_close_list(&w);
  pickle_close_list(&w);
  pickle_text(&w, "bomb");
  pickle_op(&w, ']');
  for (int level = 0; level < 64; level++) {  // 2^64 when unfolded
    pickle_op_number(&w, 'q', (uint64_t)level, 1);
    pickle_op(&w, '0');
    pickle_open_list(&w);
    pickle_op_number(&w, 'h', (uint64_t)level, 1);
    pickle_op_number(&w, 'h', (uint64_t)level, 1);
    pickle_close_list(&w);
  }
  pickle_close_dict(&w);
  pickle_end(&w);
  ck_assert_int_eq(read_and_drop(w.bytes, w.size), TARN_OK);
}

// |events| events whose frames are one list of |frames| references to one
// frame, whose name is a text of |text| bytes that other frames have too.
static void shared_stack(int events, int frames) {
  pickle_snapshot(&w, 4);
  pickle_middle(&w);
  for (int i = 0; i < events; i++) {
    pickle_open_dict(&w);
    pickle_text(&w, "action");
    pickle_text(&w, "oom");
    pickle_text(&w, "frames");
    if (i == 0) {
      pickle_open_list(&w);
      pickle_frame(&w, "a.py", 1, "f");
      pickle_op_number(&w, 'q', 0, 1);
      for (int j = 1; j < frames; j++)
        pickle_op_number(&w, 'h', 0, 1);
      pickle_close_list(&w);
      pickle_op_number(&w, 'q', 1, 1);
    } else {
      pickle_op_number(&w, 'h', 1, 1);
    }
    pickle_close_dict(&w);
  }
  pickle_finish(&w);
}

TEST(a_shared_stack_is_read_once) {
  shared_stack(50000, 200000);  // 10^10 frames when unfolded
  ck_assert_int_eq(read_and_drop(w.bytes, w.size), TARN_OK);
}

TEST(a_shared_text_is_read_once) {
  enum { FRAMES = 50000, TEXT = 1 << 20 };  // 5 x 10^10 bytes when unfolded
  char *text = malloc(TEXT + 1);
  ck_assert_ptr_nonnull(text);
  memset(text, 'x', TEXT);
  text[TEXT] = '\0';
  pickle_begin(&w, 4);
  pickle_text(&w, text);
  pickle_op_number(&w, 'q', 0, 1);
  pickle_op(&w, '0');
  pickle_raw(&w, "}(", 2);
  pickle_text(&w, "device_traces");
  pickle_open_list(&w);
  pickle_open_list(&w);
  pickle_open_dict(&w);
  pickle_text(&w, "action");
  pickle_text(&w, "oom");
  pickle_text(&w, "frames");
  pickle_open_list(&w);
  for (int i = 0; i < FRAMES; i++) {
    pickle_open_dict(&w);
    pickle_text(&w, "name");
    pickle_op_number(&w, 'h', 0, 1);
    pickle_text(&w, "line");
    pickle_op_number(&w, 'M', (uint64_t)i, 2);
    pickle_close_dict(&w);
  }
  pickle_close_list(&w);
  pickle_close_dict(&w);
  pickle_finish(&w);
  ck_assert_int_eq(read_and_drop_soon(w.bytes, w.size), TARN_OK);
  free(text);
}

// An oom event with |key| and the value in slot 0, in a stack if it is of one.
static void event_with(const char *key, bool in_frame) {
  pickle_open_dict(&w);
  pickle_text(&w, "action");
  pickle_text(&w, "oom");
  if (in_frame) pickle_text(&w, "frames");
  if (in_frame) pickle_raw(&w, "](}(", 4);
  pickle_text(&w, key);
  pickle_op_number(&w, 'h', 0, 1);
  if (in_frame) pickle_raw(&w, "ue", 2);
  pickle_close_dict(&w);
}

// The number 1 in half a megabyte, and as much of events that have it.
static void long_integer(const char *key, bool in_frame) {
  enum { WHOLE = 1 << 20, HALF = WHOLE / 2 };
  pickle_begin(&w, 4);
  pickle_op_number(&w, 0x8b, HALF, 4);
  pickle_op(&w, 1);
  for (int i = 1; i < HALF; i++)
    pickle_op(&w, 0);
  pickle_raw(&w,
             "q\0"
             "0}(",
             5);
  pickle_text(&w, "device_traces");
  pickle_open_list(&w);
  pickle_open_list(&w);
  while (w.size < WHOLE)
    event_with(key, in_frame);
  pickle_finish(&w);
}

TEST(a_long_integer_is_refused) {
  long_integer("size", false);
  assert_status(read_and_drop_soon(w.bytes, w.size), TARN_E_CORRUPT);
  assert_error_says("hostile: byte 2: 'size' is written in 524288 bytes");
}

// Lines may be any number.
TEST(a_long_line_is_not_read) {
  long_integer("line", true);
  ck_assert_int_eq(read_and_drop_soon(w.bytes, w.size), TARN_OK);
}

// Values that are not events take no memory before they are refused.
TEST(a_list_of_nothing_is_corrupt) {
  enum { COUNT = 4 << 20 };
  pickle_snapshot(&w, 4);
  pickle_middle(&w);
  size_t byte = w.size;
  for (int i = 0; i < COUNT; i++)
    pickle_op(&w, 'N');
  pickle_finish(&w);
  assert_status(read_and_drop_soon(w.bytes, w.size), TARN_E_CORRUPT);
  ck_assert_uint_le(faults_peak(), 48 * w.size);  // the tree alone takes 40
  char want[64];
  snprintf(want, sizeof want, "byte %zu: None in place of a dict", byte);
  assert_error_says(want);
}

TEST(a_file_of_4_gib_is_not_read) {
  char path[] = "/tmp/tarn-trace-XXXXXX";
  tarn_trace *trace = NULL;
  int fd = mkstemp(path);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(ftruncate(fd, (off_t)UINT32_MAX), 0);  // a hole
  close(fd);
  faults_peak_reset();
  tarn_status status = tarn_trace_read(path, NULL, &trace);
  unlink(path);
  assert_status(status, TARN_E_UNSUPPORTED);
  assert_error_says(path);
  assert_error_says("4294967295 bytes");
  assert_error_says("4294967294");
  ck_assert_uint_lt(faults_peak(), 1 << 20);
}

TEST(a_shared_segment_is_refused) {
  pickle_begin(&w, 4);
  pickle_open_list(&w);
  pickle_open_segment(&w, 4096, 512);
  pickle_block(&w, 4096, 512, 512, "active_allocated");
  pickle_close_segment(&w);
  pickle_op_number(&w, 'q', 0, 1);
  for (int i = 0; i < 1000; i++)
    pickle_op_number(&w, 'h', 0, 1);
  pickle_close_list(&w);
  pickle_end(&w);
  assert_status(read_and_drop(w.bytes, w.size), TARN_E_CORRUPT);
  assert_error_says("a dict occurs twice");
}

TEST(deep_nesting_is_refused_as_a_shape) {
  enum { DEPTH = 1000000 };
  pickle_begin(&w, 4);
  for (int i = 0; i < DEPTH; i++)
    pickle_op(&w, ']');
  for (int i = 1; i < DEPTH; i++)
    pickle_op(&w, 'a');
  pickle_end(&w);
  assert_status(read_and_drop(w.bytes, w.size), TARN_E_CORRUPT);
  assert_error_says("a list in place of a dict");
}

TEST(an_error_text_is_printable) {
  tarn_trace *trace = NULL;
  assert_status(
      tarn_trace_read_bytes("\x80\x04i", 3, "a\x1b[31m\n.pickle", NULL, &trace),
      TARN_E_CORRUPT);
  ck_assert_ptr_null(strchr(tarn_last_error(), '\x1b'));
  ck_assert_ptr_null(strchr(tarn_last_error(), '\n'));
}

// --- memory that fails -----------------------------------------------------

static void read_scenario(void *context) {
  tarn_trace *trace = NULL;
  (void)context;
  tarn_status status =
      tarn_trace_read_bytes(w.bytes, w.size, "swept", NULL, &trace);
  ck_assert(status == TARN_OK || status == TARN_E_NOMEM);
  ck_assert((status == TARN_OK) == (trace != NULL));
  tarn_trace_destroy(trace);
}

TEST(every_failing_allocation_is_survived) {
  small_snapshot(4);
  size_t faults = faults_sweep(read_scenario, NULL);
  printf("trace: %zu faults while reading, 0 leaks\n", faults);
  ck_assert_uint_gt(faults, 20);
}

FIXTURE(begin, end);

int main(void) {
  faults_install();
  return run_tests();
}
