// Splitting: all ranks show color and key, each sees which group it is in, the
// groups are made side by side, and all agree on what came of it.
#include <assert.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "comm/comm.h"

typedef struct choice {
  int64_t color;
  int64_t key;
} choice;

static choice choice_of(const tarn_comm *comm, size_t rank) {
  choice shown;
  memcpy(&shown, comm->headers[rank].bytes, sizeof shown);
  return shown;
}

// Puts |rank| behind those of its key among the first |count| of |ranks|.
static void insert(const tarn_comm *comm, size_t *ranks, size_t count,
                   size_t rank) {
  int64_t key = choice_of(comm, rank).key;
  size_t at = count;
  while (at > 0 && choice_of(comm, ranks[at - 1]).key > key) {
    ranks[at] = ranks[at - 1];
    at--;
  }
  ranks[at] = rank;
}

// The ranks of |color|, in order; returns how many.
static size_t list_group(const tarn_comm *comm, int64_t color, size_t *ranks) {
  size_t count = 0;
  for (size_t rank = 0; rank < comm->size; rank++) {
    if (choice_of(comm, rank).color == color) {
      insert(comm, ranks, count++, rank);
    }
  }
  return count;
}

size_t tarn__comm_index_of(const size_t *ranks, size_t rank) {
  size_t i = 0;
  while (ranks[i] != rank)
    i++;
  return i;
}

static tarn_status make_group(tarn_comm *comm, const size_t *ranks, size_t size,
                              tarn_comm **out_group) {
  const tarn_comm_ops *ops = NULL;
  void *self = NULL;
  tarn_status status = tarn__comm_note(
      comm, comm->ops.split(comm->self, ranks, size, &ops, &self));
  if (status != TARN_OK) return status;
  status = tarn_comm_create(ops, self, tarn__comm_index_of(ranks, comm->rank),
                            size, comm->timeout_ms, out_group);
  if (status != TARN_OK) ops->destroy(self);
  return status;
}

// What all have shown stands on the headers until the next header exchange.
static tarn_status split(tarn_comm *comm, int64_t color, size_t *ranks,
                         tarn_comm **out_group) {
  tarn_status status = TARN_OK;
  if (color != TARN_COMM_NONE) {
    size_t size = list_group(comm, color, ranks);
    status = make_group(comm, ranks, size, out_group);
  }
  if (comm->broken.status != TARN_OK) return status;
  status = tarn__comm_exchange_headers(comm, TARN__SPLIT, status);
  if (status == TARN_OK) return TARN_OK;
  (void)tarn_comm_destroy(*out_group);
  *out_group = NULL;
  return status;
}

tarn_status tarn_comm_split(tarn_comm *comm, int64_t color, int64_t key,
                            tarn_comm **out_comm) {
  tarn_comm *group = NULL;
  if (out_comm != NULL) *out_comm = NULL;
  tarn_status status = tarn__comm_state(comm);
  if (status != TARN_OK) return status;
  size_t *ranks = tarn__host_array(comm->size, sizeof *ranks);
  if (ranks == NULL) status = TARN_E_NOMEM;
  if (out_comm == NULL) {
    status = tarn__fail(TARN_E_INVALID, "tarn_comm_split: NULL");
  }
  const choice own = {color, key};
  memcpy(comm->own.bytes, &own, sizeof own);
  status = tarn__comm_exchange_headers(comm, TARN__SPLIT, status);
  if (status == TARN_OK) {
    assert(ranks != NULL && out_comm != NULL);
    status = split(comm, color, ranks, &group);
  }
  tarn__host_free_array(ranks, comm->size, sizeof *ranks);
  if (out_comm != NULL) *out_comm = group;
  return status;
}
