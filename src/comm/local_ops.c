// The operations of a communicator of one machine. Each round, a rank copies a
// part of its data into its own slot, and reads the slots of the others.
//
// Alltoallv: the bytes that a rank sends form one stream, beginning with those
// for the next rank. A first round publishes where in each stream the bytes for
// each rank end. Then the streams pass through the slots, a window at a time,
// and each rank copies out its bytes.
//
//   stream of rank 1:  | for 2    | for 3 | for 0        |
//   slots of rank 1:   |      |      |      |      |
#include <string.h>

#include "base/status.h"
#include "comm/local.h"

// --- broadcast and allgather -----------------------------------------------

// Passes |size| bytes of each of the ranks |first| to |end| - 1 on to all other
// ranks, which store those of rank r at |out| + (r - |first|) * |size|.
static tarn_status spread(tarn__comm_local *local, size_t first, size_t end,
                          const void *own, size_t size, unsigned char *out) {
  size_t part = 0;
  bool writes = first <= local->rank && local->rank < end;
  for (size_t done = 0; done < size; done += part) {
    part = tarn__lesser(size - done, local->area.slot);
    if (writes) {
      memcpy(tarn__local_slot(local), (const unsigned char *)own + done, part);
    }
    TARN__TRY(tarn__local_round(local));
    for (size_t rank = first; rank < end; rank++) {
      if (rank == local->rank) continue;
      memcpy(out + (rank - first) * size + done,
             tarn__local_slot_of(local, rank), part);
    }
  }
  return TARN_OK;
}

static tarn_status broadcast(void *self, size_t root, void *data, size_t size) {
  return spread(self, root, root + 1, data, size, data);
}

static tarn_status allgather(void *self, const void *data, size_t size,
                             void *out) {
  tarn__comm_local *local = self;
  unsigned char *own = (unsigned char *)out + local->rank * size;
  TARN__TRY(spread(local, 0, local->size, data, size, out));
  if (size != 0 && own != data) memcpy(own, data, size);
  return TARN_OK;
}

// --- alltoallv -------------------------------------------------------------

// A slot in the first round: the ends of the bytes for each rank, by rank, then
// the length of the stream. A slot has at least 4096 bytes, room for 512 of
// them.
typedef uint64_t mark;
_Static_assert((TARN_COMM_MOST_RANKS + 1) * sizeof(mark) <= 4096,
               "the marks of a stream fit into the smallest slot");

// The |i|-th rank after |rank|.
static size_t behind(const tarn__comm_local *local, size_t rank, size_t i) {
  return (rank + i) % local->size;
}

static void tell_marks(tarn__comm_local *local, const size_t *send_sizes) {
  unsigned char *slot = tarn__local_slot(local);
  mark end = 0;
  for (size_t i = 1; i < local->size; i++) {
    size_t rank = behind(local, local->rank, i);
    end += send_sizes[rank];
    memcpy(slot + rank * sizeof end, &end, sizeof end);
  }
  memcpy(slot + local->size * sizeof end, &end, sizeof end);
}

static mark mark_of(const tarn__comm_local *local, size_t rank, size_t index) {
  mark value = 0;
  memcpy(&value, tarn__local_slot_of(local, rank) + index * sizeof value,
         sizeof value);
  return value;
}

// The agreed sizes that this rank sends and receives.
typedef struct agreed {
  const size_t *send_sizes;
  const size_t *receive_sizes;
} agreed;

// Reads the marks of |rank|, each once, and checks them: they must not fall,
// the last is the length, and the sizes that this rank sends or receives must
// be the agreed ones. A rank also checks its own marks, so that damage anywhere
// is found by some intact rank.
static bool read_marks(const tarn__comm_local *local, size_t rank,
                       const agreed *sizes, mark *out_end, mark *out_length) {
  mark before = 0;
  for (size_t i = 1; i < local->size; i++) {
    size_t to = behind(local, rank, i);
    mark end = mark_of(local, rank, to);
    if (end < before) return false;
    mark size = end - before;
    if (rank == local->rank && size != sizes->send_sizes[to]) return false;
    if (to == local->rank && size != sizes->receive_sizes[rank]) return false;
    if (to == local->rank) *out_end = end;
    before = end;
  }
  *out_length = mark_of(local, rank, local->size);
  return *out_length == before;
}

// |ends[r]|: where in the stream of rank r the bytes for this rank end.
static tarn_status read_all_marks(tarn__comm_local *local, const agreed *sizes,
                                  mark *ends, mark *out_longest) {
  *out_longest = 0;
  for (size_t rank = 0; rank < local->size; rank++) {
    mark length = 0;
    if (!read_marks(local, rank, sizes, &ends[rank], &length)) {
      tarn__area_break(&local->area, TARN__GARBLED, rank, 0);
      return tarn__local_state(local);
    }
    if (length > *out_longest) *out_longest = length;
  }
  return TARN_OK;
}

// Intersects |*io_begin| to |*io_end| with the window of a slot at |window|.
static bool meet(mark window, size_t slot, mark *io_begin, mark *io_end) {
  if (*io_begin < window) *io_begin = window;
  if (*io_end > window + slot) *io_end = window + slot;
  return *io_begin < *io_end;
}

static void put_window(tarn__comm_local *local, mark window, const void *send,
                       const size_t *sizes, const size_t *offsets) {
  unsigned char *slot = tarn__local_slot(local);
  mark first = 0;
  for (size_t i = 1; i < local->size; i++) {
    size_t rank = behind(local, local->rank, i);
    mark begin = first;
    mark end = first + sizes[rank];
    if (meet(window, local->area.slot, &begin, &end)) {
      memcpy(slot + (begin - window),
             (const unsigned char *)send + offsets[rank] + (begin - first),
             end - begin);
    }
    first += sizes[rank];
  }
}

static void take_window(tarn__comm_local *local, mark window, void *receive,
                        const size_t *sizes, const size_t *offsets,
                        const mark *ends) {
  for (size_t rank = 0; rank < local->size; rank++) {
    if (rank == local->rank) continue;
    mark first = ends[rank] - sizes[rank];
    mark begin = first;
    mark end = ends[rank];
    if (!meet(window, local->area.slot, &begin, &end)) continue;
    memcpy((unsigned char *)receive + offsets[rank] + (begin - first),
           tarn__local_slot_of(local, rank) + (begin - window), end - begin);
  }
}

static tarn_status alltoallv(void *self, const void *send,
                             const size_t *send_sizes,
                             const size_t *send_offsets, void *receive,
                             const size_t *receive_sizes,
                             const size_t *receive_offsets) {
  tarn__comm_local *local = self;
  const agreed sizes = {send_sizes, receive_sizes};
  mark ends[TARN_COMM_MOST_RANKS] = {0};
  mark longest = 0;
  tell_marks(local, send_sizes);
  TARN__TRY(tarn__local_round(local));
  TARN__TRY(read_all_marks(local, &sizes, ends, &longest));
  for (mark window = 0; window < longest; window += local->area.slot) {
    put_window(local, window, send, send_sizes, send_offsets);
    TARN__TRY(tarn__local_round(local));
    take_window(local, window, receive, receive_sizes, receive_offsets, ends);
  }
  size_t own = send_sizes[local->rank];
  if (own != 0) {
    memmove((unsigned char *)receive + receive_offsets[local->rank],
            (const unsigned char *)send + send_offsets[local->rank], own);
  }
  return TARN_OK;
}

// --- the table -------------------------------------------------------------

static tarn_status check(void *self) {
  tarn__comm_local *local = self;
  tarn__local_look_at_all(local);
  return tarn__local_state(local);
}

static tarn_status split(void *self, const size_t *ranks, size_t size,
                         const tarn_comm_ops **out_ops, void **out_self) {
  tarn_status status = tarn__local_split(self, ranks, size, out_self);
  *out_ops = status == TARN_OK ? &tarn__local_ops : NULL;
  return status;
}

const tarn_comm_ops tarn__local_ops = {
    .struct_size = sizeof tarn__local_ops,
    .name = "local",
    .destroy = tarn__local_destroy,
    .broadcast = broadcast,
    .allgather = allgather,
    .alltoallv = alltoallv,
    .split = split,
    .share = tarn__local_share,
    .check = check,
};
