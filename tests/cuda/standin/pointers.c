// What is known of an address.
#include <string.h>

#include "blocks.h"
#include "entry.h"
#include "report.h"

static unsigned type_of(const standin_block *block) {
  bool is_host =
      block->sort == STANDIN_PINNED || block->sort == STANDIN_REGISTERED;
  return is_host ? TARN__CU_MEMORYTYPE_HOST : TARN__CU_MEMORYTYPE_DEVICE;
}

static void put(void *out, const void *value, size_t size) {
  memcpy(out, value, size);
}

static tarn__cuda_result tell(const standin_block *block, unsigned attribute,
                              CUdeviceptr address, void *out) {
  unsigned type = type_of(block), managed = block->sort == STANDIN_MANAGED;
  CUdeviceptr base = block->address;
  void *pool = block->sort == STANDIN_POOLED ? block->holder : NULL;
  bool host = !standin_block_is_closed(block);
  void *reached = host ? (void *)(uintptr_t)address : NULL;
  switch (attribute) {
    case TARN__CU_POINTER_ATTRIBUTE_CONTEXT:
      put(out, &block->context, sizeof block->context);
      return TARN__CU_SUCCESS;
    case TARN__CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      put(out, &type, sizeof type);
      return TARN__CU_SUCCESS;
    case TARN__CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      put(out, &address, sizeof address);
      return TARN__CU_SUCCESS;
    case TARN__CU_POINTER_ATTRIBUTE_HOST_POINTER:
      put(out, &reached, sizeof reached);
      return host ? TARN__CU_SUCCESS : TARN__CU_ERROR_INVALID_VALUE;
    case TARN__CU_POINTER_ATTRIBUTE_IS_MANAGED:
      put(out, &managed, sizeof managed);
      return TARN__CU_SUCCESS;
    case TARN__CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      put(out, &block->context->device, sizeof block->context->device);
      return TARN__CU_SUCCESS;
    case TARN__CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      put(out, &base, sizeof base);
      return TARN__CU_SUCCESS;
    case TARN__CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      put(out, &block->size, sizeof block->size);
      return TARN__CU_SUCCESS;
    case TARN__CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      put(out, &pool, sizeof pool);
      return TARN__CU_SUCCESS;
    default:
      return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                           "the stand-in has no attribute %u", attribute);
  }
}

// An address that the driver does not know is no wrong use: programs ask.
static tarn__cuda_result find(CUdeviceptr address, standin_block **out) {
  standin_block *block = standin_block_at(address);
  if (block == NULL || block->freed) return TARN__CU_ERROR_INVALID_VALUE;
  *out = block;
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuPointerGetAttribute(void *out, unsigned attribute,
                                        CUdeviceptr address) {
  BEGIN(STANDIN_INITIALISED, NULL);
  standin_block *block = NULL;
  tarn__cuda_result error = find(address, &block);
  if (error == TARN__CU_SUCCESS) error = tell(block, attribute, address, out);
  return END(error);
}

// Of what cuMemAlloc and its kin, or cuMemMap, gave.
tarn__cuda_result cuMemGetAddressRange_v2(CUdeviceptr *out_base,
                                          size_t *out_size,
                                          CUdeviceptr address) {
  BEGIN(STANDIN_IN_CONTEXT, NULL);
  standin_block *block = NULL;
  tarn__cuda_result error = find(address, &block);
  if (error != TARN__CU_SUCCESS || block->sort == STANDIN_REGISTERED) {
    return END(TARN__CU_ERROR_NOT_FOUND);
  }
  if (out_base != NULL) *out_base = block->address;
  if (out_size != NULL) *out_size = block->size;
  return END(TARN__CU_SUCCESS);
}
