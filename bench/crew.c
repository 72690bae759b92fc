// A rank that could not be forked is missed by the others when they meet.
#include "crew.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct crew {
  size_t count;
  crew_work *work;
  void *context;
  tarn_rendezvous *rendezvous;
} crew;

// Returns how many there are now, this one with them.
static size_t fork_others(const crew *c, pid_t *out_pids) {
  pid_t first = getpid();
  for (size_t r = 1; r < c->count; r++) {
    out_pids[r] = fork();
    if (out_pids[r] < 0) return r;
    if (out_pids[r] > 0) continue;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != first) _exit(EXIT_FAILURE);
    _exit(c->work(c->context, r, c->rendezvous) ? EXIT_SUCCESS : EXIT_FAILURE);
  }
  return c->count;
}

static void wait_for(const pid_t *pids, size_t count) {
  for (size_t r = 1; r < count; r++) {
    while (waitpid(pids[r], NULL, 0) < 0 && errno == EINTR) {
    }
  }
}

bool crew_run(size_t count, crew_work *work, void *context, char *why,
              size_t why_size) {
  pid_t pids[CREW_MOST];
  crew c = {.count = count, .work = work, .context = context};
  if (tarn_rendezvous_create(count, &c.rendezvous) != TARN_OK) {
    snprintf(why, why_size, "%s", tarn_last_error());
    return false;
  }
  size_t forked = fork_others(&c, pids);
  bool did = work(context, 0, c.rendezvous);
  wait_for(pids, forked);
  return did;
}

tarn_status crew_join(tarn_rendezvous *rendezvous, size_t rank,
                      uint64_t timeout_ms, tarn_comm **out_comm) {
  tarn_comm_options options = {.struct_size = sizeof options,
                               .timeout_ms = timeout_ms};
  tarn_status status = tarn_comm_join(rendezvous, rank, &options, out_comm);
  tarn_rendezvous_destroy(rendezvous);
  return status;
}
