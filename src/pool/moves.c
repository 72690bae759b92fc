// The price of moves: measured once, and what of it is affordable.
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
  DEAR_NS = 100000,     // from this price on a page; mremap takes a tenth
  PARTS_OF_TIME = 100,  // one part of it may be spent on moves
};

void tarn__moves_init(tarn__pool_moves *moves, size_t told_ns,
                      const tarn__pool_supply *supply) {
  bool cheap = supply->dry != NULL || supply->device == NULL ||
               tarn_device_host_accessible(supply->device);
  bool told = told_ns != TARN__MOVES_UNKNOWN;
  *moves = (tarn__pool_moves){.price_ns = !told && cheap ? 0 : told_ns};
}

bool tarn__moves_are_dear(const tarn__pool_moves *moves) {
  return moves->price_ns != TARN__MOVES_UNKNOWN && moves->price_ns >= DEAR_NS;
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

// What time has paid is paid; a clock that stands pays nothing.
static void pay_off(tarn__pool_moves *moves, uint64_t now_ns) {
  uint64_t passed = now_ns > moves->paid_ns ? now_ns - moves->paid_ns : 0;
  uint64_t paid = passed / PARTS_OF_TIME;
  moves->debt_ns = moves->debt_ns > paid ? moves->debt_ns - paid : 0;
  moves->paid_ns += paid * PARTS_OF_TIME;  // the rest pays later
}

bool tarn__moves_afford(tarn__pool_moves *moves, size_t count, size_t peak,
                        uint64_t now_ns) {
  uint64_t most = price_of(moves, peak);
  uint64_t more = price_of(moves, count);
  pay_off(moves, now_ns);
  return moves->debt_ns <= most && more <= most - moves->debt_ns;
}

void tarn__moves_charge(tarn__pool_moves *moves, size_t count,
                        uint64_t begin_ns, uint64_t now_ns) {
  uint64_t price = price_of(moves, count);
  uint64_t took = now_ns - begin_ns;
  uint64_t more = took > price ? took : price;
  pay_off(moves, begin_ns);
  moves->debt_ns =
      more > UINT64_MAX - moves->debt_ns ? UINT64_MAX : moves->debt_ns + more;
}
