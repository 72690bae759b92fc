// faults.h - make the library's host allocator fail on purpose.
//
//   faults_install();                       once, before any other call
//   for (size_t n = 1; ; n++) {
//     faults_arm(n, FAULTS_ONCE);
//     scenario();
//     if (!faults_disarm()) break;          fewer than n calls: all were seen
//   }
#ifndef TARN_TESTS_SUPPORT_FAULTS_H_
#define TARN_TESTS_SUPPORT_FAULTS_H_

#include "tarn/base.h"

typedef enum faults_mode {
  FAULTS_ONCE,      // only the N-th call fails
  FAULTS_FROM_NOW,  // the N-th and all later calls fail
} faults_mode;

// Puts the failing allocator under the library.
void faults_install(void);

// The |n|-th call from now fails (1 is the next).
void faults_arm(size_t n, faults_mode mode);

// No call fails any more. True if at least one did since faults_arm.
bool faults_disarm(void);

// Counts one call of some other kind (a device's function, say) and tells
// whether it is to fail: one sequence for all that can fail.
bool faults_strike(void);

// Faults that struck since the program began.
size_t faults_total(void);

// Runs between faults_arm and faults_disarm in which at least one struck.
size_t faults_runs(void);

// Calls for memory since the program began, those that failed too.
size_t faults_calls(void);

// The most bytes that the library held at once since the last
// faults_peak_reset.
void faults_peak_reset(void);
size_t faults_peak(void);

// Runs |scenario| with the N-th call failing, for every N, in both modes,
// until a run meets no fault; after each run the library must hold as many
// host bytes as before. Returns the number of faults that struck.
size_t faults_sweep(void (*scenario)(void *context), void *context);

#endif  // TARN_TESTS_SUPPORT_FAULTS_H_
