// pages.h - what is known of each page of the address space, without a lock.
//
// A table of two levels, whose leaves are made when something is first noted
// there. It answers a free in two reads, and small blocks need not even those:
// blocks of the pool begin at a page, and few others do.
//
//   address ─► leaves[its GiB] ─► blocks  pages of the block of the pool that
//                                         begins here; 0: none does
//                                 held    Tarn has mapped it
//                                 zero    and nobody has had it since: it is 0
#ifndef TARN_PRELOAD_PAGES_H_
#define TARN_PRELOAD_PAGES_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  PAGES_SIZE = 4096,
  PAGES_LEAF_SHIFT = 30,
  PAGES_COUNT = (1 << PAGES_LEAF_SHIFT) / PAGES_SIZE,
  PAGES_WORDS = PAGES_COUNT / 64,
  PAGES_LEAVES = 1 << (48 - PAGES_LEAF_SHIFT),
};

typedef struct pages_leaf {
  _Atomic uint32_t blocks[PAGES_COUNT];
  _Atomic uint64_t held[PAGES_WORDS];
  _Atomic uint64_t zero[PAGES_WORDS];
} pages_leaf;

extern _Atomic(pages_leaf *) pages_leaves[PAGES_LEAVES];

static inline pages_leaf *pages_leaf_of(uintptr_t address) {
  size_t at = address >> PAGES_LEAF_SHIFT;
  if (at >= PAGES_LEAVES) return NULL;
  return atomic_load_explicit(&pages_leaves[at], memory_order_acquire);
}

// Whether |address| begins a page, as every block of the pool does.
static inline bool pages_is_first(const void *address) {
  return ((uintptr_t)address & (PAGES_SIZE - 1)) == 0;
}

// Bytes of the block of the pool that begins at |address|; 0: none does.
static inline size_t pages_block(const void *address) {
  if (!pages_is_first(address)) return 0;
  const pages_leaf *leaf = pages_leaf_of((uintptr_t)address);
  if (leaf == NULL) return 0;
  size_t page = (uintptr_t)address / PAGES_SIZE % PAGES_COUNT;
  size_t count =
      atomic_load_explicit(&leaf->blocks[page], memory_order_relaxed);
  return count * PAGES_SIZE;
}

// Notes that a block of |size| bytes, whole pages, begins there, or has that
// size now. False if there is no memory for a leaf, or it has too many pages.
bool pages_begin(const void *address, size_t size);

// Ends that. Of several threads that do so with one block, one gets true.
bool pages_end(const void *address);

// Whether Tarn has mapped the page at |address|.
bool pages_is_held(const void *address);

// Notes that pages are Tarn's, and whether they are zero; or that they are not.
// Without memory for a leaf they are as if they were not.
void pages_hold(uint64_t address, size_t size, bool zero);
void pages_drop(uint64_t address, size_t size);

// Notes that the pages have been handed out. For each run of them that may not
// be zero, |clear| is called; NULL: all may be written over.
typedef void pages_clear_fn(void *run, size_t size);
void pages_use(void *address, size_t size, pages_clear_fn *clear);

#endif  // TARN_PRELOAD_PAGES_H_
