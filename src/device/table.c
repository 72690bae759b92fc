// The tables of a plug-in: which functions they must have, and which they have.
#include "base/status.h"
#include "device/plugin.h"

enum {
  SET_ROOM = 8,
  HEAD_SIZE = offsetof(tarn_device_ext, alignment),
  SIZE_LIMIT = 64 << 10,  // no table is as large; a pointer read as a size is
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// --- sets ------------------------------------------------------------------

static const tarn__device_table_entry required[] = {
    TARN__ABI_ENTRY(device_memory_allocate),
    TARN__ABI_ENTRY(device_memory_deallocate),
    TARN__ABI_ENTRY(memory_copy_h2d),
    TARN__ABI_ENTRY(memory_copy_d2h),
    TARN__ABI_ENTRY(memory_copy_d2d),
    TARN__ABI_ENTRY(device_memory_stats),
    TARN__ABI_ENTRY(device_min_chunk_size),
    TARN__ABI_ENTRY(get_device_count),
};

// Functions of which a plug-in has all or none.
typedef tarn__device_table_entry function_set[SET_ROOM];

static const function_set abi_sets[] = {
    {TARN__ABI_ENTRY(host_memory_allocate),
     TARN__ABI_ENTRY(host_memory_deallocate)},
    {TARN__ABI_ENTRY(unified_memory_allocate),
     TARN__ABI_ENTRY(unified_memory_deallocate)},
    {TARN__ABI_ENTRY(create_stream), TARN__ABI_ENTRY(destroy_stream),
     TARN__ABI_ENTRY(synchronize_stream)},
    {TARN__ABI_ENTRY(create_event), TARN__ABI_ENTRY(record_event),
     TARN__ABI_ENTRY(destroy_event), TARN__ABI_ENTRY(synchronize_event)},
};

static const function_set ext_sets[] = {
    {TARN__EXT_ENTRY(range_granularity), TARN__EXT_ENTRY(range_reserve),
     TARN__EXT_ENTRY(range_release), TARN__EXT_ENTRY(memory_create),
     TARN__EXT_ENTRY(memory_destroy), TARN__EXT_ENTRY(range_map),
     TARN__EXT_ENTRY(range_unmap), TARN__EXT_ENTRY(range_set_access)},
    {TARN__EXT_ENTRY(memory_export), TARN__EXT_ENTRY(memory_import)},
    {TARN__EXT_ENTRY(allocate_async), TARN__EXT_ENTRY(deallocate_async)},
    {TARN__EXT_ENTRY(host_register), TARN__EXT_ENTRY(host_unregister)},
    {TARN__EXT_ENTRY(allocation_export), TARN__EXT_ENTRY(allocation_import),
     TARN__EXT_ENTRY(allocation_close)},
};

// |whose| stands between the origin and what the table has.
static tarn_status check_set(const void *table,
                             const tarn__device_table_entry *set,
                             const char *origin, const char *whose) {
  const char *present = NULL;
  const char *missing = NULL;
  for (size_t i = 0; i < SET_ROOM && set[i].name != NULL; i++) {
    bool has = tarn__table_at(table, set[i].offset) != NULL;
    *(has ? &present : &missing) = set[i].name;
  }
  if (present == NULL || missing == NULL) return TARN_OK;
  return tarn__fail(TARN_E_UNSUPPORTED, "%s: %shas %s but not %s", origin,
                    whose, present, missing);
}

tarn_status tarn__table_check(const C_DeviceInterface *abi,
                              const char *origin) {
  for (size_t i = 0; i < COUNT(required); i++) {
    if (tarn__table_at(abi, required[i].offset) != NULL) continue;
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "%s: the required function %s is missing", origin,
                      required[i].name);
  }
  for (size_t i = 0; i < COUNT(abi_sets); i++) {
    TARN__TRY(check_set(abi, abi_sets[i], origin, ""));
  }
  return TARN_OK;
}

static tarn_status check_extension(const tarn_device_ext *ext,
                                   const char *origin) {
  static const char whose[] = "its extension ";
  for (size_t i = 0; i < COUNT(ext_sets); i++) {
    TARN__TRY(check_set(ext, ext_sets[i], origin, whose));
  }
  if (ext->range_map != NULL) return TARN_OK;
  const char *alone = ext->memory_export != NULL ? "memory_export"
                      : ext->range_move != NULL  ? "range_move"
                                                 : NULL;
  if (alone == NULL) return TARN_OK;
  return tarn__fail(TARN_E_UNSUPPORTED, "%s: %shas %s but not range_map",
                    origin, whose, alone);
}

tarn_status tarn__extension_take(const tarn_device_ext *offered,
                                 const char *origin, tarn_device_ext *out) {
  memset(out, 0, sizeof *out);
  if (offered == NULL) return TARN_OK;
  size_t size = offered->struct_size;
  if (size < HEAD_SIZE || size > SIZE_LIMIT) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "%s: its extension says that it has %zu bytes", origin,
                      size);
  }
  if (offered->version != TARN_DEVICE_EXT_VERSION) {
    tarn__log(TARN_LOG_WARN,
              "%s: its extension is of version %u, not %d: unused", origin,
              (unsigned)offered->version, TARN_DEVICE_EXT_VERSION);
    return TARN_OK;
  }
  size -= size % sizeof(void *);  // a part of a slot is no slot
  memcpy(out, offered, tarn__lesser(size, sizeof *out));
  out->struct_size = sizeof *out;
  tarn_status status = check_extension(out, origin);
  if (status != TARN_OK) memset(out, 0, sizeof *out);
  return status;
}

// --- bits ------------------------------------------------------------------

typedef struct ability {
  uint32_t bit;
  tarn__device_table_entry told_by;  // offset 0: by a flag
} ability;

static const ability functions[] = {
    {TARN_FN_COPY_P2P, TARN__ABI_ENTRY(memory_copy_p2p)},
    {TARN_FN_ASYNC_H2D, TARN__ABI_ENTRY(async_memory_copy_h2d)},
    {TARN_FN_ASYNC_D2H, TARN__ABI_ENTRY(async_memory_copy_d2h)},
    {TARN_FN_ASYNC_D2D, TARN__ABI_ENTRY(async_memory_copy_d2d)},
    {TARN_FN_ASYNC_P2P, TARN__ABI_ENTRY(async_memory_copy_p2p)},
    {TARN_FN_MEMORY_SET, TARN__ABI_ENTRY(device_memory_set)},
    {TARN_FN_HOST_MEMORY, TARN__ABI_ENTRY(host_memory_allocate)},
    {TARN_FN_UNIFIED_MEMORY, TARN__ABI_ENTRY(unified_memory_allocate)},
    {TARN_FN_MAX_CHUNK, TARN__ABI_ENTRY(device_max_chunk_size)},
    {TARN_FN_MAX_ALLOC, TARN__ABI_ENTRY(device_max_alloc_size)},
    {TARN_FN_PADDING, TARN__ABI_ENTRY(device_extra_padding_size)},
    {TARN_FN_INIT_SIZE, TARN__ABI_ENTRY(device_init_alloc_size)},
    {TARN_FN_REALLOC_SIZE, TARN__ABI_ENTRY(device_realloc_size)},
    {TARN_FN_STREAMS, TARN__ABI_ENTRY(create_stream)},
    {TARN_FN_EVENTS, TARN__ABI_ENTRY(create_event)},
    {TARN_FN_CALLBACKS, TARN__ABI_ENTRY(stream_add_callback)},
};

static const ability extensions[] = {
    {TARN_EXTENSION_ALIGNMENT, TARN__EXT_ENTRY(alignment)},
    {TARN_EXTENSION_ALIGNED, TARN__EXT_ENTRY(allocate_aligned)},
    {TARN_EXTENSION_RANGES, {offsetof(tarn_device_ext, range_map), "ranges"}},
    {TARN_EXTENSION_SHARING,
     {offsetof(tarn_device_ext, memory_export), "sharing"}},
    {TARN_EXTENSION_STREAM_ORDER,
     {offsetof(tarn_device_ext, allocate_async), "stream_order"}},
    {TARN_EXTENSION_REGISTER, TARN__EXT_ENTRY(host_register)},
    {TARN_EXTENSION_POINTERS, TARN__EXT_ENTRY(pointer_query)},
    {TARN_EXTENSION_TEXTS, TARN__EXT_ENTRY(error_text)},
    {TARN_EXTENSION_GATHER, TARN__EXT_ENTRY(gather)},
    {TARN_EXTENSION_SCATTER, TARN__EXT_ENTRY(scatter)},
    {TARN_EXTENSION_SCATTER_ADD, TARN__EXT_ENTRY(scatter_add)},
    {TARN_EXTENSION_HANDLES,
     {offsetof(tarn_device_ext, allocation_export), "handles"}},
    {TARN_EXTENSION_DEFAULT_STREAM, TARN__EXT_ENTRY(default_stream)},
    {TARN_EXTENSION_STREAM_CAPTURING, TARN__EXT_ENTRY(stream_capturing)},
    {TARN_EXTENSION_MOVES, {offsetof(tarn_device_ext, range_move), "moves"}},
    {TARN_EXTENSION_RETAINS, {0, "retains"}},
};

static uint32_t bits_of(const void *table, const ability *abilities,
                        size_t count) {
  uint32_t bits = 0;
  for (size_t i = 0; i < count; i++) {
    size_t offset = abilities[i].told_by.offset;
    bool has = offset != 0 && tarn__table_at(table, offset) != NULL;
    if (has) bits |= abilities[i].bit;
  }
  return bits;
}

uint32_t tarn__table_bits(const C_DeviceInterface *abi) {
  return bits_of(abi, functions, COUNT(functions));
}

uint32_t tarn__extension_bits(const tarn_device_ext *ext) {
  bool retains = (ext->flags & TARN_EXT_RETAINS) != 0;
  return bits_of(ext, extensions, COUNT(extensions)) |
         (retains ? TARN_EXTENSION_RETAINS : 0);
}

static const char *name_of(uint32_t bit, const ability *abilities,
                           size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (abilities[i].bit == bit) return abilities[i].told_by.name;
  }
  return NULL;
}

const char *tarn_device_function_name(tarn_device_function bit) {
  return name_of(bit, functions, COUNT(functions));
}

const char *tarn_device_extension_name(tarn_device_extension bit) {
  return name_of(bit, extensions, COUNT(extensions));
}
