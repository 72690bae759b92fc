// plan_boxes.h - the boxes of a picture of a plan.
//
// The largest buffers are drawn one by one, with a title each that says what
// they are. All others are put on a grid of pixels, which is drawn as areas of
// one colour: so the picture shows them all, and its file stays small.
#ifndef TARN_TOOL_PLAN_BOXES_H_
#define TARN_TOOL_PLAN_BOXES_H_

#include "plan_picture.h"

enum { BOXES_MOST = 8000 };  // that are drawn one by one

typedef struct plan_boxes {
  size_t drawn;   // one by one
  size_t merged;  // on the grid
  size_t gaps;    // stretches within lifetimes that are not needed
  bool has_class[PICTURE_CLASSES];
} plan_boxes;

// Draws the buffers of all panels.
plan_boxes plan_boxes_write(const plan_picture *picture, FILE *out);

// |text| for XML, neutralised as in text.h.
void plan_boxes_text(const char *text, FILE *out);

#endif  // TARN_TOOL_PLAN_BOXES_H_
