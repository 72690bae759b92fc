// course.h - what ranks do for long, each at its own pace, without losing one
// another: all meet from time to time, well within the deadline of their
// communicator, until all are done or one has failed.
#ifndef TARN_TABLE_COURSE_H_
#define TARN_TABLE_COURSE_H_

#include "table/reader.h"
#include "tarn/table.h"

typedef struct tarn__table_course {
  tarn_comm *comm;
  // Goes on until |until|, by tarn__os_now_ns, or until |*out_done|.
  tarn_status (*go_on)(void *self, uint64_t until, bool *out_done);
  void *self;
  const tarn__table_tally *tally;  // of this rank
  uint64_t all;                    // bytes of it
  bool (*progress)(const tarn_file_progress *progress, void *user);  // or NULL
  void *user;
} tarn__table_course;

// Collective. A rank whose |status| is not TARN_OK does nothing, and all fail
// with it.
//
// TARN_E_STATE  cancelled by |progress| of a rank.
// Otherwise the status of the lowest rank that has failed.
TARN_MUST_CHECK tarn_status
tarn__table_course_run(const tarn__table_course *course, tarn_status status);

#endif  // TARN_TABLE_COURSE_H_
