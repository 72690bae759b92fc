// What simulated devices have beyond the ABI, but for ranges: alignments,
// stream order, registration, queries, faults by name.
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rows_kit.h"
#include "support/faults.h"

// --- the table -------------------------------------------------------------

TEST(every_slot_is_there) {
  tarn_device_info info = {.struct_size = sizeof info};
  tarn_device *sim = sim_open("sim:0");
  assert_ok(tarn_device_query(sim, &info));
  ck_assert_uint_eq(info.extensions, 0xf7ff);  // all but retains
  ck_assert_uint_eq(info.alignment, 256);
  assert_ok(tarn_device_close(sim));
}

// --- alignments ------------------------------------------------------------

TEST(blocks_are_aligned_as_asked) {
  size_t align = 0;
  uint64_t address = 0;
  ext_init(0);
  assert_ok(ext->alignment(0, &align));
  ck_assert_uint_eq(align, 256);
  assert_ok(ext->allocate_aligned(0, CAPACITY, 4 * CAPACITY, &address));
  ck_assert_uint_eq(address % (4 * CAPACITY), 0);
  assert_done(give(0, address, CAPACITY));
  for (align = 1; align <= 2 * CAPACITY; align *= 2) {
    (void)take(0, 300);  // so that the next one would not be
    assert_ok(ext->allocate_aligned(0, 1000, align, &address));
    ck_assert_uint_eq(address & (align - 1), 0);
    ck_assert_uint_eq(address % 256, 0);
    ext_write(0, address + 999, "x", 1);
    ck_assert_uint_eq(ext_byte(0, address + 999), 'x');
    assert_done(give(0, address, 1000));
  }
  ext_finalize(0);
}

TEST(an_alignment_costs_no_memory) {
  uint64_t address = 0;
  ext_init(0);
  (void)take(0, 256);
  assert_ok(ext->allocate_aligned(0, CAPACITY - 512, MIB, &address));
  ck_assert_uint_eq(ext_free_memory(0), 256);
  assert_status(ext->allocate_aligned(0, 512, 1, &address), TARN_FULL);
  ck_assert_uint_eq(address, 0);
  assert_text_says(NULL, "sim:0: no 512 bytes of memory so aligned left");
  assert_refused(ext->allocate_aligned(0, 0, 256, &address), "no bytes");
  assert_refused(ext->allocate_aligned(0, 64, 48, &address), "no power of two");
  assert_refused(ext->allocate_aligned(0, 64, 0, &address), "no power of two");
  assert_refused(ext->allocate_aligned(-1, 64, 64, &address), "device -1 of 2");
  ext_finalize(4);
}

// --- stream order ----------------------------------------------------------

TEST(a_stream_gives_back_in_its_order) {
  uint64_t a = 0;
  uint64_t b = 0;
  static unsigned char bytes[64];
  ext_init(5000000);
  C_Stream stream = ext_stream(0);
  assert_ok(ext->allocate_async(0, stream, CAPACITY, &a));
  for (int i = 0; i < 3; i++) {
    assert_done(table.async_memory_copy_h2d(&ids[0], stream, ext_pointer(a),
                                            bytes, 64));
  }
  assert_ok(ext->deallocate_async(0, stream, a, CAPACITY));
  ck_assert_uint_eq(ext_free_memory(0), 0);  // it counts until then
  // What is queued waits for room that the stream itself will give.
  assert_ok(ext->allocate_async(0, stream, CAPACITY, &b));
  ck_assert_uint_ne(a, b);
  assert_done(table.synchronize_stream(&ids[0], stream));
  assert_ok(ext->deallocate_async(0, NULL, b, CAPACITY));
  ck_assert_uint_eq(ext_free_memory(0), CAPACITY);
  // Either function takes back what either gave.
  assert_ok(ext->allocate_async(0, NULL, 100, &a));
  assert_done(give(0, a, 100));
  b = take(0, 200);
  assert_ok(ext->deallocate_async(0, stream, b, 200));
  assert_done(table.synchronize_device(&ids[0]));
  ck_assert_uint_eq(ext_free_memory(0), CAPACITY);
  ext_finalize(0);
}

TEST(a_block_on_its_way_is_gone_for_others) {
  static unsigned char bytes[64];
  ext_init(20000000);
  C_Stream stream = ext_stream(0);
  uint64_t a = take(0, 4096);
  assert_done(
      table.async_memory_copy_h2d(&ids[0], stream, ext_pointer(a), bytes, 64));
  assert_done(
      table.async_memory_copy_h2d(&ids[0], stream, ext_pointer(a), bytes, 64));
  assert_ok(ext->deallocate_async(0, stream, a, 4096));
  assert_c(
      table.async_memory_copy_h2d(&ids[0], stream, ext_pointer(a), bytes, 64),
      C_ERROR);
  assert_reported("use after free of a block of 4096 bytes taken by");
  assert_c(table.device_memory_set(&ids[0], ext_pointer(a), 0, 1), C_ERROR);
  assert_reported("use after free");
  assert_refused(ext->deallocate_async(0, stream, a, 4096),
                 "double free of a block of 4096 bytes");
  assert_c(give(0, a, 4096), C_ERROR);
  assert_reported("double free");
  // What was queued before was right to.
  assert_done(table.synchronize_stream(&ids[0], stream));
  assert_text_says(stream, "");
  ck_assert_uint_eq(ext_free_memory(0), CAPACITY);
  assert_refused(ext->deallocate_async(0, stream, a, 4096), "double free");
  ext_finalize(5);
}

TEST(wrong_stream_orders_are_refused) {
  uint64_t a = 1;
  ext_init(0);
  C_Stream other = ext_stream(1);
  assert_refused(ext->allocate_async(0, other, 64, &a),
                 "allocate_async: no stream of this device");
  ck_assert_uint_eq(a, 0);
  assert_refused(ext->allocate_async(0, NULL, 0, &a), "no bytes");
  assert_status(ext->allocate_async(1, other, CAPACITY + 1, &a), TARN_FULL);
  a = take(0, 64);
  assert_refused(ext->deallocate_async(0, other, a, 64),
                 "no stream of this device");
  assert_refused(ext->deallocate_async(0, NULL, a, 63), "size mismatch");
  assert_refused(ext->deallocate_async(1, other, a, 64),
                 "foreign pointer: an address of sim:0");
  assert_done(give(0, a, 64));
  ext_finalize(5);
}

static void *churn(void *context) {
  uint64_t blocks[8] = {0};
  C_Stream stream = ext_stream(0);
  (void)context;
  for (int i = 0; i < 2000; i++) {
    uint64_t *block = &blocks[i % 8];
    if (*block != 0) {
      require(ext->deallocate_async(0, stream, *block, 100) == TARN_OK);
    }
    require(ext->allocate_async(0, stream, 100, block) == TARN_OK);
    require(table.async_memory_copy_h2d(&ids[0], stream, ext_pointer(*block),
                                        &table, 100) == C_SUCCESS);
  }
  for (int i = 0; i < 8; i++)
    require(ext->deallocate_async(0, stream, blocks[i], 100) == TARN_OK);
  require(table.synchronize_stream(&ids[0], stream) == C_SUCCESS);
  return NULL;
}

TEST(threads_take_and_give_on_streams) {
  pthread_t threads[2];
  ext_init(0);
  for (int i = 0; i < 2; i++)
    ck_assert_int_eq(pthread_create(&threads[i], NULL, churn, NULL), 0);
  for (int i = 0; i < 2; i++)
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
  ck_assert_uint_eq(ext_free_memory(0), CAPACITY);
  ext_finalize(0);
}

// --- memory of the host ----------------------------------------------------

static unsigned char own[4096];

TEST(host_memory_is_registered_once) {
  void *pinned = NULL;
  ext_init(0);
  assert_ok(ext->host_register(0, own + 64, 1000));
  assert_ok(ext->host_register(1, own, 4096));  // another device's affair
  assert_refused(ext->host_register(0, own + 1063, 1),
                 "some of it is known already");
  assert_refused(ext->host_register(0, own, 65), "known");
  assert_refused(ext->host_register(0, own, 4096), "known");
  assert_ok(ext->host_register(0, own + 1064, 8));
  assert_ok(ext->host_register(0, own, 64));
  assert_refused(ext->host_register(0, NULL, 64), "no address");
  assert_refused(ext->host_register(0, own + 2000, 0), "no bytes");
  assert_refused(ext->host_register(0, own + 2000, SIZE_MAX),
                 "beyond the last address");
  assert_refused(ext->host_register(0, ext_pointer(take(1, 64)), 64),
                 "wrong direction");
  assert_done(table.host_memory_allocate(&ids[0], &pinned, 4096));
  assert_refused(ext->host_register(0, pinned, 64), "known");
  assert_refused(ext->host_unregister(0, own + 65),
                 "no registered memory begins there");
  assert_ok(ext->host_unregister(0, own + 64));
  assert_refused(ext->host_unregister(0, own + 64), "no registered memory");
  assert_refused(ext->host_unregister(0, pinned), "no registered memory");
  assert_ok(ext->host_register(0, own + 64, 1000));
  ext_finalize(11);
}

// --- what is known ---------------------------------------------------------

static void assert_known(int asked, uint64_t address, tarn_ext_kind kind,
                         int id, uint64_t base, size_t size) {
  tarn_ext_pointer p = {.id = 9};
  assert_ok(ext->pointer_query(asked, address, &p));
  ck_assert_int_eq(p.kind, kind);
  ck_assert_int_eq(p.id, id);
  ck_assert_uint_eq(p.base, base);
  ck_assert_uint_eq(p.size, size);
}

static void assert_unknown(uint64_t address) {
  tarn_ext_pointer p = {.id = 9, .base = 9};
  assert_status(ext->pointer_query(0, address, &p), TARN_E_INVALID);
  ck_assert_int_eq(p.id, 0);
  ck_assert_uint_eq(p.base, 0);
  assert_text_says(NULL, "nothing is known of address 0x");
}

TEST(addresses_are_known_for_what_they_are) {
  void *pinned = NULL;
  void *unified = NULL;
  ext_init(0);
  uint64_t a = take(1, 1000);
  assert_known(1, a, TARN_EXT_KIND_DEVICE, 1, a, 1000);
  assert_known(0, a + 999, TARN_EXT_KIND_DEVICE, 1, a, 1000);
  assert_unknown(a + 1000);
  assert_done(table.host_memory_allocate(&ids[0], &pinned, 100));
  assert_done(table.unified_memory_allocate(&ids[1], &unified, 100));
  uint64_t p = (uintptr_t)pinned;
  uint64_t u = (uintptr_t)unified;
  assert_known(0, p + 99, TARN_EXT_KIND_HOST, 0, p, 100);
  assert_unknown(p + 100);
  assert_known(0, u, TARN_EXT_KIND_UNIFIED, 1, u, 100);
  uint64_t o = (uintptr_t)own;
  assert_unknown(o);
  assert_ok(ext->host_register(1, own, 50));
  assert_known(0, o + 49, TARN_EXT_KIND_HOST, 1, o, 50);
  assert_ok(ext->host_register(0, own, 60));  // one's own goes first
  assert_known(0, o + 49, TARN_EXT_KIND_HOST, 0, o, 60);
  assert_known(1, o + 49, TARN_EXT_KIND_HOST, 1, o, 50);
  uint64_t range = ext_reserve(0, 2 * GRANULE);
  ext_map(0, range, GRANULE, ext_create(1, GRANULE, 0));
  assert_known(0, range + 77, TARN_EXT_KIND_DEVICE, 1, range, GRANULE);
  assert_unknown(range + GRANULE);
  assert_unknown(0);
  assert_done(give(1, a, 1000));
  assert_unknown(a);
  ext_finalize(0);  // to ask is no misuse
}

// --- faults by name --------------------------------------------------------

static tarn_status call_named(int number) {
  uint64_t out = 0;
  size_t size = 0;
  int fd = 0;
  tarn_ext_pointer pointer;
  uint64_t a = s.range;
  switch (number) {
    case 0:
      return ext->allocate_aligned(0, 64, 64, &out);
    case 1:
      return ext->range_reserve(0, GRANULE, 0, &out);
    case 2:
      return ext->memory_create(0, GRANULE, 0, &out);
    case 3:
      return ext->allocate_async(0, NULL, 64, &out);
    case 4:
      return ext->alignment(0, &size);
    case 5:
      return ext->range_granularity(0, &size);
    case 6:
      return ext->range_release(0, a, 2 * GRANULE);
    case 7:
      return ext->memory_destroy(0, 1);
    case 8:
      return ext->range_map(0, a, GRANULE, 1);
    case 9:
      return ext->range_unmap(0, a, 2 * GRANULE);
    case 10:
      return ext->range_set_access(0, a, 2 * GRANULE, 0, 0);
    case 11:
      return ext->memory_export(0, 1, &fd);
    case 12:
      return ext->memory_import(0, 0, GRANULE, &out);
    case 13:
      return ext->deallocate_async(0, NULL, s.dense, 80);
    case 14:
      return ext->host_register(0, own, 8);
    case 15:
      return ext->host_unregister(0, own);
    case 16:
      return ext->pointer_query(0, s.dense, &pointer);
    case 17:
      return ext->gather(0, NULL, &s.rows);
    case 18:
      return ext->scatter(0, NULL, &s.rows);
    case 19:
      return ext->range_move(0, a, a + 4 * GRANULE, 2 * GRANULE, &size);
    default:
      return ext->scatter_add(0, NULL, &s.rows);
  }
}

static const char *const names[] = {
    "allocate_aligned", "range_reserve",    "memory_create",
    "allocate_async",   "alignment",        "range_granularity",
    "range_release",    "memory_destroy",   "range_map",
    "range_unmap",      "range_set_access", "memory_export",
    "memory_import",    "deallocate_async", "host_register",
    "host_unregister",  "pointer_query",    "gather",
    "scatter",          "range_move",       "scatter_add"};
enum { NAMES = sizeof names / sizeof names[0], EXHAUSTIBLE = 4 };

// A call that fails on purpose has done nothing and is no misuse.
TEST(every_function_fails_by_name) {
  char plan[64];
  char said[96];
  ext_init(0);
  set_up_rows(0);
  for (int i = 0; i < NAMES; i++) {
    tarn_status wanted_status = i < EXHAUSTIBLE ? TARN_FULL : TARN_E_DEVICE;
    snprintf(plan, sizeof plan, "%s@1+", names[i]);
    snprintf(said, sizeof said, "sim: %s fails on purpose", names[i]);
    for (int k = 0; k < 2; k++) {
      assert_ok(tarn_sim_faults(k == 0 ? plan : "*@1"));
      assert_status(call_named(i), wanted_status);
      assert_text_says(NULL, said);
    }
  }
  assert_ok(tarn_sim_faults(NULL));
  assert_ok(call_named(17));
  assert_ok(ext->range_unmap(0, s.range, 2 * GRANULE));
  assert_ok(ext->range_release(0, s.range, 2 * GRANULE));
  ext_finalize(0);
}

static void scenario(void *context) {
  uint64_t block = 0;
  C_Stream stream = context;
  tarn_status status = ext->allocate_async(0, stream, 256, &block);
  require((status == TARN_OK) == (block != 0));
  (void)ext->gather(0, stream, &s.rows);
  if (ext->host_register(0, own, 64) == TARN_OK) {
    require(ext->host_unregister(0, own) == TARN_OK);
  }
  require(table.synchronize_stream(&ids[0], stream) == C_SUCCESS);
  if (block == 0) return;
  // Behind a copy, so that it is queued and needs memory for that.
  (void)table.async_memory_copy_d2d(&ids[0], stream, ext_pointer(block),
                                    ext_pointer(s.range), 256);
  status = ext->deallocate_async(0, stream, block, 256);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  if (status != TARN_OK) require(give(0, block, 256) == C_SUCCESS);
  require(table.synchronize_stream(&ids[0], stream) == C_SUCCESS ||
          status != TARN_OK);
}

static void scenario_on_a_stream(void *context) {
  C_Stream stream = NULL;
  (void)context;
  if (table.create_stream(&ids[0], &stream) != C_SUCCESS) return;
  scenario(stream);
  require(table.destroy_stream(&ids[0], stream) == C_SUCCESS);
}

TEST(every_host_fault_is_survived) {
  ext_init(200000);
  set_up_rows(0);
  size_t before = ext_free_memory(0);
  ck_assert_uint_ge(faults_sweep(scenario_on_a_stream, NULL), 8);
  ck_assert_uint_eq(ext_free_memory(0), before);
  assert_done(table.finalize());
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// --- forks -----------------------------------------------------------------

TEST(a_child_is_answered_an_error) {
  int status = 0;
  ext_init(0);
  set_up_rows(0);
  pid_t child = fork();
  if (child == 0) {
    int right = 0;
    for (int i = 0; i < NAMES; i++)
      right += call_named(i) == TARN_E_INVALID;
    char line[256];
    tarn_sim_misuses(line, sizeof line);
    bool says = strstr(line, "before a fork") != NULL;
    _exit(right == NAMES && says ? 0 : 1);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  ext_finalize(0);
}

int main(void) {
  faults_install();
  return run_tests();
}
