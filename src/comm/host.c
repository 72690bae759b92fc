// The host of ranks that meet at a path: waits until all have come, removes the
// path, and sends each rank its descriptors.
//
// A joiner without a rank has not said hello yet and does not count. An error
// among ranks of one job is sent to all that have come. A rank of another job
// is sent away, and the others wait on.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "base/os_peer.h"
#include "comm/group.h"
#include "comm/rendezvous.h"

enum {
  SILENT = 64,  // joiners that have not introduced themselves yet
  MOST_JOINERS = TARN_COMM_MOST_RANKS + SILENT,
  MOST_NAMED = 8,
};
_Static_assert(1 + MOST_JOINERS <= TARN__OS_MOST_AWAITED,
               "the host waits for all at once");

static const size_t NO_RANK = SIZE_MAX;

typedef struct host {
  const tarn__comm_group *group;
  tarn__comm_listener *listener;
  tarn__comm_wait *wait;
  size_t come;       // ranks, this one too
  size_t strangers;  // of other jobs, that were sent away
  size_t room;       // for joiners
  size_t joiners;
  size_t ranks[MOST_JOINERS];    // of each joiner
  size_t numbers[MOST_JOINERS];  // of the next message to each
  int fds[1 + MOST_JOINERS];     // of the listener, then of each joiner
  bool ready[1 + MOST_JOINERS];  // alike
} host;

// --- answers ---------------------------------------------------------------

// A joiner that has ended, or takes nothing, is found out by other ways.
static void say(int fd, const tarn__comm_answer *out) {
  bool sent = tarn__os_put(fd, out, sizeof *out, -1);
  (void)sent;
}

// With the last error for a text.
static void refuse(int fd, tarn_status status) {
  tarn__comm_answer out = {.kind = TARN__REFUSED, .status = status};
  snprintf(out.text, sizeof out.text, "%s", tarn_last_error());
  say(fd, &out);
}

static void drop(host *it, size_t joiner) {
  size_t last = --it->joiners;
  tarn__os_close(it->fds[1 + joiner]);
  it->fds[1 + joiner] = it->fds[1 + last];
  it->ready[1 + joiner] = it->ready[1 + last];
  it->ranks[joiner] = it->ranks[last];
}

// Joiners that were welcomed get the reason; the others try again.
static tarn_status give_up(host *it, tarn_status status) {
  for (size_t i = 0; i < it->joiners; i++) {
    if (it->ranks[i] != NO_RANK) refuse(it->fds[1 + i], status);
  }
  return status;
}

// --- ranks that join -------------------------------------------------------

static bool has_come(const host *it, size_t rank) {
  if (rank == it->group->rank) return true;
  for (size_t i = 0; i < it->joiners; i++) {
    if (it->ranks[i] == rank) return true;
  }
  return false;
}

static tarn_status check_rank(const host *it, const tarn__comm_hello *hello) {
  const tarn__comm_group *group = it->group;
  if (hello->size != group->size) {
    return tarn__fail(TARN_E_INVALID,
                      "tarn_comm_meet: size is %zu at rank %zu, but %" PRIu32
                      " at rank %" PRIu32,
                      group->size, group->rank, hello->size, hello->rank);
  }
  if (hello->rank >= group->size || has_come(it, hello->rank)) {
    return tarn__fail(TARN_E_INVALID,
                      "tarn_comm_meet: two processes claim to be rank %" PRIu32
                      " of %zu",
                      hello->rank, group->size);
  }
  return TARN_OK;
}

// Errors that concern this joiner only.
static tarn_status check_job(const host *it, const tarn__comm_hello *hello) {
  if (hello->version != TARN__GROUP_VERSION) {
    return tarn__fail(
        TARN_E_INVALID,
        "tarn_comm_meet: ranks at '%s' have another version of the library",
        it->group->path);
  }
  if (strncmp(hello->job, it->group->job, sizeof hello->job) != 0) {
    return tarn__fail(TARN_E_STATE,
                      "tarn_comm_meet: ranks of another job meet at '%s'",
                      it->group->path);
  }
  return TARN_OK;
}

// The first whose time is over ends it for all.
static void welcome(host *it, size_t joiner, const tarn__comm_hello *hello) {
  tarn__comm_wait theirs = tarn__wait_begin(hello->left_ms);
  it->wait->end = tarn__lesser(it->wait->end, theirs.end);
  it->ranks[joiner] = hello->rank;
  it->come++;
  tarn__comm_answer out = {.kind = TARN__WELCOME,
                           .number = (uint32_t)it->group->rank};
  say(it->fds[1 + joiner], &out);
}

static tarn_status admit(host *it, size_t joiner,
                         const tarn__comm_hello *hello) {
  tarn_status status = check_job(it, hello);
  if (status != TARN_OK) {
    refuse(it->fds[1 + joiner], status);
    drop(it, joiner);
    it->strangers++;
    return TARN_OK;
  }
  status = check_rank(it, hello);
  if (status == TARN_OK) welcome(it, joiner, hello);
  if (status != TARN_OK) refuse(it->fds[1 + joiner], status);
  return status;
}

static tarn_status lose(host *it, size_t joiner) {
  size_t rank = it->ranks[joiner];
  drop(it, joiner);
  if (rank == NO_RANK) return TARN_OK;
  return tarn__fail(
      TARN_E_PEER_LOST,
      "tarn_comm_meet: rank %zu ended or gave up before all ranks had joined",
      rank);
}

// A joiner of ours sends one message; one that sends two is refused.
static tarn_status hear(host *it, size_t joiner) {
  tarn__comm_hello hello;
  tarn__os_message message;
  errno = 0;
  if (!tarn__os_take(it->fds[1 + joiner], &hello, sizeof hello, &message)) {
    return errno == EAGAIN ? TARN_OK : lose(it, joiner);
  }
  if (message.fd >= 0) tarn__os_close(message.fd);
  if (message.size != sizeof hello || it->ranks[joiner] != NO_RANK) {
    return lose(it, joiner);
  }
  return admit(it, joiner, &hello);
}

// From the last on, whose place may be taken by none that is yet to be heard.
static tarn_status hear_all(host *it) {
  for (size_t i = it->joiners; i-- > 0;) {
    if (it->ready[1 + i]) TARN__TRY(hear(it, i));
  }
  return TARN_OK;
}

// If there are too many connections, drops one that has not said hello; that
// process tries again.
static void make_room(host *it) {
  for (size_t i = 0; i < it->joiners && it->joiners == it->room; i++) {
    if (it->ranks[i] == NO_RANK) drop(it, i);
  }
}

static tarn_status let_in(host *it) {
  for (;;) {
    make_room(it);
    int fd = tarn__os_accept(it->listener->listener);
    if (fd < 0 && errno == EAGAIN) return TARN_OK;
    if (fd < 0) {
      return tarn__fail(
          TARN_E_IO, "tarn_comm_meet: rank %zu cannot accept a connection: %s",
          it->group->rank, strerror(errno));
    }
    if (!tarn__os_is_of_user(fd)) {
      tarn__os_close(fd);
      continue;
    }
    it->ranks[it->joiners] = NO_RANK;
    it->ready[1 + it->joiners] = false;
    it->fds[1 + it->joiners++] = fd;
  }
}

// --- ranks that are missing ------------------------------------------------

static void list_missing(const host *it, char *out, size_t room) {
  size_t named = 0;
  size_t at = 0;
  for (size_t rank = 0; rank < it->group->size; rank++) {
    if (has_come(it, rank)) continue;
    if (named++ == MOST_NAMED) break;
    at += (size_t)snprintf(out + at, room - at, "%s%zu", at == 0 ? "" : ", ",
                           rank);
  }
  if (named > MOST_NAMED) snprintf(out + at, room - at, ", ...");
}

static tarn_status tell_missing(const host *it) {
  char missing[MOST_NAMED * 8 + 8];
  char others[64] = "";
  bool one = it->group->size - it->come == 1;
  list_missing(it, missing, sizeof missing);
  if (it->strangers != 0) {
    snprintf(others, sizeof others, "; %zu of another job were sent away",
             it->strangers);
  }
  return tarn__fail(
      TARN_E_TIMEOUT,
      "tarn_comm_meet: rank%s %s of %zu %s not come to '%s' in time%s",
      one ? "" : "s", missing, it->group->size, one ? "has" : "have",
      it->group->path, others);
}

static tarn_status gather(host *it) {
  while (it->come < it->group->size) {
    uint64_t left = tarn__wait_left(it->wait);
    tarn__os_await_any(it->fds, 1 + it->joiners,
                       tarn__lesser(left, it->wait->slice), it->ready);
    TARN__TRY(hear_all(it));
    TARN__TRY(let_in(it));
    if (left == 0 && it->come < it->group->size) return tell_missing(it);
  }
  return TARN_OK;
}

// --- what they get ---------------------------------------------------------

// Sends the messages before |end| that joiner |i| accepts now; false if it
// accepts no more. A joiner that has ended counts as served.
static bool send_some(host *it, tarn_rendezvous *rendezvous, size_t i,
                      size_t end) {
  size_t *number = &it->numbers[i];
  while (*number < end) {
    const int *passed =
        tarn__rendezvous_descriptor(rendezvous, it->ranks[i], *number);
    tarn__comm_answer out = {.kind = passed != NULL ? TARN__PASSED : TARN__GO,
                             .number = (uint32_t)*number};
    bool sent =
        tarn__os_put(it->fds[1 + i], &out, offsetof(tarn__comm_answer, text),
                     passed != NULL ? *passed : -1);
    if (!sent && tarn__mailbox_is_full(errno)) return false;
    *number = sent ? *number + 1 : SIZE_MAX;
  }
  return true;
}

static bool send_some_to_all(host *it, tarn_rendezvous *rendezvous,
                             size_t end) {
  bool all = true;
  for (size_t i = 0; i < it->joiners; i++) {
    if (it->ranks[i] != NO_RANK && !send_some(it, rendezvous, i, end))
      all = false;
  }
  return all;
}

// A joiner that accepts nothing until the deadline is then missed by all.
static void send_to_all(host *it, tarn_rendezvous *rendezvous, size_t end,
                        tarn__comm_wait *wait) {
  static const uint64_t full_ns = 200000;
  while (!send_some_to_all(it, rendezvous, end) && tarn__wait_left(wait) != 0)
    tarn__os_await_any(NULL, 0, full_ns, NULL);
}

// While this process has a joiner's receiving end, that one's end tells
// nothing.
static void hand_out(host *it, tarn_rendezvous *rendezvous) {
  size_t things = TARN__THINGS(rendezvous->size);
  tarn__comm_wait wait = tarn__wait_begin(it->group->timeout_ms);
  send_to_all(it, rendezvous, things, &wait);
  for (size_t rank = 0; rank < rendezvous->size; rank++) {
    if (rank != it->group->rank)
      tarn__os_close_all(&rendezvous->receives[rank], 1);
  }
  send_to_all(it, rendezvous, things + 1, &wait);
}

// --- the rendezvous --------------------------------------------------------

static tarn_status meet(host *it, tarn_rendezvous *rendezvous,
                        tarn_comm **out_comm) {
  tarn_status status = gather(it);
  tarn__listener_remove(it->listener);
  if (status != TARN_OK) return give_up(it, status);
  hand_out(it, rendezvous);
  return tarn__join(rendezvous, it->group->rank, it->group->timeout_ms,
                    out_comm);
}

tarn_status tarn__host(const tarn__comm_group *group,
                       tarn__comm_listener *listener, tarn__comm_wait *wait,
                       tarn_comm **out_comm) {
  tarn_rendezvous *rendezvous = NULL;
  host it = {.group = group,
             .listener = listener,
             .wait = wait,
             .come = 1,
             .room = group->size + SILENT,
             .fds = {listener->listener}};
  TARN__TRY(tarn_rendezvous_create(group->size, &rendezvous));
  tarn_status status = meet(&it, rendezvous, out_comm);
  tarn_rendezvous_destroy(rendezvous);
  tarn__os_close_all(it.fds + 1, it.joiners);
  return status;
}
