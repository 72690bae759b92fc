// RMM's CSV: the traces of logs, and refusals with their line.
#include "lines_kit.h"

#define HEADER "Thread,Time,Action,Pointer,Size,Stream\n"

// Two threads, two streams, a failure, a request of 0 bytes, a block that is
// older than the log, one that outlives it.
static const char real[] = HEADER
    "7318,14:02:11.180231,allocate,0x7f2c4a000000,1048576,0x0\n"
    "7318,14:02:11.180502,allocate,0x7f2c4a100000,256,0x55d0c3a1e2f0\n"
    "7320,14:02:11.190011,allocate,(nil),0,0x0\n"
    "7320,14:02:11.190020,free,(nil),0,0x0\n"
    "7320,14:02:11.200000,free,0x7f2c4b000000,4096,0x0\n"
    "7318,14:02:12.000001,allocate failure,(nil),68719476736,0x2\n"
    "7320,14:02:12.000002,free,0x7f2c4a000000,1048576,0x0\n";

TEST(a_log_is_read) {
  assert_ok(read_text(real));
  ck_assert_str_eq(trace->format, "rmm-csv");
  ck_assert_uint_eq(trace->event_count, 5);
  ck_assert_uint_eq(trace->request_count, 4);
  ck_assert_uint_eq(trace->block_count, 3);
  assert_event(0, TARN_TRACE_ALLOC, 0x7f2c4a000000, 1048576);
  assert_event(1, TARN_TRACE_ALLOC, 0x7f2c4a100000, 256);
  assert_event(2, TARN_TRACE_FREE, 0x7f2c4b000000, 4096);
  assert_event(3, TARN_TRACE_OOM, 0, UINT64_C(68719476736));
  assert_event(4, TARN_TRACE_FREE, 0x7f2c4a000000, 1048576);
  ck_assert_uint_eq(trace->device_count, 1);
  ck_assert(!trace->unfinished);
  ck_assert_uint_eq(trace->unknown_count, 0);
}

TEST(threads_streams_and_times_are_kept) {
  assert_ok(read_text(real));
  static const uint64_t times[] = {0, 271, 19769, 819770, 819771};
  static const uint64_t streams[] = {0, 0x55d0c3a1e2f0, 0, 2, 0};
  static const uint32_t threads[] = {7318, 7318, 7320, 7318, 7320};
  for (size_t i = 0; i < 5; i++) {
    ck_assert_uint_eq(trace->events[i].time_us, times[i]);
    ck_assert_uint_eq(trace->events[i].stream, streams[i]);
    ck_assert_uint_eq(trace->events[i].thread, threads[i]);
  }
  ck_assert_uint_eq(trace->blocks[2].stream, 0x55d0c3a1e2f0);
}

TEST(what_is_older_than_the_log_is_the_baseline) {
  assert_ok(read_text(real));
  ck_assert_uint_eq(trace->baseline_count, 1);
  ck_assert_uint_eq(trace->baseline_bytes, 4096);
  ck_assert_uint_eq(trace->blocks[0].died, 2);
  ck_assert_uint_eq(trace->live_peak_bytes, 4096 + 1048576 + 256);
  ck_assert_uint_eq(trace->blocks[2].died, TARN_TRACE_NEVER);
}

// The ways in which versions and platforms have written the same.
static const char *const alikes[] = {
    HEADER "1,00:00:01.000000,allocate,0x100,8,0x1\n",
    "\xef\xbb\xbf" HEADER "1,00:00:01.000000,allocate,0x100,8,0x1\n",
    "Thread,Time,Action,Pointer,Size,Stream\r\n"
    "1,00:00:01.000000,allocate,0x100,8,0x1\r\n",
    HEADER "\n \n1,00:00:01.000000,allocate,0x100,8,0x1\n\r\n\n",
    HEADER "1,00:00:01:000000,allocate,0x100,8,1\n",
    HEADER "1,00:00:01,allocate,100,8,0x0001\n",
    HEADER "1,23:59:60.5,allocate,0x100,8,1\n",
    HEADER "1,00:00:01.123456789,allocate,0x0000000000000100,8,1\n",
};

TEST_LOOP(versions_differ_in_how_they_write, sizeof alikes / sizeof alikes[0]) {
  assert_ok(read_text(alikes[_i]));
  ck_assert_uint_eq(trace->event_count, 1);
  assert_event(0, TARN_TRACE_ALLOC, 0x100, 8);
  ck_assert_uint_eq(trace->events[0].stream, 1);
  ck_assert_uint_eq(trace->events[0].thread, 1);
  ck_assert_uint_eq(trace->events[0].time_us, 0);
}

#define AT(time) "1," time ",allocate failure,(nil),8,0\n"

static const struct clock {
  const char *text;
  uint64_t last;
} clocks[] = {
    {HEADER AT("00:00:00") AT("00:00:00.000001"), 1},
    {HEADER AT("00:00:00") AT("00:00:00.5"), 500000},
    {HEADER AT("00:00:00.9") AT("00:00:01.000000999"), 100000},
    {HEADER AT("01:02:03.000004") AT("04:05:06.000004"), 10983000000},
    {HEADER AT("23:59:59.9") AT("00:00:00.1"), 200000},
    {HEADER AT("23:00:00") AT("11:00:01") AT("22:00:00") AT("01:00:00"),
     UINT64_C(7200000000)},
    {HEADER AT("12:00:00") AT("00:00:00"), 0},
    {HEADER AT("12:00:00.000001") AT("00:00:00"), 43199999999},
    {HEADER AT("12:00:00") AT("23:00:00") AT("01:00:00") AT("13:00:00"),
     UINT64_C(90000000000)},
    // Threads overtake each other: time stands still.
    {HEADER AT("10:00:05") AT("10:00:09") AT("10:00:07"), 4000000},
    {HEADER AT("10:00:05") AT("10:00:01"), 0},
    {HEADER AT("00:00:01") AT("23:59:00"), 86339000000},
    // A straggler of before midnight is not most of a day late.
    {HEADER AT("23:59:59.8") AT("00:00:00.1") AT("23:59:59.9") AT("00:00:00.2"),
     400000},
    {HEADER AT("00:00:00") AT("23:59:30") AT("00:00:00.7"), 700000},
};

TEST_LOOP(times_run_on_over_midnight, sizeof clocks / sizeof clocks[0]) {
  assert_ok(read_text(clocks[_i].text));
  ck_assert_uint_eq(trace->events[trace->event_count - 1].time_us,
                    clocks[_i].last);
}

#define LINE(fields) HEADER fields "\n"

static const struct wrong {
  const char *text;
  const char *error;
} wrongs[] = {
    {"Thread,Time,Action,Pointer,Size\n", "made: line 1: 5 columns, not 6"},
    {"Thread,Time,Action,Pointer,Size,Stream,Device\n",
     "made: line 1: 7 columns, not 6"},
    {"Thread,Time,Action,Size,Pointer,Stream\n",
     "made: line 1: column Pointer: 'Size' is another column's name"},
    {"Thread,Time,\"Action\",Pointer,Size,Stream\n",
     "made: line 1: column Action: '\"Action\"' is another column's name"},
    {HEADER "\n1,00:00:00,free,0x1,1\n", "made: line 3: 5 columns, not 6"},
    {LINE("1,00:00:00,free,0x1,1,0,"), "made: line 2: 7 columns, not 6"},
    {LINE("x"), "made: line 2: 1 columns, not 6"},
    {LINE("1,00:00:00,a\033[2Jb,0x1,1,0"),
     "made: line 2: column Action: 'a?[2Jb' is no action"},
    {LINE("1,00:00:00,allocate,0x1,1,0\n1,00:00:00,allocate,0x1,2,0"),
     "made: line 3: an alloc of 2 bytes where a block of 1 lives at address "
     "0x1"},
    {LINE("1,00:00:00,allocate,0x1,8,0\n1,00:00:00,free,0x1,9,0"),
     "made: line 3: a free of 9 bytes of a block of 8 at address 0x1"},
    {LINE("1,00:00:00,free,0x1,8,0\n1,00:00:00,free,0x1,8,0"),
     "made: line 3: a free of a block freed before at address 0x1"},
    {LINE("1,00:00:00,allocate,0xffffffffffffffff,1,0"),
     "made: line 2: a block of 1 bytes beyond the address space at address "
     "0xffffffffffffffff"},
    {HEADER HEADER,
     "made: line 2: column Thread: 'Thread' is no number of a thread"},
};

TEST_LOOP(mistakes_name_line_and_column, sizeof wrongs / sizeof wrongs[0]) {
  assert_refused(wrongs[_i].text, wrongs[_i].error);
}

// A line of which one value is wrong.
enum { THREAD, TIME, ACTION, POINTER, SIZE, STREAM, COLUMNS };
static const struct wrong_value {
  int column;
  const char *value;
  const char *what;
} wrong_values[] = {
    {THREAD, "", "no number of a thread"},
    {THREAD, "-1", "no number of a thread"},
    {THREAD, "4294967296", "no number of a thread"},
    {THREAD, "\"1\"", "no number of a thread"},
    {TIME, "", "no time"},
    {TIME, "0:00:00", "no time"},
    {TIME, "24:00:00", "no time"},
    {TIME, "23:60:00", "no time"},
    {TIME, "23:00:61", "no time"},
    {TIME, "23:00:00.", "no time"},
    {TIME, "23:00:00.1234567890", "no time"},
    {TIME, "23:00:00x1", "no time"},
    {TIME, "2024-01-01 23:00:00", "no time"},
    {ACTION, "Free", "no action"},
    {ACTION, "\"free\"", "no action"},
    {POINTER, "", "no address"},
    {POINTER, "0x", "no address"},
    {POINTER, "0X1", "no address"},
    {POINTER, "0x1g", "no address"},
    {POINTER, "0x10000000000000000", "no address"},
    {SIZE, "", "no number of bytes"},
    {SIZE, "-1", "no number of bytes"},
    {SIZE, "18446744073709551616", "no number of bytes"},
    {SIZE, "1 ", "no number of bytes"},
    {STREAM, "", "no stream"},
    {STREAM, "legacy", "no stream"},
};

TEST_LOOP(wrong_values_name_line_and_column,
          sizeof wrong_values / sizeof wrong_values[0]) {
  static const char *const names[COLUMNS] = {"Thread",  "Time", "Action",
                                             "Pointer", "Size", "Stream"};
  const struct wrong_value *wrong = &wrong_values[_i];
  const char *f[COLUMNS] = {"1", "00:00:00", "free", "0x1", "1", "0"};
  char text[256];
  char error[256];
  f[wrong->column] = wrong->value;
  snprintf(text, sizeof text, HEADER "%s,%s,%s,%s,%s,%s\n", f[0], f[1], f[2],
           f[3], f[4], f[5]);
  snprintf(error, sizeof error, "made: line 2: column %s: '%s' is %s",
           names[wrong->column], wrong->value, wrong->what);
  assert_refused(text, error);
}

// Values are shown in part.
TEST(a_long_value_is_cut) {
  char text[4096] = HEADER;
  memset(text + sizeof HEADER - 1, 'x', 2000);
  memcpy(text + sizeof HEADER - 1 + 2000, ",1,1,1,1,1\n", 12);
  assert_status(read_text(text), TARN_E_CORRUPT);
  ck_assert_uint_eq(strlen(tarn_last_error()),
                    strlen("made: line 2: column Thread: '' is no number of a "
                           "thread") +
                        48);
}

// By itself each line of nothing is passed over: no memory is held by it.
TEST(nothing_is_held_by_requests_of_nothing) {
  assert_ok(read_text(HEADER "1,00:00:00,allocate,0x100,0,0\n"
                             "1,00:00:00,allocate,0x100,8,0\n"
                             "1,00:00:00,free,0x100,0,0\n"
                             "1,00:00:00,allocate,(nil),8,0\n"
                             "1,00:00:00,free,0,8,0\n"
                             "1,00:00:01,free,0x100,8,0\n"));
  ck_assert_uint_eq(trace->event_count, 2);
  ck_assert_uint_eq(trace->events[1].time_us, 1000000);
  ck_assert_uint_eq(trace->unknown_count, 0);
}

TEST(a_log_without_requests_is_a_trace) {
  assert_ok(read_text(HEADER));
  ck_assert_uint_eq(trace->event_count, 0);
  ck_assert(!trace->unfinished);
  assert_ok(read_text("Thread,Time,Act"));
  ck_assert(trace->unfinished);
}

TEST(only_its_header_makes_a_log) {
  assert_status(read_text("1,00:00:00,free,0x1,8,0\n"), TARN_E_CORRUPT);
  assert_error_says("not a pickle");
  assert_status(read_text("thread,Time,Action,Pointer,Size,Stream\n"),
                TARN_E_CORRUPT);
  assert_error_says("not a pickle");
  assert_status(read_text("Thread"), TARN_E_CORRUPT);
}

TEST(there_is_one_device) {
  assert_ok(read_device(real, 0));
  assert_status(read_device(real, 1), TARN_E_INVALID);
  assert_error_says("made: device 1 has no history");
}

TEST(a_log_grows) {
  grow_all(real, strlen("Thread,"));
  ck_assert_uint_eq(trace->event_count, 5);
}

TEST(any_byte_may_be_wrong) {
  ck_assert_uint_gt(flip_all(real), 1000 / FLIPS);
}

TEST(memory_may_run_out) {
  ck_assert_uint_gt(faults_sweep(scenario_read, (void *)(uintptr_t)real), 0);
}

// Short lines, each an address of its own: the most that a file can cost.
static growing dense_log(size_t lines) {
  growing log = {0};
  grow(&log, HEADER);
  for (size_t i = 1; i <= lines; i++) {
    grow(&log, "1,00:00:00,free,%zx,1,0\n", i * 16);
  }
  return log;
}

TEST(memory_is_bounded_by_the_file) {
  for (size_t lines = 1; lines < 300000; lines = lines * 5 / 2 + 1) {
    growing log = dense_log(lines);
    require(read_any(log.bytes, log.size) == TARN_OK);
    ck_assert_uint_eq(trace->baseline_count, lines);
    free(log.bytes);
  }
}

// 100,000 requests of 16 threads with a ring of live blocks.
TEST(a_long_log_is_read) {
  enum { LIVE = 64, REQUESTS = 100000 };
  growing log = {0};
  grow(&log, HEADER);
  for (unsigned i = 0; i < REQUESTS; i++) {
    unsigned us = i * 700;
    unsigned slot = i / 2 % LIVE;
    bool first = i / 2 < LIVE;
    grow(&log, "%u,00:%02u:%02u.%06u,%s,0x%x,%u,0x%x\n", 1000 + i % 16,
         us / 60000000, us / 1000000 % 60, us % 1000000,
         i % 2 == 0 && !first ? "free" : "allocate",
         0x10000 + slot * 4096 + (first ? i % 2 * 2048 : 0), 1 + slot,
         slot % 3);
  }
  assert_ok(read_bytes_of(log.bytes, log.size, NULL));
  free(log.bytes);
  ck_assert_uint_eq(trace->event_count, REQUESTS);
  ck_assert_uint_eq(trace->events[REQUESTS - 1].time_us,
                    (REQUESTS - 1) * UINT64_C(700));
  ck_assert_uint_eq(trace->live_peak_bytes, (uint64_t)LIVE * (LIVE + 1));
}

int main(void) {
  faults_install();
  return run_tests();
}
