// What `tarn bench pool` measures: that the code of a peer is what runs, two
// threads that free each other's blocks, touched blocks, limits.
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/peers.h"
#include "bench/pool_bench.h"
#include "bench/touch.h"
#include "kit/child.h"
#include "kit/crossing.h"
#include "kit/memory.h"
#include "support/effort.h"
#include "support/places.h"
#include "support/run.h"

static const char *const foreign[] = {"mimalloc", "jemalloc", "tcmalloc"};
enum { FOREIGN = 3 };

static void assert_contains(const char *text, const char *part) {
  ck_assert_msg(strstr(text, part) != NULL, "'%s' is not in '%s'", part, text);
}

// --- whose code runs -------------------------------------------------------

typedef struct file {
  char path[256];
} file;

static void find_file(void *context, void *out_result) {
  snprintf(((file *)out_result)->path, sizeof(file), "%s",
           peer_file(*(const char **)context));
}

// In a process of its own: none of them can be unloaded.
static file file_of(const char *name) {
  file result;
  char why[CHILD_TEXT_SIZE] = "";
  child_limits none = {0};
  ck_assert_msg(child_run(find_file, &name, none, &result, sizeof result, why),
                "%s", why);
  return result;
}

static bool is_there(const char *name) {
  if (file_of(name).path[0] != '\0') return true;
  note_skipped(name, "its library is not installed");
  return false;
}

TEST(the_code_of_each) {
  ck_assert_str_ne(file_of("glibc").path, "");  // or a sanitizer's
  for (size_t i = 0; i < FOREIGN; i++) {
    if (is_there(foreign[i]))
      assert_contains(file_of(foreign[i]).path, foreign[i]);
  }
}

static request large[] = {{.size = 64 << 20}, {0}};
static const request_list one = {
    .items = large, .count = 2, .slot_count = 1, .rank_count = 1};

static void *make(const char *name) {
  char why[PEER_TEXT_SIZE];
  peer_order order = {.name = name, .requests = &one, .threads = 1};
  void *self = peer_find(name)->create(&order, why);
  ck_assert_msg(self != NULL, "%s", why);
  return self;
}

static void *find(const char *soname, const char *function) {
  void *handle = dlopen(soname, RTLD_NOW | RTLD_NOLOAD);
  ck_assert_ptr_nonnull(handle);
  return dlsym(handle, function);
}

static size_t jemalloc_out(void) {
  int (*control)(const char *, void *, size_t *, void *, size_t) = NULL;
  uint64_t epoch = 1;
  size_t bytes = 0, size = sizeof bytes;
  void *found = find("libjemalloc.so.2", "mallctl");
  memcpy(&control, &found, sizeof found);
  ck_assert_int_eq(control("epoch", NULL, NULL, &epoch, sizeof epoch), 0);
  ck_assert_int_eq(control("stats.allocated", &bytes, &size, NULL, 0), 0);
  return bytes;
}

static size_t tcmalloc_out(void) {
  int (*property)(const char *, size_t *) = NULL;
  size_t bytes = 0;
  void *found =
      find("libtcmalloc_minimal.so.4", "MallocExtension_GetNumericProperty");
  memcpy(&property, &found, sizeof found);
  ck_assert_int_eq(property("generic.current_allocated_bytes", &bytes), 1);
  return bytes;
}

typedef struct counting {
  const char *name;
  size_t (*out)(void);
} counting;

typedef struct counts {
  size_t before, with, after;
} counts;

static void count(void *context, void *out_result) {
  const counting *c = context;
  counts *result = out_result;
  const peer_type *type = peer_find(c->name);
  void *self = make(c->name);
  result->before = c->out();
  bool served = type->alloc(self, &large[0]);
  result->with = c->out();
  served = type->free(self, &large[1]) && served;
  result->after = c->out();
  if (!served) _exit(EXIT_FAILURE);
}

// Their own statistics count the block. In a process that looks for no leaks:
// what they take when they are loaded they keep.
static void assert_counts(const char *name, size_t (*out)(void)) {
  counting c = {name, out};
  counts result;
  char why[CHILD_TEXT_SIZE] = "";
  child_limits none = {0};
  if (!is_there(name)) return;
  ck_assert_msg(child_run(count, &c, none, &result, sizeof result, why), "%s",
                why);
  ck_assert_uint_ge(result.with, result.before + large[0].size);
  ck_assert_uint_lt(result.after, result.before + large[0].size);
}

TEST(they_count_the_block) {
  assert_counts("jemalloc", jemalloc_out);
  assert_counts("tcmalloc", tcmalloc_out);
}

TEST(a_library_that_is_not_there) {
  static const char *const sonames[] = {"libnobody.so.1", "libnobody.so.2",
                                        NULL};
  static const char *const bad[] = {"/proc/self/status", NULL};
  char why[PEER_TEXT_SIZE];
  ck_assert_ptr_null(peer_library(sonames, "libnobody1", why));
  ck_assert_str_eq(why, "not installed: libnobody.so.1 (package libnobody1)");
  ck_assert_ptr_null(peer_library(bad, "libbad", why));
  assert_contains(why, "cannot be loaded: ");
}

TEST(what_is_a_finding) {
  pool_bench_result r = {.failed = PEER_MISSING "libnobody.so.1"};
  ck_assert(pool_bench_is_finding(&r));
  strcpy(r.failed, CHILD_OVER "3 seconds");
  ck_assert(pool_bench_is_finding(&r));
  strcpy(r.failed, "a request was refused: no memory");
  ck_assert(!pool_bench_is_finding(&r));
}

// --- two threads -----------------------------------------------------------

static pool_bench_result run_by(const stopwatch *watch, const char *name,
                                const char *device, size_t threads,
                                bool touched) {
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_make("@bert-layer", &trace));
  request_list requests = requests_make(trace);
  pool_bench bench = {.requests = &requests,
                      .live_peak_bytes = trace->live_peak_bytes,
                      .watch = watch,
                      .name = name,
                      .device = device,
                      .threads = threads,
                      .touched = touched,
                      .passes = 3};
  pool_bench_result result = pool_bench_run(&bench);
  requests_deinit(&requests);
  tarn_trace_destroy(trace);
  return result;
}

static pool_bench_result run(const char *name, const char *device,
                             size_t threads, bool touched) {
  stopwatch watch = {.ns_per_tick = 1};
  return run_by(&watch, name, device, threads, touched);
}

static void assert_figures(const char *name, pool_bench_result r) {
  ck_assert_msg(r.failed[0] == '\0', "%s: %s", name, r.failed);
  ck_assert_double_gt(r.pair_ns, 0);
  ck_assert_double_eq_tol(r.alloc_ns_median + r.free_ns_median, r.pair_ns,
                          1e-6 * r.pair_ns);
}

// The loop costs something, and holds nothing.
TEST(the_harness_is_a_row) {
  pool_bench_result r = run("harness", NULL, 1, false);
  assert_figures("harness", r);
  ck_assert(isnan(r.reserved_over_live));
  ck_assert(isnan(r.by_address_ns_median));
  assert_figures("harness", run("harness", NULL, 2, false));
  r = run("harness", NULL, 1, true);
  ck_assert_str_eq(r.failed,
                   "no figure: the loop is taken off with the touching");
  ck_assert(pool_bench_is_finding(&r));
}

// A clock that shows every 10th nanosecond, or every 100,000th: requests take
// less, and no figure is 0.
TEST_LOOP(no_row_takes_no_time, THREADS_ARE_WATCHED ? 0 : 1) {
  static const char *const names[] = {"harness", "free_list", "arena_pool"};
  for (size_t i = 0; i < 6; i++) {
    stopwatch watch = stopwatch_coarse(i < 3 ? 10 : 100000);
    pool_bench_result r = run_by(&watch, names[i % 3], NULL, 1, false);
    assert_figures(names[i % 3], r);
    ck_assert_double_gt(r.alloc_ns_median, 0);
    ck_assert_double_gt(r.free_ns_median, 0);
    ck_assert_double_gt(r.alloc_ns_p99, 0);
    for (size_t k = 0; k < 3; k++)
      ck_assert_double_gt(r.iteration_ms[k], 0);
  }
}

TEST(two_threads) {
  static const char *const names[] = {"free_list",  "glibc",
                                      "no_pool",    "page_unit_pool",
                                      "buddy_pool", "arena_pool"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    assert_figures(names[i], run(names[i], NULL, 2, false));
}

#ifdef __SANITIZE_THREAD__
static const bool sees_races = true;
#else
static const bool sees_races = false;
#endif

TEST(two_threads_of_the_others) {
  for (size_t i = 0; i < FOREIGN; i++) {
    if (sees_races && strcmp(foreign[i], "jemalloc") == 0) {
      note_skipped(foreign[i], "the thread sanitizer finds a race inside it");
      continue;
    }
    pool_bench_result r = run(foreign[i], NULL, 2, false);
    if (strncmp(r.failed, PEER_MISSING, strlen(PEER_MISSING)) == 0) {
      note_skipped(foreign[i], r.failed);
    } else {
      assert_figures(foreign[i], r);
    }
  }
}

// --- UMF -------------------------------------------------------------------

static const char *const umf[] = {"umf_disjoint", "umf_disjoint_tuned"};

// Where scripts/umf-library puts it, unless the environment names another.
static void find_umf(void) {
  if (access(TARN_UMF_WHEEL, R_OK) == 0) setenv("TARN_UMF", TARN_UMF_WHEEL, 0);
}

static bool umf_serves(const char *name, size_t threads, bool touched,
                       pool_bench_result *out) {
  *out = run(name, NULL, threads, touched);
  if (strncmp(out->failed, PEER_MISSING, strlen(PEER_MISSING)) != 0) {
    ck_assert_msg(out->failed[0] == '\0', "%s: %s", name, out->failed);
    return true;
  }
  note_skipped(name, out->failed);
  return false;
}

TEST_LOOP(the_pools_of_umf, 2) {
  pool_bench_result r;
  find_umf();
  if (!umf_serves(umf[_i], 1, false, &r)) return;
  assert_figures(umf[_i], r);
  ck_assert_double_ge(r.reserved_over_live, 1);
  ck_assert(isnan(r.by_address_ns_median));
  if (!umf_serves(umf[_i], 1, true, &r)) return;
  ck_assert_double_gt(r.reserved_over_live, 0.9);
  if (sees_races) {
    note_skipped(umf[_i], "the thread sanitizer does not see into its library");
  } else if (umf_serves(umf[_i], 2, false, &r)) {
    assert_figures(umf[_i], r);
  }
}

// A pool that is told to keep all asks the system no more; the usual one asks
// for every block over 2 MiB.
TEST(umf_is_tuned) {
  pool_bench_result usual, tuned;
  find_umf();
  if (!umf_serves(umf[0], 1, false, &usual)) return;
  if (!umf_serves(umf[1], 1, false, &tuned)) return;
  ck_assert_double_gt(tuned.reserved_over_live, usual.reserved_over_live);
}

TEST(umf_is_not_there) {
  setenv("TARN_UMF", "/nowhere/libumf.so.1", 1);
  for (size_t i = 0; i < 2; i++) {
    pool_bench_result r = run(umf[i], NULL, 1, false);
    ck_assert_str_eq(r.failed,
                     "not installed: /nowhere/libumf.so.1 (package "
                     "umf, by pip)");
    ck_assert(pool_bench_is_finding(&r));
  }
  setenv("TARN_UMF", "libm.so.6", 1);
  pool_bench_result r = run(umf[0], NULL, 1, false);
  ck_assert_str_eq(r.failed,
                   "libm.so.6 has no umfOsMemoryProviderParamsCreate");
  ck_assert(!pool_bench_is_finding(&r));
}

// Who served what: one byte for each request of the trace.
typedef struct record {
  _Atomic int served[6];
  pthread_t by[6];
  bool refuses;
} record;

static bool note(void *self, const crossing_side *side) {
  record *r = self;
  for (size_t i = 0; i < side->requests.count; i++) {
    const request *q = &side->requests.items[i];
    if (!crossing_ready(side, q, side->first_pass)) return false;
    if (r->refuses && side->places[i] == 2) return false;
    r->served[side->places[i]]++;
    r->by[side->places[i]] = pthread_self();
    crossing_tell(side, q, side->first_pass);
  }
  return true;
}

// a+ b+ a- c+ b- c-
static request six[] = {{.slot = 0, .size = 8},
                        {.slot = 1, .size = 8},
                        {.slot = 0},
                        {.slot = 2, .size = 8},
                        {.slot = 1},
                        {.slot = 2}};
static const request_list crossed = {
    .items = six, .count = 6, .slot_count = 3, .rank_count = 1};

// Of two threads, in each of many passes.
static void check_who_serves(const request_list *requests,
                             const bool by_first[6]) {
  record r = {.refuses = false};
  crossing *c = crossing_create(requests, 2, false);
  ck_assert_ptr_nonnull(c);
  for (int pass = 1; pass <= 50; pass++) {
    require(crossing_run(c, note, &r, 1));
    for (size_t i = 0; i < 6; i++) {
      require(r.served[i] == pass);
      require((pthread_equal(r.by[i], pthread_self()) != 0) == by_first[i]);
    }
  }
  crossing_destroy(c);
}

TEST(each_frees_what_the_other_has) {
  static const bool by_first[] = {true, false, false, true, true, false};
  check_who_serves(&crossed, by_first);
}

// Of three threads that each allocate one, the next one frees it; of more
// threads than blocks, some have nothing to do.
TEST_LOOP(the_next_one_frees_it, 4) {
  static const size_t few_and_many[] = {3, 4, 7, 64};
  size_t threads = few_and_many[_i];
  record r = {.refuses = false};
  crossing *c = crossing_create(&crossed, threads, false);
  ck_assert_ptr_nonnull(c);
  for (int pass = 1; pass <= 3; pass++) {
    require(crossing_run(c, note, &r, 1));
    for (size_t i = 0; i < 6; i++)
      require(r.served[i] == pass);
    require(pthread_equal(r.by[0], pthread_self()) != 0);  // a+
    require(pthread_equal(r.by[1], r.by[2]) != 0);         // b+, a-
    require(pthread_equal(r.by[3], r.by[4]) != 0);         // c+, b-
    require((pthread_equal(r.by[0], r.by[5]) != 0) == (threads == 3));  // c-
  }
  crossing_destroy(c);
}

TEST(many_threads) {
  static const size_t threads[] = {3, 4, 16, 64};
  for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
    assert_figures("free_list", run("free_list", NULL, threads[i], false));
    assert_figures("arena_pool", run("arena_pool", NULL, threads[i], false));
  }
  pool_bench_result r = run("page_unit_pool", NULL, 5, true);
  ck_assert_msg(r.failed[0] == '\0', "%s", r.failed);
}

// Thread t of the trace is thread t % 2 here: 0 and 2 are the first.
TEST(threads_that_a_trace_names) {
  static uint32_t named[] = {0, 1, 3, 2, 2, 1};
  static const bool by_first[] = {true, false, false, true, true, false};
  request_list with_threads = crossed;
  with_threads.threads = named;
  check_who_serves(&with_threads, by_first);
}

// One thread only allocates, the other only frees: no free holds the first
// thread back, and still it is not far ahead.
enum { FAR = 4 * CROSSING_LEAD };

static bool note_distance(void *self, const crossing_side *side) {
  _Atomic size_t *at = self;  // of both threads, and the most between them
  for (size_t i = 0; i < side->requests.count; i++) {
    const request *q = &side->requests.items[i];
    if (!crossing_ready(side, q, side->first_pass)) return false;
    at[side->number] = side->places[i];
    if (side->number == 0 && at[0] > at[1] + at[2]) at[2] = at[0] - at[1];
    crossing_tell(side, q, side->first_pass);
  }
  return true;
}

TEST(no_named_thread_runs_away) {
  request items[2 * FAR] = {{0}};
  uint32_t named[2 * FAR];
  _Atomic size_t at[3] = {0};
  for (uint32_t i = 0; i < 2 * FAR; i++) {
    named[i] = i % 2;
    items[i] = (request){.slot = i / 2, .size = i % 2 == 0 ? 8 : 0};
  }
  request_list list = {.items = items,
                       .count = (size_t)2 * FAR,
                       .slot_count = FAR,
                       .rank_count = 1,
                       .threads = named};
  crossing *c = crossing_create(&list, 2, false);
  ck_assert_ptr_nonnull(c);
  ck_assert(crossing_run(c, note_distance, at, 1));
  // What the other has begun it may not have noted yet.
  ck_assert_uint_le(at[2], CROSSING_LEAD + 2);
  ck_assert_uint_eq(at[1], 2 * FAR - 1);
  crossing_destroy(c);
}

// A trace that leaves its second block, and frees a block of before.
TEST(passes_that_begin_anew) {
  static request items[] = {
      {.slot = 0}, {.slot = 1, .size = 8}, {.slot = 2, .size = 8}, {.slot = 2}};
  request_list list = {
      .items = items, .count = 4, .slot_count = 3, .rank_count = 1};
  record r = {.refuses = false};
  crossing *c = crossing_create(&list, 2, false);
  ck_assert_ptr_nonnull(c);
  for (int pass = 1; pass <= 5; pass++) {
    crossing_reset(c, 1);
    require(crossing_run(c, note, &r, 1));
    for (size_t i = 0; i < 4; i++)
      require(r.served[i] == pass);
  }
  const request_list *renumbered = crossing_requests(c);
  ck_assert_uint_eq(renumbered->items[1].slot, crossing_slot(c, 1));
  ck_assert_uint_eq(renumbered->items[3].slot, crossing_slot(c, 2));
  crossing_destroy(c);
}

static bool note_processors(void *self, const crossing_side *side) {
  cpu_set_t *sets = self;  // of each thread
  return sched_getaffinity(0, sizeof *sets, &sets[side->number]) == 0;
}

// In turn those that the caller had before, and has afterwards.
TEST(spread_threads_have_a_processor_each) {
  enum { THREADS = 5 };
  cpu_set_t had, has, sets[THREADS];
  ck_assert_int_eq(sched_getaffinity(0, sizeof had, &had), 0);
  size_t processors = (size_t)CPU_COUNT(&had);
  crossing *c = crossing_create(&crossed, THREADS, true);
  ck_assert_ptr_nonnull(c);
  ck_assert(crossing_run(c, note_processors, sets, 1));
  crossing_destroy(c);
  for (size_t i = 0; i < THREADS; i++) {
    ck_assert_int_eq(CPU_COUNT(&sets[i]), 1);
    CPU_AND(&has, &sets[i], &had);
    ck_assert(CPU_EQUAL(&has, &sets[i]));
    for (size_t k = 0; k < i; k++) {
      bool same = CPU_EQUAL(&sets[k], &sets[i]) != 0;
      ck_assert(same == ((i - k) % processors == 0));
    }
  }
  ck_assert_int_eq(sched_getaffinity(0, sizeof has, &has), 0);
  ck_assert(CPU_EQUAL(&had, &has));
}

TEST(nobody_waits_for_what_was_refused) {
  record r = {.refuses = true};
  crossing *c = crossing_create(&crossed, 2, false);
  ck_assert_ptr_nonnull(c);
  ck_assert(!crossing_run(c, note, &r, 1));
  ck_assert_int_eq(r.served[2], 0);
  crossing_destroy(c);
}

// --- touched ---------------------------------------------------------------

TEST_LOOP(touched_blocks_are_held, THREADS_ARE_WATCHED ? 0 : 3) {
  static const char *const names[] = {"glibc", "arena_pool", "no_pool"};
  pool_bench_result r = run(names[_i], NULL, 1, true);
  ck_assert_msg(r.failed[0] == '\0', "%s: %s", names[_i], r.failed);
  ck_assert(isfinite(r.iteration_ms[POOL_BENCH_FIRST]));
  ck_assert_double_gt(r.reserved_over_live, 0.9);
}

TEST(two_threads_touch_blocks) {
  for (int i = 0; i < LIBRARY_DEVICES; i++) {
    pool_bench_result r = run("page_unit_pool", test_devices[i], 2, true);
    ck_assert_msg(r.failed[0] == '\0', "%s", r.failed);
  }
}

TEST_LOOP(one_byte_of_each_page, TEST_DEVICES) {
  tarn_addr at = 0;
  unsigned char byte[2] = {0};
  tarn_device *device = open_device(test_devices[_i]);
  assert_ok(tarn_device_allocate(tarn_place_on(device), 8192, &at));
  bool plain = touch_is_plain(device, at, 8192);
  ck_assert(plain != device_has(device, TEST_NEEDS_DISCRETE));
  assert_ok(tarn_device_set(device, at, 7, 8192, NULL));
  ck_assert(touch_pages(device, plain, at, 8192));
  assert_ok(tarn_copy_d2h(device, byte, at + 4096, 2, NULL));
  ck_assert_uint_eq(byte[0], 1);
  ck_assert_uint_eq(byte[1], 7);
  assert_ok(tarn_device_deallocate(tarn_place_on(device), at, 8192));
}

// --- limits ----------------------------------------------------------------

static void fill_memory(void *context, void *out_result) {
  (void)out_result;
  size_t size = *(size_t *)context;
  volatile char *bytes = malloc(size);
  for (size_t i = 0; bytes != NULL && i < size; i += 4096)
    bytes[i] = 1;
  for (;;)
    pause();
}

TEST(a_child_with_too_much_memory) {
  size_t size = 256u << 20;
  char why[CHILD_TEXT_SIZE] = "", result = 1;
  child_limits limits = {.bytes = size / 2};
  ck_assert(!child_run(fill_memory, &size, limits, &result, 1, why));
  ck_assert_str_eq(why, "over the limit: 128 MiB of resident memory");
  ck_assert_int_eq(result, 0);
}

TEST(a_child_that_takes_too_long) {
  size_t size = 4096;
  char why[CHILD_TEXT_SIZE] = "", result = 1;
  child_limits limits = {.seconds = 1};
  ck_assert(!child_run(fill_memory, &size, limits, &result, 1, why));
  ck_assert_str_eq(why, "over the limit: 1 seconds");
}

TEST(memory_there_is) {
  ck_assert_uint_gt(memory_of_machine(), 0);
  size_t resident = memory_resident(getpid());
  ck_assert_uint_gt(resident, 0);
  ck_assert_uint_lt(resident, memory_of_machine());
  memory_forget_peak();
  ck_assert_uint_gt(memory_resident_peak(), 0);
  ck_assert_uint_eq(memory_resident(-1), 0);
}
