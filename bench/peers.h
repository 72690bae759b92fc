// peers.h - the allocators that are measured against each other, by name.
//
//   harness     no allocator: the time of the loop, which all rows have in
//               theirs
//   free_list   the limit: one stack of free blocks for each size, found
//               beforehand; only a row that does less could be faster
//   glibc       malloc and free of the C library
//   mimalloc, jemalloc, tcmalloc   those of libraries, where installed
//   umf_disjoint, umf_disjoint_tuned   UMF's disjoint pool, where libumf is
//               there: with its defaults, and told to keep all
//   no_pool, page_unit_pool, ...   Tarn's, each with its options if there are
//               any: "page_unit_pool:page=65536"
//   ./peer.so   that of a shared object (peer_abi.h), with options as well
//
// An allocator is a table of functions over a state of its own, which keeps
// the blocks that are out in slots. It has a loop of its own too (course.h), in
// which its alloc and free stand without a call through a pointer: 2 ns of
// harness would be a fifth of what is measured.
#ifndef TARN_BENCH_PEERS_H_
#define TARN_BENCH_PEERS_H_

#include "kit/requests.h"
#include "kit/stopwatch.h"

enum { PEER_TEXT_SIZE = 256 };

// The beginning of the text about a missing library.
#define PEER_MISSING "not installed: "

// The same where there is nothing to be measured.
#define PEER_NO_FIGURE "no figure: "

// For whom an allocator is made.
typedef struct peer_order {
  const char *name;    // with its options
  const char *device;  // of Tarn's pools and of shared objects
  const request_list *requests;
  size_t threads;
} peer_order;

// Serves one request: takes into its slot, or gives back what is there; or
// writes to one byte of each page of what was just taken.
typedef bool peer_request(void *self, const request *r);

// How requests are to be run through.
typedef struct peer_run {
  const request_list *requests;  // of this thread
  const stopwatch *watch;
  uint64_t *ticks;  // not NULL: each request is timed, clock readings included
  bool touched;     // each block is written to before the next request
  const struct crossing_side *side;  // NULL: one thread makes them all
} peer_run;

// Serves all requests in order. False at the first that is refused.
typedef bool peer_pass(void *self, const peer_run *run);

typedef struct peer_type {
  // An allocator without blocks, whose own memory has been written to. NULL:
  // |why|, PEER_TEXT_SIZE bytes, says why not.
  void *(*create)(const peer_order *order, char *why);
  void (*destroy)(void *self);

  peer_request *alloc;
  peer_request *free;
  peer_pass *pass;
  peer_pass *pass_by_address;  // NULL: it knows nothing but addresses

  // Bytes that it holds now of its source; 0: unknown. NULL:
  // only what is resident tells.
  size_t (*held)(void *self);

  // Why a request was just refused.
  const char *(*refusal)(void);
  bool on_device;  // its blocks lie on the order's device
} peer_type;

extern const peer_type peer_harness;
extern const peer_type peer_free_list;
extern const peer_type peer_glibc;
extern const peer_type peer_mimalloc;
extern const peer_type peer_jemalloc;
extern const peer_type peer_tcmalloc;
extern const peer_type peer_umf;
extern const peer_type peer_umf_tuned;
extern const peer_type peer_tarn;
extern const peer_type peer_file_type;

// Serves nothing: measures the loop itself and, with ticks, the readings.
peer_pass peer_empty_pass;

// The names without options, in order; NULL from |index| on that is beyond the
// last.
const char *peer_name(size_t index);

// The allocator called |name|, with or without options; NULL if there is none.
const peer_type *peer_find(const char *name);

// The file from which |function|'s code comes; "" if unknown.
const char *peer_code_of(void *(*function)(size_t size));

// A library by the first of |sonames| (NULL ends them) that is there, kept to
// itself. NULL: |why| says why not, with the name of the package.
void *peer_library(const char *const *sonames, const char *package, char *why);

// Which file the code of the peer |name| comes from, loaded into this process;
// "" if it cannot be.
const char *peer_file(const char *name);

#endif  // TARN_BENCH_PEERS_H_
