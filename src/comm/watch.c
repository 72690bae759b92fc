// While a rank waits for messages, it looks at the ranks of its machine, whose
// ends the kernel tells; the deadline is for the others.
//
// A rank that has left, or ended, is lost to those that still need it. Each
// rank counts its collectives, and tells the others of its machine, in the
// memory that they share, how many it is through with:
//
//   rank 0   |--- 7 ---|  destroys the communicator
//   rank 1   |--- 7 ----------------|               rank 0 has done 7: waits on
//   rank 1                          |--- 8 ...      rank 0 has left
#include "base/status.h"
#include "comm/local.h"
#include "comm/messages.h"

static const uint64_t PAUSE_NS = 10000000;

void tarn__watch_begin(tarn__comm_messages *m) {
  m->begun++;
}

void tarn__watch_end(tarn__comm_messages *m) {
  if (m->near != NULL) tarn__local_tell_done(m->near, m->begun);
}

// --- telling all others ----------------------------------------------------

static void tell(tarn__comm_messages *m, size_t rank, tarn__comm_silence why) {
  tarn__comm_engine *e = m->engine;
  pthread_mutex_lock(&e->lock);
  if (e->verdict.kind == 0 && e->failure.status == TARN_OK) {
    tarn__silence_decide(e, m->ranks[rank], why, TARN_OK);
    tarn__watch_pass_on(m);
    tarn__silence_tell(e);
  }
  pthread_mutex_unlock(&e->lock);
}

void tarn__watch_tell(tarn__comm_messages *m, size_t rank) {
  tell(m, rank, TARN__HAS_ENDED);
}

// --- what a rank was told --------------------------------------------------

// A rank that is told why the job cannot go on leaves, or ends. Those of its
// machine must not take that for the reason, so it tells them before.

enum { ABOUT_SHIFT = 8, NUMBER_SHIFT = 40 };
static const uint64_t MOST_MS = (UINT64_C(1) << 24) - 1;

// For how long it was waited for, how it has failed, or at which rank.
static uint64_t number_of(const tarn__comm_notice *verdict) {
  if (verdict->why == TARN__DAMAGED) return verdict->from;
  return verdict->why == TARN__FAILED ? (uint64_t)-verdict->status
                                      : tarn__lesser(verdict->ms, MOST_MS);
}

void tarn__watch_pass_on(const tarn__comm_messages *m) {
  const tarn__comm_notice *verdict = &m->engine->verdict;
  unsigned long long none = 0;
  if (m->near == NULL || verdict->kind == 0) return;
  atomic_compare_exchange_strong(&m->near->area.head->verdict, &none,
                                 verdict->why |
                                     (uint64_t)verdict->about << ABOUT_SHIFT |
                                     number_of(verdict) << NUMBER_SHIFT);
}

bool tarn__watch_hear(tarn__comm_messages *m) {
  tarn__comm_engine *e = m->engine;
  uint64_t told = atomic_load(&m->near->area.head->verdict);
  if (told == 0) return false;
  uint64_t number = told >> NUMBER_SHIFT;
  pthread_mutex_lock(&e->lock);
  if (e->verdict.kind == 0) {
    e->verdict = (tarn__comm_notice){.kind = TARN__NOTE_TELLS,
                                     .why = told & 0xff,
                                     .about = (uint32_t)(told >> ABOUT_SHIFT),
                                     .from = (uint32_t)number,
                                     .status = -(int32_t)(number & 0xff),
                                     .ms = number};
  }
  pthread_mutex_unlock(&e->lock);
  return true;
}

// --- looking ---------------------------------------------------------------

// A rank may have got through between the two looks at it: then others may
// still miss it, but not this collective.
tarn_status tarn__watch_look(tarn__comm_messages *m, uint64_t now) {
  size_t rank = 0;
  if (m->near == NULL || now - m->looked < PAUSE_NS) return TARN_OK;
  m->looked = now;
  tarn__local_look_beyond(m->near, m->begun);
  tarn__comm_breakage why = tarn__area_why(&m->near->area, &rank);
  if (tarn__watch_hear(m)) return TARN_E_PEER_LOST;
  bool is_gone = why == TARN__ENDED || why == TARN__LEFT;
  if (!is_gone || rank >= m->near->size ||
      tarn__local_has_done(m->near, rank, m->begun)) {
    return TARN_OK;
  }
  tell(m, m->near_ranks[rank],
       why == TARN__LEFT ? TARN__HAS_LEFT : TARN__HAS_ENDED);
  return TARN_E_PEER_LOST;
}
