// Address ranges: addresses, memory, and what is mapped where.
//
//   reservation  [          | mapping |   | mapping ]
//                                \.            |
//   physical                   [ bytes ]    [ bytes ]
//
// A mapping is a block, and a piece of its own: it is unmapped, and given
// rights, as a whole or together with its neighbours. A physical block lives
// until it is released and nothing of it is mapped.
//
// As documented: sizes and addresses are multiples of the granularity, the
// offset in the physical block is 0, a mapping begins without rights. That a
// copy which meets a mapping without rights fails in its order, and that the
// error sticks, is this file's reading.
#include <stdlib.h>
#include <unistd.h>

#include "blocks.h"
#include "entry.h"
#include "opencl/standin/table.h"
#include "ranges.h"
#include "report.h"
#include "room.h"
#include "settings.h"

typedef struct physical {
  standin_object object;
  int device;
  size_t size;
  unsigned handle_types;
  bool is_imported;
  standin_store store;
} physical;

typedef struct reservation {
  uint64_t address;
  size_t size;
} reservation;

// Guarded by the lock of objects.
static standin_table reservations;
static uint64_t reserved;

static tarn__cuda_result refuse(void) {
  return standin_has_word(STANDIN_WITHOUT, "ranges")
             ? TARN__CU_ERROR_NOT_SUPPORTED
             : TARN__CU_SUCCESS;
}

static bool is_whole(uint64_t number) {
  uint64_t granularity = standin_number(STANDIN_GRANULARITY);
  return granularity != 0 && number % granularity == 0;
}

static tarn__cuda_result check_whole(uint64_t address, uint64_t size) {
  if (size != 0 && is_whole(address) && is_whole(size)) return TARN__CU_SUCCESS;
  return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                       "%llu bytes at 0x%llx are not whole granules of %llu",
                       (unsigned long long)size, (unsigned long long)address,
                       (unsigned long long)standin_number(STANDIN_GRANULARITY));
}

// --- addresses -------------------------------------------------------------

size_t standin_reservations(void) {
  return reservations.count;
}

static bool has_addresses(size_t size) {
  uint64_t most = standin_number(STANDIN_RESERVE_MAX);
  uint64_t all = standin_number(STANDIN_ADDRESSES);
  return (most == 0 || size <= most) &&
         (all == 0 || (reserved < all && size <= all - reserved));
}

static tarn__cuda_result reserve(size_t size, size_t align, CUdeviceptr *out) {
  size_t granularity = standin_number(STANDIN_GRANULARITY);
  tarn__cuda_result error = refuse();
  if (error == TARN__CU_SUCCESS) error = check_whole(0, size);
  if (error != TARN__CU_SUCCESS) return error;
  if ((align & (align - 1)) != 0) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "alignment %zu", align);
  }
  if (!has_addresses(size)) return TARN__CU_ERROR_OUT_OF_MEMORY;
  if (align < granularity) align = granularity;
  reservation *made = malloc(sizeof *made);
  unsigned char *at = made != NULL ? standin_pages_reserve(size, align) : NULL;
  if (at == NULL) {
    free(made);
    return TARN__CU_ERROR_OUT_OF_MEMORY;
  }
  *made = (reservation){(uint64_t)(uintptr_t)at, size};
  if (!standin_table_add(&reservations, made->address, made)) {
    standin_pages_forget(at, size);
    free(made);
    return TARN__CU_ERROR_OUT_OF_MEMORY;
  }
  reserved += size;
  *out = made->address;
  return TARN__CU_SUCCESS;
}

// |address| is a wish, which is not granted.
tarn__cuda_result cuMemAddressReserve(CUdeviceptr *out, size_t size,
                                      size_t align, CUdeviceptr address,
                                      unsigned long long flags) {
  BEGIN(STANDIN_UNCAPTURED, NULL);
  (void)address;
  if (flags != 0) {
    return END(
        standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "flags %llu", flags));
  }
  return END(reserve(size, align, out));
}

static tarn__cuda_result release_addresses(CUdeviceptr address, size_t size) {
  reservation *found = standin_table_find(&reservations, address);
  if (found == NULL || found->size != size) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                         "%zu bytes at 0x%llx are no reservation", size,
                         (unsigned long long)address);
  }
  if (standin_block_between(address, size)) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                         "memory is mapped in the reservation");
  }
  standin_table_remove(&reservations, address);
  reserved -= size;
  standin_pages_forget((unsigned char *)(uintptr_t)address, size);
  free(found);
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuMemAddressFree(CUdeviceptr address, size_t size) {
  BEGIN(STANDIN_UNCAPTURED, NULL);
  return END(release_addresses(address, size));
}

// --- memory ----------------------------------------------------------------

static void end_physical(void *object) {
  physical *memory = object;
  standin_store_close(&memory->store);
  if (!memory->is_imported) standin_room_give(memory->device, memory->size);
}

static CUmemGenericAllocationHandle handle_of(const physical *memory) {
  return (CUmemGenericAllocationHandle)(uintptr_t)memory;
}

static tarn__cuda_result find_physical(CUmemGenericAllocationHandle handle,
                                       physical **out) {
  physical *found = (physical *)(uintptr_t)handle;
  tarn__cuda_result error = standin_check(found, STANDIN_PHYSICAL);
  if (error == TARN__CU_SUCCESS) *out = found;
  return error;
}

static tarn__cuda_result new_physical(const physical *model, physical **out) {
  standin_ends_with(STANDIN_PHYSICAL, end_physical);
  physical *made = standin_new(STANDIN_PHYSICAL, sizeof *made);
  if (made == NULL) return TARN__CU_ERROR_OUT_OF_MEMORY;
  standin_object object = made->object;
  *made = *model;
  made->object = object;
  *out = made;
  return TARN__CU_SUCCESS;
}

static tarn__cuda_result check_properties(
    const struct CUmemAllocationProp_st *properties) {
  int device = properties->location.id;
  bool exported = (properties->requestedHandleTypes &
                   TARN__CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0;
  if (properties->type != TARN__CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != TARN__CU_MEM_LOCATION_TYPE_DEVICE ||
      device < 0 || (uint64_t)device >= standin_number(STANDIN_DEVICES) ||
      (properties->requestedHandleTypes & ~1U) != 0) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                         "not the properties of memory of a device");
  }
  bool refused = exported && standin_has_word(STANDIN_WITHOUT, "sharing");
  return refused ? TARN__CU_ERROR_NOT_SUPPORTED : TARN__CU_SUCCESS;
}

tarn__cuda_result cuMemGetAllocationGranularity(
    size_t *out, const struct CUmemAllocationProp_st *properties,
    unsigned option) {
  BEGIN(STANDIN_INITIALISED, NULL);
  tarn__cuda_result error = refuse();
  if (error == TARN__CU_SUCCESS) error = check_properties(properties);
  if (error == TARN__CU_SUCCESS &&
      option > TARN__CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) {
    error = standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "option %u", option);
  }
  if (error == TARN__CU_SUCCESS) *out = standin_number(STANDIN_GRANULARITY);
  return END(error);
}

static tarn__cuda_result create(size_t size,
                                const struct CUmemAllocationProp_st *properties,
                                CUmemGenericAllocationHandle *out) {
  tarn__cuda_result error = refuse();
  if (error == TARN__CU_SUCCESS) error = check_properties(properties);
  if (error == TARN__CU_SUCCESS) error = check_whole(0, size);
  if (error != TARN__CU_SUCCESS) return error;
  physical model = {.device = properties->location.id,
                    .size = size,
                    .handle_types = properties->requestedHandleTypes};
  if (!standin_room_take(model.device, size)) {
    return TARN__CU_ERROR_OUT_OF_MEMORY;
  }
  physical *made = NULL;
  if (!standin_store_make(size, model.device, model.handle_types != 0,
                          &model.store)) {
    error = TARN__CU_ERROR_OUT_OF_MEMORY;
  } else {
    error = new_physical(&model, &made);
    if (error != TARN__CU_SUCCESS) standin_store_close(&model.store);
  }
  if (error != TARN__CU_SUCCESS) {
    standin_room_give(model.device, size);
    return error;
  }
  *out = handle_of(made);
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuMemCreate(CUmemGenericAllocationHandle *out, size_t size,
                              const struct CUmemAllocationProp_st *properties,
                              unsigned long long flags) {
  BEGIN(STANDIN_UNCAPTURED, NULL);
  if (flags != 0) {
    return END(
        standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "flags %llu", flags));
  }
  return END(create(size, properties, out));
}

tarn__cuda_result cuMemRelease(CUmemGenericAllocationHandle memory) {
  BEGIN(STANDIN_UNCAPTURED, NULL);
  physical *found = NULL;
  tarn__cuda_result error = find_physical(memory, &found);
  if (error == TARN__CU_SUCCESS) standin_destroy(found);
  return END(error);
}

// --- other processes -------------------------------------------------------

static tarn__cuda_result export(const physical *memory, unsigned type,
                                int *out) {
  if (type != TARN__CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
      (memory->handle_types & type) == 0) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                         "the memory was not made for handles of type %u",
                         type);
  }
  if (standin_has_word(STANDIN_WITHOUT, "sharing-late")) {
    return TARN__CU_ERROR_NOT_SUPPORTED;
  }
  int file = dup(memory->store.file);
  if (file < 0) return TARN__CU_ERROR_OUT_OF_MEMORY;
  *out = file;
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuMemExportToShareableHandle(
    void *out, CUmemGenericAllocationHandle memory, unsigned type,
    unsigned long long flags) {
  BEGIN(STANDIN_UNCAPTURED, NULL);
  physical *found = NULL;
  tarn__cuda_result error = find_physical(memory, &found);
  if (error == TARN__CU_SUCCESS && flags != 0) {
    error = standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "flags %llu", flags);
  }
  if (error == TARN__CU_SUCCESS) error = export(found, type, out);
  return END(error);
}

static tarn__cuda_result import(int file, unsigned type,
                                CUmemGenericAllocationHandle *out) {
  physical model = {.is_imported = true};
  tarn__cuda_result error = refuse();
  if (error != TARN__CU_SUCCESS) return error;
  if (type != TARN__CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "type %u", type);
  }
  if (!standin_store_open(file, &model.store)) {
    return TARN__CU_ERROR_INVALID_VALUE;  // a peer may send anything
  }
  model.device = model.store.device;
  model.size = model.store.size;
  model.handle_types = type;
  physical *made = NULL;
  error = new_physical(&model, &made);
  if (error != TARN__CU_SUCCESS) {
    standin_store_close(&model.store);
    return error;
  }
  *out = handle_of(made);
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuMemImportFromShareableHandle(
    CUmemGenericAllocationHandle *out, void *handle, unsigned type) {
  BEGIN(STANDIN_UNCAPTURED, NULL);
  return END(import((int)(intptr_t)handle, type, out));
}

// --- mappings --------------------------------------------------------------

static bool is_reserved(uint64_t address, size_t size) {
  const reservation *found = standin_table_below(&reservations, address);
  return found != NULL && address - found->address <= found->size &&
         size <= found->size - (address - found->address);
}

static tarn__cuda_result check_place(uint64_t address, size_t size) {
  tarn__cuda_result error = check_whole(address, size);
  if (error != TARN__CU_SUCCESS) return error;
  if (is_reserved(address, size)) return TARN__CU_SUCCESS;
  return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                       "%zu bytes at 0x%llx are not reserved", size,
                       (unsigned long long)address);
}

static tarn__cuda_result check_mapping(uint64_t address, size_t size,
                                       size_t offset, const physical *memory) {
  tarn__cuda_result error = check_place(address, size);
  if (error != TARN__CU_SUCCESS) return error;
  // No wrong use: nothing else tells how large imported memory is.
  if (offset == 0 && size > memory->size) return TARN__CU_ERROR_INVALID_VALUE;
  if (offset != 0) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                         "%zu bytes from %zu of memory of %zu bytes", size,
                         offset, memory->size);
  }
  if (standin_block_between(address, size)) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                         "memory is mapped at 0x%llx already",
                         (unsigned long long)address);
  }
  return TARN__CU_SUCCESS;
}

static tarn__cuda_result map(uint64_t address, size_t size, physical *memory) {
  bool closed = standin_number(STANDIN_GUARD) != 0;
  unsigned char *at = (unsigned char *)(uintptr_t)address;
  CUcontext context = standin_context_of(memory->device);
  if (!standin_pages_show(&memory->store, 0, at, size, closed)) {
    return TARN__CU_ERROR_OUT_OF_MEMORY;
  }
  standin_block model = {.sort = STANDIN_MAPPED,
                         .address = address,
                         .size = size,
                         .context = context,
                         .life = context->life,
                         .bytes = closed ? memory->store.mirror : at,
                         .pages = at,
                         .pages_size = size,
                         .holder = memory};
  if (standin_block_over(&model) != NULL) return TARN__CU_SUCCESS;
  standin_pages_hide(at, size);
  return TARN__CU_ERROR_OUT_OF_MEMORY;
}

tarn__cuda_result cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                           CUmemGenericAllocationHandle memory,
                           unsigned long long flags) {
  BEGIN(STANDIN_UNCAPTURED, NULL);
  physical *found = NULL;
  tarn__cuda_result error = find_physical(memory, &found);
  if (error == TARN__CU_SUCCESS && flags != 0) {
    error = standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "flags %llu", flags);
  }
  if (error == TARN__CU_SUCCESS) {
    error = check_mapping(address, size, offset, found);
  }
  if (error == TARN__CU_SUCCESS) error = map(address, size, found);
  return END(error);
}

// Whole mappings, one behind the other.
static tarn__cuda_result check_mapped(uint64_t address, size_t size) {
  tarn__cuda_result error = check_place(address, size);
  uint64_t end = address + size;
  for (uint64_t at = address; at < end && error == TARN__CU_SUCCESS;) {
    const standin_block *block = standin_block_at(at);
    if (block == NULL || block->sort != STANDIN_MAPPED ||
        block->address != at || block->size > end - at) {
      error =
          standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                        "no whole mapping at 0x%llx", (unsigned long long)at);
    } else {
      at += block->size;
    }
  }
  return error;
}

static void unmap(uint64_t address, size_t size) {
  for (uint64_t at = address; at < address + size;) {
    standin_block *block = standin_block_at(at);
    at += block->size;
    if (block->uses > 0) {
      (void)standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                          "memory is unmapped while commands use it");
    }
    standin_pages_hide(block->pages, block->pages_size);
    standin_block_free(block);
  }
}

tarn__cuda_result cuMemUnmap(CUdeviceptr address, size_t size) {
  BEGIN(STANDIN_UNCAPTURED, NULL);
  tarn__cuda_result error = check_mapped(address, size);
  if (error == TARN__CU_SUCCESS) unmap(address, size);
  return END(error);
}

static tarn__cuda_result check_rights(const struct CUmemAccessDesc_st *rights,
                                      size_t count) {
  for (size_t i = 0; i < count; i++) {
    int device = rights[i].location.id;
    bool known = rights[i].location.type == TARN__CU_MEM_LOCATION_TYPE_DEVICE &&
                 device >= 0 &&
                 (uint64_t)device < standin_number(STANDIN_DEVICES);
    unsigned flags = rights[i].flags;
    if (!known || (flags != TARN__CU_MEM_ACCESS_FLAGS_PROT_NONE &&
                   flags != TARN__CU_MEM_ACCESS_FLAGS_PROT_READ &&
                   flags != TARN__CU_MEM_ACCESS_FLAGS_PROT_READWRITE)) {
      return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                           "rights %u of device %d", flags, device);
    }
  }
  return TARN__CU_SUCCESS;
}

static void give_rights(uint64_t address, size_t size,
                        const struct CUmemAccessDesc_st *rights, size_t count) {
  for (uint64_t at = address; at < address + size;) {
    standin_block *block = standin_block_at(at);
    at += block->size;
    for (size_t i = 0; i < count; i++)
      block->rights[rights[i].location.id] = rights[i].flags;
  }
}

tarn__cuda_result cuMemSetAccess(CUdeviceptr address, size_t size,
                                 const struct CUmemAccessDesc_st *rights,
                                 size_t count) {
  BEGIN(STANDIN_UNCAPTURED, NULL);
  tarn__cuda_result error = check_mapped(address, size);
  if (error == TARN__CU_SUCCESS) error = check_rights(rights, count);
  if (error == TARN__CU_SUCCESS) give_rights(address, size, rights, count);
  return END(error);
}
