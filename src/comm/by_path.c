// Ranks that have inherited nothing meet by a path: whoever comes first waits
// there for the others.
#include <inttypes.h>
#include <string.h>

#include "base/os_peer.h"
#include "base/status.h"
#include "comm/comm.h"
#include "comm/group.h"
#include "comm/listener.h"

// --- at the listener
// -----------------------------------------------------------

static tarn_status tell_late(const tarn__comm_group *group) {
  return tarn__fail(TARN_E_TIMEOUT,
                    "tarn_comm_meet: rank %zu was not let in at '%s' within "
                    "%" PRIu64
                    " ms: others have its folder locked, or wait "
                    "there",
                    group->rank, group->path, group->timeout_ms);
}

static tarn_status go_in(const tarn__comm_group *group,
                         tarn__comm_listener *listener, tarn__comm_wait *wait,
                         bool *out_again, tarn_comm **out_comm) {
  tarn__comm_entry entry = TARN__LATER;
  int fd = -1;
  tarn_status status = tarn__listener_try(listener, group->size, &entry, &fd);
  *out_again = status == TARN_OK && entry == TARN__LATER;
  if (status != TARN_OK || entry == TARN__LATER) return status;
  if (entry == TARN__AS_HOST)
    return tarn__host(group, listener, wait, out_comm);
  return tarn__joiner(group, listener, fd, wait, out_again, out_comm);
}

static tarn_status meet(const tarn__comm_group *group,
                        tarn__comm_listener *listener, tarn_comm **out_comm) {
  static const uint64_t while_ns = 500000;
  tarn__comm_wait wait = tarn__wait_begin(group->timeout_ms);
  for (;;) {
    bool again = false;
    uint64_t left = tarn__wait_left(&wait);
    tarn_status status = go_in(group, listener, &wait, &again, out_comm);
    if (!again) return status;
    if (left == 0) return tell_late(group);
    tarn__os_await_any(NULL, 0, while_ns, NULL);
  }
}

tarn_status tarn__group_meet(const tarn__comm_group *group,
                             tarn_comm **out_comm) {
  tarn__comm_listener listener;
  tarn_status status = tarn__listener_find(group->path, &listener);
  if (status != TARN_OK) return status;
  status = meet(group, &listener, out_comm);
  tarn__listener_close(&listener);
  return status;
}

// --- the call --------------------------------------------------------------

static tarn_status check_job(const char *job) {
  size_t size = strnlen(job, TARN_COMM_MOST_JOB + 1);
  if (size <= TARN_COMM_MOST_JOB) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "tarn_comm_meet: a job of more than %d bytes",
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
  if (size == 0 || size > TARN_COMM_MOST_RANKS || rank >= size) {
    return tarn__fail(TARN_E_INVALID,
                      "tarn_comm_meet: rank %zu of %zu, not of 1 to %d", rank,
                      size, TARN_COMM_MOST_RANKS);
  }
  tarn_status status = tarn__comm_options(options, 0, &known);
  if (status != TARN_OK) return status;
  const tarn__comm_group group = {.path = path,
                                  .job = known.job == NULL ? "" : known.job,
                                  .rank = rank,
                                  .size = size,
                                  .timeout_ms = known.timeout_ms};
  status = check_job(group.job);
  return status == TARN_OK ? tarn__group_meet(&group, out_comm) : status;
}
