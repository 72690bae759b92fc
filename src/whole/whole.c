// Creates and destroys whole memory, in steps that all ranks take together.
//
//   every rank for itself      all ranks together
//   ---------------------      -------------------------------------------
//   prepare                    agree
//                              the same order?     (tarn__order_compare)
//                              partition of rank 0 (broadcast)
//   lay out, make its own      agree
//                              pass descriptors (tarn_comm_share)
//   take in the others'        agree
//   settle                     agree
//
// Invariants:
//   * a step is taken at all ranks or at none, so that all ranks call the same
//     collectives, whichever step fails
//   * if create fails, this rank has freed everything, and the others have
//     closed this rank's memory or will, since they know of the failure
//   * no rank gets the address of a byte before all bytes are committed and
//   zero
#include "whole/whole.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os_peer.h"
#include "base/status.h"
#include "comm/comm.h"
#include "tarn/account.h"

// --- host memory and what is held ------------------------------------------

static const tarn__whole_backing *backing_of(const tarn__whole_order *order) {
  if (order->pager != NULL) return &tarn__backing_pager;
  if (!order->mapped) return &tarn__backing_block;
  if (order->by_handles) return &tarn__backing_handles;
  return order->on_device ? &tarn__backing_segments : &tarn__backing_hostfile;
}

static tarn_status make_arrays(tarn_whole *whole) {
  whole->offsets = tarn__host_array(whole->ranks + 1, sizeof *whole->offsets);
  whole->parts = tarn__host_array(whole->ranks, sizeof *whole->parts);
  whole->fds = tarn__os_no_descriptors(whole->ranks);
  if (whole->offsets == NULL || whole->parts == NULL || whole->fds == NULL) {
    return TARN_E_NOMEM;
  }
  if (whole->type != TARN_WHOLE_HIERARCHICAL) return TARN_OK;
  whole->machines = tarn__host_array(whole->ranks, sizeof *whole->machines);
  return whole->machines != NULL ? TARN_OK : TARN_E_NOMEM;
}

// An inner memory holds the device for the one that it is of.
static tarn_status hold_device(tarn_whole *whole) {
  if (whole->type == TARN_WHOLE_HIERARCHICAL) return TARN_OK;
  TARN__TRY(tarn__whole_ref_device(whole->place.device));
  whole->has_ref = true;
  return TARN_OK;
}

static tarn_status fill(tarn_whole *whole, const char *name) {
  TARN__TRY(make_arrays(whole));
  TARN__TRY(tarn_device_open("cpu:0", &whole->host));
  TARN__TRY(tarn_pool_of(whole->place, &whole->pool));
  bool named = name != NULL && name[0] != '\0';
  TARN__TRY(tarn_pool_tag(named ? name : "whole", &whole->tag));
  return hold_device(whole);
}

// Also called in a child of fork, as is the next.
static void leave_comm(tarn_whole *whole) {
  tarn__comm_release(whole->comm, &whole->node);
  (void)tarn_comm_destroy(whole->near);
}

// Touches nothing of a device.
static void free_whole(tarn_whole *whole) {
  leave_comm(whole);
  tarn__host_free_array(whole->offsets, whole->ranks + 1,
                        sizeof *whole->offsets);
  tarn__host_free_array(whole->parts, whole->ranks, sizeof *whole->parts);
  tarn__host_free_array(whole->fds, whole->ranks, sizeof *whole->fds);
  tarn__host_free_array(whole->machines, whole->ranks, sizeof *whole->machines);
  tarn__host_free(whole, sizeof *whole);
}

static void release(tarn_whole *whole) {
  if (whole->has_ref) tarn__whole_unref_device(whole->place.device);
  if (whole->host != NULL) (void)tarn_device_close(whole->host);
  free_whole(whole);
}

// Starts a whole memory without any memory. NULL on failure.
static tarn_status begin(tarn_comm *comm, const tarn__whole_order *order,
                         tarn_whole **out_whole) {
  tarn_whole *made = tarn__host_alloc(sizeof *made);
  if (made == NULL) return TARN_E_NOMEM;
  *made = (tarn_whole){.generation = tarn__os_generation(),
                       .type = order->options.type,
                       .spread = order->options.spread,
                       .comm = comm,
                       .rank = tarn_comm_rank(comm),
                       .ranks = tarn_comm_size(comm),
                       .place = order->options.place,
                       .size = order->options.size,
                       .granularity = order->options.granularity,
                       .piece = order->piece,
                       .backing = backing_of(order),
                       .pager = order->pager,
                       .on_device = order->on_device,
                       .lease = -1,
                       .fd = -1};
  tarn__comm_hold(comm, &made->node);
  tarn_list_init(&made->users);
  if (order->options.name != NULL) {
    snprintf(made->name, sizeof made->name, "%s", order->options.name);
  }
  tarn_status status = fill(made, order->options.name);
  if (status != TARN_OK) release(made);
  if (status == TARN_OK) *out_whole = made;
  return status;
}

static tarn_status check_machines(tarn_comm *comm,
                                  const tarn__whole_order *order) {
  size_t machines = tarn_comm_machines(comm);
  bool alone = order->options.type == TARN_WHOLE_CONTINUOUS ||
               order->options.type == TARN_WHOLE_CHUNKED;
  if (!alone || machines == 1) return TARN_OK;
  return tarn__fail(
      TARN_E_UNSUPPORTED,
      "whole memory that is %s is mapped by all ranks, but they are on %zu "
      "machines, or cannot pass descriptors: use TARN_WHOLE_HIERARCHICAL or "
      "TARN_WHOLE_DISTRIBUTED",
      order->kind, machines);
}

static tarn_status prepare(tarn_comm *comm, const tarn__whole_request *wish,
                           tarn__whole_order *out_order,
                           tarn_whole **out_made) {
  if (wish->refused != TARN_OK) return wish->refused;
  TARN__TRY(tarn__order_read(wish, tarn_comm_size(comm), out_order));
  TARN__TRY(check_machines(comm, out_order));
  return begin(comm, out_order, out_made);
}

// --- the inner memory ------------------------------------------------------

// The one whose backing is made.
static tarn_whole *backed(tarn_whole *whole) {
  return whole->inner != NULL ? whole->inner : whole;
}

// Collective.
static tarn_status begin_inner(tarn_whole *whole,
                               const tarn__whole_order *order) {
  tarn__whole_order own = *order;
  if (whole->type != TARN_WHOLE_HIERARCHICAL) return TARN_OK;
  own.options.type = TARN_WHOLE_CHUNKED;
  tarn__hierarchy_find(whole);
  TARN__TRY(tarn_comm_split_by_machine(whole->comm, &whole->near));
  return tarn_comm_agree(whole->comm, begin(whole->near, &own, &whole->inner));
}

// --- the partition ---------------------------------------------------------

static atomic_uint_fast64_t newest;

static size_t count_here(const tarn_whole *whole, const size_t *partition,
                         size_t rank) {
  if (partition != NULL) return partition[rank];
  return tarn__partition_count(whole->size / whole->granularity, whole->ranks,
                               rank);
}

// The number of the whole and the partition go from rank 0 to all, in the room
// for offsets.
static tarn_status send_counts(tarn_whole *whole, const size_t *partition) {
  size_t *message = whole->offsets;
  if (whole->rank == 0) {
    message[0] = (size_t)atomic_fetch_add(&newest, 1) + 1;
    for (size_t r = 0; r < whole->ranks; r++)
      message[r + 1] = count_here(whole, partition, r);
  }
  return tarn_comm_broadcast(whole->comm, 0, message,
                             (whole->ranks + 1) * sizeof *message);
}

static tarn_status read_counts(tarn_whole *whole, const size_t *partition) {
  whole->serial = whole->offsets[0];
  for (size_t r = 0; r < whole->ranks; r++) {
    size_t here = count_here(whole, partition, r);
    if (here != whole->offsets[r + 1]) {
      return tarn__fail(
          TARN_E_INVALID,
          "whole: the partition has %zu blocks for rank %zu, but %zu at rank 0",
          here, r, whole->offsets[r + 1]);
    }
  }
  return tarn__partition_offsets(whole->offsets + 1, whole->ranks, whole->size,
                                 whole->granularity, whole->offsets);
}

// --- together --------------------------------------------------------------

static tarn_status make(tarn_whole *whole, const size_t *partition) {
  TARN__TRY(read_counts(whole, partition));
  if (whole->inner != NULL) tarn__hierarchy_divide(whole);
  return whole->backing->make(backed(whole));
}

static tarn_status send_around(tarn_whole *whole) {
  if (whole->ranks == 1) return TARN_OK;
  if (whole->handles != NULL) {
    TARN__TRY(tarn_comm_allgather(whole->comm, &whole->handles[whole->rank],
                                  sizeof *whole->handles, whole->handles));
  }
  return tarn_comm_share(whole->comm, whole->fd, whole->fds);
}

static tarn_status meet(tarn_whole *whole) {
  tarn_whole *mapped = backed(whole);
  if (whole->backing->meet == NULL) return TARN_OK;
  tarn_status status = send_around(mapped);
  if (status != TARN_OK && mapped == whole) return status;
  if (status == TARN_OK) status = whole->backing->meet(mapped);
  status = tarn_comm_agree(whole->comm, status);
  tarn__whole_close_all(mapped);
  return status;
}

static tarn_status assemble(tarn_whole *whole, const size_t *partition) {
  TARN__TRY(send_counts(whole, partition));
  TARN__TRY(tarn_comm_agree(whole->comm, make(whole, partition)));
  TARN__TRY(meet(whole));
  if (whole->backing->settle == NULL) return TARN_OK;
  return tarn_comm_agree(whole->comm, whole->backing->settle(backed(whole)));
}

// All of it as chunks, where all of it is mapped.
static void refer_to(tarn_whole *whole) {
  bool chunked = whole->type == TARN_WHOLE_CHUNKED;
  for (size_t r = 0; whole->base != 0 && r < whole->ranks; r++) {
    if (tarn__whole_part_size(whole, r) > 0)
      whole->parts[r] = whole->base + whole->offsets[r];
  }
  whole->ends[1] = whole->size;
  whole->reference =
      chunked ? (tarn_reference){whole->parts, whole->offsets, whole->ranks}
              : (tarn_reference){&whole->base, whole->ends, 1};
}

static void refer(tarn_whole *whole) {
  bool parts = whole->type == TARN_WHOLE_HIERARCHICAL &&
               whole->spread == TARN_WHOLE_PARTS &&
               tarn__hierarchy_count(whole) > 1;
  whole->mapped = whole->type != TARN_WHOLE_DISTRIBUTED && !parts;
  if (whole->type != TARN_WHOLE_DISTRIBUTED) refer_to(backed(whole));
  if (whole->inner != NULL) tarn__hierarchy_refer(whole);
}

static tarn_status leave(tarn_whole *whole) {
  return whole->backing->leave != NULL ? whole->backing->leave(backed(whole))
                                       : TARN_OK;
}

static void end_memory(tarn_whole *whole, tarn__failure *first) {
  if (whole->backing->end != NULL) {
    tarn__failure_note(first, whole->backing->end(whole));
  }
  if (whole->charged != 0) {
    tarn__failure_note(
        first, tarn_pool_discharge(whole->pool, whole->charged, whole->tag));
  }
}

// Returns the first failure, which may be one from before.
static tarn_status end(tarn_whole *whole, tarn__failure *first) {
  end_memory(backed(whole), first);
  if (whole->inner != NULL) release(whole->inner);
  release(whole);
  return tarn__failure_tell(first);
}

static tarn_status give_up(tarn_whole *whole, tarn_status status) {
  tarn__failure first = tarn__failure_of(status);
  tarn__whole_close_all(backed(whole));
  tarn__failure_note(&first, leave(whole));
  return end(whole, &first);
}

static tarn_status take_apart(tarn_whole *whole, tarn_status met);

static tarn_status create(tarn_comm *comm, const tarn__whole_request *wish,
                          tarn__whole_subject *subject,
                          tarn_whole **out_whole) {
  tarn__whole_order order;
  tarn_whole *made = NULL;
  tarn_status status = prepare(comm, wish, &order, &made);
  if (made != NULL) subject->name = made->name;
  status = tarn_comm_agree(comm, status);
  if (made == NULL) return status;
  if (status == TARN_OK) status = tarn__order_compare(comm, &order);
  if (status == TARN_OK) status = tarn__whole_end_given_up(comm, take_apart);
  if (status == TARN_OK) status = begin_inner(made, &order);
  if (status == TARN_OK) status = assemble(made, order.options.partition);
  if (status != TARN_OK) return give_up(made, status);
  refer(made);
  *out_whole = made;
  return TARN_OK;
}

tarn_status tarn__whole_create(tarn_comm *comm, const tarn__whole_request *wish,
                               tarn_whole **out_whole) {
  tarn__whole_subject subject = {.call = wish->call, .name = ""};
  tarn__comm_caller caller = tarn__whole_caller(&subject);
  if (comm == NULL) return tarn__fail(TARN_E_INVALID, "whole: NULL");
  TARN__TRY(tarn__not_in_callback());
  tarn__comm_call_for(comm, &caller);
  tarn_status status = create(comm, wish, &subject, out_whole);
  tarn__comm_call_for(comm, NULL);
  return status;
}

tarn_status tarn_whole_create(tarn_comm *comm,
                              const tarn_whole_options *options,
                              tarn_whole **out_whole) {
  tarn_whole *made = NULL;
  tarn__whole_request wish = {.call = TARN__WHOLE_CREATE, .options = options};
  if (out_whole != NULL) *out_whole = NULL;
  if (out_whole == NULL) {
    wish.refused = tarn__fail(TARN_E_INVALID, "whole: NULL");
  }
  tarn_status status = tarn__whole_create(comm, &wish, &made);
  if (out_whole != NULL) *out_whole = made;
  return status;
}

// --- memory and its tensor together ----------------------------------------

static size_t width_of(const tarn_whole_table_options *table) {
  return table->width > 0 ? table->width : 1;
}

// The bytes of a row and of all rows.
static tarn_status measure_table(const tarn_whole_table_options *table,
                                 tarn_whole_options *out) {
  size_t element = tarn_dtype_size(table->dtype);
  if (element == 0) {
    return tarn__fail(TARN_E_INVALID, "table options: unknown dtype %d",
                      (int)table->dtype);
  }
  if (tarn_size_mul(width_of(table), element, &out->granularity) &&
      tarn_size_mul(table->rows, out->granularity, &out->size)) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID,
                    "table options: %zu rows of %zu x %s overflow", table->rows,
                    width_of(table), tarn_dtype_name(table->dtype));
}

tarn_status tarn_whole_table_create(tarn_comm *comm,
                                    const tarn_whole_table_options *options,
                                    tarn_whole_tensor *out_tensor) {
  tarn_whole_table_options table;
  tarn_whole *whole = NULL;
  if (out_tensor != NULL) memset(out_tensor, 0, sizeof *out_tensor);
  tarn_status status = tarn__take_struct(
      "table options", options,
      TARN__SIZE_UP_TO(tarn_whole_table_options, name), &table, sizeof table);
  if (status == TARN_OK && out_tensor == NULL) {
    status = tarn__fail(TARN_E_INVALID, "table: NULL");
  }
  tarn_whole_options bytes = {.struct_size = sizeof bytes,
                              .type = table.type,
                              .place = table.place,
                              .partition = table.partition,
                              .name = table.name,
                              .spread = table.spread};
  if (status == TARN_OK) status = measure_table(&table, &bytes);
  const tarn__whole_request wish = {.refused = status,
                                    .call = TARN__WHOLE_TABLE_CREATE,
                                    .options = &bytes,
                                    .dtype = table.dtype,
                                    .width = table.width};
  TARN__TRY(tarn__whole_create(comm, &wish, &whole));
  if (out_tensor != NULL) {
    *out_tensor = tarn__tensor_of(whole, table.dtype, table.rows, table.width);
  }
  return TARN_OK;
}

// --- the end ---------------------------------------------------------------

// Others close this rank's memory before it is freed, so that it is gone when
// the call returns. A failure of ranks to meet is reported before later ones.
static tarn_status take_apart(tarn_whole *whole, tarn_status met) {
  tarn__failure first = tarn__failure_of(met);
  tarn__exchange_end(whole->exchange, false);
  tarn__fetch_end(whole, false);
  tarn__failure_note(&first, leave(whole));
  if (met == TARN_OK && whole->backing->meet != NULL) {
    tarn_status left = tarn_comm_barrier(whole->comm);
    backed(whole)->all_left = left == TARN_OK;
    tarn__failure_note(&first, left);
  }
  return end(whole, &first);
}

// With a gather under way, what its thread may have been using at the moment of
// the fork is left behind.
static void forget(tarn_whole *whole) {
  bool busy = whole->fetch != NULL;
  void (*drop)(tarn_whole *) = busy ? leave_comm : free_whole;
  tarn__exchange_end(whole->exchange, true);
  if (!busy) tarn__fetch_end(whole, true);
  if (whole->backing->forget != NULL) whole->backing->forget(backed(whole));
  if (whole->inner != NULL) drop(whole->inner);
  drop(whole);
}

tarn_status tarn_whole_collect(tarn_comm *comm) {
  tarn__whole_subject subject = {.call = TARN__WHOLE_COLLECT, .name = ""};
  tarn__comm_caller caller = tarn__whole_caller(&subject);
  if (comm == NULL) return tarn__fail(TARN_E_INVALID, "whole: NULL");
  TARN__TRY(tarn__not_in_callback());
  tarn__comm_call_for(comm, &caller);
  tarn_status status = tarn__whole_end_given_up(comm, take_apart);
  tarn__comm_call_for(comm, NULL);
  return status;
}

// After the end of one at all ranks, which |status| is of at this one: that of
// those that were given up. What stays is ended later.
static tarn_status end_more(tarn_comm *comm, tarn_status status) {
  tarn__failure first = tarn__failure_of(status);
  if (tarn_whole_collect(comm) != TARN_OK)
    tarn__failure_note(&first, tarn__comm_state(comm));
  return tarn__failure_tell(&first);
}

// Collective.
static tarn_status end_together(tarn_whole *whole, bool *out_ended) {
  tarn_comm *comm = whole->comm;
  tarn__whole_subject subject =
      tarn__whole_subject_of(TARN__WHOLE_DESTROY, whole);
  tarn__comm_caller caller = tarn__whole_caller(&subject);
  tarn__comm_call_for(comm, &caller);
  tarn_status status = tarn_comm_barrier(comm);
  *out_ended = status == TARN_OK || tarn__comm_state(comm) != TARN_OK;
  if (*out_ended) status = take_apart(whole, status);
  tarn__comm_call_for(comm, NULL);
  return *out_ended ? end_more(comm, status) : status;
}

tarn_status tarn__whole_end(tarn_whole *whole, bool *out_ended) {
  *out_ended = whole->generation != tarn__os_generation();
  if (*out_ended) {
    forget(whole);
    return TARN_OK;
  }
  TARN__TRY(tarn__not_in_callback());
  TARN__TRY(tarn__fetch_check(whole));
  return end_together(whole, out_ended);
}

// Those that all ranks have given up end first.
static tarn_status refuse_users(tarn_whole *whole) {
  bool is_child = whole->generation != tarn__os_generation();
  if (tarn_list_empty(&whole->users)) return TARN_OK;
  if (!is_child) (void)!tarn_whole_collect(whole->comm);
  if (tarn_list_empty(&whole->users)) return TARN_OK;
  return tarn__fail(TARN_E_STATE, "whole %llu: embeddings use it",
                    (unsigned long long)whole->serial);
}

tarn_status tarn_whole_destroy(tarn_whole *whole) {
  bool ended = false;
  if (whole == NULL) return TARN_OK;
  if (whole->pager != NULL) {
    return tarn__fail(TARN_E_STATE,
                      "whole %llu is a table on a disk, and ends with it "
                      "(tarn_disk_close)",
                      (unsigned long long)whole->serial);
  }
  TARN__TRY(refuse_users(whole));
  return tarn__whole_end(whole, &ended);
}
