// Stacks of frames of texts, each of them a string in a set.
#include "trace/history.h"

#include <string.h>

#include "base/status.h"

void tarn__stacks_init(tarn__trace_stacks *stacks, tarn__budget *budget) {
  stacks->budget = budget;
  stacks->scratch = TARN__ARRAY_OF(char);
  tarn__intern_init(&stacks->texts);
  tarn__intern_init(&stacks->frames);
  tarn__intern_init(&stacks->stacks);
}

void tarn__stacks_deinit(tarn__trace_stacks *stacks) {
  tarn__intern_deinit(&stacks->stacks, stacks->budget);
  tarn__intern_deinit(&stacks->frames, stacks->budget);
  tarn__intern_deinit(&stacks->texts, stacks->budget);
  tarn__array_free(stacks->budget, &stacks->scratch);
}

tarn_status tarn__stacks_zero_ended(tarn__trace_stacks *stacks,
                                    const char *text, size_t size) {
  void *copy = NULL;
  stacks->scratch.count = 0;
  TARN__TRY(
      tarn__array_grow(stacks->budget, &stacks->scratch, size + 1, &copy));
  if (size != 0) memcpy(copy, text, size);
  ((char *)copy)[size] = '\0';
  return TARN_OK;
}

tarn_status tarn__stacks_text(tarn__trace_stacks *stacks, const char *text,
                              size_t size, uint32_t *out_text) {
  *out_text = 0;
  TARN__TRY(tarn__stacks_zero_ended(stacks, text, size));
  return tarn__intern_put(&stacks->texts, stacks->budget, stacks->scratch.items,
                          size + 1, out_text);
}

tarn_status tarn__stacks_frame(tarn__trace_stacks *stacks,
                               tarn__trace_frame frame, uint32_t *out_frame) {
  return tarn__intern_put(&stacks->frames, stacks->budget, &frame, sizeof frame,
                          out_frame);
}

tarn_status tarn__stacks_frame_of(tarn__trace_stacks *stacks, const char *file,
                                  const char *function, uint32_t line,
                                  uint32_t *out_frame) {
  tarn__trace_frame frame = {.line = line};
  TARN__TRY(tarn__stacks_text(stacks, file, strlen(file), &frame.file));
  TARN__TRY(
      tarn__stacks_text(stacks, function, strlen(function), &frame.function));
  return tarn__stacks_frame(stacks, frame, out_frame);
}

tarn_status tarn__stacks_stack(tarn__trace_stacks *stacks,
                               const uint32_t *frames, size_t count,
                               uint32_t *out_stack) {
  *out_stack = TARN_TRACE_NO_STACK;
  if (count == 0) return TARN_OK;
  return tarn__intern_put(&stacks->stacks, stacks->budget, frames,
                          count * sizeof *frames, out_stack);
}
