// A test double: stands where record/python_layout.c does in a recorder that is
// wrong about Python. Each field of the layout may be moved by
// TARN_WRONG_LAYOUT=FIELD:BYTES of the environment; the fields are numbered
// from 0 behind |position|.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "record/python_layout.h"

// python_layout.c of this recorder has this name for its function.
const python_layout *python_layout_right(const char *version,
                                         const void *runtime,
                                         const char **out_why);

const python_layout *python_layout_find(const char *version,
                                        const void *runtime,
                                        const char **out_why) {
  static python_layout moved;
  const char *order = getenv("TARN_WRONG_LAYOUT");
  const python_layout *right = python_layout_right(version, runtime, out_why);
  size_t field = 0;
  int bytes = 0;
  if (right == NULL || order == NULL) return right;
  if (sscanf(order, "%zu:%d", &field, &bytes) != 2) return right;
  moved = *right;
  uint16_t *at = &moved.thread_frame + field;
  if (*at != PYTHON_NOWHERE) *at = (uint16_t)(*at + bytes);
  return &moved;
}
