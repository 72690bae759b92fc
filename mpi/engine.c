// Messages by MPI: one request for each. Ranges of bytes have sizes that an int
// can hold: the library cuts larger ones.
#include "engine.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "guard.h"
#include "interfaces.h"
#include "reach.h"

enum { AT_A_TIME = 32 };  // requests that MPI is asked about together

typedef struct engine {
  MPI_Comm comm;
  tarn__guard *guard;
} engine;

typedef struct message {
  MPI_Request request;
  int size;
  bool receives;
} message;

static atomic_bool abandoned;

bool tarn__mpi_is_abandoned(void) {
  return atomic_load(&abandoned);
}

// --- coming and going ------------------------------------------------------

static tarn_status duplicate(engine *e, MPI_Comm mpi, uint64_t timeout_ms,
                             char *text, size_t room) {
  tarn__guard_enter(e->guard, "MPI_Comm_idup");
  // The communicator is the library's as long as MPI runs.
  tarn_status status =
      tarn__mpi_duplicate(mpi, timeout_ms, text, room, &e->comm);
  tarn__guard_leave(e->guard);
  if (status == TARN_E_TIMEOUT) atomic_store(&abandoned, true);
  if (status != TARN_OK) return status;
  int code = MPI_Comm_set_errhandler(e->comm, MPI_ERRORS_RETURN);
  return code == MPI_SUCCESS ? TARN_OK : tarn__mpi_refuse(code, text, room);
}

// Freeing the communicator would be collective.
static void destroy(void *self) {
  engine *e = self;
  tarn__guard_destroy(e->guard);
  free(e);
}

tarn_status tarn__mpi_engine_create(MPI_Comm mpi, uint64_t timeout_ms,
                                    char *text, size_t room, void **out_self,
                                    size_t *out_rank, size_t *out_size) {
  int rank = 0;
  int size = 0;
  int code = MPI_Comm_rank(mpi, &rank);
  if (code == MPI_SUCCESS) code = MPI_Comm_size(mpi, &size);
  if (code != MPI_SUCCESS) return tarn__mpi_refuse(code, text, room);
  engine *e = calloc(1, sizeof *e);
  if (e == NULL) return TARN_E_NOMEM;
  e->guard = tarn__guard_create(timeout_ms, (size_t)rank);
  tarn_status status = e->guard == NULL
                           ? TARN_E_NOMEM
                           : duplicate(e, mpi, timeout_ms, text, room);
  if (status != TARN_OK) {
    // What a duplicate that did not come about has for its result.
    if (status == TARN_E_TIMEOUT) tarn__guard_destroy(e->guard);
    if (status != TARN_E_TIMEOUT) destroy(e);
    return status;
  }
  *out_self = e;
  *out_rank = (size_t)rank;
  *out_size = (size_t)size;
  return TARN_OK;
}

static void abandon(void *self) {
  (void)self;
  atomic_store(&abandoned, true);
}

static void describe(void *self, char *out, size_t out_size) {
  (void)self;
  tarn__mpi_interfaces(out, out_size);
}

// --- messages --------------------------------------------------------------

static tarn_status post(void *self, tarn_comm_way way, size_t rank,
                        uint32_t tag, void *data, size_t size,
                        void **out_message) {
  const engine *e = self;
  message *m = malloc(sizeof *m);
  if (m == NULL) return TARN_E_NOMEM;
  int partner = rank == TARN_COMM_ANY ? MPI_ANY_SOURCE : (int)rank;
  int code = MPI_SUCCESS;
  m->size = (int)size;
  m->receives = way == TARN_COMM_RECEIVE;
  // test() waits for both, which the checker does not see.
  // NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker)
  tarn__guard_enter(e->guard, m->receives ? "MPI_Irecv" : "MPI_Isend");
  if (m->receives) {
    code = MPI_Irecv(data, m->size, MPI_BYTE, partner, (int)tag, e->comm,
                     &m->request);
  } else {
    code = MPI_Isend(data, m->size, MPI_BYTE, partner, (int)tag, e->comm,
                     &m->request);
  }
  tarn__guard_leave(e->guard);
  if (code != MPI_SUCCESS) {
    free(m);
    return TARN_E_PEER_LOST;
  }
  *out_message = m;
  return TARN_OK;
  // NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)
}

static tarn_status end_of(const message *m, const MPI_Status *status,
                          bool in_status) {
  int size = 0;
  int code = in_status ? status->MPI_ERROR : MPI_SUCCESS;
  int class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) (void)MPI_Error_class(code, &class);
  if (class == MPI_ERR_TRUNCATE) return TARN_E_CORRUPT;
  if (class != MPI_SUCCESS && class != MPI_ERR_PENDING) return TARN_E_PEER_LOST;
  if (!m->receives) return TARN_OK;
  (void)MPI_Get_count(status, MPI_BYTE, &size);
  return size == m->size ? TARN_OK : TARN_E_CORRUPT;
}

// |slots| point to messages.
static tarn_status test_some(const engine *e, void **slots[], int count) {
  MPI_Request requests[AT_A_TIME];
  MPI_Status statuses[AT_A_TIME];
  int done[AT_A_TIME];
  int found = 0;
  tarn_status first = TARN_OK;
  for (int i = 0; i < count; i++)
    requests[i] = ((message *)*slots[i])->request;
  tarn__guard_enter(e->guard, "MPI_Testsome");
  int code = MPI_Testsome(count, requests, &found, done, statuses);
  tarn__guard_leave(e->guard);
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) return TARN_E_PEER_LOST;
  for (int i = 0; i < count; i++)
    ((message *)*slots[i])->request = requests[i];
  for (int k = 0; k < found; k++) {
    message *m = *slots[done[k]];
    tarn_status status = end_of(m, &statuses[k], code == MPI_ERR_IN_STATUS);
    if (first == TARN_OK) first = status;
    free(m);
    *slots[done[k]] = NULL;
  }
  return first;
}

static tarn_status test(void *self, void **messages, size_t count) {
  void **slots[AT_A_TIME];
  int open = 0;
  tarn_status first = TARN_OK;
  for (size_t i = 0; i < count; i++) {
    if (messages[i] != NULL) slots[open++] = &messages[i];
    if (open < AT_A_TIME && i + 1 < count) continue;
    if (open == 0) continue;
    tarn_status status = test_some(self, slots, open);
    if (first == TARN_OK) first = status;
    open = 0;
  }
  return first;
}

// What was matched already is not given up: it may still be written.
static bool try_to_cancel(message *m) {
  enum { TRIES = 100 };
  int is_done = 0;
  if (MPI_Cancel(&m->request) != MPI_SUCCESS) return false;
  for (int i = 0; i < TRIES && is_done == 0; i++) {
    if (MPI_Test(&m->request, &is_done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      return false;
  }
  return is_done != 0;
}

static bool cancel(void *self, void *given) {
  const engine *e = self;
  tarn__guard_enter(e->guard, "MPI_Cancel");
  bool is_done = try_to_cancel(given);
  tarn__guard_leave(e->guard);
  if (is_done) free(given);
  return is_done;
}

const tarn_comm_ops *tarn__mpi_engine_ops(void) {
  static const tarn_comm_ops one_thread = {.struct_size = sizeof one_thread,
                                           .name = "mpi",
                                           .destroy = destroy,
                                           .post = post,
                                           .test = test,
                                           .cancel = cancel,
                                           .abandon = abandon,
                                           .describe = describe};
  static tarn_comm_ops any_thread;
  int level = MPI_THREAD_SINGLE;
  (void)MPI_Query_thread(&level);
  if (level < MPI_THREAD_MULTIPLE) return &one_thread;
  any_thread = one_thread;
  any_thread.flags = TARN_COMM_ANY_THREAD;
  return &any_thread;
}
