// What options mean: slips of names, lists of pools, numbers of bytes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/format.h"
#include "kit/options.h"
#include "kit/tool.h"
#include "support/run.h"

// --- names and lists -------------------------------------------------------

static const char *name_of(size_t index) {
  static const char *const names[] = {"devices", "replay", "page_unit_pool"};
  return index < 3 ? names[index] : NULL;
}

TEST(nearest_name) {
  ck_assert_str_eq(tool_nearest("reply", name_of), "replay");
  ck_assert_str_eq(tool_nearest("device", name_of), "devices");
  ck_assert_str_eq(tool_nearest("page_unit", name_of), "page_unit_pool");
  ck_assert_str_eq(tool_nearest("dveices", name_of), "devices");
  ck_assert_ptr_null(tool_nearest("xyzzy", name_of));
  ck_assert_ptr_null(tool_nearest("", name_of));
}

static void assert_pools(const char *text, const char *expected) {
  options_list pools = {0};
  char joined[256] = "";
  options_pools_split(text, &pools);
  for (size_t i = 0; i < pools.count; i++) {
    strcat(joined, i > 0 ? " " : "");
    strcat(joined, pools.items[i]);
  }
  ck_assert_str_eq(joined, expected);
  options_list_free(&pools);
}

TEST(pools_keep_their_options) {
  assert_pools("a", "a");
  assert_pools("a,b", "a b");
  assert_pools("a:x=1,y=2,b", "a:x=1,y=2 b");
  assert_pools("a,b:x=1,y=2", "a b:x=1,y=2");
  assert_pools("a:x=1,b:y=2,z=3,c", "a:x=1 b:y=2,z=3 c");
  assert_pools("a,,b", "a  b");
}

// --- bytes -----------------------------------------------------------------

static const tool_verb verb = {.name = "test"};

static void assert_bytes(const char *text, size_t expected) {
  size_t bytes = 0;
  ck_assert_msg(options_bytes_parse(&verb, "--limit", text, &bytes), "%s",
                text);
  ck_assert_uint_eq(bytes, expected);
}

TEST(bytes_by_unit) {
  assert_bytes("1", 1);
  assert_bytes("4096", 4096);
  assert_bytes("64K", 65536);
  assert_bytes("3M", 3u << 20);
  assert_bytes("2G", (size_t)2 << 30);
  assert_bytes("5T", (size_t)5 << 40);
  assert_bytes("9999999999999999999", 9999999999999999999u);
}

TEST(bytes_with_a_point) {
  assert_bytes("1.5K", 1536);
  assert_bytes("0.5M", 524288);
  assert_bytes("6.7G", 7194070221);  // rounded up
  assert_bytes("1.999999K", 2048);
  assert_bytes("1.0000000001T", (size_t)1 << 40);
  assert_bytes("16777215.999999T", UINT64_MAX - 1099510);  // the largest
}

// As they are told, they are what was given.
TEST(bytes_read_as_they_were_given) {
  char text[32], told[FORMAT_SIZE];
  for (size_t hundredths = 100; hundredths < 1000; hundredths++) {
    size_t bytes = 0;
    snprintf(text, sizeof text, "%zu.%02zuG", hundredths / 100,
             hundredths % 100);
    ck_assert(options_bytes_parse(&verb, "--capacity", text, &bytes));
    format_bytes(told, bytes);
    ck_assert_int_eq(strncmp(told, text, 4), 0);
  }
}

TEST(no_bytes) {
  static const char *const wrong[] = {
      "",      "0",   "-1",        "G",
      "1X",    "1GB", "1.5",       "1.G",
      "1.5.G", ".5G", "0.0K",      "1,5G",
      " 1G",   "1 G", "99999999T", "18446744073709551616"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    size_t bytes = 0;
    ck_assert_msg(!options_bytes_parse(&verb, "--limit", wrong[i], &bytes),
                  "%s", wrong[i]);
  }
}
