// The report of an answer: one sentence first, then the figures, then the paths
// of the written files.
#include "plan_report.h"

#include <inttypes.h>
#include <math.h>

#include "kit/format.h"
#include "kit/text.h"
#include "plan_conflict.h"

enum { LABEL_WIDTH = 13 };

static bool has_plan(const plan_answer *answer) {
  return answer->offsets != NULL && answer->checked != PLAN_WRONG;
}

static double ratio_of(const plan_answer *answer) {
  if (answer->info.lower_bound == 0) return NAN;
  return (double)answer->info.height / (double)answer->info.lower_bound;
}

static size_t count_in(const plan_answer *answer, size_t arena) {
  size_t count = 0;
  for (size_t i = 0; i < answer->problem.count; i++) {
    count += (answer->arenas != NULL ? answer->arenas[i] : 0) == arena;
  }
  return count;
}

static uint64_t height_of(const plan_answer *answer, size_t arena) {
  uint64_t height = 0;
  for (size_t i = 0; i < answer->problem.count; i++) {
    bool in = (answer->arenas != NULL ? answer->arenas[i] : 0) == arena;
    uint64_t end = answer->offsets[i] + answer->problem.buffers[i].size;
    if (in && end > height) height = end;
  }
  return height;
}

// ---------------------------------------------------------------------------
// The sentence in front
// ---------------------------------------------------------------------------

// Without any limit one piece of memory is searched until it is proved, unless
// that needs too much memory. Of arenas, pairs and what stays where it was this
// is not known.
static bool is_too_large(const plan_answer *answer) {
  return answer->problem.arena_count == 1 && answer->problem.pair_count == 0 &&
         !answer->has_previous && isinf(answer->time_limit_s);
}

// How the search ended without a proof.
static void write_end(const plan_answer *answer, FILE *out) {
  char nodes[FORMAT_SIZE];
  const tarn_plan_info *info = &answer->info;
  if (answer->plan == NULL) return;  // there was no search
  if (info->cancelled) {
    fputs(" The search was ended by Ctrl-C.", out);
  } else if (info->seconds >= 0.9 * answer->time_limit_s) {
    fprintf(out, " The search ended after %.1f s.", info->seconds);
  } else if (answer->node_limit > 0 && info->nodes >= answer->node_limit) {
    fprintf(out, " The search ended after %s nodes.",
            format_count(nodes, info->nodes));
  } else if (is_too_large(answer)) {
    fputs(" It is too large for a proof: a time limit gives it more moves.",
          out);
  }
}

static void write_how_low(const plan_answer *answer, FILE *out) {
  char bound[FORMAT_SIZE];
  if (answer->info.answer == TARN_PLAN_OPTIMAL) {
    fputs(" No plan is lower.", out);
    return;
  }
  fprintf(out, " No plan is below %s; this one is %.2f%% above.",
          format_bytes(bound, answer->info.lower_bound),
          100 * (ratio_of(answer) - 1));
  if (!answer->is_enough) write_end(answer, out);
}

// With several arenas the first should be used most, and no height says how
// well that was done.
static void write_arenas_sentence(const plan_answer *answer, FILE *out) {
  char height[FORMAT_SIZE];
  fprintf(out, "All have a place: %s in %zu arenas.",
          format_bytes_exact(height, answer->info.height),
          answer->problem.arena_count);
  if (answer->info.answer != TARN_PLAN_OPTIMAL) write_end(answer, out);
}

static void write_plan_sentence(const plan_answer *answer, FILE *out) {
  char height[FORMAT_SIZE], capacity[FORMAT_SIZE], near[FORMAT_SIZE];
  uint64_t room = plan_fit_capacity(&answer->problem),
           bytes = answer->info.height;
  if (answer->problem.count == 0) {
    fputs("There are no buffers: 0 bytes are enough.", out);
    return;
  }
  if (answer->problem.arena_count > 1) {
    write_arenas_sentence(answer, out);
    return;
  }
  format_bytes_exact(height, bytes);
  if (room > 0) {
    format_bytes_apart(near, bytes, capacity, room);
    fprintf(out, "It fits: %s of %s.", height, capacity);
  } else {
    fprintf(out, "%s are enough.", height);
  }
  write_how_low(answer, out);
}

// "; moving these 32 suffices", if that is known.
static void write_suffices(const plan_answer *answer, FILE *out) {
  char count[FORMAT_SIZE];
  const plan_moves *moves = &answer->shortage.moves;
  if (!moves->known) return;
  if (moves->count == 1) {
    fputs("; moving this one suffices", out);
  } else {
    fprintf(out, "; moving these %s suffices",
            format_count(count, moves->count));
  }
}

static void write_no_plan_sentence(const plan_answer *answer, FILE *out) {
  char room[FORMAT_SIZE] = "what there is", excess[FORMAT_SIZE];
  char where[FORMAT_SIZE];
  const plan_shortage *s = &answer->shortage;
  uint64_t capacity = plan_fit_capacity(&answer->problem);
  if (capacity > 0) format_bytes_exact(room, capacity);
  bool infeasible = answer->info.answer == TARN_PLAN_INFEASIBLE;
  if (infeasible && s->excess > 0) {
    fprintf(out, "%s too much", format_bytes(excess, s->excess));
    if (s->has_step)
      fputs(plan_input_step(answer->input, s->step, where, sizeof where), out);
  } else if (infeasible) {
    fprintf(out, "It does not fit into %s: that is proved", room);
  } else {
    fprintf(out, "No plan within %s was found; there may be one", room);
  }
  write_suffices(answer, out);
  fputc('.', out);
  if (!infeasible) write_end(answer, out);
}

static void write_sentence(const plan_answer *answer, FILE *out) {
  if (answer->checked == PLAN_WRONG) {
    fputs(answer->plan == NULL ? "The offsets are no plan: "
                               : "The plan is WRONG, which is an error of "
                                 "tarn's: ",
          out);
    text_write(answer->wrong, out);
  } else if (answer->offsets != NULL) {
    write_plan_sentence(answer, out);
  } else {
    write_no_plan_sentence(answer, out);
  }
  fputs("\n\n", out);
}

// ---------------------------------------------------------------------------
// Figures
// ---------------------------------------------------------------------------

static void label(const char *name, FILE *out) {
  fprintf(out, "  %-*s", LABEL_WIDTH, name);
}

static void write_bytes(const char *name, uint64_t bytes, FILE *out) {
  char text[FORMAT_SIZE];
  label(name, out);
  fprintf(out, "%s\n", format_bytes_exact(text, bytes));
}

static void write_name(const char *name, const char *path, FILE *out) {
  label(name, out);
  text_write(path, out);
  fputc('\n', out);
}

static void write_file(const plan_answer *answer, FILE *out) {
  char count[FORMAT_SIZE];
  label("file", out);
  text_write(answer->input->path, out);
  fprintf(out, ", %s buffer%s\n", format_count(count, answer->problem.count),
          answer->problem.count == 1 ? "" : "s");
}

static void write_ratio(const plan_answer *answer, FILE *out) {
  char text[FORMAT_SIZE];
  if (!has_plan(answer) || answer->info.lower_bound == 0) return;
  label("ratio", out);
  fprintf(out, "%s, %s\n", format_fixed(text, ratio_of(answer), 4),
          tarn_plan_answer_name(answer->info.answer));
}

static void write_arena(const plan_answer *answer, size_t arena, FILE *out) {
  char name[FORMAT_SIZE], height[FORMAT_SIZE], room[FORMAT_SIZE];
  char count[FORMAT_SIZE];
  uint64_t capacity = answer->problem.capacities[arena];
  snprintf(name, sizeof name, "arena %zu", arena);
  label(name, out);
  fprintf(out, "%s", format_bytes_exact(height, height_of(answer, arena)));
  if (capacity > 0) fprintf(out, " of %s", format_bytes(room, capacity));
  size_t in = count_in(answer, arena);
  fprintf(out, ", %s buffer%s\n", format_count(count, in), in == 1 ? "" : "s");
}

static void write_room(const plan_answer *answer, FILE *out) {
  uint64_t capacity = plan_fit_capacity(&answer->problem);
  if (capacity > 0) write_bytes("capacity", capacity, out);
  if (answer->problem.arena_count < 2 || answer->offsets == NULL) return;
  for (size_t i = 0; i < answer->problem.arena_count; i++)
    write_arena(answer, i, out);
}

static void write_search(const plan_answer *answer, FILE *out) {
  char nodes[FORMAT_SIZE];
  if (answer->plan == NULL) return;
  label("search", out);
  fprintf(out, "%s nodes in %.3f s\n", format_count(nodes, answer->info.nodes),
          answer->info.seconds);
}

static void write_moved(const plan_answer *answer, FILE *out) {
  char moved[FORMAT_SIZE], count[FORMAT_SIZE];
  if (!answer->has_previous || answer->offsets == NULL) return;
  label("moved", out);
  fprintf(out, "%s of %s buffers lie elsewhere than before\n",
          format_count(moved, answer->info.moved_count),
          format_count(count, answer->problem.count));
}

static void write_places(const plan_answer *answer, FILE *out) {
  if (has_plan(answer) && answer->checked == PLAN_GOOD) {
    label("verified", out);
    fputs("yes: no two buffers share a byte while both are needed\n", out);
  }
  if (answer->out_path != NULL) write_name("plan", answer->out_path, out);
  if (has_plan(answer) && answer->out_path == NULL && answer->plan != NULL) {
    write_name("plan", "not written: --out FILE.csv says where to", out);
  }
  if (answer->svg_path != NULL) write_name("picture", answer->svg_path, out);
}

void plan_write_report(const plan_answer *answer, FILE *out) {
  write_sentence(answer, out);
  if (answer->offsets == NULL) plan_conflict_write(answer, out);
  write_file(answer, out);
  if (has_plan(answer)) write_bytes("height", answer->info.height, out);
  write_bytes("lower bound", answer->info.lower_bound, out);
  write_ratio(answer, out);
  write_room(answer, out);
  write_search(answer, out);
  write_moved(answer, out);
  write_places(answer, out);
  const plan_input_kind *kind = answer->input->kind;
  if (kind->tell != NULL) kind->tell(answer->input, answer, out);
}

// ---------------------------------------------------------------------------
// JSON
// ---------------------------------------------------------------------------

static void json_answer(json *w, const plan_answer *answer) {
  const char *status = answer->checked == PLAN_WRONG
                           ? "wrong"
                           : tarn_plan_answer_name(answer->info.answer);
  json_key_text(w, "file", answer->input->path);
  json_key_uint(w, "buffers", answer->problem.count);
  json_key_uint_if(w, "height", has_plan(answer), answer->info.height);
  json_key_uint(w, "lower_bound", answer->info.lower_bound);
  json_key_text(w, "status", status);
  json_key_double(w, "seconds", answer->info.seconds);
  json_key_uint(w, "nodes", answer->info.nodes);
}

static void json_checks(json *w, const plan_answer *answer) {
  uint64_t capacity = plan_fit_capacity(&answer->problem);
  json_key_uint_if(w, "capacity", capacity > 0, capacity);
  json_key_bool(w, "cancelled", answer->info.cancelled);
  json_key_bool_if(w, "verified", answer->checked != PLAN_UNCHECKED,
                   answer->checked == PLAN_GOOD);
  json_key_text(w, "wrong", answer->wrong);
  json_key_uint_if(w, "moved", answer->has_previous && answer->offsets != NULL,
                   answer->info.moved_count);
}

static void json_arenas(json *w, const plan_answer *answer) {
  json_key_array(w, "arenas");
  size_t count = answer->offsets != NULL ? answer->problem.arena_count : 0;
  for (size_t i = 0; i < count; i++) {
    uint64_t capacity = answer->problem.capacities[i];
    json_begin_object(w);
    json_key_uint_if(w, "capacity", capacity > 0, capacity);
    json_key_uint(w, "height", height_of(answer, i));
    json_key_uint(w, "buffers", count_in(answer, i));
    json_end_object(w);
  }
  json_end_array(w);
}

// If it does not fit. The keys of a trace stand further behind.
static void json_shortage(json *w, const plan_answer *answer) {
  const plan_shortage *s = &answer->shortage;
  bool short_of = answer->offsets == NULL && s->excess > 0;
  json_key_uint_if(w, "excess_bytes", short_of, s->excess);
  json_key_uint_if(w, "excess_step", short_of && s->has_step, s->step);
}

static void json_moves(json *w, const plan_answer *answer) {
  const plan_moves *moves = &answer->shortage.moves;
  if (answer->offsets == NULL && !moves->known) {
    json_key_null(w, "must_move");
    return;
  }
  json_key_array(w, "must_move");
  for (size_t i = 0; answer->offsets == NULL && i < moves->count; i++) {
    size_t buffer = moves->items[i];
    json_begin_object(w);
    json_key_text(w, "id", plan_input_id(answer->input, buffer));
    json_key_uint(w, "bytes", answer->problem.buffers[buffer].size);
    json_end_object(w);
  }
  json_end_array(w);
}

static void json_conflict(json *w, const plan_answer *answer) {
  bool has = answer->conflict != NULL;
  plan_pressure pressure = plan_conflict_pressure(answer);
  json_key_array(w, "conflict");
  for (size_t i = 0; has && i < answer->info.conflict_count; i++) {
    json_text(w, plan_input_id(answer->input, answer->conflict[i]));
  }
  json_end_array(w);
  json_key_bool(w, "conflict_minimal", has && answer->info.conflict_minimal);
  json_key_uint_if(w, "conflict_bytes", has, pressure.bytes);
  json_key_uint_if(w, "conflict_step", pressure.has_step, pressure.step);
}

void plan_write_json(const plan_answer *answer, FILE *out) {
  json writer = json_to(out);
  json_begin_object(&writer);
  json_answer(&writer, answer);
  json_checks(&writer, answer);
  json_arenas(&writer, answer);
  json_conflict(&writer, answer);
  json_shortage(&writer, answer);
  json_key_text(&writer, "out", answer->out_path);
  json_key_text(&writer, "svg", answer->svg_path);
  const plan_input_kind *kind = answer->input->kind;
  if (kind->tell_json != NULL) {
    kind->tell_json(answer->input, answer, &writer);
  } else {
    json_moves(&writer, answer);
  }
  json_end_object(&writer);
  json_finish(&writer);
}
