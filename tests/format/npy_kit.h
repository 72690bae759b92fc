// npy_kit.h - a kit for tests of .npy files.
#ifndef TARN_TESTS_FORMAT_NPY_KIT_H_
#define TARN_TESTS_FORMAT_NPY_KIT_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/npy.h"
#include "support/run.h"

// A header of that dict, without blanks behind it. Its size; |*out_head| is
// memory of just that, so that a sanitizer sees a read beyond it.
static inline size_t make_head(int version, const char *dict,
                               unsigned char **out_head) {
  size_t length = strlen(dict);
  size_t first = version == 1 ? 10 : 12;
  unsigned char *head = malloc(first + length);
  require(head != NULL);
  memcpy(head, "\x93NUMPY", 6);
  head[6] = (unsigned char)version;
  head[7] = 0;
  for (size_t i = 8; i < first; i++)
    head[i] = (unsigned char)(length >> 8 * (i - 8));
  memcpy(head + first, dict, length);
  *out_head = head;
  return first + length;
}

static tarn__format_npy npy;

// Reads a file of that header and |room| bytes behind it.
static inline tarn_status read_dict(int version, const char *dict,
                                    size_t room) {
  unsigned char *head = NULL;
  size_t size = make_head(version, dict, &head);
  size_t found = 0;
  memset(&npy, 0xee, sizeof npy);
  assert_ok(tarn__npy_head("a.npy", head, size, size + room, &found));
  require(found == size);
  tarn_status status = tarn__npy_read("a.npy", head, size, size + room, &npy);
  require(status == TARN_OK || npy.offset == 0);
  free(head);
  return status;
}

#endif  // TARN_TESTS_FORMAT_NPY_KIT_H_
