#include "mail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "awaited.h"
#include "support/ranks.h"
#include "support/run.h"

typedef struct letter {
  size_t size;
  uint32_t tag;
  uint32_t unused;
  double due;
} letter;

typedef struct buffer {
  unsigned char *bytes;
  size_t size;
} buffer;

typedef struct message {
  awaited key;
  bool receives;
  void *data;
  size_t size;
} message;

typedef struct desk {
  size_t rank;
  buffer in[MAIL_RANKS];   // whole letters, and one in parts
  buffer out[MAIL_RANKS];  // what the socket does not take yet
  awaited *first;          // in the order in which they were posted
} desk;

static struct {
  size_t ranks;
  int ends[MAIL_RANKS][MAIL_RANKS];  // of the first with the second
  double delay[MAIL_RANKS][MAIL_RANKS];
} office;

// --- sockets ---------------------------------------------------------------

void mail_open(size_t ranks) {
  office.ranks = ranks;
  for (size_t i = 0; i < ranks; i++) {
    for (size_t k = i + 1; k < ranks; k++) {
      int ends[2];
      ck_assert_int_eq(
          socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
      office.ends[i][k] = ends[0];
      office.ends[k][i] = ends[1];
    }
  }
}

void mail_close(void) {
  for (size_t i = 0; i < office.ranks; i++) {
    for (size_t k = 0; k < office.ranks; k++)
      if (i != k) close(office.ends[i][k]);
  }
}

void mail_delay(size_t from, size_t to, unsigned ms) {
  office.delay[from][to] = ms * 1e-3;
}

// --- bytes out and in ------------------------------------------------------

static void add(buffer *b, const void *bytes, size_t size) {
  b->bytes = realloc(b->bytes, b->size + size);
  require(b->bytes != NULL);
  memcpy(b->bytes + b->size, bytes, size);
  b->size += size;
}

static void drop(buffer *b, size_t at, size_t size) {
  memmove(b->bytes + at, b->bytes + at + size, b->size - at - size);
  b->size -= size;
}

// What goes to a process that has ended is lost.
static void flush(int fd, buffer *b) {
  while (b->size > 0) {
    ssize_t sent = send(fd, b->bytes, b->size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) return;
    drop(b, 0, sent < 0 ? b->size : (size_t)sent);
  }
}

static void take_in(int fd, buffer *b) {
  static unsigned char bytes[1 << 16];
  ssize_t size = 0;
  while ((size = recv(fd, bytes, sizeof bytes, 0)) > 0)
    add(b, bytes, (size_t)size);
}

static void pump(desk *d) {
  for (size_t i = 0; i < office.ranks; i++) {
    if (i == d->rank) continue;
    flush(office.ends[d->rank][i], &d->out[i]);
    take_in(office.ends[d->rank][i], &d->in[i]);
  }
}

// --- messages --------------------------------------------------------------

static tarn_status post(void *self, tarn_comm_way way, size_t rank,
                        uint32_t tag, void *data, size_t size,
                        void **out_message) {
  desk *d = self;
  message *m = malloc(sizeof *m);
  require(m != NULL && size > 0 && tag < TARN_COMM_TAGS);
  *m = (message){{NULL, rank, tag}, way == TARN_COMM_RECEIVE, data, size};
  if (m->receives) awaited_add(&d->first, &m->key);
  if (!m->receives) {
    letter head = {.size = size,
                   .tag = tag,
                   .due = ranks_seconds() + office.delay[d->rank][rank]};
    add(&d->out[rank], &head, sizeof head);
    add(&d->out[rank], data, size);
  }
  pump(d);
  *out_message = m;
  return TARN_OK;
}

// Takes the first letter for |m| out of |b|.
static bool take_letter(buffer *b, const message *m, tarn_status *status) {
  for (size_t at = 0; at + sizeof(letter) <= b->size;) {
    letter head;
    memcpy(&head, b->bytes + at, sizeof head);
    size_t size = sizeof head + head.size;
    if (b->size - at < size || head.due > ranks_seconds()) return false;
    if (head.tag == m->key.tag) {
      if (head.size != m->size) *status = TARN_E_CORRUPT;
      if (head.size == m->size)
        memcpy(m->data, b->bytes + at + sizeof head, m->size);
      drop(b, at, size);
      return true;
    }
    at += size;
  }
  return false;
}

static bool is_done(desk *d, const message *m, tarn_status *status) {
  if (!m->receives) return true;
  for (size_t i = 0; i < office.ranks && awaited_is_first(d->first, &m->key);
       i++) {
    bool fits = m->key.rank == i || m->key.rank == TARN_COMM_ANY;
    if (i == d->rank || !fits || !take_letter(&d->in[i], m, status)) continue;
    awaited_remove(&d->first, &m->key);
    return true;
  }
  return false;
}

static tarn_status test(void *self, void **messages, size_t count) {
  desk *d = self;
  tarn_status status = TARN_OK;
  pump(d);
  for (size_t i = 0; i < count; i++) {
    if (messages[i] == NULL || !is_done(d, messages[i], &status)) continue;
    free(messages[i]);
    messages[i] = NULL;
  }
  return status;
}

static bool cancel(void *self, void *given) {
  desk *d = self;
  const message *m = given;
  if (m->receives) awaited_remove(&d->first, &m->key);
  free(given);
  return true;
}

// In a child of fork too, where the letters are copies.
static void destroy(void *self) {
  desk *d = self;
  for (size_t i = 0; i < MAIL_RANKS; i++) {
    free(d->in[i].bytes);
    free(d->out[i].bytes);
  }
  free(d);
}

const tarn_comm_ops mail_ops = {.struct_size = sizeof mail_ops,
                                .name = "mail",
                                .destroy = destroy,
                                .post = post,
                                .test = test,
                                .cancel = cancel};

void *mail_desk(size_t rank) {
  desk *d = calloc(1, sizeof *d);
  require(d != NULL);
  d->rank = rank;
  return d;
}
