// The link between two hosts (scripts/hosts) that have no MPI: that it is as
// slow and as late as was asked for, and how it ends (relay.c).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "support/run.h"

static char output[4096];

// Whether there can be such hosts, and a tun device for a delay.
static bool can_try(bool with_relay) {
  const char *probe = with_relay ? TARN_HOSTS " --delay 100 --relay " TARN_RELAY
                                              " probe >/dev/null 2>&1"
                                 : TARN_HOSTS " probe >/dev/null 2>&1";
  if (system(probe) == 0) return true;
  note_skipped("two hosts",
               "no network namespaces or no tun device: not root, no ip, or a "
               "container without the right");
  return false;
}

static int run(const char *options, size_t bytes) {
  char command[512];
  snprintf(command, sizeof command,
           "exec 2>&1; timeout 60 %s --bare %s each 1 %s %zu", TARN_HOSTS,
           options, TARN_LINK_PROGRAM, bytes);
  FILE *pipe = popen(command, "r");
  ck_assert_ptr_nonnull(pipe);
  size_t size = fread(output, 1, sizeof output - 1, pipe);
  output[size] = '\0';
  int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static size_t number_of(const char *word) {
  const char *at = strstr(output, word);
  ck_assert_msg(at != NULL, "no '%s' in:\n%s", word, output);
  return strtoull(at + strlen(word), NULL, 10);
}

static void assert_says(const char *text) {
  ck_assert_msg(strstr(output, text) != NULL, "'%s' is not in:\n%s", text,
                output);
}

// Each way is as long as was asked for, and nothing is lost on it.
TEST(a_relay_delays_and_harms_nothing) {
  if (!can_try(true)) return;
  int status = run("--delay 3000 --relay " TARN_RELAY, 4000000);
  ck_assert_msg(status == 0, "%s", output);
  ck_assert_uint_ge(number_of("round "), 6000);
  assert_says("came 4000000\nunharmed\n");
}

TEST(a_relay_that_freezes_passes_nothing_more) {
  if (!can_try(true)) return;
  (void)run("--delay 100 --relay " TARN_RELAY
            " --relay-options '--freeze 1000000'",
            4000000);
  assert_says("silent\n");
  ck_assert_uint_lt(number_of("came "), 1000000);
}

TEST(a_relay_that_cuts_takes_the_link_away) {
  if (!can_try(true)) return;
  (void)run("--delay 100 --relay " TARN_RELAY
            " --relay-options '--cut 1000000'",
            4000000);
  ck_assert_msg(strstr(output, "unharmed") == NULL, "%s", output);
}

// 10 million bytes at 200 million bits a second, but for the first bucket.
TEST(a_rate_is_kept) {
  if (!can_try(false)) return;
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  int status = run("--rate 200mbit", 10000000);
  clock_gettime(CLOCK_MONOTONIC, &end);
  if (status != 0 && strstr(output, "came") == NULL) {
    note_skipped("a rate", "no tc, or no tbf in this kernel");
    return;
  }
  assert_says("unharmed\n");
  double took = (double)(end.tv_sec - begin.tv_sec) +
                (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
  ck_assert_double_gt(took, 0.35);
}

TEST(wrong_use_is_told) {
  ck_assert_int_eq(run("--fast", 1), 2);
  assert_says("hosts: there is no option --fast\n");
  ck_assert_int_eq(run("--delay 100", 1), 2);
  assert_says("hosts: --delay wants --relay PROGRAM\n");
}

SECONDS(120);
