/* short_lock.pml - a model of short locks and news (src/base/short_lock.h), for
 * spin.
 *
 *   sh tests/models/check.sh tests/models/short_lock.pml
 *
 * Threads enter and leave. One of them also waits for news, which another one
 * tells. Asserted is that
 *   * one thread is inside at a time
 *   * nobody sleeps for ever (spin: invalid end states), whether the kernel
 *     wakes threads for no reason or not
 *
 * As in the code: each load, store, exchange and compare-exchange of the state;
 * the kernel compares the word once more before it puts a thread to sleep, and
 * does both in one step. The state is changed by locked instructions only, and
 * so is the number of the news: a store buffer would add nothing.
 * Left out: how long a thread spins, and who is next.
 *
 * mutants: 6
 *   1 the lock is left by a load and a store    2 ... and nobody is woken
 *   3 the kernel does not compare the word
 *   4 who was woken enters as if nobody slept
 *   5 the number of the news is read outside    6 news wake nobody
 *
 * run: SPURIOUS=0
 * run: SPURIOUS=2
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#ifndef SPURIOUS
#define SPURIOUS 0   /* how often the kernel wakes a thread for no reason */
#endif
#define THREADS 3
#define ROUNDS 2     /* of each thread */
#define SPINS 1
#define FREE 0
#define HELD 1
#define SLEEPERS 2   /* held, and a thread may sleep */
#define AWAKE 0
#define ON_STATE 1
#define ON_NUMBER 2

byte state = FREE;
byte number;           /* of the news */
bool told;             /* what the news is about; the lock guards it */
byte sleeps[THREADS];  /* on which word */
byte inside;           /* threads */
byte spurious = SPURIOUS;

inline park(word, same) {
  atomic { if :: same || MUTANT == 3 -> sleeps[_pid] = word :: else fi }
  sleeps[_pid] == AWAKE
}

inline unpark_one(word) {
  atomic {
    if
    :: sleeps[0] == word -> sleeps[0] = AWAKE
    :: sleeps[1] == word -> sleeps[1] = AWAKE
    :: sleeps[2] == word -> sleeps[2] = AWAKE
    :: else
    fi
  }
}

inline unpark_all(word) {
  d_step {
    for (i : 0 .. THREADS - 1) {
      sleeps[i] = (sleeps[i] == word -> AWAKE : sleeps[i])
    }
    i = 0
  }
}

/* tarn__short_lock_enter, _wait */
inline enter() {
  spins = SPINS;
  do
  :: atomic { state == FREE -> state = HELD; break }
  :: atomic { state != FREE && spins > 0 -> spins-- }
  :: spins == 0 ->
     do
     :: atomic {
          old = state;
          state = (MUTANT == 4 && old == FREE -> HELD : SLEEPERS);
          if :: old == FREE -> break :: else fi
        }
        park(ON_STATE, state == SLEEPERS)
     od;
     break
  od;
  inside++;
  assert(inside == 1)
}

/* tarn__short_lock_leave, _wake */
inline leave() {
  inside--;
#if MUTANT == 1
  old = state;
  state = FREE;
#else
  atomic { old = state; state = FREE }
#endif
  if :: old == SLEEPERS && MUTANT != 2 -> unpark_one(ON_STATE) :: else fi
}

/* tarn__biased_lock_wait: tarn__news_number, _await */
inline wait() {
#if MUTANT != 5
  seen = number;
#endif
  leave();
#if MUTANT == 5
  seen = number;
#endif
  park(ON_NUMBER, number == seen);
  enter()
}

/* tarn__news_tell */
inline tell() {
  number++;
  if :: MUTANT != 6 -> unpark_all(ON_NUMBER) :: else fi
}

active [THREADS] proctype Thread() {
  byte old, spins, seen, i, rounds = ROUNDS;
  do
  :: rounds > 0 ->
     enter();
     rounds--;
     if
     :: _pid == 0 -> do :: told -> break :: !told -> wait() od
     :: _pid == 1 && rounds == 0 -> told = true; tell()
     :: else
     fi;
     leave()
  :: rounds == 0 -> break
  od
}

active proctype Kernel() {
end:
  do
  :: d_step { spurious > 0 && sleeps[0] != AWAKE -> sleeps[0] = 0; spurious-- }
  :: d_step { spurious > 0 && sleeps[1] != AWAKE -> sleeps[1] = 0; spurious-- }
  :: d_step { spurious > 0 && sleeps[2] != AWAKE -> sleeps[2] = 0; spurious-- }
  od
}
