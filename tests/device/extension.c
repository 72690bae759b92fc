// What plug-ins offer beyond the ABI: taken in or refused, told to users, and
// how the answers of its slots and the driver's words are read.
#include "device/plugin.h"
#include "kit.h"

#include <stdio.h>
#include <string.h>

#include "tarn/range.h"

static tarn_device_info info_of(tarn_device *device) {
  tarn_device_info info = {.struct_size = sizeof info};
  assert_ok(tarn_device_query(device, &info));
  return info;
}

static tarn_device_ext whole_table(void) {
  fake_ext.there = true;
  return *fake_extension();
}

// --- taking in -------------------------------------------------------------

TEST(no_extension_is_none) {
  tarn_device_ext out;
  assert_ok(tarn__extension_take(NULL, "x", &out));
  ck_assert(out.range_map == NULL);
  ck_assert_uint_eq(tarn__extension_bits(&out), 0);
  tarn_device *device = open_fake();
  tarn_device_info info = info_of(device);
  ck_assert_uint_eq(info.extensions, 0);
  ck_assert_uint_eq(info.alignment, 1);
}

TEST(a_whole_one_is_taken_whole) {
  fake_ext.there = true;
  fake_ext.flags = TARN_EXT_RETAINS;
  tarn_device *device = open_fake();
  tarn_device_info info = info_of(device);
  ck_assert_uint_eq(info.extensions, (1u << 16) - 1);
  ck_assert_uint_eq(info.alignment, 256);
}

TEST(a_later_one_is_cut) {
  struct {
    tarn_device_ext known;
    void *more[3];
  } later = {.known = whole_table()};
  later.known.struct_size = sizeof later;
  later.more[0] = later.more[1] = later.more[2] = &later;
  tarn_device_ext out;
  assert_ok(tarn__extension_take(&later.known, "x", &out));
  ck_assert_uint_eq(out.struct_size, sizeof out);
  ck_assert(out.scatter_add != NULL);
}

// Slots behind struct_size are not looked at.
TEST(an_earlier_one_has_less) {
  tarn_device_ext table = whole_table();
  tarn_device_ext out;
  table.struct_size = offsetof(tarn_device_ext, gather);
  assert_ok(tarn__extension_take(&table, "x", &out));
  ck_assert(out.gather == NULL);
  ck_assert(out.scatter_add == NULL);
  ck_assert(out.pointer_query != NULL);
  // A slot of which only a part is there is none either.
  table.struct_size = offsetof(tarn_device_ext, gather) + 4;
  assert_ok(tarn__extension_take(&table, "x", &out));
  ck_assert(out.gather == NULL);
}

static const size_t no_sizes[] = {
    0, 8, offsetof(tarn_device_ext, alignment) - 1, (64 << 10) + 1, SIZE_MAX};
enum { NO_SIZES = sizeof no_sizes / sizeof no_sizes[0] };

TEST_LOOP(what_is_no_size_is_refused, NO_SIZES) {
  tarn_device_ext table = whole_table();
  tarn_device_ext out;
  table.struct_size = no_sizes[_i];
  assert_fails(tarn__extension_take(&table, "x", &out), TARN_E_UNSUPPORTED,
               "x: its extension says that it has");
  ck_assert(out.alignment == NULL);
}

// The fake one forgets the NUL where its text is as long as the room.
TEST(a_description_is_one_line_with_an_end) {
  static char description[1000];
  memset(description, 'd', sizeof description - 1);
  memcpy(description, "two\nlines", 9);
  fake_ext.there = true;
  fake_ext.description = description;
  tarn_device_info info = info_of(open_fake());
  ck_assert_int_eq(strncmp(info.description, "two lines", 9), 0);
  ck_assert_uint_lt(strlen(info.description), 512);
}

TEST(a_device_without_words_has_none) {
  ck_assert_str_eq(info_of(open_fake()).description, "");
}

TEST(another_version_is_left_unused) {
  fake_ext.there = true;
  fake_ext.version = TARN_DEVICE_EXT_VERSION + 1;
  tarn_device *device = open_fake();
  ck_assert_uint_eq(info_of(device).extensions, 0);
  ck_assert_uint_eq(fake_ext_seen.called, 0);
}

// Slots of which only one is missing, and the one that is named.
static const struct {
  uint64_t missing;
  const char *has;
  const char *lacks;
} halves[] = {
    {FAKE_SLOT(range_granularity), "range_set_access", "range_granularity"},
    {FAKE_SLOT(range_reserve), "range_set_access", "range_reserve"},
    {FAKE_SLOT(range_release), "range_set_access", "range_release"},
    {FAKE_SLOT(memory_create), "range_set_access", "memory_create"},
    {FAKE_SLOT(memory_destroy), "range_set_access", "memory_destroy"},
    {FAKE_SLOT(range_map), "range_set_access", "range_map"},
    {FAKE_SLOT(range_unmap), "range_set_access", "range_unmap"},
    {FAKE_SLOT(range_set_access), "range_unmap", "range_set_access"},
    {FAKE_SLOT(memory_export), "memory_import", "memory_export"},
    {FAKE_SLOT(memory_import), "memory_export", "memory_import"},
    {FAKE_SLOTS_RANGES, "memory_export", "range_map"},
    {FAKE_SLOTS_RANGES | FAKE_SLOTS_SHARING, "range_move", "range_map"},
    {FAKE_SLOT(allocation_export), "allocation_close", "allocation_export"},
    {FAKE_SLOT(allocation_close), "allocation_import", "allocation_close"},
    {FAKE_SLOT(allocate_async), "deallocate_async", "allocate_async"},
    {FAKE_SLOT(deallocate_async), "allocate_async", "deallocate_async"},
    {FAKE_SLOT(host_register), "host_unregister", "host_register"},
    {FAKE_SLOT(host_unregister), "host_register", "host_unregister"},
};
enum { HALVES = sizeof halves / sizeof halves[0] };

TEST_LOOP(half_of_a_set_is_refused, HALVES) {
  tarn_device_ext out;
  fake_ext.missing = halves[_i].missing;
  tarn_device_ext table = whole_table();
  assert_fails(tarn__extension_take(&table, "x", &out), TARN_E_UNSUPPORTED,
               halves[_i].has);
  assert_error_says(halves[_i].lacks);
  ck_assert_uint_eq(tarn__extension_bits(&out), 0);
}

static const uint64_t fine_without[] = {
    FAKE_SLOTS_RANGES | FAKE_SLOTS_SHARING | FAKE_SLOT(range_move),
    FAKE_SLOTS_SHARING,
    FAKE_SLOT(range_move),
    FAKE_SLOT(allocate_async) | FAKE_SLOT(deallocate_async),
    FAKE_SLOT(host_register) | FAKE_SLOT(host_unregister),
    FAKE_SLOT(alignment),
    FAKE_SLOT(gather),
    ~UINT64_C(0),
};
enum { FINE_WITHOUT = sizeof fine_without / sizeof fine_without[0] };

TEST_LOOP(without_a_whole_set_it_is_taken, FINE_WITHOUT) {
  tarn_device_ext out;
  fake_ext.missing = fine_without[_i];
  tarn_device_ext table = whole_table();
  assert_ok(tarn__extension_take(&table, "x", &out));
}

TEST(each_bit_has_a_name) {
  for (unsigned i = 0; i < 16; i++) {
    const char *name =
        tarn_device_extension_name((tarn_device_extension)(1u << i));
    ck_assert_ptr_nonnull(name);
  }
  ck_assert_str_eq(tarn_device_extension_name(TARN_EXTENSION_RANGES), "ranges");
  ck_assert_ptr_null(tarn_device_extension_name((tarn_device_extension)0));
  ck_assert_ptr_null(
      tarn_device_extension_name((tarn_device_extension)(1u << 16)));
  ck_assert_ptr_null(tarn_device_extension_name((tarn_device_extension)3));
}

// --- promises that are none ------------------------------------------------

static const size_t no_alignments[] = {0, 3, 768};

TEST_LOOP(an_alignment_that_is_none_counts_as_1, 3) {
  fake_ext.there = true;
  fake_ext.alignment = no_alignments[_i];
  tarn_device *device = open_fake();
  ck_assert_uint_eq(info_of(device).alignment, 1);
  ck_assert(!(info_of(device).extensions & TARN_EXTENSION_ALIGNMENT));
}

static void count_lines(void *context, tarn_log_level level,
                        const char *message) {
  int *lines = context;
  (void)level;
  (void)message;
  ++*lines;
}

// Which is as if the slot were missing: nothing to be warned of.
TEST(one_device_may_not_know_its_alignment) {
  int lines = 0;
  fake_ext.there = true;
  fake_ext.refusing = FAKE_SLOT(alignment);
  fake_ext.answer = TARN_E_UNSUPPORTED;
  tarn_log_set(count_lines, &lines, TARN_LOG_INFO);
  tarn_device *device = open_fake();
  ck_assert_int_eq(lines, 0);
  ck_assert_uint_eq(info_of(device).alignment, 1);
  ck_assert(!(info_of(device).extensions & TARN_EXTENSION_ALIGNMENT));
  close_device(device);
  tarn_log_set(NULL, NULL, TARN_LOG_ERROR);
}

TEST_LOOP(ranges_without_a_granularity_are_none, 3) {
  size_t size = 1;
  fake_ext.there = true;
  fake_ext.granularity = no_alignments[_i];
  tarn_device *device = open_fake();
  uint32_t bits = info_of(device).extensions;
  ck_assert(
      !(bits & (uint32_t)(TARN_EXTENSION_RANGES | TARN_EXTENSION_SHARING)));
  ck_assert(bits & TARN_EXTENSION_ALIGNMENT);
  assert_status(tarn_range_granularity(device, &size), TARN_E_UNSUPPORTED);
  ck_assert_uint_eq(size, 0);
}

TEST(one_device_may_say_that_it_cannot) {
  tarn_memory memory = 1;
  fake_ext.there = true;
  fake_ext.refusing = FAKE_SLOT(range_granularity);
  fake_ext.answer = TARN_E_UNSUPPORTED;
  tarn_device *device = open_fake();
  assert_fails(tarn_memory_create(device, 65536, 0, &memory),
               TARN_E_UNSUPPORTED, "fake:0: has no address ranges");
  ck_assert_uint_eq(memory, 0);
}

// --- answers ---------------------------------------------------------------

static const struct {
  int answer;
  tarn_status status;
  const char *text;
} answers[] = {
    {1, TARN_FULL, "answered 1 (TARN_FULL)"},
    {-1, TARN_E_INVALID, "answered -1 (TARN_E_INVALID)"},
    {-3, TARN_E_UNSUPPORTED, "answered -3 (TARN_E_UNSUPPORTED)"},
    {-4, TARN_E_DEVICE, "answered -4 (TARN_E_DEVICE)"},
    {-8, TARN_E_NOMEM, "answered -8 (TARN_E_NOMEM)"},
    {-2, TARN_E_DEVICE, "answered -2 (no answer of a slot)"},
    {-9, TARN_E_DEVICE, "answered -9 (no answer of a slot)"},
    {2, TARN_E_DEVICE, "answered 2 (no answer of a slot)"},
    {999, TARN_E_DEVICE, "answered 999 (no answer of a slot)"},
};
enum { ANSWERS = sizeof answers / sizeof answers[0] };

TEST_LOOP(answers_are_mapped, ANSWERS) {
  tarn_memory memory = 1;
  fake_ext.there = true;
  fake_ext.text = "no more of it";
  tarn_device *device = open_fake();
  fake_ext.refusing = FAKE_SLOT(memory_create);
  fake_ext.answer = answers[_i].answer;
  assert_status(tarn_memory_create(device, 65536, 0, &memory),
                answers[_i].status);
  ck_assert_uint_eq(memory, 0);
  assert_error_says("fake:0: memory_create of 65536 bytes answered");
  assert_error_says(answers[_i].text);
  assert_error_says("): no more of it");
}

// --- the driver's words ----------------------------------------------------

TEST(errors_of_the_abi_end_with_the_drivers_words) {
  char bytes[8] = {0};
  tarn_addr addr = 0;
  fake_ext.there = true;
  tarn_device *device = open_fake();
  assert_ok(tarn_device_allocate(tarn_place_on(device), 8, &addr));
  fake.copy_answer = C_ERROR;
  fake_ext.text = "the bus is gone\n";
  assert_status(tarn_copy_h2d(device, addr, bytes, 8, NULL), TARN_E_DEVICE);
  ck_assert_str_eq(tarn_last_error(),
                   "fake:0: memory_copy_h2d of 8 bytes answered 3 (C_ERROR: "
                   "bad argument or wrong use): the bus is gone?");
  fake_ext.text = "";  // nothing to say
  assert_status(tarn_copy_h2d(device, addr, bytes, 8, NULL), TARN_E_DEVICE);
  ck_assert_str_eq(tarn_last_error(),
                   "fake:0: memory_copy_h2d of 8 bytes answered 3 (C_ERROR: "
                   "bad argument or wrong use)");
  fake_ext.text = NULL;  // it writes nothing at all
  assert_status(tarn_copy_h2d(device, addr, bytes, 8, NULL), TARN_E_DEVICE);
  ck_assert_str_eq(tarn_last_error(),
                   "fake:0: memory_copy_h2d of 8 bytes answered 3 (C_ERROR: "
                   "bad argument or wrong use)");
  fake.copy_answer = C_SUCCESS;
  assert_ok(tarn_device_deallocate(tarn_place_on(device), addr, 8));
}

static C_Status fail_to_initialize(void) {
  return C_ERROR;
}

static C_Status fail_to_count(size_t *count) {
  *count = 7;
  return C_FAILED;
}

static C_Status fail_to_list(size_t *ids) {
  (void)ids;
  return C_INTERNAL_ERROR;
}

static int failing;

static void init_failing(CustomRuntimeParams *params) {
  C_DeviceInterface *table = params->interface;
  fake_init(params);
  if (failing == 0) table->initialize = fail_to_initialize;
  if (failing == 1) table->get_device_count = fail_to_count;
  if (failing == 2) table->get_device_list = fail_to_list;
}

static const char *const failures[] = {
    "fake (mine): initialize answered 3",
    "fake (mine): get_device_count answered 2",
    "fake (mine): get_device_list answered 4",
};

TEST_LOOP(so_do_errors_before_there_is_a_device,
          sizeof failures / sizeof failures[0]) {
  char text[128];
  tarn_device *device = NULL;
  failing = _i;
  fake_ext.there = true;
  fake_ext.text = "the bus is gone\n";
  assert_ok(tarn_plugin_register(init_failing, fake_extension, "mine"));
  assert_status(tarn_device_open("fake:0", &device), TARN_E_DEVICE);
  snprintf(text, sizeof text, "%s: the bus is gone?", failures[_i]);
  ck_assert_str_eq(tarn_last_error(), text);
  fake_ext.text = "";
  assert_status(tarn_device_open("fake:0", &device), TARN_E_DEVICE);
  ck_assert_str_eq(tarn_last_error(), failures[_i]);
}

TEST(words_without_end_are_cut) {
  static char endless[2000];
  tarn_memory memory = 0;
  memset(endless, 'x', sizeof endless - 1);
  fake_ext.there = true;
  fake_ext.text = endless;
  tarn_device *device = open_fake();
  fake_ext.refusing = FAKE_SLOT(memory_create);
  fake_ext.answer = TARN_E_DEVICE;
  assert_status(tarn_memory_create(device, 65536, 0, &memory), TARN_E_DEVICE);
  ck_assert_uint_eq(strlen(tarn_last_error()), 511);
}

static void half_a_text(int id, void *stream, char *out, size_t out_size) {
  (void)id;
  (void)stream;
  (void)out_size;
  memcpy(out, "half a text", 11);
}

static const tarn_device_ext half_texts = {
    .struct_size = sizeof half_texts,
    .version = TARN_DEVICE_EXT_VERSION,
    .error_text = half_a_text,
};

static const tarn_device_ext *half_texts_only(void) {
  return &half_texts;
}

// Leaves what a text must not show where the next calls have their own.
static void use_the_stack(void) {
  volatile char used[8192];
  for (size_t i = 0; i < sizeof used; i++)
    used[i] = 'S';
}

TEST(words_that_are_not_ended_bring_nothing_else) {
  char bytes[8] = {0};
  tarn_addr addr = 0;
  assert_ok(tarn_plugin_register(fake_init, half_texts_only, "half"));
  tarn_device *device = open_device("fake:0");
  assert_ok(tarn_device_allocate(tarn_place_on(device), 8, &addr));
  fake.copy_answer = C_ERROR;
  use_the_stack();
  assert_status(tarn_copy_h2d(device, addr, bytes, 8, NULL), TARN_E_DEVICE);
  ck_assert_str_eq(strrchr(tarn_last_error(), ':'), ": half a text");
  fake.copy_answer = C_SUCCESS;
  assert_ok(tarn_device_deallocate(tarn_place_on(device), addr, 8));
}

// A stream's failure has the stream's words, not those of the thread's last
// call, and keeps them.
TEST(a_streams_failure_has_its_own_words) {
  fake_ext.there = true;
  fake_ext.text = "another call";
  fake_ext.stream_text = "index 7 at position 3";
  tarn_device *device = open_fake();
  tarn_stream *stream = stream_on(device);
  fake.sync_answer = C_INTERNAL_ERROR;
  assert_fails(tarn_stream_synchronize(stream), TARN_E_DEVICE,
               "synchronize_stream answered 4 (C_INTERNAL_ERROR): index 7 "
               "at position 3");
  fake.sync_answer = C_SUCCESS;
  fake_ext.stream_text = "later words";
  assert_fails(tarn_stream_query(stream), TARN_E_DEVICE,
               "index 7 at position 3");
  end_failed_stream(stream);
}
