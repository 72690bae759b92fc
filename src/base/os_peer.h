// os_peer.h - what processes of one machine need of the system to work
// together: sockets that carry descriptors, waits on shared words, and
// descriptors of processes.
//
// Like os.h: no locks, no state. Where the kernel refuses, calls answer false
// or -1 with errno set, and nothing has changed. Descriptors that are made here
// are closed on exec and are none of the first three, which a launcher gives a
// meaning of their own.
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

// Something that others hold, by a descriptor each, until they let go of it or
// end: |*out_hold| is to be sent to them, |*out_watch| tells who waits for it.
// Both are closed with tarn__os_close. False: no descriptors are left.
TARN_MUST_CHECK bool tarn__os_lease(int *out_watch, int *out_hold);

// Whether nobody holds it any more; waits for at most |ns|.
bool tarn__os_lease_ended(int watch, uint64_t ns);

// --- sockets ---------------------------------------------------------------

// An inbox: what is put in at |*out_send| comes out at |*out_receive|, message
// by message, with the sender's process and user, as the kernel knows them.
TARN_MUST_CHECK bool tarn__os_inbox(int *out_receive, int *out_send);

// Whether |fd| is an end of one.
bool tarn__os_is_inbox(int fd);

// Puts |size| bytes in, and the descriptor |passed| with them; -1: none. Waits
// for nothing: EAGAIN or ETOOMANYREFS where the system holds too much already,
// EPIPE where nobody can receive any more.
TARN_MUST_CHECK bool tarn__os_put(int send, const void *bytes, size_t size,
                                  int passed);

typedef struct tarn__os_message {
  size_t size;   // of the message, though there be less room
  int fd;        // that came with it; -1: none
  int64_t pid;   // of its sender; 0: not to be seen from here
  uint32_t uid;  // of its sender
} tarn__os_message;

// Takes the next message out. Waits for nothing; false where there is none, or
// an empty one, which is dropped with what it brings. A message that brings
// anything but one descriptor at most, which is what happens to one for which
// there was no number left, has |fd| -1.
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

// A socket at |path|, to which |most| may wait to be let in. It keeps messages
// apart and carries descriptors, as an inbox does, in both directions. On
// failure nothing is left at |path| that was not there. -1 with EADDRINUSE:
// something is there.
TARN_MUST_CHECK int tarn__os_listen(const char *path, size_t most);

// Ends it for whoever else has it, too.
void tarn__os_stop_listening(int listener);

// Waits for nothing. -1: ECONNREFUSED where nobody listens, or no socket is;
// EAGAIN where too many wait; ENOENT; EPROTOTYPE for a socket of another kind.
TARN_MUST_CHECK int tarn__os_connect(const char *path);

// The next that has connected; -1 with EAGAIN: there is none.
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
// ends with six messages of the system's in place of six X.
TARN_MUST_CHECK bool tarn__os_make_folder(char *io_path);
void tarn__os_remove_folder(const char *path);

// What names this machine since it was started, the same for all processes; at
// most |room| bytes with the NUL. Empty where the system does not tell.
void tarn__os_machine(char *out_name, size_t room);

// --- any descriptors -------------------------------------------------------

// Lets the programs that this process becomes inherit |fd|.
TARN_MUST_CHECK bool tarn__os_keep_on_exec(int fd);

// Takes that back.
void tarn__os_close_on_exec(int fd);

bool tarn__os_is_open(int fd);

// Closes all that are not -1, and makes them so.
void tarn__os_close_all(int *fds, size_t count);

// --- processes -------------------------------------------------------------

// A descriptor of this process.
TARN_MUST_CHECK int tarn__os_this_process(void);

// Whether |fd| is one of process |pid|, or of one that has ended and been
// waited for, whose number nobody tells. Without /proc, whatever is one may be.
bool tarn__os_is_process(int fd, int64_t pid);

// The first of |count| descriptors whose process has ended, or where they are
// ends of inboxes, that nobody can receive from; |count| if there is none. -1
// is passed over.
size_t tarn__os_find_ended(const int *fds, size_t count);

// The user of this process.
uint32_t tarn__os_user(void);

// Fills |size| bytes, at most 256, with what nobody can guess.
TARN_MUST_CHECK bool tarn__os_random(void *bytes, size_t size);

// --- shared words ----------------------------------------------------------

// Sleeps while |*word|, in memory that processes share, is |value|, until
// tarn__os_wake_all, or for |ns|, or for no reason.
void tarn__os_sleep_on(atomic_uint *word, unsigned value, uint64_t ns);
void tarn__os_wake_all(atomic_uint *word);

#endif  // TARN_BASE_OS_PEER_H_
