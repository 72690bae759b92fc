// Snapshots of pools that have no room: wanted, taken, written.
//
// A failed snapshot is reported only to the log: neither
// the request's status nor its text changes by it. One is written at a time,
// whatever pool it is of; a thread that comes with another waits, without any
// lock of a pool's.
#include "pool/snapshot.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"

static const char VARIABLE[] = "TARN_SNAPSHOT_ON_FULL";
uint64_t tarn__full_shot_period_ns = 1000000000u;

struct tarn__pool_full_shot {
  tarn__pool_picture picture;
  tarn_trace_format format;
  char *path;
};

static struct {
  pthread_mutex_t lock;    // guards all below; taken around a fork, and nothing
                           // is taken under it
  pthread_cond_t changed;  // |busy| has ended
  bool is_set;             // by the program, or as the environment says
  uint64_t setting;        // counts how often
  tarn_trace_format format;
  char *path;  // NULL: none is wanted
  bool busy;   // a thread writes
} wish = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .changed = PTHREAD_COND_INITIALIZER};

static void lock_wish(void) {
  pthread_mutex_lock(&wish.lock);
}

static void unlock_wish(void) {
  pthread_mutex_unlock(&wish.lock);
}

// Whoever was writing is the parent's.
static void forget_writer(void) {
  wish.busy = false;
  pthread_cond_init(&wish.changed, NULL);
  unlock_wish();
}

TARN__WATCH_FORKS_LAST static void watch_forks(void) {
  pthread_atfork(lock_wish, unlock_wish, forget_writer);
}

// --- settings ------------------------------------------------------------

// |path| NULL: none.
static tarn_status set(tarn_trace_format format, const char *path) {
  char *copy = NULL;
  if (path != NULL) {
    copy = tarn__host_text(path);
    if (copy == NULL) return TARN_E_NOMEM;
  }
  tarn__host_free_text(wish.path);
  wish.path = copy;
  wish.format = format;
  wish.setting++;
  wish.is_set = true;
  return TARN_OK;
}

// Programs that run with rights beyond their user's write no file at his wish.
static tarn_status set_by_environment(void) {
  const char *path = secure_getenv(VARIABLE);
  if (path == NULL || *path == '\0') return set(TARN_TRACE_FORMAT_TARN, NULL);
  tarn_status status =
      tarn__snapshot_check(TARN_TRACE_FORMAT_TARN, path, false);
  if (status != TARN_OK) {
    return tarn__fail(status, "%s: %s", VARIABLE, tarn_last_error());
  }
  return set(TARN_TRACE_FORMAT_TARN, path);
}

tarn_status tarn__full_shots_begin(void) {
  lock_wish();
  tarn_status status = wish.is_set ? TARN_OK : set_by_environment();
  unlock_wish();
  return status;
}

tarn_status tarn_pool_snapshot_on_full(tarn_trace_format format,
                                       const char *path) {
  tarn_status status = tarn__not_in_callback();
  if (status == TARN_OK && path != NULL) {
    status = tarn__snapshot_check(format, path, false);
  }
  if (status != TARN_OK) return status;
  lock_wish();
  status = set(format, path);
  unlock_wish();
  return status;
}

// --- taking ----------------------------------------------------------------

static void tell(const char *what) {
  tarn__log(TARN_LOG_WARN, "pool: no snapshot of a refused request: %s", what);
}

static void discard(tarn__pool_full_shot *shot) {
  tarn__picture_deinit(&shot->picture);
  tarn__host_free_text(shot->path);
  tarn__host_free(shot, sizeof *shot);
}

// Whether a snapshot is wanted now: the first since this was asked for, or
// again after a while.
static bool is_due(tarn__pool_full_shots *shots, uint64_t setting) {
  uint64_t now = tarn__os_now_ns();
  if (shots->setting == setting &&
      now - shots->time_ns < tarn__full_shot_period_ns) {
    return false;
  }
  *shots = (tarn__pool_full_shots){.setting = setting, .time_ns = now};
  return true;
}

// An empty shot with its path, if one is due; else NULL.
static tarn_status begin(tarn_pool *pool, tarn__pool_full_shot **out_shot) {
  tarn_status status = TARN_OK;
  *out_shot = NULL;
  lock_wish();
  if (wish.path != NULL && is_due(&pool->full_shots, wish.setting)) {
    tarn__pool_full_shot *shot = tarn__host_alloc(sizeof *shot);
    char *path = shot != NULL ? tarn__host_text(wish.path) : NULL;
    if (path != NULL) {
      shot->format = wish.format;
      shot->path = path;
      *out_shot = shot;
    } else {
      tarn__host_free(shot, sizeof *shot);
      status = TARN_E_NOMEM;
    }
  }
  unlock_wish();
  return status;
}

tarn__pool_full_shot *tarn__full_shot_take(tarn_pool *pool,
                                           const tarn__pool_refusal *refusal) {
  tarn__failure said = tarn__failure_of(TARN_FULL);
  tarn__pool_full_shot *shot = NULL;
  tarn_status status = begin(pool, &shot);
  if (shot != NULL) {
    status = tarn__picture_take(pool, refusal, &shot->picture);
  }
  if (status == TARN_OK) return shot;
  tell(tarn_last_error());
  if (shot != NULL) discard(shot);
  (void)tarn__failure_tell(&said);
  return NULL;
}

// --- writing ---------------------------------------------------------------

static void begin_writing(void) {
  lock_wish();
  while (wish.busy)
    pthread_cond_wait(&wish.changed, &wish.lock);
  wish.busy = true;
  unlock_wish();
}

static void end_writing(void) {
  lock_wish();
  wish.busy = false;
  pthread_cond_signal(&wish.changed);
  unlock_wish();
}

void tarn__full_shot_write(tarn__pool_full_shot *shot) {
  if (shot == NULL) return;
  tarn__failure said = tarn__failure_of(TARN_FULL);
  begin_writing();
  tarn_status status =
      tarn__snapshot_write_picture(&shot->picture, shot->format, shot->path);
  end_writing();
  if (status != TARN_OK) tell(tarn_last_error());
  discard(shot);
  (void)tarn__failure_tell(&said);
}
