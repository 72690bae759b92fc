// no_pool: every request and every free goes to the device.
//
// What a pool is measured against, and right where the driver keeps freed
// memory itself. A free waits for the stream of the block's last use, since
// the device takes memory away at once.
#include "pool/strategy.h"

static tarn_status init(tarn__strategy *strategy, tarn__options *options) {
  (void)strategy;
  (void)options;
  return TARN_OK;
}

static void deinit(tarn__strategy *strategy) {
  (void)strategy;
}

static tarn_status take(tarn__strategy *strategy, tarn__request *request,
                        tarn__piece **out_piece) {
  return tarn__source_grow(strategy, request, request->size, out_piece);
}

static tarn_status trim(tarn__strategy *strategy) {
  (void)strategy;
  return TARN_OK;
}

static tarn_status check(tarn__strategy *strategy, size_t *out_idle) {
  (void)strategy;
  *out_idle = 0;
  return TARN_OK;
}

const tarn__strategy_type tarn__no_pool = {
    .name = "no_pool",
    .size = sizeof(tarn__strategy),
    .init = init,
    .deinit = deinit,
    .take = take,
    .give = tarn__source_shrink,
    .let_go = tarn__source_shrink,
    .trim = trim,
    .check = check,
};
