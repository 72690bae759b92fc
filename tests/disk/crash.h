// crash.h - a disk that can lose power: a double that stands beside the real
// file, records what a queue writes and syncs (tarn__io_watch), and makes files
// as a loss of power could have left them.
//
// On the disk is what was written before a datasync that has returned. Of all
// else any subset may be there, in any order, torn at sectors of 512 bytes. The
// file is at least as long as it was at that datasync.
#ifndef TARN_TESTS_DISK_CRASH_H_
#define TARN_TESTS_DISK_CRASH_H_

#include "base/io.h"

enum { CRASH_SECTOR = 512 };

// Of the queue that is recorded. One at a time.
extern const tarn__io_watch crash_watch;

// From now on the file at |path|, which is on the disk as it is, is recorded.
// |look|, unless it is NULL, is called at each step: before a part of a
// request goes to the system, and when it has come back.
void crash_record(const char *path, void (*look)(void));

// The file as a loss of power now could leave it, by |seed|, at |path|.
void crash_leave(const char *path, uint64_t seed);

// The N-th part from now, 1 is the next, fails with |error|, and goes nowhere;
// so do all others behind it if |for_good|. 0: none.
void crash_fail(size_t n, int error, bool for_good);

// Whether one has failed since then.
bool crash_failed(void);

// Parts that were sent since crash_record.
size_t crash_parts(void);

#endif  // TARN_TESTS_DISK_CRASH_H_
