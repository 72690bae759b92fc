// objects.h - what handles point to, who holds it, and the one lock.
//
// A handle is the address of one of these structs. No driver's layout is
// imitated: the stand-in is loaded in the loader's place, so nobody dispatches
// through them.
#ifndef TARN_TESTS_OPENCL_STANDIN_OBJECTS_H_
#define TARN_TESTS_OPENCL_STANDIN_OBJECTS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api.h"

typedef enum standin_kind {
  STANDIN_PLATFORM,
  STANDIN_DEVICE,
  STANDIN_CONTEXT,
  STANDIN_QUEUE,
  STANDIN_BUFFER,
  STANDIN_EVENT,
  STANDIN_PROGRAM,
  STANDIN_KERNEL,
  STANDIN_KINDS,
} standin_kind;

// The first member of each of them. A handle may be used while |refs| is not 0;
// the object lives while one of the two is not 0.
typedef struct standin_object {
  standin_kind kind;
  cl_uint refs;  // held by the program
  cl_uint uses;  // held by other objects, queued commands, threads
} standin_object;

enum {
  STANDIN_DEVICES_MAX = 16,
  STANDIN_PLATFORMS_MAX = 8,
  STANDIN_WORK_GROUP_MAX = 256,
};

struct _cl_platform_id {
  standin_object object;
  cl_uint number;
};

struct _cl_device_id {
  standin_object object;
  cl_platform_id platform;
  cl_uint number;
};

struct _cl_context {
  standin_object object;
  cl_uint device_count;
  cl_device_id devices[STANDIN_DEVICES_MAX];
  cl_context_properties properties[4];
  size_t properties_size;
  uint64_t bytes;  // of its memory
};

typedef struct standin_command standin_command;
typedef struct standin_region standin_region;
typedef struct standin_callback standin_callback;

struct _cl_command_queue {
  standin_object object;
  cl_context context;
  cl_device_id device;
  cl_command_queue_properties properties;
  standin_command *first;
  standin_command *last;
  uint64_t queued;    // number of the newest command
  uint64_t flushed;   // of the newest that may begin
  uint64_t finished;  // of the newest that has ended, callbacks included
  bool running;       // a command, or its callbacks
  bool threaded;
  cl_int failure;  // the first; 0: none
};

struct _cl_mem {
  standin_object object;
  cl_context context;
  cl_mem_flags flags;
  void *host_pointer;
  standin_region *region;
  cl_mem_properties properties[4];
  size_t properties_size;
};

struct _cl_event {
  standin_object object;
  cl_context context;
  cl_command_queue queue;  // NULL: the program's own
  cl_command_type type;
  cl_int status;
  bool settled;  // by the program
  standin_callback *callbacks;
};

struct _cl_program {
  standin_object object;
  cl_context context;
  char *source;
  char *options;
  bool built;
  bool from_binary;
  cl_build_status status;
  char log[256];
};

// Guards all objects, regions and commands.
void standin_lock(void);
void standin_unlock(void);

// With the lock held. Waits until standin_tell_all is called.
void standin_wait_any(void);
void standin_tell_all(void);

// Everything below: with the lock held.

// A zero-filled object with one reference; NULL if there is no host memory.
void *standin_new(standin_kind kind, size_t size);

// Must be called once for each kind: |end| gives back what the object holds.
void standin_ends_with(standin_kind kind, void (*end)(void *object));

// True if |handle| is a live object of that kind.
bool standin_is(const void *handle, standin_kind kind);

// True if |handle| was one, not long ago.
bool standin_was(const void *handle, standin_kind kind);

// CL_SUCCESS, or a wrong use, with the code that is the kind's.
cl_int standin_check(const void *handle, standin_kind kind);

void standin_use(void *object);
void standin_unuse(void *object);

// What clRetain... and clRelease... do. They take the lock.
cl_int standin_retain(void *handle, standin_kind kind);
cl_int standin_release(void *handle, standin_kind kind);

// What CL_..._REFERENCE_COUNT says.
cl_uint standin_references(const void *handle);

// Calls |visit| for each live object of that kind.
void standin_each(standin_kind kind, void (*visit)(void *object, void *context),
                  void *context);
size_t standin_count(standin_kind kind);

const char *standin_kind_name(standin_kind kind);

#endif  // TARN_TESTS_OPENCL_STANDIN_OBJECTS_H_
