// Pools: stream-ordered memory.
//
//   cuMemAllocFromPoolAsync   an address at once; the memory is there when the
//                             stream has come to that
//   cuMemFreeAsync            the memory is not there any more when the stream
//                             has come to that; the block is idle at once.
//                             Takes memory of cuMemAlloc too, which ends then
//
// An idle block is given out again on the stream that freed it, or when that is
// over. When something is waited for, idle blocks go back to the device until
// the pool has no more than its release threshold.
#include "pools.h"

#include <stdlib.h>
#include <string.h>

#include "captures.h"
#include "entry.h"
#include "report.h"
#include "room.h"
#include "settings.h"
#include "streams.h"

// A block that was freed.
typedef struct idle {
  struct idle *next;
  standin_block *block;  // held
  CUstream stream;       // held; NULL: it is over
  uint64_t number;
} idle;

struct CUmemPoolHandle_st {
  standin_object object;
  int device;
  uint64_t threshold;
  uint64_t reserved;
  uint64_t used;
  idle *idles;
};

// The default ones. Guarded by the lock of objects.
static CUmemoryPool defaults[STANDIN_DEVICES_MAX];

static bool is_over(const idle *one) {
  return one->stream == NULL || one->stream->finished >= one->number;
}

// --- trimming --------------------------------------------------------------

static void drop(CUmemoryPool pool, idle *one) {
  size_t size = standin_room_for(one->block->size);
  pool->reserved -= size;
  standin_room_give(pool->device, size);
  if (one->stream != NULL) standin_unuse(one->stream);
  standin_block_unuse(one->block);
  free(one);
}

static void trim_to(CUmemoryPool pool, uint64_t keep) {
  standin_use(pool);
  for (idle **at = &pool->idles; *at != NULL && pool->reserved > keep;) {
    idle *one = *at;
    if (is_over(one)) {
      *at = one->next;
      drop(pool, one);
    } else {
      at = &one->next;
    }
  }
  standin_unuse(pool);
}

enum { POOLS_MAX = 64 };

typedef struct pool_list {
  CUmemoryPool pools[POOLS_MAX];
  size_t count;
} pool_list;

static void note(void *object, void *context) {
  pool_list *list = context;
  if (list->count < POOLS_MAX) list->pools[list->count++] = object;
}

void standin_pools_trim(void) {
  pool_list list = {.count = 0};
  standin_each(STANDIN_POOL, note, &list);
  for (size_t i = 0; i < list.count; i++) {
    CUmemoryPool pool = list.pools[i];
    trim_to(pool, pool->object.is_destroyed ? 0 : pool->threshold);
  }
}

// --- making pools ----------------------------------------------------------

static CUmemoryPool make_pool(int device) {
  CUmemoryPool made =
      standin_new(STANDIN_POOL, sizeof(struct CUmemPoolHandle_st));
  if (made != NULL) made->device = device;
  return made;
}

static tarn__cuda_result find_default(int device, CUmemoryPool *out) {
  if (standin_has_word(STANDIN_WITHOUT, "pools")) {
    return TARN__CU_ERROR_NOT_SUPPORTED;
  }
  if (defaults[device] == NULL) {
    defaults[device] = make_pool(device);
    if (defaults[device] == NULL) return TARN__CU_ERROR_OUT_OF_MEMORY;
    standin_keep(defaults[device]);
  }
  *out = defaults[device];
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuDeviceGetDefaultMemPool(CUmemoryPool *out,
                                            CUdevice device) {
  BEGIN(STANDIN_INITIALISED, NULL);
  if (device < 0 || device >= STANDIN_DEVICES_MAX) {
    return END(TARN__CU_ERROR_INVALID_DEVICE);
  }
  return END(find_default(device, out));
}

static tarn__cuda_result create(const struct CUmemPoolProps_st *properties,
                                CUmemoryPool *out) {
  if (standin_has_word(STANDIN_WITHOUT, "pools")) {
    return TARN__CU_ERROR_NOT_SUPPORTED;
  }
  if (properties->allocType != TARN__CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != TARN__CU_MEM_LOCATION_TYPE_DEVICE ||
      properties->location.id < 0 ||
      (uint64_t)properties->location.id >= standin_number(STANDIN_DEVICES) ||
      properties->handleTypes != TARN__CU_MEM_HANDLE_TYPE_NONE) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                         "not the properties of a pool that the stand-in has");
  }
  *out = make_pool(properties->location.id);
  return *out != NULL ? TARN__CU_SUCCESS : TARN__CU_ERROR_OUT_OF_MEMORY;
}

tarn__cuda_result cuMemPoolCreate(CUmemoryPool *out,
                                  const struct CUmemPoolProps_st *properties) {
  BEGIN(STANDIN_UNCAPTURED, NULL);
  return END(create(properties, out));
}

static tarn__cuda_result destroy(CUmemoryPool pool) {
  tarn__cuda_result error = standin_check(pool, STANDIN_POOL);
  if (error != TARN__CU_SUCCESS) return error;
  if (pool->object.is_own) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                         "the default pool of a device");
  }
  standin_destroy(pool);
  standin_pools_trim();
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuMemPoolDestroy(CUmemoryPool pool) {
  BEGIN(STANDIN_INITIALISED, NULL);
  return END(destroy(pool));
}

static tarn__cuda_result set_attribute(CUmemoryPool pool, unsigned attribute,
                                       const void *value) {
  tarn__cuda_result error = standin_check(pool, STANDIN_POOL);
  if (error != TARN__CU_SUCCESS) return error;
  if (attribute != TARN__CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "attribute %u",
                         attribute);
  }
  memcpy(&pool->threshold, value, sizeof pool->threshold);
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuMemPoolSetAttribute(CUmemoryPool pool, unsigned attribute,
                                        void *value) {
  BEGIN(STANDIN_INITIALISED, NULL);
  return END(set_attribute(pool, attribute, value));
}

static tarn__cuda_result get_attribute(CUmemoryPool pool, unsigned attribute,
                                       void *value) {
  tarn__cuda_result error = standin_check(pool, STANDIN_POOL);
  if (error != TARN__CU_SUCCESS) return error;
  const uint64_t *from = NULL;
  if (attribute == TARN__CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    from = &pool->threshold;
  } else if (attribute == TARN__CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) {
    from = &pool->reserved;
  } else if (attribute == TARN__CU_MEMPOOL_ATTR_USED_MEM_CURRENT) {
    from = &pool->used;
  } else {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "attribute %u",
                         attribute);
  }
  memcpy(value, from, sizeof *from);
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuMemPoolGetAttribute(CUmemoryPool pool, unsigned attribute,
                                        void *value) {
  BEGIN(STANDIN_INITIALISED, NULL);
  return END(get_attribute(pool, attribute, value));
}

tarn__cuda_result cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  BEGIN(STANDIN_INITIALISED, NULL);
  tarn__cuda_result error = standin_check(pool, STANDIN_POOL);
  if (error == TARN__CU_SUCCESS) trim_to(pool, keep);
  return END(error);
}

// --- allocating ------------------------------------------------------------

// An idle block of that room that |stream| may have.
static standin_block *take_idle(CUmemoryPool pool, size_t size,
                                const struct CUstream_st *stream) {
  for (idle **at = &pool->idles; *at != NULL; at = &(*at)->next) {
    idle *one = *at;
    if (standin_room_for(one->block->size) != standin_room_for(size)) continue;
    if (one->stream != stream && !is_over(one)) continue;
    standin_block *block = one->block;
    *at = one->next;
    if (one->stream != NULL) standin_unuse(one->stream);
    free(one);
    standin_block_revive(block, size);
    return block;
  }
  return NULL;
}

static standin_block *take_new(CUmemoryPool pool, size_t size,
                               CUcontext context) {
  size_t room = standin_room_for(size);
  if (room > standin_room_left(pool->device)) trim_to(pool, 0);
  if (!standin_room_take(pool->device, room)) return NULL;
  standin_block *made = standin_block_make(
      STANDIN_POOLED, context, room, (size_t)standin_number(STANDIN_ALIGN));
  if (made == NULL) {
    standin_room_give(pool->device, room);
    return NULL;
  }
  made->size = size;  // later perhaps one that takes as much room
  made->holder = pool;
  made->present = 0;
  standin_use(pool);
  pool->reserved += room;
  return made;
}

static void set_idle(standin_block *block, idle *one, CUstream stream) {
  CUmemoryPool pool = block->holder;
  *one = (idle){.next = pool->idles, .block = block, .stream = stream};
  if (stream != NULL) {
    one->number = stream->queued;
    standin_use(stream);
  }
  pool->idles = one;
  pool->used -= standin_room_for(block->size);
  standin_block_set_aside(block);
}

static tarn__cuda_result order(CUstream stream, standin_action action,
                               standin_block *block) {
  standin_task task = {.action = action,
                       .call = standin_call(),
                       .block = block,
                       .tenant = block->tenant};
  return standin_submit(stream, &task);
}

static tarn__cuda_result allocate_on(CUmemoryPool pool, size_t size,
                                     CUstream stream, CUdeviceptr *out) {
  standin_block *block = take_idle(pool, size, stream);
  if (block == NULL) block = take_new(pool, size, stream->context);
  if (block == NULL) return TARN__CU_ERROR_OUT_OF_MEMORY;
  pool->used += standin_room_for(size);
  tarn__cuda_result error = order(stream, STANDIN_ARRIVE, block);
  if (error != TARN__CU_SUCCESS) {
    (void)standin_pool_free(block, NULL);
    return error;
  }
  *out = block->address;
  return TARN__CU_SUCCESS;
}

static tarn__cuda_result allocate(CUcontext context, CUmemoryPool pool,
                                  size_t size, CUstream handle,
                                  CUdeviceptr *out) {
  CUstream stream = NULL;
  tarn__cuda_result error = standin_check(pool, STANDIN_POOL);
  if (error != TARN__CU_SUCCESS) return error;
  error = standin_stream_to_queue(context, handle, &stream);
  if (error != TARN__CU_SUCCESS) return error;
  if (size == 0 || pool->device != context->device) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                         "%zu bytes of a pool of device %d", size,
                         pool->device);
  }
  if (stream->capture != NULL) {
    return standin_capture_break(stream, TARN__CU_ERROR_NOT_SUPPORTED,
                                 "the stand-in's graphs do not allocate");
  }
  return allocate_on(pool, size, stream, out);
}

tarn__cuda_result cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t size,
                                          CUmemoryPool pool, CUstream stream) {
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  return END(allocate(context, pool, size, stream, out));
}

tarn__cuda_result cuMemAllocAsync(CUdeviceptr *out, size_t size,
                                  CUstream stream) {
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  CUmemoryPool pool = NULL;
  tarn__cuda_result error = find_default(context->device, &pool);
  if (error != TARN__CU_SUCCESS) return END(error);
  return END(allocate(context, pool, size, stream, out));
}

// --- freeing ---------------------------------------------------------------

tarn__cuda_result standin_pool_free(standin_block *block, CUstream stream) {
  idle *one = malloc(sizeof *one);
  if (one == NULL) return TARN__CU_ERROR_OUT_OF_MEMORY;
  if (stream != NULL) {
    tarn__cuda_result error = order(stream, STANDIN_DEPART, block);
    if (error != TARN__CU_SUCCESS) {
      free(one);
      return error;
    }
  } else {
    block->present = 0;
  }
  set_idle(block, one, stream);
  return TARN__CU_SUCCESS;
}

// Memory of cuMemAlloc, which goes back to no pool.
static tarn__cuda_result free_device(standin_block *block, CUstream stream) {
  tarn__cuda_result error = order(stream, STANDIN_DEPART, block);
  if (error != TARN__CU_SUCCESS) return error;
  standin_room_give(block->context->device, standin_room_for(block->size));
  standin_block_leave(block);
  return TARN__CU_SUCCESS;
}

static tarn__cuda_result free_on(CUcontext context, CUdeviceptr address,
                                 CUstream handle) {
  CUstream stream = NULL;
  tarn__cuda_result error = standin_stream_to_queue(context, handle, &stream);
  if (error != TARN__CU_SUCCESS) return error;
  standin_block *block = standin_block_exactly(
      address, 1U << STANDIN_POOLED | 1U << STANDIN_DEVICE,
      "memory that can be freed on a stream");
  if (block == NULL) return TARN__CU_ERROR_INVALID_VALUE;
  if (stream->capture != NULL) {
    return standin_capture_break(stream, TARN__CU_ERROR_NOT_SUPPORTED,
                                 "the stand-in's graphs do not free");
  }
  return block->sort == STANDIN_DEVICE ? free_device(block, stream)
                                       : standin_pool_free(block, stream);
}

tarn__cuda_result cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  return END(free_on(context, address, stream));
}
