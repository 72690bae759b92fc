// One call after another, begun by all ranks when all are there.
//
// Machines have clocks of their own: each rank takes its own time, and the
// longest counts. What crosses is counted from before the ranks agree to begin
// until they have agreed that all are done, which is a few hundred bytes more.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hosts_scene.h"
#include "kit/stopwatch.h"
#include "whole_indices.h"

const tarn_whole_type hosts_types[HOSTS_TYPES] = {TARN_WHOLE_DISTRIBUTED,
                                                  TARN_WHOLE_HIERARCHICAL};

const char *hosts_op_name(hosts_op op) {
  return op == HOSTS_ALLTOALLV ? "mpi_alltoallv" : "gather";
}

// ---------------------------------------------------------------------------
// Indices
// ---------------------------------------------------------------------------

static size_t rows_of(const hosts_scene *s, hosts_job job) {
  return s->bench->whole.table_bytes / job.row_bytes;
}

static size_t part_rows(const hosts_scene *s, hosts_job job) {
  return whole_part_bytes(&s->bench->whole) / job.row_bytes;
}

// Those of rank |rank|, which any rank can draw.
static void draw(hosts_scene *s, hosts_job job, uint64_t seed, size_t rank) {
  int64_t *wide = s->whole.numbers;
  uint64_t own = seed * WHOLE_RANKS_MOST + rank;
  if (job.zipf) {
    whole_draw_power(wide, job.rows, rows_of(s, job), HOSTS_ZIPF, own);
  } else {
    whole_draw_uniform(wide, job.rows, rows_of(s, job), own);
  }
}

static bool put(hosts_scene *s, hosts_job job, uint64_t seed) {
  draw(s, job, seed, s->whole.rank);
  for (size_t i = 0; i < job.rows; i++)
    s->numbers[i] = (int32_t)s->whole.numbers[i];
  return whole_put(&s->whole, s->whole.indices, s->numbers,
                   job.rows * sizeof *s->numbers);
}

// ---------------------------------------------------------------------------
// What has to cross
// ---------------------------------------------------------------------------

static bool is_away(const hosts_scene *s, hosts_job job, int64_t row) {
  size_t owner = (size_t)row / part_rows(s, job);
  return s->machine_of[owner] != s->machine_of[s->whole.rank];
}

// Bytes of rows that this rank asks other machines for.
static uint64_t count_crossing(const hosts_scene *s, hosts_job job) {
  uint64_t rows = 0;
  for (size_t i = 0; i < job.rows; i++)
    rows += is_away(s, job, s->whole.numbers[i]);
  return rows * job.row_bytes;
}

// The same for all ranks of this machine, each row once.
static uint64_t count_needed(hosts_scene *s, hosts_job job, uint64_t seed) {
  uint64_t rows = 0;
  memset(s->asked, 0, rows_of(s, job));
  for (size_t r = 0; r < s->bench->whole.ranks; r++) {
    if (s->machine_of[r] != s->machine_of[s->whole.rank]) continue;
    draw(s, job, seed, r);
    for (size_t i = 0; i < job.rows; i++) {
      unsigned char *asked = &s->asked[s->whole.numbers[i]];
      rows += *asked == 0 && is_away(s, job, s->whole.numbers[i]);
      *asked = 1;
    }
  }
  return rows * job.row_bytes;
}

// ---------------------------------------------------------------------------
// The work
// ---------------------------------------------------------------------------

static tarn_whole *table_of(const hosts_scene *s, hosts_job job) {
  size_t i = 0;
  while (i + 1 < HOSTS_TYPES && hosts_types[i] != job.type)
    i++;
  return s->tables[i];
}

static bool gather(hosts_scene *s, hosts_job job) {
  tarn_whole_tensor table;
  whole_scene *w = &s->whole;
  tarn_whole_rows rows = {.struct_size = sizeof rows,
                          .place = tarn_place_on(w->device),
                          .dense = w->dense,
                          .indices = w->indices,
                          .index_dtype = TARN_DTYPE_I32,
                          .index_count = job.rows};
  return whole_did(w, tarn_whole_tensor_make(
                          table_of(s, job), TARN_DTYPE_F32, rows_of(s, job),
                          job.row_bytes / sizeof(float), &table)) &&
         whole_did(w, tarn_whole_gather(&table, &rows, NULL));
}

static bool gather_by_mpi(hosts_scene *s, hosts_job job) {
  const whole_scene *w = &s->whole;
  const alltoallv_rows rows = {.part = w->parts[w->rank],
                               .part_rows = part_rows(s, job),
                               .row_bytes = job.row_bytes,
                               .indices = (const void *)(uintptr_t)w->indices,
                               .count = job.rows,
                               .dense = (unsigned char *)(uintptr_t)w->dense};
  s->peer->gather(s->alltoallv, &rows);
  return true;
}

static bool act(hosts_scene *s, hosts_job job) {
  bool did = true;
  for (size_t i = 0; i < job.calls && did; i++)
    did = job.op == HOSTS_ALLTOALLV ? gather_by_mpi(s, job) : gather(s, job);
  return did;
}

// What each rank tells the others of a job.
typedef struct account {
  uint64_t sent;      // by its machine, if it counts that
  uint64_t needed;    // likewise
  uint64_t crossing;  // to this rank
  uint64_t messages;
} account;

static uint64_t sent_by_machine(const hosts_scene *s) {
  uint64_t sent = 0;
  if (s->counts_wire) (void)hosts_wire_sent(s->interface, &sent);
  return sent;
}

static uint64_t sends(const hosts_scene *s) {
  return s->sends != NULL ? *s->sends : 0;
}

// The clock is that of the slowest rank.
static bool time_act(hosts_scene *s, hosts_job job, account *own,
                     uint64_t *out_ns) {
  uint64_t sent = sent_by_machine(s);
  if (!whole_agree(&s->whole, true, 0, NULL)) return false;
  uint64_t messages = sends(s);
  uint64_t begin = stopwatch_clock_ns();
  bool did = act(s, job);
  uint64_t took = stopwatch_clock_ns() - begin;
  own->messages = sends(s) - messages;
  if (!whole_agree(&s->whole, did, took, out_ns)) return false;
  // Others' packets may have smaller heads than those that are taken off.
  uint64_t now = sent_by_machine(s);
  own->sent = now > sent ? now - sent : 0;
  return true;
}

static void sum_up(const hosts_scene *s, hosts_job job, const account *all,
                   uint64_t ns, hosts_sample *out) {
  size_t ranks = s->bench->whole.ranks;
  double calls = (double)job.calls;
  account sum = {0};
  for (size_t r = 0; r < ranks; r++) {
    sum.sent += all[r].sent;
    sum.needed += all[r].needed;
    sum.crossing += all[r].crossing;
    if (all[r].messages > sum.messages) sum.messages = all[r].messages;
  }
  double call_ns = (double)ns / calls;
  out->us = call_ns / 1e3;
  out->gbs = (double)(ranks * job.rows * job.row_bytes) / call_ns;
  out->crossed_gbs = (double)sum.crossing / (double)s->machines / call_ns;
  out->wire_bytes = (double)sum.sent / calls;
  out->needed_bytes = (double)sum.needed;
  out->messages = s->sends != NULL ? (double)sum.messages / calls : NAN;
}

bool hosts_job_do(hosts_scene *s, hosts_job job, uint64_t seed,
                  hosts_sample *out) {
  account all[WHOLE_RANKS_MOST];
  account own = {0};
  uint64_t ns = 0;
  size_t machine = s->machine_of[s->whole.rank];
  if (s->first_of[machine] == s->whole.rank)
    own.needed = count_needed(s, job, seed);
  bool ready = put(s, job, seed);
  own.crossing = count_crossing(s, job);
  if (!whole_agree(&s->whole, ready, 0, NULL)) return false;
  if (!time_act(s, job, &own, &ns)) return false;
  tarn_status status =
      tarn_comm_allgather(s->whole.comm, &own, sizeof own, all);
  s->whole.is_broken = !whole_did(&s->whole, status);
  if (s->whole.is_broken) return false;
  sum_up(s, job, all, ns, out);
  return true;
}

bool hosts_job_check(hosts_scene *s, hosts_job job) {
  whole_scene *w = &s->whole;
  if (!whole_get(w, w->rows, w->dense, job.rows * job.row_bytes)) return false;
  if (whole_rows_right(w->rows, w->numbers, job.rows,
                       job.row_bytes / sizeof(float), 0)) {
    return true;
  }
  w->status = TARN_E_CORRUPT;
  snprintf(w->why, sizeof w->why, "rows of %zu bytes are wrong after %s",
           job.row_bytes, hosts_op_name(job.op));
  return false;
}
