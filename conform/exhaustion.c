// More than there is: refused as what it is, and nothing lost by it.

#include "check.h"

enum { PIECES = 128, REFUSALS = 100 };

// "No memory left" is C_FAILED, or C_SUCCESS with a NULL pointer. Of a size
// that can never be, C_ERROR says so as well.
static bool is_refused(conform_target *t, size_t size, bool absurd) {
  void *block = NULL;
  C_Status got = t->abi->device_memory_allocate(&t->device, &block, size);
  bool fine = got == C_SUCCESS || got == C_WARNING;
  if (fine && block != NULL) {
    (void)t->abi->device_memory_deallocate(&t->device, block, size);
    return conform_fail(t,
                        "device_memory_allocate gave %p for %zu bytes, of "
                        "%zu in all",
                        block, size, t->total);
  }
  if (fine || got == C_FAILED || (absurd && got == C_ERROR)) return true;
  return conform_fail(
      t,
      "device_memory_allocate of %zu bytes, of %zu in all, answered %s, not "
      "C_FAILED",
      size, t->total, conform_status(got));
}

static bool works(conform_target *t) {
  return check_use(t, "a block, after a refusal", 70001, 51);
}

// A host that overcommits promises more than it has; a device that keeps
// account does not.
static bool more_than_total(conform_target *t) {
  size_t size = 0;
  bool bounded = false;
  if (t->total == 0 || !tarn_size_mul(t->total, 2, &size) ||
      !tarn_size_add(size, 4096, &size)) {
    return conform_skip(t, "device_memory_stats says %zu bytes in all",
                        t->total);
  }
  if (!check_keeps_account(t, &bounded)) return false;
  if (!is_refused(t, size, false)) {
    if (bounded || t->outcome.result != CONFORM_FAIL) return false;
    return conform_skip(t,
                        "its memory is the host's, which promises more than "
                        "it has");
  }
  return works(t);
}

// A size that is rounded up must not come out small.
static bool absurd(conform_target *t) {
  static const size_t sizes[] = {
      SIZE_MAX,         SIZE_MAX - 1, SIZE_MAX - 255, SIZE_MAX - 4095,
      SIZE_MAX / 2 + 1, SIZE_MAX / 2, SIZE_MAX / 4};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    if (!is_refused(t, sizes[i], true)) return false;
  }
  return works(t);
}

static bool many_refusals(conform_target *t) {
  size_t all = 0;
  size_t before = 0;
  size_t after = 0;
  CALL(t, device_memory_stats, &t->device, &all, &before);
  for (int i = 0; i < REFUSALS; i++) {
    if (!is_refused(t, SIZE_MAX / 4, true)) return false;
  }
  CALL(t, device_memory_stats, &t->device, &all, &after);
  EXPECT(t, after >= before / 2,
         "%zu bytes were free, and %zu after 100 allocations that were refused",
         before, after);
  return works(t);
}

// ---------------------------------------------------------------------------
// Until it is full
// ---------------------------------------------------------------------------

// Takes pieces until the device is full. They are given back after the check.
static bool fill(conform_target *t, size_t piece) {
  while (t->block_count < CHECK_BLOCKS_MAX) {
    void *block = NULL;
    C_Status got = t->abi->device_memory_allocate(&t->device, &block, piece);
    if (block == NULL || got == C_FAILED) {
      EXPECT(t, got == C_SUCCESS || got == C_WARNING || got == C_FAILED,
             "device_memory_allocate answered %s, not C_FAILED, when the "
             "device was full with %zu blocks of %zu bytes",
             conform_status(got), t->block_count, piece);
      return true;
    }
    t->blocks[t->block_count++] = (check_block){&t->device, block, piece};
  }
  return conform_fail(t,
                      "device_memory_allocate gave %zu blocks of %zu bytes, "
                      "of %zu in all",
                      t->block_count, piece, t->total);
}

static bool begin_fill(conform_target *t, size_t *out_piece) {
  bool bounded = false;
  if (!check_keeps_account(t, &bounded)) return false;
  if (!bounded) {
    return conform_skip(t, "its memory is the host's, which others need");
  }
  *out_piece = t->total / PIECES;
  if (*out_piece == 0) return conform_skip(t, "it has %zu bytes", t->total);
  return fill(t, *out_piece);
}

// Others may hold much of the device: half of what was free must be had.
static bool until_full(conform_target *t) {
  size_t piece = 0;
  size_t all = 0;
  size_t available = 0;
  CALL(t, device_memory_stats, &t->device, &all, &available);
  if (!begin_fill(t, &piece)) return false;
  size_t count = t->block_count;
  EXPECT(
      t, (count + 1) * piece > available / 2,
      "the device was full with %zu blocks of %zu bytes; %zu bytes were free",
      count, piece, available);
  while (t->block_count > 0) {
    if (!check_give(t, t->blocks[t->block_count - 1].ptr)) return false;
  }
  return works(t);
}

static bool one_given_back(conform_target *t) {
  size_t piece = 0;
  void *block = NULL;
  if (!begin_fill(t, &piece)) return false;
  for (int i = 0; i < 8; i++) {
    if (!check_give(t, t->blocks[t->block_count / 2].ptr) ||
        !check_take(t, piece, &block)) {
      return false;
    }
  }
  return check_write(t, block, 4096, 52) &&
         check_verify(t, "the last block of a full device", block, 4096, 52);
}

static bool all_comes_back(conform_target *t) {
  size_t piece = 0;
  if (!begin_fill(t, &piece)) return false;
  size_t first = t->block_count;
  while (t->block_count > 0) {
    if (!check_give(t, t->blocks[t->block_count - 1].ptr)) return false;
  }
  if (!fill(t, piece)) return false;
  EXPECT(t, t->block_count + 2 >= first,
         "the device held %zu blocks of %zu bytes, and %zu the second time",
         first, piece, t->block_count);
  return true;
}

#define REFUSE(size)                                               \
  "void *block = NULL;\n"                                          \
  "C_Status got = table->device_memory_allocate(&d, &block, " size \
  ");\n"                                                           \
  "assert(got == C_FAILED || (got == C_SUCCESS && block == NULL));\n"
#define FILL                                                              \
  "while (table->device_memory_allocate(&d, &block[n], total / 128) ==\n" \
  "           C_SUCCESS && block[n] != NULL)\n"                           \
  "  n++;\n"

static const conform_check checks[] = {
    {CHECK("exhaustion.more_than_total", more_than_total),
     .code = REFUSE("2 * total + 4096") "// and others work as before\n"},
    {CHECK("exhaustion.absurd_sizes", absurd),
     .code = "// size: SIZE_MAX, SIZE_MAX - 255, SIZE_MAX / 2 + 1 ...; C_ERROR "
             "will do too\n" REFUSE("size")},
    {CHECK("exhaustion.many_refusals", many_refusals),
     .code = "for (int i = 0; i < 100; i++)\n"
             "  table->device_memory_allocate(&d, &block, SIZE_MAX / 4);\n"
             "// device_memory_stats names as much free memory as before\n"},
    {CHECK("exhaustion.until_full", until_full),
     .code = FILL
     "// ends with C_FAILED or NULL, not before half of what was free\n"},
    {CHECK("exhaustion.room_of_one_given_back", one_given_back),
     .code = FILL
     "table->device_memory_deallocate(&d, block[n / 2], total / 128);\n"
     "table->device_memory_allocate(&d, &block[n / 2], total / 128);\n"
     "assert(block[n / 2] != NULL);\n"},
    {CHECK("exhaustion.all_comes_back", all_comes_back),
     .code = FILL "// all are given back; then as many can be taken again\n"},
};

const conform_subject conform_exhaustion = CONFORM_SUBJECT(checks);
