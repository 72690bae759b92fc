// Modules and launches. An image is a fatbin, told by its magic, or the
// stand-in's own; what is in it is not looked at: kernels are functions of the
// host (kernels.h).
#include <stdlib.h>
#include <string.h>

#include "captures.h"
#include "entry.h"
#include "kernels.h"
#include "report.h"
#include "settings.h"
#include "streams.h"

enum {
  THREADS_MAX = 1024,
  SHARED_MAX = 49152,
  GRID_YZ_MAX = 65535,
};

// Both live in the module: a function ends with it.
struct CUfunc_st {
  standin_object object;
  CUmodule module;
  const tarn_standin_kernel *kernel;
};

// --- modules ---------------------------------------------------------------

static tarn__cuda_result check_image(const void *image) {
  static const uint32_t FATBIN = 0xba55ed50;
  tarn__cuda_result refused = (tarn__cuda_result)standin_number(STANDIN_IMAGES);
  if (refused != TARN__CU_SUCCESS) return refused;
  uint32_t magic = 0;
  memcpy(&magic, image, sizeof magic);
  if (magic == FATBIN) return TARN__CU_SUCCESS;
  bool is_ours = memcmp(&magic, TARN_STANDIN_IMAGE, sizeof magic) == 0 &&
                 strcmp(image, TARN_STANDIN_IMAGE) == 0;
  return is_ours ? TARN__CU_SUCCESS : TARN__CU_ERROR_INVALID_IMAGE;
}

static tarn__cuda_result load(CUcontext context, const void *image,
                              CUmodule *out) {
  tarn__cuda_result error = check_image(image);
  if (error != TARN__CU_SUCCESS) return error;
  CUmodule made = standin_new(STANDIN_MODULE, sizeof(struct CUmod_st));
  if (made == NULL) return TARN__CU_ERROR_OUT_OF_MEMORY;
  made->context = context;
  made->life = context->life;
  *out = made;
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuModuleLoadData(CUmodule *out, const void *image) {
  CUcontext context = NULL;
  BEGIN(STANDIN_NOT_IN_CAPTURES, &context);
  return END(load(context, image, out));
}

typedef struct search {
  CUmodule module;
  const tarn_standin_kernel *kernel;
  CUfunction found;
} search;

static void look(void *object, void *context) {
  CUfunction function = object;
  search *s = context;
  if (function->object.is_destroyed || function->module != s->module) return;
  if (s->kernel == NULL || function->kernel == s->kernel) s->found = function;
}

static CUfunction function_of(CUmodule module,
                              const tarn_standin_kernel *kernel) {
  search s = {.module = module, .kernel = kernel};
  standin_each(STANDIN_FUNCTION, look, &s);
  return s.found;
}

static tarn__cuda_result unload(CUmodule module) {
  tarn__cuda_result error = standin_check(module, STANDIN_MODULE);
  if (error != TARN__CU_SUCCESS) return error;
  for (CUfunction f; (f = function_of(module, NULL)) != NULL;)
    standin_destroy(f);
  standin_destroy(module);
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuModuleUnload(CUmodule module) {
  BEGIN(STANDIN_NOT_IN_CAPTURES, NULL);
  return END(unload(module));
}

static tarn__cuda_result get_function(CUmodule module, const char *name,
                                      CUfunction *out) {
  tarn__cuda_result error = standin_check(module, STANDIN_MODULE);
  if (error != TARN__CU_SUCCESS) return error;
  const tarn_standin_kernel *kernel = standin_kernel_find(name);
  if (kernel == NULL) return TARN__CU_ERROR_NOT_FOUND;
  *out = function_of(module, kernel);
  if (*out != NULL) return TARN__CU_SUCCESS;
  CUfunction made = standin_new(STANDIN_FUNCTION, sizeof(struct CUfunc_st));
  if (made == NULL) return TARN__CU_ERROR_OUT_OF_MEMORY;
  made->module = module;
  made->kernel = kernel;
  standin_keep(made);
  *out = made;
  return TARN__CU_SUCCESS;
}

tarn__cuda_result cuModuleGetFunction(CUfunction *out, CUmodule module,
                                      const char *name) {
  BEGIN(STANDIN_IN_CONTEXT, NULL);
  return END(get_function(module, name, out));
}

// --- launches --------------------------------------------------------------

static tarn__cuda_result check_shape(const tarn_standin_launch *launch) {
  uint64_t threads =
      (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
  const unsigned *grid = launch->grid;
  if (threads == 0 || threads > THREADS_MAX || grid[0] == 0 ||
      grid[0] > INT32_MAX || grid[1] == 0 || grid[1] > GRID_YZ_MAX ||
      grid[2] == 0 || grid[2] > GRID_YZ_MAX ||
      launch->shared_size > SHARED_MAX) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                         "%u x %u x %u blocks of %llu threads, %u bytes shared",
                         grid[0], grid[1], grid[2], (unsigned long long)threads,
                         launch->shared_size);
  }
  return TARN__CU_SUCCESS;
}

static tarn__cuda_result take_arguments(standin_task *task, void **arguments) {
  if (arguments == NULL || arguments[0] == NULL) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE, "no arguments");
  }
  task->arguments = malloc(task->kernel->size);
  if (task->arguments == NULL) return TARN__CU_ERROR_OUT_OF_MEMORY;
  memcpy(task->arguments, arguments[0], task->kernel->size);
  return TARN__CU_SUCCESS;
}

static tarn__cuda_result launch(CUcontext context, CUfunction function,
                                CUstream handle, standin_task *task,
                                void **arguments) {
  CUstream stream = NULL;
  tarn__cuda_result error = standin_check(function, STANDIN_FUNCTION);
  if (error != TARN__CU_SUCCESS) return error;
  if (function->module->context != context) {
    return standin_wrong(TARN__CU_ERROR_INVALID_HANDLE,
                         "the function is of another context");
  }
  error = standin_stream_to_queue(context, handle, &stream);
  if (error == TARN__CU_SUCCESS) error = check_shape(&task->launch);
  if (error != TARN__CU_SUCCESS) return error;
  task->call = standin_call();
  task->kernel = function->kernel;
  error = take_arguments(task, arguments);
  return error == TARN__CU_SUCCESS ? standin_submit(stream, task) : error;
}

tarn__cuda_result cuLaunchKernel(CUfunction function, unsigned grid_x,
                                 unsigned grid_y, unsigned grid_z,
                                 unsigned block_x, unsigned block_y,
                                 unsigned block_z, unsigned shared_size,
                                 CUstream stream, void **arguments,
                                 void **extra) {
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  if (extra != NULL) {
    return END(standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                             "the stand-in takes no extra options"));
  }
  standin_task task = {.action = STANDIN_KERNEL,
                       .launch = {.grid = {grid_x, grid_y, grid_z},
                                  .block = {block_x, block_y, block_z},
                                  .shared_size = shared_size}};
  return END(launch(context, function, stream, &task, arguments));
}
