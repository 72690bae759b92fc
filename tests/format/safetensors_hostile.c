// Damaged and hostile safetensors files: each is refused, with a text that
// names the file, the byte and the value.
#include "safetensors_kit.h"
#include "support/effort.h"

// --- what stands before the header -------------------------------------------

TEST(a_length_that_does_not_fit_is_refused) {
  static const unsigned char wide[8] = {0, 0, 0, 0, 0, 0, 0, 16};
  static const unsigned char all[10] = {255, 255, 255, 255, 255,
                                        255, 255, 255, '{', '}'};
  static const unsigned char three[10] = {3, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
  static const unsigned char capped[8] = {0x01, 0xe1, 0xf5, 0x05};
  static const unsigned char most[8] = {0x00, 0xe1, 0xf5, 0x05};
  assert_status(open_image("", 0), TARN_E_CORRUPT);
  assert_error_says("made: 0 bytes; the length of its header alone has 8");
  assert_status(open_image(three, 7), TARN_E_CORRUPT);
  assert_error_says("made: 7 bytes; the length of its header alone has 8");
  assert_status(open_image(wide, 8), TARN_E_CORRUPT);
  assert_error_says(
      "made: a header of 1152921504606846976 bytes; at most 100000000 are");
  assert_status(open_image(all, 10), TARN_E_CORRUPT);
  assert_error_says("made: a header of 18446744073709551615 bytes; at most");
  assert_status(open_image(capped, 8), TARN_E_CORRUPT);
  assert_error_says("made: a header of 100000001 bytes; at most");
  assert_status(open_image(most, 8), TARN_E_CORRUPT);
  assert_error_says(
      "made: a header of 100000000 bytes, but the file ends after 0");
  assert_status(open_image(three, 10), TARN_E_CORRUPT);
  assert_error_says("made: a header of 3 bytes, but the file ends after 2");
}

TEST(a_header_begins_with_a_brace) {
  static const char first[] = "made: header byte 0: '{' expected";
  assert_refused("", 0, first);
  assert_refused(" {}", 0, first);
  assert_refused("\xef\xbb\xbf{}", 0, first);
  assert_refused("[]", 0, first);
  assert_refused("null", 0, first);
}

// --- tables of refusals ------------------------------------------------------

typedef struct refusal {
  const char *header;
  size_t room;
  const char *what;
} refusal;

static void assert_all_refused(const refusal *rows, size_t count) {
  char what[256];
  for (size_t i = 0; i < count; i++) {
    snprintf(what, sizeof what, "made: header byte %s", rows[i].what);
    assert_refused(rows[i].header, rows[i].room, what);
  }
}

#define ASSERT_ALL(rows) assert_all_refused(rows, sizeof rows / sizeof *rows)

TEST(bad_json_is_refused) {
  static const refusal rows[] = {
      {"{", 0, "1: the text ends too early"},
      {"{}x", 0, "2: more behind the value"},
      {"{}{}", 0, "2: more behind the value"},
      {"{,}", 0, "1: a key expected"},
      {"{\"a\"}", 0, "4: ':' expected"},
      {"{\"a\":{}", 0, "1: tensor \"a\" has no dtype"},
      {"{" TENSOR("a", "U8", "", 0, 1) ",}", 1, "52: a key expected"},
      {"{" TENSOR("\xff", "U8", "", 0, 1) "}", 1,
       "2: bytes that are not UTF-8"},
      {"{" TENSOR("a\\q", "U8", "", 0, 1) "}", 1,
       "3: an escape that JSON does not have"},
      {"{" TENSOR("a", "U8", "01", 0, 1) "}", 1,
       "29: a number with a zero before it"},
      {"{\"a\":{\"x\":tru}}", 0, "10: a word that JSON does not have"},
  };
  ASSERT_ALL(rows);
  assert_status(open_sized("{}\0", 3, 0), TARN_E_CORRUPT);
  assert_error_says("made: header byte 2: more behind the value");
}

TEST(depth_is_bounded) {
  static char header[1 << 16];
  int used = sprintf(header, "{\"a\":{\"x\":");
  memset(header + used, '[', sizeof header - (size_t)used - 1);
  assert_status(open_header(header, 0), TARN_E_CORRUPT);
  assert_error_says("nested more than 64 deep");
  memset(header, '{', sizeof header - 1);
  assert_status(open_header(header, 0), TARN_E_CORRUPT);
  assert_error_says("header byte 1: a key expected");
}

TEST(another_form_is_refused) {
  static const refusal rows[] = {
      {"{\"a\":3}", 0, "5: an object that tells of a tensor expected"},
      {"{\"a\":null}", 0, "5: an object that tells of a tensor expected"},
      {"{\"a\":[\"U8\",[1],[0,1]]}", 1,
       "5: an object that tells of a tensor expected"},
      {"{\"a\":{\"dtype\":8}}", 0, "14: the name of a dtype expected"},
      {"{\"a\":{\"shape\":{}}}", 0, "14: a list of lengths expected"},
      {"{\"a\":{\"shape\":[[]]}}", 0, "15: shape: a number expected"},
      {"{\"a\":{\"data_offsets\":7}}", 0, "21: a list of two offsets expected"},
      {"{\"a\":{\"data_offsets\":[]}}", 0,
       "22: data_offsets: a number expected"},
      {"{\"a\":{\"data_offsets\":[0]}}", 0,
       "23: data_offsets: a number expected"},
      {"{\"a\":{\"data_offsets\":[0,0,0]}}", 0,
       "26: data_offsets are two: the end of the list expected"},
      {"{\"a\":{\"dtype\":\"U8\",\"shape\":[]}}", 0,
       "1: tensor \"a\" has no data_offsets"},
      {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,0]}}", 0,
       "1: tensor \"a\" has no shape"},
      {"{\"a\":{\"shape\":[],\"data_offsets\":[0,0]}}", 0,
       "1: tensor \"a\" has no dtype"},
      {"{\"__metadata__\":[]}", 0, "16: an object of metadata expected"},
      {"{\"__metadata__\":{\"a\":1}}", 0, "21: a text of metadata expected"},
      {"{\"__metadata__\":{\"a\":{}}}", 0, "21: a text of metadata expected"},
  };
  ASSERT_ALL(rows);
}

TEST(what_is_there_twice_is_refused) {
  static const refusal rows[] = {
      {"{" TENSOR("a", "U8", "", 0, 1) "," TENSOR("a", "U8", "", 0, 1) "}", 1,
       "52: tensor \"a\" occurs twice"},
      {"{" TENSOR("a", "U8", "", 0, 1) "," TENSOR("\\u0061", "U8", "", 1,
                                                  2) "}",
       2, "52: tensor \"\\u0061\" occurs twice"},
      {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0,
       "19: \"dtype\" occurs twice"},
      {"{\"a\":{\"shape\":[],\"sh\\u0061pe\":[1]}}", 0,
       "17: \"sh\\u0061pe\" occurs twice"},
      {"{\"a\":{\"data_offsets\":[0,0],\"data_offsets\":[0,0]}}", 0,
       "27: \"data_offsets\" occurs twice"},
      {"{\"__metadata__\":{},\"__metadata__\":{}}", 0,
       "19: \"__metadata__\" occurs twice"},
      {"{\"__metadata__\":null,\"__met\\u0061data__\":{}}", 0,
       "21: \"__metadata__\" occurs twice"},
      {"{\"__metadata__\":{\"a\":\"b\",\"a\":\"b\"}}", 0,
       "25: metadata \"a\" occurs twice"},
  };
  ASSERT_ALL(rows);
}

TEST(a_character_0_is_refused) {
  static const refusal rows[] = {
      {"{" TENSOR("a\\u0000", "U8", "", 0, 1) "}", 1,
       "1: \"a\\u0000\" has a character 0 in it"},
      {"{" TENSOR("a", "U\\u0000", "", 0, 1) "}", 1,
       "14: \"U\\u0000\" has a character 0 in it"},
      {"{\"__metadata__\":{\"\\u0000\":\"b\"}}", 0,
       "17: \"\\u0000\" has a character 0 in it"},
      {"{\"__metadata__\":{\"a\":\"\\u0000b\"}}", 0,
       "21: \"\\u0000b\" has a character 0 in it"},
  };
  ASSERT_ALL(rows);
}

// --- numbers -----------------------------------------------------------------

#define WHOLE "is not a whole number from 0 to "

TEST(numbers_that_are_no_lengths_are_refused) {
  static const refusal rows[] = {
      {"{" TENSOR("a", "U8", "-1", 0, 1) "}", 1,
       "28: shape: -1 " WHOLE "9223372036854775807"},
      {"{" TENSOR("a", "U8", "-0", 0, 0) "}", 0,
       "28: shape: -0 " WHOLE "9223372036854775807"},
      {"{" TENSOR("a", "U8", "2,1.0", 0, 1) "}", 1,
       "30: shape: 1.0 " WHOLE "9223372036854775807"},
      {"{" TENSOR("a", "U8", "1e0", 0, 1) "}", 1,
       "28: shape: 1e0 " WHOLE "9223372036854775807"},
      {"{" TENSOR("a", "U8", "9223372036854775808", 0, 1) "}", 1,
       "28: shape: 9223372036854775808 " WHOLE "9223372036854775807"},
      {"{" TENSOR("a", "U8", "99999999999999999999", 0, 1) "}", 1,
       "28: shape: 99999999999999999999 " WHOLE "9223372036854775807"},
      {"{" TENSOR("a", "U8", "\\\"1\\\"", 0, 1) "}", 1, "28: a value expected"},
      {"{\"a\":{\"data_offsets\":[-1,0]}}", 1,
       "22: data_offsets: -1 " WHOLE "18446744073709551615"},
      {"{\"a\":{\"data_offsets\":[0,0.5]}}", 1,
       "24: data_offsets: 0.5 " WHOLE "18446744073709551615"},
      {"{\"a\":{\"data_offsets\":[0,18446744073709551616]}}", 1,
       "24: data_offsets: 18446744073709551616 " WHOLE "18446744073709551615"},
  };
  ASSERT_ALL(rows);
}

TEST(sizes_that_do_not_fit_are_refused) {
  static const refusal rows[] = {
      {"{" TENSOR("a", "F32", "2,3", 0, 23) "}", 23,
       "1: data_offsets [0, 23] are 23 bytes, but 6 elements of F32 have 24"},
      {"{" TENSOR("a", "U8", "", 0, 0) "}", 0,
       "1: data_offsets [0, 0] are 0 bytes, but 1 elements of U8 have 1"},
      {"{" TENSOR("a", "U8", "0", 0, 1) "}", 1,
       "1: data_offsets [0, 1] are 1 bytes, but 0 elements of U8 have 0"},
      {"{" TENSOR("a", "F4", "3", 0, 2) "}", 2,
       "1: 3 elements of F4 are not a whole number of bytes"},
      {"{" TENSOR("a", "F64", "1152921504606846976", 0, 8) "}", 8,
       "1: the lengths of its shape and F64 overflow"},
      {"{" TENSOR("a", "U8", "1152921504606846976", 0, 8) "}", 8,
       "1: data_offsets [0, 8] are 8 bytes, but 1152921504606846976 elements "
       "of U8 have 1152921504606846976"},
      {"{" TENSOR("a", "U8", "4294967296,4294967296", 0, 0) "}", 0,
       "1: the lengths of its shape and U8 overflow"},
      {"{" TENSOR("a", "F32", "4611686018427387904", 0, 0) "}", 0,
       "1: the lengths of its shape and F32 overflow"},
      {"{" TENSOR("a", "Q9", "4294967296,4294967296", 0, 0) "}", 0,
       "1: the lengths of its shape and 1 byte overflow"},
  };
  ASSERT_ALL(rows);
}

// The count of a U8 tensor is checked in bits, as those of smaller elements
// are: 2^61 bytes is where these no longer fit, far beyond any file.
TEST(lengths_beyond_all_files_are_refused) {
  assert_refused("{" TENSOR("a", "U8", "2305843009213693952", 0, 8) "}", 8,
                 "made: header byte 1: the lengths of its shape and U8 "
                 "overflow");
}

// --- offsets -----------------------------------------------------------------

TEST(offsets_outside_the_file_are_refused) {
  static const refusal rows[] = {
      {"{" TENSOR("a", "U8", "9", 0, 9) "}", 8,
       "46: data_offsets [0, 9] end beyond the 8 bytes of data"},
      {"{" TENSOR("a", "U8", "8", 1, 9) "}", 8,
       "46: data_offsets [1, 9] end beyond the 8 bytes of data"},
      {"{" TENSOR("a", "U8", "1", 18446744073709551614,
                  18446744073709551615) "}",
       8,
       "46: data_offsets [18446744073709551614, 18446744073709551615] end "
       "beyond the 8 bytes of data"},
      {"{" TENSOR("a", "U8", "8", 8, 0) "}", 8,
       "46: data_offsets [8, 0] end before they begin"},
      {"{" TENSOR("a", "U8", "8", 18446744073709551615, 7) "}", 8,
       "46: data_offsets [18446744073709551615, 7] end before they begin"},
  };
  ASSERT_ALL(rows);
}

TEST(overlaps_and_holes_are_refused) {
  static const refusal rows[] = {
      {"{" TENSOR("a", "U8", "3", 0, 3) "," TENSOR("b", "U8", "3", 2, 5) "}", 5,
       "53: tensor \"b\" begins at 2, within or before another that ends at "
       "3"},
      {"{" TENSOR("a", "U8", "2", 0, 2) "," TENSOR("b", "U8", "2", 0, 2) "}", 2,
       "53: tensor \"b\" begins at 0, within or before another that ends at "
       "2"},
      {"{" TENSOR("b", "U8", "1", 1, 2) "," TENSOR("a", "U8", "3", 0, 3) "}", 3,
       "1: tensor \"b\" begins at 1, within or before another that ends at 3"},
      {"{" TENSOR("a", "U8", "3", 0, 3) "," TENSOR("b", "U8", "0", 1, 1) "}", 3,
       "53: tensor \"b\" begins at 1, within or before another that ends at "
       "3"},
      {"{" TENSOR("a", "U8", "1", 1, 2) "}", 2,
       "1: tensor \"a\" begins at 1, but the one before it ends at 0: the "
       "bytes between are no tensor's"},
      {"{" TENSOR("b", "U8", "1", 2, 3) "," TENSOR("a", "U8", "1", 0, 1) "}", 3,
       "1: tensor \"b\" begins at 2, but the one before it ends at 1: the "
       "bytes between are no tensor's"},
      {"{" TENSOR("a", "U8", "1", 0, 1) "}", 2,
       "53: the tensors end at 1, but there are 2 bytes of data"},
      {"{}", 1, "2: the tensors end at 0, but there are 1 bytes of data"},
      {"{" TENSOR("a", "U8", "0", 1, 1) "}", 1,
       "1: tensor \"a\" begins at 1, but the one before it ends at 0: the "
       "bytes between are no tensor's"},
  };
  ASSERT_ALL(rows);
}

// --- what terminals must not get, and what memory must not hold --------------

TEST(texts_are_cut_and_neutral) {
  static char header[100000];
  size_t used = (size_t)sprintf(header, "{\"");
  memset(header + used, 'x', 90000);
  sprintf(header + used + 90000, "\":3}");
  assert_status(open_header(header, 0), TARN_E_CORRUPT);
  ck_assert_uint_lt(strlen(tarn_last_error()), 512);
  assert_status(open_header("{\"a\":{\"\x7f\":1,\"dtype\":\"\xc2\x9b\x7f\","
                            "\"shape\":[],\"data_offsets\":[0,1],\"dtype\":1}}",
                            1),
                TARN_E_CORRUPT);
  ck_assert_ptr_null(strchr(tarn_last_error(), '\x7f'));
  assert_ok(open_header("{}", 0));
  ck_assert_ptr_null(tarn_safetensors_find(file, "\x1b[31m\n"));
  ck_assert_ptr_null(strpbrk(tarn_last_error(), "\x1b\n"));
}

// |piece| with |number| in the place of each '#'; returns its size.
static size_t put_piece(char *out, const char *piece, size_t number) {
  size_t used = 0;
  for (; *piece != '\0'; piece++) {
    if (*piece == '#') used += (size_t)sprintf(out + used, "%zx", number);
    if (*piece != '#') out[used++] = *piece;
  }
  return used;
}

static void assert_memory(const char *start, const char *piece, size_t count,
                          const char *finish) {
  size_t room = strlen(start) + count * (strlen(piece) + 16) + strlen(finish);
  char *header = malloc(room + 1);
  require(header != NULL);
  size_t used = (size_t)sprintf(header, "%s", start);
  for (size_t i = 0; i < count; i++)
    used += put_piece(header + used, piece, i);
  used += (size_t)sprintf(header + used, "%s", finish);
  tarn_safetensors_close(file);
  file = NULL;
  faults_peak_reset();
  // Good or not: it is the memory that counts, and that it is enough.
  tarn_status status = open_sized(header, used, 0);
  ck_assert(status == TARN_OK || status == TARN_E_CORRUPT);
  ck_assert_uint_le(faults_peak(), 64 * used + (1 << 20));
  ck_assert_uint_gt(faults_peak(), used);
  free(header);
}

TEST(memory_is_bounded_by_the_header) {
  enum { COUNT = EFFORT(100000, 20000) };
  assert_memory("{\"x\":{\"dtype\":\"\",\"shape\":[],\"data_offsets\":[0,0]}",
                ",\"#\":{\"dtype\":\"\",\"shape\":[],\"data_offsets\":[0,0]}",
                COUNT, "}");
  assert_memory("{\"\":{\"dtype\":\"\",\"shape\":[],\"data_offsets\":[0,0]}",
                ",\"#\":{\"dtype\":\"#\",\"shape\":[],\"data_offsets\":[0,"
                "0]}",
                COUNT, "}");
  assert_memory("{\"a\":{\"shape\":[0", ",0", COUNT, "]}}");
  assert_memory("{\"__metadata__\":{\"\":\"\"", ",\"#\":\"\"", COUNT, "}}");
  assert_memory("{\"", "#", COUNT, "\":0}");
}

// --- every damage there is ---------------------------------------------------

static const char good[] = "{\"__metadata__\":{\"k\":\"v\"}," TENSOR(
    "b", "F32", "2,1", 4, 12) "," TENSOR("a", "I16", "2", 0,
                                         4) "," TENSOR("c", "BOOL", "", 12,
                                                       13) "} ";

// Reads all that it lists, so that a sanitizer sees what is not there.
static void use_it(void) {
  size_t sum = 0;
  for (size_t i = 0; i < tarn_safetensors_count(file); i++) {
    const tarn_safetensor *tensor = tarn_safetensors_at(file, i);
    require(tarn_safetensors_find(file, tensor->name) == tensor);
    for (size_t k = 0; k < tensor->size; k++)
      require(((const unsigned char *)tensor->data)[k] < 255);
    sum += tensor->size;
  }
  require(sum == 13);
}

TEST(every_byte_can_be_any_other) {
  unsigned char *bytes = NULL;
  size_t size = make_image(good, strlen(good), 13, &bytes);
  size_t taken = 0;
  for (size_t i = 0; i < size - 13; i++) {
    unsigned char was = bytes[i];
    for (int value = 0; value < 256; value += EFFORT(1, 3)) {
      bytes[i] = (unsigned char)value;
      tarn_status status = open_image(bytes, size);
      require(status == TARN_OK || status == TARN_E_CORRUPT);
      if (status == TARN_OK) use_it();
      taken += status == TARN_OK;
    }
    bytes[i] = was;
  }
  ck_assert_uint_gt(taken, 100);  // other names, values and dtypes
  free(bytes);
}

TEST(every_cut_is_refused) {
  unsigned char *bytes = NULL;
  size_t size = make_image(good, strlen(good), 13, &bytes);
  assert_ok(open_image(bytes, size));
  use_it();
  for (size_t cut = 0; cut < size; cut++)
    assert_status(open_image(bytes, cut), TARN_E_CORRUPT);
  free(bytes);
}

int main(void) {
  faults_install();
  return run_tests();
}
