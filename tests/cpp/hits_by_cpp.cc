#include <tarn.hpp>

#include "hits.h"

tarn_addr hits_by_cpp(tarn_pool *pool, size_t count) {
  tarn_addr sum = 0;
  for (size_t i = 0; i < count; i++) {
    tarn::block block(pool, 1000);
    sum += block.address();
  }
  return sum;
}
