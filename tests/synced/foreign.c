// Memory set or wrapped at a place that it does not belong to: refused before
// any change if the device can tell. Memory that the device identifies as its
// own is accepted, however it was allocated. Copies that fail change neither
// the head nor pointers nor validity.
#include <unistd.h>

#include "support/fake_extension.h"
#include "support/fake_plugin.h"
#include "tarn/range.h"
#include "wrap_kit.h"

// Memory of all kinds stays behind, so the devices stay open.
static void open_for_good(tarn_device *device) {
  open_x(device);
  forget(&gpu);
  forget(other);
  forget(gpu);
}

// A test on each device that tells what an address belongs to.
#define TEST_FOREIGN(name, count)                                      \
  static void name##_told(int _i);                                     \
  TEST_LOOP_ON(name, count, TEST_NEEDS_DISCRETE | TEST_NEEDS_POINTERS, \
               open_for_good) {                                        \
    name##_told(_i);                                                   \
  }                                                                    \
  static void name##_told(__attribute__((unused)) int _i)

// The last error has |text| in it, with the names of the devices for G and O.
static void assert_tells(const char *text) {
  char told[256];
  size_t length = 0;
  for (; *text != '\0'; text++) {
    const char letter[2] = {*text, '\0'};
    const char *part = letter;
    if (*text == 'G') part = tarn_device_name(gpu);
    if (*text == 'O') part = tarn_device_name(other);
    length += (size_t)snprintf(told + length, sizeof told - length, "%s", part);
  }
  assert_error_says(told);
}

static tarn_addr address_on(tarn_place place, size_t size) {
  tarn_addr address = 0;
  assert_ok(tarn_device_allocate(place, size, &address));
  return address;
}

// --- what is refused -------------------------------------------------------

static tarn_addr of_another_device(void) {
  return address_on(tarn_place_on(other), SIZE);
}

static tarn_addr of_the_host(void) {
  return address_of(outside);
}

static tarn_addr of_the_host_pinned(void) {
  return address_on((tarn_place){gpu, TARN_PLACE_HOST}, SIZE);
}

static tarn_addr that_was_given_back(void) {
  tarn_addr address = address_on(tarn_place_on(gpu), SIZE);
  assert_ok(tarn_device_deallocate(tarn_place_on(gpu), address, SIZE));
  return address;
}

static tarn_addr that_is_too_short(void) {
  return address_on(tarn_place_on(gpu), SIZE - 1);
}

static tarn_addr beyond_all_addresses(void) {
  return UINT64_MAX - HALF;
}

typedef struct wrong_memory {
  tarn_addr (*take)(void);
  const char *text;
} wrong_memory;

static const wrong_memory wrong[] = {
    {of_another_device, "is memory of O, not of G"},
    {of_the_host, "is unknown to G"},
    {of_the_host_pinned, "is memory of G/host, not of G"},
    {that_was_given_back, "is unknown to G"},
    {that_is_too_short, "is unknown to G"},
    {beyond_all_addresses, "4096 bytes"},
};
enum { WRONG = sizeof wrong / sizeof wrong[0] };

// What a refused call must leave as it was.
static void assert_untouched(const void *host, uint64_t copies) {
  const void *now = NULL;
  assert_head(x, TARN_HEAD_AT_CPU);
  ck_assert_uint_eq(info_at(TARN_HOST).valid, SIZE);
  ck_assert_uint_eq(all_copies(), copies);
  assert_ok(tarn_synced_cpu_data(x, &now));
  ck_assert_ptr_eq(now, host);
  assert_pattern(now, 0, SIZE, 1);
  ck_assert_int_eq(mine.calls, 0);
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 0);
}

TEST_FOREIGN(memory_of_others_is_refused, WRONG) {
  const wrong_memory *of = &wrong[_i];
  void *host = NULL;
  tarn_addr address = of->take();
  assert_ok(tarn_synced_mutable_cpu_data(x, &host));
  fill_pattern(host, 0, SIZE, 1);
  assert_status(tarn_synced_set_gpu_data(x, address), TARN_E_INVALID);
  assert_tells(of->text);
  assert_untouched(host, 0);
  assert_status(try_wrap(tarn_place_on(gpu), address, 0, &mine),
                TARN_E_INVALID);
  assert_untouched(host, 0);
  assert_range(x, 0, SIZE, tarn_place_on(gpu), 1);
}

TEST_FOREIGN(device_memory_is_none_of_the_hosts, 1) {
  write_range(x, 0, SIZE, tarn_place_on(gpu), 1);
  tarn_addr address = address_on(tarn_place_on(other), SIZE);
  for (int i = 0; i < 2; i++) {
    void *pointer = (void *)(uintptr_t)address;
    assert_status(tarn_synced_set_cpu_data(x, pointer), TARN_E_INVALID);
    assert_tells(i == 0 ? "is memory of O, not of host"
                        : "is memory of G, not of host");
    assert_head(x, TARN_HEAD_AT_GPU);
    address = address_on(tarn_place_on(gpu), SIZE);
  }
  assert_range(x, 0, SIZE, TARN_HOST, 1);
}

TEST_FOREIGN(unified_places_want_what_both_can_touch, 1) {
  tarn_place unified = {gpu, TARN_PLACE_UNIFIED};
  if (!device_has_memory(gpu, unified.kind)) return;
  assert_status(
      try_wrap(unified, address_on(tarn_place_on(gpu), SIZE), 0, NULL),
      TARN_E_INVALID);
  assert_tells("is memory of G, not of G/unified");
  assert_status(try_wrap(unified, address_of(outside), 0, NULL),
                TARN_E_INVALID);
  assert_ok(try_wrap(unified, address_on(unified, SIZE), 0, NULL));
  assert_ok(try_wrap(unified, of_the_host_pinned(), 0, NULL));
}

// --- what is taken ---------------------------------------------------------

// Its bytes are the newest, and it is filled by what the host writes.
static void assert_taken(tarn_addr address) {
  tarn_addr now = 0;
  put_on(gpu, address, 0, SIZE, 5);
  assert_ok(tarn_synced_set_gpu_data(x, address));
  assert_head(x, TARN_HEAD_AT_GPU);
  assert_range(x, 0, SIZE, TARN_HOST, 5);
  write_range(x, 0, SIZE, TARN_HOST, 6);
  assert_ok(tarn_synced_gpu_data(x, &now));
  ck_assert_uint_eq(now, address);
  assert_on(gpu, address, 0, SIZE, 6);
  assert_ok(tarn_synced_evict(x, tarn_place_on(gpu)));
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 0);
}

static const char *const strategies[] = {"arena_pool", "page_unit_pool",
                                         "buddy_pool", "async_pool", "no_pool"};
enum { STRATEGIES = sizeof strategies / sizeof strategies[0], BLOCKS = 8 };

TEST_LOOP_ON(blocks_of_pools, STRATEGIES,
             TEST_NEEDS_DISCRETE | TEST_NEEDS_POINTERS, open_x) {
  tarn_pool_options options = {.struct_size = sizeof options,
                               .strategy = strategies[_i]};
  tarn_pool *pool = NULL;
  tarn_block blocks[BLOCKS];
  assert_ok(tarn_pool_create(tarn_place_on(gpu), &options, &pool));
  for (size_t i = 0; i < BLOCKS; i++)
    assert_ok(tarn_pool_alloc(pool, SIZE + i * 100, 0, NULL, &blocks[i]));
  for (size_t i = 0; i < BLOCKS; i++)
    assert_taken(blocks[i].address);
  assert_taken(blocks[BLOCKS - 1].address + 256);  // inside of one
  for (size_t i = 0; i < BLOCKS; i++)
    assert_ok(tarn_pool_free(&blocks[i], NULL));
  assert_ok(tarn_pool_destroy(pool));
}

static size_t granularity(void) {
  size_t size = 0;
  assert_ok(tarn_range_granularity(gpu, &size));
  return size;
}

static void map_at(tarn_addr at, size_t size, tarn_memory memory) {
  assert_ok(tarn_range_map(gpu, at, size, memory));
  assert_ok(tarn_range_set_access(gpu, at, size, gpu, TARN_RIGHTS_READ_WRITE));
}

// A buffer across two mappings, and one in memory that was imported.
TEST(mapped_memory) {
  tarn_memory memories[3];
  tarn_addr range = 0;
  int descriptor = -1;
  open_for_good(sim());
  size_t unit = granularity();
  assert_ok(tarn_range_reserve(gpu, 3 * unit, 0, &range));
  for (size_t i = 0; i < 2; i++) {
    assert_ok(
        tarn_memory_create(gpu, unit, TARN_MEMORY_SHAREABLE, &memories[i]));
    map_at(range + i * unit, unit, memories[i]);
  }
  assert_ok(tarn_memory_export(gpu, memories[0], &descriptor));
  assert_ok(tarn_memory_import(gpu, descriptor, unit, &memories[2]));
  map_at(range + 2 * unit, unit, memories[2]);
  assert_taken(range);
  assert_taken(range + unit - HALF);
  assert_taken(range + 2 * unit);
  assert_status(tarn_synced_set_gpu_data(x, range + 3 * unit - HALF),
                TARN_E_INVALID);
  assert_ok(tarn_range_unmap(gpu, range + unit, unit));
  assert_status(tarn_synced_set_gpu_data(x, range + unit - HALF),
                TARN_E_INVALID);
  assert_status(tarn_synced_set_gpu_data(x, range + unit), TARN_E_INVALID);
}

TEST(unified_and_pinned_memory) {
  open_for_good(sim());
  assert_taken(address_on((tarn_place){gpu, TARN_PLACE_UNIFIED}, SIZE));
  assert_ok(tarn_device_host_register(gpu, outside, SIZE));
  assert_ok(tarn_synced_set_cpu_data(x, outside));
  assert_ok(tarn_synced_evict(x, TARN_HOST));
  assert_ok(tarn_device_host_unregister(gpu, outside));
  void *pinned = (void *)(uintptr_t)of_the_host_pinned();
  assert_ok(tarn_synced_set_cpu_data(x, pinned));
}

TEST_SET_ON(no_bytes_are_anybodys, TEST_NEEDS_DISCRETE, open_devices) {
  x = buffer_on(gpu, 0);
  assert_ok(tarn_synced_set_gpu_data(x, address_of(outside)));
}

// Where the device cannot answer, or is the host's, nothing is refused.
TEST_ON(devices_that_cannot_tell, 0) {
  unsigned char *bytes = malloc(SIZE);
  const void *host = NULL;
  ck_assert_ptr_nonnull(bytes);
  x = buffer_on(device, SIZE);
  fill_pattern(bytes, 0, SIZE, 7);
  bool tells = (tarn_device_extensions(device) & TARN_EXTENSION_POINTERS) != 0;
  bool refuses = tells && device_has(device, TEST_NEEDS_DISCRETE);
  assert_status(tarn_synced_set_gpu_data(x, address_of(bytes)),
                refuses ? TARN_E_INVALID : TARN_OK);
  if (!refuses) {
    assert_ok(tarn_synced_cpu_data(x, &host));
    assert_pattern(host, 0, SIZE, 7);
  }
  assert_ok(tarn_synced_destroy(x));
  free(bytes);
}

// A driver that fails instead of an answer.
TEST(a_query_that_fails) {
  open_for_good(sim());
  write_range(x, 0, SIZE, TARN_HOST, 1);
  tarn_addr address = address_on(tarn_place_on(gpu), SIZE);
  assert_ok(tarn_sim_faults("pointer_query@1"));
  assert_status(tarn_synced_set_gpu_data(x, address), TARN_E_DEVICE);
  assert_head(x, TARN_HEAD_AT_CPU);
  assert_ok(tarn_synced_set_gpu_data(x, address));
  assert_head(x, TARN_HEAD_AT_GPU);
  assert_ok(tarn_sim_faults("pointer_query@1"));
  assert_status(tarn_synced_set_cpu_data(x, outside), TARN_E_DEVICE);
  assert_head(x, TARN_HEAD_AT_GPU);
  assert_ok(tarn_synced_set_cpu_data(x, outside));
  assert_head(x, TARN_HEAD_AT_CPU);
}

// --- what a driver is called for -------------------------------------------

static tarn_device *open_fake(bool extension) {
  tarn_device *device = NULL;
  fake_ext.there = extension;
  fake_add();
  assert_ok(tarn_device_open("fake:0", &device));
  x = buffer_on(device, SIZE);
  return device;
}

// Nothing is asked of a driver that cannot tell.
TEST(no_calls_of_devices_that_cannot_tell) {
  tarn_device *device = open_fake(false);
  assert_ok(try_wrap(tarn_place_on(device), address_of(outside), 0, NULL));
  size_t calls = fake_seen.set_device_calls;
  size_t queries = fake_seen.memory_queries;
  assert_ok(try_wrap(tarn_place_on(device), address_of(outside), 0, NULL));
  assert_ok(try_wrap(TARN_HOST, address_of(outside), 0, NULL));
  ck_assert_uint_eq(fake_seen.set_device_calls, calls);
  ck_assert_uint_eq(fake_seen.memory_queries, queries);
  assert_ok(tarn_synced_destroy(x));
  assert_ok(tarn_device_close(device));
}

TEST(nothing_else_is_asked_of_others) {
  tarn_device *device = open_fake(true);
  size_t queries = fake_seen.memory_queries;
  fake_ext.refusing = FAKE_SLOT(pointer_query);
  fake_ext.answer = TARN_E_INVALID;
  assert_ok(try_wrap(TARN_HOST, address_of(outside), 0, NULL));
  ck_assert_uint_ne(fake_ext_seen.called & FAKE_SLOT(pointer_query), 0);
  ck_assert_uint_eq(fake_seen.memory_queries, queries);
  assert_ok(tarn_synced_destroy(x));
  assert_ok(tarn_device_close(device));
}

// As another thread might, in the middle of a wrap at the host.
static tarn_device *closing;
static int closes;

static void close_meanwhile(void) {
  assert_status(tarn_device_close(closing), TARN_E_STATE);
  assert_error_says("fake:0: cannot close: buffer");
  closes++;
}

TEST(a_device_that_is_asked_stays_open) {
  closing = open_fake(true);
  fake_ext.refusing = FAKE_SLOT(pointer_query);
  fake_ext.answer = TARN_E_INVALID;
  fake_ext.asked = close_meanwhile;
  assert_ok(try_wrap(TARN_HOST, address_of(outside), 0, NULL));
  ck_assert_int_eq(closes, 2);
  fake_ext.asked = NULL;
  assert_ok(tarn_device_close(closing));
  assert_ok(try_wrap(TARN_HOST, address_of(outside), 0, NULL));
  assert_ok(tarn_synced_destroy(x));
}

// The memory that a buffer's device pins for it at the host.
TEST(a_device_that_pins_memory_stays_open) {
  closing = open_fake(false);
  void *host = NULL;
  fake.allocating = close_meanwhile;
  assert_ok(tarn_synced_mutable_cpu_data(x, &host));
  fake.allocating = NULL;
  ck_assert_int_gt(closes, 0);
  assert_ok(tarn_synced_destroy(x));
  assert_ok(tarn_device_close(closing));
}

// Another room, which is asked after the buffers whether the device may close,
// and takes its time.
static _Atomic bool is_closing;
static tarn_status objection;
static pthread_t wrapper;

static void *wrap_at_host(void *unused) {
  (void)unused;
  require(try_wrap(TARN_HOST, address_of(outside), 0, NULL) == TARN_OK);
  return NULL;
}

static tarn_status close_slowly(tarn_device *device, void *pointer,
                                bool commit) {
  (void)device;
  (void)pointer;
  if (commit) return TARN_OK;
  is_closing = true;
  require(pthread_create(&wrapper, NULL, wrap_at_host, NULL) == 0);
  usleep(50000);
  is_closing = false;
  return objection;
}

static void note_when(void) {
  require(!is_closing);
  closes++;
}

// Nor is it asked while it closes, nor once it has; if it does not, it is.
TEST_LOOP(a_device_that_closes_is_not_asked, 2) {
  tarn_device *device = open_fake(true);
  objection = _i == 0 ? TARN_OK : TARN_E_STATE;
  fake_ext.refusing = FAKE_SLOT(pointer_query);
  fake_ext.answer = TARN_E_INVALID;
  fake_ext.asked = note_when;
  assert_ok(
      tarn_device_attach(device, TARN_SLOT_POOL, &objection, close_slowly));
  assert_status(tarn_device_close(device), objection);
  ck_assert_int_eq(pthread_join(wrapper, NULL), 0);
  ck_assert_int_eq(closes, _i == 0 ? 0 : 2);
  assert_ok(tarn_synced_destroy(x));
}

// --- copies that fail ------------------------------------------------------

// Both sides as they were.
typedef struct sight {
  tarn_synced_state head;
  tarn_synced_info host;
  tarn_synced_info device;
} sight;

static sight look(void) {
  return (sight){tarn_synced_head(x), info_at(TARN_HOST),
                 info_at(tarn_place_on(gpu))};
}

static void assert_same_side(const tarn_synced_info *now,
                             const tarn_synced_info *was) {
  ck_assert_uint_eq(now->valid, was->valid);
  ck_assert_uint_eq(now->pending, was->pending);
  ck_assert_uint_eq(now->lost, was->lost);
  ck_assert_int_eq(now->borrowed, was->borrowed);
  if (was->memory > 0) ck_assert_uint_eq(now->memory, was->memory);
}

static void assert_same(const sight *was) {
  sight now = look();
  ck_assert_int_eq(now.head, was->head);
  assert_same_side(&now.host, &was->host);
  assert_same_side(&now.device, &was->device);
}

// A copy from the device to Tarn's host memory, or to foreign memory, fails.
TEST_LOOP(a_failed_copy_to_the_host, 2) {
  const void *host = NULL;
  tarn_addr now = 0;
  open_for_good(sim());
  if (_i > 0) assert_ok(tarn_synced_set_cpu_data(x, outside));
  tarn_addr address = device_memory(3);
  assert_ok(tarn_synced_set_gpu_data(x, address));
  sight before = look();
  assert_ok(tarn_sim_faults("memory_copy_d2h@1+"));
  assert_status(tarn_synced_cpu_data(x, &host), TARN_E_DEVICE);
  ck_assert_ptr_null(host);
  assert_same(&before);
  ck_assert_int_eq(before.head, TARN_HEAD_AT_GPU);
  assert_ok(tarn_synced_gpu_data(x, &now));
  ck_assert_uint_eq(now, address);
  assert_ok(tarn_sim_faults(NULL));
  assert_ok(tarn_synced_cpu_data(x, &host));
  if (_i > 0) ck_assert_ptr_eq(host, outside);
  assert_pattern(host, 0, SIZE, 3);
}

TEST_LOOP(a_failed_copy_to_the_device, 2) {
  const void *host = NULL;
  tarn_addr now = 0;
  open_for_good(sim());
  tarn_addr address = device_memory(3);
  if (_i > 0) assert_ok(tarn_synced_set_gpu_data(x, address));
  fill_pattern(outside, 0, SIZE, 4);
  assert_ok(tarn_synced_set_cpu_data(x, outside));
  sight before = look();
  assert_ok(tarn_sim_faults("memory_copy_h2d@1+"));
  assert_status(tarn_synced_mutable_gpu_data(x, &now), TARN_E_DEVICE);
  ck_assert_uint_eq(now, 0);
  assert_same(&before);
  ck_assert_int_eq(before.head, TARN_HEAD_AT_CPU);
  assert_ok(tarn_synced_cpu_data(x, &host));
  ck_assert_ptr_eq(host, outside);
  assert_pattern(host, 0, SIZE, 4);
  assert_ok(tarn_sim_faults(NULL));
  assert_ok(tarn_synced_gpu_data(x, &now));
  if (_i > 0) ck_assert_uint_eq(now, address);
  assert_on(gpu, now, 0, SIZE, 4);
}
