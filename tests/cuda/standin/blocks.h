// blocks.h - memory that a program was given, by address.
//
// All with the lock of objects held.
#ifndef TARN_TESTS_CUDA_STANDIN_BLOCKS_H_
#define TARN_TESTS_CUDA_STANDIN_BLOCKS_H_

#include "objects.h"
#include "pages.h"

typedef enum standin_sort {
  STANDIN_DEVICE,      // cuMemAlloc
  STANDIN_POOLED,      // stream-ordered
  STANDIN_MAPPED,      // cuMemMap
  STANDIN_PINNED,      // cuMemHostAlloc
  STANDIN_REGISTERED,  // cuMemHostRegister
  STANDIN_MANAGED,     // cuMemAllocManaged
  STANDIN_SORTS,
} standin_sort;

typedef struct standin_block {
  standin_sort sort;
  uint64_t address;  // that the program has
  size_t size;
  CUcontext context;  // in which it was made
  unsigned life;
  unsigned char *bytes;  // where the device reads and writes
  standin_store store;   // that holds the bytes, if they are its own
  unsigned char *pages;  // in which |address| is; NULL: the program's
  size_t pages_size;
  void *holder;      // an object that holds the bytes, and is held: a
                     // physical block, a pool; NULL: none
  uint64_t tenant;   // counts up with each program that gets the address
  uint64_t present;  // the tenant by the stream's order; 0: none
  unsigned rights[STANDIN_DEVICES_MAX];  // of the devices
  unsigned uses;                         // queued commands
  bool is_open;                          // to kernels
  bool freed;
} standin_block;

// Makes a block with pages of its own. |align|: of its address, which has no
// better one. NULL: no memory.
standin_block *standin_block_make(standin_sort sort, CUcontext context,
                                  size_t size, size_t align);

// A block over pages, or memory, that is there: |bytes| and |holder| of
// |model|, which may be anything.
standin_block *standin_block_over(const standin_block *model);

// The program is done with it; it ends when its last use does.
void standin_block_free(standin_block *block);

// The same, but what was queued before, and uses it, may still do so.
void standin_block_leave(standin_block *block);

// The program has freed it, but it stays as it is, and is held.
void standin_block_set_aside(standin_block *block);

// The program has it again, as |size| bytes, which are not there so far. It is
// not held any more.
void standin_block_revive(standin_block *block, size_t size);

void standin_block_use(standin_block *block);
void standin_block_unuse(standin_block *block);

// The block with |address| in it, live or freed; NULL if there is none.
standin_block *standin_block_at(uint64_t address);

// The live block of one of |sorts|, a set of 1 << sort, that begins at
// |address|. Else NULL, and a wrong use, which says that it is no |what|.
standin_block *standin_block_exactly(uint64_t address, unsigned sorts,
                                     const char *what);

// True if a live block lies in the |size| bytes at |address|.
bool standin_block_between(uint64_t address, size_t size);

// Calls |visit| for each live block.
void standin_block_each(void (*visit)(standin_block *block, void *context),
                        void *context);

size_t standin_block_count(standin_sort sort);
const char *standin_sort_name(standin_sort sort);

// True where the host faults.
bool standin_block_is_closed(const standin_block *block);

// A kernel runs on that device, and reaches all memory that it has rights to,
// or has ended.
void standin_blocks_open(int device);
void standin_blocks_close(int device);

#endif  // TARN_TESTS_CUDA_STANDIN_BLOCKS_H_
