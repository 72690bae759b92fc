// What a rank offers the others as memory is looked at before it is mapped: a
// descriptor of anything else, or of memory that could be cut off or is of
// another size, makes all ranks fail, and leaves nothing.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "kit.h"
#include "wrapped_comm.h"

static const size_t WHOLE_BYTES = 100000;

// What there would be to offer, honestly.
typedef struct honest {
  int fd;
  char name[128];
  size_t size;
} honest;

static honest look_at(int fd) {
  static const char before[] = "/memfd:";
  char link[64];
  struct stat info;
  honest seen = {.fd = fd};
  char shown[sizeof seen.name];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, shown, sizeof shown - 1);
  MUST(size > 0 && fstat(fd, &info) == 0);
  shown[size] = '\0';
  MUST(sscanf(shown, "/memfd:%127s", seen.name) == 1);
  MUST(strncmp(shown, before, sizeof before - 1) == 0);
  seen.size = (size_t)info.st_size;
  return seen;
}

// --- offers ----------------------------------------------------------------

static int make_memory(const char *name, size_t size, int seals) {
  int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  MUST(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
  MUST(fcntl(fd, F_ADD_SEALS, seals) == 0);
  return fd;
}

enum { USUAL = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static int offer_nothing(const honest *it) {
  (void)it;
  return -1;
}

static int offer_zeros(const honest *it) {
  (void)it;
  return open("/dev/zero", O_RDWR | O_CLOEXEC);
}

static int offer_a_socket(const honest *it) {
  (void)it;
  return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int offer_a_folder(const honest *it) {
  (void)it;
  return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int offer_a_file(const honest *it) {
  char path[] = "/tmp/tarn-offer-XXXXXX";
  int fd = mkostemp(path, O_CLOEXEC);
  MUST(fd >= 0 && unlink(path) == 0);
  MUST(ftruncate(fd, (off_t)it->size) == 0);
  return fd;
}

static int offer_unsealed(const honest *it) {
  return make_memory(it->name, it->size, 0);
}

static int offer_what_shrinks(const honest *it) {
  return make_memory(it->name, it->size, F_SEAL_GROW | F_SEAL_SEAL);
}

static int offer_what_may_be_sealed(const honest *it) {
  return make_memory(it->name, it->size, F_SEAL_SHRINK | F_SEAL_GROW);
}

static int offer_what_none_may_write(const honest *it) {
  return make_memory(it->name, it->size, USUAL | F_SEAL_WRITE);
}

static int offer_what_others_may_not_write(const honest *it) {
  return make_memory(it->name, it->size, USUAL | F_SEAL_FUTURE_WRITE);
}

static int offer_less(const honest *it) {
  return make_memory(it->name, it->size - 4096, USUAL);
}

static int offer_more(const honest *it) {
  return make_memory(it->name, it->size + 4096, USUAL);
}

static int offer_no_bytes(const honest *it) {
  return make_memory(it->name, 0, USUAL);
}

static int offer_under_another_name(const honest *it) {
  return make_memory("forged", it->size, USUAL);
}

// The very memory, but not to be written by who gets it.
static int offer_to_read(const honest *it) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", it->fd);
  return open(link, O_RDONLY | O_CLOEXEC);
}

static const struct offer {
  const char *name;
  int (*make)(const honest *it);
} offers[] = {
    {"nothing", offer_nothing},
    {"/dev/zero", offer_zeros},
    {"a socket", offer_a_socket},
    {"a folder", offer_a_folder},
    {"a file", offer_a_file},
    {"memory without seals", offer_unsealed},
    {"memory that may shrink", offer_what_shrinks},
    {"memory that may be sealed", offer_what_may_be_sealed},
    {"memory that none may write", offer_what_none_may_write},
    {"memory that others may not write", offer_what_others_may_not_write},
    {"too little memory", offer_less},
    {"too much memory", offer_more},
    {"memory of no bytes", offer_no_bytes},
    {"memory of another name", offer_under_another_name},
    {"memory to be read", offer_to_read},
};
enum { OFFERS = sizeof offers / sizeof *offers };

// --- a communicator that offers it -----------------------------------------

static const struct offer *false_offer;  // of rank 0; NULL: it is honest

static tarn_status share(void *self, int fd, int *out_fds) {
  if (fd < 0 || false_offer == NULL || my.rank != 0)
    return tarn_comm_share(self, fd, out_fds);
  honest seen = look_at(fd);
  int forged = false_offer->make(&seen);
  tarn_status status = tarn_comm_share(self, forged, out_fds);
  if (forged >= 0) close(forged);
  return status;
}

static tarn_comm *wrap(tarn_comm *inner) {
  static tarn_comm_ops ops;
  tarn_comm *outer = NULL;
  ops = wrapped_comm_ops;
  ops.share = share;
  MUST_BE(tarn_comm_create(&ops, inner, my.rank, my.ranks, 60000, &outer),
          TARN_OK);
  return outer;
}

// --- the ranks -------------------------------------------------------------

static const ground *where;  // set before ranks are forked

static void must_be_refused(tarn_status status) {
  tarn_status all[MOST_RANKS];
  MUST(status == TARN_E_CORRUPT || status == TARN_E_INVALID);
  MUST_SAY("rank ");
  MUST_BE(tarn_comm_allgather(my.comm, &status, sizeof status, all), TARN_OK);
  for (size_t r = 0; r < my.ranks; r++)
    MUST(all[r] == status);
}

static tarn_status create(tarn_whole_type type, tarn_place place,
                          tarn_whole **out) {
  tarn_whole_options options = {.struct_size = sizeof options,
                                .type = type,
                                .place = place,
                                .size = WHOLE_BYTES,
                                .granularity = sizeof(float)};
  return tarn_whole_create(my.comm, &options, out);
}

static void see_honest_ones_work(tarn_whole_type type, tarn_place place) {
  tarn_whole *whole = NULL;
  false_offer = NULL;
  MUST_BE(create(type, place, &whole), TARN_OK);
  MUST_BE(tarn_whole_destroy(whole), TARN_OK);
}

static void be_offered_pieces(void) {
  tarn_place place = open_ground(where);
  tarn_comm *inner = my.comm;
  my.comm = wrap(inner);
  warm_up_plainly(place);
  for (size_t i = 0; i < (size_t)OFFERS * 2; i++) {
    belongings before = look_around(place);
    tarn_whole *whole = NULL;
    false_offer = &offers[i / 2];
    my.text = false_offer->name;
    must_be_refused(create(type_at(i % 2), place, &whole));
    MUST(whole == NULL);
    see_nothing_left(place, before);
    see_honest_ones_work(type_at(i % 2), place);
  }
  MUST_BE(tarn_comm_destroy(my.comm), TARN_OK);
  my.comm = inner;
  close_ground(place);
}

// Memory that a driver exports is nothing that can be forged here.
TEST_LOOP(false_pieces_are_refused, GROUNDS) {
  where = ground_at(_i);
  if (is_on_driver()) {
    note_skipped("false pieces", "descriptors are the driver's own");
    return;
  }
  run_ranks(3, where->text, be_offered_pieces);
}

// --- the staging of exchanges ----------------------------------------------

static tarn_status gather_a_row(tarn_whole *whole, float *out_row) {
  int32_t index = 0;
  tarn_whole_tensor table;
  tarn_whole_rows rows = {.struct_size = sizeof rows,
                          .place = TARN_HOST,
                          .dense = (tarn_addr)(uintptr_t)out_row,
                          .indices = (tarn_addr)(uintptr_t)&index,
                          .index_dtype = TARN_DTYPE_I32,
                          .index_count = 1};
  MUST_BE(
      tarn_whole_tensor_make(whole, TARN_DTYPE_F32, WHOLE_BYTES / 4, 0, &table),
      TARN_OK);
  return tarn_whole_gather(&table, &rows, NULL);
}

static void be_offered_staging(void) {
  tarn_comm *inner = my.comm;
  tarn_whole *whole = NULL;
  float row = 1;
  my.comm = wrap(inner);
  for (size_t i = 0; i < OFFERS; i++) {
    false_offer = &offers[i];
    my.text = false_offer->name;
    MUST_BE(create(TARN_WHOLE_DISTRIBUTED, TARN_HOST, &whole), TARN_OK);
    must_be_refused(gather_a_row(whole, &row));
    false_offer = NULL;
    MUST_BE(gather_a_row(whole, &row), TARN_OK);
    MUST(row == 0);
    MUST_BE(tarn_whole_destroy(whole), TARN_OK);
    row = 1;
  }
  MUST_BE(tarn_comm_destroy(my.comm), TARN_OK);
  my.comm = inner;
}

WHOLE_TEST(false_staging_is_refused, 3, "staging", be_offered_staging)
