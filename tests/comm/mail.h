// mail.h - a double of an engine that passes messages between processes, as MPI
// does: by sockets that were made before they were forked. It tells of no end.
//
//   mail_open(4);            before ranks_run, in which rank r has mail_desk(r)
//   mail_close();
#ifndef TARN_TESTS_COMM_MAIL_H_
#define TARN_TESTS_COMM_MAIL_H_

#include "tarn/comm.h"

enum { MAIL_RANKS = 8 };

// Sockets between |ranks| ranks.
void mail_open(size_t ranks);
void mail_close(void);

// Messages of |from| to |to| take |ms| from now on; called in both processes,
// or before.
void mail_delay(size_t from, size_t to, unsigned ms);

extern const tarn_comm_ops mail_ops;

// What these operations take as self, for rank |rank|.
void *mail_desk(size_t rank);

#endif  // TARN_TESTS_COMM_MAIL_H_
