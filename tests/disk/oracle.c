#include "oracle.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "crash.h"
#include "folder.h"
#include "support/child.h"
#include "support/mix.h"
#include "support/run.h"

oracle_state oracle;

size_t oracle_draw(size_t below) {
  return (size_t)(mix(oracle.seed, oracle.drawn++) % below);
}

void oracle_note(uint64_t epoch, unsigned char note[ORACLE_NOTE]) {
  size_t size = oracle.kind->note;
  uint64_t word = epoch == 1 ? 0 : mix(3, epoch);
  memset(note, 0, size);
  memcpy(note + size - sizeof word, &word, sizeof word);
}

// --- what a file has ---------------------------------------------------------

static uint32_t *versions_of(uint64_t epoch) {
  return oracle.epochs[epoch % ORACLE_EPOCHS];
}

// All of the file at |path| as of |epoch|; 0: the newest. Returns which it is.
static uint64_t see_epoch(const char *path, uint64_t epoch) {
  const oracle_kind *kind = oracle.kind;
  unsigned char note[ORACLE_NOTE];
  void *file = kind->open(path, epoch, true);
  uint64_t newest = kind->tell(file).newest;
  require(epoch == 0 || newest == epoch);
  require(newest + ORACLE_EPOCHS > oracle.epoch + 1 &&
          newest <= oracle.epoch + 1);
  kind->see(file, versions_of(newest));
  oracle_note(newest, note);
  require(memcmp(kind->note_of(file), note, kind->note) == 0);
  kind->close(file);
  return newest;
}

uint64_t oracle_see(const char *path) {
  oracle_epochs asked = oracle.kind->ask(path);
  uint64_t newest = see_epoch(path, 0);
  require(newest == asked.newest);
  bool is_next = oracle.flushing && newest == oracle.epoch + 1;
  require(newest == oracle.epoch || is_next);
  bool must = newest > oracle.epoch || (!oracle.flushing && oracle.has_before);
  require(asked.before == newest - 1 || (!must && asked.before == 0));
  if (asked.before != 0) (void)see_epoch(path, asked.before);
  return newest;
}

static void lose_power(void) {
  if (oracle.chance == 0 || oracle_draw(oracle.chance) != 0) return;
  crash_leave(oracle.lost, mix(oracle.seed, oracle.drawn++));
  (void)oracle_see(oracle.lost);
  oracle.crashes++;
}

// --- what both go through ----------------------------------------------------

void oracle_begin(const oracle_kind *kind, size_t items, uint64_t seed,
                  unsigned chance) {
  require(items <= ORACLE_ITEMS && kind->note <= ORACLE_NOTE);
  memset(&oracle, 0, sizeof oracle);
  oracle.kind = kind;
  oracle.items = items;
  oracle.path = folder_path(0, "file");
  oracle.lost = folder_path(1, "lost");
  oracle.seed = seed;
  oracle.chance = chance;
}

void oracle_start(void) {
  oracle.epoch = 1;
  oracle.has_before = oracle.flushing = false;
  memset(oracle.now, 0, sizeof oracle.now);
  memset(oracle.epochs, 0, sizeof oracle.epochs);
  crash_record(oracle.path, lose_power);
  oracle.file = oracle.kind->open(oracle.path, 0, false);
}

tarn_status oracle_flush(void) {
  unsigned char note[ORACLE_NOTE];
  oracle_note(oracle.epoch + 1, note);
  memcpy(versions_of(oracle.epoch + 1), oracle.now, sizeof oracle.now);
  oracle.flushing = true;
  tarn_status status = oracle.kind->flush(oracle.file, note);
  oracle.flushing = false;
  if (status != TARN_OK) return status;
  oracle.epoch++;
  oracle.has_before = true;
  return TARN_OK;
}

// The model is as the file, which was opened with |epoch|.
static void go_back(uint64_t epoch) {
  oracle.epoch = epoch;
  oracle.has_before = oracle.kind->tell(oracle.file).before != 0;
  memcpy(oracle.now, versions_of(epoch), sizeof oracle.now);
}

void oracle_open(uint64_t epoch) {
  oracle.kind->close(oracle.file);
  oracle.flushing = epoch != oracle.epoch;  // either root may be there
  oracle.epoch = epoch;
  oracle.file = oracle.kind->open(oracle.path, epoch, false);
  oracle.flushing = false;
  go_back(epoch);
}

void oracle_reopen(void) {
  bool older = oracle.has_before && oracle_draw(2) == 0;
  oracle_open(oracle.epoch - (older ? 1 : 0));
}

void oracle_crash(void) {
  oracle.kind->close(oracle.file);
  uint64_t seed = mix(oracle.seed, oracle.drawn++);
  crash_leave(oracle.lost, seed);
  uint64_t epoch = oracle_see(oracle.lost);
  crash_leave(oracle.path, seed);
  crash_record(oracle.path, lose_power);
  oracle.file = oracle.kind->open(oracle.path, 0, false);
  require(oracle.kind->tell(oracle.file).newest == epoch);
  go_back(epoch);
  oracle.crashes++;
}

// --- kills -------------------------------------------------------------------

uint32_t oracle_version(uint64_t epoch, size_t item) {
  return epoch == 1 ? 0 : (uint32_t)mix(epoch, item) | 1;
}

static _Noreturn void write_for_ever(const oracle_kills *kills, bool threads,
                                     _Atomic uint64_t *flushed) {
  const oracle_kind *kind = oracle.kind;
  unsigned char note[ORACLE_NOTE];
  kills->choose(threads);
  oracle.file = kind->open(oracle.path, 0, false);
  for (uint64_t epoch = kind->tell(oracle.file).newest + 1;; epoch++) {
    kills->write(epoch);
    oracle_note(epoch, note);
    MUST(kind->flush(oracle.file, note) == TARN_OK);
    *flushed = epoch;
  }
}

static void kill_one(const oracle_kills *kills, size_t round,
                     _Atomic uint64_t *flushed) {
  pid_t child = fork();
  require(child >= 0);
  if (child == 0) {
    child_begin(60);
    write_for_ever(kills, round % 2 == 1, flushed);
  }
  // Every other one gets as far as to flush.
  uint64_t before = *flushed;
  while (round / 2 % 2 == 0 && *flushed == before &&
         waitpid(child, NULL, WNOHANG) == 0)
    usleep(1000);
  usleep((useconds_t)(mix(9, round) % kills->most_us));
  require(kill(child, SIGKILL) == 0);
  int status = 0;
  require(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

static void know_epoch(uint64_t epoch) {
  for (size_t i = 0; i < oracle.items; i++)
    versions_of(epoch)[i] = oracle_version(epoch, i);
}

void oracle_kill(const oracle_kills *kills) {
  _Atomic uint64_t *flushed =
      mmap(NULL, sizeof *flushed, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(flushed != MAP_FAILED);
  *flushed = 1;
  for (size_t round = 0; round < kills->rounds; round++) {
    kill_one(kills, round, flushed);
    oracle.epoch = *flushed;
    oracle.flushing = true;
    if (oracle.epoch > 1) know_epoch(oracle.epoch - 1);
    know_epoch(oracle.epoch);
    know_epoch(oracle.epoch + 1);
    folder_copy(oracle.path, oracle.lost);
    *flushed = oracle_see(oracle.lost);
  }
  ck_assert_uint_gt(*flushed, kills->rounds / 2);
  munmap(flushed, sizeof *flushed);
}
