// A rank to be run by `tarn run`: all go from barrier to barrier, until the one
// that is named does what is named. What a rank then learns it says on stderr,
// and ends with 3.
//
//   rank_victim RANK kill|exit|close|stop|absent
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tarn/comm.h"

enum { LOST = 3, ROUNDS = 10 };

// As the kernel ends a process that has much to close.
static void close_all_and_end(void) {
  if (close_range(STDERR_FILENO + 1, ~0U, 0) != 0) _exit(99);
  usleep(300000);
  raise(SIGKILL);
}

static void end_as(const char *way) {
  if (strcmp(way, "close") == 0) close_all_and_end();
  if (strcmp(way, "kill") == 0) raise(SIGKILL);
  if (strcmp(way, "stop") == 0) raise(SIGSTOP);
  if (strcmp(way, "exit") == 0) _exit(7);
}

static int say(void) {
  fprintf(stderr, "%s\n", tarn_last_error());
  return LOST;
}

int main(int argc, char **argv) {
  tarn_comm *comm = NULL;
  if (argc != 3) return 99;
  const char *mine = getenv("TARN_RANK");
  bool is_victim = mine != NULL && strcmp(argv[1], mine) == 0;
  if (is_victim && strcmp(argv[2], "absent") == 0) return 0;
  if (tarn_comm_from_environment(NULL, &comm) != TARN_OK) return say();
  for (int round = 0;; round++) {
    if (is_victim && round == ROUNDS) end_as(argv[2]);
    if (tarn_comm_barrier(comm) != TARN_OK) break;
  }
  int status = say();
  (void)tarn_comm_destroy(comm);
  return status;
}
