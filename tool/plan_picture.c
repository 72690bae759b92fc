// The layout of a picture: panels, scales, colours by size.
#include "plan_picture.h"

#include <stdlib.h>
#include <string.h>

#include "kit/format.h"
#include "plan_changes.h"

enum {
  PANELS_HEIGHT = 520,  // all together, if there are few
  PANEL_LEAST = 64,
  PANEL_GAP = 34,  // room for a title
  NEEDED_HEIGHT = 76,
  NEEDED_GAP = 26,
  FOOT = 108,
};

// ---------------------------------------------------------------------------
// Panels
// ---------------------------------------------------------------------------

uint32_t plan_picture_arena(const plan_answer *answer, size_t buffer) {
  return answer->arenas != NULL ? answer->arenas[buffer] : 0;
}

static uint64_t end_of(const plan_answer *answer, size_t buffer) {
  return answer->offsets[buffer] + answer->problem.buffers[buffer].size;
}

// Highest ends by arena. Free it.
static uint64_t *measure(const plan_answer *answer) {
  uint64_t *used = tool_array(answer->problem.arena_count, sizeof *used);
  for (size_t i = 0; i < answer->problem.count; i++) {
    uint64_t *mine = &used[plan_picture_arena(answer, i)];
    if (end_of(answer, i) > *mine) *mine = end_of(answer, i);
  }
  return used;
}

// A capacity that is far above all is not drawn: there would be nothing else to
// see.
static uint64_t most_shown(const picture_panel *panel) {
  uint64_t most = panel->used;
  if (panel->capacity > most && panel->capacity / 2 < most) {
    most = panel->capacity;
  }
  return most > 0 ? most : 1;
}

static void add_panel(plan_picture *p, size_t arena, uint64_t used) {
  if (p->panel_count == PICTURE_MOST_PANELS) {
    p->panels_left_out++;
    return;
  }
  picture_panel *panel = &p->panels[p->panel_count++];
  *panel = (picture_panel){.arena = arena,
                           .used = used,
                           .capacity = p->answer->problem.capacities[arena]};
  panel->most = most_shown(panel);
}

static void find_panels(plan_picture *p) {
  uint64_t *used = measure(p->answer);
  for (size_t i = 0; i < p->answer->problem.arena_count; i++) {
    if (used[i] > 0) add_panel(p, i, used[i]);
  }
  if (p->panel_count == 0) add_panel(p, 0, 0);
  free(used);
}

// As high as they are large, but high enough to be seen.
static void place_panels(plan_picture *p) {
  double all = 0;
  int y = PICTURE_TOP;
  for (size_t i = 0; i < p->panel_count; i++)
    all += (double)p->panels[i].most;
  for (size_t i = 0; i < p->panel_count; i++) {
    picture_panel *panel = &p->panels[i];
    panel->top = y;
    panel->height = (int)(PANELS_HEIGHT * ((double)panel->most / all));
    if (panel->height < PANEL_LEAST) panel->height = PANEL_LEAST;
    y += panel->height + PANEL_GAP;
  }
  p->needed_top = y - PANEL_GAP + NEEDED_GAP;
  p->needed_height = NEEDED_HEIGHT;
  p->bottom = p->needed_top + NEEDED_HEIGHT;
  p->height = p->bottom + FOOT + (p->merged != NULL ? LEGEND_LINE : 0);
}

// ---------------------------------------------------------------------------
// Scales
// ---------------------------------------------------------------------------

static void find_steps(plan_picture *p) {
  const tarn_plan_problem *problem = &p->answer->problem;
  p->first = problem->count > 0 ? UINT64_MAX : 0;
  for (size_t i = 0; i < problem->count; i++) {
    const tarn_plan_buffer *b = &problem->buffers[i];
    if (b->first < p->first) p->first = b->first;
    if (b->last > p->last) p->last = b->last;
  }
  if (p->last <= p->first) p->last = p->first + 1;
}

double plan_picture_x(const plan_picture *p, uint64_t step) {
  double part = (double)(step - p->first) / (double)(p->last - p->first);
  return PICTURE_LEFT + part * PICTURE_COLUMNS;
}

double plan_picture_y(const picture_panel *panel, uint64_t offset) {
  double part = (double)offset / (double)panel->most;
  return panel->top + panel->height * (1 - part);
}

bool plan_picture_exceeds(const picture_panel *panel) {
  return panel->capacity > 0 && panel->used > panel->capacity;
}

uint64_t plan_picture_step(uint64_t range, uint64_t count) {
  static const uint64_t parts[] = {1, 2, 5};
  for (uint64_t ten = 1;; ten *= 10) {
    for (int i = 0; i < 3; i++) {
      if (range / (parts[i] * ten) <= count) return parts[i] * ten;
    }
    if (ten > UINT64_MAX / 100) return ten;
  }
}

uint64_t plan_picture_step_bytes(uint64_t range, uint64_t count) {
  uint64_t step = 1;
  while (range / step > count)
    step *= 2;
  return step;
}

// "512 KiB": without a zero fraction.
char *plan_picture_bytes(char *out, uint64_t bytes) {
  format_bytes(out, bytes);
  char *fraction = strstr(out, ".00 ");
  if (fraction != NULL) memmove(fraction, fraction + 3, strlen(fraction + 2));
  return out;
}

// ---------------------------------------------------------------------------
// Colours
// ---------------------------------------------------------------------------

// The least power of two that is not below |size|, as its exponent.
static unsigned bits_of(uint64_t size) {
  unsigned bits = 0;
  while (bits < 63 && (UINT64_C(1) << bits) < size)
    bits++;
  return bits;
}

// How much of the picture each power of two takes.
static double sum_areas(const tarn_plan_problem *problem, double *areas) {
  double all = 0;
  for (size_t i = 0; i < problem->count; i++) {
    const tarn_plan_buffer *b = &problem->buffers[i];
    double area = (double)b->size * (double)(b->last - b->first);
    areas[bits_of(b->size)] += area;
    all += area;
  }
  return all;
}

// Each class takes as much of the picture as the others, as far as powers of
// two allow it.
static void find_classes(plan_picture *p) {
  double areas[64] = {0}, seen = 0;
  double all = sum_areas(&p->answer->problem, areas);
  for (int bits = 0; bits < 64; bits++) {
    double middle = seen + areas[bits] / 2;
    int class = all > 0 ? (int)(PICTURE_SIZES * middle / all) : 0;
    if (class >= PICTURE_SIZES) class = PICTURE_SIZES - 1;
    p->class_of[bits] = (unsigned char)class;
    seen += areas[bits];
  }
}

int plan_picture_class(const plan_picture *p, size_t buffer) {
  if (p->merged != NULL) return p->merged->colour[buffer];
  return p->class_of[bits_of(p->answer->problem.buffers[buffer].size)];
}

char *plan_picture_class_text(const plan_picture *p, int class, char *out) {
  const plan_input *input = p->answer->input;
  uint64_t most = 0;
  char bytes[FORMAT_SIZE];
  if (p->merged != NULL) {
    const char *name = input->kind->colour_name(input, class);
    snprintf(out, FORMAT_SIZE, "%s", name != NULL ? name : "");
    return out;
  }
  for (size_t i = 0; i < p->answer->problem.count; i++) {
    uint64_t size = p->answer->problem.buffers[i].size;
    if (size > most && plan_picture_class(p, i) == class) most = size;
  }
  snprintf(out, FORMAT_SIZE, "up to %.40s", plan_picture_bytes(bytes, most));
  return out;
}

char *plan_picture_class_style(const plan_picture *p, int class, char *out) {
  const plan_input *input = p->answer->input;
  char letter = 'c';
  if (p->merged != NULL) letter = input->kind->colour_class(input);
  snprintf(out, FORMAT_SIZE, "%c%d", letter, class);
  return out;
}

// ---------------------------------------------------------------------------
// What is needed at once
// ---------------------------------------------------------------------------

// Raises the columns of the steps from |begin| to |end| to |live|.
static void raise(const plan_picture *p, uint64_t begin, uint64_t end,
                  uint64_t live, uint64_t *columns) {
  int from = (int)(plan_picture_x(p, begin) - PICTURE_LEFT);
  int to = (int)(plan_picture_x(p, end) - PICTURE_LEFT);
  for (int i = from; i <= to && i < PICTURE_COLUMNS; i++) {
    if (i < to || i == from) columns[i] = live > columns[i] ? live : columns[i];
  }
}

void plan_picture_needed(const plan_picture *p, uint64_t *columns) {
  const tarn_plan_problem *problem = &p->answer->problem;
  plan_changes changes =
      plan_changes_make(problem, NULL, problem->count, p->answer->offsets);
  uint64_t live = 0;
  memset(columns, 0, PICTURE_COLUMNS * sizeof *columns);
  for (size_t i = 0; i + 1 < changes.count; i++) {
    const plan_change *at = &changes.items[i];
    live = at->begins ? live + at->size : live - at->size;
    if (at[1].step > at->step) raise(p, at->step, at[1].step, live, columns);
  }
  plan_changes_deinit(&changes);
}

void plan_picture_init(plan_picture *p, const plan_answer *answer,
                       const plan_merged *merged) {
  *p = (plan_picture){.answer = answer,
                      .merged = merged,
                      .buffer_count = answer->problem.count};
  find_steps(p);
  find_classes(p);
  find_panels(p);
  place_panels(p);
}
