// A joiner of ranks that meet at a path: says hello, and waits for the
// descriptors that a child would have inherited.
//
// If the host ends before its welcome, it has not noticed the joiner, which
// tries again. After the welcome, the end of the host is an error.
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/hostmem.h"
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
  size_t host;    // its rank; NO_RANK: it has not said welcome
  int memory;     // the area; -1: not yet
  int *sends;     // ends of inboxes, likewise
  int *receives;  // in one array with them
  size_t things;  // that have come
  bool goes;      // all have theirs
  bool again;     // to begin anew
} joiner;

static tarn_status init(joiner *it, const tarn__comm_group *group, int fd,
                        tarn__comm_wait *wait) {
  *it = (joiner){
      .group = group, .wait = wait, .fd = fd, .host = NO_RANK, .memory = -1};
  it->sends = tarn__os_no_descriptors(2 * group->size);
  if (it->sends == NULL) return TARN_E_NOMEM;
  it->receives = it->sends + group->size;
  return TARN_OK;
}

static void deinit(joiner *it) {
  tarn__os_close_all(&it->fd, 1);
  tarn__os_close_all(&it->memory, 1);
  if (it->sends != NULL) tarn__os_close_all(it->sends, 2 * it->group->size);
  tarn__host_free_array(it->sends, 2 * it->group->size, sizeof *it->sends);
}

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

// Where a thing of this kind goes; NULL if there is none.
static int *place_of(joiner *it, const tarn__comm_answer *answer) {
  switch ((tarn__comm_answer_kind)answer->kind) {
    case TARN__MEMORY:
      return &it->memory;
    case TARN__INBOX:
      return &it->receives[it->group->rank];
    case TARN__WAY:
      return answer->rank < it->group->size ? &it->sends[answer->rank] : NULL;
    case TARN__WELCOME:
    case TARN__REFUSED:
    case TARN__GO:
      break;
  }
  return NULL;
}

static tarn_status keep(joiner *it, const tarn__comm_answer *answer, int fd) {
  int *place = place_of(it, answer);
  if (fd < 0) {
    return tarn__fail(
        TARN_E_IO, "tarn_comm_meet: rank %zu cannot receive a descriptor: %s",
        it->group->rank, strerror(EMFILE));
  }
  if (place == NULL || *place >= 0 ||
      (answer->kind != TARN__MEMORY && !tarn__os_is_inbox(fd))) {
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

static bool has_all(const joiner *it) {
  return it->things == it->group->size + 2;
}

static tarn_status read_answer(joiner *it, const tarn__comm_answer *answer,
                               const tarn__os_message *message) {
  bool whole = message->size == sizeof *answer && message->fd < 0;
  if (whole && answer->kind == TARN__REFUSED) return refused(answer);
  if (whole && answer->kind == TARN__WELCOME) {
    it->host = answer->rank;
    return TARN_OK;
  }
  it->goes = answer->kind == TARN__GO && message->fd < 0 && has_all(it);
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
      tarn_status status = read_answer(it, &answer, &message);
      if (status != TARN_OK) return status;
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

// The descriptors then belong to the communicator.
static tarn_status join(joiner *it, tarn_comm **out_comm) {
  tarn__comm_area area;
  bool taken = false;
  size_t size = it->group->size;
  tarn_status status = tarn__area_map(it->memory, size, &area);
  if (status != TARN_OK) return status;
  tarn__comm_ends ends = {it->sends, it->receives};
  status = tarn__join(area, ends, it->group->rank, it->group->timeout_ms,
                      &taken, out_comm);
  if (!taken) tarn__area_unmap(&area);
  for (size_t i = 0; taken && i < size; i++)
    it->sends[i] = -1;
  return status;
}

tarn_status tarn__joiner(const tarn__comm_group *group,
                         tarn__comm_listener *listener, int fd,
                         tarn__comm_wait *wait, bool *out_again,
                         tarn_comm **out_comm) {
  joiner it;
  tarn_status status = init(&it, group, fd, wait);
  if (status == TARN_OK) status = say_hello(&it);
  if (status == TARN_OK) status = receive(&it);
  if (status == TARN_E_PEER_LOST && !it.again) tarn__listener_sweep(listener);
  if (status == TARN_OK) {
    tarn__os_close_all(&it.fd, 1);
    status = join(&it, out_comm);
  }
  *out_again = it.again;
  deinit(&it);
  return status;
}
