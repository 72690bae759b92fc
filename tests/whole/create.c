// Making and ending wholes: what cannot be made is refused at all ranks, with
// a text that says why, and leaves nothing behind.
#include <sys/wait.h>

#include "kit.h"
#include "support/fake_extension.h"
#include "support/fake_plugin.h"

static const ground *where;  // set before ranks are forked

static tarn_whole_options sensible(void) {
  return (tarn_whole_options){.struct_size = sizeof(tarn_whole_options),
                              .type = TARN_WHOLE_CONTINUOUS,
                              .place = TARN_HOST,
                              .size = 4096,
                              .granularity = 16};
}

static void must_be_refused(const tarn_whole_options *options,
                            tarn_status status, const char *words) {
  tarn_whole *whole = (tarn_whole *)(void *)&my;
  MUST_BE(tarn_whole_create(my.comm, options, &whole), status);
  MUST_SAY(words);
  MUST(whole == NULL);
}

// --- wrong at every rank ---------------------------------------------------

static void ask_for_nonsense(void) {
  tarn_whole_options o = sensible();
  tarn_whole *whole = NULL;
  MUST_BE(tarn_whole_create(NULL, &o, &whole), TARN_E_INVALID);
  MUST_BE(tarn_whole_create(my.comm, &o, NULL), TARN_E_INVALID);
  must_be_refused(NULL, TARN_E_INVALID, "NULL");
  o.struct_size = 9;
  must_be_refused(&o, TARN_E_INVALID, "struct_size");
  o = sensible();
  o.type = (tarn_whole_type)7;
  must_be_refused(&o, TARN_E_INVALID, "unknown type 7");
  o = sensible();
  o.granularity = 17;
  must_be_refused(&o, TARN_E_INVALID, "is not a multiple of granularity 17");
  o = sensible();
  o.place.kind = TARN_PLACE_DEVICE;
  must_be_refused(&o, TARN_E_INVALID, "names none");
  o = sensible();
  o.place.kind = TARN_PLACE_UNIFIED;
  must_be_refused(&o, TARN_E_INVALID, "place kind 2");
  o = sensible();
  o.size = SIZE_MAX;
  o.granularity = 1;
  must_be_refused(&o, TARN_E_INVALID, "overflow");
}

TEST(nonsense) {
  run_ranks(1, "nonsense", ask_for_nonsense);
  run_ranks(2, "nonsense", ask_for_nonsense);
}

static void partition_wrongly(void) {
  static const size_t few[] = {100, 100};
  static const size_t many[] = {200, 100};
  static const size_t wrapping[] = {SIZE_MAX / 4, 256};
  tarn_whole_options o = sensible();
  warm_up_plainly(TARN_HOST);
  belongings before = look_around(TARN_HOST);
  o.partition = few;
  must_be_refused(&o, TARN_E_INVALID,
                  "200 blocks of 16 bytes, but the whole memory has 256");
  o.partition = many;
  must_be_refused(&o, TARN_E_INVALID, "more blocks than the 256");
  o.partition = wrapping;
  must_be_refused(&o, TARN_E_INVALID, "more blocks than the 256");
  see_nothing_left(TARN_HOST, before);
}

WHOLE_TEST(wrong_partitions, 2, "wrong partitions", partition_wrongly)

// --- different at one rank -------------------------------------------------

static void differ(void) {
  bool odd = my.rank == my.ranks - 1;
  size_t counts[] = {128, 64, 64};
  tarn_whole_options o = sensible();
  warm_up_plainly(TARN_HOST);
  belongings before = look_around(TARN_HOST);
  if (odd) o.type = TARN_WHOLE_CHUNKED;
  must_be_refused(&o, TARN_E_INVALID, "continuous");
  MUST_SAY("chunked");
  o = sensible();
  if (odd) o.size = 8192;
  must_be_refused(&o, TARN_E_INVALID, "8192 bytes");
  MUST_SAY("4096 bytes");
  o = sensible();
  if (odd) o.granularity = 32;
  must_be_refused(&o, TARN_E_INVALID, "blocks of 32");
  MUST_SAY("blocks of 16");
  o = sensible();
  o.partition = counts;
  if (odd) {
    counts[1] = 63;
    counts[2] = 65;
  }
  must_be_refused(&o, TARN_E_INVALID, "63 blocks for rank 1, but 64 at rank 0");
  o = sensible();
  if (odd) o.size = 4097;
  must_be_refused(&o, TARN_E_INVALID, "rank 2");
  MUST_SAY("is not a multiple");
  see_nothing_left(TARN_HOST, before);
}

WHOLE_TEST(different_arguments, 3, "different arguments", differ)

static void differ_in_place(void) {
  static const ground cpu = {"cpu", TARN_PLACE_DEVICE, "cpu"};
  static const ground sim = {"sim", TARN_PLACE_DEVICE, "sim"};
  tarn_place place = open_ground(my.rank == 0 ? &cpu : &sim);
  tarn_whole_options o = sensible();
  o.place = place;
  must_be_refused(&o, TARN_E_INVALID, "on cpu");
  MUST_SAY("on sim");
  o.place.kind = my.rank == 0 ? TARN_PLACE_DEVICE : TARN_PLACE_HOST;
  must_be_refused(&o, TARN_E_INVALID, "on the host for sim");
  o.place = my.rank == 0 ? TARN_HOST : place;
  must_be_refused(&o, TARN_E_INVALID, "on the host,");
  close_ground(place);
}

WHOLE_TEST(different_places, 2, "different places", differ_in_place)

// Numbers of devices may differ, and one rank may have the pieces of another's
// device: they do, wherever ranks have a device of their own. Wholes that were
// made in another order elsewhere are not ended together.
static void end_another(void) {
  tarn_whole_options o = sensible();
  tarn_whole *wholes[2];
  size_t first = my.rank == 0 ? 0 : 1;
  MUST_BE(tarn_whole_create(my.comm, &o, &wholes[0]), TARN_OK);
  MUST_BE(tarn_whole_create(my.comm, &o, &wholes[1]), TARN_OK);
  MUST_BE(tarn_whole_destroy(wholes[first]), TARN_E_INVALID);
  MUST_SAY(
      "rank 0 calls tarn_whole_destroy of whole 1, rank 1 tarn_whole_destroy "
      "of whole 2");
  MUST_BE(tarn_whole_destroy(wholes[0]), TARN_OK);
  MUST_BE(tarn_whole_destroy(wholes[1]), TARN_OK);
  MUST_BE(tarn_whole_destroy(NULL), TARN_OK);
}

WHOLE_TEST(different_wholes_are_not_ended, 2, "different wholes", end_another)

// --- groups ----------------------------------------------------------------

// Ranks 0 and 2, and 1 and 3, each with a whole of their own beside one of all.
static void live_in_groups(void) {
  tarn_whole_options o = sensible();
  tarn_whole *all = NULL;
  tarn_whole *ours = NULL;
  tarn_comm *group = NULL;
  tarn_whole_part part;
  MUST_BE(tarn_comm_split(my.comm, (int64_t)(my.rank % 2), 0, &group), TARN_OK);
  MUST_BE(tarn_whole_create(my.comm, &o, &all), TARN_OK);
  MUST_BE(tarn_whole_create(group, &o, &ours), TARN_OK);
  MUST_BE(tarn_whole_local(ours, &part), TARN_OK);
  MUST(part.size == 2048 && part.offset == my.rank / 2 * 2048);
  memset(host_bytes(part.address), (int)my.rank + 1, part.size);
  MUST_BE(tarn_comm_barrier(group), TARN_OK);
  MUST_BE(tarn_whole_of_rank(ours, 1 - my.rank / 2, &part), TARN_OK);
  MUST(*(char *)host_bytes(part.address) == (char)((my.rank + 2) % 4 + 1));
  MUST_BE(tarn_whole_local(all, &part), TARN_OK);
  MUST(*(char *)host_bytes(part.address) == 0);
  MUST_BE(tarn_comm_destroy(group), TARN_E_STATE);
  MUST_BE(tarn_whole_destroy(ours), TARN_OK);
  MUST_BE(tarn_comm_destroy(group), TARN_OK);
  MUST_BE(tarn_whole_destroy(all), TARN_OK);
}

WHOLE_TEST(groups_have_their_own, 4, "groups", live_in_groups)

// --- what a device lacks ---------------------------------------------------

// As it is on a device without the extensions that are |slots|.
static void lack(uint64_t slots, tarn_whole_type type, tarn_place_kind kind,
                 const char *words) {
  tarn_whole_options o = sensible();
  tarn_device *device = NULL;
  fake_ext.there = true;
  fake_ext.missing = slots;
  fake_add();
  MUST_BE(tarn_device_open("fake:0", &device), TARN_OK);
  o.type = type;
  o.place = (tarn_place){.device = device, .kind = kind};
  must_be_refused(&o, TARN_E_UNSUPPORTED, words);
  MUST_BE(tarn_device_close(device), TARN_OK);
}

static void lack_ranges(void) {
  lack(FAKE_SLOTS_RANGES | FAKE_SLOT(range_move) | FAKE_SLOTS_SHARING |
           FAKE_SLOTS_HANDLES,
       TARN_WHOLE_CHUNKED, TARN_PLACE_DEVICE,
       "chunked on fake needs the extension 'ranges' or 'handles', which");
}

static void lack_sharing(void) {
  lack(FAKE_SLOTS_SHARING, TARN_WHOLE_CONTINUOUS, TARN_PLACE_DEVICE,
       "continuous on fake needs the extension 'sharing', which");
}

static void lack_register(void) {
  lack(FAKE_SLOT(host_register) | FAKE_SLOT(host_unregister),
       TARN_WHOLE_CONTINUOUS, TARN_PLACE_HOST,
       "continuous on the host for fake needs the extension 'host_register'");
}

TEST(devices_that_cannot) {
  run_ranks(2, "no ranges", lack_ranges);
  run_ranks(2, "no sharing", lack_sharing);
  run_ranks(2, "no registering", lack_register);
}

// --- pools -----------------------------------------------------------------

static void exceed_a_limit(void) {
  tarn_place place = open_ground(where);
  tarn_whole_options o = sensible();
  tarn_pool *pool = NULL;
  o.size = 8 * KIT_MIB;
  o.place = place;
  MUST_BE(tarn_pool_of(place, &pool), TARN_OK);
  warm_up_plainly(place);
  for (size_t t = 0; t < TYPES; t++) {
    belongings before = look_around(place);
    o.type = type_at(t);
    if (my.rank == 1) MUST_BE(tarn_pool_limit(pool, KIT_MIB), TARN_OK);
    must_be_refused(&o, TARN_FULL, "rank 1");
    MUST_BE(tarn_pool_limit(pool, 0), TARN_OK);
    see_nothing_left(place, before);
  }
  close_ground(place);
}

GROUND_TEST(limits_of_pools, 2, exceed_a_limit)

// Without a name, or with an empty one, the tag is "whole".
static void have_no_name(void) {
  tarn_pool *pool = NULL;
  tarn_tag tag = 0;
  tarn_pool_tag_stats stats = {.struct_size = sizeof stats};
  tarn_whole_options o = sensible();
  MUST_BE(tarn_pool_of(TARN_HOST, &pool), TARN_OK);
  MUST_BE(tarn_pool_tag("whole", &tag), TARN_OK);
  for (int i = 0; i < 2; i++) {
    tarn_whole *whole = NULL;
    tarn_whole_info info = {.struct_size = sizeof info};
    o.name = i == 0 ? NULL : "";
    MUST_BE(tarn_whole_create(my.comm, &o, &whole), TARN_OK);
    MUST_BE(tarn_whole_query(whole, &info), TARN_OK);
    MUST_BE(tarn_pool_query_tag(pool, tag, &stats), TARN_OK);
    MUST(stats.charged_bytes == info.charged);
    MUST(my.rank > 0 || info.charged > 0);
    MUST_BE(tarn_whole_destroy(whole), TARN_OK);
  }
}

WHOLE_TEST(names_may_be_empty, 2, "no name", have_no_name)

static void see_the_charge(void) {
  tarn_place place = open_ground(where);
  tarn_pool *pool = NULL;
  tarn_tag tag = 0;
  tarn_pool_tag_stats stats = {.struct_size = sizeof stats};
  tarn_whole_options o = sensible();
  size_t sum = 0;
  MUST_BE(tarn_pool_of(place, &pool), TARN_OK);
  MUST_BE(tarn_pool_tag("rows of a table", &tag), TARN_OK);
  o.place = place;
  o.size = 12 * KIT_MIB;
  o.name = "rows of a table";
  for (size_t t = 0; t < TYPES; t++) {
    tarn_whole *whole = NULL;
    tarn_whole_info info = {.struct_size = sizeof info};
    size_t all[MOST_RANKS];
    o.type = type_at(t);
    MUST_BE(tarn_whole_create(my.comm, &o, &whole), TARN_OK);
    MUST_BE(tarn_whole_query(whole, &info), TARN_OK);
    MUST_BE(tarn_pool_query_tag(pool, tag, &stats), TARN_OK);
    MUST(stats.live_bytes + stats.charged_bytes == info.charged);
    MUST((stats.charged_bytes > 0) == (type_at(t) != TARN_WHOLE_DISTRIBUTED));
    MUST_BE(tarn_comm_allgather(my.comm, &info.charged, sizeof *all, all),
            TARN_OK);
    sum = 0;
    for (size_t r = 0; r < my.ranks; r++)
      sum += all[r];
    MUST(sum >= o.size && sum <= o.size + my.ranks * 2 * KIT_MIB);
    MUST_BE(tarn_whole_destroy(whole), TARN_OK);
    MUST_BE(tarn_pool_query_tag(pool, tag, &stats), TARN_OK);
    MUST(stats.live_bytes + stats.charged_bytes == 0);
  }
  close_ground(place);
}

GROUND_TEST(charges, 3, see_the_charge)

// --- forks -----------------------------------------------------------------

static tarn_whole *inherited;

static void use_inherited(void) {
  tarn_whole_part part;
  tarn_whole_info info = {.struct_size = sizeof info};
  tarn_whole_tensor tensor;
  MUST_BE(tarn_whole_local(inherited, &part), TARN_E_STATE);
  MUST_SAY("fork");
  MUST_BE(tarn_whole_query(inherited, &info), TARN_E_STATE);
  MUST_BE(tarn_whole_tensor_make(inherited, TARN_DTYPE_U8, 1, 0, &tensor),
          TARN_E_STATE);
  MUST_BE(tarn_whole_destroy(inherited), TARN_OK);
  MUST_BE(tarn_comm_destroy(my.comm), TARN_OK);
}

static void fork_with_a_whole(void) {
  tarn_place place = open_ground(where);
  tarn_whole_options o = sensible();
  o.place = place;
  for (size_t t = 0; t < TYPES; t++) {
    int status = 0;
    o.type = type_at(t);
    MUST_BE(tarn_whole_create(my.comm, &o, &inherited), TARN_OK);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
      alarm(60);
      use_inherited();
      _exit(0);
    }
    MUST(waitpid(child, &status, 0) == child && status == 0);
    MUST_BE(tarn_whole_destroy(inherited), TARN_OK);
  }
  close_ground(place);
}

GROUND_TEST(children_of_ranks, 2, fork_with_a_whole)

// --- ranks that are gone ---------------------------------------------------

static void outlive_a_peer(void) {
  tarn_place place = open_ground(where);
  tarn_whole_options o = sensible();
  tarn_whole *wholes[ALL_TYPES];
  tarn_whole *more = NULL;
  o.place = place;
  warm_up_plainly(place);
  belongings before = look_around(place);
  for (size_t t = 0; t < TYPES; t++) {
    o.type = type_at(t);
    MUST_BE(tarn_whole_create(my.comm, &o, &wholes[t]), TARN_OK);
  }
  meet_all();
  if (my.rank == 1) _exit(0);
  for (size_t t = 0; t < TYPES; t++) {
    MUST_BE(tarn_whole_destroy(wholes[t]), TARN_E_PEER_LOST);
    MUST_SAY("rank 1");
  }
  MUST_BE(tarn_whole_create(my.comm, &o, &more), TARN_E_PEER_LOST);
  MUST(more == NULL);
  see_nothing_left(place, before);
  close_ground(place);
}

GROUND_TEST(survivors_free_what_is_theirs, 3, outlive_a_peer)

// One stands still where the others want to end theirs.
static void outwait_a_peer(void) {
  tarn_place place = open_ground(where);
  tarn_whole_options o = sensible();
  tarn_whole *whole = NULL;
  o.type = type_at(0);
  o.place = place;
  MUST_BE(tarn_whole_create(my.comm, &o, &whole), TARN_OK);
  meet_all();
  ranks_set_timeout(my.comm, 1000);
  if (my.rank == 2) {
    ranks_stop();
    MUST(tarn_whole_destroy(whole) != TARN_OK);  // the others have gone on
  } else {
    MUST_BE(tarn_whole_destroy(whole), TARN_E_TIMEOUT);
    MUST_SAY("rank 2");
  }
  close_ground(place);
}

TEST_LOOP(nobody_waits_for_ever, GROUNDS) {
  rank_work work = {.function = outwait_a_peer};
  where = ground_at(_i);
  note_mapped("nobody_waits_for_ever");
  my.text = where->text;
  ranks_run(&(ranks_plan){
      .size = 3, .body = be_rank, .context = &work, .stopped = 1 << 2});
}

// One has ended where the others begin.
static void begin_without_a_peer(void) {
  tarn_place place = open_ground(where);
  tarn_whole *whole = NULL;
  tarn_whole_options o = sensible();
  o.type = type_at(0);
  o.place = place;
  warm_up_plainly(place);
  belongings before = look_around(place);
  if (my.rank == 0) _exit(0);
  MUST_BE(tarn_whole_create(my.comm, &o, &whole), TARN_E_PEER_LOST);
  MUST_SAY("rank 0");
  MUST(whole == NULL);
  see_nothing_left(place, before);
  close_ground(place);
}

GROUND_TEST(nothing_begins_without_a_peer, 3, begin_without_a_peer)
