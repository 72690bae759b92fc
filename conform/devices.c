// The plug-in's devices: how many, which, made ready, made current.
#include <string.h>

#include "check.h"

enum { LIST_ROOM = CHECK_DEVICES_MAX + 1 };

// That it is so is what the runner sees when it makes the devices ready.
static bool initialize(conform_target *t) {
  return t->ready;
}

static bool count(conform_target *t) {
  size_t first = 0;
  size_t second = 0;
  CALL(t, get_device_count, &first);
  CALL(t, get_device_count, &second);
  EXPECT(t, first > 0, "get_device_count says 0");
  EXPECT(t, first == second, "get_device_count says %zu, then %zu", first,
         second);
  return true;
}

static bool list_distinct(conform_target *t) {
  for (size_t i = 0; i < t->count; i++) {
    for (size_t j = 0; j < i; j++) {
      EXPECT(t, t->ids[i] != t->ids[j], "get_device_list says %zu twice",
             t->ids[i]);
    }
  }
  return true;
}

static bool list_bounds(conform_target *t) {
  static const size_t untouched = 0x5a5a5a5a5a5a5a5a;
  static size_t ids[LIST_ROOM];
  for (size_t i = 0; i < LIST_ROOM; i++)
    ids[i] = untouched;
  CALL(t, get_device_list, ids);
  for (size_t i = 0; i < LIST_ROOM; i++) {
    bool within = i < t->count;
    EXPECT(t, !within || ids[i] == t->ids[i],
           "get_device_list says %zu at [%zu], but said %zu before", ids[i], i,
           t->ids[i]);
    EXPECT_QUIRK(t, within || ids[i] == untouched,
                 "get_device_list wrote [%zu], but there are %zu devices; "
                 "Tarn leaves room and takes %zu",
                 i, t->count, t->count);
  }
  return true;
}

// A block that is written and read shows that the device works.
static bool works(conform_target *t) {
  return check_use(t, "a block", 4097, 1);
}

static bool init_twice(conform_target *t) {
  struct C_Device_st again = {.id = (int)t->ids[t->wanted]};
  CALL(t, init_device, &again);
  EXPECT(t, again.id == t->device.id,
         "init_device made id %d of %zu, and %d the second time", t->device.id,
         t->ids[t->wanted], again.id);
  return works(t);
}

static bool init_keeps_memory(conform_target *t) {
  void *block = NULL;
  struct C_Device_st again = {.id = (int)t->ids[t->wanted]};
  if (!check_take(t, 1001, &block) || !check_write(t, block, 1001, 2))
    return false;
  CALL(t, init_device, &again);
  return check_verify(t, "a block from before init_device was called again",
                      block, 1001, 2);
}

static bool deinit_init(conform_target *t) {
  CALL(t, deinit_device, &t->device);
  t->device.id = (int)t->ids[t->wanted];
  if (t->abi->init_device != NULL) CALL(t, init_device, &t->device);
  C_Status got =
      t->abi->set_device != NULL ? t->abi->set_device(&t->device) : C_SUCCESS;
  return conform_went_well(t, "set_device after deinit_device and init_device",
                           got) &&
         works(t);
}

static bool set_get(conform_target *t) {
  struct C_Device_st current = {.id = -1};
  CALL(t, set_device, &t->device);
  CALL(t, get_device, &current);
  EXPECT(t, current.id == t->device.id,
         "get_device says %d after set_device(%d)", current.id, t->device.id);
  return true;
}

static bool set_changes(conform_target *t) {
  struct C_Device_st current = {.id = -1};
  CALL(t, set_device, &t->other);
  CALL(t, get_device, &current);
  EXPECT(t, current.id == t->other.id,
         "get_device says %d after set_device(%d)", current.id, t->other.id);
  return set_get(t);
}

static bool synchronize(conform_target *t) {
  CALL(t, synchronize_device, &t->device);
  CALL(t, synchronize_device, &t->device);
  return works(t);
}

// An id that no device has. C_SUCCESS would hide a wrong call for ever.
static bool wrong_id_current(conform_target *t) {
  struct C_Device_st wrong = {.id = 1 << 20};
  C_Status got = t->abi->set_device(&wrong);
  if (!set_get(t)) return false;
  EXPECT_QUIRK(t, got != C_SUCCESS && got != C_WARNING,
               "set_device(%d) answered %s, though there is no such device; "
               "Tarn names only devices that were listed",
               wrong.id, conform_status(got));
  return true;
}

static bool wrong_id_memory(conform_target *t) {
  struct C_Device_st wrong = {.id = 1 << 20};
  void *block = NULL;
  C_Status got = t->abi->device_memory_allocate(&wrong, &block, 256);
  if (!works(t)) return false;
  EXPECT_QUIRK(t, (got != C_SUCCESS && got != C_WARNING) || block == NULL,
               "device_memory_allocate of device %d, which does not exist, "
               "answered %s and %p; Tarn names only devices that were listed",
               wrong.id, conform_status(got), block);
  return true;
}

static bool finalize(conform_target *t) {
  if (t->abi->deinit_device != NULL) {
    CALL(t, deinit_device, &t->device);
    if (t->count > 1) CALL(t, deinit_device, &t->other);
  }
  if (t->abi->finalize != NULL &&
      !conform_went_well(t, "finalize", t->abi->finalize())) {
    return false;
  }
  t->ready = false;
  return true;
}

static const conform_check checks[] = {
    {CHECK("devices.initialize", initialize),
     .code = "assert(table->initialize() == C_SUCCESS);\n"
             "table->get_device_count(&count), table->get_device_list(ids);\n"
             "struct C_Device_st d = {.id = (int)ids[0]};\n"
             "assert(table->init_device(&d) == C_SUCCESS);\n"},
    {CHECK("devices.count", count),
     .code = "size_t count = 0;\n"
             "assert(table->get_device_count(&count) == C_SUCCESS);\n"
             "assert(count > 0);  // and the same when asked again\n"},
    {CHECK("devices.list_distinct", list_distinct,
           .needs = {NEED(get_device_list)}),
     .code = "size_t ids[count];\n"
             "assert(table->get_device_list(ids) == C_SUCCESS);\n"
             "assert(ids[0] != ids[1]);  // and so on\n"},
    {CHECK("devices.list_bounds", list_bounds,
           .needs = {NEED(get_device_list)}),
     .code =
         "size_t ids[4097];\n"
         "memset(ids, 0x5a, sizeof ids);\n"
         "table->get_device_list(ids);  // writes count of them, no more\n"},
    {CHECK("devices.init_twice", init_twice, .needs = {NEED(init_device)}),
     .code = "table->init_device(&d);\n"
             "assert(table->init_device(&d) == C_SUCCESS);\n"
             "table->device_memory_allocate(&d, &block, 4097);  // as usual\n"},
    {CHECK("devices.init_keeps_memory", init_keeps_memory,
           .needs = {NEED(init_device)}),
     .code = "table->device_memory_allocate(&d, &block, 1001);\n"
             "table->memory_copy_h2d(&d, block, bytes, 1001);\n"
             "table->init_device(&d);\n"
             "table->memory_copy_d2h(&d, back, block, 1001);  // the bytes\n"},
    {CHECK("devices.deinit_and_init", deinit_init,
           .needs = {NEED(deinit_device)}),
     .code = "table->deinit_device(&d);\n"
             "table->init_device(&d), table->set_device(&d);\n"
             "table->device_memory_allocate(&d, &block, 4097);  // as usual\n"},
    {CHECK("devices.set_and_get", set_get,
           .needs = {NEED(set_device), NEED(get_device)}),
     .code = "table->set_device(&d);\n"
             "struct C_Device_st current;\n"
             "table->get_device(&current);\n"
             "assert(current.id == d.id);\n"},
    {CHECK("devices.set_changes_it", set_changes, .two = true,
           .needs = {NEED(set_device), NEED(get_device)}),
     .code = "table->set_device(&other), table->get_device(&current);\n"
             "assert(current.id == other.id);\n"
             "table->set_device(&d), table->get_device(&current);\n"
             "assert(current.id == d.id);\n"},
    {CHECK("devices.synchronize_idle", synchronize,
           .needs = {NEED(synchronize_device)}),
     .code = "assert(table->synchronize_device(&d) == C_SUCCESS);\n"
             "assert(table->synchronize_device(&d) == C_SUCCESS);\n"},
    {CHECK("devices.wrong_id_is_not_current", wrong_id_current,
           .needs = {NEED(set_device), NEED(get_device)}),
     .code = "struct C_Device_st wrong = {.id = 1 << 20};\n"
             "assert(table->set_device(&wrong) == C_ERROR);\n"
             "table->get_device(&current);  // still the one from before\n"},
    {CHECK("devices.wrong_id_has_no_memory", wrong_id_memory),
     .code =
         "struct C_Device_st wrong = {.id = 1 << 20};\n"
         "void *block = NULL;\n"
         "C_Status got = table->device_memory_allocate(&wrong, &block, 256);"
         "\n"
         "assert(got == C_ERROR && block == NULL);\n"},
    {CHECK("devices.finalize", finalize, .last = true),
     .code = "assert(table->deinit_device(&d) == C_SUCCESS);\n"
             "assert(table->finalize() == C_SUCCESS);\n"},
};

const conform_subject conform_devices = CONFORM_SUBJECT(checks);
