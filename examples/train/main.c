// train - a training in which the parts of Tarn meet.
//
//   build/tarn run -n 2 -- build/examples/train
//   mpirun -n 2 build/examples/train -o json
//
// The features of the nodes of a graph lie in a whole-memory table over the
// ranks (table.c). Batches of rows are gathered into synced buffers while the
// batch before is computed with (loader.c). A net learns from them, whose
// memory is planned (mlp.c, mlp_describe.c), and gradients are added up over
// the ranks (gradients.c). All memory comes from pools (memory.c). The net is
// on any device; the host computes.
//
// Loss and accuracy depend on the options and not on the number of ranks
// (share.h).
#include <stdio.h>
#include <string.h>

#include "job/job.h"
#include "job/try.h"
#include "report.h"
#include "table.h"

typedef struct run {
  options of;
  tarn_comm *comm;
  tarn_device *device;
  nodes nodes;
  tarn_whole_tensor table;
  mlp net;
  loader from;
  gradients slopes;
  course course;
} run;

static bool is_first(const run *r) {
  return tarn_comm_rank(r->comm) == 0;
}

// --- the timeline ----------------------------------------------------------

// Of the pool of the host, where the table and the batches are.
static tarn_status record(const run *r) {
  tarn_pool *pool;
  if (r->of.trace == NULL || !is_first(r)) return TARN_OK;
  TRY(tarn_pool_of(TARN_HOST, &pool));
  return tarn_pool_account(
      pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS | TARN_COUNT_TIMES);
}

static tarn_status write_trace(const run *r) {
  tarn_pool *pool;
  if (r->of.trace == NULL || !is_first(r)) return TARN_OK;
  TRY(tarn_pool_of(TARN_HOST, &pool));
  return tarn_pool_snapshot(pool, TARN_TRACE_FORMAT_TARN, r->of.trace);
}

// --- begin and end ---------------------------------------------------------

// What each rank does for itself.
static tarn_status begin_own(run *r) {
  share its = share_of(tarn_comm_rank(r->comm), tarn_comm_size(r->comm));
  TRY(tarn_device_open(r->of.device, &r->device));
  TRY(record(r));
  nodes_plant(&r->nodes, r->of.seed);
  const mlp_options of_net = {.width = r->of.width,
                              .slices = its.count,
                              .slice = r->of.batch / SLICES,
                              .seed = r->of.seed,
                              .home = tarn_place_on(r->device)};
  TRY(mlp_init(&r->net, &of_net));
  return gradients_init(&r->slopes, r->comm, r->net.params);
}

static tarn_status begin_loader(run *r) {
  share its = share_of(tarn_comm_rank(r->comm), tarn_comm_size(r->comm));
  return loader_init(&r->from, &r->table, r->of.batch, its, r->of.seed,
                     tarn_place_on(r->device));
}

static tarn_status begin(run *r) {
  if (tarn_comm_size(r->comm) > SLICES)
    return tarn_fail(TARN_E_INVALID, "a batch has 8 slices: at most 8 ranks");
  TRY(tarn_comm_agree(r->comm, begin_own(r)));
  TRY(table_make(r->comm, r->of.type, r->of.rows, &r->nodes, &r->table));
  return tarn_comm_agree(r->comm, begin_loader(r));
}

// Whatever has begun, the last first.
static tarn_status end(void *context) {
  run *r = context;
  tarn_status status = loader_end(&r->from);
  if (r->table.whole != NULL)
    status = first_of(status, tarn_whole_destroy(r->table.whole));
  status = first_of(status, gradients_end(&r->slopes));
  status = first_of(status, mlp_end(&r->net));
  if (r->device != NULL)
    status = first_of(status, tarn_device_close(r->device));
  return status;
}

// --- between ---------------------------------------------------------------

static tarn_status tell(const run *r, const course_result *result) {
  report told;
  if (!is_first(r)) return TARN_OK;
  TRY(report_init(&told, &r->of, &r->course, result));
  if (!r->of.json) TRY(report_memory(&told, &r->course));
  if (r->of.json)
    report_json(&told);
  else
    report_result(&told);
  return TARN_OK;
}

static tarn_status work(void *context, tarn_comm *comm) {
  run *r = context;
  course_result result;
  r->comm = comm;
  TRY(begin(r));
  r->course = (course){.comm = r->comm,
                       .from = &r->from,
                       .net = &r->net,
                       .slopes = &r->slopes,
                       .steps = r->of.steps,
                       .prefetch = r->of.prefetch};
  if (is_first(r)) r->course.progress = r->of.json ? stderr : stdout;
  TRY(course_run(&r->course, &result));
  TRY(tarn_comm_agree(r->comm, write_trace(r)));
  return tarn_comm_agree(r->comm, tell(r, &result));
}

int main(int argc, char **argv) {
  run r = {.of = options_read(argc, argv)};
  return job_main(&(job){.name = "train",
                         .wrong = r.of.wrong,
                         .help = r.of.help,
                         .tell_help = options_help,
                         .work = work,
                         .end = end,
                         .run = &r});
}
