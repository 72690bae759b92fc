// WholeGraph's document on whole memory, line by line: its lines stand before
// what they are tested by. Four ranks, as in its figure, each a process, on
// each device of support/document.h. Those that have neither address ranges nor
// handles have what needs no mapping, and the types on the host.
#include "support/document.h"
#include "whole/kit.h"

enum { GPUS = 4, BLOCKS = 15, BLOCK = 24 };

static int which;  // of test_devices; set before ranks are forked

static tarn_device *gpu;

// --- locations -------------------------------------------------------------

// "there are two WholeMemory location and three WholeMemory types. So there
// will be total six WholeMemory."
typedef enum location { ON_DEVICE, ON_HOST, LOCATIONS } location;

static tarn_place place_at(location at) {
  return (tarn_place){gpu,
                      at == ON_DEVICE ? TARN_PLACE_DEVICE : TARN_PLACE_HOST};
}

static bool is_mapped(tarn_whole_type type) {
  return type != TARN_WHOLE_DISTRIBUTED;
}

// What this device has no way to do, and why.
static const char *reason_against(tarn_whole_type type, location at) {
  if (device_has(gpu, TEST_NEEDS_RANGES) || !is_mapped(type)) return NULL;
  if (at == ON_HOST) return "needs the extension 'host_register'";
  return type == TARN_WHOLE_CHUNKED
             ? "needs the extension 'ranges' or 'handles'"
             : "needs the extension 'ranges'";
}

static tarn_whole_options blocks_of(tarn_whole_type type, tarn_place place) {
  return (tarn_whole_options){.struct_size = sizeof(tarn_whole_options),
                              .type = type,
                              .place = place,
                              .size = (size_t)BLOCKS * BLOCK,
                              .granularity = BLOCK,
                              .name = "the document's"};
}

// NULL where the device cannot: then it says why, and memory of the host that
// is not registered with it stands in, if it is the host's.
static tarn_whole *make(tarn_whole_type type, location at, tarn_place *place) {
  tarn_whole *whole = NULL;
  const char *reason = reason_against(type, at);
  *place = place_at(at);
  tarn_whole_options options = blocks_of(type, *place);
  if (reason != NULL) {
    MUST_BE(tarn_whole_create(my.comm, &options, &whole), TARN_E_UNSUPPORTED);
    MUST_SAY(reason);
    MUST(whole == NULL);
    if (at == ON_DEVICE) return NULL;
    *place = options.place = TARN_HOST;
  }
  MUST_BE(tarn_whole_create(my.comm, &options, &whole), TARN_OK);
  return whole;
}

// --- layout ----------------------------------------------------------------

// "the WholeGraph library will partition data into these GPU devices. The
// partition method guarantees that each GPU can access one continuous part of
// the entire memory."
static void see_layout(tarn_whole *whole) {
  // "The follow figure shows the layout of 15 data block over 4 GPUs."
  static const size_t counts[GPUS] = {4, 4, 4, 3};
  size_t next = 0;
  for (size_t r = 0; r < GPUS; r++) {
    tarn_whole_part part;
    tarn_status status = tarn_whole_of_rank(whole, r, &part);
    MUST(status == TARN_OK || status == TARN_E_UNSUPPORTED);
    MUST(part.offset == next && part.size == counts[r] * BLOCK);
    next += part.size;
  }
  MUST(next == (size_t)BLOCKS * BLOCK);
  // "In that case the stored data has its own granularity that shouldn't be
  // split. Data granularity can be specified while creating WholeMemory. Then
  // each data granularity can be considered as a block of data."
  for (size_t b = 0; b < BLOCKS; b++) {
    size_t first = 0;
    size_t last = 0;
    MUST_BE(tarn_whole_owner(whole, b * BLOCK, &first), TARN_OK);
    MUST_BE(tarn_whole_owner(whole, b * BLOCK + BLOCK - 1, &last), TARN_OK);
    MUST(first == last && first == b / 4);
  }
}

// --- addresses -------------------------------------------------------------

static void fill_own_part(tarn_whole *whole, tarn_place place) {
  unsigned char bytes[BLOCKS * BLOCK];
  tarn_whole_part own;
  MUST_BE(tarn_whole_local(whole, &own), TARN_OK);
  MUST(own.address != 0);
  for (size_t i = 0; i < own.size; i++)
    bytes[i] = (unsigned char)(own.offset + i);
  poke(place, own.address, bytes, own.size);
  meet_all();
}

static void must_hold(tarn_place place, tarn_addr address, size_t offset,
                      size_t size) {
  unsigned char bytes[BLOCKS * BLOCK];
  peek(place, address, bytes, size);
  for (size_t i = 0; i < size; i++)
    MUST(bytes[i] == (unsigned char)(offset + i));
}

// "For "Continuous" and "Chunked" types of WholeMemory, all memory is mapped to
// each GPU, so these two types are all "Mapped" WholeMemory, in contrast to
// "Distributed" WholeMemory where all are not mapped."
static void see_every_part(tarn_whole *whole, tarn_whole_type type,
                           tarn_place place) {
  for (size_t r = 0; r < GPUS; r++) {
    tarn_whole_part part;
    bool reached = is_mapped(type) || r == my.rank;
    MUST_BE(tarn_whole_of_rank(whole, r, &part),
            reached ? TARN_OK : TARN_E_UNSUPPORTED);
    MUST((part.address != 0) == reached);
    if (reached) must_hold(place, part.address, part.offset, part.size);
  }
}

// "For Device Continuous WholeMemory, first a range of virtual address space is
// reserved in each GPU, which covers the entire memory range." "For Device
// Chunked WholeMemory, first each GPU allocates its own part of memory". "For
// Host, Continuous and Chunked are using the same method."
static void see_the_range(tarn_whole *whole, tarn_whole_type type, location at,
                          tarn_place place) {
  tarn_addr base = 0;
  bool in_one = type == TARN_WHOLE_CONTINUOUS ||
                (type == TARN_WHOLE_CHUNKED && at == ON_HOST);
  MUST_BE(tarn_whole_global(whole, &base),
          in_one ? TARN_OK : TARN_E_UNSUPPORTED);
  if (!in_one) return;
  must_hold(place, base, 0, (size_t)BLOCKS * BLOCK);
  for (size_t r = 0; r < GPUS; r++) {
    tarn_whole_part part;
    MUST_BE(tarn_whole_of_rank(whole, r, &part), TARN_OK);
    MUST(part.address == base + part.offset);
  }
}

// "|  Allocated by  |    EACH     |   FIRST    |   EACH    |   FIRST   | EACH
// |    EACH     |": what a rank has made is charged to it.
static void see_who_allocates(tarn_whole *whole, location at,
                              tarn_whole_type type) {
  tarn_whole_info info = {.struct_size = sizeof info};
  MUST_BE(tarn_whole_query(whole, &info), TARN_OK);
  MUST(info.type == type && info.size == (size_t)BLOCKS * BLOCK);
  // Blocks this small are on the first page, or piece, of a mapped one; without
  // a range each has its own.
  bool first = at == ON_HOST ? is_mapped(type) : type == TARN_WHOLE_CONTINUOUS;
  MUST((info.charged > 0) == (!first || my.rank == 0));
}

static void try_one(tarn_whole_type type, location at) {
  tarn_place place;
  tarn_whole *whole = make(type, at, &place);
  if (whole == NULL) return;
  see_layout(whole);
  see_who_allocates(whole, at, type);
  fill_own_part(whole, place);
  see_every_part(whole, type, place);
  see_the_range(whole, type, at, place);
  MUST_BE(tarn_whole_destroy(whole), TARN_OK);
}

static void try_all_six(void) {
  gpu = document_open(which);
  for (location at = ON_DEVICE; at < LOCATIONS; at++)
    for (size_t t = 0; t < ALL_TYPES; t++)
      try_one(all_types[t], at);
  MUST_BE(tarn_device_close(gpu), TARN_OK);
}

TEST_LOOP(six_types, DOCUMENT_DEVICES) {
  which = _i;
  run_ranks(GPUS, test_devices[which], try_all_six);
}

// --- tensors ---------------------------------------------------------------

// "For WholeMemory Tensors, they can be 1D or 2D tensors. For 1D tensor, data
// granularity is one element. For 2D tensor, data granularity is its 1D
// tensor."
static void see_tensor(tarn_whole_type type, tarn_place place, size_t rows,
                       size_t width) {
  tarn_whole_table_options options = {.struct_size = sizeof options,
                                      .type = type,
                                      .place = place,
                                      .dtype = TARN_DTYPE_F32,
                                      .rows = rows,
                                      .width = width};
  tarn_whole_tensor tensor;
  tarn_whole_info info = {.struct_size = sizeof info};
  size_t counts[MOST_RANKS];
  MUST_BE(tarn_whole_partition(rows, my.ranks, counts), TARN_OK);
  MUST_BE(tarn_whole_table_create(my.comm, &options, &tensor), TARN_OK);
  MUST_BE(tarn_whole_query(tensor.whole, &info), TARN_OK);
  MUST(info.granularity == (width == 0 ? 1 : width) * sizeof(float));
  MUST(tensor.dims == (width == 0 ? 1 : 2));
  for (size_t r = 0; r < my.ranks; r++) {
    size_t first = 0;
    size_t count = 0;
    MUST_BE(tarn_whole_tensor_rows(&tensor, r, &first, &count), TARN_OK);
    MUST(count == counts[r]);
  }
  MUST_BE(tarn_whole_destroy(tensor.whole), TARN_OK);
}

static void make_tensors(void) {
  gpu = document_open(which);
  for (location at = ON_DEVICE; at < LOCATIONS; at++) {
    for (size_t t = 0; t < ALL_TYPES; t++) {
      if (reason_against(all_types[t], at) != NULL) continue;
      see_tensor(all_types[t], place_at(at), 80, 0);
      see_tensor(all_types[t], place_at(at), 16, 5);
    }
  }
  MUST_BE(tarn_device_close(gpu), TARN_OK);
}

TEST_LOOP(tensors, DOCUMENT_DEVICES) {
  which = _i;
  for (size_t ranks = 1; ranks <= MOST_RANKS; ranks++)
    run_ranks(ranks, test_devices[which], make_tensors);
}

// --- mapped and distributed ------------------------------------------------

// "Here "can access" means can directly access from CUDA kernels, but the
// memory doesn't have to be physically on that GPU." A rank alone takes rows of
// all others where memory is mapped. "For Distributed WholeMemory, each GPU
// just malloc its own part of memory, no need to share to other GPUs": there
// all ranks take rows together.
static void take_rows(tarn_whole_type type, location at) {
  float rows[BLOCKS];
  int32_t indices[BLOCKS];
  tarn_whole_tensor table;
  tarn_addr own = 0;
  size_t first = 0;
  size_t count = 0;
  tarn_whole_table_options options = {.struct_size = sizeof options,
                                      .type = type,
                                      .place = place_at(at),
                                      .dtype = TARN_DTYPE_F32,
                                      .rows = BLOCKS,
                                      .width = 1};
  tarn_whole_rows wanted = {.struct_size = sizeof wanted,
                            .place = TARN_HOST,
                            .dense = (tarn_addr)(uintptr_t)rows,
                            .indices = (tarn_addr)(uintptr_t)indices,
                            .index_dtype = TARN_DTYPE_I32,
                            .index_count = BLOCKS};
  MUST_BE(tarn_whole_table_create(my.comm, &options, &table), TARN_OK);
  MUST_BE(tarn_whole_tensor_rows(&table, my.rank, &first, &count), TARN_OK);
  MUST_BE(tarn_whole_tensor_local(&table, &own), TARN_OK);
  for (size_t i = 0; i < count; i++)
    rows[i] = (float)(first + i);
  poke(place_at(at), own, rows, count * sizeof *rows);
  for (int32_t i = 0; i < BLOCKS; i++)
    indices[i] = BLOCKS - 1 - i;
  meet_all();
  if (!is_mapped(type) || my.rank == 2) {
    MUST_BE(tarn_whole_gather(&table, &wanted, NULL), TARN_OK);
    for (int i = 0; i < BLOCKS; i++)
      MUST(rows[i] == (float)(BLOCKS - 1 - i));
  }
  MUST_BE(tarn_whole_destroy(table.whole), TARN_OK);
}

static void take_rows_of_all(void) {
  gpu = document_open(which);
  for (location at = ON_DEVICE; at < LOCATIONS; at++)
    for (size_t t = 0; t < ALL_TYPES; t++)
      if (reason_against(all_types[t], at) == NULL) take_rows(all_types[t], at);
  MUST_BE(tarn_device_close(gpu), TARN_OK);
}

TEST_LOOP(mapped_and_distributed, DOCUMENT_DEVICES) {
  which = _i;
  run_ranks(GPUS, test_devices[which], take_rows_of_all);
}
