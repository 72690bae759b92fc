// Limits that one rank has and the others have not: all of them are told the
// same, which rank it was and of what it had too little; none is hurt by it.
#include <sys/resource.h>

#include "kit.h"

enum { POOR = 1, RANKS = 3 };

static const struct want {
  const char *text;
  __rlimit_resource_t resource;
  const char *words;  // in the error
} wants[] = {
    {"descriptors", RLIMIT_NOFILE, "rank 1: "},
    {"addresses", RLIMIT_AS, "rank 1: "},
    {"size of files", RLIMIT_FSIZE, "rank 1: "},
};
enum { WANTS = sizeof wants / sizeof *wants };

static const struct want *wanted;  // set before ranks are forked
static const ground *where;

static size_t taken_addresses(void) {
  size_t pages = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  MUST(file != NULL && fscanf(file, "%zu", &pages) == 1);
  fclose(file);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

// What is in use, so that there is no more.
static size_t least(__rlimit_resource_t resource) {
  if (resource == RLIMIT_NOFILE) {
    int fd = dup(0);
    MUST(fd >= 0);
    close(fd);
    return (size_t)fd;
  }
  return resource == RLIMIT_AS ? taken_addresses() + KIT_MIB : 4096;
}

static tarn_status create(tarn_place place, tarn_whole_type type,
                          tarn_whole **out) {
  tarn_whole_options options = {.struct_size = sizeof options,
                                .type = type,
                                .place = place,
                                .size = 32 * KIT_MIB};
  return tarn_whole_create(my.comm, &options, out);
}

static tarn_status create_in_want(tarn_place place, tarn_whole_type type,
                                  tarn_whole **out) {
  struct rlimit before;
  MUST(getrlimit(wanted->resource, &before) == 0);
  struct rlimit poor = {least(wanted->resource), before.rlim_max};
  if (my.rank == POOR) MUST(setrlimit(wanted->resource, &poor) == 0);
  tarn_status status = create(place, type, out);
  MUST(setrlimit(wanted->resource, &before) == 0);
  return status;
}

static void see_all_told(tarn_status status) {
  char texts[RANKS][256];
  tarn_status all[RANKS];
  snprintf(texts[my.rank], sizeof *texts, "%s", tarn_last_error());
  MUST(status != TARN_E_PEER_LOST && status != TARN_E_TIMEOUT);
  MUST(strstr(texts[my.rank], wanted->words) != NULL);
  MUST_BE(tarn_comm_allgather(my.comm, texts[my.rank], sizeof *texts, texts),
          TARN_OK);
  MUST_BE(tarn_comm_allgather(my.comm, &status, sizeof status, all), TARN_OK);
  for (size_t r = 0; r < RANKS; r++)
    MUST(all[r] == status && strcmp(texts[r], texts[0]) == 0);
  if (my.rank == 0)
    printf("%s of %s: %s\n", wanted->text, where->text, texts[0]);
  fflush(stdout);
}

// A simulated device has all of its addresses from the first.
static bool has_reserved_all(void) {
  return wanted->resource == RLIMIT_AS && where->kind == TARN_PLACE_DEVICE &&
         strcmp(where->device, "sim") == 0;
}

// A type for which the rank has enough is made all the same.
static void want_it(void) {
  tarn_place place = open_ground(where);
  size_t refused = 0;
  warm_up_plainly(place);
  for (size_t t = 0; t < TYPES; t++) {
    belongings before = look_around(place);
    tarn_whole *whole = NULL;
    tarn_status status = create_in_want(place, type_at(t), &whole);
    MUST((whole != NULL) == (status == TARN_OK));
    if (status != TARN_OK) {
      see_all_told(status);
      refused++;
    }
    MUST_BE(tarn_whole_destroy(whole), TARN_OK);
    see_nothing_left(place, before);
    MUST_BE(create(place, type_at(t), &whole), TARN_OK);
    MUST_BE(tarn_whole_destroy(whole), TARN_OK);
  }
  MUST(refused > 0 || has_reserved_all());
  close_ground(place);
}

TEST_LOOP(one_rank_is_poor, WANTS *GROUNDS) {
  wanted = &wants[_i % WANTS];
  where = ground_at(_i / WANTS);
  if (note_mapped("one_rank_is_poor")) return;
  if (is_on_driver() && wanted->resource == RLIMIT_FSIZE) {
    note_skipped("whole shortage: size of files", "stand-ins have such files");
    return;
  }
#if defined(TARN_TESTS_ASAN) || defined(TARN_TESTS_TSAN)
  if (wanted->resource == RLIMIT_AS) {
    note_skipped("whole shortage: addresses", "the sanitizer has them all");
    return;
  }
#endif
  run_ranks(RANKS, wanted->text, want_it);
}
