// Joining: a rank marks its place as taken, sends a descriptor of its process
// to all others, and waits for theirs. Until one has come, the end of that
// rank's inbox tells that it will not.
#include "comm/join.h"

#include <errno.h>
#include <string.h>

#include "base/os.h"
#include "base/os_peer.h"
#include "base/status.h"
#include "comm/comm.h"
#include "comm/local.h"

// All that takes memory, so that nobody waits in vain for who has none.
static tarn_status prepare(tarn__comm_area area, size_t rank,
                           uint64_t timeout_ms, tarn__comm_local **out_local,
                           tarn_comm **out_comm) {
  tarn__comm_post *post = NULL;
  tarn_status status = tarn__post_create(area.ranks, &post);
  if (status != TARN_OK) return status;
  status = tarn__local_create(area, post, rank, NULL, timeout_ms, out_local);
  if (status != TARN_OK) {
    tarn__post_release(post);
    return status;
  }
  status = tarn_comm_create(&tarn__local_ops, *out_local, rank, area.ranks,
                            timeout_ms, out_comm);
  if (status == TARN_OK) return TARN_OK;
  tarn__local_forget(*out_local);
  return status;
}

// While somebody else has a rank's receiving end, its end tells nothing.
static void take_sockets(tarn__comm_post *post, tarn__comm_sockets sockets,
                         size_t rank) {
  post->inbox = sockets.receives[rank];
  for (size_t i = 0; i < post->size; i++) {
    post->sends[i] = sockets.sends[i];
    if (i != rank && sockets.receives[i] >= 0) {
      tarn__os_close(sockets.receives[i]);
    }
    sockets.receives[i] = -1;
  }
}

// --- who is who ------------------------------------------------------------

static tarn_status check_process(size_t rank, const tarn__comm_message *entry) {
  if (entry->fd < 0 && !entry->cut) {
    return tarn__fail(TARN_E_IO,
                      "comm: rank %zu has sent no descriptor of its process",
                      rank);
  }
  if (entry->fd < 0) {
    return tarn__fail(TARN_E_IO,
                      "comm: this process can have no descriptor for the "
                      "process of rank %zu: %s",
                      rank, strerror(EMFILE));
  }
  if (!tarn__os_is_process(entry->fd, entry->pid)) {
    return tarn__fail(TARN_E_IO,
                      "comm: it cannot be told whether what rank %zu has sent "
                      "is its process",
                      rank);
  }
  return TARN_OK;
}

// What is no process would look like one that has ended.
static tarn_status know(tarn__comm_local *local, size_t rank,
                        const tarn__comm_message *entry) {
  tarn_status status = check_process(rank, entry);
  if (status == TARN_OK) {
    tarn__post_know(local->post, rank, entry->fd, entry->pid);
  } else if (entry->fd >= 0) {
    tarn__os_close(entry->fd);
  }
  return status;
}

static tarn_status know_all(tarn__comm_local *local) {
  tarn_status status = TARN_OK;
  for (size_t rank = local->size; rank-- > 0;) {
    tarn__comm_message entry;
    if (rank == local->rank) continue;
    if (!tarn__mailbox_take(local->post, &local->mailbox, rank, &entry))
      continue;
    tarn_status known = know(local, rank, &entry);
    if (known != TARN_OK) status = known;
  }
  return status;
}

static tarn_status introduce(tarn__comm_local *local) {
  int own = tarn__os_this_process();
  int reason = errno;
  for (size_t rank = 0; rank < local->size; rank++) {
    bool other = rank != local->rank;
    local->transfers[rank] =
        (tarn__comm_transfer){.send = other, .await = other};
  }
  tarn_status status = tarn__local_pass(local, own, TARN__ABSENT);
  if (own >= 0) tarn__os_close(own);
  if (status == TARN_OK) status = know_all(local);
  if (status != TARN_OK || own >= 0) return status;
  return tarn__fail(TARN_E_IO, "comm: no descriptor of this process: %s",
                    strerror(reason));
}

// A rank that lacks a descriptor says so to all, by way of the memory.
static tarn_status meet_all(tarn__comm_local *local, tarn_comm *comm) {
  tarn_status status = introduce(local);
  if (status == TARN_E_PEER_LOST || status == TARN_E_TIMEOUT) return status;
  return tarn_comm_agree(comm, status);
}

// Instead of leaving a place that was never had.
static void forget(void *self) {
  tarn__local_forget(self);
}

tarn_status tarn__join(tarn__comm_area area, tarn__comm_sockets sockets,
                       size_t rank, uint64_t timeout_ms, bool *out_taken,
                       tarn_comm **out_comm) {
  tarn__comm_local *local = NULL;
  tarn_comm *comm = NULL;
  *out_taken = false;
  tarn_status status = prepare(area, rank, timeout_ms, &local, &comm);
  if (status != TARN_OK) return status;
  if (!tarn__area_take(&area, rank)) {
    comm->ops.destroy = forget;
    (void)tarn_comm_destroy(comm);
    return tarn__fail(TARN_E_STATE, "comm: the place of rank %zu is taken",
                      rank);
  }
  *out_taken = true;
  take_sockets(local->post, sockets, rank);
  status = meet_all(local, comm);
  if (status != TARN_OK) {
    (void)tarn_comm_destroy(comm);
    return status;
  }
  *out_comm = comm;
  return TARN_OK;
}
