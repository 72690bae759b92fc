// The picture: time runs to the right, a column for each pass of each step, and
// offsets upwards. A box that begins where another ends took its place.
//
// `tarn plan` draws plans too, but of tables: this one is drawn by the program
// that has the model, which knows data from diffs, with tarn_model_each_slot
// and nothing else.
#include "picture.h"

#include <errno.h>
#include <stdio.h>

static const double WIDTH = 1000, HEIGHT = 600, CAPTION = 30;
static const char DATA_COLOUR[] = "#4a7fb5", DIFF_COLOUR[] = "#c8553d";

typedef struct drawing {
  FILE *file;
  double column;  // units for a pass
  double byte;    // and for a byte
} drawing;

// Names come from the program; what SVG would read as its own is left out.
static void print_name(FILE *file, const char *name) {
  for (; *name != '\0'; name++) {
    if (*name != '<' && *name != '&' && *name >= ' ') fputc(*name, file);
  }
}

static tarn_status draw(void *context, const tarn_model_slot *slot) {
  const drawing *d = context;
  bool is_diff = slot->part == TARN_DIFF;
  double height = (double)slot->size * d->byte;
  fprintf(d->file,
          "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
          "fill=\"%s\" stroke=\"white\" stroke-width=\"0.5\"><title>",
          (double)slot->first * d->column,
          HEIGHT - (double)slot->offset * d->byte - height,
          (double)(slot->last - slot->first + 1) * d->column, height,
          is_diff ? DIFF_COLOUR : DATA_COLOUR);
  print_name(d->file, slot->tensor->name);
  fprintf(d->file,
          " %s, %zu bytes at %zu, passes %llu to %llu</title></rect>\n",
          is_diff ? "diff" : "data", slot->size, slot->offset,
          (unsigned long long)slot->first, (unsigned long long)slot->last);
  return TARN_OK;
}

// What is up, what is right, and which colour is what.
static void print_caption(FILE *file, const tarn_model_needs *report,
                          size_t steps) {
  bool trains = report->mode == TARN_TRAIN;
  fprintf(file,
          "<text x=\"4\" y=\"%g\" font-family=\"sans-serif\" "
          "font-size=\"15\">up: offsets to %.2f MiB; right: %zu steps "
          "forward%s; <tspan fill=\"%s\">data</tspan>",
          HEIGHT + CAPTION - 10, (double)report->planned / 1048576, steps,
          trains ? " and backward" : "", DATA_COLOUR);
  if (trains) fprintf(file, ", <tspan fill=\"%s\">diffs</tspan>", DIFF_COLOUR);
  fprintf(file, "</text>\n");
}

static bool draw_all(tarn_model *model, FILE *file) {
  tarn_model_needs report = {.struct_size = sizeof report};
  if (tarn_model_report(model, &report) != TARN_OK) return false;
  size_t steps = tarn_model_step_count(model);
  size_t passes = report.mode == TARN_TRAIN ? 2 * steps : steps;
  drawing d = {.file = file,
               .column = WIDTH / (double)(passes == 0 ? 1 : passes),
               .byte = HEIGHT / (double)(report.planned + 1)};
  fprintf(file,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\">\n"
          "<rect width=\"%g\" height=\"%g\" fill=\"#f4f1ea\"/>\n",
          WIDTH, HEIGHT + CAPTION, WIDTH, HEIGHT);
  bool drawn = tarn_model_each_slot(model, draw, &d) == TARN_OK;
  print_caption(file, &report, steps);
  fprintf(file, "</svg>\n");
  return drawn;
}

bool net_picture_write(tarn_model *model, const char *path) {
  errno = 0;
  FILE *file = fopen(path, "w");
  if (file == NULL) return false;
  bool drawn = draw_all(model, file);
  bool written = ferror(file) == 0;
  return fclose(file) == 0 && written && drawn;
}
