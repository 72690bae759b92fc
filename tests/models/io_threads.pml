/* io_threads.pml - a model of how an owner and its workers hand requests to
 * each other (src/base/io_threads.c), for spin.
 *
 *   sh tests/models/check.sh tests/models/io_threads.pml
 *
 * The owner hands over batches of any size, collects what has been moved, with
 * and without waiting, and ends the workers. Asserted is that
 *   * nobody sleeps for ever (spin: invalid end states), whether the kernel
 *     wakes threads for no reason or not
 *   * no fewer workers are counted as sleepers, or about to be woken, than
 *     sleep
 *   * no request waits for a worker while another one sleeps
 *
 * As in the code: what happens inside the lock is one step; the kernel compares
 * the word once more before it puts a thread to sleep, and does both in one
 * step. The lock itself is modelled in short_lock.pml.
 * Left out: requests that the owner moves; when workers are made, which is as
 * if they were slow to begin.
 *
 * mutants: 8
 *   1 a worker reads the count outside    2 ... and the kernel does not compare
 *   3 who is woken counts itself off      4 work is not counted
 *   5 news are not counted                6 the owner reads the count outside
 *   7 the end is not counted              8 only what finds no other wakes
 *
 * run: WORKERS=3 REQUESTS=2 DEPTH=2
 * run: WORKERS=2 REQUESTS=4 DEPTH=3
 * run: WORKERS=2 REQUESTS=3 DEPTH=3 SPURIOUS=1
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#ifndef SPURIOUS
#define SPURIOUS 0    /* how often the kernel wakes a thread for no reason */
#endif
#define MOST 3        /* workers; their numbers are 0, 1 and 2 */

byte queued, moved, running;  /* requests */
byte sleepers;
byte wakes;                   /* that the owner is at */
byte work, news;              /* counts */
bool awaited, ending;
bool sleeps[MOST];
bool owner_sleeps;
byte ended;                   /* workers */
byte spurious = SPURIOUS;

#define ASLEEP (sleeps[0] + sleeps[1] + sleeps[2])
#define IDLE (WORKERS - ASLEEP - running)  /* and awake */

inline unpark_worker() {
  atomic {
    if
    :: sleeps[0] -> sleeps[0] = false
    :: sleeps[1] -> sleeps[1] = false
    :: sleeps[2] -> sleeps[2] = false
    :: ASLEEP == 0
    fi
  }
}

active [WORKERS] proctype Worker() {
  byte number;
  bool was;
  do
  :: atomic {
       if
       :: queued > 0 -> queued--; running++; goto move
       :: queued == 0 && ending -> goto over
       :: queued == 0 && !ending -> number = work; sleepers++
       fi
     }
#if MUTANT == 1
     number = work;
#endif
     atomic {
       if :: number == work || MUTANT == 2 -> sleeps[_pid] = true :: else fi;
       assert(sleepers + wakes >= ASLEEP)
     }
     atomic { !sleeps[_pid]; number = 0 }
     if :: MUTANT == 3 && sleepers > 0 -> sleepers-- :: else fi;
     goto next;
move:
     atomic {
       running--;
       moved++;
       was = awaited;
       awaited = false;
       if :: was && MUTANT != 5 -> news++ :: else fi
     }
     atomic { if :: was -> owner_sleeps = false :: else fi; was = false }
next:
  od;
over:
  ended++
}

/* hand_over */
inline hand_over(count) {
  atomic {
    wakes = (count < sleepers -> count : sleepers);
    if :: MUTANT == 8 && queued > 0 -> wakes = 0 :: else fi;
    queued = queued + count;
    sleepers = sleepers - wakes;
    if :: wakes > 0 && MUTANT != 4 -> work++ :: else fi
  }
  do :: wakes > 0 -> unpark_worker(); wakes-- :: wakes == 0 -> break od;
  skip;
  /* Workers only take requests off meanwhile, or sleep where there is none. */
  d_step { assert(ASLEEP == 0 || queued <= IDLE) }
}

/* collect */
inline collect() {
  atomic {
    if
    :: moved > 0 -> under_way = under_way - moved; moved = 0; awaited = false;
                    waits = false
    :: moved == 0 -> number = news; awaited = true; waits = true
    fi
  }
#if MUTANT == 6
  number = news;
#endif
  if
  :: waits ->
     atomic { if :: number == news -> owner_sleeps = true :: else fi }
     !owner_sleeps
  :: !waits
  fi;
  number = 0;
  waits = false
}

active proctype Owner() {
  byte left = REQUESTS, under_way, count, number;
  bool waits;
  do
  :: left > 0 && under_way < DEPTH ->
     count = 1;
     do
     :: count < left && under_way + count < DEPTH -> count++
     :: break
     od;
     left = left - count;
     under_way = under_way + count;
     hand_over(count)
  :: under_way > 0 -> collect()
  :: left == 0 && under_way == 0 -> break
  od;
  atomic {
    ending = true;
    if :: MUTANT != 7 -> work++ :: else fi
  }
  unpark_worker();
  unpark_worker();
  unpark_worker();
  ended == WORKERS
}

active proctype Kernel() {
end:
  do
  :: d_step { spurious > 0 && sleeps[0] -> sleeps[0] = false; spurious-- }
  :: d_step { spurious > 0 && sleeps[1] -> sleeps[1] = false; spurious-- }
  :: d_step { spurious > 0 && sleeps[2] -> sleeps[2] = false; spurious-- }
  :: d_step { spurious > 0 && owner_sleeps -> owner_sleeps = false; spurious-- }
  od
}
