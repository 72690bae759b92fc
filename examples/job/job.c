#include "job.h"

#include <stdio.h>
#include <stdlib.h>

static int fail(const job *j, bool first, tarn_status status,
                const char *text) {
  bool is_lost = status == TARN_E_PEER_LOST || status == TARN_E_TIMEOUT;
  if (first || is_lost) fprintf(stderr, "%s: %s\n", j->name, text);
  return EXIT_FAILURE;
}

static int work_and_end(const job *j, tarn_comm *comm, bool first) {
  char text[512];
  tarn_status status = j->work(j->run, comm);
  if (status == TARN_OK && fflush(stdout) != 0)
    status = tarn_fail(TARN_E_IO, "stdout cannot be written");
  snprintf(text, sizeof text, "%s", status == TARN_OK ? "" : tarn_last_error());
  tarn_status ended = j->end(j->run);
  if (status != TARN_OK) return fail(j, first, status, text);
  if (ended != TARN_OK) return fail(j, first, ended, tarn_last_error());
  return EXIT_SUCCESS;
}

static int run(const job *j, tarn_comm *comm) {
  bool first = tarn_comm_rank(comm) == 0;
  if (j->help) {
    if (first) j->tell_help();
    return EXIT_SUCCESS;
  }
  if (j->wrong[0] != '\0') {
    if (first) fprintf(stderr, "%s: %s\n", j->name, j->wrong);
    return 2;
  }
  return work_and_end(j, comm, first);
}

int job_main(const job *j) {
  tarn_comm *comm = NULL;
  if (tarn_comm_from_environment(NULL, &comm) != TARN_OK) {
    fprintf(stderr, "%s: %s\n", j->name, tarn_last_error());
    return EXIT_FAILURE;
  }
  int status = run(j, comm);
  if (tarn_comm_destroy(comm) != TARN_OK && status == EXIT_SUCCESS)
    return EXIT_FAILURE;
  return status;
}
