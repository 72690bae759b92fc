#include "near_kit.h"

#include <stdlib.h>
#include <string.h>

#include "mail.h"
#include "support/group.h"
#include "support/ranks.h"
#include "support/run.h"

atomic_size_t *near_came;

void near_say_host(const near_job *j, size_t rank) {
  char name[] = {'m', j->hosts[rank], '\0'};
  ck_assert_int_eq(setenv("TARN_HOST", name, 1), 0);
}

tarn_comm *near_join(const near_job *j, size_t rank) {
  const tarn_comm_options options = {
      .struct_size = sizeof options,
      .timeout_ms = j->timeout_ms != 0 ? j->timeout_ms : 60000};
  tarn_comm *comm = NULL;
  near_say_host(j, rank);
  if (j->before != NULL) j->before(rank);
  assert_ok(tarn_comm_from_engine(&mail_ops, mail_desk(rank), rank,
                                  strlen(j->hosts), &options, &comm));
  return comm;
}

static void play(tarn_comm *world, void *context) {
  const near_job *j = context;
  tarn_comm *comm = near_join(j, tarn_comm_rank(world));
  j->play(comm, j);
}

void near_run(const near_job *j) {
  near_came = ranks_shared(sizeof *near_came);
  mail_open(strlen(j->hosts));
  ck_assert_int_eq(setenv("TMPDIR", group_folder(), 1), 0);
  ranks_run(&(ranks_plan){.size = strlen(j->hosts),
                          .body = play,
                          .context = (void *)(uintptr_t)j,
                          .killed = j->killed});
  mail_close();
  group_see_empty();
}
