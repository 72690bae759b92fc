// Messages with descriptors.
//
// A message is accepted if it comes from the same user, from the process of
// that rank once this is known, and has the token of a communicator of this
// process. Every other message is dropped, with its descriptor: its
// communicator was destroyed here, or its sender has got hold of a socket.
#include "comm/sockets.h"

#include <errno.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/os_peer.h"
#include "base/status.h"

typedef struct message {
  unsigned char token[TARN__TOKEN];
  uint32_t from;
  uint32_t brings;  // 1: a descriptor
} message;

// --- beginning and end -----------------------------------------------------

tarn_status tarn__sockets_create(size_t size,
                                 tarn__comm_sockets **out_sockets) {
  tarn__comm_sockets *sockets = tarn__host_alloc(sizeof *sockets);
  *out_sockets = NULL;
  if (sockets == NULL) return TARN_E_NOMEM;
  *sockets = (tarn__comm_sockets){
      .users = 1,
      .size = size,
      .inbox = -1,
      .sends = tarn__os_no_descriptors(size),
      .processes = tarn__os_no_descriptors(size),
      .pids = tarn__host_array(size, sizeof *sockets->pids),
      .generation = tarn__os_generation()};
  tarn_list_init(&sockets->mailboxes);
  pthread_mutex_init(&sockets->lock, NULL);
  if (sockets->sends == NULL || sockets->processes == NULL ||
      sockets->pids == NULL) {
    tarn__sockets_unref(sockets);
    return TARN_E_NOMEM;
  }
  *out_sockets = sockets;
  return TARN_OK;
}

tarn__comm_sockets *tarn__sockets_ref(tarn__comm_sockets *sockets) {
  atomic_fetch_add(&sockets->users, 1);
  return sockets;
}

static void close_and_free(int *fds, size_t count) {
  if (fds != NULL) tarn__os_close_all(fds, count);
  tarn__host_free_array(fds, count, sizeof *fds);
}

void tarn__sockets_unref(tarn__comm_sockets *sockets) {
  if (atomic_fetch_sub(&sockets->users, 1) != 1) return;
  if (sockets->inbox >= 0) tarn__os_close(sockets->inbox);
  close_and_free(sockets->sends, sockets->size);
  close_and_free(sockets->processes, sockets->size);
  tarn__host_free_array(sockets->pids, sockets->size, sizeof *sockets->pids);
  // In a child another thread may have held it, which it does not have.
  if (sockets->generation == tarn__os_generation()) {
    pthread_mutex_destroy(&sockets->lock);
  }
  tarn__host_free(sockets, sizeof *sockets);
}

// --- mailboxes
// -----------------------------------------------------------------

tarn_status tarn__mailbox_init(tarn__comm_sockets *sockets,
                               const unsigned char *token, const size_t *places,
                               size_t ranks, tarn__comm_mailbox *out_mailbox) {
  *out_mailbox =
      (tarn__comm_mailbox){.token = token, .places = places, .ranks = ranks};
  out_mailbox->entries = tarn__host_array(ranks, sizeof *out_mailbox->entries);
  if (out_mailbox->entries == NULL) return TARN_E_NOMEM;
  pthread_mutex_lock(&sockets->lock);
  tarn_list_add_tail(&sockets->mailboxes, &out_mailbox->node);
  pthread_mutex_unlock(&sockets->lock);
  return TARN_OK;
}

static void empty(tarn__comm_mailbox *mailbox) {
  for (size_t rank = 0; rank < mailbox->ranks; rank++) {
    const tarn__comm_message *entry = &mailbox->entries[rank];
    if (entry->full && entry->fd >= 0) tarn__os_close(entry->fd);
  }
  tarn__host_free_array(mailbox->entries, mailbox->ranks,
                        sizeof *mailbox->entries);
}

// In a child of fork the list is left as it is: it is never read again.
void tarn__mailbox_deinit(tarn__comm_sockets *sockets,
                          tarn__comm_mailbox *mailbox) {
  if (mailbox->entries == NULL) return;
  if (sockets->generation == tarn__os_generation()) {
    pthread_mutex_lock(&sockets->lock);
    tarn_list_del(&mailbox->node);
    pthread_mutex_unlock(&sockets->lock);
  }
  empty(mailbox);
  *mailbox = (tarn__comm_mailbox){0};
}

bool tarn__mailbox_has(tarn__comm_sockets *sockets,
                       const tarn__comm_mailbox *mailbox, size_t rank) {
  pthread_mutex_lock(&sockets->lock);
  bool has = mailbox->entries[rank].full;
  pthread_mutex_unlock(&sockets->lock);
  return has;
}

bool tarn__mailbox_take(tarn__comm_sockets *sockets,
                        tarn__comm_mailbox *mailbox, size_t rank,
                        tarn__comm_message *out_entry) {
  tarn__comm_message *entry = &mailbox->entries[rank];
  pthread_mutex_lock(&sockets->lock);
  *out_entry = *entry;
  *entry = (tarn__comm_message){0};
  pthread_mutex_unlock(&sockets->lock);
  return out_entry->full;
}

// --- messages ---------------------------------------------------------------

static bool is_full(int reason) {
  return reason == EAGAIN || reason == ETOOMANYREFS || reason == ENOBUFS ||
         reason == ENOMEM;
}

static bool is_gone(int reason) {
  return reason == EPIPE || reason == ECONNRESET;
}

// If the descriptor cannot be passed, the message goes without it, and the
// receiver reports the loss.
bool tarn__sockets_send(tarn__comm_sockets *sockets, size_t place,
                        const unsigned char *token, size_t from, int fd) {
  message out = {.from = (uint32_t)from, .brings = fd >= 0};
  memcpy(out.token, token, sizeof out.token);
  if (tarn__os_put(sockets->sends[place], &out, sizeof out, fd)) return true;
  if (is_full(errno) || is_gone(errno)) return is_gone(errno);
  return tarn__os_put(sockets->sends[place], &out, sizeof out, -1) ||
         !is_full(errno);
}

static tarn__comm_mailbox *mailbox_of(tarn__comm_sockets *sockets,
                                      const unsigned char *token) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, &sockets->mailboxes) {
    tarn__comm_mailbox *mailbox =
        tarn_list_entry(node, tarn__comm_mailbox, node);
    if (memcmp(mailbox->token, token, TARN__TOKEN) == 0) return mailbox;
  }
  return NULL;
}

static bool is_stranger(const tarn__comm_sockets *sockets, size_t place,
                        int64_t pid) {
  return sockets->pids[place] != 0 && sockets->pids[place] != pid;
}

static tarn__comm_message *entry_of(tarn__comm_sockets *sockets,
                                    const message *in,
                                    const tarn__os_message *envelope) {
  if (envelope->size != sizeof *in) return NULL;
  if (envelope->uid != tarn__os_user()) return NULL;
  tarn__comm_mailbox *mailbox = mailbox_of(sockets, in->token);
  if (mailbox == NULL || in->from >= mailbox->ranks) return NULL;
  if (is_stranger(sockets, mailbox->places[in->from], envelope->pid))
    return NULL;
  tarn__comm_message *entry = &mailbox->entries[in->from];
  return entry->full ? NULL : entry;
}

static void deliver(tarn__comm_sockets *sockets, const message *in,
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
  while (tarn__os_take(sockets->inbox, &in, sizeof in, &envelope))
    deliver(sockets, &in, &envelope);
  pthread_mutex_unlock(&sockets->lock);
}

void tarn__sockets_set_process(tarn__comm_sockets *sockets, size_t place,
                               int process, int64_t pid) {
  sockets->processes[place] = process;
  sockets->pids[place] = pid;
}

int tarn__sockets_end_sign(const tarn__comm_sockets *sockets, size_t place) {
  int process = sockets->processes[place];
  return process >= 0 ? process : sockets->sends[place];
}
