// plan_svg.h - a plan as a picture: offset over time, each buffer a box.
//
// The file stands alone, wears the colours of the light or the dark that its
// reader prefers, and stays below a few MiB: the largest boxes have a name and
// figures each, the others are merged into areas of their colour.
#ifndef TARN_TOOL_PLAN_SVG_H_
#define TARN_TOOL_PLAN_SVG_H_

#include "plan_report.h"

// Draws the plan. Where there is none within the capacity: the lowest that was
// found, with what is above the capacity in red. False after a message.
bool plan_svg_write(const tool_verb *verb, const plan_answer *answer,
                    const char *path);

#endif  // TARN_TOOL_PLAN_SVG_H_
