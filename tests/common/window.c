// Windows of addresses: what is taken in them, found and given back; what they
// are where the system has few addresses; that nobody can touch them.
#include "common/window.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "support/child.h"
#include "support/effort.h"
#include "support/faults.h"
#include "support/run.h"

static const size_t KIB = (size_t)1 << 10;
static const size_t MIB = (size_t)1 << 20;
static const size_t GIB = (size_t)1 << 30;
static const size_t TIB = (size_t)1 << 40;

enum { COUNT = 64 };

static tarn__common_window window;
static int records[COUNT];

// Takes what there must be room for, and checks what is known of it.
static tarn__common_extent *take(size_t size, size_t align, void *record) {
  tarn__common_extent *taken =
      tarn__common_window_take(&window, size, align, record);
  require(taken != NULL);
  require(taken->node.start % align == 0);
  require(taken->size == size && taken->asked == size);
  require(taken->record == record && taken->serial == window.serial);
  require(tarn__common_window_has(&window, taken->node.start));
  require(tarn__common_window_has(&window, taken->node.start + size - 1));
  return taken;
}

static void *found_at(uint64_t address, size_t *out_offset) {
  const tarn__common_extent *found =
      tarn__common_window_find(&window, address, out_offset);
  return found != NULL ? found->record : NULL;
}

static void assert_nothing_at(uint64_t address) {
  size_t offset = 77;
  require(found_at(address, &offset) == NULL && offset == 0);
}

static void assert_closed(void) {
  ck_assert_uint_eq(window.size, 0);
  ck_assert(!tarn__common_window_has(&window, window.begin));
  ck_assert_ptr_null(tarn__common_window_take(&window, 1, 1, NULL));
  assert_nothing_at(window.begin);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// --- taking, finding, giving -----------------------------------------------

TEST(interior_addresses_lead_to_their_extent) {
  uint64_t starts[COUNT];
  ck_assert(tarn__common_window_open(&window, MIB, MIB, 1));
  ck_assert_uint_eq(window.size, MIB);
  for (size_t i = 0; i < COUNT; i++)
    starts[i] = take(512 + i, 256, &records[i])->node.start;
  ck_assert_uint_eq(window.serial, COUNT);
  for (size_t i = 0; i < COUNT; i++) {
    for (size_t at = 0; at < 512 + i; at++) {
      size_t offset = 0;
      require(found_at(starts[i] + at, &offset) == &records[i]);
      require(offset == at);
    }
    // Behind it, up to the next multiple of 256, nothing is taken.
    if (i != 0) assert_nothing_at(starts[i] + 512 + i);
  }
  assert_nothing_at(window.begin - 1);
  assert_nothing_at(window.begin + window.size - 1);
  assert_nothing_at(window.begin + window.size);
  assert_nothing_at(0);
  assert_nothing_at(UINT64_MAX);
  tarn__common_window_close(&window);
  assert_closed();
}

TEST(bytes_behind_the_usable_ones_are_not_found) {
  ck_assert(tarn__common_window_open(&window, MIB, MIB, 1));
  tarn__common_extent *taken =
      tarn__common_extents_take(&window.extents, 512, 256, 300, 9);
  ck_assert_ptr_nonnull(taken);
  size_t offset = 0;
  uint64_t start = taken->node.start;
  ck_assert_ptr_eq(tarn__common_window_find(&window, start + 299, &offset),
                   taken);
  ck_assert_uint_eq(offset, 299);
  assert_nothing_at(start + 300);
  assert_nothing_at(start + 511);
  tarn__common_window_close(&window);
}

TEST(what_is_given_back_is_found_no_more_and_taken_late) {
  ck_assert(tarn__common_window_open(&window, MIB, MIB, 1));
  uint64_t first = take(MIB / 4, 1, &records[0])->node.start;
  ck_assert_uint_eq(first, window.begin);
  for (uint64_t i = 0; i < 3; i++) {
    size_t offset = 0;
    tarn__common_extent *taken = take(MIB / 4, 1, &records[1]);
    uint64_t start = taken->node.start;
    ck_assert_uint_eq(start, first + (i + 1) * MIB / 4);
    ck_assert_ptr_eq(found_at(start + 5, &offset), &records[1]);
    tarn__common_run room = tarn__common_window_give(&window, taken);
    ck_assert_uint_eq(room.address, first + MIB / 4);
    ck_assert_uint_eq(room.size, 3 * MIB / 4);
    assert_nothing_at(start + 5);
  }
  // At the end it begins anew, behind what is still taken.
  ck_assert_uint_eq(take(MIB / 4, 1, NULL)->node.start, first + MIB / 4);
  tarn__common_window_close(&window);
}

TEST(a_full_window_refuses_until_something_is_given_back) {
  ck_assert(tarn__common_window_open(&window, MIB, MIB, 1));
  tarn__common_extent *all[COUNT];
  for (size_t i = 0; i < COUNT; i++)
    all[i] = take(MIB / COUNT, 1, &records[i]);
  ck_assert_ptr_null(tarn__common_window_take(&window, 1, 1, NULL));
  ck_assert_uint_eq(window.serial, COUNT);
  tarn__common_window_give(&window, all[7]);
  tarn__common_window_give(&window, all[9]);
  ck_assert_ptr_null(
      tarn__common_window_take(&window, MIB / COUNT + 1, 1, NULL));
  uint64_t start = take(MIB / COUNT, 1, &records[7])->node.start;
  ck_assert_uint_eq(start, window.begin + 7 * MIB / COUNT);
  tarn__common_window_close(&window);
  assert_closed();
}

TEST(an_empty_window_has_room_at_any_alignment_within) {
  for (size_t align = 1; align <= GIB; align *= 2) {
    ck_assert(tarn__common_window_open(&window, GIB + GIB / 2, 0, 1));
    ck_assert_uint_eq(window.size, GIB + GIB / 2);
    require(take(3, 1, NULL)->node.start == window.begin);
    tarn__common_extent *taken = take(MIB, align, NULL);
    tarn__common_window_give(&window, taken);
    tarn__common_window_close(&window);
  }
  assert_closed();
}

// --- how large a window is -------------------------------------------------

TEST(pages_are_not_divided) {
  size_t page = tarn__os_page();
  ck_assert(tarn__common_window_open(&window, 1, 1, 1));
  ck_assert_uint_eq(window.size, page);
  ck_assert_uint_eq(window.begin % page, 0);
  tarn__common_window_close(&window);
  ck_assert(tarn__common_window_open(&window, 3 * KIB, 1, 64 * KIB));
  ck_assert_uint_eq(window.size, 64 * KIB);
  ck_assert_uint_eq(window.begin % (64 * KIB), 0);
  tarn__common_window_close(&window);
  assert_closed();
}

TEST(there_may_be_more_addresses_than_memory) {
  size_t total = 0;
  size_t available = 0;
  tarn__os_memory(&total, &available);
  size_t size = total * 8 / MIB * MIB;
  ck_assert(tarn__common_window_open(&window, size, size, MIB));
  size_t offset = 0;
  tarn__common_extent *taken = take(size / 2, MIB, &records[0]);
  ck_assert_ptr_eq(found_at(taken->node.start + size / 2 - 1, &offset),
                   &records[0]);
  ck_assert_uint_eq(offset, size / 2 - 1);
  tarn__common_window_close(&window);
}

// No process of this machine has so many.
TEST(what_the_system_has_not_is_halved) {
  ck_assert(
      !tarn__common_window_open(&window, (size_t)1 << 60, (size_t)1 << 58, 1));
  assert_closed();
  ck_assert(!tarn__common_window_open(&window, SIZE_MAX, 0, 4096));
  assert_closed();
  ck_assert(tarn__common_window_open(&window, (size_t)1 << 60, GIB, 1));
  size_t size = window.size;
  ck_assert(tarn_is_power_of_two(size));
  ck_assert_uint_ge(size, GIB);
  ck_assert_uint_lt(size, (size_t)1 << 60);
  (void)take(size, 1, NULL);
  tarn__common_window_close(&window);
  assert_closed();
}

TEST(none_at_all_will_do) {
  ck_assert(
      tarn__common_window_open(&window, (size_t)1 << 62, 0, (size_t)1 << 61));
  assert_closed();
  tarn__common_window_close(&window);
}

static void limit_addresses(size_t more) {
  size_t pages = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  MUST(file != NULL && fscanf(file, "%zu", &pages) == 1);
  fclose(file);
  rlim_t bytes = (rlim_t)(pages * tarn__os_page() + more);
  MUST(setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes}) == 0);
}

static void open_with_few_addresses(void) {
  limit_addresses(96 * MIB);
  MUST(!tarn__common_window_open(&window, TIB, 128 * MIB, 64 * KIB));
  MUST(tarn__common_window_open(&window, TIB, 32 * MIB, 64 * KIB));
  MUST(window.size == 64 * MIB && window.begin % (64 * KIB) == 0);
  MUST(tarn__common_window_take(&window, 64 * MIB, 1, NULL) != NULL);
  tarn__common_window_close(&window);
  // All there is for the window; none is left to align it.
  MUST(tarn__common_window_open(&window, 64 * MIB, 64 * MIB, 64 * KIB));
  tarn__common_window_close(&window);
}

TEST(few_addresses_make_a_small_window) {
  if (EFFORT(false, true)) {
    note_skipped("few addresses", "a sanitizer needs more");
  } else {
    fork_and_run(open_with_few_addresses);
  }
}

// --- the host --------------------------------------------------------------

static bool faults(uint64_t address, bool writes) {
  int status = 0;
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    volatile char *byte = (char *)(uintptr_t)address;
    signal(SIGSEGV, SIG_DFL);
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (writes) *byte = 1;
    _exit(*byte == 0 ? 0 : 1);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

TEST(the_host_faults_wherever_it_touches_a_window) {
  ck_assert(tarn__common_window_open(&window, MIB, MIB, 1));
  uint64_t start = take(MIB / 2, 1, NULL)->node.start;
  ck_assert(faults(start, false));
  ck_assert(faults(start + MIB / 2 - 1, true));
  ck_assert(faults(window.begin + MIB - 1, false));
  ck_assert(faults(window.begin + MIB - 1, true));
  tarn__common_window_close(&window);
  ck_assert(!tarn__os_is_mapped((void *)(uintptr_t)start));
}

// --- failure ---------------------------------------------------------------

static void take_some(void *context) {
  (void)context;
  uint64_t newest = window.serial;
  if (!tarn__common_window_open(&window, MIB, 0, 1)) {
    require(window.size == 0);
    return;
  }
  tarn__common_extent *taken =
      tarn__common_window_take(&window, 100, 64, &records[0]);
  if (taken == NULL) {
    require(window.serial == newest);
    assert_nothing_at(window.begin);
  }
  // As if nothing had failed: all of the window can still be taken.
  if (taken != NULL) {
    tarn__common_run room = tarn__common_window_give(&window, taken);
    require(room.address == window.begin && room.size == window.size);
  }
  tarn__common_window_close(&window);
}

TEST(no_host_memory_changes_nothing) {
  ck_assert_uint_ge(faults_sweep(take_some, NULL), 3);
  assert_closed();
}

int main(void) {
  faults_install();
  return run_tests();
}
