// Communicators out of communicators: an exchange of what each rank chooses,
// then each group makes its own. The ranks of a machine, if they have a
// communicator for themselves, split that likewise, in the same order: what
// comes of it is the group where all of that are on one machine.
#include <assert.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "comm/comm.h"

// --- who is in a group -----------------------------------------------------

typedef struct choice {
  int64_t color;
  int64_t key;
} choice;

// The group of this rank.
typedef struct group {
  size_t size;    // 0: it is in none
  size_t *ranks;  // in order; as long as the communicator has ranks
  tarn_comm *comm;
  tarn__comm_near near;
} group;

static choice choice_of(const tarn_comm *comm, size_t rank) {
  choice shown;
  memcpy(&shown, comm->headers[rank].bytes, sizeof shown);
  return shown;
}

// Inserts |rank| after the ranks of the same key among those so far.
static void insert(const tarn_comm *comm, group *g, size_t rank) {
  int64_t key = choice_of(comm, rank).key;
  size_t at = g->size++;
  while (at > 0 && choice_of(comm, g->ranks[at - 1]).key > key) {
    g->ranks[at] = g->ranks[at - 1];
    at--;
  }
  g->ranks[at] = rank;
}

// The ranks of this rank's color. The choices of all ranks stay in the headers
// until the next exchange.
static void list_group(const tarn_comm *comm, choice own, group *g) {
  if (own.color == TARN_COMM_NONE) return;
  for (size_t rank = 0; rank < comm->size; rank++) {
    if (choice_of(comm, rank).color == own.color) insert(comm, g, rank);
  }
}

// --- the near part of a group ----------------------------------------------

static bool is_on_one_machine(const tarn_comm *comm, const group *g) {
  const size_t *machines = comm->near.machines;
  size_t i = 1;
  if (machines == NULL || g->size == 0) return false;
  while (i < g->size && machines[g->ranks[i]] == machines[g->ranks[0]])
    i++;
  return i == g->size;
}

// |machines|, with the numbers of the group, out of those of |comm|; |first|
// has a zero for each rank of |comm|.
static void renumber(const tarn_comm *comm, const group *g, size_t *first,
                     size_t *machines) {
  for (size_t i = 0; i < g->size; i++) {
    size_t *found = &first[comm->near.machines[g->ranks[i]]];
    if (*found == 0) *found = i + 1;
    machines[i] = *found - 1;
  }
}

static tarn_status list_near(const tarn_comm *comm, group *g) {
  size_t *machines = tarn__near_array(g->size);
  size_t *first = tarn__host_array(comm->size, sizeof *first);
  g->near.machines = machines;
  if (machines != NULL && first != NULL) {
    size_t own = tarn__comm_index_of(g->ranks, comm->rank);
    size_t *ranks = machines + g->size;
    g->near.ranks = ranks;
    renumber(comm, g, first, machines);
    for (size_t i = 0; i < g->size; i++) {
      if (machines[i] == machines[own]) *ranks++ = i;
    }
  }
  tarn__host_free_array(first, comm->size, sizeof *first);
  return g->near.ranks != NULL ? TARN_OK : TARN_E_NOMEM;
}

// Also at ranks in no group, and at one that has failed: the others of its
// machine would wait for it. Returns |status|, unless that is TARN_OK.
static tarn_status split_near(tarn_comm *comm, choice own, group *g,
                              tarn_status status) {
  tarn__failure failure = {0};
  tarn__failure_note(&failure, status);
  status = tarn_comm_split(comm->near.comm, own.color, own.key, &g->near.comm);
  tarn__failure_note(&failure, status);
  return tarn__failure_tell(&failure);
}

// --- the group -------------------------------------------------------------

static tarn_status make_group(tarn_comm *comm, group *g) {
  const tarn_comm_ops *ops = NULL;
  void *self = NULL;
  TARN__TRY(tarn__comm_note(
      comm, comm->ops.split(comm->self, g->ranks, g->size, &ops, &self)));
  tarn_status status =
      tarn_comm_create(ops, self, tarn__comm_index_of(g->ranks, comm->rank),
                       g->size, comm->timeout_ms, &g->comm);
  if (status == TARN_OK) g->comm->ops.name = comm->ops.name;
  if (status != TARN_OK) ops->destroy(self);
  return status;
}

static tarn_status make_parts(tarn_comm *comm, choice own, group *g) {
  tarn_status status = TARN_OK;
  bool is_apart = g->size != 0 && !is_on_one_machine(comm, g);
  if (is_apart) status = make_group(comm, g);
  if (comm->near.comm == NULL) return status;
  if (status == TARN_OK && is_apart) status = list_near(comm, g);
  return split_near(comm, own, g, status);
}

// All ranks have succeeded.
static tarn_comm *put_together(group *g) {
  tarn_comm *near = g->near.comm;
  if (g->comm == NULL) return near;
  if (near != NULL) tarn__near_attach(g->comm, &g->near);
  return g->comm;
}

static void undo(group *g) {
  (void)tarn_comm_destroy(g->comm);
  (void)tarn_comm_destroy(g->near.comm);
  tarn__near_free((size_t *)(uintptr_t)g->near.machines, g->size);
}

static tarn_status split(tarn_comm *comm, choice own, group *g) {
  list_group(comm, own, g);
  tarn_status status = make_parts(comm, own, g);
  if (comm->broken.status == TARN_OK) {
    status = tarn__comm_exchange_headers(comm, TARN__SPLIT, status);
  }
  if (status != TARN_OK) undo(g);
  return status;
}

// --- the calls -------------------------------------------------------------

tarn_status tarn_comm_split(tarn_comm *comm, int64_t color, int64_t key,
                            tarn_comm **out_comm) {
  const choice own = {color, key};
  group g = {0};
  if (out_comm != NULL) *out_comm = NULL;
  TARN__TRY(tarn__comm_state(comm));
  tarn_status status = TARN_OK;
  g.ranks = tarn__host_array(comm->size, sizeof *g.ranks);
  if (g.ranks == NULL) status = TARN_E_NOMEM;
  if (out_comm == NULL) {
    status = tarn__fail(TARN_E_INVALID, "tarn_comm_split: NULL");
  }
  memcpy(comm->own.bytes, &own, sizeof own);
  status = tarn__comm_exchange_headers(comm, TARN__SPLIT, status);
  if (status == TARN_OK) {
    assert(g.ranks != NULL && out_comm != NULL);
    status = split(comm, own, &g);
  }
  tarn__host_free_array(g.ranks, comm->size, sizeof *g.ranks);
  if (status == TARN_OK) *out_comm = put_together(&g);
  return status;
}

tarn_status tarn_comm_split_by_machine(tarn_comm *comm, tarn_comm **out_comm) {
  if (out_comm != NULL) *out_comm = NULL;
  TARN__TRY(tarn__comm_state(comm));
  int64_t color = 0;
  if (comm->near.machines != NULL) {
    color = (int64_t)comm->near.machines[comm->rank];
  } else if (comm->ops.share == NULL) {
    color = (int64_t)comm->rank;
  }
  return tarn_comm_split(comm, color, 0, out_comm);
}
