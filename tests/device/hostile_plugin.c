// hostile_plugin.c - a plug-in, as a shared object, that misbehaves as told.
//
// Left alone it is a well-behaved device type "hostile" of two devices in the
// host's memory, whose streams do at once what they are given. The environment
// variable TARN_HOSTILE holds a recipe (hostile_recipe.h), which is read by
// InitPlugin. The recipes, and what Tarn answers to each of them, are in
// test_device_hostile.c.
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/slots.h"
#include "hostile_recipe.h"
#include "tarn/device_abi.h"

enum { DEVICES = 2, ALIGN = 256 };

#define BEGIN(function) HOSTILE_BEGIN(C_Status, function)
#define END(function) HOSTILE_END(C_Status, function)

// --- devices ---------------------------------------------------------------

static _Thread_local int current = -1;

// Which of its devices a call is for: some plug-ins never look at the argument.
static int id_of(const struct C_Device_st *device) {
  return hostile_given("ignores_device") ? current : device->id;
}

static C_Status initialize(void) {
  BEGIN("initialize");
  END("initialize");
}

static C_Status finalize(void) {
  BEGIN("finalize");
  END("finalize");
}

static C_Status init_device(const C_Device device) {
  BEGIN("init_device");
  if (hostile_given("new_id")) device->id = (int)hostile_number("new_id", 0);
  END("init_device");
}

static C_Status set_device(const C_Device device) {
  BEGIN("set_device");
  current = device->id;
  if (hostile_given("errno")) errno = (int)hostile_number("errno", 0);
  END("set_device");
}

static C_Status get_device(const C_Device device) {
  device->id = current;
  return C_SUCCESS;
}

static C_Status deinit_device(const C_Device device) {
  (void)device;
  BEGIN("deinit_device");
  END("deinit_device");
}

static C_Status get_device_count(size_t *count) {
  BEGIN("get_device_count");
  *count = hostile_number("count", DEVICES);
  END("get_device_count");
}

static C_Status get_device_list(size_t *ids) {
  BEGIN("get_device_list");
  for (size_t i = 0; i < hostile_number("lists", DEVICES); i++)
    ids[i] = i;
  ids[0] = hostile_number("first_id", ids[0]);
  ids[1] = hostile_number("second_id", ids[1]);
  END("get_device_list");
}

// --- streams and events ----------------------------------------------------

struct C_Stream_st {
  int id;
};

struct C_Event_st {
  int id;
};

static C_Status create_stream(const C_Device device, C_Stream *stream) {
  BEGIN("create_stream");
  *stream = calloc(1, sizeof **stream);
  if (*stream == NULL) return C_FAILED;
  (*stream)->id = device->id;
  hostile_live++;
  END("create_stream");
}

static C_Status destroy_stream(const C_Device device, C_Stream stream) {
  (void)device;
  BEGIN("destroy_stream");
  free(stream);
  hostile_live--;
  END("destroy_stream");
}

static C_Status query_stream(const C_Device device, C_Stream stream) {
  (void)device;
  (void)stream;
  BEGIN("query_stream");
  END("query_stream");
}

static C_Status synchronize_stream(const C_Device device, C_Stream stream) {
  (void)device;
  (void)stream;
  BEGIN("synchronize_stream");
  END("synchronize_stream");
}

static C_Status stream_add_callback(const C_Device device, C_Stream stream,
                                    C_Callback callback, void *user_data) {
  BEGIN("stream_add_callback");
  C_Status status = (C_Status)(int)hostile_number("callback.status", C_SUCCESS);
  callback(device, stream, user_data,
           hostile_given("callback.null_status") ? NULL : &status);
  END("stream_add_callback");
}

static C_Status create_event(const C_Device device, C_Event *event) {
  BEGIN("create_event");
  *event = calloc(1, sizeof **event);
  if (*event == NULL) return C_FAILED;
  (*event)->id = device->id;
  hostile_live++;
  END("create_event");
}

static C_Status destroy_event(const C_Device device, C_Event event) {
  (void)device;
  BEGIN("destroy_event");
  free(event);
  hostile_live--;
  END("destroy_event");
}

static C_Status record_event(const C_Device device, C_Stream stream,
                             C_Event event) {
  (void)device;
  (void)stream;
  (void)event;
  BEGIN("record_event");
  END("record_event");
}

static C_Status query_event(const C_Device device, C_Event event) {
  (void)device;
  (void)event;
  BEGIN("query_event");
  END("query_event");
}

static C_Status synchronize_event(const C_Device device, C_Event event) {
  (void)device;
  (void)event;
  BEGIN("synchronize_event");
  END("synchronize_event");
}

static C_Status stream_wait_event(const C_Device device, C_Stream stream,
                                  C_Event event) {
  (void)device;
  (void)stream;
  (void)event;
  BEGIN("stream_wait_event");
  END("stream_wait_event");
}

static C_Status synchronize_device(const C_Device device) {
  (void)device;
  BEGIN("synchronize_device");
  END("synchronize_device");
}

// --- memory ----------------------------------------------------------------

static size_t misalign(void) {
  return hostile_number("misalign", 0);
}

static C_Status take(const char *function, void **ptr, size_t size) {
  static void *first;
  if (hostile_given("null_with")) {
    *ptr = NULL;
    return (C_Status)(int)hostile_number("null_with", 0);
  }
  BEGIN(function);
  bool repeats = hostile_given("same_address") &&
                 strcmp(function, "device_memory_allocate") == 0;
  if (repeats && first != NULL) {
    *ptr = first;
    hostile_live++;
    return C_SUCCESS;
  }
  char *memory = NULL;
  if (posix_memalign((void **)&memory, ALIGN, size + misalign()) != 0) {
    return C_FAILED;
  }
  *ptr = memory + misalign();
  if (repeats) first = *ptr;
  hostile_live++;
  END(function);
}

static C_Status give(const char *function, void *ptr) {
  BEGIN(function);
  // An address that is given out twice is given back twice.
  size_t off = (uintptr_t)ptr % ALIGN;
  if (!hostile_given("same_address")) free((char *)ptr - off);
  hostile_live--;
  END(function);
}

#define DEFINE_MEMORY(kind)                                           \
  static C_Status kind##_allocate(const C_Device device, void **ptr,  \
                                  size_t size) {                      \
    (void)device;                                                     \
    return take(#kind "_allocate", ptr, size);                        \
  }                                                                   \
  static C_Status kind##_deallocate(const C_Device device, void *ptr, \
                                    size_t size) {                    \
    (void)device;                                                     \
    (void)size;                                                       \
    return give(#kind "_deallocate", ptr);                            \
  }

DEFINE_MEMORY(device_memory)
DEFINE_MEMORY(host_memory)
DEFINE_MEMORY(unified_memory)

static C_Status device_memory_set(const C_Device device, void *ptr,
                                  unsigned char value, size_t size) {
  (void)device;
  BEGIN("device_memory_set");
  memset(ptr, value, size);
  END("device_memory_set");
}

#define DEFINE_COPY(direction)                                              \
  static C_Status memory_copy_##direction(const C_Device device, void *dst, \
                                          const void *src, size_t size) {   \
    (void)device;                                                           \
    BEGIN("memory_copy_" #direction);                                       \
    memmove(dst, src, size);                                                \
    END("memory_copy_" #direction);                                         \
  }                                                                         \
  static C_Status async_memory_copy_##direction(                            \
      const C_Device device, C_Stream stream, void *dst, const void *src,   \
      size_t size) {                                                        \
    (void)device;                                                           \
    (void)stream;                                                           \
    BEGIN("async_memory_copy_" #direction);                                 \
    memmove(dst, src, size);                                                \
    END("async_memory_copy_" #direction);                                   \
  }

DEFINE_COPY(h2d)
DEFINE_COPY(d2h)
DEFINE_COPY(d2d)

static C_Status memory_copy_p2p(const C_Device dst_device,
                                const C_Device src_device, void *dst,
                                const void *src, size_t size) {
  (void)dst_device;
  (void)src_device;
  BEGIN("memory_copy_p2p");
  memmove(dst, src, size);
  END("memory_copy_p2p");
}

static C_Status async_memory_copy_p2p(const C_Device dst_device,
                                      const C_Device src_device,
                                      C_Stream stream, void *dst,
                                      const void *src, size_t size) {
  (void)dst_device;
  (void)src_device;
  (void)stream;
  BEGIN("async_memory_copy_p2p");
  memmove(dst, src, size);
  END("async_memory_copy_p2p");
}

// --- sizes -----------------------------------------------------------------

// Small: what a pool reserves of addresses goes by it, and those are malloc's,
// which a sanitizer writes about.
static C_Status device_memory_stats(const C_Device device, size_t *total,
                                    size_t *available) {
  BEGIN("device_memory_stats");
  size_t megabytes = id_of(device) == 1 ? 128 : 64;
  *total = hostile_number("total", megabytes << 20);
  *available = hostile_number("free", *total / 2);
  END("device_memory_stats");
}

#define DEFINE_SIZE(function, otherwise)                          \
  static C_Status function(const C_Device device, size_t *size) { \
    (void)device;                                                 \
    BEGIN(#function);                                             \
    *size = hostile_number(#function, otherwise);                 \
    END(#function);                                               \
  }

DEFINE_SIZE(device_min_chunk_size, ALIGN)
DEFINE_SIZE(device_max_chunk_size, 1 << 20)
DEFINE_SIZE(device_max_alloc_size, 16 << 20)
DEFINE_SIZE(device_extra_padding_size, 0)
DEFINE_SIZE(device_init_alloc_size, 1 << 20)
DEFINE_SIZE(device_realloc_size, 1 << 20)

// --- the table -------------------------------------------------------------

#define FILL(function)                                       \
  if (!hostile_given(hostile_joined("without.", #function))) \
    table->function = function;

static void fill(C_DeviceInterface *table) {
  FILL(initialize)
  FILL(finalize)
  FILL(get_device_count)
  FILL(get_device_list)
  TARN__COMMON_ABI_SLOTS(FILL)
}

enum { KNOWN_END = offsetof(C_DeviceInterface, beyond) };

static void treat_table(C_DeviceInterface *table) {
  size_t size = table->size;
  char *bytes = (char *)table;
  if (!hostile_given("clears_nothing"))
    memset(bytes, 0, hostile_number("clears", size));
  table->size = hostile_number("size", size);
  fill(table);
  // A call of one of these functions would crash.
  if (hostile_given("garbage_beyond"))
    memset(bytes + KNOWN_END, 0x5a, 912 - KNOWN_END);
}

// --- InitPlugin ------------------------------------------------------------

static char *type_name(void) {
  static char name[4096];
  const char *type = hostile_word("type");
  if (hostile_given("type.null")) return NULL;
  if (hostile_given("type.endless")) {
    memset(name, 'a', sizeof name);
    return name;
  }
  strcpy(name, "hostile");
  if (type != NULL) {
    size_t length = strcspn(type, ",");
    memcpy(name, type, length);
    name[length] = '\0';
  }
  return name;
}

// What a careless plug-in does to the process that loads it.
static void meddle(void) {
  if (hostile_given("forks")) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    (void)waitpid(child, NULL, 0);
  }
  if (hostile_given("locale")) (void)setlocale(LC_ALL, "");
  if (hostile_given("signals")) {
    sigset_t most;
    sigfillset(&most);
    sigdelset(&most, SIGALRM);  // the test's own guard against hanging
    sigprocmask(SIG_SETMASK, &most, NULL);
  }
}

void InitPlugin(CustomRuntimeParams *params) {
  static C_DeviceInterface other_table;
  const char *told = getenv("TARN_HOSTILE");
  if (told != NULL) hostile_recipe = told;
  C_DeviceInterface *table = params->interface;
  if (hostile_number("accepts.params", params->size) != params->size) return;
  if (hostile_number("accepts.table", table->size) != table->size) return;
  meddle();
  treat_table(table);
  if (hostile_given("own_table")) params->interface = &other_table;
  if (hostile_given("params_beyond")) memset(params + 1, 0x5a, 256);
  if (hostile_given("params_size"))
    params->size = hostile_number("params_size", 0);
  params->version.major = hostile_number("version", 0);
  params->version.minor = hostile_number("version", 1);
  params->version.patch = hostile_number("version", 1);
  params->sub_device_type = hostile_given("sub_garbage") ? (char *)8 : NULL;
  params->device_type = type_name();
}
