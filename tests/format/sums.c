// Checksums of a file's data: the block behind an array, byte by byte, and the
// text of metadata.
#include "format/sums.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "support/run.h"

static const unsigned char id[] = "0123456789abcdef";
static tarn__format_sums_place place;
static tarn__format_sums sums;
static unsigned char *block;

// A block of |count| sums, in memory of just its size.
static void make_block(size_t count) {
  uint32_t *numbers = malloc((count + 1) * sizeof *numbers);
  require(numbers != NULL);
  for (size_t i = 0; i < count; i++)
    numbers[i] = (uint32_t)i * 0x9e3779b9u + 1;
  size_t size = count * TARN__SUMS_CHUNK - (count > 0 ? 3 : 0);
  require(tarn__sums_place(4096, size, &place));
  require(place.count == count);
  block = malloc(place.size);
  require(block != NULL);
  tarn__sums_write(&place, id, numbers, block);
  free(numbers);
}

static void free_block(void) {
  free(block);
  block = NULL;
}

FIXTURE(NULL, free_block);

// |size| bytes are there of a file that ends |end| bytes behind the block's
// begin.
static tarn_status read_part(size_t size, size_t end) {
  unsigned char *bytes = malloc(size > 0 ? size : 1);
  require(bytes != NULL);
  if (size > 0) memcpy(bytes, block, size);
  memset(&sums, 0xee, sizeof sums);
  tarn_status status =
      tarn__sums_read("a.npy", &place, bytes, size, place.offset + end, &sums);
  require(status == TARN_OK || (!sums.found && sums.count == 0));
  free(bytes);
  return status;
}

static tarn_status read_block(void) {
  memset(&sums, 0xee, sizeof sums);
  return tarn__sums_read("a.npy", &place, block, place.size,
                         place.offset + place.size, &sums);
}

// --- places ------------------------------------------------------------------

TEST(a_block_follows_the_array) {
  static const struct {
    size_t array_offset;
    size_t array_size;
    size_t count;
    size_t offset;
  } places[] = {{4096, 0, 0, 4096},
                {4096, 1, 1, 8192},
                {4096, 4096, 1, 8192},
                {4096, 4097, 1, 12288},
                {128, 100, 1, 4096},
                {128, 0, 0, 4096},
                {4096, 1 << 20, 1, (1 << 20) + 4096},
                {4096, (1 << 20) + 1, 2, (1 << 20) + 8192},
                {80, (1 << 20) + 1, 2, (1 << 20) + 4096}};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    ck_assert(
        tarn__sums_place(places[i].array_offset, places[i].array_size, &place));
    ck_assert_uint_eq(place.count, places[i].count);
    ck_assert_uint_eq(place.offset, places[i].offset);
    ck_assert_uint_eq(place.size, 64 + 4 * places[i].count);
    ck_assert_uint_eq(tarn__sums_count(places[i].array_size), places[i].count);
  }
}

TEST(a_place_beyond_all_files_is_refused) {
  ck_assert(!tarn__sums_place(4096, SIZE_MAX, &place));
  ck_assert(!tarn__sums_place(4096, SIZE_MAX - 4096, &place));
  ck_assert(!tarn__sums_place(4096, SIZE_MAX - 8192, &place));
  ck_assert_uint_eq(place.size, 0);
  ck_assert(tarn__sums_place(4096, SIZE_MAX / 2, &place));
}

// --- the form ----------------------------------------------------------------

// As it is written down in sums.h, whatever the processor's order of bytes.
TEST(a_block_is_as_it_is_described) {
  static const unsigned char expected[] = {
      'T', 'A', 'R', 'N', 'S', 'U', 'M', 'S', 1, 0, 0,  0, 0, 0, 16, 0,  //
      0,   16,  0,   0,   0,   0,   0,   0,   1, 0, 16, 0, 0, 0, 0,  0,  //
      '0', '1', '2', '3', '4', '5', '6', '7',                            //
      '8', '9', 'a', 'b', 'c', 'd', 'e', 'f', 2, 0, 0,  0, 0, 0, 0,  0};
  static const uint32_t numbers[] = {0x01020304, 0xfffefdfc};
  static const unsigned char packed[] = {4, 3, 2, 1, 0xfc, 0xfd, 0xfe, 0xff};
  unsigned char bytes[72];
  ck_assert(tarn__sums_place(4096, (1 << 20) + 1, &place));
  ck_assert_uint_eq(place.size, sizeof bytes);
  tarn__sums_write(&place, id, numbers, bytes);
  ck_assert_mem_eq(bytes, expected, sizeof expected);
  ck_assert_mem_eq(bytes + 64, packed, sizeof packed);
  uint32_t sum = tarn__crc32c(0, packed, sizeof packed);
  for (int i = 0; i < 4; i++)
    ck_assert_uint_eq(bytes[56 + i], sum >> 8 * i & 255);
  sum = tarn__crc32c(0, bytes, 60);
  for (int i = 0; i < 4; i++)
    ck_assert_uint_eq(bytes[60 + i], sum >> 8 * i & 255);
}

TEST(what_is_written_is_read) {
  static const size_t counts[] = {0, 1, 2, 3, 1000};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    make_block(counts[i]);
    assert_ok(read_block());
    ck_assert(sums.found);
    ck_assert_uint_eq(sums.count, counts[i]);
    ck_assert_mem_eq(sums.id, id, TARN__SUMS_ID);
    for (size_t k = 0; k < counts[i]; k++)
      require(tarn__sums_at(&sums, k) == (uint32_t)k * 0x9e3779b9u + 1);
    free_block();
  }
}

// --- none --------------------------------------------------------------------

TEST(a_file_may_have_none) {
  make_block(2);
  assert_ok(read_part(0, 0));
  ck_assert(!sums.found);
  // An array that is not followed up to there.
  assert_ok(tarn__sums_read("a.npy", &place, NULL, 0, 5000, &sums));
  ck_assert(!sums.found);
  // Something else of another size follows.
  memset(block, 'x', place.size);
  for (size_t size = 1; size < place.size; size++) {
    assert_ok(read_part(size, size));
    require(!sums.found);
  }
  assert_ok(read_part(place.size, place.size + 1));
  ck_assert(!sums.found);
}

// --- damage ------------------------------------------------------------------

TEST(each_bit_that_changes_is_found) {
  make_block(3);
  for (size_t i = 0; i < 8 * place.size; i++) {
    char text[32];
    size_t at = i / 8;
    block[at] ^= (unsigned char)(1 << i % 8);
    assert_status(read_block(), TARN_E_CORRUPT);
    // The field, or the sum over what could be anything.
    size_t first = at < 8    ? at
                   : at < 16 ? at / 4 * 4
                   : at < 32 ? at / 8 * 8
                   : at < 48 ? 60
                   : at < 56 ? 48
                   : at < 64 ? 60
                             : 64;
    snprintf(text, sizeof text, "a.npy: byte %zu: ", place.offset + first);
    require(strncmp(tarn_last_error(), text, strlen(text)) == 0);
    block[at] ^= (unsigned char)(1 << i % 8);
  }
  assert_ok(read_block());
}

TEST(what_is_damaged_is_said) {
  make_block(1);
  block[0] = 'X';
  assert_fails(read_block(), TARN_E_CORRUPT,
               "a.npy: byte 1052672: 0x58, where checksums have 0x54");
  block[0] = 'T';
  block[13] ^= 1;
  assert_fails(read_block(), TARN_E_CORRUPT,
               "byte 1052684: checksums: the bytes of a chunk is 1048832, "
               "1048576 expected");
  block[13] ^= 1;
  block[32] ^= 1;
  assert_fails(read_block(), TARN_E_CORRUPT,
               "byte 1052732: checksums: their head has another sum");
  block[32] ^= 1;
  block[64] ^= 1;
  assert_fails(read_block(), TARN_E_CORRUPT,
               "byte 1052736: checksums: the 1 sums have another sum, 0x");
}

// At each byte, whether the file was that short all the time or is so now.
TEST(a_block_that_is_cut_is_found) {
  make_block(3);
  for (size_t size = 1; size < place.size; size++) {
    char text[96];
    snprintf(text, sizeof text,
             "a.npy: the checksums are bytes %zu to %zu, but the file ends at "
             "%zu",
             place.offset, place.offset + place.size, place.offset + size);
    assert_status(read_part(size, size), TARN_E_CORRUPT);
    require(strcmp(tarn_last_error(), text) == 0);
    assert_status(read_part(size, place.size), TARN_E_CORRUPT);
    require(strcmp(tarn_last_error(), text) == 0);
  }
  assert_fails(read_part(0, place.size), TARN_E_CORRUPT, "but the file ends");
  assert_fails(read_part(place.size, place.size + 1), TARN_E_CORRUPT,
               "but the file ends at");
}

// Changes a field and makes the head's sum right again.
static void set_field(size_t at, unsigned char value) {
  block[at] = value;
  uint32_t sum = tarn__crc32c(0, block, 60);
  for (int i = 0; i < 4; i++)
    block[60 + i] = (unsigned char)(sum >> 8 * i);
}

TEST(a_later_version_is_not_damage) {
  make_block(1);
  set_field(8, 2);
  assert_fails(read_block(), TARN_E_UNSUPPORTED,
               "byte 1052680: checksums of version 2; 1 is read");
  set_field(8, 0);
  assert_fails(read_block(), TARN_E_CORRUPT, "the version is 0, 1 expected");
}

TEST(a_block_of_another_array_is_refused) {
  make_block(1);
  set_field(24, 7);
  assert_fails(read_block(), TARN_E_CORRUPT,
               "the array's size is 1048327, 1048573 expected");
  set_field(24, (unsigned char)place.array_size);
  set_field(17, 0);
  assert_fails(read_block(), TARN_E_CORRUPT,
               "the array's offset is 0, 4096 expected");
  set_field(17, 16);
  set_field(48, 2);
  assert_fails(read_block(), TARN_E_CORRUPT,
               "the number of sums is 2, 1 expected");
}

// --- texts -------------------------------------------------------------------

TEST(a_text_has_eight_digits_for_each) {
  static const uint32_t numbers[] = {0, 0x1, 0xdeadbeef, 0xffffffff};
  char text[33] = {0};
  uint32_t back[4] = {7, 7, 7, 7};
  bool found = false;
  tarn__sums_to_text(numbers, 4, text);
  ck_assert_str_eq(text, "0000000000000001deadbeefffffffff");
  assert_ok(tarn__sums_of_text("a", "1048576", text, 4, back, &found));
  ck_assert(found);
  ck_assert_mem_eq(back, numbers, sizeof back);
  assert_ok(tarn__sums_of_text("a", "1048576", "", 0, back, &found));
  ck_assert(found);
  assert_ok(tarn__sums_of_text("a", NULL, NULL, 4, back, &found));
  ck_assert(!found);
}

static void assert_no_text(const char *chunk, const char *text, size_t count,
                           const char *what) {
  uint32_t back[4];
  bool found = true;
  assert_fails(tarn__sums_of_text("a", chunk, text, count, back, &found),
               TARN_E_CORRUPT, what);
  ck_assert(!found);
}

TEST(a_text_of_another_form_is_refused) {
  assert_no_text(NULL, "01234567", 1,
                 "a: metadata \"tarn.crc32c\" without \"tarn.crc32c.chunk\"");
  assert_no_text("1048576", NULL, 1,
                 "a: metadata \"tarn.crc32c.chunk\" without \"tarn.crc32c\"");
  assert_no_text("4096", "01234567", 1,
                 "a: metadata \"tarn.crc32c.chunk\" is \"4096\", \"1048576\" "
                 "expected");
  assert_no_text("1048576", "0123456", 1,
                 "a: metadata \"tarn.crc32c\" has 7 digits, 8 for each of 1 "
                 "chunks expected");
  assert_no_text("1048576", "0123456789abcdef", 1, "has 16 digits");
  assert_no_text("1048576", "", 1, "has 0 digits");
  assert_no_text("1048576", "0123456F", 1,
                 "a: metadata \"tarn.crc32c\": character 7 is none of "
                 "0123456789abcdef");
}
