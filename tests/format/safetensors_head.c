// Safetensors files of which only the head is in memory.
#include "format/safetensors.h"

#include "safetensors_kit.h"

static const char header[] =
    "{" TENSOR("a", "F32", "2", 0, 8) "," TENSOR("b", "U8", "3", 8,
                                                 11) ",\"__metadata__\":"
                                                     "{\"k\":\"v\"}}";
enum { ROOM = 11, HEAD = 8 + sizeof header - 1 };

// The first |size| bytes of the file, in memory of just that size.
static unsigned char *first_bytes(size_t size) {
  unsigned char *all = NULL;
  unsigned char *bytes = malloc(size > 0 ? size : 1);
  require(bytes != NULL);
  size_t most = make_image(header, HEAD - 8, ROOM, &all);
  require(size <= most);
  memcpy(bytes, all, size);
  free(all);
  return bytes;
}

static tarn_status open_part(size_t size, size_t file_size) {
  unsigned char *bytes = first_bytes(size);
  tarn_safetensors_close(file);
  tarn_status status =
      tarn__safetensors_open_head("a", bytes, size, file_size, &file);
  require((status == TARN_OK) == (file != NULL));
  memset(bytes, 0xee, size);
  free(bytes);
  return status;
}

TEST_LOOP(the_head_tells_all_but_the_bytes, 3) {
  static const size_t more[] = {0, 5, ROOM};
  assert_ok(open_part(HEAD + more[_i], HEAD + ROOM));
  ck_assert_uint_eq(tarn_safetensors_count(file), 2);
  ck_assert_str_eq(tarn_safetensors_metadata(file, "k"), "v");
  const tarn_safetensor *a = tarn_safetensors_find(file, "a");
  const tarn_safetensor *b = tarn_safetensors_find(file, "b");
  ck_assert_uint_eq(a->offset, HEAD);
  ck_assert_uint_eq(a->size, 8);
  ck_assert_int_eq(a->dtype, TARN_DTYPE_F32);
  ck_assert_int_eq(a->shape.dims[0], 2);
  ck_assert(a->aligned == (HEAD % 4 == 0));
  ck_assert_uint_eq(b->offset, HEAD + 8);
  ck_assert(b->aligned);
  ck_assert_ptr_null(a->data);
  ck_assert_ptr_null(b->data);
}

TEST(the_length_tells_how_much_the_head_is) {
  size_t size = 0;
  for (size_t held = 0; held <= HEAD + ROOM; held++) {
    unsigned char *bytes = first_bytes(held);
    tarn_status status =
        tarn__safetensors_head("a", bytes, held, HEAD + ROOM, &size);
    require(status == (held < 8 ? TARN_E_CORRUPT : TARN_OK));
    require(size == (held < 8 ? 0 : HEAD));
    free(bytes);
  }
}

TEST(a_file_that_is_cut_is_refused) {
  size_t size = 0;
  for (size_t cut = 0; cut < HEAD + ROOM; cut++) {
    unsigned char *bytes = first_bytes(cut);
    tarn_status status = tarn__safetensors_head("a", bytes, cut, cut, &size);
    require(status == (cut < HEAD ? TARN_E_CORRUPT : TARN_OK));
    assert_status(open_part(cut, cut), TARN_E_CORRUPT);
    free(bytes);
  }
  assert_error_says("end beyond the 10 bytes of data");
}

// A file that changes between two reads.
TEST(a_head_longer_than_what_was_read_is_refused) {
  for (size_t held = 8; held < HEAD; held++) {
    char text[96];
    snprintf(text, sizeof text,
             "a: a header of %d bytes, but it ends after %zu", HEAD - 8,
             held - 8);
    assert_status(open_part(held, HEAD + ROOM), TARN_E_CORRUPT);
    require(strcmp(tarn_last_error(), text) == 0);
  }
}

static void open_all(void *context) {
  tarn_safetensors *opened = NULL;
  tarn_status status =
      tarn__safetensors_open_head("a", context, HEAD, HEAD + ROOM, &opened);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  require((status == TARN_OK) == (opened != NULL));
  tarn_safetensors_close(opened);
}

TEST(too_little_memory_is_an_error) {
  unsigned char *bytes = first_bytes(HEAD);
  ck_assert_uint_gt(faults_sweep(open_all, bytes), 5);
  free(bytes);
}

int main(void) {
  faults_install();
  return run_tests();
}
