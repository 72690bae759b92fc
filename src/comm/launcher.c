// Which launcher has started this process, and by which MPI its ranks talk.
//
// A program that is linked with an MPI, or has loaded one, talks by that one:
// two in a process do not work. Otherwise it is that of the launcher, whose
// variables differ.
#include "comm/launcher.h"

#include <assert.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/folders.h"
#include "base/hostmem.h"
#include "base/object.h"
#include "comm/comm.h"

// --- variables -------------------------------------------------------------

typedef enum mpi { NO_MPI, OPENMPI, MPICH, MPIS } mpi;

static const char *const names[MPIS] = {NULL, "openmpi", "mpich"};
static const char *const packages[MPIS] = {
    NULL, "Open MPI (Debian: libopenmpi-dev)", "MPICH (Debian: libmpich-dev)"};

// Variables of launchers that hold the number of ranks.
static const struct {
  const char *variable;
  mpi speaks;  // NO_MPI: none, or any
  bool any;    // it can start the ranks of any MPI
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", OPENMPI, false},
    {"PMI_SIZE", MPICH, false},
    {"SLURM_STEP_NUM_TASKS", NO_MPI, true},
    {"WORLD_SIZE", NO_MPI, false},
};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };

// Empty, 0 or 1. A malformed number counts as several ranks.
static bool is_at_most_one(const char *text) {
  size_t zeros = strspn(text, "0");
  const char *rest = text + zeros;
  return *rest == '\0' || strcmp(rest, "1") == 0;
}

// LAUNCHERS: none that has started several ranks.
static size_t find_launcher(void) {
  for (size_t i = 0; i < LAUNCHERS; i++) {
    const char *text = secure_getenv(launchers[i].variable);
    if (text != NULL && !is_at_most_one(text)) return i;
  }
  return LAUNCHERS;
}

// --- which MPI -------------------------------------------------------------

// By the names of its library; MPICH's has two, and Open MPI's other numbers.
static mpi mpi_of(const char *path) {
  const char *slash = strrchr(path, '/');
  const char *name = slash != NULL ? slash + 1 : path;
  if (strncmp(name, "libmpich.so", 11) == 0) return MPICH;
  if (strncmp(name, "libmpi.so.12", 12) == 0) return MPICH;
  return strncmp(name, "libmpi.so", 9) == 0 ? OPENMPI : NO_MPI;
}

static int look_at(struct dl_phdr_info *object, size_t size, void *context) {
  mpi *found = context;
  (void)size;
  if (*found == NO_MPI) *found = mpi_of(object->dlpi_name);
  return 0;
}

static mpi find_loaded(void) {
  mpi found = NO_MPI;
  dl_iterate_phdr(look_at, &found);
  return found;
}

// srun starts ranks of any MPI that speaks the protocol it was told.
static mpi choose(size_t launcher) {
  mpi loaded = find_loaded();
  if (loaded != NO_MPI) return loaded;
  if (!launchers[launcher].any) return launchers[launcher].speaks;
  if (secure_getenv("PMIX_RANK") != NULL) return OPENMPI;
  return secure_getenv("PMI_RANK") != NULL ? MPICH : NO_MPI;
}

// --- its library -----------------------------------------------------------

static tarn_status load(mpi which, tarn__comm_world_fn **out) {
  static const char *const places[] = {".", TARN_LIB_FROM_BIN "/.."};
  char file[48];
  char found[PATH_MAX];
  void *handle = NULL;
  char *path = NULL;
  snprintf(file, sizeof file, "libtarn_mpi_%s.so", names[which]);
  if (!tarn__folders_find(places, sizeof places / sizeof *places, file,
                          found)) {
    return tarn__fail(TARN_E_STATE,
                      "tarn_comm_from_environment: the ranks were started by "
                      "MPI, and %s is not beside the library: build Tarn where "
                      "%s is installed, or name the folder in TARN_PLUGIN_DIR",
                      file, packages[which]);
  }
  TARN__TRY(tarn__object_open("communicator", found, &handle, &path));
  tarn__host_free_text(path);
  *out = (tarn__comm_world_fn *)(uintptr_t)tarn__object_symbol(
      handle, TARN__COMM_WORLD);
  if (*out != NULL) return TARN_OK;
  return tarn__fail(TARN_E_STATE, "%s has no %s: it is of another version",
                    found, TARN__COMM_WORLD);
}

static tarn_status join_by(mpi which, const tarn_comm_options *options,
                           tarn_comm **out_comm) {
  tarn__comm_world_fn *world_of = NULL;
  tarn__comm_world world = {.struct_size = sizeof world,
                            .timeout_ms = options->timeout_ms};
  TARN__TRY(load(which, &world_of));
  assert(world_of != NULL);
  tarn_status status = world_of(&world);
  if (status != TARN_OK) {
    world.text[sizeof world.text - 1] = '\0';
    return tarn__fail(status, "tarn_comm_from_environment: %s", world.text);
  }
  return tarn_comm_from_engine(world.ops, world.self, world.rank, world.size,
                               options, out_comm);
}

// --- the call --------------------------------------------------------------

tarn_status tarn__launcher_join(const tarn_comm_options *options,
                                bool *out_found, tarn_comm **out_comm) {
  size_t i = find_launcher();
  *out_found = i < LAUNCHERS;
  if (!*out_found) return TARN_OK;
  mpi which = choose(i);
  bool passes_on = launchers[i].any || launchers[i].speaks != NO_MPI;
  if (which != NO_MPI && passes_on) return join_by(which, options, out_comm);
  return tarn__fail(TARN_E_STATE,
                    "tarn_comm_from_environment: %s is '%.20s', but that "
                    "launcher passes no place on: call tarn_comm_meet, or "
                    "start the ranks by 'tarn run -n N -- PROGRAM', or pass "
                    "TARN_COMM_ALONE for rank 0 of 1 in each process",
                    launchers[i].variable,
                    secure_getenv(launchers[i].variable));
}
