// python_lines.h - from a position in the code of a Python function to a line.
//
// Three forms of the table that says it: Objects/lnotab_notes.txt of 3.9 and of
// 3.10, Objects/locations.md of 3.11 describe them. A table that ends within an
// entry, or is of another form, gives a wrong line and nothing worse.
#ifndef TARN_RECORD_PYTHON_LINES_H_
#define TARN_RECORD_PYTHON_LINES_H_

#include <stddef.h>
#include <stdint.h>

typedef enum python_lines {
  PYTHON_LINES_9,
  PYTHON_LINES_10,
  PYTHON_LINES_11,  // and later
} python_lines;

typedef struct python_line_table {
  python_lines form;
  const unsigned char *bytes;
  size_t size;
  int32_t first_line;
} python_line_table;

// The line at |position|, in bytes; below 0: before the first instruction. 0:
// there is no line.
uint32_t python_lines_find(const python_line_table *table, int32_t position);

#endif  // TARN_RECORD_PYTHON_LINES_H_
