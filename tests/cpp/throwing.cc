// Uses of tarn.hpp with exceptions.
#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <string>
#include <tarn.hpp>
#include <vector>

#include "uses.h"

#define HOLDS(condition)                 \
  do {                                   \
    if (!(condition)) return #condition; \
  } while (0)

static_assert(!std::is_copy_constructible_v<tarn::device>);
static_assert(std::is_nothrow_move_constructible_v<tarn::device>);
static_assert(sizeof(tarn::device) == sizeof(tarn_device *));
static_assert(!std::is_copy_constructible_v<tarn::block>);
static_assert(std::is_nothrow_move_assignable_v<tarn::block>);
static_assert(!std::is_move_constructible_v<tarn::access<int>>);
static_assert(std::is_base_of_v<std::bad_alloc, tarn::no_memory>);

namespace {

std::size_t live(tarn_pool *pool) {
  tarn_pool_stats stats = {};
  stats.struct_size = sizeof stats;
  tarn::check(tarn_pool_query(pool, &stats));
  return stats.live_bytes;
}

tarn::device cpu() {
  return tarn::make<tarn::device>(tarn_device_open, "cpu:0");
}

}  // namespace

const char *cpp_handles_end_what_they_hold() {
  tarn::device gpu = cpu();
  tarn::pool pool =
      tarn::make<tarn::pool>(tarn_pool_create, tarn_place_on(gpu), nullptr);
  HOLDS(pool.get() != nullptr);
  tarn::pool moved = std::move(pool);
  HOLDS(pool.get() == nullptr && moved.get() != nullptr);
  tarn::block b(moved, 100);
  // It has a live block: close tells, and the handle keeps it.
  try {
    moved.close();
    return "closed with a live block";
  } catch (const tarn::error &e) {
    HOLDS(e.status() == TARN_E_STATE);
  }
  HOLDS(moved.get() != nullptr);
  b.close();
  HOLDS(!b);
  moved.close();
  HOLDS(moved.get() == nullptr);
  moved.close();
  pool = tarn::make<tarn::pool>(tarn_pool_create, tarn_place_on(gpu), nullptr);
  tarn_pool *raw = pool.release();
  HOLDS(pool.get() == nullptr);
  HOLDS(tarn_pool_destroy(raw) == TARN_OK);
  return nullptr;
}

const char *cpp_failures_throw() {
  try {
    (void)tarn::make<tarn::device>(tarn_device_open, "nothing:0");
    return "no device, and no exception";
  } catch (const tarn::error &e) {
    HOLDS(e.status() == TARN_E_INVALID);
    HOLDS(std::strstr(e.what(), "TARN_E_INVALID: ") == e.what());
    HOLDS(std::strstr(e.what(), "nothing:0") != nullptr);
  }
  tarn::device gpu = cpu();
  try {
    tarn::block huge(tarn::pool_of(tarn_place_on(gpu)), SIZE_MAX / 2);
    return "no memory, and no exception";
  } catch (const std::bad_alloc &e) {
    HOLDS(std::strstr(e.what(), "TARN_FULL: ") == e.what());
    HOLDS(dynamic_cast<const tarn::no_memory &>(e).status() == TARN_FULL);
  }
  tarn::check(TARN_OK);
  tarn::check(TARN_PENDING);
  return nullptr;
}

const char *cpp_blocks() {
  tarn::device gpu = cpu();
  tarn::stream stream = tarn::make<tarn::stream>(tarn_stream_create, gpu.get());
  tarn_pool *pool = tarn::pool_of(tarn_place_on(gpu));
  std::size_t before = live(pool);
  {
    tarn::block a(pool, 1000, stream, 256);
    HOLDS(a && a.size() >= 1000 && a.address() % 256 == 0);
    tarn::span<int> numbers = a.as<int>();
    HOLDS(numbers.size() == a.size() / sizeof(int));
    numbers[3] = 4;
    HOLDS(*(numbers.begin() + 3) == 4 && numbers.data()[3] == 4);
    tarn::block b = std::move(a);
    HOLDS(!a && b);
    tarn::block c = tarn::block::make(pool, 10, stream);
    c = std::move(b);
    HOLDS(c.as<int>()[3] == 4);
    c.free_on(nullptr);
    tarn_block raw = c.release();
    HOLDS(tarn_pool_free(&raw, nullptr) == TARN_OK);
    tarn::block last(pool, 10, stream);
    HOLDS(live(pool) > before);
  }
  HOLDS(live(pool) == before);
  return nullptr;
}

const char *cpp_accesses() {
  tarn::device gpu = cpu();
  tarn::buffer buffer =
      tarn::make<tarn::buffer>(tarn_synced_create, 64 * sizeof(float), nullptr);
  {
    tarn::access<float> all(tarn::discard, buffer, TARN_HOST);
    HOLDS(all.size() == 64 && all.status() == TARN_OK);
    std::fill(all.begin(), all.end(), 2.0f);
  }
  {
    tarn::access<const float> part(buffer, tarn_place_on(gpu), nullptr, 8, 4);
    tarn::span<const float> seen = part;
    HOLDS(seen.size() == 4 && seen[3] == 2.0f && part.address() != 0);
    // Reads and a write at once are refused.
    try {
      tarn::access<float> wrong(buffer, TARN_HOST);
      return "a write beside a read";
    } catch (const tarn::error &e) {
      HOLDS(e.status() == TARN_E_STATE);
    }
  }
  {
    tarn::access<float> some(buffer, TARN_HOST, nullptr, 60);
    HOLDS(some.size() == 4);
    some[0] = 3;
    some.close();
    HOLDS(some.data() == nullptr);
  }
  {
    tarn::access<float> lost(tarn::discard, buffer, TARN_HOST);
    lost.cancel();
  }
  return nullptr;
}

const char *cpp_containers() {
  tarn_pool *pool = tarn::pool_of(TARN_HOST);
  std::size_t before = live(pool);
  {
    tarn::pool_resource memory(pool);
    tarn::pool_resource same(pool);
    HOLDS(memory.is_equal(same) && memory.get() == pool);
    HOLDS(!memory.is_equal(*std::pmr::new_delete_resource()));
    std::pmr::map<int, std::pmr::string> names(&memory);
    for (int i = 0; i < 1000; i++)
      names[i] = std::string(static_cast<std::size_t>(i), 'x');
    HOLDS(names[777].size() == 777 && live(pool) > before + 500000);
    std::vector<int, tarn::allocator<int>> numbers(pool);
    for (int i = 0; i < 1000; i++)
      numbers.push_back(i);
    auto copy = numbers;
    HOLDS(copy == numbers && copy.get_allocator() == numbers.get_allocator());
    std::list<long, tarn::allocator<long>> list({1, 2, 3}, pool);
    HOLDS(list.back() == 3);
    void *wide = memory.allocate(100, 4096);
    HOLDS(reinterpret_cast<std::uintptr_t>(wide) % 4096 == 0);
    memory.deallocate(wide, 100, 4096);
    try {
      (void)tarn::allocator<double>(pool).allocate(SIZE_MAX / 4);
      return "too many elements";
    } catch (const std::bad_alloc &) {
    }
  }
  HOLDS(live(pool) == before);
  return nullptr;
}

// What has no wrapper is C, with the handles.
const char *cpp_tables() {
  tarn_comm_options alone = {};
  alone.struct_size = sizeof alone;
  alone.flags = TARN_COMM_ALONE;
  tarn::comm comm = tarn::make<tarn::comm>(tarn_comm_from_environment, &alone);
  tarn_whole_table_options options = {};
  options.struct_size = sizeof options;
  options.type = TARN_WHOLE_CHUNKED;
  options.place = TARN_HOST;
  options.dtype = TARN_DTYPE_F32;
  options.rows = 10;
  options.width = 4;
  tarn_whole_tensor table;
  tarn::check(tarn_whole_table_create(comm, &options, &table));
  tarn::whole memory(table.whole);
  std::int32_t ids[] = {7, 2};
  float dense[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  tarn_whole_rows rows = {};
  rows.struct_size = sizeof rows;
  rows.place = TARN_HOST;
  rows.dense = tarn_addr_of(dense);
  rows.indices = tarn_addr_of(ids);
  rows.index_dtype = TARN_DTYPE_I32;
  rows.index_count = 2;
  tarn::check(tarn_whole_scatter(&table, &rows, nullptr));
  tarn_cache_options near = {};
  near.struct_size = sizeof near;
  near.rows = 16;
  tarn::cache cache = tarn::make<tarn::cache>(tarn_cache_create, &table, &near);
  std::fill(dense, dense + 8, 0.0f);
  tarn::check(tarn_cache_gather(cache, &rows, nullptr));
  HOLDS(dense[0] == 1 && dense[7] == 8);
  return nullptr;
}
