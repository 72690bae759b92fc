// Memory that ranks of one machine share to hand rows over: a sealed file in
// memory of each, mapped by all.
//
//   | board | slot 0 | slot 1 | ...
#include <string.h>

#include "base/hostmem.h"
#include "base/os_pages.h"
#include "base/status.h"
#include "whole/exchange.h"

enum { PAGE = 4096, LINE = 64, HEAD = 64 };

// By which ranks know files of this making.
static const char FILE_NAME[] = "tarn-exchange";

// --- the layout ------------------------------------------------------------

typedef struct head {
  atomic_uint served;
  tarn__whole_ask ask;
} head;
_Static_assert(sizeof(head) <= HEAD, "list and rows begin in a cache line");

static size_t board_size(size_t near) {
  size_t size = sizeof(tarn__whole_board) + near * 3 * sizeof(atomic_ullong);
  return (size + PAGE - 1) & ~(size_t)(PAGE - 1);
}

// Two for each other rank, as long as they are not too small: what a rank waits
// for is then not what it could ask for.
static size_t slots_for(size_t ranks) {
  size_t slots = TARN__LEAST_SLOTS;
  while (slots < TARN__MOST_SLOTS && slots < 2 * (ranks - 1))
    slots *= 2;
  return slots;
}

// One huge page, or two, where the kernel gives them. To fill a link, much must
// be under way on it, in messages that go without a question first: those of
// Open MPI have up to 64 KiB.
static void lay_out(tarn__whole_staging *staging, size_t ranks) {
  bool far = staging->count < ranks;
  staging->slots = far ? TARN__MOST_SLOTS : slots_for(ranks);
  staging->size = far ? 2 * TARN__OS_HUGE : TARN__OS_HUGE;
  size_t each =
      (staging->size - board_size(staging->count)) / staging->slots / LINE;
  staging->room = each * LINE - HEAD;
}

tarn__whole_board *tarn__staging_board(const tarn__whole_staging *staging,
                                       size_t near) {
  return (tarn__whole_board *)(void *)staging->bases[near];
}

tarn__whole_slot tarn__staging_slot(const tarn__whole_staging *staging,
                                    size_t near, size_t slot) {
  unsigned char *base = staging->bases[near] + board_size(staging->count) +
                        slot * (HEAD + staging->room);
  head *begin = (head *)(void *)base;
  return (tarn__whole_slot){
      .served = &begin->served, .ask = &begin->ask, .room = base + HEAD};
}

// --- making ----------------------------------------------------------------

static tarn_status map(tarn__whole_staging *staging, size_t near, int fd) {
  staging->bases[near] = tarn__os_map_shared(fd, staging->size);
  if (staging->bases[near] != NULL) return TARN_OK;
  return tarn__whole_refuse("whole rows: addresses", staging->size);
}

static tarn_status make_own(tarn_whole *whole, tarn__whole_staging *staging) {
  size_t huge = 0;
  staging->bases = tarn__host_array(staging->count, sizeof *staging->bases);
  if (staging->bases == NULL) return TARN_E_NOMEM;
  whole->fd = tarn__os_memory_file(FILE_NAME, staging->size);
  if (whole->fd < 0) {
    return tarn__whole_refuse("whole rows: a file in memory", staging->size);
  }
  if (!tarn__os_commit_file(whole->fd, 0, staging->size, &huge)) {
    return tarn__whole_refuse("whole rows: memory", staging->size);
  }
  return map(staging, staging->self, whole->fd);
}

static tarn_status take_in(tarn__whole_staging *staging, size_t near,
                           size_t rank, int fd) {
  if (tarn__os_is_memory_file(fd, FILE_NAME, staging->size)) {
    return map(staging, near, fd);
  }
  return tarn__fail(TARN_E_CORRUPT,
                    "whole rows: the descriptor of rank %zu is not a staging "
                    "file of %zu bytes",
                    rank, staging->size);
}

static tarn_status take_in_all(const tarn_whole *whole,
                               const tarn__comm_near *near,
                               tarn__whole_staging *staging) {
  for (size_t i = 0; i < staging->count; i++) {
    size_t rank = near->ranks != NULL ? near->ranks[i] : i;
    if (i == staging->self) continue;
    TARN__TRY(take_in(staging, i, rank, whole->fds[i]));
  }
  return TARN_OK;
}

// A rank that shares memory with none passes nothing on.
static tarn_status pass_on(tarn_whole *whole, const tarn__comm_near *near,
                           tarn__whole_staging *staging) {
  if (near->comm == NULL) return TARN_OK;
  TARN__TRY(tarn_comm_share(near->comm, whole->fd, whole->fds));
  return take_in_all(whole, near, staging);
}

static tarn_status make(tarn_whole *whole, tarn_comm *comm,
                        const tarn__comm_near *near,
                        tarn__whole_staging *staging) {
  TARN__TRY(tarn_comm_agree(comm, make_own(whole, staging)));
  return tarn_comm_agree(comm, pass_on(whole, near, staging));
}

tarn_status tarn__staging_make(tarn_whole *whole, tarn_comm *comm,
                               const tarn__comm_near *near,
                               tarn__whole_staging *staging) {
  staging->count = near->comm != NULL ? tarn_comm_size(near->comm) : 1;
  staging->self = near->comm != NULL ? tarn_comm_rank(near->comm) : 0;
  lay_out(staging, whole->ranks);
  tarn_status status = make(whole, comm, near, staging);
  tarn__whole_close_all(whole);
  if (status != TARN_OK) tarn__staging_drop(staging);
  return status;
}

void tarn__staging_drop(tarn__whole_staging *staging) {
  for (size_t i = 0; staging->bases != NULL && i < staging->count; i++) {
    if (staging->bases[i] != NULL) {
      tarn__os_unmap(staging->bases[i], staging->size);
    }
  }
  tarn__staging_forget(staging);
}

void tarn__staging_forget(tarn__whole_staging *staging) {
  tarn__host_free_array(staging->bases, staging->count, sizeof *staging->bases);
  *staging = (tarn__whole_staging){.size = 0};
}
