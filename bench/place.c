// The variables are those that tarn_comm_from_environment looks at: whether
// there is a place has to be known before it is taken, since a process that has
// none starts ranks itself.
#include "place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Of `tarn run`, and of launchers: those hold the number of ranks.
static const char own[] = "TARN_COMM";
static const char *const numbers[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                      "SLURM_STEP_NUM_TASKS"};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

bool place_is_given(void) {
  if (getenv(own) != NULL) return true;
  for (size_t i = 0; i < NUMBERS; i++) {
    const char *text = getenv(numbers[i]);
    if (text != NULL && strtoul(text, NULL, 10) > 1) return true;
  }
  return false;
}

static bool did(tarn_status status, char *why) {
  if (status == TARN_OK) return true;
  snprintf(why, CHILD_TEXT_SIZE, "%s", tarn_last_error());
  return false;
}

bool place_take(uint64_t timeout_ms, tarn_comm **out_comm, char *why) {
  tarn_comm_options options = {.struct_size = sizeof options,
                               .timeout_ms = timeout_ms};
  return did(tarn_comm_from_environment(&options, out_comm), why);
}

bool place_tell(tarn_comm *comm, void *data, size_t size, char *why) {
  return did(tarn_comm_broadcast(comm, 0, data, size), why);
}

void place_machine(char name[PLACE_NAME_SIZE]) {
  const char *said = getenv("TARN_HOST");
  memset(name, 0, PLACE_NAME_SIZE);
  if (said != NULL && *said != '\0') {
    snprintf(name, PLACE_NAME_SIZE, "%s", said);
  } else {
    (void)gethostname(name, PLACE_NAME_SIZE - 1);
  }
}
