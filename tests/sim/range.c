// Ranges of simulated devices: addresses, memory, mappings, rights.
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ext_kit.h"
#include "support/faults.h"

// --- addresses -------------------------------------------------------------

TEST(ranges_come_and_go) {
  size_t size = 0;
  uint64_t a = 0;
  ext_init(0);
  assert_ok(ext->range_granularity(1, &size));
  ck_assert_uint_eq(size, GRANULE);
  assert_ok(ext->range_reserve(0, 3 * GRANULE, 0, &a));
  uint64_t b = ext_reserve(0, GRANULE);
  uint64_t c = 0;
  assert_ok(ext->range_reserve(0, GRANULE, 64 * MIB, &c));
  ck_assert_uint_eq(c % (64 * MIB), 0);
  ck_assert(b - a >= 3 * GRANULE || a - b >= GRANULE);
  assert_ok(ext->range_reserve(0, GRANULE, 1, &size));
  assert_ok(ext->range_release(0, size, GRANULE));
  // Reserving costs no memory.
  ck_assert_uint_eq(ext_free_memory(0), CAPACITY);
  assert_ok(ext->range_release(0, a, 3 * GRANULE));
  assert_ok(ext->range_release(0, b, GRANULE));
  assert_ok(ext->range_release(0, c, GRANULE));
  ext_finalize(0);
}

TEST(many_times_the_capacity_can_be_reserved) {
  uint64_t none = 1;
  ext_init(0);
  uint64_t all = ext_reserve(0, 16 * CAPACITY);
  assert_status(ext->range_reserve(0, GRANULE, 0, &none), TARN_FULL);
  ck_assert_uint_eq(none, 0);
  assert_text_says(NULL, "sim:0: no 65536 bytes of addresses left");
  uint64_t other = ext_reserve(1, GRANULE);
  assert_ok(ext->range_release(0, all, 16 * CAPACITY));
  assert_ok(ext->range_release(1, other, GRANULE));
  all = ext_reserve(0, 16 * CAPACITY);
  assert_status(ext->range_reserve(1, GRANULE << 40, 0, &none), TARN_FULL);
  ext_finalize(0);  // takes the range with it
}

TEST(wrong_ranges_are_refused) {
  uint64_t none = 1;
  ext_init(0);
  uint64_t a = ext_reserve(0, 2 * GRANULE);
  assert_refused(ext->range_reserve(0, GRANULE + 4096, 0, &none),
                 "not a multiple of 64 KiB");
  ck_assert_uint_eq(none, 0);
  assert_refused(ext->range_reserve(0, 0, 0, &none),
                 "range_reserve of 0 bytes");
  assert_refused(ext->range_reserve(0, GRANULE, 3 * MIB, &none),
                 "no power of two");
  assert_refused(ext->range_reserve(2, GRANULE, 0, &none), "device 2 of 2");
  assert_refused(ext->range_release(0, a, GRANULE), "not a whole range");
  assert_refused(ext->range_release(0, a + GRANULE, GRANULE),
                 "not a whole range");
  assert_refused(ext->range_release(1, a, 2 * GRANULE), "not a whole range");
  assert_ok(ext->range_release(0, a, 2 * GRANULE));
  assert_refused(ext->range_release(0, a, 2 * GRANULE), "not a whole range");
  ext_finalize(8);
}

// --- memory ----------------------------------------------------------------

TEST(memory_counts_towards_the_capacity) {
  uint64_t none = 1;
  void *block = NULL;
  ext_init(0);
  uint64_t a = ext_create(0, CAPACITY / 2, 0);
  uint64_t b = ext_create(0, CAPACITY / 4, TARN_EXT_MEMORY_SHAREABLE);
  ck_assert_uint_ne(a, b);
  ck_assert_uint_eq(ext_free_memory(0), CAPACITY / 4);
  ck_assert_uint_eq(ext_free_memory(1), CAPACITY);
  assert_status(ext->memory_create(0, CAPACITY / 2, 0, &none), TARN_FULL);
  ck_assert_uint_eq(none, 0);
  assert_text_says(NULL, "bytes of memory left");
  for (uint32_t flags = 0; flags < 2; flags++) {
    assert_status(ext->memory_create(0, GRANULE << 35, flags, &none),
                  TARN_FULL);
  }
  assert_c(table.device_memory_allocate(&ids[0], &block, CAPACITY / 2),
           C_FAILED);
  assert_ok(ext->memory_destroy(1, a));  // a handle is any device's
  assert_done(table.device_memory_allocate(&ids[0], &block, CAPACITY / 2));
  assert_ok(ext->memory_destroy(0, b));
  ck_assert_uint_eq(ext_free_memory(0), CAPACITY / 2);
  ext_finalize(0);
}

TEST(wrong_memory_is_refused) {
  uint64_t none = 1;
  ext_init(0);
  assert_refused(ext->memory_create(0, GRANULE / 2, 0, &none),
                 "not a multiple of 64 KiB");
  ck_assert_uint_eq(none, 0);
  assert_refused(ext->memory_create(0, 0, 0, &none),
                 "memory_create of 0 bytes");
  assert_refused(ext->memory_create(0, GRANULE, 6, &none), "flags 0x6");
  uint64_t memory = ext_create(0, GRANULE, 0);
  assert_refused(ext->memory_destroy(0, memory + 1), "no such memory");
  assert_refused(ext->memory_destroy(0, 0), "memory_destroy");
  assert_ok(ext->memory_destroy(0, memory));
  assert_refused(ext->memory_destroy(0, memory), "no such memory");
  ext_finalize(6);
}

// Its bytes are in the device, but at no address.
TEST(memory_has_no_address) {
  void *block = NULL;
  unsigned char byte = 0;
  ext_init(0);
  (void)ext_create(0, CAPACITY - GRANULE, 0);
  assert_done(table.device_memory_allocate(&ids[0], &block, 256));
  char *at = block;
  for (size_t i = 1; i <= CAPACITY / GRANULE; i++) {
    require(table.memory_copy_d2h(&ids[0], &byte, at + i * GRANULE, 1) ==
            C_ERROR);
    require(table.device_memory_deallocate(&ids[0], at + i * GRANULE,
                                           GRANULE) == C_ERROR);
  }
  ext_finalize(2 * CAPACITY / GRANULE);
}

// --- mappings --------------------------------------------------------------

TEST(bytes_stay_with_the_memory) {
  ext_init(0);
  uint64_t range = ext_reserve(0, 4 * GRANULE);
  uint64_t memory = ext_create(0, GRANULE, 0);
  ext_map(0, range, GRANULE, memory);
  ext_write(0, range + 12345, "tarn", 5);
  assert_ok(ext->range_unmap(0, range, GRANULE));
  ext_map(0, range + 3 * GRANULE, GRANULE, memory);
  char text[5] = "";
  ext_read(0, text, range + 3 * GRANULE + 12345, 5);
  ck_assert_str_eq(text, "tarn");
  // The memory outlives its handle, and counts, until it is unmapped.
  assert_ok(ext->memory_destroy(0, memory));
  ext_read(0, text, range + 3 * GRANULE + 12345, 5);
  ck_assert_str_eq(text, "tarn");
  ck_assert_uint_eq(ext_free_memory(0), CAPACITY - GRANULE);
  assert_ok(ext->range_unmap(0, range + 3 * GRANULE, GRANULE));
  ck_assert_uint_eq(ext_free_memory(0), CAPACITY);
  assert_ok(ext->range_release(0, range, 4 * GRANULE));
  ext_finalize(0);
}

TEST(shareable_memory_is_at_two_addresses) {
  ext_init(0);
  uint64_t memory = ext_create(1, GRANULE, TARN_EXT_MEMORY_SHAREABLE);
  uint64_t here = ext_reserve(0, 2 * GRANULE);
  uint64_t there = ext_reserve(1, GRANULE);
  ext_map(0, here, GRANULE, memory);
  ext_map(0, here + GRANULE, GRANULE, memory);
  ext_map(1, there, GRANULE, memory);
  ext_write(0, here + 100, "x", 1);
  ck_assert_uint_eq(ext_byte(0, here + GRANULE + 100), 'x');
  ck_assert_uint_eq(ext_byte(1, there + 100), 'x');
  ext_write(1, there + GRANULE - 1, "y", 1);
  ck_assert_uint_eq(ext_byte(0, here + 2 * GRANULE - 1), 'y');
  ck_assert_uint_eq(ext_free_memory(0), CAPACITY);
  assert_ok(ext->memory_destroy(0, memory));
  assert_ok(ext->range_unmap(0, here, 2 * GRANULE));
  ck_assert_uint_eq(ext_byte(1, there + 100), 'x');
  assert_ok(ext->range_unmap(1, there, GRANULE));
  ck_assert_uint_eq(ext_free_memory(1), CAPACITY);
  ext_finalize(0);
}

// Memory that was shared belongs to no process any more, and its bytes are zero
// when they are given out again.
TEST(memory_that_went_leaves_nothing) {
  ext_init(0);
  for (uint32_t flags = 0; flags < 2; flags++) {
    uint64_t memory = ext_create(0, CAPACITY, flags);
    uint64_t range = ext_reserve(0, CAPACITY);
    ext_map(0, range, CAPACITY, memory);
    for (size_t at = 0; at < CAPACITY; at += GRANULE)
      ext_write(0, range + at, "\377", 1);
    assert_ok(ext->range_unmap(0, range, CAPACITY));
    assert_ok(ext->memory_destroy(0, memory));
    assert_ok(ext->range_release(0, range, CAPACITY));
  }
  for (int round = 0; round < 8; round++) {
    uint64_t memory = ext_create(0, CAPACITY, 0);
    uint64_t range = ext_reserve(0, CAPACITY);
    ext_map(0, range, CAPACITY, memory);
    for (size_t at = 0; at < CAPACITY; at += GRANULE)
      require(ext_byte(0, range + at) == 0);
    assert_ok(ext->range_unmap(0, range, CAPACITY));
    assert_ok(ext->memory_destroy(0, memory));
  }
  ext_finalize(0);
}

TEST(wrong_mappings_are_refused) {
  ext_init(0);
  uint64_t range = ext_reserve(0, 4 * GRANULE);
  uint64_t one = ext_create(0, GRANULE, 0);
  uint64_t two = ext_create(0, 2 * GRANULE, TARN_EXT_MEMORY_SHAREABLE);
  assert_refused(ext->range_map(0, range, GRANULE, one + 99), "no such memory");
  assert_refused(ext->range_map(0, range, GRANULE, two),
                 "not the size of the memory");
  assert_refused(ext->range_map(0, range + 4096, GRANULE, one),
                 "not at a multiple of 64 KiB");
  assert_refused(ext->range_map(0, range + 3 * GRANULE, 2 * GRANULE, two),
                 "not in a range of this device");
  assert_refused(ext->range_map(1, range, GRANULE, one),
                 "not in a range of this device");
  assert_ok(ext->range_map(0, range + GRANULE, GRANULE, one));
  assert_refused(ext->range_map(0, range + 2 * GRANULE, GRANULE, one),
                 "mapped elsewhere and not shareable");
  assert_refused(ext->range_map(0, range, 2 * GRANULE, two),
                 "something is mapped there already");
  assert_ok(ext->range_map(0, range + 2 * GRANULE, 2 * GRANULE, two));
  assert_refused(ext->range_release(0, range, 4 * GRANULE),
                 "something is mapped there");
  assert_refused(ext->range_unmap(0, range + 2 * GRANULE, GRANULE),
                 "not whole mappings");
  assert_refused(ext->range_unmap(0, range + 3 * GRANULE, GRANULE),
                 "not whole mappings");
  assert_refused(ext->range_unmap(0, range, 2 * GRANULE),
                 "nothing is mapped in some of it");
  assert_refused(ext->range_unmap(1, range, GRANULE),
                 "not in a range of this device");
  assert_refused(ext->range_unmap(0, range + GRANULE, 0),
                 "range_unmap of 0 bytes");
  assert_ok(ext->range_unmap(0, range + GRANULE, 3 * GRANULE));
  assert_ok(ext->range_release(0, range, 4 * GRANULE));
  ext_finalize(13);
}

// Closing a device takes its memory out of ranges of another, which answer.
TEST(memory_goes_with_its_device) {
  unsigned char byte = 0;
  ext_init(0);
  uint64_t range = ext_reserve(0, GRANULE);
  uint64_t memory = ext_create(1, GRANULE, 0);
  ext_map(0, range, GRANULE, memory);
  ck_assert_uint_eq(ext_byte(0, range), 0);
  assert_done(table.deinit_device(&ids[1]));
  assert_c(table.memory_copy_d2h(&ids[0], &byte, ext_pointer(range), 1),
           C_ERROR);
  assert_reported("nothing is mapped there");
  assert_refused(ext->memory_destroy(0, memory), "no such");
  assert_done(table.init_device(&ids[1]));
  uint64_t again = ext_create(1, GRANULE, 0);
  ck_assert_uint_ne(again, memory);
  ext_map(0, range, GRANULE, again);
  ext_finalize(2);
}

// --- rights ----------------------------------------------------------------

static C_Status set_byte(int id, uint64_t address) {
  return table.device_memory_set(&ids[id], ext_pointer(address), 1, 1);
}

static C_Status get_byte(int id, uint64_t address) {
  unsigned char byte = 0;
  return table.memory_copy_d2h(&ids[id], &byte, ext_pointer(address), 1);
}

TEST(rights_are_asked_for) {
  ext_init(0);
  uint64_t range = ext_reserve(0, 2 * GRANULE);
  assert_ok(ext->range_map(0, range, GRANULE, ext_create(0, GRANULE, 0)));
  assert_ok(
      ext->range_map(0, range + GRANULE, GRANULE, ext_create(0, GRANULE, 0)));
  assert_c(get_byte(0, range), C_ERROR);
  assert_reported("no access: sim:0 may not read there");
  assert_ok(
      ext->range_set_access(0, range, 2 * GRANULE, 0, TARN_EXT_ACCESS_READ));
  assert_done(get_byte(0, range + GRANULE));
  assert_c(set_byte(0, range), C_ERROR);
  assert_reported("no access: sim:0 may not write there");
  assert_ok(
      ext->range_set_access(0, range, GRANULE, 0, TARN_EXT_ACCESS_READ_WRITE));
  assert_done(set_byte(0, range));
  assert_c(table.device_memory_set(&ids[0], ext_pointer(range), 7, GRANULE + 1),
           C_ERROR);
  assert_reported("sim:0 may not write there from byte 65536 on");
  assert_ok(ext->range_set_access(0, range, GRANULE, 0, TARN_EXT_ACCESS_NONE));
  assert_c(get_byte(0, range), C_ERROR);
  ext_finalize(4);
}

TEST(another_device_needs_rights_of_its_own) {
  void *block = NULL;
  ext_init(0);
  uint64_t range = ext_reserve(1, GRANULE);
  ext_map(1, range, GRANULE, ext_create(1, GRANULE, 0));
  ext_write(1, range, "z", 1);
  assert_done(table.device_memory_allocate(&ids[0], &block, 256));
  assert_c(table.memory_copy_d2d(&ids[0], block, ext_pointer(range), 1),
           C_ERROR);
  assert_reported("no access: sim:0 may not read there");
  assert_ok(ext->range_set_access(1, range, GRANULE, 0, TARN_EXT_ACCESS_READ));
  assert_done(table.memory_copy_d2d(&ids[0], block, ext_pointer(range), 1));
  ck_assert_uint_eq(ext_byte(0, (uintptr_t)block), 'z');
  assert_c(table.memory_copy_d2d(&ids[0], ext_pointer(range), block, 1),
           C_ERROR);
  assert_reported("no access: sim:0 may not write there");
  assert_done(set_byte(1, range));  // it has kept its own
  ext_finalize(2);
}

// Where a part goes its bytes go, and the capacity.
TEST(memory_moves_in_parts) {
  ext_init(0);
  size_t moved = 0;
  uint64_t range = ext_reserve(0, 16 * GRANULE);
  uint64_t memory = ext_create(0, 4 * GRANULE, 0);
  ext_map(0, range, 4 * GRANULE, memory);
  for (size_t i = 0; i < 4; i++)
    ext_write(0, range + i * GRANULE, &"abcd"[i], 1);
  assert_ok(ext->memory_destroy(0, memory));
  assert_ok(ext->range_move(0, range + GRANULE, range + 8 * GRANULE,
                            2 * GRANULE, &moved));
  ck_assert_uint_eq(moved, 2 * GRANULE);
  ck_assert_uint_eq(ext_byte(0, range), 'a');
  ck_assert_uint_eq(ext_byte(0, range + 8 * GRANULE), 'b');
  ck_assert_uint_eq(ext_byte(0, range + 9 * GRANULE), 'c');
  ck_assert_uint_eq(ext_byte(0, range + 3 * GRANULE), 'd');
  assert_ok(ext->range_unmap(0, range + 8 * GRANULE, GRANULE));
  ck_assert_uint_eq(ext_byte(0, range + 9 * GRANULE), 'c');
  assert_ok(ext->range_unmap(0, range, GRANULE));
  assert_ok(ext->range_unmap(0, range + 3 * GRANULE, GRANULE));
  assert_ok(ext->range_unmap(0, range + 9 * GRANULE, GRANULE));
  uint64_t all = ext_create(0, CAPACITY, 0);  // it has all come back
  assert_ok(ext->memory_destroy(0, all));
  assert_ok(ext->range_release(0, range, 16 * GRANULE));
  ext_finalize(0);
}

// A handle of memory that has been cut can only be destroyed.
TEST(a_handle_of_what_was_cut) {
  ext_init(0);
  size_t moved = 0;
  uint64_t range = ext_reserve(0, 8 * GRANULE);
  uint64_t memory = ext_create(0, 2 * GRANULE, 0);
  ext_map(0, range, 2 * GRANULE, memory);
  assert_ok(ext->range_move(0, range, range + 4 * GRANULE, GRANULE, &moved));
  assert_ok(ext->range_unmap(0, range + 4 * GRANULE, GRANULE));
  assert_ok(ext->range_unmap(0, range + GRANULE, GRANULE));
  assert_refused(ext->range_map(0, range, 2 * GRANULE, memory),
                 "memory that has been taken in parts");
  assert_ok(ext->memory_destroy(0, memory));
  ext_finalize(1);
}

TEST(wrong_moves_are_refused) {
  ext_init(0);
  size_t moved = 1;
  uint64_t range = ext_reserve(0, 8 * GRANULE);
  uint64_t memory = ext_create(0, 2 * GRANULE, TARN_EXT_MEMORY_SHAREABLE);
  ext_map(0, range, 2 * GRANULE, memory);
  assert_refused(
      ext->range_move(0, range, range + 4 * GRANULE, GRANULE, &moved),
      "not whole mappings");
  assert_refused(
      ext->range_move(0, range, range + GRANULE, 2 * GRANULE, &moved),
      "something is mapped there already");
  assert_refused(
      ext->range_move(0, range, range + 7 * GRANULE, 2 * GRANULE, &moved),
      "to what is not in a range of this device");
  assert_refused(ext->range_move(0, range + 4 * GRANULE, range + 6 * GRANULE,
                                 GRANULE, &moved),
                 "nothing is mapped in some of it");
  assert_refused(ext->range_move(0, range, range + 4 * GRANULE + 4096,
                                 2 * GRANULE, &moved),
                 "not to a multiple of 64 KiB");
  ck_assert_uint_eq(moved, 0);
  ext_finalize(5);
}

// The first half has moved, as far as it can be cut.
TEST(a_move_that_is_made_to_fail) {
  ext_init(0);
  size_t moved = 0;
  uint64_t range = ext_reserve(0, 16 * GRANULE);
  uint64_t memory = ext_create(0, 4 * GRANULE, 0);
  ext_map(0, range, 4 * GRANULE, memory);
  assert_ok(tarn_sim_faults("range_move@1"));
  ck_assert_int_eq(
      ext->range_move(0, range, range + 8 * GRANULE, 4 * GRANULE, &moved),
      TARN_E_DEVICE);
  ck_assert_uint_eq(moved, 2 * GRANULE);
  assert_ok(ext->range_move(0, range + 2 * GRANULE, range + 10 * GRANULE,
                            2 * GRANULE, &moved));
  assert_ok(ext->range_unmap(0, range + 8 * GRANULE, 4 * GRANULE));
  assert_ok(ext->memory_destroy(0, memory));
  ext_finalize(0);
}

TEST(a_device_that_does_not_move) {
  setenv("TARN_SIM_NO_MOVES", "1", 1);
  ext_init(0);
  size_t moved = 1;
  ck_assert_int_eq(ext->range_move(0, 0, 0, 0, &moved), TARN_E_UNSUPPORTED);
  ck_assert_uint_eq(moved, 0);
  uint64_t range = ext_reserve(0, 2 * GRANULE);
  uint64_t memory = ext_create(0, 2 * GRANULE, 0);
  ext_map(0, range, 2 * GRANULE, memory);
  assert_refused(ext->range_unmap(0, range, GRANULE), "not whole mappings");
  unsetenv("TARN_SIM_NO_MOVES");
  ext_finalize(1);
}

TEST(wrong_rights_are_refused) {
  ext_init(0);
  uint64_t range = ext_reserve(0, 2 * GRANULE);
  uint64_t memory = ext_create(0, 2 * GRANULE, TARN_EXT_MEMORY_SHAREABLE);
  ext_map(0, range, 2 * GRANULE, memory);
  tarn_ext_access both = TARN_EXT_ACCESS_READ_WRITE;
  assert_refused(ext->range_set_access(0, range, GRANULE, 0, both),
                 "not whole mappings");
  assert_refused(ext->range_set_access(0, range, 2 * GRANULE, 5, both),
                 "device 5 of 2");
  assert_refused(
      ext->range_set_access(0, range, 2 * GRANULE, 0, (tarn_ext_access)2),
      "no such right");
  assert_refused(ext->range_set_access(1, range, 2 * GRANULE, 0, both),
                 "not in a range of this device");
  ext_finalize(4);
}

// --- the host --------------------------------------------------------------

static sigjmp_buf back;

static void jump_back(int signal) {
  siglongjmp(back, signal);
}

// Mapped or not, the host faults there; looked at in a child.
TEST(the_host_faults_in_ranges) {
  ext_init(0);
  uint64_t range = ext_reserve(0, GRANULE);
  ext_map(0, range, GRANULE, ext_create(0, GRANULE, 0));
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, jump_back);
    if (sigsetjmp(back, 1) != 0) _exit(7);
    volatile unsigned char *ptr = ext_pointer(range);
    _exit(*ptr == 1 ? 1 : 2);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  ext_finalize(0);
}

static void scenario(void *context) {
  (void)context;
  uint64_t range = 0;
  uint64_t memory = 0;
  if (table.init_device(&ids[0]) != C_SUCCESS) return;
  size_t before = ext_free_memory(0);
  tarn_status status = ext->range_reserve(0, 2 * GRANULE, 0, &range);
  require((status == TARN_OK) == (range != 0));
  status = ext->memory_create(0, GRANULE, TARN_EXT_MEMORY_SHAREABLE, &memory);
  require((status == TARN_OK) == (memory != 0));
  if (memory == 0) require(ext_free_memory(0) == before);
  if (range != 0 && memory != 0) {
    status = ext->range_map(0, range, GRANULE, memory);
    require(status == TARN_OK || status == TARN_E_NOMEM);
    if (status == TARN_OK) {
      require(ext->range_unmap(0, range, GRANULE) == TARN_OK);
    }
  }
  if (memory != 0) require(ext->memory_destroy(0, memory) == TARN_OK);
  if (range != 0) {
    require(ext->range_release(0, range, 2 * GRANULE) == TARN_OK);
  }
  require(ext_free_memory(0) == before);
  require(table.deinit_device(&ids[0]) == C_SUCCESS);
}

TEST(every_host_fault_is_survived) {
  ext_init(0);
  assert_done(table.deinit_device(&ids[0]));
  ck_assert_uint_ge(faults_sweep(scenario, NULL), 8);
  ext_finalize(0);
}

int main(void) {
  faults_install();
  return run_tests();
}
