// What all that is done in a scene stands on: names, sizes, and whether a step
// went well at every rank.
#include "whole_scene.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

// ---------------------------------------------------------------------------
// Names
// ---------------------------------------------------------------------------

whole_kind whole_kind_at(size_t index) {
  static const tarn_whole_type types[] = {
      TARN_WHOLE_CONTINUOUS, TARN_WHOLE_CHUNKED, TARN_WHOLE_DISTRIBUTED};
  return (whole_kind){types[index / 2], index % 2 == 1};
}

const char *whole_kind_location(whole_kind kind) {
  return kind.on_host ? "host" : "device";
}

const char *whole_op_name(whole_op op) {
  static const char *const names[WHOLE_OPS] = {
      "gather", "scatter",    "scatter_add",  "plain_gather",
      "memcpy", "mpi_window", "mpi_alltoallv"};
  return names[op];
}

// ---------------------------------------------------------------------------
// Sizes
// ---------------------------------------------------------------------------

size_t whole_batch_rows(const whole_bench *bench, size_t row_bytes) {
  return bench->batch_bytes / row_bytes;
}

size_t whole_granularity(const whole_bench *bench) {
  size_t most = 0;
  for (size_t i = 0; i < bench->row_count; i++) {
    if (bench->row_bytes[i] > most) most = bench->row_bytes[i];
  }
  return most;
}

// As tarn_whole_partition has it.
size_t whole_part_bytes(const whole_bench *bench) {
  size_t block = whole_granularity(bench);
  assert(bench->ranks > 0 && block > 0);
  size_t blocks = bench->table_bytes / block;
  return (blocks + bench->ranks - 1) / bench->ranks * block;
}

// ---------------------------------------------------------------------------
// Failures
// ---------------------------------------------------------------------------

bool whole_did(whole_scene *s, tarn_status status) {
  if (status == TARN_OK) return true;
  s->status = status;
  snprintf(s->why, sizeof s->why, "%s", tarn_last_error());
  return false;
}

// What each rank says of a step.
typedef struct verdict {
  uint64_t now;
  tarn_status status;
  char why[WHOLE_TEXT_SIZE];
} verdict;

// The first error counts.
static bool look_at(whole_scene *s, const verdict *all, uint64_t *out_last) {
  uint64_t last = 0;
  for (size_t r = s->bench->ranks; r-- > 0;) {
    if (all[r].now > last) last = all[r].now;
    if (all[r].status == TARN_OK) continue;
    s->status = all[r].status;
    memcpy(s->why, all[r].why, sizeof s->why);
  }
  if (out_last != NULL) *out_last = last;
  return s->status == TARN_OK;
}

bool whole_agree(whole_scene *s, bool mine, uint64_t now, uint64_t *out_last) {
  verdict all[WHOLE_RANKS_MOST];
  verdict own = {.now = now, .status = mine ? TARN_OK : s->status};
  if (s->is_broken) return false;
  if (!mine) memcpy(own.why, s->why, sizeof own.why);
  tarn_status status = tarn_comm_allgather(s->comm, &own, sizeof own, all);
  s->is_broken = !whole_did(s, status);
  if (s->is_broken) return false;
  s->status = TARN_OK;
  return look_at(s, all, out_last);
}
