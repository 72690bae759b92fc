#include "support/party.h"

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

const char *party_folder(void) {
  make_folder();
  return folder;
}

const char *party_path(void) {
  make_folder();
  return path;
}

void party_see_empty(void) {
  ck_assert_msg(rmdir(party_folder()) == 0, "something is left in %s", folder);
  owner = 0;
}

void party_await_host(void *unused) {
  struct stat info;
  (void)unused;
  for (int i = 0; i < 1000 && lstat(path, &info) != 0; i++)
    usleep(1000);
}

// --- a process -------------------------------------------------------------

static tarn_status meet_others(const party_guest *guest, tarn_comm *comm) {
  int64_t parties[PARTY_MOST];
  tarn_status status =
      tarn_comm_allgather(comm, &guest->party, sizeof guest->party, parties);
  for (size_t i = 0; status == TARN_OK && i < guest->size; i++) {
    if (parties[i] != guest->party) guest->word->mixed = 1;
  }
  return status;
}

static _Noreturn void be_guest(const party_guest *guest) {
  const tarn_comm_options options = {
      .struct_size = sizeof options,
      .timeout_ms = guest->timeout_ms == 0 ? 20000 : guest->timeout_ms,
      .job = guest->job};
  tarn_comm *comm = NULL;
  child_begin(LIMIT_S);
  size_t held = tarn_host_memory();
  size_t descriptors = ranks_descriptors();
  if (guest->before != NULL) guest->before(guest->context);
  guest->word->called = ranks_seconds();
  tarn_status status =
      tarn_comm_meet(guest->path, guest->rank, guest->size, &options, &comm);
  guest->word->answered = ranks_seconds();
  MUST((comm != NULL) == (status == TARN_OK));
  if (status == TARN_OK) {
    MUST(tarn_comm_rank(comm) == guest->rank);
    MUST(tarn_comm_size(comm) == guest->size);
    MUST(strcmp(tarn_comm_kind(comm), "local") == 0);
    status = meet_others(guest, comm);
  }
  guest->word->status = status;
  if (status != TARN_OK)
    snprintf(guest->word->text, sizeof guest->word->text, "%s",
             tarn_last_error());
  MUST(tarn_comm_destroy(comm) == TARN_OK);
  MUST(tarn_host_memory() == held);
  MUST(ranks_descriptors() == descriptors);
  _exit(0);
}

pid_t party_start(const party_guest *guest) {
  memset(guest->word, 0, sizeof *guest->word);
  fflush(NULL);
  pid_t child = fork();
  require(child >= 0);
  if (child == 0) be_guest(guest);
  return child;
}

void party_await(pid_t child) {
  assert_child_ended_well(child);
}

party_word *party_words(void) {
  static party_word *words;
  if (words == NULL) words = ranks_shared(PARTY_MOST * sizeof *words);
  return words;
}

void party_run(const party_guest *all, size_t size, tarn_status expected) {
  pid_t children[PARTY_MOST];
  party_word *words = party_words();
  for (size_t i = 0; i < size; i++) {
    party_guest guest = *all;
    guest.rank = i;
    guest.size = size;
    guest.word = &words[i];
    children[i] = party_start(&guest);
  }
  for (size_t i = 0; i < size; i++)
    party_await(children[i]);
  for (size_t i = 0; i < size; i++) {
    ck_assert_msg(words[i].status == expected, "rank %zu: %s '%s'", i,
                  tarn_status_name(words[i].status), words[i].text);
    ck_assert_int_eq(words[i].mixed, 0);
  }
}
