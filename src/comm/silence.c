// Which rank it is that does not come.
//
// A rank that has waited for too long may wait for one that waits itself. So it
// asks: that rank, the rank that this one waits for, and so on. A rank answers
// whenever it waits. The first that does not answer is silent; all ranks are
// told its number. If the questions come back, ranks wait for each other: then
// a message was lost, and nobody knows whose.
//
//   rank 0             rank 1                 rank 2
//   waits for 1        waits for 2            (stopped)
//   asks 1 ──────────► answers: for 2
//   asks 2 ──────────────────────────────────►
//   tells all: 2 is silent
#include <pthread.h>
#include <stddef.h>

#include "base/crc32c.h"
#include "base/hostmem.h"
#include "base/os.h"
#include "comm/messages.h"

// Engines whose messages may still be under way when their communicators are
// gone: they stay until the process ends.
static struct {
  pthread_mutex_t lock;
  tarn_list all;
} given_up = {PTHREAD_MUTEX_INITIALIZER, {&given_up.all, &given_up.all}};

// --- the engine ------------------------------------------------------------

static tarn_status say_failure(const tarn__comm_engine *e, const char *what,
                               tarn_status status) {
  if (status == TARN_OK) return TARN_OK;
  return tarn__fail(status, "comm: the engine '%s' cannot %s: %s", e->ops.name,
                    what, tarn_status_name(status));
}

tarn_status tarn__engine_post(tarn__comm_engine *e, tarn_comm_way way,
                              size_t rank, uint32_t tag, void *data,
                              size_t size, void **out_message) {
  return say_failure(
      e, "post a message",
      e->ops.post(e->self, way, rank, tag, data, size, out_message));
}

tarn_status tarn__engine_test(tarn__comm_engine *e, void **messages,
                              size_t count) {
  return say_failure(e, "pass messages on",
                     e->ops.test(e->self, messages, count));
}

// --- listening -------------------------------------------------------------

tarn_status tarn__silence_begin(tarn__comm_engine *e) {
  return tarn__engine_post(e, TARN_COMM_RECEIVE, TARN_COMM_ANY, TARN__TAG_NOTES,
                           &e->heard, sizeof e->heard, &e->listening);
}

// --- saying ----------------------------------------------------------------

static size_t find_free(const tarn__comm_engine *e) {
  size_t i = 0;
  while (i < TARN__NOTES && e->sending[i] != NULL)
    i++;
  return i;
}

static uint32_t sum_of(const tarn__comm_notice *note) {
  return tarn__crc32c(0, &note->kind,
                      sizeof *note - offsetof(tarn__comm_notice, kind));
}

// A note for which there is no room is not sent: so many are on their way only
// where they do not arrive.
static tarn_status say(tarn__comm_engine *e, size_t rank,
                       const tarn__comm_notice *note) {
  TARN__TRY(tarn__engine_test(e, e->sending, TARN__NOTES));
  size_t i = find_free(e);
  if (i == TARN__NOTES) return TARN_OK;
  e->sent[i] = *note;
  e->sent[i].sum = sum_of(note);
  e->sent_to[i] = rank;
  return tarn__engine_post(e, TARN_COMM_SEND, rank, TARN__TAG_NOTES,
                           &e->sent[i], sizeof e->sent[i], &e->sending[i]);
}

static tarn__comm_notice note_of(const tarn__comm_engine *e,
                                 tarn__comm_notice_kind kind) {
  return (tarn__comm_notice){.kind = (uint32_t)kind, .from = (uint32_t)e->rank};
}

tarn_status tarn__silence_ask(tarn__comm_messages *m, size_t rank) {
  tarn__comm_engine *e = m->engine;
  tarn__comm_notice note = note_of(e, TARN__NOTE_ASKS);
  m->asked = note.number = ++e->questions;
  note.context = m->context;
  return say(e, rank, &note);
}

// NULL: this rank has none of that context, any more.
static tarn__comm_messages *find(const tarn__comm_engine *e, uint32_t context) {
  const tarn_list *node = NULL;
  tarn_list_for_each (node, &e->all) {
    tarn__comm_messages *m = tarn_list_entry((tarn_list *)(uintptr_t)node,
                                             tarn__comm_messages, node);
    if (m->context == context) return m;
  }
  return NULL;
}

// A rank that has moved rows of late will tell itself if it waits for too long.
static uint32_t about(const tarn__comm_engine *e,
                      const tarn__comm_messages *m) {
  static const uint64_t MS = 1000000;
  bool moves = m->moved != 0 &&
               tarn__os_now_ns() - m->moved < tarn__silence_patience(e) * MS;
  return moves ? TARN__BUSY : (uint32_t)m->waits_for;
}

static tarn_status answer(tarn__comm_engine *e,
                          const tarn__comm_notice *asked) {
  const tarn__comm_messages *m = find(e, asked->context);
  tarn__comm_notice note = note_of(e, TARN__NOTE_ANSWERS);
  note.number = asked->number;
  note.context = asked->context;
  note.about = m != NULL ? about(e, m) : UINT32_MAX;
  return say(e, asked->from, &note);
}

// An answer to an earlier question came too late.
static void take_answer(tarn__comm_engine *e, const tarn__comm_notice *note) {
  tarn__comm_messages *m = find(e, note->context);
  if (m == NULL || note->number != m->asked) return;
  m->answered = note->number;
  m->answer = note->about == UINT32_MAX ? SIZE_MAX : note->about;
}

// But for those to |rank|.
static size_t count_open(const tarn__comm_engine *e, size_t rank) {
  size_t open = 0;
  for (size_t i = 0; i < TARN__NOTES; i++)
    open += e->sending[i] != NULL && e->sent_to[i] != rank ? 1 : 0;
  return open;
}

// Passes notes on until no more than |most| are under way to others than
// |rank|, or until |end|.
static tarn_status pass_on(tarn__comm_engine *e, size_t rank, size_t most,
                           uint64_t end) {
  static const uint64_t NAP_NS = 100000;
  for (;;) {
    TARN__TRY(e->ops.test(e->self, e->sending, TARN__NOTES));
    uint64_t now = tarn__os_now_ns();
    if (count_open(e, rank) <= most || now >= end) return TARN_OK;
    tarn__os_wait_until(now + NAP_NS);
  }
}

// A note that is done may still be with the engine, which passes it on while it
// is asked.
static void push_on(tarn__comm_engine *e) {
  enum { TURNS = 20 };
  static const uint64_t NAP_NS = 100000;
  for (int t = 0; t < TURNS; t++) {
    tarn__os_wait_until(tarn__os_now_ns() + NAP_NS);
    if (e->ops.test(e->self, e->sending, TARN__NOTES) != TARN_OK) return;
  }
}

void tarn__silence_decide(tarn__comm_engine *e, size_t rank,
                          tarn__comm_silence why, tarn_status status) {
  tarn__comm_notice note = note_of(e, TARN__NOTE_TELLS);
  note.about = (uint32_t)rank;
  note.why = (uint32_t)why;
  note.status = status;
  note.ms = e->timeout_ms;
  e->verdict = note;
}

// As many as there is room for at a time; the rest waits until some have gone.
void tarn__silence_tell(tarn__comm_engine *e) {
  static const uint64_t MS = 1000000;
  static const uint64_t MOST_MS = 2000;
  const tarn__comm_notice note = e->verdict;
  size_t lost = note.about;
  uint64_t ms = tarn__lesser(tarn__silence_patience(e) / 2, MOST_MS);
  uint64_t end = tarn__os_now_ns() + ms * MS;
  for (size_t i = 0; i < e->size; i++) {
    if (i == e->rank || i == lost) continue;
    if (pass_on(e, SIZE_MAX, TARN__NOTES - 1, end) != TARN_OK) return;
    if (say(e, i, &note) != TARN_OK) return;
  }
  // Who does not come may go on later.
  bool may_go_on = lost != e->rank && note.why != TARN__HAS_ENDED;
  if (may_go_on && say(e, lost, &note) != TARN_OK) return;
  if (pass_on(e, lost, 0, end) == TARN_OK) push_on(e);
}

// --- hearing ---------------------------------------------------------------

static tarn_status take_in(tarn__comm_engine *e) {
  const tarn__comm_notice note = e->heard;
  if (note.sum != sum_of(&note) || note.from >= e->size) {
    return tarn__fail(TARN_E_CORRUPT, "comm: a note of a rank is damaged");
  }
  switch (note.kind) {
    case TARN__NOTE_ASKS:
      return answer(e, &note);
    case TARN__NOTE_ANSWERS:
      take_answer(e, &note);
      return TARN_OK;
    case TARN__NOTE_TELLS:
      e->verdict = note;
      return TARN_E_TIMEOUT;
    default:
      return tarn__fail(TARN_E_CORRUPT, "comm: a note of rank %u is damaged",
                        (unsigned)note.from);
  }
}

tarn_status tarn__silence_listen(tarn__comm_engine *e) {
  for (;;) {
    TARN__TRY(tarn__engine_test(e, &e->listening, 1));
    if (e->listening != NULL) return TARN_OK;
    TARN__TRY(take_in(e));
    TARN__TRY(tarn__silence_begin(e));
  }
}

// --- the end ---------------------------------------------------------------

static void keep(tarn__comm_engine *e) {
  pthread_mutex_lock(&given_up.lock);
  tarn_list_add_tail(&given_up.all, &e->node);
  pthread_mutex_unlock(&given_up.lock);
}

bool tarn__silence_end(tarn__comm_engine *e) {
  bool is_free = !e->given_up;
  if (e->listening != NULL) {
    is_free = e->ops.cancel(e->self, e->listening) && is_free;
  }
  if (e->verdict.kind == 0 && e->failure.status == TARN_OK &&
      e->ops.test(e->self, e->sending, TARN__NOTES) != TARN_OK) {
    is_free = false;
  }
  for (size_t i = 0; i < TARN__NOTES; i++)
    is_free = is_free && e->sending[i] == NULL;
  if (!is_free) keep(e);
  return is_free;
}
