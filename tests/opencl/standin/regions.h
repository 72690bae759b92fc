// regions.h - memory of a context: of a buffer, or with an address of its own.
//
// All with the lock of objects held.
#ifndef TARN_TESTS_OPENCL_STANDIN_REGIONS_H_
#define TARN_TESTS_OPENCL_STANDIN_REGIONS_H_

#include "objects.h"
#include "pages.h"

typedef enum standin_sort {
  STANDIN_PLAIN,       // a buffer's; it has no address
  STANDIN_ADDRESS,     // a buffer's, with an address of the device
  STANDIN_COARSE,      // SVM that the host reaches while it is mapped
  STANDIN_FINE,        // SVM that it always reaches
  STANDIN_USM_DEVICE,  // Intel's three
  STANDIN_USM_HOST,
  STANDIN_USM_SHARED,
  STANDIN_SORTS,
} standin_sort;

enum {
  STANDIN_ANY_SVM = 1 << STANDIN_COARSE | 1 << STANDIN_FINE,
  STANDIN_ANY_USM =
      1 << STANDIN_USM_DEVICE | 1 << STANDIN_USM_HOST | 1 << STANDIN_USM_SHARED,
};

// A part that the host has mapped, or is going to. |host| is where, and the
// bytes lie there themselves unless |is_copy|.
typedef struct standin_map {
  struct standin_map *next;
  unsigned char *host;
  size_t offset;
  size_t size;
  cl_map_flags flags;
  bool is_copy;
  bool is_active;  // between the two commands
  bool is_ending;  // the second is queued
} standin_map;

struct standin_region {
  standin_sort sort;
  cl_context context;
  cl_device_id device;  // of Intel's memory of one device; else NULL
  uint64_t address;     // that the program has; 0: none
  size_t size;
  unsigned char *bytes;  // where the device reads and writes
  standin_pages pages;   // empty: the bytes are the program's
  standin_region *lent;  // by which the bytes are held, then
  standin_map *maps;
  cl_uint uses;   // queued commands and buffers
  cl_uint opens;  // kernels that run
  bool freed;
};

// The bytes of a block that a call means.
typedef struct standin_bytes {
  standin_region *region;  // NULL: memory of the program
  unsigned char *at;
  size_t offset;  // in the region
  size_t size;
} standin_bytes;

// Takes memory; CL_SUCCESS, or that there is none.
cl_int standin_region_take(cl_context context, standin_sort sort, size_t size,
                           standin_region **out);

// The same over memory of the program at |bytes|.
cl_int standin_region_over(cl_context context, void *bytes, size_t size,
                           standin_region **out);

// The program is done with it; it ends when its last use does.
void standin_region_free(standin_region *region);
void standin_region_use(standin_region *region);
void standin_region_unuse(standin_region *region);

// The region with |address| in it, live or freed; NULL if there is none.
standin_region *standin_region_at(uint64_t address);

// The |size| bytes at |address|, which is in a block of |context| of one of
// |sorts|, or, with |plain_too|, in memory of the program. Else a wrong use.
cl_int standin_region_bytes(cl_context context, const void *address,
                            size_t size, int sorts, bool plain_too,
                            standin_bytes *out);

// The |size| bytes of the program's at |address|, which a command between a
// buffer and the host means: also memory with an address that the host reaches.
cl_int standin_region_host(cl_context context, const void *address, size_t size,
                           standin_bytes *out);

const char *standin_sort_name(standin_sort sort);

// How many regions with one of |sorts| live, and the bytes of all.
size_t standin_region_count(int sorts);
uint64_t standin_region_total(void);

// Calls |visit| for each live region of |context| of one of |sorts|.
void standin_region_each(cl_context context, int sorts,
                         void (*visit)(standin_region *region, void *context),
                         void *visitor);

// A kernel runs that may use the memory at its own address, or has ended.
void standin_region_open(standin_region *region);
void standin_region_close(standin_region *region);

// Beginning and end of what the host may reach.
void standin_region_map(standin_region *region, standin_map *map);
void standin_region_unmap(standin_region *region, standin_map *map);

#endif  // TARN_TESTS_OPENCL_STANDIN_REGIONS_H_
