// Umpire's replay log: both forms, their traces, and refusals with their line.
#include "umpire_kit.h"

static const char late[] = VERSION
    MAKE("002", "0x10", "HOST")
    ALLOCATE("003", "0x10", "0x5000", "65536")
    MAKE("004", "0x20", "pool")
    ALLOCATE("005", "0x20", "0x5000", "128")
    NAMED("006", "0x20", "0x5100", "64", "grid\\n\\u20ac")
    "{\"category\":\"operation\",\"name\":\"copy\",\"numeric_args\":{"
    "\"size\":64},\"string_args\":{\"dst\":\"0x5100\"}," AT("007") "}\n"
    DEALLOCATE("008", "0x20", "0x5000")
    DEALLOCATE("009", "0x10", "0x5000")
    DEALLOCATE("010", "0x20", "0x7000")
    ALLOCATE("011", "0x20", "0x5000", "32");

TEST(a_log_is_read) {
  assert_ok(read_text(late));
  ck_assert_str_eq(trace->format, "umpire-json");
  ck_assert_uint_eq(trace->event_count, 4);
  assert_event(0, TARN_TRACE_ALLOC, 0x5000, 128);
  assert_event(1, TARN_TRACE_ALLOC, 0x5100, 64);
  assert_event(2, TARN_TRACE_FREE, 0x5000, 128);
  assert_event(3, TARN_TRACE_ALLOC, 0x5000, 32);
  ck_assert_uint_eq(trace->events[0].time_us, UINT64_C(1700000000000005));
  ck_assert_uint_eq(trace->block_count, 3);
  ck_assert_uint_eq(trace->baseline_count, 0);
  ck_assert_uint_eq(trace->unknown_count, 1);
  ck_assert_uint_eq(trace->live_peak_bytes, 192);
  ck_assert(!trace->unfinished);
}

TEST(blocks_bear_their_names_or_their_allocators) {
  assert_ok(read_text(late));
  ck_assert_uint_eq(trace->tag_count, 3);
  ck_assert_str_eq(trace->tags[trace->blocks[0].tag], "pool");
  ck_assert_str_eq(trace->tags[trace->blocks[1].tag], "grid\n\xe2\x82\xac");
  ck_assert_str_eq(trace->tags[trace->blocks[2].tag], "pool");
  ck_assert_str_eq(trace->tags[trace->events[1].tag], "grid\n\xe2\x82\xac");
}

// The busiest is read unless one is chosen.
TEST(allocators_are_devices) {
  assert_ok(read_text(late));
  ck_assert_uint_eq(trace->device, 1);
  ck_assert_uint_eq(trace->device_count, 2);
  assert_ok(read_device(late, 0));
  ck_assert_uint_eq(trace->device, 0);
  ck_assert_uint_eq(trace->device_count, 2);
  ck_assert_uint_eq(trace->event_count, 2);
  assert_event(0, TARN_TRACE_ALLOC, 0x5000, 65536);
  ck_assert_str_eq(trace->tags[trace->blocks[0].tag], "HOST");
  assert_status(read_device(late, 2), TARN_E_INVALID);
  assert_error_says("made: device 2 has no history");
  assert_status(read_device(MAKE("001", "0x10", "HOST"), 0), TARN_E_INVALID);
}

TEST(of_equals_the_first_is_read) {
  assert_ok(read_text(ALLOCATE("001", "0x10", "0x1", "1")
                          ALLOCATE("002", "0x20", "0x1", "2")));
  assert_event(0, TARN_TRACE_ALLOC, 1, 1);
  ck_assert_uint_eq(trace->device_count, 2);
  ck_assert_str_eq(trace->tags[trace->blocks[0].tag], "");
}

static const char early[] = OLD("77", "00", "version")
    ", \"payload\": { \"major\":0, \"minor\":3, \"patch\":3 } }\n"
    OLD_HOST("0x10")
    OLD("77", "01", "makeAllocator")
    ", \"payload\": { \"type\":\"Quick\", \"with_introspection\":true, "
    "\"allocator_name\":\"pool\", \"args\": [ \"HOST\" ] } }\n"
    OLD("77", "02", "makeAllocator")
    ", \"payload\": { \"type\":\"Quick\", \"with_introspection\":true, "
    "\"allocator_name\":\"pool\", \"args\": [ \"HOST\" ] }, "
    "\"result\": { \"allocator_ref\":\"0x20\" } }\n"
    OLD_WANT("03", "allocate", OF("0x20", "0"))
    OLD_GOT("04", "allocate", OF("0x20", "0"), "0x5000")
    OLD_WANT("05", "allocate", OF("0x20", "134"))
    OLD_GOT("06", "allocate", OF("0x20", "134"), "0x5000")
    OLD_WANT("07", "allocate", OF("0x20", "8, \"name\": \"grid\""))
    OLD_GOT("08", "allocate", OF("0x20", "8, \"name\": \"grid\""), "0x5100")
    OLD_WANT("09", "allocate", OF("0x20", "999999999999"))
    OLD("77", "10", "move") ", \"payload\": {\" \"ptr\": \"0x5100\" } }\n"
    OLD_WANT("11", "deallocate",
             "\"allocator_ref\": \"0x20\", \"memory_ptr\": \"0x5000\"")
    OLD_WANT("12", "deallocate",
             "\"allocator_ref\": \"0x20\", \"memory_ptr\": \"0x5000\"")
    OLD_WANT("13", "deallocate",
             "\"allocator_ref\": \"0x20\", \"memory_ptr\": \"0\"");

TEST(an_early_log_is_read) {
  assert_ok(read_text(early));
  ck_assert_uint_eq(trace->device, 1);
  ck_assert_uint_eq(trace->device_count, 1);
  ck_assert_uint_eq(trace->event_count, 3);
  assert_event(0, TARN_TRACE_ALLOC, 0x5000, 134);
  assert_event(1, TARN_TRACE_ALLOC, 0x5100, 8);
  assert_event(2, TARN_TRACE_FREE, 0x5000, 134);
  ck_assert_uint_eq(trace->unknown_count, 0);
  ck_assert_str_eq(trace->tags[trace->blocks[0].tag], "pool");
  ck_assert_str_eq(trace->tags[trace->blocks[1].tag], "grid");
  ck_assert_uint_eq(trace->events[0].time_us, UINT64_C(1558388052210606));
}

// Two processes may call two allocators by one address.
TEST(processes_have_their_own_allocators) {
#define OF_PROCESS(uid)      \
  OLD(uid, "01", "allocate") \
  ", \"payload\": { " OF("0x20", "8") " }, " \
  "\"result\": { \"memory_ptr\": \"0x100\" } }\n"
  assert_ok(read_text(OF_PROCESS("1") OF_PROCESS("2")));
#undef OF_PROCESS
  ck_assert_uint_eq(trace->device_count, 2);
  ck_assert_uint_eq(trace->event_count, 1);
}

// What a reallocate of a block of 8 bytes at 0x100 logs, and comes to.
static const struct resize {
  const char *text;
  size_t events;
  uint64_t address;  // of the living block at the end; 0: none lives
  uint64_t size;
} resizes[] = {
    // In place, and elsewhere, within the allocator.
    {REALLOCATE("002", "0x10", "0x100", "96")
         REALLOCATED("003", "0x10", "0x100"),
     3, 0x100, 96},
    {REALLOCATE("002", "0x10", "0x100", "96")
         REALLOCATED("003", "0x10", "0x200"),
     3, 0x200, 96},
    // By calling itself.
    {REALLOCATE("002", "0x10", "0x100", "96") ALLOCATE(
         "003", "0x10", "0x200", "96") DEALLOCATE("004", "0x10", "0x100")
         REALLOCATED("005", "0x10", "0x200"),
     3, 0x200, 96},
    // To 0 bytes.
    {REALLOCATE("002", "0x10", "0x100", "0") DEALLOCATE("003", "0x10", "0x100")
         ALLOCATE("004", "0x10", "0x200", "0")
             REALLOCATED("005", "0x10", "0x200"),
     2, 0, 0},
    // It failed, or the log ends before it is done.
    {REALLOCATE("002", "0x10", "0x100", "96"), 1, 0x100, 8},
    // Another thread got what it has let go of.
    {REALLOCATE("002", "0x10", "0x100", "96") ALLOCATE(
         "003", "0x10", "0x100", "4") REALLOCATED("004", "0x10", "0x200")
         DEALLOCATE("005", "0x10", "0x100"),
     5, 0x200, 96},
    // Its first line is lost, and so is what it was about.
    {REALLOCATED("003", "0x10", "0x200"), 1, 0x100, 8},
    {OLD_GOT("02", "reallocate", FROM("0x100", "0x10", "96"), "0x200"), 3,
     0x200, 96},
    // The early form says it all twice.
    {OLD_WANT("02", "reallocate_ex", FROM("0x100", "0x10", "96"))
         OLD_GOT("03", "reallocate_ex", FROM("0x100", "0x10", "96"), "0x100"),
     3, 0x100, 96},
    {OLD_WANT("02", "reallocate", FROM("0x100", "0x10", "96")) OLD_WANT(
         "03", "allocate", OF("0x10", "96"))
         OLD_GOT("04", "allocate", OF("0x10", "96"), "0x200") OLD_WANT(
             "05", "deallocate",
             "\"allocator_ref\": \"0x10\", \"memory_ptr\": \"0x100\"")
             OLD_GOT("06", "reallocate", FROM("0x100", "0x10", "96"), "0x200"),
     3, 0x200, 96},
};

static const char *with_block(const char *rest, char *out, size_t size) {
  bool old = strstr(rest, "payload") != NULL;
  const char *block = old ? OLD_GOT("01", "allocate", OF("0x10", "8"), "0x100")
                          : ALLOCATE("001", "0x10", "0x100", "8");
  ck_assert_int_lt(snprintf(out, size, "%s%s", block, rest), (int)size);
  return out;
}

TEST_LOOP(a_reallocate_is_a_free_and_an_alloc,
          sizeof resizes / sizeof resizes[0]) {
  char text[2048];
  const struct resize *resize = &resizes[_i];
  size_t living = 0;
  assert_ok(read_text(with_block(resize->text, text, sizeof text)));
  ck_assert_uint_eq(trace->event_count, resize->events);
  ck_assert_uint_eq(trace->unknown_count, 0);
  for (size_t i = 0; i < trace->block_count; i++) {
    if (trace->blocks[i].died != TARN_TRACE_NEVER) continue;
    living++;
    ck_assert_uint_eq(trace->blocks[i].address, resize->address);
    ck_assert_uint_eq(trace->blocks[i].size, resize->size);
  }
  ck_assert_uint_eq(living, resize->address != 0);
}

TEST(a_reallocate_of_nothing_is_an_alloc) {
  assert_ok(read_text(REALLOCATE("001", "0x10", "0", "8") ALLOCATE(
      "002", "0x10", "0x100", "8") REALLOCATED("003", "0x10", "0x100")
                          REALLOCATE("004", "0x10", "0", "8")
                              REALLOCATED("005", "0x10", "0x200")));
  ck_assert_uint_eq(trace->event_count, 2);
  assert_event(0, TARN_TRACE_ALLOC, 0x100, 8);
  assert_event(1, TARN_TRACE_ALLOC, 0x200, 8);
}

TEST(blocks_of_nothing_are_passed_over) {
  assert_ok(read_text(
      ALLOCATE("001", "0x10", "0x100", "0") ALLOCATE(
          "002", "0x10", "0x100", "8") ALLOCATE("003", "0x10", "0x200", "0")
          DEALLOCATE("004", "0x10", "0x200") DEALLOCATE("005", "0x10", "0x100")
              DEALLOCATE("006", "0x10", "0x100") DEALLOCATE(
                  "007", "0x10", "0x100") DEALLOCATE("008", "0x10", "(nil)")
                  ALLOCATE("009", "0x10", "(nil)", "8")));
  ck_assert_uint_eq(trace->event_count, 2);
  ck_assert_uint_eq(trace->unknown_count, 1);
}

// A word of a line and what stands in its place.
static const struct alike {
  const char *from;
  const char *to;
} alikes[] = {
    {"{", "\xef\xbb\xbf{"},
    {"{", "\n \r\n\t {"},
    {"}\n", "}\r\n\r\n"},
    {"\"size\"", "\"\\u0073ize\""},
    {"\"allocate\"", "\"alloc\\u0061te\""},
    {"\"0x100\"", "\"100\""},
    {"\"0x100\"", "\"0x0000000000000100\""},
    {"\"tags\":{", "\"tags\":{\"more\":[[{}],1.5e3,null],"},
    {"\"numeric_args\":{", "\"numeric_args\":{\"x\":-1,"},
    {"{\"category\"", "{\"later\":{\"size\":{\"size\":9}},\"category\""},
    {AT("001"), "\"uid\":0," AT("001")},
};

static char *replace(const char *text, const char *from, const char *to) {
  const char *at = strstr(text, from);
  char *out = malloc(strlen(text) + strlen(to) + 1);
  require(at != NULL && out != NULL);
  sprintf(out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  return out;
}

TEST_LOOP(the_same_may_be_written_otherwise, sizeof alikes / sizeof alikes[0]) {
  char *text = replace(ALLOCATE("001", "0x10", "0x100", "8"), alikes[_i].from,
                       alikes[_i].to);
  assert_ok(read_text(text));
  free(text);
  ck_assert_uint_eq(trace->event_count, 1);
  assert_event(0, TARN_TRACE_ALLOC, 0x100, 8);
}

TEST(what_is_of_no_concern_is_passed_over) {
  assert_ok(read_text(VERSION "{\"name\":\"coalesce\"}\n"
                              "{\"event\":\"mark\" and then no JSON\n"
                              "{\"name\":\"register_external_allocation\","
                              "\"size\":{}}\n"
                              "{\"name\":\"\"}\n"));
  ck_assert_uint_eq(trace->event_count, 0);
  ck_assert_uint_eq(trace->device_count, 0);
}

#define SHORT                                             \
  "{\"name\":\"allocate\",\"numeric_args\":{\"size\":8}," \
  "\"string_args\":{\"allocator_ref\":\"0x10\",\"pointer\":\"0x100\"}}\n"

static const struct wrong {
  const char *text;
  const char *error;
} wrongs[] = {
    {"{\n", "made: line 1: column 2: the text ends too early"},
    {"{}\n",
     "made: line 1: neither 'event' nor 'name': not Umpire's replay log"},
    {"{\"a\":1,}\n", "made: line 1: column 8: a key expected"},
    {VERSION "\n[]\n", "made: line 3: column 1: an object expected"},
    {VERSION "REPLAY,77\n", "made: line 2: column 1: a value expected"},
    {VERSION "{\"name\":\"allocate\",\"x\":[[1,2}\n",
     "made: line 2: column 29: a comma or ']' expected"},
    {"{\"name\":3}\n", "made: line 1: column 9: 'name' is not a text"},
    {"{\"name\":\"allocate\",\"event\":\"allocate\"}\n",
     "made: line 1: column 28: 'event' says again what was said before"},
    {"{\"name\":\"allocate\",\"name\":\"allocate\"}\n",
     "made: line 1: column 27: 'name' says again what was said before"},
    {"{\"name\":\"allocate\"}\n",
     "made: line 1: a request without 'allocator_ref'"},
    {"{\"name\":\"allocate\",\"tags\":3}\n",
     "made: line 1: column 27: 'tags' is not an object"},
    {"{\"name\":\"allocate\",\"result\":3}\n",
     "made: line 1: column 29: 'result' is not an object"},
    {"{\"name\":\"allocate\",\"payload\":\"\"}\n",
     "made: line 1: column 30: 'payload' is not an object"},
    {"{\"name\":\"allocate\",\"timestamp\":-1}\n",
     "made: line 1: column 32: 'timestamp' is not an integer from 0 to 2^64 - "
     "1"},
    {"{\"name\":\"allocate\",\"numeric_args\":{\"size\":1.5}}\n",
     "made: line 1: column 43: 'size' is not an integer from 0 to 2^64 - 1"},
    {"{\"name\":\"allocate\",\"numeric_args\":{\"size\":\"1\"}}\n",
     "made: line 1: column 43: 'size' is not an integer from 0 to 2^64 - 1"},
    {"{\"name\":\"allocate\",\"string_args\":{\"pointer\":1}}\n",
     "made: line 1: column 45: 'pointer' is not a text"},
    {"{\"name\":\"allocate\",\"string_args\":{\"pointer\":\"x\"}}\n",
     "made: line 1: column 45: 'pointer' is not an address"},
    {"{\"name\":\"allocate\",\"string_args\":{\"pointer\":\"\"}}\n",
     "made: line 1: column 45: 'pointer' is not an address"},
    {"{\"name\":\"allocate\",\"string_args\":{\"allocator_ref\":\"1\"}}\n",
     "made: line 1: an allocate without 'size'"},
    {"{\"name\":\"deallocate\",\"string_args\":{\"allocator_ref\":\"1\"}}\n",
     "made: line 1: a deallocate without a pointer"},
    {"{\"name\":\"reallocate\",\"string_args\":{\"allocator_ref\":\"1\","
     "\"current_ptr\":\"1\"}}\n",
     "made: line 1: a reallocate without pointer and 'size'"},
    {SHORT SHORT,
     "made: line 2: an alloc of 8 bytes where a block of 8 lives at address "
     "0x100"},
    {ALLOCATE("001", "0x10", "0xffffffffffffffff", "1"),
     "made: line 1: a block of 1 bytes beyond the address space at address "
     "0xffffffffffffffff"},
    {NAMED("001", "0x10", "0x100", "8", "a\\u0000b"),
     "made: line 1: a name with a zero byte"},
    {MAKE("001", "0x10", "\\u0000") VERSION,
     "made: line 1: a name with a zero byte"},
};

TEST_LOOP(mistakes_name_line_and_column, sizeof wrongs / sizeof wrongs[0]) {
  assert_refused(wrongs[_i].text, wrongs[_i].error);
}

TEST(nothing_is_nested_too_deep_to_be_read) {
  char text[4096];
  size_t used = (size_t)sprintf(text, "{\"uid\":1,\"x\":");
  memset(text + used, '[', 2000);
  memcpy(text + used + 2000, "\n", 2);
  assert_status(read_text(text), TARN_E_CORRUPT);
  assert_error_says("made: line 1: column 77: nested more than 64 deep");
}

TEST(logs_grow) {
  grow_all(early, 1);
  grow_all(late, 1);
}

// One of each, so that all can be tried.
static const char small[] = MAKE("000", "0x10", "A") NAMED(
    "001", "0x10", "0x100", "8", "\\n") REALLOCATE("002", "0x10", "0x100", "9")
    REALLOCATED("003", "0x10", "0x200") DEALLOCATE("004", "0x10", "0x200");

TEST(any_byte_may_be_wrong) {
  ck_assert_uint_gt(flip_all(small), 10000);
  ck_assert_uint_gt(
      flip_all(OLD_WANT("02", "reallocate", FROM("0x100", "0x10", "96"))
                   OLD_GOT("03", "reallocate", FROM("0x100", "0x10", "96"),
                           "0x100")),
      10000 / FLIPS);
}

TEST(memory_may_run_out) {
  ck_assert_uint_gt(faults_sweep(scenario_read, (void *)(uintptr_t)late), 0);
  ck_assert_uint_gt(faults_sweep(scenario_read, (void *)(uintptr_t)early), 0);
}

// The shortest line that makes a block, each with an allocator, a name and an
// address of its own, or all of one allocator.
static growing dense_log(size_t lines, bool many) {
  growing log = {0};
  for (size_t i = 1; i <= lines; i++) {
    grow(&log,
         "{\"name\":\"allocate\",\"payload\":{\"size\":1,"
         "\"allocator_ref\":\"%zx\",\"memory_ptr\":\"%zx\","
         "\"name\":\"\\t%zx\"}}\n",
         many ? i : 1, i, i);
  }
  return log;
}

TEST(memory_is_bounded_by_the_file) {
  for (size_t lines = 1; lines < 100000; lines = lines * 5 / 2 + 1) {
    growing one = dense_log(lines, false);
    growing many = dense_log(lines, true);
    require(read_any(one.bytes, one.size) == TARN_OK);
    require(trace->block_count == lines && trace->tag_count == lines + 1);
    require(read_any(many.bytes, many.size) == TARN_OK);
    require(trace->device_count == lines && trace->block_count == 1);
    free(one.bytes);
    free(many.bytes);
  }
}

// 50,000 requests of two allocators with a ring of live blocks each.
TEST(a_long_log_is_read) {
  enum { LIVE = 64, REQUESTS = 50000 };
  growing log = {0};
  for (unsigned i = 0; i < REQUESTS; i++) {
    unsigned slot = i / 2 % LIVE;
    bool freed = i % 2 == 0 && i / 2 >= LIVE;
    unsigned address =
        0x10000 + slot * 4096 + (i / 2 < LIVE ? i % 2 * 2048 : 0);
    for (unsigned of = 1; of <= 2; of++) {
      if (of == 2 && i >= REQUESTS / 2) break;
      grow(&log,
           "{\"category\":\"operation\",\"name\":\"%s\",\"numeric_args\":{"
           "\"size\":%u},\"string_args\":{\"allocator_ref\":\"0x%x\","
           "\"pointer\":\"0x%x\"},\"tags\":{},\"timestamp\":1700000000%u000}\n",
           freed ? "deallocate" : "allocate", 1 + slot, of, address,
           100000 + i);
    }
  }
  assert_ok(read_bytes_of(log.bytes, log.size, NULL));
  free(log.bytes);
  ck_assert_uint_eq(trace->event_count, REQUESTS);
  ck_assert_uint_eq(trace->events[REQUESTS - 1].time_us,
                    UINT64_C(1700000000100000) + REQUESTS - 1);
  ck_assert_uint_eq(trace->live_peak_bytes, (uint64_t)LIVE * (LIVE + 1));
  ck_assert_uint_eq(trace->unknown_count, 0);
}

int main(void) {
  faults_install();
  return run_tests();
}
