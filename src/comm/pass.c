// Passing descriptors: messages out, messages in, both at once, so that no two
// ranks wait for each other with their inboxes full.
#include <errno.h>

#include "base/os.h"
#include "base/os_peer.h"
#include "base/status.h"
#include "comm/local.h"

// Until a full inbox is tried again; twice that the next time, up to a slice.
static const uint64_t FULL_NS = 200000;

static uint64_t lesser(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

// Whether all that was to be sent is. An inbox may be full and the next one
// not; but where the user has too many descriptors under way, there is no room
// in any, and 256 ranks that tried all would let none of them run to take some
// out.
static bool send_some(tarn__comm_local *local, int fd) {
  bool all = true;
  for (size_t rank = 0; rank < local->size; rank++) {
    tarn__comm_transfer *transfer = &local->transfers[rank];
    if (!transfer->send) continue;
    transfer->send = !tarn__post_send(local->post, local->places[rank],
                                      local->area.head->token, local->rank, fd);
    if (transfer->send && errno == ETOOMANYREFS) return false;
    if (transfer->send) all = false;
  }
  return all;
}

// The first rank that is awaited, with the signs of all that are; |size| if
// none is.
static size_t collect(tarn__comm_local *local) {
  size_t first = local->size;
  tarn__post_collect(local->post);
  for (size_t rank = local->size; rank-- > 0;) {
    tarn__comm_transfer *transfer = &local->transfers[rank];
    if (transfer->await) {
      transfer->await = !tarn__mailbox_has(local->post, &local->mailbox, rank);
    }
    if (transfer->await) first = rank;
    local->signs[rank] =
        transfer->await ? tarn__post_sign_of(local->post, local->places[rank])
                        : -1;
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

static tarn_status pass(tarn__comm_local *local, int fd,
                        tarn__comm_breakage gone) {
  tarn__comm_wait wait = tarn__wait_begin(local->timeout_ms);
  uint64_t full_ns = FULL_NS;
  for (;;) {
    uint64_t left = tarn__wait_left(&wait);  // before it is seen who has come
    bool sent = send_some(local, fd);
    size_t missing = collect(local);
    if (sent && missing == local->size) return TARN_OK;
    if (!tarn__area_is_broken(&local->area)) tarn__local_look(local, gone);
    if (left == 0) {
      tarn__local_give_up(local, sent ? missing : find_full(local));
    }
    if (tarn__area_is_broken(&local->area)) return tarn__local_state(local);
    uint64_t most = lesser(left, wait.slice);
    tarn__os_await(local->post->inbox, sent ? most : lesser(most, full_ns));
    full_ns = lesser(2 * full_ns, wait.slice);
  }
}

tarn_status tarn__local_pass(tarn__comm_local *local, int fd,
                             tarn__comm_breakage gone) {
  tarn_status status = pass(local, fd, gone);
  for (size_t rank = 0; rank < local->size; rank++) {
    local->transfers[rank] = (tarn__comm_transfer){0};
  }
  return status;
}
