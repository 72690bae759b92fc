// Memory that ranks share to hand rows over: a sealed file in memory of each,
// mapped by all.
#include <string.h>

#include "base/hostmem.h"
#include "base/os_pages.h"
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
  size_t size = 2 * half_size(ranks);
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

// --- making ----------------------------------------------------------------

static tarn_status map(tarn__whole_staging *staging, size_t rank, int fd) {
  staging->bases[rank] = tarn__os_map_shared(fd, staging->size);
  if (staging->bases[rank] != NULL) return TARN_OK;
  return tarn__whole_refuse("whole rows: addresses", staging->size);
}

static tarn_status make_own(tarn_whole *whole, tarn__whole_staging *staging) {
  size_t huge = 0;
  staging->bases = tarn__host_array(staging->ranks, sizeof *staging->bases);
  if (staging->bases == NULL) return TARN_E_NOMEM;
  whole->fd = tarn__os_memory_file(FILE_NAME, staging->size);
  if (whole->fd < 0) {
    return tarn__whole_refuse("whole rows: a file in memory", staging->size);
  }
  if (!tarn__os_commit_file(whole->fd, 0, staging->size, &huge)) {
    return tarn__whole_refuse("whole rows: memory", staging->size);
  }
  return map(staging, whole->rank, whole->fd);
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

static tarn_status take_in_all(const tarn_whole *whole,
                               tarn__whole_staging *staging) {
  for (size_t r = 0; r < staging->ranks; r++)
    if (r != whole->rank) TARN__TRY(take_in(staging, r, whole->fds[r]));
  return TARN_OK;
}

static tarn_status make(tarn_whole *whole, tarn__whole_staging *staging) {
  TARN__TRY(tarn_comm_agree(whole->comm, make_own(whole, staging)));
  TARN__TRY(tarn_comm_share(whole->comm, whole->fd, whole->fds));
  return tarn_comm_agree(whole->comm, take_in_all(whole, staging));
}

tarn_status tarn__staging_make(tarn_whole *whole,
                               tarn__whole_staging *staging) {
  staging->ranks = whole->ranks;
  staging->size = whole_size(staging->ranks);
  tarn_status status = make(whole, staging);
  tarn__whole_close_all(whole);
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
