// Messages by MPI: one request for each. Ranges of bytes have sizes that an int
// can hold: the library cuts larger ones.
#include "engine.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { AT_A_TIME = 32 };  // requests that MPI is asked about together

typedef struct engine {
  MPI_Comm comm;
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

static tarn_status refuse(int code, char *text, size_t room) {
  char words[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  (void)MPI_Error_string(code, words, &length);
  snprintf(text, room, "%s", words);
  return TARN_E_IO;
}

tarn_status tarn__mpi_engine_create(MPI_Comm mpi, char *text, size_t room,
                                    void **out_self, size_t *out_rank,
                                    size_t *out_size) {
  int rank = 0;
  int size = 0;
  engine *e = malloc(sizeof *e);
  if (e == NULL) return TARN_E_NOMEM;
  int code = MPI_Comm_dup(mpi, &e->comm);
  if (code == MPI_SUCCESS) {
    code = MPI_Comm_set_errhandler(e->comm, MPI_ERRORS_RETURN);
  }
  if (code == MPI_SUCCESS) code = MPI_Comm_rank(e->comm, &rank);
  if (code == MPI_SUCCESS) code = MPI_Comm_size(e->comm, &size);
  if (code != MPI_SUCCESS) {
    free(e);
    return refuse(code, text, room);
  }
  *out_self = e;
  *out_rank = (size_t)rank;
  *out_size = (size_t)size;
  return TARN_OK;
}

// Freeing the communicator would be collective.
static void destroy(void *self) {
  free(self);
}

static void abandon(void *self) {
  (void)self;
  atomic_store(&abandoned, true);
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
  if (m->receives) {
    code = MPI_Irecv(data, m->size, MPI_BYTE, partner, (int)tag, e->comm,
                     &m->request);
  } else {
    code = MPI_Isend(data, m->size, MPI_BYTE, partner, (int)tag, e->comm,
                     &m->request);
  }
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
static tarn_status test_some(void **slots[], int count) {
  MPI_Request requests[AT_A_TIME];
  MPI_Status statuses[AT_A_TIME];
  int done[AT_A_TIME];
  int found = 0;
  tarn_status first = TARN_OK;
  for (int i = 0; i < count; i++)
    requests[i] = ((message *)*slots[i])->request;
  int code = MPI_Testsome(count, requests, &found, done, statuses);
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
  (void)self;
  for (size_t i = 0; i < count; i++) {
    if (messages[i] != NULL) slots[open++] = &messages[i];
    if (open < AT_A_TIME && i + 1 < count) continue;
    if (open == 0) continue;
    tarn_status status = test_some(slots, open);
    if (first == TARN_OK) first = status;
    open = 0;
  }
  return first;
}

// What was matched already is not given up: it may still be written.
static bool cancel(void *self, void *given) {
  enum { TRIES = 100 };
  message *m = given;
  int is_done = 0;
  (void)self;
  if (MPI_Cancel(&m->request) != MPI_SUCCESS) return false;
  for (int i = 0; i < TRIES && is_done == 0; i++) {
    if (MPI_Test(&m->request, &is_done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      return false;
  }
  if (is_done != 0) free(m);
  return is_done != 0;
}

const tarn_comm_ops tarn__mpi_engine_ops = {
    .struct_size = sizeof tarn__mpi_engine_ops,
    .name = "mpi",
    .destroy = destroy,
    .post = post,
    .test = test,
    .cancel = cancel,
    .abandon = abandon,
};
