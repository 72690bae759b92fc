// A rendezvous: a mailbox for each rank, and the memory that the ranks will
// share. It is made before the processes are, so that they inherit it.
//
// Nothing has a name. A process that holds the receiving end of a mailbox can
// read it: so a process that joins closes those of the other ranks, and a
// program gets only its own. The end of a rank's process then closes its
// mailbox, which tells the others.
//
// To join, a rank marks its place as taken, sends a descriptor of its process
// to all others, and waits for theirs. Until one has come, the end of that
// rank's mailbox says that it will not.
#include "comm/rendezvous.h"

#include <errno.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/os_peer.h"
#include "base/status.h"
#include "comm/comm.h"
#include "comm/local.h"

// --- beginning and end -----------------------------------------------------

void tarn__rendezvous_init(tarn_rendezvous *rendezvous, size_t size) {
  *rendezvous = (tarn_rendezvous){.size = size, .fd = -1};
  for (size_t rank = 0; rank < size; rank++)
    rendezvous->receives[rank] = rendezvous->sends[rank] = -1;
}

void tarn__rendezvous_deinit(tarn_rendezvous *rendezvous) {
  tarn__os_close_all(rendezvous->receives, rendezvous->size);
  tarn__os_close_all(rendezvous->sends, rendezvous->size);
  tarn__os_close_all(&rendezvous->fd, 1);
  tarn__area_unmap(&rendezvous->area);
}

int *tarn__rendezvous_descriptor(tarn_rendezvous *rendezvous, size_t rank,
                                 size_t number) {
  if (number == 0) return &rendezvous->fd;
  if (number == 1) return &rendezvous->receives[rank];
  return number - 2 < rendezvous->size ? &rendezvous->sends[number - 2] : NULL;
}

static tarn_status make_mailboxes(tarn_rendezvous *rendezvous) {
  for (size_t rank = 0; rank < rendezvous->size; rank++) {
    tarn__comm_member *member = &rendezvous->area.members[rank];
    if (!tarn__os_mailbox(&rendezvous->receives[rank],
                          &rendezvous->sends[rank])) {
      return tarn__fail(TARN_E_IO,
                        "tarn_rendezvous_create: no sockets for rank %zu: %s",
                        rank, strerror(errno));
    }
    member->receive = rendezvous->receives[rank];
    member->send = rendezvous->sends[rank];
  }
  return TARN_OK;
}

tarn_status tarn_rendezvous_create(size_t size,
                                   tarn_rendezvous **out_rendezvous) {
  if (out_rendezvous == NULL) {
    return tarn__fail(TARN_E_INVALID, "tarn_rendezvous_create: NULL");
  }
  *out_rendezvous = NULL;
  if (size == 0 || size > TARN_COMM_MOST_RANKS) {
    return tarn__fail(TARN_E_INVALID,
                      "tarn_rendezvous_create: size is %zu, not 1 to %d", size,
                      TARN_COMM_MOST_RANKS);
  }
  tarn_rendezvous *rendezvous = tarn__host_alloc(sizeof *rendezvous);
  if (rendezvous == NULL) return TARN_E_NOMEM;
  tarn__rendezvous_init(rendezvous, size);
  tarn_status status =
      tarn__area_create(size, &rendezvous->fd, &rendezvous->area);
  if (status == TARN_OK) status = make_mailboxes(rendezvous);
  if (status != TARN_OK) {
    tarn_rendezvous_destroy(rendezvous);
    return status;
  }
  *out_rendezvous = rendezvous;
  return TARN_OK;
}

void tarn_rendezvous_destroy(tarn_rendezvous *rendezvous) {
  if (rendezvous == NULL) return;
  tarn__rendezvous_deinit(rendezvous);
  tarn__host_free(rendezvous, sizeof *rendezvous);
}

// --- joining ---------------------------------------------------------------

// Allocates everything first, so that no rank waits for one that lacks memory.
static tarn_status prepare(const tarn__comm_area *area, size_t rank,
                           uint64_t timeout_ms, tarn__comm_local **out_local,
                           tarn_comm **out_comm) {
  TARN__TRY(tarn__local_create(*area, rank, timeout_ms, NULL, NULL, out_local));
  tarn_status status = tarn_comm_create(&tarn__local_ops, *out_local, rank,
                                        area->ranks, timeout_ms, out_comm);
  if (status != TARN_OK) tarn__local_forget(*out_local);
  return status;
}

// All else is closed: while another process holds a rank's receiving end, the
// end of that rank goes unnoticed.
static void hand_over(tarn_rendezvous *rendezvous, size_t rank,
                      tarn__comm_sockets *sockets) {
  sockets->mailbox = rendezvous->receives[rank];
  rendezvous->receives[rank] = -1;
  for (size_t i = 0; i < sockets->size; i++) {
    sockets->sends[i] = rendezvous->sends[i];
    rendezvous->sends[i] = -1;
  }
  rendezvous->area = (tarn__comm_area){0};
  tarn__rendezvous_deinit(rendezvous);
}

// --- the process behind a rank ---------------------------------------------

static tarn_status check_process(size_t rank, const tarn__comm_message *entry) {
  if (entry->fd < 0 && !entry->cut) {
    return tarn__fail(TARN_E_IO,
                      "comm: rank %zu has sent no descriptor of its process",
                      rank);
  }
  if (entry->fd < 0) {
    return tarn__fail(
        TARN_E_IO,
        "comm: cannot receive the process descriptor of rank %zu: %s", rank,
        strerror(EMFILE));
  }
  if (!tarn__os_is_process(entry->fd, entry->pid)) {
    return tarn__fail(
        TARN_E_IO,
        "comm: the process descriptor of rank %zu cannot be verified", rank);
  }
  return TARN_OK;
}

// A descriptor of anything else would look like a process that has ended.
static tarn_status know(tarn__comm_local *local, size_t rank,
                        const tarn__comm_message *entry) {
  tarn_status status = check_process(rank, entry);
  if (status == TARN_OK) {
    local->sockets->processes[rank] = entry->fd;
    local->sockets->pids[rank] = entry->pid;
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
    if (!tarn__mailbox_take(local, rank, &entry)) continue;
    tarn_status known = know(local, rank, &entry);
    if (known != TARN_OK) status = known;
  }
  return status;
}

static tarn_status introduce(tarn__comm_local *local) {
  int own = tarn__os_this_process();
  int reason = errno;
  tarn_status status = tarn__local_pass_all(local, own, TARN__ABSENT);
  if (own >= 0) tarn__os_close(own);
  if (status == TARN_OK) status = know_all(local);
  if (status != TARN_OK || own >= 0) return status;
  return tarn__fail(TARN_E_IO,
                    "comm: cannot open a descriptor of this process: %s",
                    strerror(reason));
}

// A rank that lacks a descriptor says so to all, by way of the memory.
static tarn_status meet_all(tarn__comm_local *local, tarn_comm *comm) {
  tarn_status status = introduce(local);
  if (status == TARN_E_PEER_LOST || status == TARN_E_TIMEOUT) return status;
  return tarn_comm_agree(comm, status);
}

tarn_status tarn__join(tarn_rendezvous *rendezvous, size_t rank,
                       uint64_t timeout_ms, tarn_comm **out_comm) {
  tarn__comm_local *local = NULL;
  tarn_comm *comm = NULL;
  TARN__TRY(prepare(&rendezvous->area, rank, timeout_ms, &local, &comm));
  if (!tarn__area_take(&rendezvous->area, rank)) {
    comm->ops.destroy = tarn__local_forget;  // it has no place to leave
    (void)tarn_comm_destroy(comm);
    return tarn__fail(TARN_E_STATE, "comm: the place of rank %zu is taken",
                      rank);
  }
  hand_over(rendezvous, rank, local->sockets);
  tarn_status status = meet_all(local, comm);
  if (status == TARN_OK) {
    *out_comm = comm;
  } else {
    (void)tarn_comm_destroy(comm);
  }
  return status;
}

tarn_status tarn__join_alone(uint64_t timeout_ms, tarn_comm **out_comm) {
  tarn_rendezvous *rendezvous = NULL;
  TARN__TRY(tarn_rendezvous_create(1, &rendezvous));
  tarn_status status = tarn__join(rendezvous, 0, timeout_ms, out_comm);
  tarn_rendezvous_destroy(rendezvous);
  return status;
}

// --- places ----------------------------------------------------------------

tarn_status tarn__rendezvous_check(const char *what,
                                   const tarn_rendezvous *rendezvous,
                                   size_t rank) {
  if (rendezvous == NULL) return tarn__fail(TARN_E_INVALID, "%s: NULL", what);
  if (rank >= rendezvous->size) {
    return tarn__fail(TARN_E_INVALID, "%s: rank %zu of %zu", what, rank,
                      rendezvous->size);
  }
  if (rendezvous->area.head == NULL) {
    return tarn__fail(TARN_E_STATE, "%s: this process has joined already",
                      what);
  }
  return TARN_OK;
}

tarn_status tarn_comm_join(tarn_rendezvous *rendezvous, size_t rank,
                           const tarn_comm_options *options,
                           tarn_comm **out_comm) {
  tarn_comm_options known;
  if (out_comm == NULL) return tarn__fail(TARN_E_INVALID, "comm: NULL");
  *out_comm = NULL;
  TARN__TRY(tarn__rendezvous_check("tarn_comm_join", rendezvous, rank));
  TARN__TRY(tarn__comm_options(options, 0, &known));
  return tarn__join(rendezvous, rank, known.timeout_ms, out_comm);
}
