// Biased locks: mutual exclusion, ownership, revocation, forks.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/biased_lock.h"
#include "base/status.h"
#include "support/run.h"

// --- a kernel that refuses fences ------------------------------------------

static atomic_bool refuses_fences;
static long (*real)(long, ...);

__attribute__((constructor)) static void find_real(void) {
  void *symbol = dlsym(RTLD_NEXT, "syscall");
  memcpy(&real, &symbol, sizeof real);
}

// In front of the C library's, through which the library asks for them.
long syscall(long number, ...) {
  if (number == SYS_membarrier && atomic_load(&refuses_fences)) {
    errno = EPERM;
    return -1;
  }
  va_list list;
  va_start(list, number);
  // The analyzer of LLVM 14 loses sight of va_start.
  // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized)
  long a = va_arg(list, long);
  long b = va_arg(list, long);
  long c = va_arg(list, long);
  long d = va_arg(list, long);
  va_end(list);
  return real(number, a, b, c, d);
}

// --- what the tests share --------------------------------------------------

enum { OFTEN = 64, MANY = 300 };

static tarn__biased_lock lock;
static size_t counter;  // plain: the lock guards it

static void set_up(void) {
  tarn__biased_lock_init(&lock);
  counter = 0;
}

static const tarn__owner_slot *owner_of(tarn__biased_lock *g) {
  return atomic_load(&g->owner);
}

static bool is_shared(tarn__biased_lock *g) {
  return owner_of(g) == &tarn__biased_lock_unowned;
}

static void pass(tarn__biased_lock *g, size_t times) {
  for (size_t i = 0; i < times; i++) {
    tarn__biased_lock_enter(g);
    counter++;
    tarn__biased_lock_leave(g);
  }
}

// Until the calling thread owns it.
static void make_own(tarn__biased_lock *g) {
  for (size_t i = 0;
       i < (size_t)1 << 22 && owner_of(g) != tarn__biased_lock_slot; i++) {
    tarn__biased_lock_enter(g);
    tarn__biased_lock_leave(g);
  }
  require(owner_of(g) == tarn__biased_lock_slot);
}

static pthread_t start(void *(*run)(void *), void *data) {
  pthread_t thread;
  ck_assert_int_eq(pthread_create(&thread, NULL, run, data), 0);
  return thread;
}

static void *pass_once(void *data) {
  pass(data, 1);
  return NULL;
}

static void let_another_pass(tarn__biased_lock *g) {
  pthread_join(start(pass_once, g), NULL);
}

// --- owning ----------------------------------------------------------------

TEST(a_thread_alone_comes_to_own_it) {
  set_up();
  pass(&lock, OFTEN - 1);
  ck_assert(is_shared(&lock));
  ck_assert_ptr_null(tarn__biased_lock_slot);
  pass(&lock, 1);
  ck_assert_ptr_nonnull(tarn__biased_lock_slot);
  ck_assert_ptr_eq(owner_of(&lock), tarn__biased_lock_slot);
  tarn__biased_lock_enter(&lock);
  ck_assert_ptr_eq(atomic_load(&tarn__biased_lock_slot->inside), &lock);
  ck_assert(tarn__short_lock_try(&lock.shared));  // not by the short lock
  tarn__short_lock_leave(&lock.shared);
  tarn__biased_lock_leave(&lock);
  ck_assert_ptr_null(atomic_load(&tarn__biased_lock_slot->inside));
}

TEST(another_takes_it_and_it_gets_harder_to_own) {
  set_up();
  for (size_t wanted = OFTEN; wanted < (size_t)OFTEN * 16; wanted *= 2) {
    pass(&lock, wanted - 1);
    ck_assert(is_shared(&lock));
    pass(&lock, 1);
    ck_assert(!is_shared(&lock));
    let_another_pass(&lock);
    ck_assert(is_shared(&lock));
  }
  ck_assert_uint_eq(counter, (size_t)OFTEN * 15 + 4);
}

TEST(there_is_an_end_to_getting_harder) {
  set_up();
  for (int i = 0; i < 20; i++) {
    make_own(&lock);
    let_another_pass(&lock);
  }
  ck_assert_uint_eq(lock.wanted, 1 << 20);
}

TEST(inside_one_lock_another_is_passed_by_the_short_lock) {
  static tarn__biased_lock other;
  set_up();
  tarn__biased_lock_init(&other);
  make_own(&lock);
  make_own(&other);
  tarn__biased_lock_enter(&lock);
  pass(&other, 1);
  ck_assert(is_shared(&other));
  ck_assert_ptr_eq(atomic_load(&tarn__biased_lock_slot->inside), &lock);
  tarn__biased_lock_leave(&lock);
  make_own(&other);
}

// --- callbacks -------------------------------------------------------------

TEST(in_a_callback_no_lock_is_entered_as_its_owner) {
  set_up();
  make_own(&lock);
  tarn__callback_begin();
  tarn__callback_begin();
  ck_assert_int_eq(tarn__callbacks_running, 2);
  tarn__callback_end();
  ck_assert_ptr_null(tarn__biased_lock_try(&lock));
  pass(&lock, (size_t)OFTEN * 4);  // by the mutex
  ck_assert(is_shared(&lock));
  tarn__callback_end();
  ck_assert_int_eq(tarn__callbacks_running, 0);
  make_own(&lock);
  tarn__owner_slot *slot = tarn__biased_lock_try(&lock);
  ck_assert_ptr_nonnull(slot);
  tarn__biased_lock_leave_owned(slot);
}

// A thread that has owned none gets no slot there.
static void *own_nothing(void *data) {
  tarn__callback_begin();
  pass(data, (size_t)OFTEN * 4);
  require(tarn__biased_lock_slot == NULL && is_shared(data));
  tarn__callback_end();
  make_own(data);
  return NULL;
}

TEST(a_callback_makes_no_owner) {
  set_up();
  pthread_join(start(own_nothing, &lock), NULL);
  ck_assert(!is_shared(&lock));
  pass(&lock, 1);
}

// Its slot is inherited as that of any other thread.
static void *end_in_a_callback(void *data) {
  make_own(data);
  tarn__callback_begin();
  pthread_exit(NULL);
}

TEST(a_thread_ends_in_a_callback) {
  set_up();
  pthread_join(start(end_in_a_callback, &lock), NULL);
  make_own(&lock);
  tarn__biased_lock_enter(&lock);
  ck_assert_ptr_eq(atomic_load(&tarn__biased_lock_slot->inside), &lock);
  tarn__biased_lock_leave(&lock);
}

// Inside of a lock a callback changes nothing.
TEST(a_callback_leaves_an_owner_inside) {
  set_up();
  make_own(&lock);
  tarn__biased_lock_enter(&lock);
  tarn__callback_begin();
  ck_assert_ptr_eq(atomic_load(&tarn__biased_lock_slot->inside), &lock);
  tarn__callback_end();
  ck_assert_ptr_eq(atomic_load(&tarn__biased_lock_slot->inside), &lock);
  tarn__biased_lock_leave(&lock);
}

// --- taking it -------------------------------------------------------------

static atomic_bool entered;

static void *enter_and_tell(void *unused) {
  (void)unused;
  tarn__biased_lock_enter(&lock);
  atomic_store_explicit(&entered, true, memory_order_relaxed);
  require(counter == 1);
  counter = 2;
  tarn__biased_lock_leave(&lock);
  return NULL;
}

TEST(an_owner_that_is_inside_is_waited_for) {
  set_up();
  make_own(&lock);
  tarn__biased_lock_enter(&lock);
  counter = 0;
  pthread_t thread = start(enter_and_tell, NULL);
  while (!is_shared(&lock))
    sched_yield();
  usleep(20000);  // through its spins, its yields and some naps
  ck_assert(!atomic_load(&entered));
  counter = 1;
  tarn__biased_lock_leave(&lock);
  pthread_join(thread, NULL);
  ck_assert(atomic_load(&entered));
  tarn__biased_lock_enter(&lock);
  ck_assert_uint_eq(counter, 2);
  tarn__biased_lock_leave(&lock);
}

enum { THREADS = 4, ROUNDS = 200 };

static atomic_bool someone_is_inside;
static atomic_size_t passed;
static atomic_size_t owned;

// So that it is owned and taken over and over.
static void want_little(void) {
  tarn__short_lock_enter(&lock.shared);
  lock.wanted = OFTEN;
  tarn__short_lock_leave(&lock.shared);
}

// Some threads come for long, and then own it; others come and go.
static void *come_and_go(void *data) {
  uintptr_t number = (uintptr_t)data;
  for (size_t round = 0; round < ROUNDS; round++) {
    size_t times = (round + number) % 8 == 0 ? 3000 : (round + number) % 5;
    for (size_t i = 0; i < times; i++) {
      tarn__biased_lock_enter(&lock);
      require(!atomic_load_explicit(&someone_is_inside, memory_order_relaxed));
      atomic_store_explicit(&someone_is_inside, true, memory_order_relaxed);
      counter++;
      atomic_store_explicit(&someone_is_inside, false, memory_order_relaxed);
      tarn__biased_lock_leave(&lock);
    }
    if (owner_of(&lock) == tarn__biased_lock_slot) atomic_fetch_add(&owned, 1);
    atomic_fetch_add(&passed, times);
    if (times < 5) sched_yield();
    want_little();
  }
  return NULL;
}

TEST(one_thread_at_a_time_is_inside) {
  enum { GENERATIONS = 4 };
  set_up();
  for (int generation = 0; generation < GENERATIONS; generation++) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
      threads[i] = start(come_and_go, (void *)i);
    for (int i = 0; i < THREADS; i++)
      pthread_join(threads[i], NULL);
  }
  tarn__biased_lock_enter(&lock);
  ck_assert_uint_eq(counter, atomic_load(&passed));
  tarn__biased_lock_leave(&lock);
  ck_assert_uint_gt(atomic_load(&owned), 0);
}

// --- waiting inside --------------------------------------------------------

static tarn__news told;
static bool is_ready;  // the lock guards it
static atomic_bool waits;

static void *get_ready(void *unused) {
  (void)unused;
  while (!atomic_load(&waits))
    sched_yield();
  make_own(&lock);
  tarn__biased_lock_enter(&lock);  // as its owner, while the other waits
  counter = 1;
  is_ready = true;
  tarn__news_tell(&told);
  usleep(5000);  // it may not come in yet
  require(counter == 1);
  counter = 2;
  tarn__biased_lock_leave(&lock);
  return NULL;
}

static void wait_until_ready(void) {
  tarn__biased_lock_enter(&lock);
  atomic_store(&waits, true);
  while (!is_ready)
    tarn__biased_lock_wait(&lock, &told);
  ck_assert_uint_eq(counter, 2);
  counter = 3;
  tarn__biased_lock_leave(&lock);
}

TEST(a_holder_waits) {
  set_up();
  pthread_t thread = start(get_ready, NULL);
  wait_until_ready();
  pthread_join(thread, NULL);
}

TEST(an_owner_waits) {
  set_up();
  make_own(&lock);
  pthread_t thread = start(get_ready, NULL);
  wait_until_ready();
  pthread_join(thread, NULL);
}

// --- threads that end ------------------------------------------------------

static void *own_both(void *data) {
  tarn__biased_lock *own = data;
  if (own != NULL) make_own(own);
  make_own(&lock);
  return tarn__biased_lock_slot;
}

static void *enter_what_was_left(void *data) {
  tarn__biased_lock *own = data;
  make_own(own);
  require(owner_of(&lock) == tarn__biased_lock_slot);
  tarn__biased_lock_enter(&lock);
  require(atomic_load(&tarn__biased_lock_slot->inside) == &lock);
  counter++;
  tarn__biased_lock_leave(&lock);
  return tarn__biased_lock_slot;
}

TEST(a_slot_is_handed_on_with_its_locks) {
  static tarn__biased_lock own;
  void *first = NULL;
  void *second = NULL;
  set_up();
  tarn__biased_lock_init(&own);
  pthread_join(start(own_both, NULL), &first);
  pthread_join(start(enter_what_was_left, &own), &second);
  ck_assert_ptr_eq(first, second);
  pass(&lock, 1);
  pass(&own, 1);
  ck_assert(is_shared(&lock) && is_shared(&own));
  ck_assert_uint_eq(counter, 3);
}

static tarn__biased_lock locks[MANY];
static pthread_barrier_t all_tried;
static pthread_barrier_t may_end;

static void *try_to_own(void *data) {
  tarn__biased_lock *own = data;
  for (int i = 0; i < 2 * OFTEN; i++) {
    tarn__biased_lock_enter(own);
    tarn__biased_lock_leave(own);
  }
  pthread_barrier_wait(&all_tried);
  require(is_shared(own) == (tarn__biased_lock_slot == NULL));
  pthread_barrier_wait(&may_end);
  return tarn__biased_lock_slot;
}

static void start_all(pthread_t threads[MANY]) {
  pthread_barrier_init(&all_tried, NULL, MANY + 1);
  pthread_barrier_init(&may_end, NULL, MANY + 1);
  for (int i = 0; i < MANY; i++) {
    tarn__biased_lock_init(&locks[i]);
    threads[i] = start(try_to_own, &locks[i]);
  }
  pthread_barrier_wait(&all_tried);
}

// Returns how many of them had a slot.
static size_t end_all(const pthread_t threads[MANY]) {
  size_t served = 0;
  pthread_barrier_wait(&may_end);
  for (int i = 0; i < MANY; i++) {
    void *slot = NULL;
    pthread_join(threads[i], &slot);
    served += slot != NULL;
    pass(&locks[i], 1);
  }
  pthread_barrier_destroy(&all_tried);
  pthread_barrier_destroy(&may_end);
  return served;
}

TEST(threads_beyond_the_last_slot_share) {
  pthread_t threads[MANY];
  start_all(threads);
  set_up();
  pass(&lock, (size_t)OFTEN * 4);
  ck_assert(is_shared(&lock));
  ck_assert_uint_eq(end_all(threads), 256);
  make_own(&lock);  // slots are free again
}

// --- fork ------------------------------------------------------------------

// Whether the lock is held, as a child sees it.
static bool is_held_in_child(void) {
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) _exit(tarn__biased_lock_is_held(&lock) ? 1 : 0);
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFEXITED(status));
  return WEXITSTATUS(status) != 0;
}

static atomic_int stage;

static void *stay_inside(void *data) {
  bool as_owner = data != NULL;
  if (as_owner) make_own(&lock);
  tarn__biased_lock_enter(&lock);
  atomic_store(&stage, 1);
  while (atomic_load(&stage) == 1)
    sched_yield();
  tarn__biased_lock_leave(&lock);
  return NULL;
}

static void fork_around_a_holder(void *as_owner) {
  atomic_store(&stage, 0);
  pthread_t thread = start(stay_inside, as_owner);
  while (atomic_load(&stage) == 0)
    sched_yield();
  ck_assert(is_held_in_child());
  atomic_store(&stage, 2);
  pthread_join(thread, NULL);
  ck_assert(!is_held_in_child());
}

TEST(a_child_sees_whether_a_thread_was_inside) {
  set_up();
  ck_assert(!is_held_in_child());
  fork_around_a_holder(NULL);
  fork_around_a_holder(&lock);
  make_own(&lock);
  ck_assert(!is_held_in_child());
}

// Slots of threads that it does not have are free.
// Not those of the parent, whose slots it leaves alone.
TEST(a_child_owns_locks_of_its_own) {
  set_up();
  make_own(&lock);
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    static tarn__biased_lock own;
    bool right = owner_of(&lock) != tarn__biased_lock_slot;
    tarn__biased_lock_init(&own);
    pass(&own, OFTEN);
    right =
        right && !is_shared(&own) && owner_of(&lock) != tarn__biased_lock_slot;
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// --- without fences --------------------------------------------------------

TEST(without_fences_it_is_shared) {
  atomic_store(&refuses_fences, true);
  set_up();
  pass(&lock, (size_t)OFTEN * 4);
  ck_assert(is_shared(&lock));
  ck_assert_ptr_null(tarn__biased_lock_slot);
  let_another_pass(&lock);
  ck_assert_uint_eq(counter, (size_t)OFTEN * 4 + 1);
}

// As a sandbox that is put on late does.
TEST(it_can_be_taken_when_fences_are_refused_meanwhile) {
  set_up();
  make_own(&lock);
  atomic_store(&refuses_fences, true);
  tarn__biased_lock_enter(&lock);
  counter = 0;
  pthread_t thread = start(enter_and_tell, NULL);
  while (!is_shared(&lock))
    sched_yield();
  counter = 1;
  tarn__biased_lock_leave(&lock);
  pthread_join(thread, NULL);
  pass(&lock, 1);
  ck_assert_uint_eq(counter, 3);
}
