// Two ranks on each of two hosts, which are network namespaces (scripts/hosts),
// gather and meet, until something breaks: a rank is killed or stopped, the
// link drops all packets, or it is cut. Wherever that is, the job ends, all
// that could be told are told, and no process is left. The time is printed;
// what is asserted leaves room for a machine that is busy.
#include "host_kit.h"

enum { TIMEOUT_MS = 1000, FAULTS = 4, CASES = MPIS * FAULTS };
static const double ROOM_S = 8;

static const char *const faults[FAULTS] = {"kill", "stop", "freeze", "cut"};

// All of the runs of a case, in seconds after the fault.
typedef struct times {
  double told;   // the last rank
  double ended;  // the last process
  size_t ranks;  // that were told
} times;

// The number at the end of |word|, in the first line from |at| on that begins
// with it; |*at| is then behind it. 0: there is none.
static double take_number(const char **at, const char *word) {
  char line[32];
  snprintf(line, sizeof line, "\n%s ", word);
  *at = strstr(*at, line);
  if (*at == NULL) return 0;
  *at += strlen(line);
  return strtod(*at, NULL);
}

static double number_of(const char *word) {
  const char *at = output;
  double number = take_number(&at, word);
  ck_assert_msg(at != NULL, "no '%s' in:\n%s", word, output);
  return number;
}

// A rank that was stopped is told when the launcher lets it go on to end it.
static void look_at_ranks(double fault, double ended, times *io) {
  const char *at = output;
  double told = take_number(&at, "told");
  for (; at != NULL; told = take_number(&at, "told")) {
    const char *end = strchr(at, '\n');
    const char *says = strstr(at, ": comm: ");
    ck_assert_msg(says != NULL && says < end, "a rank was told less:\n%s",
                  output);
    if (told > ended) continue;
    io->ranks++;
    if (told - fault > io->told) io->told = told - fault;
  }
}

static void break_at(const char *fault, int ms, times *io) {
  char command[512];
  char after[16];
  snprintf(after, sizeof after, "%d", ms);
  setenv("TARN_FAULT", fault, 1);
  setenv("TARN_FAULT_MS", after, 1);
  setenv("TARN_COMM_TIMEOUT_MS", "1000", 1);
  snprintf(command, sizeof command,
           "exec 2>&1; timeout 120 %s --seconds 100 %s 2 %s loop", TARN_HOSTS,
           m->name, TARN_ROWS_PROGRAM);
  ck_assert_int_eq(run(command), 0);
  double begin = number_of("fault");
  double ended = number_of("ended");
  ck_assert_msg(number_of("left") == 0, "processes are left:\n%s", output);
  ck_assert_msg(ended - begin < TIMEOUT_MS * 1.1e-3 + ROOM_S,
                "%s after %d ms: ended after %.2f s:\n%s", fault, ms,
                ended - begin, output);
  look_at_ranks(begin, ended, io);
  if (ended - begin > io->ended) io->ended = ended - begin;
}

// |points| of a second, in which there are several gathers.
static void break_everywhere(int number, int points) {
  enum { SPAN_MS = 500 };
  int i = number / FAULTS;
  const char *fault = faults[number % FAULTS];
  times all = {0};
  if (!can_try(i)) return;
  for (int p = 0; p < points; p++)
    break_at(fault, (2 * p + i) * SPAN_MS / (2 * points), &all);
  printf("%s, %s: %d runs, last rank told after %.2f s, ended after %.2f s\n",
         m->name, fault, points, all.told, all.ended);
  (void)fflush(stdout);
  // A launcher may end all ranks of a killed one before they are told.
  ck_assert_msg(all.ranks > 0 || number % FAULTS == 0, "nobody was told:\n%s",
                output);
}

TEST_LOOP(a_job_that_breaks_ends, CASES) {
  break_everywhere(_i, 1);
}

PART("all");

TEST_LOOP(a_job_ends_wherever_it_breaks, CASES) {
  break_everywhere(_i, 50);
}

SECONDS(1800);
