// From the command line to the last line of the report.
//
//   describe ─► plan ─► report, picture ─► place ─► train ─► end ─► report
//                          │                                          ▲
//                          └───────────────── --dry-run ──────────────┘
#include "program.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gemm.h"
#include "meter.h"
#include "picture.h"
#include "report.h"
#include "trainer.h"

enum { SEED = 1 };  // of the parameters

typedef struct run {
  const net_example *example;
  net_options options;
  tarn_device *device;
  net_meter meter;
  net n;
  net_report report;
} run;

// --- the plan --------------------------------------------------------------

static tarn_status describe(run *r) {
  net_begin(&r->n, r->example->name, (int64_t)r->options.batch);
  if (r->n.status == TARN_OK) r->example->describe(&r->n, &r->options);
  return r->n.status;
}

static tarn_status note_plan(run *r) {
  net_report *report = &r->report;
  report->memory.struct_size = sizeof report->memory;
  tarn_status status = tarn_model_report(r->n.model, &report->memory);
  if (status != TARN_OK) return status;
  tarn_step *peak = tarn_model_step_at(r->n.model, report->memory.peak_step);
  snprintf(report->peak_step, sizeof report->peak_step, "%s",
           peak == NULL ? "no step" : tarn_step_name(peak));
  return TARN_OK;
}

static bool draw(run *r) {
  if (r->options.svg == NULL) return true;
  if (net_picture_write(r->n.model, r->options.svg)) return true;
  fprintf(stderr, "%s: %s: %s\n", r->example->name, r->options.svg,
          strerror(errno));
  return false;
}

static tarn_status plan(run *r) {
  tarn_status status = describe(r);
  r->n.is_queued = r->options.queued;
  if (status == TARN_OK)
    status = net_plan(&r->n, tarn_place_on(r->device),
                      r->options.infer ? TARN_INFER : TARN_TRAIN);
  if (status == TARN_OK) status = note_plan(r);
  if (status == TARN_OK && !r->options.json) net_report_memory(&r->report);
  return status;
}

// --- the run ---------------------------------------------------------------

static tarn_status start(run *r) {
  tarn_model_loaded loaded = {.struct_size = sizeof loaded};
  tarn_status status = net_place(&r->n);
  if (status == TARN_OK) status = net_start(&r->n, SEED);
  if (status != TARN_OK || r->options.load == NULL) return status;
  return tarn_model_load(r->n.model, r->options.load, 0, &loaded);
}

static tarn_status train(run *r) {
  net_course course = {.images = &r->example->images,
                       .sgd = r->example->sgd,
                       .steps = r->options.steps,
                       .infer = r->options.infer};
  tarn_status status = start(r);
  if (status == TARN_OK)
    status = net_train(&r->n, &course, &r->meter, &r->report.result);
  if (status != TARN_OK || r->options.save == NULL) return status;
  return tarn_model_save(r->n.model, r->options.save, 0);
}

// What the pools had at most, and what is left when the net has ended.
static tarn_status settle(run *r) {
  size_t peak = 0, left = 0;
  tarn_status status = net_end(&r->n);
  if (status == TARN_OK) status = net_meter_peak(&r->meter, &peak);
  if (status == TARN_OK) status = net_meter_left(&r->meter, &left);
  r->report.peak_bytes = (double)peak;
  r->report.left_bytes = (double)left;
  return status;
}

static int fail(const run *r) {
  fprintf(stderr, "%s: %s\n", r->example->name, tarn_last_error());
  return 1;
}

static int work(run *r) {
  if (plan(r) != TARN_OK) return fail(r);
  if (!draw(r)) return 1;
  if (!r->options.dry_run && train(r) != TARN_OK) return fail(r);
  if (settle(r) != TARN_OK) return fail(r);
  if (!r->options.json && !r->options.dry_run) net_report_result(&r->report);
  if (r->options.json) net_report_json(&r->report);
  return fflush(stdout) == 0 ? 0 : 1;
}

static int open_and_work(run *r) {
  if (net_meter_install() != TARN_OK) return fail(r);
  if (tarn_device_open(r->options.device, &r->device) != TARN_OK)
    return fail(r);
  if (net_meter_begin(&r->meter, tarn_place_on(r->device)) != TARN_OK)
    return fail(r);
  int status = work(r);
  (void)net_end(&r->n);
  if (tarn_device_close(r->device) != TARN_OK) return fail(r);
  return status;
}

int net_program(const net_example *example, int argc, char **argv) {
  run r = {.example = example, .options = example->defaults};
  r.report = (net_report){
      .net = example->name, .options = &r.options, .result = net_no_result};
  if (!net_options_read(&r.options, argc, argv)) return 2;
  if (r.options.help) {
    net_options_help(example->name, &example->defaults);
    return 0;
  }
  net_blas_one_thread();
  return open_and_work(&r);
}
