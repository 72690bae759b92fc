// Which bytes are whose: numbers only.
#include <string.h>

#include "support/effort.h"
#include "support/run.h"
#include "whole/whole.h"

enum { MOST = 64 };

static void assert_counts(size_t blocks, size_t ranks, const size_t *expected) {
  size_t counts[MOST];
  memset(counts, 0x5a, sizeof counts);
  assert_ok(tarn_whole_partition(blocks, ranks, counts));
  for (size_t r = 0; r < ranks; r++)
    ck_assert_uint_eq(counts[r], expected[r]);
}

#define ASSERT_COUNTS(blocks, ranks, ...) \
  assert_counts(blocks, ranks, (const size_t[]){__VA_ARGS__})

TEST(equal_partitions) {
  ASSERT_COUNTS(15, 4, 4, 4, 4, 3);
  ASSERT_COUNTS(9, 8, 2, 2, 2, 2, 1, 0, 0, 0);
  ASSERT_COUNTS(1, 4, 1, 0, 0, 0);
  ASSERT_COUNTS(0, 3, 0, 0, 0);
  ASSERT_COUNTS(8, 4, 2, 2, 2, 2);
  ASSERT_COUNTS(7, 1, 7);
}

TEST(partitions_of_very_many_blocks) {
  ASSERT_COUNTS(SIZE_MAX, 1, SIZE_MAX);
  ASSERT_COUNTS(SIZE_MAX, 2, SIZE_MAX / 2 + 1, SIZE_MAX / 2);
  size_t counts[MOST];
  for (size_t ranks = 1; ranks <= MOST; ranks++) {
    size_t sum = 0;
    assert_ok(tarn_whole_partition(SIZE_MAX - 3, ranks, counts));
    for (size_t r = 0; r < ranks; r++) {
      ck_assert(tarn_size_add(sum, counts[r], &sum));
      ck_assert_uint_le(counts[r], counts[0]);
    }
    ck_assert_uint_eq(sum, SIZE_MAX - 3);
  }
}

TEST(what_is_no_partition) {
  size_t counts[1];
  assert_status(tarn_whole_partition(3, 0, counts), TARN_E_INVALID);
  assert_error_says("0 ranks");
  assert_status(tarn_whole_partition(3, 1, NULL), TARN_E_INVALID);
}

// --- offsets ---------------------------------------------------------------

TEST(offsets_of_custom_partitions) {
  static const size_t counts[] = {10, 1};
  size_t offsets[3];
  assert_ok(tarn__partition_offsets(counts, 2, 88, 8, offsets));
  ck_assert_uint_eq(offsets[0], 0);
  ck_assert_uint_eq(offsets[1], 80);
  ck_assert_uint_eq(offsets[2], 88);
  // The mean would say that block 6 is the second's.
  ck_assert_uint_eq(tarn__partition_owner(offsets, 2, (size_t)6 * 8), 0);
  ck_assert_uint_eq(tarn__partition_owner(offsets, 2, 80), 1);
}

TEST(offsets_in_the_place_of_counts) {
  size_t offsets[] = {99, 3, 0, 4};
  assert_ok(tarn__partition_offsets(offsets + 1, 3, 70, 10, offsets));
  ck_assert_uint_eq(offsets[0], 0);
  ck_assert_uint_eq(offsets[1], 30);
  ck_assert_uint_eq(offsets[2], 30);
  ck_assert_uint_eq(offsets[3], 70);
}

TEST(sums_that_are_wrong) {
  static const size_t few[] = {3, 3};
  static const size_t many[] = {3, 5};
  static const size_t huge[] = {SIZE_MAX / 2, SIZE_MAX / 2};
  static const size_t wrapping[] = {SIZE_MAX, 8};
  size_t offsets[3];
  assert_status(tarn__partition_offsets(few, 2, 70, 10, offsets),
                TARN_E_INVALID);
  assert_error_says("6 blocks of 10 bytes, but the whole memory has 7");
  assert_status(tarn__partition_offsets(many, 2, 70, 10, offsets),
                TARN_E_INVALID);
  assert_error_says("more blocks than the 7 of 10 bytes each");
  assert_status(tarn__partition_offsets(huge, 2, 70, 10, offsets),
                TARN_E_INVALID);
  assert_status(tarn__partition_offsets(wrapping, 2, 7, 1, offsets),
                TARN_E_INVALID);
}

// --- owners ----------------------------------------------------------------

static uint64_t state = 88172645463325252;

static size_t draw(size_t below) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (size_t)(state % below);
}

static size_t search_owner(const size_t *offsets, size_t ranks, size_t at) {
  for (size_t r = 0; r < ranks; r++)
    if (offsets[r] <= at && at < offsets[r + 1]) return r;
  return ranks;
}

// Ranks without blocks at the beginning, in the middle, at the end.
TEST(the_owner_is_found_among_empty_ranks) {
  size_t offsets[MOST + 1];
  for (int round = 0; round < EFFORT(2000, 200); round++) {
    size_t ranks = 1 + draw(MOST);
    offsets[0] = 0;
    for (size_t r = 0; r < ranks; r++)
      offsets[r + 1] = offsets[r] + (draw(3) == 0 ? 0 : draw(9));
    for (size_t at = 0; at < offsets[ranks]; at++) {
      require(tarn__partition_owner(offsets, ranks, at) ==
              search_owner(offsets, ranks, at));
    }
  }
}

TEST(owners_beyond_4_gib) {
  size_t offsets[] = {0, (size_t)5 << 32, (size_t)5 << 32, (size_t)9 << 32};
  ck_assert_uint_eq(tarn__partition_owner(offsets, 3, ((size_t)5 << 32) - 1),
                    0);
  ck_assert_uint_eq(tarn__partition_owner(offsets, 3, (size_t)5 << 32), 2);
  ck_assert_uint_eq(tarn__partition_owner(offsets, 3, ((size_t)9 << 32) - 1),
                    2);
}

// --- pieces ----------------------------------------------------------------

TEST(large_pieces_are_cut_at_huge_pages) {
  size_t mib = (size_t)1 << 20;
  ck_assert_uint_eq(tarn__partition_piece(16 * mib, 2, 65536), 2 * mib);
  ck_assert_uint_eq(tarn__partition_piece(16 * mib - 2, 2, 65536), 65536);
  ck_assert_uint_eq(tarn__partition_piece(0, 2, 65536), 65536);
  ck_assert_uint_eq(tarn__partition_piece(64 * mib, 1, 4 * mib), 4 * mib);
  ck_assert_uint_eq(tarn__partition_cut(0, 4096), 0);
  ck_assert_uint_eq(tarn__partition_cut(1, 4096), 4096);
  ck_assert_uint_eq(tarn__partition_cut(4096, 4096), 4096);
}

TEST(types_have_names) {
  ck_assert_str_eq(tarn_whole_type_name(TARN_WHOLE_CONTINUOUS), "continuous");
  ck_assert_str_eq(tarn_whole_type_name(TARN_WHOLE_CHUNKED), "chunked");
  ck_assert_str_eq(tarn_whole_type_name(TARN_WHOLE_DISTRIBUTED), "distributed");
  ck_assert_ptr_null(tarn_whole_type_name((tarn_whole_type)0));
  ck_assert_str_eq(tarn_whole_type_name(TARN_WHOLE_HIERARCHICAL),
                   "hierarchical");
  ck_assert_ptr_null(tarn_whole_type_name((tarn_whole_type)5));
}
