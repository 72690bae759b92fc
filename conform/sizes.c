// The sizes that a device names, and how much memory it says there is.
//
// On a device that is the host, other programs take and give back memory at
// the same time, and the kernel's count may follow seconds behind: half of the
// movement is enough, in one of several attempts, and where others move the
// count as well, only a figure that stands still is wrong.
#include <string.h>
#include <time.h>

#include "base/os.h"
#include "check.h"

enum { ATTEMPTS = 2, PADDING_MAX = 1 << 20 };

static const uint64_t PATIENCE_NS = UINT64_C(1500) * 1000 * 1000;

static bool ask(conform_target *t, size_t *total, size_t *available) {
  *total = *available = 0;
  CALL(t, device_memory_stats, &t->device, total, available);
  return true;
}

static bool total(conform_target *t) {
  size_t all = 0;
  size_t available = 0;
  if (!ask(t, &all, &available)) return false;
  EXPECT(t, all > 0, "device_memory_stats says that there are 0 bytes in all");
  return true;
}

static bool free_within_total(conform_target *t) {
  size_t all = 0;
  size_t available = 0;
  if (!ask(t, &all, &available)) return false;
  EXPECT(t, available > 0, "no byte is free, of %zu in all", all);
  EXPECT_QUIRK(t, available <= all,
               "of %zu bytes in all, %zu are free; Tarn takes no more than all "
               "for free",
               all, available);
  return true;
}

static bool total_constant(conform_target *t) {
  size_t before = 0;
  size_t after = 0;
  size_t available = 0;
  void *block = NULL;
  if (!ask(t, &before, &available) || !check_take(t, MIB(1), &block) ||
      !ask(t, &after, &available)) {
    return false;
  }
  EXPECT(t, before == after,
         "%zu bytes in all, and %zu when 1 MiB of them is in use", before,
         after);
  return true;
}

// Large enough to be seen, small enough for every device.
static size_t movement(const conform_target *t) {
  size_t eighth = t->total / 8;
  if (eighth == 0) return MIB(1);
  return eighth < MIB(128) ? eighth : MIB(128);
}

// Asks until at least |least| bytes, or at most |most|, are free, or patience
// is at an end: |*out| is what was said last.
static bool await_free(conform_target *t, size_t least, size_t most,
                       size_t *out) {
  size_t all = 0;
  uint64_t deadline = tarn__os_now_ns() + PATIENCE_NS;
  struct timespec pause = {.tv_nsec = 5000000};
  while (true) {
    if (!ask(t, &all, out)) return false;
    if (*out >= least && *out <= most) return true;
    if (tarn__os_now_ns() >= deadline) return true;
    (void)nanosleep(&pause, NULL);
  }
}

typedef struct observation {
  size_t size;  // of the block
  size_t before;
  size_t within;
  size_t after;
} observation;

static bool take_written(conform_target *t, size_t size, void **out) {
  unsigned char *bytes = NULL;
  if (!check_buffer(t, size, &bytes)) return false;
  memset(bytes, 1, size);
  return check_take(t, size, out) && check_put(t, *out, bytes, size);
}

static size_t minus(size_t a, size_t b) {
  return a > b ? a - b : 0;
}

// Takes a block, writes to all of it, and gives it back.
static bool observe(conform_target *t, bool rises, observation *o) {
  size_t all = 0;
  void *block = NULL;
  o->size = movement(t);
  return ask(t, &all, &o->before) && take_written(t, o->size, &block) &&
         await_free(t, 0, minus(o->before, o->size / 2), &o->within) &&
         check_give(t, block) &&
         await_free(t, rises ? o->within + o->size / 2 : 0, SIZE_MAX,
                    &o->after) &&
         check_tidy(t);
}

// Fails, unless other processes may hide the movement.
static bool not_seen(conform_target *t, const observation *o,
                     const char *what) {
  bool keeps_account = false;
  bool still = o->before == o->within && o->within == o->after;
  if (!check_keeps_account(t, &keeps_account)) return false;
  EXPECT(
      t, !keeps_account && !still,
      "%zu bytes were free, %zu with a block of %zu bytes in use and written "
      "to, %zu when it was given back: %s",
      o->before, o->within, o->size, o->after, what);
  return conform_skip(t, "its memory is the host's, where others are too busy");
}

static bool free_falls(conform_target *t) {
  observation o = {0};
  for (int i = 0; i < ATTEMPTS; i++) {
    if (!observe(t, false, &o)) return false;
    if (minus(o.before, o.within) >= o.size / 2) return true;
  }
  return not_seen(t, &o, "free memory does not fall");
}

static bool free_rises(conform_target *t) {
  observation o = {0};
  for (int i = 0; i < ATTEMPTS; i++) {
    if (!observe(t, true, &o)) return false;
    if (minus(o.after, o.within) >= o.size / 2) return true;
  }
  return not_seen(t, &o, "free memory does not rise");
}

// ---------------------------------------------------------------------------
// Sizes
// ---------------------------------------------------------------------------

static bool min_chunk(conform_target *t) {
  size_t size = 0;
  size_t again = 0;
  CALL(t, device_min_chunk_size, &t->device, &size);
  CALL(t, device_min_chunk_size, &t->device, &again);
  EXPECT(t, size == again, "device_min_chunk_size is %zu, then %zu", size,
         again);
  EXPECT_QUIRK(t, size != 0,
               "device_min_chunk_size is 0, by which hosts divide; Tarn takes "
               "1");
  EXPECT_QUIRK(t, tarn_is_power_of_two(size),
               "device_min_chunk_size is %zu, no power of two; Tarn takes the "
               "next one",
               size);
  return true;
}

// Asks the function that the check is run with, without which Tarn can do.
static bool ask_size(conform_target *t, size_t *out) {
  C_Status (*function)(const C_Device device, size_t *size);
  memcpy(&function, (const char *)t->abi + t->with, sizeof function);
  *out = 0;
  C_Status got = function(&t->device, out);
  EXPECT_QUIRK(t, got == C_SUCCESS || got == C_WARNING,
               "%s answered %s, not C_SUCCESS; to Tarn it is as if there were "
               "no such function",
               conform_function_name(t->with), conform_status(got));
  return true;
}

static bool plausible_size(conform_target *t) {
  size_t size = 0;
  const char *name = conform_function_name(t->with);
  if (!ask_size(t, &size)) return false;
  if (size == 0 && t->with == NEED(device_max_chunk_size))
    return conform_note(t, "0: hosts ask for each block apart");
  EXPECT_QUIRK(t, size != 0 || t->with != NEED(device_max_alloc_size),
               "device_max_alloc_size is 0; Tarn takes the memory that is "
               "free");
  EXPECT(t, size >= t->min_chunk,
         "%s is %zu, less than device_min_chunk_size, %zu", name, size,
         t->min_chunk);
  EXPECT(t, size <= t->total, "%s is %zu, but there are %zu bytes in all", name,
         size, t->total);
  return true;
}

// A pool asks for as much at once when it begins.
static bool init_alloc_works(conform_target *t) {
  size_t size = 0;
  void *block = NULL;
  if (!ask_size(t, &size)) return false;
  return size == 0 || (check_has_room(t, size) && check_take(t, size, &block));
}

static bool padding(conform_target *t) {
  size_t size = 0;
  if (!ask_size(t, &size)) return false;
  EXPECT(t, size <= PADDING_MAX,
         "device_extra_padding_size is %zu: every block would be longer by it",
         size);
  return true;
}

#define STATS "table->device_memory_stats(&d, &total, &free);\n"

#define PLAUSIBLE(what, function)                                \
  {                                                              \
    CHECK("sizes." what, plausible_size, .with = NEED(function), \
          .needs = {NEED(function)}),                            \
        .code = "table->" #function                              \
                "(&d, &size);\n"                                 \
                "assert(min_chunk <= size && size <= total);\n"  \
  }

static const conform_check checks[] = {
    {CHECK("statistics.total", total), .code = STATS "assert(total > 0);\n"},
    {CHECK("statistics.free_within_total", free_within_total),
     .code = STATS "assert(0 < free && free <= total);\n"},
    {CHECK("statistics.total_constant", total_constant),
     .code = STATS "table->device_memory_allocate(&d, &block, 1 << 20);\n"
                   "table->device_memory_stats(&d, &now, &free);\n"
                   "assert(now == total);\n"},
    {CHECK("statistics.free_falls", free_falls),
     .code = STATS "table->device_memory_allocate(&d, &block, size);\n"
                   "table->memory_copy_h2d(&d, block, bytes, size);\n"
                   "table->device_memory_stats(&d, &total, &now);\n"
                   "assert(now <= free - size / 2);\n"},
    {CHECK("statistics.free_rises", free_rises),
     .code = "table->device_memory_allocate(&d, &block, size);\n"
             "table->memory_copy_h2d(&d, block, bytes, size);\n" STATS
             "table->device_memory_deallocate(&d, block, size);\n"
             "table->device_memory_stats(&d, &total, &now);\n"
             "assert(now >= free + size / 2);  // within 1.5 s, in one of 2 "
             "attempts\n"},
    {CHECK("sizes.min_chunk", min_chunk),
     .code = "size_t size = 0;\n"
             "table->device_min_chunk_size(&d, &size);\n"
             "assert(size != 0 && (size & (size - 1)) == 0);\n"},
    PLAUSIBLE("max_chunk", device_max_chunk_size),
    PLAUSIBLE("max_alloc", device_max_alloc_size),
    PLAUSIBLE("init_alloc", device_init_alloc_size),
    {CHECK("sizes.init_alloc_works", init_alloc_works,
           .with = NEED(device_init_alloc_size),
           .needs = {NEED(device_init_alloc_size)}),
     .code = "table->device_init_alloc_size(&d, &size);\n"
             "C_Status got = table->device_memory_allocate(&d, &block, size);\n"
             "assert(got == C_SUCCESS && block != NULL);\n"},
    PLAUSIBLE("realloc", device_realloc_size),
    {CHECK("sizes.padding", padding, .with = NEED(device_extra_padding_size),
           .needs = {NEED(device_extra_padding_size)}),
     .code = "table->device_extra_padding_size(&d, &size);\n"
             "assert(size <= 1 << 20);\n"},
};

const conform_subject conform_sizes = CONFORM_SUBJECT(checks);
