// Communicators of an MPI that the program has, or that the library begins.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/launcher.h"
#include "engine.h"
#include "guard.h"
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

// Begins to wait for all ranks of the launcher to come here, or looks whether
// they have. True: they have, or MPI fails.
static bool have_come(tarn__guard *guard, MPI_Request *request) {
  int is_there = 0;
  bool begins = *request == MPI_REQUEST_NULL;
  tarn__guard_enter(guard, begins ? "MPI_Ibarrier" : "MPI_Test");
  int code = begins ? MPI_Ibarrier(MPI_COMM_WORLD, request)
                    : MPI_Test(request, &is_there, MPI_STATUS_IGNORE);
  tarn__guard_leave(guard);
  return code != MPI_SUCCESS || is_there != 0;
}

// They may work for long: only the calls have a deadline.
static void await_all(void) {
  enum { TIMEOUT_MS = 30000 };
  static const struct timespec pause = {.tv_nsec = 1000000};
  MPI_Request request = MPI_REQUEST_NULL;
  int rank = 0;
  (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  tarn__guard *guard = tarn__guard_create(TIMEOUT_MS, (size_t)rank);
  while (guard != NULL && !have_come(guard, &request))
    (void)nanosleep(&pause, NULL);
  tarn__guard_destroy(guard);
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
    tarn__guard_end_within(OTHERS_SECONDS, status);
    return;
  }
  await_all();
  tarn__guard_end_within(FINALIZE_SECONDS, status);
  (void)MPI_Finalize();
}

// Of a link of 1 Gbit/s MPICH's UCX uses a half with pieces of 8 KiB, which it
// sends over TCP by default, and all of it with these.
static void set_defaults(void) {
#ifdef MPICH_VERSION
  (void)setenv("UCX_TCP_TX_SEG_SIZE", "64k", 0);
#endif
}

static tarn_status initialize(char *text, size_t room) {
  int is_initialized = 0;
  int level = 0;
  (void)MPI_Initialized(&is_initialized);
  if (is_initialized != 0) return TARN_OK;
  set_defaults();
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
  out->ops = tarn__mpi_engine_ops();
  return tarn__mpi_engine_create(MPI_COMM_WORLD, out->timeout_ms, out->text,
                                 sizeof out->text, &out->self, &out->rank,
                                 &out->size);
}

// The deadline of |options|, or of the environment: the library reads both.
static tarn_status find_timeout(const tarn_comm_options *options,
                                uint64_t *out_ms) {
  tarn_comm_options alone = {
      .struct_size = sizeof alone,
      .timeout_ms = options != NULL ? options->timeout_ms : 0,
      .flags = TARN_COMM_ALONE};
  tarn_comm *comm = NULL;
  tarn_status status = tarn_comm_from_environment(&alone, &comm);
  if (status != TARN_OK) return status;
  *out_ms = tarn_comm_timeout_ms(comm);
  return tarn_comm_destroy(comm);
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
  uint64_t timeout_ms = 0;
  if (out_comm != NULL) *out_comm = NULL;
  tarn_status status = find_timeout(options, &timeout_ms);
  if (status != TARN_OK) return status;
  status = check(words, room);
  if (status == TARN_OK) {
    status = tarn__mpi_engine_create(mpi, timeout_ms, words, room, &self, &rank,
                                     &size);
  }
  if (status != TARN_OK) return tarn_fail(status, text);
  return tarn_comm_from_engine(tarn__mpi_engine_ops(), self, rank, size,
                               options, out_comm);
}
