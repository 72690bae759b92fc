// Messages with a checksum. Each has a copy of its own while it is under way,
// with the sender and the sum of all before it behind the data:
//
//   | data ... | sender | CRC-32C |
//
// A copy that the engine may still use when the job has failed stays until the
// process ends; the data is free then.
#include <string.h>

#include "base/crc32c.h"
#include "base/hostmem.h"
#include "comm/messages.h"

enum { AT_A_TIME = 32 };

typedef struct seal {
  uint32_t sender;
  uint32_t sum;
} seal;

typedef struct parcel {
  tarn_list node;  // among those that were given up, then
  void *message;   // of the engine
  void *data;
  size_t size;
  size_t from;  // TARN_COMM_ANY: by the seal
  bool receives;
  unsigned char bytes[];
} parcel;

// --- one parcel ------------------------------------------------------------

static size_t size_for(size_t size) {
  return sizeof(parcel) + size + sizeof(seal);
}

static void free_parcel(parcel *p) {
  tarn__host_free(p, size_for(p->size));
}

static uint32_t sum_of(const parcel *p, const seal *s) {
  uint32_t sum = tarn__crc32c(0, p->bytes, p->size);
  return tarn__crc32c(sum, &s->sender, sizeof s->sender);
}

static void close_up(parcel *p, size_t sender) {
  seal s = {.sender = (uint32_t)sender};
  memcpy(p->bytes, p->data, p->size);
  s.sum = sum_of(p, &s);
  memcpy(p->bytes + p->size, &s, sizeof s);
}

// TARN_COMM_ANY: it is intact, and the data is there. Otherwise the sender, as
// far as can be told.
static size_t open(const tarn__comm_engine *e, const parcel *p) {
  seal s;
  memcpy(&s, p->bytes + p->size, sizeof s);
  bool known = s.sender < e->size;
  bool right = p->from == TARN_COMM_ANY ? known : s.sender == p->from;
  if (right && s.sum == sum_of(p, &s)) {
    memcpy(p->data, p->bytes, p->size);
    return TARN_COMM_ANY;
  }
  if (p->from != TARN_COMM_ANY) return p->from;
  return known ? s.sender : e->size;
}

// --- the messages ----------------------------------------------------------

tarn_status tarn__parcel_post(tarn__comm_engine *e, tarn_comm_way way,
                              size_t rank, uint32_t tag, void *data,
                              size_t size, void **out_message) {
  parcel *p = tarn__host_alloc(size_for(size));
  if (p == NULL) return TARN_E_NOMEM;
  p->data = data;
  p->size = size;
  p->from = rank;
  p->receives = way == TARN_COMM_RECEIVE;
  if (!p->receives) close_up(p, e->rank);
  tarn_status status = tarn__engine_post(e, way, rank, tag, p->bytes,
                                         size + sizeof(seal), &p->message);
  if (status == TARN_OK) {
    *out_message = p;
  } else {
    free_parcel(p);
  }
  return status;
}

// Of |list|, those that the engine is through with: what could not be opened is
// |*io_damaged|.
static tarn_status test_some(tarn__comm_engine *e, void **list, size_t count,
                             size_t *io_damaged) {
  void *messages[AT_A_TIME] = {NULL};
  for (size_t i = 0; i < count; i++) {
    const parcel *p = list[i];
    if (p != NULL) messages[i] = p->message;
  }
  tarn_status status = tarn__engine_test(e, messages, count);
  for (size_t i = 0; i < count; i++) {
    parcel *p = list[i];
    if (p == NULL) continue;
    p->message = messages[i];
    if (p->message != NULL) continue;
    size_t damaged = TARN_COMM_ANY;
    if (p->receives && status == TARN_OK) damaged = open(e, p);
    if (damaged != TARN_COMM_ANY) *io_damaged = damaged;
    free_parcel(p);
    list[i] = NULL;
  }
  return status;
}

tarn_status tarn__parcel_test(tarn__comm_engine *e, void **list, size_t count,
                              size_t *out_damaged) {
  *out_damaged = TARN_COMM_ANY;
  for (size_t i = 0; i < count; i += AT_A_TIME) {
    size_t some = tarn__lesser(count - i, AT_A_TIME);
    TARN__TRY(test_some(e, list + i, some, out_damaged));
  }
  return TARN_OK;
}

bool tarn__parcel_drop(tarn__comm_engine *e, bool receives, void *message) {
  parcel *p = message;
  bool is_free = receives && e->ops.cancel(e->self, p->message);
  if (is_free) {
    free_parcel(p);
  } else {
    tarn_list_add_tail(&e->parcels, &p->node);
  }
  return is_free;
}
