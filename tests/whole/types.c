// All six types, on the host, cpu and simulated devices, with 1 to 7 ranks:
// bytes that their owner has written are read by every rank that can, through
// every address that there is, and nothing is left when it ends.
#include "kit.h"

static const size_t rank_counts[] = {1, 2, 3, 4, 7};
enum { RANK_COUNTS = sizeof rank_counts / sizeof rank_counts[0] };

// What is tested; set before ranks are forked.
static struct {
  const ground *on;
  tarn_whole_type type;
  size_t size;
  size_t granularity;
  const size_t *partition;
} asked;

static tarn_whole_options options_here(tarn_place place) {
  return (tarn_whole_options){.struct_size = sizeof(tarn_whole_options),
                              .type = asked.type,
                              .place = place,
                              .size = asked.size,
                              .granularity = asked.granularity,
                              .partition = asked.partition};
}

static bool is_mapped(void) {
  return asked.type != TARN_WHOLE_DISTRIBUTED;
}

// --- bytes -----------------------------------------------------------------

// In each rank: bytes as they are to be, and room to look at them.
static unsigned char *filled;
static unsigned char *room;

// They come again after a prime number of bytes, which no part has.
static void draw_bytes(unsigned char *out, size_t size) {
  enum { PERIOD = 65521 };
  for (size_t i = 0; i < size && i < PERIOD; i++)
    out[i] = (unsigned char)(i * 31 + (i >> 8) * 7 + 1);
  for (size_t i = PERIOD; i < size; i += PERIOD)
    memcpy(out + i, out, size - i < PERIOD ? size - i : PERIOD);
}

static void prepare_bytes(void) {
  filled = malloc(asked.size + 1);
  room = malloc(asked.size + 1);
  MUST(filled != NULL && room != NULL);
  draw_bytes(filled, asked.size);
}

static void free_bytes(void) {
  free(filled);
  free(room);
}

static void must_be_zeros(tarn_place place, tarn_addr address, size_t size) {
  if (size == 0) return;
  peek(place, address, room, size);
  MUST(room[0] == 0 && memcmp(room, room + 1, size - 1) == 0);
}

static void must_be_filled(tarn_place place, tarn_addr address, size_t offset,
                           size_t size) {
  peek(place, address, room, size);
  MUST(memcmp(room, filled + offset, size) == 0);
}

static void fill_own(tarn_whole *whole, tarn_place place) {
  tarn_whole_part part;
  MUST_BE(tarn_whole_local(whole, &part), TARN_OK);
  poke(place, part.address, filled + part.offset, part.size);
}

// --- addresses -------------------------------------------------------------

static void check_part(tarn_whole *whole, size_t rank, size_t offset,
                       size_t size) {
  tarn_whole_part part;
  bool reached = is_mapped() || rank == my.rank;
  MUST_BE(tarn_whole_of_rank(whole, rank, &part),
          reached ? TARN_OK : TARN_E_UNSUPPORTED);
  MUST(part.offset == offset);
  MUST(part.size == size);
  MUST((part.address != 0) == (reached && size > 0));
}

static void check_parts(tarn_whole *whole) {
  size_t offset = 0;
  size_t counts[MOST_RANKS];
  size_t owner = 99;
  if (asked.partition == NULL) {
    MUST_BE(
        tarn_whole_partition(asked.size / asked.granularity, my.ranks, counts),
        TARN_OK);
  } else {
    memcpy(counts, asked.partition, my.ranks * sizeof *counts);
  }
  for (size_t r = 0; r < my.ranks; r++) {
    size_t size = counts[r] * asked.granularity;
    check_part(whole, r, offset, size);
    if (size > 0) {
      MUST_BE(tarn_whole_owner(whole, offset, &owner), TARN_OK);
      MUST(owner == r);
      MUST_BE(tarn_whole_owner(whole, offset + size - 1, &owner), TARN_OK);
      MUST(owner == r);
    }
    offset += size;
  }
  MUST(offset == asked.size);
  MUST_BE(tarn_whole_owner(whole, offset, &owner), TARN_E_INVALID);
  MUST_SAY("is not below the size");
}

static void check_no_such_rank(tarn_whole *whole) {
  tarn_whole_part part = {.address = 7, .size = 7, .offset = 7};
  MUST_BE(tarn_whole_of_rank(whole, my.ranks, &part), TARN_E_INVALID);
  MUST(part.address == 0 && part.size == 0 && part.offset == 0);
}

// --- reading ---------------------------------------------------------------

static void read_parts(tarn_whole *whole, tarn_place place) {
  for (size_t r = 0; r < my.ranks; r++) {
    tarn_whole_part part;
    tarn_status status = tarn_whole_of_rank(whole, r, &part);
    if (status != TARN_OK) continue;
    must_be_filled(place, part.address, part.offset, part.size);
  }
}

static void read_global(tarn_whole *whole, tarn_place place) {
  tarn_addr address = 7;
  bool has = asked.type == TARN_WHOLE_CONTINUOUS ||
             (is_mapped() && place.kind == TARN_PLACE_HOST);
  MUST_BE(tarn_whole_global(whole, &address),
          has ? TARN_OK : TARN_E_UNSUPPORTED);
  MUST((address != 0) == (has && asked.size > 0));
  if (has) must_be_filled(place, address, 0, asked.size);
  if (!has) MUST_SAY("no global address");
}

static void read_reference(tarn_whole *whole, tarn_place place) {
  tarn_reference table;
  MUST_BE(tarn_whole_reference(whole, &table),
          is_mapped() ? TARN_OK : TARN_E_UNSUPPORTED);
  if (!is_mapped()) {
    MUST(table.count == 0);
    return;
  }
  MUST(table.count == (asked.type == TARN_WHOLE_CHUNKED ? my.ranks : 1));
  MUST(table.offsets[0] == 0);
  MUST(table.offsets[table.count] == asked.size);
  for (size_t i = 0; i < table.count; i++) {
    must_be_filled(place, table.chunks[i], table.offsets[i],
                   table.offsets[i + 1] - table.offsets[i]);
  }
}

static void check_info(tarn_whole *whole, tarn_place place) {
  tarn_whole_info info = {.struct_size = sizeof info};
  tarn_whole_part part;
  MUST_BE(tarn_whole_query(whole, &info), TARN_OK);
  MUST_BE(tarn_whole_local(whole, &part), TARN_OK);
  MUST(info.type == asked.type);
  MUST(tarn_place_equal(info.place, place));
  MUST(info.size == asked.size);
  MUST(info.granularity == asked.granularity);
  MUST(info.rank == my.rank && info.ranks == my.ranks);
  MUST((info.piece_granularity != 0) ==
       (is_mapped() && place.kind == TARN_PLACE_DEVICE));
  MUST(info.huge_bytes <= part.size);
  MUST(info.page_size % 4096 == 0);
  if (part.size == 0) MUST(info.page_size == 0 && info.numa_node == -1);
}

// --- one whole, from begin to end ------------------------------------------

static void live_through(tarn_place place) {
  tarn_whole_options options = options_here(place);
  tarn_whole *whole = NULL;
  tarn_whole_part part;
  MUST_BE(tarn_whole_create(my.comm, &options, &whole), TARN_OK);
  MUST(tarn_whole_comm(whole) == my.comm);
  MUST_BE(tarn_whole_local(whole, &part), TARN_OK);
  must_be_zeros(place, part.address, part.size);
  MUST_BE(tarn_comm_destroy(my.comm), TARN_E_STATE);
  // cpu:0 is open for others too.
  if (place.device != NULL && strcmp(asked.on->device, "sim") == 0)
    MUST_BE(tarn_device_close(place.device), TARN_E_STATE);
  meet_all();
  fill_own(whole, place);
  meet_all();
  check_parts(whole);
  check_no_such_rank(whole);
  read_parts(whole, place);
  read_global(whole, place);
  read_reference(whole, place);
  check_info(whole, place);
  MUST_BE(tarn_whole_destroy(whole), TARN_OK);
}

// Twice: bytes that the first has written must be zeros again.
static void live_twice(void) {
  tarn_place place = open_ground(asked.on);
  prepare_bytes();
  warm_up(place);
  live_through(place);
  belongings before = look_around(place);
  live_through(place);
  see_nothing_left(place, before);
  free_bytes();
  close_ground(place);
}

static void run(const ground *on, tarn_whole_type type, size_t ranks) {
  char text[96];
  asked.on = on;
  asked.type = type;
  snprintf(text, sizeof text, "%s on %s", tarn_whole_type_name(type), on->text);
  run_ranks(ranks, text, live_twice);
}

static void run_mapped(const ground *on, size_t ranks) {
  run(on, TARN_WHOLE_CONTINUOUS, ranks);
  run(on, TARN_WHOLE_CHUNKED, ranks);
}

static void run_on_all_grounds(size_t ranks) {
  bool unmapped = note_mapped("wholes from begin to end");
  for (int g = 0; g < GROUNDS; g++) {
    if (!unmapped) run_mapped(ground_at(g), ranks);
    run(ground_at(g), TARN_WHOLE_DISTRIBUTED, ranks);
  }
}

// --- cases -----------------------------------------------------------------

static void ask(size_t size, size_t granularity, const size_t *partition) {
  asked.size = size;
  asked.granularity = granularity;
  asked.partition = partition;
}

TEST_LOOP(odd_sizes, ON_GROUNDS(RANK_COUNTS)) {
  ask(100003, 1, NULL);
  run_on_all_grounds(rank_counts[_i]);
}

TEST_RANGE(fewer_blocks_than_ranks, EFFORT(0, 3),
           ON_GROUNDS(EFFORT(RANK_COUNTS, 4))) {
  ask((size_t)2 * 3000, 3000, NULL);
  run_on_all_grounds(rank_counts[_i]);
}

TEST_RANGE(nothing_at_all, EFFORT(0, 2), ON_GROUNDS(EFFORT(RANK_COUNTS, 3))) {
  ask(0, 8, NULL);
  run_on_all_grounds(rank_counts[_i]);
}

// Parts end within pieces, and some ranks own bytes but have made no piece.
TEST_LOOP(custom_partitions, ON_GROUNDS(1)) {
  static const size_t two[] = {10, 1};
  static const size_t four[] = {0, 90, 1, 9};
  static const size_t seven[] = {0, 0, 1, 70, 0, 29, 0};
  ask((size_t)11 * 9000, 9000, two);
  run_on_all_grounds(2);
  ask((size_t)100 * 9000, 9000, four);
  run_on_all_grounds(4);
  ask((size_t)100 * 9000, 9000, seven);
  run_on_all_grounds(7);
}

// Where pieces are cut at 2 MiB. Blocks of pools are none.
TEST(large_pieces) {
  static const size_t uneven[] = {1, 0, 23};
  for (int g = 0; g < EFFORT(GROUNDS, 3); g++) {
    ask((size_t)24 * KIT_MIB, KIT_MIB, uneven);
    run_mapped(ground_at(g), 3);
    if (EFFORT(false, true)) continue;
    ask((size_t)17 * KIT_MIB + 12345, 1, NULL);
    run_mapped(ground_at(g), 2);
  }
}
