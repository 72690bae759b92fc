// backing.h - memory apart from addresses, for mapping into ranges.
//
//   private     lives in the pages at which it is mapped. While it is mapped
//               nowhere its bytes are parked at addresses of its own.
//   shareable   a file in memory, mapped wherever it is wanted; all of it is
//               there from the first, on huge pages if they can be had
//
// Not synchronized: every function is called under the lock of ranges
// (range.c).
#ifndef TARN_PLUGINS_CPU_BACKING_H_
#define TARN_PLUGINS_CPU_BACKING_H_

#include "base/os.h"
#include "base/range_map.h"
#include "tarn/base.h"

typedef struct tarn__cpu_backing {
  tarn__range_map_node node;  // |start|: its handle; 0: dropped
  size_t size;
  void *park;         // private, not mapped: where its bytes are; NULL: zeros
  uint64_t at;        // private, mapped: where
  int fd;             // of a shareable one; -1: private
  uint32_t mappings;  // how often it is mapped now
  bool written;       // private: it was writable, so it may hold bytes
  bool spent;         // private: its memory is mappings' own; only its handle
                      // is left
} tarn__cpu_backing;

// New memory with a handle. |fd|: a file to take over, or -1. NULL with
// nothing taken over if there is no host memory.
tarn__cpu_backing *tarn__cpu_backing_make(size_t size, int fd);

// The memory with that handle; NULL if there is none.
tarn__cpu_backing *tarn__cpu_backing_find(uint64_t handle);

// Ends the handle of memory that is not mapped, or is shareable: where that is
// mapped it stays.
void tarn__cpu_backing_drop(tarn__cpu_backing *backing);

// Whether all of it is zero now; it is not mapped.
bool tarn__cpu_backing_is_zeros(const tarn__cpu_backing *backing);

// Maps it at reserved addresses, without access at first. False with errno if
// the kernel refuses.
//
// Cost: nothing where it is zeros.
TARN_MUST_CHECK bool tarn__cpu_backing_put(tarn__cpu_backing *backing,
                                           void *at);

// Unmaps it; the addresses stay reserved. |access|: its access there. The
// memory ends if it was dropped and this was its last mapping. False with errno
// if the kernel refuses; then nothing has changed.
TARN_MUST_CHECK bool tarn__cpu_backing_take(tarn__cpu_backing *backing,
                                            void *at, tarn__os_access access);

// Whether its bytes outlive its mapping, so that it has to be taken by itself.
bool tarn__cpu_backing_is_kept(const tarn__cpu_backing *backing);

// Moves |size| mapped bytes to reserved addresses, with their access; the
// addresses at |from| stay reserved, but of private memory (|backing| is NULL,
// or private) they have to be vacated. False with errno if the kernel refuses;
// then nothing has changed.
TARN_MUST_CHECK bool tarn__cpu_backing_move(const tarn__cpu_backing *backing,
                                            void *from, void *to, size_t size,
                                            tarn__os_access access);

// For a mapping whose addresses are reserved again, or gone altogether.
void tarn__cpu_backing_lose(tarn__cpu_backing *backing);

// Drops all handles, at the end.
void tarn__cpu_backing_drop_all(void);

#endif  // TARN_PLUGINS_CPU_BACKING_H_
