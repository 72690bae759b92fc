// Maps: two commands, and what the host may reach between their ends.
//
//   buffer         [      part      ]     memory with an address, and buffers
//                    copy |  ^ copy       that are the host's from the start:
//                         v  |            the host has the bytes themselves
//   host           [      part      ]
//
// A part that the host will overwrite is filled with 0xa5 first: what it held
// is lost on a driver too.
#include "maps.h"

#include <stdlib.h>
#include <string.h>

#include "faults.h"
#include "moves.h"
#include "report.h"
#include "settings.h"

enum { LOST = 0xa5 };

static void remove_map(standin_region *region, standin_map *map) {
  standin_map **at = &region->maps;
  while (*at != map)
    at = &(*at)->next;
  *at = map->next;
  if (map->is_copy) free(map->host);
  free(map);
}

// --- the first command -----------------------------------------------------

static void before_map(standin_command *command) {
  standin_region_map(command->mapped, command->map);
}

static cl_int run_map(standin_command *command) {
  const standin_map *map = command->map;
  unsigned char *bytes = command->mapped->bytes + map->offset;
  if ((map->flags & CL_MAP_WRITE_INVALIDATE_REGION) != 0) {
    memset(map->is_copy ? map->host : bytes, LOST, map->size);
  } else if (map->is_copy) {
    memcpy(map->host, bytes, map->size);
  }
  return CL_SUCCESS;
}

// A command that was refused leaves nothing behind. One that was queued and has
// failed leaves a part that the host does not reach, and may unmap.
static void after_map(standin_command *command, cl_int status) {
  (void)status;
  if (command->number == 0) remove_map(command->mapped, command->map);
}

static cl_int check_flags(cl_map_flags flags) {
  const cl_map_flags any = CL_MAP_READ | CL_MAP_WRITE;
  if (flags == CL_MAP_WRITE_INVALIDATE_REGION) return CL_SUCCESS;
  if ((flags & ~any) == 0 && flags != 0) return CL_SUCCESS;
  return standin_wrong(CL_INVALID_VALUE, "flags 0x%llx",
                       (unsigned long long)flags);
}

static standin_map *new_map(const standin_bytes *bytes, cl_map_flags flags,
                            bool copied) {
  standin_map *made = calloc(1, sizeof *made);
  if (made == NULL) return NULL;
  *made = (standin_map){.host = bytes->at,
                        .offset = bytes->offset,
                        .size = bytes->size,
                        .flags = flags,
                        .is_copy = copied};
  if (!copied) return made;
  made->host = malloc(bytes->size);
  if (made->host != NULL) return made;
  free(made);
  return NULL;
}

cl_int standin_map_begin(standin_command *command, const standin_bytes *bytes,
                         cl_map_flags flags, bool copied, void **out_host) {
  if (bytes->size == 0) return standin_wrong(CL_INVALID_VALUE, "0 bytes");
  cl_int error = check_flags(flags);
  if (error != CL_SUCCESS) return error;
  standin_map *map = new_map(bytes, flags, copied);
  if (map == NULL) return CL_MAP_FAILURE;
  standin_region *region = bytes->region;
  if (!copied && region->address != 0) {
    map->host = region->pages.shown + bytes->offset;
  }
  map->next = region->maps;
  region->maps = map;
  command->mapped = region;
  command->map = map;
  command->before = before_map;
  command->run = run_map;
  command->after = after_map;
  *out_host = map->host;
  // An overlap with other maps is what their flags say, not a command's.
  const standin_bytes held = {.region = region};
  return standin_command_touch(command, &held, false);
}

// --- the second ------------------------------------------------------------

static cl_int run_unmap(standin_command *command) {
  const standin_map *map = command->map;
  if (map->is_copy && map->flags != CL_MAP_READ) {
    memcpy(command->mapped->bytes + map->offset, map->host, map->size);
  }
  return CL_SUCCESS;
}

// The part ends even if the command fails: nothing else would end it.
static void after_unmap(standin_command *command, cl_int status) {
  (void)status;
  if (command->number == 0) {
    command->map->is_ending = false;
    return;
  }
  if (command->map->is_active) {
    standin_region_unmap(command->mapped, command->map);
  }
  remove_map(command->mapped, command->map);
}

cl_int standin_map_end(standin_command *command, standin_region *region,
                       const void *host) {
  standin_map *map = region->maps;
  while (map != NULL && (map->host != host || map->is_ending))
    map = map->next;
  if (map == NULL) {
    return standin_wrong(CL_INVALID_VALUE, "nothing is mapped at %p", host);
  }
  const standin_bytes held = {.region = region};
  cl_int error = standin_command_touch(command, &held, false);
  if (error != CL_SUCCESS) return error;
  map->is_ending = true;
  command->mapped = region;
  command->map = map;
  command->run = run_unmap;
  command->after = after_unmap;
  return CL_SUCCESS;
}

// --- buffers ---------------------------------------------------------------

static cl_int plan_map(standin_command *command, cl_mem buffer,
                       cl_map_flags flags, size_t offset, size_t size,
                       void **out) {
  standin_bytes bytes;
  cl_int error =
      standin_buffer_bytes(command->queue, buffer, offset, size, &bytes);
  if (error != CL_SUCCESS) return error;
  bool copied =
      (buffer->flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_USE_HOST_PTR)) == 0 ||
      bytes.region->sort == STANDIN_ADDRESS;
  return standin_map_begin(command, &bytes, flags, copied, out);
}

void *clEnqueueMapBuffer(cl_command_queue command_queue, cl_mem buffer,
                         cl_bool blocking_map, cl_map_flags map_flags,
                         size_t offset, size_t size,
                         cl_uint num_events_in_wait_list,
                         const cl_event *event_wait_list, cl_event *event,
                         cl_int *errcode_ret) {
  ENTER_MAKER(errcode_ret);
  void *host = NULL;
  standin_command *command = NULL;
  standin_lock();
  cl_int error =
      standin_command_begin(command_queue, CL_COMMAND_MAP_BUFFER,
                            num_events_in_wait_list, event_wait_list, &command);
  if (error == CL_SUCCESS) {
    error = plan_map(command, buffer, map_flags, offset, size, &host);
  }
  error = standin_command_end(command, error, blocking_map, event);
  standin_unlock();
  standin_tell(errcode_ret, error);
  return error == CL_SUCCESS ? host : NULL;
}

cl_int clEnqueueUnmapMemObject(cl_command_queue command_queue, cl_mem memobj,
                               void *mapped_ptr,
                               cl_uint num_events_in_wait_list,
                               const cl_event *event_wait_list,
                               cl_event *event) {
  ENTER();
  standin_command *command = NULL;
  standin_bytes bytes;
  standin_lock();
  cl_int error =
      standin_command_begin(command_queue, CL_COMMAND_UNMAP_MEM_OBJECT,
                            num_events_in_wait_list, event_wait_list, &command);
  if (error == CL_SUCCESS) {
    error = standin_buffer_bytes(command_queue, memobj, 0, 0, &bytes);
  }
  if (error == CL_SUCCESS) {
    error = standin_map_end(command, bytes.region, mapped_ptr);
  }
  error = standin_command_end(command, error, CL_FALSE, event);
  standin_unlock();
  return error;
}
