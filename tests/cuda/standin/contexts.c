// Primary contexts: who has retained them, and what ends with them. As
// documented, a reset ends what is in one and releases it for nobody.
//
// What is left in a context when its last holder releases it ends with it. A
// program that leaves something has lost it: a wrong use, unless nothing can
// be given back any more.
#include "blocks.h"
#include "entry.h"
#include "faults.h"
#include "pools.h"
#include "queue.h"
#include "report.h"
#include "room.h"
#include "settings.h"

// NULL, and a wrong use: there is no such device.
static CUcontext find(CUdevice device) {
  if (device >= 0 && (uint64_t)device < standin_number(STANDIN_DEVICES) &&
      device < STANDIN_DEVICES_MAX) {
    return standin_context_of(device);
  }
  (void)standin_wrong(TARN__CU_ERROR_INVALID_DEVICE, "device %d", device);
  return NULL;
}

tarn__cuda_result cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
  BEGIN(STANDIN_INITIALISED, NULL);
  CUcontext context = find(device);
  if (context == NULL) return END(TARN__CU_ERROR_INVALID_DEVICE);
  context->retains++;
  context->is_active = true;
  *out = context;
  return END(TARN__CU_SUCCESS);
}

// --- the end of a context --------------------------------------------------

typedef struct remains {
  CUcontext context;
  void *object;  // one of them
  standin_block *block;
  size_t count;
} remains;

static void find_block(standin_block *block, void *context) {
  remains *r = context;
  if (block->context != r->context || block->life != r->context->life) return;
  if (block->sort == STANDIN_MAPPED) return;
  // A pool is the device's; but where work has failed nothing can be freed.
  bool has_failed = r->context->failure != TARN__CU_SUCCESS;
  if (block->sort == STANDIN_POOLED && !has_failed) return;
  r->block = block;
  r->count++;
}

static void find_stream(void *object, void *context) {
  CUstream stream = object;
  remains *r = context;
  if (stream->context != r->context || stream->life != r->context->life ||
      stream->object.is_destroyed) {
    return;
  }
  r->object = stream;
  if (!stream->object.is_own) r->count++;
}

static void find_event(void *object, void *context) {
  CUevent event = object;
  remains *r = context;
  if (event->context != r->context || event->life != r->context->life ||
      event->object.is_destroyed) {
    return;
  }
  r->object = event;
  r->count++;
}

static void find_module(void *object, void *context) {
  CUmodule module = object;
  remains *r = context;
  if (module->context != r->context || module->life != r->context->life ||
      module->object.is_destroyed) {
    return;
  }
  r->object = module;
  r->count++;
}

static void check_empty(CUcontext context) {
  if (standin_lost() != TARN__CU_SUCCESS ||
      context->failure != TARN__CU_SUCCESS) {
    return;
  }
  remains r = {.context = context};
  standin_block_each(find_block, &r);
  standin_each(STANDIN_STREAM, find_stream, &r);
  standin_each(STANDIN_EVENT, find_event, &r);
  standin_each(STANDIN_MODULE, find_module, &r);
  if (r.count == 0) return;
  (void)standin_wrong(TARN__CU_ERROR_INVALID_CONTEXT,
                      "%zu blocks, streams, events and modules are left in the "
                      "context of device %d, which ends",
                      r.count, context->device);
}

static void end_blocks(CUcontext context) {
  for (;;) {
    remains r = {.context = context};
    standin_block_each(find_block, &r);
    if (r.block == NULL) return;
    if (r.block->sort == STANDIN_POOLED) {
      if (standin_pool_free(r.block, NULL) != TARN__CU_SUCCESS) return;
      continue;
    }
    if (r.block->sort == STANDIN_DEVICE) {
      standin_room_give(context->device, standin_room_for(r.block->size));
    }
    standin_block_free(r.block);
  }
}

static void end_objects(CUcontext context, standin_kind kind,
                        void (*find_one)(void *object, void *context)) {
  for (;;) {
    remains r = {.context = context};
    standin_each(kind, find_one, &r);
    if (r.object == NULL) return;
    standin_destroy(r.object);
  }
}

static void end_life(CUcontext context) {
  end_objects(context, STANDIN_EVENT, find_event);
  end_objects(context, STANDIN_STREAM, find_stream);
  end_objects(context, STANDIN_MODULE, find_module);
  end_blocks(context);
  context->is_active = false;
  context->life++;
  context->failure = TARN__CU_SUCCESS;
  context->legacy = NULL;
  standin_pools_trim();
  standin_tell_all();
}

static tarn__cuda_result release(CUdevice device) {
  CUcontext context = find(device);
  if (context == NULL) return TARN__CU_ERROR_INVALID_DEVICE;
  if (context->retains == 0) {
    return standin_wrong(TARN__CU_ERROR_INVALID_CONTEXT,
                         "the context of device %d is not retained", device);
  }
  if (--context->retains > 0) return TARN__CU_SUCCESS;
  check_empty(context);
  end_life(context);
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  BEGIN(STANDIN_INITIALISED, NULL);
  return END(release(device));
}

tarn__cuda_result cuDevicePrimaryCtxReset_v2(CUdevice device) {
  BEGIN(STANDIN_INITIALISED, NULL);
  CUcontext context = find(device);
  if (context == NULL) return END(TARN__CU_ERROR_INVALID_DEVICE);
  end_life(context);
  return END(TARN__CU_SUCCESS);
}

tarn__cuda_result cuDevicePrimaryCtxGetState(CUdevice device,
                                             unsigned *out_flags,
                                             int *out_active) {
  BEGIN(STANDIN_INITIALISED, NULL);
  CUcontext context = find(device);
  if (context == NULL) return END(TARN__CU_ERROR_INVALID_DEVICE);
  *out_flags = 0;
  *out_active = standin_context_is_active(context);
  return END(TARN__CU_SUCCESS);
}

// --- the current one -------------------------------------------------------

tarn__cuda_result cuCtxGetCurrent(CUcontext *out) {
  BEGIN(STANDIN_INITIALISED, NULL);
  *out = standin_current();
  return END(TARN__CU_SUCCESS);
}

tarn__cuda_result cuCtxPushCurrent_v2(CUcontext context) {
  BEGIN(STANDIN_INITIALISED, NULL);
  return END(standin_push(context));
}

tarn__cuda_result cuCtxPopCurrent_v2(CUcontext *out) {
  BEGIN(STANDIN_INITIALISED, NULL);
  return END(standin_pop(out));
}

tarn__cuda_result cuCtxSetCurrent(CUcontext context) {
  BEGIN(STANDIN_INITIALISED, NULL);
  return END(standin_set_current(context));
}

tarn__cuda_result cuCtxGetDevice(CUdevice *out) {
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  *out = context->device;
  return END(TARN__CU_SUCCESS);
}

static void see_busy(void *object, void *context) {
  CUstream stream = object;
  remains *r = context;
  if (stream->context == r->context && stream->finished < stream->queued) {
    r->count++;
  }
}

static tarn__cuda_result synchronize(CUcontext context) {
  unsigned life = context->life;
  for (;;) {
    remains r = {.context = context};
    standin_each(STANDIN_STREAM, see_busy, &r);
    if (r.count == 0) break;
    standin_wait_any();
  }
  standin_pools_trim();
  if (life != context->life) return TARN__CU_ERROR_CONTEXT_IS_DESTROYED;
  return context->failure;
}

tarn__cuda_result cuCtxSynchronize(void) {
  CUcontext context = NULL;
  BEGIN(STANDIN_NOT_IN_CAPTURES, &context);
  return END(synchronize(context));
}
