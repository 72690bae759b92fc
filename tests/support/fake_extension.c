// The fake device's extension.
#include "support/fake_extension.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/slots.h"
#include "support/fake_plugin.h"

fake_ext_habits fake_ext = {.alignment = 256, .granularity = 64 << 10};
fake_ext_ledger fake_ext_seen;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // guards all here

// --- habits ----------------------------------------------------------------

typedef enum mood {
  WORKS,
  REFUSES,  // does nothing, answers fake_ext.answer
  EMPTY,    // does nothing, answers TARN_OK
  STRUCK,   // answers TARN_E_DEVICE; what gives back gives back all the same
} mood;

static mood enter(int id, uint64_t slot) {
  pthread_mutex_lock(&lock);
  fake_ext_seen.called |= slot;
  pthread_mutex_unlock(&lock);
  if (fake_called(id)) return STRUCK;
  if (fake_ext.refusing & slot) return REFUSES;
  return fake_ext.empty & slot ? EMPTY : WORKS;
}

static tarn_status answer(mood m) {
  if (m == REFUSES) return (tarn_status)fake_ext.answer;
  return m == STRUCK ? TARN_E_DEVICE : TARN_OK;
}

// --- alignment, stream order -----------------------------------------------

static tarn_status alignment(int id, size_t *out_align) {
  mood m = enter(id, FAKE_SLOT(alignment));
  *out_align = m == WORKS ? fake_ext.alignment : 0;
  return answer(m);
}

static tarn_status take(size_t size, size_t align, uint64_t *out_addr) {
  *out_addr = (uint64_t)(uintptr_t)fake_take(size, align, fake_ext.misalign);
  return *out_addr != 0 ? TARN_OK : TARN_FULL;
}

static tarn_status allocate_aligned(int id, size_t size, size_t align,
                                    uint64_t *out_addr) {
  mood m = enter(id, FAKE_SLOT(allocate_aligned));
  *out_addr = 0;
  fake_ext_seen.align = align;
  return m == WORKS ? take(size, align, out_addr) : answer(m);
}

static tarn_status allocate_async(int id, void *stream, size_t size,
                                  uint64_t *out_addr) {
  mood m = enter(id, FAKE_SLOT(allocate_async));
  (void)stream;
  *out_addr = 0;
  return m == WORKS ? take(size, 4096, out_addr) : answer(m);
}

typedef struct gift {
  uint64_t addr;
  size_t size;
} gift;

static void give_later(C_Device device, C_Stream stream, void *user_data,
                       C_Status *status) {
  gift g = *(gift *)user_data;
  (void)device;
  (void)stream;
  (void)status;
  free(user_data);
  if (!fake_give((void *)(uintptr_t)g.addr, g.size)) fake_ext_seen.wrong++;
}

static tarn_status deallocate_async(int id, void *stream, uint64_t addr,
                                    size_t size) {
  mood m = enter(id, FAKE_SLOT(deallocate_async));
  if (m == REFUSES) return answer(m);
  gift *g = malloc(sizeof *g);
  ck_assert_ptr_nonnull(g);
  *g = (gift){addr, size};
  if (stream != NULL) {
    fake_queue(stream, give_later, g);
  } else {
    give_later(NULL, NULL, g, NULL);
  }
  return answer(m);
}

// --- ranges ----------------------------------------------------------------

enum { MOST = 256 };

static struct {
  uint64_t addr;  // 0: this entry is free
  size_t size;
} ranges[MOST];

static struct {
  uint64_t addr;  // 0: this entry is free
  size_t size;
  uint64_t memory;
} mappings[MOST];

static size_t memory_sizes[MOST];  // by handle; 0: there is none
static uint64_t next_range = UINT64_C(1) << 44;

static tarn_status range_granularity(int id, size_t *out_size) {
  mood m = enter(id, FAKE_SLOT(range_granularity));
  *out_size = m == WORKS ? fake_ext.granularity : 0;
  return answer(m);
}

static tarn_status range_reserve(int id, size_t size, size_t align,
                                 uint64_t *out_addr) {
  mood m = enter(id, FAKE_SLOT(range_reserve));
  *out_addr = 0;
  fake_ext_seen.align = align;
  if (m != WORKS) return answer(m);
  if (fake_ext.most_range != 0 && size > fake_ext.most_range) {
    return (tarn_status)fake_ext.answer;
  }
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < MOST && *out_addr == 0; i++) {
    if (ranges[i].addr != 0) continue;
    next_range = (next_range + align - 1) & ~(uint64_t)(align - 1);
    ranges[i].addr = *out_addr = next_range + fake_ext.misalign;
    ranges[i].size = size;
    next_range += size;
    fake_ext_seen.ranges++;
  }
  pthread_mutex_unlock(&lock);
  return *out_addr != 0 ? TARN_OK : TARN_FULL;
}

static tarn_status range_release_locked(uint64_t addr, size_t size) {
  for (size_t i = 0; i < MOST; i++) {
    bool inside = mappings[i].addr >= addr && mappings[i].addr - addr < size;
    if (mappings[i].addr != 0 && inside) return TARN_E_INVALID;
  }
  for (size_t i = 0; i < MOST; i++) {
    if (ranges[i].addr != addr || ranges[i].size != size) continue;
    ranges[i].addr = 0;
    fake_ext_seen.ranges--;
    return TARN_OK;
  }
  fake_ext_seen.wrong++;
  return TARN_E_INVALID;
}

static tarn_status range_release(int id, uint64_t addr, size_t size) {
  mood m = enter(id, FAKE_SLOT(range_release));
  if (m == REFUSES) return answer(m);
  pthread_mutex_lock(&lock);
  tarn_status status = range_release_locked(addr, size);
  pthread_mutex_unlock(&lock);
  return m == STRUCK ? TARN_E_DEVICE : status;
}

static tarn_status add_memory(size_t size, uint64_t *out_memory) {
  pthread_mutex_lock(&lock);
  for (size_t i = 1; i < MOST && *out_memory == 0; i++) {
    if (memory_sizes[i] != 0) continue;
    memory_sizes[i] = size;
    *out_memory = i;
    fake_ext_seen.memories++;
  }
  pthread_mutex_unlock(&lock);
  return *out_memory != 0 ? TARN_OK : TARN_FULL;
}

static tarn_status memory_create(int id, size_t size, uint32_t flags,
                                 uint64_t *out_memory) {
  mood m = enter(id, FAKE_SLOT(memory_create));
  *out_memory = 0;
  if (flags & ~TARN_EXT_MEMORY_SHAREABLE) fake_ext_seen.wrong++;
  return m == WORKS ? add_memory(size, out_memory) : answer(m);
}

static tarn_status memory_destroy(int id, uint64_t memory) {
  mood m = enter(id, FAKE_SLOT(memory_destroy));
  if (m == REFUSES) return answer(m);
  pthread_mutex_lock(&lock);
  bool known = memory < MOST && memory_sizes[memory] != 0;
  if (known) memory_sizes[memory] = 0;
  if (known) fake_ext_seen.memories--;
  pthread_mutex_unlock(&lock);
  if (m == STRUCK) return TARN_E_DEVICE;
  return known ? TARN_OK : TARN_E_INVALID;
}

static tarn_status range_map(int id, uint64_t addr, size_t size,
                             uint64_t memory) {
  mood m = enter(id, FAKE_SLOT(range_map));
  if (m != WORKS) return answer(m);
  tarn_status status = TARN_E_INVALID;
  pthread_mutex_lock(&lock);
  bool fits = memory < MOST && memory_sizes[memory] == size;
  for (size_t i = 0; fits && i < MOST; i++) {
    if (mappings[i].addr != 0) continue;
    mappings[i].addr = addr;
    mappings[i].size = size;
    mappings[i].memory = memory;
    fake_ext_seen.mappings++;
    status = TARN_OK;
    break;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

static tarn_status range_unmap(int id, uint64_t addr, size_t size) {
  mood m = enter(id, FAKE_SLOT(range_unmap));
  if (m == REFUSES) return answer(m);
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < MOST; i++) {
    bool inside = mappings[i].addr >= addr && mappings[i].addr - addr < size;
    if (mappings[i].addr == 0 || !inside) continue;
    mappings[i].addr = 0;
    fake_ext_seen.mappings--;
  }
  pthread_mutex_unlock(&lock);
  return answer(m);
}

static tarn_status range_set_access(int id, uint64_t addr, size_t size, int by,
                                    tarn_ext_access access) {
  mood m = enter(id, FAKE_SLOT(range_set_access));
  (void)addr;
  (void)size;
  fake_ext_seen.access = access;
  fake_ext_seen.by = by;
  return answer(m);
}

static bool is_inside(uint64_t addr, uint64_t from, size_t size) {
  return addr != 0 && addr >= from && addr - from < size;
}

static tarn_status range_move(int id, uint64_t from, uint64_t to, size_t size,
                              size_t *out_moved) {
  if (size == 0) return TARN_OK;  // a question, not a call
  mood m = enter(id, FAKE_SLOT(range_move));
  *out_moved = 0;
  if (m != WORKS) return answer(m);
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < MOST; i++) {
    if (is_inside(mappings[i].addr, from, size)) mappings[i].addr += to - from;
  }
  pthread_mutex_unlock(&lock);
  *out_moved = size;
  return TARN_OK;
}

// --- other processes -------------------------------------------------------

static tarn_status memory_export(int id, uint64_t memory, int *out_fd) {
  mood m = enter(id, FAKE_SLOT(memory_export));
  *out_fd = -1;  // not the 0 that it ought to be: no caller may read it
  (void)memory;
  if (m != WORKS) return answer(m);
  *out_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  return *out_fd >= 0 ? TARN_OK : TARN_E_DEVICE;
}

static tarn_status memory_import(int id, int fd, size_t size,
                                 uint64_t *out_memory) {
  mood m = enter(id, FAKE_SLOT(memory_import));
  *out_memory = 0;
  if (m != WORKS) return answer(m);
  if (fcntl(fd, F_GETFD) < 0) return TARN_E_INVALID;
  return add_memory(size, out_memory);
}

// A handle is the address, and an import is the same memory again.
static tarn_status allocation_export(int id, uint64_t addr, size_t size,
                                     void *out_handle) {
  mood m = enter(id, FAKE_SLOT(allocation_export));
  memset(out_handle, 0x77, TARN_EXT_HANDLE_SIZE);  // no caller may read it
  (void)size;
  if (m != WORKS) return answer(m);
  memcpy(out_handle, &addr, sizeof addr);
  return TARN_OK;
}

static tarn_status allocation_import(int id, const void *handle, size_t size,
                                     uint64_t *out_addr) {
  mood m = enter(id, FAKE_SLOT(allocation_import));
  *out_addr = 0;
  (void)size;
  if (m != WORKS) return answer(m);
  memcpy(out_addr, handle, sizeof *out_addr);
  fake_ext_seen.imports++;
  return TARN_OK;
}

static tarn_status allocation_close(int id, uint64_t addr, size_t size) {
  mood m = enter(id, FAKE_SLOT(allocation_close));
  (void)addr;
  (void)size;
  if (m == REFUSES) return answer(m);
  fake_ext_seen.imports--;
  return answer(m);
}

// --- what is known ---------------------------------------------------------

static tarn_status host_register(int id, void *ptr, size_t size) {
  mood m = enter(id, FAKE_SLOT(host_register));
  (void)ptr;
  (void)size;
  if (m != WORKS) return answer(m);
  fake_ext_seen.registered++;
  return TARN_OK;
}

static tarn_status host_unregister(int id, void *ptr) {
  mood m = enter(id, FAKE_SLOT(host_unregister));
  (void)ptr;
  if (m == REFUSES) return answer(m);
  fake_ext_seen.registered--;
  return answer(m);
}

static tarn_status default_stream(int id, void **out_stream) {
  mood m = enter(id, FAKE_SLOT(default_stream));
  *out_stream = m == WORKS ? fake_ext.stream : NULL;
  return answer(m);
}

// A failure leaves a yes in the output: no caller may read it.
static tarn_status stream_capturing(int id, void *stream, bool *out_capturing) {
  mood m = enter(id, FAKE_SLOT(stream_capturing));
  *out_capturing = m != WORKS || stream == fake_ext.capturing;
  return answer(m);
}

static tarn_status pointer_query(int id, uint64_t addr, tarn_ext_pointer *out) {
  mood m = enter(id, FAKE_SLOT(pointer_query));
  (void)addr;
  if (fake_ext.asked != NULL) fake_ext.asked();
  if (m == WORKS) *out = fake_ext.pointer;
  return answer(m);
}

static void error_text(int id, void *stream, char *out, size_t out_size) {
  (void)id;
  const char *text = stream != NULL ? fake_ext.stream_text : fake_ext.text;
  if (text != NULL) snprintf(out, out_size, "%s", text);
}

static void describe(int id, char *out, size_t out_size) {
  (void)id;
  const char *text = fake_ext.description;
  if (text != NULL) memcpy(out, text, strnlen(text, out_size));
}

// --- rows ------------------------------------------------------------------

static tarn_status note_rows(mood m, void *stream, const tarn_rows *rows) {
  fake_ext_seen.stream = stream;
  fake_ext_seen.rows = *rows;
  return answer(m);
}

static tarn_status gather(int id, void *stream, const tarn_rows *rows) {
  return note_rows(enter(id, FAKE_SLOT(gather)), stream, rows);
}

static tarn_status scatter(int id, void *stream, const tarn_rows *rows) {
  return note_rows(enter(id, FAKE_SLOT(scatter)), stream, rows);
}

static tarn_status scatter_add(int id, void *stream, const tarn_rows *rows) {
  return note_rows(enter(id, FAKE_SLOT(scatter_add)), stream, rows);
}

// --- the table -------------------------------------------------------------

#define ENTRY(name) .name = name,

static const tarn_device_ext complete = {
    .struct_size = sizeof complete,
    .version = TARN_DEVICE_EXT_VERSION,
    .error_text = error_text,
    .describe = describe,
    TARN__COMMON_EXT_SLOTS(ENTRY) TARN__COMMON_EXT_MORE_SLOTS(ENTRY)};

static tarn_device_ext offered;

const tarn_device_ext *fake_extension(void) {
  if (!fake_ext.there) return NULL;
  offered = complete;
  offered.flags = fake_ext.flags;
  if (fake_ext.version != 0) offered.version = fake_ext.version;
  if (fake_ext.struct_size != 0) offered.struct_size = fake_ext.struct_size;
  void **slots = (void **)(void *)&offered;
  size_t first = offsetof(tarn_device_ext, alignment) / sizeof *slots;
  for (size_t i = first; i < sizeof offered / sizeof *slots; i++) {
    if (fake_ext.missing & (UINT64_C(1) << (i - first))) slots[i] = NULL;
  }
  return &offered;
}
