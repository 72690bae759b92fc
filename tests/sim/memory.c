// Simulated devices: memory that the host cannot touch, copies, capacity.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

enum { LARGE = 64 * SIM_MIB };

static tarn_device *sim0;
static tarn_device *sim1;

static void open_two(void) {
  sim0 = sim_open("sim:0");
  sim1 = sim_open("sim:1");
}

static void close_two(void) {
  assert_ok(tarn_device_close(sim1));
  assert_ok(tarn_device_close(sim0));
  ck_assert_uint_eq(sim_misuses(), 0);
}

// --- what there is ---------------------------------------------------------

TEST(a_device_says_what_it_is) {
  tarn_device_info info = {.struct_size = sizeof info};
  open_two();
  assert_ok(tarn_device_query(sim1, &info));
  ck_assert_str_eq(info.name, "sim:1");
  ck_assert_str_eq(info.plugin, "built-in");
  ck_assert_int_eq(info.id, 1);
  ck_assert_uint_eq(info.functions, 0xffff);
  ck_assert(!info.host_accessible);
  ck_assert_uint_eq(info.min_chunk, 256);
  ck_assert_uint_eq(info.max_alloc, (size_t)8 << 30);
  ck_assert_uint_eq(info.max_chunk, (size_t)8 << 30);
  ck_assert_uint_eq(info.padding, 0);
  ck_assert_uint_eq(info.init_size, LARGE);
  ck_assert_uint_eq(info.realloc_size, LARGE);
  close_two();
}

static tarn_status count_sims(void *context, const char *name) {
  *(int *)context += strncmp(name, "sim:", 4) == 0;
  return TARN_OK;
}

TEST(there_are_two) {
  int count = 0;
  tarn_device *third = NULL;
  assert_ok(tarn_device_each(count_sims, &count));
  ck_assert_int_eq(count, 2);
  assert_status(tarn_device_open("sim:2", &third), TARN_E_INVALID);
}

// --- the host and a device's addresses -------------------------------------

static sigjmp_buf back;

static void jump_back(int signal) {
  siglongjmp(back, signal);
}

// Whether the host faults where it touches |address|, in a child.
static bool faults_at(tarn_addr address, bool write) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, jump_back);
    if (sigsetjmp(back, 1) != 0) _exit(7);
    volatile unsigned char *ptr = (unsigned char *)(uintptr_t)address;
    if (write) *ptr = 1;
    _exit(!write && *ptr == 1 ? 1 : 2);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

TEST(the_host_faults_on_device_memory) {
  unsigned char one = 1;
  open_two();
  tarn_addr address = sim_take(sim0, 4096);
  assert_ok(tarn_copy_h2d(sim0, address, &one, 1, NULL));
  ck_assert(faults_at(address, false));
  ck_assert(faults_at(address, true));
  ck_assert(faults_at(address + 4095, false));
  void *view = &one;
  assert_status(tarn_device_host_view(tarn_place_on(sim0), address, 1, &view),
                TARN_E_UNSUPPORTED);
  ck_assert_ptr_null(view);
  sim_give(sim0, address, 4096);
  close_two();
}

// --- copies ----------------------------------------------------------------

static unsigned char *in;
static unsigned char *out;

static void map_buffers(void) {
  in = malloc(LARGE + 1);
  out = malloc(LARGE + 1);
  ck_assert(in != NULL && out != NULL);
  open_two();
}

static void unmap_buffers(void) {
  close_two();
  free(in);
  free(out);
}

// Through every direction: h2d, d2d, p2p, d2h; |stream| may be NULL.
static void round_trip(size_t size, tarn_stream *stream) {
  tarn_addr a = sim_take(sim0, size);
  tarn_addr b = sim_take(sim0, size);
  tarn_addr c = sim_take(sim1, size);
  sim_fill(in, size, (unsigned)size);
  memset(out, 0, size + 1);
  assert_ok(tarn_copy_h2d(sim0, a, in, size, stream));
  assert_ok(tarn_copy_d2d(sim0, b, a, size, stream));
  assert_ok(tarn_copy_p2p(sim1, c, sim0, b, size, stream));
  if (stream != NULL) assert_ok(tarn_stream_synchronize(stream));
  assert_ok(tarn_copy_d2h(sim1, out, c, size, NULL));
  ck_assert(memcmp(in, out, size) == 0);
  ck_assert_uint_eq(out[size], 0);
  sim_give(sim0, a, size);
  sim_give(sim0, b, size);
  sim_give(sim1, c, size);
}

static const size_t sizes[] = {1, 255, 4095, 4096, 4097, 65537, LARGE};
enum { SIZE_COUNT = sizeof sizes / sizeof sizes[0] };

TEST(bytes_come_back) {
  map_buffers();
  for (int i = 0; i < SIZE_COUNT; i++)
    round_trip(sizes[i], NULL);
  unmap_buffers();
}

TEST(bytes_come_back_by_streams) {
  tarn_stream *stream = NULL;
  map_buffers();
  assert_ok(tarn_stream_create(sim0, &stream));
  for (int i = 0; i < SIZE_COUNT; i++)
    round_trip(sizes[i], stream);
  assert_ok(tarn_stream_destroy(stream));
  unmap_buffers();
}

TEST(set_fills_what_it_is_told) {
  unsigned char bytes[100] = {0};
  open_two();
  tarn_addr a = sim_take(sim0, 100);
  assert_ok(tarn_device_set(sim0, a, 1, 100, NULL));
  assert_ok(tarn_device_set(sim0, a + 1, 0xee, 98, NULL));
  assert_ok(tarn_copy_d2h(sim0, bytes, a, 100, NULL));
  ck_assert_uint_eq(bytes[0], 1);
  ck_assert_uint_eq(bytes[1], 0xee);
  ck_assert_uint_eq(bytes[98], 0xee);
  ck_assert_uint_eq(bytes[99], 1);
  sim_give(sim0, a, 100);
  close_two();
}

static void check_host_kind(tarn_place_kind kind) {
  tarn_place place = {sim0, kind};
  tarn_addr address = 0;
  void *view = NULL;
  size_t before = sim_free_memory(sim0);
  assert_ok(tarn_device_allocate(place, 5000, &address));
  assert_ok(tarn_device_host_view(place, address, 5000, &view));
  memset(view, 0x5a, 5000);
  ck_assert_uint_eq(sim_free_memory(sim0), before);
  tarn_addr block = sim_take(sim0, 5000);
  assert_ok(tarn_copy_h2d(sim0, block, view, 5000, NULL));
  memset(view, 0, 5000);
  assert_ok(tarn_copy_d2h(sim0, view, block, 5000, NULL));
  ck_assert_uint_eq(((unsigned char *)view)[4999], 0x5a);
  sim_give(sim0, block, 5000);
  assert_ok(tarn_device_deallocate(place, address, 5000));
}

TEST(pinned_and_unified_memory_are_the_hosts) {
  open_two();
  check_host_kind(TARN_PLACE_HOST);
  check_host_kind(TARN_PLACE_UNIFIED);
  close_two();
}

TEST(unified_memory_is_good_on_the_device) {
  tarn_place place = {sim0, TARN_PLACE_UNIFIED};
  tarn_addr unified = 0;
  void *view = NULL;
  open_two();
  place.device = sim0;
  assert_ok(tarn_device_allocate(place, 64, &unified));
  assert_ok(tarn_device_host_view(place, unified, 64, &view));
  tarn_addr block = sim_take(sim0, 64);
  assert_ok(tarn_device_set(sim0, block, 9, 64, NULL));
  assert_ok(tarn_copy_d2d(sim0, unified, block, 64, NULL));
  ck_assert_uint_eq(((unsigned char *)view)[63], 9);
  assert_ok(tarn_copy_h2d(sim0, unified, "direct", 7, NULL));
  ck_assert_str_eq(view, "direct");
  sim_give(sim0, block, 64);
  assert_ok(tarn_device_deallocate(place, unified, 64));
  close_two();
}

// --- capacity --------------------------------------------------------------

TEST(beyond_the_capacity_is_full) {
  enum { BLOCKS = 16 };
  tarn_addr blocks[BLOCKS];
  tarn_addr none = 1;
  sim_set("TARN_SIM_CAPACITY", "16M");
  open_two();
  for (int i = 0; i < BLOCKS; i++)
    blocks[i] = sim_take(sim0, SIM_MIB);
  ck_assert_uint_eq(sim_free_memory(sim0), 0);
  ck_assert_uint_eq(sim_free_memory(sim1), 16 * SIM_MIB);
  assert_status(tarn_device_allocate(tarn_place_on(sim0), 1, &none), TARN_FULL);
  ck_assert_uint_eq(none, 0);
  sim_give(sim0, blocks[7], SIM_MIB);
  blocks[7] = sim_take(sim0, SIM_MIB);
  for (int i = 0; i < BLOCKS; i++)
    sim_give(sim0, blocks[i], SIM_MIB);
  tarn_addr all = sim_take(sim0, 16 * SIM_MIB);
  sim_give(sim0, all, 16 * SIM_MIB);
  assert_status(tarn_device_allocate(tarn_place_on(sim0), SIZE_MAX, &none),
                TARN_FULL);
  close_two();
}

TEST(statistics_count_in_steps_of_256) {
  enum { COUNT = 300 };
  tarn_addr blocks[COUNT];
  size_t used = 0;
  open_two();
  size_t total = sim_free_memory(sim0);
  for (size_t i = 0; i < COUNT; i++) {
    blocks[i] = sim_take(sim0, 1 + i * 37);
    require(blocks[i] % 256 == 0);
    used += (1 + i * 37 + 255) / 256 * 256;
    require(sim_free_memory(sim0) == total - used);
  }
  for (size_t i = 0; i < COUNT; i += 2)
    sim_give(sim0, blocks[i], 1 + i * 37);
  for (size_t i = 1; i < COUNT; i += 2)
    sim_give(sim0, blocks[i], 1 + i * 37);
  ck_assert_uint_eq(sim_free_memory(sim0), total);
  close_two();
}

TEST(an_address_is_not_used_again_soon) {
  sim_set("TARN_SIM_CAPACITY", "1M");
  open_two();
  tarn_addr first = sim_take(sim0, SIM_MIB);
  sim_give(sim0, first, SIM_MIB);
  for (int i = 0; i < 3; i++) {
    tarn_addr next = sim_take(sim0, SIM_MIB);
    ck_assert_uint_ne(next, first);
    sim_give(sim0, next, SIM_MIB);
  }
  // The window is at its end: the oldest comes again.
  ck_assert_uint_eq(sim_take(sim0, SIM_MIB), first);
  sim_give(sim0, first, SIM_MIB);
  close_two();
}

static size_t resident(void) {
  size_t all = 0;
  size_t pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  ck_assert_ptr_nonnull(file);
  ck_assert_int_eq(fscanf(file, "%zu %zu", &all, &pages), 2);
  fclose(file);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

TEST(freed_memory_goes_back_to_the_system) {
  enum { COUNT = 40001, SMALL = 6000 };  // neighbours share pages
  static tarn_addr blocks[COUNT];
  open_two();
  size_t before = resident();
  for (int i = 0; i < COUNT; i++) {
    blocks[i] = sim_take(sim0, SMALL);
    assert_status(tarn_device_set(sim0, blocks[i], 1, SMALL, NULL), TARN_OK);
  }
  size_t full = resident();
  for (int i = 0; i < COUNT; i += 2)
    sim_give(sim0, blocks[i], SMALL);
  for (int i = 1; i < COUNT; i += 2)
    sim_give(sim0, blocks[i], SMALL);
  size_t after = resident();
  ck_assert_uint_ge(full, before + (size_t)200 * SIM_MIB);
  ck_assert_uint_le(after, full - (size_t)180 * SIM_MIB);
  close_two();
}
