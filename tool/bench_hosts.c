// tarn bench whole --hosts: which gather by MPI there is for these ranks, and
// what became of the figures.
#include "bench_hosts.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"

// For whose ranks the library has loaded what. The peer is for the same MPI.
static char *find_peer(void) {
  static const char *const names[] = {"openmpi", "mpich"};
  char file[48];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(file, sizeof file, "libtarn_mpi_%s.so", names[i]);
    if (dlopen(file, RTLD_LAZY | RTLD_NOLOAD) == NULL) continue;
    snprintf(file, sizeof file, "libtarn_bench_%s.so", names[i]);
    return launch_find(file);
  }
  return NULL;
}

static tool_exit tell(const tool_verb *verb, const hosts_bench *bench,
                      const hosts_result *result) {
  tool_exit status = TOOL_DONE;
  for (size_t i = 0; i < result->count; i++) {
    const hosts_figure *f = &result->figures[i];
    if (f->why[0] == '\0' || f->is_skipped) continue;
    status = tool_fail(verb, "%s, %zu rows of %zu bytes, %s: %s",
                       bench->whole.device, f->rows, f->row_bytes,
                       hosts_op_name(f->op), f->why);
  }
  if (result->failed[0] == '\0') return status;
  return tool_fail(verb, "%s: %s", bench->whole.device, result->failed);
}

// Indices go as 32 bits.
static bool has_few_rows(const whole_bench *b) {
  for (size_t i = 0; i < b->row_count; i++) {
    if (b->table_bytes / b->row_bytes[i] > INT32_MAX) return false;
  }
  return true;
}

tool_exit bench_hosts_measure(const tool_verb *verb, const whole_bench *whole,
                              const char *interface, bool no_mpi,
                              options_output output) {
  bool is_first = tarn_comm_rank(whole->comm) == 0;
  hosts_bench bench = {.whole = *whole, .interface = interface};
  if (!has_few_rows(whole)) {
    return is_first ? tool_misuse(verb,
                                  "--hosts: a table of more than 2^31 "
                                  "rows: their numbers are of 32 bits")
                    : TOOL_MISUSE;
  }
  hosts_result *result = tool_array(1, sizeof *result);
  char *peer = no_mpi ? NULL : find_peer();
  bench.peer = peer;
  bench.why_not =
      no_mpi ? "not asked for" : "its library is not where the tool is";
  (void)hosts_bench_run(&bench, result);
  tool_exit status = is_first ? tell(verb, &bench, result) : TOOL_DONE;
  if (is_first) bench_hosts_report_write(&bench, result, output);
  free(peer);
  free(result);
  return status;
}
