// Copies across mappings of simulated devices against a plain array, queued
// copies, threads, and what is left in the end.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "ext_kit.h"

// --- copies across mappings ------------------------------------------------

static C_Status set_byte(int id, uint64_t address) {
  return table.device_memory_set(&ids[id], ext_pointer(address), 1, 1);
}

TEST(holes_are_out_of_bounds) {
  static unsigned char bytes[64];
  ext_init(0);
  uint64_t range = ext_reserve(0, 3 * GRANULE);
  ext_map(0, range, GRANULE, ext_create(0, GRANULE, 0));
  ext_map(0, range + 2 * GRANULE, GRANULE, ext_create(0, GRANULE, 0));
  assert_c(set_byte(0, range + GRANULE), C_ERROR);
  assert_reported(": out of bounds: nothing is mapped there");
  assert_c(table.memory_copy_h2d(&ids[0], ext_pointer(range + GRANULE - 24),
                                 bytes, 64),
           C_ERROR);
  assert_reported("out of bounds: nothing is mapped there from byte 24 on");
  assert_c(table.memory_copy_d2h(&ids[0], ext_pointer(range),
                                 ext_pointer(range + 64), 4),
           C_ERROR);
  assert_reported("wrong direction: an address of sim:0 where one of the host");
  assert_c(table.memory_copy_d2d(&ids[0], ext_pointer(range + 8),
                                 ext_pointer(range), 16),
           C_ERROR);
  assert_reported("its ends overlap");
  assert_c(table.device_memory_deallocate(&ids[0], ext_pointer(range), GRANULE),
           C_ERROR);
  assert_reported("foreign pointer");
  ext_finalize(5);
}

enum {
  SLOTS = 6,  // mappings in a range, of one or two granules
  STEPS = 30000,
  COPY_MAX = 3 * 4096,
};

static uint64_t state = 88172645463325252u;

static size_t random_below(size_t bound) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (size_t)(state % bound);
}

// A range of each device, mapped without a hole, and what is in it.
typedef struct model {
  int id;
  uint64_t range;
  size_t sizes[SLOTS];
  uint64_t memories[SLOTS];
  unsigned char *bytes;
  size_t size;
} model;

static model models[2];

static void make_model(model *m, int id) {
  *m = (model){.id = id, .range = ext_reserve(id, 2 * SLOTS * GRANULE)};
  for (int i = 0; i < SLOTS; i++) {
    m->sizes[i] = (1 + random_below(2)) * GRANULE;
    uint32_t flags = (uint32_t)random_below(2);
    // Memory of both devices is in both ranges.
    m->memories[i] = ext_create((int)random_below(2), m->sizes[i], flags);
    ext_map(id, m->range + m->size, m->sizes[i], m->memories[i]);
    m->size += m->sizes[i];
  }
  m->bytes = calloc(1, m->size);
  ck_assert_ptr_nonnull(m->bytes);
}

// A place whose next bytes mostly go over the edge of a mapping.
static size_t random_place(const model *m, size_t size) {
  size_t edge = 0;
  size_t last = m->size - size;
  for (size_t i = random_below(SLOTS) + 1; i > 0; i--)
    edge += m->sizes[i - 1];
  size_t back = random_below(size + 16);
  size_t at = edge > back ? edge - back : 0;
  if (random_below(4) == 0) at = random_below(last + 1);
  return at < last ? at : last;
}

static void step_host(model *m, size_t size) {
  static unsigned char bytes[COPY_MAX];
  size_t at = random_place(m, size);
  if (random_below(2) == 0) {
    sim_fill(bytes, size, (unsigned)random_below(256));
    ext_write(m->id, m->range + at, bytes, size);
    memcpy(m->bytes + at, bytes, size);
  } else {
    ext_read(m->id, bytes, m->range + at, size);
    require(memcmp(m->bytes + at, bytes, size) == 0);
  }
}

static void step_set(model *m, size_t size) {
  size_t at = random_place(m, size);
  unsigned char value = (unsigned char)random_below(256);
  require(table.device_memory_set(&ids[m->id], ext_pointer(m->range + at),
                                  value, size) == C_SUCCESS);
  memset(m->bytes + at, value, size);
}

static void step_within(model *m, size_t size) {
  size_t to = random_place(m, size);
  size_t from = random_place(m, size);
  C_Status wanted =
      (to < from ? from - to : to - from) < size ? C_ERROR : C_SUCCESS;
  require(table.memory_copy_d2d(&ids[m->id], ext_pointer(m->range + to),
                                ext_pointer(m->range + from), size) == wanted);
  if (wanted == C_SUCCESS) memcpy(m->bytes + to, m->bytes + from, size);
}

static void step_between(size_t size, C_Stream stream) {
  model *dst = &models[random_below(2)];
  model *src = dst == &models[0] ? &models[1] : &models[0];
  size_t to = random_place(dst, size);
  size_t from = random_place(src, size);
  void *to_ptr = ext_pointer(dst->range + to);
  void *from_ptr = ext_pointer(src->range + from);
  if (src->id == 0 && random_below(2) == 0) {
    require(table.async_memory_copy_p2p(&ids[dst->id], &ids[src->id], stream,
                                        to_ptr, from_ptr, size) == C_SUCCESS);
    require(table.synchronize_stream(&ids[0], stream) == C_SUCCESS);
  } else {
    require(table.memory_copy_p2p(&ids[dst->id], &ids[src->id], to_ptr,
                                  from_ptr, size) == C_SUCCESS);
  }
  memcpy(dst->bytes + to, src->bytes + from, size);
}

// Two neighbours of one size change places: the bytes go with the memory.
static void step_swap(model *m) {
  size_t at = 0;
  size_t i = random_below(SLOTS - 1);
  for (size_t k = 0; k < i; k++)
    at += m->sizes[k];
  size_t size = m->sizes[i];
  if (m->sizes[i + 1] != size) return;
  uint64_t first = m->range + at;
  require(ext->range_unmap(m->id, first, 2 * size) == TARN_OK);
  uint64_t memory = m->memories[i];
  m->memories[i] = m->memories[i + 1];
  m->memories[i + 1] = memory;
  require(ext->range_map(m->id, first, size, m->memories[i]) == TARN_OK);
  require(ext->range_map(m->id, first + size, size, memory) == TARN_OK);
  require(ext->range_set_access(m->id, first, 2 * size, m->id,
                                TARN_EXT_ACCESS_READ_WRITE) == TARN_OK);
  unsigned char *kept = malloc(size);
  require(kept != NULL);
  memcpy(kept, m->bytes + at, size);
  memcpy(m->bytes + at, m->bytes + at + size, size);
  memcpy(m->bytes + at + size, kept, size);
  free(kept);
}

static void check_model(model *m) {
  unsigned char *bytes = malloc(m->size);
  require(bytes != NULL);
  ext_read(m->id, bytes, m->range, m->size);
  require(memcmp(bytes, m->bytes, m->size) == 0);
  free(bytes);
  assert_ok(ext->range_unmap(m->id, m->range, m->size));
  for (int i = 0; i < SLOTS; i++)
    assert_ok(ext->memory_destroy(m->id, m->memories[i]));
  assert_ok(ext->range_release(m->id, m->range, 2 * SLOTS * GRANULE));
  free(m->bytes);
}

TEST(copies_across_mappings_agree_with_an_array) {
  ext_init(0);
  C_Stream stream = ext_stream(0);
  make_model(&models[0], 0);
  make_model(&models[1], 1);
  for (int i = 0; i < STEPS; i++) {
    model *m = &models[random_below(2)];
    size_t size = 1 + random_below(random_below(4) == 0 ? COPY_MAX : 64);
    switch (random_below(8)) {
      case 0:
      case 1:
      case 2:
        step_host(m, size);
        break;
      case 3:
        step_set(m, size);
        break;
      case 4:
      case 5:
        step_within(m, size);
        break;
      case 6:
        step_between(size, stream);
        break;
      default:
        if (random_below(40) == 0) step_swap(m);
        break;
    }
  }
  check_model(&models[0]);
  check_model(&models[1]);
  ck_assert_uint_eq(ext_free_memory(0), CAPACITY);
  ck_assert_uint_eq(ext_free_memory(1), CAPACITY);
  assert_done(table.finalize());
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// One mapping after the other under one large copy.
TEST(a_copy_of_many_pieces) {
  ext_init(0);
  size_t size = CAPACITY;
  uint64_t range = ext_reserve(0, size);
  unsigned char *in = malloc(size);
  unsigned char *out = calloc(1, size);
  ck_assert(in != NULL && out != NULL);
  for (size_t at = 0; at < size; at += GRANULE)
    ext_map(0, range + at, GRANULE, ext_create(0, GRANULE, 0));
  sim_fill(in, size, 5);
  ext_write(0, range, in, size);
  ext_read(0, out + 1, range + 1, size - 2);
  ck_assert(memcmp(in + 1, out + 1, size - 2) == 0);
  free(in);
  free(out);
  ext_finalize(0);
}

// --- queued copies ---------------------------------------------------------

TEST(a_queued_copy_outlives_its_mapping) {
  static unsigned char bytes[64];
  ext_init(20000000);
  C_Stream stream = ext_stream(0);
  C_Stream other = ext_stream(0);
  uint64_t range = ext_reserve(0, GRANULE);
  uint64_t memory = ext_create(0, GRANULE, 0);
  ext_map(0, range, GRANULE, memory);
  for (int i = 0; i < 2; i++) {
    assert_done(table.async_memory_copy_h2d(&ids[0], stream, ext_pointer(range),
                                            bytes, 64));
  }
  assert_ok(ext->range_unmap(0, range, GRANULE));
  assert_c(table.synchronize_stream(&ids[0], stream), C_ERROR);
  assert_reported("async_memory_copy_h2d of 64 bytes at");
  assert_reported("out of bounds: nothing is mapped there");
  assert_text_says(stream, "nothing is mapped there");
  assert_text_says(other, "");
  // Other memory at the same address is not what was meant.
  ext_map(0, range, GRANULE, memory);
  for (int i = 0; i < 2; i++) {
    assert_done(table.async_memory_copy_h2d(&ids[0], other, ext_pointer(range),
                                            bytes, 64));
  }
  assert_ok(ext->range_unmap(0, range, GRANULE));
  ext_map(0, range, GRANULE, memory);
  assert_c(table.synchronize_stream(&ids[0], other), C_ERROR);
  assert_text_says(other, "use after unmap");
  assert_done(table.finalize());
}

// --- threads ---------------------------------------------------------------

enum { ROUNDS = 300 };

static void *map_and_copy(void *context) {
  int id = *(const int *)context;
  unsigned char bytes[300];
  unsigned char back[300];
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t range = ext_reserve(id, 2 * GRANULE);
    uint32_t flags = i % 8 == 0 ? TARN_EXT_MEMORY_SHAREABLE : 0;
    uint64_t first = ext_create(i % 2, GRANULE, flags);
    uint64_t second = ext_create(id, GRANULE, 0);
    ext_map(id, range, GRANULE, first);
    ext_map(id, range + GRANULE, GRANULE, second);
    sim_fill(bytes, sizeof bytes, (unsigned)i);
    ext_write(id, range + GRANULE - 150, bytes, sizeof bytes);
    ext_read(id, back, range + GRANULE - 150, sizeof back);
    require(memcmp(bytes, back, sizeof bytes) == 0);
    require(ext->range_unmap(id, range, 2 * GRANULE) == TARN_OK);
    require(ext->memory_destroy(id, first) == TARN_OK);
    require(ext->memory_destroy(id, second) == TARN_OK);
    require(ext->range_release(id, range, 2 * GRANULE) == TARN_OK);
  }
  return NULL;
}

TEST(threads_map_and_copy) {
  pthread_t threads[3];
  static const int devices[3] = {0, 1, 0};
  ext_init(0);
  for (int i = 0; i < 3; i++) {
    ck_assert_int_eq(pthread_create(&threads[i], NULL, map_and_copy,
                                    (void *)(uintptr_t)&devices[i]),
                     0);
  }
  for (int i = 0; i < 3; i++)
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
  ck_assert_uint_eq(ext_free_memory(0), CAPACITY);
  ck_assert_uint_eq(ext_free_memory(1), CAPACITY);
  ext_finalize(0);
}

// --- what is left ----------------------------------------------------------

static size_t count_lines(const char *path) {
  size_t lines = 0;
  FILE *file = fopen(path, "r");
  ck_assert_ptr_nonnull(file);
  for (int c = getc(file); c != EOF; c = getc(file))
    lines += c == '\n';
  fclose(file);
  return lines;
}

static void map_a_lot(void) {
  uint64_t range = ext_reserve(0, 32 * GRANULE);
  for (size_t i = 0; i < 32; i++) {
    uint32_t flags = i % 2 == 0 ? TARN_EXT_MEMORY_SHAREABLE : 0;
    ext_map(0, range + i * GRANULE, GRANULE, ext_create(0, GRANULE, flags));
    ext_write(0, range + i * GRANULE, "full", 4);
  }
}

// A sanitizer maps shadows of its own: they are there after the first time.
TEST(closing_leaves_no_mapping_and_no_file) {
  ext_init(0);
  map_a_lot();
  ext_finalize(0);
  size_t before = count_lines("/proc/self/maps");
  assert_done(table.initialize());
  assert_done(table.init_device(&ids[0]));
  size_t open = count_lines("/proc/self/maps");
  map_a_lot();
  ck_assert_uint_gt(count_lines("/proc/self/maps"), open);
  ext_finalize(0);
  ck_assert_uint_eq(count_lines("/proc/self/maps"), before);
  int fd = dup(0);
  ck_assert_int_lt(fd, 16);  // none of the 32 files is open any more
  close(fd);
}
