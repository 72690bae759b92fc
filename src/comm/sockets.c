// Messages with descriptors.
//
// A message is accepted if it comes from the same user, from the process of
// that rank once this is known, and has the token of a communicator of this
// process. Every other message is dropped, with its descriptor: its
// communicator was destroyed here, or its sender has got hold of a socket.
#include <errno.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/os_peer.h"
#include "base/status.h"
#include "comm/local.h"

typedef struct message {
  unsigned char token[TARN__TOKEN];
  uint32_t from;
  uint32_t brings;  // 1: a descriptor
} message;

// --- beginning and end -----------------------------------------------------

tarn_status tarn__sockets_create(size_t size,
                                 tarn__comm_sockets **out_sockets) {
  tarn__comm_sockets *sockets = tarn__host_alloc(sizeof *sockets);
  *out_sockets = sockets;
  if (sockets == NULL) return TARN_E_NOMEM;
  sockets->users = 1;
  sockets->size = size;
  sockets->generation = tarn__os_generation();
  sockets->mailbox = -1;
  for (size_t place = 0; place < size; place++)
    sockets->sends[place] = sockets->processes[place] = -1;
  tarn_list_init(&sockets->locals);
  pthread_mutex_init(&sockets->lock, NULL);
  return TARN_OK;
}

void tarn__sockets_unref(tarn__comm_sockets *sockets) {
  if (atomic_fetch_sub(&sockets->users, 1) != 1) return;
  tarn__os_close_all(&sockets->mailbox, 1);
  tarn__os_close_all(sockets->sends, sockets->size);
  tarn__os_close_all(sockets->processes, sockets->size);
  // In a child another thread may have held it, which it does not have.
  if (sockets->generation == tarn__os_generation()) {
    pthread_mutex_destroy(&sockets->lock);
  }
  tarn__host_free(sockets, sizeof *sockets);
}

// --- mailboxes -------------------------------------------------------------

void tarn__mailbox_open(tarn__comm_local *local) {
  pthread_mutex_lock(&local->sockets->lock);
  tarn_list_add_tail(&local->sockets->locals, &local->node);
  pthread_mutex_unlock(&local->sockets->lock);
}

// In a child of fork the list is left as it is: it is never read again.
void tarn__mailbox_close(tarn__comm_local *local) {
  if (local->sockets->generation == tarn__os_generation()) {
    pthread_mutex_lock(&local->sockets->lock);
    tarn_list_del(&local->node);
    pthread_mutex_unlock(&local->sockets->lock);
  }
  for (size_t rank = 0; rank < local->size; rank++) {
    const tarn__comm_message *entry = &local->mailbox[rank];
    if (entry->full && entry->fd >= 0) tarn__os_close(entry->fd);
  }
}

bool tarn__mailbox_has(tarn__comm_local *local, size_t rank) {
  pthread_mutex_lock(&local->sockets->lock);
  bool has = local->mailbox[rank].full;
  pthread_mutex_unlock(&local->sockets->lock);
  return has;
}

bool tarn__mailbox_take(tarn__comm_local *local, size_t rank,
                        tarn__comm_message *out_message) {
  pthread_mutex_lock(&local->sockets->lock);
  *out_message = local->mailbox[rank];
  local->mailbox[rank] = (tarn__comm_message){0};
  pthread_mutex_unlock(&local->sockets->lock);
  return out_message->full;
}

// --- messages --------------------------------------------------------------

bool tarn__mailbox_is_full(int reason) {
  return reason == EAGAIN || reason == ETOOMANYREFS || reason == ENOBUFS ||
         reason == ENOMEM;
}

static bool is_gone(int reason) {
  return reason == EPIPE || reason == ECONNRESET;
}

// If the descriptor cannot be passed, the message goes without it, and the
// receiver reports the loss.
bool tarn__mailbox_send(tarn__comm_local *local, size_t rank, int fd) {
  int to = local->sockets->sends[local->places[rank]];
  message out = {.from = (uint32_t)local->rank, .brings = fd >= 0};
  memcpy(out.token, local->area.head->token, sizeof out.token);
  if (tarn__os_put(to, &out, sizeof out, fd)) return true;
  if (tarn__mailbox_is_full(errno) || is_gone(errno)) return is_gone(errno);
  return tarn__os_put(to, &out, sizeof out, -1) ||
         !tarn__mailbox_is_full(errno);
}

static tarn__comm_local *local_of(const tarn__comm_sockets *sockets,
                                  const unsigned char *token) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, &sockets->locals) {
    tarn__comm_local *local = tarn_list_entry(node, tarn__comm_local, node);
    if (memcmp(local->area.head->token, token, TARN__TOKEN) == 0) return local;
  }
  return NULL;
}

static tarn__comm_message *entry_of(const tarn__comm_sockets *sockets,
                                    const message *in,
                                    const tarn__os_message *envelope) {
  if (envelope->size != sizeof *in) return NULL;
  if (envelope->uid != tarn__os_user()) return NULL;
  tarn__comm_local *local = local_of(sockets, in->token);
  if (local == NULL || in->from >= local->size) return NULL;
  int64_t pid = sockets->pids[local->places[in->from]];
  if (pid != 0 && pid != envelope->pid) return NULL;
  tarn__comm_message *entry = &local->mailbox[in->from];
  return entry->full ? NULL : entry;
}

static void deliver(const tarn__comm_sockets *sockets, const message *in,
                    const tarn__os_message *envelope) {
  tarn__comm_message *entry = entry_of(sockets, in, envelope);
  if (entry == NULL) {
    if (envelope->fd >= 0) tarn__os_close(envelope->fd);
    return;
  }
  *entry = (tarn__comm_message){.full = true,
                                .cut = in->brings != 0 && envelope->fd < 0,
                                .fd = envelope->fd,
                                .pid = envelope->pid};
}

void tarn__sockets_receive(tarn__comm_sockets *sockets) {
  message in;
  tarn__os_message envelope;
  pthread_mutex_lock(&sockets->lock);
  while (tarn__os_take(sockets->mailbox, &in, sizeof in, &envelope))
    deliver(sockets, &in, &envelope);
  pthread_mutex_unlock(&sockets->lock);
}
