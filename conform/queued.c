// Copies that are queued on streams, and the order in which they run.
#include <string.h>

#include "route.h"

// ---------------------------------------------------------------------------
// Order
// ---------------------------------------------------------------------------

enum { CHAIN = 32 };

// A block after the other: h2d -> 0 -> 1 -> 2 ... -> d2h. Any two that change
// places break the chain.
static bool chain(conform_target *t, C_Stream stream, size_t size,
                  unsigned seed, unsigned char **out_back) {
  void *blocks[CHAIN];
  unsigned char *bytes = NULL;
  if (!check_buffer(t, size, &bytes) || !check_buffer(t, size, out_back)) {
    return false;
  }
  check_fill(bytes, size, seed);
  for (size_t i = 0; i < CHAIN; i++) {
    if (!check_take(t, size, &blocks[i]) ||
        !check_write(t, blocks[i], size, 100 + (unsigned)i)) {
      return false;
    }
  }
  CALL(t, async_memory_copy_h2d, &t->device, stream, blocks[0], bytes, size);
  for (size_t i = 1; i < CHAIN; i++) {
    CALL(t, async_memory_copy_d2d, &t->device, stream, blocks[i], blocks[i - 1],
         size);
  }
  CALL(t, async_memory_copy_d2h, &t->device, stream, *out_back,
       blocks[CHAIN - 1], size);
  return true;
}

static bool one_stream(conform_target *t) {
  size_t size = KIB(96) + 1;
  C_Stream stream = NULL;
  unsigned char *back = NULL;
  return check_stream(t, &stream) && chain(t, stream, size, 71, &back) &&
         check_wait(t, stream) &&
         check_is_filled(t, "the end of a chain of 32 copies on a stream", back,
                         size, 71);
}

// The same piece of host memory and of the device, again and again.
static bool overwrites(conform_target *t) {
  enum { COUNT = 16 };
  size_t size = KIB(256);
  C_Stream stream = NULL;
  void *block = NULL;
  unsigned char *bytes = NULL;
  unsigned char *back = NULL;
  if (!check_stream(t, &stream) || !check_take(t, size, &block) ||
      !check_buffer(t, size * COUNT, &bytes) ||
      !check_buffer(t, size * COUNT, &back)) {
    return false;
  }
  check_fill(bytes, size * COUNT, 72);
  for (size_t i = 0; i < COUNT; i++) {
    CALL(t, async_memory_copy_h2d, &t->device, stream, block, bytes + i * size,
         size);
    CALL(t, async_memory_copy_d2h, &t->device, stream, back + i * size, block,
         size);
  }
  return check_wait(t, stream) &&
         check_same(t, "16 times to one block and back", back, bytes,
                    size * COUNT);
}

static bool ends_well(conform_target *t, C_Stream stream, const char *what,
                      const unsigned char *back, size_t size, unsigned seed) {
  return check_wait(t, stream) && check_is_filled(t, what, back, size, seed);
}

// Work of one stream that was not waited for must not be needed by another.
static bool two_streams(conform_target *t) {
  size_t size = KIB(64) + 3;
  bool second_first = t->with != 0;
  C_Stream a = NULL;
  C_Stream b = NULL;
  unsigned char *from_a = NULL;
  unsigned char *from_b = NULL;
  if (!check_stream(t, &a) || !check_stream(t, &b) ||
      !chain(t, a, size, 73, &from_a) || !chain(t, b, size, 74, &from_b)) {
    return false;
  }
  if (second_first) {
    return ends_well(t, b, "the second of two streams, waited for first",
                     from_b, size, 74) &&
           ends_well(t, a, "the first of two streams, waited for last", from_a,
                     size, 73);
  }
  return ends_well(t, a, "the first of two streams, waited for", from_a, size,
                   73) &&
         ends_well(t, b, "the second of two streams, waited for", from_b, size,
                   74);
}

// Far more than any queue of a fixed length holds.
static bool long_queue(conform_target *t) {
  enum { SIZE = 64, COUNT = 5000 };
  C_Stream stream = NULL;
  void *block = NULL;
  unsigned char *bytes = NULL;
  if (!check_stream(t, &stream) || !check_take(t, SIZE, &block) ||
      !check_buffer(t, (size_t)SIZE * COUNT, &bytes)) {
    return false;
  }
  check_fill(bytes, (size_t)SIZE * COUNT, 77);
  for (size_t i = 0; i < COUNT; i++) {
    CALL(t, async_memory_copy_h2d, &t->device, stream, block, bytes + i * SIZE,
         SIZE);
  }
  unsigned char back[SIZE];
  return check_wait(t, stream) && check_get(t, back, block, SIZE) &&
         check_same(t, "the last of 5000 queued copies", back,
                    bytes + (size_t)(COUNT - 1) * SIZE, SIZE);
}

#define STREAMS NEED(create_stream)
#define ALL                                                            \
  {                                                                    \
    STREAMS, NEED(async_memory_copy_h2d), NEED(async_memory_copy_d2h), \
        NEED(async_memory_copy_d2d)                                    \
  }
#define QUEUE(kind, dst, src, size) \
  "table->async_memory_copy_" kind "(&d, s, " dst ", " src ", " size ");\n"
#define SYNC "table->synchronize_stream(&d, s);\n"
#define LENGTHS(kind, route)                                                   \
  {                                                                            \
    CHECK("queued." #kind "_odd_lengths", route_run_lengths,                   \
          .with = (route) | ROUTE_QUEUED,                                      \
          .needs = {STREAMS, NEED(async_memory_copy_##kind)}),                 \
        .code = "// size: 1, 2, 3, 5, 7, 15 ... 4097, 65537, 1048577\n" QUEUE( \
            #kind, "dst", "src", "size") SYNC                                  \
        "// dst holds size bytes of src; those behind are as before\n"         \
  }
#define OFFSETS(kind, route)                                              \
  {                                                                       \
    CHECK("queued." #kind "_at_offsets", route_run_offsets,               \
          .with = (route) | ROUTE_QUEUED,                                 \
          .needs = {STREAMS, NEED(async_memory_copy_##kind)}),            \
        .code = QUEUE(#kind, "dst + 1001", "src + 17", "999") SYNC        \
        "// bytes [1001, 2000) of dst are [17, 1016) of src; the others " \
        "are as before\n"                                                 \
  }
#define CHAIN_CODE                                                       \
  QUEUE("h2d", "block[0]", "bytes", "size")                              \
  "for (int i = 1; i < 32; i++)\n"                                       \
  "  table->async_memory_copy_d2d(&d, s, block[i], block[i - 1], size);" \
  "\n" QUEUE("d2h", "back", "block[31]", "size")

static const conform_check checks[] = {
    LENGTHS(h2d, ROUTE_H2D),
    LENGTHS(d2h, ROUTE_D2H),
    LENGTHS(d2d, ROUTE_D2D),
    OFFSETS(h2d, ROUTE_H2D),
    OFFSETS(d2h, ROUTE_D2H),
    OFFSETS(d2d, ROUTE_D2D),
    {CHECK("queued.run_in_order", one_stream, .needs = ALL),
     .code = CHAIN_CODE SYNC "assert(memcmp(back, bytes, size) == 0);\n"},
    {CHECK("queued.overwrite_in_order", overwrites, .needs = ALL),
     .code = "for (int i = 0; i < 16; i++) {\n"
             "  table->async_memory_copy_h2d(&d, s, block, bytes[i], size);\n"
             "  table->async_memory_copy_d2h(&d, s, back[i], block, size);\n"
             "}\n" SYNC "// each of back holds its own bytes\n"},
    {CHECK("queued.two_streams", two_streams, .needs = ALL),
     .code = "// on two streams at once, s and r:\n" CHAIN_CODE SYNC
             "assert(memcmp(back, bytes, size) == 0);\n"},
    {CHECK("queued.streams_wait_for_none_else", two_streams, .with = 1,
           .needs = ALL),
     .code = "// on two streams at once, s and r:\n" CHAIN_CODE
             "table->synchronize_stream(&d, r);  // the later one first\n" SYNC
             "assert(memcmp(back, bytes, size) == 0);\n"},
    {CHECK("queued.five_thousand", long_queue,
           .needs = {STREAMS, NEED(async_memory_copy_h2d)}),
     .code =
         "for (int i = 0; i < 5000; i++)\n"
         "  table->async_memory_copy_h2d(&d, s, block, bytes[i], 64);\n" SYNC
         "// block holds bytes[4999]\n"},
};

const conform_subject conform_queued = CONFORM_SUBJECT(checks);
