// MPI does not say which rank a duplicate waits for. Where it takes too long, a
// rank greets all others, and so does each rank that hears a greeting while it
// waits itself: who has not greeted back after a while is out of reach.
#include "reach.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "interfaces.h"

// Of greetings, which nobody sends in a job that goes well.
enum { TAG = 31346 };

static uint64_t now_ms(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void nap(void) {
  static const struct timespec pause = {.tv_nsec = 200000};
  (void)nanosleep(&pause, NULL);
}

tarn_status tarn__mpi_refuse(int code, char *text, size_t room) {
  char words[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  (void)MPI_Error_string(code, words, &length);
  snprintf(text, room, "%s", words);
  return TARN_E_IO;
}

// --- greetings -------------------------------------------------------------

// The rank of |count| that has not greeted within |ms|, or |count|. What is not
// done by then stays with MPI; the bytes of greetings are static.
static int find_missing(MPI_Request *greeted, int count, uint64_t ms) {
  uint64_t end = now_ms() + ms;
  int first = 0;
  while (first < count) {
    int is_there = 0;
    if (MPI_Test(&greeted[first], &is_there, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      break;
    if (is_there != 0) {
      first++;
    } else if (now_ms() >= end) {
      break;
    } else {
      nap();
    }
  }
  return first;
}

static tarn_status tell_missing(int rank, int size, uint64_t timeout_ms,
                                char *text, size_t room) {
  char way[160];
  tarn__mpi_interfaces(way, sizeof way);
  if (rank < size) {
    snprintf(text, room,
             "rank %d has not come, or is out of reach, within %llu ms, over "
             "%s",
             rank, (unsigned long long)timeout_ms, way);
  } else {
    snprintf(text, room,
             "not all ranks have come within %llu ms, and all can be reached, "
             "over %s",
             (unsigned long long)timeout_ms, way);
  }
  return TARN_E_TIMEOUT;
}

static tarn_status greet_all(MPI_Comm mpi, uint64_t timeout_ms, char *text,
                             size_t room) {
  static char own;
  static char theirs;
  int size = 0;
  int rank = 0;
  (void)MPI_Comm_size(mpi, &size);
  (void)MPI_Comm_rank(mpi, &rank);
  MPI_Request *requests = malloc(2 * (size_t)size * sizeof *requests);
  if (requests == NULL) return TARN_E_NOMEM;
  // Those that are not done are left.
  // NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker)
  for (int r = 0; r < size; r++) {
    requests[r] = requests[size + r] = MPI_REQUEST_NULL;
    if (r == rank) continue;
    (void)MPI_Irecv(&theirs, 1, MPI_BYTE, r, TAG, mpi, &requests[r]);
    (void)MPI_Isend(&own, 1, MPI_BYTE, r, TAG, mpi, &requests[size + r]);
  }
  // NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)
  uint64_t patience = timeout_ms / 10 > 100 ? timeout_ms / 10 : 100;
  int missing = find_missing(requests, size, patience);
  free(requests);
  return tell_missing(missing, size, timeout_ms, text, room);
}

// --- the duplicate ---------------------------------------------------------

static bool is_greeted(MPI_Comm mpi) {
  int is_there = 0;
  int code = MPI_Iprobe(MPI_ANY_SOURCE, TAG, mpi, &is_there, MPI_STATUS_IGNORE);
  return code == MPI_SUCCESS && is_there != 0;
}

tarn_status tarn__mpi_duplicate(MPI_Comm mpi, uint64_t timeout_ms, char *text,
                                size_t room, MPI_Comm *out) {
  MPI_Request request;
  int is_done = 0;
  uint64_t begin = now_ms();
  int code = MPI_Comm_idup(mpi, out, &request);
  while (code == MPI_SUCCESS) {
    code = MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS || is_done != 0) break;
    if (now_ms() - begin >= timeout_ms || is_greeted(mpi)) {
      return greet_all(mpi, timeout_ms, text, room);
    }
    nap();
  }
  return code == MPI_SUCCESS ? TARN_OK : tarn__mpi_refuse(code, text, room);
}
