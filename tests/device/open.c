// Opening, closing, places, memory, attachments, forks.
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

// --- names and counts ------------------------------------------------------

TEST(opening_twice_gives_one_object) {
  tarn_device *a = open_fake();
  tarn_device *b = open_device("fake");
  ck_assert_ptr_eq(a, b);
  ck_assert_uint_eq(fake_seen.open_devices, 1);
  close_device(a);
  ck_assert_uint_eq(fake_seen.open_devices, 1);
  close_device(b);
  ck_assert_uint_eq(fake_seen.open_devices, 0);
}

static const char *const bad_names[] = {
    "",        "gpu:0",   "fake:2",
    "fake:",   "fake:x",  "fake:-1",
    "fake: 0", "fake:0x", "fake:99999999999999",
    ":0",      "fake:0:0"};
enum { BAD_NAMES = sizeof bad_names / sizeof bad_names[0] };

TEST_LOOP(a_bad_name_is_refused, BAD_NAMES) {
  fake_add();
  tarn_device *device = (tarn_device *)1;
  assert_status(tarn_device_open(bad_names[_i], &device), TARN_E_INVALID);
  ck_assert_ptr_null(device);
  assert_error_says(strcmp(bad_names[_i], "fake:2") == 0 ? "fake has 2"
                                                         : "cpu, sim, fake");
  assert_status(tarn_device_open(NULL, &device), TARN_E_INVALID);
}

typedef struct names {
  int count;
  char text[128];
} names;

static tarn_status collect(void *context, const char *name) {
  names *n = context;
  n->count++;
  strcat(n->text, name);
  strcat(n->text, " ");
  return n->count == 5 ? TARN_FULL : TARN_OK;
}

TEST(each_visits_all_and_can_be_stopped) {
  fake.devices = 3;
  fake_add();
  names n = {0};
  assert_status(tarn_device_each(collect, &n), TARN_FULL);
  ck_assert_str_eq(n.text, "cpu:0 sim:0 sim:1 fake:0 fake:1 ");
  assert_status(tarn_device_each(NULL, NULL), TARN_E_INVALID);
}

TEST(cpu_is_always_open) {
  tarn_device *cpu = open_device("cpu:0");
  close_device(cpu);
  tarn_device *again = open_device("cpu");
  ck_assert_ptr_eq(cpu, again);
  tarn_device_info info = {.struct_size = sizeof info};
  assert_ok(tarn_device_query(cpu, &info));
  ck_assert_str_eq(info.plugin, "built-in");
  ck_assert(info.host_accessible);
  ck_assert(tarn_device_host_accessible(cpu));
  ck_assert_uint_ge(info.min_chunk, 256);
  ck_assert_uint_eq(info.init_size, (size_t)64 << 20);
  ck_assert_uint_eq(info.realloc_size, (size_t)64 << 20);
  ck_assert_uint_eq(info.functions, 0xffff);  // all of it is its own
  close_device(cpu);
  assert_ok(tarn_device_close(NULL));
}

TEST(every_function_bit_has_a_name) {
  for (unsigned bit = 1; bit <= TARN_FN_CALLBACKS; bit <<= 1) {
    ck_assert_ptr_nonnull(tarn_device_function_name((tarn_device_function)bit));
  }
  ck_assert_str_eq(tarn_device_function_name(TARN_FN_MEMORY_SET),
                   "device_memory_set");
  ck_assert_ptr_null(tarn_device_function_name((tarn_device_function)3));
}

// --- what the device says of itself ----------------------------------------

TEST(the_id_that_init_device_writes_is_used) {
  fake.id_offset = 40;
  tarn_device *device = open_fake();
  tarn_device_info info = {.struct_size = sizeof info};
  assert_ok(tarn_device_query(device, &info));
  ck_assert_int_eq(info.id, 40);
  tarn_addr addr = 0;
  assert_ok(tarn_device_allocate(tarn_place_on(device), 64, &addr));
  assert_ok(tarn_device_deallocate(tarn_place_on(device), addr, 64));
  ck_assert_uint_eq(fake_seen.wrong_id, 0);
}

static const struct {
  size_t said;
  size_t taken;
} chunks[] = {{0, 1}, {1, 1}, {3, 4}, {256, 256}, {257, 512}};

TEST_LOOP(min_chunk_becomes_a_power_of_two, sizeof chunks / sizeof chunks[0]) {
  fake.min_chunk = chunks[_i].said;
  tarn_device *device = open_fake();
  tarn_device_info info = {.struct_size = sizeof info};
  assert_ok(tarn_device_query(device, &info));
  ck_assert_uint_eq(info.min_chunk, chunks[_i].taken);
}

TEST(sizes_have_their_stand_ins) {
  fake.missing =
      FAKE_MISSES(device_max_alloc_size) | FAKE_MISSES(device_max_chunk_size) |
      FAKE_MISSES(device_extra_padding_size) |
      FAKE_MISSES(device_init_alloc_size) | FAKE_MISSES(device_realloc_size);
  fake.capacity = 1234567;
  tarn_device *device = open_fake();
  tarn_device_info info = {.struct_size = sizeof info};
  assert_ok(tarn_device_query(device, &info));
  ck_assert_uint_eq(info.max_alloc, 1234567);
  ck_assert_uint_eq(info.max_chunk, 1234567);
  ck_assert_uint_eq(info.init_size, 1234567);
  ck_assert_uint_eq(info.realloc_size, 1234567);
  ck_assert_uint_eq(info.padding, 0);
}

// What stands in for a missing size is as it is now, not as it was at first.
TEST(stand_ins_of_sizes_are_current) {
  fake.missing =
      FAKE_MISSES(device_max_alloc_size) | FAKE_MISSES(device_max_chunk_size) |
      FAKE_MISSES(device_init_alloc_size) | FAKE_MISSES(device_realloc_size);
  fake.capacity = (size_t)4 << 20;
  tarn_device *device = open_fake();
  tarn_device_info info = {.struct_size = sizeof info};
  assert_ok(tarn_device_query(device, &info));
  ck_assert_uint_eq(info.max_alloc, (size_t)4 << 20);
  fake.capacity = (size_t)64 << 20;
  assert_ok(tarn_device_query(device, &info));
  ck_assert_uint_eq(info.max_alloc, (size_t)64 << 20);
  ck_assert_uint_eq(info.max_chunk, (size_t)64 << 20);
  ck_assert_uint_eq(info.init_size, (size_t)64 << 20);
  ck_assert_uint_eq(info.realloc_size, (size_t)64 << 20);
  ck_assert_uint_eq(info.functions & TARN_FN_MAX_ALLOC, 0);
  size_t queries = fake_seen.memory_queries;
  ck_assert_str_eq(tarn_device_type(device), info.type);
  ck_assert_uint_eq(tarn_device_functions(device), info.functions);
  ck_assert_uint_eq(tarn_device_extensions(device), info.extensions);
  ck_assert(tarn_device_host_accessible(device) == info.host_accessible);
  ck_assert_uint_eq(fake_seen.memory_queries, queries);
}

TEST(sizes_that_fail_have_an_answer_too) {
  fake.size_answer = C_ERROR;
  fake.capacity = 5000;
  tarn_device *device = open_fake();
  tarn_device_info info = {.struct_size = sizeof info};
  assert_ok(tarn_device_query(device, &info));
  ck_assert_uint_eq(info.max_chunk, 0);  // no pooling
  ck_assert_uint_eq(info.max_alloc, 5000);
  ck_assert_uint_eq(info.init_size, 5000);
}

TEST(info_of_callers_old_and_new) {
  tarn_device *device = open_fake();
  struct {
    tarn_device_info info;
    char later[64];
  } newer = {.info = {.struct_size = sizeof newer}};
  memset(newer.later, 7, sizeof newer.later);
  assert_ok(tarn_device_query(device, &newer.info));
  ck_assert_uint_eq(newer.info.struct_size, sizeof(tarn_device_info));
  ck_assert_int_eq(newer.later[0], 7);
  tarn_device_info short_info = {.struct_size = 16};
  assert_status(tarn_device_query(device, &short_info), TARN_E_INVALID);
  assert_status(tarn_device_query(device, NULL), TARN_E_INVALID);
  assert_status(tarn_device_query(NULL, &newer.info), TARN_E_INVALID);
}

// --- places and memory -----------------------------------------------------

TEST(places_of_the_host_are_one) {
  tarn_device *cpu = open_device("cpu:0");
  tarn_device *device = open_fake();
  tarn_place pinned = {device, TARN_PLACE_HOST};
  for (int kind = TARN_PLACE_HOST; kind <= TARN_PLACE_UNIFIED; kind++) {
    tarn_place on_cpu = {cpu, (tarn_place_kind)kind};
    ck_assert(tarn_place_equal(on_cpu, TARN_HOST));
  }
  ck_assert(!tarn_place_equal(pinned, TARN_HOST));
  ck_assert(!tarn_place_equal(pinned, tarn_place_on(device)));
  ck_assert(tarn_place_equal(tarn_place_on(device), tarn_place_on(device)));
  char text[32];
  ck_assert_str_eq(tarn_place_text(TARN_HOST, text, sizeof text), "host");
  ck_assert_str_eq(tarn_place_text(pinned, text, sizeof text), "fake:0/host");
  ck_assert_str_eq(tarn_place_text(tarn_place_on(device), text, sizeof text),
                   "fake:0");
  ck_assert_str_eq(tarn_place_text(tarn_place_on(device), text, 4), "fak");
}

TEST(every_kind_of_memory_comes_and_goes) {
  tarn_device *device = open_fake();
  for (int kind = TARN_PLACE_HOST; kind <= TARN_PLACE_UNIFIED; kind++) {
    tarn_place place = {device, (tarn_place_kind)kind};
    tarn_addr addr = 0;
    assert_ok(tarn_device_allocate(place, 1000, &addr));
    ck_assert_uint_ne(addr, 0);
    void *view = NULL;
    tarn_status status = tarn_device_host_view(place, addr, 1000, &view);
    ck_assert_int_eq(status,
                     kind == TARN_PLACE_DEVICE ? TARN_E_UNSUPPORTED : TARN_OK);
    assert_ok(tarn_device_deallocate(place, addr, 1000));
  }
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  ck_assert_uint_eq(fake_seen.wrong_size, 0);
}

TEST(absent_kinds_have_their_stand_ins) {
  fake.missing = FAKE_MISSES(host_memory_allocate) |
                 FAKE_MISSES(host_memory_deallocate) |
                 FAKE_MISSES(unified_memory_allocate) |
                 FAKE_MISSES(unified_memory_deallocate);
  tarn_device *device = open_fake();
  tarn_place host = {device, TARN_PLACE_HOST};
  tarn_place unified = {device, TARN_PLACE_UNIFIED};
  tarn_addr addr = 0;
  void *view = NULL;
  assert_ok(tarn_device_allocate(host, 4096, &addr));
  assert_ok(tarn_device_host_view(host, addr, 4096, &view));
  memset(view, 1, 4096);
  assert_ok(tarn_device_deallocate(host, addr, 4096));
  assert_fails(tarn_device_allocate(unified, 64, &addr), TARN_E_UNSUPPORTED,
               "unified_memory_allocate");
  ck_assert_uint_eq(fake_seen.allocations, 0);
}

TEST_LOOP(out_of_memory_is_full_in_both_ways, 2) {
  fake.full_is_null = _i == 1;
  fake.capacity = 1000;
  tarn_device *device = open_fake();
  tarn_addr addr = 1;
  assert_status(tarn_device_allocate(tarn_place_on(device), 1001, &addr),
                TARN_FULL);
  ck_assert_uint_eq(addr, 0);
  assert_error_says("fake:0: out of memory: 1001 bytes");
}

TEST(bad_memory_calls_are_refused) {
  tarn_device *device = open_fake();
  tarn_place place = tarn_place_on(device);
  tarn_place nowhere = {NULL, TARN_PLACE_DEVICE};
  tarn_place no_kind = {device, (tarn_place_kind)9};
  tarn_addr addr = 0;
  void *view = NULL;
  assert_status(tarn_device_allocate(place, 0, &addr), TARN_E_INVALID);
  assert_status(tarn_device_allocate(nowhere, 8, &addr), TARN_E_INVALID);
  assert_status(tarn_device_allocate(no_kind, 8, &addr), TARN_E_INVALID);
  assert_status(tarn_device_deallocate(place, 0, 8), TARN_E_INVALID);
  assert_status(tarn_device_deallocate(place, 12345, 8), TARN_E_DEVICE);
  assert_status(tarn_device_host_view(TARN_HOST, 0, 8, &view), TARN_E_INVALID);
  assert_status(tarn_device_host_view(TARN_HOST, 4096, SIZE_MAX, &view),
                TARN_E_INVALID);
}

TEST(free_memory_above_the_total_is_cut) {
  tarn_device *device = open_fake();
  size_t total = 0;
  size_t available = 0;
  assert_ok(tarn_device_memory(device, &total, &available));
  ck_assert_uint_eq(total, fake.capacity);
  ck_assert_uint_eq(available, total);
}

// --- closing and attachments -----------------------------------------------

TEST(a_device_in_use_does_not_close) {
  tarn_device *device = open_fake();
  tarn_addr addr = 0;
  tarn_stream *stream = stream_on(device);
  assert_fails(tarn_device_close(device), TARN_E_STATE, "1 streams");
  end_stream(stream);
  tarn_event *event = event_on(device);
  assert_status(tarn_device_close(device), TARN_E_STATE);
  end_event(event);
  assert_ok(tarn_device_allocate(tarn_place_on(device), 10, &addr));
  assert_fails(tarn_device_close(device), TARN_E_STATE, "1 allocations");
  assert_ok(tarn_device_deallocate(tarn_place_on(device), addr, 10));
  close_device(device);
  ck_assert_uint_eq(fake_seen.open_devices, 0);
}

typedef struct guest {
  bool objects;
  int asked;
  int ended;
  int *order;
} guest;

static tarn_status on_close(tarn_device *device, void *pointer, bool commit) {
  (void)device;
  guest *g = pointer;
  if (!commit) {
    g->asked++;
    return g->objects ? TARN_E_STATE : TARN_OK;
  }
  g->ended = ++*g->order;
  return TARN_OK;
}

TEST(attached_rooms_are_asked_and_then_ended_from_above) {
  tarn_device *device = open_fake();
  int order = 0;
  guest low = {.order = &order};
  guest high = {.order = &order};
  assert_ok(tarn_device_attach(device, TARN_SLOT_POOL, &low, on_close));
  assert_ok(tarn_device_attach(device, TARN_SLOT_MODEL, &high, on_close));
  assert_status(tarn_device_attach(device, TARN_SLOT_POOL, &high, on_close),
                TARN_E_STATE);
  ck_assert_ptr_eq(tarn_device_attached(device, TARN_SLOT_POOL), &low);
  ck_assert_ptr_null(tarn_device_attached(device, TARN_SLOT_USER));
  assert_status(tarn_device_attach(device, TARN_SLOT_COUNT, &low, on_close),
                TARN_E_INVALID);
  assert_status(tarn_device_attach(device, TARN_SLOT_USER, NULL, on_close),
                TARN_E_INVALID);

  low.objects = true;
  assert_status(tarn_device_close(device), TARN_E_STATE);
  ck_assert_int_eq(high.asked, 1);
  ck_assert_int_eq(order, 0);
  low.objects = false;
  close_device(device);
  ck_assert_int_eq(high.ended, 1);
  ck_assert_int_eq(low.ended, 2);
}

// --- forks -----------------------------------------------------------------

static int in_child(tarn_device *device, tarn_stream *stream,
                    tarn_event *event) {
  tarn_addr addr = 0;
  tarn_device *mine = NULL;
  if (tarn_device_allocate(tarn_place_on(device), 8, &addr) != TARN_E_STATE) {
    return 1;
  }
  if (tarn_stream_synchronize(stream) != TARN_E_STATE) return 2;
  if (tarn_event_query(event) != TARN_E_STATE) return 3;
  if (tarn_event_destroy(event) != TARN_OK) return 4;
  if (tarn_stream_destroy(stream) != TARN_OK) return 5;
  if (tarn_device_close(device) != TARN_OK) return 6;
  // A device opened before the fork cannot be opened again after it ...
  if (tarn_device_open("fake:0", &mine) != TARN_E_STATE) return 7;
  // ... but the host's memory is as good as ever.
  if (tarn_device_open("cpu:0", &mine) != TARN_OK) return 8;
  if (tarn_device_allocate(TARN_HOST, 8, &addr) != TARN_OK) return 9;
  if (tarn_device_deallocate(TARN_HOST, addr, 8) != TARN_OK) return 10;
  if (tarn_stream_create(mine, &stream) != TARN_OK) return 11;
  if (tarn_stream_destroy(stream) != TARN_OK) return 12;
  return 0;
}

TEST(a_child_has_its_own_devices) {
  tarn_device *device = open_fake();
  tarn_stream *stream = stream_on(device);
  tarn_event *event = event_on(device);
  pid_t child = fork();
  if (child == 0) _exit(in_child(device, stream, event));
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
}

// A child has nothing of the parent's on its hands once it destroyed it.
TEST(a_child_frees_what_the_parent_had_on_cpu) {
  tarn_device *cpu = open_device("cpu:0");
  size_t held = tarn_host_memory();
  tarn_stream *stream = stream_on(cpu);
  tarn_event *event = event_on(cpu);
  assert_ok(tarn_event_record(event, stream));
  pid_t child = fork();
  if (child == 0) {
    bool destroyed = tarn_event_destroy(event) == TARN_OK &&
                     tarn_stream_destroy(stream) == TARN_OK;
    _exit(destroyed && tarn_host_memory() == held ? 0 : 1);
  }
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
}
