// Two devices of one plug-in: memory apart, copies between.
#include <pthread.h>
#include <string.h>

#include "route.h"

static bool write_on(conform_target *t, struct C_Device_st *device, void *dst,
                     size_t size, unsigned seed) {
  unsigned char *bytes = NULL;
  if (!check_buffer(t, size, &bytes)) return false;
  check_fill(bytes, size, seed);
  if (!check_enter(t, device)) return false;
  CALL(t, memory_copy_h2d, device, dst, bytes, size);
  return true;
}

static bool verify_on(conform_target *t, struct C_Device_st *device,
                      const char *what, const void *src, size_t size,
                      unsigned seed) {
  unsigned char *bytes = NULL;
  if (!check_buffer(t, size, &bytes)) return false;
  if (!check_enter(t, device)) return false;
  CALL(t, memory_copy_d2h, device, bytes, src, size);
  return check_is_filled(t, what, bytes, size, seed);
}

// Blocks that each device takes after the other, full of bytes of their own.
static bool separate(conform_target *t) {
  enum { COUNT = 8, SIZE = 10007 };
  void *here[COUNT];
  void *there[COUNT];
  for (unsigned i = 0; i < COUNT; i++) {
    if (!check_take(t, SIZE, &here[i]) || !check_enter(t, &t->other) ||
        !check_take_of(t, &t->other, SIZE, &there[i]) ||
        !write_on(t, &t->device, here[i], SIZE, i) ||
        !write_on(t, &t->other, there[i], SIZE, 100 + i)) {
      return false;
    }
  }
  for (unsigned i = 0; i < COUNT; i++) {
    if (!verify_on(t, &t->device, "a block of the one device", here[i], SIZE,
                   i) ||
        !verify_on(t, &t->other, "a block of the other device", there[i], SIZE,
                   100 + i)) {
      return false;
    }
  }
  return true;
}

// Each keeps working while the other is ended and begun again.
static bool deinit_one(conform_target *t) {
  enum { SIZE = 4099 };
  void *block = NULL;
  size_t index = t->wanted == 0 ? 1 : 0;
  if (!check_take(t, SIZE, &block) || !check_write(t, block, SIZE, 91)) {
    return false;
  }
  CALL(t, deinit_device, &t->other);
  if (!check_enter(t, &t->device) ||
      !check_verify(t, "a block when another device was deinitialised", block,
                    SIZE, 91)) {
    return false;
  }
  t->other.id = (int)t->ids[index];
  if (t->abi->init_device != NULL) CALL(t, init_device, &t->other);
  return true;
}

static bool streams_on_both(conform_target *t) {
  size_t size = KIB(256) + 1;
  C_Stream stream = NULL;
  void *block = NULL;
  unsigned char *bytes = NULL;
  unsigned char *seen = NULL;
  if (!check_buffer(t, size, &bytes) || !check_buffer(t, size, &seen) ||
      !check_enter(t, &t->other) ||
      !check_take_of(t, &t->other, size, &block)) {
    return false;
  }
  check_fill(bytes, size, 92);
  CALL(t, create_stream, &t->other, &stream);
  if (stream == NULL) return conform_skip(t, "create_stream sets no handle");
  CALL(t, async_memory_copy_h2d, &t->other, stream, block, bytes, size);
  CALL(t, async_memory_copy_d2h, &t->other, stream, seen, block, size);
  CALL(t, synchronize_stream, &t->other, stream);
  CALL(t, destroy_stream, &t->other, stream);
  return check_same(t, "to the other device and back on a stream of its own",
                    seen, bytes, size);
}

// ---------------------------------------------------------------------------
// The current device
// ---------------------------------------------------------------------------

typedef struct visit {
  const conform_target *target;
  struct C_Device_st device;  // to make current
  C_Status set;
  C_Status got;
  int id;
} visit;

static void *visit_device(void *context) {
  visit *v = context;
  struct C_Device_st current = {.id = -1};
  v->set = v->target->abi->set_device(&v->device);
  v->got = v->target->abi->get_device(&current);
  v->id = current.id;
  return NULL;
}

// The free memory that a device reports while it is current.
static bool free_on(conform_target *t, struct C_Device_st *device,
                    size_t *out) {
  size_t all = 0;
  CALL(t, set_device, device);
  CALL(t, device_memory_stats, device, &all, out);
  return true;
}

static bool fell(size_t before, size_t after, size_t size) {
  return before > after && before - after >= size;
}

// Whether memory of one device can be allocated and used while the other is
// current, and counts on its own device. Other processes may take memory during
// the check, and two devices may share memory: the block came from the wrong
// device only if the other's free memory fell by the block and its own did not.
static bool goes_by_argument(conform_target *t) {
  enum { SIZE = 1 << 20 };
  size_t own[2] = {0};
  size_t other[2] = {0};
  bool keeps_account = false;
  void *block = NULL;
  if (!check_keeps_account(t, &keeps_account) ||
      !free_on(t, &t->device, &own[0]) || !free_on(t, &t->other, &other[0]) ||
      !check_take(t, SIZE, &block) || !free_on(t, &t->device, &own[1]) ||
      !free_on(t, &t->other, &other[1])) {
    return false;
  }
  bool wrong = fell(other[0], other[1], SIZE) && !fell(own[0], own[1], SIZE);
  EXPECT(t, !keeps_account || !wrong,
         "device_memory_allocate of device %d took memory of device %d, which "
         "was current",
         t->device.id, t->other.id);
  return check_write(t, block, SIZE, 93) &&
         check_verify(t,
                      "a block that was used while another device was current",
                      block, SIZE, 93) &&
         check_give(t, block);
}

// Threads share it: that does no harm where the functions go by the device that
// they are given.
static bool one_for_all(conform_target *t, int current) {
  if (!goes_by_argument(t)) return false;
  return conform_quirk(t,
                       "get_device says %d after set_device(%d): another "
                       "thread called set_device(%d) in between; Tarn gives "
                       "each function its device, by which they go",
                       current, t->device.id, t->other.id);
}

static bool current_per_thread(conform_target *t) {
  visit v = {.target = t, .device = t->other};
  struct C_Device_st current = {.id = -1};
  pthread_t thread;
  CALL(t, set_device, &t->device);
  if (pthread_create(&thread, NULL, visit_device, &v) != 0) {
    return conform_skip(t, "the system gives no thread");
  }
  pthread_join(thread, NULL);
  if (!conform_went_well(t, "set_device on another thread", v.set) ||
      !conform_went_well(t, "get_device on another thread", v.got)) {
    return false;
  }
  EXPECT(t, v.id == t->other.id,
         "get_device says %d on a thread that called set_device(%d)", v.id,
         t->other.id);
  CALL(t, get_device, &current);
  return current.id == t->device.id || one_for_all(t, current.id);
}

#define P2P(dst, src, size) \
  "table->memory_copy_p2p(&other, &d, " dst ", " src ", " size ");\n"
#define QUEUE(dst, src, size)                                           \
  "table->async_memory_copy_p2p(&other, &d, s, " dst ", " src ", " size \
  ");\n"                                                                \
  "table->synchronize_stream(&d, s);\n"
#define AROUND                                                             \
  "// bytes [1001, 2000) of dst are [17, 1016) of src; the others are as " \
  "before\n"

static const conform_check checks[] = {
    {CHECK("two_devices.separate_memory", separate, .two = true),
     .code = "table->device_memory_allocate(&d, &here, 10007);\n"
             "table->device_memory_allocate(&other, &there, 10007);\n"
             "table->memory_copy_h2d(&d, here, bytes, 10007);\n"
             "table->memory_copy_h2d(&other, there, others, 10007);\n"
             "// each holds its own bytes\n"},
    {CHECK("two_devices.deinit_one", deinit_one, .two = true,
           .needs = {NEED(deinit_device)}),
     .code = "table->device_memory_allocate(&d, &block, 4099);\n"
             "table->memory_copy_h2d(&d, block, bytes, 4099);\n"
             "table->deinit_device(&other);\n"
             "table->memory_copy_d2h(&d, back, block, 4099);  // the bytes\n"},
    {CHECK("two_devices.streams_on_both", streams_on_both, .two = true,
           .needs = {NEED(create_stream), NEED(async_memory_copy_h2d),
                     NEED(async_memory_copy_d2h)}),
     .code = "table->set_device(&other), table->create_stream(&other, &s);\n"
             "table->async_memory_copy_h2d(&other, s, block, bytes, size);\n"
             "table->async_memory_copy_d2h(&other, s, back, block, size);\n"
             "table->synchronize_stream(&other, s);\n"
             "assert(memcmp(back, bytes, size) == 0);\n"},
    {CHECK("two_devices.current_per_thread", current_per_thread, .two = true,
           .needs = {NEED(set_device), NEED(get_device)}),
     .code = "table->set_device(&d);\n"
             "// on another thread:\n"
             "table->set_device(&other);\n"
             "// on the first again:\n"
             "table->get_device(&current);\n"
             "assert(current.id == d.id);\n"},
    {CHECK("two_devices.p2p_odd_lengths", route_run_lengths, .two = true,
           .with = ROUTE_P2P, .needs = {NEED(memory_copy_p2p)}),
     .code = "// size: 1, 2, 3, 5, 7, 15 ... 4097, 65537, 1048577\n" P2P(
         "dst", "src", "size") "// dst holds size bytes of "
                               "src; those behind are as "
                               "before\n"},
    {CHECK("two_devices.p2p_at_offsets", route_run_offsets, .two = true,
           .with = ROUTE_P2P, .needs = {NEED(memory_copy_p2p)}),
     .code = P2P("dst + 1001", "src + 17", "999") AROUND},
    {CHECK("two_devices.p2p_the_other_way", route_run_offsets, .two = true,
           .with = ROUTE_P2P | ROUTE_FROM_OTHER,
           .needs = {NEED(memory_copy_p2p)}),
     .code = "table->memory_copy_p2p(&d, &other, dst + 1001, src + 17, "
             "999);\n" AROUND},
    {CHECK("two_devices.p2p_large", route_run_large, .two = true,
           .with = ROUTE_P2P, .needs = {NEED(memory_copy_p2p)}),
     .code = P2P("dst + 3", "src + 5", "(16 << 20) + 1") "// the same bytes in "
                                                         "both\n"},
    {CHECK("two_devices.queued_p2p_odd_lengths", route_run_lengths, .two = true,
           .with = ROUTE_P2P | ROUTE_QUEUED,
           .needs = {NEED(create_stream), NEED(async_memory_copy_p2p)}),
     .code = "// s: a stream of d\n" QUEUE("dst", "src", "size") "// dst holds "
                                                                 "size bytes "
                                                                 "of src\n"},
    {CHECK("two_devices.queued_p2p_at_offsets", route_run_offsets, .two = true,
           .with = ROUTE_P2P | ROUTE_QUEUED,
           .needs = {NEED(create_stream), NEED(async_memory_copy_p2p)}),
     .code =
         "// s: a stream of d\n" QUEUE("dst + 1001", "src + 17", "999") AROUND},
};

const conform_subject conform_two_devices = CONFORM_SUBJECT(checks);
