// The document on memory pools, from its first line to its last, with its words
// beside each assertion: the two strategies, the experiment with one layer of
// BERT, changing the strategy, and a strategy of one's own.
//
// Each test runs on every device of support/document.h. Instead of times,
// calls of the device are counted: they are what the times consist of.
#include <stdlib.h>
#include <string.h>

#include "support/document.h"
#include "support/run.h"
#include "support/strategy.h"
#include "tarn/pool.h"
#include "tarn/strategy.h"
#include "tarn/trace.h"

#define KB ((size_t)1024)

static tarn_device *device;
static tarn_place place;
static tarn_pool *pool;
static size_t free_at_first;

static size_t free_now(void) {
  size_t total = 0;
  size_t available = 0;
  assert_ok(tarn_device_memory(device, &total, &available));
  return available;
}

static void open_on(int i) {
  unsetenv("TARN_POOL");
  unsetenv("TARN_POOL_DEBUG");
  device = document_open(i);
  place = tarn_place_on(device);
  assert_ok(tarn_pool_of(place, &pool));
  free_at_first = free_now();
}

static tarn_pool_stats stats_now(void) {
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  assert_ok(tarn_pool_query(pool, &stats));
  return stats;
}

// All memory has come back. Other programs use the host's memory too.
static void close_on(void) {
  bool is_host = strcmp(tarn_device_name(device), "cpu:0") == 0;
  ck_assert_uint_eq(stats_now().live_blocks, 0);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(stats_now().reserved_bytes, 0);
  if (!is_host) ck_assert_uint_eq(free_now(), free_at_first);
  assert_ok(tarn_device_close(device));
}

// InitPool(device, name) and RemovePool(device) of RAF's memory pool.
static void init_pool(const char *name) {
  assert_ok(tarn_pool_set_strategy(pool, name));
}

static void remove_pool(void) {
  assert_ok(tarn_pool_set_strategy(pool, NULL));
}

static tarn_block request(size_t size) {
  tarn_block block;
  assert_ok(tarn_pool_alloc(pool, size, 0, NULL, &block));
  return block;
}

static void release(tarn_block block) {
  assert_ok(tarn_pool_free(&block, NULL));
}

// Calls of the device since |before|.
static uint64_t allocated_since(tarn_pool_stats before) {
  return stats_now().device_allocs - before.device_allocs;
}

// Of a device that names how much pools are to take at once, the first buffer
// takes that much, and the next ones are cut from it.
static bool takes_at_once(void) {
  return !device_has(device, TEST_NEEDS_FREE_GROWTH);
}

// Calls for |count| buffers behind the first.
static uint64_t buffers(uint64_t count) {
  return takes_at_once() ? 0 : count;
}

static size_t taken_for(size_t first) {
  tarn_device_info info = {.struct_size = sizeof info};
  assert_ok(tarn_device_query(device, &info));
  return takes_at_once() ? info.init_size : first;
}

static uint64_t freed_since(tarn_pool_stats before) {
  return stats_now().device_frees - before.device_frees;
}

// --- page unit pool --------------------------------------------------------

// "When user requests a memory buffer, and the page unit pool has a buffer with
// the requested size that is not being used, then page unit pool simply returns
// the shared pointer instead of allocating a new buffer."
TEST_LOOP(a_buffer_that_is_not_used_is_returned, DOCUMENT_DEVICES) {
  open_on(_i);
  init_pool("page_unit_pool");
  tarn_block first = request(4 * KB);
  release(first);
  tarn_pool_stats before = stats_now();
  tarn_block second = request(4 * KB);
  ck_assert_uint_eq(second.address, first.address);
  ck_assert_uint_eq(allocated_since(before), 0);
  ck_assert_uint_eq(stats_now().hits, before.hits + 1);
  release(second);
  close_on();
}

// "... that is not being used": no other request gets one that is held.
TEST_LOOP(a_buffer_that_is_used_is_not_returned, DOCUMENT_DEVICES) {
  open_on(_i);
  init_pool("page_unit_pool");
  tarn_block held = request(4 * KB);
  tarn_pool_stats before = stats_now();
  tarn_block other = request(4 * KB);
  ck_assert_uint_ne(other.address, held.address);
  ck_assert_uint_eq(allocated_since(before), buffers(1));
  release(held);
  tarn_block again = request(4 * KB);
  ck_assert_uint_eq(again.address, held.address);
  ck_assert_uint_eq(allocated_since(before), buffers(1));
  release(again);
  release(other);
  close_on();
}

// "the size of each memory request is rounded up to a page unit (e.g., assuming
// the page size is 4KBs, then a request of 3KBs will still get a 4KB buffer)"
TEST_LOOP(a_request_of_3_kb_gets_a_buffer_of_4, DOCUMENT_DEVICES) {
  open_on(_i);
  init_pool("page_unit_pool");
  tarn_pool_stats before = stats_now();
  tarn_block block = request(3 * KB);
  ck_assert_uint_eq(block.size, 4 * KB);
  ck_assert_uint_eq(stats_now().reserved_bytes - before.reserved_bytes,
                    taken_for(4 * KB));
  release(block);
  close_on();
}

// "so that the requests result in the same size could potential share the
// buffer"
TEST_LOOP(requests_of_the_same_rounded_size_share_a_buffer, DOCUMENT_DEVICES) {
  open_on(_i);
  init_pool("page_unit_pool");
  tarn_block first = request(3 * KB);
  release(first);
  tarn_pool_stats before = stats_now();
  tarn_block second = request(4 * KB - 1);
  ck_assert_uint_eq(second.address, first.address);
  ck_assert_uint_eq(allocated_since(before), 0);
  release(second);
  // "a buffer with the requested size": neither a larger nor a smaller one.
  tarn_block larger = request(5 * KB);
  ck_assert_uint_ne(larger.address, first.address);
  ck_assert_uint_eq(larger.size, 8 * KB);
  ck_assert_uint_eq(allocated_since(before), buffers(1));
  release(larger);
  tarn_block smaller = request(1);
  ck_assert_uint_eq(smaller.address, first.address);
  tarn_block another = request(1);
  ck_assert_uint_ne(another.address, larger.address);
  ck_assert_uint_eq(allocated_since(before), buffers(2));
  release(smaller);
  release(another);
  close_on();
}

// The page unit is an option: "assuming the page size is 4KBs".
TEST_LOOP(the_page_unit_can_be_set, DOCUMENT_DEVICES) {
  open_on(_i);
  init_pool("page_unit_pool:page=65536");
  tarn_block block = request(3 * KB);
  ck_assert_uint_eq(block.size, 64 * KB);
  release(block);
  close_on();
}

// --- no pool ---------------------------------------------------------------

// "this memory pool does not maintain a "pool". All requests of allocating or
// freeing memory are directly proceed by the device APIs"
TEST_LOOP(no_pool_asks_the_device_each_time, DOCUMENT_DEVICES) {
  open_on(_i);
  init_pool("no_pool");
  for (int i = 0; i < 10; i++) {
    tarn_pool_stats before = stats_now();
    tarn_block block = request(4 * KB);
    ck_assert_uint_eq(allocated_since(before), 1);
    ck_assert_uint_eq(freed_since(before), 0);
    release(block);
    ck_assert_uint_eq(freed_since(before), 1);
    ck_assert_uint_eq(stats_now().reserved_bytes, 0);
    ck_assert_uint_eq(stats_now().hits, before.hits);
  }
  close_on();
}

// --- the experiment --------------------------------------------------------

typedef struct iteration {
  uint64_t requests;
  uint64_t asked;  // calls that allocate memory of the device
} iteration;

static iteration run_layer(const tarn_trace *layer, tarn_block *blocks) {
  tarn_pool_stats before = stats_now();
  for (size_t i = 0; i < layer->event_count; i++) {
    const tarn_trace_event *event = &layer->events[i];
    if (event->kind == TARN_TRACE_ALLOC) {
      blocks[event->block] = request(layer->blocks[event->block].size);
    } else if (event->kind == TARN_TRACE_FREE) {
      release(blocks[event->block]);
    }
  }
  return (iteration){.requests = stats_now().allocs - before.allocs,
                     .asked = allocated_since(before)};
}

static void run_experiment(const char *strategy, int count, iteration out[]) {
  tarn_trace *layer = NULL;
  assert_ok(tarn_trace_make("@bert-layer", &layer));
  tarn_block *blocks = calloc(layer->block_count, sizeof *blocks);
  ck_assert_ptr_nonnull(blocks);
  init_pool(strategy);
  for (int i = 0; i < count; i++)
    out[i] = run_layer(layer, blocks);
  free(blocks);
  tarn_trace_destroy(layer);
}

// "one layer BERT model with batch size 4 and sequence length 128": "about 50%
// memory buffers can be reused within the same iteration" (no pool: 25.2 ms,
// page unit pool: 15.2 ms), "almost all memory buffers can be reused cross
// iterations" (19.3 ms and 0.9 ms). Here all of them are.
TEST_LOOP(iterations_of_one_layer_of_bert, DOCUMENT_DEVICES) {
  iteration none[2];
  iteration unit[2];
  open_on(_i);
  run_experiment("no_pool", 2, none);
  run_experiment("page_unit_pool", 2, unit);
  ck_assert_uint_gt(none[0].requests, 50);
  for (int i = 0; i < 2; i++) {
    ck_assert_uint_eq(none[i].requests, none[0].requests);
    ck_assert_uint_eq(unit[i].requests, none[0].requests);
    ck_assert_uint_eq(none[i].asked, none[i].requests);
  }
  ck_assert_uint_gt(unit[0].asked, 0);
  ck_assert_uint_le(unit[0].asked, unit[0].requests * 6 / 10);
  ck_assert_uint_eq(unit[1].asked, 0);
  close_on();
}

// --- changing the strategy -------------------------------------------------

// "By default, we use page unit pool for both CPUs and GPUs". Tarn's default
// holds less memory and reuses as much: once it has laid out an iteration,
// those that come again ask for nothing. Before, it asks as long as that costs
// less than moving pages, which depends on the machine.
// TARN_POOL=page_unit_pool makes the document's the default.
TEST_LOOP(the_default_reuses_all_memory_too, DOCUMENT_DEVICES) {
  iteration some[10];
  open_on(_i);
  const char *name = stats_now().strategy;
  ck_assert_str_eq(name, "arena_pool");
  run_experiment(name, 10, some);
  ck_assert_uint_gt(some[0].asked, 0);
  ck_assert_uint_eq(some[9].asked, 0);
  setenv("TARN_POOL", "page_unit_pool", 1);
  remove_pool();
  ck_assert_str_eq(stats_now().strategy, "page_unit_pool");
  unsetenv("TARN_POOL");
  close_on();
}

// "InitPool(str2dev("cuda"), "no_pool")", and "If you want to change back to
// default memorpy strategy, you can call RemovePool(device) or
// InitPool(device, "page_unit_pool")."
TEST_LOOP(the_strategy_is_changed_by_its_name, DOCUMENT_DEVICES) {
  open_on(_i);
  init_pool("no_pool");
  ck_assert_str_eq(stats_now().strategy, "no_pool");
  tarn_pool_stats before = stats_now();
  release(request(4 * KB));
  release(request(4 * KB));
  ck_assert_uint_eq(allocated_since(before), 2);
  init_pool("page_unit_pool");
  ck_assert_str_eq(stats_now().strategy, "page_unit_pool");
  before = stats_now();
  release(request(4 * KB));
  release(request(4 * KB));
  ck_assert_uint_eq(allocated_since(before), 1);
  remove_pool();
  ck_assert_str_eq(stats_now().strategy, "arena_pool");
  assert_status(use_strategy(place, "your_pool"), TARN_E_INVALID);
  ck_assert_str_eq(stats_now().strategy, "arena_pool");
  close_on();
}

// "everytime you call InitPool, the current pool will be removed first, even if
// the new pool's name is equal to the current one"
TEST_LOOP(the_same_name_is_a_new_pool, DOCUMENT_DEVICES) {
  open_on(_i);
  init_pool("page_unit_pool");
  release(request(4 * KB));
  ck_assert_uint_eq(stats_now().reserved_bytes, taken_for(4 * KB));
  init_pool("page_unit_pool");
  ck_assert_uint_eq(stats_now().reserved_bytes, 0);
  tarn_pool_stats before = stats_now();
  release(request(4 * KB));
  ck_assert_uint_eq(allocated_since(before), 1);
  close_on();
}

static void fill(tarn_block block, int value) {
  unsigned char bytes[4 * KB];
  memset(bytes, value, sizeof bytes);
  assert_ok(tarn_copy_h2d(device, block.address, bytes, sizeof bytes, NULL));
}

static void assert_filled(tarn_block block, int value) {
  unsigned char bytes[4 * KB];
  assert_ok(tarn_copy_d2h(device, bytes, block.address, sizeof bytes, NULL));
  for (size_t i = 0; i < sizeof bytes; i++)
    require(bytes[i] == value);
}

// "if you change the memory pool in the middle, the new memory pool will lose
// the buffer pointers of already allocated ndarrays and may result in memory
// leak". In Tarn it does not: they keep their bytes, and their memory goes back
// when they are freed.
TEST_LOOP(buffers_survive_a_change_and_do_not_leak, DOCUMENT_DEVICES) {
  static const char *const names[] = {"page_unit_pool", "no_pool", "arena_pool",
                                      "buddy_pool", "page_unit_pool"};
  enum { NAMES = sizeof names / sizeof *names };
  tarn_block blocks[NAMES];
  open_on(_i);
  for (int i = 0; i < NAMES; i++) {
    init_pool(names[i]);
    blocks[i] = request(4 * KB);
    fill(blocks[i], i + 1);
  }
  remove_pool();
  for (int i = 0; i < NAMES; i++)
    assert_filled(blocks[i], i + 1);
  ck_assert_uint_eq(stats_now().live_blocks, NAMES);
  for (int i = 0; i < NAMES; i++)
    release(blocks[i]);
  ck_assert_uint_eq(stats_now().reserved_bytes, 0);
  close_on();
}

// --- a pool of one's own ---------------------------------------------------

// "Step 1: Prepare": a file of its own, named as the pool: power_pool.c of the
// examples. "Step 2: Implement your pool": the functions of tarn_strategy take
// the place of the classes Memory and MemoryPool. "Step 3: Register your pool":
// "After re-make RAF, you can enable your pool by calling InitPool(contxt,
// pool_name)." Nothing is made again here.
TEST_LOOP(a_pool_of_ones_own, DOCUMENT_DEVICES) {
  open_on(_i);
  assert_status(use_strategy(place, "power_pool"), TARN_E_INVALID);
  assert_ok(tarn_pool_register(TarnPoolStrategy()));
  init_pool("power_pool");
  ck_assert_str_eq(stats_now().strategy, "power_pool");
  tarn_block block = request(3 * KB);
  ck_assert_uint_eq(block.size, 4 * KB);
  fill(block, 7);
  assert_filled(block, 7);
  release(block);
  tarn_pool_stats before = stats_now();
  tarn_block again = request(4 * KB);
  ck_assert_uint_eq(again.address, block.address);
  ck_assert_uint_eq(allocated_since(before), 0);
  remove_pool();
  release(again);
  close_on();
}
