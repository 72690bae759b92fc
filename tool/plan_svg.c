// The picture of a plan: a frame of axes and lines around its boxes.
#include "plan_svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "embedded.h"
#include "kit/format.h"
#include "outfile.h"
#include "plan_boxes.h"

enum {
  TICKS_Y = 8,
  TICKS_X = 12,
  LABEL_X = PICTURE_RIGHT + 22,
  LABEL_LINE = 15,  // pixels from line to line
  MARKS = 3,
};

typedef struct canvas {
  const plan_picture *picture;
  FILE *out;
} canvas;

// ---------------------------------------------------------------------------
// Primitives
// ---------------------------------------------------------------------------

static void write_text(const canvas *c, const char *class, double x, double y,
                       const char *text) {
  fprintf(c->out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
  plan_boxes_text(text, c->out);
  fputs("</text>\n", c->out);
}

static void write_line(const canvas *c, const char *class, double x0, double y0,
                       double x1, double y1) {
  fprintf(c->out, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", class,
          x0, y0, x1, y1);
}

static void write_area(const canvas *c, const char *class, int x, int y,
                       int width, int height) {
  fprintf(c->out,
          "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
          class, x, y, width, height);
}

// ---------------------------------------------------------------------------
// Headings
// ---------------------------------------------------------------------------

static void describe(const plan_picture *p, char *out, size_t size) {
  const plan_answer *answer = p->answer;
  char count[FORMAT_SIZE], height[FORMAT_SIZE], ratio[64] = "";
  double bound = (double)answer->info.lower_bound;
  if (answer->problem.arena_count > 1) {
    snprintf(ratio, sizeof ratio, " in %zu arenas",
             answer->problem.arena_count);
  } else if (answer->info.answer == TARN_PLAN_OPTIMAL) {
    snprintf(ratio, sizeof ratio, ": no plan is lower");
  } else if (bound > 0) {
    snprintf(ratio, sizeof ratio, ", %.2f%% above the lower bound",
             100 * ((double)answer->info.height / bound - 1));
  }
  snprintf(out, size, "%s buffer%s, %s high%s",
           format_count(count, p->buffer_count),
           p->buffer_count == 1 ? "" : "s",
           format_bytes_exact(height, answer->info.height), ratio);
}

// One panel stands for all where there is no plan within the capacity.
static bool is_short(const canvas *c) {
  return c->picture->answer->shortage.offsets != NULL &&
         plan_picture_exceeds(&c->picture->panels[0]);
}

// "It does not fit into 6.00 GiB: 544.43 MiB too much at event 9,966, in red"
static void describe_shortage(const canvas *c, char *out, size_t size) {
  const plan_answer *answer = c->picture->answer;
  const plan_shortage *s = &answer->shortage;
  const picture_panel *panel = &c->picture->panels[0];
  char room[FORMAT_SIZE], excess[FORMAT_SIZE], where[FORMAT_SIZE] = "";
  uint64_t bytes = s->excess > 0 ? s->excess : panel->used - panel->capacity;
  if (s->excess > 0 && s->has_step) {
    plan_input_step(answer->input, s->step, where, sizeof where);
  }
  snprintf(out, size, "It does not fit into %s: %s too much%s, in red",
           format_bytes(room, panel->capacity), format_bytes(excess, bytes),
           s->excess > 0 ? where : " in this plan");
}

static const uint64_t NOWHERE = UINT64_MAX;

// The step in which most is needed at once, and what that is; NOWHERE: the
// input does not say.
static uint64_t explain(const canvas *c, char *out, size_t size) {
  const plan_input *input = c->picture->answer->input;
  uint64_t step = 0;
  if (c->picture->merged == NULL) return NOWHERE;
  return input->kind->explain(input, &step, out, size) ? step : NOWHERE;
}

static void write_headings(const canvas *c) {
  char text[512];
  const plan_answer *answer = c->picture->answer;
  write_text(c, "h", PICTURE_LEFT, 34, tool_base_name(answer->input->path));
  if (is_short(c)) {
    describe_shortage(c, text, sizeof text);
    write_text(c, "d w", PICTURE_LEFT, 58, text);
  } else {
    describe(c->picture, text, sizeof text);
    write_text(c, "d", PICTURE_LEFT, 58, text);
  }
  if (explain(c, text, sizeof text) != NOWHERE)
    write_text(c, "d", PICTURE_LEFT, 78, text);
}

// ---------------------------------------------------------------------------
// Axes
// ---------------------------------------------------------------------------

static void write_offsets(const canvas *c, const picture_panel *panel) {
  char text[FORMAT_SIZE];
  uint64_t most = (uint64_t)panel->height / 44 + 1;
  uint64_t step =
      plan_picture_step_bytes(panel->most, most < TICKS_Y ? most : TICKS_Y);
  for (uint64_t at = 0; at <= panel->most; at += step) {
    double y = plan_picture_y(panel, at);
    write_line(c, "grid", PICTURE_LEFT, y, PICTURE_RIGHT, y);
    write_text(c, "t e", PICTURE_LEFT - 8, y + 4, plan_picture_bytes(text, at));
    if (at > panel->most - step) return;
  }
}

static void write_steps(const canvas *c) {
  const plan_picture *p = c->picture;
  char text[FORMAT_SIZE];
  uint64_t step = plan_picture_step(p->last - p->first, TICKS_X);
  uint64_t at = p->first % step == 0 ? p->first : p->first - p->first % step;
  for (at += at < p->first ? step : 0; at <= p->last; at += step) {
    double x = plan_picture_x(p, at);
    for (size_t i = 0; i < p->panel_count; i++) {
      const picture_panel *panel = &p->panels[i];
      write_line(c, "grid", x, panel->top, x, panel->top + panel->height);
    }
    write_line(c, "grid", x, p->needed_top, x, p->bottom + 5);
    write_text(c, "t x", x, p->bottom + 20, format_count(text, at));
    if (at > UINT64_MAX - step) break;
  }
  write_text(c, "t x", (PICTURE_LEFT + PICTURE_RIGHT) / 2.0, p->bottom + 40,
             "step");
}

// ---------------------------------------------------------------------------
// Lines with names
// ---------------------------------------------------------------------------

typedef struct mark {
  const char *name;
  const char *class;
  uint64_t value;
} mark;

static int compare_marks(const void *a, const void *b) {
  const mark *x = a, *y = b;
  return (x->value < y->value) - (x->value > y->value);
}

static size_t find_marks(const plan_picture *p, const picture_panel *panel,
                         mark *out) {
  size_t count = 0;
  bool single = p->panel_count == 1 && p->panels_left_out == 0;
  out[count++] = (mark){"height", "line height", panel->used};
  if (single) {
    out[count++] =
        (mark){"lower bound", "line bound", p->answer->info.lower_bound};
  }
  if (panel->capacity > 0) {
    out[count++] = (mark){"capacity", "line room", panel->capacity};
  }
  qsort(out, count, sizeof *out, compare_marks);
  return count;
}

// Names of equal values stand together, above the value; |*y| is where there is
// room for the next ones. Returns how many there were.
static size_t write_marks(const canvas *c, const picture_panel *panel,
                          const mark *marks, size_t count, double *y) {
  char text[FORMAT_SIZE];
  bool shown = marks[0].value <= panel->most;
  double line = shown ? plan_picture_y(panel, marks[0].value) : panel->top;
  double at = line + 4 > *y ? line + 4 : *y;
  size_t equal = 0;
  if (shown) {
    fprintf(c->out, "<path class=\"lead\" d=\"M%d %.1fL%d %.1f\"/>\n",
            PICTURE_RIGHT, line, LABEL_X - 6, at - 4);
  }
  for (; equal < count && marks[equal].value == marks[0].value; equal++) {
    if (shown) {
      write_line(c, marks[equal].class, PICTURE_LEFT, line, PICTURE_RIGHT,
                 line);
    }
    snprintf(text, sizeof text, "%s%s", equal > 0 ? "= " : "",
             marks[equal].name);
    write_text(c, "b", LABEL_X, at, text);
    at += LABEL_LINE;
  }
  write_text(c, "t", LABEL_X, at, plan_picture_bytes(text, marks[0].value));
  if (!shown)
    write_text(c, "t", LABEL_X, at += LABEL_LINE, "(above the picture)");
  *y = at + LABEL_LINE + 6;
  return equal;
}

static void write_panel_marks(const canvas *c, const picture_panel *panel) {
  mark marks[MARKS];
  size_t count = find_marks(c->picture, panel, marks);
  double y = panel->top - 8;
  for (size_t i = 0; i < count;)
    i += write_marks(c, panel, marks + i, count - i, &y);
}

static void write_panel_title(const canvas *c, const picture_panel *panel) {
  char text[FORMAT_SIZE];
  if (c->picture->answer->problem.arena_count < 2) return;
  snprintf(text, sizeof text, "arena %zu", panel->arena);
  write_text(c, "b", PICTURE_LEFT, panel->top - 8, text);
}

// ---------------------------------------------------------------------------
// What is needed at once
// ---------------------------------------------------------------------------

static void write_profile(const canvas *c, const uint64_t *needed,
                          uint64_t most) {
  const plan_picture *p = c->picture;
  fprintf(c->out, "<path class=\"needed\" d=\"M%d %d", PICTURE_LEFT, p->bottom);
  for (int i = 0; i < PICTURE_COLUMNS; i++) {
    if (i > 0 && needed[i] == needed[i - 1]) continue;
    double part = (double)needed[i] / (double)most;
    fprintf(c->out, "H%dV%.1f", PICTURE_LEFT + i,
            p->bottom - p->needed_height * part);
  }
  fprintf(c->out, "H%dV%dz\"/>\n", PICTURE_RIGHT, p->bottom);
}

// The part of the profile above the capacity.
static void write_needed_excess(const canvas *c, const uint64_t *needed,
                                uint64_t most) {
  const plan_picture *p = c->picture;
  uint64_t capacity = p->panels[0].capacity;
  double scale = (double)p->needed_height / (double)most;
  double room = p->bottom - scale * (double)capacity;
  if (!is_short(c)) return;
  fputs("<path class=\"over\" d=\"", c->out);
  for (int i = 0, end = 0; i < PICTURE_COLUMNS; i = end) {
    for (end = i + 1; end < PICTURE_COLUMNS && needed[end] == needed[i]; end++)
      continue;
    if (needed[i] <= capacity) continue;
    fprintf(c->out, "M%d %.1fV%.1fH%dV%.1fz", PICTURE_LEFT + i, room,
            p->bottom - scale * (double)needed[i], PICTURE_LEFT + end, room);
  }
  fputs("\"/>\n", c->out);
  write_line(c, "line room", PICTURE_LEFT, room, PICTURE_RIGHT, room);
}

// Over all: the step in which most is needed.
static void write_worst_step(const canvas *c) {
  const plan_picture *p = c->picture;
  const plan_shortage *s = &p->answer->shortage;
  if (!is_short(c) || !s->has_step || s->excess == 0) return;
  double x = plan_picture_x(p, s->step);
  write_line(c, "at", x, p->panels[0].top, x, p->bottom);
}

// A line over the strip at the peak, with its name beside it.
static void write_peak(const canvas *c) {
  const plan_picture *p = c->picture;
  double x = p->line;
  if (x <= 0) return;
  bool is_left = x > PICTURE_RIGHT - 50;
  write_line(c, "at", x, p->needed_top, x, p->bottom);
  write_text(c, is_left ? "t e" : "t", is_left ? x - 4 : x + 4,
             p->needed_top + 12, "peak");
}

static void write_needed(const canvas *c) {
  const plan_picture *p = c->picture;
  uint64_t *needed = tool_array(PICTURE_COLUMNS, sizeof *needed);
  uint64_t most = p->answer->info.height > 0 ? p->answer->info.height : 1;
  char text[FORMAT_SIZE];
  plan_picture_needed(p, needed);
  for (int i = 0; i < PICTURE_COLUMNS; i++)
    most = needed[i] > most ? needed[i] : most;
  write_profile(c, needed, most);
  write_needed_excess(c, needed, most);
  write_text(c, "b", LABEL_X, p->needed_top + 12, "needed at once");
  write_text(c, "t e", PICTURE_LEFT - 8, p->needed_top + 9,
             plan_picture_bytes(text, most));
  write_text(c, "t e", PICTURE_LEFT - 8, p->bottom + 3, "0 B");
  free(needed);
}

// ---------------------------------------------------------------------------
// Legend
// ---------------------------------------------------------------------------

// Where the next swatch stands.
typedef struct legend {
  int x, y;
} legend;

static void write_swatch(const canvas *c, const char *class, legend *at,
                         const char *text) {
  int width = 44 + (int)strlen(text) * 7;
  if (at->x + width > PICTURE_WIDTH && at->x > PICTURE_LEFT)
    *at = (legend){PICTURE_LEFT, at->y + LEGEND_LINE};
  write_area(c, class, at->x, at->y - 11, 14, 14);
  write_text(c, "t", at->x + 20, at->y, text);
  at->x += width;
}

// Returns the height of its last line.
static int write_classes(const canvas *c, const plan_boxes *boxes, int y) {
  char text[FORMAT_SIZE], class[FORMAT_SIZE];
  legend at = {PICTURE_LEFT, y};
  for (int i = 0; i < PICTURE_CLASSES; i++) {
    if (!boxes->has_class[i]) continue;
    plan_picture_class_style(c->picture, i, class);
    plan_picture_class_text(c->picture, i, text);
    write_swatch(c, class, &at, text);
  }
  if (boxes->gaps > 0) write_swatch(c, "gap", &at, "not needed meanwhile");
  if (is_short(c)) write_swatch(c, "over", &at, "above the capacity");
  return at.y;
}

// A note about what the picture leaves out.
static void write_note(const canvas *c, const plan_boxes *boxes, int y) {
  char text[256] = "", count[FORMAT_SIZE];
  if (boxes->merged > 0) {
    snprintf(text, sizeof text,
             "%s small buffers are drawn as areas, without names. ",
             format_count(count, boxes->merged));
  }
  if (c->picture->panels_left_out > 0) {
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%zu more arenas are left out.",
             c->picture->panels_left_out);
  }
  if (text[0] != '\0') write_text(c, "t", PICTURE_LEFT, y, text);
}

// ---------------------------------------------------------------------------
// The document
// ---------------------------------------------------------------------------

static void write_begin(const canvas *c) {
  const plan_answer *answer = c->picture->answer;
  fprintf(c->out,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
          "role=\"img\" data-generator=\"tarn plan\">\n<title>",
          PICTURE_WIDTH, c->picture->height);
  plan_boxes_text(tool_base_name(answer->input->path), c->out);
  fprintf(c->out, "</title>\n<style>\n%s</style>\n", embedded_plan_svg_css);
  fputs(
      "<pattern id=\"stripes\" width=\"6\" height=\"6\" "
      "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
      "<path class=\"stripe\" d=\"M0 0V6\"/></pattern>\n",
      c->out);
  write_area(c, "page", 0, 0, PICTURE_WIDTH, c->picture->height);
}

static void write_ground(const canvas *c) {
  const plan_picture *p = c->picture;
  for (size_t i = 0; i < p->panel_count; i++) {
    const picture_panel *panel = &p->panels[i];
    write_area(c, "panel", PICTURE_LEFT, panel->top, PICTURE_COLUMNS,
               panel->height);
    write_offsets(c, panel);
    write_panel_title(c, panel);
  }
  write_area(c, "panel", PICTURE_LEFT, p->needed_top, PICTURE_COLUMNS,
             p->needed_height);
  write_steps(c);
}

static void write_picture(const void *context, FILE *out) {
  const plan_picture *picture = context;
  canvas c = {picture, out};
  write_begin(&c);
  write_headings(&c);
  write_ground(&c);
  write_needed(&c);
  plan_boxes boxes = plan_boxes_write(picture, out);
  write_worst_step(&c);
  write_peak(&c);
  for (size_t i = 0; i < picture->panel_count; i++)
    write_panel_marks(&c, &picture->panels[i]);
  int y = write_classes(&c, &boxes, picture->bottom + 68);
  write_note(&c, &boxes, y + 24);
  fputs("</svg>\n", out);
}

// Of |drawn|, with boxes in place of buffers that match.
static bool write_merged(const tool_verb *verb, const plan_answer *drawn,
                         const char *path) {
  plan_merged merged = plan_merged_make(drawn);
  plan_answer boxes = *drawn;
  plan_picture picture;
  char text[512];
  boxes.problem.buffers = merged.buffers;
  boxes.problem.count = merged.count;
  boxes.offsets = merged.offsets;
  if (drawn->arenas != NULL) boxes.arenas = merged.arenas;
  plan_picture_init(&picture, &boxes, &merged);
  picture.buffer_count = drawn->problem.count;
  uint64_t step = explain(&(canvas){.picture = &picture}, text, sizeof text);
  if (step != NOWHERE) picture.line = plan_picture_x(&picture, step);
  bool written = outfile_write(verb, path, write_picture, &picture);
  plan_merged_deinit(&merged);
  return written;
}

// The lowest plan that was found, in one piece of memory, where there is none
// within the capacity.
static plan_answer without_capacity(const plan_answer *answer,
                                    const uint64_t *capacity) {
  plan_answer drawn = *answer;
  drawn.problem.arena_count = 1;
  drawn.problem.capacities = capacity;
  drawn.offsets = answer->shortage.offsets;
  drawn.arenas = NULL;
  drawn.info.height = answer->shortage.height;
  drawn.info.answer = TARN_PLAN_FEASIBLE;
  return drawn;
}

bool plan_svg_write(const tool_verb *verb, const plan_answer *answer,
                    const char *path) {
  uint64_t capacity = plan_fit_capacity(&answer->problem);
  plan_answer drawn = *answer;
  plan_picture picture;
  if (drawn.offsets == NULL) drawn = without_capacity(answer, &capacity);
  if (answer->checked == PLAN_WRONG) {
    tool_say(verb, "%s: not drawn: the offsets are no plan", path);
    return false;
  }
  if (drawn.offsets == NULL) {
    tool_say(verb, "%s: not drawn: there is no plan, whatever the capacity",
             path);
    return false;
  }
  if (drawn.input->kind->colour != NULL)
    return write_merged(verb, &drawn, path);
  plan_picture_init(&picture, &drawn, NULL);
  return outfile_write(verb, path, write_picture, &picture);
}
