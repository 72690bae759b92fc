// Ranks that have inherited nothing meet by a path. The first process to come
// becomes the host and waits there for the others.
#include <inttypes.h>
#include <string.h>

#include "base/os_peer.h"
#include "base/status.h"
#include "comm/comm.h"
#include "comm/group.h"

// --- at the listener -------------------------------------------------------

static tarn_status tell_late(const tarn__comm_group *group) {
  return tarn__fail(
      TARN_E_TIMEOUT,
      "tarn_comm_meet: rank %zu was not admitted at '%s' within %" PRIu64
      " ms: other processes hold the lock of its folder, or wait there",
      group->rank, group->path, group->come_ms);
}

static tarn_status go_in(const tarn__comm_group *group,
                         tarn__comm_listener *listener, tarn__comm_wait *wait,
                         bool *out_again, tarn_comm **out_comm) {
  int fd = -1;
  TARN__TRY(tarn__listener_try(listener, group->size, &fd));
  if (listener->listener >= 0)
    return tarn__host(group, listener, wait, out_comm);
  if (fd >= 0)
    return tarn__joiner(group, listener, fd, wait, out_again, out_comm);
  *out_again = true;
  return TARN_OK;
}

static tarn_status meet(const tarn__comm_group *group,
                        tarn__comm_listener *listener, tarn_comm **out_comm) {
  static const uint64_t while_ns = 500000;
  tarn__comm_wait wait = tarn__wait_begin(group->come_ms);
  for (;;) {
    bool again = false;
    uint64_t left = tarn__wait_left(&wait);
    tarn_status status = go_in(group, listener, &wait, &again, out_comm);
    if (!again) return status;
    if (left == 0) return tell_late(group);
    tarn__os_await_any(NULL, 0, while_ns, NULL);
  }
}

tarn_status tarn__meet_at(const tarn__comm_group *group, tarn_comm **out_comm) {
  tarn__comm_listener listener;
  TARN__TRY(tarn__listener_find(group->path, &listener));
  tarn_status status = meet(group, &listener, out_comm);
  tarn__listener_close(&listener);
  return status;
}

tarn_status tarn__meet_check(const char *call, size_t rank, size_t size) {
  if (size != 0 && size <= TARN_COMM_MOST_RANKS && rank < size) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "%s: rank %zu of %zu ranks, of which there may be 1 to %d",
                    call, rank, size, TARN_COMM_MOST_RANKS);
}

// --- the call --------------------------------------------------------------

static tarn_status check_job(const char *job) {
  size_t size = strnlen(job, TARN_COMM_MOST_JOB + 1);
  if (size <= TARN_COMM_MOST_JOB) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "tarn_comm_meet: the job has more than %d bytes",
                    TARN_COMM_MOST_JOB);
}

tarn_status tarn_comm_meet(const char *path, size_t rank, size_t size,
                           const tarn_comm_options *options,
                           tarn_comm **out_comm) {
  tarn_comm_options known;
  if (out_comm != NULL) *out_comm = NULL;
  if (path == NULL || out_comm == NULL) {
    return tarn__fail(TARN_E_INVALID, "tarn_comm_meet: NULL");
  }
  TARN__TRY(tarn__meet_check("tarn_comm_meet", rank, size));
  TARN__TRY(tarn__comm_options(options, 0, &known));
  const tarn__comm_group group = {.path = path,
                                  .job = known.job == NULL ? "" : known.job,
                                  .rank = rank,
                                  .size = size,
                                  .come_ms = known.timeout_ms,
                                  .timeout_ms = known.timeout_ms};
  TARN__TRY(check_job(group.job));
  return tarn__meet_at(&group, out_comm);
}
