// os_peer.h - what processes of one machine need of the system to work
// together: sockets that carry descriptors, waits on shared words, and
// descriptors of processes.
//
// Like os.h: no locks, no state. Where the kernel refuses, calls answer false
// or -1 with errno set, and nothing has changed. Descriptors that are made here
// are closed on exec and are never one of the first three, to which a launcher
// gives a meaning of their own.
#ifndef TARN_BASE_OS_PEER_H_
#define TARN_BASE_OS_PEER_H_

#include <stdatomic.h>

#include "tarn/base.h"

// --- memory ----------------------------------------------------------------

// As tarn__os_memory_file, and the memory is there: touching it cannot fail.
TARN_MUST_CHECK int tarn__os_shared_file(const char *name, size_t size);

// --- files of other processes ----------------------------------------------

// A file in memory that a process of this user has open: numbers, which mean
// the same to any other process on the machine that sees the same /proc.
typedef struct tarn__os_file_name {
  uint64_t device;
  uint64_t inode;
  int32_t process;
  int32_t fd;
} tarn__os_file_name;

// Names |fd|, of this process. False if it is not open.
TARN_MUST_CHECK bool tarn__os_name_file(int fd, tarn__os_file_name *out);

// A descriptor of this process for that file. -1 if it is not there any more,
// is no plain file, or may not be opened. Close it with tarn__os_close.
TARN_MUST_CHECK int tarn__os_open_named(const tarn__os_file_name *name);

// --- leases ----------------------------------------------------------------

// A lease that other processes hold, by a descriptor each, until they close it
// or end. |*out_hold| is sent to them; |*out_watch| is for waiting. Both are
// closed with tarn__os_close. False: no descriptors are left.
TARN_MUST_CHECK bool tarn__os_lease(int *out_watch, int *out_hold);

// Whether no process holds the lease any more; waits for at most |ns|.
bool tarn__os_lease_ended(int watch, uint64_t ns);

// --- sockets ---------------------------------------------------------------

// A mailbox: messages put in at |*out_send| come out at |*out_receive|, with
// the sender's process and user as the kernel reports them.
TARN_MUST_CHECK bool tarn__os_mailbox(int *out_receive, int *out_send);

// Whether |fd| is an end of a mailbox.
bool tarn__os_is_mailbox(int fd);

// Puts |size| bytes in, with the descriptor |passed|; -1: none. Never waits:
// EAGAIN or ETOOMANYREFS if the system holds too much already, EPIPE if the
// receiving end is closed.
TARN_MUST_CHECK bool tarn__os_put(int send, const void *bytes, size_t size,
                                  int passed);

typedef struct tarn__os_message {
  size_t size;   // of the message, even if |room| was less
  int fd;        // the descriptor in it; -1: none
  int64_t pid;   // of its sender; 0: in a namespace invisible from here
  uint32_t uid;  // of its sender
} tarn__os_message;

// Takes the next message out. Never waits. False if there is none, or if it is
// empty; an empty message is dropped with its descriptors. |fd| is -1 if the
// message has several descriptors, or one for which no number was left.
TARN_MUST_CHECK bool tarn__os_take(int receive, void *bytes, size_t room,
                                   tarn__os_message *out_message);

// Returns when there is a message, or after |ns|, or a signal.
void tarn__os_await(int receive, uint64_t ns);

// --- sockets with names ----------------------------------------------------

// A folder in which processes of one user find each other.
typedef struct tarn__os_folder {
  int fd;              // -1: none
  uint32_t mode;       // permissions
  bool is_own;         // of the user with whose rights this process runs
  bool is_of_network;  // other machines have it too
} tarn__os_folder;

// Opens the one at |path|, and says what it is.
TARN_MUST_CHECK bool tarn__os_folder_open(const char *path,
                                          tarn__os_folder *out_folder);
void tarn__os_folder_close(tarn__os_folder *folder);

// Locks it, among all processes that ask for it. Waits for nothing:
// EWOULDBLOCK where another one has it. The lock of a process that ends is
// free.
TARN_MUST_CHECK bool tarn__os_folder_lock(const tarn__os_folder *folder);
void tarn__os_folder_unlock(const tarn__os_folder *folder);

typedef enum tarn__os_named {
  TARN__OS_NOTHING,
  TARN__OS_SOCKET,
  TARN__OS_OTHER,
} tarn__os_named;

// What |name| is in it; |*out_inode| is 0 for nothing.
tarn__os_named tarn__os_folder_look(const tarn__os_folder *folder,
                                    const char *name, uint64_t *out_inode);
bool tarn__os_folder_remove(const tarn__os_folder *folder, const char *name);

enum { TARN__OS_MOST_PATH = 107 };  // bytes of a socket's path, without the NUL

// A listening socket at |path| with a backlog of |most|. Like a mailbox, it
// keeps message boundaries and carries descriptors, in both directions. A
// failure leaves nothing new at |path|. -1 with EADDRINUSE: |path| exists.
TARN_MUST_CHECK int tarn__os_listen(const char *path, size_t most);

// Ends it, also for other processes that have its descriptor.
void tarn__os_stop_listening(int listener);

// Never waits. -1: ECONNREFUSED if no process listens or |path| is no socket;
// EAGAIN if the backlog is full; ENOENT; EPROTOTYPE for a socket of another
// kind.
TARN_MUST_CHECK int tarn__os_connect(const char *path);

// The next connection; -1 with EAGAIN: there is none.
TARN_MUST_CHECK int tarn__os_accept(int listener);

// Whether the process at the other end has connected, or listened, with the
// rights of the user of this one.
bool tarn__os_is_of_user(int fd);

enum { TARN__OS_MOST_AWAITED = 512 };

// Returns when one of |count| descriptors, TARN__OS_MOST_AWAITED at most, has a
// message or has ended, or after |ns|, or a signal; -1 is passed over.
// |out_ready[i]|: whether |fds[i]| has.
void tarn__os_await_any(const int *fds, size_t count, uint64_t ns,
                        bool *out_ready);

// Makes a folder for this user alone, whose path begins with |*io_path| and
// ends with six letters chosen by the system in place of six X.
TARN_MUST_CHECK bool tarn__os_make_folder(char *io_path);
void tarn__os_remove_folder(const char *path);

// A name of this machine since its start, the same for all processes, in at
// most |room| bytes with the NUL. Empty if the system has none.
void tarn__os_machine(char *out_name, size_t room);

// --- any descriptors -------------------------------------------------------

// Lets the programs that this process becomes inherit |fd|.
TARN_MUST_CHECK bool tarn__os_keep_on_exec(int fd);

// Takes that back.
void tarn__os_close_on_exec(int fd);

bool tarn__os_is_open(int fd);

// Closes all that are not -1, and makes them so.
void tarn__os_close_all(int *fds, size_t count);

// Makes both as tarn__os_above_standard does; false: both are closed and -1.
TARN_MUST_CHECK bool tarn__os_pair_above_standard(int pair[2]);

// An array of |count| descriptors of -1; NULL if out of memory. Freed by
// tarn__host_free_array.
int *tarn__os_no_descriptors(size_t count);

// --- processes -------------------------------------------------------------

// A descriptor of this process.
TARN_MUST_CHECK int tarn__os_this_process(void);

// Whether |fd| is a descriptor of process |pid|, or of a process that was
// reaped, whose number is no longer known. Without /proc, any descriptor of a
// process.
bool tarn__os_is_process(int fd, int64_t pid);

// The first of |count| descriptors whose process has ended, or, of a mailbox,
// whose receiving end is closed; |count| if there is none. -1 is skipped.
size_t tarn__os_find_ended(const int *fds, size_t count);

// The user of this process.
uint32_t tarn__os_user(void);

// Fills |size| bytes, at most 256, with random numbers of the kernel.
TARN_MUST_CHECK bool tarn__os_random(void *bytes, size_t size);

// --- shared words ----------------------------------------------------------

// Sleeps while |*word|, in memory that processes share, is |value|: until
// tarn__os_wake_all, for |ns|, or until a spurious wake-up.
void tarn__os_sleep_on(atomic_uint *word, unsigned value, uint64_t ns);
void tarn__os_wake_all(atomic_uint *word);

#endif  // TARN_BASE_OS_PEER_H_
