// The product is made of tiles of TALL rows and WIDE columns, whose sums stay
// in registers:
//
//              WIDE
//            +------+
//     inner  |  b   |        each step down |inner| reads one row of b's
//            |      |        strip and TALL elements of a
//            +------+
//   +------+ +------+
//   |  a   | | sums | TALL
//   +------+ +------+
#include "matrix.h"

#include <string.h>

// Four numbers that are computed with at once. gcc and clang have such types on
// every machine; of arrays, gcc 12 keeps the sums in memory, at a fifth of the
// speed.
typedef float four __attribute__((vector_size(16)));

enum { TALL = 4, FOURS = 2, WIDE = 4 * FOURS };

// What a tile starts with.
static void start(four sums[TALL][FOURS], const float *bias) {
  four row[FOURS] = {{0}};
  if (bias != NULL) memcpy(row, bias, sizeof row);
  for (size_t i = 0; i < TALL; i++)
    memcpy(sums[i], row, sizeof row);
}

static void whole_tile(size_t inner, size_t columns, matrix a, const float *b,
                       const float *bias, float *out) {
  four sums[TALL][FOURS];
  start(sums, bias);
  for (size_t k = 0; k < inner; k++) {
    four row[FOURS];
    memcpy(row, b + k * columns, sizeof row);
    for (size_t i = 0; i < TALL; i++)
      for (size_t j = 0; j < FOURS; j++)
        sums[i][j] += a.at[i * a.row + k * a.column] * row[j];
  }
  for (size_t i = 0; i < TALL; i++)
    memcpy(out + i * columns, sums[i], sizeof sums[i]);
}

// A tile at the edge, of |tall| rows and |wide| columns, element by element.
static void part_tile(size_t tall, size_t wide, size_t inner, size_t columns,
                      matrix a, const float *b, const float *bias, float *out) {
  for (size_t i = 0; i < tall; i++) {
    for (size_t j = 0; j < wide; j++) {
      float sum = bias == NULL ? 0 : bias[j];
      for (size_t k = 0; k < inner; k++)
        sum += a.at[i * a.row + k * a.column] * b[k * columns + j];
      out[i * columns + j] = sum;
    }
  }
}

static size_t at_most(size_t most, size_t left) {
  return left < most ? left : most;
}

// Column by column of tiles, so that a strip of |b| stays in the cache.
void matrix_product(size_t rows, size_t inner, size_t columns, matrix a,
                    const float *b, const float *bias, float *out) {
  for (size_t j = 0; j < columns; j += WIDE) {
    const float *from = bias == NULL ? NULL : bias + j;
    for (size_t i = 0; i < rows; i += TALL) {
      size_t tall = at_most(TALL, rows - i), wide = at_most(WIDE, columns - j);
      matrix strip = {a.at + i * a.row, a.row, a.column};
      float *to = out + i * columns + j;
      if (tall == TALL && wide == WIDE)
        whole_tile(inner, columns, strip, b + j, from, to);
      else
        part_tile(tall, wide, inner, columns, strip, b + j, from, to);
    }
  }
}

void matrix_turn(size_t rows, size_t columns, const float *in, float *out) {
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < columns; j++)
      out[j * rows + i] = in[i * columns + j];
}
