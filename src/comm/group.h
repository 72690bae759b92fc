// group.h - ranks that have inherited nothing and meet by a path: who they say
// that they are, and what is said between them.
//
// One of them, whoever comes first, is the host. It makes a rendezvous
// (rendezvous.c), lets the others in, and when all have come it sends each what
// that would have inherited:
//
//   joiner                                host
//   -----                                ----
//   connects
//   hello: rank, size, job  ───────────►
//                           ◄─────────── welcome: the host's rank
//                                        ... all have come: the path goes
//                           ◄─────────── memory, its inbox, the ways into all
//                           ◄─────────── go: all have been sent theirs
//   joins                                joins
//
// Nobody joins before: ranks that join send messages, and where the user may
// have only so many descriptors under way there would be no room left for what
// the host has yet to send.
//
// Until the end a joiner can be refused, with a status and its text: all of
// them are if the rendezvous comes to nothing.
#ifndef TARN_COMM_GROUP_H_
#define TARN_COMM_GROUP_H_

#include "base/status.h"
#include "comm/listener.h"
#include "comm/local.h"
#include "tarn/comm.h"

enum {
  TARN__GROUP_VERSION = 1,  // of what stands here
  TARN__JOB = TARN_COMM_MOST_JOB + 1,
};

typedef struct tarn__comm_group {
  const char *path;
  const char *job;  // never NULL
  size_t rank;      // of this process
  size_t size;
  uint64_t timeout_ms;
} tarn__comm_group;

typedef struct tarn__comm_hello {
  uint32_t version;
  uint32_t rank;
  uint32_t size;
  uint32_t zero;
  uint64_t left_ms;  // for how long it will wait
  char job[TARN__JOB];
} tarn__comm_hello;

typedef enum tarn__comm_answer_kind {
  TARN__WELCOME = 1,
  TARN__REFUSED,
  TARN__MEMORY,  // with the descriptor of the area
  TARN__INBOX,   // with the receiving end of its inbox
  TARN__WAY,     // with a sending end, into the inbox of |rank|
  TARN__GO,      // all have been sent theirs
} tarn__comm_answer_kind;

typedef struct tarn__comm_answer {
  uint32_t kind;
  uint32_t rank;
  int32_t status;               // why it is refused
  char text[TARN__ERROR_TEXT];  // and its words
} tarn__comm_answer;

// As the host of |listener|, which is open: waits for all, hands out, joins.
TARN_MUST_CHECK tarn_status tarn__host(const tarn__comm_group *group,
                                       tarn__comm_listener *listener,
                                       tarn__comm_wait *wait,
                                       tarn_comm **out_comm);

// As a joiner, by |fd|, which is closed. |*out_again|: the host had ended its
// rendezvous before it took notice; then the status says nothing.
TARN_MUST_CHECK tarn_status tarn__joiner(const tarn__comm_group *group,
                                         tarn__comm_listener *listener, int fd,
                                         tarn__comm_wait *wait, bool *out_again,
                                         tarn_comm **out_comm);

#endif  // TARN_COMM_GROUP_H_
