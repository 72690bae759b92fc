// awaited.h - what a rank of an engine's double is to receive, in the order in
// which that was posted.
#ifndef TARN_TESTS_COMM_AWAITED_H_
#define TARN_TESTS_COMM_AWAITED_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct awaited {
  struct awaited *next;  // that the same rank receives, and posted later
  size_t rank;           // of the sender; TARN_COMM_ANY
  uint32_t tag;
} awaited;

static inline void awaited_add(awaited **first, awaited *a) {
  while (*first != NULL)
    first = &(*first)->next;
  *first = a;
}

static inline void awaited_remove(awaited **first, const awaited *a) {
  while (*first != a)
    first = &(*first)->next;
  *first = a->next;
}

// Whether none that was posted earlier would take the same letter.
static inline bool awaited_is_first(const awaited *first, const awaited *a) {
  while (first != a && (first->tag != a->tag || first->rank != a->rank))
    first = first->next;
  return first == a;
}

#endif  // TARN_TESTS_COMM_AWAITED_H_
