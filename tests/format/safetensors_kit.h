// safetensors_kit.h - a kit for tests of safetensors files.
#ifndef TARN_TESTS_FORMAT_SAFETENSORS_KIT_H_
#define TARN_TESTS_FORMAT_SAFETENSORS_KIT_H_

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/faults.h"
#include "support/run.h"
#include "tarn/safetensors.h"

// A tensor of a header.
#define TENSOR(name, dtype, shape, begin, end)              \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape \
  "],\"data_offsets\":[" #begin "," #end "]}"

static tarn_safetensors *file;
static tarn_safetensors_writer *writer;
static char folder[64];
static char path[96];
static unsigned char *image;  // of the file that was opened last from memory

static inline void begin(void) {
  file = NULL;
  writer = NULL;
  image = NULL;
  snprintf(folder, sizeof folder, "/tmp/tarn-st-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/made.safetensors", folder);
}

// How many files there are besides those whose names begin with a dot.
static inline size_t files_there(void) {
  char pattern[96];
  glob_t found = {0};
  snprintf(pattern, sizeof pattern, "%s/*", folder);
  size_t count = glob(pattern, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
  globfree(&found);
  return count;
}

static inline void end(void) {
  tarn_safetensors_close(file);
  tarn_safetensors_writer_destroy(writer);
  free(image);
  unlink(path);
  ck_assert_int_eq(rmdir(folder), 0);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// Of memory of just that size, so that a sanitizer sees a read beyond it.
static inline tarn_status open_image(const void *bytes, size_t size) {
  tarn_safetensors_close(file);
  free(image);
  image = malloc(size > 0 ? size : 1);
  require(image != NULL);
  if (size > 0) memcpy(image, bytes, size);
  tarn_status status = tarn_safetensors_open_bytes(image, size, "made", &file);
  require((status == TARN_OK) == (file != NULL));
  return status;
}

// A file of that header, and of |room| bytes behind it: 0, 1, 2 ...
static inline size_t make_image(const char *header, size_t header_size,
                                size_t room, unsigned char **out_bytes) {
  size_t size = 8 + header_size + room;
  unsigned char *bytes = malloc(size);
  require(bytes != NULL);
  for (int i = 0; i < 8; i++)
    bytes[i] = (unsigned char)((uint64_t)header_size >> (8 * i));
  memcpy(bytes + 8, header, header_size);
  for (size_t i = 0; i < room; i++)
    bytes[8 + header_size + i] = (unsigned char)i;
  *out_bytes = bytes;
  return size;
}

static inline tarn_status open_sized(const char *header, size_t header_size,
                                     size_t room) {
  unsigned char *bytes = NULL;
  size_t size = make_image(header, header_size, room, &bytes);
  tarn_status status = open_image(bytes, size);
  free(bytes);
  return status;
}

static inline tarn_status open_header(const char *header, size_t room) {
  return open_sized(header, strlen(header), room);
}

static inline void assert_refused(const char *header, size_t room,
                                  const char *what) {
  assert_status(open_header(header, room), TARN_E_CORRUPT);
  ck_assert_msg(strcmp(tarn_last_error(), what) == 0, "'%s' is not '%s'",
                tarn_last_error(), what);
}

static inline void write_file(const void *bytes, size_t size) {
  FILE *stream = fopen(path, "wb");
  ck_assert_ptr_nonnull(stream);
  ck_assert_uint_eq(fwrite(bytes, 1, size, stream), size);
  fclose(stream);
}

static inline unsigned char *read_file(size_t *out_size) {
  enum { MOST = 1 << 22 };
  FILE *stream = fopen(path, "rb");
  ck_assert_ptr_nonnull(stream);
  unsigned char *bytes = malloc(MOST);
  require(bytes != NULL);
  *out_size = fread(bytes, 1, MOST, stream);
  fclose(stream);
  return bytes;
}

FIXTURE(begin, end);

#endif  // TARN_TESTS_FORMAT_SAFETENSORS_KIT_H_
