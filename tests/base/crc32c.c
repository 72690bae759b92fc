// The checksum of messages: against sums that are known, and each way to it
// against the other.
#include "base/crc32c.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c_wide.h"
#include "support/run.h"

// Of RFC 3720, and of the nine digits.
TEST(sums_are_those_of_the_standard) {
  unsigned char bytes[32];
  ck_assert_uint_eq(tarn__crc32c(0, "123456789", 9), 0xe3069283);
  memset(bytes, 0, sizeof bytes);
  ck_assert_uint_eq(tarn__crc32c(0, bytes, sizeof bytes), 0x8a9136aa);
  memset(bytes, 0xff, sizeof bytes);
  ck_assert_uint_eq(tarn__crc32c(0, bytes, sizeof bytes), 0x62a8ab43);
  for (unsigned i = 0; i < sizeof bytes; i++)
    bytes[i] = (unsigned char)i;
  ck_assert_uint_eq(tarn__crc32c(0, bytes, sizeof bytes), 0x46dd794e);
}

TEST(both_ways_and_all_cuts_are_the_same) {
  unsigned char bytes[75];
  for (size_t i = 0; i < sizeof bytes; i++)
    bytes[i] = (unsigned char)(i * 37 + 11);
  for (size_t size = 0; size <= sizeof bytes; size++) {
    uint32_t all = tarn__crc32c(0, bytes, size);
    ck_assert_uint_eq(tarn__crc32c_by_table(0, bytes, size), all);
    for (size_t cut = 0; cut <= size; cut++) {
      uint32_t first = tarn__crc32c(0, bytes, cut);
      ck_assert_uint_eq(tarn__crc32c(first, bytes + cut, size - cut), all);
    }
  }
}

static unsigned char *make_bytes(size_t size) {
  unsigned char *bytes = malloc(size);
  uint32_t random = 1;
  require(bytes != NULL);
  for (size_t i = 0; i < size; i++) {
    random = random * 1664525 + 1013904223;
    bytes[i] = (unsigned char)(random >> 24);
  }
  return bytes;
}

// Where many bytes are summed at once, in all sizes around those steps.
TEST(large_data_has_the_sum_of_the_table) {
  enum { MOST = (1 << 20) + 9000 };
  static const size_t bases[] = {3072, 6144, 24576, 27648, 104856, 132504,
                                 209712, 1 << 20,
                                 // and by vectors
                                 512, 1024, 4096, 8192, 87296, 91904};
  unsigned char *bytes = make_bytes(MOST);
  for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
    for (size_t size = bases[i] - 10; size < bases[i] + 10; size++) {
      const unsigned char *from = bytes + size % 16;
      require(tarn__crc32c(7, from, size) ==
              tarn__crc32c_by_table(7, from, size));
    }
  }
  free(bytes);
}

// To addresses at which it can be copied meanwhile, and to others; no byte
// beside is touched.
TEST(a_copy_has_the_sum_and_the_bytes) {
  enum { EDGE = 64, MOST = 4687 * EDGE };
  static const size_t sizes[] = {0,     1,     511,    512,   4097,
                                 16900, 87296, 262144, 95745, MOST};
  unsigned char *bytes = make_bytes(MOST + 10);
  unsigned char *to = aligned_alloc(EDGE, MOST + 3 * EDGE);
  require(to != NULL);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    for (size_t at = EDGE; at <= EDGE + 32; at += 16) {
      size_t size = sizes[i];
      memset(to, 0x5a, MOST + 3 * EDGE);
      require(tarn__crc32c_copy(3, to + at, bytes + i, size) ==
              tarn__crc32c_by_table(3, bytes + i, size));
      require(memcmp(to + at, bytes + i, size) == 0);
      require(to[at - 1] == 0x5a && to[at + size] == 0x5a);
    }
  }
  free(to);
  free(bytes);
}

// This machine's way of copying is the one that was meant.
TEST(a_copy_past_the_caches_wants_an_aligned_place) {
  if (!tarn__crc32c_is_wide()) {
    note_skipped("vectors", "the processor has no VPCLMULQDQ");
    return;
  }
  ck_assert(tarn__crc32c_copies((void *)(uintptr_t)4096));
  ck_assert(!tarn__crc32c_copies((void *)(uintptr_t)4112));
}

TEST(sums_of_two_parts_become_one) {
  enum { SIZE = 5000 };
  unsigned char *bytes = make_bytes(SIZE);
  uint32_t all = tarn__crc32c(0, bytes, SIZE);
  for (size_t cut = 0; cut <= SIZE; cut++) {
    uint32_t first = tarn__crc32c(0, bytes, cut);
    uint32_t second = tarn__crc32c(0, bytes + cut, SIZE - cut);
    require(tarn__crc32c_combine(first, second, SIZE - cut) == all);
  }
  free(bytes);
}

// Of more data than there is memory: in whichever order parts are joined.
TEST(sums_of_very_large_parts_become_one) {
  const uint32_t a = tarn__crc32c(0, "first", 5);
  const uint32_t b = tarn__crc32c(0, "second", 6);
  const uint32_t c = tarn__crc32c(0, "third", 5);
  for (int i = 0; i < 62; i++) {
    size_t of_b = (size_t)1 << i;
    size_t of_c = ((size_t)1 << 62) - of_b + 3;
    uint32_t left = tarn__crc32c_combine(a, b, of_b);
    uint32_t right = tarn__crc32c_combine(b, c, of_c);
    ck_assert_uint_eq(tarn__crc32c_combine(left, c, of_c),
                      tarn__crc32c_combine(a, right, of_b + of_c));
    ck_assert_uint_eq(tarn__crc32c_combine(a, 0, 0), a);
  }
}
