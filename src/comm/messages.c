// Collectives out of messages.
//
//   broadcast   down a binomial tree, a piece at a time
//   allgather   blocks of 1, 2, 4 ... ranks, from rank r + 1, r + 2, r + 4 ...
//   alltoallv   with rank r + i and r - i, several i at a time
//
// All sizes are known to both ends: the header exchange of the room has
// compared them.
#include "comm/messages.h"

#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "comm/comm.h"

enum {
  PARTNERS = 16,        // of an alltoallv at a time
  MOST = 2 * PARTNERS,  // messages under way
};
static const size_t PIECE = (size_t)1 << 20;     // of a broadcast
static const size_t LARGEST = (size_t)16 << 20;  // bytes of a message

// Messages that are waited for together.
typedef struct batch {
  tarn__comm_messages *m;
  size_t count;
  void *messages[MOST];
  size_t partners[MOST];  // in the numbers of the engine
  bool receives[MOST];
} batch;

// --- waiting ---------------------------------------------------------------

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

// |status|, unless the job cannot go on, or the engine has failed. The engine
// is locked.
static tarn_status tell_end(const tarn__comm_messages *m, tarn_status status) {
  const tarn__comm_notice *verdict = &m->engine->verdict;
  if (verdict->kind == 0) {
    tarn_status failure = tarn__failure_tell(&m->engine->failure);
    return failure != TARN_OK ? failure : status;
  }
  size_t rank = number_of(m, verdict->about);
  const char *of = rank < m->size ? "" : " of the communicator it comes from";
  if (rank == m->size) rank = verdict->about;
  if (verdict->why == TARN__MISSED) {
    return tarn__fail(TARN_E_TIMEOUT,
                      "comm: rank %zu%s has waited %llu ms for ranks that wait "
                      "for each other: a message was lost",
                      rank, of, (unsigned long long)verdict->ms);
  }
  return tarn__fail(TARN_E_TIMEOUT,
                    "comm: rank %zu%s did not arrive within %llu ms", rank, of,
                    (unsigned long long)verdict->ms);
}

// The first message that is not done, or |count|.
static size_t find_open(const batch *b) {
  size_t i = 0;
  while (i < b->count && b->messages[i] == NULL)
    i++;
  return i;
}

// Makes progress, and says what this rank waits for. The engine is locked.
static tarn_status progress(batch *b, size_t *out_open) {
  tarn__comm_engine *e = b->m->engine;
  TARN__TRY(tell_end(b->m, TARN_OK));
  TARN__TRY(tarn__engine_test(e, b->messages, b->count));
  *out_open = find_open(b);
  b->m->waits_for = *out_open < b->count ? b->partners[*out_open] : SIZE_MAX;
  return tarn__silence_listen(e);
}

// Looks until all are done, the last question is answered if |for_answer|, or
// the time is over.
static tarn_status look_until(batch *b, tarn__comm_wait *wait,
                              bool for_answer) {
  tarn__comm_messages *m = b->m;
  for (unsigned turn = 0;; turn++) {
    size_t open = 0;
    uint64_t left = tarn__wait_left(wait);
    lock(m->engine);
    tarn_status status = progress(b, &open);
    bool answered = for_answer && m->answered == m->asked;
    unlock(m->engine);
    if (status != TARN_OK || open == b->count || answered || left == 0) {
      return status;
    }
    tarn__os_back_off(turn);
  }
}

static tarn_status ask(batch *b, size_t rank, tarn__comm_wait *wait) {
  lock(b->m->engine);
  tarn_status status = tarn__silence_ask(b->m, rank);
  unlock(b->m->engine);
  return status == TARN_OK ? look_until(b, wait, true) : status;
}

// Asks |*rank|, and whom it names, until one does not answer, or is not in this
// communicator's collective; or they wait for each other, this rank among them
// or not. TARN_PENDING: then |*rank| and |*why| say what to tell; TARN_OK: all
// came.
static tarn_status find_silent(batch *b, size_t *rank,
                               tarn__comm_silence *why) {
  tarn__comm_messages *m = b->m;
  tarn__comm_engine *e = m->engine;
  uint64_t patience = e->timeout_ms / 10;
  tarn__comm_wait wait = tarn__wait_begin(patience > 20 ? patience : 20);
  *rank = b->partners[find_open(b)];
  *why = TARN__SILENT;
  for (size_t hops = 0; hops < e->size && *rank != e->rank; hops++) {
    TARN__TRY(ask(b, *rank, &wait));
    if (find_open(b) == b->count) return TARN_OK;
    if (m->answered != m->asked || m->answer >= e->size) return TARN_PENDING;
    *rank = m->answer;
  }
  *rank = e->rank;
  *why = TARN__MISSED;
  return TARN_PENDING;
}

// The time is over. TARN_OK: all came.
static tarn_status ask_around(batch *b) {
  tarn__comm_engine *e = b->m->engine;
  size_t rank = 0;
  tarn__comm_silence why = TARN__SILENT;
  tarn_status status = find_silent(b, &rank, &why);
  if (status != TARN_PENDING) return status;
  lock(e);
  tarn__silence_tell(e, rank, why);
  unlock(e);
  return TARN_E_TIMEOUT;
}

// Gives up what was posted, whose data may have to stay, and the engine with
// it: the others do not know how far this rank has come. Returns what to tell.
static tarn_status give_up(batch *b, tarn_status status) {
  tarn__comm_engine *e = b->m->engine;
  lock(e);
  if (e->verdict.kind == 0) tarn__failure_note(&e->failure, status);
  for (size_t i = 0; i < b->count; i++) {
    if (b->messages[i] == NULL) continue;
    bool is_free = b->receives[i] && e->ops.cancel(e->self, b->messages[i]);
    e->given_up = e->given_up || !is_free;
  }
  b->m->waits_for = SIZE_MAX;
  b->count = 0;
  if (!e->abandoned && e->ops.abandon != NULL) e->ops.abandon(e->self);
  e->abandoned = true;
  status = tell_end(b->m, status);
  unlock(e);
  return status;
}

static tarn_status await_all(batch *b) {
  tarn__comm_wait wait = tarn__wait_begin(b->m->engine->timeout_ms);
  tarn_status status = look_until(b, &wait, false);
  if (status == TARN_OK && find_open(b) < b->count) status = ask_around(b);
  if (status != TARN_OK) return give_up(b, status);
  b->count = 0;
  return TARN_OK;
}

// --- posting ---------------------------------------------------------------

// Up to LARGEST bytes to or from |rank| of the communicator.
static tarn_status post(batch *b, tarn_comm_way way, size_t rank, void *data,
                        size_t size) {
  tarn__comm_engine *e = b->m->engine;
  uint32_t tag = b->m->context << TARN__TAG_BITS | TARN__TAG_DATA;
  size_t partner = b->m->ranks[rank];
  if (size == 0) return TARN_OK;
  b->messages[b->count] = NULL;
  b->partners[b->count] = partner;
  b->receives[b->count] = way == TARN_COMM_RECEIVE;
  lock(e);
  tarn_status status = tell_end(b->m, TARN_OK);
  if (status == TARN_OK) {
    status = tarn__engine_post(e, way, partner, tag, data, size,
                               &b->messages[b->count]);
  }
  unlock(e);
  if (status == TARN_OK) b->count++;
  return status;
}

// As many bytes as a message has, beginning with |*done| of |size|.
static tarn_status post_next(batch *b, tarn_comm_way way, size_t rank,
                             const void *data, size_t size, size_t *done) {
  size_t part = tarn__lesser(size - *done, LARGEST);
  unsigned char *from = (unsigned char *)(uintptr_t)data + *done;
  *done += part;
  return post(b, way, rank, from, part);
}

// Waits for what was posted, of which |posted| is the result.
static tarn_status finish(batch *b, tarn_status posted) {
  return posted == TARN_OK ? await_all(b) : give_up(b, posted);
}

// --- broadcast -------------------------------------------------------------

// Distances in the tree count from the root: the parent of |at| is |at| without
// its lowest bit, its children are |at| with one lower bit more.
static tarn_status pass_on(batch *b, size_t root, size_t at, void *data,
                           size_t size) {
  const tarn__comm_messages *m = b->m;
  size_t lowest = at != 0 ? at & -at : m->size;
  tarn_status status = TARN_OK;
  if (at != 0) {
    status = post(b, TARN_COMM_RECEIVE, (root + (at & (at - 1))) % m->size,
                  data, size);
    TARN__TRY(finish(b, status));
  }
  for (size_t bit = 1; status == TARN_OK && bit < lowest; bit *= 2) {
    if (at + bit >= m->size) break;
    status = post(b, TARN_COMM_SEND, (root + at + bit) % m->size, data, size);
  }
  return finish(b, status);
}

static tarn_status broadcast(void *self, size_t root, void *data, size_t size) {
  tarn__comm_messages *m = self;
  batch b = {.m = m};
  size_t at = (m->rank + m->size - root) % m->size;
  for (size_t done = 0; done < size; done += PIECE) {
    size_t part = tarn__lesser(size - done, PIECE);
    TARN__TRY(pass_on(&b, root, at, (unsigned char *)data + done, part));
  }
  return TARN_OK;
}

// --- allgather -------------------------------------------------------------

// |count| blocks that begin with that of rank |first|, in the order of ranks,
// around the end.
typedef struct blocks {
  unsigned char *out;
  size_t size;  // of a block
  size_t first;
  size_t count;
} blocks;

// The next bytes of |part|, beginning with |*done|: as many as a message has,
// or up to the last rank's.
static tarn_status post_blocks(batch *b, tarn_comm_way way, size_t rank,
                               const blocks *part, size_t *done) {
  size_t all = b->m->size * part->size;
  size_t at = (part->first * part->size + *done) % all;
  size_t left = part->count * part->size - *done;
  size_t run = tarn__lesser(left, tarn__lesser(all - at, LARGEST));
  *done += run;
  return post(b, way, rank, part->out + at, run);
}

// Several messages each way at a time, of |in| from one rank and of |out| to
// another.
static tarn_status pass_blocks(batch *b, size_t from, const blocks *in,
                               size_t to, const blocks *out) {
  size_t sent = 0;
  size_t received = 0;
  do {
    tarn_status status = TARN_OK;
    for (size_t i = 0; status == TARN_OK && i < PARTNERS; i++) {
      status = post_blocks(b, TARN_COMM_RECEIVE, from, in, &received);
      if (status != TARN_OK) break;
      status = post_blocks(b, TARN_COMM_SEND, to, out, &sent);
    }
    TARN__TRY(finish(b, status));
  } while (sent < out->count * out->size || received < in->count * in->size);
  return TARN_OK;
}

static tarn_status allgather(void *self, const void *data, size_t size,
                             void *out) {
  tarn__comm_messages *m = self;
  batch b = {.m = m};
  unsigned char *own = (unsigned char *)out + m->rank * size;
  if (own != data) memmove(own, data, size);
  for (size_t have = 1; have < m->size; have *= 2) {
    size_t count = tarn__lesser(have, m->size - have);
    size_t before = (m->rank + m->size - have) % m->size;
    size_t behind = (m->rank + have) % m->size;
    const blocks ours = {out, size, m->rank, count};
    const blocks theirs = {out, size, behind, count};
    TARN__TRY(pass_blocks(&b, behind, &theirs, before, &ours));
  }
  return TARN_OK;
}

// --- alltoallv -------------------------------------------------------------

// One direction: bytes for each rank.
typedef struct side {
  const void *bytes;
  const size_t *sizes;
  const size_t *offsets;
} side;

static tarn_status post_side(batch *b, tarn_comm_way way, size_t rank,
                             const side *s, size_t *done) {
  if (*done == s->sizes[rank]) return TARN_OK;
  const unsigned char *data = (const unsigned char *)s->bytes;
  return post_next(b, way, rank, data + s->offsets[rank], s->sizes[rank], done);
}

// With the ranks |first| to |end| - 1 away, a message each way at a time.
static tarn_status exchange(batch *b, size_t first, size_t end, const side *out,
                            const side *in) {
  const tarn__comm_messages *m = b->m;
  size_t sent[PARTNERS] = {0};
  size_t received[PARTNERS] = {0};
  do {
    tarn_status status = TARN_OK;
    for (size_t i = first; status == TARN_OK && i < end; i++) {
      size_t from = (m->rank + m->size - i) % m->size;
      size_t to = (m->rank + i) % m->size;
      status = post_side(b, TARN_COMM_RECEIVE, from, in, &received[i - first]);
      if (status != TARN_OK) break;
      status = post_side(b, TARN_COMM_SEND, to, out, &sent[i - first]);
    }
    if (status == TARN_OK && b->count == 0) return TARN_OK;
    TARN__TRY(finish(b, status));
  } while (true);
}

static tarn_status alltoallv(void *self, const void *send,
                             const size_t *send_sizes,
                             const size_t *send_offsets, void *receive,
                             const size_t *receive_sizes,
                             const size_t *receive_offsets) {
  tarn__comm_messages *m = self;
  batch b = {.m = m};
  const side out = {send, send_sizes, send_offsets};
  const side in = {receive, receive_sizes, receive_offsets};
  size_t own = send_sizes[m->rank];
  if (own != 0) {
    memmove((unsigned char *)receive + receive_offsets[m->rank],
            (const unsigned char *)send + send_offsets[m->rank], own);
  }
  for (size_t i = 1; i < m->size; i += PARTNERS) {
    TARN__TRY(exchange(&b, i, tarn__lesser(i + PARTNERS, m->size), &out, &in));
  }
  return TARN_OK;
}

// --- coming and going ------------------------------------------------------

static size_t size_for(size_t ranks) {
  return sizeof(tarn__comm_messages) + ranks * sizeof(size_t);
}

static tarn__comm_messages *make(tarn__comm_engine *e, uint32_t context,
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

// A child of fork is alone, and its parent may have held the lock.
static void destroy(void *self) {
  tarn__comm_messages *m = self;
  tarn__comm_engine *e = m->engine;
  bool is_child = e->generation != tarn__os_generation();
  if (is_child) pthread_mutex_init(&e->lock, NULL);
  if (!unmake(m)) return;
  bool is_free = is_child || tarn__silence_end(e);
  e->ops.destroy(e->self);
  if (is_free) free_engine(e);
}

// The most that any of |ranks| has.
static tarn_status find_most(tarn__comm_messages *m, const size_t *ranks,
                             size_t size, uint32_t *io_most) {
  batch b = {.m = m};
  size_t at = tarn__comm_index_of(ranks, m->rank);
  for (size_t far = 1; far < size; far *= 2) {
    uint32_t own = *io_most;
    uint32_t theirs = 0;
    tarn_status status =
        post(&b, TARN_COMM_RECEIVE, ranks[(at + size - far) % size], &theirs,
             sizeof theirs);
    if (status == TARN_OK) {
      status =
          post(&b, TARN_COMM_SEND, ranks[(at + far) % size], &own, sizeof own);
    }
    TARN__TRY(finish(&b, status));
    if (theirs > *io_most) *io_most = theirs;
  }
  return TARN_OK;
}

// One that this rank has not given yet.
static uint32_t reserve_context(tarn__comm_engine *e) {
  lock(e);
  uint32_t own = ++e->contexts;
  unlock(e);
  return own;
}

// Whether nobody has |context| here, for which |own| was reserved.
static bool take_context(tarn__comm_engine *e, uint32_t context, uint32_t own) {
  lock(e);
  bool is_free = context == own || context > e->contexts;
  if (context > e->contexts) e->contexts = context;
  unlock(e);
  return is_free;
}

// The ranks agree on a context: the most that any proposes, unless another
// thread of one of them has given it meanwhile. Groups of one split may have
// the same, and no rank in common.
static tarn_status agree_on_context(tarn__comm_messages *m, const size_t *ranks,
                                    size_t size, uint32_t *out) {
  for (uint32_t is_taken = 1; is_taken != 0;) {
    uint32_t own = reserve_context(m->engine);
    *out = own;
    TARN__TRY(find_most(m, ranks, size, out));
    if (*out >= TARN__CONTEXTS) {
      return tarn__fail(TARN_FULL, "tarn_comm_split: %d were split off before",
                        TARN__CONTEXTS - 1);
    }
    is_taken = !take_context(m->engine, *out, own);
    TARN__TRY(find_most(m, ranks, size, &is_taken));
  }
  return TARN_OK;
}

static tarn_status split(void *self, const size_t *ranks, size_t size,
                         const tarn_comm_ops **out_ops, void **out_self) {
  tarn__comm_messages *m = self;
  uint32_t context = 0;
  TARN__TRY(agree_on_context(m, ranks, size, &context));
  tarn__comm_messages *group = make(m->engine, context, size);
  if (group == NULL) return TARN_E_NOMEM;
  group->rank = tarn__comm_index_of(ranks, m->rank);
  for (size_t i = 0; i < size; i++)
    group->ranks[i] = m->ranks[ranks[i]];
  *out_ops = &tarn__message_ops;
  *out_self = group;
  return TARN_OK;
}

static tarn_status check(void *self) {
  tarn__comm_messages *m = self;
  lock(m->engine);
  tarn_status status = tell_end(m, TARN_OK);
  if (status == TARN_OK) {
    status = tell_end(m, tarn__silence_listen(m->engine));
  }
  unlock(m->engine);
  return status;
}

const tarn_comm_ops tarn__message_ops = {
    .struct_size = sizeof tarn__message_ops,
    .name = "messages",
    .destroy = destroy,
    .broadcast = broadcast,
    .allgather = allgather,
    .alltoallv = alltoallv,
    .split = split,
    .check = check,
};

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
  tarn__comm_messages *m = make(e, 0, size);
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
