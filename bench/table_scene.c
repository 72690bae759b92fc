// Steps that all ranks do, and what comes of their times.
#include "table_scene.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "kit/stopwatch.h"

// --- failures ----------------------------------------------------------------

bool table_did(table_scene *s, tarn_status status) {
  return status == TARN_OK || table_refuse(s, "%s", tarn_last_error());
}

bool table_refuse(table_scene *s, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(s->why, sizeof s->why, format, arguments);
  va_end(arguments);
  return false;
}

// What each rank says of a step.
typedef struct verdict {
  uint64_t now;
  bool did;
  char why[TABLE_TEXT_SIZE];
} verdict;

// |out_last|: the latest |now| of all.
static bool meet(table_scene *s, bool mine, uint64_t now, uint64_t *out_last) {
  verdict all[TABLE_RANKS_MOST];
  verdict own = {.now = now, .did = mine};
  bool did = true;
  *out_last = 0;
  if (!mine) memcpy(own.why, s->why, sizeof own.why);
  if (!table_did(s, tarn_comm_allgather(s->comm, &own, sizeof own, all)))
    return false;
  for (size_t r = tarn_comm_size(s->comm); r-- > 0;) {
    if (all[r].now > *out_last) *out_last = all[r].now;
    if (!all[r].did) memcpy(s->why, all[r].why, sizeof s->why);
    did = did && all[r].did;
  }
  return did;
}

bool table_agree(table_scene *s, bool mine) {
  uint64_t last = 0;
  return meet(s, mine, 0, &last);
}

bool table_alone(table_scene *s, table_step *step, void *context) {
  table_scene alone = *s;
  int color = (int)s->rank;
  if (!table_did(s, tarn_comm_split(s->comm, color, 0, &alone.comm)))
    return false;
  bool did = s->rank != 0 || step(&alone, context);
  if (!did) memcpy(s->why, alone.why, sizeof s->why);
  (void)tarn_comm_destroy(alone.comm);
  return table_agree(s, did);
}

// --- times -------------------------------------------------------------------

// Ranks wake up one after the other: so all wait for a moment that lies behind.
static bool begin_together(table_scene *s, uint64_t *out_begin) {
  enum { AHEAD_NS = 50000 };
  if (!meet(s, true, stopwatch_clock_ns(), out_begin)) return false;
  *out_begin += AHEAD_NS;
  while (stopwatch_clock_ns() < *out_begin) {
  }
  return true;
}

bool table_time(table_scene *s, table_step *step, void *context,
                table_samples *io_samples) {
  uint64_t begin = 0;
  uint64_t end = 0;
  if (!begin_together(s, &begin)) return false;
  bool did = step(s, context);
  if (!meet(s, did, stopwatch_clock_ns(), &end)) return false;
  table_sample(io_samples, (double)(end - begin));
  return true;
}

void table_sample(table_samples *io_samples, double ns) {
  if (io_samples->count < TABLE_PASSES_MOST)
    io_samples->ns[io_samples->count++] = ns;
}

// --- figures -----------------------------------------------------------------

static int ascending(const void *left, const void *right) {
  double a = *(const double *)left;
  double b = *(const double *)right;
  return (a > b) - (a < b);
}

// Between the two values that are next to the place, by how near they are.
static double quantile(const double *sorted, size_t count, double part) {
  double place = part * (double)(count - 1);
  size_t below = (size_t)place;
  size_t above = below + 1 < count ? below + 1 : below;
  return sorted[below] +
         (place - (double)below) * (sorted[above] - sorted[below]);
}

void table_note(table_result *out, size_t figure, const double *values,
                size_t count) {
  double sorted[TABLE_PASSES_MOST];
  table_value *v = &out->values[figure];
  if (count == 0) return;
  memcpy(sorted, values, count * sizeof *sorted);
  qsort(sorted, count, sizeof *sorted, ascending);
  v->value = quantile(sorted, count, .5);
  v->low = quantile(sorted, count, .25);
  v->high = quantile(sorted, count, .75);
}

void table_note_rate(table_result *out, size_t figure,
                     const table_samples *samples, double bytes) {
  double rates[TABLE_PASSES_MOST];
  for (size_t i = 0; i < samples->count; i++)
    rates[i] = bytes / samples->ns[i];
  table_note(out, figure, rates, samples->count);
}

void table_note_speedup(table_result *out, size_t figure,
                        const table_samples *ours, const table_samples *peer) {
  double ratios[TABLE_PASSES_MOST];
  size_t count = ours->count < peer->count ? ours->count : peer->count;
  for (size_t i = 0; i < count; i++)
    ratios[i] = peer->ns[i] / ours->ns[i];
  table_note(out, figure, ratios, count);
}

void table_skip(table_result *out, size_t figure, const char *why) {
  table_value *v = &out->values[figure];
  snprintf(v->why, sizeof v->why, "%s", why);
  v->is_skipped = true;
}

// --- files -------------------------------------------------------------------

void table_path(const table_scene *s, const char *name,
                char out[TABLE_PATH_SIZE]) {
  snprintf(out, TABLE_PATH_SIZE, "%s/%s", s->bench->folder, name);
}

bool table_folder_is_memory(const char *folder) {
  enum { IS_TMPFS = 0x01021994, IS_RAMFS = (int)0x858458f6 };
  struct statfs found;
  if (statfs(folder, &found) != 0) return false;
  return (int)found.f_type == IS_TMPFS || (int)found.f_type == IS_RAMFS;
}
