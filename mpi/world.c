// Communicators of an MPI that the program has, or that the library begins.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "comm/launcher.h"
#include "engine.h"
#include "tarn_mpi.h"

// --- the state of MPI ------------------------------------------------------

// TARN_E_STATE  this thread may not call MPI; |text| says why.
static tarn_status check(char *text, size_t room) {
  int is_initialized = 0;
  int is_finalized = 0;
  int level = MPI_THREAD_SINGLE;
  int is_main = 0;
  const char *why = NULL;
  (void)MPI_Initialized(&is_initialized);
  (void)MPI_Finalized(&is_finalized);
  if (is_finalized != 0) {
    why = "MPI is finalized";
  } else if (is_initialized == 0) {
    why = "MPI is not initialized: call MPI_Init_thread before";
  } else {
    (void)MPI_Query_thread(&level);
    (void)MPI_Is_thread_main(&is_main);
    if (level < MPI_THREAD_SERIALIZED && is_main == 0) {
      why = "MPI allows only the thread that has initialized it, at this level";
    }
  }
  if (why == NULL) return TARN_OK;
  snprintf(text, room, "%s", why);
  return TARN_E_STATE;
}

// --- the end of a process --------------------------------------------------

// What there is for others who want to run at the end of this process, and for
// MPI to finalize when all ranks do.
enum { OTHERS_SECONDS = 2, FINALIZE_SECONDS = 10 };

typedef struct ending {
  unsigned seconds;
  int status;
} ending;

static void *end_late(void *context) {
  const ending *own = context;
  sleep(own->seconds);
  _exit(own->status);
}

static void end_within(unsigned seconds, int status) {
  static ending own;
  pthread_t thread;
  own = (ending){seconds, status};
  if (pthread_create(&thread, NULL, end_late, &own) == 0) {
    (void)pthread_detach(thread);
  }
}

// Returns when all ranks of the launcher have come here.
static void await_all(void) {
  static const struct timespec pause = {.tv_nsec = 1000000};
  MPI_Request request;
  int is_there = 0;
  if (MPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS) return;
  while (MPI_Test(&request, &is_there, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
         is_there == 0)
    (void)nanosleep(&pause, NULL);
}

// Finalizing waits for all ranks. A rank that fails does not: its launcher sees
// that MPI was not finalized, and ends the others. MPICH 4.0 over UCX does not
// always return when ranks are on several machines, not even in a program of a
// few lines: then the process ends all the same.
static void finalize(int status, void *unused) {
  int is_finalized = 0;
  (void)unused;
  (void)MPI_Finalized(&is_finalized);
  if (is_finalized != 0) return;
  if (tarn__mpi_is_abandoned() || status != EXIT_SUCCESS) {
    end_within(OTHERS_SECONDS, status);
    return;
  }
  await_all();
  end_within(FINALIZE_SECONDS, status);
  (void)MPI_Finalize();
}

static tarn_status initialize(char *text, size_t room) {
  int is_initialized = 0;
  int level = 0;
  (void)MPI_Initialized(&is_initialized);
  if (is_initialized != 0) return TARN_OK;
  if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS) {
    snprintf(text, room, "MPI cannot be initialized");
    return TARN_E_IO;
  }
  (void)on_exit(finalize, NULL);
  return TARN_OK;
}

// --- the calls -------------------------------------------------------------

// Found by libtarn under TARN__COMM_WORLD.
TARN_API tarn_status tarn_mpi_world(tarn__comm_world *out);

TARN_API tarn_status tarn_mpi_world(tarn__comm_world *out) {
  if (out->struct_size < sizeof *out) return TARN_E_INVALID;
  tarn_status status = initialize(out->text, sizeof out->text);
  if (status == TARN_OK) status = check(out->text, sizeof out->text);
  if (status != TARN_OK) return status;
  out->ops = &tarn__mpi_engine_ops;
  return tarn__mpi_engine_create(MPI_COMM_WORLD, out->text, sizeof out->text,
                                 &out->self, &out->rank, &out->size);
}

TARN_API tarn_status tarn_comm_from_mpi(MPI_Comm mpi,
                                        const tarn_comm_options *options,
                                        tarn_comm **out_comm) {
  char text[512] = "tarn_comm_from_mpi: ";
  char *words = text + strlen(text);
  size_t room = sizeof text - strlen(text);
  void *self = NULL;
  size_t rank = 0;
  size_t size = 0;
  if (out_comm != NULL) *out_comm = NULL;
  tarn_status status = check(words, room);
  if (status == TARN_OK) {
    status = tarn__mpi_engine_create(mpi, words, room, &self, &rank, &size);
  }
  if (status != TARN_OK) return tarn_fail(status, text);
  return tarn_comm_from_engine(&tarn__mpi_engine_ops, self, rank, size, options,
                               out_comm);
}
