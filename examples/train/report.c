#include "report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "job/try.h"

static double mib(double bytes) {
  return bytes / (1 << 20);
}

tarn_status report_init(report *r, const options *of, const course *c,
                        const course_result *result) {
  *r = (report){.of = of, .ranks = tarn_comm_size(c->comm), .result = *result};
  r->memory.struct_size = sizeof r->memory;
  return tarn_model_report(c->net->model, &r->memory);
}

// --- bytes by kind and place -----------------------------------------------

// At the host, and at the device if that is another place.
typedef struct bytes {
  size_t host;
  size_t device;
} bytes;

static tarn_status add_memory(tarn_synced *buffer, tarn_place home,
                              bytes *sum) {
  tarn_synced_info info = {.struct_size = sizeof info};
  if (buffer == NULL) return TARN_OK;
  TRY(tarn_synced_query(buffer, 0, TARN_ALL, TARN_HOST, &info));
  sum->host += info.memory;
  if (tarn_place_equal(home, TARN_HOST)) return TARN_OK;
  TRY(tarn_synced_query(buffer, 0, TARN_ALL, home, &info));
  sum->device += info.memory;
  return TARN_OK;
}

static void print_bytes(const report *r, const char *kind, bytes sum) {
  printf("  %-24s %10.2f", kind, mib((double)sum.host));
  if (strcmp(r->of->device, "cpu:0") != 0)
    printf(" %10.2f", mib((double)sum.device));
  printf("\n");
}

static tarn_status print_table(const report *r, const course *c) {
  tarn_whole_part part;
  TRY(tarn_whole_local(c->from->table.whole, &part));
  print_bytes(r, "its part of the table", (bytes){part.size, 0});
  return TARN_OK;
}

static tarn_status print_batches(const report *r, const course *c) {
  bytes sum = {0};
  for (size_t i = 0; i < LOADER_BATCHES; i++)
    TRY(add_memory(c->from->batches[i].rows, c->net->home, &sum));
  print_bytes(r, "batches", sum);
  return TARN_OK;
}

static tarn_status print_params(const report *r, const course *c) {
  bytes data = {0}, diffs = {0}, speeds = {0};
  tarn_place home = c->net->home;
  for (size_t i = 0; i < LAYERS; i++) {
    const mlp_layer *l = &c->net->layers[i];
    TRY(add_memory(l->w->data, home, &data));
    TRY(add_memory(l->b->data, home, &data));
    TRY(add_memory(l->w->diff, home, &diffs));
    TRY(add_memory(l->b->diff, home, &diffs));
    TRY(add_memory(l->w_speed->data, home, &speeds));
    TRY(add_memory(l->b_speed->data, home, &speeds));
  }
  print_bytes(r, "parameters", data);
  print_bytes(r, "their gradients", diffs);
  print_bytes(r, "their speeds", speeds);
  return TARN_OK;
}

static void print_sums(const report *r, const course *c) {
  const gradients *g = c->slopes;
  print_bytes(r, "gradients of slices",
              (bytes){g->slices.size + g->received.size + g->sum.size, 0});
}

// One block at home, and one at the host beside it.
static void print_planned(const report *r) {
  print_bytes(r, "planned: outputs, diffs",
              (bytes){r->memory.planned, r->memory.planned});
}

static tarn_status print_pool(tarn_place place) {
  char text[64];
  tarn_pool *pool;
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  TRY(tarn_pool_of(place, &pool));
  TRY(tarn_pool_query(pool, &stats));
  printf("  pool of %-16s %10.2f at most in blocks, %.2f charged\n",
         tarn_place_text(place, text, sizeof text),
         mib((double)stats.live_peak_bytes), mib((double)stats.charged_bytes));
  return TARN_OK;
}

static tarn_status print_pools(const course *c) {
  tarn_place home = c->net->home;
  TRY(print_pool(TARN_HOST));
  if (tarn_place_equal(home, TARN_HOST)) return TARN_OK;
  TRY(print_pool((tarn_place){home.device, TARN_PLACE_HOST}));
  return print_pool(home);
}

tarn_status report_memory(const report *r, const course *c) {
  printf("\nMiB at rank 0 of %-3zu %17s", r->ranks, "host");
  if (strcmp(r->of->device, "cpu:0") != 0) printf(" %10s", r->of->device);
  printf("\n");
  TRY(print_table(r, c));
  TRY(print_batches(r, c));
  TRY(print_params(r, c));
  print_sums(r, c);
  print_planned(r);
  return print_pools(c);
}

// --- results ---------------------------------------------------------------

static double steps_per_s(const report *r) {
  size_t steps = r->of->steps;
  double timed = (double)(steps > 1 ? steps - 1 : steps);
  return timed / r->result.times.steps;
}

static double gather_gbs(const report *r) {
  return r->result.gather_bytes / r->result.gather_seconds / 1e9;
}

static double share_of_step(const report *r, double time) {
  return 100 * time / r->result.times.steps;
}

static void print_speed(const report *r) {
  const course_times *t = &r->result.times;
  double waits = t->steps - t->compute;
  printf("speed      %.2f steps/s; gathers alone %.2f GB/s\n", steps_per_s(r),
         gather_gbs(r));
  printf(
      "           waits %.1f %% of a step: batches %.1f, sums %.1f, other "
      "%.1f\n",
      share_of_step(r, waits), share_of_step(r, t->batches),
      share_of_step(r, t->sums),
      share_of_step(r, waits - t->batches - t->sums));
}

static void print_timeline(const report *r) {
  if (r->of->trace == NULL)
    printf("timeline   --trace train.tarn records it\n");
  else
    printf("timeline   tarn view %s --html train.html draws it\n",
           r->of->trace);
}

void report_result(const report *r) {
  const course_result *is = &r->result;
  printf(
      "\nheld out   loss %.4f, accuracy %.4f; without features at most "
      "%.4f\n",
      is->loss, is->accuracy, is->bound);
  printf("plan       %.2f MiB, where the same tensors apart take %.2f\n",
         mib((double)r->memory.planned), mib((double)r->memory.naive));
  printf("copies     %.2f MiB moved, %.2f avoided\n", mib((double)is->moved),
         mib((double)is->avoided));
  print_speed(r);
  print_timeline(r);
}

// --- JSON ------------------------------------------------------------------

static void print_text(const char *text) {
  putchar('"');
  for (; *text != '\0'; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') putchar('\\');
    if (c >= ' ')
      putchar(c);
    else
      printf("\\u%04x", c);
  }
  putchar('"');
}

// JSON has no infinity, to which a loss may rise.
static void print_number(const char *key, int digits, double value) {
  if (isfinite(value))
    printf(",\"%s\":%.*f", key, digits, value);
  else
    printf(",\"%s\":null", key);
}

void report_json(const report *r) {
  const course_result *is = &r->result;
  printf("{\"ranks\":%zu,\"device\":", r->ranks);
  print_text(r->of->device);
  printf(",\"steps\":%zu", r->of->steps);
  print_number("steps_per_s", 3, steps_per_s(r));
  print_number("loss", 9, is->loss);
  print_number("accuracy", 6, is->accuracy);
  print_number("accuracy_bound", 6, is->bound);
  print_number("gather_gbs", 3, gather_gbs(r));
  printf(",\"bytes_moved\":%llu,\"bytes_avoided\":%llu",
         (unsigned long long)is->moved, (unsigned long long)is->avoided);
  print_number("naive_mib", 3, mib((double)r->memory.naive));
  print_number("planned_mib", 3, mib((double)r->memory.planned));
  printf("}\n");
}
