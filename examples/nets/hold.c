// Accesses that begin one by one and end together.
#include "hold.h"

#include <assert.h>

static void *begin(net_hold *h, tarn_synced *buffer, size_t size,
                   tarn_access_mode mode) {
  assert(h->count < NET_HOLD_MOST);
  if (h->status != TARN_OK) return NULL;
  tarn_access *access = &h->access[h->count];
  h->status = tarn_synced_begin(buffer, 0, size, TARN_HOST, mode, NULL, access);
  if (h->status != TARN_OK) return NULL;
  h->written[h->count++] = mode != TARN_READ;
  return access->pointer;
}

static void *begin_part(net_hold *h, const tarn_tensor *tensor, tarn_part part,
                        tarn_access_mode mode) {
  return begin(h, part == TARN_DATA ? tensor->data : tensor->diff,
               tarn_tensor_size(tensor), mode);
}

const void *net_hold_read(net_hold *h, const tarn_tensor *tensor,
                          tarn_part part) {
  return begin_part(h, tensor, part, TARN_READ);
}

const void *net_hold_read_all(net_hold *h, tarn_synced *buffer) {
  return begin(h, buffer, TARN_ALL, TARN_READ);
}

void *net_hold_write(net_hold *h, const tarn_tensor *tensor, tarn_part part,
                     net_write write) {
  return begin_part(h, tensor, part,
                    write == NET_SET ? TARN_WRITE_DISCARD : TARN_READ_WRITE);
}

// Who needs the bytes of a copy that is queued waits for it.
static tarn_status bring_home(const net_hold *h, tarn_synced *buffer,
                              size_t size) {
  if (tarn_place_equal(h->home, TARN_HOST)) return TARN_OK;
  return tarn_synced_prefetch(buffer, 0, size, h->home, h->way_home, NULL);
}

// Ends the access; after a failure what was to be written is not.
static tarn_status end(net_hold *h, size_t index) {
  tarn_access *access = &h->access[index];
  tarn_synced *buffer = access->buffer;
  size_t size = access->size;
  if (h->status != TARN_OK) return tarn_synced_cancel(access, NULL);
  tarn_status status = tarn_synced_end(access);
  if (status != TARN_OK || !h->written[index]) return status;
  return bring_home(h, buffer, size);
}

tarn_status net_hold_end(net_hold *h) {
  for (size_t i = 0; i < h->count; i++) {
    tarn_status status = end(h, i);
    if (h->status == TARN_OK) h->status = status;
  }
  h->count = 0;
  return h->status;
}
