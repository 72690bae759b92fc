// Copies that are done when the call returns, on one device.
#include <string.h>

#include "route.h"

// Halves of one block do not overlap, so that is a copy like any other.
static bool d2d_within(conform_target *t) {
  enum { HALF = 5001 };
  void *block = NULL;
  if (!check_take(t, (size_t)2 * HALF, &block) ||
      !check_write(t, block, HALF, 31)) {
    return false;
  }
  CALL(t, memory_copy_d2d, &t->device, check_at(block, HALF), block, HALF);
  return check_verify(t, "the first half of a block, copied from", block, HALF,
                      31) &&
         check_verify(t, "the second half of a block, copied to",
                      check_at(block, HALF), HALF, 31);
}

// To and fro at offsets that do not fit in 32 bits.
static bool high_offsets(conform_target *t) {
  enum { PIECE = 4097 };
  size_t size = GIB(4) + MIB(1);
  size_t far = GIB(4) + 4099;
  void *block = NULL;
  if (!check_has_room(t, size) || !check_take(t, size, &block) ||
      !check_write(t, check_at(block, 4099), PIECE, 33) ||
      !check_write(t, check_at(block, far), PIECE, 34)) {
    return false;
  }
  CALL(t, memory_copy_d2d, &t->device, check_at(block, GIB(2)),
       check_at(block, far), PIECE);
  return check_verify(t, "bytes at 4099", check_at(block, 4099), PIECE, 33) &&
         check_verify(t, "bytes at 4 GiB + 4099", check_at(block, far), PIECE,
                      34) &&
         check_verify(t, "their copy at 2 GiB", check_at(block, GIB(2)), PIECE,
                      34) &&
         check_give(t, block);
}

// Changes by the host after the call must not reach the copy.
static bool h2d_is_done(conform_target *t) {
  size_t size = MIB(4);
  void *block = NULL;
  unsigned char *bytes = NULL;
  if (!check_take(t, size, &block) || !check_buffer(t, size, &bytes))
    return false;
  check_fill(bytes, size, 35);
  if (!check_put(t, block, bytes, size)) return false;
  memset(bytes, 0, size);
  return check_verify(t, "a block whose source changed after memory_copy_h2d",
                      block, size, 35);
}

static bool h2d_h2d(conform_target *t) {
  enum { SIZE = 9001 };
  void *block = NULL;
  if (!check_take(t, SIZE, &block)) return false;
  for (unsigned i = 0; i < 16; i++) {
    if (!check_write(t, block, SIZE, 40 + i)) return false;
  }
  return check_verify(t, "a block that was written to 16 times", block, SIZE,
                      55);
}

// The ABI does not say whether both may be the same: a refusal will do.
static bool p2p_same_device(conform_target *t) {
  enum { SIZE = 4097 };
  void *from = NULL;
  void *to = NULL;
  if (!check_take(t, SIZE, &from) || !check_take(t, SIZE, &to) ||
      !check_write(t, from, SIZE, 36) || !check_write(t, to, SIZE, 37)) {
    return false;
  }
  C_Status got =
      t->abi->memory_copy_p2p(&t->device, &t->device, to, from, SIZE);
  if (got != C_SUCCESS && got != C_WARNING) {
    return check_verify(t, "a block that memory_copy_p2p refused to copy to",
                        to, SIZE, 37) &&
           conform_note(t, "declined: %s", conform_status(got));
  }
  return check_verify(t, "a block that memory_copy_p2p copied to", to, SIZE,
                      36);
}

#define COPY(kind, dst, src, size) \
  "table->memory_copy_" kind "(&d, " dst ", " src ", " size ");\n"
#define LENGTHS(kind, dst, src)                                 \
  "// size: 1, 2, 3, 5, 7, 15 ... 4097, 65537, 1048577\n" COPY( \
      kind, dst, src,                                           \
      "size") "// dst holds size bytes of src; those behind are as before\n"
#define OFFSETS(kind)                                                          \
  COPY(kind, "dst + 1001", "src + 17", "999")                                  \
  "// bytes [1001, 2000) of dst are bytes [17, 1016) of src; all others are\n" \
  "// as before\n"
#define LARGE(kind)                                  \
  COPY(kind, "dst + 3", "src + 5", "(16 << 20) + 1") \
  "// the same bytes in both; those around are as before\n"

static const conform_check checks[] = {
    {CHECK("copies.h2d_odd_lengths", route_run_lengths, .with = ROUTE_H2D),
     .code = LENGTHS("h2d", "block", "bytes")},
    {CHECK("copies.d2h_odd_lengths", route_run_lengths, .with = ROUTE_D2H),
     .code = LENGTHS("d2h", "bytes", "block")},
    {CHECK("copies.d2d_odd_lengths", route_run_lengths, .with = ROUTE_D2D),
     .code = LENGTHS("d2d", "block", "other")},
    {CHECK("copies.h2d_at_offsets", route_run_offsets, .with = ROUTE_H2D),
     .code = OFFSETS("h2d")},
    {CHECK("copies.d2h_at_offsets", route_run_offsets, .with = ROUTE_D2H),
     .code = OFFSETS("d2h")},
    {CHECK("copies.d2d_at_offsets", route_run_offsets, .with = ROUTE_D2D),
     .code = OFFSETS("d2d")},
    {CHECK("copies.h2d_large", route_run_large, .with = ROUTE_H2D),
     .code = LARGE("h2d")},
    {CHECK("copies.d2h_large", route_run_large, .with = ROUTE_D2H),
     .code = LARGE("d2h")},
    {CHECK("copies.d2d_large", route_run_large, .with = ROUTE_D2D),
     .code = LARGE("d2d")},
    {CHECK("copies.d2d_within_a_block", d2d_within),
     .code = COPY("d2d", "block + 5001", "block",
                  "5001") "// both halves hold the bytes of the first\n"},
    {CHECK("copies.above_4_gib", high_offsets),
     .code = "table->device_memory_allocate(&d, &block, (4ull << 30) + "
             "(1 << 20));\n"
             "char *far = (char *)block + (4ull << 30) + 4099;\n" COPY(
                 "h2d", "far", "bytes", "4097")
                 COPY("d2d", "(char *)block + (2ull << 30)", "far", "4097")
                     COPY("d2h", "back", "(char *)block + (2ull << 30)",
                          "4097") "assert(memcmp(back, bytes, 4097) == 0);\n"},
    {CHECK("copies.h2d_is_done_on_return", h2d_is_done),
     .code = COPY(
         "h2d", "block", "bytes",
         "4 << 20") "memset(bytes, 0, 4 << 20);\n" COPY("d2h", "back", "block",
                                                        "4 << 20") "// back "
                                                                   "holds what "
                                                                   "bytes held "
                                                                   "before\n"},
    {CHECK("copies.the_last_one_counts", h2d_h2d),
     .code = "for (int i = 0; i < 16; i++)\n"
             "  table->memory_copy_h2d(&d, block, bytes[i], 9001);\n" COPY(
                 "d2h", "back", "block",
                 "9001") "assert(memcmp(back, bytes[15], 9001) == 0);\n"},
    {CHECK("copies.p2p_on_one_device", p2p_same_device,
           .needs = {NEED(memory_copy_p2p)}),
     .code = "C_Status got = table->memory_copy_p2p(&d, &d, to, from, 4097);\n"
             "// C_SUCCESS and the bytes, or an error and none of them\n"},
};

const conform_subject conform_copies = CONFORM_SUBJECT(checks);
