// Several communicators of a process, each with a thread: they share a mailbox,
// and a thread that looks into it takes out messages for others too.
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "support/effort.h"
#include "support/ranks.h"
#include "support/run.h"

enum { THREADS = 4, ROUNDS = EFFORT(200, 40) };

typedef struct line {
  tarn_comm *comm;
  size_t number;
} line;

static void share_once(const line *own, size_t round) {
  int fds[8];
  int ends[2];
  size_t size = tarn_comm_size(own->comm);
  size_t mine = (round * 10 + own->number) * 10 + tarn_comm_rank(own->comm);
  require(pipe(ends) == 0);
  for (size_t r = 0; r < size; r++)
    require(write(ends[1], &mine, sizeof mine) == sizeof mine);
  require(tarn_comm_share(own->comm, ends[0], fds) == TARN_OK);
  for (size_t r = 0; r < size; r++) {
    size_t got = 0;
    if (r == tarn_comm_rank(own->comm)) continue;
    require(read(fds[r], &got, sizeof got) == sizeof got);
    require(got == (round * 10 + own->number) * 10 + r);
    close(fds[r]);
  }
  close(ends[0]);
  close(ends[1]);
}

static void *work(void *argument) {
  const line *own = argument;
  for (size_t round = 0; round < ROUNDS; round++) {
    share_once(own, round);
    require(tarn_comm_barrier(own->comm) == TARN_OK);
  }
  tarn_comm *group = NULL;
  require(tarn_comm_split(own->comm, 0, 0, &group) == TARN_OK);
  require(tarn_comm_barrier(group) == TARN_OK);
  require(tarn_comm_destroy(group) == TARN_OK);
  return NULL;
}

static void work_side_by_side(tarn_comm *comm, void *context) {
  line lines[THREADS];
  pthread_t threads[THREADS];
  (void)context;
  for (size_t i = 0; i < THREADS; i++) {
    lines[i].number = i;
    assert_ok(tarn_comm_split(comm, 0, 0, &lines[i].comm));
  }
  for (size_t i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &lines[i]), 0);
  for (size_t i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    assert_ok(tarn_comm_destroy(lines[i].comm));
  }
}

RANKS_TEST(each_thread_has_its_own, .size = 3, .body = work_side_by_side)
