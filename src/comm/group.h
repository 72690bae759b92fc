// group.h - ranks that have inherited nothing and meet at a path: the messages
// between them.
//
// The first process to come is the host. It creates a rendezvous (rendezvous.c)
// and accepts the others, the joiners. When all have come, it sends each what a
// child would have inherited:
//
//   joiner                               host
//   ------                               ----
//   connects
//   hello: rank, size, job  ───────────►
//                           ◄─────────── welcome: the host's rank
//                                        ... all have come: removes the path
//                           ◄─────────── memory, its mailbox, all sockets
//                           ◄─────────── go: all have theirs
//   joins                                joins
//
// No rank joins before go: ranks that join send messages, and where a user may
// have only so many descriptors in flight, the host could not send the rest.
//
// Until the end the host can refuse a joiner, with a status and its text. If
// the group does not come together, it refuses all of them.
#ifndef TARN_COMM_GROUP_H_
#define TARN_COMM_GROUP_H_

#include "base/status.h"
#include "comm/listener.h"
#include "comm/local.h"
#include "tarn/comm.h"

enum {
  TARN__GROUP_VERSION = 2,  // of what stands here
  TARN__JOB = TARN_COMM_MOST_JOB + 1,
};

typedef struct tarn__comm_group {
  const char *path;
  const char *job;  // never NULL
  size_t rank;      // of this process
  size_t size;
  uint64_t come_ms;     // for how long it waits for all to come
  uint64_t timeout_ms;  // for others, from then on
} tarn__comm_group;

typedef struct tarn__comm_hello {
  uint32_t version;
  uint32_t rank;
  uint32_t size;
  uint32_t zero;
  uint64_t left_ms;  // for how long it will wait
  char job[TARN__JOB];
} tarn__comm_hello;

// The messages with descriptors, each with one, before TARN__GO.
#define TARN__THINGS(ranks) ((ranks) + 2)

typedef enum tarn__comm_answer_kind {
  TARN__WELCOME = 1,  // of the rank |number|
  TARN__REFUSED,
  TARN__PASSED,  // with descriptor |number| of tarn__rendezvous_descriptor
  TARN__GO,      // all have been sent theirs
} tarn__comm_answer_kind;

typedef struct tarn__comm_answer {
  uint32_t kind;
  uint32_t number;
  int32_t status;               // why it is refused
  char text[TARN__ERROR_TEXT];  // and its words
} tarn__comm_answer;

// Acts as the host of |listener|, which is open: waits for all, sends, joins.
TARN_MUST_CHECK tarn_status tarn__host(const tarn__comm_group *group,
                                       tarn__comm_listener *listener,
                                       tarn__comm_wait *wait,
                                       tarn_comm **out_comm);

// Acts as a joiner on |fd|, which is closed. |*out_again|: the host ended
// before it noticed this process; the status then means nothing.
TARN_MUST_CHECK tarn_status tarn__joiner(const tarn__comm_group *group,
                                         tarn__comm_listener *listener, int fd,
                                         tarn__comm_wait *wait, bool *out_again,
                                         tarn_comm **out_comm);

// Meets the others of |group| at its path.
TARN_MUST_CHECK tarn_status tarn__meet_at(const tarn__comm_group *group,
                                          tarn_comm **out_comm);

// TARN_E_INVALID  there is no such rank among |size|; the text has |call|.
TARN_MUST_CHECK tarn_status tarn__meet_check(const char *call, size_t rank,
                                             size_t size);

#endif  // TARN_COMM_GROUP_H_
