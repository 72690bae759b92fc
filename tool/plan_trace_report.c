// The report of a plan's meaning for a program.
//
//   what must shrink ─► what a plan saves
//
// Sentences hold numbers, and names that are neutralised; other names out of
// the trace are cells of tables, which neutralise them, or texts of JSON.
#include <math.h>
#include <stdlib.h>

#include "frame_names.h"
#include "kit/format.h"
#include "kit/sheet.h"
#include "kit/text.h"
#include "plan_trace.h"
#include "roles_json.h"

// The event at which a block was born or died; -1: before the first, or never.
static int64_t event_of(uint32_t event) {
  return event == TARN_TRACE_BASELINE ? -1 : (int64_t)event;
}

// What there is to say of a buffer.
typedef struct moved {
  const char *id;
  char *frame;  // free it
  const char *tag;
  uint64_t bytes;
  int64_t born;
  int64_t died;
} moved;

// |brief|: without the arguments of functions of C++.
static char *frame_of(owners *o, const tarn_trace *trace, uint32_t stack,
                      bool is_old, bool brief) {
  holder row = {.kind = HOLDER_OWN, .frame = owners_of(o, stack)};
  if (row.frame == TARN_TRACE_NO_STACK) {
    row.kind = is_old ? HOLDER_BASELINE : HOLDER_NO_STACK;
  }
  return brief ? frame_names_short(trace, &row, "")
               : frame_names_holder(trace, &row);
}

static moved describe(const plan_input *input, owners *o, size_t buffer,
                      bool brief) {
  const plan_trace *t = input->source;
  const tarn_trace *trace = t->trace;
  moved m = {.id = input->kind->id(input, buffer)};
  const tarn_trace_block *block = &trace->blocks[buffer];
  m.frame = frame_of(o, trace, block->stack,
                     trace_problem_is_old(&t->buffers, buffer), brief);
  m.tag = trace->tags[block->tag];
  m.bytes = block->size;
  m.born = event_of(block->born);
  m.died = event_of(block->died);
  return m;
}

// ---------------------------------------------------------------------------
// For people
// ---------------------------------------------------------------------------

static void add_event(sheet *s, const char *column, int64_t event,
                      const char *otherwise) {
  char number[FORMAT_SIZE];
  sheet_figure(s, column, NULL,
               event < 0 ? otherwise : format_count(number, (uint64_t)event));
}

static void add_move(sheet *s, const moved *m) {
  sheet_uint(s, "bytes", NULL, m->bytes, SHEET_BYTES);
  add_event(s, "born at event", m->born, "before");
  add_event(s, "freed at event", m->died, "never");
  sheet_text(s, "id", NULL, m->id);
  sheet_text(s, "tag", NULL, m->tag);
  sheet_text(s, "frame", NULL, m->frame);
  sheet_row_end(s);
}

void plan_trace_list(const plan_input *input, const size_t *buffers,
                     size_t count, FILE *out) {
  const plan_trace *t = input->source;
  owners *o = owners_create(t->trace, &(options_list){0});
  sheet *s = sheet_begin_on(out, OUTPUT_TABLE, NULL);
  for (size_t i = 0; i < count; i++) {
    moved m = describe(input, o, buffers[i], true);
    add_move(s, &m);
    free(m.frame);
  }
  sheet_end(s);
  owners_destroy(o);
}

static void tell_scale(const plan_trace *t, FILE *out) {
  char factor[FORMAT_SIZE];
  if (t->scale > 0) {
    fprintf(out, "\nOr all sizes could be smaller: %s of what they are.\n",
            format_fixed(factor, t->scale, 4));
  }
  if (t->scale_young > 0) {
    fprintf(out, "%sf all but what is older than the trace, %s.\n",
            t->scale > 0 ? "O" : "\nOr smaller sizes o",
            format_fixed(factor, t->scale_young, 4));
  }
}

static const char *fits_word(const what_if_row *row) {
  if (row->fits == FITS_NOT) return "no";
  return row->squeezed ? "yes, giving back what is idle" : "yes";
}

static void add_saving(const plan_trace *t, sheet *s, const what_if_row *row) {
  char bytes[FORMAT_SIZE];
  double saved = (double)row->reserved_bytes - (double)t->height;
  sheet_uint(s, "reserved peak", NULL, row->reserved_bytes, SHEET_BYTES);
  sheet_figure(s, "saved", NULL,
               saved < 0
                   ? "nothing"
                   : format_bytes(bytes, row->reserved_bytes - t->height));
  sheet_percent(s, "share", NULL, saved > 0 ? saved : 0,
                (double)row->reserved_bytes);
  sheet_text(s, "allocator", NULL, row->strategy);
  if (t->capacity > 0) sheet_text(s, "fits", NULL, fits_word(row));
  sheet_row_end(s);
}

static void tell_savings(const plan_trace *t, FILE *out) {
  char height[FORMAT_SIZE];
  if (t->strategies.count == 0 || t->height == 0) return;
  fprintf(out, "\nWhat a plan of %s would save\n",
          format_bytes(height, t->height));
  sheet *s = sheet_begin_on(out, OUTPUT_TABLE, NULL);
  for (size_t i = 0; i < t->strategies.count; i++)
    add_saving(t, s, &t->strategies.rows[i]);
  sheet_end(s);
}

typedef struct colour_sum {
  const char *name;
  uint64_t bytes;
} colour_sum;

static int compare_colours(const void *a, const void *b) {
  const colour_sum *x = a, *y = b;
  return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static void sum_colours(const plan_trace *t, colour_sum *sums) {
  block_set live = moment_live(t->trace, t->trace->live_peak_event);
  for (size_t i = 0; i < PLAN_COLOURS; i++)
    sums[i] = (colour_sum){t->colours.names[i], 0};
  for (size_t i = 0; i < live.count; i++) {
    sums[t->colours.of_block[live.items[i]]].bytes +=
        t->trace->blocks[live.items[i]].size;
  }
  block_set_deinit(&live);
  qsort(sums, PLAN_COLOURS, sizeof *sums, compare_colours);
}

// Colours that are named: names of holders are long.
enum { ROLES_NAMED = 5, HOLDERS_NAMED = 3 };

// "Peak in backward: activations 3.00 GiB, ...": roles, or holders.
bool plan_trace_explain(const plan_input *input, uint64_t *out_step, char *out,
                        size_t size) {
  const plan_trace *t = input->source;
  moment peak = t->trace->live_peak_event;
  const char *pass = phase_name(phases_at(&t->roles.phases, peak));
  colour_sum sums[PLAN_COLOURS];
  char text[160], bytes[FORMAT_SIZE];
  *out_step = peak == TARN_TRACE_BASELINE ? 0 : (uint64_t)peak + 1;
  sum_colours(t, sums);
  snprintf(out, size, "Peak%s%s%s:", pass != NULL ? " in " : "",
           pass != NULL && *pass == 'o' ? "the " : "", pass ? pass : "");
  size_t most = t->colours.by_role ? ROLES_NAMED : HOLDERS_NAMED;
  for (size_t i = 0; i < most && sums[i].bytes > 0; i++) {
    snprintf(text, sizeof text, "%s %.36s %s", i > 0 ? "," : "", sums[i].name,
             format_bytes(bytes, sums[i].bytes));
    tool_append(out, size, "", text);
  }
  return sums[0].bytes > 0;
}

static void tell_peak(const plan_input *input, FILE *out) {
  char text[512];
  uint64_t step;
  if (!plan_trace_explain(input, &step, text, sizeof text)) return;
  text_neutralise(text, "");
  fprintf(out, "\n%s.\n", text);
}

void plan_trace_tell(const plan_input *input, const plan_answer *answer,
                     FILE *out) {
  const plan_trace *t = input->source;
  (void)answer;
  tell_peak(input, out);
  if (t->pressed) tell_scale(t, out);
  tell_savings(t, out);
}

// ---------------------------------------------------------------------------
// For programs
// ---------------------------------------------------------------------------

static void put_saving(const plan_trace *t, const what_if_row *row, json *out) {
  json_begin_object(out);
  json_key_text(out, "strategy", row->strategy);
  json_key_uint(out, "reserved_bytes", row->reserved_bytes);
  json_key_bool_if(out, "fits", row->fits != FITS_UNASKED, row->fits == FITS);
  if (t->height > 0) {
    json_key_int(out, "saved_bytes",
                 (int64_t)(row->reserved_bytes - t->height));
  } else {
    json_key_null(out, "saved_bytes");
  }
  json_end_object(out);
}

static void put_move(const moved *m, json *out) {
  json_begin_object(out);
  json_key_text(out, "id", m->id);
  json_key_text(out, "frame", m->frame);
  json_key_text(out, "tag", m->tag);
  json_key_uint(out, "bytes", m->bytes);
  json_key_uint_if(out, "born", m->born >= 0, (uint64_t)m->born);
  json_key_uint_if(out, "died", m->died >= 0, (uint64_t)m->died);
  json_end_object(out);
}

static void put_moves(const plan_input *input, const plan_moves *moves,
                      json *out) {
  const plan_trace *t = input->source;
  owners *o = owners_create(t->trace, &(options_list){0});
  json_key_array(out, "must_move");
  for (size_t i = 0; i < moves->count; i++) {
    moved m = describe(input, o, moves->items[i], false);
    put_move(&m, out);
    free(m.frame);
  }
  json_end_array(out);
  owners_destroy(o);
}

void plan_trace_tell_json(const plan_input *input, const plan_answer *answer,
                          json *out) {
  const plan_trace *t = input->source;
  const plan_moves *moves = &answer->shortage.moves;
  json_key_array(out, "what_if");
  for (size_t i = 0; i < t->strategies.count; i++)
    put_saving(t, &t->strategies.rows[i], out);
  json_end_array(out);
  if (t->pressed && !moves->known) {
    json_key_null(out, "must_move");
  } else {
    put_moves(input, moves, out);
  }
  json_key_double(out, "scale", t->pressed && t->scale > 0 ? t->scale : NAN);
  json_key_double(out, "scale_young",
                  t->pressed && t->scale_young > 0 ? t->scale_young : NAN);
  block_set live = moment_live(t->trace, t->trace->live_peak_event);
  role_sums sums = roles_sum(&t->roles, t->trace, &live);
  roles_json_put(out, &t->roles, &sums, t->trace->live_peak_event);
  block_set_deinit(&live);
}
