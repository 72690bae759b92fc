// The checks that begin each public call on a pool.
#include "pool/state.h"

#include "base/os.h"
#include "base/status.h"
#include "device/memory.h"

tarn_status tarn__front_check_pool(const tarn_pool *pool) {
  if (pool == NULL) return tarn__fail(TARN_E_INVALID, "pool: NULL");
  if (pool->generation != tarn__os_generation()) {
    return tarn__fail(TARN_E_STATE,
                      "the pool belongs to the parent process of a fork");
  }
  return tarn__not_in_callback();
}

tarn_status tarn__front_check_call(const tarn_pool *pool,
                                   const tarn_stream *stream,
                                   uint64_t *out_serial) {
  tarn_status status = tarn__front_check_pool(pool);
  if (status == TARN_OK && stream != NULL) {
    return tarn__stream_serial_for(stream, pool->supply.device,
                                   pool->place.kind, out_serial);
  }
  *out_serial = 0;
  return status;
}
