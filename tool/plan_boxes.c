// Boxes, from the ground up: gaps first, then merged buffers, then one box
// after the other, and on top the names of those that have room for them.
#include "plan_boxes.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kit/format.h"
#include "kit/text.h"
#include "page.h"

enum {
  NAME_SIZE = 64,      // of a name within its box
  LETTER_TENTHS = 64,  // pixels of a letter, at most and mostly
  NAME_HALF = 60,      // pixels of half a name, mostly
};

typedef struct box {
  double x, y, width, height;  // pixels
} box;

typedef struct drawing {
  const plan_picture *picture;
  FILE *out;
  const picture_panel **panel_of;  // by arena; NULL: not shown
  bool *is_single;                 // by buffer: drawn one by one
  plan_boxes boxes;
} drawing;

// ---------------------------------------------------------------------------
// Texts
// ---------------------------------------------------------------------------

// XML has no U+FFFE and U+FFFF, whatever the encoding.
void plan_boxes_text(const char *text, FILE *out) {
  char *copy = tool_text(text);
  text_neutralise(copy, "");
  for (char *at = copy; *at;) {
    uint32_t code = 0;
    size_t length = text_character(at, &code);
    if (code == 0xfffe || code == 0xffff) memset(at, '?', length);
    at += length > 0 ? length : 1;
  }
  page_text(copy, out);
  free(copy);
}

// As many characters as |most|, and an ellipsis for the rest.
static void cut(const char *text, size_t most, char *out) {
  size_t used = 0, characters = 0;
  while (text[used] != '\0' && characters < most && used < NAME_SIZE - 8) {
    uint32_t code;
    size_t length = text_character(text + used, &code);
    used += length > 0 ? length : 1;
    characters++;
  }
  bool whole = text[used] == '\0';
  snprintf(out, NAME_SIZE, "%.*s%s", (int)used, text,
           whole ? "" : "\xe2\x80\xa6");
}

// ---------------------------------------------------------------------------
// Where
// ---------------------------------------------------------------------------

static const tarn_plan_buffer *buffer_of(const drawing *d, size_t index) {
  return &d->picture->answer->problem.buffers[index];
}

static const picture_panel *panel_of(const drawing *d, size_t index) {
  return d->panel_of[plan_picture_arena(d->picture->answer, index)];
}

// Of a buffer in the steps from |first| to |last|.
static box box_of(const drawing *d, size_t index, uint64_t first,
                  uint64_t last) {
  const picture_panel *panel = panel_of(d, index);
  uint64_t offset = d->picture->answer->offsets[index];
  box b = {.x = plan_picture_x(d->picture, first),
           .y = plan_picture_y(panel, offset + buffer_of(d, index)->size)};
  b.width = plan_picture_x(d->picture, last) - b.x;
  b.height = plan_picture_y(panel, offset) - b.y;
  return b;
}

static box whole_box(const drawing *d, size_t index) {
  const tarn_plan_buffer *b = buffer_of(d, index);
  return box_of(d, index, b->first, b->last);
}

// Piece |i| of the lifetime, between the gaps |i| - 1 and |i|.
static box piece_of(const drawing *d, size_t index, size_t i) {
  const tarn_plan_buffer *b = buffer_of(d, index);
  return box_of(d, index, i > 0 ? b->gaps[i - 1].last : b->first,
                i < b->gap_count ? b->gaps[i].first : b->last);
}

// ---------------------------------------------------------------------------
// Which are drawn one by one?
// ---------------------------------------------------------------------------

static double area_of(const drawing *d, size_t index) {
  if (panel_of(d, index) == NULL) return 0;
  box b = whole_box(d, index);
  return b.width >= 1 && b.height >= 1 ? b.width * b.height : 0;
}

static int compare_areas(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

// The area of the smallest buffer that has a box of its own; more than 0.
static double least_area(const drawing *d, size_t count) {
  double *areas = tool_array(count, sizeof *areas);
  for (size_t i = 0; i < count; i++)
    areas[i] = area_of(d, i);
  qsort(areas, count, sizeof *areas, compare_areas);
  double least = count > BOXES_MOST ? areas[BOXES_MOST - 1] : 0;
  free(areas);
  return least > 0 ? least : 0.5;
}

static void choose(drawing *d) {
  size_t count = d->picture->answer->problem.count;
  double least = least_area(d, count);
  for (size_t i = 0; i < count; i++) {
    if (panel_of(d, i) == NULL) continue;
    int class = plan_picture_class(d->picture, i);
    d->boxes.has_class[class] = true;
    d->is_single[i] = d->boxes.drawn < BOXES_MOST && area_of(d, i) >= least;
    if (d->is_single[i]) {
      d->boxes.drawn++;
    } else {
      d->boxes.merged++;
    }
  }
}

// ---------------------------------------------------------------------------
// The grid
// ---------------------------------------------------------------------------

typedef struct grid {
  int top;
  int rows;
  unsigned char *cells;  // a colour + 1; 0: nothing
} grid;

static unsigned char *cell(const grid *g, int row, int column) {
  return &g->cells[(size_t)row * PICTURE_COLUMNS + (size_t)column];
}

static int clamp(double value, int most) {
  return value < 0 ? 0 : value > most ? most : (int)value;
}

static void put(grid *g, box b, unsigned char colour) {
  int x0 = clamp(b.x - PICTURE_LEFT, PICTURE_COLUMNS - 1);
  int x1 = clamp(b.x + b.width - PICTURE_LEFT, PICTURE_COLUMNS);
  int y0 = clamp(b.y - g->top, g->rows - 1);
  int y1 = clamp(b.y + b.height - g->top, g->rows);
  if (x1 <= x0) x1 = x0 + 1;
  if (y1 <= y0) y1 = y0 + 1;
  for (int y = y0; y < y1; y++)
    memset(cell(g, y, x0), colour, (size_t)(x1 - x0));
}

// Puts the part above |lowest|, in pixels from the top.
static void put_buffer(const drawing *d, grid *g, size_t index, int class,
                       double lowest) {
  for (size_t i = 0; i <= buffer_of(d, index)->gap_count; i++) {
    box piece = piece_of(d, index, i);
    if (piece.y + piece.height > lowest) piece.height = lowest - piece.y;
    if (piece.height > 0) put(g, piece, (unsigned char)(class + 1));
  }
}

static int run_length(const grid *g, int row, int column) {
  unsigned char colour = *cell(g, row, column);
  int length = 0;
  while (column + length < PICTURE_COLUMNS &&
         *cell(g, row, column + length) == colour) {
    length++;
  }
  return length;
}

// Whether the row has a run of that colour in exactly that place.
static bool continues(const grid *g, int row, int column, int length,
                      unsigned char colour) {
  if (row >= g->rows || *cell(g, row, column) != colour) return false;
  if (column > 0 && *cell(g, row, column - 1) == colour) return false;
  return run_length(g, row, column) == length;
}

// Draws the area that begins there and takes it off the grid.
static void take_area(grid *g, int row, int column, FILE *out) {
  unsigned char colour = *cell(g, row, column);
  int length = run_length(g, row, column), rows = 1;
  while (continues(g, row + rows, column, length, colour))
    rows++;
  for (int i = 0; i < rows; i++)
    memset(cell(g, row + i, column), 0, (size_t)length);
  fprintf(out, "M%d %dh%dv%dh-%dz", column + PICTURE_LEFT, row + g->top, length,
          rows, length);
}

static void write_colour(grid *g, int class, const char *name, FILE *out) {
  bool begun = false;
  for (int row = 0; row < g->rows; row++) {
    for (int column = 0; column < PICTURE_COLUMNS; column++) {
      if (*cell(g, row, column) != class + 1) continue;
      if (!begun) fprintf(out, "<path class=\"%s m\" d=\"", name);
      begun = true;
      take_area(g, row, column, out);
    }
  }
  if (begun) fputs("\"/>\n", out);
}

static grid make_grid(const picture_panel *panel) {
  size_t cells = (size_t)panel->height * PICTURE_COLUMNS;
  return (grid){panel->top, panel->height, tool_array(cells, 1)};
}

static void write_merged(const drawing *d, const picture_panel *panel) {
  grid g = make_grid(panel);
  char name[FORMAT_SIZE];
  for (size_t i = 0; i < d->picture->answer->problem.count; i++) {
    if (d->is_single[i] || panel_of(d, i) != panel) continue;
    put_buffer(d, &g, i, plan_picture_class(d->picture, i), INFINITY);
  }
  for (int class = 0; class < PICTURE_CLASSES; class ++) {
    write_colour(&g, class, plan_picture_class_style(d->picture, class, name),
                 d->out);
  }
  free(g.cells);
}

// Over all boxes: their parts above the capacity.
static void write_excess(const drawing *d, const picture_panel *panel) {
  if (!plan_picture_exceeds(panel)) return;
  grid g = make_grid(panel);
  double lowest = floor(plan_picture_y(panel, panel->capacity) + 0.5);
  for (size_t i = 0; i < d->picture->answer->problem.count; i++) {
    if (panel_of(d, i) == panel) put_buffer(d, &g, i, 0, lowest);
  }
  write_colour(&g, 0, "over", d->out);
  free(g.cells);
}

// ---------------------------------------------------------------------------
// One by one
// ---------------------------------------------------------------------------

// The buffer's name, or those of a merged box: how many, and what for.
static void write_whose(const drawing *d, size_t index) {
  const plan_merged *m = d->picture->merged;
  const plan_input *input = d->picture->answer->input;
  char text[FORMAT_SIZE];
  if (m == NULL) {
    plan_boxes_text(plan_input_id(input, index), d->out);
    return;
  }
  plan_boxes_text(plan_input_id(input, m->first[index]), d->out);
  if (m->parts[index] > 1)
    fprintf(d->out, " and %zu more", m->parts[index] - 1);
  fputc('\n', d->out);
  plan_boxes_text(plan_picture_class_text(d->picture, m->colour[index], text),
                  d->out);
}

static void write_title(const drawing *d, size_t index) {
  const tarn_plan_buffer *b = buffer_of(d, index);
  const plan_answer *answer = d->picture->answer;
  uint64_t offset = answer->offsets[index];
  char size[FORMAT_SIZE];
  fputs("<title>", d->out);
  write_whose(d, index);
  fprintf(d->out,
          "\n%s\nsteps %" PRIu64 " to %" PRIu64 "\nat %" PRIu64
          ", up to %" PRIu64,
          format_bytes_exact(size, b->size), b->first, b->last, offset,
          offset + b->size);
  if (answer->arenas != NULL) {
    fprintf(d->out, " of arena %" PRIu32, answer->arenas[index]);
  }
  if ((b->flags & TARN_PLAN_FIXED) != 0) fputs("\nfixed there", d->out);
  fputs("</title>", d->out);
}

static void write_rect(FILE *out, const char *class, box b) {
  fprintf(out, "<rect%s x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\">",
          class, b.x, b.y, b.width, b.height);
}

// A seam would leave nothing of a box of two pixels.
static void write_piece(drawing *d, size_t index, box b) {
  bool thin = b.width < 3 || b.height < 3;
  write_rect(d->out, thin ? " class=\"m\"" : "", b);
  write_title(d, index);
  fputs("</rect>\n", d->out);
}

static void write_gaps(drawing *d, size_t index) {
  const tarn_plan_buffer *b = buffer_of(d, index);
  for (size_t i = 0; i < b->gap_count; i++) {
    box gap = box_of(d, index, b->gaps[i].first, b->gaps[i].last);
    write_rect(d->out, " class=\"gap\"", gap);
    write_title(d, index);
    fputs("</rect>\n", d->out);
    d->boxes.gaps++;
  }
}

static void write_singles(drawing *d, int class) {
  char name[FORMAT_SIZE];
  fprintf(d->out, "<g class=\"%s\">\n",
          plan_picture_class_style(d->picture, class, name));
  for (size_t i = 0; i < d->picture->answer->problem.count; i++) {
    if (!d->is_single[i]) continue;
    if (plan_picture_class(d->picture, i) != class) continue;
    for (size_t k = 0; k <= buffer_of(d, i)->gap_count; k++)
      write_piece(d, i, piece_of(d, i, k));
  }
  fputs("</g>\n", d->out);
}

// ---------------------------------------------------------------------------
// Names
// ---------------------------------------------------------------------------

static void write_label(const drawing *d, const char *class, double x, double y,
                        double width, const char *text) {
  char name[NAME_SIZE];
  double letters = (width - 6) * 10 / LETTER_TENTHS;
  cut(text, (size_t)letters, name);
  fprintf(d->out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
  plan_boxes_text(name, d->out);
  fputs("</text>\n", d->out);
}

static const char *name_of(const drawing *d, size_t index, char *out) {
  const plan_merged *m = d->picture->merged;
  if (m == NULL) return plan_input_id(d->picture->answer->input, index);
  return plan_picture_class_text(d->picture, m->colour[index], out);
}

// Where a name stands: not under the line of the peak, which a plan that does
// not fit has over its boxes, if there is room.
static double middle_of(const drawing *d, box b) {
  double middle = b.x + b.width / 2, line = d->picture->line;
  bool crossed = d->picture->answer->shortage.offsets != NULL &&
                 line > middle - NAME_HALF && line < middle + NAME_HALF;
  return crossed && b.width > 6 * NAME_HALF ? b.x + b.width / 4 : middle;
}

// Its name, and its size below if there is room.
static void write_name(drawing *d, size_t index, box b) {
  char size[FORMAT_SIZE], name[FORMAT_SIZE], style[FORMAT_SIZE];
  const char *id = name_of(d, index, name);
  double middle = middle_of(d, b), y = b.y + b.height / 2;
  bool is_whole = (double)strlen(id) * LETTER_TENTHS / 10 + 6 <= b.width;
  if (b.height < 14 || (!is_whole && b.width < 44)) return;
  plan_picture_bytes(size, buffer_of(d, index)->size);
  double size_width = (double)strlen(size) * LETTER_TENTHS / 10 + 6;
  bool both = b.height >= 32 && b.width >= size_width;
  int class = plan_picture_class(d->picture, index);
  char words[2 * FORMAT_SIZE];
  plan_picture_class_style(d->picture, class, style);
  snprintf(words, sizeof words, "n on-%s", style);
  write_label(d, words, middle, both ? y - 2 : y + 4, b.width, id);
  tool_append(words, sizeof words, " ", "s");
  if (both) write_label(d, words, middle, y + 11, b.width, size);
}

// The longest piece has it.
static void write_names(drawing *d, size_t index) {
  box longest = piece_of(d, index, 0);
  for (size_t i = 1; i <= buffer_of(d, index)->gap_count; i++) {
    box piece = piece_of(d, index, i);
    if (piece.width > longest.width) longest = piece;
  }
  write_name(d, index, longest);
}

// ---------------------------------------------------------------------------
// The whole
// ---------------------------------------------------------------------------

static void write_all(drawing *d) {
  size_t count = d->picture->answer->problem.count;
  for (size_t i = 0; i < count; i++) {
    if (d->is_single[i]) write_gaps(d, i);
  }
  for (size_t i = 0; i < d->picture->panel_count && d->boxes.merged > 0; i++)
    write_merged(d, &d->picture->panels[i]);
  for (int class = 0; class < PICTURE_CLASSES; class ++)
    write_singles(d, class);
  for (size_t i = 0; i < d->picture->panel_count; i++)
    write_excess(d, &d->picture->panels[i]);
  for (size_t i = 0; i < count; i++) {
    if (d->is_single[i]) write_names(d, i);
  }
}

plan_boxes plan_boxes_write(const plan_picture *picture, FILE *out) {
  const tarn_plan_problem *problem = &picture->answer->problem;
  drawing d = {.picture = picture, .out = out};
  d.panel_of = tool_array(problem->arena_count, sizeof *d.panel_of);
  d.is_single = tool_array(problem->count, sizeof *d.is_single);
  for (size_t i = 0; i < picture->panel_count; i++)
    d.panel_of[picture->panels[i].arena] = &picture->panels[i];
  choose(&d);
  write_all(&d);
  free(d.is_single);
  free(d.panel_of);
  return d.boxes;
}
