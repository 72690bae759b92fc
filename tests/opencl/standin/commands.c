// Commands: what all of them have in common until they are in a queue.
//
// A command holds its queue, its event, the events that it waits for and the
// memory that it touches.
#include "commands.h"

#include <stdlib.h>
#include <string.h>

#include "events.h"
#include "faults.h"
#include "report.h"
#include "settings.h"
#include "worker.h"

static cl_int take_waits(standin_command *command, cl_uint count,
                         const cl_event *list) {
  if (count == 0) return CL_SUCCESS;
  command->waits = malloc(count * sizeof *list);
  if (command->waits == NULL) return CL_OUT_OF_HOST_MEMORY;
  memcpy(command->waits, list, count * sizeof *list);
  command->wait_count = count;
  for (cl_uint i = 0; i < count; i++)
    standin_use(list[i]);
  return CL_SUCCESS;
}

void standin_command_free(standin_command *command) {
  for (cl_uint i = 0; i < command->wait_count; i++) {
    standin_unuse(command->waits[i]);
  }
  for (size_t i = 0; i < command->touch_count; i++) {
    standin_region_unuse(command->touches[i].region);
  }
  if (command->event != NULL) standin_unuse(command->event);
  standin_unuse(command->queue);
  free(command->waits);
  free(command->touches);
  free(command);
}

cl_int standin_command_begin(cl_command_queue queue, cl_command_type type,
                             cl_uint count, const cl_event *list,
                             standin_command **out) {
  cl_int error = standin_check(queue, STANDIN_QUEUE);
  if (error != CL_SUCCESS) return error;
  error = standin_check_list(queue->context, count, list);
  if (error != CL_SUCCESS) return error;
  standin_command *made = calloc(1, sizeof *made);
  if (made == NULL) return CL_OUT_OF_HOST_MEMORY;
  made->call = standin_call();
  made->queue = queue;
  standin_use(queue);
  made->event = standin_event_new(queue->context, queue, type);
  error = made->event != NULL ? take_waits(made, count, list)
                              : CL_OUT_OF_HOST_MEMORY;
  if (made->event != NULL) {
    standin_use(made->event);
    made->event->object.refs--;  // the program has none yet
  }
  if (error != CL_SUCCESS) {
    standin_command_free(made);
    return error;
  }
  *out = made;
  return CL_SUCCESS;
}

static bool has_room(standin_command *command) {
  if (command->touch_count < command->touch_room) return true;
  size_t room = command->touch_room != 0 ? 2 * command->touch_room : 4;
  standin_touch *grown =
      realloc(command->touches, room * sizeof *command->touches);
  if (grown == NULL) return false;
  command->touches = grown;
  command->touch_room = room;
  return true;
}

cl_int standin_command_touch(standin_command *command,
                             const standin_bytes *bytes, bool writes) {
  if (bytes->region == NULL) return CL_SUCCESS;
  if (!has_room(command)) return CL_OUT_OF_HOST_MEMORY;
  command->touches[command->touch_count++] =
      (standin_touch){bytes->region, bytes->offset, bytes->size, writes};
  standin_region_use(bytes->region);
  return CL_SUCCESS;
}

static cl_int await(cl_event event) {
  if (standin_event_wait(event) >= 0 ||
      standin_number(STANDIN_FINISH_TELLS) == 0) {
    return CL_SUCCESS;
  }
  return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
}

cl_int standin_command_end(standin_command *command, cl_int error,
                           cl_bool blocking, cl_event *event) {
  if (command == NULL) return error;
  if (error == CL_SUCCESS && blocking) error = standin_may_wait();
  if (error == CL_SUCCESS) error = standin_queue_thread(command->queue);
  if (error != CL_SUCCESS) {
    if (command->after != NULL) command->after(command, error);
    standin_command_free(command);
    return error;
  }
  cl_event own = command->event;
  if (event != NULL) own->object.refs++;
  if (event != NULL) *event = own;
  if (blocking) standin_use(own);
  command->doomed = standin_next_command();
  standin_queue_add(command);
  if (!blocking) return CL_SUCCESS;
  error = await(own);
  standin_unuse(own);
  return error;
}
