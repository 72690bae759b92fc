// A joiner of ranks that meet at a path: says hello, and waits for the
// descriptors that a child would have inherited.
//
// If the host ends before its welcome, it has not noticed the joiner, which
// tries again. After the welcome, the end of the host is an error.
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/os.h"
#include "base/os_peer.h"
#include "comm/group.h"
#include "comm/rendezvous.h"

// The host knows the missing ranks and has the same deadline: it answers first.
static const uint64_t GRACE_NS = 250000000;

static const size_t NO_RANK = SIZE_MAX;

typedef struct joiner {
  const tarn__comm_group *group;
  tarn__comm_wait *wait;
  int fd;
  size_t host;  // its rank; NO_RANK: it has not said welcome
  tarn_rendezvous rendezvous;
  size_t things;  // descriptors that have come for it
  bool goes;      // all have theirs
  bool again;     // to begin anew
} joiner;

// --- what comes ------------------------------------------------------------

static tarn_status lose(joiner *it) {
  it->again = it->host == NO_RANK;
  return tarn__fail(TARN_E_PEER_LOST,
                    "tarn_comm_meet: rank %zu, the host, ended or gave up "
                    "before all ranks had joined",
                    it->host);
}

static tarn_status refused(const tarn__comm_answer *answer) {
  char text[TARN__ERROR_TEXT];
  memcpy(text, answer->text, sizeof text);
  text[sizeof text - 1] = '\0';
  tarn_status status = (tarn_status)answer->status;
  return tarn__fail_text(status < 0 ? status : TARN_E_INVALID, text);
}

static tarn_status keep(joiner *it, const tarn__comm_answer *answer, int fd) {
  int *place = tarn__rendezvous_descriptor(&it->rendezvous, it->group->rank,
                                           answer->number);
  if (fd < 0) {
    return tarn__fail(
        TARN_E_IO, "tarn_comm_meet: rank %zu cannot receive a descriptor: %s",
        it->group->rank, strerror(EMFILE));
  }
  if (answer->kind != TARN__PASSED || place == NULL || *place >= 0 ||
      (place != &it->rendezvous.fd && !tarn__os_is_mailbox(fd))) {
    tarn__os_close(fd);
    return tarn__fail(
        TARN_E_CORRUPT,
        "tarn_comm_meet: rank %zu, the host, has sent an invalid message",
        it->host);
  }
  // They may take as long as all did to come.
  if (it->things++ == 0) *it->wait = tarn__wait_begin(it->group->timeout_ms);
  *place = fd;
  return TARN_OK;
}

static tarn_status read_answer(joiner *it, const tarn__comm_answer *answer,
                               const tarn__os_message *message) {
  bool whole = message->size == sizeof *answer && message->fd < 0;
  if (whole && answer->kind == TARN__REFUSED) return refused(answer);
  if (whole && answer->kind == TARN__WELCOME) {
    it->host = answer->number;
    return TARN_OK;
  }
  it->goes = answer->kind == TARN__GO && message->fd < 0 &&
             it->things == TARN__THINGS(it->group->size);
  return it->goes ? TARN_OK : keep(it, answer, message->fd);
}

static tarn_status tell_late(const joiner *it) {
  if (it->host == NO_RANK) {
    return tarn__fail(TARN_E_TIMEOUT,
                      "tarn_comm_meet: the process that listens at '%s' did "
                      "not answer rank %zu within %" PRIu64 " ms",
                      it->group->path, it->group->rank, it->group->timeout_ms);
  }
  return tarn__fail(
      TARN_E_TIMEOUT,
      "tarn_comm_meet: rank %zu, the host, did not answer within %" PRIu64
      " ms",
      it->host, it->group->timeout_ms);
}

// If the other end closed without reading everything, the kernel reports this
// once before it delivers that end's messages.
static bool take(joiner *it, tarn__comm_answer *out,
                 tarn__os_message *out_message) {
  memset(out, 0, sizeof *out);
  errno = 0;
  if (tarn__os_take(it->fd, out, sizeof *out, out_message)) return true;
  if (errno != ECONNRESET) return false;
  errno = 0;
  return tarn__os_take(it->fd, out, sizeof *out, out_message);
}

static tarn_status receive(joiner *it) {
  while (!it->goes) {
    tarn__comm_answer answer;
    tarn__os_message message;
    uint64_t left = tarn__wait_left(it->wait);
    bool over = left == 0 && tarn__os_now_ns() - it->wait->end >= GRACE_NS;
    if (take(it, &answer, &message)) {
      TARN__TRY(read_answer(it, &answer, &message));
    } else if (errno != EAGAIN) {
      return lose(it);
    } else if (over) {
      return tell_late(it);
    } else {
      tarn__os_await(it->fd, it->wait->slice);
    }
  }
  return TARN_OK;
}

// --- the rendezvous
// -----------------------------------------------------------

static tarn_status say_hello(joiner *it) {
  static const uint64_t ms = 1000000;
  tarn__comm_hello out = {.version = TARN__GROUP_VERSION,
                          .rank = (uint32_t)it->group->rank,
                          .size = (uint32_t)it->group->size,
                          .left_ms = tarn__wait_left(it->wait) / ms};
  memcpy(out.job, it->group->job, strlen(it->group->job));
  return tarn__os_put(it->fd, &out, sizeof out, -1) ? TARN_OK : lose(it);
}

static tarn_status go_through(joiner *it, tarn_comm **out_comm) {
  const tarn__comm_group *group = it->group;
  TARN__TRY(say_hello(it));
  TARN__TRY(receive(it));
  tarn__os_close_all(&it->fd, 1);
  TARN__TRY(
      tarn__area_map(it->rendezvous.fd, group->size, &it->rendezvous.area));
  return tarn__join(&it->rendezvous, group->rank, group->timeout_ms, out_comm);
}

tarn_status tarn__joiner(const tarn__comm_group *group,
                         tarn__comm_listener *listener, int fd,
                         tarn__comm_wait *wait, bool *out_again,
                         tarn_comm **out_comm) {
  joiner it = {.group = group, .wait = wait, .fd = fd, .host = NO_RANK};
  tarn__rendezvous_init(&it.rendezvous, group->size);
  tarn_status status = go_through(&it, out_comm);
  // The host was lost, not a rank that joins.
  if (status == TARN_E_PEER_LOST && it.fd >= 0 && !it.again) {
    tarn__listener_sweep(listener);
  }
  *out_again = it.again;
  tarn__os_close_all(&it.fd, 1);
  tarn__rendezvous_deinit(&it.rendezvous);
  return status;
}
