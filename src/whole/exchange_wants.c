// The rows of other machines that the ranks of this one want, in lists that all
// of them read: each row of them is bought once, by one rank of the machine.
//
//   list of a rank   | of buyer 0      | of buyer 1      | ...
//                      rows, ascending; equal ones, as often as they are wanted
//                      of each: the position of its index in the call
//
// A list is sorted by its rank, digit by digit, from one half of its memory to
// the other.
//
//   | begins | rows, two halves | positions, two halves |
#include <string.h>

#include "base/hostmem.h"
#include "base/os_pages.h"
#include "base/status.h"
#include "whole/exchange.h"

enum {
  PAGE = 4096,
  LEAST = 4096,  // indices for which there is room
  DIGIT = 11,    // bits
  DIGITS = 1 << DIGIT,
  BY_BUYER = 64,  // a digit, too: the last one
};
_Static_assert((int)DIGITS >= (int)TARN_COMM_MOST_RANKS, "a bucket for each");

// By which ranks know files of this making.
static const char FILE_NAME[] = "tarn-wants";

// --- the layout ------------------------------------------------------------

static size_t head_size(const tarn__whole_exchange *kept) {
  size_t size = (kept->staging.count + 1) * sizeof(uint64_t);
  return (size + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static size_t file_size(const tarn__whole_exchange *kept, size_t most) {
  return head_size(kept) + most * 2 * (sizeof(uint64_t) + sizeof(int32_t));
}

static uint64_t *begins_of(const tarn__whole_exchange *kept, size_t near) {
  return (uint64_t *)(void *)kept->wants.bases[near];
}

static uint64_t *rows_of(const tarn__whole_exchange *kept, size_t near,
                         size_t half) {
  unsigned char *begin = kept->wants.bases[near] + head_size(kept);
  return (uint64_t *)(void *)begin + half * kept->wants.most;
}

static int32_t *positions_of(const tarn__whole_exchange *kept, size_t near,
                             size_t half) {
  uint64_t *end = rows_of(kept, near, 2);
  return (int32_t *)(void *)end + half * kept->wants.most;
}

static size_t row_digits(const tarn__whole_exchange *kept) {
  size_t count = 1;
  while (kept->sorted.table_rows >> (count * DIGIT) != 0)
    count++;
  return count;
}

// Where a list is when it is sorted.
static size_t last_half(const tarn__whole_exchange *kept) {
  return (row_digits(kept) + 1) % 2;
}

// --- making ----------------------------------------------------------------

static tarn_status map(tarn__whole_exchange *kept, size_t near, int fd) {
  size_t size = file_size(kept, kept->wants.most);
  kept->wants.bases[near] = tarn__os_map_shared(fd, size);
  if (kept->wants.bases[near] != NULL) return TARN_OK;
  return tarn__whole_refuse("whole rows: addresses", size);
}

static tarn_status make_own(tarn_whole *whole, tarn__whole_exchange *kept) {
  size_t huge = 0;
  size_t count = kept->staging.count;
  size_t size = file_size(kept, kept->wants.most);
  kept->wants.bases = tarn__host_array(count, sizeof *kept->wants.bases);
  if (kept->wants.bases == NULL) return TARN_E_NOMEM;
  whole->fd = tarn__os_memory_file(FILE_NAME, size);
  if (whole->fd < 0 || !tarn__os_commit_file(whole->fd, 0, size, &huge)) {
    return tarn__whole_refuse("whole rows: a list in memory", size);
  }
  return map(kept, kept->staging.self, whole->fd);
}

static tarn_status take_in_all(tarn_whole *whole, tarn__whole_exchange *kept) {
  size_t size = file_size(kept, kept->wants.most);
  for (size_t i = 0; i < kept->staging.count; i++) {
    if (i == kept->staging.self) continue;
    if (!tarn__os_is_memory_file(whole->fds[i], FILE_NAME, size)) {
      return tarn__fail(TARN_E_CORRUPT,
                        "whole rows: the descriptor of rank %zu is not a list "
                        "of %zu bytes",
                        tarn__near_rank(kept, i), size);
    }
    TARN__TRY(map(kept, i, whole->fds[i]));
  }
  return TARN_OK;
}

static tarn_status make(tarn_whole *whole, tarn_comm *near,
                        tarn__whole_exchange *kept) {
  if (near == NULL) return make_own(whole, kept);
  TARN__TRY(tarn_comm_agree(near, make_own(whole, kept)));
  TARN__TRY(tarn_comm_share(near, whole->fd, whole->fds));
  return tarn_comm_agree(near, take_in_all(whole, kept));
}

void tarn__wants_forget(tarn__whole_exchange *kept) {
  tarn__host_free_array(kept->wants.bases, kept->staging.count,
                        sizeof *kept->wants.bases);
  kept->wants.bases = NULL;
  kept->wants.most = 0;
}

void tarn__wants_drop(tarn__whole_exchange *kept) {
  size_t size = file_size(kept, kept->wants.most);
  for (size_t i = 0; kept->wants.bases != NULL && i < kept->staging.count;
       i++) {
    if (kept->wants.bases[i] != NULL) {
      tarn__os_unmap(kept->wants.bases[i], size);
    }
  }
  tarn__wants_forget(kept);
}

// --- as many as are asked for ----------------------------------------------

void tarn__wants_say(tarn__whole_exchange *kept, size_t count) {
  tarn__whole_board *own =
      tarn__staging_board(&kept->staging, kept->staging.self);
  atomic_store_explicit(&own->wants, count, memory_order_release);
}

static uint64_t find_largest(const tarn__whole_exchange *kept) {
  uint64_t largest = 0;
  for (size_t i = 0; i < kept->staging.count; i++) {
    tarn__whole_board *board = tarn__staging_board(&kept->staging, i);
    uint64_t own = atomic_load_explicit(&board->wants, memory_order_acquire);
    if (own > largest) largest = own;
  }
  return largest;
}

static tarn_status grow(tarn_whole *whole, tarn__whole_exchange *kept,
                        uint64_t largest) {
  const tarn__comm_near near = tarn__comm_near_of(kept->comm);
  size_t most = LEAST;
  while (most < largest)
    most *= 2;
  tarn__wants_drop(kept);
  kept->wants.most = most;
  tarn_status status = make(whole, near.comm, kept);
  tarn__whole_close_all(whole);
  if (status == TARN_OK) return TARN_OK;
  tarn__wants_drop(kept);
  tarn_status state = near.comm != NULL ? tarn__comm_state(near.comm) : TARN_OK;
  return state == TARN_OK ? TARN_OK : tarn__comm_give_up(kept->comm, status);
}

tarn_status tarn__wants_fit(tarn_whole *whole, tarn__whole_exchange *kept) {
  uint64_t largest = find_largest(kept);
  kept->wants.fit = false;
  if (largest > INT32_MAX) return TARN_OK;
  if (largest > kept->wants.most || kept->wants.most == 0) {
    TARN__TRY(grow(whole, kept, largest));
  }
  kept->wants.fit = kept->wants.most > 0;
  return TARN_OK;
}

// --- listing ---------------------------------------------------------------

// Neighbours of a row go to any.
static inline size_t buyer_of(uint64_t row, size_t near) {
  uint64_t mixed = row * UINT64_C(0x9e3779b97f4a7c15) >> 32;
  return (size_t)(mixed * near >> 32);
}

// A rank is far if its rows are.
static size_t collect_some(const tarn__whole_course *c, const void *indices,
                           size_t first, size_t count, size_t listed) {
  const tarn__whole_exchange *kept = c->kept;
  uint64_t *rows = rows_of(kept, kept->staging.self, 0);
  int32_t *positions = positions_of(kept, kept->staging.self, 0);
  for (size_t i = 0; i < count; i++) {
    uint64_t row = (uint64_t)tarn__rows_index_at(TARN_DTYPE_I64, indices, i);
    if (row >= kept->sorted.table_rows) continue;
    rows[listed] = row;
    positions[listed] = (int32_t)(first + i);
    size_t owner = tarn__sorted_owner(&kept->sorted, (size_t)row);
    listed += kept->places[owner] == TARN__FAR;
  }
  return listed;
}

static tarn_status collect(const tarn__whole_course *c, size_t *out_count) {
  const tarn_rows *rows = &c->order->rows;
  *out_count = 0;
  for (size_t i = 0; i < rows->index_count; i += TARN__PIECE) {
    size_t count = tarn__lesser(rows->index_count - i, TARN__PIECE);
    const void *indices = NULL;
    TARN__TRY(tarn__rows_view_indices(c->order->place, rows, i, count,
                                      c->kept->indices, &indices));
    *out_count = collect_some(c, indices, i, count, *out_count);
  }
  return TARN_OK;
}

static inline size_t digit_of(uint64_t row, unsigned shift, size_t near) {
  return shift == BY_BUYER ? buyer_of(row, near)
                           : (size_t)(row >> shift) & (DIGITS - 1);
}

// Sorts by one digit, from |half| to the other. Keeps the order of equal ones.
static void sort_by(const tarn__whole_exchange *kept, unsigned shift,
                    size_t half, size_t count, uint64_t *begins) {
  size_t self = kept->staging.self;
  size_t near = kept->staging.count;
  const uint64_t *rows = rows_of(kept, self, half);
  const int32_t *positions = positions_of(kept, self, half);
  uint64_t *to_rows = rows_of(kept, self, 1 - half);
  int32_t *to_positions = positions_of(kept, self, 1 - half);
  memset(begins, 0, (DIGITS + 1) * sizeof *begins);
  for (size_t i = 0; i < count; i++)
    begins[digit_of(rows[i], shift, near) + 1]++;
  for (size_t d = 0; d < DIGITS; d++)
    begins[d + 1] += begins[d];
  for (size_t i = 0; i < count; i++) {
    size_t at = begins[digit_of(rows[i], shift, near)]++;
    to_rows[at] = rows[i];
    to_positions[at] = positions[i];
  }
}

tarn_status tarn__wants_list(tarn__whole_course *c) {
  tarn__whole_exchange *kept = c->kept;
  uint64_t ends[DIGITS + 1];
  size_t count = 0;
  size_t digits = row_digits(kept);
  uint64_t *begins = begins_of(kept, kept->staging.self);
  TARN__TRY(collect(c, &count));
  for (size_t i = 0; i < digits; i++)
    sort_by(kept, (unsigned)(i * DIGIT), i % 2, count, ends);
  sort_by(kept, BY_BUYER, digits % 2, count, ends);
  begins[0] = 0;
  memcpy(begins + 1, ends, kept->staging.count * sizeof *begins);
  tarn__whole_board *own =
      tarn__staging_board(&kept->staging, kept->staging.self);
  atomic_store_explicit(&own->listed, kept->serial, memory_order_release);
  return TARN_OK;
}

// --- looking ---------------------------------------------------------------

bool tarn__wants_are_listed(const tarn__whole_exchange *kept, size_t near) {
  tarn__whole_board *board = tarn__staging_board(&kept->staging, near);
  return atomic_load_explicit(&board->listed, memory_order_acquire) ==
         kept->serial;
}

// The begins stand where their rank can write.
tarn__whole_list tarn__wants_of(const tarn__whole_exchange *kept, size_t near,
                                size_t buyer) {
  const uint64_t *begins = begins_of(kept, near);
  size_t half = last_half(kept);
  size_t begin = tarn__lesser(begins[buyer], kept->wants.most);
  size_t end = tarn__lesser(begins[buyer + 1], kept->wants.most);
  return (tarn__whole_list){.rows = rows_of(kept, near, half) + begin,
                            .positions = positions_of(kept, near, half) + begin,
                            .count = end > begin ? end - begin : 0};
}

size_t tarn__wants_from(const tarn__whole_list *list, uint64_t row) {
  size_t low = 0;
  size_t high = list->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (list->rows[middle] < row) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
