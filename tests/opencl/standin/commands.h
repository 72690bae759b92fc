// commands.h - a command from its call to its end.
//
//   standin_command *command = NULL;
//   standin_lock();
//   error = standin_command_begin(queue, TYPE, count, list, &command);
//   if (error == CL_SUCCESS) error = ... check, fill |command| in
//   error = standin_command_end(command, error, blocking, event);
//   standin_unlock();
#ifndef TARN_TESTS_OPENCL_STANDIN_COMMANDS_H_
#define TARN_TESTS_OPENCL_STANDIN_COMMANDS_H_

#include "objects.h"
#include "regions.h"

enum { STANDIN_PATTERN_MAX = 128 };

// Bytes that a command reads or writes. It holds the region.
typedef struct standin_touch {
  standin_region *region;
  size_t offset;
  size_t size;
  bool writes;
} standin_touch;

typedef struct standin_launching standin_launching;

struct standin_command {
  standin_command *next;
  const char *call;  // that queued it
  cl_command_queue queue;
  cl_event event;
  uint64_t number;  // in the queue, from 1
  cl_int doomed;    // ends with this status, having done nothing; 0: it runs
  cl_uint wait_count;
  cl_event *waits;
  size_t touch_count;
  size_t touch_room;
  standin_touch *touches;

  // With the lock, before and after; |after| also if the command has failed.
  void (*before)(standin_command *command);
  void (*after)(standin_command *command, cl_int status);
  // Without the lock. NULL: there is nothing to do.
  cl_int (*run)(standin_command *command);

  // For the functions above.
  unsigned char *to;
  const unsigned char *from;
  size_t size;
  unsigned char pattern[STANDIN_PATTERN_MAX];
  size_t pattern_size;
  standin_region *mapped;
  standin_map *map;
  standin_launching *launch;
};

// All with the lock held.

// Checks the queue and the wait list, and makes a command.
cl_int standin_command_begin(cl_command_queue queue, cl_command_type type,
                             cl_uint count, const cl_event *list,
                             standin_command **out);

// The command needs these bytes.
cl_int standin_command_touch(standin_command *command,
                             const standin_bytes *bytes, bool writes);

// Queues it, or ends it if |error| is one. Waits for it if it is |blocking|.
// Returns |error|, or what went wrong now. |command| may be NULL with an error.
cl_int standin_command_end(standin_command *command, cl_int error,
                           cl_bool blocking, cl_event *event);

// For the queue: no command holds anything after this.
void standin_command_free(standin_command *command);

#endif  // TARN_TESTS_OPENCL_STANDIN_COMMANDS_H_
