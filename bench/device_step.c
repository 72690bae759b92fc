// A step of a net on the device, over one on cpu:0: a program trains it, one
// process after the other by turns, and tells its steps in a second.
//
// The programs are examples/resnet and its like: they take --device, --steps,
// --queued and -o json, and their last line is an object with "steps_per_s",
// which the first step has no part in. They find a plug-in by themselves, or in
// TARN_PLUGIN_DIR, which is where |plugin| is.
#include <errno.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device_figures.h"
#include "kit/process.h"

enum { PAIRS = 9, PAIRS_MOST = 101, OUTPUT_SIZE = 4096 };
#define STEPS "6"
#define PATIENCE 600.0  // seconds, for a process

static bool read_rate(int fd, double *out_rate) {
  char text[OUTPUT_SIZE];
  static const char key[] = "\"steps_per_s\":";
  ssize_t size = pread(fd, text, sizeof text - 1, 0);
  text[size > 0 ? size : 0] = '\0';
  const char *found = strstr(text, key);
  return found != NULL &&
         sscanf(found + sizeof key - 1, "%lf", out_rate) == 1 && *out_rate > 0;
}

static void set_folder(void *context) {
  const char *plugin = context;
  char *path = plugin != NULL ? realpath(plugin, NULL) : NULL;
  if (path != NULL) (void)setenv("TARN_PLUGIN_DIR", dirname(path), 1);
  free(path);
}

static bool run(const device_bench *bench, const char *device, bool queued,
                int out, char *end) {
  const char *words[] = {
      bench->net, "--device", device, "--steps",
      STEPS,      "-o",       "json", queued ? "--queued" : NULL,
      NULL};
  process_spec spec = {.words = words,
                       .prepare = set_folder,
                       .context = (void *)(uintptr_t)bench->plugin,
                       .out = out,
                       .err = PROCESS_NOWHERE};
  pid_t pid = process_start(&spec);
  if (pid < 0) return snprintf(end, PROCESS_TEXT_SIZE, "cannot be run") < 0;
  int status = process_wait(pid, PATIENCE, NULL);
  (void)process_explain(status, end);
  return process_did_well(status);
}

// Milliseconds of a step; negative: |why| says why not.
static double time_step(const device_bench *bench, const char *device,
                        bool queued, char *why) {
  char end[PROCESS_TEXT_SIZE];
  double rate = 0;
  int out = memfd_create("net", MFD_CLOEXEC);
  bool did = out >= 0 && run(bench, device, queued, out, end);
  bool told = did && read_rate(out, &rate);
  if (out >= 0) (void)close(out);
  if (told) return 1e3 / rate;
  snprintf(why, PROBE_TEXT_SIZE, "the net's process on %.32s %.64s", device,
           out < 0 ? strerror(errno)
           : did   ? "told no steps_per_s"
                   : end);
  return -1;
}

static bool time_pair(const device_bench *bench, bool queued, size_t pass,
                      double *out_ratio, char *why) {
  bool host_first = pass % 2 == 0;
  double host = host_first ? time_step(bench, "cpu:0", false, why) : 0;
  if (host < 0) return false;
  double own = time_step(bench, bench->device, queued, why);
  if (own < 0) return false;
  if (!host_first) host = time_step(bench, "cpu:0", false, why);
  *out_ratio = own / host;
  return host > 0;
}

bool device_step(const device_bench *bench, bool queued, double *out_ratio,
                 char *why) {
  double ratios[PAIRS_MOST];
  size_t pairs = bench->passes == 0 ? PAIRS : bench->passes;
  if (pairs > PAIRS_MOST) pairs = PAIRS_MOST;
  *out_ratio = NAN;
  for (size_t i = 0; i < pairs; i++) {
    if (!time_pair(bench, queued, i, &ratios[i], why)) return false;
  }
  *out_ratio = probe_median(ratios, pairs);
  return true;
}
