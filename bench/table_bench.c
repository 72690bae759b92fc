// The parts, and the processes that measure one.
//
//   tarn ─► first rank ─► the others
//
// The tool makes the part's folder and empties it when the ranks have ended,
// however they did.
#include "table_bench.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crew.h"
#include "kit/tool.h"
#include "table_parts.h"
#include "table_scene.h"

static const table_part *const parts[] = {&table_files_part, &table_apply_part,
                                          &table_cache_part, &table_disk_part};
enum { PARTS = sizeof parts / sizeof *parts };

_Static_assert((int)TABLE_RANKS_MOST <= (int)CREW_MOST,
               "all of them can be forked");

const table_part *table_part_at(size_t index) {
  return index < PARTS ? parts[index] : NULL;
}

// --- ranks -------------------------------------------------------------------

typedef struct start {
  const table_part *part;
  const table_bench *bench;
  table_result *result;  // the first rank's
} start;

static bool be_rank(void *context, size_t rank, tarn_rendezvous *rendezvous) {
  const start *as = context;
  table_scene s = {.bench = as->bench, .rank = rank};
  table_result *out = rank == 0 ? as->result : tool_array(1, sizeof *out);
  bool did =
      table_did(&s, crew_join(rendezvous, rank, TABLE_TIMEOUT_MS, &s.comm)) &&
      as->part->measure(&s, out);
  if (!did) memcpy(out->failed, s.why, sizeof out->failed);
  (void)tarn_comm_destroy(s.comm);
  return did;
}

// No figure has a value.
static void clear(table_result *out) {
  for (size_t i = 0; i < TABLE_FIGURES_MOST; i++)
    out->values[i] = (table_value){.value = NAN, .low = NAN, .high = NAN};
}

static void measure(void *context, void *out_result) {
  start *as = context;
  table_result *out = out_result;
  as->result = out;
  clear(out);
  (void)crew_run(as->bench->ranks, be_rank, as, out->failed,
                 sizeof out->failed);
}

// --- the folder --------------------------------------------------------------

static void remove_folder(const char *folder) {
  char path[TABLE_PATH_SIZE + 256];
  DIR *entries = opendir(folder);
  struct dirent *entry = NULL;
  while (entries != NULL && (entry = readdir(entries)) != NULL) {
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    (void)unlink(path);
  }
  if (entries != NULL) closedir(entries);
  (void)rmdir(folder);
}

static bool make_folder(const char *in, char out[TABLE_PATH_SIZE], char *why) {
  enum { NAMES = 64 };  // what files in it may add
  int length = snprintf(out, TABLE_PATH_SIZE, "%s/tarn-bench-XXXXXX", in);
  if (length < 0 || length >= TABLE_PATH_SIZE - NAMES) {
    snprintf(why, CHILD_TEXT_SIZE, "%.100s...: the path is too long", in);
    return false;
  }
  if (mkdtemp(out) != NULL) return true;
  snprintf(why, CHILD_TEXT_SIZE, "%.150s: %s", in, strerror(errno));
  return false;
}

bool table_bench_run(const table_bench *bench, const table_part *part,
                     table_result *out, char *why) {
  char folder[TABLE_PATH_SIZE];
  table_bench own = *bench;
  start as = {.part = part, .bench = &own};
  clear(out);
  if (!make_folder(bench->folder, folder, why)) return false;
  own.folder = folder;
  bool ran = child_run(measure, &as, (child_limits){0}, out, sizeof *out, why);
  if (!ran) clear(out);
  remove_folder(folder);
  return ran;
}
