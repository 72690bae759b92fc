// The extents of a simulated device's window, against a plain array of the
// owner of each byte.
#include "common/extents.h"
#include "support/faults.h"
#include "support/run.h"

enum { BYTES = 512, BEGIN = 4096, STEPS = 20000, TAKEN_MAX = 64 };

static tarn__common_extents extents;
static uint64_t owner[BYTES];  // 0: free
static uint64_t taken[TAKEN_MAX];
static size_t taken_count;
static uint64_t newest;
static uint64_t state = 88172645463325252u;

static size_t random_below(size_t bound) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (size_t)(state % bound);
}

static void begin(void) {
  tarn__common_run all = {BEGIN, BYTES};
  ck_assert(tarn__common_extents_add(&extents, all, 0, 0));
}

// The longest run of free bytes.
static size_t longest_free(void) {
  size_t longest = 0;
  size_t run = 0;
  for (int i = 0; i < BYTES; i++) {
    run = owner[i] == 0 ? run + 1 : 0;
    if (run > longest) longest = run;
  }
  return longest;
}

static void take_some(void) {
  size_t size = 1 + random_below(random_below(8) == 0 ? 100 : 16);
  const tarn__common_extent *got =
      tarn__common_extents_take(&extents, size, 1, size, newest + 1);
  if (got == NULL) {
    require(longest_free() < size);
    return;
  }
  newest++;
  require(got->size == size && got->serial == newest);
  taken[taken_count++] = got->node.start;
  for (size_t i = 0; i < size; i++) {
    require(owner[got->node.start - BEGIN + i] == 0);
    owner[got->node.start - BEGIN + i] = newest;
  }
}

// What comes back is the free run around it, to the last byte.
static void give_one(void) {
  size_t index = random_below(taken_count);
  tarn__common_extent *x = tarn__common_extents_find(&extents, taken[index]);
  require(x != NULL && x->node.start == taken[index]);
  for (size_t i = 0; i < x->size; i++)
    owner[x->node.start - BEGIN + i] = 0;
  tarn__common_run run = tarn__common_extents_give(&extents, x);
  for (size_t i = 0; i < run.size; i++)
    require(owner[run.address - BEGIN + i] == 0);
  require(run.address == BEGIN || owner[run.address - BEGIN - 1] != 0);
  size_t end = (size_t)(run.address - BEGIN) + run.size;
  require(end == BYTES || owner[end] != 0);
  taken[index] = taken[--taken_count];
}

static void check_all(void) {
  for (int i = 0; i < BYTES; i++) {
    tarn__common_extent *x =
        tarn__common_extents_find(&extents, BEGIN + (size_t)i);
    require(x != NULL && x->serial == owner[i]);
  }
  require(tarn__common_extents_find(&extents, BEGIN - 1) == NULL);
  require(tarn__common_extents_find(&extents, BEGIN + BYTES) == NULL);
}

TEST(random_operations_agree_with_an_array) {
  begin();
  for (int i = 0; i < STEPS; i++) {
    bool take =
        taken_count == 0 || (taken_count < TAKEN_MAX && random_below(100) < 52);
    if (take) take_some();
    if (!take) give_one();
    if (i % 16 == 0) check_all();
  }
  ck_assert_uint_gt(newest, STEPS / 4);
  while (taken_count > 0)
    give_one();
  ck_assert_uint_eq(longest_free(), BYTES);
  tarn__common_extents_clear(&extents);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

TEST(what_was_freed_last_comes_last) {
  begin();
  for (uint64_t i = 0; i < 32; i++) {
    const tarn__common_extent *x =
        tarn__common_extents_take(&extents, 32, 1, 32, i + 1);
    ck_assert_ptr_nonnull(x);
    ck_assert_uint_eq(x->node.start, BEGIN + i * 32 % BYTES);
    tarn__common_extents_give(
        &extents, tarn__common_extents_find(&extents, x->node.start));
  }
  tarn__common_extents_clear(&extents);
}

// At an alignment, in what is left between others; and what is found behind an
// address that is in none.
TEST(alignments_and_gaps) {
  begin();
  tarn__common_extent *a = tarn__common_extents_take(&extents, 10, 1, 10, 1);
  tarn__common_extent *b = tarn__common_extents_take(&extents, 100, 64, 100, 2);
  ck_assert(a != NULL && b != NULL);
  ck_assert_uint_eq(b->node.start, BEGIN + 64);
  // Behind the cursor there is no such address with room, but before it.
  tarn__common_extent *c = tarn__common_extents_take(&extents, 40, 16, 40, 3);
  ck_assert_ptr_nonnull(c);
  ck_assert_uint_eq(c->node.start, BEGIN + 176);
  ck_assert_ptr_null(tarn__common_extents_take(&extents, 300, 256, 300, 4));
  tarn__common_extent *d =
      tarn__common_extents_take(&extents, 256, 256, 256, 4);
  ck_assert_ptr_nonnull(d);
  ck_assert_uint_eq(d->node.start, BEGIN + 256);
  tarn__common_extent *e = tarn__common_extents_take(&extents, 32, 32, 32, 5);
  ck_assert_ptr_nonnull(e);
  ck_assert_uint_eq(e->node.start, BEGIN + 32);
  ck_assert_ptr_null(e->record);
  e->record = &extents;
  tarn__common_extents_give(&extents, e);
  ck_assert_ptr_null(tarn__common_extents_find(&extents, BEGIN + 40)->record);
  tarn__common_extents_clear(&extents);

  tarn__common_run far = {BEGIN + 100, 10};
  ck_assert_ptr_null(tarn__common_extents_from(&extents, 0));
  tarn__common_extent *x = tarn__common_extents_add(&extents, far, 10, 1);
  ck_assert_ptr_eq(tarn__common_extents_from(&extents, 0), x);
  ck_assert_ptr_eq(tarn__common_extents_from(&extents, BEGIN + 109), x);
  ck_assert_ptr_null(tarn__common_extents_from(&extents, BEGIN + 110));
  tarn__common_run before = {BEGIN, 100};
  tarn__common_run touching = {BEGIN, 101};
  tarn__common_run behind = {BEGIN + 110, 5};
  ck_assert_ptr_null(tarn__common_extents_in(&extents, before));
  ck_assert_ptr_eq(tarn__common_extents_in(&extents, touching), x);
  ck_assert_ptr_null(tarn__common_extents_in(&extents, behind));
  tarn__common_extents_clear(&extents);
}

static void take_in_the_middle(void *context) {
  (void)context;
  tarn__common_run all = {BEGIN, BYTES};
  if (!tarn__common_extents_add(&extents, all, 0, 0)) return;
  extents.cursor = BEGIN + 8;
  const tarn__common_extent *x =
      tarn__common_extents_take(&extents, 8, 1, 8, 1);
  tarn__common_extent *at = tarn__common_extents_find(&extents, BEGIN + 8);
  ck_assert(x == at || (x == NULL && at->serial == 0 && at->size == BYTES));
  tarn__common_extents_clear(&extents);
}

TEST(no_host_memory_changes_nothing) {
  ck_assert_uint_ge(faults_sweep(take_in_the_middle, NULL), 3);
}

int main(void) {
  faults_install();
  return run_tests();
}
