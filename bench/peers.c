// The allocators by name.
#include "peers.h"

#include <string.h>

#include "course.h"

// The allocators besides Tarn's strategies, whose names the library knows.
static const struct peer {
  const char *name;
  const peer_type *type;
} others[] = {
    {"harness", &peer_harness},   {"free_list", &peer_free_list},
    {"glibc", &peer_glibc},       {"mimalloc", &peer_mimalloc},
    {"jemalloc", &peer_jemalloc}, {"tcmalloc", &peer_tcmalloc},
    {"umf_disjoint", &peer_umf},  {"umf_disjoint_tuned", &peer_umf_tuned},
};
enum { OTHERS = sizeof others / sizeof *others };

const char *peer_name(size_t index) {
  return index < OTHERS ? others[index].name
                        : tarn_pool_strategy_name(index - OTHERS);
}

const peer_type *peer_find(const char *name) {
  for (size_t i = 0; i < OTHERS; i++) {
    if (strcmp(name, others[i].name) == 0) return others[i].type;
  }
  if (strchr(name, '/') != NULL) return &peer_file_type;
  size_t length = strcspn(name, ":");
  for (size_t i = 0; tarn_pool_strategy_name(i) != NULL; i++) {
    const char *known = tarn_pool_strategy_name(i);
    if (strncmp(name, known, length) == 0 && known[length] == '\0') {
      return &peer_tarn;
    }
  }
  return NULL;
}

COURSE_INLINE bool do_nothing(void *state, const request *r) {
  (void)state;
  (void)r;
  return true;
}

bool peer_empty_pass(void *self, const peer_run *run) {
  return course_run(self, run, do_nothing, do_nothing, do_nothing);
}
