// Any bytes as an .npy file with checksums behind its array, or as a text of
// checksums: what is read is checked by other means, written, and read again as
// it was. So that no byte is wasted on what must fit together, an input is
//
//   flags, low and high byte of how many bytes of data there are, rest
//
// where the rest is a file; or the dict of a header; or a block of checksums of
// so much data, with the sums over it made right or not; or a text of sums.
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "format/npy.h"
#include "format/sums.h"
#include "fuzz.h"

enum {
  KIND = 3,
  KIND_FILE = 0,
  KIND_DICT = 1,
  KIND_BLOCK = 2,
  KIND_TEXT = 3,
  VERSION = 12,  // of a dict: two bits
  RIGHT = 16,    // of a block: its own sums are made right
  HEAD = 3,
};

// A copy of just its size, so that a sanitizer sees what is read beyond it.
static unsigned char *copy(const void *bytes, size_t size) {
  unsigned char *own = malloc(size > 0 ? size : 1);
  require(own != NULL, "out of memory");
  if (size > 0) memcpy(own, bytes, size);
  return own;
}

static void check_text(tarn_status status) {
  require(status == TARN_OK || strncmp(tarn_last_error(), "fuzzed: ", 8) == 0,
          "no name");
}

// --- a header ----------------------------------------------------------------

static void check_npy(const tarn__format_npy *npy, size_t head, size_t size) {
  size_t count = 0;
  size_t bytes = 0;
  require(npy->rank == 1 || npy->rank == 2, "another rank");
  require(npy->rank == 2 || npy->dims[1] == 1, "a second dimension");
  require(tarn_size_mul(npy->dims[0], npy->dims[1], &count) &&
              tarn_size_mul(count, tarn_dtype_size(npy->dtype), &bytes) &&
              bytes == npy->size,
          "another size");
  require(npy->offset == head && head <= size && bytes <= size - head,
          "beyond the file");
  require(npy->dtype_at < head && npy->shape_at < head, "beyond the header");
}

static void write_npy(const tarn__format_npy *npy) {
  unsigned char head[TARN__NPY_WRITTEN];
  tarn__format_npy again;
  tarn__npy_write(npy->dtype, npy->rank, npy->dims, head);
  require(tarn__npy_read("written", head, sizeof head, sizeof head + npy->size,
                         &again) == TARN_OK,
          "not read again");
  require(again.dtype == npy->dtype && again.rank == npy->rank &&
              again.dims[0] == npy->dims[0] && again.dims[1] == npy->dims[1] &&
              again.size == npy->size && again.offset == sizeof head,
          "another array");
}

// Only the head of a file of |size| bytes is there.
static bool read_npy(const unsigned char *bytes, size_t held, size_t size,
                     tarn__format_npy *npy) {
  size_t head = 0;
  tarn_status status = tarn__npy_head("fuzzed", bytes, held, size, &head);
  require(status == TARN_OK || status == TARN_E_CORRUPT, "another status");
  check_text(status);
  if (status != TARN_OK || head > held) return false;
  unsigned char *own = copy(bytes, head);
  status = tarn__npy_read("fuzzed", own, head, size, npy);
  require(
      status == TARN_OK || status == TARN_E_CORRUPT || status == TARN_E_INVALID,
      "another status");
  check_text(status);
  free(own);
  if (status != TARN_OK) return false;
  check_npy(npy, head, size);
  write_npy(npy);
  return true;
}

static void read_dict(unsigned flags, const uint8_t *dict, size_t size,
                      size_t room) {
  unsigned version = (flags & VERSION) >> 2;
  size_t first = version <= 1 ? 10 : 12;
  unsigned char *bytes = malloc(first + size);
  tarn__format_npy npy;
  require(bytes != NULL, "out of memory");
  memcpy(bytes, "\x93NUMPY", 6);
  bytes[6] = (unsigned char)version;
  bytes[7] = 0;
  for (size_t i = 8; i < first; i++)
    bytes[i] = (unsigned char)(size >> 8 * (i - 8));
  memcpy(bytes + first, dict, size);
  (void)read_npy(bytes, first + size, first + size + room, &npy);
  free(bytes);
}

// --- a block -----------------------------------------------------------------

// What is found is what would be written of its number and its sums.
static void write_block(const tarn__format_sums_place *place,
                        const tarn__format_sums *sums,
                        const unsigned char *block) {
  uint32_t *numbers = calloc(sums->count + 1, sizeof *numbers);
  unsigned char *again = malloc(place->size);
  require(numbers != NULL && again != NULL, "out of memory");
  require(sums->count == place->count, "another count");
  for (size_t i = 0; i < sums->count; i++)
    numbers[i] = tarn__sums_at(sums, i);
  tarn__sums_write(place, sums->id, numbers, again);
  require(memcmp(again, block, place->size) == 0, "another block");
  free(again);
  free(numbers);
}

// Bytes from |place->offset| on, to the file's end.
static void read_block(const tarn__format_sums_place *place,
                       const unsigned char *bytes, size_t size) {
  tarn__format_sums sums;
  size_t held = size < place->size ? size : place->size;
  unsigned char *own = copy(bytes, held);
  tarn_status status =
      tarn__sums_read("fuzzed", place, own, held, place->offset + size, &sums);
  require(status == TARN_OK || status == TARN_E_CORRUPT ||
              status == TARN_E_UNSUPPORTED,
          "another status");
  check_text(status);
  require(status == TARN_OK || !sums.found, "found, but an error");
  if (sums.found) {
    require(size == place->size, "another size");
    write_block(place, &sums, own);
  }
  free(own);
}

static void make_right(unsigned char *bytes, size_t size) {
  uint32_t sum = 0;
  if (size < TARN__SUMS_HEAD) return;
  sum = tarn__crc32c(0, bytes + 64, size - 64);
  for (int i = 0; i < 4; i++)
    bytes[56 + i] = (unsigned char)(sum >> 8 * i);
  sum = tarn__crc32c(0, bytes, 60);
  for (int i = 0; i < 4; i++)
    bytes[60 + i] = (unsigned char)(sum >> 8 * i);
}

// |room| are 4 KiB each, so that there are several sums.
static void try_block(unsigned flags, const uint8_t *bytes, size_t size,
                      size_t room) {
  tarn__format_sums_place place;
  unsigned char *own = copy(bytes, size);
  require(tarn__sums_place(4096, room * 4096, &place), "too large");
  if ((flags & RIGHT) != 0) make_right(own, size);
  read_block(&place, own, size);
  free(own);
}

static void try_file(const uint8_t *bytes, size_t size) {
  tarn__format_npy npy;
  tarn__format_sums_place place;
  if (!read_npy(bytes, size, size, &npy)) return;
  require(tarn__sums_place(npy.offset, npy.size, &place), "too large");
  if (place.offset < size) {
    read_block(&place, bytes + place.offset, size - place.offset);
  }
}

// --- a text ------------------------------------------------------------------

static void try_text(const uint8_t *bytes, size_t size, size_t count) {
  enum { MOST = 512 };
  uint32_t sums[MOST];
  char again[TARN__SUMS_DIGITS * MOST];
  bool found = false;
  char *text = calloc(1, size + 1);
  require(text != NULL, "out of memory");
  if (size > 0) memcpy(text, bytes, size);
  count %= MOST;
  tarn_status status = tarn__sums_of_text("fuzzed", TARN__SUMS_CHUNK_TEXT, text,
                                          count, sums, &found);
  require(status == TARN_OK || status == TARN_E_CORRUPT, "another status");
  require(found == (status == TARN_OK), "found, but an error");
  check_text(status);
  if (found) {
    tarn__sums_to_text(sums, count, again);
    require(strlen(text) == TARN__SUMS_DIGITS * count &&
                memcmp(again, text, TARN__SUMS_DIGITS * count) == 0,
            "another text");
  }
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
  if (size < HEAD) return 0;
  unsigned flags = input[0];
  size_t room = (size_t)input[1] | (size_t)input[2] << 8;
  fuzz_memory_begin();
  switch (flags & KIND) {
    case KIND_FILE:
      try_file(input + HEAD, size - HEAD);
      break;
    case KIND_DICT:
      read_dict(flags, input + HEAD, size - HEAD, room);
      break;
    case KIND_BLOCK:
      try_block(flags, input + HEAD, size - HEAD, room);
      break;
    default:
      try_text(input + HEAD, size - HEAD, room);
      break;
  }
  fuzz_memory_end();
  return 0;
}
