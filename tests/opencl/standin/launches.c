// Launches: a kernel as it was when it was queued, and the memory that it may
// use, which is open to it while it runs.
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "faults.h"
#include "kernels.h"
#include "report.h"

struct standin_launching {
  tarn_standin_launch launch;
  tarn_standin_function function;
  char kernel[128];
  char *options;
  tarn_standin_argument arguments[STANDIN_ARGUMENTS_MAX];
  unsigned char values[STANDIN_ARGUMENTS_MAX][STANDIN_VALUE_MAX];
  void *locals[STANDIN_ARGUMENTS_MAX];
  bool opened;
};

// --- what is queued --------------------------------------------------------

// Which bytes of it the kernel means nobody knows, so none can be in conflict
// with what the host has mapped.
static cl_int touch_region(standin_command *command, standin_region *region) {
  const standin_bytes bytes = {.region = region};
  return standin_command_touch(command, &bytes, true);
}

// The region is freed: a driver may not notice, and reads whatever is there.
static cl_int touch_address(standin_command *command, uint64_t address) {
  standin_region *region = standin_region_at(address);
  if (region == NULL) return CL_SUCCESS;
  if (!region->freed) return touch_region(command, region);
  return standin_wrong(CL_INVALID_KERNEL_ARGS, "0x%llx is in %s that was freed",
                       (unsigned long long)address,
                       standin_sort_name(region->sort));
}

static void put_pointer(standin_launching *launch, size_t i,
                        const void *pointer, size_t memory_size) {
  memcpy(launch->values[i], &pointer, sizeof pointer);
  launch->arguments[i] =
      (tarn_standin_argument){launch->values[i], sizeof pointer, memory_size};
}

static cl_int put_object(standin_command *command, size_t i, cl_mem buffer) {
  if (!standin_is(buffer, STANDIN_BUFFER)) {
    return standin_wrong(CL_INVALID_KERNEL_ARGS,
                         "argument %zu: buffer %p was released", i,
                         (void *)buffer);
  }
  const standin_region *region = buffer->region;
  put_pointer(command->launch, i, region->bytes, region->size);
  return touch_region(command, buffer->region);
}

static cl_int put_address(standin_command *command, size_t i,
                          uint64_t address) {
  const standin_region *region = standin_region_at(address);
  size_t left =
      region != NULL ? (size_t)(region->address + region->size - address) : 0;
  put_pointer(command->launch, i, (const void *)(uintptr_t)address, left);
  return touch_address(command, address);
}

static cl_int put_local(standin_launching *launch, size_t i, size_t size) {
  launch->locals[i] = malloc(size);
  if (launch->locals[i] == NULL) return CL_OUT_OF_RESOURCES;
  put_pointer(launch, i, launch->locals[i], size);
  return CL_SUCCESS;
}

static cl_int put_argument(standin_command *command, size_t i,
                           const standin_parameter *parameter) {
  standin_launching *launch = command->launch;
  switch (parameter->how) {
    case STANDIN_UNSET:
      return standin_wrong(CL_INVALID_KERNEL_ARGS,
                           "argument %zu of '%s' is not set", i,
                           launch->kernel);
    case STANDIN_VALUE:
      memcpy(launch->values[i], parameter->value, parameter->size);
      launch->arguments[i] =
          (tarn_standin_argument){launch->values[i], parameter->size, 0};
      return CL_SUCCESS;
    case STANDIN_LOCAL:
      return put_local(launch, i, parameter->size);
    case STANDIN_OBJECT:
      return put_object(command, i, parameter->buffer);
    case STANDIN_POINTER:
      return put_address(command, i, parameter->address);
  }
  return CL_INVALID_KERNEL_ARGS;
}

static size_t count_arguments(const struct _cl_kernel *kernel,
                              const tarn_standin_kernel_entry *entry) {
  if (entry->arguments != NULL) return strlen(entry->arguments);
  size_t count = STANDIN_ARGUMENTS_MAX;
  while (count > 0 && kernel->parameters[count - 1].how == STANDIN_UNSET) {
    count--;
  }
  return count;
}

typedef struct visit {
  standin_command *command;
  cl_int error;
} visit;

static void touch_each(standin_region *region, void *visitor) {
  visit *one = visitor;
  cl_int error = touch_region(one->command, region);
  if (error != CL_SUCCESS) one->error = error;
}

static cl_int touch_indirect(standin_command *command,
                             const struct _cl_kernel *kernel) {
  for (size_t list = 0; list < STANDIN_LISTS; list++) {
    const standin_pointers *pointers = &kernel->lists[list];
    for (size_t i = 0; i < pointers->count; i++) {
      cl_int error = touch_address(command, pointers->items[i]);
      if (error != CL_SUCCESS) return error;
    }
  }
  visit all = {command, CL_SUCCESS};
  standin_region_each(command->queue->context, kernel->indirect, touch_each,
                      &all);
  return all.error;
}

// --- running ---------------------------------------------------------------

// The memory must be open for the whole of it: kernels hold addresses.
static void before_launch(standin_command *command) {
  command->launch->opened = true;
  for (size_t i = 0; i < command->touch_count; i++) {
    standin_region_open(command->touches[i].region);
  }
}

static cl_int run_launch(standin_command *command) {
  const standin_launching *launch = command->launch;
  return launch->function(&launch->launch);
}

static void after_launch(standin_command *command, cl_int status) {
  (void)status;
  standin_launching *launch = command->launch;
  for (size_t i = 0; launch->opened && i < command->touch_count; i++) {
    standin_region_close(command->touches[i].region);
  }
  for (size_t i = 0; i < STANDIN_ARGUMENTS_MAX; i++)
    free(launch->locals[i]);
  free(launch->options);
  free(launch);
}

// --- clEnqueueNDRangeKernel ------------------------------------------------

typedef struct grid {
  cl_uint dimensions;
  const size_t *offset;
  const size_t *global;
  const size_t *local;
} grid;

static cl_int check_grid(const grid *wanted) {
  if (wanted->dimensions < 1 || wanted->dimensions > 3) {
    return standin_wrong(CL_INVALID_WORK_DIMENSION, "%u dimensions",
                         (unsigned)wanted->dimensions);
  }
  size_t group = 1;
  for (cl_uint i = 0; i < wanted->dimensions; i++) {
    if (wanted->global == NULL || wanted->global[i] == 0) {
      return standin_wrong(CL_INVALID_GLOBAL_WORK_SIZE,
                           "dimension %u has no work items", (unsigned)i);
    }
    if (wanted->local == NULL) continue;
    group *= wanted->local[i];
    if (wanted->local[i] == 0 || wanted->global[i] % wanted->local[i] != 0) {
      return standin_wrong(CL_INVALID_WORK_GROUP_SIZE,
                           "dimension %u: groups of %zu of %zu", (unsigned)i,
                           wanted->local[i], wanted->global[i]);
    }
  }
  if (group <= STANDIN_WORK_GROUP_MAX) return CL_SUCCESS;
  return standin_wrong(CL_INVALID_WORK_GROUP_SIZE, "a group of %zu", group);
}

static void put_grid(tarn_standin_launch *launch, const grid *wanted) {
  launch->dimensions = wanted->dimensions;
  for (size_t i = 0; i < 3; i++) {
    bool given = i < wanted->dimensions;
    launch->global[i] = given ? wanted->global[i] : 1;
    launch->offset[i] = given && wanted->offset != NULL ? wanted->offset[i] : 0;
    launch->local[i] = given && wanted->local != NULL ? wanted->local[i] : 0;
  }
}

static cl_int find_function(const struct _cl_kernel *kernel,
                            const tarn_standin_kernel_entry **out) {
  *out = standin_kernel_find(kernel->name, kernel->program->options);
  if (*out != NULL) return CL_SUCCESS;
  return standin_wrong(CL_INVALID_KERNEL,
                       "no function stands for '%s' with options '%s'",
                       kernel->name, kernel->program->options);
}

static cl_int new_launch(standin_command *command,
                         const struct _cl_kernel *kernel,
                         const tarn_standin_kernel_entry *entry) {
  standin_launching *made = calloc(1, sizeof *made);
  if (made == NULL) return CL_OUT_OF_HOST_MEMORY;
  command->launch = made;
  command->before = before_launch;
  command->run = run_launch;
  command->after = after_launch;
  made->function = entry->function;
  memcpy(made->kernel, kernel->name, sizeof made->kernel);
  made->options = strdup(kernel->program->options);
  if (made->options == NULL) return CL_OUT_OF_HOST_MEMORY;
  made->launch.kernel = made->kernel;
  made->launch.options = made->options;
  made->launch.arguments = made->arguments;
  made->launch.count = count_arguments(kernel, entry);
  made->launch.inside = command;
  return CL_SUCCESS;
}

static cl_int plan_launch(standin_command *command, cl_kernel kernel,
                          const grid *wanted) {
  cl_int error = standin_check(kernel, STANDIN_KERNEL);
  if (error != CL_SUCCESS) return error;
  if (kernel->program->context != command->queue->context) {
    return standin_wrong(CL_INVALID_CONTEXT,
                         "the kernel is of another context");
  }
  error = check_grid(wanted);
  if (error != CL_SUCCESS) return error;
  const tarn_standin_kernel_entry *entry = NULL;
  error = find_function(kernel, &entry);
  if (error == CL_SUCCESS) error = new_launch(command, kernel, entry);
  if (error != CL_SUCCESS) return error;
  put_grid(&command->launch->launch, wanted);
  for (size_t i = 0; i < command->launch->launch.count; i++) {
    error = put_argument(command, i, &kernel->parameters[i]);
    if (error != CL_SUCCESS) return error;
  }
  return touch_indirect(command, kernel);
}

cl_int clEnqueueNDRangeKernel(
    cl_command_queue command_queue, cl_kernel kernel, cl_uint work_dim,
    const size_t *global_work_offset, const size_t *global_work_size,
    const size_t *local_work_size, cl_uint num_events_in_wait_list,
    const cl_event *event_wait_list, cl_event *event) {
  ENTER();
  const grid wanted = {work_dim, global_work_offset, global_work_size,
                       local_work_size};
  standin_command *command = NULL;
  standin_lock();
  cl_int error =
      standin_command_begin(command_queue, CL_COMMAND_NDRANGE_KERNEL,
                            num_events_in_wait_list, event_wait_list, &command);
  if (error == CL_SUCCESS) error = plan_launch(command, kernel, &wanted);
  error = standin_command_end(command, error, CL_FALSE, event);
  standin_unlock();
  return error;
}

// --- for the functions -----------------------------------------------------

static bool has_touch(const standin_command *command,
                      const standin_region *region) {
  for (size_t i = 0; i < command->touch_count; i++) {
    if (command->touches[i].region == region) return true;
  }
  return false;
}

static void *translate(const standin_command *command, uint64_t address,
                       size_t size) {
  standin_region *region = standin_region_at(address);
  if (region == NULL || region->bytes == NULL ||
      size > region->address + region->size - address) {
    standin_wrong(CL_INVALID_VALUE, "%zu bytes at 0x%llx are no memory", size,
                  (unsigned long long)address);
    return NULL;
  }
  if (command != NULL && !has_touch(command, region)) {
    standin_wrong(CL_INVALID_VALUE, "the kernel was not told of 0x%llx",
                  (unsigned long long)address);
    return NULL;
  }
  return region->bytes + (address - region->address);
}

void *tarn_standin_translate(const tarn_standin_launch *launch,
                             uint64_t address, size_t size) {
  standin_lock();
  void *at = translate(launch != NULL ? launch->inside : NULL, address, size);
  standin_unlock();
  return at;
}
