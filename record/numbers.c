// Numbers: see numbers.h for the form of an entry.
#include "record/numbers.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "record/real.h"

enum { NUMBER_BITS = 24 };

static const uint64_t number_mask = (UINT64_C(1) << NUMBER_BITS) - 1;

bool numbers_begin(numbers *of, size_t entries) {
  void *table =
      real()->mmap(NULL, entries * sizeof *of->table, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED) return false;
  of->table = table;
  of->entries = entries;
  return true;
}

uint64_t numbers_find(numbers *of, uint64_t hash, bool *out_new) {
  uint64_t key = hash & ~number_mask;
  uint64_t number = 0;
  for (size_t i = hash % of->entries, left = of->entries; left > 0; left--) {
    uint64_t entry = atomic_load_explicit(&of->table[i], memory_order_relaxed);
    if (entry == 0) {
      if (number == 0) number = 1 + atomic_fetch_add(&of->last, 1);
      if (number >= of->entries / 2) return 0;
      *out_new =
          atomic_compare_exchange_strong(&of->table[i], &entry, key | number);
      if (*out_new) return number;
    }
    if ((entry & ~number_mask) == key) return entry & number_mask;
    i = (i + 1) % of->entries;
  }
  return 0;
}

void numbers_forget(numbers *of) {
  if (of->table == NULL) return;
  (void)madvise(of->table, of->entries * sizeof *of->table, MADV_DONTNEED);
  atomic_store(&of->last, 0);
}
