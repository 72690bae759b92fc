// Findings of a pool that debugs, and looks at bytes without the lock.
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "pool/debug.h"
#include "pool/front.h"

enum { TEXT_MAX = 255 };

void tarn__debug_await_look(tarn_pool *pool, const tarn__pool_piece *piece) {
  while ((piece->marks & TARN__MARK_LOOKED) != 0)
    tarn__front_wait(pool);
}

void tarn__debug_begin_look(tarn_pool *pool, tarn__pool_piece *piece) {
  piece->marks |= TARN__MARK_LOOKED;
  tarn__front_leave(pool);
}

void tarn__debug_end_look(tarn_pool *pool, tarn__pool_piece *piece) {
  tarn__front_enter(pool);
  piece->marks &= (uint8_t)~TARN__MARK_LOOKED;
  pthread_cond_broadcast(&pool->returned);
}

void tarn__debug_begin_work(tarn_pool *pool) {
  pool->returning++;
  tarn__front_leave(pool);
}

void tarn__debug_end_work(tarn_pool *pool) {
  tarn__front_enter(pool);
  pool->returning--;
  pthread_cond_broadcast(&pool->returned);
}

tarn_status tarn__debug_verify(tarn_place place, const tarn__pool_piece *piece,
                               tarn_pool_finding_kind kind,
                               tarn_pool_finding *out) {
  bool guard = kind == TARN_POOL_OVERRUN;
  size_t from = guard ? piece->requested : 0;
  size_t size = piece->size - from;
  size_t offset = 0;
  unsigned char byte = 0;
  *out = (tarn_pool_finding){.kind = TARN_POOL_FINDING_NONE};
  tarn__poison_show(place, piece->address + from, size);
  tarn_status status = tarn__poison_compare(
      place, piece->address + from, size,
      guard ? TARN_POOL_GUARD_BYTE : TARN_POOL_FREED_BYTE, &offset, &byte);
  if (status != TARN_OK || offset == size) return status;
  *out = (tarn_pool_finding){
      .struct_size = sizeof *out,
      .kind = kind,
      .address = piece->address,
      .size = piece->requested,
      .tag = piece->tag,
      .offset = from + offset,
      .byte = byte,
  };
  return TARN_OK;
}

static void say(const tarn_pool *pool, const tarn_pool_finding *finding,
                char *out, size_t out_size) {
  char place[64];
  bool overrun = finding->kind == TARN_POOL_OVERRUN;
  snprintf(out, out_size,
           "pool of %s: the block of %zu bytes at 0x%llx, %s, was written %s: "
           "first the byte at offset %zu, 0x%02x",
           tarn_place_text(pool->place, place, sizeof place), finding->size,
           (unsigned long long)finding->address,
           tarn_pool_tag_name(finding->tag),
           overrun ? "beyond its end" : "after it was freed", finding->offset,
           finding->byte);
}

tarn_status tarn__debug_fail(const tarn_pool *pool,
                             const tarn_pool_finding *finding) {
  char text[TEXT_MAX + 1];
  say(pool, finding, text, sizeof text);
  return tarn__fail_text(TARN_E_CORRUPT, text);
}

static void note_finding(tarn_pool *pool, tarn__pool_debug *debug,
                         const tarn_pool_finding *finding, bool told) {
  char text[TEXT_MAX + 1];
  say(pool, finding, text, sizeof text);
  if (finding->kind == TARN_POOL_OVERRUN) {
    debug->stats.overruns++;
  } else {
    debug->stats.stale_writes++;
  }
  if (!told && debug->untold++ == 0) {
    memcpy(debug->text, text, sizeof debug->text);
  }
  tarn__log(TARN_LOG_ERROR, "%s", text);
  if (debug->found != NULL) debug->found(debug->context, pool, finding);
}

void tarn__debug_note(tarn_pool *pool, tarn_status looked,
                      const tarn_pool_finding *finding, bool told) {
  tarn__pool_debug *debug = tarn__debug_of(pool);
  if (looked != TARN_OK) {
    debug->stats.unverified++;
    return;
  }
  debug->stats.verified++;
  if (finding->kind != TARN_POOL_FINDING_NONE) {
    note_finding(pool, debug, finding, told);
  }
}
