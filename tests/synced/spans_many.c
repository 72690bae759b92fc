// A buffer cut into very many runs of bytes, and made whole again: how deep the
// tree is, and what memory stays.
#include "base/hostmem.h"
#include "support/faults.h"
#include "support/run.h"
#include "synced/spans.h"

enum { MANY = 20000, SOME = 2000 };

static size_t depth_of(const tarn__synced_span *span) {
  size_t depth = 0;
  for (; span != NULL; span = span->parent)
    depth++;
  return depth;
}

static void cut_all(tarn__synced_spans *spans, size_t count) {
  for (size_t i = 0; i < count; i++) {
    require(tarn__spans_reserve(spans, i, i + 1, 1) == TARN_OK);
    tarn__synced_span *span = tarn__spans_cut(spans, i, i + 1);
    span->written = true;
    span->valid = i % 2;
    tarn__span_use(spans, span, (tarn__synced_use){.number = i + 1});
  }
}

static bool is_any(const tarn__synced_use *use, void *context) {
  (void)context;
  return use->number > 0;
}

static void join_all(tarn__synced_spans *spans) {
  for (tarn__synced_span *s = spans->first; s != NULL; s = s->next) {
    s->valid = 1;
    tarn__span_forget(spans, s, is_any, NULL);
  }
  tarn__spans_join(spans, 0, spans->size);
}

START_TEST(a_tree_of_ranges_in_order_is_not_deep) {
  tarn__synced_spans spans;
  size_t deepest = 0;
  tarn__spans_init(&spans, MANY);
  cut_all(&spans, MANY);
  ck_assert_uint_eq(spans.count, MANY);
  for (const tarn__synced_span *s = spans.first; s != NULL; s = s->next)
    deepest = depth_of(s) > deepest ? depth_of(s) : deepest;
  ck_assert_uint_lt(deepest, 60);  // 2 ln n is 20 on average
  ck_assert_ptr_null(tarn__spans_check(&spans));
  tarn__spans_deinit(&spans);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}
END_TEST

static void work_for_a_while(tarn__synced_spans *spans) {
  for (int i = 0; i < 3 * MANY; i++)
    require(tarn__spans_reserve(spans, 1, 2, 1) == TARN_OK);
}

START_TEST(who_cuts_and_joins_in_turns_takes_no_memory) {
  tarn__synced_spans spans;
  tarn__spans_init(&spans, SOME);
  cut_all(&spans, SOME);
  join_all(&spans);
  faults_arm(1, FAULTS_FROM_NOW);
  for (int i = 0; i < 3; i++) {
    cut_all(&spans, SOME);
    join_all(&spans);
  }
  ck_assert(!faults_disarm());
  tarn__spans_deinit(&spans);
}
END_TEST

START_TEST(memory_shrinks_with_the_ranges) {
  tarn__synced_spans spans;
  tarn__spans_init(&spans, MANY);
  cut_all(&spans, MANY);
  size_t held = tarn_host_memory();
  ck_assert_uint_gt(held, (MANY - 1) * sizeof(tarn__synced_span));
  join_all(&spans);
  ck_assert_uint_eq(spans.count, 1);
  ck_assert_ptr_null(tarn__spans_check(&spans));
  ck_assert_uint_lt(tarn_host_memory(), held / 2);
  work_for_a_while(&spans);
  ck_assert_uint_lt(tarn_host_memory(), 10000);
  // A large reservation that nobody used does not stay for ever either.
  assert_ok(tarn__spans_reserve(&spans, 0, MANY, 1000));
  work_for_a_while(&spans);
  ck_assert_uint_lt(tarn_host_memory(), 10000);
  tarn__spans_deinit(&spans);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}
END_TEST

START_TEST(a_buffer_of_no_bytes_has_no_spans) {
  tarn__synced_spans spans;
  tarn__spans_init(&spans, 0);
  ck_assert_ptr_null(spans.first);
  ck_assert_uint_eq(spans.count, 0);
  ck_assert_ptr_null(tarn__spans_check(&spans));
  assert_ok(tarn__spans_reserve(&spans, 0, 0, 5));
  tarn__spans_join(&spans, 0, 0);
  ck_assert_uint_eq(tarn_host_memory(), 0);
  tarn__spans_deinit(&spans);
}
END_TEST

int main(void) {
  faults_install();
  Suite *suite = suite_create("synced_spans_many");
  ADD_CASE(suite, "many", a_tree_of_ranges_in_order_is_not_deep,
           who_cuts_and_joins_in_turns_takes_no_memory,
           memory_shrinks_with_the_ranges, a_buffer_of_no_bytes_has_no_spans);
  return run_suite(suite);
}
