// Uses of tarn.hpp without exceptions.
#define TARN_NO_EXCEPTIONS
#include <cstring>
#include <tarn.hpp>

#include "uses.h"

#define HOLDS(condition)                 \
  do {                                   \
    if (!(condition)) return #condition; \
  } while (0)

const char *cpp_results() {
  tarn::result<tarn::device> none =
      tarn::make<tarn::device>(tarn_device_open, "nothing:0");
  HOLDS(!none.ok() && none.status() == TARN_E_INVALID);
  HOLDS(none.value().get() == nullptr);
  HOLDS(std::strstr(tarn_last_error(), "nothing:0") != nullptr);
  tarn::result<tarn::device> some =
      tarn::make<tarn::device>(tarn_device_open, "cpu:0");
  HOLDS(some.ok());
  tarn::device gpu = std::move(some).value();
  tarn::result<tarn_pool *> pool = tarn::pool_of(tarn_place_on(gpu));
  HOLDS(pool.ok());
  tarn::result<tarn::block> huge =
      tarn::block::make(pool.value(), SIZE_MAX / 2);
  HOLDS(huge.status() == TARN_FULL && !huge.value());
  tarn::result<tarn::block> block = tarn::block::make(pool.value(), 100);
  HOLDS(block.ok() && block.value().size() >= 100);
  HOLDS(block.value().close() == TARN_OK);
  tarn::pool_resource memory(pool.value());
  std::pmr::polymorphic_allocator<int> numbers(&memory);
  numbers.deallocate(numbers.allocate(10), 10);
  HOLDS(gpu.close() == TARN_OK && gpu.get() == nullptr);
  return nullptr;
}

const char *cpp_accesses_with_results() {
  tarn::result<tarn::buffer> made =
      tarn::make<tarn::buffer>(tarn_synced_create, 64, nullptr);
  HOLDS(made.ok());
  tarn::access<int> first(made.value(), TARN_HOST);
  HOLDS(first.status() == TARN_OK && first.size() == 16);
  tarn::access<const int> second(made.value(), TARN_HOST);
  HOLDS(second.status() == TARN_E_STATE && second.data() == nullptr);
  HOLDS(first.close() == TARN_OK);
  return nullptr;
}
