// Memory of devices, pinned memory, managed memory, and memory of the program
// that is registered.
#include "blocks.h"
#include "entry.h"
#include "pools.h"
#include "report.h"
#include "room.h"
#include "settings.h"

enum { HOST_FLAGS = 7, REGISTER_FLAGS = 15 };

// --- memory of a device ----------------------------------------------------

tarn__cuda_result cuMemGetInfo_v2(size_t *out_free, size_t *out_total) {
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  *out_free = standin_room_left(context->device);
  *out_total = standin_number(STANDIN_CAPACITY);
  return END(TARN__CU_SUCCESS);
}

static tarn__cuda_result allocate(CUcontext context, standin_sort sort,
                                  size_t size, uint64_t *out) {
  size_t align = (size_t)standin_number(STANDIN_ALIGN);
  if (sort == STANDIN_PINNED) align = STANDIN_PAGE;
  if (size == 0) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "0 bytes of %s",
                         standin_sort_name(sort));
  }
  size_t room = sort == STANDIN_DEVICE ? standin_room_for(size) : 0;
  if (!standin_room_take(context->device, room)) {
    return TARN__CU_ERROR_OUT_OF_MEMORY;
  }
  standin_block *made = standin_block_make(sort, context, size, align);
  if (made == NULL) {
    standin_room_give(context->device, room);
    return TARN__CU_ERROR_OUT_OF_MEMORY;
  }
  *out = made->address;
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuMemAlloc_v2(CUdeviceptr *out, size_t size) {
  CUcontext context = NULL;
  uint64_t address = 0;
  BEGIN(STANDIN_NOT_IN_CAPTURES, &context);
  tarn__cuda_result error = allocate(context, STANDIN_DEVICE, size, &address);
  if (error == TARN__CU_SUCCESS) *out = address;
  return END(error);
}

static tarn__cuda_result give(uint64_t address, unsigned sorts,
                              const char *what) {
  standin_block *block = standin_block_exactly(address, sorts, what);
  if (block == NULL) return TARN__CU_ERROR_INVALID_VALUE;
  if (block->sort == STANDIN_POOLED) return standin_pool_free(block, NULL);
  if (block->sort == STANDIN_DEVICE) {
    standin_room_give(block->context->device, standin_room_for(block->size));
  }
  standin_block_free(block);
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuMemFree_v2(CUdeviceptr address) {
  BEGIN(STANDIN_NOT_IN_CAPTURES, NULL);
  return END(
      give(address,
           1U << STANDIN_DEVICE | 1U << STANDIN_MANAGED | 1U << STANDIN_POOLED,
           "block of the driver"));
}

// --- memory of the host ----------------------------------------------------

tarn__cuda_result cuMemHostAlloc(void **out, size_t size, unsigned flags) {
  CUcontext context = NULL;
  uint64_t address = 0;
  BEGIN(STANDIN_NOT_IN_CAPTURES, &context);
  if (flags > HOST_FLAGS) {
    return END(standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "flags %u", flags));
  }
  tarn__cuda_result error = allocate(context, STANDIN_PINNED, size, &address);
  if (error == TARN__CU_SUCCESS) *out = (void *)(uintptr_t)address;
  return END(error);
}

tarn__cuda_result cuMemFreeHost(void *ptr) {
  BEGIN(STANDIN_NOT_IN_CAPTURES, NULL);
  return END(give((uintptr_t)ptr, 1U << STANDIN_PINNED, "pinned memory"));
}

static tarn__cuda_result allocate_managed(CUcontext context, size_t size,
                                          unsigned flags, CUdeviceptr *out) {
  uint64_t address = 0;
  if (standin_has_word(STANDIN_WITHOUT, "managed")) {
    return TARN__CU_ERROR_NOT_SUPPORTED;
  }
  if (flags != TARN__CU_MEM_ATTACH_GLOBAL &&
      flags != TARN__CU_MEM_ATTACH_HOST) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "flags %u", flags);
  }
  tarn__cuda_result error = allocate(context, STANDIN_MANAGED, size, &address);
  if (error == TARN__CU_SUCCESS) *out = address;
  return error;
}

tarn__cuda_result cuMemAllocManaged(CUdeviceptr *out, size_t size,
                                    unsigned flags) {
  CUcontext context = NULL;
  BEGIN(STANDIN_NOT_IN_CAPTURES, &context);
  return END(allocate_managed(context, size, flags, out));
}

static tarn__cuda_result add(CUcontext context, void *ptr, size_t size,
                             unsigned flags) {
  if (standin_has_word(STANDIN_WITHOUT, "register")) {
    return TARN__CU_ERROR_NOT_SUPPORTED;
  }
  if (ptr == NULL || size == 0 || flags > REGISTER_FLAGS) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                         "%zu bytes at %p, flags %u", size, ptr, flags);
  }
  if (standin_block_between((uintptr_t)ptr, size)) {
    return TARN__CU_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  standin_block model = {.sort = STANDIN_REGISTERED,
                         .address = (uintptr_t)ptr,
                         .size = size,
                         .context = context,
                         .life = context->life,
                         .bytes = ptr};
  return standin_block_over(&model) != NULL ? TARN__CU_SUCCESS
                                            : TARN__CU_ERROR_OUT_OF_MEMORY;
}

tarn__cuda_result cuMemHostRegister_v2(void *ptr, size_t size, unsigned flags) {
  CUcontext context = NULL;
  BEGIN(STANDIN_NOT_IN_CAPTURES, &context);
  return END(add(context, ptr, size, flags));
}

// Memory that is not registered is no wrong use: programs try it.
static tarn__cuda_result take_away(void *ptr) {
  standin_block *block = standin_block_at((uintptr_t)ptr);
  if (block == NULL || block->sort != STANDIN_REGISTERED ||
      block->address != (uintptr_t)ptr) {
    return TARN__CU_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  standin_block_free(block);
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuMemHostUnregister(void *ptr) {
  BEGIN(STANDIN_NOT_IN_CAPTURES, NULL);
  return END(take_away(ptr));
}
