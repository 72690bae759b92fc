// The price of moves: known, told or measured once; what of it is affordable.
//
// A move is what region.c does with a page: it is unmapped, mapped elsewhere,
// and made accessible there. Some drivers wait for the device in it; what that
// takes is no part of the price, but it is charged.
#include "pool/moves.h"

#include "base/os.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"

enum {
  TRIES = 5,
  HOST_NS = 10000,      // a page of the system's, of which all was used
  HOST_MOST = 4,        // times that: a longer move was interrupted
  SERVED_NS = 20,       // that a request pays: a third of what it takes
  PARTS_OF_TIME = 100,  // one part of it may be spent on moves
};

static tarn__pool_price source_of(bool told, const tarn__pool_supply *supply) {
  if (told || supply->dry != NULL) return TARN__PRICE_TOLD;
  bool host =
      supply->device == NULL || tarn_device_host_accessible(supply->device);
  return host ? TARN__PRICE_OF_HOST : TARN__PRICE_MEASURED;
}

void tarn__moves_init(tarn__pool_moves *moves, size_t told_ns,
                      const tarn__pool_supply *supply) {
  bool told = told_ns != TARN__MOVES_UNKNOWN;
  tarn__pool_price source = source_of(told, supply);
  bool known = !told && source != TARN__PRICE_MEASURED;
  *moves = (tarn__pool_moves){
      .price_ns = known ? HOST_NS : told_ns,
      .source = source,
      .dry = supply->dry != NULL,
  };
}

// --- measuring -------------------------------------------------------------

// Where the page is to be mapped, and the page.
typedef struct probe {
  const tarn__pool_supply *supply;
  size_t page;
  tarn_addr at;
  tarn_memory memory;
  bool mapped;
} probe;

// |*out_ns| holds the least so far.
static tarn_status time_move(probe *p, size_t *out_ns) {
  uint64_t begin = tarn__os_now_ns();
  TARN__TRY(tarn__supply_map(p->supply, p->at, p->page, p->memory));
  p->mapped = true;
  TARN__TRY(tarn__supply_set_access(p->supply, p->at, p->page));
  TARN__TRY(tarn__supply_unmap(p->supply, p->at, p->page));
  p->mapped = false;
  uint64_t took = tarn__os_now_ns() - begin;
  if (took < *out_ns) *out_ns = took;
  return TARN_OK;
}

static tarn_status time_moves(probe *p, size_t *out_ns) {
  for (int i = 0; i < TRIES; i++)
    TARN__TRY(time_move(p, out_ns));
  return TARN_OK;
}

static tarn_status with_memory(probe *p, size_t *out_ns) {
  TARN__TRY(tarn__supply_create(p->supply, p->page, &p->memory));
  tarn_status status = time_moves(p, out_ns);
  // A driver that failed to unmap it may be able to by now.
  if (p->mapped) (void)tarn__supply_unmap(p->supply, p->at, p->page);
  tarn__keep_first(&status, tarn__supply_destroy(p->supply, p->memory));
  return status;
}

static tarn_status measure(const tarn__pool_supply *supply, size_t page,
                           size_t *out_ns) {
  probe p = {.supply = supply, .page = page};
  TARN__TRY(tarn__supply_reserve(supply, page, page, &p.at));
  tarn_status status = with_memory(&p, out_ns);
  tarn__keep_first(&status, tarn__supply_release(supply, p.at, page));
  return status;
}

void tarn__moves_measure(tarn__pool_moves *moves, tarn__pool_strategy *strategy,
                         const tarn__pool_supply *supply, size_t page) {
  size_t least = TARN__MOVES_UNKNOWN;
  if (moves->price_ns != TARN__MOVES_UNKNOWN) return;
  tarn__source_begin_ask(strategy, 0, 0);
  tarn_status status = measure(supply, page, &least);
  tarn__source_end_ask(strategy, 0);
  if (status == TARN_OK) moves->price_ns = least;
}

// --- affording -------------------------------------------------------------

static uint64_t price_of(const tarn__pool_moves *moves, size_t count) {
  size_t price = 0;
  return tarn_size_mul(moves->price_ns, count, &price) ? price : UINT64_MAX;
}

// What |count| pages are charged whose move took |took_ns|.
static uint64_t charge_of(const tarn__pool_moves *moves, size_t count,
                          uint64_t took_ns) {
  uint64_t price = price_of(moves, count);
  if (moves->source == TARN__PRICE_TOLD) return price;
  if (moves->source == TARN__PRICE_MEASURED) {
    return took_ns > price ? took_ns : price;
  }
  return took_ns / HOST_MOST > price ? price * HOST_MOST : took_ns;
}

// What has been paid is paid; a clock that stands, or goes back, pays nothing.
static uint64_t paid_by_time(tarn__pool_moves *moves, uint64_t now_ns) {
  if (moves->dry || now_ns <= moves->paid_ns) return 0;
  uint64_t paid = (now_ns - moves->paid_ns) / PARTS_OF_TIME;
  moves->paid_ns += paid * PARTS_OF_TIME;  // the rest pays later
  return paid;
}

static uint64_t paid_by_serving(tarn__pool_moves *moves, uint64_t served) {
  uint64_t more = served > moves->served ? served - moves->served : 0;
  moves->served += more;
  return more < UINT64_MAX / 2 / SERVED_NS ? more * SERVED_NS : UINT64_MAX / 2;
}

// More than there is to pay is not saved up.
static void pay_off(tarn__pool_moves *moves, tarn__pool_moment moment) {
  uint64_t paid = paid_by_time(moves, moment.now_ns) +
                  paid_by_serving(moves, moment.served);
  moves->debt_ns = moves->debt_ns > paid ? moves->debt_ns - paid : 0;
}

bool tarn__moves_afford(tarn__pool_moves *moves, size_t count, size_t peak,
                        tarn__pool_moment moment) {
  if (moves->price_ns == TARN__MOVES_UNKNOWN) return true;
  uint64_t most = price_of(moves, peak);
  uint64_t more = price_of(moves, count);
  pay_off(moves, moment);
  return moves->debt_ns <= most && more <= most - moves->debt_ns;
}

void tarn__moves_charge(tarn__pool_moves *moves, size_t count, uint64_t took_ns,
                        tarn__pool_moment moment) {
  if (moves->price_ns == TARN__MOVES_UNKNOWN) return;
  uint64_t more = charge_of(moves, count, took_ns);
  pay_off(moves, moment);
  moves->debt_ns =
      more > UINT64_MAX - moves->debt_ns ? UINT64_MAX : moves->debt_ns + more;
}
