// Counts of users. The last one frees the count, before it ends the object: an
// end may take long.
#include "tarn/counted.h"

#include <stdatomic.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"

struct tarn_counted {
  atomic_size_t users;
  tarn_counted_end *end;
  void *object;  // NULL: it is |copy|
  _Alignas(max_align_t) unsigned char copy[TARN_COUNTED_MOST];
};

tarn_status tarn_counted_create(void *object, size_t size,
                                tarn_counted_end *end,
                                tarn_counted **out_counted) {
  if (out_counted != NULL) *out_counted = NULL;
  if (out_counted == NULL || object == NULL) {
    return tarn__fail(TARN_E_INVALID, "counted: NULL");
  }
  if (size > TARN_COUNTED_MOST) {
    return tarn__fail(TARN_E_INVALID, "counted: %zu bytes, more than %d", size,
                      TARN_COUNTED_MOST);
  }
  tarn_counted *made = tarn__host_alloc(sizeof *made);
  if (made == NULL) return TARN_E_NOMEM;
  atomic_init(&made->users, 1);
  made->end = end;
  made->object = size == 0 ? object : NULL;
  if (size > 0) memcpy(made->copy, object, size);
  *out_counted = made;
  return TARN_OK;
}

void tarn_counted_hold(tarn_counted *counted) {
  atomic_fetch_add_explicit(&counted->users, 1, memory_order_relaxed);
}

static void end_last(tarn_counted *counted) {
  tarn_counted last;
  memcpy(&last, counted, sizeof last);
  tarn__host_free(counted, sizeof *counted);
  if (last.end != NULL) last.end(last.object != NULL ? last.object : last.copy);
}

void tarn_counted_release(void *counted) {
  tarn_counted *known = counted;
  if (known == NULL) return;
  if (atomic_fetch_sub_explicit(&known->users, 1, memory_order_acq_rel) == 1) {
    end_last(known);
  }
}

size_t tarn_counted_users(const tarn_counted *counted) {
  return atomic_load(&counted->users);
}

tarn_status tarn_counted_close(tarn_counted *counted) {
  if (counted == NULL) return tarn__fail(TARN_E_INVALID, "counted: NULL");
  size_t others = atomic_load(&counted->users) - 1;
  if (others > 0) {
    return tarn__fail(TARN_E_STATE, "%zu views of it are in use", others);
  }
  tarn__host_free(counted, sizeof *counted);
  return TARN_OK;
}
