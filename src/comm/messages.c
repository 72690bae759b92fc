// Messages of the communicators of an engine: posting them, waiting for them,
// and what is told when the job cannot go on.
#include "comm/messages.h"

#include <limits.h>

#include "base/hostmem.h"
#include "base/os.h"

// --- the engine, locked ----------------------------------------------------

// The number of the engine's |rank| in this communicator, or |size|.
static size_t number_of(const tarn__comm_messages *m, size_t rank) {
  size_t i = 0;
  while (i < m->size && m->ranks[i] != rank)
    i++;
  return i;
}

static void lock(tarn__comm_engine *e) {
  pthread_mutex_lock(&e->lock);
}

static void unlock(tarn__comm_engine *e) {
  pthread_mutex_unlock(&e->lock);
}

static tarn_status tell_damage(const tarn__comm_messages *m) {
  const tarn__comm_notice *verdict = &m->engine->verdict;
  size_t from = number_of(m, verdict->about);
  size_t to = number_of(m, verdict->from);
  if (from == m->size || to == m->size) {
    return tarn__fail(TARN_E_CORRUPT, "comm: a message of a rank is damaged");
  }
  return tarn__fail(TARN_E_CORRUPT,
                    "comm: a message of rank %zu to rank %zu is damaged", from,
                    to);
}

static tarn_status tell_verdict(const tarn__comm_messages *m) {
  const tarn__comm_notice *verdict = &m->engine->verdict;
  unsigned long long ms = verdict->ms;
  size_t rank = number_of(m, verdict->about);
  const char *of = rank < m->size ? "" : " of the communicator it comes from";
  if (rank == m->size) rank = verdict->about;
  switch (verdict->why) {
    case TARN__MISSED:
      return tarn__fail(TARN_E_TIMEOUT,
                        "comm: rank %zu%s has waited %llu ms for ranks that "
                        "wait for each other: a message was lost",
                        rank, of, ms);
    case TARN__HAS_ENDED:
      return tarn__fail(TARN_E_PEER_LOST, "comm: rank %zu%s has ended", rank,
                        of);
    case TARN__HAS_LEFT:
      return tarn__fail(TARN_E_PEER_LOST,
                        "comm: rank %zu%s has left the communicator", rank, of);
    case TARN__OUT_OF_REACH:
      return tarn__fail(TARN_E_PEER_LOST,
                        "comm: rank %zu%s is lost: the engine '%s' cannot send "
                        "to it",
                        rank, of, m->engine->ops.name);
    case TARN__DAMAGED:
      return tell_damage(m);
    case TARN__FAILED:
      return tarn__fail(TARN_E_PEER_LOST,
                        "comm: rank %zu%s has failed in an exchange, with %s",
                        rank, of,
                        tarn_status_name((tarn_status)verdict->status));
    default:
      return tarn__fail(TARN_E_TIMEOUT,
                        "comm: rank %zu%s did not arrive within %llu ms", rank,
                        of, ms);
  }
}

// |status|, unless the job cannot go on, or the engine has failed.
static tarn_status tell_end(const tarn__comm_messages *m, tarn_status status) {
  if (m->engine->verdict.kind != 0) return tell_verdict(m);
  tarn_status failure = tarn__failure_tell(&m->engine->failure);
  return failure != TARN_OK ? failure : status;
}

// The others are told no more, and the engine is left alone.
static void abandon(tarn__comm_engine *e) {
  if (!e->abandoned && e->ops.abandon != NULL) e->ops.abandon(e->self);
  e->abandoned = true;
}

static tarn_status listen(tarn__comm_messages *m) {
  TARN__TRY(tell_end(m, TARN_OK));
  tarn_status status = tarn__silence_listen(m->engine);
  return status == TARN_OK ? TARN_OK : tell_end(m, status);
}

// --- waiting ---------------------------------------------------------------

// Of the time until the deadline: enough for two questions and their answers,
// so that a rank that is asked last has as long to answer as any other.
enum { EARLY_TWENTIETHS = 3 };

tarn__comm_patience tarn__messages_patience(const tarn__comm_messages *m) {
  tarn__comm_wait wait = tarn__wait_begin(m->engine->timeout_ms);
  return (tarn__comm_patience){
      .wait = wait,
      .early = (wait.end - wait.now) / 20 * EARLY_TWENTIETHS,
      .asked = SIZE_MAX};
}

tarn_status tarn__messages_moved(tarn__comm_messages *m,
                                 tarn__comm_patience *patience) {
  *patience = tarn__messages_patience(m);
  lock(m->engine);
  m->moved = patience->wait.now;
  tarn_status status = listen(m);
  unlock(m->engine);
  return status;
}

void tarn__messages_done(tarn__comm_messages *m) {
  lock(m->engine);
  m->waits_for = SIZE_MAX;
  m->moved = 0;
  unlock(m->engine);
}

// The wait for an answer. Where this rank gets only a share of a processor,
// others get no more, whole tenths of a second apart: it waits for as long by
// the time in which it runs itself.
static tarn__comm_wait begin_patience(const tarn__comm_engine *e) {
  static const uint64_t MOST_GAP_NS = 5000000;
  tarn__comm_wait wait = tarn__wait_begin(tarn__silence_patience(e));
  wait.most_gap = MOST_GAP_NS;
  return wait;
}

// Asks |rank| what it waits for.
static tarn_status ask(tarn__comm_messages *m, tarn__comm_patience *patience,
                       size_t rank) {
  patience->answer = begin_patience(m->engine);
  patience->asked = rank;
  patience->hops++;
  return tarn__silence_ask(m, rank);
}

static tarn_status ask_first(tarn__comm_messages *m,
                             tarn__comm_patience *patience, size_t rank) {
  patience->first = rank;
  patience->hops = 0;
  patience->doubt = TARN__DOUBT_NONE;
  return ask(m, patience, rank);
}

// The ranks of this machine hear it in the memory that they share, while this
// one tells the others, which may be out of reach.
static void judge(const tarn__comm_messages *m, size_t rank,
                  tarn__comm_silence why) {
  tarn__silence_decide(m->engine, rank, why, TARN_OK);
  tarn__watch_pass_on(m);
  tarn__silence_tell(m->engine);
}

// The last answer leads to nobody else. A rank that comes late gives such an
// answer too, a moment before it sends what this one waits for: so it is asked
// once more before it is judged.
static tarn_status doubt(tarn__comm_messages *m, tarn__comm_patience *patience,
                         uint64_t left, uint64_t left_to_answer) {
  const tarn__comm_engine *e = m->engine;
  switch (patience->doubt) {
    case TARN__DOUBT_NONE:
      patience->doubt = TARN__DOUBT_WAITS;
      patience->answer = tarn__wait_begin(tarn__silence_patience(e) / 2);
      return TARN_OK;
    case TARN__DOUBT_WAITS:
      if (left_to_answer > 0) return TARN_OK;
      patience->doubt = TARN__DOUBT_ASKS;
      return ask(m, patience, patience->asked);
    default:
      if (left > 0) return TARN_OK;
      if (m->answer >= e->size) {
        judge(m, patience->asked, TARN__SILENT);
      } else {
        judge(m, e->rank, TARN__MISSED);
      }
      return TARN_E_TIMEOUT;
  }
}

// The time is nearly over. Asks |rank|, and whom it names, until one does not
// answer, or is not in this communicator's collective; or they wait for each
// other, this rank among them or not. Nobody is judged while time is |left|.
static tarn_status find_silent(tarn__comm_messages *m,
                               tarn__comm_patience *patience, size_t rank,
                               uint64_t left) {
  const tarn__comm_engine *e = m->engine;
  if (patience->asked == SIZE_MAX || patience->first != rank) {
    return ask_first(m, patience, rank);
  }
  uint64_t left_to_answer = tarn__wait_left(&patience->answer);
  if (m->answered != m->asked) {
    if (left > 0 || left_to_answer > 0) return TARN_OK;
    judge(m, patience->asked, TARN__SILENT);
    return TARN_E_TIMEOUT;
  }
  if (m->answer == TARN__BUSY) {
    *patience = tarn__messages_patience(m);
    return TARN_OK;
  }
  if (m->answer >= e->size || m->answer == e->rank ||
      patience->hops >= e->size) {
    return doubt(m, patience, left, left_to_answer);
  }
  return ask(m, patience, m->answer);
}

// While nothing has moved.
static tarn_status look_around(tarn__comm_messages *m,
                               tarn__comm_patience *patience, size_t rank) {
  uint64_t left = tarn__wait_left(&patience->wait);
  lock(m->engine);
  m->waits_for = m->ranks[rank];
  tarn_status status = listen(m);
  if (status == TARN_OK && left <= patience->early) {
    status = find_silent(m, patience, m->ranks[rank], left);
  }
  unlock(m->engine);
  TARN__TRY(status);
  return tarn__watch_look(m, patience->wait.now);
}

tarn_status tarn__messages_idle(tarn__comm_messages *m,
                                tarn__comm_patience *patience, size_t rank) {
  enum { YIELDS = 500 };
  static const uint64_t BRIEF_NS = 3000000;  // some delays of a link
  tarn_status status = look_around(m, patience, rank);
  if (status == TARN_OK) {
    bool brief = patience->wait.now - patience->wait.begun < BRIEF_NS;
    tarn__wait_turn(&patience->turn, brief ? UINT_MAX : YIELDS);
    return TARN_OK;
  }
  lock(m->engine);
  status = tell_end(m, status);
  unlock(m->engine);
  return status;
}

// --- for all who post ------------------------------------------------------

tarn_status tarn__messages_post(tarn__comm_messages *m, tarn_comm_way way,
                                size_t rank, tarn__comm_topic topic, void *data,
                                size_t size, void **out_message) {
  uint32_t tag = m->context << TARN__TAG_BITS | (uint32_t)topic;
  size_t partner = rank == TARN_COMM_ANY ? rank : m->ranks[rank];
  *out_message = NULL;
  lock(m->engine);
  tarn_status status = tell_end(m, TARN_OK);
  if (status == TARN_OK) {
    status = m->engine->checks ? tarn__parcel_post(m->engine, way, partner, tag,
                                                   data, size, out_message)
                               : tarn__engine_post(m->engine, way, partner, tag,
                                                   data, size, out_message);
    if (status == TARN_E_PEER_LOST && partner != TARN_COMM_ANY) {
      judge(m, partner, TARN__OUT_OF_REACH);
      status = tell_end(m, status);
    }
  }
  unlock(m->engine);
  return status;
}

static tarn_status test_checked(tarn__comm_messages *m, void **messages,
                                size_t count) {
  size_t damaged = TARN_COMM_ANY;
  TARN__TRY(tarn__parcel_test(m->engine, messages, count, &damaged));
  if (damaged == TARN_COMM_ANY) return TARN_OK;
  judge(m, damaged, TARN__DAMAGED);
  return tell_verdict(m);
}

tarn_status tarn__messages_test(tarn__comm_messages *m, void **messages,
                                size_t count) {
  lock(m->engine);
  tarn_status status = tell_end(m, TARN_OK);
  if (status == TARN_OK) {
    status = m->engine->checks ? test_checked(m, messages, count)
                               : tarn__engine_test(m->engine, messages, count);
  }
  unlock(m->engine);
  return status;
}

bool tarn__messages_drop(tarn__comm_messages *m, bool receives,
                         void **message) {
  tarn__comm_engine *e = m->engine;
  if (*message == NULL) return true;
  lock(e);
  bool is_free = e->checks ? tarn__parcel_drop(e, receives, *message)
                           : receives && e->ops.cancel(e->self, *message);
  e->given_up = e->given_up || !is_free;
  unlock(e);
  *message = NULL;
  return is_free || e->checks;
}

tarn_status tarn__messages_give_up(tarn__comm_messages *m, tarn_status status,
                                   bool tells) {
  tarn__comm_engine *e = m->engine;
  lock(e);
  if (e->verdict.kind == 0) {
    tarn__failure_note(&e->failure, status);
    if (tells) tarn__silence_decide(e, e->rank, TARN__FAILED, status);
    if (tells) tarn__silence_tell(e);
  }
  m->waits_for = SIZE_MAX;
  abandon(e);
  tarn__watch_pass_on(m);
  status = tell_end(m, status);
  unlock(e);
  return status;
}

void tarn__messages_use_checksums(tarn__comm_messages *m) {
  lock(m->engine);
  m->engine->checks = true;
  unlock(m->engine);
}

tarn_status tarn__messages_check(tarn__comm_messages *m) {
  lock(m->engine);
  tarn_status status = listen(m);
  unlock(m->engine);
  return status;
}

void tarn__messages_describe(tarn__comm_messages *m, char *out,
                             size_t out_size) {
  tarn__comm_engine *e = m->engine;
  out[0] = '\0';
  if (e->ops.describe == NULL) return;
  lock(e);
  e->ops.describe(e->self, out, out_size);
  unlock(e);
  out[out_size - 1] = '\0';
}

// --- coming and going ------------------------------------------------------

static size_t size_for(size_t ranks) {
  return sizeof(tarn__comm_messages) + ranks * sizeof(size_t);
}

tarn__comm_messages *tarn__messages_make(tarn__comm_engine *e, uint32_t context,
                                         size_t size) {
  tarn__comm_messages *m = tarn__host_alloc(size_for(size));
  if (m == NULL) return NULL;
  m->engine = e;
  m->context = context;
  m->size = size;
  m->waits_for = SIZE_MAX;
  lock(e);
  tarn_list_add_tail(&e->all, &m->node);
  unlock(e);
  return m;
}

// Whether it was the last of the engine.
static bool unmake(tarn__comm_messages *m) {
  tarn__comm_engine *e = m->engine;
  lock(e);
  tarn_list_del(&m->node);
  bool last = tarn_list_empty(&e->all);
  unlock(e);
  tarn__host_free(m, size_for(m->size));
  return last;
}

static void free_engine(tarn__comm_engine *e) {
  pthread_mutex_destroy(&e->lock);
  tarn__host_free(e, sizeof *e);
}

// The ranks of this machine see why it leaves.
static void give_reason(const tarn__comm_messages *m) {
  lock(m->engine);
  tarn__watch_pass_on(m);
  unlock(m->engine);
}

// A child of fork is alone, and its parent may have held the lock.
void tarn__messages_destroy(tarn__comm_messages *m) {
  tarn__comm_engine *e = m->engine;
  bool is_child = e->generation != tarn__os_generation();
  if (is_child) pthread_mutex_init(&e->lock, NULL);
  if (!is_child) give_reason(m);
  if (!unmake(m)) return;
  // Who was told between collectives has given nothing up yet.
  bool is_over = e->verdict.kind != 0 || e->failure.status != TARN_OK;
  if (is_over && !is_child) abandon(e);
  bool is_free = is_child || tarn__silence_end(e);
  e->ops.destroy(e->self);
  if (is_free) free_engine(e);
}

tarn_status tarn__messages_create(const tarn_comm_ops *ops, void *engine_self,
                                  size_t rank, size_t size, uint64_t timeout_ms,
                                  tarn__comm_messages **out) {
  tarn__comm_engine *e = tarn__host_alloc(sizeof *e);
  if (e == NULL) return TARN_E_NOMEM;
  *e = (tarn__comm_engine){.ops = *ops,
                           .self = engine_self,
                           .generation = tarn__os_generation(),
                           .rank = rank,
                           .size = size,
                           .timeout_ms = timeout_ms};
  pthread_mutex_init(&e->lock, NULL);
  tarn_list_init(&e->all);
  tarn_list_init(&e->parcels);
  tarn__comm_messages *m = tarn__messages_make(e, 0, size);
  tarn_status status = m != NULL ? tarn__silence_begin(e) : TARN_E_NOMEM;
  if (status != TARN_OK) {
    if (m != NULL) (void)unmake(m);
    free_engine(e);
    return status;
  }
  m->rank = rank;
  for (size_t i = 0; i < size; i++)
    m->ranks[i] = i;
  *out = m;
  return TARN_OK;
}
