// mpirun as a child of the first rank's process. Its stdin says what to
// measure.
#include "whole_peer.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "kit/tool.h"
#include "talk.h"
#include "whole_scene.h"

enum { WORD_SIZE = 32 };

_Static_assert((int)TALK_WAIT_MS == (int)WHOLE_PEER_WAIT_MS &&
                   (int)TALK_TEXT_SIZE == (int)WHOLE_TEXT_SIZE,
               "texts fit, and others wait as long");

struct whole_peer {
  talk *mpirun;
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

// mpirun ends its ranks on SIGTERM.
static talk *run(const whole_bench *b, char *why) {
  char ranks[WORD_SIZE];
  char part[WORD_SIZE];
  char table[WORD_SIZE];
  char batch[WORD_SIZE];
  char least[WORD_SIZE];
  const char *words[] = {b->mpirun, "-n",  ranks, b->mpi, table,
                         part,      batch, least, NULL};
  const talk_spec spec = {.words = words,
                          .prepare = set_settings,
                          .name = "the program under MPI",
                          .ready = "{\"ready\":true}",
                          .end_signal = SIGTERM};
  snprintf(ranks, sizeof ranks, "%zu", b->ranks);
  snprintf(part, sizeof part, "%zu", whole_part_bytes(b));
  snprintf(table, sizeof table, "%zu", b->table_bytes);
  snprintf(batch, sizeof batch, "%zu", b->batch_bytes);
  snprintf(least, sizeof least, "%zu", least_row(b));
  return talk_start(&spec, why);
}

static bool ask(whole_peer *p, whole_op op, size_t row_bytes, uint64_t seed,
                double *out_gbs, char *why) {
  char line[TALK_LINE_SIZE];
  char name[WORD_SIZE] = "";
  size_t bytes = 0;
  snprintf(line, sizeof line, "%s %zu %llu\n", whole_op_name(op), row_bytes,
           (unsigned long long)seed);
  if (!talk_ask(p->mpirun, line, line, why)) return false;
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

whole_peer *whole_peer_start(const whole_bench *bench, char *why) {
  if (!has_room(bench, why)) return NULL;
  talk *mpirun = run(bench, why);
  if (mpirun == NULL) return NULL;
  whole_peer *p = tool_array(1, sizeof *p);
  p->mpirun = mpirun;
  return p;
}

void whole_peer_leave(whole_peer *p) {
  if (p != NULL) talk_leave(p->mpirun);
}

void whole_peer_stop(whole_peer *p) {
  if (p == NULL) return;
  talk_stop(p->mpirun, p->lost[0] != '\0');
  free(p);
}
