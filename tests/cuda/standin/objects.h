// objects.h - what handles point to, who needs it, and the one lock.
//
// A handle is the address of one of these structs. The program destroys it
// once; the struct lives on while something of the stand-in's needs it.
#ifndef TARN_TESTS_CUDA_STANDIN_OBJECTS_H_
#define TARN_TESTS_CUDA_STANDIN_OBJECTS_H_

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api.h"

enum { STANDIN_DEVICES_MAX = 2 };

typedef enum standin_kind {
  STANDIN_CONTEXT,
  STANDIN_STREAM,
  STANDIN_EVENT,
  STANDIN_MODULE,
  STANDIN_FUNCTION,
  STANDIN_POOL,
  STANDIN_PHYSICAL,
  STANDIN_GRAPH,
  STANDIN_EXEC,
  STANDIN_KINDS,
} standin_kind;

// The first member of each of them.
typedef struct standin_object {
  standin_kind kind;
  bool is_destroyed;  // the program may not use the handle any more
  bool is_own;        // the stand-in's: not counted as the program's
  unsigned uses;      // held by other objects, queued commands, threads
} standin_object;

// A primary context. There is one struct for each device, for ever; what
// belongs to it has the number of the life in which it was made.
struct CUctx_st {
  standin_object object;
  int device;
  unsigned retains;
  bool is_active;             // from a retain on, until the life ends
  unsigned life;              // counts up with each end
  tarn__cuda_result failure;  // sticks until the life ends
  CUstream legacy;            // of this life; NULL: not used so far
};

typedef struct standin_command standin_command;
typedef struct standin_capture standin_capture;

enum { STANDIN_MEMBERS_MAX = 16 };

// How much of each stream of a capture lies before a point, by the streams'
// place in it.
typedef struct standin_past {
  size_t nodes[STANDIN_MEMBERS_MAX];
} standin_past;

struct CUstream_st {
  standin_object object;
  CUcontext context;
  unsigned life;
  unsigned flags;
  bool is_legacy;
  bool is_per_thread;
  standin_command *first;
  standin_command *last;
  uint64_t queued;    // number of the newest command
  uint64_t finished;  // of the newest that has ended, callbacks included
  bool running;       // a command, or its callbacks
  bool threaded;
  standin_capture *capture;  // that it is part of
  size_t member;             // its place there
};

struct CUevent_st {
  standin_object object;
  CUcontext context;
  unsigned life;
  CUstream stream;           // of the newest record; NULL: none. It is held.
  uint64_t number;           // of the command behind which it is over
  standin_capture *capture;  // in which the newest record was; held
  standin_past past;
};

struct CUmod_st {
  standin_object object;
  CUcontext context;
  unsigned life;
};

// Guards all objects, blocks and commands.
void standin_lock(void);
void standin_unlock(void);

// With the lock held. Waits until standin_tell_all is called.
void standin_wait_any(void);
void standin_tell_all(void);

// Everything below: with the lock held.

// A zero-filled object; NULL if there is no host memory.
void *standin_new(standin_kind kind, size_t size);

// Must be called once for each kind whose objects hold something: |end| gives
// it back.
void standin_ends_with(standin_kind kind, void (*end)(void *object));

// The object is the stand-in's: the program does not have to destroy it.
void standin_keep(void *object);

// True if |handle| is an object of that kind that the program has.
bool standin_is(const void *handle, standin_kind kind);

// CUDA_SUCCESS, or a wrong use, with CUDA_ERROR_INVALID_HANDLE.
tarn__cuda_result standin_check(const void *handle, standin_kind kind);

// The program is done with it.
void standin_destroy(void *object);

void standin_use(void *object);
void standin_unuse(void *object);

// Calls |visit| for each object of that kind, destroyed or not.
void standin_each(standin_kind kind, void (*visit)(void *object, void *context),
                  void *context);

// How many the program has.
size_t standin_count(standin_kind kind);

const char *standin_kind_name(standin_kind kind);

#endif  // TARN_TESTS_CUDA_STANDIN_OBJECTS_H_
