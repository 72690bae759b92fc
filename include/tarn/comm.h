// comm.h - processes that do one job together: ranks.
//
// A communicator is what |size| processes hold, each under a number of its
// own, its rank, from 0 on. All of them make the same calls in the same order;
// each such call, a collective, is over for a rank when it has what it needs of
// the others.
//
//   $ tarn run -n 4 -- program
//
//   tarn_comm *comm;
//   tarn_comm_from_environment(NULL, &comm);    // a rank of 0..3
//   tarn_comm_barrier(comm);
//   tarn_comm_destroy(comm);
//
// or, with no launcher, in a program that forks before it opens devices:
//
//   tarn_rendezvous *meeting;
//   tarn_rendezvous_create(2, &meeting);
//   bool second = fork() == 0;
//   tarn_comm_join(meeting, second ? 1 : 0, NULL, &comm);
//   tarn_rendezvous_destroy(meeting);
//
// or, where something else has started the ranks, as torchrun, Ray or Python's
// multiprocessing do, by a path that all of them know, in a folder that only
// their user can enter:
//
//   tarn_comm_meet("/run/user/1000/job/ranks", rank, size, NULL, &comm);
//
// Ranks of one machine meet by sockets and memory that they inherit: nothing
// has a name, in no file system, and nobody who did not inherit them can take
// part. Those that meet by a path are sent the same by the one that came first,
// and then the name goes. Several machines: a communicator of other making,
// tarn_comm_create.
//
// Peers. A rank that dies is found out by all that wait for it, within 100 ms,
// and one that stops by the deadline; both are told by number:
//   TARN_E_PEER_LOST  a rank has ended, or become another program by exec, or
//                     has given this communicator up.
//   TARN_E_TIMEOUT    a rank has not come within the timeout of the options.
//   TARN_E_CORRUPT    what a rank has in the memory that ranks share is no
//                     message: a rank has written where it must not.
// From then on the communicator is broken: every collective on it answers the
// same at every rank, with the same text as far as that rank knows it, and
// nobody waits any more. What can be done is to destroy it, and all that was
// made with it. A rank that has left by tarn_comm_destroy counts as lost for
// those that still call collectives.
//
// Agreement. A collective first sees whether all ranks mean the same: the same
// function with the same sizes, root and so on. If not, all of them get
// TARN_E_INVALID, whose text names the difference and the rank, nothing was
// exchanged, and the communicator is as it was. Where ranks are in different
// calls, it names what the program has called at each, of wholes (whole.h) with
// number and name: "rank 0 calls tarn_whole_gather of whole 3 'users', rank 1
// tarn_comm_barrier".
//
// Threads:  one thread at a time per communicator; several communicators do not
//           meet.
// Fork:     a communicator that was made before a fork answers TARN_E_STATE in
//           the child; destroying it there frees host memory only.
// Errors:   besides what each function lists: TARN_E_INVALID for NULL where
//           something is needed; the three above; TARN_E_NOMEM, where nothing
//           has been exchanged. In a collective, what is wrong or short at one
//           rank is an error at all, with the text and the number of the lowest
//           such rank, and the communicator is as it was.
#ifndef TARN_COMM_H_
#define TARN_COMM_H_

#include "tarn/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_comm tarn_comm;

// The most ranks of a communicator of one machine.
#define TARN_COMM_MOST_RANKS 256

// ---------------------------------------------------------------------------
// Beginning and end
// ---------------------------------------------------------------------------

// This process is rank 0 of 1, whatever the environment says. No place is
// taken: other calls of tarn_comm_from_environment are as if this one had not
// been.
#define TARN_COMM_ALONE (UINT32_C(1) << 0)

typedef struct tarn_comm_options {
  size_t struct_size;
  uint64_t timeout_ms;  // how long a collective waits for a rank, but for time
                        // in which this one was stopped itself;
                        // 0: TARN_COMM_TIMEOUT_MS of the environment, or 30000
  uint32_t flags;       // TARN_COMM_ALONE or 0; of tarn_comm_from_environment,
                        // others take 0 only
  const char *job;      // tarn_comm_meet: what its ranks say, and no others, in
                        // at most TARN_COMM_MOST_JOB bytes; NULL: as "". Others
                        // do not read it
} tarn_comm_options;
#define TARN_COMM_MOST_JOB 255

// The rank that `tarn run` has started this process as. In a process that no
// launcher has started: rank 0 of 1. Once per process: the place is then taken.
//
// Other launchers hand no place over, and a process that took itself for rank 0
// of 1 would work on a table of its own. So without a place it is an error if
// WORLD_SIZE (torchrun, Ray), OMPI_COMM_WORLD_SIZE, PMI_SIZE (MPI) or
// SLURM_STEP_NUM_TASKS (srun) is neither empty nor a number of at most 1. Not
// every launcher sets one of these: a process of Python's multiprocessing is
// rank 0 of 1. Under all of them tarn_comm_meet is the way.
//
// TARN_COMM, which names the place, stays in the environment. A program that a
// rank starts inherits the variable but not the place.
//
// Cost:             returns when all ranks have come.
// TARN_E_STATE      the place was taken before, in this process or another; the
//                   place is the parent's; or another launcher says that there
//                   are several ranks, as above. The text says what to do. None
//                   of these with TARN_COMM_ALONE.
// TARN_E_INVALID    TARN_COMM is malformed, or its place was inherited in part
//                   only; or |options| are wrong.
// TARN_E_TIMEOUT    a rank has not come; the text names it.
// TARN_E_PEER_LOST  a rank ended before it had come.
// TARN_E_IO         a rank has no descriptors or no memory for it: at all ranks
//                   that have come.
// On the latter three the place is taken, and lost.
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_from_environment(
    const tarn_comm_options *options, tarn_comm **out_comm);

// Where |size| processes that are forked from this one find each other.
typedef struct tarn_rendezvous tarn_rendezvous;

// Makes one: sockets and memory, which children inherit. Fork before devices
// are opened (see docs/contracts.md).
//
// Lifetime: each process, this one and its children, destroys its own copy
//           when it has joined, or will not: while one that joins nothing holds
//           it, ranks that die before they have come are seen by the deadline
//           only.
// TARN_E_INVALID  |size| is 0 or above TARN_COMM_MOST_RANKS.
// TARN_E_IO       no descriptors or no memory for it; the text says which.
TARN_API TARN_MUST_CHECK tarn_status
tarn_rendezvous_create(size_t size, tarn_rendezvous **out_rendezvous);

// Takes place |rank|, in this process or a child that was forked since.
// Otherwise as tarn_comm_from_environment.
//
// TARN_E_INVALID  no such rank.
// TARN_E_STATE    the place is taken, or this process has taken one.
TARN_API TARN_MUST_CHECK tarn_status
tarn_comm_join(tarn_rendezvous *rendezvous, size_t rank,
               const tarn_comm_options *options, tarn_comm **out_comm);

// For launchers, in a child before it becomes the program of place |rank|: lets
// the program inherit that place, and no other, and fills |out_variable| with
// "NAME=value" for its environment, at most TARN_RENDEZVOUS_VARIABLE bytes with
// the NUL. Nothing but system calls is made, so that a child of a process with
// threads may call it.
//
// TARN_E_INVALID  no such rank, or |out_size| is too small.
// TARN_E_IO       the system refused.
TARN_API TARN_MUST_CHECK tarn_status
tarn_rendezvous_hand_over(tarn_rendezvous *rendezvous, size_t rank,
                          char *out_variable, size_t out_size);
#define TARN_RENDEZVOUS_VARIABLE 128

// NULL is allowed. Communicators that were joined stay.
TARN_API void tarn_rendezvous_destroy(tarn_rendezvous *rendezvous);

// Takes place |rank| of |size| among processes that know the same |path|. Who
// comes first listens there, at a socket, and the others come to it; when all
// have come the socket goes, and each is sent what it would have inherited of
// tarn_rendezvous_create. Then all is as after tarn_comm_join.
//
// The folder of |path| exists, is this user's, and has the mode 0700: mktemp -d
// makes such a one. The socket of a job that was killed is replaced. Nothing
// but it is made there. A relative path is of the current directory.
//
// |options->job| tells ranks of this run from those of others at the same path,
// as of one that was started twice: with torchrun, say, TORCHELASTIC_RUN_ID and
// TORCHELASTIC_RESTART_COUNT. Without, a run that is started anew while ranks
// of the former are still waiting may get one of them.
//
//   tarn_comm_options options = {.struct_size = sizeof options,
//                                .job = getenv("TORCHELASTIC_RUN_ID")};
//   size_t rank = strtoul(getenv("LOCAL_RANK"), NULL, 10);
//   size_t size = strtoul(getenv("LOCAL_WORLD_SIZE"), NULL, 10);
//   tarn_comm_meet(path, rank, size, &options, &comm);
//
// Lifetime:           |path| and |options| are not needed after the call.
// Threads:            any, several at a time too, each at a path of its own.
// Cost:               returns when all ranks have come: 16 that are there take
//                     some 10 ms. Up to three descriptors for each rank at the
//                     first, two at the others.
// TARN_E_INVALID      |path| is empty, ends with '/', or has more than 107
//                     bytes; what is there is no such socket; the folder is
//                     another user's, or not 0700; |rank| is not below |size|,
//                     or that above TARN_COMM_MOST_RANKS; |options| are wrong.
//                     At all ranks of the job that have come: two have the same
//                     number, or say another |size|. The text says which.
// TARN_E_STATE        ranks of another job meet there. They go on.
// TARN_E_UNSUPPORTED  the folder is on a file system of a network: ranks of
//                     several machines do not meet by a path.
// TARN_E_TIMEOUT      ranks have not come; the text lists them. The time is
//                     that of the rank whose is over first; one waits up to 250
//                     ms more to be told. When all have come it begins anew,
//                     for what they then tell each other.
// TARN_E_PEER_LOST    a rank has ended, or given up, after it had come.
// TARN_E_IO           the folder cannot be opened or locked, or this rank has
//                     no descriptors, or no memory to share. For those that
//                     wait for it, it has given up.
// TARN_E_NOMEM        likewise.
// After any of them the call can be made again, for a meeting anew.
TARN_API TARN_MUST_CHECK tarn_status
tarn_comm_meet(const char *path, size_t rank, size_t size,
               const tarn_comm_options *options, tarn_comm **out_comm);

// An allgather of the caller's: |size| bytes at |data| of each rank come to
// all, in the order of ranks, at |out|. |context| is what tarn_comm_meet_by was
// given.
typedef tarn_status tarn_comm_gather(void *context, const void *data,
                                     size_t size, void *out);

// The same for ranks that know no path, but have an allgather, as of a store of
// torch.distributed or of MPI: rank 0 makes a folder, in TMPDIR or /tmp, for
// the time of the call, and |gather| is called once, to tell all of it. For
// nothing else: what ranks exchange later goes through their shared memory.
//
//   static tarn_status gather(void *context, const void *data, size_t size,
//                             void *out) {
//     return MPI_Allgather(data, (int)size, MPI_BYTE, out, (int)size, MPI_BYTE,
//                          *(MPI_Comm *)context) == MPI_SUCCESS
//                ? TARN_OK
//                : TARN_E_IO;
//   }
//   tarn_comm_meet_by(gather, &world, rank, size, NULL, &comm);
//
// |options->job| is not read. Where a rank has a |gather| and numbers, it takes
// part in the allgather whatever else is wrong, and all learn of it. If rank 0
// is killed meanwhile, the folder stays.
//
// Threads:            |gather| is called on this one, with no lock held; it may
//                     call the library.
// TARN_E_UNSUPPORTED  ranks are on several machines: at all of them.
// TARN_E_INVALID      as tarn_comm_meet; or what |gather| has of a rank is not
//                     what that one gave.
// Any other negative status of |gather|, or what tarn_comm_meet answers.
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_meet_by(
    tarn_comm_gather *gather, void *context, size_t rank, size_t size,
    const tarn_comm_options *options, tarn_comm **out_comm);

// A communicator of those ranks that give the same |color|, in the order of
// |key|, and of their rank here where keys are equal. TARN_COMM_NONE: this rank
// is in none, and gets NULL. Collective.
//
// Lifetime: of its own; either may be destroyed first.
#define TARN_COMM_NONE INT64_MIN
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_split(tarn_comm *comm,
                                                     int64_t color, int64_t key,
                                                     tarn_comm **out_comm);

// Leaves it: this rank alone, and waits for nobody. NULL is allowed.
//
// TARN_E_STATE  something of it is left, as memory that was made with it: the
//               text says how much, and nothing has changed.
TARN_API tarn_status tarn_comm_destroy(tarn_comm *comm);

TARN_API size_t tarn_comm_rank(const tarn_comm *comm);
TARN_API size_t tarn_comm_size(const tarn_comm *comm);

// How long a collective waits for a rank.
TARN_API uint64_t tarn_comm_timeout_ms(const tarn_comm *comm);

// TARN_OK, or what broke it: for loops that call no collective. Looks, and
// waits for nothing.
//
// Cost: two system calls for each 8 ranks.
TARN_API tarn_status tarn_comm_check(tarn_comm *comm);

// ---------------------------------------------------------------------------
// Collectives
// ---------------------------------------------------------------------------
// Where one fails on its way, what was to come may be there in part. Up to 296
// bytes cost no more than a barrier; what is larger goes through shared memory
// in rounds, which is copied twice.

// Returns when all ranks have called it.
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_barrier(tarn_comm *comm);

// |size| bytes at |data| go from rank |root| to all.
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_broadcast(tarn_comm *comm,
                                                         size_t root,
                                                         void *data,
                                                         size_t size);

// |size| bytes of each rank go to all: |out| has room for those of every rank,
// in their order. |data| may be this rank's part of |out|.
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_allgather(tarn_comm *comm,
                                                         const void *data,
                                                         size_t size,
                                                         void *out);

// What each rank has for each: |send_sizes[r]| bytes from |send_offsets[r]| on
// in |send| go to rank r; |receive_sizes[r]| bytes of rank r come to
// |receive_offsets[r]| in |receive|. The arrays have an entry for each rank,
// its own too. Sizes may differ from rank to rank, and must agree by pairs.
// What is received must not overlap what is sent.
//
// TARN_E_INVALID  a rank expects another size than is sent to it: at all ranks,
//                 the text names the pair.
TARN_API TARN_MUST_CHECK tarn_status
tarn_comm_alltoallv(tarn_comm *comm, const void *send, const size_t *send_sizes,
                    const size_t *send_offsets, void *receive,
                    const size_t *receive_sizes, const size_t *receive_offsets);

// One file descriptor of each rank, or -1, goes to all: |out_fds| has an entry
// for each rank, -1 where there is none and for the rank itself. They are the
// caller's to close, and closed on exec.
//
// TARN_E_UNSUPPORTED  ranks of this communicator cannot pass descriptors: those
//                     of several machines.
// TARN_E_IO           a rank has no descriptors left: at all ranks, and none is
//                     kept.
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_share(tarn_comm *comm, int fd,
                                                     int *out_fds);

// Sees whether |size| bytes, at most TARN_COMM_MOST_SAME, are the same at all
// ranks. They are what the rank says of its arguments; |what| says in words
// what it is, for the text.
//
// TARN_E_INVALID  they are not: at all ranks. The text has |what| of rank 0 and
//                 of the first that differs from it.
#define TARN_COMM_MOST_SAME 256
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_same(tarn_comm *comm,
                                                    const void *data,
                                                    size_t size,
                                                    const char *what);

// One status for all: TARN_OK if that of every rank is, else that of the lowest
// rank whose is not, with that rank's text behind its number. What ranks do
// after a step that may fail at one of them; |status| and the last error of
// this thread are what this rank has to say.
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_agree(tarn_comm *comm,
                                                     tarn_status status);

// ---------------------------------------------------------------------------
// Communicators of other making
// ---------------------------------------------------------------------------

// What a communicator is made of: the functions above, minus the checks of
// arguments, which are an allgather themselves, and so is a barrier. Each is a
// collective with a deadline of its own making; they are called by one thread
// at a time, with arguments that are good and the same at all ranks, and sizes
// above 0. |self| is what tarn_comm_create was given. They answer as the
// functions above; a status other than TARN_OK and TARN_E_NOMEM, ..._IO breaks
// the communicator.
typedef struct tarn_comm_ops {
  size_t struct_size;
  const char *name;  // "local", "mpi"; lives as long as the communicator
  // Not collective. In a child of fork too, where it frees host memory only.
  void (*destroy)(void *self);
  tarn_status (*broadcast)(void *self, size_t root, void *data, size_t size);
  tarn_status (*allgather)(void *self, const void *data, size_t size,
                           void *out);
  tarn_status (*alltoallv)(void *self, const void *send,
                           const size_t *send_sizes, const size_t *send_offsets,
                           void *receive, const size_t *receive_sizes,
                           const size_t *receive_offsets);
  // The ops and self of a group of |size| ranks, |ranks[i]| of this one being
  // rank i there. Called at ranks that are in one. If another rank fails, what
  // was made is destroyed.
  tarn_status (*split)(void *self, const size_t *ranks, size_t size,
                       const struct tarn_comm_ops **out_ops, void **out_self);
  // NULL: descriptors cannot be passed.
  tarn_status (*share)(void *self, int fd, int *out_fds);
  // NULL: nothing is known between collectives.
  tarn_status (*check)(void *self);
} tarn_comm_ops;

// A communicator of |ops|, for this process as |rank| of |size|. Not
// collective. |timeout_ms| is what tarn_comm_timeout_ms says.
//
// Lifetime: |self| is the communicator's, which ends it with ops->destroy; on
//           failure it stays the caller's.
// TARN_E_INVALID  a function is missing, or |rank| is not below |size|.
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_create(const tarn_comm_ops *ops,
                                                      void *self, size_t rank,
                                                      size_t size,
                                                      uint64_t timeout_ms,
                                                      tarn_comm **out_comm);

// "local", "mpi", ... or what its maker calls it.
TARN_API const char *tarn_comm_kind(const tarn_comm *comm);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_COMM_H_
