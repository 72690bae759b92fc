// Communicators of other making: what the front asks of a table of operations,
// and what it makes of their answers. Wholes hold the communicator too.
#include <stddef.h>
#include <string.h>

#include "base/status.h"
#include "comm/comm.h"
#include "support/run.h"
#include "tarn/sim.h"
#include "tarn/whole.h"

// Operations of a single rank, whose answers are set.
typedef struct script {
  tarn_status allgather;
  tarn_status broadcast;
  tarn_status check;
  tarn_status share;
  size_t spared;     // calls that come before those, and are TARN_OK
  size_t calls;      // of any
  size_t destroyed;  // how often
} script;

static tarn_status answer(script *self, tarn_status status) {
  if (self->calls++ < self->spared) return TARN_OK;
  return status == TARN_OK ? status : tarn__fail(status, "as it was told");
}

static void end(void *self) {
  ((script *)self)->destroyed++;
}

static tarn_status broadcast(void *self, size_t root, void *data, size_t size) {
  (void)root;
  (void)data;
  ck_assert_uint_gt(size, 0);
  return answer(self, ((script *)self)->broadcast);
}

static tarn_status allgather(void *self, const void *data, size_t size,
                             void *out) {
  ck_assert_uint_gt(size, 0);
  memmove(out, data, size);
  return answer(self, ((script *)self)->allgather);
}

static tarn_status alltoallv(void *self, const void *send, const size_t *sizes,
                             const size_t *offsets, void *receive,
                             const size_t *receive_sizes,
                             const size_t *receive_offsets) {
  (void)receive_sizes;
  memmove((char *)receive + receive_offsets[0], (const char *)send + offsets[0],
          sizes[0]);
  return answer(self, TARN_OK);
}

static tarn_status share(void *self, int fd, int *out_fds) {
  (void)fd;
  out_fds[0] = -1;
  return answer(self, ((script *)self)->share);
}

static tarn_status check(void *self) {
  return answer(self, ((script *)self)->check);
}

static tarn_status split(void *self, const size_t *ranks, size_t size,
                         const tarn_comm_ops **out_ops, void **out_self);

static const tarn_comm_ops ops = {
    .struct_size = sizeof ops,
    .name = "scripted",
    .destroy = end,
    .broadcast = broadcast,
    .allgather = allgather,
    .alltoallv = alltoallv,
    .split = split,
    .share = share,
    .check = check,
};

static tarn_status split(void *self, const size_t *ranks, size_t size,
                         const tarn_comm_ops **out_ops, void **out_self) {
  ck_assert_uint_eq(size, 1);
  ck_assert_uint_eq(ranks[0], 0);
  *out_ops = &ops;
  *out_self = self;
  return answer(self, TARN_OK);
}

static tarn_comm *make(const tarn_comm_ops *table, script *self) {
  tarn_comm *comm = NULL;
  assert_ok(tarn_comm_create(table, self, 0, 1, 1000, &comm));
  return comm;
}

static bool cancel(void *self, void *message) {
  (void)message;
  ((script *)self)->calls++;
  return true;
}

// --- making ----------------------------------------------------------------

TEST(what_was_given_is_told) {
  script self = {0};
  tarn_comm *comm = NULL;
  assert_ok(tarn_comm_create(&ops, &self, 2, 5, 1000, &comm));
  ck_assert_uint_eq(tarn_comm_rank(comm), 2);
  ck_assert_uint_eq(tarn_comm_size(comm), 5);
  ck_assert_uint_eq(tarn_comm_timeout_ms(comm), 1000);
  ck_assert_str_eq(tarn_comm_kind(comm), "scripted");
  assert_ok(tarn_comm_destroy(comm));
  ck_assert_uint_eq(self.destroyed, 1);
  ck_assert_uint_eq(self.calls, 0);
}

static const size_t NEEDED[] = {
    offsetof(tarn_comm_ops, name),      offsetof(tarn_comm_ops, destroy),
    offsetof(tarn_comm_ops, broadcast), offsetof(tarn_comm_ops, allgather),
    offsetof(tarn_comm_ops, alltoallv), offsetof(tarn_comm_ops, split),
};

TEST(what_is_missing_is_refused) {
  script self = {0};
  for (size_t i = 0; i < sizeof NEEDED / sizeof *NEEDED; i++) {
    tarn_comm_ops table = ops;
    tarn_comm *comm = (tarn_comm *)&self;
    memset((char *)&table + NEEDED[i], 0, sizeof(void *));
    assert_status(tarn_comm_create(&table, &self, 0, 1, 0, &comm),
                  TARN_E_INVALID);
    ck_assert_ptr_null(comm);
  }
  ck_assert_uint_eq(self.destroyed, 0);
}

// Of messages there are all or none.
TEST(a_part_of_the_messages_is_refused) {
  script self = {0};
  tarn_comm *comm = NULL;
  tarn_comm_ops table = ops;
  table.cancel = cancel;
  assert_status(tarn_comm_create(&table, &self, 0, 1, 0, &comm),
                TARN_E_INVALID);
  assert_error_says("lacks a required function");
}

TEST(wrong_numbers_are_refused) {
  script self = {0};
  tarn_comm *comm = NULL;
  tarn_comm_ops table = ops;
  assert_status(tarn_comm_create(&ops, &self, 1, 1, 0, &comm), TARN_E_INVALID);
  assert_error_says("rank 1 is not below size 1");
  assert_status(tarn_comm_create(&ops, &self, 0, 0, 0, &comm), TARN_E_INVALID);
  assert_status(tarn_comm_create(&ops, &self, 0, 1, 0, NULL), TARN_E_INVALID);
  assert_status(tarn_comm_create(NULL, &self, 0, 1, 0, &comm), TARN_E_INVALID);
  table.struct_size = sizeof(void *);
  assert_status(tarn_comm_create(&table, &self, 0, 1, 0, &comm),
                TARN_E_INVALID);
  assert_error_says("struct_size 8");
}

// --- answers ---------------------------------------------------------------

TEST(what_breaks_it_sticks) {
  script self = {.broadcast = TARN_E_DEVICE};
  char bytes[5000] = {0};
  tarn_comm *comm = make(&ops, &self);
  assert_status(tarn_comm_broadcast(comm, 0, bytes, sizeof bytes),
                TARN_E_DEVICE);
  size_t calls = self.calls;
  self.broadcast = TARN_OK;
  assert_status(tarn_comm_barrier(comm), TARN_E_DEVICE);
  assert_error_says("as it was told");
  assert_status(tarn_comm_check(comm), TARN_E_DEVICE);
  ck_assert_uint_eq(self.calls, calls);
  assert_ok(tarn_comm_destroy(comm));
}

TEST(what_is_short_may_come_again) {
  static const tarn_status passing[] = {TARN_E_NOMEM, TARN_E_IO};
  for (int i = 0; i < 2; i++) {
    script self = {.allgather = passing[i]};
    tarn_comm *comm = make(&ops, &self);
    assert_status(tarn_comm_barrier(comm), passing[i]);
    assert_error_says("as it was told");
    self.allgather = TARN_OK;
    assert_ok(tarn_comm_barrier(comm));
    assert_ok(tarn_comm_destroy(comm));
  }
}

TEST(a_check_breaks_it_too) {
  script self = {.check = TARN_E_PEER_LOST};
  tarn_comm *comm = make(&ops, &self);
  assert_status(tarn_comm_check(comm), TARN_E_PEER_LOST);
  assert_status(tarn_comm_barrier(comm), TARN_E_PEER_LOST);
  assert_ok(tarn_comm_destroy(comm));
}

TEST(two_operations_may_be_missing) {
  script self = {0};
  tarn_comm_ops table = ops;
  int fds[1] = {5};
  table.share = NULL;
  table.check = NULL;
  tarn_comm *comm = make(&table, &self);
  assert_ok(tarn_comm_check(comm));
  assert_status(tarn_comm_share(comm, 0, fds), TARN_E_UNSUPPORTED);
  assert_error_says("a communicator of kind scripted cannot pass descriptors");
  ck_assert_int_eq(fds[0], -1);
  assert_ok(tarn_comm_barrier(comm));
  assert_ok(tarn_comm_destroy(comm));
}

TEST(a_table_may_be_of_an_older_version) {
  script self = {.check = TARN_E_DEVICE};
  tarn_comm_ops table = ops;
  table.struct_size = 0;  // the first one
  tarn_comm *comm = make(&table, &self);
  assert_ok(tarn_comm_barrier(comm));
  assert_ok(tarn_comm_destroy(comm));
}

TEST(a_group_is_of_its_operations) {
  script self = {0};
  tarn_comm *comm = make(&ops, &self);
  tarn_comm *group = NULL;
  assert_ok(tarn_comm_split(comm, 3, 4, &group));
  ck_assert_str_eq(tarn_comm_kind(group), "scripted");
  ck_assert_uint_eq(tarn_comm_size(group), 1);
  assert_ok(tarn_comm_destroy(comm));
  assert_ok(tarn_comm_barrier(group));
  assert_ok(tarn_comm_destroy(group));
  ck_assert_uint_eq(self.destroyed, 2);
}

// --- what is made with it --------------------------------------------------

TEST(it_stays_while_it_is_held) {
  script self = {0};
  tarn_comm *comm = make(&ops, &self);
  tarn_list nodes[2];
  tarn__comm_hold(comm, &nodes[0]);
  tarn__comm_hold(comm, &nodes[1]);
  ck_assert_ptr_eq(tarn__comm_holders(comm)->next, &nodes[0]);
  assert_status(tarn_comm_destroy(comm), TARN_E_STATE);
  assert_error_says("2 ");
  tarn__comm_release(comm, &nodes[0]);
  ck_assert_ptr_eq(tarn__comm_holders(comm)->next, &nodes[1]);
  assert_status(tarn_comm_destroy(comm), TARN_E_STATE);
  assert_ok(tarn_comm_barrier(comm));
  tarn__comm_release(comm, &nodes[1]);
  assert_ok(tarn_comm_destroy(comm));
  ck_assert_uint_eq(self.destroyed, 1);
}

static tarn_whole *make_whole(tarn_comm *comm, tarn_place place) {
  tarn_whole *whole = NULL;
  const tarn_whole_options options = {.struct_size = sizeof options,
                                      .type = TARN_WHOLE_CHUNKED,
                                      .place = place,
                                      .size = 100};
  assert_ok(tarn_whole_create(comm, &options, &whole));
  return whole;
}

TEST(a_whole_ends_whatever_broke_it) {
  static const tarn_status breaking[] = {TARN_E_INVALID, TARN_E_CORRUPT,
                                         TARN_E_TIMEOUT};
  for (int i = 0; i < 3; i++) {
    script self = {0};
    tarn_comm *comm = make(&ops, &self);
    tarn_whole *whole = make_whole(comm, TARN_HOST);
    self.allgather = breaking[i];
    assert_status(tarn_whole_destroy(whole), breaking[i]);
    assert_error_says("as it was told");
    assert_ok(tarn_comm_destroy(comm));
  }
}

TEST(a_whole_stays_if_nothing_is_broken) {
  static const tarn_status passing[] = {TARN_E_NOMEM, TARN_E_IO};
  for (int i = 0; i < 2; i++) {
    script self = {0};
    tarn_comm *comm = make(&ops, &self);
    tarn_whole *whole = make_whole(comm, TARN_HOST);
    self.allgather = passing[i];
    assert_status(tarn_whole_destroy(whole), passing[i]);
    assert_status(tarn_comm_destroy(comm), TARN_E_STATE);
    self.allgather = TARN_OK;
    assert_ok(tarn_whole_destroy(whole));
    assert_ok(tarn_comm_destroy(comm));
  }
}

// It is lost in the barrier, and then the driver takes nothing back.
TEST(the_first_failure_of_an_end_is_told) {
  script self = {0};
  tarn_device *sim = NULL;
  assert_ok(tarn_device_open("sim", &sim));
  tarn_comm *comm = make(&ops, &self);
  tarn_whole *whole = make_whole(comm, tarn_place_on(sim));
  self.allgather = TARN_E_PEER_LOST;
  self.spared = self.calls + 1;
  assert_ok(tarn_sim_faults("*@1"));
  assert_status(tarn_whole_destroy(whole), TARN_E_PEER_LOST);
  assert_error_says("as it was told");
  assert_ok(tarn_sim_faults(NULL));
  assert_ok(tarn_comm_destroy(comm));
}
