// The ranks of one machine within a communicator.
//
// Where not all ranks are on one machine, those of each machine have a
// communicator of their own besides, through which they share memory.
//
// Invariant: |near.ranks| ascend, so groups that both are split into have their
// ranks in the same order.
#include "base/hostmem.h"
#include "comm/comm.h"
#include "comm/local.h"
#include "comm/messages.h"

tarn__comm_near tarn__comm_near_of(tarn_comm *comm) {
  if (comm->near.comm == NULL && comm->ops.share != NULL) {
    return (tarn__comm_near){.comm = comm};
  }
  return comm->near;
}

size_t tarn_comm_machines(const tarn_comm *comm) {
  const size_t *machines = comm->near.machines;
  size_t count = 0;
  if (machines == NULL) return comm->ops.share != NULL ? 1 : comm->size;
  for (size_t rank = 0; rank < comm->size; rank++)
    count += machines[rank] == rank ? 1 : 0;
  return count;
}

// --- coming and going ------------------------------------------------------

size_t *tarn__near_array(size_t size) {
  size_t count = 0;
  if (!tarn_size_mul(2, size, &count)) return NULL;
  return tarn__host_array(count, sizeof(size_t));
}

void tarn__near_free(size_t *array, size_t size) {
  tarn__host_free_array(array, 2 * size, sizeof *array);
}

// The part of |comm| whose waits look at ranks of the machine; NULL: none.
static tarn__comm_messages *messages_of(tarn_comm *comm) {
  bool is_one = comm->ops.split == tarn__message_ops.split;
  return is_one ? comm->self : NULL;
}

void tarn__near_attach(tarn_comm *comm, const tarn__comm_near *near) {
  tarn__comm_messages *messages = messages_of(comm);
  comm->near = *near;
  if (messages == NULL) return;
  messages->near = near->comm->self;
  messages->near_ranks = near->ranks;
}

// --- the check between collectives -----------------------------------------

tarn_status tarn__near_check(tarn_comm *comm) {
  const tarn__comm_near *near = &comm->near;
  tarn__comm_messages *messages = messages_of(comm);
  size_t rank = 0;
  if (near->comm == NULL) return TARN_OK;
  tarn__comm_local *local = near->comm->self;
  tarn__local_look_at_all(local);
  tarn__comm_breakage why = tarn__area_why(&local->area, &rank);
  if (messages != NULL && tarn__watch_hear(messages)) return TARN_OK;
  if (why == TARN__WHOLE) return TARN_OK;
  if (rank >= near->comm->size) return tarn__local_state(local);
  rank = near->ranks[rank];
  if (why == TARN__ENDED && messages != NULL) tarn__watch_tell(messages, rank);
  return tarn__area_fail_as(&local->area, rank);
}
