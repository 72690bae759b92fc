// comm.h - communicators: processes that work on one job together, its ranks.
//
// Each of |size| processes holds the communicator under a number of its own,
// its rank, from 0 on. All ranks call the same functions in the same order.
// Such a call, a collective, returns at a rank when that rank has what it needs
// from the others.
//
//   $ tarn run -n 4 -- program
//
//   tarn_comm *comm;
//   tarn_comm_from_environment(NULL, &comm);    // a rank of 0..3
//   tarn_comm_barrier(comm);
//   tarn_comm_destroy(comm);
//
// Without a launcher, in a program that forks before it opens devices:
//
//   tarn_rendezvous *rendezvous;
//   tarn_rendezvous_create(2, &rendezvous);
//   bool second = fork() == 0;
//   tarn_comm_join(rendezvous, second ? 1 : 0, NULL, &comm);
//   tarn_rendezvous_destroy(rendezvous);
//
// Where another program has started the ranks, as torchrun, Ray or Python's
// multiprocessing do, ranks meet at a path that all of them know, in a folder
// that only their user can enter:
//
//   tarn_comm_meet("/run/user/1000/job/ranks", rank, size, NULL, &comm);
//
// Ranks of one machine communicate through sockets and memory that they
// inherit. These have no name in a file system, and only processes that
// inherited them can take part. Ranks that meet at a path get the same from the
// first of them; then the path is removed. Ranks of several machines
// communicate by messages of MPI (tarn_mpi.h), or of another engine
// (tarn_comm_from_engine). Within such a communicator, those of each machine
// still share memory: tarn_comm_split_by_machine.
//
// Failure. All ranks that wait for a rank learn of its death within 100 ms, of
// its exec two seconds later, and of a rank that stops after the deadline. On
// one machine a death is told once the process has ended, not when its
// descriptors close. The text has its number:
//   TARN_E_PEER_LOST  a rank has ended, became another program by exec, or has
//                     destroyed this communicator.
//   TARN_E_TIMEOUT    a rank did not arrive within the timeout of the options.
//   TARN_E_CORRUPT    the data of a rank in the shared memory, or a message, is
//                     damaged.
// Over messages the text of the first two also has the call in which this rank
// missed the other, and that of the second what the engine uses to reach it,
// for MPI the network interfaces: "comm: rank 2 did not arrive within 1000 ms
// in tarn_comm_barrier, over v1 10.231.77.1".
// Over messages, ranks that share memory with a rank that has ended or left see
// it within 100 ms while they wait for messages, and tell all others. If there
// are none, its death is found out by the deadline, as silence is:
// TARN_E_TIMEOUT, at all ranks, within a tenth of the timeout more. A rank that
// has what it needs may have returned before.
// The communicator is then broken: every collective on it returns the same
// error at every rank, without waiting. It can only be destroyed, with all that
// was created with it. A rank that has called tarn_comm_destroy counts as lost
// to ranks that still call collectives.
//
// Agreement. A collective first compares the calls of all ranks: the function,
// sizes, root and so on. If they differ, all ranks get TARN_E_INVALID with a
// text that names the difference and the rank. No data was exchanged, and the
// communicator can still be used. If ranks are in different calls, the text
// names the functions that the program called, for whole memory (whole.h) with
// number and name: "rank 0 calls tarn_whole_gather of whole 3 'users', rank 1
// tarn_comm_barrier".
//
// Threads:  one thread at a time for each communicator; communicators are
//           independent of each other.
// Fork:     in the child, a communicator of the parent returns TARN_E_STATE;
//           destroying it there frees host memory only.
// Errors:   besides those of each function: TARN_E_INVALID for a required
//           argument that is NULL; the three above; TARN_E_NOMEM, after which
//           no data was exchanged. An error at one rank of a collective is
//           returned at all ranks, with the number and text of the lowest such
//           rank, and the communicator can still be used.
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
// Create and destroy
// ---------------------------------------------------------------------------

// Makes this process rank 0 of 1 in any environment, without taking a place:
// other calls of tarn_comm_from_environment are not affected.
#define TARN_COMM_ALONE (UINT32_C(1) << 0)

typedef struct tarn_comm_options {
  size_t struct_size;
  uint64_t timeout_ms;  // longest wait of a collective for a rank, less time
                        // in which this process was stopped itself;
                        // 0: TARN_COMM_TIMEOUT_MS of the environment, or 30000
  uint32_t flags;       // tarn_comm_from_environment: TARN_COMM_ALONE or 0;
                        // other functions: 0
  const char *job;      // tarn_comm_meet: a name of the job, the same at its
                        // ranks and at no others, of at most
                        // TARN_COMM_MOST_JOB bytes; NULL: "". Unused by others
} tarn_comm_options;
#define TARN_COMM_MOST_JOB 255

// The communicator of the rank that a launcher has started this process as:
// `tarn run`, or mpirun or srun of Open MPI or MPICH. In a process without a
// launcher: rank 0 of 1. Once per process: then the place is taken.
//
// Under mpirun and srun (OMPI_COMM_WORLD_SIZE, PMI_SIZE or SLURM_STEP_NUM_TASKS
// is neither empty nor 0 nor 1) ranks join by MPI: by the one that the process
// has loaded, else by the launcher's. The library for it,
// libtarn_mpi_openmpi.so or libtarn_mpi_mpich.so, stands beside libtarn.so, or
// in the folder that TARN_PLUGIN_DIR names. MPI is initialized if it is not,
// and then finalized when the process exits with status 0 (see tarn_mpi.h).
// Ranks that are all on one machine then communicate as if `tarn run` had
// started them; see tarn_comm_from_engine.
//
// Other launchers pass no place on, and a process that took itself for rank 0
// of 1 would work on a table of its own. So without a place it is an error if
// WORLD_SIZE (torchrun, Ray) is set to anything but a number of at most 1. Some
// launchers set no variable: a process of Python's multiprocessing is rank 0 of
// 1. Under all of them, use tarn_comm_meet.
//
// TARN_COMM, which names the place, stays in the environment. A program that a
// rank starts inherits the variable but not the place.
//
// Cost:             returns when all ranks have called it.
// TARN_E_STATE      the place was taken before, in this process or another; or
//                   the place is the parent's; or another launcher has started
//                   several ranks, as above; or the library for its MPI is not
//                   there, or MPI may not be called here. The text says what to
//                   do. Never with TARN_COMM_ALONE.
// TARN_E_INVALID    TARN_COMM is malformed, or only a part of its place was
//                   inherited; or |options| are wrong.
// TARN_E_TIMEOUT    a rank did not arrive; the text names it.
// TARN_E_PEER_LOST  a rank ended before it joined.
// TARN_E_IO         a rank lacks file descriptors or memory: at all ranks that
//                   have joined.
// After the last three the place is taken, and lost.
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_from_environment(
    const tarn_comm_options *options, tarn_comm **out_comm);

// What |size| processes that are forked from this one need to meet.
typedef struct tarn_rendezvous tarn_rendezvous;

// Creates sockets and memory, which children inherit. Fork before devices are
// opened (see docs/contracts.md).
//
// Lifetime: each process, this one and its children, destroys its own copy when
//           it has joined, or will not join. While a process that joins nothing
//           holds a copy, the death of a rank that has not joined yet is
//           noticed only at the deadline.
// TARN_E_INVALID  |size| is 0 or above TARN_COMM_MOST_RANKS.
// TARN_E_IO       no file descriptors or no memory; the text says which.
TARN_API TARN_MUST_CHECK tarn_status
tarn_rendezvous_create(size_t size, tarn_rendezvous **out_rendezvous);

// Joins as rank |rank|, in this process or in a child forked since. Otherwise
// as tarn_comm_from_environment.
//
// TARN_E_INVALID  no such rank.
// TARN_E_STATE    the place is taken, or this process has joined already.
TARN_API TARN_MUST_CHECK tarn_status
tarn_comm_join(tarn_rendezvous *rendezvous, size_t rank,
               const tarn_comm_options *options, tarn_comm **out_comm);

// For launchers, in a child before it executes the program of rank |rank|: lets
// the program inherit that place, and no other, and writes "NAME=value" for its
// environment to |out_variable|, at most TARN_RENDEZVOUS_VARIABLE bytes with
// the NUL. Makes only system calls, so that a child of a process with threads
// may call it.
//
// TARN_E_INVALID  no such rank, or |out_size| is too small.
// TARN_E_IO       the system refused.
TARN_API TARN_MUST_CHECK tarn_status
tarn_rendezvous_hand_over(tarn_rendezvous *rendezvous, size_t rank,
                          char *out_variable, size_t out_size);
#define TARN_RENDEZVOUS_VARIABLE 128

// NULL is allowed. Communicators of ranks that joined stay.
TARN_API void tarn_rendezvous_destroy(tarn_rendezvous *rendezvous);

// Joins as rank |rank| of |size| processes that know the same |path|. The first
// to come, the host, listens there at a socket, and the others connect. When
// all have come, the socket is removed, and the host sends each rank the
// sockets and the memory of a rendezvous, as after tarn_comm_join.
//
// The folder of |path| must exist, belong to this user, and have mode 0700;
// mktemp -d creates such a folder. The socket of a killed job is replaced. The
// call creates nothing else there. A relative path starts at the current
// directory.
//
// |options->job| separates the ranks of this run from those of others at the
// same path, for example of a run that was started twice. With torchrun, use
// TORCHELASTIC_RUN_ID and TORCHELASTIC_RESTART_COUNT. Without it, a run that is
// started again while ranks of the previous one still wait may get one of
// those.
//
//   tarn_comm_options options = {.struct_size = sizeof options,
//                                .job = getenv("TORCHELASTIC_RUN_ID")};
//   size_t rank = strtoul(getenv("LOCAL_RANK"), NULL, 10);
//   size_t size = strtoul(getenv("LOCAL_WORLD_SIZE"), NULL, 10);
//   tarn_comm_meet(path, rank, size, &options, &comm);
//
// Lifetime:           |path| and |options| are needed during the call only.
// Threads:            any, and several at a time, each at a path of its own.
// Cost:               returns when all ranks have come: about 10 ms for 16
//                     ranks that are ready. Up to three file descriptors for
//                     each rank at the host, two at the others.
// TARN_E_INVALID      |path| is empty, ends with '/', has more than 107 bytes,
//                     or is not such a socket; the folder belongs to another
//                     user or its mode is not 0700; |rank| is not below |size|,
//                     or |size| exceeds TARN_COMM_MOST_RANKS; |options| are
//                     wrong. At all ranks of the job that have come: two have
//                     the same number, or different sizes. The text says which.
// TARN_E_STATE        ranks of another job meet there. They go on.
// TARN_E_UNSUPPORTED  the folder is on a network file system. Ranks of several
//                     machines cannot meet at a path.
// TARN_E_TIMEOUT      ranks did not come; the text lists them. The first
//                     deadline of a rank counts for all; the others wait up to
//                     250 ms more for the text. When all have come, the time
//                     begins anew.
// TARN_E_PEER_LOST    a rank has ended or given up after it had come.
// TARN_E_IO           the folder cannot be opened or locked, or this rank has
//                     no file descriptors, or no memory to share. To the others
//                     this rank has given up.
// TARN_E_NOMEM        likewise.
// After each of them the call can be repeated.
TARN_API TARN_MUST_CHECK tarn_status
tarn_comm_meet(const char *path, size_t rank, size_t size,
               const tarn_comm_options *options, tarn_comm **out_comm);

// An allgather of the caller's: copies |size| bytes at |data| of each rank to
// |out| at all ranks, in the order of ranks. |context| is that of
// tarn_comm_meet_by.
typedef tarn_status tarn_comm_gather(void *context, const void *data,
                                     size_t size, void *out);

// The same for ranks without a common path that have an allgather, such as a
// store of torch.distributed or MPI. Rank 0 creates a folder in TMPDIR or /tmp
// for the time of the call, and |gather| is called once, to tell all ranks of
// it. Later exchanges go through shared memory.
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
// |options->job| is not read. A rank with |gather| and valid numbers takes part
// in the allgather even if another argument is wrong, and all ranks learn of
// it. If rank 0 is killed meanwhile, the folder stays.
//
// Threads:            |gather| is called on this thread, with no lock held; it
//                     may call the library.
// TARN_E_UNSUPPORTED  ranks are on several machines: at all of them.
// TARN_E_INVALID      as tarn_comm_meet; or |gather| returned other data for a
//                     rank than that rank gave.
// TARN_E_PEER_LOST    as tarn_comm_meet; or rank 0 has given up before this
//                     rank came.
// Otherwise the negative status of |gather|, or that of tarn_comm_meet.
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_meet_by(
    tarn_comm_gather *gather, void *context, size_t rank, size_t size,
    const tarn_comm_options *options, tarn_comm **out_comm);

// Creates a communicator of the ranks that pass the same |color|, ordered by
// |key|, and by rank where keys are equal. With TARN_COMM_NONE a rank is in no
// group and gets NULL. Collective.
//
// Lifetime: independent of |comm|; either may be destroyed first.
#define TARN_COMM_NONE INT64_MIN
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_split(tarn_comm *comm,
                                                     int64_t color, int64_t key,
                                                     tarn_comm **out_comm);

// Creates a communicator of the ranks that share memory with this one: those of
// its machine, in the order of their numbers. It is as fast as one of `tarn
// run`. Collective; a tarn_comm_split by the lowest rank of each machine.
//
// Ranks are on one machine if they could meet there when |comm| was made
// (tarn_comm_from_engine). Those that could not, as in containers without a
// folder in common, are on machines of their own, and so is each rank of a
// communicator of tarn_comm_create that cannot pass descriptors.
//
// Lifetime: as of tarn_comm_split.
// Cost:     some messages, and one file of memory for each machine.
TARN_API TARN_MUST_CHECK tarn_status
tarn_comm_split_by_machine(tarn_comm *comm, tarn_comm **out_comm);

// On how many machines its ranks are, as tarn_comm_split_by_machine sees it.
TARN_API size_t tarn_comm_machines(const tarn_comm *comm);

// Leaves the communicator, without waiting for other ranks. NULL is allowed.
//
// TARN_E_STATE  memory created with it is left: the text says how much. Nothing
//               has changed.
TARN_API tarn_status tarn_comm_destroy(tarn_comm *comm);

TARN_API size_t tarn_comm_rank(const tarn_comm *comm);
TARN_API size_t tarn_comm_size(const tarn_comm *comm);

// The longest wait of a collective for a rank.
TARN_API uint64_t tarn_comm_timeout_ms(const tarn_comm *comm);

// TARN_OK, or the error that broke the communicator, for loops without
// collectives. Looks at the other ranks and does not wait.
//
// Of ranks on other machines it knows what was told of them. If one has ended,
// all others are told so.
//
// Cost: two system calls for each 8 ranks of this machine.
TARN_API tarn_status tarn_comm_check(tarn_comm *comm);

// ---------------------------------------------------------------------------
// Collectives
// ---------------------------------------------------------------------------
// If one fails on its way, the output may be filled in part. Up to 296 bytes
// cost no more than a barrier. Larger data is copied twice, in rounds through
// shared memory.

// Returns when all ranks have called it.
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_barrier(tarn_comm *comm);

// Copies |size| bytes at |data| of rank |root| to |data| of all ranks.
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_broadcast(tarn_comm *comm,
                                                         size_t root,
                                                         void *data,
                                                         size_t size);

// Copies |size| bytes at |data| of each rank to |out| at all ranks, in the
// order of ranks. |data| may be this rank's part of |out|.
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_allgather(tarn_comm *comm,
                                                         const void *data,
                                                         size_t size,
                                                         void *out);

// Sends |send_sizes[r]| bytes at |send_offsets[r]| in |send| to each rank r,
// and receives |receive_sizes[r]| bytes from rank r at |receive_offsets[r]| in
// |receive|. The arrays have an entry for each rank, including this one. Sizes
// may differ between ranks, but both ranks of a pair must pass the same. |send|
// and |receive| must not overlap.
//
// TARN_E_INVALID  a rank expects another size than is sent to it: at all ranks,
//                 the text names the pair.
TARN_API TARN_MUST_CHECK tarn_status
tarn_comm_alltoallv(tarn_comm *comm, const void *send, const size_t *send_sizes,
                    const size_t *send_offsets, void *receive,
                    const size_t *receive_sizes, const size_t *receive_offsets);

// Passes one file descriptor of each rank, or -1, to all: |out_fds| has an
// entry for each rank, -1 where there is none and for the rank itself. The
// caller closes them; they are closed on exec.
//
// TARN_E_UNSUPPORTED  this communicator cannot pass descriptors, for example
//                     between machines.
// TARN_E_IO           a rank has no descriptors left: at all ranks, and none is
//                     kept.
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_share(tarn_comm *comm, int fd,
                                                     int *out_fds);

// Compares |size| bytes, at most TARN_COMM_MOST_SAME, between all ranks, such
// as a rank's arguments. |what| describes them for the text.
//
// TARN_E_INVALID  they differ: at all ranks. The text has |what| of rank 0 and
//                 of the first rank that differs from it.
#define TARN_COMM_MOST_SAME 256
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_same(tarn_comm *comm,
                                                    const void *data,
                                                    size_t size,
                                                    const char *what);

// Returns one status at all ranks: TARN_OK if every rank passes it, otherwise
// the status of the lowest rank that does not, with its number and text. To be
// called after a step that may fail at one rank; the text is the last error of
// the calling thread.
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_agree(tarn_comm *comm,
                                                     tarn_status status);

// ---------------------------------------------------------------------------
// Other implementations
// ---------------------------------------------------------------------------

// The direction of a message.
typedef enum tarn_comm_way {
  TARN_COMM_SEND = 1,
  TARN_COMM_RECEIVE = 2,
} tarn_comm_way;
#define TARN_COMM_ANY SIZE_MAX
// Any thread may call the operations, one at a time, while others of the
// program use what is behind them in their own ways. MPI: MPI_THREAD_MULTIPLE.
#define TARN_COMM_ANY_THREAD (UINT32_C(1) << 0)
#define TARN_COMM_TAGS (UINT32_C(1) << 15)

// The operations of a communicator: the functions above without checks of
// arguments, which the library makes by an allgather, as it does a barrier.
// Each is a collective with its own deadline. They are called by one thread at
// a time, with valid arguments that are the same at all ranks, and sizes above
// 0. |self| is that of tarn_comm_create. They return the same statuses as the
// functions above. A status other than TARN_OK, TARN_E_NOMEM and TARN_E_IO
// breaks the communicator.
//
// An engine that has messages, such as MPI, needs no collectives: where
// broadcast, allgather, alltoallv and split are all NULL, the library makes
// them of messages, with its own deadlines. When a message does not come, it
// asks the ranks that it waits for, and those that these wait for, what they
// do, early enough to know by the deadline who is silent: the first that has
// not answered by then, and within a tenth of the timeout, is named, at all
// ranks. Where they wait for each other, a message was lost: the text says so.
//
// Messages between two ranks with the same tag arrive in the order in which
// they were posted, and are received in the order in which that was posted.
// Both ends know the size. Data stays in place until the message is done; a
// message that was cancelled is done too. After an error the library cancels
// what is to be received, calls abandon, and later destroy. Communicators that
// were split off share the engine: its functions are called by one thread at a
// time, with a lock held, and must not call the library.
typedef struct tarn_comm_ops {
  size_t struct_size;
  const char *name;  // "local", "mpi"; lives as long as the communicator
  // Not collective. Also called in a child of fork, where it frees host memory
  // only.
  void (*destroy)(void *self);
  tarn_status (*broadcast)(void *self, size_t root, void *data, size_t size);
  tarn_status (*allgather)(void *self, const void *data, size_t size,
                           void *out);
  tarn_status (*alltoallv)(void *self, const void *send,
                           const size_t *send_sizes, const size_t *send_offsets,
                           void *receive, const size_t *receive_sizes,
                           const size_t *receive_offsets);
  // Creates the ops and self of a group of |size| ranks, in which rank i is
  // |ranks[i]| of this communicator. Called at the ranks of a group. If another
  // rank fails, the result is destroyed.
  tarn_status (*split)(void *self, const size_t *ranks, size_t size,
                       const struct tarn_comm_ops **out_ops, void **out_self);
  // NULL: descriptors cannot be passed.
  tarn_status (*share)(void *self, int fd, int *out_fds);
  // NULL: no check between collectives.
  tarn_status (*check)(void *self);
  // Messages: all three or none.
  //
  // Begins to send |size| bytes at |data| to |rank|, or to receive as many from
  // it, and returns at once. |rank| may be TARN_COMM_ANY where it receives.
  // |tag| is below TARN_COMM_TAGS. |*out_message| is not NULL on success.
  tarn_status (*post)(void *self, tarn_comm_way way, size_t rank, uint32_t tag,
                      void *data, size_t size, void **out_message);
  // Makes progress, without waiting. Those of the |count| |messages| that are
  // done become NULL; entries may be NULL before.
  //
  // TARN_E_CORRUPT    a message has another size than was posted for it.
  // TARN_E_PEER_LOST  the engine tells that a rank has ended.
  tarn_status (*test)(void *self, void **messages, size_t count);
  // Gives |message|, which receives, up if nothing has come for it. Returns
  // whether its data is free now; it is done in any case.
  bool (*cancel)(void *self, void *message);
  // Called once, before destroy, if the job cannot go on: a rank does not come,
  // or a function above has failed. From now on the engine must not wait for
  // others. NULL: it never does.
  void (*abandon)(void *self);
  uint32_t flags;  // TARN_COMM_ANY_THREAD, or 0
  // Writes a few words on what the engine uses to reach other ranks, such as
  // the network interface, into |out_size| bytes at |out|, which end with a
  // NUL. They are added to the text of a rank that is silent; "" adds nothing.
  // Does not wait; also called after abandon. NULL: nothing is known.
  void (*describe)(void *self, char *out, size_t out_size);
} tarn_comm_ops;

// Creates a communicator of |ops|, for this process as rank |rank| of |size|.
// Not collective. |timeout_ms| is returned by tarn_comm_timeout_ms.
//
// Lifetime: |self| then belongs to the communicator, which frees it by
//           ops->destroy; on failure it stays the caller's.
// TARN_E_INVALID  a function is missing, or |rank| is not below |size|.
// TARN_E_NOMEM, or an error of |ops->post|: of messages alone.
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_create(const tarn_comm_ops *ops,
                                                      void *self, size_t rank,
                                                      size_t size,
                                                      uint64_t timeout_ms,
                                                      tarn_comm **out_comm);

// Creates a communicator of an engine that has messages. Ranks of each machine
// meet, as by tarn_comm_meet_by, and share memory. Where all are on one
// machine, they communicate by that alone, and use the engine no more.
// Collective.
//
// TARN_HOST=NAME in the environment of a rank says on which machine it is,
// where that is to be believed rather than found out: ranks of different names
// are on different machines. Ranks of one name try to meet. If one of them
// cannot, for want of a common folder (TMPDIR of the lowest, or /tmp) or of
// file descriptors, each of them counts as alone on a machine: that is no
// error, and a warning to tarn_log_set. More than TARN_COMM_MOST_RANKS of a
// name are several machines.
//
// TARN_COMM_CHECK=1 in the environment of all ranks: each message between
// machines has a CRC-32C. One that is damaged is TARN_E_CORRUPT at all ranks,
// and the text has the number of the rank it came from. Each message under way
// then has a copy. Without it, damage is left to the network to find, but in
// what ranks say to each other about silence.
//
// Lifetime: |self| belongs to the library from the call on, also if it fails.
// Cost:     returns when all ranks have called it: as long as some 15 barriers
//           by messages, and what ranks of a machine need to meet. They wait
//           for each other for half the timeout.
// Errors:   as tarn_comm_create and tarn_comm_meet_by, at all ranks;
//           TARN_E_INVALID where ranks differ in TARN_COMM_CHECK.
TARN_API TARN_MUST_CHECK tarn_status tarn_comm_from_engine(
    const tarn_comm_ops *ops, void *self, size_t rank, size_t size,
    const tarn_comm_options *options, tarn_comm **out_comm);

// The name of its ops: "local", "mpi", ...
TARN_API const char *tarn_comm_kind(const tarn_comm *comm);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_COMM_H_
