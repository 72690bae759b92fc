// async_pool and no_pool: every request and every free goes to the device.
//
//   async_pool   in the order of the request's stream, where the driver has
//                that: no one waits, and the driver caches freed memory
//   no_pool      at once: a free waits for the stream of the block's last use,
//                since the device takes memory away
//
// no_pool is the baseline that pools are measured against. On a driver that
// says that it keeps freed memory and allocates it again quickly, no_pool is
// async_pool: the driver is the pool. Without a stream, and for memory that is
// not the device's own, both call the device at once.
//
// Memory that is freed in the order of a stream is the driver's when the stream
// has reached the free. A request that finds the device full waits for such
// memory, once.
#include "device/memory.h"
#include "pool/front.h"

typedef struct direct {
  tarn__pool_strategy base;
  bool queued;  // memory may be on its way back
} direct;

static direct *self_of(tarn__pool_strategy *strategy) {
  return (direct *)(void *)strategy;  // the base is the first member
}

static tarn_status init(tarn__pool_strategy *strategy,
                        tarn__pool_strategy_options *options) {
  bool is_async = strategy->type == &tarn__async_pool;
  uint32_t wanted =
      TARN_EXTENSION_STREAM_ORDER | (is_async ? 0 : TARN_EXTENSION_RETAINS);
  (void)options;
  strategy->ordered = (strategy->pool->extensions & wanted) == wanted;
  return TARN_OK;
}

static void deinit(tarn__pool_strategy *strategy) {
  (void)strategy;
}

// Waits for all that the device's streams have queued.
static tarn_status drain(tarn__pool_strategy *strategy) {
  self_of(strategy)->queued = false;
  tarn__source_begin_ask(strategy, 0, 0);
  tarn_status status = tarn_device_synchronize(strategy->pool->supply.device);
  tarn__source_end_ask(strategy, 0);
  return status;
}

static tarn_status take(tarn__pool_strategy *strategy,
                        tarn__pool_request *request,
                        tarn__pool_piece **out_piece) {
  tarn_status status =
      tarn__source_grow(strategy, request, request->size, out_piece);
  bool drains = self_of(strategy)->queued && !request->no_wait;
  if (status != TARN_FULL || request->no_grow || !drains) return status;
  (void)drain(strategy);  // a failed stream has ended, too
  return tarn__source_grow(strategy, request, request->size, out_piece);
}

static tarn_status give(tarn__pool_strategy *strategy,
                        tarn__pool_piece *piece) {
  if (strategy->ordered && piece->freed_on != 0) {
    self_of(strategy)->queued = true;
  }
  return tarn__source_shrink(strategy, piece);
}

static tarn_status trim(tarn__pool_strategy *strategy, size_t target,
                        unsigned how) {
  (void)strategy;
  (void)target;
  (void)how;
  return TARN_OK;
}

// Nothing ever is.
static void survey(tarn__pool_strategy *strategy, tarn__pool_survey *out) {
  (void)strategy;
  (void)out;
}

static tarn_status check(tarn__pool_strategy *strategy, size_t *out_idle) {
  (void)strategy;
  *out_idle = 0;
  return TARN_OK;
}

const tarn__pool_strategy_type tarn__no_pool = {
    .table = {.name = "no_pool", .size = sizeof(direct)},
    .init = init,
    .deinit = deinit,
    .take = take,
    .give = give,
    .let_go = give,
    .trim = trim,
    .survey = survey,
    .check = check,
};

const tarn__pool_strategy_type tarn__async_pool = {
    .table = {.name = "async_pool", .size = sizeof(direct)},
    .init = init,
    .deinit = deinit,
    .take = take,
    .give = give,
    .let_go = give,
    .trim = trim,
    .survey = survey,
    .check = check,
};
