// Collectives out of messages.
//
//   broadcast   down a binomial tree, a piece at a time
//   allgather   blocks of 1 rank from r + 1, r + 2 and r + 3, then of 4 ranks
//               from r + 4, r + 8 and r + 12, of 16 ...
//   alltoallv   with rank r + i and r - i, several i at a time
//
// All sizes are known to both ends: the header exchange of the room has
// compared them.
#include <string.h>

#include "base/os.h"
#include "comm/comm.h"
#include "comm/messages.h"

enum {
  PARTNERS = 16,        // of an alltoallv at a time
  MOST = 2 * PARTNERS,  // messages under way
  STEP = 4,             // by which the blocks of an allgather grow
};
static const size_t PIECE = (size_t)1 << 20;     // of a broadcast
static const size_t LARGEST = (size_t)16 << 20;  // bytes of a message

// Messages that are waited for together.
typedef struct batch {
  tarn__comm_messages *m;
  size_t count;
  void *messages[MOST];
  size_t partners[MOST];
  bool receives[MOST];
} batch;

// --- batches ---------------------------------------------------------------

// The first message that is not done, or |count|.
static size_t find_open(const batch *b) {
  size_t i = 0;
  while (i < b->count && b->messages[i] == NULL)
    i++;
  return i;
}

// Gives up what was posted, whose data may have to stay, and the engine with
// it: the others do not know how far this rank has come. Returns what to tell.
static tarn_status give_up(batch *b, tarn_status status) {
  for (size_t i = 0; i < b->count; i++)
    (void)tarn__messages_drop(b->m, b->receives[i], &b->messages[i]);
  b->count = 0;
  return tarn__messages_give_up(b->m, status, false);
}

static tarn_status await_all(batch *b) {
  tarn__comm_patience patience = tarn__messages_patience(b->m);
  tarn_status status = TARN_OK;
  for (;;) {
    status = tarn__messages_test(b->m, b->messages, b->count);
    size_t open = find_open(b);
    if (status != TARN_OK || open == b->count) break;
    status = tarn__messages_idle(b->m, &patience, b->partners[open]);
    if (status != TARN_OK) break;
  }
  if (status != TARN_OK) return give_up(b, status);
  tarn__messages_done(b->m);
  b->count = 0;
  return TARN_OK;
}

// Up to LARGEST bytes to or from |rank|.
static tarn_status post(batch *b, tarn_comm_way way, size_t rank, void *data,
                        size_t size) {
  size_t i = b->count;
  if (size == 0) return TARN_OK;
  b->partners[i] = rank;
  b->receives[i] = way == TARN_COMM_RECEIVE;
  TARN__TRY(tarn__messages_post(b->m, way, rank, TARN__TOPIC_DATA, data, size,
                                &b->messages[i]));
  b->count++;
  return TARN_OK;
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
  tarn__watch_begin(m);
  for (size_t done = 0; done < size; done += PIECE) {
    size_t part = tarn__lesser(size - done, PIECE);
    TARN__TRY(pass_on(&b, root, at, (unsigned char *)data + done, part));
  }
  tarn__watch_end(m);
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

// What a rank has from one rank in a step, and another rank from it.
typedef struct trade {
  size_t from;
  size_t to;
  blocks in;
  blocks out;
  size_t received;  // bytes
  size_t sent;
} trade;

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

static bool is_done(const trade *t) {
  return t->sent == t->out.count * t->out.size &&
         t->received == t->in.count * t->in.size;
}

// Something that need not wait for others, once.
static void work_meanwhile(tarn__comm_messages *m) {
  void (*work)(void *) = m->meanwhile;
  m->meanwhile = NULL;
  if (work != NULL) work(m->meanwhile_of);
}

// Several messages each way at a time.
static tarn_status pass_blocks(batch *b, trade *trades, size_t count) {
  size_t open = 0;
  do {
    tarn_status status = TARN_OK;
    for (size_t i = 0; status == TARN_OK && i < PARTNERS; i++) {
      trade *t = &trades[i % count];
      status = post_blocks(b, TARN_COMM_RECEIVE, t->from, &t->in, &t->received);
      if (status != TARN_OK) break;
      status = post_blocks(b, TARN_COMM_SEND, t->to, &t->out, &t->sent);
    }
    if (status == TARN_OK) work_meanwhile(b->m);
    TARN__TRY(finish(b, status));
    open = 0;
    for (size_t i = 0; i < count; i++)
      open += is_done(&trades[i]) ? 0 : 1;
  } while (open > 0);
  return TARN_OK;
}

// |have| blocks, or what there is, with the ranks |away| behind and before.
static trade trade_of(const tarn__comm_messages *m, void *out, size_t size,
                      size_t have, size_t away) {
  size_t count = tarn__lesser(have, m->size - away);
  size_t behind = (m->rank + away) % m->size;
  return (trade){.from = behind,
                 .to = (m->rank + m->size - away) % m->size,
                 .in = {out, size, behind, count},
                 .out = {out, size, m->rank, count}};
}

static tarn_status allgather(void *self, const void *data, size_t size,
                             void *out) {
  tarn__comm_messages *m = self;
  batch b = {.m = m};
  trade trades[STEP - 1];
  unsigned char *own = (unsigned char *)out + m->rank * size;
  if (own != data) memmove(own, data, size);
  tarn__watch_begin(m);
  for (size_t have = 1; have < m->size; have *= STEP) {
    size_t count = 0;
    for (size_t i = 1; i < STEP && i * have < m->size; i++)
      trades[count++] = trade_of(m, out, size, have, i * have);
    TARN__TRY(pass_blocks(&b, trades, count));
  }
  tarn__watch_end(m);
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
  tarn__watch_begin(m);
  for (size_t i = 1; i < m->size; i += PARTNERS) {
    TARN__TRY(exchange(&b, i, tarn__lesser(i + PARTNERS, m->size), &out, &in));
  }
  tarn__watch_end(m);
  return TARN_OK;
}

// --- groups ----------------------------------------------------------------

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

// What a rank proposes that lets another thread of its own go first.
static const uint32_t PASSES = UINT32_MAX;

// The communicators of a rank that split at the same time propose one after the
// other: first the one with the lowest context, of which all ranks think alike.
// So none of them is in the way of another for good, and what the ranks agree
// on is free at all of them.
static uint32_t propose_context(tarn__comm_messages *m) {
  tarn__comm_engine *e = m->engine;
  const tarn_list *node = NULL;
  pthread_mutex_lock(&e->lock);
  m->splits = true;
  bool may = e->proposes == NULL;
  tarn_list_for_each (node, &e->all) {
    const tarn__comm_messages *other = tarn_list_entry(
        (tarn_list *)(uintptr_t)node, tarn__comm_messages, node);
    may = may && !(other->splits && other->context < m->context);
  }
  if (may) e->proposes = m;
  uint32_t next = may ? e->contexts + 1 : PASSES;
  pthread_mutex_unlock(&e->lock);
  return next;
}

// |m| has proposed, and the ranks agree on |context|, or on none: PASSES.
static void take_context(tarn__comm_messages *m, uint32_t context) {
  tarn__comm_engine *e = m->engine;
  pthread_mutex_lock(&e->lock);
  if (e->proposes == m) e->proposes = NULL;
  if (context < TARN__CONTEXTS) e->contexts = context;
  m->splits = context == PASSES;
  pthread_mutex_unlock(&e->lock);
}

// The ranks agree on a context: the most that any proposes, unless one passes.
// Groups of one split may have the same, and no rank in common.
//
// A rank that proposes waits only for ranks that are here as well: a header
// exchange came before. So no order in which ranks come here can stop them.
static tarn_status agree_on_context(tarn__comm_messages *m, const size_t *ranks,
                                    size_t size, uint32_t *out) {
  do {
    *out = propose_context(m);
    tarn_status status = find_most(m, ranks, size, out);
    take_context(m, status == TARN_OK ? *out : TARN__CONTEXTS);
    TARN__TRY(status);
    if (*out == PASSES) tarn__os_yield();
  } while (*out == PASSES);
  if (*out < TARN__CONTEXTS) return TARN_OK;
  return tarn__fail(TARN_FULL, "tarn_comm_split: %d were split off before",
                    TARN__CONTEXTS - 1);
}

static tarn_status split(void *self, const size_t *ranks, size_t size,
                         const tarn_comm_ops **out_ops, void **out_self) {
  tarn__comm_messages *m = self;
  uint32_t context = 0;
  m->begun++;  // as if it were counted: a rank that is in no group does not
  tarn_status status = agree_on_context(m, ranks, size, &context);
  m->begun--;
  if (status != TARN_OK) return status;
  tarn__comm_messages *group = tarn__messages_make(m->engine, context, size);
  if (group == NULL) return TARN_E_NOMEM;
  group->rank = tarn__comm_index_of(ranks, m->rank);
  for (size_t i = 0; i < size; i++)
    group->ranks[i] = m->ranks[ranks[i]];
  *out_ops = &tarn__message_ops;
  *out_self = group;
  return TARN_OK;
}

// --- the operations --------------------------------------------------------

static tarn_status check(void *self) {
  return tarn__messages_check(self);
}

static void destroy(void *self) {
  tarn__messages_destroy(self);
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
