// Messages of rooms above, and waits of ranks that look themselves for what
// others do.
#include "base/os.h"
#include "comm/comm.h"
#include "comm/local.h"
#include "comm/messages.h"

// --- messages --------------------------------------------------------------

bool tarn__comm_has_messages(const tarn_comm *comm) {
  return comm->messages != NULL;
}

tarn_status tarn__comm_post(tarn_comm *comm, tarn_comm_way way, size_t rank,
                            tarn__comm_topic topic, void *data, size_t size,
                            void **out_message) {
  return tarn__comm_note(
      comm, tarn__messages_post(comm->messages, way, rank, topic, data, size,
                                out_message));
}

tarn_status tarn__comm_test(tarn_comm *comm, void **messages, size_t count) {
  return tarn__comm_note(comm,
                         tarn__messages_test(comm->messages, messages, count));
}

void tarn__comm_meanwhile(tarn_comm *comm, void work(void *context),
                          void *context) {
  comm->messages->meanwhile = work;
  comm->messages->meanwhile_of = context;
}

bool tarn__comm_drop(tarn_comm *comm, bool receives, void **message) {
  return tarn__messages_drop(comm->messages, receives, message);
}

tarn_status tarn__comm_give_up(tarn_comm *comm, tarn_status status) {
  status = tarn__comm_note(
      comm, tarn__messages_give_up(comm->messages, status, true));
  tarn__failure_note(&comm->broken, status);
  return status;
}

// --- waits -----------------------------------------------------------------

enum { YIELDS = 200 };

tarn_status tarn__comm_progress_begin(tarn_comm *comm,
                                      tarn__comm_progress *out) {
  *out = (tarn__comm_progress){.comm = comm};
  if (comm->messages != NULL) tarn__watch_begin(comm->messages);
  return tarn__comm_progress_moved(out);
}

tarn_status tarn__comm_progress_moved(tarn__comm_progress *progress) {
  tarn_comm *comm = progress->comm;
  if (comm->messages != NULL) {
    return tarn__comm_note(comm,
                           tarn__messages_moved(comm->messages, &progress->by));
  }
  progress->by =
      (tarn__comm_patience){.wait = tarn__wait_begin(comm->timeout_ms)};
  return TARN_OK;
}

void tarn__comm_progress_extend(tarn__comm_progress *progress) {
  progress->by.wait = tarn__wait_begin(progress->comm->timeout_ms);
  progress->by.asked = SIZE_MAX;
}

// Breaks |comm| on behalf of |rank|.
static tarn_status give_up_on(tarn_comm *comm, size_t rank) {
  if (comm->local != NULL) {
    tarn__local_give_up(comm->local, rank);
    return tarn_comm_check(comm);
  }
  return tarn__comm_note(
      comm,
      tarn__fail(TARN_E_TIMEOUT, "comm: rank %zu did not arrive within %llu ms",
                 rank, (unsigned long long)comm->timeout_ms));
}

tarn_status tarn__comm_progress_idle(tarn__comm_progress *progress,
                                     size_t rank) {
  tarn_comm *comm = progress->comm;
  tarn__comm_patience *by = &progress->by;
  if (comm->messages != NULL) {
    return tarn__comm_note(comm, tarn__messages_idle(comm->messages, by, rank));
  }
  if (comm->local != NULL) tarn__local_turn(comm->local);
  uint64_t left = tarn__wait_left(&by->wait);
  if (by->wait.now - progress->looked >= by->wait.slice) {
    progress->looked = by->wait.now;
    TARN__TRY(tarn_comm_check(comm));
  }
  if (left == 0) return give_up_on(comm, rank);
  tarn__wait_turn(&by->turn, YIELDS);
  return TARN_OK;
}

void tarn__comm_progress_end(tarn__comm_progress *progress) {
  tarn_comm *comm = progress->comm;
  if (comm->messages == NULL) return;
  tarn__messages_done(comm->messages);
  tarn__watch_end(comm->messages);
}
