// local.h - ranks of one machine: rounds through their shared memory, messages
// through their mailboxes.
#ifndef TARN_COMM_LOCAL_H_
#define TARN_COMM_LOCAL_H_

#include <pthread.h>
#include <stdatomic.h>

#include "comm/area.h"
#include "comm/wait.h"
#include "tarn/comm.h"

// The sockets of a process: its mailbox, and those into the mailboxes of the
// ranks that met at one rendezvous. The communicators of the process that come
// from that rendezvous share them.
typedef struct tarn__comm_sockets {
  atomic_size_t users;
  size_t size;          // places of the rendezvous
  uint32_t generation;  // of forks
  int mailbox;          // this process's
  // Of each place:
  int sends[TARN_COMM_MOST_RANKS];      // into its mailbox; also into this
                                        // process's own, so that it never ends
  int processes[TARN_COMM_MOST_RANKS];  // -1: not known
  int64_t pids[TARN_COMM_MOST_RANKS];   // 0: not known
  pthread_mutex_t lock;  // guards |locals|, their messages, and which thread
                         // takes messages out of |mailbox|; a leaf
  tarn_list locals;      // the communicators
} tarn__comm_sockets;

// The message of one rank.
typedef struct tarn__comm_message {
  bool full;
  bool cut;     // a descriptor was sent, and none came
  int fd;       // -1: none
  int64_t pid;  // of the sender
} tarn__comm_message;

// The exchange of descriptors with one other rank.
typedef struct tarn__comm_transfer {
  bool send;   // still to be sent to it
  bool await;  // still to come of it
} tarn__comm_transfer;

typedef struct tarn__comm_local {
  tarn__comm_area area;
  tarn__comm_sockets *sockets;
  tarn_list node;  // in the sockets
  size_t rank;
  size_t size;
  uint64_t timeout_ms;
  uint64_t round;  // the last one that this rank was in
  size_t closed;   // a rank that runs though its mailbox is closed, or |size|
  uint64_t closed_ns;  // when that was seen first
  // Of each rank:
  size_t places[TARN_COMM_MOST_RANKS];                  // in the sockets
  int watched[TARN_COMM_MOST_RANKS];                    // scratch of one look
  unsigned turns[TARN_COMM_MOST_RANKS];                 // scratch of one wait
  tarn__comm_transfer transfers[TARN_COMM_MOST_RANKS];  // at rest all false
  tarn__comm_message mailbox[TARN_COMM_MOST_RANKS];
} tarn__comm_local;

// The operations of a communicator whose |self| is a tarn__comm_local.
extern const tarn_comm_ops tarn__local_ops;

// Rank |rank| of |area|. If |parent| is NULL, it gets new sockets without
// descriptors, in which each rank is at the place of its number. Otherwise it
// shares the sockets of |parent|, and rank r is at the place of rank |ranks[r]|
// of |parent|. On success the area belongs to it.
//
// TARN_E_NOMEM
TARN_MUST_CHECK tarn_status tarn__local_create(tarn__comm_area area,
                                               size_t rank, uint64_t timeout_ms,
                                               tarn__comm_local *parent,
                                               const size_t *ranks,
                                               tarn__comm_local **out_local);

// Leaves the area, without waiting. In a child of fork it only frees.
void tarn__local_destroy(void *self);

// Frees it without leaving the area, which stays mapped.
void tarn__local_forget(void *self);

// --- rounds ----------------------------------------------------------------

// Where this rank writes before the coming round.
static inline unsigned char *tarn__local_slot(tarn__comm_local *local) {
  return tarn__area_slot(&local->area, local->rank, local->round + 1);
}

// The data of |rank| in the last round.
static inline const unsigned char *tarn__local_slot_of(
    const tarn__comm_local *local, size_t rank) {
  return tarn__area_slot(&local->area, rank, local->round);
}

// Goes through a round.
//
// TARN_E_PEER_LOST, TARN_E_TIMEOUT, TARN_E_CORRUPT
//                 no rank has gone through it.
TARN_MUST_CHECK tarn_status tarn__local_round(tarn__comm_local *local);

// Breaks the area if a rank r with |watched[r]| other than -1 has left or
// ended. Overwrites |watched|.
void tarn__local_look(tarn__comm_local *local, tarn__comm_breakage ended);

// Looks once at all other ranks: if one has left or ended, the area is broken.
void tarn__local_look_at_all(tarn__comm_local *local);

// Breaks the area on behalf of |rank|, which has not come in time.
void tarn__local_give_up(tarn__comm_local *local, size_t rank);

// TARN_OK, or the error that broke the area.
TARN_MUST_CHECK tarn_status tarn__local_state(const tarn__comm_local *local);

// Tells the others that this rank runs, and waits for one of them outside of a
// round.
static inline void tarn__local_turn(tarn__comm_local *local) {
  atomic_uint *turns = &local->area.members[local->rank].turns;
  unsigned now = atomic_load_explicit(turns, memory_order_relaxed);
  atomic_store_explicit(turns, now + 1, memory_order_relaxed);
}

// --- what goes by messages -------------------------------------------------

// Tells the others that this rank is through with |count| collectives.
static inline void tarn__local_tell_done(tarn__comm_local *local,
                                         uint32_t count) {
  atomic_store_explicit(&local->area.members[local->rank].done, count,
                        memory_order_release);
}

// Whether |rank| is through with |count| of them.
static inline bool tarn__local_has_done(const tarn__comm_local *local,
                                        size_t rank, uint32_t count) {
  uint32_t done = atomic_load_explicit(&local->area.members[rank].done,
                                       memory_order_acquire);
  return (int32_t)(done - count) >= 0;
}

// Looks once at the ranks that are not through with |count|: if one has left or
// ended, the area is broken.
void tarn__local_look_beyond(tarn__comm_local *local, uint32_t count);

// --- messages --------------------------------------------------------------

// A message names its communicator by the token of the area, and stays in the
// mailbox of that communicator until it is taken. A mailbox holds at most one
// message of each rank: a rank sends the next one only after all ranks have
// passed a round.

// New sockets without a descriptor, for one user; TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status
tarn__sockets_create(size_t size, tarn__comm_sockets **out_sockets);

// Closes them with their last user. In a child of fork, the child's copies.
void tarn__sockets_unref(tarn__comm_sockets *sockets);

// Lets |local| receive messages; and ends that, which closes what it has.
void tarn__mailbox_open(tarn__comm_local *local);
void tarn__mailbox_close(tarn__comm_local *local);

// Sends |fd|, or -1, to |rank|. False with errno if the system has to get rid
// of others first: ETOOMANYREFS, descriptors under way to any place. To a place
// that takes nothing any more it is sent too, as far as the sender can tell.
TARN_MUST_CHECK bool tarn__mailbox_send(tarn__comm_local *local, size_t rank,
                                        int fd);

// Whether a mailbox, or all the descriptors under way, leave no room now.
bool tarn__mailbox_is_full(int reason);

// Moves received messages into the mailboxes.
void tarn__sockets_receive(tarn__comm_sockets *sockets);

// Whether there is a message of |rank|.
bool tarn__mailbox_has(tarn__comm_local *local, size_t rank);

// Takes the message of |rank|, if there is one; its descriptor is the caller's.
TARN_MUST_CHECK bool tarn__mailbox_take(tarn__comm_local *local, size_t rank,
                                        tarn__comm_message *out_message);

// Watches for the end of |rank|, if |watches|: of its process, or of its
// mailbox as long as the process is not known.
static inline void tarn__local_watch(tarn__comm_local *local, size_t rank,
                                     bool watches) {
  const tarn__comm_sockets *sockets = local->sockets;
  size_t place = local->places[rank];
  int process = sockets->processes[place];
  int sign = process >= 0 ? process : sockets->sends[place];
  local->watched[rank] = watches ? sign : -1;
}

// Sends |fd|, or -1, to all other ranks, and waits for their messages, which
// are then in the mailbox.
//
// |gone|: the reason to record if a rank's process, or its mailbox, ends.
TARN_MUST_CHECK tarn_status tarn__local_pass_all(tarn__comm_local *local,
                                                 int fd,
                                                 tarn__comm_breakage gone);

// --- operations ------------------------------------------------------------

TARN_MUST_CHECK tarn_status tarn__local_share(void *self, int fd, int *out_fds);
TARN_MUST_CHECK tarn_status tarn__local_split(void *self, const size_t *ranks,
                                              size_t size, void **out_self);

#endif  // TARN_COMM_LOCAL_H_
