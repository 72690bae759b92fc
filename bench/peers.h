// peers.h - the allocators that are measured against each other, by name.
//
//   free_list   the limit: one stack of free blocks for each size, found
//               beforehand; only a row that does less could be faster
//   glibc       malloc and free of the C library
//   no_pool, page_unit_pool, ...   Tarn's, each with its options if there are
//               any: "page_unit_pool:page=65536"
//
// An allocator is a table of functions over a state of its own, which keeps
// the blocks that are out in slots. It has a loop of its own too, in which its
// alloc and free stand without a call through a pointer: 2 ns of harness would
// be a fifth of what is measured.
#ifndef TARN_BENCH_PEERS_H_
#define TARN_BENCH_PEERS_H_

#include "tool/requests.h"
#include "tool/stopwatch.h"

enum { PEER_TEXT_SIZE = 256 };

// Serves one request: takes into its slot, or gives back what is there.
typedef bool peer_request(void *self, const request *r);

// Serves all requests in order. With |ticks|, one for each request, times each
// by itself, the two readings of the clock included; without, does nothing
// else. False at the first that is refused.
typedef bool peer_pass(void *self, const request_list *requests,
                       const stopwatch *watch, uint64_t *ticks);

typedef struct peer_type {
  // An allocator without blocks, ready for |requests|, whose own memory has
  // been written to. NULL: |why|, PEER_TEXT_SIZE bytes, says why not.
  void *(*create)(const char *name, const request_list *requests, char *why);
  void (*destroy)(void *self);

  peer_request *alloc;
  peer_request *free;
  peer_pass *pass;
  peer_pass *pass_by_address;  // NULL: it knows nothing but addresses

  // Bytes that it holds now of whoever it has them from; 0: nobody knows.
  size_t (*held)(void *self);

  // Why a request was just refused.
  const char *(*refusal)(void);
} peer_type;

// Serves nothing: with |ticks|, what the readings and the loop take themselves.
peer_pass peer_empty_pass;

// The names without options, in order; NULL from |index| on that is beyond the
// last.
const char *peer_name(size_t index);

// What is called |name|, with or without options; NULL if nothing is.
const peer_type *peer_find(const char *name);

#endif  // TARN_BENCH_PEERS_H_
