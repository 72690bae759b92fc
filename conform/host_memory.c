// Host memory that the device has pinned, and memory that both reach.
#include <string.h>

#include "base/os.h"
#include "check.h"

enum { BLOCKS = 16 };

typedef struct pair {
  const char *take_name;
  const char *give_name;
  C_Status (*take)(const C_Device device, void **ptr, size_t size);
  C_Status (*give)(const C_Device device, void *ptr, size_t size);
} pair;

// The memory that the check is about.
enum { PINNED, UNIFIED };

static pair pair_of(const conform_target *t) {
  const C_DeviceInterface *abi = t->abi;
  if (t->with == UNIFIED) {
    return (pair){"unified_memory_allocate", "unified_memory_deallocate",
                  abi->unified_memory_allocate, abi->unified_memory_deallocate};
  }
  return (pair){"host_memory_allocate", "host_memory_deallocate",
                abi->host_memory_allocate, abi->host_memory_deallocate};
}

// A device without unified memory calls every request for it wrong.
static bool take(conform_target *t, const pair *p, size_t size, void **out) {
  *out = NULL;
  C_Status got = p->take(&t->device, out, size);
  if (t->with == UNIFIED && got == C_ERROR) {
    return conform_skip(t, "%s answered C_ERROR: this device has none",
                        p->take_name);
  }
  if (!conform_went_well(t, p->take_name, got)) return false;
  EXPECT(t, *out != NULL, "%s of %zu bytes set no pointer", p->take_name, size);
  return true;
}

static bool give(conform_target *t, const pair *p, void *ptr, size_t size) {
  return conform_went_well(t, p->give_name, p->give(&t->device, ptr, size));
}

// The host writes and reads it as its own.
static bool check_sizes(conform_target *t) {
  pair p = pair_of(t);
  void *block = NULL;
  for (size_t i = 0; check_lengths[i] != 0; i++) {
    size_t size = check_lengths[i];
    if (!take(t, &p, size, &block)) return false;
    check_fill(block, size, 7);
    if (!check_is_filled(t, "memory that the host wrote", block, size, 7) ||
        !give(t, &p, block, size)) {
      return false;
    }
  }
  return true;
}

static bool check_alignment(conform_target *t) {
  pair p = pair_of(t);
  void *block = NULL;
  for (size_t i = 0; check_lengths[i] != 0; i++) {
    if (!take(t, &p, check_lengths[i], &block)) return false;
    if (!give(t, &p, block, check_lengths[i])) return false;
    EXPECT_QUIRK(t, (uintptr_t)block % 16 == 0,
                 "%s gave %p for %zu bytes, no multiple of 16; Tarn promises "
                 "no alignment that it does not make itself",
                 p.take_name, block, check_lengths[i]);
  }
  return true;
}

static bool check_contents(conform_target *t) {
  pair p = pair_of(t);
  enum { SIZE = 5003 };
  void *blocks[BLOCKS];
  for (unsigned i = 0; i < BLOCKS; i++) {
    if (!take(t, &p, SIZE, &blocks[i])) return false;
    check_fill(blocks[i], SIZE, i);
  }
  for (unsigned i = 0; i < BLOCKS; i++) {
    if (!check_is_filled(t, "one of 16 blocks", blocks[i], SIZE, i) ||
        !give(t, &p, blocks[i], SIZE)) {
      return false;
    }
  }
  return true;
}

// Asking for the impossible must be refused as what it is.
static bool check_refusal(conform_target *t) {
  pair p = pair_of(t);
  void *block = NULL;
  C_Status got = p.take(&t->device, &block, SIZE_MAX / 2);
  EXPECT(t, got == C_FAILED || got == C_ERROR || block == NULL,
         "%s of %zu bytes answered %s and %p", p.take_name,
         (size_t)SIZE_MAX / 2, conform_status(got), block);
  if (!take(t, &p, 4096, &block)) return false;
  return give(t, &p, block, 4096);
}

// What pinned memory is for.
static bool pinned_copies(conform_target *t) {
  enum { SIZE = 70001 };
  pair p = pair_of(t);
  void *from = NULL;
  void *to = NULL;
  void *block = NULL;
  if (!take(t, &p, SIZE, &from) || !take(t, &p, SIZE, &to) ||
      !check_take(t, SIZE, &block)) {
    return false;
  }
  check_fill(from, SIZE, 9);
  memset(to, 0, SIZE);
  return check_put(t, block, from, SIZE) && check_get(t, to, block, SIZE) &&
         check_is_filled(t, "pinned memory to the device and back", to, SIZE,
                         9) &&
         give(t, &p, from, SIZE) && give(t, &p, to, SIZE);
}

// The device sees the host's writes, and the other way round.
static bool unified_both_sides(conform_target *t) {
  enum { SIZE = 70001 };
  pair p = pair_of(t);
  void *shared = NULL;
  void *block = NULL;
  if (!take(t, &p, SIZE, &shared) || !check_take(t, SIZE, &block)) return false;
  check_fill(shared, SIZE, 11);
  CALL(t, memory_copy_d2d, &t->device, block, shared, SIZE);
  if (!check_verify(t, "what the host wrote to unified memory", block, SIZE,
                    11) ||
      !check_write(t, block, SIZE, 12)) {
    return false;
  }
  CALL(t, memory_copy_d2d, &t->device, shared, block, SIZE);
  if (t->abi->synchronize_device != NULL) {
    CALL(t, synchronize_device, &t->device);
  }
  return check_is_filled(t, "what the device wrote to unified memory", shared,
                         SIZE, 12) &&
         give(t, &p, shared, SIZE);
}

#define TAKE(kind, size) \
  "table->" kind "_memory_allocate(&d, &block, " size ");  // C_SUCCESS\n"
#define GIVE(kind, size) \
  "table->" kind "_memory_deallocate(&d, block, " size ");  // C_SUCCESS\n"
#define BOTH(kind, memory, check, function) \
  CHECK(#kind "_memory." check, function,   \
        .needs = {NEED(kind##_memory_allocate)}, .with = (memory))
#define SIZES(kind, memory)                                                   \
  {                                                                           \
    BOTH(kind, memory, "odd_sizes", check_sizes),                             \
        .code = "// size: 1, 2, 3, 5, 7, 15 ... 4097, 65537, 1048577\n" TAKE( \
            #kind, "size") "memset(block, 7, size);\n" GIVE(#kind, "size")    \
  }
#define ALIGNMENT(kind, memory)                                             \
  {                                                                         \
    BOTH(kind, memory, "alignment_of_16", check_alignment),                 \
        .code = TAKE(#kind, "size") "assert((uintptr_t)block % 16 == 0);\n" \
  }
#define CONTENTS(kind, memory)                                                 \
  {                                                                            \
    BOTH(kind, memory, "contents_are_kept", check_contents),                   \
        .code =                                                                \
            TAKE(#kind,                                                        \
                 "5003") "// 16 times; each holds what the host wrote to it\n" \
  }
#define REFUSAL(kind, memory)                                       \
  {                                                                 \
    BOTH(kind, memory, "refuses_too_much", check_refusal),          \
        .code =                                                     \
            "C_Status got =\n"                                      \
            "    table->" #kind                                     \
            "_memory_allocate(&d, &block, SIZE_MAX / 2);\n"         \
            "assert(got == C_FAILED || got == C_ERROR || block == " \
            "NULL);\n" TAKE(#kind, "4096")                          \
  }

static const conform_check checks[] = {
    SIZES(host, PINNED),
    ALIGNMENT(host, PINNED),
    CONTENTS(host, PINNED),
    {BOTH(host, PINNED, "copies", pinned_copies),
     .code = "table->host_memory_allocate(&d, &pinned, 70001);\n"
             "table->memory_copy_h2d(&d, block, pinned, 70001);\n"
             "table->memory_copy_d2h(&d, other_pinned, block, 70001);\n"
             "assert(memcmp(pinned, other_pinned, 70001) == 0);\n"},
    REFUSAL(host, PINNED),
    SIZES(unified, UNIFIED),
    ALIGNMENT(unified, UNIFIED),
    CONTENTS(unified, UNIFIED),
    {BOTH(unified, UNIFIED, "both_sides_see_it", unified_both_sides),
     .code =
         "memcpy(unified, bytes, 70001);  // the host writes\n"
         "table->memory_copy_d2d(&d, block, unified, 70001);\n"
         "table->memory_copy_d2h(&d, back, block, 70001);\n"
         "assert(memcmp(back, bytes, 70001) == 0);  // and the other way\n"},
    REFUSAL(unified, UNIFIED),
};

const conform_subject conform_host_memory = CONFORM_SUBJECT(checks);
