// Safetensors files: reading good ones.
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "safetensors_kit.h"

static const tarn_safetensor *found(const char *name) {
  const tarn_safetensor *tensor = tarn_safetensors_find(file, name);
  ck_assert_msg(tensor != NULL, "%s", tarn_last_error());
  return tensor;
}

static void assert_shape(const tarn_safetensor *tensor, size_t rank,
                         const int64_t *dims) {
  ck_assert_uint_eq(tensor->shape.rank, rank);
  for (size_t i = 0; i < rank; i++)
    ck_assert_int_eq(tensor->shape.dims[i], dims[i]);
}

// --- tensors -----------------------------------------------------------------

TEST(tensors_are_listed_and_found) {
  const int64_t dims[] = {2, 3};
  assert_ok(open_header("{" TENSOR("b", "F32", "2, 3", 2, 26) "," TENSOR(
                            "a", "BF16", "", 0, 2) "}  ",
                        26));
  ck_assert_uint_eq(tarn_safetensors_count(file), 2);
  const tarn_safetensor *b = tarn_safetensors_at(file, 0);
  ck_assert_str_eq(b->name, "b");
  ck_assert_int_eq(b->dtype, TARN_DTYPE_F32);
  ck_assert_str_eq(b->dtype_text, "F32");
  assert_shape(b, 2, dims);
  ck_assert_uint_eq(b->size, 24);
  ck_assert_ptr_eq(b->data, image + b->offset);
  ck_assert_uint_eq(((const unsigned char *)b->data)[0], 2);
  ck_assert_ptr_eq(found("b"), b);
  ck_assert_ptr_eq(found("a"), tarn_safetensors_at(file, 1));
  ck_assert_uint_eq(found("a")->shape.rank, 0);
  ck_assert_uint_eq(found("a")->offset + 2, b->offset);
  ck_assert_ptr_null(tarn_safetensors_at(file, 2));
  ck_assert_ptr_null(tarn_safetensors_find(file, "c"));
  assert_error_says("no tensor \"c\" among 2");
  ck_assert_ptr_null(tarn_safetensors_find(file, ""));
}

static const struct dtype_row {
  const char *text;
  tarn_dtype dtype;
  size_t bits;
} dtype_rows[] = {
    {"F64", TARN_DTYPE_F64, 64},         {"F32", TARN_DTYPE_F32, 32},
    {"F16", TARN_DTYPE_F16, 16},         {"BF16", TARN_DTYPE_BF16, 16},
    {"I64", TARN_DTYPE_I64, 64},         {"I32", TARN_DTYPE_I32, 32},
    {"I16", TARN_DTYPE_I16, 16},         {"I8", TARN_DTYPE_I8, 8},
    {"U64", TARN_DTYPE_U64, 64},         {"U32", TARN_DTYPE_U32, 32},
    {"U16", TARN_DTYPE_U16, 16},         {"U8", TARN_DTYPE_U8, 8},
    {"BOOL", TARN_DTYPE_BOOL, 8},        {"C64", TARN_DTYPE_NONE, 64},
    {"F8_E4M3", TARN_DTYPE_NONE, 8},     {"F8_E5M2", TARN_DTYPE_NONE, 8},
    {"F8_E8M0", TARN_DTYPE_NONE, 8},     {"F8_E4M3FNUZ", TARN_DTYPE_NONE, 8},
    {"F8_E5M2FNUZ", TARN_DTYPE_NONE, 8}, {"F6_E2M3", TARN_DTYPE_NONE, 6},
    {"F6_E3M2", TARN_DTYPE_NONE, 6},     {"F4", TARN_DTYPE_NONE, 4},
};
enum { DTYPE_ROWS = sizeof dtype_rows / sizeof *dtype_rows };

TEST(every_dtype_has_its_size) {
  char header[128];
  for (int i = 0; i < DTYPE_ROWS; i++) {
    const struct dtype_row *row = &dtype_rows[i];
    size_t size = row->bits;  // of eight elements
    snprintf(
        header, sizeof header,
        "{\"a\":{\"dtype\":\"%s\",\"shape\":[8],\"data_offsets\":[0,%zu]}}",
        row->text, size);
    assert_ok(open_header(header, size));
    ck_assert_int_eq(found("a")->dtype, row->dtype);
    ck_assert_str_eq(found("a")->dtype_text, row->text);
    ck_assert_uint_eq(found("a")->size, size);
    snprintf(
        header, sizeof header,
        "{\"a\":{\"dtype\":\"%s\",\"shape\":[8],\"data_offsets\":[0,%zu]}}",
        row->text, size + 1);
    assert_status(open_header(header, size + 1), TARN_E_CORRUPT);
  }
}

TEST(dtypes_of_later_versions_are_taken_as_they_stand) {
  assert_ok(open_header("{" TENSOR("a", "Q\\u0034_K", "7", 0, 3) "," TENSOR(
                            "b", "Q4_K", "", 3, 4) "}",
                        4));
  ck_assert_int_eq(found("a")->dtype, TARN_DTYPE_NONE);
  ck_assert_str_eq(found("a")->dtype_text, "Q4_K");
  ck_assert_str_eq(found("b")->dtype_text, "Q4_K");
  ck_assert_uint_eq(found("a")->size, 3);
  ck_assert(!found("a")->aligned);
}

TEST(alignment_is_told_by_address) {
  static const char at_8[] = "{" TENSOR("a", "F64", "1", 0, 8) "}";
  char header[128];
  // malloc's addresses are multiples of 16, the header begins at 8.
  for (size_t blanks = 0; blanks < 8; blanks++) {
    snprintf(header, sizeof header, "%s%*s", at_8, (int)blanks, "");
    assert_ok(open_header(header, 8));
    ck_assert(found("a")->aligned == (strlen(header) % 8 == 0));
  }
  assert_ok(open_header(
      "{" TENSOR("a", "U8", "1", 0, 1) "," TENSOR(
          "b", "F4", "2", 1, 2) "," TENSOR("c", "F32", "0", 2, 2) "}",
      2));
  ck_assert(found("a")->aligned && found("b")->aligned && found("c")->aligned);
}

TEST(tensors_without_bytes_are_tensors) {
  const int64_t dims[] = {0, INT64_MAX, 5};
  assert_ok(open_header(
      "{" TENSOR("", "F32", "0,9223372036854775807,5", 0, 0) "," TENSOR(
          "b", "U8", "1", 0, 1) "," TENSOR("c", "I16", "2,0", 1, 1) "}",
      1));
  assert_shape(found(""), 3, dims);
  ck_assert_ptr_null(found("")->data);
  ck_assert_uint_eq(found("c")->size, 0);
  assert_ok(open_header("{}", 0));
  ck_assert_uint_eq(tarn_safetensors_count(file), 0);
  ck_assert_ptr_null(tarn_safetensors_find(file, "a"));
  assert_error_says("no tensor \"a\" among 0");
}

// Names are what their escapes mean.
TEST(names_are_any_text) {
  static char header[10200];
  static char name[10001];
  assert_ok(open_header("{" TENSOR("\\u00e9\\n\\\"\\ud834\\udd1e", "U8", "", 0,
                                   1) "," TENSOR("x/\x7f", "U8", "", 1, 2) "}",
                        2));
  ck_assert_uint_eq(found("\xc3\xa9\n\"\xf0\x9d\x84\x9e")->size, 1);
  ck_assert_uint_eq(found("x/\x7f")->size, 1);
  memset(name, 'n', sizeof name - 1);
  int size = snprintf(header, sizeof header,
                      "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],"
                      "\"data_offsets\":[0,1]}}",
                      name);
  assert_ok(open_sized(header, (size_t)size, 1));
  ck_assert_uint_eq(found(name)->size, 1);
}

TEST(any_rank_is_read) {
  enum { RANK = 1000 };
  static char header[2 * RANK + 100];
  size_t used =
      (size_t)sprintf(header, "{\"a\":{\"dtype\":\"U8\",\"shape\":[1");
  for (int i = 1; i < RANK; i++)
    used += (size_t)sprintf(header + used, ",1");
  sprintf(header + used, "],\"data_offsets\":[0,1]}}");
  assert_ok(open_header(header, 1));
  ck_assert_uint_eq(found("a")->shape.rank, RANK);
  ck_assert_int_eq(found("a")->shape.dims[RANK - 1], 1);
}

TEST(keys_that_are_not_known_mean_nothing) {
  assert_ok(open_header(
      "{\"a\":{\"x\":[{\"dtype\":3}],\"data_offsets\":[0,1],\"x\":null,"
      "\"shape\":[1],\"dtype\":\"U8\",\"y\":1e9}}\n\t ",
      1));
  ck_assert_int_eq(found("a")->dtype, TARN_DTYPE_U8);
}

TEST(many_tensors_are_found) {
  enum { COUNT = 20000 };
  char *header = malloc(COUNT * 96);
  char name[16];
  require(header != NULL);
  size_t used = (size_t)sprintf(header, "{");
  for (int i = 0; i < COUNT; i++) {
    // Backwards, so that they have to be sorted.
    used += (size_t)sprintf(
        header + used,
        "%s\"t%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
        i > 0 ? "," : "", i, COUNT - 1 - i, COUNT - i);
  }
  used += (size_t)sprintf(header + used, "}");
  faults_peak_reset();
  assert_ok(open_sized(header, used, COUNT));
  ck_assert_uint_le(faults_peak(), 64 * used + (1 << 20));
  for (int i = 0; i < COUNT; i++) {
    sprintf(name, "t%d", i);
    const tarn_safetensor *tensor = tarn_safetensors_find(file, name);
    require(tensor != NULL && tensor == tarn_safetensors_at(file, (size_t)i));
    require(*(const unsigned char *)tensor->data ==
            (unsigned char)(COUNT - 1 - i));
  }
  free(header);
}

// --- metadata ----------------------------------------------------------------

TEST(metadata_is_text_by_text) {
  const char *key = NULL;
  const char *value = NULL;
  assert_ok(open_header(
      "{\"__metadata__\":{\"format\":\"pt\",\"\":\"\\u00e9\"}," TENSOR(
          "a", "U8", "", 0, 1) "}",
      1));
  ck_assert_uint_eq(tarn_safetensors_count(file), 1);
  ck_assert_uint_eq(tarn_safetensors_metadata_count(file), 2);
  ck_assert_str_eq(tarn_safetensors_metadata(file, "format"), "pt");
  ck_assert_str_eq(tarn_safetensors_metadata(file, ""), "\xc3\xa9");
  ck_assert(tarn_safetensors_metadata_at(file, 0, &key, &value));
  ck_assert_str_eq(key, "format");
  ck_assert_str_eq(value, "pt");
  ck_assert(!tarn_safetensors_metadata_at(file, 2, &key, &value));
  ck_assert(key == NULL && value == NULL);
  ck_assert_ptr_null(tarn_safetensors_metadata(file, "a"));
  assert_error_says("no metadata \"a\" among 2");
  ck_assert_ptr_null(tarn_safetensors_find(file, "__metadata__"));
}

TEST(no_metadata_is_none) {
  assert_ok(open_header("{\"__metadata__\":{}}", 0));
  ck_assert_uint_eq(tarn_safetensors_metadata_count(file), 0);
  assert_ok(open_header("{\"__metadata__\":null}", 0));
  ck_assert_uint_eq(tarn_safetensors_metadata_count(file), 0);
}

// --- files -------------------------------------------------------------------

TEST(a_file_is_mapped_and_not_copied) {
  static const char header[] =
      "{" TENSOR("a", "F32", "262144", 0, 1048576) "}  ";
  unsigned char *bytes = NULL;
  size_t size = make_image(header, strlen(header), 1 << 20, &bytes);
  write_file(bytes, size);
  faults_peak_reset();
  assert_ok(tarn_safetensors_open(path, &file));
  ck_assert_uint_lt(faults_peak(), 64 << 10);
  const tarn_safetensor *a = found("a");
  ck_assert_mem_eq(a->data, bytes + a->offset, a->size);
  ck_assert(a->aligned == (a->offset % 4 == 0));
  // The pages are the file's: they stay when another one takes its place.
  ck_assert_int_eq(unlink(path), 0);
  write_file("x", 1);
  ck_assert_mem_eq(a->data, bytes + a->offset, a->size);
  free(bytes);
}

TEST(what_is_no_file_is_named) {
  assert_status(tarn_safetensors_open(path, &file), TARN_E_IO);
  assert_error_says("made.safetensors: No such file");
  assert_status(tarn_safetensors_open(folder, &file), TARN_E_IO);
  assert_error_says("not a regular file");
  ck_assert_int_eq(mkfifo(path, 0600), 0);
  assert_status(tarn_safetensors_open(path, &file), TARN_E_IO);
  assert_error_says("not a regular file");
  unlink(path);
  write_file("", 0);
  assert_status(tarn_safetensors_open(path, &file), TARN_E_CORRUPT);
  assert_error_says("made.safetensors: 0 bytes; the length");
  ck_assert_ptr_null(file);
}

TEST(wrong_use_is_refused) {
  const char *key = "";
  const char *value = "";
  assert_status(tarn_safetensors_open(NULL, &file), TARN_E_INVALID);
  assert_status(tarn_safetensors_open(path, NULL), TARN_E_INVALID);
  assert_status(tarn_safetensors_open_bytes(NULL, 8, "x", &file),
                TARN_E_INVALID);
  assert_status(tarn_safetensors_open_bytes("", 1, NULL, &file),
                TARN_E_INVALID);
  assert_status(tarn_safetensors_open_bytes("", 1, "x", NULL), TARN_E_INVALID);
  assert_status(tarn_safetensors_open_bytes(NULL, 0, "x", &file),
                TARN_E_CORRUPT);
  tarn_safetensors_close(NULL);
  ck_assert_uint_eq(tarn_safetensors_count(NULL), 0);
  ck_assert_ptr_null(tarn_safetensors_at(NULL, 0));
  ck_assert_ptr_null(tarn_safetensors_find(NULL, "a"));
  ck_assert_uint_eq(tarn_safetensors_metadata_count(NULL), 0);
  ck_assert(!tarn_safetensors_metadata_at(NULL, 0, &key, &value));
  ck_assert_ptr_null(tarn_safetensors_metadata(NULL, "a"));
  assert_ok(open_header("{}", 0));
  ck_assert_ptr_null(tarn_safetensors_find(file, NULL));
  ck_assert_ptr_null(tarn_safetensors_metadata(file, NULL));
}

// --- faults ------------------------------------------------------------------

static void open_and_close(void *context) {
  tarn_safetensors *opened = NULL;
  (void)context;
  tarn_status status = tarn_safetensors_open(path, &opened);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  require((status == TARN_OK) == (opened != NULL));
  tarn_safetensors_close(opened);
}

TEST(too_little_memory_is_an_error) {
  static const char header[] =
      "{\"__metadata__\":{\"a\":\"b\",\"c\":\"d\"}," TENSOR(
          "x", "Q9", "1,2", 2, 4) "," TENSOR("y", "U16", "1", 0, 2) "}";
  unsigned char *bytes = NULL;
  size_t size = make_image(header, strlen(header), 4, &bytes);
  write_file(bytes, size);
  free(bytes);
  ck_assert_uint_gt(faults_sweep(open_and_close, NULL), 20);
}

int main(void) {
  faults_install();
  return run_tests();
}
