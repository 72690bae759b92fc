// Memory of devices: what plug-ins of the ABI allocate.
//
// A program that asks dlsym for "InitPlugin" gets a function of the recorder,
// which calls the plug-in's and then puts its own in front of the functions of
// the table that allocate. Those have no context by which one could tell whose
// they are, so each plug-in has a set of wrappers of its own.
//
// dlsym: its result depends on its caller (RTLD_NEXT), which the C library
// reads from the return address. So the dlsym here is a stub that only chooses
// a function and jumps there, with the stack unchanged.
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "record/events.h"
#include "record/file.h"
#include "record/real.h"
#include "record/settings.h"
#include "record/texts.h"
#include "tarn/device_abi.h"

enum { PLUGINS = 8, DEVICES = 64, TYPE_SIZE = 64 };

typedef void init_plugin(CustomRuntimeParams *params);
typedef C_Status allocate(const C_Device device, void **out, size_t size);
typedef C_Status deallocate(const C_Device device, void *ptr, size_t size);

// Whose memory a function gives.
typedef enum memory { OF_DEVICE, OF_HOST, OF_BOTH, MEMORIES } memory;

typedef struct plugin {
  _Atomic(init_plugin *) init;  // the plug-in's own; NULL: a free place
  allocate *take[MEMORIES];
  deallocate *give[MEMORIES];
  char type[TYPE_SIZE];
} plugin;

static plugin plugins[PLUGINS];

// A device of the trace: number |index| + 1. Its properties are set once it is
// KNOWN.
static struct {
  const plugin *from;
  _Atomic int state;  // FREE, then TAKEN, then KNOWN
  int id;
  memory kind;
  _Atomic unsigned defined;  // 1 + the generation of the file that has it
} devices[DEVICES];

enum { FREE, TAKEN, KNOWN };

// ---------------------------------------------------------------------------
// Devices
// ---------------------------------------------------------------------------

static bool is_device(size_t index, const plugin *p, int id, memory kind) {
  return devices[index].from == p && devices[index].id == id &&
         devices[index].kind == kind;
}

// 0: there are too many. Two threads that see a device first at once may give
// it two numbers, of one name.
static uint32_t device_number(const plugin *p, const C_Device device,
                              memory kind) {
  int id = device != NULL ? device->id : 0;
  for (uint32_t i = 0; i < DEVICES; i++) {
    int state = FREE;
    if (atomic_compare_exchange_strong(&devices[i].state, &state, TAKEN)) {
      devices[i].from = p;
      devices[i].id = id;
      devices[i].kind = kind;
      atomic_store(&devices[i].state, KNOWN);
      return i + 1;
    }
    if (state == KNOWN && is_device(i, p, id, kind)) return i + 1;
  }
  return 0;
}

// Defines device |number| in the page of |mine|, unless the file has it.
static void define(slot *mine, uint32_t number) {
  static const char *const suffixes[MEMORIES] = {"", "/host", "/unified"};
  char name[TYPE_SIZE + 32];
  size_t index = number - 1;
  unsigned now = 1 + file_generation();
  if (atomic_exchange(&devices[index].defined, now) == now) return;
  snprintf(name, sizeof name, "%s:%d%s", devices[index].from->type,
           devices[index].id, suffixes[devices[index].kind]);
  uint64_t text = texts_number(mine, name, strlen(name));
  if (!slots_have_room(mine, (size_t)4 * TARN__LOG_MOST_NUMBER, NULL)) return;
  unsigned char *at =
      tarn__log_put_definition(&mine->writer, TARN__LOG_DEVICE, number);
  at = tarn__log_put_number(at, text);
  tarn__log_publish(&mine->writer, at);
}

// ---------------------------------------------------------------------------
// What the wrappers do
// ---------------------------------------------------------------------------

static void note(const plugin *p, const C_Device device, memory kind,
                 happening what) {
  what.device = device_number(p, device, kind);
  what.define = define;
  if (what.device != 0) events_note(&what);
}

static C_Status take(const plugin *p, memory kind, const C_Device device,
                     void **out, size_t size) {
  C_Status status = p->take[kind](device, out, size);
  if (!settings_wants(size)) return status;
  if (status == C_SUCCESS) {
    note(p, device, kind,
         (happening){.kind = TARN__LOG_ALLOC, .address = *out, .size = size});
  } else if (status == C_FAILED) {
    note(p, device, kind, (happening){.kind = TARN__LOG_OOM, .size = size});
  }
  return status;
}

// A host may not know the size any more.
static C_Status give(const plugin *p, memory kind, const C_Device device,
                     void *ptr, size_t size) {
  bool counts = record_settings.threshold != SIZE_MAX && ptr != NULL &&
                (size == 0 || settings_wants(size));
  uint64_t number = counts ? file_number() : 0;
  C_Status status = p->give[kind](device, ptr, size);
  if (counts && status == C_SUCCESS) {
    note(p, device, kind,
         (happening){.kind = TARN__LOG_FREE, .number = number, .address = ptr});
  }
  return status;
}

static void put_between(plugin *p, memory kind, allocate **their_take,
                        deallocate **their_give, allocate *own_take,
                        deallocate *own_give) {
  if (*their_take == NULL || *their_give == NULL || *their_take == own_take)
    return;
  p->take[kind] = *their_take;
  p->give[kind] = *their_give;
  *their_take = own_take;
  *their_give = own_give;
}

typedef struct wrappers {
  init_plugin *init;
  allocate *take[MEMORIES];
  deallocate *give[MEMORIES];
} wrappers;

static void init(plugin *p, const wrappers *own, CustomRuntimeParams *params) {
  atomic_load (&p->init)(params);
  if (params == NULL || params->interface == NULL) return;
  C_DeviceInterface *table = params->interface;
  if (table->size < offsetof(C_DeviceInterface, memory_copy_h2d)) return;
  snprintf(p->type, sizeof p->type, "%s",
           params->device_type != NULL ? params->device_type : "device");
  put_between(p, OF_DEVICE, &table->device_memory_allocate,
              &table->device_memory_deallocate, own->take[OF_DEVICE],
              own->give[OF_DEVICE]);
  put_between(p, OF_HOST, &table->host_memory_allocate,
              &table->host_memory_deallocate, own->take[OF_HOST],
              own->give[OF_HOST]);
  put_between(p, OF_BOTH, &table->unified_memory_allocate,
              &table->unified_memory_deallocate, own->take[OF_BOTH],
              own->give[OF_BOTH]);
}

// ---------------------------------------------------------------------------
// The wrappers of each plug-in
// ---------------------------------------------------------------------------

static const wrappers wrappers_of[PLUGINS];

#define WRAP_MEMORY(n, kind)                                      \
  static C_Status take_##kind##_##n(const C_Device d, void **out, \
                                    size_t size) {                \
    return take(&plugins[n], kind, d, out, size);                 \
  }                                                               \
  static C_Status give_##kind##_##n(const C_Device d, void *ptr,  \
                                    size_t size) {                \
    return give(&plugins[n], kind, d, ptr, size);                 \
  }

#define WRAP(n)                                       \
  WRAP_MEMORY(n, OF_DEVICE)                           \
  WRAP_MEMORY(n, OF_HOST)                             \
  WRAP_MEMORY(n, OF_BOTH)                             \
  static void init_##n(CustomRuntimeParams *params) { \
    init(&plugins[n], &wrappers_of[n], params);       \
  }

#define WRAPPERS(n)                                                       \
  {                                                                       \
    init_##n, {take_OF_DEVICE_##n, take_OF_HOST_##n, take_OF_BOTH_##n}, { \
      give_OF_DEVICE_##n, give_OF_HOST_##n, give_OF_BOTH_##n              \
    }                                                                     \
  }

WRAP(0)
WRAP(1)
WRAP(2)
WRAP(3)
WRAP(4)
WRAP(5)
WRAP(6)
WRAP(7)

static const wrappers wrappers_of[PLUGINS] = {
    WRAPPERS(0), WRAPPERS(1), WRAPPERS(2), WRAPPERS(3),
    WRAPPERS(4), WRAPPERS(5), WRAPPERS(6), WRAPPERS(7)};

// ---------------------------------------------------------------------------
// dlsym
// ---------------------------------------------------------------------------

// The wrapper for |theirs|, the same each time; NULL: there are none left.
static init_plugin *wrapper_of(init_plugin *theirs) {
  for (size_t i = 0; i < PLUGINS; i++) {
    init_plugin *has = NULL;
    if (atomic_compare_exchange_strong(&plugins[i].init, &has, theirs) ||
        has == theirs) {
      return wrappers_of[i].init;
    }
  }
  return NULL;
}

// In place of dlsym, with a handle of a library: then the caller does not
// matter.
static void *find_plugin(void *handle, const char *name) {
  void *found = real()->dlsym(handle, name);
  if (found == NULL) return NULL;
  init_plugin *own = wrapper_of(__extension__(init_plugin *) found);
  return own != NULL ? __extension__(void *) own : found;
}

typedef void *find_function(void *handle, const char *name);

// The target of the stub.
find_function *record_dlsym_choose(void *handle, const char *name);
find_function *record_dlsym_choose(void *handle, const char *name) {
  find_function *theirs = real()->dlsym;
  if (record_settings.threshold == SIZE_MAX || name == NULL ||
      handle == RTLD_NEXT || handle == RTLD_DEFAULT ||
      strcmp(name, "InitPlugin") != 0) {
    return theirs;
  }
  return find_plugin;
}

#if defined(__x86_64__)
__asm__(
    ".text\n"
    ".globl dlsym\n"
    ".type dlsym, @function\n"
    "dlsym:\n"
    "  .cfi_startproc\n"
    "  endbr64\n"
    "  pushq %rdi\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  pushq %rsi\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  subq $8, %rsp\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  call record_dlsym_choose\n"
    "  addq $8, %rsp\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  popq %rsi\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  popq %rdi\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  jmp *%rax\n"
    "  .cfi_endproc\n"
    ".size dlsym, .-dlsym\n");
#elif defined(__aarch64__)
__asm__(
    ".text\n"
    ".globl dlsym\n"
    ".type dlsym, %function\n"
    "dlsym:\n"
    "  .cfi_startproc\n"
    "  stp x29, x30, [sp, #-32]!\n"
    "  .cfi_def_cfa_offset 32\n"
    "  .cfi_offset x29, -32\n"
    "  .cfi_offset x30, -24\n"
    "  stp x0, x1, [sp, #16]\n"
    "  bl record_dlsym_choose\n"
    "  mov x16, x0\n"
    "  ldp x0, x1, [sp, #16]\n"
    "  ldp x29, x30, [sp], #32\n"
    "  .cfi_def_cfa_offset 0\n"
    "  br x16\n"
    "  .cfi_endproc\n"
    ".size dlsym, .-dlsym\n");
#else
#error "no dlsym for this processor"
#endif
