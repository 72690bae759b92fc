/* sieve.pml - a model of the lines of a cache (src/cache/sieve.h), for spin.
 *
 *   sh tests/models/check.sh tests/models/sieve.pml
 *
 * Threads gather and scatter a row each, through a set that has fewer lines
 * than there are rows, or write back. Rows that are missed are read once, and
 * others await them; lines give way, dirty ones when they are written; reads of
 * the table and writes to it may fail. No thread uses a row that another one
 * scatters, as users of a cache promise. Asserted is that
 *   * what is read, in a line or in the table, is the row, whole, and what was
 *     scattered last
 *   * what is written to make room is not torn
 *   * in the end each row is in one line at most, and where that is clean, or
 *     there is none, the table has what was scattered last
 *   * nobody waits for ever (spin: invalid end states), and nothing is pinned,
 *     filled or written in the end
 *
 * As in the code: each load and addition of the counts of readers and of their
 * epoch; the states of a line, and what happens to them inside the lock of a
 * shard, which is one step; that a row is copied outside of it, in two steps,
 * between which it is torn.
 *
 * Left out: the inside of locks and of news (short_lock.pml): who waits goes on
 * when there is what it waits for; batches; which of the lines that may go does
 * (any); dropped rows; calls that are collective.
 *
 * mutants: 12
 *   1 who fills a line does not wait for reads
 *   2 a reader does not look at the epoch again once it is counted
 *   3 who waits for reads waits for the half that is in use
 *   4 a read finds a line that is being filled
 *   5 who awaits a line does not see that it was given up
 *   6 ... and a line that was given up keeps its key
 *   7 a pinned line gives way
 *   8 a row is dirty from when it is found, not from when it is let go
 *   9 the end of a write takes the mark of what was changed meanwhile
 *  10 a line whose write has failed is clean
 *  11 a line that is being written is taken once more
 *  12 who scatters to a line does not wait until it is written
 *
 * run: THREADS=3
 * run: THREADS=2 STEPS=2
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#ifndef THREADS
#define THREADS 3
#endif
#ifndef STEPS
#define STEPS 1      /* calls of each */
#endif
#ifndef KEYS
#define KEYS 3       /* rows; in line 0 there is row 0, dirty, in line 1 row 1 */
#endif
#define LINES 2
#define NONE 15      /* instead of a row, or a line */
#define TORN 255     /* instead of a value */
#define WRITE_BACK (2 * KEYS)  /* calls: gathers, scatters, and that */

#define value(k) ((k) * 8 + version[k])

/* tarn__cache_sieve_set: words, and states */
byte key[LINES];
bool unreadable[LINES], filling[LINES], given_up[LINES], dirty[LINES],
     writing[LINES];
byte pins[LINES];

/* tarn__cache_sieve_readers */
byte counts[2];
bool epoch;
bool waits;          /* its lock is held */

byte line[LINES];    /* the memory of the cache */
byte table[KEYS];

/* The program, and what may go wrong. */
byte version[KEYS];  /* scattered last */
byte users[KEYS];
bool scattered[KEYS];
byte failures = 1;
byte ended;

/* --- with the lock of the shard ------------------------------------------- */

inline look_up(readable) {
  l = NONE;
  for (i : 0 .. LINES - 1) {
    l = (key[i] == k && !(readable && unreadable[i] && MUTANT != 4) -> i : l)
  }
  i = 0
}

inline unpin() {
  pins[l]--;
  given_up[l] = (pins[l] == 0 && key[l] == NONE -> false : given_up[l])
}

/* tarn__sieve_let_go */
inline let_go(changed) {
  dirty[l] = dirty[l] || (changed && MUTANT != 8); unpin()
}

/* tarn__sieve_filled */
inline filled() {
  filling[l] = false; given_up[l] = !did;
  if
  :: did || MUTANT == 6 -> unreadable[l] = false
  :: else -> key[l] = NONE
  fi
}

/* tarn__sieve_written */
inline written() {
  writing[l] = false;
  dirty[l] = (dirty[l] && !(did && MUTANT == 9)) || (!did && MUTANT != 10);
  unpin(); l = NONE
}

#define may_go(l) ((pins[l] == 0 || MUTANT == 7) && !filling[l])

/* --- outside -------------------------------------------------------------- */

inline may_fail() {
  if
  :: did = true
  :: failures > 0 -> failures--; did = false
  fi
}

/* The row of a line that was taken to be written. What has failed may have
 * changed a part of it. */
inline write_line() {
  atomic { copy = line[l]; assert(copy != TORN || call == WRITE_BACK) }
  atomic { may_fail(); table[key[l]] = (did -> copy : TORN); written() }
}

/* tarn__sieve_await_readers */
inline await_readers() {
#if MUTANT == 1
  skip
#else
  if
  :: counts[0] != 0
  :: counts[0] == 0 ->
     if
     :: counts[1] == 0 -> goto fill
     :: counts[1] != 0
     fi
  fi;
  atomic { !waits -> waits = true; half = epoch; epoch = !epoch }
  atomic {
    counts[(MUTANT == 3 -> !half : half)] == 0 -> waits = false; half = false
  }
#endif
}

/* The call has done nothing. */
inline give_up() { version[k] = version[k] - (scatters -> 1 : 0) }

proctype Thread(byte call) {  /* the first one */
  byte k, l = NONE, i, copy, left = STEPS;
  bool half, did, again, scatters;

begin:
  atomic {
    l = NONE; copy = 0; did = false; again = false;
    if
    :: left == 0 -> goto end
    :: left == STEPS
    :: left > 0 && left < STEPS -> select (call : 0 .. WRITE_BACK)
    fi;
    left--; k = call % KEYS; scatters = (call >= KEYS && call < WRITE_BACK)
  }
  atomic {
    if
    :: call == WRITE_BACK -> goto take
    :: call < KEYS && !scattered[k] -> users[k]++
    :: scatters && !scattered[k] && users[k] == 0 ->
       scattered[k] = true; version[k]++; goto find
    fi
  }

come:  /* tarn__sieve_read */
  half = epoch;
  counts[half]++;
#if MUTANT != 2
  if
  :: atomic { epoch != half -> counts[half]--; goto come }
  :: epoch == half
  fi;
#endif
  atomic {
    look_up(true);
    if :: l == NONE -> counts[half]--; half = false; goto find :: else fi
  }
  atomic { assert(line[l] == value(k)); counts[half]--; half = false; goto done }

find:  /* tarn__sieve_find */
  atomic {
    look_up(false);
    if
    :: l != NONE ->
       pins[l]++;
       dirty[l] = dirty[l] || (MUTANT == 8 && scatters);
       if :: filling[l] -> goto await :: else -> goto there fi
    :: l == NONE && may_go(0) -> l = 0
    :: l == NONE && may_go(1) -> l = 1
    :: l == NONE && !may_go(0) && !may_go(1) -> goto around
    fi;
    pins[l]++;
    if
    :: dirty[l] -> dirty[l] = false; writing[l] = true; goto victim
    :: else
    fi;
    key[l] = k; unreadable[l] = true; filling[l] = true; given_up[l] = false
  }
  await_readers();

fill:
  atomic {
    may_fail();
    copy = (scatters -> value(k) : table[k]);
    line[l] = (did -> TORN : line[l])
  }
  atomic {
    line[l] = (did -> copy : line[l]);
    dirty[l] = (MUTANT == 8 && did && scatters);
    filled();
    if :: !did -> give_up(); let_go(false); goto done :: else fi
  }
  goto there;

await:  /* tarn__sieve_await */
  atomic {
    !filling[l] ->
    if :: given_up[l] && MUTANT != 5 -> let_go(false); goto around :: else fi
  }

there:
  atomic {
    if
    :: !scatters -> assert(line[l] == value(k)); let_go(false); goto done
    :: scatters && (!writing[l] || MUTANT == 12) -> line[l] = TORN
    fi
  }
  atomic { line[l] = value(k); let_go(true); goto done }

victim:  /* once; then it goes without */
  atomic {
    if :: again -> did = false; written(); goto around :: else fi;
    again = true
  }
  write_line();
  atomic { if :: did -> goto find :: else -> give_up(); goto done fi }

around:
  atomic {
    if
    :: !scatters -> assert(table[k] == value(k))
    :: scatters -> table[k] = value(k)
    fi;
    goto done
  }

take:  /* tarn__sieve_take_dirty, of one */
  atomic {
    if
    :: dirty[0] && (!writing[0] || MUTANT == 11) -> l = 0
    :: dirty[1] && (!writing[1] || MUTANT == 11) -> l = 1
    :: else -> goto begin
    fi;
    dirty[l] = false; writing[l] = true; pins[l]++
  }
  write_line();
  goto begin;

done:
  atomic {
    if
    :: !scatters -> users[k]--
    :: scatters -> scattered[k] = false
    fi;
    goto begin
  }

end:
  ended++
}

init {
  byte i, j, call;
  atomic {
    for (i : 0 .. KEYS - 1) { table[i] = value(i) }
    for (i : 0 .. LINES - 1) { key[i] = i }
    version[0] = 1;
    dirty[0] = true;
    for (i : 0 .. LINES - 1) { line[i] = value(i) }
    for (j : 1 .. THREADS) {  /* which thread has which call does not matter */
      select (i : call .. WRITE_BACK);
      call = i;
      run Thread(call)
    }
  }
  atomic {
    ended == THREADS ->
    assert(key[0] != key[1] || key[0] == NONE);
    assert(counts[0] == 0 && counts[1] == 0);
    for (i : 0 .. LINES - 1) {
      assert(pins[i] == 0 && !filling[i] && !writing[i] && !given_up[i]);
      assert(key[i] == NONE || line[i] == value(key[i]))
    }
    for (i : 0 .. KEYS - 1) {
      assert(table[i] == value(i) || (key[0] == i && dirty[0]) ||
             (key[1] == i && dirty[1]))
    }
  }
}
