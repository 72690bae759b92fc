// The table of pages. Each entry has one writer at a time, words of bits have
// several: they are changed by single locked instructions.
//
// A page's |zero| is set while nobody but Tarn has it, and ends before a block
// with it is handed out. A leaf is made once and stays.
#include "preload/pages.h"

#include <string.h>

#include "base/os.h"

_Atomic(pages_leaf *) pages_leaves[PAGES_LEAVES];

static pages_leaf *make_leaf(uintptr_t address) {
  size_t at = address >> PAGES_LEAF_SHIFT;
  if (at >= PAGES_LEAVES) return NULL;
  pages_leaf *made = tarn__os_map_sparse(sizeof *made);
  pages_leaf *there = NULL;
  if (made == NULL) return NULL;
  if (atomic_compare_exchange_strong(&pages_leaves[at], &there, made)) {
    return made;
  }
  tarn__os_unmap(made, sizeof *made);
  return there;
}

static pages_leaf *need_leaf(uintptr_t address) {
  pages_leaf *leaf = pages_leaf_of(address);
  return leaf != NULL ? leaf : make_leaf(address);
}

static size_t word_of(uintptr_t address) {
  return address / PAGES_SIZE / 64 % PAGES_WORDS;
}

static uint64_t bit_of(uintptr_t address) {
  return (uint64_t)1 << (address / PAGES_SIZE % 64);
}

// --- blocks ----------------------------------------------------------------

bool pages_begin(const void *address, size_t size) {
  pages_leaf *leaf = need_leaf((uintptr_t)address);
  size_t page = (uintptr_t)address / PAGES_SIZE % PAGES_COUNT;
  if (leaf == NULL || size / PAGES_SIZE > UINT32_MAX) return false;
  atomic_store_explicit(&leaf->blocks[page], (uint32_t)(size / PAGES_SIZE),
                        memory_order_relaxed);
  return true;
}

bool pages_end(const void *address) {
  pages_leaf *leaf = pages_leaf_of((uintptr_t)address);
  size_t page = (uintptr_t)address / PAGES_SIZE % PAGES_COUNT;
  return leaf != NULL && pages_is_first(address) &&
         atomic_exchange_explicit(&leaf->blocks[page], 0,
                                  memory_order_relaxed) != 0;
}

bool pages_is_held(const void *address) {
  const pages_leaf *leaf = pages_leaf_of((uintptr_t)address);
  if (leaf == NULL) return false;
  uint64_t word = atomic_load_explicit(&leaf->held[word_of((uintptr_t)address)],
                                       memory_order_relaxed);
  return (word & bit_of((uintptr_t)address)) != 0;
}

// --- runs ------------------------------------------------------------------

// Pages of one word of a leaf.
typedef struct part {
  uintptr_t address;
  size_t count;
  uint64_t mask;
} part;

static part first_part(uintptr_t address, uintptr_t end) {
  size_t place = address / PAGES_SIZE % 64;
  size_t left = (end - address) / PAGES_SIZE;
  size_t count = left < 64 - place ? left : 64 - place;
  uint64_t ones = count < 64 ? ((uint64_t)1 << count) - 1 : ~(uint64_t)0;
  return (part){address, count, ones << place};
}

static void put(_Atomic uint64_t *word, uint64_t mask, bool on) {
  if (on) {
    atomic_fetch_or_explicit(word, mask, memory_order_relaxed);
  } else {
    atomic_fetch_and_explicit(word, ~mask, memory_order_relaxed);
  }
}

static void put_all(uint64_t address, size_t size, bool held, bool zero) {
  uintptr_t end = address + size;
  for (uintptr_t at = address; at < end;) {
    part p = first_part(at, end);
    pages_leaf *leaf = held ? need_leaf(at) : pages_leaf_of(at);
    if (leaf != NULL) {
      put(&leaf->held[word_of(at)], p.mask, held);
      put(&leaf->zero[word_of(at)], p.mask, zero);
    }
    at += p.count * PAGES_SIZE;
  }
}

void pages_hold(uint64_t address, size_t size, bool zero) {
  put_all(address, size, true, zero);
}

void pages_drop(uint64_t address, size_t size) {
  put_all(address, size, false, false);
}

// --- handing out -----------------------------------------------------------

// The pages of the part that are known to be zero; they are not any more.
static uint64_t use_part(const part *p) {
  pages_leaf *leaf = pages_leaf_of(p->address);
  if (leaf == NULL) return 0;
  _Atomic uint64_t *word = &leaf->zero[word_of(p->address)];
  uint64_t zero = atomic_load_explicit(word, memory_order_relaxed) & p->mask;
  if (zero != 0) put(word, zero, false);
  return zero;
}

// Unknown pages from |begin| up to where the walk has come.
typedef struct run {
  uintptr_t begin;
  uintptr_t end;  // begin: there are none
  pages_clear_fn *clear;
} run;

static void end_run(run *r) {
  if (r->end > r->begin) r->clear((void *)r->begin, r->end - r->begin);
}

static void walk_part(run *r, const part *p, uint64_t zero) {
  uint64_t bit = bit_of(p->address);
  uintptr_t at = p->address;
  for (size_t i = 0; i < p->count; i++, at += PAGES_SIZE, bit <<= 1) {
    if ((zero & bit) == 0 && r->end == at) {
      r->end += PAGES_SIZE;
    } else if ((zero & bit) == 0) {
      end_run(r);
      *r = (run){at, at + PAGES_SIZE, r->clear};
    }
  }
}

void pages_use(void *address, size_t size, pages_clear_fn *clear) {
  uintptr_t end = (uintptr_t)address + size;
  run r = {(uintptr_t)address, (uintptr_t)address, clear};
  for (uintptr_t at = (uintptr_t)address; at < end;) {
    part p = first_part(at, end);
    uint64_t zero = use_part(&p);
    if (clear != NULL) walk_part(&r, &p, zero);
    at += p.count * PAGES_SIZE;
  }
  if (clear != NULL) end_run(&r);
}
