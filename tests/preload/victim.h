// victim.h - what the files of the victim share.
//
// A mode is a function that returns when all is as it should be; must() ends
// the program with a line on stderr where it is not.
#ifndef TARN_TESTS_PRELOAD_VICTIM_H_
#define TARN_TESTS_PRELOAD_VICTIM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KIB = 1024, MIB = 1024 * 1024, LARGE = 100000 };

#define must(condition)                                          \
  do {                                                           \
    if (!(condition)) must_fail(__FILE__, __LINE__, #condition); \
  } while (0)
_Noreturn void must_fail(const char *file, int line, const char *condition);

// |address| as a pointer of which the compiler knows nothing.
void *opaque(void *address);

// Pseudo-random numbers, from a seed.
uint64_t victim_random(uint64_t *state);

// Writes numbers that depend on |seed| over the bytes; whether they are there.
void paint(void *address, size_t size, uint64_t seed);
bool is_painted(const void *address, size_t size, uint64_t seed);
bool is_zero(const void *address, size_t size);

// Bytes that are resident.
size_t resident(void);

// victim_family.c
void mode_family(void);
void mode_random(void);
void mode_sparse(void);
void mode_locked(void);
void mode_growth(void);
void mode_foreign(void);

// victim_forks.c
void mode_fork(void);
void mode_fork_busy(void);
void mode_spawn(void);
void mode_exec(void);
void mode_exec_end(void);
void mode_kill(void);

// victim_limits.c
void mode_addresses(void);
void mode_freed_twice(void);
void mode_freed_inside(void);
void mode_moved_after_free(void);
void mode_free_of_mapping(void);
void mode_early(void);

// victim_threads.c
void mode_threads(void);
void mode_thousand(void);
void mode_last(void);

// preload_early.c: of what it had before main, with its size; and how many
// handlers of forks have allocated.
void *early_block(size_t *out_size);
extern int early_forks;

#endif  // TARN_TESTS_PRELOAD_VICTIM_H_
