// Passing descriptors: to the ranks of a communicator, and to those of a new
// one.
//
// A rank sends its messages and receives those of the others in one loop.
// Otherwise two ranks with full mailboxes could wait for each other.
#include <errno.h>
#include <string.h>

#include "base/os.h"
#include "base/os_peer.h"
#include "base/status.h"
#include "comm/comm.h"
#include "comm/local.h"

// --- messages out and in ---------------------------------------------------

// Until a full mailbox is tried again; twice that the next time, up to a slice.
static const uint64_t FULL_NS = 200000;

// Whether all that was to be sent is. A mailbox may be full and the next one
// not; but where the user has too many descriptors under way, there is no room
// in any, and 256 ranks that tried all would let none of them run to take some
// out.
static bool send_some(tarn__comm_local *local, int fd) {
  bool all = true;
  for (size_t rank = 0; rank < local->size; rank++) {
    tarn__comm_transfer *transfer = &local->transfers[rank];
    if (!transfer->send) continue;
    transfer->send = !tarn__mailbox_send(local, rank, fd);
    if (transfer->send && errno == ETOOMANYREFS) return false;
    if (transfer->send) all = false;
  }
  return all;
}

// The first rank that is awaited, with the signs of all that are; |size| if
// none is.
static size_t collect(tarn__comm_local *local) {
  size_t first = local->size;
  tarn__sockets_receive(local->sockets);
  for (size_t rank = local->size; rank-- > 0;) {
    tarn__comm_transfer *transfer = &local->transfers[rank];
    if (transfer->await) transfer->await = !tarn__mailbox_has(local, rank);
    if (transfer->await) first = rank;
    tarn__local_watch(local, rank, transfer->await);
  }
  return first;
}

// The first rank that takes no more messages.
static size_t find_full(const tarn__comm_local *local) {
  size_t rank = 0;
  while (rank < local->size && !local->transfers[rank].send)
    rank++;
  return rank;
}

static tarn_status pass_on(tarn__comm_local *local, int fd,
                           tarn__comm_breakage gone) {
  tarn__comm_wait wait = tarn__wait_begin(local->timeout_ms);
  uint64_t full_ns = FULL_NS;
  for (;;) {
    uint64_t left = tarn__wait_left(&wait);  // before the arrivals are read
    bool sent = send_some(local, fd);
    size_t missing = collect(local);
    if (sent && missing == local->size) return TARN_OK;
    if (!tarn__area_is_broken(&local->area)) tarn__local_look(local, gone);
    if (left == 0) {
      tarn__local_give_up(local, sent ? missing : find_full(local));
    }
    if (tarn__area_is_broken(&local->area)) return tarn__local_state(local);
    uint64_t most = tarn__lesser(left, wait.slice);
    tarn__os_await(local->sockets->mailbox,
                   sent ? most : tarn__lesser(most, full_ns));
    full_ns = tarn__lesser(2 * full_ns, wait.slice);
  }
}

// Sends |fd|, or -1, to the ranks of |transfers|, and waits for their messages.
static tarn_status pass(tarn__comm_local *local, int fd,
                        tarn__comm_breakage gone) {
  tarn_status status = pass_on(local, fd, gone);
  memset(local->transfers, 0, sizeof local->transfers);
  return status;
}

tarn_status tarn__local_pass_all(tarn__comm_local *local, int fd,
                                 tarn__comm_breakage gone) {
  for (size_t rank = 0; rank < local->size; rank++) {
    bool other = rank != local->rank;
    local->transfers[rank] =
        (tarn__comm_transfer){.send = other, .await = other};
  }
  return pass(local, fd, gone);
}

// --- one descriptor to all -------------------------------------------------

static tarn_status no_room_for(size_t rank) {
  return tarn__fail(TARN_E_IO,
                    "comm: cannot receive the descriptor of rank %zu: %s", rank,
                    strerror(EMFILE));
}

// Stores the received descriptors in |out_fds|; false if one was sent and lost.
static bool take_all(tarn__comm_local *local, int *out_fds,
                     size_t *out_missing) {
  bool all = true;
  for (size_t rank = local->size; rank-- > 0;) {
    tarn__comm_message entry;
    out_fds[rank] = -1;
    if (!tarn__mailbox_take(local, rank, &entry)) continue;
    out_fds[rank] = entry.fd;
    if (entry.cut) all = false;
    if (entry.cut) *out_missing = rank;
  }
  return all;
}

tarn_status tarn__local_share(void *self, int fd, int *out_fds) {
  tarn__comm_local *local = self;
  size_t missing = 0;
  tarn_status status = tarn__local_pass_all(local, fd, TARN__ENDED);
  bool all = take_all(local, out_fds, &missing);
  if (status == TARN_OK && !all) status = no_room_for(missing);
  if (status != TARN_OK) tarn__os_close_all(out_fds, local->size);
  return status;
}

// --- a new communicator ----------------------------------------------------

// The first of the group makes the memory, and tells the others, also that it
// has none.
static tarn_status lead(tarn__comm_local *local, const size_t *ranks,
                        size_t size, tarn__comm_area *out_area) {
  int fd = -1;
  tarn_status status = tarn__area_create(size, &fd, out_area);
  for (size_t i = 1; i < size; i++)
    local->transfers[ranks[i]].send = true;
  tarn_status passed = pass(local, fd, TARN__ENDED);
  if (fd >= 0) tarn__os_close(fd);
  if (status == TARN_OK && passed != TARN_OK) tarn__area_unmap(out_area);
  return passed != TARN_OK ? passed : status;
}

static tarn_status follow(tarn__comm_local *local, size_t leader, size_t size,
                          tarn__comm_area *out_area) {
  tarn__comm_message entry;
  local->transfers[leader].await = true;
  TARN__TRY(pass(local, -1, TARN__ENDED));
  if (!tarn__mailbox_take(local, leader, &entry) || entry.cut) {
    return no_room_for(leader);
  }
  // The leader has failed, and reports it when all ranks agree.
  if (entry.fd < 0) {
    return tarn__fail(
        TARN_E_IO, "comm: rank %zu could not create the shared memory", leader);
  }
  tarn_status status = tarn__area_map(entry.fd, size, out_area);
  tarn__os_close(entry.fd);
  return status;
}

tarn_status tarn__local_split(void *self, const size_t *ranks, size_t size,
                              void **out_self) {
  tarn__comm_local *local = self;
  tarn__comm_local *group = NULL;
  tarn__comm_area area = {0};
  *out_self = NULL;
  TARN__TRY(local->rank == ranks[0] ? lead(local, ranks, size, &area)
                                    : follow(local, ranks[0], size, &area));
  tarn_status status =
      tarn__local_create(area, tarn__comm_index_of(ranks, local->rank),
                         local->timeout_ms, local, ranks, &group);
  if (status != TARN_OK) tarn__area_unmap(&area);
  *out_self = group;
  return status;
}
