// oracle.h - what a file of epochs must have, whatever happens to it: a model
// beside the file, and what both go through.
//
//   now ──flush──► epochs[epoch]    the newest whose flush has returned, and
//    ▲                │             the one before
//    └──open, crash───┘
//
// A file consists of items, blocks or records, each of which has a version; 0
// is zeros. After a loss of power it has the newest epoch, or, while a flush is
// under way, the one after; and the epoch before.
#ifndef TARN_TESTS_DISK_ORACLE_H_
#define TARN_TESTS_DISK_ORACLE_H_

#include "tarn/base.h"

enum {
  ORACLE_ITEMS = 8000,
  ORACLE_EPOCHS = 3,  // of which the oracle keeps what they were
  ORACLE_NOTE = 512,  // bytes of a note, at most
};

typedef struct oracle_epochs {
  uint64_t newest;
  uint64_t before;  // 0: none
} oracle_epochs;

// What the files are. All functions assert that it works.
typedef struct oracle_kind {
  size_t note;  // bytes
  oracle_epochs (*ask)(const char *path);
  // Opens the one that is gone through, or, |looks|, another one to see it.
  void *(*open)(const char *path, uint64_t epoch, bool looks);
  void (*close)(void *file);
  oracle_epochs (*tell)(const void *file);
  const void *(*note_of)(const void *file);
  void (*see)(void *file, const uint32_t *versions);  // all items
  tarn_status (*flush)(void *file, const void *note);
} oracle_kind;

typedef struct oracle_state {
  const oracle_kind *kind;
  size_t items;
  const char *path;
  const char *lost;  // a file as a crash left it
  void *file;
  uint32_t now[ORACLE_ITEMS];  // versions
  uint32_t epochs[ORACLE_EPOCHS][ORACLE_ITEMS];
  uint64_t epoch;
  bool has_before;  // the one before is there
  bool flushing;    // and the one after may be
  uint32_t version;
  uint64_t seed;
  uint64_t drawn;
  unsigned chance;  // one of so many steps is a crash; 0: none is
  size_t crashes;
} oracle_state;

extern oracle_state oracle;

// A number below |below|.
size_t oracle_draw(size_t below);

// A new model. The test makes the folder before, and the file, |path|, after.
void oracle_begin(const oracle_kind *kind, size_t items, uint64_t seed,
                  unsigned chance);

// The file was made anew: it is at epoch 1, and is recorded and opened.
void oracle_start(void);

// The note of |epoch|, |kind->note| bytes.
void oracle_note(uint64_t epoch, unsigned char note[ORACLE_NOTE]);

// What is at |path| after a crash is whole. Returns its newest epoch.
uint64_t oracle_see(const char *path);

// After a failure the model remains as it is.
tarn_status oracle_flush(void);

// The file is opened again with |epoch|, which both are at from then on.
void oracle_open(uint64_t epoch);

// ... with the newest epoch, or the one before.
void oracle_reopen(void);

// Goes on with what a crash has left.
void oracle_crash(void);

// --- kills -------------------------------------------------------------------

// The version of an item that each epoch changes.
uint32_t oracle_version(uint64_t epoch, size_t item);

typedef struct oracle_kills {
  size_t rounds;
  unsigned most_us;               // that a process is left alone
  void (*choose)(bool threads);   // how it opens the file
  void (*write)(uint64_t epoch);  // all items
} oracle_kills;

// Kills processes that write epoch after epoch into the file, which is at epoch
// 1 and closed: what they leave is whole.
void oracle_kill(const oracle_kills *kills);

#endif  // TARN_TESTS_DISK_ORACLE_H_
