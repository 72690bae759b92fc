// strategy.h - sets the strategy of a place's pool.
#ifndef TARN_TESTS_SUPPORT_STRATEGY_H_
#define TARN_TESTS_SUPPORT_STRATEGY_H_

#include "tarn/pool.h"

TARN_MUST_CHECK static inline tarn_status use_strategy(tarn_place place,
                                                       const char *strategy) {
  tarn_pool *pool = NULL;
  tarn_status status = tarn_pool_of(place, &pool);
  return status != TARN_OK ? status : tarn_pool_set_strategy(pool, strategy);
}

#endif  // TARN_TESTS_SUPPORT_STRATEGY_H_
