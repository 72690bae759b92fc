// Ranges of the cpu device: a great many mappings, several threads, random
// calls against a model.
#include <pthread.h>

#include "range_kit.h"
#include "support/effort.h"

static const tarn_device_ext *ext;

// --- how many --------------------------------------------------------------

// More than the kernel has mappings for, with handles kept and without.
TEST(neighbours_are_few_mappings) {
  enum { COUNT = 70000 };
  static uint64_t memory[COUNT];
  uint64_t addr = reserve(COUNT * GRANULE);
  for (size_t i = 0; i < COUNT; i++) {
    uint64_t at = addr + i * GRANULE;
    require(ext->memory_create(0, GRANULE, 0, &memory[i]) == TARN_OK);
    require(ext->range_map(0, at, GRANULE, memory[i]) == TARN_OK);
    require(ext->range_set_access(0, at, GRANULE, 0,
                                  TARN_EXT_ACCESS_READ_WRITE) == TARN_OK);
    if (i % 100 == 0) bytes_at(at)[0] = 1;
    if (i % 2 != 0) continue;
    require(ext->memory_destroy(0, memory[i]) == TARN_OK);
  }
  ck_assert_uint_le(kernel_mappings_in(addr, COUNT * GRANULE), 3);
  for (size_t i = 0; i < COUNT; i += 100)
    require(bytes_at(addr + i * GRANULE)[0] == 1);
  for (size_t i = COUNT; i-- > 0;) {
    uint64_t at = addr + i * GRANULE;
    if (i % 2 != 0) require(ext->memory_destroy(0, memory[i]) == TARN_OK);
    require(ext->range_unmap(0, at, GRANULE) == TARN_OK);
  }
  ck_assert_uint_le(kernel_mappings_in(addr, COUNT * GRANULE), 1);
  release(addr, COUNT * GRANULE);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// Where the kernel has no mapping left, that is said, and nothing is lost.
// Sanitizers map memory of their own, and end the program where they cannot.
TEST(the_kernels_limit_is_full) {
  if (EFFORT(false, true)) {
    note_skipped("the kernel's limit", "a sanitizer would not survive it");
    return;
  }
  enum { MOST = 70000 };
  uint64_t addr = reserve(MOST * GRANULE);
  uint64_t memory = create(GRANULE, TARN_EXT_MEMORY_SHAREABLE);
  tarn_status status = TARN_OK;
  size_t count = 0;
  for (; status == TARN_OK && count < MOST; count++) {
    uint64_t at = addr + count * GRANULE;
    status = ext->range_map(0, at, GRANULE, memory);
  }
  if (status == TARN_OK) {
    note_skipped("the kernel's limit", "it has more than 70000 mappings");
  } else {
    count--;
    assert_ext(status, TARN_FULL);
    ck_assert_ptr_nonnull(strstr(ext_text(NULL), "a mapping of 65536 bytes"));
  }
  unmap(addr, count * GRANULE);
  map(addr, GRANULE, memory);
  unmap(addr, GRANULE);
  destroy(memory);
  release(addr, MOST * GRANULE);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// --- threads ---------------------------------------------------------------

static void *map_and_unmap(void *context) {
  uint64_t addr = reserve(4 * GRANULE);
  unsigned char mark = *(const unsigned char *)context;
  for (int i = 0; i < 200; i++) {
    uint64_t memory = create(GRANULE, BOTH[i % 2]);
    map(addr + (size_t)(i % 4) * GRANULE, GRANULE, memory);
    bytes_at(addr)[(size_t)(i % 4) * GRANULE] = mark;
    unmap(addr + (size_t)(i % 4) * GRANULE, GRANULE);
    map(addr, GRANULE, memory);
    require(bytes_at(addr)[0] == mark);
    destroy(memory);
    unmap(addr, GRANULE);
  }
  release(addr, 4 * GRANULE);
  return NULL;
}

TEST(threads_do_not_meet) {
  static unsigned char marks[] = {1, 2, 3};
  pthread_t threads[3];
  for (size_t i = 0; i < 3; i++) {
    ck_assert_int_eq(
        pthread_create(&threads[i], NULL, map_and_unmap, &marks[i]), 0);
  }
  for (size_t i = 0; i < 3; i++)
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// --- random calls against a model ------------------------------------------

enum { PLACES = 48, MEMORIES = 24, PIECE_MAX = 4 };

// What each piece of memory is, and where: one byte of each granule is the
// memory's number and the granule's.
typedef struct piece {
  uint64_t handle;  // 0: no handle
  size_t granules;
  size_t mapped;  // granules, of all mappings together
  bool shareable;
  bool spent;  // it has been cut, so that its handle can only be destroyed
  unsigned char stamp;  // 0: zeros
} piece;

static struct {
  uint64_t addr;
  piece pieces[MEMORIES];
  int at[PLACES];       // which piece, -1: none
  size_t part[PLACES];  // which granule of it
} model;

static uint32_t seed = 7;

static size_t draw(size_t below) {
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % below;
}

static uint64_t place(size_t i) {
  return model.addr + i * GRANULE;
}

static void check_place(size_t i) {
  if (model.at[i] < 0) return;
  const piece *p = &model.pieces[model.at[i]];
  const unsigned char *bytes = bytes_at(place(i));
  unsigned char expected =
      p->stamp == 0 ? 0 : (unsigned char)(p->stamp + model.part[i]);
  require(bytes[0] == expected && bytes[GRANULE - 1] == expected);
}

static void stamp_piece(size_t first) {
  piece *p = &model.pieces[model.at[first]];
  p->stamp = (unsigned char)(1 + draw(200));
  for (size_t k = 0; k < p->granules; k++) {
    unsigned char *bytes = bytes_at(place(first + k));
    bytes[0] = bytes[GRANULE - 1] = (unsigned char)(p->stamp + k);
  }
}

static void try_create(void) {
  size_t i = draw(MEMORIES);
  piece *p = &model.pieces[i];
  if (p->handle != 0 || p->mapped != 0) return;
  *p = (piece){.granules = 1 + draw(PIECE_MAX), .shareable = draw(2) != 0};
  require(ext->memory_create(0, p->granules * GRANULE, BOTH[p->shareable],
                             &p->handle) == TARN_OK);
}

static void try_destroy(void) {
  piece *p = &model.pieces[draw(MEMORIES)];
  tarn_status status = ext->memory_destroy(0, p->handle);
  require(status == (p->handle != 0 ? TARN_OK : TARN_E_INVALID));
  p->handle = 0;
}

static bool is_free(size_t first, size_t count) {
  for (size_t i = first; i < first + count; i++) {
    if (i >= PLACES || model.at[i] >= 0) return false;
  }
  return true;
}

static void try_map(void) {
  int i = (int)draw(MEMORIES);
  piece *p = &model.pieces[i];
  size_t first = draw(PLACES);
  bool good = p->handle != 0 && !p->spent && is_free(first, p->granules) &&
              (p->shareable || p->mapped == 0);
  size_t size = (p->granules != 0 ? p->granules : 1) * GRANULE;
  require(ext->range_map(0, place(first), size, p->handle) ==
          (good ? TARN_OK : TARN_E_INVALID));
  if (!good) return;
  require(ext->range_set_access(0, place(first), size, 0,
                                TARN_EXT_ACCESS_READ_WRITE) == TARN_OK);
  p->mapped += p->granules;
  for (size_t k = 0; k < p->granules; k++) {
    model.at[first + k] = i;
    model.part[first + k] = k;
    check_place(first + k);
  }
  if (draw(2)) stamp_piece(first);
}

static bool are_whole(size_t first, size_t count) {
  for (size_t i = first; i < first + count;) {
    if (model.at[i] < 0) return false;
    const piece *p = &model.pieces[model.at[i]];
    if (p->shareable && model.part[i] != 0) return false;
    i += p->shareable ? p->granules : 1;
    if (i > first + count) return false;
  }
  return true;
}

// A piece whose mapping is not all in the run is cut, and its handle spent.
static void spend_handles(size_t first, size_t count) {
  for (size_t i = first; i < first + count; i++) {
    piece *p = &model.pieces[model.at[i]];
    size_t begin = i - model.part[i];
    bool inside =
        begin >= first && begin < i + 1 && begin + p->granules <= first + count;
    if (!p->shareable && !inside) p->spent = true;
  }
}

static void try_unmap(void) {
  size_t first = draw(PLACES);
  size_t count = 1 + draw(PIECE_MAX + 2);
  if (count > PLACES - first) count = PLACES - first;
  bool good = are_whole(first, count);
  require(ext->range_unmap(0, place(first), count * GRANULE) ==
          (good ? TARN_OK : TARN_E_INVALID));
  if (good) spend_handles(first, count);
  for (size_t i = first; good && i < first + count; i++) {
    model.pieces[model.at[i]].mapped--;
    model.at[i] = -1;
  }
}

static void try_move(void) {
  size_t from = draw(PLACES);
  size_t to = draw(PLACES);
  size_t count = 1 + draw(PIECE_MAX + 2);
  size_t moved = 1;
  if (count > PLACES - from) count = PLACES - from;
  bool good = are_whole(from, count) && is_free(to, count);
  require(ext->range_move(0, place(from), place(to), count * GRANULE, &moved) ==
          (good ? TARN_OK : TARN_E_INVALID));
  require(moved == (good ? count * GRANULE : 0));
  if (good) spend_handles(from, count);
  for (size_t k = 0; good && k < count; k++) {
    model.at[to + k] = model.at[from + k];
    model.part[to + k] = model.part[from + k];
    model.at[from + k] = -1;
    check_place(to + k);
  }
}

static void end_model(void) {
  for (size_t i = 0; i < PLACES;) {
    if (model.at[i] < 0) {
      i++;
      continue;
    }
    const piece *p = &model.pieces[model.at[i]];
    size_t granules = p->shareable ? p->granules : 1;
    unmap(place(i), granules * GRANULE);
    i += granules;
  }
  for (size_t i = 0; i < MEMORIES; i++) {
    if (model.pieces[i].handle != 0) destroy(model.pieces[i].handle);
  }
  release(model.addr, PLACES * GRANULE);
}

TEST(random_calls_are_as_the_model) {
  static void (*const calls[])(void) = {
      try_create, try_map,  try_map,  try_map,   try_unmap,  try_unmap,
      try_move,   try_move, try_move, try_unmap, try_destroy};
  size_t before = kernel_mappings();
  model.addr = reserve(PLACES * GRANULE);
  for (size_t i = 0; i < PLACES; i++)
    model.at[i] = -1;
  for (int i = 0; i < 20000; i++) {
    calls[draw(sizeof calls / sizeof calls[0])]();
    check_place(draw(PLACES));
  }
  for (size_t i = 0; i < PLACES; i++)
    check_place(i);
  end_model();
  ck_assert_uint_eq(tarn_host_memory(), 0);
  ck_assert_uint_le(kernel_mappings(), before + NOISE);
}

int main(void) {
  faults_install();
  ext = TarnDeviceExt();
  return run_tests();
}
