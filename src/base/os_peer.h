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

typedef struct tarn__os_letter {
  size_t size;   // of the message, though there be less room
  int fd;        // that came with it; -1: none
  int64_t pid;   // of its sender; 0: not to be seen from here
  uint32_t uid;  // of its sender
} tarn__os_letter;

// Takes the next message out. Waits for nothing; false where there is none, or
// an empty one, which is dropped with what it brings. A message that brings
// anything but one descriptor at most, which is what happens to one for which
// there was no number left, has |fd| -1.
TARN_MUST_CHECK bool tarn__os_take(int receive, void *bytes, size_t room,
                                   tarn__os_letter *out_letter);

// Returns when there is a message, or after |ns|, or a signal.
void tarn__os_await(int receive, uint64_t ns);

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
