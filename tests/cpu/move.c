// Mapped memory of the cpu device in parts, and moves of it: bytes, rights and
// handles go along, the kernel's mappings stay few, and what it refuses is
// told.
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "range_kit.h"

static const tarn_device_ext *ext;

// --- calls of the kernel ---------------------------------------------------

static struct {
  size_t moves;     // mremap
  size_t maps;      // mmap
  size_t protects;  // mprotect
  size_t refused;   // of the next moves, the first is 1; 0: none
  size_t vacating;  // of the next maps at a place
} kernel;

void *__real_mremap(void *from, size_t size, size_t again, int flags, ...);
void *__wrap_mremap(void *from, size_t size, size_t again, int flags, ...);
void *__real_mmap(void *at, size_t size, int rights, int flags, int fd,
                  off_t offset);
void *__wrap_mmap(void *at, size_t size, int rights, int flags, int fd,
                  off_t offset);
int __real_mprotect(void *at, size_t size, int rights);
int __wrap_mprotect(void *at, size_t size, int rights);

static bool strikes(size_t *number) {
  return *number != 0 && --*number == 0;
}

void *__wrap_mremap(void *from, size_t size, size_t again, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  void *to = va_arg(rest, void *);
  va_end(rest);
  kernel.moves++;
  if (strikes(&kernel.refused)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return __real_mremap(from, size, again, flags, to);
}

void *__wrap_mmap(void *at, size_t size, int rights, int flags, int fd,
                  off_t offset) {
  kernel.maps++;
  if ((flags & MAP_FIXED) != 0 && strikes(&kernel.vacating)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return __real_mmap(at, size, rights, flags, fd, offset);
}

int __wrap_mprotect(void *at, size_t size, int rights) {
  kernel.protects++;
  return __real_mprotect(at, size, rights);
}

static void forget_calls(void) {
  kernel.moves = kernel.maps = kernel.protects = 0;
}

// --- memory without handles ------------------------------------------------

// New memory of |count| granules at |addr|, without a handle, that says what
// stood where.
static void fill(uint64_t addr, size_t count, unsigned char mark) {
  uint64_t memory = create(count * GRANULE, 0);
  map(addr, count * GRANULE, memory);
  destroy(memory);
  for (size_t i = 0; i < count; i++)
    bytes_at(addr + i * GRANULE)[i] = (unsigned char)(mark + i);
}

static void check(uint64_t addr, size_t first, size_t count,
                  unsigned char mark) {
  for (size_t i = 0; i < count; i++) {
    ck_assert_int_eq(bytes_at(addr + i * GRANULE)[first + i],
                     (unsigned char)(mark + first + i));
  }
}

static tarn_status move(uint64_t from, uint64_t to, size_t count,
                        size_t *out_moved) {
  tarn_status status = ext->range_move(0, from, to, count * GRANULE, out_moved);
  *out_moved /= GRANULE;
  return status;
}

static void move_all(uint64_t from, uint64_t to, size_t count) {
  size_t moved = 0;
  assert_ext_ok(move(from, to, count, &moved));
  ck_assert_uint_eq(moved, count);
}

// --- what a move is --------------------------------------------------------

TEST(a_part_moves_and_the_rest_stays) {
  uint64_t addr = reserve(32 * GRANULE);
  fill(addr, 8, 1);
  move_all(addr + 2 * GRANULE, addr + 20 * GRANULE, 3);
  check(addr, 0, 2, 1);
  check(addr + 20 * GRANULE, 2, 3, 1);
  check(addr + 5 * GRANULE, 5, 3, 1);
  ck_assert(!can_read(addr + 2 * GRANULE) && !can_read(addr + 5 * GRANULE - 1));
  unmap(addr, 2 * GRANULE);
  unmap(addr + 21 * GRANULE, GRANULE);
  unmap(addr + 20 * GRANULE, GRANULE);
  unmap(addr + 22 * GRANULE, GRANULE);
  unmap(addr + 5 * GRANULE, 3 * GRANULE);
  release(addr, 32 * GRANULE);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// As it was before, for the kernel too, and one mapping again.
TEST(what_moves_back_is_one_with_the_rest) {
  uint64_t addr = reserve(16 * GRANULE);
  uint64_t other = reserve(16 * GRANULE);
  fill(addr, 8, 1);
  move_all(addr + 2 * GRANULE, other + 3 * GRANULE, 3);
  move_all(other + 3 * GRANULE, addr + 2 * GRANULE, 3);
  check(addr, 0, 8, 1);
  tarn_ext_pointer found;
  assert_ext_ok(ext->pointer_query(0, addr + 4 * GRANULE, &found));
  ck_assert_uint_eq(found.base, addr);
  ck_assert_uint_eq(found.size, 8 * GRANULE);
  forget_calls();
  move_all(addr, other, 8);
  ck_assert_uint_eq(kernel.moves, 1);
  check(other, 0, 8, 1);
  unmap(other, 8 * GRANULE);
  release(addr, 16 * GRANULE);
  release(other, 16 * GRANULE);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// A run of granules is mapped by one call, moved by two, unmapped by one.
TEST(a_run_takes_few_calls) {
  uint64_t addr = reserve(256 * GRANULE);
  uint64_t memory = create(100 * GRANULE, 0);
  size_t moved = 0;
  assert_ext_ok(ext->range_move(0, 0, 0, 0, &moved));  // tries it out once
  forget_calls();
  map(addr, 100 * GRANULE, memory);
  destroy(memory);
  ck_assert_uint_eq(kernel.maps + kernel.moves, 0);
  ck_assert_uint_eq(kernel.protects, 1);
  memset(bytes_at(addr), 7, 100 * GRANULE);
  forget_calls();
  move_all(addr, addr + 150 * GRANULE, 100);
  ck_assert_uint_eq(kernel.moves, 1);
  ck_assert_uint_eq(kernel.maps, 1);
  ck_assert_uint_eq(kernel.protects, 0);
  forget_calls();
  unmap(addr + 150 * GRANULE, 100 * GRANULE);
  ck_assert_uint_eq(kernel.maps, 1);
  ck_assert_uint_eq(kernel.moves + kernel.protects, 0);
  ck_assert_uint_le(kernel_mappings_in(addr, 256 * GRANULE), 1);
  release(addr, 256 * GRANULE);
}

TEST_LOOP(a_handle_goes_along, 2) {
  uint64_t addr = reserve(16 * GRANULE);
  uint64_t memory = create(2 * GRANULE, BOTH[_i]);
  map(addr, 2 * GRANULE, memory);
  bytes_at(addr)[GRANULE] = 7;
  move_all(addr, addr + 8 * GRANULE, 2);
  ck_assert(!can_read(addr));
  ck_assert_int_eq(bytes_at(addr)[9 * GRANULE], 7);
  unmap(addr + 8 * GRANULE, 2 * GRANULE);
  map(addr + 4 * GRANULE, 2 * GRANULE, memory);
  ck_assert_int_eq(bytes_at(addr)[5 * GRANULE], 7);
  unmap(addr + 4 * GRANULE, 2 * GRANULE);
  destroy(memory);
  release(addr, 16 * GRANULE);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

TEST(shareable_memory_moves_from_one_of_its_addresses) {
  uint64_t addr = reserve(8 * GRANULE);
  uint64_t memory = create(GRANULE, TARN_EXT_MEMORY_SHAREABLE);
  map(addr, GRANULE, memory);
  map(addr + GRANULE, GRANULE, memory);
  move_all(addr, addr + 4 * GRANULE, 1);
  *(volatile unsigned char *)(bytes_at(addr) + GRANULE) = 7;
  ck_assert_int_eq(*(volatile unsigned char *)bytes_at(addr + 4 * GRANULE), 7);
  destroy(memory);
  unmap(addr + GRANULE, GRANULE);
  unmap(addr + 4 * GRANULE, GRANULE);
  release(addr, 8 * GRANULE);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

static tarn_ext_access access_of(uint64_t addr) {
  if (!can_read(addr)) return TARN_EXT_ACCESS_NONE;
  int ends[2];
  ck_assert_int_eq(pipe(ends), 0);
  ck_assert_int_eq(write(ends[1], "x", 1), 1);
  bool can = read(ends[0], bytes_at(addr), 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return can ? TARN_EXT_ACCESS_READ_WRITE : TARN_EXT_ACCESS_READ;
}

TEST_LOOP(rights_go_along_and_are_given_to_parts, 2) {
  static const tarn_ext_access rights[] = {
      TARN_EXT_ACCESS_READ_WRITE, TARN_EXT_ACCESS_READ, TARN_EXT_ACCESS_NONE};
  uint64_t addr = reserve(16 * GRANULE);
  uint64_t memory = create(3 * GRANULE, 0);
  map(addr, 3 * GRANULE, memory);
  if (_i == 0) destroy(memory);
  for (size_t i = 0; i < 3; i++) {
    assert_ext_ok(
        ext->range_set_access(0, addr + i * GRANULE, GRANULE, 0, rights[i]));
  }
  move_all(addr, addr + 8 * GRANULE, 3);
  for (size_t i = 0; i < 3; i++)
    ck_assert_int_eq(access_of(addr + (8 + i) * GRANULE), rights[i]);
  unmap(addr + 8 * GRANULE, 3 * GRANULE);
  if (_i != 0) {
    assert_ext_wrong(ext->range_map(0, addr, 3 * GRANULE, memory), "in parts");
    destroy(memory);
  }
  release(addr, 16 * GRANULE);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

TEST(moves_that_cannot_be) {
  uint64_t addr = reserve(8 * GRANULE);
  uint64_t memory = create(2 * GRANULE, TARN_EXT_MEMORY_SHAREABLE);
  size_t moved = 1;
  map(addr, 2 * GRANULE, memory);
  fill(addr + 6 * GRANULE, 1, 1);
  assert_ext_wrong(
      ext->range_move(1, addr, addr + 2 * GRANULE, GRANULE, &moved),
      "no device 1");
  ck_assert_uint_eq(moved, 0);
  assert_ext_wrong(move(addr, addr + 2 * GRANULE, 1, &moved), "only part");
  assert_ext_wrong(move(addr, addr + 5 * GRANULE, 2, &moved), "already");
  assert_ext_wrong(move(addr, addr + GRANULE, 2, &moved), "already");
  assert_ext_wrong(move(addr, addr + 7 * GRANULE, 2, &moved), "not in one");
  assert_ext_wrong(move(addr, addr + 3 * GRANULE, 3, &moved),
                   "nothing is mapped");
  assert_ext_wrong(move(addr, addr + 3 * GRANULE + 4096, 2, &moved),
                   "multiples");
  assert_ext_ok(ext->range_move(0, 0, 0, 0, &moved));
  ck_assert_uint_eq(moved, 0);
  unmap(addr, 2 * GRANULE);
  unmap(addr + 6 * GRANULE, GRANULE);
  destroy(memory);
  release(addr, 8 * GRANULE);
}

// --- what the program does with it -----------------------------------------

// What a program asks for a part of its memory makes mappings of its own.
TEST_LOOP(advised_memory_moves, 2) {
  uint64_t addr = reserve(32 * GRANULE);
  uint64_t memory = create(8 * GRANULE, 0);
  map(addr, 8 * GRANULE, memory);
  if (_i == 0) destroy(memory);
  memset(bytes_at(addr), 7, 8 * GRANULE);
  ck_assert_int_eq(
      madvise(bytes_at(addr + GRANULE + 4096), 3 * GRANULE, MADV_DONTFORK), 0);
  move_all(addr, addr + 16 * GRANULE, 8);
  for (size_t i = 16 * GRANULE; i < 24 * GRANULE; i += 4096)
    require(bytes_at(addr)[i] == 7);
  if (_i != 0) {
    unmap(addr + 16 * GRANULE, 8 * GRANULE);
    map(addr, 8 * GRANULE, memory);
    for (size_t i = 0; i < 8 * GRANULE; i += 4096)
      require(bytes_at(addr)[i] == 7);
    unmap(addr, 8 * GRANULE);
    destroy(memory);
  } else {
    unmap(addr + 16 * GRANULE, 8 * GRANULE);
  }
  release(addr, 32 * GRANULE);
}

// A child has a copy of its own of what has moved, and of what has not.
TEST(a_child_writes_to_its_own) {
  uint64_t addr = reserve(16 * GRANULE);
  fill(addr, 4, 1);
  move_all(addr + 2 * GRANULE, addr + 8 * GRANULE, 2);
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    memset(bytes_at(addr), 0, 2 * GRANULE);
    memset(bytes_at(addr + 8 * GRANULE), 0, 2 * GRANULE);
    size_t moved = 0;
    bool fine = move(addr, addr + 12 * GRANULE, 2, &moved) == TARN_OK;
    _exit(fine ? 0 : 1);
  }
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  check(addr, 0, 2, 1);
  check(addr + 8 * GRANULE, 2, 2, 1);
  move_all(addr, addr + 12 * GRANULE, 2);
  check(addr + 12 * GRANULE, 0, 2, 1);
  unmap(addr + 8 * GRANULE, 2 * GRANULE);
  unmap(addr + 12 * GRANULE, 2 * GRANULE);
  release(addr, 16 * GRANULE);
}

// --- refusals --------------------------------------------------------------

// Three mappings; the kernel refuses the second.
TEST(a_move_that_stops_half_way_is_told) {
  uint64_t addr = reserve(32 * GRANULE);
  size_t moved = 0;
  for (size_t i = 0; i < 3; i++) {  // from afar, so that they do not join
    fill(addr + (10 + 3 * i) * GRANULE, 2, 1);
    move_all(addr + (10 + 3 * i) * GRANULE, addr + 2 * i * GRANULE, 2);
  }
  kernel.refused = 2;
  assert_ext(move(addr, addr + 20 * GRANULE, 6, &moved), TARN_FULL);
  ck_assert_uint_eq(moved, 2);
  check(addr + 20 * GRANULE, 0, 2, 1);
  ck_assert(!can_read(addr));
  check(addr + 2 * GRANULE, 0, 2, 1);
  check(addr + 4 * GRANULE, 0, 2, 1);
  ck_assert(!can_read(addr + 22 * GRANULE));
  move_all(addr + 2 * GRANULE, addr + 22 * GRANULE, 4);
  check(addr + 24 * GRANULE, 0, 2, 1);
  unmap(addr + 20 * GRANULE, 6 * GRANULE);
  release(addr, 32 * GRANULE);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// One mapping here, several of the kernel's: it stays whole. A kernel that
// moves several in a call does not get so far.
TEST(half_a_mapping_goes_back) {
  uint64_t addr = reserve(32 * GRANULE);
  size_t moved = 0;
  fill(addr, 8, 1);
  ck_assert_int_eq(
      madvise(bytes_at(addr + 4 * GRANULE), GRANULE, MADV_DONTFORK), 0);
  for (size_t n = 1; n <= 6; n++) {
    kernel.refused = n;
    tarn_status status = move(addr, addr + 16 * GRANULE, 8, &moved);
    kernel.refused = 0;
    if (status == TARN_OK) {
      move_all(addr + 16 * GRANULE, addr, 8);
      continue;
    }
    ck_assert_uint_eq(moved, 0);
    ck_assert(!can_read(addr + 16 * GRANULE) && !can_read(addr + 20 * GRANULE));
  }
  check(addr, 0, 8, 1);
  unmap(addr, 8 * GRANULE);
  release(addr, 32 * GRANULE);
}

TEST(a_file_that_cannot_be_moved_stays) {
  uint64_t addr = reserve(8 * GRANULE);
  uint64_t memory = create(GRANULE, TARN_EXT_MEMORY_SHAREABLE);
  size_t moved = 1;
  map(addr, GRANULE, memory);
  bytes_at(addr)[0] = 7;
  for (size_t n = 1; n <= 2; n++) {  // there, and where it was
    kernel.vacating = n;
    assert_ext(move(addr, addr + 4 * GRANULE, 1, &moved), TARN_FULL);
    ck_assert_uint_eq(moved, 0);
    ck_assert_int_eq(bytes_at(addr)[0], 7);
    ck_assert(!can_read(addr + 4 * GRANULE));
  }
  unmap(addr, GRANULE);
  destroy(memory);
  release(addr, 8 * GRANULE);
}

// The middle of a mapping needs a note more; both ends do not.
TEST(parts_without_host_memory) {
  uint64_t addr = reserve(32 * GRANULE);
  size_t moved = 1;
  fill(addr, 8, 1);
  faults_arm(1, FAULTS_FROM_NOW);
  assert_ext(ext->range_unmap(0, addr + 3 * GRANULE, GRANULE), TARN_E_NOMEM);
  assert_ext(move(addr + GRANULE, addr + 16 * GRANULE, 2, &moved),
             TARN_E_NOMEM);
  ck_assert_uint_eq(moved, 0);
  unmap(addr, 2 * GRANULE);
  unmap(addr + 6 * GRANULE, 2 * GRANULE);
  (void)faults_disarm();
  check(addr + 2 * GRANULE, 2, 4, 1);
  unmap(addr + 2 * GRANULE, 4 * GRANULE);
  release(addr, 32 * GRANULE);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// --- how many --------------------------------------------------------------

enum { FEW = 64, GRANULES = 512 };

// Nothing is moved that would be a mapping more, and what is unmapped is not
// cut out of one; its memory goes all the same.
TEST(near_the_bound_nothing_is_split) {
  char text[16];
  snprintf(text, sizeof text, "%d", FEW);
  setenv("TARN_CPU_MAPPINGS", text, 1);
  uint64_t addr = reserve(GRANULES * GRANULE);
  uint64_t target = reserve(GRANULES * GRANULE);
  fill(addr, 200, 1);
  tarn_status status = TARN_OK;
  size_t moved = 0;
  size_t count = 0;
  for (; count < 90 && status == TARN_OK; count++)
    status = move(addr + 2 * count * GRANULE, target + 2 * count * GRANULE, 1,
                  &moved);
  assert_ext(status, TARN_FULL);
  ck_assert_uint_eq(moved, 0);
  ck_assert_ptr_nonnull(strstr(ext_text(NULL), "mappings"));
  ck_assert_uint_ge(count, FEW / 4);
  ck_assert_uint_le(kernel_mappings_in(addr, GRANULES * GRANULE) +
                        kernel_mappings_in(target, GRANULES * GRANULE),
                    FEW + 4);
  size_t before = kernel_mappings_in(addr, GRANULES * GRANULE);
  memset(bytes_at(addr + 150 * GRANULE), 7, GRANULE);
  unmap(addr + 150 * GRANULE, GRANULE);
  ck_assert_uint_eq(kernel_mappings_in(addr, GRANULES * GRANULE), before);
  ck_assert_int_eq(bytes_at(addr)[150 * GRANULE], 0);  // its memory is gone
  fill(addr + 150 * GRANULE, 1, 1);
  check(addr + 150 * GRANULE, 0, 1, 1);
  unsetenv("TARN_CPU_MAPPINGS");
}

int main(void) {
  faults_install();
  ext = TarnDeviceExt();
  return run_tests();
}
