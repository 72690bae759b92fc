// Memory that ranks share to hand rows over: a sealed file in memory of each,
// mapped by all.
#include <errno.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os_pages.h"
#include "base/os_peer.h"
#include "base/status.h"
#include "whole/exchange.h"

enum { ALIGNMENT = 4096 };

// By which ranks know files of this making.
static const char FILE_NAME[] = "tarn-exchange";

// --- the layout ------------------------------------------------------------

static size_t wants_size(size_t ranks) {
  size_t size = ranks * sizeof(tarn__whole_want);
  return (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

static size_t half_size(size_t ranks) {
  return wants_size(ranks) + TARN__LIST * sizeof(int64_t) + TARN__ROWS_ROOM;
}

// A huge page, or several, where the kernel gives them.
static size_t whole_size(size_t ranks) {
  size_t size = 2 * half_size(ranks) + TARN__ROWS_ROOM;
  return (size + TARN__OS_HUGE - 1) & ~(TARN__OS_HUGE - 1);
}

tarn__whole_half tarn__staging_half(const tarn__whole_staging *staging,
                                    size_t rank, size_t round) {
  unsigned char *base = staging->bases[rank];
  base += (round % 2) * half_size(staging->ranks);
  unsigned char *list = base + wants_size(staging->ranks);
  return (tarn__whole_half){
      .wants = (tarn__whole_want *)(void *)base,
      .list = list,
      .rows = list + TARN__LIST * sizeof(int64_t),
  };
}

unsigned char *tarn__staging_own(const tarn__whole_staging *staging,
                                 size_t rank) {
  return staging->bases[rank] + 2 * half_size(staging->ranks);
}

// --- making ----------------------------------------------------------------

static tarn_status refused(const char *what, size_t size) {
  int reason = errno;
  bool full = reason == ENOMEM || reason == ENOSPC;
  return tarn__fail(full ? TARN_FULL : TARN_E_IO,
                    "whole rows: %s of %zu bytes: %s", what, size,
                    strerror(reason));
}

static tarn_status map(tarn__whole_staging *staging, size_t rank, int fd) {
  staging->bases[rank] = tarn__os_map_shared(fd, staging->size);
  if (staging->bases[rank] != NULL) return TARN_OK;
  return refused("addresses", staging->size);
}

static tarn_status make_own(tarn__whole_staging *staging, size_t rank,
                            int *out_fd) {
  size_t huge = 0;
  staging->bases = tarn__host_array(staging->ranks, sizeof *staging->bases);
  if (staging->bases == NULL) return TARN_E_NOMEM;
  *out_fd = tarn__os_memory_file(FILE_NAME, staging->size);
  if (*out_fd < 0) return refused("a file in memory", staging->size);
  if (!tarn__os_commit_file(*out_fd, 0, staging->size, &huge)) {
    return refused("memory", staging->size);
  }
  return map(staging, rank, *out_fd);
}

static tarn_status take_in(tarn__whole_staging *staging, size_t rank, int fd) {
  if (tarn__os_is_memory_file(fd, FILE_NAME, staging->size)) {
    return map(staging, rank, fd);
  }
  return tarn__fail(TARN_E_CORRUPT,
                    "whole rows: the descriptor of rank %zu is not a staging "
                    "file of %zu bytes",
                    rank, staging->size);
}

static tarn_status take_in_all(tarn__whole_staging *staging, size_t rank,
                               int *fds) {
  tarn_status status = TARN_OK;
  for (size_t r = 0; status == TARN_OK && r < staging->ranks; r++)
    if (r != rank) status = take_in(staging, r, fds[r]);
  tarn__os_close_all(fds, staging->ranks);
  return status;
}

static tarn_status meet(tarn__whole_staging *staging, tarn_comm *comm, int fd,
                        int *fds) {
  tarn_status status = tarn_comm_share(comm, fd, fds);
  if (status != TARN_OK) return status;
  return tarn_comm_agree(comm, take_in_all(staging, tarn_comm_rank(comm), fds));
}

static tarn_status make(tarn__whole_staging *staging, tarn_comm *comm) {
  int fd = -1;
  int *fds = tarn__host_array(staging->ranks, sizeof *fds);
  tarn_status status =
      fds != NULL ? make_own(staging, tarn_comm_rank(comm), &fd) : TARN_E_NOMEM;
  status = tarn_comm_agree(comm, status);
  if (status == TARN_OK && fds != NULL) status = meet(staging, comm, fd, fds);
  tarn__os_close_all(&fd, 1);
  tarn__host_free_array(fds, staging->ranks, sizeof *fds);
  return status;
}

tarn_status tarn__staging_make(tarn__whole_staging *staging, tarn_comm *comm) {
  staging->ranks = tarn_comm_size(comm);
  staging->size = whole_size(staging->ranks);
  tarn_status status = make(staging, comm);
  if (status != TARN_OK) tarn__staging_drop(staging);
  return status;
}

void tarn__staging_drop(tarn__whole_staging *staging) {
  for (size_t r = 0; staging->bases != NULL && r < staging->ranks; r++) {
    if (staging->bases[r] != NULL) {
      tarn__os_unmap(staging->bases[r], staging->size);
    }
  }
  tarn__staging_forget(staging);
}

void tarn__staging_forget(tarn__whole_staging *staging) {
  tarn__host_free_array(staging->bases, staging->ranks, sizeof *staging->bases);
  *staging = (tarn__whole_staging){.size = 0};
}
