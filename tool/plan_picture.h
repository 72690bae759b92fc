// plan_picture.h - where in a picture of a plan things stand.
//
// Steps go from left to right, offsets from bottom to top. Each arena in which
// something lies is a panel of its own; below them is a profile of the bytes
// needed at once, over the same steps.
//
//     left             right
//   top +----------------+
//       |  panel         |  its lines' labels
//       +----------------+
//       |  panel         |
//       +----------------+
//       |  needed        |
//       +----------------+
//        steps, legend
#ifndef TARN_TOOL_PLAN_PICTURE_H_
#define TARN_TOOL_PLAN_PICTURE_H_

#include "plan_merged.h"
#include "plan_report.h"

enum {
  PICTURE_WIDTH = 1280,
  PICTURE_LEFT = 92,
  PICTURE_RIGHT = 1136,  // of the panels
  PICTURE_TOP = 92,
  PICTURE_SIZES = 6,    // classes of sizes, each with a colour
  PICTURE_CLASSES = 8,  // of them, or of colours of the input
  PICTURE_MOST_PANELS = 16,
  LEGEND_LINE = 22,  // pixels from line to line of the legend
};

typedef struct picture_panel {
  size_t arena;
  int top;  // pixels
  int height;
  uint64_t used;      // bytes: the highest end
  uint64_t capacity;  // 0: none
  uint64_t most;      // bytes at its upper edge, more than 0
} picture_panel;

typedef struct plan_picture {
  const plan_answer *answer;
  const plan_merged *merged;  // what |answer| has buffers of; NULL: its own
  size_t buffer_count;        // of the input
  double line;                // where the peak's line is; 0: there is none
  picture_panel panels[PICTURE_MOST_PANELS];
  size_t panel_count;
  size_t panels_left_out;
  int needed_top;  // of the strip below the panels
  int needed_height;
  int bottom;                  // below it: ticks and legend
  int height;                  // of the whole
  uint64_t first;              // steps at the left and at the right
  uint64_t last;               // more than |first|
  unsigned char class_of[64];  // by the bits of a size
} plan_picture;

// Of an answer that has offsets; |merged| as in the picture.
void plan_picture_init(plan_picture *picture, const plan_answer *answer,
                       const plan_merged *merged);

uint32_t plan_picture_arena(const plan_answer *answer, size_t buffer);

double plan_picture_x(const plan_picture *picture, uint64_t step);
double plan_picture_y(const picture_panel *panel, uint64_t offset);

// Whether something stands above the capacity.
bool plan_picture_exceeds(const picture_panel *panel);

// The class of a buffer's colour, what it stands for, or the largest size of
// it, and its name in the style sheet: FORMAT_SIZE bytes each.
int plan_picture_class(const plan_picture *picture, size_t buffer);
char *plan_picture_class_text(const plan_picture *picture, int class,
                              char *out);
char *plan_picture_class_style(const plan_picture *picture, int class,
                               char *out);

// The most bytes needed at once in each pixel's steps: |columns| values from
// the left edge on.
void plan_picture_needed(const plan_picture *picture, uint64_t *columns);

enum { PICTURE_COLUMNS = PICTURE_RIGHT - PICTURE_LEFT };

// The distance of ticks: 1, 2 or 5 times a power of ten, or a power of two,
// so that there are at most |count| of them.
uint64_t plan_picture_step(uint64_t range, uint64_t count);
uint64_t plan_picture_step_bytes(uint64_t range, uint64_t count);

// "512 KiB" into |out|, FORMAT_SIZE bytes: without a zero fraction.
char *plan_picture_bytes(char *out, uint64_t bytes);

#endif  // TARN_TOOL_PLAN_PICTURE_H_
