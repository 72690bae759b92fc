// A folder that one rank makes for others to meet in, and a word for the job
// that only they learn.
#include "comm/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "comm/group.h"

static const char NAME[] = "/ranks";

// --- the folder ------------------------------------------------------------

static tarn_status make_folder(const char *call, char *out_path) {
  const char *folder = secure_getenv("TMPDIR");
  if (folder == NULL || *folder == '\0') folder = "/tmp";
  int size =
      snprintf(out_path, TARN__OS_MOST_PATH + 1, "%s/tarn-XXXXXX", folder);
  if (size < 0 || (size_t)size + sizeof NAME - 1 > TARN__OS_MOST_PATH) {
    return tarn__fail(TARN_E_INVALID,
                      "%s: TMPDIR '%.64s' is too long for a socket's path",
                      call, folder);
  }
  if (!tarn__os_make_folder(out_path)) {
    return tarn__fail(TARN_E_IO, "%s: no folder in '%s': %s", call, folder,
                      strerror(errno));
  }
  memcpy(out_path + size, NAME, sizeof NAME);
  return TARN_OK;
}

tarn_status tarn__place_make(const char *call, tarn__comm_place *out) {
  unsigned char bytes[TARN__PLACE_RANDOM];
  *out = (tarn__comm_place){0};
  if (!tarn__os_random(bytes, sizeof bytes)) {
    return tarn__fail(TARN_E_IO, "%s: no random bytes: %s", call,
                      strerror(errno));
  }
  for (size_t i = 0; i < sizeof bytes; i++)
    snprintf(out->job + 2 * i, 3, "%02x", bytes[i]);
  tarn_status status = make_folder(call, out->path);
  if (status != TARN_OK) out->path[0] = '\0';
  return status;
}

// Opens the folder of |place|, whose path may be another rank's bytes.
static bool open_folder(const tarn__comm_place *place,
                        tarn__os_folder *out_folder) {
  tarn__comm_place own = *place;
  own.path[sizeof own.path - 1] = '\0';
  char *slash = strrchr(own.path, '/');
  errno = EINVAL;
  if (slash == NULL) return false;
  *slash = '\0';
  return tarn__os_folder_open(own.path, out_folder);
}

bool tarn__place_is_here(const tarn__comm_place *place) {
  tarn__os_folder folder;
  if (!open_folder(place, &folder)) return false;
  tarn__os_folder_close(&folder);
  return true;
}

void tarn__place_remove(tarn__comm_place *place) {
  tarn__os_folder folder;
  if (place->path[0] == '\0') return;
  if (open_folder(place, &folder)) {
    (void)tarn__os_folder_remove(&folder, NAME + 1);
    tarn__os_folder_close(&folder);
  }
  place->path[strlen(place->path) - (sizeof NAME - 1)] = '\0';
  tarn__os_remove_folder(place->path);
  place->path[0] = '\0';
}

// --- meeting there ---------------------------------------------------------

// Rank 0 removes its folder when it returns: a rank that finds none any more
// comes after rank 0 has given up.
static tarn_status explain(const tarn__comm_place *place, tarn_status status) {
  if (tarn__place_is_here(place) || errno != ENOENT) return status;
  return tarn__fail(TARN_E_PEER_LOST,
                    "tarn_comm_meet_by: rank 0 has given up, and removed '%s'",
                    place->path);
}

tarn_status tarn__place_meet(const tarn__comm_place *place, size_t rank,
                             size_t size, uint64_t come_ms, uint64_t timeout_ms,
                             tarn_comm **out_comm) {
  tarn__comm_place first = *place;
  first.path[sizeof first.path - 1] = '\0';
  first.job[sizeof first.job - 1] = '\0';
  const tarn__comm_group group = {.path = first.path,
                                  .job = first.job,
                                  .rank = rank,
                                  .size = size,
                                  .come_ms = come_ms,
                                  .timeout_ms = timeout_ms};
  tarn_status status = tarn__meet_at(&group, out_comm);
  return status == TARN_E_IO ? explain(&first, status) : status;
}

// --- the machine -----------------------------------------------------------

tarn_status tarn__place_machine(char out_name[TARN__MACHINE]) {
  const char *name = secure_getenv("TARN_HOST");
  if (name == NULL || *name == '\0') {
    tarn__os_machine(out_name, TARN__MACHINE);
    return TARN_OK;
  }
  int size = snprintf(out_name, TARN__MACHINE, "%s", name);
  if (size < TARN__MACHINE) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "TARN_HOST '%.64s' has more than %d bytes",
                    name, TARN__MACHINE - 1);
}
