// Plans of safetensors files: what a file begins with and where its tensors
// are, known before their bytes.
#include "format/safetensors_plan.h"

#include "format/sums.h"
#include "safetensors_kit.h"

static tarn__format_safetensors_plan plan;

static void create(void) {
  tarn_safetensors_writer_destroy(writer);
  assert_ok(tarn_safetensors_writer_create(&writer));
}

static void declare(const char *name, tarn_dtype dtype, int64_t length) {
  const int64_t dims[] = {length};
  assert_ok(
      tarn__safetensors_declare(writer, name, dtype, (tarn_shape){dims, 1}));
}

static void add_text(const char *key, const char *value) {
  assert_ok(tarn_safetensors_add_metadata(writer, key, value));
}

static void make_plan(size_t multiple) {
  assert_ok(tarn__safetensors_plan_init(writer, multiple, &plan));
}

// The byte |i| of a tensor's bytes.
static unsigned char byte_of(size_t tensor, size_t i) {
  return (unsigned char)(tensor * 97 + i * 7);
}

// Makes the planned file, as several writers would: its head and each tensor at
// its offset.
static unsigned char *assemble(const size_t *sizes, size_t count) {
  unsigned char *bytes = calloc(1, plan.size);
  require(bytes != NULL);
  memcpy(bytes, plan.head.items, plan.head.count);
  for (size_t k = 0; k < count; k++) {
    size_t offset = tarn__safetensors_plan_offset(&plan, k);
    require(offset >= plan.head.count && offset + sizes[k] <= plan.size);
    for (size_t i = 0; i < sizes[k]; i++)
      bytes[offset + i] = byte_of(k, i);
  }
  return bytes;
}

static void assert_tensor(const char *name, size_t number, size_t size) {
  const tarn_safetensor *tensor = tarn_safetensors_find(file, name);
  ck_assert_ptr_nonnull(tensor);
  ck_assert_uint_eq(tensor->size, size);
  ck_assert_uint_eq(tensor->offset,
                    tarn__safetensors_plan_offset(&plan, number));
  for (size_t i = 0; i < size; i++)
    require(((const unsigned char *)tensor->data)[i] == byte_of(number, i));
}

// --- what is planned ---------------------------------------------------------

static void declare_some(void) {
  create();
  add_text("k\"", "v\n");
  declare("small", TARN_DTYPE_U8, 5);
  declare("b", TARN_DTYPE_F32, 3);
  declare("a", TARN_DTYPE_F32, 1);
  declare("none", TARN_DTYPE_I64, 0);
  add_text("last", "text");
}

TEST_LOOP(a_planned_file_is_read, 3) {
  static const size_t multiples[] = {8, 64, 4096};
  static const size_t sizes[] = {5, 12, 4, 0};
  declare_some();
  make_plan(multiples[_i]);
  ck_assert_uint_eq(plan.head.count % multiples[_i], 0);
  ck_assert_uint_eq(plan.size, plan.head.count + 21);
  ck_assert_uint_eq(plan.offsets.count, 4);
  unsigned char *bytes = assemble(sizes, 4);
  assert_ok(open_image(bytes, plan.size));
  free(bytes);
  ck_assert_uint_eq(tarn_safetensors_count(file), 4);
  assert_tensor("small", 0, 5);
  assert_tensor("b", 1, 12);
  assert_tensor("a", 2, 4);
  assert_tensor("none", 3, 0);
  ck_assert_str_eq(tarn_safetensors_metadata(file, "k\""), "v\n");
  // In the order of the file.
  static const uint32_t order[] = {3, 2, 1, 0};
  ck_assert_mem_eq(plan.order.items, order, sizeof order);
  tarn__safetensors_plan_deinit(&plan);
}

static tarn_status gather(void *context, const void *bytes, size_t size) {
  unsigned char **at = context;
  memcpy(*at, bytes, size);
  *at += size;
  return TARN_OK;
}

TEST(the_writer_writes_what_is_planned) {
  const int64_t dims[] = {2, 3};
  unsigned char bytes[1024];
  unsigned char *end = bytes;
  create();
  add_text("k", "v");
  assert_ok(tarn_safetensors_add(writer, "u", TARN_DTYPE_U8,
                                 (tarn_shape){dims, 2}, "uvwxyz"));
  assert_ok(tarn_safetensors_add(writer, "i", TARN_DTYPE_I16,
                                 (tarn_shape){dims, 1}, "abcd"));
  assert_ok(tarn_safetensors_write_to(writer, gather, &end));
  make_plan(8);
  ck_assert_uint_eq((size_t)(end - bytes), plan.size);
  ck_assert_mem_eq(bytes, plan.head.items, plan.head.count);
  ck_assert_mem_eq(bytes + tarn__safetensors_plan_offset(&plan, 0), "uvwxyz",
                   6);
  ck_assert_mem_eq(bytes + tarn__safetensors_plan_offset(&plan, 1), "abcd", 4);
  tarn__safetensors_plan_deinit(&plan);
}

TEST(nothing_is_a_head_alone) {
  create();
  make_plan(4096);
  ck_assert_uint_eq(plan.size, 4096);
  assert_ok(open_image(plan.head.items, plan.size));
  ck_assert_uint_eq(tarn_safetensors_count(file), 0);
  tarn__safetensors_plan_deinit(&plan);
}

// --- texts that are filled in ------------------------------------------------

// Checksums: their length is known first, then they.
TEST(a_text_is_filled_in) {
  static const uint32_t sums[] = {0x01234567, 0x89abcdef, 0xffffffff};
  char digits[25] = "000000000000000000000000";
  static const size_t sizes[] = {3};
  uint32_t back[3];
  bool found = false;
  create();
  add_text("\"\n", "\\");
  add_text(TARN__SUMS_CHUNK_KEY, TARN__SUMS_CHUNK_TEXT);
  add_text(TARN__SUMS_KEY, digits);
  add_text("same", digits);
  declare("a", TARN_DTYPE_U8, 3);
  make_plan(4096);
  char *head = plan.head.items;
  ck_assert_uint_eq(plan.values.count, 4);
  ck_assert_mem_eq(head + tarn__safetensors_plan_value(&plan, 0), "\\\\\"", 3);
  ck_assert_mem_eq(head + tarn__safetensors_plan_value(&plan, 1), "1048576\"",
                   8);
  size_t at = tarn__safetensors_plan_value(&plan, 2);
  ck_assert_mem_eq(head + at, digits, 24);
  tarn__sums_to_text(sums, 3, head + at);
  unsigned char *bytes = assemble(sizes, 1);
  assert_ok(open_image(bytes, plan.size));
  free(bytes);
  const char *text = tarn_safetensors_metadata(file, TARN__SUMS_KEY);
  ck_assert_str_eq(text, "0123456789abcdefffffffff");
  ck_assert_str_eq(tarn_safetensors_metadata(file, "same"), digits);
  assert_ok(tarn__sums_of_text(
      path, tarn_safetensors_metadata(file, TARN__SUMS_CHUNK_KEY), text, 3,
      back, &found));
  ck_assert(found);
  ck_assert_mem_eq(back, sums, sizeof sums);
  tarn__safetensors_plan_deinit(&plan);
}

// --- refusals ----------------------------------------------------------------

TEST(a_declared_tensor_is_not_written) {
  create();
  declare("none", TARN_DTYPE_F32, 0);
  assert_ok(tarn_safetensors_write(writer, path));
  declare("some", TARN_DTYPE_F32, 2);
  assert_fails(tarn_safetensors_write(writer, path), TARN_E_INVALID,
               "safetensors: tensor \"some\": its 8 bytes are not known");
}

TEST(what_cannot_be_written_is_not_declared) {
  const int64_t dims[] = {-1};
  const tarn_shape one = {NULL, 0};
  create();
  declare("a", TARN_DTYPE_F32, 2);
  assert_fails(tarn__safetensors_declare(writer, "a", TARN_DTYPE_F32, one),
               TARN_E_INVALID, "tensor \"a\" is there already");
  assert_fails(tarn__safetensors_declare(writer, "b", TARN_DTYPE_F32,
                                         (tarn_shape){dims, 1}),
               TARN_E_INVALID, "tensor \"b\": dimension 0 is -1");
  assert_fails(tarn__safetensors_declare(writer, "b", TARN_DTYPE_NONE, one),
               TARN_E_INVALID, "no dtype");
  assert_fails(tarn__safetensors_declare(NULL, "b", TARN_DTYPE_F32, one),
               TARN_E_INVALID, "NULL");
}

TEST(a_plan_beyond_all_files_is_refused) {
  create();
  declare("a", TARN_DTYPE_U8, INT64_MAX);
  declare("b", TARN_DTYPE_U8, INT64_MAX);
  assert_fails(tarn__safetensors_plan_init(writer, 8, &plan), TARN_E_INVALID,
               "and tensors of 18446744073709551614 overflow");
  ck_assert_ptr_null(plan.head.items);
}

// --- failures ----------------------------------------------------------------

static void plan_all(void *context) {
  (void)context;
  tarn_status status = tarn__safetensors_plan_init(writer, 4096, &plan);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  require((status == TARN_OK) == (plan.size > 0));
  require(status == TARN_OK || plan.head.items == NULL);
  tarn__safetensors_plan_deinit(&plan);
}

TEST(too_little_memory_is_an_error) {
  declare_some();
  ck_assert_uint_gt(faults_sweep(plan_all, NULL), 10);
}

int main(void) {
  faults_install();
  return run_tests();
}
