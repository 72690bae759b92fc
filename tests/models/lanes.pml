/* lanes.pml - a model of a pool's lanes (src/pool/lanes.h), for spin.
 *
 *   sh tests/models/check.sh tests/models/lanes.pml
 *
 * Threads make requests, free what any of them was served, and end; others take
 * over their lanes. A closer reads statistics, trims, changes the strategy, or
 * puts a block to sleep. Asserted is that
 *   * while an owner works in its lane, or who has closed the lane does, nobody
 *     else works there, nor is there work whose stores are still under way
 *   * once all lanes are closed, the number of live pieces is exact
 *   * once they are empty as well, each piece is live or the strategy's: none
 *     is lost, in two lists, or on its way, and a request is refused only when
 *     all memory is live, which is never more than there is
 *   * the same holds after all threads have ended, before anybody looks
 *   * a lane that is no thread's is empty, but for what is sent there just now
 *   * no piece of a former strategy is served, and no block is freed while a
 *     thread works on it without the lock
 *   * nobody waits for ever (spin: invalid end states)
 *
 * As in the code: an owner's stores and loads, on a processor with a store
 * buffer, such as x86 (elsewhere acquire and release do the rest); the fence on
 * all processors; inboxes, with their links, a load and a compare-exchange a
 * push; in which order a lane is marked and emptied when its thread ends.
 *
 * Left out: sizes, bounds and leases (lists are sent and emptied at any time,
 * or not); the inside of the lock (short_lock.pml); frees by mistake; calls of
 * the device; the end of a pool, whose lanes nobody may use by then. An owner's
 * work in its lane is one step, and lasts until others see |inside = false|.
 * What touches only what the lock guards, and one inbox, is one step. A fork is
 * a closer that copies the memory before it lets go of the lock.
 *
 * mutants: 13
 *   1 the closer has no fence run      2 ... does not wait for owners
 *   3 ... lets go of the lock between closing and emptying
 *   4 an inbox is taken by a load and a store
 *   5 a lane is marked as no thread's when all is emptied, not before
 *   6 who sends a parcel looks for that mark before, not after
 *   7 ... and sends it when it has left its lane
 *   8 a thread that has ended still finds its lane
 *   9 an owner opens its lane without the lock
 *  10 ... takes the lock inside its lane
 *  11 ... does not look whose strategy a piece is of
 *  12 a parcel is sent by a load and a store
 *  13 a block that is put to sleep keeps its home until it sleeps
 *
 * run: THREADS=2 STEPS=2
 * run: THREADS=3 STEPS=1 SLEEPS=0
 * run: THREADS=3 STEPS=1 LANES=3 OWNED=3 CLOSINGS=0
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#ifndef THREADS
#define THREADS 2
#endif
#ifndef STEPS
#define STEPS 2   /* requests and frees of each */
#endif
#ifndef LANES
#define LANES 2
#endif
#ifndef OWNED
#define OWNED 1   /* of these, by the first threads: others have ended before */
#endif
#ifndef CLOSINGS
#define CLOSINGS 1
#endif
#ifndef SLEEPS
#define SLEEPS 1
#endif
#define NONE LANES
#define DEPTH 2   /* of a store buffer, for stores of |inside| alone */
#define PIECES 3  /* all memory there is; sets of pieces are masks */
#define ALL 7
#define ASK 3     /* instead of a piece: a request */
#define SENT 8    /* instead of a set: a parcel that was sent */
#define DONE 4    /* ... all is done but what needs the lock */

#define bit(p) (1 << (p))
#define has(set, p) (((set) >> (p)) & 1)
#define size(set) (has(set, 0) + has(set, 1) + has(set, 2))

/* tarn__pool_lane */
bool inside[LANES];   /* what is in memory */
byte queued[LANES];   /* stores of it that wait in the owner's store buffer: */
                      /* they alternate, so their number tells their values */
byte unseen[LANES];   /* of these, those up to the end of the last work */
bool working[LANES];  /* the owner is in its lane, which it found open */
bool closed[LANES], owned[LANES];
byte bins[LANES], parcel[LANES];
byte inbox[LANES];    /* its first piece + 1; 0: none */
short count[LANES];   /* allocs - frees */

/* tarn_pool */
bool locked;
byte strategy = 1;    /* pieces that are not out of it */
short live = 2;
byte next[PIECES], home[PIECES];  /* tarn__pool_piece */
byte stale;           /* pieces of a former strategy */
byte resting;         /* the piece that a thread works on without the lock */

/* The program, and what is asserted of it. */
byte served = 6;      /* pieces that it has */
byte freeing;         /* ... and some thread is about to free */
byte sending;         /* threads that may have to clear what they have sent */
byte ended;

/* --- a store buffer ------------------------------------------------------- */

inline drain(n) {
  inside[n] = !inside[n];
  queued[n]--; unseen[n] = (unseen[n] > 0 -> unseen[n] - 1 : 0)
}

/* By a locked instruction of that processor, or a fence. */
inline flush(n) {
  inside[n] = (queued[n] % 2 == 1 -> !inside[n] : inside[n]);
  queued[n] = 0; unseen[n] = 0
}

/* The next value of |inside|. Who waits for it drains as much as it likes:
 * nobody else looks. */
inline store(n) {
  if :: queued[n] == DEPTH -> drain(n) :: else fi;
  queued[n]++
}

inline leave() {
  store(mine);
  if
  :: working[mine] -> working[mine] = false; unseen[mine] = queued[mine]
  :: else
  fi
}

#define thinks_inside(n) ((inside[n] + queued[n]) % 2 == 1)

/* --- lists ---------------------------------------------------------------- */

inline add(set, more) { assert((set & (more)) == 0); set = set | (more) }

inline take(set) {
  p = (has(set, 0) -> 0 : (has(set, 1) -> 1 : 2)); set = set & ~bit(p)
}

inline unlink(set) {
  do
  :: old != 0 -> j = old - 1; add(set, bit(j)); old = next[j]; next[j] = 0
  :: else -> break
  od
}

inline clear_inbox(n, set) { old = inbox[n]; inbox[n] = 0; unlink(set) }

/* The lane that the parcel is for. */
inline address(n) {
  n = NONE;
  for (i : 0 .. PIECES - 1) { n = (has(parcel[mine], i) -> home[i] : n) }
}

inline settle(n) { live = live + count[n]; count[n] = 0 }

inline empty_lane(n) {
  add(strategy, bins[n] | parcel[n]); bins[n] = 0; parcel[n] = 0;
  clear_inbox(n, strategy)
}

/* One chain of |set| before |old|; the head is |old| then. */
inline link(set) {
  for (i : 0 .. PIECES - 1) {
    if :: has(set, i) -> next[i] = old; old = i + 1 :: else fi
  }
  i = 0; set = SENT
}

/* --- with the lock -------------------------------------------------------- */

inline close() {
  atomic { for (i : 0 .. LANES - 1) { closed[i] = true } }
#if MUTANT != 1
  atomic { for (i : 0 .. LANES - 1) { flush(i) } }
#endif
#if MUTANT != 2
  atomic { i = 0 }
  do
  :: i == LANES -> break
  :: d_step { i < LANES && !inside[i] -> i++ }
  :: d_step { i < LANES && queued[i] > 0 -> drain(i) }
  od;
#endif
#if MUTANT == 3
  locked = false;
  atomic { !locked -> locked = true }
#endif
  atomic {
    for (i : 0 .. LANES - 1) {
      assert(!working[i] && unseen[i] == 0);
      settle(i)
    }
    assert(live == size(served));
    i = 0
  }
}

inline empty_all() {
  for (i : 0 .. LANES - 1) { empty_lane(i) }
  assert(strategy + served == ALL)
}

inline serve() {
  take(strategy); home[p] = mine; add(served, bit(p)); live++
}

/* tarn__lanes_open. There may be lanes no more. */
inline open() {
  if
  :: mine == NONE && !ends ->
     mine = 0;
     do :: mine < LANES && owned[mine] -> mine++ :: else -> break od;
     if :: mine < LANES -> owned[mine] = true :: else fi
  :: else
  fi;
  if
  :: mine != NONE ->
     clear_inbox(mine, bins[mine]); settle(mine); closed[mine] = false
  :: true
  fi
}

/* tarn__lanes_relieve: inboxes of no thread, and, maybe, all that is beyond its
 * bound. */
inline relieve() {
  if
  :: every = true; add(strategy, bins[mine]); bins[mine] = 0
  :: every = false
  fi;
  for (i : 0 .. LANES - 1) {
    if :: every || !owned[i] -> clear_inbox(i, strategy) :: else fi
  }
  i = 0; every = false
}

inline sent() {
  sending--; set = 0;
  for (i : 0 .. LANES - 1) { assert(sending > 0 || owned[i] || inbox[i] == 0) }
}

proctype Thread(byte mine) {  /* its lane, as the seat has it */
  byte p, to, set, i, j, old, left = STEPS;
  bool slow, every, ends;

begin:
  atomic {
    p = ASK; to = NONE; i = 0; j = 0; old = 0; slow = false;
    if
    :: left > 0
    :: left > 0 && has(served & ~freeing, 0) -> p = 0
    :: left > 0 && has(served & ~freeing, 1) -> p = 1
    :: left > 0 && has(served & ~freeing, 2) -> p = 2
    :: !ends -> goto retire
    :: left == 0 && ends -> goto end
    fi;
    left--;
    freeing = (p == ASK -> freeing : freeing | bit(p));
    if :: mine == NONE -> goto lock :: else -> store(mine) fi
  }

  /* tarn__lane_take and tarn__lane_give */
  atomic {
#if MUTANT == 9
    closed[mine] = false;
#endif
    if
    :: closed[mine] -> slow = true; goto out
    :: else -> assert(!working[mine]); working[mine] = true
    fi;
    if
    :: p == ASK && bins[mine] != 0 -> goto hit
    :: p == ASK && bins[mine] == 0 && inbox[mine] != 0 -> goto unpack
    :: p == ASK && bins[mine] == 0 && inbox[mine] == 0 -> slow = true
    :: p != ASK && (has(stale, p) && MUTANT != 11 || home[p] == NONE) ->
       slow = true
    :: else ->
       assert(!has(resting, p));
       served = served & ~bit(p); freeing = freeing & ~bit(p); count[mine]--;
       if
       :: home[p] == mine -> add(bins[mine], bit(p)); p = DONE
       :: home[p] != mine ->
          address(to);
          if
          :: to == NONE || to == home[p] ->
             to = home[p]; add(parcel[mine], bit(p)); p = DONE;
             if
             :: set = parcel[mine]; parcel[mine] = 0; goto send
             :: true  /* it waits for more pieces */
             fi
          :: else ->
             set = parcel[mine]; parcel[mine] = bit(p); p = DONE; goto send
          fi
       fi
    fi;
    goto out
  }

unpack:
#if MUTANT == 4
  old = inbox[mine];
  atomic { inbox[mine] = 0; unlink(bins[mine]) }
#else
  atomic { flush(mine); clear_inbox(mine, bins[mine]) }
#endif
hit:
  atomic {
    if  /* who holds the lock may have cleared the inbox meanwhile */
    :: bins[mine] == 0 -> slow = true; goto out
    :: else -> take(bins[mine]); add(served, bit(p)); count[mine]++
    fi;
    assert(!has(stale, p)); p = DONE; goto out
  }

send:  /* tarn__lane_send */
#if MUTANT == 6
  slow = !owned[to];
#elif MUTANT == 7
  atomic { if :: thinks_inside(mine) -> leave() :: else fi }
#endif
again:
  old = inbox[to];
  atomic {
    flush(mine);
    if
    :: inbox[to] != old && MUTANT != 12 -> goto again
    :: else -> link(set); inbox[to] = old; sending++
    fi
  }
#if MUTANT != 6
  atomic { if :: slow = !owned[to] :: slow = true fi }
#endif

out:
  atomic {
    if :: thinks_inside(mine) && !(MUTANT == 10 && slow) -> leave() :: else fi;
    if :: slow -> goto lock :: else fi;
    if :: p == DONE && set == SENT -> sent() :: else fi;
    goto begin
  }

lock:  /* the long ways */
  atomic {
    !locked ->
    if :: mine != NONE -> flush(mine) :: else fi;
    if
    :: p == DONE ->
       relieve();
       if :: set == SENT -> sent() :: else fi;
       goto begin
    :: else -> open()
    fi;
    if
    :: p == ASK && mine != NONE && bins[mine] != 0 && !closed[mine] ->
       take(bins[mine]); add(served, bit(p)); live++
    :: p == ASK && (mine == NONE || bins[mine] == 0 || closed[mine]) ->
       if :: strategy == 0 -> locked = true; goto recall :: else -> serve() fi
    :: p != ASK && has(resting, p) ->
       freeing = freeing & ~bit(p)  /* it is refused, TARN_E_STATE */
    :: p != ASK && !has(resting, p) ->
       served = served & ~bit(p); freeing = freeing & ~bit(p); live--;
       stale = stale & ~bit(p); add(strategy, bit(p))
    fi;
    goto begin
  }

recall:
  close();
  atomic {
    empty_all();
    if :: strategy != 0 -> serve() :: else fi;
    locked = false;
    goto begin
  }

retire:  /* when the thread ends */
  atomic {
    ends = true;
    if :: mine == NONE -> goto begin :: else fi
  }
  atomic {
    !locked -> locked = true; flush(mine);
    closed[mine] = true; settle(mine);
    address(to); set = parcel[mine]; parcel[mine] = 0;
    if :: to != NONE -> old = inbox[to]; link(set); inbox[to] = old :: else fi;
    sending++
  }
#if MUTANT != 5
  owned[mine] = false;
#endif
  atomic { empty_lane(mine) }
  atomic { relieve(); sent() }
  atomic {
#if MUTANT == 5
    owned[mine] = false;
#endif
    mine = (MUTANT == 8 -> mine : NONE);
    locked = false; goto begin
  }
end:
  ended++
}

proctype Closer() {
  byte i, j, old, left = CLOSINGS;
  do
  :: atomic { left > 0 && resting == 0 && !locked -> locked = true; left-- }
     close();
     atomic {
       if
       :: true                          /* tarn_pool_stats */
       :: empty_all()                   /* tarn_pool_trim, fork */
       :: empty_all(); stale = served   /* another strategy */
       :: SLEEPS && served != 0 ->      /* tarn_pool_sleep, of one block */
          empty_all();
          i = (has(served, 0) -> 0 : (has(served, 1) -> 1 : 2));
          resting = bit(i);
          home[i] = (MUTANT == 13 -> home[i] : NONE)
       fi;
       locked = false; i = 0; j = 0; old = 0
     }
  :: atomic { resting != 0 && !locked -> resting = 0 }
  :: atomic { left == 0 && resting == 0 -> break }
  od;
  atomic {
    ended == THREADS ->
    assert(live == size(served) && strategy + served == ALL)
  }
}

init {
  byte i;
  atomic {
    for (i : 0 .. LANES - 1) { owned[i] = i < OWNED; closed[i] = i >= OWNED }
    home[2] = (OWNED == LANES -> 0 : 1);
    for (i : 0 .. THREADS - 1) { run Thread((i < OWNED -> i : NONE)) }
    run Closer()
  }
}
