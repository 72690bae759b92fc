// Safetensors files: what is written, and that it is read again as it was, by
// Tarn and, where it is there, by the Python package of the format.
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "safetensors_kit.h"

typedef struct gathered {
  unsigned char bytes[1 << 22];
  size_t size;
  size_t calls;
  size_t fails_at;  // call; 0: never
} gathered;

static gathered out;

static tarn_status gather(void *context, const void *bytes, size_t size) {
  gathered *all = context;
  if (++all->calls == all->fails_at) return TARN_FULL;
  require(size > 0 && size <= sizeof all->bytes - all->size);
  memcpy(all->bytes + all->size, bytes, size);
  all->size += size;
  return TARN_OK;
}

static void create(void) {
  tarn_safetensors_writer_destroy(writer);
  assert_ok(tarn_safetensors_writer_create(&writer));
}

static void add(const char *name, tarn_dtype dtype, size_t rank,
                const int64_t *dims, const void *data) {
  assert_ok(tarn_safetensors_add(writer, name, dtype, (tarn_shape){dims, rank},
                                 data));
}

// What was written is that header, blanks up to a multiple of 8, and |size|
// bytes at |data|.
static void assert_gathered(const char *header, const void *data, size_t size) {
  size_t length = strlen(header);
  size_t padded = (length + 7) / 8 * 8;
  out.size = out.calls = out.fails_at = 0;
  assert_ok(tarn_safetensors_write_to(writer, gather, &out));
  ck_assert_uint_eq(out.size, 8 + padded + size);
  ck_assert_uint_eq(out.bytes[0], padded);
  ck_assert_msg(memcmp(out.bytes + 8, header, length) == 0,
                "'%.*s' is not '%s'", (int)length, out.bytes + 8, header);
  for (size_t i = length; i < padded; i++)
    ck_assert_uint_eq(out.bytes[8 + i], ' ');
  if (size > 0) ck_assert_mem_eq(out.bytes + 8 + padded, data, size);
}

// --- the form ----------------------------------------------------------------

TEST(nothing_is_an_empty_file) {
  create();
  assert_gathered("{}", NULL, 0);
  assert_ok(open_image(out.bytes, out.size));
  ck_assert_uint_eq(tarn_safetensors_count(file), 0);
}

TEST(larger_elements_stand_first_then_names) {
  const int64_t dims[] = {2};
  create();
  add("u8", TARN_DTYPE_U8, 0, NULL, "\x01");
  add("b", TARN_DTYPE_U16, 1, dims, "\x02\x03\x04\x05");
  add("a", TARN_DTYPE_U16, 0, NULL, "\x06\x07");
  add("f", TARN_DTYPE_F32, 0, NULL, "\x08\x09\x0a\x0b");
  assert_gathered("{" TENSOR("f", "F32", "", 0, 4) "," TENSOR(
                      "a", "U16", "", 4,
                      6) "," TENSOR("b", "U16", "2", 6,
                                    10) "," TENSOR("u8", "U8", "", 10, 11) "}",
                  "\x08\x09\x0a\x0b\x06\x07\x02\x03\x04\x05\x01", 11);
  // In any order of adding.
  create();
  add("a", TARN_DTYPE_U16, 0, NULL, "\x06\x07");
  add("f", TARN_DTYPE_F32, 0, NULL, "\x08\x09\x0a\x0b");
  add("u8", TARN_DTYPE_U8, 0, NULL, "\x01");
  add("b", TARN_DTYPE_U16, 1, dims, "\x02\x03\x04\x05");
  size_t size = out.size;
  unsigned char *first = malloc(size);
  require(first != NULL);
  memcpy(first, out.bytes, size);
  out.size = 0;
  assert_ok(tarn_safetensors_write_to(writer, gather, &out));
  ck_assert_uint_eq(out.size, size);
  ck_assert_mem_eq(out.bytes, first, size);
  free(first);
}

TEST(texts_are_escaped) {
  create();
  add("\"\\\b\f\n\r\t\x01\x1f\x7f/\xc3\xa9", TARN_DTYPE_BOOL, 0, NULL, "\x01");
  assert_ok(tarn_safetensors_add_metadata(writer, "k\"", "v\n"));
  assert_ok(tarn_safetensors_add_metadata(writer, "", ""));
  assert_gathered("{\"__metadata__\":{\"k\\\"\":\"v\\n\",\"\":\"\"}," TENSOR(
                      "\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\x7f/\xc3\xa9",
                      "BOOL", "", 0, 1) "}",
                  "\x01", 1);
  assert_ok(open_image(out.bytes, out.size));
  ck_assert_ptr_nonnull(
      tarn_safetensors_find(file, "\"\\\b\f\n\r\t\x01\x1f\x7f/\xc3\xa9"));
  ck_assert_str_eq(tarn_safetensors_metadata(file, "k\""), "v\n");
  create();
  assert_ok(tarn_safetensors_add_metadata(writer, "a", "b"));
  assert_gathered("{\"__metadata__\":{\"a\":\"b\"}}", NULL, 0);
}

TEST(texts_of_any_length_come_back) {
  static char text[1201];
  create();
  for (size_t i = 0; i < sizeof text - 1; i++) {
    text[i] = i % 7 == 0 ? '\x02' : i % 5 == 0 ? '"' : 'x';
    assert_ok(tarn_safetensors_add_metadata(writer, text, text));
  }
  out.size = 0;
  assert_ok(tarn_safetensors_write_to(writer, gather, &out));
  assert_ok(open_image(out.bytes, out.size));
  ck_assert_uint_eq(tarn_safetensors_metadata_count(file), sizeof text - 1);
  for (size_t i = sizeof text - 1; i > 0; i--) {
    const char *value = tarn_safetensors_metadata(file, text);
    require(value != NULL && strcmp(value, text) == 0);
    text[i - 1] = '\0';
  }
}

// --- written and read --------------------------------------------------------

static tarn_status fill(void *context, size_t offset, void *to, size_t size) {
  size_t *next = context;
  require(offset == *next && size > 0 && size <= 256 << 10);
  for (size_t i = 0; i < size; i++)
    ((unsigned char *)to)[i] = (unsigned char)((offset + i) * 31 >> 3);
  *next += size;
  return TARN_OK;
}

static unsigned char large[300001];

// One of each dtype, some larger than what pieces are gathered in.
static void add_all_kinds(size_t *next) {
  static char name[10001];
  const int64_t dims[] = {3, 0, 5, 300000};
  memset(name, 'n', sizeof name - 1);
  for (size_t i = 0; i < sizeof large; i++)
    large[i] = (unsigned char)(i * 7 >> 1);
  for (int i = 1; i <= TARN_DTYPE_BOOL; i++) {
    add(tarn_dtype_name((tarn_dtype)i), (tarn_dtype)i, 1, dims, large + i);
  }
  add("empty", TARN_DTYPE_F32, 2, dims, NULL);
  add(name, TARN_DTYPE_U8, 1, dims + 3, large + 1);
  assert_ok(tarn_safetensors_add_filled(writer, "filled", TARN_DTYPE_U16,
                                        (tarn_shape){dims + 2, 2}, fill, next));
  assert_ok(tarn_safetensors_add_metadata(writer, "format", "none"));
}

static void check_all_kinds(void) {
  static char name[10001];
  memset(name, 'n', sizeof name - 1);
  ck_assert_uint_eq(tarn_safetensors_count(file), TARN_DTYPE_BOOL + 3);
  for (size_t i = 0; i < tarn_safetensors_count(file); i++)
    ck_assert(tarn_safetensors_at(file, i)->aligned);
  for (int i = 1; i <= TARN_DTYPE_BOOL; i++) {
    const tarn_safetensor *tensor =
        tarn_safetensors_find(file, tarn_dtype_name((tarn_dtype)i));
    ck_assert_ptr_nonnull(tensor);
    ck_assert_int_eq(tensor->dtype, i);
    ck_assert_uint_eq(tensor->size, 3 * tarn_dtype_size(tensor->dtype));
    ck_assert_mem_eq(tensor->data, large + i, tensor->size);
  }
  ck_assert_uint_eq(tarn_safetensors_find(file, "empty")->shape.rank, 2);
  ck_assert_mem_eq(tarn_safetensors_find(file, name)->data, large + 1, 300000);
  const tarn_safetensor *filled = tarn_safetensors_find(file, "filled");
  ck_assert_uint_eq(filled->size, 3000000);
  for (size_t i = 0; i < filled->size; i++)
    require(((const unsigned char *)filled->data)[i] ==
            (unsigned char)(i * 31 >> 3));
  ck_assert_str_eq(tarn_safetensors_metadata(file, "format"), "none");
}

TEST(what_is_written_is_read_as_it_was) {
  size_t next = 0;
  create();
  add_all_kinds(&next);
  assert_ok(tarn_safetensors_write(writer, path));
  ck_assert_uint_eq(next, 3000000);
  assert_ok(tarn_safetensors_open(path, &file));
  check_all_kinds();
  // Again, over the file that is open: another one takes its place.
  next = 0;
  assert_ok(tarn_safetensors_write(writer, path));
  check_all_kinds();
  tarn_safetensors_close(file);
  assert_ok(tarn_safetensors_open(path, &file));
  check_all_kinds();
  ck_assert_uint_eq(files_there(), 1);
}

// --- refusals ----------------------------------------------------------------

static const int64_t one[] = {1};

static tarn_status try_add(const char *name, tarn_dtype dtype, size_t rank,
                           const int64_t *dims, const void *data) {
  return tarn_safetensors_add(writer, name, dtype, (tarn_shape){dims, rank},
                              data);
}

static void assert_not_added(tarn_status status, const char *what) {
  assert_status(status, TARN_E_INVALID);
  assert_error_says(what);
}

TEST(what_cannot_be_written_is_not_added) {
  const int64_t batch[] = {2, TARN_DIM_BATCH};
  const int64_t huge[] = {INT64_MAX, 4};
  const int64_t half[] = {INT64_MAX};
  create();
  add("a", TARN_DTYPE_U8, 1, one, "\x01");
  assert_not_added(try_add("a", TARN_DTYPE_F32, 1, one, "\x01"),
                   "tensor \"a\" is there already");
  assert_not_added(try_add("__metadata__", TARN_DTYPE_U8, 1, one, "\x01"),
                   "\"__metadata__\" is no tensor's name");
  assert_not_added(try_add("b\xff", TARN_DTYPE_U8, 1, one, "\x01"),
                   "tensor \"b\xff\": bytes that are not UTF-8");
  assert_not_added(try_add("b", TARN_DTYPE_NONE, 1, one, "\x01"), "no dtype");
  assert_not_added(try_add("b", (tarn_dtype)99, 1, one, "\x01"), "no dtype");
  assert_not_added(try_add("b", TARN_DTYPE_U8, 2, batch, "\x01"),
                   "tensor \"b\": dimension 1 is -1");
  assert_not_added(try_add("b", TARN_DTYPE_U8, 2, huge, "\x01"), "shape: ");
  assert_not_added(try_add("b", TARN_DTYPE_U8, 1, NULL, "\x01"),
                   "dims is NULL");
  assert_not_added(try_add("b", TARN_DTYPE_U8, 1, one, NULL),
                   "tensor \"b\": its 1 bytes are NULL");
  assert_not_added(try_add(NULL, TARN_DTYPE_U8, 1, one, "\x01"), "NULL");
  assert_not_added(tarn_safetensors_add(NULL, "b", TARN_DTYPE_U8,
                                        (tarn_shape){one, 1}, "\x01"),
                   "NULL");
  assert_not_added(
      tarn_safetensors_add_filled(writer, "b", TARN_DTYPE_U8,
                                  (tarn_shape){one, 1}, NULL, NULL),
      "NULL");
  assert_ok(tarn_safetensors_add_filled(writer, "h", TARN_DTYPE_U8,
                                        (tarn_shape){half, 1}, fill, NULL));
  assert_ok(tarn_safetensors_add_filled(writer, "i", TARN_DTYPE_U8,
                                        (tarn_shape){half, 1}, fill, NULL));
  assert_not_added(try_add("b", TARN_DTYPE_I32, 1, one, "\x01\x02\x03\x04"),
                   "tensor \"b\": 4 bytes and the 18446744073709551615 before "
                   "it overflow");
}

TEST(what_was_refused_leaves_nothing) {
  create();
  add("a", TARN_DTYPE_U8, 1, one, "\x01");
  assert_status(try_add("a", TARN_DTYPE_U16, 1, one, "\x01\x02"),
                TARN_E_INVALID);
  assert_status(try_add("b", TARN_DTYPE_NONE, 1, one, "\x01"), TARN_E_INVALID);
  assert_gathered("{" TENSOR("a", "U8", "1", 0, 1) "}", "\x01", 1);
}

TEST(metadata_that_cannot_be_written_is_not_added) {
  create();
  assert_ok(tarn_safetensors_add_metadata(writer, "k", "v"));
  assert_not_added(tarn_safetensors_add_metadata(writer, "k", "w"),
                   "metadata \"k\" is there already");
  assert_not_added(tarn_safetensors_add_metadata(writer, "\xc0", "w"),
                   "not UTF-8");
  assert_not_added(tarn_safetensors_add_metadata(writer, "l", "\xed\xa0\x80"),
                   "not UTF-8");
  assert_not_added(tarn_safetensors_add_metadata(writer, NULL, "w"), "NULL");
  assert_not_added(tarn_safetensors_add_metadata(writer, "l", NULL), "NULL");
  assert_not_added(tarn_safetensors_add_metadata(NULL, "l", "w"), "NULL");
  assert_gathered("{\"__metadata__\":{\"k\":\"v\"}}", NULL, 0);
}

TEST(wrong_use_is_refused) {
  create();
  assert_status(tarn_safetensors_writer_create(NULL), TARN_E_INVALID);
  assert_status(tarn_safetensors_write(NULL, path), TARN_E_INVALID);
  assert_status(tarn_safetensors_write(writer, NULL), TARN_E_INVALID);
  assert_status(tarn_safetensors_write_to(NULL, gather, &out), TARN_E_INVALID);
  assert_status(tarn_safetensors_write_to(writer, NULL, &out), TARN_E_INVALID);
  tarn_safetensors_writer_destroy(NULL);
}

TEST(a_header_is_never_too_long) {
  enum { SIZE = 17000001 };
  char *text = malloc(SIZE);
  require(text != NULL);
  memset(text, '\x01', SIZE - 1);  // six bytes each
  text[SIZE - 1] = '\0';
  create();
  assert_ok(tarn_safetensors_add_metadata(writer, "k", text));
  assert_status(tarn_safetensors_write(writer, path), TARN_E_INVALID);
  assert_error_says("a header of 102000");
  ck_assert_uint_eq(files_there(), 0);
  free(text);
}

// --- failures ----------------------------------------------------------------

static tarn_status refuse(void *context, size_t offset, void *to, size_t size) {
  size_t *calls = context;
  (void)offset;
  memset(to, 0, size);
  return ++*calls == 2 ? TARN_E_DEVICE : TARN_OK;
}

TEST(a_fill_that_fails_leaves_the_old_file) {
  const int64_t dims[] = {1 << 20};
  size_t calls = 0;
  create();
  write_file("old", 3);
  assert_ok(tarn_safetensors_add_filled(writer, "a", TARN_DTYPE_U8,
                                        (tarn_shape){dims, 1}, refuse, &calls));
  assert_status(tarn_safetensors_write(writer, path), TARN_E_DEVICE);
  ck_assert_uint_eq(calls, 2);
  ck_assert_uint_eq(files_there(), 1);
  size_t size = 0;
  unsigned char *bytes = read_file(&size);
  ck_assert_uint_eq(size, 3);
  ck_assert_mem_eq(bytes, "old", 3);
  free(bytes);
}

TEST(a_sink_that_fails_is_called_no_more) {
  size_t next = 0;
  create();
  add_all_kinds(&next);
  for (size_t at = 1; at < 8; at++) {
    out.size = out.calls = 0;
    out.fails_at = at;
    next = 0;
    assert_status(tarn_safetensors_write_to(writer, gather, &out), TARN_FULL);
    ck_assert_uint_eq(out.calls, at);
  }
}

TEST(what_the_system_refuses_is_named) {
  char deep[160];
  create();
  snprintf(deep, sizeof deep, "%s/none/a", folder);
  assert_status(tarn_safetensors_write(writer, deep), TARN_E_IO);
  assert_error_says("/none/a: cannot");
  int full = open("/dev/full", O_WRONLY);
  if (full < 0) {
    note_skipped("a full disk", "no /dev/full here");
    return;
  }
  close(full);
  assert_status(tarn_safetensors_write(writer, "/dev/full"), TARN_E_IO);
  assert_error_says("No space left");
}

static void build_and_write(void *context) {
  tarn_safetensors_writer *made = NULL;
  const int64_t dims[] = {2, 2};
  (void)context;
  tarn_status status = tarn_safetensors_writer_create(&made);
  if (status == TARN_OK) {
    status = tarn_safetensors_add_metadata(made, "k", "v");
  }
  for (int i = 0; status == TARN_OK && i < 20; i++) {
    char name[2] = {(char)('a' + i), '\0'};
    status = tarn_safetensors_add(made, name, TARN_DTYPE_U8,
                                  (tarn_shape){dims, 2}, "abcd");
  }
  if (status == TARN_OK) status = tarn_safetensors_write(made, path);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  require(files_there() == (status == TARN_OK));
  unlink(path);
  tarn_safetensors_writer_destroy(made);
}

// What could not be added can be added afterwards.
static void add_until_it_works(void *context) {
  tarn_safetensors_writer *made = NULL;
  (void)context;
  if (tarn_safetensors_writer_create(&made) != TARN_OK) return;
  tarn_status status = TARN_E_NOMEM;
  for (int i = 0; status != TARN_OK && i < 10; i++) {
    status = tarn_safetensors_add(made, "a", TARN_DTYPE_U8,
                                  (tarn_shape){one, 1}, "x");
    require(status == TARN_OK || status == TARN_E_NOMEM);
  }
  tarn_safetensors_writer_destroy(made);
}

TEST(too_little_memory_is_an_error) {
  ck_assert_uint_gt(faults_sweep(build_and_write, NULL), 40);
  ck_assert_uint_gt(faults_sweep(add_until_it_works, NULL), 5);
}

// --- the Python package ------------------------------------------------------

static const char program[] =
    "import sys, struct\n"
    "try:\n"
    "  import numpy, safetensors, safetensors.numpy as st\n"
    "except ImportError:\n"
    "  sys.exit(3)\n"
    "bytes_of = open(sys.argv[1], 'rb').read()\n"
    "header = struct.unpack('<Q', bytes_of[:8])[0]\n"
    "read = dict(safetensors.deserialize(bytes_of))\n"
    "assert len(read) == int(sys.argv[2]), len(read)\n"
    "f = read['f32']\n"
    "assert f['dtype'] == 'F32' and list(f['shape']) == [3], f\n"
    "if 'bf16' not in read:\n"
    "  back = st.save(st.load(bytes_of), {'format': 'none'})\n"
    "  assert back == bytes_of, (back[:header + 8], bytes_of[:header + 8])\n"
    "  st.save_file(st.load(bytes_of), sys.argv[1], {'format': 'none'})\n";

// Exit status of the program; 3: the package is not there.
static int run_python(const char *script, size_t count) {
  char command[512];
  snprintf(command, sizeof command, "python3 '%s' '%s' %zu", script, path,
           count);
  int status = system(command);
  ck_assert(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static void read_by_python(size_t count) {
  char script[96];
  snprintf(script, sizeof script, "%s/check.py", folder);
  FILE *stream = fopen(script, "w");
  ck_assert_ptr_nonnull(stream);
  fputs(program, stream);
  fclose(stream);
  int status = run_python(script, count);
  unlink(script);
  if (status == 3 || status == 127) {
    note_skipped("files read and written by the Python package safetensors",
                 "python3 has not got it, or numpy");
    return;
  }
  ck_assert_int_eq(status, 0);
}

TEST(the_python_package_reads_what_is_written) {
  size_t next = 0;
  create();
  add_all_kinds(&next);
  assert_ok(tarn_safetensors_write(writer, path));
  read_by_python(TARN_DTYPE_BOOL + 3);
}

// Byte for byte: what the package makes of the same tensors, and what it reads
// back here.
TEST(the_python_package_writes_the_same) {
  const int64_t dims[] = {3};
  create();
  for (int i = TARN_DTYPE_BOOL; i > 0; i--) {
    if (i == TARN_DTYPE_BF16) continue;  // numpy has none
    add(tarn_dtype_name((tarn_dtype)i), (tarn_dtype)i, 1, dims, large);
  }
  add("s\"\n\x01\xc3\xa9", TARN_DTYPE_F64, 0, NULL, large);
  assert_ok(tarn_safetensors_add_metadata(writer, "format", "none"));
  assert_ok(tarn_safetensors_write(writer, path));
  read_by_python(TARN_DTYPE_BOOL);
  assert_ok(tarn_safetensors_open(path, &file));
  ck_assert_uint_eq(tarn_safetensors_count(file), TARN_DTYPE_BOOL);
}

int main(void) {
  faults_install();
  return run_tests();
}
