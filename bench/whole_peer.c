// mpirun as a child of the first rank's process. Its stdin says what to
// measure. Its messages are kept in memory for a failure.
#include "whole_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kit/process.h"
#include "kit/tool.h"
#include "whole_scene.h"

enum { WORD_SIZE = 32, LINE_SIZE = 256, END_MS = 10000 };

struct whole_peer {
  pid_t pid;
  int in;                      // its input
  int out;                     // its output
  int errors;                  // a file in memory
  char lost[WHOLE_TEXT_SIZE];  // why it is of no use any more; "": it is
};

// Settings as environment, which other programs than mpirun of Open MPI do not
// mind: more ranks than processors, as root in a container, bound to no
// processor, and none that spins while it waits.
static const char *const settings[][2] = {
    {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
    {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
    {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
    {"OMPI_MCA_hwloc_base_binding_policy", "none"},
    {"OMPI_MCA_mpi_yield_when_idle", "1"},
    {"OMPI_MCA_btl", "self,vader"},
};
enum { SETTINGS = sizeof settings / sizeof settings[0] };

// ---------------------------------------------------------------------------
// The program
// ---------------------------------------------------------------------------

static size_t least_row(const whole_bench *b) {
  size_t least = b->row_bytes[0];
  for (size_t i = 1; i < b->row_count; i++) {
    if (b->row_bytes[i] < least) least = b->row_bytes[i];
  }
  return least;
}

static void set_settings(void *context) {
  (void)context;
  for (size_t i = 0; i < SETTINGS; i++)
    (void)setenv(settings[i][0], settings[i][1], 1);
}

// mpirun ends its ranks on SIGTERM. In a process group of its own it does not
// get a second signal from a key of the terminal.
static pid_t run(const whole_bench *b, int in, int out, int errors) {
  char ranks[WORD_SIZE];
  char part[WORD_SIZE];
  char table[WORD_SIZE];
  char batch[WORD_SIZE];
  char least[WORD_SIZE];
  const char *words[] = {b->mpirun, "-n",  ranks, b->mpi, table,
                         part,      batch, least, NULL};
  process_spec spec = {.words = words,
                       .prepare = set_settings,
                       .in = in,
                       .out = out,
                       .err = errors,
                       .death_signal = SIGTERM,
                       .own_group = true};
  snprintf(ranks, sizeof ranks, "%zu", b->ranks);
  snprintf(part, sizeof part, "%zu", whole_part_bytes(b));
  snprintf(table, sizeof table, "%zu", b->table_bytes);
  snprintf(batch, sizeof batch, "%zu", b->batch_bytes);
  snprintf(least, sizeof least, "%zu", least_row(b));
  return process_start(&spec);
}

// ---------------------------------------------------------------------------
// Its lines
// ---------------------------------------------------------------------------

static int milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int)(now.tv_sec % 1000000 * 1000 + now.tv_nsec / 1000000);
}

// A line without its end; false if there is none in time.
static bool read_line(whole_peer *p, char *line) {
  struct pollfd there = {.fd = p->out, .events = POLLIN};
  int begin = milliseconds();
  for (size_t used = 0; used + 1 < LINE_SIZE;) {
    int left = WHOLE_PEER_WAIT_MS - (milliseconds() - begin);
    if (left <= 0 || poll(&there, 1, left) <= 0) return false;
    if (read(p->out, line + used, 1) != 1) return false;
    if (line[used] == '\n') {
      line[used] = '\0';
      return true;
    }
    used++;
  }
  return false;
}

// The first line of what it complained about that says something.
static bool find_complaint(const whole_peer *p, char *out) {
  char text[4096];
  ssize_t size = pread(p->errors, text, sizeof text - 1, 0);
  text[size > 0 ? size : 0] = '\0';
  char *rest = NULL;
  for (char *line = strtok_r(text, "\n", &rest); line != NULL;
       line = strtok_r(NULL, "\n", &rest)) {
    if (strspn(line, " -*=") == strlen(line)) continue;
    snprintf(out, WHOLE_TEXT_SIZE, "%s", line);
    return true;
  }
  return false;
}

static bool fail(const whole_peer *p, const char *what, char *why) {
  if (!find_complaint(p, why)) snprintf(why, WHOLE_TEXT_SIZE, "%s", what);
  return false;
}

static bool ask(whole_peer *p, whole_op op, size_t row_bytes, uint64_t seed,
                double *out_gbs, char *why) {
  char line[LINE_SIZE];
  char name[WORD_SIZE] = "";
  size_t bytes = 0;
  int size = snprintf(line, sizeof line, "%s %zu %llu\n", whole_op_name(op),
                      row_bytes, (unsigned long long)seed);
  if (write(p->in, line, (size_t)size) != size || !read_line(p, line))
    return fail(p, "the program under MPI has ended, or hangs", why);
  if (sscanf(line, "{\"op\":\"%31[a-z_]\",\"row_bytes\":%zu,\"gbs\":%lf}", name,
             &bytes, out_gbs) == 3 &&
      strcmp(name, whole_op_name(op)) == 0 && bytes == row_bytes) {
    return true;
  }
  snprintf(why, WHOLE_TEXT_SIZE, "the program under MPI says %.100s", line);
  return false;
}

bool whole_peer_measure(whole_peer *p, whole_op op, size_t row_bytes,
                        uint64_t seed, double *out_gbs, char *why) {
  bool is_lost = p->lost[0] != '\0';
  if (!is_lost && ask(p, op, row_bytes, seed, out_gbs, p->lost)) return true;
  memcpy(why, p->lost, sizeof p->lost);
  return false;
}

// ---------------------------------------------------------------------------
// Beginning and end
// ---------------------------------------------------------------------------

// Open MPI has its windows in files there, and ends on a signal if they do not
// fit.
static bool has_room(const whole_bench *b, char *why) {
  static const size_t own = (size_t)8 << 20;  // for messages, of each rank
  struct statvfs shm;
  if (statvfs("/dev/shm", &shm) != 0) return true;
  double room = (double)shm.f_bavail * (double)shm.f_frsize;
  double wanted = (double)(whole_part_bytes(b) + own) * (double)b->ranks;
  if (room >= wanted) return true;
  snprintf(why, WHOLE_TEXT_SIZE,
           "/dev/shm has room for %.0f MiB, its window needs %.0f",
           room / (1 << 20), wanted / (1 << 20));
  return false;
}

static bool start(const whole_bench *b, whole_peer *p, char *why) {
  int in[2] = {-1, -1};
  int out[2] = {-1, -1};
  p->errors = memfd_create("mpirun", MFD_CLOEXEC);
  bool piped =
      p->errors >= 0 && pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0;
  p->pid = piped ? run(b, in[0], out[1], p->errors) : -1;
  if (p->pid < 0)
    snprintf(why, WHOLE_TEXT_SIZE, "no process for it: %s", strerror(errno));
  if (in[0] >= 0) (void)close(in[0]);
  if (out[1] >= 0) (void)close(out[1]);
  p->in = in[1];
  p->out = out[0];
  return p->pid > 0;
}

whole_peer *whole_peer_start(const whole_bench *bench, char *why) {
  char line[LINE_SIZE];
  if (!has_room(bench, why)) return NULL;
  (void)signal(SIGPIPE, SIG_IGN);
  whole_peer *p = tool_array(1, sizeof *p);
  bool started = start(bench, p, why);
  if (started && read_line(p, line) && strcmp(line, "{\"ready\":true}") == 0)
    return p;
  if (started) (void)fail(p, "it does not say that it is ready", why);
  whole_peer_stop(p);
  return NULL;
}

void whole_peer_leave(whole_peer *p) {
  if (p == NULL) return;
  if (p->in >= 0) (void)close(p->in);
  if (p->out >= 0) (void)close(p->out);
  if (p->errors >= 0) (void)close(p->errors);
}

// It ends by itself when there is nothing more to read. If it is asked twice,
// mpirun leaves its ranks and their files behind.
static void wait_for_end(pid_t pid, int patience_ms) {
  static const struct timespec pause = {.tv_nsec = 5000000};
  int begin = milliseconds();
  bool asked = false;
  while (waitpid(pid, NULL, WNOHANG) == 0) {
    int passed = milliseconds() - begin;
    if (passed >= patience_ms && !asked) (void)kill(pid, SIGTERM);
    if (passed >= patience_ms + END_MS) (void)kill(pid, SIGKILL);
    asked = passed >= patience_ms;
    (void)nanosleep(&pause, NULL);
  }
}

void whole_peer_stop(whole_peer *p) {
  if (p == NULL) return;
  whole_peer_leave(p);
  if (p->pid > 0) wait_for_end(p->pid, p->lost[0] == '\0' ? END_MS : 0);
  free(p);
}
