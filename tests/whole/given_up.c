// Whole memory that ranks give up: it ends with the next collective that makes
// or ends some, when all ranks have given it up, and not before.
#include <pthread.h>

#include "kit.h"
#include "tarn/counted.h"
#include "tarn/embedding.h"

// Every rank has pieces of its own.
enum { RANKS = 3, ROWS = 600000 };

static const tarn_whole_type kinds[] = {
    TARN_WHOLE_CONTINUOUS, TARN_WHOLE_CHUNKED, TARN_WHOLE_DISTRIBUTED};
enum { KINDS = sizeof kinds / sizeof kinds[0] };
static tarn_whole_type type;

static tarn_whole_tensor make(void) {
  const tarn_whole_table_options options = {.struct_size = sizeof options,
                                            .type = type,
                                            .place = TARN_HOST,
                                            .dtype = TARN_DTYPE_F32,
                                            .rows = ROWS,
                                            .width = 4};
  tarn_whole_tensor table;
  MUST_BE(tarn_whole_table_create(my.comm, &options, &table), TARN_OK);
  return table;
}

// Bytes that this rank has charged for whole memory.
static size_t charged(void) {
  tarn_pool *pool = NULL;
  tarn_pool_tag_stats stats = {.struct_size = sizeof stats};
  tarn_tag tag = 0;
  MUST_BE(tarn_pool_of(TARN_HOST, &pool), TARN_OK);
  MUST_BE(tarn_pool_tag("whole", &tag), TARN_OK);
  MUST_BE(tarn_pool_query_tag(pool, tag, &stats), TARN_OK);
  return stats.live_bytes + stats.charged_bytes;
}

#define EACH_TYPE(name, function)          \
  TEST_LOOP(name, KINDS) {                 \
    type = kinds[_i];                      \
    run_ranks(RANKS, #function, function); \
  }

// --- by collect, create and destroy ----------------------------------------

static void give_up_one_by_one(void) {
  tarn_whole_tensor table = make();
  size_t held = charged();
  MUST(held > 0);
  for (size_t r = 0; r < my.ranks; r++) {
    MUST(charged() == held);
    if (r == my.rank) tarn_whole_give_up(table.whole);
    MUST_BE(tarn_whole_collect(my.comm), TARN_OK);
  }
  MUST(charged() == 0);
}

EACH_TYPE(it_ends_when_all_ranks_have_given_it_up, give_up_one_by_one)

// Ranks give up different ones; all but the first are given up by all.
static void give_up_in_any_order(void) {
  tarn_whole_tensor tables[4];
  for (size_t i = 0; i < 4; i++)
    tables[i] = make();
  size_t each = charged() / 4;
  for (size_t i = 0; i < 4; i++) {
    size_t at = (i + my.rank) % 4;
    if (at != 0 || my.rank == 1) tarn_whole_give_up(tables[at].whole);
  }
  MUST_BE(tarn_whole_collect(my.comm), TARN_OK);
  MUST(charged() == each);
  if (my.rank != 1) tarn_whole_give_up(tables[0].whole);
  MUST_BE(tarn_whole_collect(my.comm), TARN_OK);
  MUST(charged() == 0);
}

EACH_TYPE(ranks_may_give_up_in_any_order, give_up_in_any_order)

static void end_by_others(void) {
  tarn_whole_tensor first = make();
  size_t each = charged();
  tarn_whole_give_up(first.whole);
  tarn_whole_tensor second = make();
  MUST(charged() == each);
  tarn_whole_tensor third = make();
  tarn_whole_give_up(second.whole);
  MUST_BE(tarn_whole_destroy(third.whole), TARN_OK);
  MUST(charged() == 0);
}

EACH_TYPE(create_and_destroy_end_it, end_by_others)

// --- what keeps it ---------------------------------------------------------

static tarn_embedding *embed(const tarn_whole_tensor *table,
                             tarn_optimizer optimizer) {
  tarn_embedding_options options;
  tarn_embedding *embedding = NULL;
  MUST_BE(tarn_embedding_defaults(optimizer, &options), TARN_OK);
  MUST_BE(tarn_embedding_create(table, &options, &embedding), TARN_OK);
  return embedding;
}

static void keep_by_embedding(void) {
  tarn_whole_tensor table = make();
  size_t each = charged();
  tarn_embedding *embedding = embed(&table, TARN_OPTIMIZER_SGD);
  tarn_whole_give_up(table.whole);
  MUST_BE(tarn_whole_collect(my.comm), TARN_OK);
  MUST(charged() >= each);
  MUST_BE(tarn_embedding_destroy(embedding), TARN_OK);
  MUST_BE(tarn_whole_collect(my.comm), TARN_OK);
  MUST(charged() == 0);
}

EACH_TYPE(an_embedding_keeps_it, keep_by_embedding)

static void *release(void *counted) {
  tarn_counted_release(counted);
  return NULL;
}

// The last view is ended by a thread, while this one is in a collective.
static void keep_by_view(void) {
  pthread_t thread;
  tarn_counted *counted = NULL;
  tarn_whole_tensor table = make();
  MUST_BE(tarn_counted_create(table.whole, 0, tarn_whole_give_up, &counted),
          TARN_OK);
  tarn_counted_hold(counted);
  tarn_counted_release(counted);
  MUST_BE(tarn_whole_collect(my.comm), TARN_OK);
  MUST(charged() > 0);
  MUST(pthread_create(&thread, NULL, release, counted) == 0);
  MUST_BE(tarn_whole_collect(my.comm), TARN_OK);
  MUST(pthread_join(thread, NULL) == 0);
  MUST_BE(tarn_whole_collect(my.comm), TARN_OK);
  MUST(charged() == 0);
}

EACH_TYPE(a_view_keeps_it, keep_by_view)

// --- embeddings ------------------------------------------------------------

static const tarn_optimizer optimizers[] = {TARN_OPTIMIZER_SGD,
                                            TARN_OPTIMIZER_ADAM};
enum { OPTIMIZERS = sizeof optimizers / sizeof optimizers[0] };
static tarn_optimizer optimizer;

#define EACH_OPTIMIZER(name, function)     \
  TEST_LOOP(name, OPTIMIZERS) {            \
    type = TARN_WHOLE_CHUNKED;             \
    optimizer = optimizers[_i];            \
    run_ranks(RANKS, #function, function); \
  }

// The table stays, and learns anew.
static void give_up_embeddings(void) {
  tarn_whole_tensor table = make();
  size_t alone = charged();
  tarn_embedding *first = embed(&table, optimizer);
  size_t both = charged();
  for (size_t r = 0; r < my.ranks; r++) {
    MUST(charged() == both);
    if (r == my.rank) tarn_embedding_give_up(first);
    MUST_BE(tarn_whole_collect(my.comm), TARN_OK);
  }
  MUST(charged() == alone);
  tarn_embedding *second = embed(&table, optimizer);
  MUST(charged() == both);
  MUST_BE(tarn_embedding_destroy(second), TARN_OK);
  MUST_BE(tarn_whole_destroy(table.whole), TARN_OK);
  MUST(charged() == 0);
}

EACH_OPTIMIZER(an_embedding_ends_when_all_have_given_it_up, give_up_embeddings)

static void give_up_with_the_table(void) {
  tarn_whole_tensor table = make();
  tarn_embedding *some[] = {embed(&table, optimizer), embed(&table, optimizer),
                            embed(&table, optimizer)};
  size_t all = charged();
  tarn_whole_give_up(table.whole);
  for (size_t i = 0; i < 3; i++) {
    if (i != 1 || my.rank != 2) tarn_embedding_give_up(some[(i + my.rank) % 3]);
  }
  MUST_BE(tarn_whole_collect(my.comm), TARN_OK);
  MUST(charged() > 0 && charged() <= all);
  tarn_embedding_give_up(some[0]);
  MUST_BE(tarn_whole_collect(my.comm), TARN_OK);
  MUST(charged() == 0);
}

EACH_OPTIMIZER(a_table_ends_with_its_embeddings, give_up_with_the_table)

static void destroy_what_is_used(void) {
  tarn_whole_tensor table = make();
  tarn_embedding *embedding = embed(&table, optimizer);
  if (my.rank == 0) tarn_embedding_give_up(embedding);
  MUST_BE(tarn_whole_destroy(table.whole), TARN_E_STATE);
  MUST_SAY("embeddings use it");
  if (my.rank != 0) tarn_embedding_give_up(embedding);
  MUST_BE(tarn_whole_destroy(table.whole), TARN_OK);
  MUST(charged() == 0);
}

EACH_OPTIMIZER(destroy_ends_embeddings_that_were_given_up, destroy_what_is_used)

static void lose_a_rank_of_an_embedding(void) {
  tarn_whole_tensor table = make();
  tarn_embedding *embedding = embed(&table, optimizer);
  meet_all();
  if (my.rank == 1) _exit(0);
  MUST_BE(tarn_comm_barrier(my.comm), TARN_E_PEER_LOST);
  tarn_embedding_give_up(embedding);
  MUST_BE(tarn_whole_destroy(table.whole), TARN_E_PEER_LOST);
  MUST(charged() == 0);
}

EACH_OPTIMIZER(a_broken_communicator_ends_embeddings,
               lose_a_rank_of_an_embedding)

// --- when a rank is lost ---------------------------------------------------

static void lose_a_rank(void) {
  tarn_whole_tensor table = make();
  tarn_whole_give_up(table.whole);
  meet_all();
  if (my.rank == 1) _exit(0);
  MUST_BE(tarn_comm_barrier(my.comm), TARN_E_PEER_LOST);
  MUST_BE(tarn_whole_collect(my.comm), TARN_E_PEER_LOST);
  MUST(charged() == 0);
}

EACH_TYPE(a_broken_communicator_ends_what_is_here, lose_a_rank)

static void call_wrongly(void) {
  tarn_whole_give_up(NULL);
  tarn_embedding_give_up(NULL);
  MUST_BE(tarn_whole_collect(NULL), TARN_E_INVALID);
  MUST_BE(
      my.rank == 0 ? tarn_whole_collect(my.comm) : tarn_comm_barrier(my.comm),
      TARN_E_INVALID);
  MUST_SAY("tarn_whole_collect");
}

TEST(collect_is_a_call_of_all_ranks) {
  run_ranks(2, "collect", call_wrongly);
}
