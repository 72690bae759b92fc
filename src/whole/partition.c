// Which bytes a rank owns: numbers only, no memory.
//
//   blocks    0  1  2  3 | 4  5  6  7 | 8  9 10 11 | 12 13 14      15 on 4
//   offsets   0            4            8            12        15  in blocks
//
// A rank without blocks has two equal offsets, and is never found as the owner
// of a byte. Owners are looked up by offsets, never computed from an average.
#include "base/status.h"
#include "whole/whole.h"

// --- the equal partition ---------------------------------------------------

size_t tarn__partition_count(size_t blocks, size_t ranks, size_t rank) {
  size_t most = blocks / ranks + (blocks % ranks != 0);
  size_t begin = 0;
  if (!tarn_size_mul(most, rank, &begin) || begin >= blocks) return 0;
  size_t left = blocks - begin;
  return left < most ? left : most;
}

tarn_status tarn_whole_partition(size_t blocks, size_t ranks,
                                 size_t *out_counts) {
  if (ranks == 0 || out_counts == NULL) {
    return tarn__fail(TARN_E_INVALID, "whole partition: %s",
                      ranks == 0 ? "0 ranks" : "NULL");
  }
  for (size_t r = 0; r < ranks; r++)
    out_counts[r] = tarn__partition_count(blocks, ranks, r);
  return TARN_OK;
}

// --- offsets ---------------------------------------------------------------

tarn_status tarn__partition_offsets(const size_t *counts, size_t ranks,
                                    size_t size, size_t granularity,
                                    size_t *out_offsets) {
  size_t end = 0;
  out_offsets[0] = 0;
  for (size_t r = 0; r < ranks; r++) {
    size_t bytes = 0;
    if (!tarn_size_mul(counts[r], granularity, &bytes) || bytes > size - end) {
      return tarn__fail(
          TARN_E_INVALID,
          "whole: the partition over %zu ranks has more blocks than the %zu of "
          "%zu bytes each",
          ranks, size / granularity, granularity);
    }
    end += bytes;
    out_offsets[r + 1] = end;
  }
  if (end == size) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "whole: the partition has %zu blocks of %zu bytes, but the "
                    "whole memory has %zu",
                    end / granularity, granularity, size / granularity);
}

// The last rank that begins at |offset| or before: those before it that begin
// there too are empty.
size_t tarn__partition_owner(const size_t *offsets, size_t ranks,
                             size_t offset) {
  size_t low = 0;
  size_t high = ranks;
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;
    if (offsets[middle] <= offset) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// --- pieces ----------------------------------------------------------------

size_t tarn__partition_piece(size_t size, size_t ranks, size_t least) {
  bool large = size / ranks >= (size_t)TARN__WHOLE_PIECE * TARN__WHOLE_LARGE;
  return large && least < TARN__WHOLE_PIECE ? TARN__WHOLE_PIECE : least;
}
