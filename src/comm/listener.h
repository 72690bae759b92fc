// listener.h - a socket with a name, in a folder that only this user can enter.
//
// A process that finds no socket there, or a socket of a process that has
// ended, puts its own in place and listens; all others connect. The folder is
// locked only during that step, and no process waits for another one under the
// lock.
#ifndef TARN_COMM_LISTENER_H_
#define TARN_COMM_LISTENER_H_

#include "base/os_peer.h"
#include "tarn/base.h"

typedef struct tarn__comm_listener {
  const char *path;  // the caller's
  const char *name;  // its last part
  tarn__os_folder folder;
  int listener;    // -1: this process does not listen
  uint64_t inode;  // of the socket at which it listens, or has connected
} tarn__comm_listener;

// TARN_E_INVALID      the path is too long or names no file, or the folder is
//                     not this user's alone.
// TARN_E_UNSUPPORTED  the folder is one of several machines.
// TARN_E_IO           the folder cannot be opened.
TARN_MUST_CHECK tarn_status
tarn__listener_find(const char *path, tarn__comm_listener *out_listener);
void tarn__listener_close(tarn__comm_listener *listener);

// Listens (|listener->listener|) or connects (|*out_fd|), without waiting.
// Where both are -1, another process works on the listener: try again.
//
// TARN_E_INVALID  the path is not a socket of this kind, or belongs to another
//                 user.
// TARN_E_IO       the system refused.
TARN_MUST_CHECK tarn_status tarn__listener_try(tarn__comm_listener *listener,
                                               size_t ranks, int *out_fd);

// Removes the socket and stops listening. Connections that were not accepted
// are ended.
void tarn__listener_remove(tarn__comm_listener *listener);

// Removes the socket of a host that has ended, if there is one.
void tarn__listener_sweep(const tarn__comm_listener *listener);

#endif  // TARN_COMM_LISTENER_H_
