// plan_previous.h - a plan that was made before, by the buffers of another
// file.
#ifndef TARN_TOOL_PLAN_PREVIOUS_H_
#define TARN_TOOL_PLAN_PREVIOUS_H_

#include "plan_input.h"

typedef struct plan_previous {
  uint64_t *offsets;  // by buffer of the new input; NO_OFFSET: it is new
  uint32_t *arenas;   // 0 where the file says none
} plan_previous;

// Reads the plan at |path| and looks each buffer of |input| up by its id; a
// plan that has none of them is a mistake. TOOL_DONE, or TOOL_NO after a
// message.
tool_exit plan_previous_read(const plan_input *input, const char *path,
                             plan_previous *out);

// A zero-filled one is allowed.
void plan_previous_deinit(plan_previous *previous);

#endif  // TARN_TOOL_PLAN_PREVIOUS_H_
