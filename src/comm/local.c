// Ranks of one machine as a communicator's operations.
//
// What is exchanged goes through the slots, in rounds: each rank copies a part
// of what it has into its own, and what it wants out of the others'. In a child
// of fork nothing is touched but host memory and the child's own mappings and
// descriptors.
#include "comm/local.h"

#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/os_peer.h"
#include "base/status.h"

// --- beginning and end -----------------------------------------------------

static tarn_status fill(tarn__comm_local *local, const size_t *places) {
  local->places = tarn__host_array(local->size, sizeof *local->places);
  local->signs = tarn__host_array(local->size, sizeof *local->signs);
  local->transfers = tarn__host_array(local->size, sizeof *local->transfers);
  if (local->places == NULL || local->signs == NULL ||
      local->transfers == NULL) {
    return TARN_E_NOMEM;
  }
  for (size_t rank = 0; rank < local->size; rank++) {
    local->places[rank] = places == NULL ? rank : places[rank];
  }
  return tarn__mailbox_init(local->post, local->area.head->token, local->places,
                            local->size, &local->mailbox);
}

void tarn__local_forget(tarn__comm_local *local) {
  tarn__mailbox_deinit(local->post, &local->mailbox);
  if (local->post != NULL) tarn__post_release(local->post);
  tarn__host_free_array(local->transfers, local->size,
                        sizeof *local->transfers);
  tarn__host_free_array(local->signs, local->size, sizeof *local->signs);
  tarn__host_free_array(local->places, local->size, sizeof *local->places);
  tarn__host_free(local, sizeof *local);
}

tarn_status tarn__local_create(tarn__comm_area area, tarn__comm_post *post,
                               size_t rank, const size_t *places,
                               uint64_t timeout_ms,
                               tarn__comm_local **out_local) {
  tarn__comm_local *local = tarn__host_alloc(sizeof *local);
  *out_local = NULL;
  if (local == NULL) return TARN_E_NOMEM;
  *local = (tarn__comm_local){
      .area = area,
      .post = post,
      .rank = rank,
      .size = area.ranks,
      .timeout_ms = timeout_ms,
      .generation = tarn__os_generation(),
  };
  tarn_status status = fill(local, places);
  if (status == TARN_OK) {
    *out_local = local;
    return TARN_OK;
  }
  local->post = NULL;
  tarn__local_forget(local);
  return status;
}

void tarn__local_destroy(void *self) {
  tarn__comm_local *local = self;
  tarn__comm_area area = local->area;
  if (local->generation == tarn__os_generation()) {
    tarn__area_leave(&area, local->rank);
  }
  tarn__local_forget(local);
  tarn__area_unmap(&area);
}

// --- operations ------------------------------------------------------------

static size_t part_of(size_t size, size_t done, size_t most) {
  return size - done < most ? size - done : most;
}

static tarn_status broadcast(void *self, size_t root, void *data, size_t size) {
  tarn__comm_local *local = self;
  unsigned char *bytes = data;
  size_t part = 0;
  for (size_t done = 0; done < size; done += part) {
    part = part_of(size, done, local->area.slot);
    if (local->rank == root) {
      memcpy(tarn__local_slot(local), bytes + done, part);
    }
    tarn_status status = tarn__local_round(local);
    if (status != TARN_OK) return status;
    if (local->rank != root) {
      memcpy(bytes + done, tarn__local_slot_of(local, root), part);
    }
  }
  return TARN_OK;
}

// This rank's own bytes, if they are not there already.
static void keep_own(const tarn__comm_local *local, const void *data,
                     size_t size, unsigned char *out) {
  unsigned char *own = out + local->rank * size;
  if (own != data) memcpy(own, data, size);
}

static void read_parts(const tarn__comm_local *local, unsigned char *out,
                       size_t size, size_t done, size_t part) {
  for (size_t rank = 0; rank < local->size; rank++) {
    if (rank == local->rank) continue;
    memcpy(out + rank * size + done, tarn__local_slot_of(local, rank), part);
  }
}

static tarn_status allgather(void *self, const void *data, size_t size,
                             void *out) {
  tarn__comm_local *local = self;
  size_t part = 0;
  for (size_t done = 0; done < size; done += part) {
    part = part_of(size, done, local->area.slot);
    memcpy(tarn__local_slot(local), (const unsigned char *)data + done, part);
    tarn_status status = tarn__local_round(local);
    if (status != TARN_OK) return status;
    read_parts(local, out, size, done, part);
  }
  if (size != 0) keep_own(local, data, size, out);
  return TARN_OK;
}

static tarn_status check(void *self) {
  tarn__comm_local *local = self;
  if (tarn__area_is_broken(&local->area)) return tarn__local_state(local);
  for (size_t rank = 0; rank < local->size; rank++) {
    local->signs[rank] =
        rank == local->rank
            ? -1
            : tarn__post_sign_of(local->post, local->places[rank]);
  }
  tarn__local_look(local, TARN__ENDED);
  return tarn__local_state(local);
}

const tarn_comm_ops tarn__local_ops = {
    .struct_size = sizeof tarn__local_ops,
    .name = "local",
    .destroy = tarn__local_destroy,
    .broadcast = broadcast,
    .allgather = allgather,
    .alltoallv = tarn__local_alltoallv,
    .split = tarn__local_split,
    .share = tarn__local_share,
    .check = check,
};
