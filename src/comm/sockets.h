// sockets.h - how ranks that met at one rendezvous send each other descriptors:
// the inbox of a process, and the sockets into the inboxes of the others.
//
// The communicators of a process that come from one rendezvous share its
// sockets. A message names its communicator by the token of the area, and stays
// in the mailbox of that communicator until it is taken. A mailbox holds at
// most one message of each rank: a rank sends the next one only after all ranks
// have passed a round.
#ifndef TARN_COMM_SOCKETS_H_
#define TARN_COMM_SOCKETS_H_

#include <pthread.h>
#include <stdatomic.h>

#include "comm/area.h"
#include "tarn/base.h"

typedef struct tarn__comm_sockets {
  atomic_size_t users;
  size_t size;           // places of the rendezvous
  int inbox;             // this process's
  int *sends;            // into those of all, so that its own never ends
  int *processes;        // theirs; -1: not known
  int64_t *pids;         // and their numbers; 0: not known
  uint32_t generation;   // of forks
  pthread_mutex_t lock;  // guards |mailboxes| and what is in them, and who
                         // takes messages out of |inbox|; a leaf
  tarn_list mailboxes;
} tarn__comm_sockets;

// The message of one rank.
typedef struct tarn__comm_message {
  bool full;
  bool cut;     // a descriptor was sent, and none came
  int fd;       // -1: none
  int64_t pid;  // of the sender
} tarn__comm_message;

typedef struct tarn__comm_mailbox {
  tarn_list node;
  const unsigned char *token;   // of the communicator that it is of
  const size_t *places;         // of its ranks, in the sockets
  tarn__comm_message *entries;  // of each of its ranks
  size_t ranks;
} tarn__comm_mailbox;

// A sockets without sockets yet, used once; TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status
tarn__sockets_create(size_t size, tarn__comm_sockets **out_sockets);
tarn__comm_sockets *tarn__sockets_ref(tarn__comm_sockets *sockets);

// Closes it with its last user. In a child of fork, the child's copy of it.
void tarn__sockets_unref(tarn__comm_sockets *sockets);

// TARN_E_NOMEM. |token| and |places|, one of each of the ranks, must stay.
TARN_MUST_CHECK tarn_status tarn__mailbox_init(tarn__comm_sockets *sockets,
                                               const unsigned char *token,
                                               const size_t *places,
                                               size_t ranks,
                                               tarn__comm_mailbox *out_mailbox);
void tarn__mailbox_deinit(tarn__comm_sockets *sockets,
                          tarn__comm_mailbox *mailbox);

// Sends |fd|, or -1, to |place|, as rank |from| of the communicator of |token|.
// False with errno if the system has to get rid of others first: ETOOMANYREFS,
// descriptors under way to any place. To a place that takes
// nothing any more it is sent too, as far as the sender can tell.
TARN_MUST_CHECK bool tarn__sockets_send(tarn__comm_sockets *sockets,
                                        size_t place,
                                        const unsigned char *token, size_t from,
                                        int fd);

// Moves received messages into the mailboxes.
void tarn__sockets_receive(tarn__comm_sockets *sockets);

// Whether there is a message of |rank|.
bool tarn__mailbox_has(tarn__comm_sockets *sockets,
                       const tarn__comm_mailbox *mailbox, size_t rank);

// Takes the message of |rank|, if there is one; its descriptor is the caller's.
TARN_MUST_CHECK bool tarn__mailbox_take(tarn__comm_sockets *sockets,
                                        tarn__comm_mailbox *mailbox,
                                        size_t rank,
                                        tarn__comm_message *out_entry);

// Sets the process of |place|: its descriptor, which then belongs to the
// sockets, and its number. From then on messages of other processes are
// dropped.
void tarn__sockets_set_process(tarn__comm_sockets *sockets, size_t place,
                               int process, int64_t pid);

// The descriptor that signals the end of |place|: its process, or its inbox as
// long as the process is not known.
int tarn__sockets_end_sign(const tarn__comm_sockets *sockets, size_t place);

#endif  // TARN_COMM_SOCKETS_H_
