// Addresses and memory apart, on the cpu device.
#include <signal.h>
#include <sys/wait.h>

#include "range_kit.h"

static const tarn_device_ext *ext;

// --- ranges ----------------------------------------------------------------

TEST(ranges_are_reserved) {
  size_t granule = 0;
  assert_ext_ok(ext->range_granularity(0, &granule));
  ck_assert_uint_eq(granule, GRANULE);
  for (size_t align = 1; align <= (size_t)1 << 32; align *= 4) {
    uint64_t addr = 0;
    assert_ext_ok(ext->range_reserve(0, 3 * GRANULE, align, &addr));
    ck_assert_uint_eq(addr % GRANULE, 0);
    ck_assert_uint_eq(addr % align, 0);
    ck_assert(!can_read(addr) && !can_read(addr + 3 * GRANULE - 1));
    release(addr, 3 * GRANULE);
    ck_assert(!tarn__os_is_mapped(bytes_at(addr)));
  }
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

TEST(ranges_that_cannot_be) {
  uint64_t addr = 1;
  size_t granule = 1;
  assert_ext_wrong(ext->range_granularity(1, &granule), "no device 1");
  ck_assert_uint_eq(granule, 0);
  assert_ext_wrong(ext->range_reserve(1, GRANULE, 0, &addr), "no device 1");
  ck_assert_uint_eq(addr, 0);
  assert_ext_wrong(ext->range_reserve(0, 0, 0, &addr), "not multiples");
  assert_ext_wrong(ext->range_reserve(0, GRANULE + 1, 0, &addr), "multiples");
  assert_ext_wrong(ext->range_reserve(0, GRANULE, 3, &addr), "alignment of 3");
  addr = 1;
  assert_ext(ext->range_reserve(0, (size_t)1 << 60, 0, &addr), TARN_FULL);
  assert_ext(ext->range_reserve(0, GRANULE, (size_t)1 << 63, &addr), TARN_FULL);
  ck_assert_uint_eq(addr, 0);
  addr = reserve(4 * GRANULE);
  assert_ext_wrong(ext->range_release(1, addr, 4 * GRANULE), "no device 1");
  assert_ext_wrong(ext->range_release(0, addr, 3 * GRANULE), "only part");
  assert_ext_wrong(ext->range_release(0, addr, 5 * GRANULE), "not in one");
  assert_ext_wrong(ext->range_release(0, addr + GRANULE, GRANULE), "only part");
  assert_ext_wrong(ext->range_release(0, addr + 4096, GRANULE), "multiples");
  release(addr, 4 * GRANULE);
  assert_ext_wrong(ext->range_release(0, addr, 4 * GRANULE), "not in one");
}

// --- memory ----------------------------------------------------------------

TEST(memory_that_cannot_be) {
  uint64_t memory = 1;
  assert_ext_wrong(ext->memory_create(1, GRANULE, 0, &memory), "no device 1");
  ck_assert_uint_eq(memory, 0);
  assert_ext_wrong(ext->memory_create(0, 0, 0, &memory), "not a multiple");
  assert_ext_wrong(ext->memory_create(0, 4096, 0, &memory), "not a multiple");
  assert_ext_wrong(ext->memory_create(0, GRANULE, 6, &memory), "flags 0x6");
  assert_ext(ext->memory_create(0, (size_t)1 << 63, TARN_EXT_MEMORY_SHAREABLE,
                                &memory),
             TARN_FULL);
  ck_assert_uint_eq(memory, 0);
  assert_ext_wrong(ext->memory_destroy(0, 0), "is no memory");
  assert_ext_wrong(ext->memory_destroy(0, 1), "is no memory");
  assert_ext_wrong(ext->memory_destroy(0, UINT64_MAX), "is no memory");
  memory = create(GRANULE, 0);
  assert_ext_wrong(ext->memory_destroy(1, memory), "no device 1");
  destroy(memory);
  assert_ext_wrong(ext->memory_destroy(0, memory), "is no memory");
  uint64_t next = create(GRANULE, 0);
  ck_assert_uint_ne(next, memory);
  destroy(next);
}

TEST(handles_are_not_used_again) {
  uint64_t first[100];
  for (size_t i = 0; i < 100; i++)
    first[i] = create(GRANULE, 0);
  for (size_t i = 0; i < 100; i += 2)
    destroy(first[i]);
  for (size_t i = 0; i < 100; i += 2) {
    uint64_t again = create(GRANULE, 0);
    assert_ext_wrong(ext->memory_destroy(0, first[i]), "is no memory");
    destroy(again);
    destroy(first[i + 1]);
  }
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// --- mappings --------------------------------------------------------------

TEST_LOOP(mapped_memory_keeps_its_bytes, 2) {
  uint64_t addr = reserve(8 * GRANULE);
  uint64_t memory = create(2 * GRANULE, BOTH[_i]);
  map(addr, 2 * GRANULE, memory);
  ck_assert_int_eq(bytes_at(addr)[0], 0);
  memset(bytes_at(addr), 7, 2 * GRANULE);
  unmap(addr, 2 * GRANULE);
  ck_assert(!can_read(addr));
  map(addr + 5 * GRANULE, 2 * GRANULE, memory);
  ck_assert_int_eq(bytes_at(addr)[5 * GRANULE], 7);
  ck_assert_int_eq(bytes_at(addr)[7 * GRANULE - 1], 7);
  unmap(addr + 5 * GRANULE, 2 * GRANULE);
  uint64_t other = create(GRANULE, 0);
  map(addr + 5 * GRANULE, GRANULE, other);
  ck_assert_int_eq(bytes_at(addr)[5 * GRANULE], 0);
  unmap(addr + 5 * GRANULE, GRANULE);
  destroy(other);
  destroy(memory);
  release(addr, 8 * GRANULE);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

TEST_LOOP(memory_lives_until_its_last_mapping, 2) {
  uint64_t addr = reserve(2 * GRANULE);
  uint64_t memory = create(GRANULE, BOTH[_i]);
  map(addr, GRANULE, memory);
  bytes_at(addr)[77] = 7;
  destroy(memory);
  ck_assert_int_eq(bytes_at(addr)[77], 7);
  assert_ext_wrong(ext->range_map(0, addr + GRANULE, GRANULE, memory),
                   "is no memory");
  unmap(addr, GRANULE);
  release(addr, 2 * GRANULE);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

TEST(shareable_memory_at_two_addresses) {
  uint64_t addr = reserve(2 * GRANULE);
  uint64_t memory = create(GRANULE, TARN_EXT_MEMORY_SHAREABLE);
  map(addr, GRANULE, memory);
  map(addr + GRANULE, GRANULE, memory);
  // To a compiler, these are two objects.
  *(volatile unsigned char *)(bytes_at(addr) + 5) = 7;
  ck_assert_int_eq(*(volatile unsigned char *)bytes_at(addr + GRANULE + 5), 7);
  unmap(addr, GRANULE);
  ck_assert_int_eq(bytes_at(addr)[GRANULE + 5], 7);
  unmap(addr + GRANULE, GRANULE);
  destroy(memory);
  release(addr, 2 * GRANULE);
}

TEST(mappings_that_cannot_be) {
  uint64_t addr = reserve(4 * GRANULE);
  uint64_t memory = create(2 * GRANULE, 0);
  uint64_t other = create(GRANULE, 0);
  assert_ext_wrong(ext->range_map(1, addr, 2 * GRANULE, memory), "no device 1");
  assert_ext_wrong(ext->range_map(0, addr, 2 * GRANULE, 5), "is no memory");
  assert_ext_wrong(ext->range_map(0, addr, GRANULE, memory), "that has");
  assert_ext_wrong(ext->range_map(0, addr + 4096, 2 * GRANULE, memory),
                   "not multiples");
  assert_ext_wrong(ext->range_map(0, addr + 3 * GRANULE, 2 * GRANULE, memory),
                   "not in one range");
  assert_ext_wrong(ext->range_map(0, addr - GRANULE, 2 * GRANULE, memory),
                   "not in one range");
  map(addr + GRANULE, 2 * GRANULE, memory);
  assert_ext_wrong(ext->range_map(0, addr, 2 * GRANULE, memory),
                   "not shareable");
  assert_ext_wrong(ext->range_map(0, addr + 2 * GRANULE, GRANULE, other),
                   "already");
  assert_ext_wrong(ext->range_release(0, addr, 4 * GRANULE), "are mapped");
  assert_ext_wrong(ext->range_unmap(0, addr, GRANULE), "nothing is mapped");
  assert_ext_wrong(ext->range_unmap(0, addr, 4 * GRANULE), "nothing is mapped");
  assert_ext_wrong(ext->range_unmap(0, addr, 0), "not multiples");
  assert_ext_wrong(ext->range_unmap(1, addr, GRANULE), "no device 1");
  unmap(addr + GRANULE, 2 * GRANULE);
  assert_ext_wrong(ext->range_unmap(0, addr + GRANULE, 2 * GRANULE), "nothing");
  uint64_t shareable = create(2 * GRANULE, TARN_EXT_MEMORY_SHAREABLE);
  map(addr + GRANULE, 2 * GRANULE, shareable);
  assert_ext_wrong(ext->range_unmap(0, addr + GRANULE, GRANULE), "only part");
  assert_ext_wrong(ext->range_unmap(0, addr + 2 * GRANULE, GRANULE),
                   "only part");
  unmap(addr + GRANULE, 2 * GRANULE);
  destroy(shareable);
  destroy(memory);
  destroy(other);
  release(addr, 4 * GRANULE);
}

TEST(several_mappings_go_at_once) {
  uint64_t addr = reserve(6 * GRANULE);
  uint64_t memory[3];
  for (size_t i = 0; i < 3; i++) {
    memory[i] = create(2 * GRANULE, BOTH[i % 2]);
    map(addr + i * 2 * GRANULE, 2 * GRANULE, memory[i]);
    bytes_at(addr)[i * 2 * GRANULE] = (unsigned char)(i + 1);
  }
  unmap(addr, 6 * GRANULE);
  map(addr, 2 * GRANULE, memory[2]);
  ck_assert_int_eq(bytes_at(addr)[0], 3);
  unmap(addr, 2 * GRANULE);
  for (size_t i = 0; i < 3; i++)
    destroy(memory[i]);
  release(addr, 6 * GRANULE);
}

// --- access ----------------------------------------------------------------

// Does the write end a child by a signal?
static bool write_faults(uint64_t addr) {
  int result = 0;
  pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    *(volatile unsigned char *)bytes_at(addr) = 1;
    _exit(0);
  }
  ck_assert_int_eq(waitpid(child, &result, 0), child);
  return WIFSIGNALED(result) && WTERMSIG(result) == SIGSEGV;
}

TEST_LOOP(nobody_touches_before_access, 2) {
  uint64_t addr = reserve(2 * GRANULE);
  uint64_t memory = create(GRANULE, BOTH[_i]);
  ck_assert(write_faults(addr));
  assert_ext_ok(ext->range_map(0, addr, GRANULE, memory));
  ck_assert(write_faults(addr));
  static const tarn_ext_access rights[] = {
      TARN_EXT_ACCESS_READ_WRITE, TARN_EXT_ACCESS_READ, TARN_EXT_ACCESS_NONE,
      TARN_EXT_ACCESS_READ};
  for (size_t i = 0; i < sizeof rights / sizeof rights[0]; i++) {
    assert_ext_ok(ext->range_set_access(0, addr, GRANULE, 0, rights[i]));
    ck_assert(write_faults(addr) == (rights[i] != TARN_EXT_ACCESS_READ_WRITE));
    ck_assert(can_read(addr) == (rights[i] != TARN_EXT_ACCESS_NONE));
    if (i == 0) bytes_at(addr)[9] = 9;
  }
  ck_assert_int_eq(bytes_at(addr)[9], 9);
  unmap(addr, GRANULE);
  ck_assert(write_faults(addr));
  assert_ext_ok(ext->range_map(0, addr, GRANULE, memory));
  ck_assert(write_faults(addr));
  unmap(addr, GRANULE);
  destroy(memory);
  release(addr, 2 * GRANULE);
}

TEST(access_that_cannot_be) {
  uint64_t addr = reserve(4 * GRANULE);
  uint64_t memory = create(2 * GRANULE, TARN_EXT_MEMORY_SHAREABLE);
  assert_ext_ok(ext->range_map(0, addr, 2 * GRANULE, memory));
  const tarn_ext_access read = TARN_EXT_ACCESS_READ;
  assert_ext_wrong(ext->range_set_access(1, addr, 2 * GRANULE, 0, read),
                   "no device 1");
  assert_ext_wrong(ext->range_set_access(0, addr, 2 * GRANULE, 1, read),
                   "no device 1");
  assert_ext_wrong(ext->range_set_access(0, addr, 2 * GRANULE, 0, 2),
                   "2 is no access");
  assert_ext_wrong(ext->range_set_access(0, addr, GRANULE, 0, read),
                   "only part");
  assert_ext_wrong(ext->range_set_access(0, addr, 4 * GRANULE, 0, read),
                   "nothing is mapped");
  ck_assert(!can_read(addr));
  unmap(addr, 2 * GRANULE);
  destroy(memory);
  release(addr, 4 * GRANULE);
}

// --- addresses -------------------------------------------------------------

TEST(addresses_in_ranges_are_known) {
  uint64_t addr = reserve(4 * GRANULE);
  uint64_t memory = create(2 * GRANULE, 0);
  tarn_ext_pointer p = {.size = 1};
  assert_ext_wrong(ext->pointer_query(0, addr, &p), "nothing is mapped");
  ck_assert_uint_eq(p.size, 0);
  map(addr + GRANULE, 2 * GRANULE, memory);
  assert_ext_ok(ext->pointer_query(0, addr + 3 * GRANULE - 1, &p));
  ck_assert_int_eq(p.kind, TARN_EXT_KIND_DEVICE);
  ck_assert_uint_eq(p.base, addr + GRANULE);
  ck_assert_uint_eq(p.size, 2 * GRANULE);
  assert_ext_wrong(ext->pointer_query(0, addr + 3 * GRANULE, &p), "nothing");
  unmap(addr + GRANULE, 2 * GRANULE);
  destroy(memory);
  release(addr, 4 * GRANULE);
  assert_ext_wrong(ext->pointer_query(0, addr, &p), "no memory");
}

// --- faults -----------------------------------------------------------------

static bool has_failed(tarn_status status) {
  require(status == TARN_OK || status == TARN_E_NOMEM);
  return status != TARN_OK;
}

static void use_a_range(void *context) {
  uint64_t addr = 0;
  uint64_t memory = 0;
  uint32_t flags = *(const uint32_t *)context;
  if (has_failed(ext->range_reserve(0, 4 * GRANULE, 0, &addr))) {
    require(addr == 0);
    return;
  }
  if (!has_failed(ext->memory_create(0, GRANULE, flags, &memory))) {
    if (!has_failed(ext->range_map(0, addr, GRANULE, memory))) {
      require(ext->range_unmap(0, addr, GRANULE) == TARN_OK);
    }
    require(ext->memory_destroy(0, memory) == TARN_OK);
  }
  require(ext->range_release(0, addr, 4 * GRANULE) == TARN_OK);
}

TEST_LOOP(ranges_survive_every_fault, 2) {
  uint32_t flags = BOTH[_i];
  size_t before = kernel_mappings();
  for (int i = 0; i < 20; i++)
    ck_assert_uint_ge(faults_sweep(use_a_range, &flags), 6);
  ck_assert_uint_le(kernel_mappings(), before + NOISE);
}

int main(void) {
  faults_install();
  ext = TarnDeviceExt();
  return run_tests();
}
