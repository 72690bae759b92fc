// The library's own memory and its exchangeable allocator.
#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"
#include "support/run.h"

typedef struct ledger {
  size_t allocations;
  size_t bytes;
} ledger;

static void *count_allocate(void *context, size_t size, size_t align) {
  ledger *l = context;
  l->allocations++;
  l->bytes += size;
  void *ptr = NULL;
  return posix_memalign(&ptr, align, size) == 0 ? memset(ptr, 0xee, size)
                                                : NULL;
}

static void count_deallocate(void *context, void *ptr, size_t size,
                             size_t align) {
  (void)align;
  ((ledger *)context)->bytes -= size;
  free(ptr);
}

static void *refuse(void *context, size_t size, size_t align) {
  (void)context;
  (void)size;
  (void)align;
  return NULL;
}

TEST(everything_comes_from_the_allocator_that_is_set) {
  ledger l = {0};
  tarn_host_allocator mine = {.struct_size = sizeof mine,
                              .context = &l,
                              .allocate = count_allocate,
                              .deallocate = count_deallocate};
  assert_ok(tarn_host_allocator_set(&mine));
  char *bytes = tarn__host_alloc(100);
  ck_assert_uint_eq(l.bytes, 100);
  ck_assert_uint_eq(tarn_host_memory(), 100);
  ck_assert_uint_eq((uintptr_t)bytes % alignof(max_align_t), 0);
  for (int i = 0; i < 100; i++)
    ck_assert_int_eq(bytes[i], 0);

  assert_status(tarn_host_allocator_set(NULL), TARN_E_STATE);
  assert_error_says("100 bytes");
  tarn__host_free(bytes, 100);
  ck_assert_uint_eq(l.bytes, 0);
  assert_ok(tarn_host_allocator_set(NULL));
}

TEST(bad_allocators_are_refused) {
  tarn_host_allocator bad = {.struct_size = sizeof bad, .allocate = refuse};
  assert_status(tarn_host_allocator_set(&bad), TARN_E_INVALID);
  bad.deallocate = count_deallocate;
  bad.struct_size = 8;
  assert_status(tarn_host_allocator_set(&bad), TARN_E_INVALID);
}

TEST(refusal_is_an_error_with_a_text) {
  tarn_host_allocator none = {.struct_size = sizeof none,
                              .allocate = refuse,
                              .deallocate = count_deallocate};
  assert_ok(tarn_host_allocator_set(&none));
  ck_assert_ptr_null(tarn__host_alloc(64));
  assert_error_says("refused 64 bytes");
  ck_assert_ptr_null(tarn__host_text("x"));
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

TEST(arrays_that_overflow_are_refused) {
  ck_assert_ptr_null(tarn__host_array(SIZE_MAX / 2, 3));
  assert_error_says("overflow");
}

TEST(resizing_keeps_what_fits_and_zeroes_the_rest) {
  int *numbers = tarn__host_array(3, sizeof *numbers);
  for (int i = 0; i < 3; i++)
    numbers[i] = i + 1;
  numbers = tarn__host_resize(numbers, 3, 5, sizeof *numbers);
  ck_assert_int_eq(numbers[2], 3);
  ck_assert_int_eq(numbers[4], 0);
  numbers = tarn__host_resize(numbers, 5, 1, sizeof *numbers);
  ck_assert_int_eq(numbers[0], 1);
  ck_assert_uint_eq(tarn_host_memory(), sizeof *numbers);
  ck_assert_ptr_null(tarn__host_resize(numbers, 1, SIZE_MAX, 8));
  size_t count = 1;
  ck_assert_ptr_null(tarn__host_grow(numbers, &count, SIZE_MAX, 1, 8));
  ck_assert_uint_eq(count, 1);
  tarn__host_free_array(numbers, 1, sizeof *numbers);
  tarn__host_free(NULL, 5);
  tarn__host_free_text(NULL);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

static void *churn(void *unused) {
  (void)unused;
  for (size_t i = 1; i <= 20000; i++) {
    tarn__host_free(tarn__host_alloc(i % 97), i % 97);
  }
  return NULL;
}

TEST(the_count_is_exact_with_threads) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    pthread_create(&threads[i], NULL, churn, NULL);
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], NULL);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}
