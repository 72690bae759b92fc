// matrix.h - products of matrices by plain loops, with no library.
#ifndef TARN_EXAMPLES_TRAIN_MATRIX_H_
#define TARN_EXAMPLES_TRAIN_MATRIX_H_

#include <stddef.h>

// Element (i, j) is at[i * row + j * column]. So a matrix may be part of a
// wider one, or be read with rows for columns.
typedef struct matrix {
  const float *at;
  size_t row;
  size_t column;
} matrix;

// out [rows, columns] = a [rows, inner] * b [inner, columns] + bias [columns].
// Rows of |b|, which are |columns| long, and of |out| are dense; |bias| NULL:
// zeros.
//
// Each element is summed in the order of |inner|, whatever the other sizes are:
// a row's result is the same in a product of more or fewer rows.
void matrix_product(size_t rows, size_t inner, size_t columns, matrix a,
                    const float *b, const float *bias, float *out);

// out [columns, rows] = in [rows, columns], both dense.
void matrix_turn(size_t rows, size_t columns, const float *in, float *out);

#endif  // TARN_EXAMPLES_TRAIN_MATRIX_H_
