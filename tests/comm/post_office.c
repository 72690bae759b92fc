#include "post_office.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "awaited.h"
#include "support/run.h"
#include "support/threads.h"

typedef struct letter {
  struct letter *next;
  size_t from;
  size_t to;
  uint32_t tag;
  unsigned late;  // looks for it before it is there
  size_t size;
  unsigned char bytes[];
} letter;

typedef struct message {
  tarn_list node;  // among the open ones of all ranks
  awaited key;
  bool receives;
  void *data;
  size_t size;
} message;

typedef struct desk {
  size_t rank;
  size_t sent[POST_RANKS];
  size_t open;
  awaited *first;  // in the order in which they were posted
  bool abandoned;
} desk;

static struct {
  pthread_mutex_t lock;
  letter *first;
  letter **last;
  tarn_list open;  // messages, among them those that a failed job gave up
  post_job job;
  size_t desks;  // that were not destroyed
  size_t abandoned;
  size_t posted;
  size_t most_open;
  uint64_t chance;
} office = {.lock = PTHREAD_MUTEX_INITIALIZER, .chance = 1};

// --- messages ---------------------------------------------------------------

static void free_message(message *m) {
  tarn_list_del(&m->node);
  free(m);
}

// --- sending ---------------------------------------------------------------

static const post_fault *fault_of(const desk *d, size_t to, size_t number) {
  const post_fault *f = office.job.fault;
  bool meant =
      f != NULL && f->from == d->rank && (f->to == to || f->to == SIZE_MAX);
  if (!meant || number < f->number) return NULL;
  bool one = f->once || f->cuts || f->flips || f->refuses != TARN_OK;
  return number == f->number || !one ? f : NULL;
}

static tarn_status send(desk *d, size_t to, uint32_t tag, const void *data,
                        size_t size) {
  const post_fault *f = fault_of(d, to, d->sent[to]++);
  if (f != NULL && f->refuses != TARN_OK) return f->refuses;
  if (f != NULL && !f->cuts && !f->flips) return TARN_OK;
  if (f != NULL && f->cuts) size--;
  letter *l = malloc(sizeof *l + size);
  if (l == NULL) abort();
  *l = (letter){.from = d->rank, .to = to, .tag = tag, .size = size};
  if (office.job.late > 0) {
    l->late = (unsigned)(next_random(&office.chance) % (office.job.late + 1));
  }
  memcpy(l->bytes, data, size);
  if (f != NULL && f->flips) l->bytes[size / 2] ^= 8;
  *office.last = l;
  office.last = &l->next;
  return TARN_OK;
}

static tarn_status post(void *self, tarn_comm_way way, size_t rank,
                        uint32_t tag, void *data, size_t size,
                        void **out_message) {
  desk *d = self;
  tarn_status status = TARN_OK;
  message *m = malloc(sizeof *m);
  if (m == NULL) abort();
  expect(size > 0 && tag < TARN_COMM_TAGS);
  *m = (message){.receives = way == TARN_COMM_RECEIVE,
                 .key = {.rank = rank, .tag = tag},
                 .data = data,
                 .size = size};
  pthread_mutex_lock(&office.lock);
  if (!m->receives) status = send(d, rank, tag, data, size);
  if (m->receives) awaited_add(&d->first, &m->key);
  office.posted++;
  d->open += status == TARN_OK ? 1 : 0;
  if (d->open > office.most_open) office.most_open = d->open;
  if (status == TARN_OK) tarn_list_add_tail(&office.open, &m->node);
  pthread_mutex_unlock(&office.lock);
  if (status == TARN_OK) {
    *out_message = m;
  } else {
    free(m);
  }
  return status;
}

// --- receiving -------------------------------------------------------------

static letter *take_letter(const desk *d, const message *m) {
  for (letter **at = &office.first; *at != NULL; at = &(*at)->next) {
    letter *l = *at;
    bool fits = l->to == d->rank && l->tag == m->key.tag &&
                (m->key.rank == TARN_COMM_ANY || m->key.rank == l->from);
    if (!fits) continue;
    if (l->late > 0) {
      l->late--;
      return NULL;
    }
    *at = l->next;
    if (l->next == NULL) office.last = at;
    return l;
  }
  return NULL;
}

// Whether it is done.
static bool look(desk *d, const message *m, tarn_status *status) {
  if (!m->receives) return true;
  if (!awaited_is_first(d->first, &m->key)) return false;
  letter *l = take_letter(d, m);
  if (l == NULL) return false;
  awaited_remove(&d->first, &m->key);
  if (l->size == m->size) {
    memcpy(m->data, l->bytes, l->size);
  } else {
    *status = TARN_E_CORRUPT;
  }
  free(l);
  return true;
}

static tarn_status test(void *self, void **messages, size_t count) {
  desk *d = self;
  tarn_status status = TARN_OK;
  if (office.job.look_us > 0) usleep(office.job.look_us);
  pthread_mutex_lock(&office.lock);
  for (size_t i = 0; i < count; i++) {
    if (messages[i] == NULL || !look(d, messages[i], &status)) continue;
    free_message(messages[i]);
    messages[i] = NULL;
    d->open--;
  }
  pthread_mutex_unlock(&office.lock);
  return status;
}

static bool cancel(void *self, void *given) {
  desk *d = self;
  expect(((message *)given)->receives);
  pthread_mutex_lock(&office.lock);
  awaited_remove(&d->first, &((message *)given)->key);
  d->open--;
  free_message(given);
  pthread_mutex_unlock(&office.lock);
  return true;
}

static void abandon(void *self) {
  desk *d = self;
  expect(!d->abandoned);
  d->abandoned = true;
}

static void describe(void *self, char *out, size_t out_size) {
  (void)self;
  snprintf(out, out_size, "the post");
}

static void destroy(void *self) {
  desk *d = self;
  pthread_mutex_lock(&office.lock);
  expect(d->open == 0 || d->abandoned);
  office.desks--;
  office.abandoned += d->abandoned ? 1 : 0;
  pthread_mutex_unlock(&office.lock);
  free(d);
}

static const tarn_comm_ops ops = {.struct_size = sizeof ops,
                                  .name = "post",
                                  .destroy = destroy,
                                  .post = post,
                                  .test = test,
                                  .cancel = cancel,
                                  .abandon = abandon,
                                  .describe = describe};

// --- a job -----------------------------------------------------------------

static void *work(void *number) {
  tarn_comm *comm = NULL;
  desk *d = calloc(1, sizeof *d);
  if (d == NULL) abort();
  d->rank = (size_t)(uintptr_t)number - 1;
  uint64_t ms = office.job.timeout_ms;
  tarn_comm_ops own = ops;
  own.flags = office.job.flags;
  expect(tarn_comm_create(&own, d, d->rank, office.job.ranks,
                          ms != 0 ? ms : 20000, &comm) == TARN_OK);
  office.job.run(comm, office.job.context);
  expect(tarn_comm_destroy(comm) == TARN_OK);
  return NULL;
}

// What was sent and nobody took, and what a failed job gave up.
static void clear_up(void) {
  while (office.first != NULL) {
    letter *l = office.first;
    office.first = l->next;
    free(l);
  }
  tarn_list *next = office.open.next;
  while (next != &office.open) {
    message *m = tarn_list_entry(next, message, node);
    next = next->next;
    free(m);
  }
}

void post_run(const post_job *job, bool abandons) {
  office.job = *job;
  tarn_list_init(&office.open);
  office.last = &office.first;
  office.desks = job->ranks;
  office.abandoned = office.posted = office.most_open = 0;
  run_threads(work, job->ranks);
  assert_as_expected();
  ck_assert_uint_eq(office.desks, 0);
  ck_assert(abandons == (office.abandoned > 0));
  clear_up();
}

size_t post_count(void) {
  return office.posted;
}

size_t post_most_open(void) {
  return office.most_open;
}
