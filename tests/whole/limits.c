// What the system, the device and the communicator do not give: ranks that lack
// something at run time, and what pages were obtained.
#include <stddef.h>
#include <sys/resource.h>

#include "base/os.h"
#include "kit.h"
#include "wrapped_comm.h"

static const ground *where;  // set before ranks are forked

static tarn_whole_options options_of(tarn_place place, tarn_whole_type type,
                                     size_t size) {
  return (tarn_whole_options){.struct_size = sizeof(tarn_whole_options),
                              .type = type,
                              .place = place,
                              .size = size};
}

static void must_fail(const tarn_whole_options *options, tarn_status status) {
  tarn_whole *whole = NULL;
  MUST_BE(tarn_whole_create(my.comm, options, &whole), status);
  MUST(whole == NULL);
}

static void must_work(const tarn_whole_options *options) {
  tarn_whole *whole = NULL;
  MUST_BE(tarn_whole_create(my.comm, options, &whole), TARN_OK);
  MUST_BE(tarn_whole_destroy(whole), TARN_OK);
}

// --- limits of a process ---------------------------------------------------

// At the last rank |resource| is at most |most| until it is let go again.
static struct rlimit tighten(__rlimit_resource_t resource, size_t most) {
  struct rlimit before;
  MUST(getrlimit(resource, &before) == 0);
  struct rlimit tight = {.rlim_cur = most, .rlim_max = before.rlim_max};
  if (my.rank == my.ranks - 1) MUST(setrlimit(resource, &tight) == 0);
  return before;
}

static void loosen(__rlimit_resource_t resource, struct rlimit before) {
  MUST(setrlimit(resource, &before) == 0);
}

// The lowest number that no descriptor has.
static size_t free_descriptor(void) {
  int fd = dup(0);
  MUST(fd >= 0);
  close(fd);
  return (size_t)fd;
}

// From none to so many that it goes: each has failed for another reason.
static void lack_descriptors(void) {
  tarn_place place = open_ground(where);
  warm_up_plainly(place);
  for (size_t t = 0; t < TYPES - 1; t++) {
    tarn_whole_options options = options_of(place, type_at(t), 300000);
    belongings before = look_around(place);
    size_t failures = 0;
    tarn_status status = TARN_E_IO;
    for (size_t spare = 0; status != TARN_OK; spare++) {
      tarn_whole *whole = NULL;
      struct rlimit loose = tighten(RLIMIT_NOFILE, free_descriptor() + spare);
      status = tarn_whole_create(my.comm, &options, &whole);
      loosen(RLIMIT_NOFILE, loose);
      if (status != TARN_OK) failures++;
      MUST(status != TARN_E_PEER_LOST && status != TARN_E_TIMEOUT);
      MUST_BE(tarn_whole_destroy(whole), TARN_OK);
      see_nothing_left(place, before);
    }
    MUST(failures > 0);
  }
  close_ground(place);
}

MAPPED_TEST(no_descriptors, 3, lack_descriptors)

#ifdef TARN_TESTS_ASAN

TEST_LOOP(no_addresses, 3) {
  note_skipped("whole limits: addresses", "the sanitizer has them all");
}

#else

// Of 16 MiB, where 8 are left.
static void lack_addresses(void) {
  size_t taken = 0;
  tarn_place place = open_ground(where);
  warm_up_plainly(place);
  FILE *file = fopen("/proc/self/statm", "r");
  MUST(file != NULL && fscanf(file, "%zu", &taken) == 1);
  fclose(file);
  taken *= (size_t)sysconf(_SC_PAGESIZE);
  belongings before = look_around(place);
  for (size_t t = 0; t < TYPES - 1; t++) {
    tarn_whole_options options = options_of(place, type_at(t), 16 * KIT_MIB);
    struct rlimit loose = tighten(RLIMIT_AS, taken + 8 * KIT_MIB);
    must_fail(&options, TARN_FULL);
    loosen(RLIMIT_AS, loose);
    see_nothing_left(place, before);
    must_work(&options);
  }
  close_ground(place);
}

TEST_LOOP(no_addresses, 3) {
  static const int mapped_by_the_system[] = {0, 1, 4};
  where = ground_at(mapped_by_the_system[_i]);
  run_ranks(2, where->text, lack_addresses);
}

#endif

// --- more than there is ----------------------------------------------------

static void ask_for_too_much(void) {
  tarn_place place = open_ground(where);
  for (size_t t = 0; t < TYPES; t++) {
    tarn_whole_options options = options_of(place, type_at(t), (size_t)1 << 46);
    must_fail(&options, TARN_FULL);
  }
  close_ground(place);
}

GROUND_TEST(more_than_the_machine_has, 2, ask_for_too_much)

// --- devices that have functions which cannot ------------------------------

static void have_an_unable_device(void) {
  tarn_device *device = NULL;
  MUST_BE(tarn_plugin_load(TARN_UNABLE_PLUGIN), TARN_OK);
  MUST_BE(tarn_device_open("faulty:0", &device), TARN_OK);
  tarn_whole_options options =
      options_of(tarn_place_on(device), TARN_WHOLE_CONTINUOUS, 4096);
  must_fail(&options, TARN_E_UNSUPPORTED);
  MUST_SAY("'ranges'");
  options.type = TARN_WHOLE_CHUNKED;
  must_fail(&options, TARN_E_UNSUPPORTED);
  MUST_SAY("allocation_export");
  options.place.kind = TARN_PLACE_HOST;
  must_fail(&options, TARN_E_UNSUPPORTED);
  MUST_SAY("host_register");
  MUST_BE(tarn_device_close(device), TARN_OK);
}

WHOLE_TEST(unable_devices, 2, "unable device", have_an_unable_device)

// --- communicators that cannot ---------------------------------------------
// Descriptors are what a wrapped one does not pass.

static void have_a_poor_communicator(void) {
  tarn_place place = open_ground(where);
  tarn_comm *rich = my.comm;
  MUST_BE(tarn_comm_create(&wrapped_comm_ops, rich, my.rank, my.ranks, 60000,
                           &my.comm),
          TARN_OK);
  for (size_t t = 0; t < TYPES; t++) {
    tarn_whole_options options = options_of(place, type_at(t), 5000);
    if (type_at(t) == TARN_WHOLE_DISTRIBUTED) {
      must_work(&options);
    } else {
      must_fail(&options, TARN_E_UNSUPPORTED);
      MUST_SAY("descriptors");
    }
  }
  MUST_BE(tarn_comm_destroy(my.comm), TARN_OK);
  my.comm = rich;
  close_ground(place);
}

MAPPED_TEST(ranks_that_cannot_pass_descriptors, 2, have_a_poor_communicator)

// --- pages -----------------------------------------------------------------

static void look_at_large_pages(void) {
  tarn_place place = open_ground(where);
  size_t huge = 2 * KIT_MIB;
  for (size_t t = 0; t < TYPES; t++) {
    tarn_whole_options options = options_of(place, type_at(t), 40 * KIT_MIB);
    tarn_whole *whole = NULL;
    tarn_whole_info info = {.struct_size = sizeof info};
    tarn_whole_part part;
    bool seen =
        place.kind == TARN_PLACE_HOST || strcmp(where->device, "cpu") == 0;
    MUST_BE(tarn_whole_create(my.comm, &options, &whole), TARN_OK);
    MUST_BE(tarn_whole_local(whole, &part), TARN_OK);
    MUST_BE(tarn_whole_query(whole, &info), TARN_OK);
    MUST((info.page_size != 0) == seen);
    MUST(info.huge_bytes <= part.size);
    MUST((info.page_size == huge) == (seen && info.huge_bytes == part.size));
    if (type_at(t) != TARN_WHOLE_DISTRIBUTED && part.address != 0)
      MUST((part.address - part.offset % huge) % 4096 == 0);
    if (type_at(t) != TARN_WHOLE_DISTRIBUTED && place.kind == TARN_PLACE_DEVICE)
      MUST(info.piece_granularity == huge);
    MUST_BE(tarn_whole_destroy(whole), TARN_OK);
  }
  close_ground(place);
}

MAPPED_TEST(pages_of_large_ones, 2, look_at_large_pages)

static void ask_with_an_old_struct(void) {
  tarn_whole_options options =
      options_of(TARN_HOST, TARN_WHOLE_CONTINUOUS, 4096);
  tarn_whole *whole = NULL;
  tarn_whole_info info = {.struct_size = 3};
  tarn_whole_part part;
  tarn_addr address = 0;
  tarn_reference table;
  size_t rank = 0;
  MUST_BE(tarn_whole_create(my.comm, &options, &whole), TARN_OK);
  MUST_BE(tarn_whole_query(whole, &info), TARN_E_INVALID);
  MUST_SAY("struct_size is 3");
  MUST_BE(tarn_whole_query(whole, NULL), TARN_E_INVALID);
  MUST_BE(tarn_whole_local(whole, NULL), TARN_E_INVALID);
  MUST_BE(tarn_whole_of_rank(whole, 0, NULL), TARN_E_INVALID);
  MUST_BE(tarn_whole_global(whole, NULL), TARN_E_INVALID);
  MUST_BE(tarn_whole_reference(whole, NULL), TARN_E_INVALID);
  MUST_BE(tarn_whole_owner(whole, 0, NULL), TARN_E_INVALID);
  info.struct_size = 0;
  MUST_BE(tarn_whole_query(whole, &info), TARN_OK);
  MUST(info.struct_size == offsetof(tarn_whole_info, spread));
  MUST(info.size == 4096);
  MUST_BE(tarn_whole_query(NULL, &info), TARN_E_INVALID);
  MUST_BE(tarn_whole_local(NULL, &part), TARN_E_INVALID);
  MUST_BE(tarn_whole_global(NULL, &address), TARN_E_INVALID);
  MUST_BE(tarn_whole_reference(NULL, &table), TARN_E_INVALID);
  MUST_BE(tarn_whole_owner(NULL, 0, &rank), TARN_E_INVALID);
  MUST(tarn_whole_comm(NULL) == NULL);
  MUST_BE(tarn_whole_destroy(whole), TARN_OK);
}

WHOLE_TEST(nulls_and_old_structs, 1, "arguments", ask_with_an_old_struct)

// --- more than 4 GiB -------------------------------------------------------

static const size_t LARGE = (size_t)5 << 30;

static void have_a_large_one(void) {
  tarn_whole_options options =
      options_of(TARN_HOST, TARN_WHOLE_CONTINUOUS, LARGE);
  tarn_whole *whole = NULL;
  tarn_whole_tensor bytes;
  tarn_addr address = 0;
  size_t first = 0;
  size_t count = 0;
  MUST_BE(tarn_whole_create(my.comm, &options, &whole), TARN_OK);
  MUST_BE(tarn_whole_tensor_make(whole, TARN_DTYPE_U8, LARGE, 0, &bytes),
          TARN_OK);
  MUST_BE(tarn_whole_tensor_rows(&bytes, 1, &first, &count), TARN_OK);
  MUST(first == LARGE / 2 && count == LARGE / 2);
  MUST_BE(tarn_whole_global(whole, &address), TARN_OK);
  unsigned char *all = host_bytes(address);
  if (my.rank == 1) all[LARGE - 1] = 7;
  if (my.rank == 0) all[0] = 9;
  meet_all();
  MUST(all[LARGE - 1] == 7 && all[0] == 9 &&
       all[LARGE - ((size_t)1 << 32)] == 0);
  meet_all();
  MUST_BE(tarn_whole_destroy(whole), TARN_OK);
}

PART("large");

TEST(more_than_4_gib) {
  size_t total = 0;
  size_t available = 0;
  tarn__os_memory(&total, &available);
  if (available < 2 * LARGE) {
    note_skipped("whole limits: 5 GiB", "too little memory is available");
    return;
  }
  run_ranks(2, "5 GiB", have_a_large_one);
}
