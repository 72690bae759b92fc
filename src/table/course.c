// The meetings of ranks that read or write.
#include "table/course.h"

#include <assert.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"

static const uint64_t TICK_NS = 100000000;  // between calls of |progress|
static const uint64_t MOST_MS = 1000;       // between meetings

typedef enum state { GOES_ON, IS_DONE, HAS_FAILED } state;

static tarn_status report(const tarn__table_course *c, uint64_t begun) {
  tarn_file_progress progress = {
      .struct_size = sizeof progress,
      .done = c->tally->moved,
      .all = c->all,
      .seconds = (double)(tarn__os_now_ns() - begun) / 1e9};
  if (c->progress == NULL || c->progress(&progress, c->user)) return TARN_OK;
  return tarn__fail(TARN_E_STATE, "table: cancelled by its progress function");
}

// Until the next meeting.
static tarn_status go_on(const tarn__table_course *c, uint64_t begun,
                         bool *out_done) {
  static const uint64_t MS = 1000000;
  uint64_t ms = tarn__lesser(tarn_comm_timeout_ms(c->comm) / 4, MOST_MS);
  uint64_t now = tarn__os_now_ns();
  uint64_t end = now + ms * MS;
  do {
    TARN__TRY(c->go_on(c->self, tarn__lesser(now + TICK_NS, end), out_done));
    TARN__TRY(report(c, begun));
    now = tarn__os_now_ns();
  } while (!*out_done && now < end);
  return TARN_OK;
}

// What the ranks are at: the last of those in the order of |state|, but that
// all are done only if each is.
static state look_at(const unsigned char *states, size_t ranks) {
  state all = IS_DONE;
  for (size_t r = 0; r < ranks; r++) {
    if (states[r] == HAS_FAILED) return HAS_FAILED;
    if (states[r] == GOES_ON) all = GOES_ON;
  }
  return all;
}

static tarn_status run(const tarn__table_course *c, unsigned char *states) {
  size_t ranks = tarn_comm_size(c->comm);
  uint64_t begun = tarn__os_now_ns();
  tarn__failure failure = {TARN_OK, ""};
  tarn_status status = TARN_OK;
  bool done = false;
  state all = GOES_ON;
  assert(states != NULL);
  while (all == GOES_ON) {
    if (status == TARN_OK && !done) status = go_on(c, begun, &done);
    tarn__failure_note(&failure, status);
    unsigned char mine = status != TARN_OK ? HAS_FAILED
                         : done            ? IS_DONE
                                           : GOES_ON;
    TARN__TRY(tarn_comm_allgather(c->comm, &mine, 1, states));
    all = look_at(states, ranks);
  }
  return all == IS_DONE
             ? TARN_OK
             : tarn_comm_agree(c->comm, tarn__failure_tell(&failure));
}

tarn_status tarn__table_course_run(const tarn__table_course *course,
                                   tarn_status status) {
  size_t ranks = tarn_comm_size(course->comm);
  unsigned char *states = tarn__host_alloc(ranks);
  if (status == TARN_OK && states == NULL) status = TARN_E_NOMEM;
  status = tarn_comm_agree(course->comm, status);
  if (status == TARN_OK) status = run(course, states);
  tarn__host_free(states, ranks);
  return status;
}
