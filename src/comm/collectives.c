// The collectives: checks of arguments, an exchange of headers, and data too
// large for a header.
//
// A rank with wrong arguments takes part in the exchange and reports its status
// there: otherwise the others would wait for it.
#include <assert.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/os_peer.h"
#include "base/status.h"
#include "comm/comm.h"

tarn_status tarn_comm_barrier(tarn_comm *comm) {
  TARN__TRY(tarn__comm_state(comm));
  return tarn__comm_exchange_headers(comm, TARN__BARRIER, TARN_OK);
}

// --- broadcast -------------------------------------------------------------

static tarn_status check_broadcast(const tarn_comm *comm, size_t root,
                                   const void *data, size_t size) {
  if (root >= comm->size) {
    return tarn__fail(TARN_E_INVALID,
                      "tarn_comm_broadcast: root %zu is not below %zu ranks",
                      root, comm->size);
  }
  if (data == NULL && size != 0) {
    return tarn__fail(TARN_E_INVALID, "tarn_comm_broadcast: NULL for %zu bytes",
                      size);
  }
  return TARN_OK;
}

tarn_status tarn_comm_broadcast(tarn_comm *comm, size_t root, void *data,
                                size_t size) {
  TARN__TRY(tarn__comm_state(comm));
  tarn_status status = check_broadcast(comm, root, data, size);
  bool fits = size != 0 && size <= TARN__ON_HEADER && status == TARN_OK;
  if (fits && comm->rank == root) memcpy(comm->own.bytes, data, size);
  comm->own.root = root;
  comm->own.size = size;
  status = tarn__comm_exchange_headers(comm, TARN__BROADCAST, status);
  if (status != TARN_OK || size == 0) return status;
  if (fits) {
    if (comm->rank != root) memcpy(data, comm->headers[root].bytes, size);
    return TARN_OK;
  }
  return tarn__comm_note(comm,
                         comm->ops.broadcast(comm->self, root, data, size));
}

// --- allgather -------------------------------------------------------------

static tarn_status check_allgather(const tarn_comm *comm, const void *data,
                                   size_t size, const void *out) {
  size_t all = 0;
  if (!tarn_size_mul(comm->size, size, &all)) {
    return tarn__fail(
        TARN_E_INVALID,
        "tarn_comm_allgather: %zu bytes of each of %zu ranks overflow", size,
        comm->size);
  }
  if (size != 0 && (data == NULL || out == NULL)) {
    return tarn__fail(TARN_E_INVALID, "tarn_comm_allgather: NULL for %zu bytes",
                      size);
  }
  return TARN_OK;
}

static void copy_off_headers(const tarn_comm *comm, size_t size,
                             unsigned char *out) {
  for (size_t rank = 0; rank < comm->size; rank++)
    memcpy(out + rank * size, comm->headers[rank].bytes, size);
}

tarn_status tarn_comm_allgather(tarn_comm *comm, const void *data, size_t size,
                                void *out) {
  TARN__TRY(tarn__comm_state(comm));
  tarn_status status = check_allgather(comm, data, size, out);
  bool fits = size != 0 && size <= TARN__ON_HEADER && status == TARN_OK;
  if (fits) memcpy(comm->own.bytes, data, size);
  comm->own.size = size;
  status = tarn__comm_exchange_headers(comm, TARN__ALLGATHER, status);
  if (status != TARN_OK || size == 0) return status;
  if (fits) {
    copy_off_headers(comm, size, out);
    return TARN_OK;
  }
  return tarn__comm_note(comm,
                         comm->ops.allgather(comm->self, data, size, out));
}

// --- alltoallv -------------------------------------------------------------

// The sizes and offsets of one direction, and the bytes that they are of.
typedef struct half {
  const void *bytes;
  const size_t *sizes;
  const size_t *offsets;
} half;

static tarn_status check_side(const tarn_comm *comm, half side) {
  size_t end = 0;
  if (side.sizes == NULL || side.offsets == NULL) {
    return tarn__fail(TARN_E_INVALID, "tarn_comm_alltoallv: NULL");
  }
  for (size_t rank = 0; rank < comm->size; rank++) {
    if (!tarn_size_add(side.sizes[rank], side.offsets[rank], &end)) {
      return tarn__fail(TARN_E_INVALID,
                        "tarn_comm_alltoallv: size %zu at offset %zu overflows",
                        side.sizes[rank], side.offsets[rank]);
    }
    if (side.sizes[rank] != 0 && side.bytes == NULL) {
      return tarn__fail(TARN_E_INVALID,
                        "tarn_comm_alltoallv: NULL for %zu bytes",
                        side.sizes[rank]);
    }
  }
  return TARN_OK;
}

// Fills the first third of |room| with the bytes that each rank sends to this
// one. The rest holds the sizes and offsets of that exchange.
static tarn_status exchange_sizes(tarn_comm *comm, const size_t *send_sizes,
                                  size_t *room) {
  size_t *sent = room;
  size_t *each = room + comm->size;
  size_t *at = room + 2 * comm->size;
  for (size_t rank = 0; rank < comm->size; rank++) {
    each[rank] = sizeof *sent;
    at[rank] = rank * sizeof *sent;
  }
  return tarn__comm_note(comm, comm->ops.alltoallv(comm->self, send_sizes, each,
                                                   at, sent, each, at));
}

static tarn_status compare_sizes(const tarn_comm *comm, const size_t *sent,
                                 const size_t *expected) {
  for (size_t rank = 0; rank < comm->size; rank++) {
    if (sent[rank] == expected[rank]) continue;
    return tarn__fail(
        TARN_E_INVALID,
        "tarn_comm_alltoallv: expects %zu bytes from rank %zu, which sends %zu",
        expected[rank], rank, sent[rank]);
  }
  return TARN_OK;
}

static tarn_status agree_on_sizes(tarn_comm *comm, half out, half in,
                                  size_t *room) {
  TARN__TRY(exchange_sizes(comm, out.sizes, room));
  tarn_status status = compare_sizes(comm, room, in.sizes);
  return tarn__comm_exchange_headers(comm, TARN__ALLTOALLV, status);
}

static tarn_status prepare_exchange(tarn_comm *comm, half out, half in) {
  tarn_status status = check_side(comm, out);
  if (status == TARN_OK) status = check_side(comm, in);
  size_t *room = tarn__host_array(3 * comm->size, sizeof *room);
  if (room == NULL) status = TARN_E_NOMEM;
  status = tarn__comm_exchange_headers(comm, TARN__ALLTOALLV, status);
  if (status == TARN_OK) {
    assert(room != NULL);
    status = agree_on_sizes(comm, out, in, room);
  }
  tarn__host_free_array(room, 3 * comm->size, sizeof *room);
  return status;
}

tarn_status tarn_comm_alltoallv(tarn_comm *comm, const void *send,
                                const size_t *send_sizes,
                                const size_t *send_offsets, void *receive,
                                const size_t *receive_sizes,
                                const size_t *receive_offsets) {
  TARN__TRY(tarn__comm_state(comm));
  TARN__TRY(prepare_exchange(comm, (half){send, send_sizes, send_offsets},
                             (half){receive, receive_sizes, receive_offsets}));
  return tarn__comm_note(
      comm, comm->ops.alltoallv(comm->self, send, send_sizes, send_offsets,
                                receive, receive_sizes, receive_offsets));
}

// --- share -----------------------------------------------------------------

static tarn_status check_share(const tarn_comm *comm, int fd,
                               const int *out_fds) {
  if (out_fds == NULL) {
    return tarn__fail(TARN_E_INVALID, "tarn_comm_share: NULL");
  }
  if (comm->ops.share == NULL) {
    return tarn__fail(
        TARN_E_UNSUPPORTED,
        "tarn_comm_share: a communicator of kind %s cannot pass descriptors",
        comm->ops.name);
  }
  if (fd != -1 && !tarn__os_is_open(fd)) {
    return tarn__fail(TARN_E_INVALID,
                      "tarn_comm_share: %d is not an open file descriptor", fd);
  }
  return TARN_OK;
}

tarn_status tarn_comm_share(tarn_comm *comm, int fd, int *out_fds) {
  for (size_t rank = 0; comm != NULL && rank < comm->size; rank++) {
    if (out_fds != NULL) out_fds[rank] = -1;
  }
  TARN__TRY(tarn__comm_state(comm));
  assert(comm != NULL);
  tarn_status status = check_share(comm, fd, out_fds);
  TARN__TRY(tarn__comm_exchange_headers(comm, TARN__SHARE, status));
  assert(out_fds != NULL);
  status = tarn__comm_note(comm, comm->ops.share(comm->self, fd, out_fds));
  if (comm->broken.status != TARN_OK) return status;
  status = tarn__comm_exchange_headers(comm, TARN__SHARE, status);
  if (status != TARN_OK) tarn__os_close_all(out_fds, comm->size);
  return status;
}

// --- same and agree --------------------------------------------------------

static tarn_status check_same(const void *data, size_t size, const char *what) {
  if (what == NULL || (data == NULL && size != 0)) {
    return tarn__fail(TARN_E_INVALID, "tarn_comm_same: NULL");
  }
  if (size > TARN_COMM_MOST_SAME) {
    return tarn__fail(TARN_E_INVALID, "tarn_comm_same: %zu bytes exceed %d",
                      size, TARN_COMM_MOST_SAME);
  }
  return TARN_OK;
}

static size_t find_other(const tarn_comm *comm, size_t size) {
  const tarn__comm_header *headers = comm->headers;
  size_t rank = 1;
  while (rank < comm->size &&
         memcmp(headers[0].bytes, headers[rank].bytes, size) == 0)
    rank++;
  return rank;
}

static tarn_status tell_other(tarn_comm *comm, size_t rank, const char *what) {
  tarn__comm_half_text texts[2];
  TARN__TRY(tarn__comm_hear_both(comm, rank, what, texts));
  return tarn__fail(TARN_E_INVALID,
                    "ranks differ: rank 0 has %s, rank %zu has %s", texts[0],
                    rank, texts[1]);
}

tarn_status tarn__comm_agree_on(tarn_comm *comm, tarn_status status,
                                const void *data, size_t size,
                                const char *what) {
  TARN__TRY(tarn__comm_state(comm));
  if (status == TARN_OK) status = check_same(data, size, what);
  if (status == TARN_OK && size != 0) memcpy(comm->own.bytes, data, size);
  comm->own.size = size;
  TARN__TRY(tarn__comm_exchange_headers(comm, TARN__SAME, status));
  size_t other = find_other(comm, size);
  return other == comm->size ? TARN_OK : tell_other(comm, other, what);
}

tarn_status tarn_comm_same(tarn_comm *comm, const void *data, size_t size,
                           const char *what) {
  return tarn__comm_agree_on(comm, TARN_OK, data, size, what);
}

tarn_status tarn_comm_agree(tarn_comm *comm, tarn_status status) {
  TARN__TRY(tarn__comm_state(comm));
  return tarn__comm_exchange_headers(comm, TARN__AGREE, status);
}
