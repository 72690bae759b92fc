#include "post_office.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support/run.h"
#include "support/threads.h"

typedef struct letter {
  struct letter *next;
  size_t from;
  size_t to;
  uint32_t tag;
  size_t size;
  unsigned char bytes[];
} letter;

typedef struct message {
  bool receives;
  size_t rank;
  uint32_t tag;
  void *data;
  size_t size;
} message;

typedef struct desk {
  size_t rank;
  size_t sent[POST_RANKS];
  size_t open;
  bool abandoned;
} desk;

static struct {
  pthread_mutex_t lock;
  letter *first;
  letter **last;
  post_job job;
  size_t desks;  // that were not destroyed
  size_t abandoned;
  size_t posted;
  size_t most_open;
} office = {.lock = PTHREAD_MUTEX_INITIALIZER};

// --- sending ---------------------------------------------------------------

static const post_fault *fault_of(const desk *d, size_t to, size_t number) {
  const post_fault *f = office.job.fault;
  bool meant =
      f != NULL && f->from == d->rank && (f->to == to || f->to == SIZE_MAX);
  if (!meant || number < f->number) return NULL;
  bool one = f->once || f->cuts || f->refuses != TARN_OK;
  return number == f->number || !one ? f : NULL;
}

static tarn_status send(desk *d, size_t to, uint32_t tag, const void *data,
                        size_t size) {
  const post_fault *f = fault_of(d, to, d->sent[to]++);
  if (f != NULL && f->refuses != TARN_OK) return f->refuses;
  if (f != NULL && !f->cuts) return TARN_OK;
  if (f != NULL) size--;
  letter *l = malloc(sizeof *l + size);
  expect(l != NULL);
  *l = (letter){.from = d->rank, .to = to, .tag = tag, .size = size};
  memcpy(l->bytes, data, size);
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
  expect(m != NULL);
  expect(size > 0 && tag < TARN_COMM_TAGS);
  *m = (message){way == TARN_COMM_RECEIVE, rank, tag, data, size};
  pthread_mutex_lock(&office.lock);
  if (!m->receives) status = send(d, rank, tag, data, size);
  office.posted++;
  d->open += status == TARN_OK ? 1 : 0;
  if (d->open > office.most_open) office.most_open = d->open;
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
    bool fits = l->to == d->rank && l->tag == m->tag &&
                (m->rank == TARN_COMM_ANY || m->rank == l->from);
    if (!fits) continue;
    *at = l->next;
    if (l->next == NULL) office.last = at;
    return l;
  }
  return NULL;
}

// Whether it is done.
static bool look(const desk *d, const message *m, tarn_status *status) {
  if (!m->receives) return true;
  letter *l = take_letter(d, m);
  if (l == NULL) return false;
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
  pthread_mutex_lock(&office.lock);
  for (size_t i = 0; i < count; i++) {
    if (messages[i] == NULL || !look(d, messages[i], &status)) continue;
    free(messages[i]);
    messages[i] = NULL;
    d->open--;
  }
  pthread_mutex_unlock(&office.lock);
  return status;
}

static bool cancel(void *self, void *given) {
  desk *d = self;
  expect(((message *)given)->receives);
  d->open--;
  free(given);
  return true;
}

static void abandon(void *self) {
  desk *d = self;
  expect(!d->abandoned);
  d->abandoned = true;
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
                                  .abandon = abandon};

// --- a job -----------------------------------------------------------------

static void *work(void *number) {
  tarn_comm *comm = NULL;
  desk *d = calloc(1, sizeof *d);
  expect(d != NULL);
  d->rank = (size_t)(uintptr_t)number - 1;
  uint64_t ms = office.job.timeout_ms;
  expect(tarn_comm_create(&ops, d, d->rank, office.job.ranks,
                          ms != 0 ? ms : 20000, &comm) == TARN_OK);
  office.job.run(comm, office.job.context);
  expect(tarn_comm_destroy(comm) == TARN_OK);
  return NULL;
}

void post_run(const post_job *job, bool abandons) {
  office.job = *job;
  office.last = &office.first;
  office.desks = job->ranks;
  office.abandoned = office.posted = office.most_open = 0;
  run_threads(work, job->ranks);
  assert_as_expected();
  ck_assert_uint_eq(office.desks, 0);
  ck_assert(abandons == (office.abandoned > 0));
  while (office.first != NULL) {
    letter *l = office.first;
    office.first = l->next;
    free(l);
  }
}

size_t post_count(void) {
  return office.posted;
}

size_t post_most_open(void) {
  return office.most_open;
}
