// Memory of the device: sizes, addresses, contents, setting.
#include <string.h>

#include "base/os.h"
#include "check.h"

enum { BLOCKS = 64, CYCLES = 1000 };

// ---------------------------------------------------------------------------
// Sizes
// ---------------------------------------------------------------------------

static bool take_and_use(conform_target *t, size_t size) {
  return check_use(t, "a block", size, 3);
}

static bool one_byte(conform_target *t) {
  return take_and_use(t, 1);
}

static bool odd_sizes(conform_target *t) {
  for (size_t i = 0; check_lengths[i] != 0; i++) {
    if (!take_and_use(t, check_lengths[i])) return false;
  }
  return true;
}

static bool page_edges(conform_target *t) {
  size_t page = tarn__os_page();
  return take_and_use(t, page - 1) && take_and_use(t, page) &&
         take_and_use(t, page + 1);
}

// The ABI does not say what 0 bytes are: any answer will do that it names, and
// a block that is handed out must be taken back.
static bool zero(conform_target *t) {
  void *block = NULL;
  C_Status got = t->abi->device_memory_allocate(&t->device, &block, 0);
  EXPECT(t, got >= C_SUCCESS && got <= C_ERROR,
         "device_memory_allocate of 0 bytes answered %s", conform_status(got));
  if (got <= C_WARNING && block != NULL) {
    CALL(t, device_memory_deallocate, &t->device, block, 0);
  }
  return take_and_use(t, 256);
}

// Writes and reads a few bytes at both ends and around each GiB: a length or
// an offset that was cut to 32 bits shows there.
static bool use_ends(conform_target *t, void *block, size_t size) {
  enum { PIECE = 4097 };
  size_t last = size - PIECE;
  unsigned seed = 0;
  for (size_t at = 0; at + PIECE <= last; at += GIB(1)) {
    if (!check_write(t, check_at(block, at), PIECE, seed++)) return false;
  }
  if (!check_write(t, check_at(block, last), PIECE, seed)) return false;
  seed = 0;
  for (size_t at = 0; at + PIECE <= last; at += GIB(1)) {
    if (!check_verify(t, "a piece of a large block", check_at(block, at), PIECE,
                      seed++)) {
      return false;
    }
  }
  return check_verify(t, "the end of a large block", check_at(block, last),
                      PIECE, seed);
}

static bool large(conform_target *t) {
  size_t size = t->with;
  void *block = NULL;
  return check_has_room(t, size) && check_take(t, size, &block) &&
         use_ends(t, block, size) && check_give(t, block);
}

// ---------------------------------------------------------------------------
// Addresses
// ---------------------------------------------------------------------------

// Takes a block of each length and looks at the address.
static bool is_aligned(conform_target *t, size_t align, const char *why) {
  void *block = NULL;
  for (size_t i = 0; check_lengths[i] != 0; i++) {
    if (!check_take(t, check_lengths[i], &block)) return false;
    EXPECT_QUIRK(t, (uintptr_t)block % align == 0,
                 "a block of %zu bytes is at %p, no multiple of %zu, %s; Tarn "
                 "promises no alignment that it does not make itself",
                 check_lengths[i], block, align, why);
  }
  return true;
}

static bool alignment_16(conform_target *t) {
  return is_aligned(t, 16, "which vectors want");
}

static bool alignment_min_chunk(conform_target *t) {
  return is_aligned(t, t->min_chunk, "which is device_min_chunk_size");
}

static bool overlap(const check_block *a, const check_block *b) {
  uintptr_t x = (uintptr_t)a->ptr;
  uintptr_t y = (uintptr_t)b->ptr;
  return x < y ? y - x < a->size : x - y < b->size;
}

static bool are_distinct(conform_target *t) {
  for (size_t i = 0; i < t->block_count; i++) {
    for (size_t j = 0; j < i; j++) {
      const check_block *a = &t->blocks[i];
      const check_block *b = &t->blocks[j];
      EXPECT(t, !overlap(a, b),
             "blocks overlap: %zu bytes at %p and %zu bytes at %p", a->size,
             a->ptr, b->size, b->ptr);
    }
  }
  return true;
}

static bool take_many(conform_target *t, void **blocks) {
  for (unsigned i = 0; i < BLOCKS; i++) {
    if (!check_take(t, 1000 + i * 97, &blocks[i])) return false;
  }
  return true;
}

static bool distinct(conform_target *t) {
  void *blocks[BLOCKS];
  return take_many(t, blocks) && are_distinct(t);
}

// ---------------------------------------------------------------------------
// Contents
// ---------------------------------------------------------------------------

static bool write_many(conform_target *t, void **blocks) {
  for (unsigned i = 0; i < BLOCKS; i++) {
    if (!check_write(t, blocks[i], 1000 + i * 97, i)) return false;
  }
  return true;
}

static bool verify_many(conform_target *t, void **blocks, unsigned step) {
  for (unsigned i = 0; i < BLOCKS; i += step) {
    if (!check_verify(t, "a block among many", blocks[i], 1000 + i * 97, i)) {
      return false;
    }
  }
  return true;
}

static bool contents(conform_target *t) {
  void *blocks[BLOCKS];
  return take_many(t, blocks) && write_many(t, blocks) &&
         verify_many(t, blocks, 1);
}

static bool neighbours(conform_target *t) {
  void *blocks[BLOCKS];
  if (!take_many(t, blocks) || !write_many(t, blocks)) return false;
  for (unsigned i = 1; i < BLOCKS; i += 2) {
    if (!check_give(t, blocks[i])) return false;
  }
  for (unsigned i = 1; i < BLOCKS; i += 2) {
    if (!check_take(t, 1000 + i * 97, &blocks[i]) ||
        !check_write(t, blocks[i], 1000 + i * 97, 1000 + i)) {
      return false;
    }
  }
  return are_distinct(t) && verify_many(t, blocks, 2);
}

static bool free_then_allocate(conform_target *t) {
  void *block = NULL;
  for (unsigned i = 0; i < CYCLES; i++) {
    size_t size = (size_t)(i % 7 + 1) * 3001;
    if (!check_take(t, size, &block) || !check_give(t, block)) return false;
  }
  return take_and_use(t, 3001);
}

// A device that keeps what it is given back runs out sooner or later: more is
// taken than it has, unless that is beyond a TiB.
static bool nothing_leaks(conform_target *t) {
  size_t size = t->total / 4 < MIB(256) ? t->total / 4 : MIB(256);
  size_t rounds = size != 0 ? t->total / size + 2 : 0;
  void *block = NULL;
  if (size == 0) return conform_skip(t, "device_memory_stats says 0 bytes");
  if (!check_has_room(t, size)) return false;
  for (size_t i = 0; i < rounds && i < 4096; i++) {
    if (!check_take(t, size, &block) || !check_give(t, block)) return false;
  }
  return true;
}

// ---------------------------------------------------------------------------
// Setting
// ---------------------------------------------------------------------------

static bool is_set(conform_target *t, const char *what,
                   const unsigned char *bytes, size_t size,
                   unsigned char value) {
  for (size_t i = 0; i < size; i++) {
    EXPECT(t, bytes[i] == value, "%s: byte %zu of %zu is 0x%02x, not 0x%02x",
           what, i, size, bytes[i], value);
  }
  return true;
}

static bool set_values(conform_target *t) {
  static const unsigned char values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
  enum { SIZE = 4097 };
  void *block = NULL;
  unsigned char *back = NULL;
  if (!check_take(t, SIZE, &block) || !check_buffer(t, SIZE, &back))
    return false;
  for (size_t i = 0; i < sizeof values; i++) {
    CALL(t, device_memory_set, &t->device, block, values[i], SIZE);
    if (!check_get(t, back, block, SIZE) ||
        !is_set(t, "after device_memory_set", back, SIZE, values[i])) {
      return false;
    }
  }
  return true;
}

static bool set_lengths(conform_target *t) {
  void *block = NULL;
  unsigned char *back = NULL;
  if (!check_take(t, MIB(2), &block) || !check_buffer(t, MIB(2), &back)) {
    return false;
  }
  for (size_t i = 0; check_lengths[i] != 0; i++) {
    unsigned char value = (unsigned char)(0x40 + i);
    CALL(t, device_memory_set, &t->device, block, value, check_lengths[i]);
    if (!check_get(t, back, block, check_lengths[i]) ||
        !is_set(t, "after device_memory_set", back, check_lengths[i], value)) {
      return false;
    }
  }
  return true;
}

static bool set_within(conform_target *t) {
  enum { SIZE = 8192, FROM = 1001, COUNT = 4099 };
  void *block = NULL;
  unsigned char *expected = NULL;
  unsigned char *back = NULL;
  if (!check_take(t, SIZE, &block) || !check_buffer(t, SIZE, &expected) ||
      !check_buffer(t, SIZE, &back) || !check_write(t, block, SIZE, 5)) {
    return false;
  }
  CALL(t, device_memory_set, &t->device, check_at(block, FROM), 0xc3, COUNT);
  check_fill(expected, SIZE, 5);
  memset(expected + FROM, 0xc3, COUNT);
  return check_get(t, back, block, SIZE) &&
         check_same(t, "a block of which [1001, 5100) was set", back, expected,
                    SIZE);
}

#define TAKE(size)                                                 \
  "void *block = NULL;\n"                                          \
  "C_Status got = table->device_memory_allocate(&d, &block, " size \
  ");\n"                                                           \
  "assert(got == C_SUCCESS && block != NULL);\n"
#define ROUND_TRIP(size)                           \
  "table->memory_copy_h2d(&d, block, bytes, " size \
  ");\n"                                           \
  "table->memory_copy_d2h(&d, back, block, " size  \
  ");\n"                                           \
  "assert(memcmp(back, bytes, " size ") == 0);\n"
#define SET(at, value, size)                                              \
  TAKE("8192")                                                            \
  "table->device_memory_set(&d, (char *)block + " at ", " value ", " size \
  ");\n"                                                                  \
  "table->memory_copy_d2h(&d, back, block, 8192);\n"

#define ABOVE(gib)                                                             \
  {                                                                            \
    CHECK("memory.allocate_above_" #gib "_gib", large,                         \
          .with = GIB(gib) + 8197),                                            \
        .code = TAKE("(" #gib                                                  \
                     "ull << 30) + 8197") "char *end = (char *)block + (" #gib \
                                          "ull << 30);\n"                      \
                                          "table->memory_copy_h2d(&d, end, "   \
                                          "bytes, 4097);  // reads back\n"     \
  }

static const conform_check checks[] = {
    {CHECK("memory.allocate_one_byte", one_byte),
     .code = TAKE("1") ROUND_TRIP("1")},
    {CHECK("memory.allocate_odd_sizes", odd_sizes),
     .code = "// size: 1, 2, 3, 5, 7, 15 ... 4097, 65537, 1048577\n" TAKE(
         "size") ROUND_TRIP("size")},
    {CHECK("memory.allocate_around_a_page", page_edges),
     .code = "// size: a page less 1, a page, a page and 1\n" TAKE("size")
         ROUND_TRIP("size")},
    {CHECK("memory.allocate_zero_bytes", zero),
     .code = "void *block = NULL;\n"
             "C_Status got = table->device_memory_allocate(&d, &block, 0);\n"
             "// C_SUCCESS, C_WARNING, C_FAILED or C_ERROR\n"
             "if (got == C_SUCCESS && block != NULL)\n"
             "  table->device_memory_deallocate(&d, block, 0);\n"},
    ABOVE(2),
    ABOVE(4),
    {CHECK("memory.alignment_of_16", alignment_16),
     .code = TAKE("size") "assert((uintptr_t)block % 16 == 0);\n"},
    {CHECK("memory.alignment_of_min_chunk", alignment_min_chunk),
     .code = "table->device_min_chunk_size(&d, &min_chunk);\n" TAKE(
         "size") "assert((uintptr_t)block % min_chunk == 0);\n"},
    {CHECK("memory.blocks_are_distinct", distinct),
     .code = "for (int i = 0; i < 64; i++)\n"
             "  table->device_memory_allocate(&d, &block[i], 1000 + i * 97);\n"
             "// no two of them overlap\n"},
    {CHECK("memory.contents_are_kept", contents),
     .code = "for (int i = 0; i < 64; i++)  // blocks of 1000 + i * 97 bytes\n"
             "  table->memory_copy_h2d(&d, block[i], bytes[i], size[i]);\n"
             "for (int i = 0; i < 64; i++)\n"
             "  table->memory_copy_d2h(&d, back[i], block[i], size[i]);\n"
             "// each holds its own bytes\n"},
    {CHECK("memory.contents_outlive_neighbours", neighbours),
     .code = "// of 64 blocks with bytes in them, every second is given back,\n"
             "table->device_memory_deallocate(&d, block[1], size[1]);\n"
             "// taken again and written to: the others hold their bytes\n"
             "table->device_memory_allocate(&d, &block[1], size[1]);\n"},
    {CHECK("memory.free_then_allocate", free_then_allocate),
     .code = "for (int i = 0; i < 1000; i++) {\n"
             "  size_t size = (i % 7 + 1) * 3001;\n"
             "  table->device_memory_allocate(&d, &block, size);\n"
             "  table->device_memory_deallocate(&d, block, size);\n"
             "}\n"},
    {CHECK("memory.nothing_leaks", nothing_leaks),
     .code = "// size: 256 MiB, or a quarter of all\n"
             "for (size_t i = 0; i <= total / size + 1; i++) {\n"
             "  table->device_memory_allocate(&d, &block, size);\n"
             "  table->device_memory_deallocate(&d, block, size);\n"
             "}\n"},
    {CHECK("memory.set_values", set_values, .needs = {NEED(device_memory_set)}),
     .code = SET("0", "value",
                 "4097") "// 4097 times value: 0, 1, 0x7f, 0x80, 0xff\n"},
    {CHECK("memory.set_odd_lengths", set_lengths,
           .needs = {NEED(device_memory_set)}),
     .code = SET("0", "0x41", "size") "// size times 0x41\n"},
    {CHECK("memory.set_leaves_the_rest", set_within,
           .needs = {NEED(device_memory_set)}),
     .code = SET("1001", "0xc3",
                 "4099") "// bytes [1001, 5100) are 0xc3, the others as before"
                         "\n"},
};

const conform_subject conform_memory = CONFORM_SUBJECT(checks);
