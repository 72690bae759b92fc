#include "support/group.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/child.h"
#include "support/ranks.h"
#include "support/run.h"

enum { LIMIT_S = 60 };

static char folder[64];
static char path[80];
static pid_t owner;

// --- the folder ------------------------------------------------------------

static void make_folder(void) {
  if (owner == getpid()) return;
  owner = getpid();
  snprintf(folder, sizeof folder, "/tmp/tarn-meet-XXXXXX");
  if (mkdtemp(folder) == NULL) abort();
  snprintf(path, sizeof path, "%s/ranks", folder);
}

const char *group_folder(void) {
  make_folder();
  return folder;
}

const char *group_path(void) {
  make_folder();
  return path;
}

void group_see_empty(void) {
  ck_assert_msg(rmdir(group_folder()) == 0, "something is left in %s", folder);
  owner = 0;
}

void group_await_host(void *unused) {
  struct stat info;
  (void)unused;
  for (int i = 0; i < 1000 && lstat(path, &info) != 0; i++)
    usleep(1000);
}

// --- a process -------------------------------------------------------------

static tarn_status meet_others(const group_joiner *joiner, tarn_comm *comm) {
  int64_t parties[GROUP_MOST];
  tarn_status status =
      tarn_comm_allgather(comm, &joiner->group, sizeof joiner->group, parties);
  for (size_t i = 0; status == TARN_OK && i < joiner->size; i++) {
    if (parties[i] != joiner->group) joiner->word->mixed = 1;
  }
  return status;
}

static _Noreturn void be_joiner(const group_joiner *joiner) {
  const tarn_comm_options options = {
      .struct_size = sizeof options,
      .timeout_ms = joiner->timeout_ms == 0 ? 20000 : joiner->timeout_ms,
      .job = joiner->job};
  tarn_comm *comm = NULL;
  child_begin(LIMIT_S);
  size_t held = tarn_host_memory();
  size_t descriptors = ranks_descriptors();
  if (joiner->before != NULL) joiner->before(joiner->context);
  joiner->word->called = ranks_seconds();
  tarn_status status =
      tarn_comm_meet(joiner->path, joiner->rank, joiner->size, &options, &comm);
  joiner->word->answered = ranks_seconds();
  MUST((comm != NULL) == (status == TARN_OK));
  if (status == TARN_OK) {
    MUST(tarn_comm_rank(comm) == joiner->rank);
    MUST(tarn_comm_size(comm) == joiner->size);
    MUST(strcmp(tarn_comm_kind(comm), "local") == 0);
    status = meet_others(joiner, comm);
  }
  joiner->word->status = status;
  if (status != TARN_OK)
    snprintf(joiner->word->text, sizeof joiner->word->text, "%s",
             tarn_last_error());
  MUST(tarn_comm_destroy(comm) == TARN_OK);
  MUST(tarn_host_memory() == held);
  MUST(ranks_descriptors() == descriptors);
  _exit(0);
}

pid_t group_start(const group_joiner *joiner) {
  memset(joiner->word, 0, sizeof *joiner->word);
  fflush(NULL);
  pid_t child = fork();
  require(child >= 0);
  if (child == 0) be_joiner(joiner);
  return child;
}

void group_await(pid_t child) {
  assert_child_ended_well(child);
}

group_word *group_words(void) {
  static group_word *words;
  if (words == NULL) words = ranks_shared(GROUP_MOST * sizeof *words);
  return words;
}

void group_run(const group_joiner *all, size_t size, tarn_status expected) {
  pid_t children[GROUP_MOST];
  group_word *words = group_words();
  for (size_t i = 0; i < size; i++) {
    group_joiner joiner = *all;
    joiner.rank = i;
    joiner.size = size;
    joiner.word = &words[i];
    children[i] = group_start(&joiner);
  }
  for (size_t i = 0; i < size; i++)
    group_await(children[i]);
  for (size_t i = 0; i < size; i++) {
    ck_assert_msg(words[i].status == expected, "rank %zu: %s '%s'", i,
                  tarn_status_name(words[i].status), words[i].text);
    ck_assert_int_eq(words[i].mixed, 0);
  }
}
