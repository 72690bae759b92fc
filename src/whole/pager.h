// pager.h - whole memory whose blocks are elsewhere, on a disk for one, and are
// brought to memory while they are used.
#ifndef TARN_WHOLE_PAGER_H_
#define TARN_WHOLE_PAGER_H_

#include "whole/whole.h"

// Functions of an owner, for blocks (whole->granularity) of its own part,
// counted from its first. May be called by any thread; a thread unpins before
// it pins more.
typedef struct tarn__whole_pager {
  // Brings some of the |count| blocks |blocks| to memory, the first of them and
  // at least one: |out_pinned[i]| is block |blocks[i]|, until it is unpinned.
  // |blocks| may have a block several times, and has only such as there are.
  //
  // On failure nothing is pinned.
  tarn_status (*pin)(void *context, const uint64_t *blocks, size_t count,
                     void **out_pinned, size_t *out_count);
  // Between a pin and its unpin: begins to bring what the next pin of this
  // thread is of, with the same |blocks| and |count|. There has to be one.
  void (*ahead)(void *context, const uint64_t *blocks, size_t count);
  // Ends the pins of a call. |dirty|: the blocks have changed.
  void (*unpin)(void *context, void *const *pinned, size_t count, bool dirty);
  void *context;
} tarn__whole_pager;

// Where the row |row| of |tensor|, which this rank owns, is: the number of its
// block, and the byte within it.
static inline uint64_t tarn__pager_find(const tarn__whole_tensor *tensor,
                                        size_t row, size_t *out_byte) {
  const tarn_whole *whole = tensor->whole;
  size_t at =
      tensor->offset + row * tensor->stride - whole->offsets[whole->rank];
  *out_byte = at % whole->granularity;
  return at / whole->granularity;
}

#endif  // TARN_WHOLE_PAGER_H_
